// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of who sent pulses and of who answered them, joined: what is certain has its parts, all else its reason.
//!
//! Units: ns. Nothing here depends on this machine: both runs are written down.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use tailbound_box::TimeBase;
use tailbound_box::stimulus::{
    CellTable, LinkLosses, SenderNumbers, StimulusChannel, StimulusCounters, StimulusEnd,
    StimulusOrigin, StimulusReaction, StimulusRecord, StimulusSample, StimulusSchedule,
    StimulusShape, StimulusSink as _, StimulusSpacing,
};
use tailbound_core::Run;
use tailbound_core::pulses::{AnsweredPulse, AnsweredPulses, PulseJoin};
use tailbound_import::stimulus::{RunFacts, StimulusRecorder};

const PERIOD_NS: u64 = 100_000;
const PULSES: u64 = 1_001;
const SENDER: u64 = 0xabc;

/// Inside, and what only the outside sees.
fn parts(number: u64) -> (i64, i64, i64) {
    let start_ns = 3_000 + i64::try_from(number * 7_919 % 40_000).unwrap();
    (start_ns, 2_000, 100 + i64::try_from(number % 300).unwrap())
}

fn outside_ns(number: u64) -> u64 {
    let (start_ns, work_ns, rest_ns) = parts(number);
    (start_ns + work_ns + rest_ns).unsigned_abs()
}

/// The run of a source that measured all pulses, and knows its 32 longest.
fn sent(shape: StimulusShape, numbers: Option<SenderNumbers>, spurious: u64) -> Run {
    let sample = |number| StimulusSample {
        number,
        sent_ticks: number * PERIOD_NS,
        reaction: StimulusReaction::Answered(outside_ns(number)),
    };
    let mut recorder = StimulusRecorder::new(|_| {});
    recorder.begin(TimeBase::NANOSECOND, 1);
    (0..PULSES).for_each(|number| recorder.sample(0, sample(number)));
    let mut worst: Vec<StimulusSample> = (0..PULSES).map(sample).collect();
    worst.sort_by_key(|s| std::cmp::Reverse(s.reaction.ticks()));
    worst.truncate(32);
    let mut account = tailbound_box::stimulus::SampleAccount::default();
    (0..PULSES).for_each(|number| assert!(account.take(number)));
    let counters = StimulusCounters {
        sent: PULSES,
        answered: PULSES,
        spurious: Some(spurious),
        ..StimulusCounters::default()
    };
    let record = StimulusRecord {
        origin: StimulusOrigin {
            tool: "tailbound-box",
            what: "a box".to_owned(),
            version: None,
            place: "here".to_owned(),
        },
        tick: TimeBase::NANOSECOND,
        resolution_ticks: 16,
        schedule: StimulusSchedule {
            period_ticks: PERIOD_NS,
            spacing: StimulusSpacing::Even,
            shape,
            elapsed_ticks: PULSES * PERIOD_NS,
            planned_ticks: PULSES * PERIOD_NS,
        },
        channels: vec![StimulusChannel {
            name: "one".to_owned(),
            counters,
            cells: CellTable::default(),
            worst,
            streamed: Some(account),
            numbers,
            ..StimulusChannel::default()
        }],
        limits: Vec::new(),
        link: LinkLosses::default(),
        end: StimulusEnd::Whole,
    };
    let facts = RunFacts { id: "outside".to_owned(), ..RunFacts::default() };
    recorder.finish(&record, &facts).unwrap()
}

/// The run of who answered, whose clock began half a second before and runs 50 ppm faster.
fn answered(edges: Option<u64>) -> Run {
    let kept = (0..PULSES).map(|number| {
        let (start_ns, work_ns, rest_ns) = parts(number);
        let sent_ns = i64::try_from(number * PERIOD_NS).unwrap();
        let first = if edges.is_some() { 0 } else { 500 };
        AnsweredPulse {
            number: number + first,
            sender: edges.is_none().then(|| format!("{SENDER:016x}")),
            token: edges.is_none().then_some(7_000 + number * PERIOD_NS),
            t_ns: 500_000_000 + sent_ns + sent_ns / 20_000 + rest_ns / 2,
            start_ns: Some(start_ns),
            work_ns,
            error_ns: 40,
            repeated: false,
        }
    });
    let pulses = AnsweredPulses { edges, kept: kept.collect(), ..AnsweredPulses::default() };
    let mut run = Run::new(sent(StimulusShape::Pulse, None, 0).header);
    run.header.id = "inside".to_owned();
    run.answered_pulses.push(pulses);
    run
}

fn join(run: &mut Run, answers: &Run) -> PulseJoin {
    tailbound_stimulus::join(run, answers);
    let [join] = run.pulse_joins.as_slice() else { panic!("one channel") };
    let left_out: u64 = join.not_joined.iter().map(|not| not.n).sum();
    assert_eq!(join.splits.len() as u64 + left_out, join.worst, "each is joined or has a reason");
    join.clone()
}

fn reason(run: &mut Run, answers: &Run) -> String {
    let join = join(run, answers);
    assert!(join.splits.is_empty(), "{join:?}");
    let [not] = join.not_joined.as_slice() else { panic!("one reason: {join:?}") };
    assert_eq!(not.n, 32);
    not.reason.clone()
}

