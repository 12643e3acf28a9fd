// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated machine answers: what the channel says of a pulse is true, whatever the machine does.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use tailbound_wire::{Channel, ChannelLevel, Intervals, PulseRecord, Reaction, Spacing, Stimulus};

const PERIOD: u64 = 1_000;

/// What a machine does with the pulses that came while it stood still.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Backlog {
    /// Answers each, in their order.
    All,
    /// Copies the level that is there now.
    Newest,
}

/// From when to when the machine stands still.
type Stall = (u64, u64);

struct Machine {
    backlog: Backlog,
    stalls: Vec<Stall>,
    delays: Vec<u64>,
    waiting: VecDeque<(u64, ChannelLevel, u64)>,
    level: ChannelLevel,
    last: u64,
}

impl Machine {
    /// When it next does something: the pulse at its front is ready, and it runs.
    fn next(&self) -> Option<u64> {
        let (number, _, sent) = *self.waiting.front()?;
        let delay = self.delays[usize::try_from(number).expect("few") % self.delays.len()];
        let ready = (sent + delay).max(self.last + 5);
        Some(
            self.stalls
                .iter()
                .fold(ready, |at, (from, to)| if (*from..*to).contains(&at) { *to } else { at }),
        )
    }

    /// The pulse that it answers, and the level to which its line changes, if it does.
    fn act(&mut self, now: u64) -> Option<(u64, ChannelLevel)> {
        self.last = now;
        let (number, level, _) = match self.backlog {
            Backlog::All => self.waiting.pop_front()?,
            Backlog::Newest => self.waiting.drain(..).next_back()?,
        };
        let changes = level != self.level;
        self.level = level;
        changes.then_some((number, level))
    }
}

/// What the channel said, and when each answered pulse was answered.
struct Course {
    channel: Channel,
    told: Vec<PulseRecord>,
    answered: BTreeMap<u64, u64>,
}

fn course(mut machine: Machine, spacing: Spacing, pulses: u64) -> Course {
    let mut channel = Channel::new(Stimulus::Toggle, Intervals::new(PERIOD as u32, spacing));
    let (mut told, mut answered) = (Vec::new(), BTreeMap::new());
    let mut sent = 0;
    loop {
        while channel.planned() < 4 {
            channel.plan().expect("there is room");
        }
        let due = channel.due(0).expect("planned");
        let mut tell = |outcome| told.push(outcome);
        match machine.next().filter(|at| *at < due) {
            Some(at) => {
                if let Some((number, level)) = machine.act(at) {
                    answered.insert(number, at);
                    channel.edge(at as u32 & 0x7FFF_FFFF, level, &mut tell);
                }
            }
            None if sent == pulses => {
                channel.end((due - 1) as u32 & 0x7FFF_FFFF, &mut tell);
                return Course { channel, told, answered };
            }
            None => {
                channel.pass(due, &mut tell);
                let level = if sent % 2 == 0 { ChannelLevel::High } else { ChannelLevel::Low };
                machine.waiting.push_back((sent, level, due));
                sent += 1;
            }
        }
    }
}

fn check(course: &Course, pulses: u64) -> Result<(), TestCaseError> {
    let counters = course.channel.counters;
    prop_assert_eq!(counters.sent, pulses);
    prop_assert_eq!(counters.answered + counters.unanswered + counters.unknown, pulses);
    prop_assert_eq!(counters.unknown, 0);
    prop_assert_eq!(course.told.len() as u64, pulses);
    for outcome in &course.told {
        let truth = course.answered.get(&outcome.number).map(|at| at - outcome.sent_ticks);
        match outcome.reaction {
            Reaction::Answered(ticks) | Reaction::Late(ticks) => {
                prop_assert_eq!(Some(u64::from(ticks)), truth, "{:?}", outcome);
            }
            Reaction::AtLeast(ticks) => {
                prop_assert!(
                    truth.is_none_or(|truth| truth >= u64::from(ticks)),
                    "{:?} {:?}",
                    outcome,
                    truth
                );
            }
            Reaction::Unknown => prop_assert!(false, "nothing was lost"),
        }
    }
    Ok(())
}

fn machine(backlog: Backlog, mut stalls: Vec<Stall>, delays: Vec<u64>) -> Machine {
    stalls.sort_unstable();
    Machine { backlog, stalls, delays, waiting: VecDeque::new(), level: ChannelLevel::Low, last: 0 }
}

/// Silence is what ends the doubt. A machine that stands still again before it has given what it owes is silent too, and is taken
/// for one that owes nothing: docs/box.md says so.
fn apart(mut all: Vec<(u64, u64)>) -> Vec<Stall> {
    all.sort_unstable();
    let mut stalls: Vec<Stall> = Vec::new();
    for (from, long) in all {
        if stalls.last().is_none_or(|(_, to)| from > to + 10 * PERIOD) {
            stalls.push((from, from + long));
        }
    }
    stalls
}

