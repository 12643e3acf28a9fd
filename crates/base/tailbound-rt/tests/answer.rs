// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answering loop over a line whose pulses are written down: what is recorded, counted and left out.
//!
//! Units: ns. Nothing here depends on this machine: time goes on as the script says.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use tailbound_rt::answer::kept::{KeptPulses, PulseMark};
use tailbound_rt::answer::sequence::{Sequence, Sequences};
use tailbound_rt::answer::{
    self, AnswerRefusal, Arrival, Logs, Pulse, PulseLine, PulseTally, Stamp,
};
use tailbound_rt::{LoopEnd, Recorder, Schedule};

/// What comes: after so long, this; the thread runs `late_ns` after a pulse and answers in `work_ns`.
#[derive(Clone, Copy)]
struct Script {
    after_ns: i64,
    arrival: Arrival,
    answer: Result<i64, AnswerRefusal>,
}

struct Played {
    now_ns: i64,
    script: VecDeque<Script>,
    answer: Result<i64, AnswerRefusal>,
}

impl PulseLine for Played {
    fn wait(&mut self, until_ns: i64) -> Arrival {
        let Some(next) = self.script.pop_front() else {
            self.now_ns = until_ns;
            return Arrival::Nothing;
        };
        self.now_ns += next.after_ns;
        self.answer = next.answer;
        match next.arrival {
            Arrival::Pulse(pulse) => {
                let ran_ns = self.now_ns;
                let stamp = match pulse.stamp {
                    Stamp::Kernel { arrived_ns, error_ns } => {
                        Stamp::Kernel { arrived_ns: ran_ns - arrived_ns, error_ns }
                    }
                    other => other,
                };
                Arrival::Pulse(Pulse { ran_ns, stamp, ..pulse })
            }
            other => other,
        }
    }
    fn answer(&mut self) -> Result<i64, AnswerRefusal> {
        let work_ns = self.answer?;
        self.now_ns += work_ns;
        Ok(self.now_ns)
    }
    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }
}

/// A pulse that arrived `late_ns` before the thread ran, `after_ns` after what came before it.
fn pulse(after_ns: i64, late_ns: i64, number: u64) -> Script {
    let arrival = Arrival::Pulse(Pulse {
        stamp: Stamp::Kernel { arrived_ns: late_ns, error_ns: 40 },
        ran_ns: 0,
        sequence: Some(Sequence { sender: 1, number, bits: 64 }),
        mark: Some(PulseMark { sender: 1, number, token: 9 }),
        dropped: 0,
    });
    Script { after_ns, arrival, answer: Ok(2_000) }
}

fn other(after_ns: i64, arrival: Arrival) -> Script {
    Script { after_ns, arrival, answer: Ok(2_000) }
}

const SCHEDULE: Schedule =
    Schedule { first_ns: 1_000_000, interval_ns: 1_000_000, activations: 3_000 };

fn play(script: &[Script]) -> (LoopEnd, PulseTally, [Box<Recorder>; 3]) {
    let (ended, tally, recorders, _) = play_kept(script);
    (ended, tally, recorders)
}

fn play_kept(script: &[Script]) -> (LoopEnd, PulseTally, [Box<Recorder>; 3], Box<KeptPulses>) {
    let mut line = Played {
        now_ns: SCHEDULE.first_ns,
        script: script.iter().copied().collect(),
        answer: Ok(0),
    };
    let recorders: [Box<Recorder>; 3] = std::array::from_fn(|_| Box::default());
    let [whole, start, work] = &recorders;
    let logs = Logs { whole, start, work };
    let stop = AtomicBool::new(false);
    let mut sequences = Sequences::default();
    let mut kept = Box::default();
    let (ended, tally) =
        answer::run(&mut line, &SCHEDULE, &logs, &mut sequences, &mut kept, &mut None, &stop);
    (ended, tally, recorders, kept)
}

#[test]
fn the_longest_answers_are_kept_with_their_numbers_and_what_came_twice_says_so() {
    let script = [pulse(500_000, 7_000, 4), pulse(1_000_000, 30_000, 5), pulse(2_000, 1, 4)];
    let (.., kept) = play_kept(&script);
    let mut all: Vec<_> =
        kept.entries().iter().map(|k| (k.mark.number, k.whole_ns(), k.repeated)).collect();
    all.sort_unstable();
    assert_eq!(all, [(4, 2_001, true), (4, 9_000, true), (5, 32_000, false)]);
    assert_eq!(kept.others_at_most_ns(), None, "all are kept");
}

#[test]
fn a_pulse_that_ends_the_warm_up_is_of_the_measurement() {
    let end_ns = SCHEDULE.first_ns + 3_000 * 1_000_000;
    let then = Schedule { first_ns: end_ns, ..SCHEDULE };
    // The second wakes the thread when the warm-up is over.
    let script = [pulse(1_000, 10, 0), pulse(end_ns, 10, 1), pulse(1_000, 10, 2)];
    let script = script.into_iter().collect();
    let mut line = Played { now_ns: SCHEDULE.first_ns, script, answer: Ok(0) };
    let (mut sequences, mut overdue) = (Sequences::default(), None);
    let stop = AtomicBool::new(false);
    let (mut answered, mut kept) = (Vec::new(), Box::<KeptPulses>::default());
    for schedule in [SCHEDULE, then] {
        let recorders: [Box<Recorder>; 3] = std::array::from_fn(|_| Box::default());
        let [whole, start, work] = &recorders;
        let logs = Logs { whole, start, work };
        let (_, tally) = answer::run(
            &mut line,
            &schedule,
            &logs,
            &mut sequences,
            &mut kept,
            &mut overdue,
            &stop,
        );
        assert_eq!((tally.answered, tally.lost()), (whole.wakeups().n, 0));
        answered.push(tally.answered);
    }
    assert_eq!(answered, [1, 2], "each answered pulse is in one of them");
}

