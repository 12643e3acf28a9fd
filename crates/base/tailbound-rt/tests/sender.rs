// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending loop over a simulated network: which answer belongs to which pulse, and what is counted.
//!
//! Units: ns. Nothing here depends on this machine: time goes on as the simulation says.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use tailbound_rt::answer::AnswerRefusal;
use tailbound_rt::answer::datagram::PulsePacket;
use tailbound_rt::answer::sender::{
    self, ClockReading, EdgeStamps, PulseSample, PulseTime, SenderEvent, SenderLine, SenderLogs,
    SenderPlan, SenderTally,
};
use tailbound_rt::answer::slots::{PulseSlot, SLOTS, Slots};
use tailbound_rt::ring::Ring;
use tailbound_rt::spread::Spread;
use tailbound_rt::{LoopEnd, Recorder, Schedule};

/// CLOCK_REALTIME is so far ahead.
const AHEAD_NS: i64 = 1_000_000_000_000;
/// From the call to the driver.
const QUEUE_NS: i64 = 3_000;
/// From the arrival to the thread.
const WAKE_NS: i64 = 20_000;

/// What the network makes of a pulse: its answers, each after so long on the way; and what else happens.
#[derive(Clone, Default)]
struct Fate {
    answers_ns: Vec<i64>,
    no_stamp_left: bool,
    no_stamp_answer: bool,
    card: bool,
    refused: Option<AnswerRefusal>,
    /// The thread stands still so long after it was sent.
    stall_ns: i64,
    /// CLOCK_REALTIME is set ahead by so much right after.
    set_ns: i64,
}

fn after(ns: i64) -> Fate {
    Fate { answers_ns: vec![ns], ..Fate::default() }
}

struct Net<F> {
    now_ns: i64,
    ahead_ns: i64,
    events: BTreeMap<(i64, u64), SenderEvent>,
    serial: u64,
    fate: F,
}

impl<F: FnMut(&PulsePacket) -> Fate> Net<F> {
    fn at(&mut self, ns: i64, event: SenderEvent) {
        self.serial += 1;
        self.events.insert((ns, self.serial), event);
    }
    fn answer(&mut self, pulse: PulsePacket, fate: &Fate, arrived_ns: i64) {
        let stamps = EdgeStamps {
            kernel_ns: (!fate.no_stamp_answer).then(|| arrived_ns + self.ahead_ns),
            // The card's clock is another, and its edge nearer to the wire by 2 µs at each end.
            card_ns: fate.card.then_some(arrived_ns - 2_000 + 77),
        };
        let taken = ClockReading::default();
        let dropped = 0;
        self.at(arrived_ns + WAKE_NS, SenderEvent::Answer { pulse, stamps, taken, dropped });
    }
}

impl<F: FnMut(&PulsePacket) -> Fate> SenderLine for Net<F> {
    fn wait(&mut self, until_ns: i64) -> SenderEvent {
        let first = self.events.first_entry().filter(|e| e.key().0 <= until_ns.max(self.now_ns));
        let Some(first) = first else {
            self.now_ns = self.now_ns.max(until_ns);
            return SenderEvent::Nothing;
        };
        self.now_ns = self.now_ns.max(first.key().0);
        let mut event = first.remove();
        let now = self.read();
        if let SenderEvent::Answer { taken, .. } = &mut event {
            *taken = now;
        }
        event
    }
    fn send(&mut self, pulse: &PulsePacket) -> Result<(), AnswerRefusal> {
        let fate = (self.fate)(pulse);
        if let Some(refused) = fate.refused {
            return Err(refused);
        }
        let left_ns = self.now_ns + QUEUE_NS;
        if !fate.no_stamp_left {
            let kernel_ns = Some(left_ns + self.ahead_ns);
            self.at(left_ns, SenderEvent::Left(*pulse, EdgeStamps { kernel_ns, card_ns: None }));
        }
        if fate.card {
            let card_ns = Some(left_ns + 2_000 + 77);
            // The card tells much later.
            let stamps = EdgeStamps { kernel_ns: None, card_ns };
            self.at(left_ns + 300_000, SenderEvent::Left(*pulse, stamps));
        }
        for ns in &fate.answers_ns {
            self.answer(*pulse, &fate, left_ns + ns);
        }
        self.now_ns += 5_000 + fate.stall_ns;
        self.ahead_ns += fate.set_ns;
        Ok(())
    }
    fn read(&mut self) -> ClockReading {
        let run_ns = self.now_ns;
        ClockReading { run_ns, real_ns: run_ns + 20 + self.ahead_ns, after_ns: run_ns + 40 }
    }
}

