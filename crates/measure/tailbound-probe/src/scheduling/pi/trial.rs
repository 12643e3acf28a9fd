// SPDX-License-Identifier: MIT OR Apache-2.0
//! One inversion after another: sets it up, waits for its end, judges the stamps.
//!
//! Context: HOT in `play` and `outcome`. Units: ns on the plan's clock.
//! The controller is above all tasks and sits on the urgent one's CPU. Where that is everybody's, none
//! of them runs while it gives its orders, so that all orders are given before the first of them is
//! followed. Across CPUs it calls the urgent task when the spinner has taken the CPU from the holder.
//! Not here: what the tasks do (`tasks`), words for people (`findings`).

use std::sync::atomic::Ordering;

use tailbound_sys::clock::{self, CLOCK_MONOTONIC};

use super::super::pace::GAP_NS;
use super::super::trials::Timed;
use super::tasks::{Group, Lengths, LockKind, TrialStamps};

/// A trial is stuck when it takes this much longer than its tasks want to run.
const PATIENCE_NS: i64 = 3_000_000_000;

/// Where the tasks sit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seats {
    /// The measured CPU: holder, spinner, chain.
    pub(super) holder_cpu: u32,
    /// The urgent task, and the controller.
    pub(super) urgent_cpu: u32,
}

/// What was seen in one trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    /// The urgent task was on another CPU.
    across: bool,
    /// Its begin.
    pub(super) began_ns: i64,
    /// When the urgent task was called.
    pub(super) called_ns: i64,
    /// Across CPUs, when the urgent task was seen asleep; 0: never.
    asleep_ns: i64,
    /// The holder, the spinner, the urgent task.
    pub(super) seen: [TrialStamps; 3],
}

/// What a trial showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The spinner did not run where the holder should.
    Inherited,
    /// For so long it did.
    Inverted(i64),
    /// The spinner had ended before the urgent task was seen asleep.
    Undecided,
}

/// What a trial proved against the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    /// Where.
    pub(super) seats: Seats,
    /// So long the urgent task waited.
    pub(super) waited_ns: i64,
    /// So long of it the spinner ran.
    pub(super) spun_ns: i64,
    /// The kernel refused the lock with this errno.
    pub(super) errno: i32,
}

/// Runs one trial; `None`: it did not end (or the run was stopped before it began).
pub(super) fn play(
    group: &Group,
    links: usize,
    lock: LockKind,
    lengths: Lengths,
    clock_id: i32,
) -> Option<Trial> {
    let patience = PATIENCE_NS.saturating_add(5 * (lengths.hold_ns + lengths.spin_ns));
    let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(patience);
    group.inherit.store(lock == LockKind::Inheriting, Ordering::Relaxed);
    group.asked_ns.store(0, Ordering::Relaxed);
    group.asleep_ns.store(0, Ordering::Relaxed);
    let across = group.is_across();
    let tasks = u32::try_from(links).unwrap_or(0).saturating_add(if across { 4 } else { 3 });
    group.left.store(tasks, Ordering::Relaxed);
    let began_ns = clock::now_ns(clock_id);
    let chain = group.links.iter().skip(1).take(links);
    let running = across.then_some(&group.middle);
    for bell in [&group.low].into_iter().chain(chain).chain(running) {
        let rung = group.controller.count();
        bell.ring();
        if !group.controller.wait_until(rung, until) {
            return None;
        }
    }
    let rung = group.controller.count();
    let called_ns = clock::now_ns(clock_id);
    if !across {
        group.middle.ring();
    }
    group.high.ring();
    let over = group.controller.wait_until(rung, until) && group.left.load(Ordering::Acquire) == 0;
    let asleep_ns = group.asleep_ns.load(Ordering::Acquire);
    over.then(|| Trial { across, began_ns, called_ns, asleep_ns, seen: group.seen() })
}

impl Trial {
    /// From the request of the urgent task to the holder's next instruction.
    pub(super) fn boost(&self) -> Timed {
        let [low, _, high] = &self.seen;
        // Stopped before it could see the request, the holder had released the lock already.
        let to_ns = if low.resumed_ns == 0 { high.got_ns } else { low.resumed_ns };
        Timed { from_ns: high.asked_ns, to_ns }
    }

    /// From the holder's release to the urgent task's next instruction.
    pub(super) fn hand_over(&self) -> Timed {
        let [low, _, high] = &self.seen;
        Timed { from_ns: low.released_ns, to_ns: high.got_ns }
    }

