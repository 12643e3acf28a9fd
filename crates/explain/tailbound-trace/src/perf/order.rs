// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of several CPUs in the order of time.
//!
//! Units: ns on perf's clock. perf empties the buffers of all CPUs in turn, and ends each round with a record: nothing
//! that comes after a round is older than the newest of the round before it. So at the end of a round all up to that
//! time are in order.
//! Source: tools/perf/util/ordered-events.c, tools/perf/util/session.c (FINISHED_ROUND).

use crate::event::Entry;

/// Most records that wait for the end of a round; then the older half goes on.
const WAITING_MAX: usize = 1 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    waiting: Vec<Entry>,
    newest_ns: u64,
    before_ns: u64,
}

impl Rounds {
    /// Takes a record, and gives the older half of all to `each` where too many wait.
    pub(super) fn push(&mut self, entry: Entry, each: &mut dyn FnMut(&Entry)) {
        self.newest_ns = self.newest_ns.max(entry.t_ns);
        self.waiting.push(entry);
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.sort_by_key(|e| e.t_ns);
            self.waiting.drain(..WAITING_MAX / 2).for_each(|e| each(&e));
        }
    }

    /// A round has ended.
    pub(super) fn ended(&mut self, each: &mut dyn FnMut(&Entry)) {
        self.up_to(self.before_ns, each);
        self.before_ns = self.newest_ns;
    }

    /// No more records come.
    pub(super) fn finish(&mut self, each: &mut dyn FnMut(&Entry)) {
        self.up_to(u64::MAX, each);
    }

    fn up_to(&mut self, t_ns: u64, each: &mut dyn FnMut(&Entry)) {
        self.waiting.sort_by_key(|e| e.t_ns);
        let ordered = self.waiting.partition_point(|e| e.t_ns <= t_ns);
        self.waiting.drain(..ordered).for_each(|e| each(&e));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Flags};

    fn entry(t_ns: u64) -> Entry {
        Entry { t_ns, cpu: 0, pid: 1, flags: Flags::default(), event: Event::Other }
    }

    #[test]
    fn rounds_put_cpus_in_order_and_hold_back_what_may_still_be_overtaken() {
        let (mut rounds, mut told) = (Rounds::default(), Vec::new());
        // Two CPUs, one after the other in each round.
        for round in [vec![10, 30, 20, 25], vec![28, 50, 35, 45], vec![60, 55]] {
            let mut each = |e: &Entry| told.push(e.t_ns);
            round.into_iter().for_each(|t| rounds.push(entry(t), &mut each));
            rounds.ended(&mut each);
        }
        assert_eq!(told, [10, 20, 25, 28, 30, 35, 45, 50]);
        rounds.finish(&mut |e| told.push(e.t_ns));
        assert_eq!(told.last_chunk(), Some(&[55, 60]));
    }
}
