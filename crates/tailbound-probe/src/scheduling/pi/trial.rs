// SPDX-License-Identifier: MIT OR Apache-2.0
//! One inversion after another on one CPU: sets it up, waits for its end, judges the stamps.
//!
//! Context: HOT in `play` and `judge`. Units: ns on the plan's clock.
//! The controller is above all tasks and sits on their CPU: none of them runs while it gives its
//! orders, so that all orders are given before the first of them is followed.
//! Not here: what the tasks do (`tasks`), words for people (`findings`).

use std::sync::atomic::Ordering;

use tailbound_sys::clock::{self, CLOCK_MONOTONIC};

use super::super::trials::Timed;
use super::tasks::{Group, Lengths, Seen};

/// A trial is stuck when it takes this much longer than its tasks want to run.
const PATIENCE_NS: i64 = 3_000_000_000;

/// What was seen in one trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    /// Its begin.
    pub(super) began_ns: i64,
    /// When the spinner and the urgent task were called.
    pub(super) called_ns: i64,
    /// The holder, the spinner, the urgent task.
    pub(super) seen: [Seen; 3],
}

/// What a trial proved against the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    /// Where.
    pub(super) cpu: u32,
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
    inherit: bool,
    lengths: Lengths,
    clock_id: i32,
) -> Option<Trial> {
    let patience = PATIENCE_NS.saturating_add(5 * (lengths.hold_ns + lengths.spin_ns));
    let until = clock::now_ns(CLOCK_MONOTONIC).saturating_add(patience);
    group.inherit.store(inherit, Ordering::Relaxed);
    group.asked_ns.store(0, Ordering::Relaxed);
    group.left.store(u32::try_from(links).unwrap_or(0).saturating_add(3), Ordering::Relaxed);
    let began_ns = clock::now_ns(clock_id);
    let first = [&group.low];
    for bell in first.into_iter().chain(group.links.iter().skip(1).take(links)) {
        let rung = group.controller.count();
        bell.ring();
        if !group.controller.wait_until(rung, until) {
            return None;
        }
    }
    let rung = group.controller.count();
    let called_ns = clock::now_ns(clock_id);
    group.middle.ring();
    group.high.ring();
    let over = group.controller.wait_until(rung, until) && group.left.load(Ordering::Acquire) == 0;
    over.then(|| Trial { began_ns, called_ns, seen: group.seen() })
}

impl Trial {
    /// From the request of the urgent task to the holder's next instruction.
    pub(super) fn boost(&self) -> Timed {
        let [low, _, high] = &self.seen;
        // Stopped before it could see the request, the holder had released the lock already.
        let to_ns = if low.boosted_ns == 0 { high.got_ns } else { low.boosted_ns };
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

    /// So long the spinner ran while the urgent task waited: an inversion, if at all.
    pub(super) fn inverted_ns(&self) -> i64 {
        let Timed { from_ns, to_ns } = self.wait();
        self.seen[1].pace.between_ns(from_ns, to_ns)
    }

    /// The proof, if the kernel did what it must not with inheritance.
    pub(super) fn judge(&self, cpu: u32) -> Option<Proof> {
        let Timed { from_ns, to_ns } = self.wait();
        let [low, _, high] = &self.seen;
        let (spun_ns, errno) = (self.inverted_ns(), low.errno | high.errno);
        (spun_ns > 0 || errno != 0).then_some(Proof {
            cpu,
            waited_ns: to_ns - from_ns,
            spun_ns,
            errno,
        })
    }
}