const INTERVAL_NS: i64 = 100_000;
const PATIENCE_NS: i64 = 10_000_000;

struct Outcome {
    ended: LoopEnd,
    tally: SenderTally,
    answered: Box<Recorder>,
    at_least: Box<Recorder>,
    samples: Vec<PulseSample>,
}

fn plan(pulses: u64) -> SenderPlan {
    SenderPlan {
        schedule: Schedule { first_ns: 1_000_000, interval_ns: INTERVAL_NS, activations: pulses },
        spread: Spread::default(),
        sender: 7,
        first_number: 0,
        patience_ns: PATIENCE_NS,
    }
}

fn play_in(
    slots: &mut Slots<Box<[PulseSlot]>>,
    plan: SenderPlan,
    events: &[(i64, SenderEvent)],
    fate: impl FnMut(&PulsePacket) -> Fate,
) -> Outcome {
    let mut net = Net { now_ns: 0, ahead_ns: AHEAD_NS, events: BTreeMap::new(), serial: 0, fate };
    events.iter().for_each(|(ns, event)| net.at(*ns, *event));
    let [answered, at_least, lateness]: [Box<Recorder>; 3] =
        std::array::from_fn(|_| Box::default());
    let ring = Box::<Ring<3, { sender::SAMPLES }>>::default();
    let logs = SenderLogs {
        answered: &answered,
        at_least: &at_least,
        lateness: &lateness,
        samples: &ring,
    };
    let stop = AtomicBool::new(false);
    let (ended, tally) = sender::run(&mut net, &plan, &logs, slots, &stop);
    let samples = std::iter::from_fn(|| ring.pop()).map(PulseSample::unpack).collect();
    Outcome { ended, tally, answered, at_least, samples }
}

fn no_pulse() -> Slots<Box<[PulseSlot]>> {
    Slots::over(vec![PulseSlot::default(); SLOTS].into())
}

fn play_with(
    plan: SenderPlan,
    events: &[(i64, SenderEvent)],
    fate: impl FnMut(&PulsePacket) -> Fate,
) -> Outcome {
    play_in(&mut no_pulse(), plan, events, fate)
}

fn play(pulses: u64, fate: impl FnMut(&PulsePacket) -> Fate) -> Outcome {
    play_with(plan(pulses), &[], fate)
}

fn times(outcome: &Outcome) -> Vec<PulseTime> {
    outcome.samples.iter().map(|sample| sample.time).collect()
}

#[test]
fn each_pulse_is_sent_when_it_is_due_and_timed_from_stamp_to_stamp() {
    let outcome = play(5, |pulse| after(30_000 + i64::try_from(pulse.number).unwrap() * 1_000));
    assert_eq!(outcome.ended, LoopEnd::Complete);
    let right = SenderTally { sent: 5, answered: 5, ..SenderTally::default() };
    assert_eq!(outcome.tally, right);
    for (k, sample) in outcome.samples.iter().enumerate() {
        let k = i64::try_from(k).unwrap();
        assert_eq!(sample.number, k.cast_unsigned());
        assert_eq!(sample.sent_ns, 1_000_000 + k * INTERVAL_NS);
        assert_eq!(
            sample.time,
            PulseTime::Answered(30_000 + k * 1_000),
            "queue and thread are not in it"
        );
    }
    let all = outcome.answered.wakeups();
    assert_eq!((all.n, all.min_ns, all.max_ns), (5, Some(30_000), Some(34_000)));
}