proptest! {
    #[test]
    fn what_is_said_of_a_pulse_is_true(
        newest in any::<bool>(),
        random in any::<bool>(),
        stalls in prop::collection::vec((0..400 * PERIOD, 1..60 * PERIOD), 0..4),
        delays in prop::collection::vec(1..2 * PERIOD / 5, 1..50),
    ) {
        let backlog = if newest { Backlog::Newest } else { Backlog::All };
        let stalls = apart(stalls);
        let spacing = if random { Spacing::Random(3) } else { Spacing::Even };
        let course = course(machine(backlog, stalls, delays), spacing, 400);
        check(&course, 400)?;
    }
}

#[test]
fn a_machine_in_time_is_known_to_the_tick() {
    let course =
        course(machine(Backlog::All, Vec::new(), vec![100, 999, 1, 500]), Spacing::Even, 1_000);
    let counters = course.channel.counters;
    assert_eq!(
        (counters.answered, counters.late, counters.spurious, counters.held),
        (1_000, 0, 0, 0)
    );
    check(&course, 1_000).expect("true");
}

#[test]
fn an_answer_behind_the_next_pulse_is_late_and_not_the_next_ones() {
    let course =
        course(machine(Backlog::All, vec![(10_001, 11_400)], vec![100]), Spacing::Even, 100);
    let counters = course.channel.counters;
    assert_eq!((counters.answered, counters.late, counters.unanswered), (100, 1, 0));
    let late: Vec<_> =
        course.told.iter().filter(|o| matches!(o.reaction, Reaction::Late(_))).collect();
    assert_eq!(late.len(), 1);
    assert_eq!((late[0].number, late[0].reaction), (9, Reaction::Late(1_400)));
}

#[test]
fn after_a_long_stall_the_channel_finds_back() {
    for backlog in [Backlog::All, Backlog::Newest] {
        let course =
            course(machine(backlog, vec![(20_000, 90_000)], vec![100]), Spacing::Even, 200);
        check(&course, 200).expect("true");
        let last: Vec<_> = course.told.iter().rev().take(50).collect();
        assert!(last.iter().all(|o| o.reaction == Reaction::Answered(100)), "{last:?}");
        assert!(course.channel.counters.held > 0);
        let worst = course.channel.worst.entries().iter().map(|e| e.reaction.ticks()).max();
        assert!(worst >= Some(2_000), "{worst:?}");
    }
}

#[test]
fn edges_that_nobody_asked_for_are_counted() {
    let mut channel = Channel::new(Stimulus::Toggle, Intervals::new(1_000, Spacing::Even));
    let mut told = Vec::new();
    channel.plan();
    // Two edges before the first pulse, one answer, two of ringing.
    for (at, level) in [
        (5, ChannelLevel::High),
        (9, ChannelLevel::Low),
        (1_100, ChannelLevel::High),
        (1_105, ChannelLevel::Low),
        (1_109, ChannelLevel::High),
    ] {
        channel.edge(at, level, &mut |outcome| told.push(outcome));
    }
    assert_eq!(channel.counters.spurious, 4);
    assert_eq!(
        told,
        [PulseRecord { number: 0, sent_ticks: 1_000, reaction: Reaction::Answered(100) }]
    );
}

#[test]
fn a_pulse_that_was_open_when_edges_were_lost_is_unknown() {
    let mut channel = Channel::new(Stimulus::Pulse, Intervals::new(1_000, Spacing::Even));
    let mut told = Vec::new();
    channel.plan();
    channel.pass(1_000, &mut |outcome| told.push(outcome));
    channel.lose(&mut |outcome| told.push(outcome));
    assert_eq!(told[0].reaction, Reaction::Unknown);
    assert_eq!((channel.counters.unknown, channel.counters.edges_lost), (1, 1));
}

#[test]
fn times_go_on_where_31_bits_end() {
    let mut channel = Channel::new(Stimulus::Toggle, Intervals::new(1 << 28, Spacing::Even));
    let mut told = Vec::new();
    for number in 0..40_u64 {
        channel.plan();
        let at = (number + 1) * (1 << 28) + 77;
        let level = if number % 2 == 0 { ChannelLevel::High } else { ChannelLevel::Low };
        channel.edge(at as u32 & 0x7FFF_FFFF, level, &mut |outcome| told.push(outcome));
    }
    assert_eq!(told.len(), 40);
    assert!(told.iter().all(|o| o.reaction == Reaction::Answered(77)));
}

#[test]
fn the_worst_are_kept_in_their_number() {
    let mut worst = tailbound_wire::Worst::new();
    for number in 0..10_000_u64 {
        let ticks = u32::try_from(number * 7_919 % 10_007).expect("small");
        worst.keep(PulseRecord { number, sent_ticks: number, reaction: Reaction::Answered(ticks) });
    }
    let mut kept: Vec<u32> = worst.entries().iter().map(|e| e.reaction.ticks()).collect();
    kept.sort_unstable();
    let mut all: Vec<u32> =
        (0..10_000_u64).map(|n| u32::try_from(n * 7_919 % 10_007).expect("small")).collect();
    all.sort_unstable();
    assert_eq!(kept, all[all.len() - 256..]);
}