fn assert_right(join: &PulseJoin) {
    for split in &join.splits {
        let right = parts(split.activation);
        assert_eq!((split.start_ns, split.work_ns, split.rest_ns), right, "{split:?}");
        assert_eq!(split.outside_ns, split.start_ns + split.work_ns + split.rest_ns);
    }
}

const NUMBERS: SenderNumbers = SenderNumbers { sender: SENDER, first: 500, token: 7_000 };

#[test]
fn edges_that_both_sides_counted_alike_are_joined_and_their_parts_are_all_of_the_time() {
    // An odd number of levels: the line returns to rest, which is an edge more.
    for (shape, edges) in [(StimulusShape::Toggle, PULSES + 1), (StimulusShape::Pulse, PULSES)] {
        let mut run = sent(shape, None, 0);
        let join = join(&mut run, &answered(Some(edges)));
        assert_eq!((join.splits.len(), join.answers.as_str()), (32, "inside"));
        assert!(join.splits.is_sorted_by(|a, b| a.outside_ns >= b.outside_ns));
        assert_right(&join);
        let mut file = Vec::new();
        tailbound_core::runfile::write_run(&run, &mut file).unwrap();
        let back = tailbound_core::runfile::read_run(file.as_slice()).unwrap();
        assert_eq!(back.pulse_joins, [join], "the run file has it");
    }
}

#[test]
fn edges_of_which_one_was_lost_or_too_many_are_not_joined_by_guess() {
    let mut run = sent(StimulusShape::Pulse, None, 0);
    for edges in [PULSES - 1, PULSES + 1] {
        let told = reason(&mut run, &answered(Some(edges)));
        assert!(told.contains("gave 1,001 edges"), "{told}");
    }
    let mut answers = answered(Some(PULSES));
    answers.answered_pulses[0].unseen = 2;
    assert!(reason(&mut run, &answers).contains("2 edges came before"));
    // One lost and one too many: the counts are alike, and the box heard an answer too many.
    let mut odd = sent(StimulusShape::Pulse, None, 1);
    assert!(
        reason(&mut odd, &answered(Some(PULSES))).contains("1 edges of the answer as spurious")
    );
    let mut several = run.clone();
    several.threads.push(several.threads[0].clone());
    assert!(reason(&mut several, &answered(Some(PULSES))).contains("2 channels"));
}

#[test]
fn edges_that_are_counted_alike_and_are_others_show_it_by_their_times() {
    let mut run = sent(StimulusShape::Pulse, None, 0);
    let mut apart = answered(Some(PULSES));
    apart.answered_pulses[0].kept.iter_mut().for_each(|pulse| pulse.number += 1);
    let told = reason(&mut run, &apart);
    assert!(told.contains("not those of these pulses: one"), "{told}");
    // Half of them, from one place on.
    let mut apart = answered(Some(PULSES));
    for pulse in &mut apart.answered_pulses[0].kept {
        pulse.t_ns += if pulse.number > 500 { 100_000 } else { 0 };
    }
    let told = reason(&mut run, &apart);
    assert!(told.contains("distances in time"), "{told}");
}

#[test]
fn datagrams_are_told_by_number_and_token_whatever_was_lost_between() {
    let mut run = sent(StimulusShape::Pulse, Some(NUMBERS), 3);
    let mut answers = answered(None);
    // Most were lost, or not kept: each of the others is certain all the same.
    answers.answered_pulses[0].kept.retain(|pulse| pulse.number % 2 == 0);
    let some = join(&mut run, &answers);
    assert!((1..32).contains(&some.splits.len()), "{}", some.splits.len());
    assert_right(&some);
    assert_eq!(some.not_joined[0].reason, "who answered has no such pulse in its measurement");
    answers.answered_pulses[0].others_at_most_ns = Some(12_000);
    let bounded = join(&mut run, &answers);
    assert!(bounded.not_joined[0].reason.contains("12.0 µs at most"), "{bounded:?}");
}

#[test]
fn a_datagram_that_came_twice_or_is_anothers_is_not_joined() {
    let mut run = sent(StimulusShape::Pulse, Some(NUMBERS), 0);
    let every = |change: fn(&mut AnsweredPulse)| {
        let mut answers = answered(None);
        answers.answered_pulses[0].kept.iter_mut().for_each(change);
        answers
    };
    for (answers, words) in [
        (every(|p| p.repeated = true), "more than once"),
        (every(|p| p.token = Some(1)), "token"),
        (every(|p| p.sender = Some("another".to_owned())), "no such pulse"),
        (every(|p| p.start_ns = None), "did not stamp"),
        (answered(Some(PULSES)), "the one side has datagrams"),
        (Run::new(run.header.clone()), "keeps no pulses"),
    ] {
        let told = reason(&mut run, &answers);
        assert!(told.contains(words), "{words}: {told}");
    }
    // An answer may be back before the call that sent it has returned.
    let splits = join(&mut run, &every(|p| p.start_ns = Some(5_000_000))).splits;
    assert!(!splits.is_empty() && splits.iter().all(|s| s.rest_ns < 0), "{splits:?}");
    run.sent_pulses.clear();
    assert!(reason(&mut run, &answered(None)).contains("not read to its end"));
}