#[test]
fn late_lost_doubled_and_overtaking_answers_are_paired_by_number() {
    let outcome = play(300, |pulse| match pulse.number {
        1 => after(250_000),
        2 => Fate::default(),
        3 => Fate { answers_ns: vec![10_000, 15_000, 400_000], ..Fate::default() },
        4 => after(PATIENCE_NS + 2_000_000),
        _ => after(10_000),
    });
    let right = SenderTally {
        sent: 300,
        answered: 298,
        late: 1,
        unanswered: 2,
        overdue: 1,
        twice: 2,
        ..SenderTally::default()
    };
    assert_eq!(outcome.tally, right);
    let all = times(&outcome);
    assert_eq!(all.get(..2).unwrap(), [PulseTime::Answered(10_000), PulseTime::Late(250_000)]);
    for gone in [2, 4] {
        let PulseTime::AtLeast(ns) = *all.get(gone).unwrap() else { panic!("{gone}") };
        let slack = INTERVAL_NS + QUEUE_NS;
        assert!((PATIENCE_NS - QUEUE_NS..PATIENCE_NS + slack).contains(&ns), "{ns}");
    }
    assert_eq!(all.get(3).unwrap(), &PulseTime::Answered(10_000));
    assert_eq!((outcome.answered.wakeups().n, outcome.at_least.wakeups().n), (298, 2));
    assert!(outcome.samples.iter().map(|s| s.number).eq(0..300), "in the order of the pulses");
}

#[test]
fn an_answer_after_the_last_pulse_is_waited_for() {
    let outcome = play(3, |_| after(9_000_000));
    assert_eq!(
        (outcome.tally.answered, outcome.tally.late),
        (3, 2),
        "nothing comes after the last"
    );
    let outcome = play(3, |_| Fate::default());
    assert_eq!(outcome.tally.unanswered, 3);
    assert!(
        times(&outcome)
            .iter()
            .all(|t| matches!(t, PulseTime::AtLeast(ns) if *ns >= PATIENCE_NS - QUEUE_NS))
    );
}

