// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wait that a signal interrupted and that went on afterwards is one wait.
//!
//! Units: ns on the trace's clock. SIGSTOP, a handler, a debugger: the thread leaves its call early, and the
//! kernel or the program goes back to the same sleep. A piece that begins with an interrupted wait is kept back until the
//! next wait at this place shows which it was: one to the same time (or for the same thing) continues it, another one shows
//! that the program took the signal for its release.
//! Not here: which call was interrupted (`calls`), that a thread is stopped (`tracker`).

use super::calls::Calls;
use super::part::Parts;
use super::wait::{Piece, Wait};

/// Most pieces behind an interrupted wait: a program that has not come back by then does something else.
const HELD_MAX: usize = 16;
/// A relative sleep that goes on ends so near to what was left of it.
const REST_NS: u64 = 50_000;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    /// The first begins with an interrupted wait.
    held: Vec<Piece>,
    /// Waits without a time that were interrupted, and that were not.
    interrupted: u32,
    others: u32,
}

impl Resume {
    /// From when on the engine is still asked.
    pub(super) fn since(&self) -> Option<u64> {
        self.held.first().and_then(|p| p.wait.as_ref()).map(|w| w.from)
    }

    /// Takes the next piece; hands over those whose wait is known now, in the order of time.
    pub(super) fn piece(&mut self, calls: &Calls, piece: Piece) -> Vec<Piece> {
        let mut out = Vec::new();
        self.count(&piece);
        let mut piece = piece;
        match self.relation(calls, &piece) {
            Relation::Continues => piece = self.join(piece),
            Relation::Elsewhere if self.held.len() < HELD_MAX => {
                self.held.push(piece);
                return out;
            }
            Relation::Elsewhere | Relation::Another => out.append(&mut self.held),
        }
        let interrupted = piece.wait.as_ref().is_some_and(|w| w.interrupted);
        // A loop whose waits mostly end by signals is paced by these.
        if interrupted && (piece_is_timed(&piece) || self.interrupted <= self.others.max(1)) {
            self.held.push(piece);
        } else {
            out.push(piece);
        }
        out
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.held)
    }

    fn count(&mut self, piece: &Piece) {
        let Some(wait) = piece.wait.as_ref().filter(|w| w.set_to.is_none()) else { return };
        let n = if wait.interrupted { &mut self.interrupted } else { &mut self.others };
        *n = n.saturating_add(1);
    }

    fn relation(&self, calls: &Calls, piece: &Piece) -> Relation {
        let first = self.held.first().and_then(|p| p.wait.as_ref());
        let (Some(first), Some(next)) = (first, piece.wait.as_ref()) else {
            return Relation::Another;
        };
        let (Some(before), Some(now)) = (&first.call, &next.call) else {
            return Relation::Elsewhere;
        };
        if !calls.are_same(before, now) {
            return Relation::Elsewhere;
        }
        let (Some(a), Some(b)) = (first.set_to, next.set_to) else {
            let both = first.set_to.is_none() && next.set_to.is_none();
            return if both { Relation::Continues } else { Relation::Another };
        };
        let away = next.from.saturating_sub(first.to);
        let near = if calls.is_relative(now) { away.saturating_add(REST_NS) } else { 0 };
        if a.abs_diff(b) <= near || !calls.sleeps(now) {
            Relation::Continues
        } else {
            Relation::Another
        }
    }

    /// What is held and `piece`, whose wait continues the first of it, as one.
    fn join(&mut self, piece: Piece) -> Piece {
        let mut held = std::mem::take(&mut self.held).into_iter();
        let Some(first) = held.next() else { return piece };
        let (Some(old), Some(next)) = (first.wait, piece.wait) else {
            return Piece { wait: None, ..piece };
        };
        let mut within = old.within;
        let mut add = |parts: &Parts| parts.0.iter().for_each(|p| within.push(*p, 0));
        let (mut lost, mut faults) = (old.lost || first.lost, first.faults);
        add(&first.run);
        for between in held {
            let Piece { wait, run, faults: more, lost: hole, .. } = between;
            if let Some(wait) = wait {
                add(&wait.within);
                lost |= wait.lost;
            }
            add(&run);
            (lost, faults) = (lost || hole, faults.saturating_add(more));
        }
        add(&next.within);
        // It fell due while the thread was away from its sleep: what kept it away is the way to its begin.
        let away = next.release < next.from || !next.slept;
        let way = if away { within.last(next.to.saturating_sub(next.release)) } else { next.way };
        let wait = Wait {
            from: old.from,
            within,
            way,
            slept: true,
            late: next.late.filter(|_| !away),
            lost: next.lost || lost,
            ..next
        };
        Piece { wait: Some(wait), faults: piece.faults.saturating_add(faults), ..piece }
    }
}

fn piece_is_timed(piece: &Piece) -> bool {
    piece.wait.as_ref().is_some_and(|w| w.set_to.is_some())
}

/// What a wait is to the interrupted one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// It is the same.
    Continues,
    /// Something that is done in between, as in a signal's handler.
    Elsewhere,
    /// The next one: the program took the signal for its release.
    Another,
}