    /// From the request of the urgent task to the lock in its hands.
    pub(super) fn wait(&self) -> Timed {
        let high = &self.seen[2];
        Timed { from_ns: high.asked_ns, to_ns: high.got_ns }
    }

    /// Since when the holder had not run when the urgent task asked.
    pub(super) fn stopped_ns(&self) -> i64 {
        if self.across { self.seen[1].first_ns } else { self.called_ns }
    }

    /// Did the spinner keep the urgent task waiting?
    pub(super) fn outcome(&self) -> Outcome {
        let ran = |ns: i64| if ns > 0 { Outcome::Inverted(ns) } else { Outcome::Inherited };
        let [low, middle, high] = &self.seen;
        if !self.across {
            return ran(middle.pace.between_ns(high.asked_ns, high.got_ns));
        }
        // Until the holder's CPU is told, the spinner may run: that is the boost's time. Once the
        // urgent task sleeps, it has been told.
        if low.resumed_ns != 0 && low.resumed_ns <= middle.end_ns {
            return ran(middle.pace.between_ns(low.resumed_ns + 1, low.released_ns - 1));
        }
        let slept = self.asleep_ns != 0 && self.asleep_ns < high.got_ns;
        let spun_ns = middle.pace.between_ns(self.asleep_ns, middle.end_ns);
        if slept && spun_ns > GAP_NS { Outcome::Inverted(spun_ns) } else { Outcome::Undecided }
    }

    /// The proof, if the kernel did what it must not with inheritance.
    pub(super) fn proof(&self, seats: Seats) -> Option<Proof> {
        let [low, _, high] = &self.seen;
        let spun_ns = if let Outcome::Inverted(ns) = self.outcome() { ns } else { 0 };
        let (waited_ns, errno) = (self.wait().span_ns(), low.errno | high.errno);
        (spun_ns > 0 || errno != 0).then_some(Proof { seats, waited_ns, spun_ns, errno })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Across CPUs: the urgent task asks at 100 µs, the spinner runs from 50 µs to `stopped`, and from
    /// `again` to 500 µs; the holder comes at `resumed` and releases at `released`.
    fn trial(asleep: i64, stopped: i64, (resumed, released): (i64, i64), again: i64) -> Trial {
        let mut middle =
            TrialStamps { first_ns: 50_000, resumed_ns: 100_000, ..TrialStamps::default() };
        for (from, to) in [(50_000, stopped), (again, 500_000)] {
            for at in (from..=to).step_by(1_000) {
                middle.pace.step(at);
            }
        }
        middle.end_ns = if again > 500_000 { stopped } else { 500_000 };
        let low =
            TrialStamps { resumed_ns: resumed, released_ns: released, ..TrialStamps::default() };
        let high =
            TrialStamps { asked_ns: 100_000, got_ns: released + 3_000, ..TrialStamps::default() };
        let [began_ns, called_ns] = [0, 90_000];
        Trial { across: true, began_ns, called_ns, asleep_ns: asleep, seen: [low, middle, high] }
    }

    #[test]
    fn across_cpus_the_spinner_may_run_until_its_cpu_is_told() {
        let boosted = trial(104_000, 106_000, (107_000, 307_000), 309_000);
        assert_eq!(boosted.outcome(), Outcome::Inherited);
        assert_eq!(boosted.boost().span_ns(), 7_000);
        let late = trial(104_000, 180_000, (181_000, 381_000), 383_000);
        assert_eq!(late.outcome(), Outcome::Inherited, "a late boost is a latency");
        // The holder lost the CPU again before it had released the lock.
        let lost = trial(104_000, 106_000, (107_000, 400_000), 300_000);
        assert_eq!(lost.outcome(), Outcome::Inverted(99_999));
    }

    #[test]
    fn a_spinner_that_ends_first_is_an_inversion_only_if_the_urgent_task_slept() {
        let never = i64::MAX - 600_000;
        let kept = |asleep| trial(asleep, 400_000, (401_000, 601_000), never).outcome();
        assert_eq!(kept(104_000), Outcome::Inverted(296_000));
        assert_eq!(kept(0), Outcome::Undecided);
        assert_eq!(kept(395_000), Outcome::Undecided, "too near to its end");
        assert_eq!(kept(700_000), Outcome::Undecided, "it slept afterwards");
    }
}
