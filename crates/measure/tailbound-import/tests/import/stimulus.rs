// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an outside source measured, as a run: latencies, what was not answered, what was lost, how it ended.

use tailbound_box::TimeBase;
use tailbound_box::stimulus::{
    CellCount, CellTable, LinkLosses, SampleAccount, SourceLimit, StimulusChannel,
    StimulusCounters, StimulusEnd, StimulusOrigin, StimulusReaction, StimulusRecord,
    StimulusSample, StimulusSchedule, StimulusShape, StimulusSink, StimulusSpacing,
};
use tailbound_core::{Context, EndReason, Impact, Run};
use tailbound_import::stimulus::{RunFacts, StimulusRecorder};

use crate::consistent;

const PERIOD: u64 = 6_250;

fn sample(number: u64, reaction: StimulusReaction) -> StimulusSample {
    StimulusSample { number, sent_ticks: (number + 1) * PERIOD, reaction }
}

fn reaction(number: u64) -> StimulusReaction {
    match number % 1_000 {
        7 => StimulusReaction::AtLeast(9_000),
        8 => StimulusReaction::Late(7_000),
        _ => StimulusReaction::Answered(1_000 + number % 500),
    }
}

/// A record of `n` pulses, of which the sink was given those for which `came` says so.
fn record(n: u64, came: impl Fn(u64) -> bool, end: StimulusEnd) -> (StimulusRecord, Run) {
    let tick = TimeBase::of_hz(62_500_000).expect("a rate");
    let mut recorder = StimulusRecorder::new(|_| {});
    recorder.begin(tick, 1);
    let mut account = SampleAccount::default();
    let mut channel = StimulusChannel { name: "GPIO 2 to GPIO 3".to_owned(), ..Default::default() };
    let mut counters = StimulusCounters { sent: n, spurious: Some(0), ..Default::default() };
    for number in 0..n {
        let of = sample(number, reaction(number));
        let is_answered = !matches!(of.reaction, StimulusReaction::AtLeast(_));
        counters.answered += u64::from(is_answered);
        counters.unanswered += u64::from(!is_answered);
        if came(number) {
            account.take(number);
            recorder.sample(0, of);
            continue;
        }
        let least_ticks = of.reaction.ticks().expect("known") / 64 * 64;
        let CellTable { answered, at_least } = &mut channel.cells;
        let cells = if is_answered { answered } else { at_least };
        match cells.iter_mut().find(|cell| cell.least_ticks == least_ticks) {
            Some(cell) => cell.count += 1,
            None => {
                cells.push(CellCount { least_ticks, most_ticks: Some(least_ticks + 63), count: 1 })
            }
        }
    }
    channel.cells.answered.sort_unstable_by_key(|cell| cell.least_ticks);
    channel.worst = (0..n)
        .map(|k| sample(k, reaction(k)))
        .filter(|s| s.reaction.ticks() >= Some(1_490))
        .collect();
    channel.counters = counters;
    channel.streamed = Some(account);
    let record = StimulusRecord {
        origin: StimulusOrigin {
            tool: "tailbound-box",
            what: "Raspberry Pi Pico (RP2040)".to_owned(),
            version: Some("0.2.0".to_owned()),
            place: "/dev/ttyACM0".to_owned(),
        },
        tick,
        resolution_ticks: 1,
        schedule: StimulusSchedule {
            period_ticks: PERIOD,
            spacing: StimulusSpacing::Even,
            shape: StimulusShape::Toggle,
            elapsed_ticks: n * PERIOD,
            planned_ticks: n * PERIOD,
        },
        channels: vec![channel],
        limits: Vec::new(),
        link: LinkLosses::default(),
        end,
    };
    let run = recorder.finish(&record, &facts()).expect("a run");
    consistent("box", &run);
    (record, run)
}

fn facts() -> RunFacts {
    RunFacts { id: "x".to_owned(), deadline_ns: Some(200_000), ..RunFacts::default() }
}

fn impact(run: &Run, id: &str) -> Option<Impact> {
    run.findings.iter().find(|f| f.id == id).map(|f| f.impact)
}

#[test]
fn every_sample_is_exact_and_each_second_is_known() {
    let (_, run) = record(25_000, |_| true, StimulusEnd::Whole);
    let [thread] = run.threads.as_slice() else { panic!("one channel") };
    assert_eq!((thread.context, thread.wakeup.n, thread.missed.n), (Context::External, 24_975, 25));
    assert_eq!((thread.wakeup.min_ns, thread.wakeup.max_ns), (Some(16_000), Some(112_000)));
    assert_eq!((thread.missed.max_ns, thread.wakeup.resolution_ns), (Some(144_000), 16));
    assert!(thread.wakeup.sums.is_some_and(|s| s.n == 24_975));
    assert_eq!((run.seconds.len(), run.header.plan.interval_ns), (3, 100_000));
    assert_eq!(
        run.end.as_ref().map(|e| (e.reason, e.measured_ns)),
        Some((EndReason::Complete, 2_500_000_000))
    );
    assert_eq!(impact(&run, "source-unanswered"), Some(Impact::Doubt));
    assert_eq!(run.exceedances.len(), 500 + 25, "the longest answers with their times");
}