#[test]
fn missing_stamps_make_a_time_longer_and_are_counted() {
    let outcome = play(4, |pulse| Fate {
        no_stamp_left: pulse.number & 1 != 0,
        no_stamp_answer: pulse.number & 2 != 0,
        ..after(30_000)
    });
    // A reading of CLOCK_REALTIME is 20 ns after that of the run's clock.
    let right =
        [30_000, 30_000 + QUEUE_NS - 20, 30_000 + WAKE_NS + 20, 30_000 + QUEUE_NS + WAKE_NS];
    let shown: Vec<i64> = times(&outcome)
        .iter()
        .map(|time| match time {
            PulseTime::Answered(ns) => *ns,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(shown, right);
    assert_eq!((outcome.tally.unstamped_left, outcome.tally.unstamped_answer), (2, 2));
}

#[test]
fn the_card_is_believed_where_it_stamped_both_ends_though_it_tells_late() {
    let mut slots = no_pulse();
    let fate = |pulse: &PulsePacket| Fate { card: pulse.number != 20, ..after(30_000) };
    play_in(&mut slots, plan(10), &[], fate);
    // From the warm-up it is known that the card stamps.
    let outcome = play_in(&mut slots, plan(40), &[], fate);
    assert_eq!((outcome.tally.by_card, outcome.tally.answered), (39, 40));
    let pairs = outcome.tally.first_pair.zip(outcome.tally.last_pair).unwrap();
    let apart_ns = pairs.1.card_ns - pairs.0.card_ns;
    assert_eq!(apart_ns, 39 * INTERVAL_NS, "by both clocks");
    assert_eq!(pairs.1.kernel_ns - pairs.0.kernel_ns, apart_ns);
    let all = times(&outcome);
    assert_eq!(all.get(19..22).unwrap(), [26_000, 30_000, 26_000].map(PulseTime::Answered));
}

#[test]
fn a_clock_that_is_set_is_not_in_the_times() {
    let outcome = play(4, |pulse| Fate {
        set_ns: if pulse.number == 1 { 5_000_000_000 } else { 0 },
        ..after(30_000)
    });
    let right = PulseTime::Answered(30_000 + QUEUE_NS + WAKE_NS);
    assert_eq!(outcome.tally.clock_set, 1);
    assert_eq!(times(&outcome).get(1).unwrap(), &right, "by the thread's clock");
    assert_eq!(times(&outcome).get(2).unwrap(), &PulseTime::Answered(30_000));
}

#[test]
fn what_the_sender_was_too_late_for_is_left_out_and_counted() {
    let outcome = play(20, |pulse| Fate {
        // Activations 4 to 7 fall due meanwhile: 4 is sent at once, 8 in its time.
        stall_ns: if pulse.number == 3 { 450_000 } else { 0 },
        ..after(10_000)
    });
    let due: Vec<i64> =
        outcome.samples.iter().map(|s| (s.sent_ns - 1_000_000) / INTERVAL_NS).collect();
    assert_eq!(due, (0..4).chain([7]).chain(8..20).collect::<Vec<_>>());
    assert_eq!((outcome.tally.held, outcome.tally.sent), (3, 17));
    assert!(outcome.samples.iter().map(|s| s.number).eq(0..17), "numbers have no gap");
}

#[test]
fn a_refusal_is_counted_and_a_line_that_is_gone_ends_the_run() {
    let refuse = |refusal| {
        let mut times = 0;
        play(10, move |pulse| {
            times += u64::from(pulse.number == 4);
            let refused = (times == 1 && pulse.number == 4).then_some(refusal);
            Fate { refused, ..after(10_000) }
        })
    };
    let outcome = refuse(AnswerRefusal::Answer(105));
    assert_eq!(outcome.ended, LoopEnd::Complete);
    assert_eq!((outcome.tally.sent, outcome.tally.refused, outcome.tally.errno), (9, 1, 105));
    let outcome = refuse(AnswerRefusal::Line(19));
    assert_eq!(outcome.ended, LoopEnd::Failed(19, 4));
    assert_eq!((outcome.tally.sent, outcome.tally.answered), (4, 4), "what was measured is kept");
}

#[test]
fn answers_of_others_and_to_nothing_are_counted_and_belong_to_no_pulse() {
    let stamps = EdgeStamps::default();
    let answer = |sender, number, token| SenderEvent::Answer {
        pulse: PulsePacket { sender, number, token },
        stamps,
        taken: ClockReading::default(),
        dropped: 2,
    };
    let events = [
        (1_150_000, answer(7, 99, 0)),
        (1_150_001, answer(7, 0, 12345)),
        (1_150_002, answer(8, 0, 0)),
        (1_150_003, SenderEvent::Foreign),
    ];
    let outcome = play_with(plan(3), &events, |_| after(10_000));
    let right = SenderTally {
        sent: 3,
        answered: 3,
        spurious: 2,
        foreign: 2,
        dropped: 6,
        ..SenderTally::default()
    };
    assert_eq!(outcome.tally, right);
}

#[test]
fn random_intervals_keep_the_schedule() {
    let spread = Spread { seed: 5, window_ns: 60_000 };
    let outcome = play_with(SenderPlan { spread, ..plan(50) }, &[], |_| after(10_000));
    for (k, sample) in outcome.samples.iter().enumerate() {
        let even_ns = 1_000_000 + i64::try_from(k).unwrap() * INTERVAL_NS;
        assert_eq!(sample.sent_ns, even_ns + spread.delay_ns(k as u64));
    }
    assert_eq!(outcome.tally.held, 0);
}

#[test]
fn more_pulses_than_are_followed_at_a_time_are_each_counted_once() {
    // Nothing answers for longer than the slots last.
    let long = SenderPlan { patience_ns: 100_000_000_000, ..plan(10_000) };
    let outcome =
        play_with(
            long,
            &[],
            |pulse| if pulse.number < 5_000 { Fate::default() } else { after(10_000) },
        );
    assert_eq!((outcome.tally.unanswered, outcome.tally.answered), (5_000, 5_000));
    let PulseTime::AtLeast(ns) = *times(&outcome).first().unwrap() else { panic!("answered") };
    assert!(ns >= 4_095 * INTERVAL_NS, "4,096 are followed: {ns}");
    assert!(outcome.samples.iter().map(|s| s.number).eq(0..10_000));
}

#[test]
fn numbers_go_on_after_a_warm_up_and_its_answers_are_no_ones() {
    let mut slots = no_pulse();
    play_in(&mut slots, plan(10), &[], |_| after(10_000));
    let stamps = EdgeStamps::default();
    let pulse = PulsePacket { sender: 7, number: 9, token: 1_900_000 };
    let old = SenderEvent::Answer { pulse, stamps, taken: ClockReading::default(), dropped: 0 };
    let mut sent = Vec::new();
    let goes_on = SenderPlan { first_number: 10, ..plan(5) };
    let outcome = play_in(&mut slots, goes_on, &[(1_150_000, old)], |pulse| {
        sent.push(pulse.number);
        after(10_000)
    });
    assert_eq!(sent, [10, 11, 12, 13, 14]);
    assert!(outcome.samples.iter().map(|s| s.number).eq(0..5));
    assert_eq!((outcome.tally.answered, outcome.tally.spurious), (5, 1));
}
