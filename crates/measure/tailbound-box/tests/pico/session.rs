// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measurement, whatever happens to the line: nothing is invented, what was measured is kept.

use std::collections::{BTreeMap, BTreeSet};

use tailbound_box::TimeBase;
use tailbound_box::pico::{BoxRefusal, BoxSession, Streaming};
use tailbound_box::stimulus::{
    StimulusEnd, StimulusPlan, StimulusProgress, StimulusReaction, StimulusRecord, StimulusSample,
    StimulusShape, StimulusSink, StimulusSpacing,
};
use tailbound_wire::{PulseRecord, Reaction};

use crate::simulated_box::{DamagedLine, Machine, SimulatedBox, TICK_HZ};

const MS: i64 = 1_000_000;

/// What a sink was given.
#[derive(Default)]
struct Given {
    samples: Vec<(u8, StimulusSample)>,
    progress: u32,
}

impl StimulusSink for Given {
    fn begin(&mut self, tick: TimeBase, channels: u8) {
        assert_eq!((tick.time_ns(1), self.samples.len()), (16, 0));
        assert!(channels > 0);
    }
    fn sample(&mut self, channel: u8, sample: StimulusSample) {
        self.samples.push((channel, sample));
    }
    fn progress(&mut self, now: &StimulusProgress) {
        assert!(now.elapsed_ns > 0);
        self.progress += 1;
    }
}

fn plan() -> StimulusPlan {
    StimulusPlan {
        period_ns: 100_000,
        duration_ns: 3_000 * MS,
        channels: 1,
        shape: StimulusShape::Toggle,
        spacing: StimulusSpacing::Even,
        deadline_ns: None,
    }
}

/// What is done to a course from outside, at a time.
#[derive(Clone, Copy)]
enum Event {
    Nothing,
    Stop,
    Lost,
    Restart,
    Silence,
}

struct Course {
    record: Result<StimulusRecord, BoxRefusal>,
    given: Given,
    truth: BTreeMap<(u8, u64), PulseRecord>,
    still_measures: bool,
}

fn course(
    mut of: SimulatedBox,
    plan: StimulusPlan,
    streaming: Streaming,
    bad_of: u64,
    (at_ns, event): (i64, Event),
) -> Course {
    let mut weather = DamagedLine { state: bad_of ^ at_ns.unsigned_abs(), bad_of };
    let mut given = Given::default();
    let mut session = BoxSession::begin("port".to_owned(), plan, streaming, 0);
    let mut now_ns = 0_i64;
    let begun_ticks = of.now_ticks;
    let mut is_done = false;
    let mut truth = BTreeMap::new();
    while !session.is_over() {
        // A frame of USB.
        now_ns += MS;
        assert!(now_ns < 120_000 * MS, "it comes to no end");
        if !is_done && now_ns >= at_ns {
            is_done = true;
            match event {
                Event::Nothing => is_done = false,
                Event::Stop => session.stop(now_ns),
                Event::Lost => session.lost("the cable was pulled", now_ns),
                Event::Restart => {
                    truth.clone_from(&of.truth);
                    let now_ticks = of.now_ticks;
                    of = SimulatedBox::new(of.machine);
                    of.now_ticks = now_ticks;
                }
                Event::Silence => {}
            }
        }
        let is_silent = is_done && matches!(event, Event::Silence);
        let out = session.outgoing().to_vec();
        session.sent(out.len());
        let ms = u64::try_from(now_ns / MS).expect("positive");
        of.advance(begun_ticks + ms * u64::from(TICK_HZ / 1_000));
        of.hear(&weather.pass(&out));
        let back = weather.pass(&of.outgoing());
        if !is_silent {
            session.take(&back, now_ns, &mut given);
        }
        session.at(now_ns, &mut given);
    }
    let still_measures = of.is_measuring();
    truth.append(&mut of.truth);
    Course { record: session.finish(), given, truth, still_measures }
}

fn told(record: &PulseRecord) -> StimulusReaction {
    match record.reaction {
        Reaction::Answered(ticks) => StimulusReaction::Answered(ticks.into()),
        Reaction::Late(ticks) => StimulusReaction::Late(ticks.into()),
        Reaction::AtLeast(ticks) => StimulusReaction::AtLeast(ticks.into()),
        Reaction::Unknown => StimulusReaction::Unknown,
    }
}