#[test]
fn moments_at_which_nothing_was_sent_are_not_in_time() {
    let skipping = |n| {
        let (mut record, _) = record(1_000, |_| true, StimulusEnd::Whole);
        record.channels[0].counters.skipped = Some(n);
        let mut recorder = StimulusRecorder::new(|_| {});
        recorder.begin(record.tick, 1);
        impact(&recorder.finish(&record, &facts()).expect("a run"), "source-skipped")
    };
    assert_eq!([0, 10, 11].map(skipping), [None, None, Some(Impact::Doubt)]);
}

#[test]
fn lost_samples_are_known_to_their_cell_and_the_longest_to_the_tick() {
    let (_, run) = record(20_000, |n| n % 100 != 8, StimulusEnd::Whole);
    let thread = &run.threads[0];
    assert_eq!((thread.wakeup.n, thread.missed.n), (19_980, 20), "every pulse is there");
    assert_eq!(thread.wakeup.max_ns, Some(112_000), "the worst list has it to the tick");
    assert_eq!(thread.wakeup.resolution_ns, 64 * 16);
    assert_eq!(thread.wakeup.sums, None);
    assert_eq!(impact(&run, "source-in-cells"), Some(Impact::Notice));
    // Of 112 µs and more nothing can be; of 24 µs nothing certain is said where a cell lies across it.
    assert_eq!(thread.wakeup.beyond(112_000), (0, 0));
    let exact = (0..20_000_u64).filter(|n| reaction(*n).ticks() > Some(1_400)).count() as u64 - 20;
    let (beyond, unknown) = thread.wakeup.beyond(1_400 * 16);
    assert!(beyond <= exact && exact <= beyond + unknown, "{beyond} {exact} {unknown}");
}

#[test]
fn a_pulse_of_which_nothing_is_known_is_never_met() {
    let (mut record, _) = record(1_000, |_| true, StimulusEnd::Whole);
    let finish = |record: &StimulusRecord| {
        let mut recorder = StimulusRecorder::new(|_| {});
        recorder.begin(record.tick, 1);
        for n in 0..1_000 {
            recorder.sample(0, sample(n, StimulusReaction::Answered(100)));
        }
        recorder.finish(record, &facts()).expect("a run")
    };
    record.channels[0].worst.clear();
    record.channels[0].counters.unanswered = 0;
    let known = finish(&record);
    assert_eq!(known.threads[0].due().beyond(200_000), (0, 0));
    record.channels[0].lost = 3;
    let run = finish(&record);
    assert_eq!(run.threads[0].due().beyond(200_000), (0, 3));
    assert_eq!(impact(&run, "source-samples-lost"), Some(Impact::Doubt));
}

#[test]
fn an_early_end_is_said_and_its_run_is_shorter() {
    for (end, reason) in [
        (StimulusEnd::Stopped, EndReason::Interrupted),
        (StimulusEnd::Lost("unplugged".to_owned()), EndReason::Failed),
        (StimulusEnd::Slipped, EndReason::Failed),
        (StimulusEnd::Silent, EndReason::Failed),
        (StimulusEnd::Restarted, EndReason::Failed),
    ] {
        let (_, run) = record(5_000, |_| true, end.clone());
        assert_eq!(run.end.as_ref().map(|e| e.reason), Some(reason));
        let doubt = impact(&run, "source-ended");
        assert_eq!(doubt.is_some(), end != StimulusEnd::Stopped, "{end:?}");
    }
}

#[test]
fn limits_of_a_source_stand_in_its_run() {
    let (mut record, _) = record(1_000, |_| true, StimulusEnd::Whole);
    record.limits = vec![
        SourceLimit::GivesUp { after_ticks: 62_500 },
        SourceLimit::WaitsForAnswer,
        SourceLimit::OwnError { less_ns: 0, more_ns: 5_000, basis: "measured".to_owned() },
    ];
    let mut recorder = StimulusRecorder::new(|_| {});
    recorder.begin(record.tick, 1);
    recorder.sample(0, sample(0, StimulusReaction::Answered(100)));
    let run = recorder.finish(&record, &facts()).expect("a run");
    assert_eq!(impact(&run, "source-gives-up"), Some(Impact::Doubt));
    assert_eq!(impact(&run, "source-waits"), Some(Impact::Doubt));
    assert_eq!(run.threads[0].wakeup.resolution_ns, 5_001, "so much later it may have been");
}