#[test]
fn each_answer_is_recorded_in_its_two_parts_and_as_a_whole() {
    let script = [pulse(500_000, 7_000, 0), pulse(1_000_000, 30_000, 1), pulse(2_000, 1, 2)];
    let (ended, tally, [whole, start, work]) = play(&script);
    assert_eq!(ended, LoopEnd::Complete);
    assert_eq!((tally.answered, tally.lost(), tally.error_ns_max), (3, 0, 40));
    let of = |r: &Recorder| (r.wakeups().n, r.wakeups().min_ns, r.wakeups().max_ns);
    assert_eq!(of(&whole), (3, Some(2_001), Some(32_000)));
    assert_eq!(of(&start), (3, Some(1), Some(30_000)));
    assert_eq!(of(&work), (3, Some(2_000), Some(2_000)));
    assert_eq!(whole.missed().n, 0);
}

#[test]
fn what_is_lost_doubled_or_out_of_order_is_counted_and_has_no_latency() {
    let numbers = [10, 11, 15, 14, 14, 16];
    let script: Vec<Script> = numbers.iter().map(|n| pulse(1_000, 10, *n)).collect();
    let (_, tally, [whole, ..]) = play(&script);
    assert_eq!((tally.lost(), tally.reordered, tally.twice), (2, 1, 1));
    assert_eq!((tally.answered, whole.wakeups().n), (6, 6), "each that came was answered");
}

#[test]
fn what_is_no_pulse_gets_no_answer_and_does_not_keep_the_loop() {
    let foreign = other(900_000_000, Arrival::Foreign);
    let (ended, tally, _) = play(&[foreign; 10]);
    assert_eq!(ended, LoopEnd::Complete);
    assert_eq!((tally.foreign, tally.answered), (4, 0), "until the end, and no longer");
}

#[test]
fn a_pulse_after_the_end_is_of_no_run_and_one_before_it_is_though_it_is_answered_late() {
    let end_ns = 3_000 * 1_000_000;
    let (ended, tally, _) = play(&[pulse(end_ns + 10, 10, 0)]);
    assert_eq!((ended, tally.answered), (LoopEnd::Complete, 0));
    let (ended, tally, [whole, ..]) = play(&[pulse(end_ns + 10, 11, 0)]);
    assert_eq!((ended, tally.answered), (LoopEnd::Complete, 1));
    assert_eq!(whole.wakeups().max_ns, Some(2_011));
}

#[test]
fn without_a_stamp_the_time_begins_with_the_thread_and_is_counted() {
    let unstamped = |stamp| {
        let Arrival::Pulse(p) = pulse(0, 0, 0).arrival else { unreachable!() };
        other(1_000, Arrival::Pulse(Pulse { stamp, sequence: None, ..p }))
    };
    let (_, tally, [whole, start, _]) =
        play(&[unstamped(Stamp::Absent), unstamped(Stamp::ClockSet)]);
    assert_eq!((tally.unstamped, tally.clock_set, tally.answered), (1, 1, 2));
    assert_eq!((whole.wakeups().max_ns, start.wakeups().max_ns), (Some(2_000), Some(0)));
}

#[test]
fn an_answer_that_is_refused_is_counted_and_a_line_that_is_gone_ends_the_run() {
    let refused = Script { answer: Err(AnswerRefusal::Answer(105)), ..pulse(1_000, 5, 0) };
    let (ended, tally, [whole, ..]) = play(&[refused, pulse(1_000, 5, 1)]);
    assert_eq!(ended, LoopEnd::Complete);
    assert_eq!((tally.refused, tally.errno, tally.answered), (1, 105, 1));
    assert_eq!(whole.wakeups().n, 1);
    let gone = other(1_500_000, Arrival::Failed(5));
    let (ended, tally, _) = play(&[pulse(1_000, 5, 0), gone, pulse(1_000, 5, 1)]);
    assert_eq!((ended, tally.answered), (LoopEnd::Failed(5, 1), 1));
    let gone = Script { answer: Err(AnswerRefusal::Line(6)), ..pulse(2_500_000, 5, 0) };
    assert_eq!(play(&[gone]).0, LoopEnd::Failed(6, 2));
}

#[test]
fn seconds_add_up_to_the_whole() {
    let script: Vec<Script> = (0..2_500).map(|n| pulse(1_000_000, 100, n)).collect();
    let (_, tally, [whole, ..]) = play(&script);
    let seconds: Vec<_> = std::iter::from_fn(|| whole.pop_second()).collect();
    assert_eq!(seconds.iter().map(|s| s.n).sum::<u64>(), tally.answered);
    assert_eq!(seconds.last().unwrap().second, 2);
}