/// Nothing is invented: samples, cells and the worst are all of pulses that the box told of, each once at most.
fn true_to(course: &Course) -> &StimulusRecord {
    let record = course.record.as_ref().expect("a record");
    let mut given = BTreeSet::new();
    for (channel, sample) in &course.given.samples {
        let truth = course.truth.get(&(*channel, sample.number)).expect("the box told of it");
        assert_eq!((sample.sent_ticks, sample.reaction), (truth.sent_ticks, told(truth)));
        assert!(given.insert((*channel, sample.number)), "given once");
    }
    for channel in &record.channels {
        let of_channel = || course.truth.iter().filter(|((c, _), _)| *c == channel.number);
        let rest: Vec<&PulseRecord> =
            of_channel().filter(|(key, _)| !given.contains(key)).map(|(_, r)| r).collect();
        let mut in_cells = 0;
        for cell in &channel.cells.answered {
            in_cells += cell.count;
            let truths = rest.iter().filter(|r| match r.reaction {
                Reaction::Answered(ticks) | Reaction::Late(ticks) => {
                    u64::from(ticks) >= cell.least_ticks
                        && cell.most_ticks.is_none_or(|most| u64::from(ticks) <= most)
                }
                _ => false,
            });
            assert!(cell.count <= truths.count() as u64, "{cell:?}");
        }
        in_cells += channel.cells.at_least.iter().map(|cell| cell.count).sum::<u64>();
        for worst in &channel.worst {
            let truth = course.truth[&(channel.number, worst.number)];
            assert_eq!(worst.reaction, told(&truth));
        }
        let came = channel.streamed.as_ref().map_or(0, |account| account.came);
        let counters = &channel.counters;
        let closed = counters.answered + counters.unanswered + counters.unknown;
        let behind = channel.streamed.as_ref().map_or(0, |account| account.behind);
        let all = closed.max(behind);
        let in_flight = u64::from(channel.in_flight.is_some());
        let given_too =
            u64::from(channel.in_flight.is_some_and(|n| given.contains(&(channel.number, n))));
        let sum = came - given_too + in_cells + channel.lost;
        assert!(sum == all || sum + in_flight == all, "every pulse is somewhere: {sum} of {all}");
        assert!(counters.sent >= closed);
    }
    record
}

/// 5 to 60 µs, now and then more than a period, now and then never.
fn mixed(_: u8, number: u64) -> Option<u64> {
    match number % 1_009 {
        7 => None,
        500 => Some(8_000),
        _ => Some(300 + number * 7_919 % 3_400),
    }
}

fn quick(channel: u8, number: u64) -> Option<u64> {
    Some(100 + u64::from(channel) * 1_000 + number % 64)
}

fn box_of(machine: Machine) -> SimulatedBox {
    SimulatedBox::new(machine)
}

#[test]
fn a_whole_measurement_has_every_pulse() {
    for machine in [mixed as Machine, quick] {
        let course =
            course(box_of(machine), plan(), Streaming::Samples, 0, (i64::MAX, Event::Nothing));
        let record = true_to(&course);
        assert_eq!(record.end, StimulusEnd::Whole);
        assert_eq!(course.given.samples.len(), course.truth.len(), "every sample came");
        let channel = &record.channels[0];
        assert_eq!((channel.lost, &channel.cells), (0, &Default::default()));
        assert!(course.truth.len() > 20_000, "{}", course.truth.len());
        assert_eq!(course.given.progress, 2);
        assert!(!course.still_measures);
        assert_eq!(record.schedule.period_ticks, 6_250);
        assert_eq!(channel.name, "GPIO 2 to GPIO 3");
    }
}

#[test]
fn without_samples_the_cells_have_every_pulse() {
    let plan = StimulusPlan { channels: 3, spacing: StimulusSpacing::Random(5), ..plan() };
    let course = course(box_of(mixed), plan, Streaming::Cells, 0, (i64::MAX, Event::Nothing));
    let record = true_to(&course);
    assert_eq!((&record.end, record.channels.len()), (&StimulusEnd::Whole, 3));
    assert!(course.given.samples.is_empty());
    for channel in &record.channels {
        assert_eq!(channel.lost, 0);
        assert!(channel.counters.late > Some(0) && channel.counters.unanswered > 0);
        assert_eq!(channel.worst.len(), 256);
    }
}

#[test]
fn lost_and_flipped_bytes_cost_samples_and_invent_none() {
    for (seed, bad_of) in [3_000, 10_000, 40_000, 41_000, 42_000].into_iter().enumerate() {
        for streaming in [Streaming::Samples, Streaming::Cells] {
            let plan = StimulusPlan { channels: 1 + u8::from(seed % 2 == 0), ..plan() };
            let course = course(box_of(mixed), plan, streaming, bad_of, (i64::MAX, Event::Nothing));
            let record = true_to(&course);
            assert_eq!(record.end, StimulusEnd::Whole, "{bad_of}");
            assert!(record.link.damaged > 0 || streaming == Streaming::Cells);
            for channel in &record.channels {
                assert_eq!(channel.lost, 0, "what no sample told, the cells tell");
            }
        }
    }
}

#[test]
fn a_cable_that_is_pulled_keeps_what_was_measured() {
    for seed in 0..12_i64 {
        let at_ns = 40 * MS + seed * 271 * MS + seed * 777_777;
        for bad_of in [0, 20_000] {
            let course =
                course(box_of(mixed), plan(), Streaming::Samples, bad_of, (at_ns, Event::Lost));
            if let Err(refusal) = &course.record {
                // It was pulled before the first pulse.
                assert!(matches!(refusal, BoxRefusal::Lost(_)), "{refusal}");
                assert!(course.given.samples.is_empty());
                continue;
            }
            let record = true_to(&course);
            if record.end == StimulusEnd::Whole {
                continue;
            }
            assert_eq!(record.end, StimulusEnd::Lost("the cable was pulled".to_owned()));
            // All but what was within the last frames.
            let given = course.given.samples.len() as u64;
            let allowed = if bad_of == 0 { 700 } else { 4_000 };
            assert!(given + allowed > course.truth.len() as u64, "{given}");
        }
    }
}

