// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a thread's cycle ends: in the wait that comes back most often.
//!
//! A wait for a time goes before one for others: a lock that is contended in every
//! cycle is no end of it. Until a wait was seen [`SEEN`] times nothing is known, and what happened
//! before, the program's start, is not of a cycle.

use super::call::Call;
use super::judge::{self, Futex};

/// A wait is the end of a cycle once it was seen so often.
const SEEN: u32 = 3;
/// Different waits that are remembered.
const WAITS_MAX: usize = 64;

/// What a thread waits in: the call and what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    name: &'static str,
    id: i64,
    object: u64,
}

impl Wait {
    pub(super) fn of(call: &Call) -> Self {
        let [first, ..] = call.args;
        let object = match (call.name, judge::futex(call)) {
            (_, Some(Futex::WaitRequeuePi { address } | Futex::Wait { address, .. })) => address,
            (_, Some(Futex::LockPi { address })) => address,
            ("clock_nanosleep" | "nanosleep" | "", _) => 0,
            _ => first & 0xffff_ffff,
        };
        Self { name: call.name, id: call.id, object }
    }

    /// Lower is likelier the end of a cycle.
    fn rank(&self) -> u8 {
        match self.name {
            "clock_nanosleep" | "nanosleep" => 0,
            "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "poll" | "ppoll" | "select"
            | "pselect6" | "rt_sigtimedwait" => 1,
            "read" | "recvfrom" | "recvmsg" | "recvmmsg" | "mq_timedreceive" | "msgrcv" => 2,
            "futex" => 3,
            _ => 4,
        }
    }
}

/// The waits of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    waits: Vec<(Wait, u32)>,
    end: Option<Wait>,
}

impl Cycle {
    /// Are its cycles known?
    pub(super) fn is_known(&self) -> bool {
        self.end.is_some()
    }

    /// Does this wait end its cycle? `None` while that is not known.
    pub(super) fn ends(&self, wait: Wait) -> Option<bool> {
        self.end.map(|end| end == wait)
    }

    /// It slept there once more. `true` where that changed what ends its cycle: nothing that was
    /// seen before is of a cycle then.
    pub(super) fn slept(&mut self, wait: Wait) -> bool {
        let at = self.waits.iter().position(|(w, _)| *w == wait);
        if at.is_none() && self.waits.len() >= WAITS_MAX {
            return false;
        }
        match at.and_then(|at| self.waits.get_mut(at)) {
            Some((_, n)) => *n = n.saturating_add(1),
            None => self.waits.push((wait, 1)),
        }
        let most = self.waits.iter().map(|(_, n)| *n).max().unwrap_or(0);
        let often = |n: u32| n >= SEEN && n >= most / 2;
        let of_end = self.waits.iter().find(|(w, _)| Some(*w) == self.end);
        let key = |(w, n): &(Wait, u32)| (w.rank(), std::cmp::Reverse(*n));
        let best = self.waits.iter().filter(|(_, n)| often(*n)).min_by_key(|w| key(w));
        let Some((best, _)) = best else { return false };
        let stays = of_end.is_some_and(|(w, n)| often(*n) && w.rank() <= best.rank());
        if stays {
            return false;
        }
        self.end = Some(*best);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: &'static str, object: u64) -> Wait {
        Wait { name, id: 1, object }
    }

    #[test]
    fn the_wait_for_a_time_ends_a_cycle_and_a_lock_within_does_not() {
        let mut cycle = Cycle::default();
        for _ in 0..2 {
            assert!(!cycle.slept(wait("futex", 9)));
            assert!(!cycle.slept(wait("clock_nanosleep", 0)));
        }
        assert!(!cycle.is_known());
        assert!(cycle.slept(wait("futex", 9)), "the first that was seen three times");
        assert!(cycle.slept(wait("clock_nanosleep", 0)), "a better one");
        for _ in 0..9 {
            assert!(!cycle.slept(wait("futex", 9)) && !cycle.slept(wait("clock_nanosleep", 0)));
        }
        assert_eq!(cycle.ends(wait("futex", 9)), Some(false));
        assert_eq!(cycle.ends(wait("clock_nanosleep", 0)), Some(true));
    }

    #[test]
    fn sleeps_of_the_start_do_not_stay_the_end_of_a_cycle() {
        let mut cycle = Cycle::default();
        let mut sleeps = |n: usize, w: Wait| (0..n).filter(|_| cycle.slept(w)).count();
        assert_eq!(sleeps(3, wait("nanosleep", 0)), 1);
        assert_eq!(sleeps(5, wait("read", 4)), 0);
        assert_eq!(sleeps(20, wait("read", 4)), 1);
        assert_eq!(cycle.ends(wait("nanosleep", 0)), Some(false));
        assert_eq!(cycle.ends(wait("read", 4)), Some(true));
    }
}
