// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a watched thread was asleep for, in words, and which timer woke it.
//!
//! Units: ns on the trace's clock.
//! Not here: its waits (`tracker`), who had a lock over all cycles (`locks`).
//! Source: docs/watch.md; kernel/entry/common.c for the order at the entry of a call (tracer, seccomp, event).

use tailbound_core::blame::{Cause, Phase, Sureness};

use super::calls::Call;
use super::tracker::{Ctx, Sleep, Tracker};
use crate::blame::Waker;

/// So soon after a sleep a thread enters a call at whose entry it slept.
const ENTRY_NS: u64 = 100_000;

impl Tracker {
    /// What it was asleep for; `due_ns` is what its timer was set to, where a timer woke it.
    pub(super) fn blocked_on(
        &self,
        c: &mut Ctx<'_>,
        sleep: &Sleep,
        k: &Waker,
        due_ns: Option<u64>,
    ) -> u32 {
        let engine = c.engine;
        let by = (!k.by_interrupt && k.pid > 0).then(|| engine.thread_name(k.pid));
        let woken = by.as_ref().map_or_else(String::new, |b| format!(", woken by {b}"));
        let inverted =
            by.as_ref().and_then(|_| engine.inverted_by(engine.prio(self.pid), k, sleep.from));
        let blocked = |who| (Cause::Blocked, who, Sureness::Sure);
        let futex = self.call.filter(|call| c.calls.futex(call).is_some());
        if let Some((behind, call)) = inverted.zip(futex) {
            let (owner, behind) = (by.unwrap_or_default(), engine.thread_name(behind));
            let who = format!("{owner} behind {behind} in {}", c.calls.words(&call));
            return c.what(Phase::Blocked, Cause::PriorityInversion, who, Sureness::Sure);
        }
        let (cause, who, sureness) = match (self.call, sleep.lock) {
            (_, Some((lock, _))) => {
                let owner = engine.last_owner(lock).filter(|o| *o != self.pid);
                let last = owner.map_or_else(String::new, |o| {
                    format!(", last got by {}", engine.thread_name(o))
                });
                let of =
                    self.call.map_or_else(String::new, |k| format!(" in {}", c.calls.words(&k)));
                blocked(format!("in a lock of the kernel{of}{last}{woken}"))
            }
            (None, None) if sleep.fault => {
                let who = woken.trim_start_matches(", ").to_owned();
                (Cause::PageFault, who, Sureness::Sure)
            }
            (Some(call), None) => {
                let words = c.calls.words(&call);
                let waker = self.woken_in;
                match (c.calls.futex(&call), by) {
                    (Some(futex), Some(by)) if waker.is_some_and(|w| c.calls.wakes(&w, futex)) => {
                        blocked(format!("in {words}, released by {by}"))
                    }
                    _ if due_ns.is_some() => blocked(format!("in {words}")),
                    _ => blocked(format!("in {words}{woken}")),
                }
            }
            (None, None) => (
                Cause::Blocked,
                match self.to_restart {
                    Some(_) => format!("in no call, stopped or frozen after a signal{woken}"),
                    None => format!("in no call that was recorded{woken}"),
                },
                Sureness::Unsure,
            ),
        };
        c.what(Phase::Blocked, cause, who, sureness)
    }

    /// It enters `call`: a sleep right before that, in no call, was at its entry, where seccomp's notifier and tracers
    /// hold a thread.
    pub(super) fn was_at_entry(&mut self, c: &mut Ctx<'_>, call: &Call) {
        let Some(piece) = &mut self.piece else { return };
        let soon = self.cursor.saturating_add(ENTRY_NS) >= call.since;
        let Some(wait) = piece.wait.as_mut().filter(|w| w.slept && w.call.is_none()) else {
            return;
        };
        let Some(part) = wait.within.0.first_mut().filter(|_| soon && piece.run.0.is_empty())
        else {
            return;
        };
        let Some(what) = c.whats.of(part.what).filter(|w| w.cause == Cause::Blocked).cloned()
        else {
            return;
        };
        let by = what.who.split_once(", woken by ").map(|(_, by)| format!(", woken by {by}"));
        let words = c.calls.words(call);
        let who = format!(
            "at the entry of {words} (a seccomp notifier or a tracer){}",
            by.unwrap_or_default()
        );
        part.what = c.what(Phase::Blocked, Cause::Blocked, who, Sureness::Likely);
    }
}