#[test]
fn a_cable_that_is_pulled_without_samples_keeps_the_last_look() {
    let plan = StimulusPlan { duration_ns: 25_000 * MS, ..plan() };
    let at = (15_000 * MS, Event::Lost);
    let course = course(box_of(quick), plan, Streaming::Cells, 0, at);
    let record = true_to(&course);
    let channel = &record.channels[0];
    assert!(channel.counters.sent > 135_000, "the counters are of the last second");
    let known: u64 = channel.cells.answered.iter().map(|c| c.count).sum();
    assert!(known > 95_000, "the cells are of the last ten: {known}");
    assert_eq!(known + channel.lost, channel.counters.answered);
}

#[test]
fn a_person_ends_it_and_all_until_then_is_read() {
    let course = course(box_of(mixed), plan(), Streaming::Samples, 0, (777 * MS, Event::Stop));
    let record = true_to(&course);
    assert_eq!((&record.end, record.channels[0].lost), (&StimulusEnd::Stopped, 0));
    assert_eq!(course.given.samples.len(), course.truth.len());
    assert!(!course.still_measures);
}

#[test]
fn a_box_that_begins_anew_or_falls_silent_ends_it() {
    for (event, end) in
        [(Event::Restart, StimulusEnd::Restarted), (Event::Silence, StimulusEnd::Silent)]
    {
        let course = course(box_of(quick), plan(), Streaming::Samples, 0, (1_500 * MS, event));
        let record = true_to(&course);
        assert_eq!(record.end, end);
        assert!(course.given.samples.len() > 14_000);
    }
}

#[test]
fn a_schedule_that_slipped_is_never_whole() {
    for bad_of in [0, 700, 900, 1_100] {
        let mut of = box_of(quick);
        of.slips_ticks = Some(100_000_000);
        let course = course(of, plan(), Streaming::Samples, bad_of, (i64::MAX, Event::Nothing));
        let Ok(record) = &course.record else { continue };
        true_to(&course);
        assert!(
            !matches!(record.end, StimulusEnd::Whole | StimulusEnd::Stopped),
            "{:?}",
            record.end
        );
        if bad_of == 0 {
            assert_eq!((&record.end, record.channels[0].lost), (&StimulusEnd::Slipped, 0));
        }
    }
}

#[test]
fn a_box_that_cannot_be_used_is_refused_with_what_to_do() {
    let refusal = |of: SimulatedBox, plan: StimulusPlan| {
        course(of, plan, Streaming::Samples, 0, (i64::MAX, Event::Nothing)).record.expect_err("no")
    };
    let mut other = box_of(quick);
    other.firmware = [1, 0, 3];
    let told = refusal(other, plan()).to_string();
    assert!(told.contains("1.0.3") && told.contains("box flash"), "{told}");
    let told = refusal(box_of(quick), StimulusPlan { channels: 5, ..plan() }).to_string();
    assert!(told.contains("4 channels"), "{told}");
    let told = refusal(box_of(quick), StimulusPlan { period_ns: 1_000, ..plan() }).to_string();
    assert!(told.contains("4000 ns"), "{told}");
    let silent = course(box_of(quick), plan(), Streaming::Samples, 0, (0, Event::Silence));
    assert_eq!(silent.record, Err(BoxRefusal::NoAnswer));
    let mut session = BoxSession::begin("port".to_owned(), plan(), Streaming::Samples, 0);
    let mut given = Given::default();
    let mut now_ns = 0;
    while !session.is_over() {
        session.take(b"login: ", now_ns, &mut given);
        now_ns += 100 * MS;
        session.at(now_ns, &mut given);
    }
    assert!(matches!(session.finish(), Err(BoxRefusal::NoBox { .. })));
}

#[test]
fn what_an_earlier_host_left_is_ended_and_is_no_sample_of_this_one() {
    let mut of = box_of(quick);
    let mut first = BoxSession::begin("port".to_owned(), plan(), Streaming::Samples, 0);
    let mut given = Given::default();
    for ms in 1..500 {
        let out = first.outgoing().to_vec();
        first.sent(out.len());
        of.advance(ms * u64::from(TICK_HZ / 1_000));
        of.hear(&out);
        first.take(&of.outgoing(), i64::try_from(ms).expect("small") * MS, &mut given);
    }
    assert!(of.is_measuring() && !given.samples.is_empty());
    drop(first);
    let course = course(of, plan(), Streaming::Samples, 0, (i64::MAX, Event::Nothing));
    let record = true_to(&course);
    assert_eq!((&record.end, record.channels[0].lost), (&StimulusEnd::Whole, 0));
    assert_eq!(course.given.samples.len(), course.truth.len());
}
