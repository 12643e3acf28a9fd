// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns of several CPUs: when each executed, and so how much of any time it executed itself.
//!
//! Units: ns. With one CPU there are no turns, and its own time is that of the log.
//! QEMU executes the CPUs of a counted guest one after the other. The plugin writes down where each turn begins, and how much
//! all have executed before; so a turn's end is known, and what lies between it and the next one's begin is time in which all
//! halted.

use crate::log::Record;
use crate::record::{CPUS, kind};

/// One turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    begin_ns: u64,
    /// What its CPU had executed before.
    own_ns: u64,
    /// How long it is; of one that is not over: without end.
    ns: u64,
}

/// The turn under way.
#[derive(Clone, Copy, Debug)]
struct Now {
    cpu: usize,
    begin_ns: u64,
    /// What all had executed before.
    executed_ns: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Turns {
    cpus: [Vec<Turn>; CPUS],
    now: Option<Now>,
    /// CPUs that execute once it is their turn.
    awake: [bool; CPUS],
    /// How many turns began.
    pub n: u64,
    /// Turns that are not where they must be: before the end of the one before, or after time in which not all halted.
    pub wrong: u64,
}

impl Turns {
    /// The next record of the log.
    pub fn add(&mut self, r: &Record) {
        let cpu = usize::from(r.cpu);
        match r.kind {
            kind::HALT => {
                if let Some(awake) = self.awake.get_mut(cpu) {
                    *awake = false;
                }
            }
            kind::TURN => self.begins(cpu, r.t_ns, r.value),
            _ => {}
        }
    }

    fn begins(&mut self, cpu: usize, begin_ns: u64, executed_ns: u64) {
        self.n += 1;
        let mut own_ns = 0;
        if let Some(now) = self.now {
            let before = executed_ns.saturating_sub(now.executed_ns);
            let end_ns = now.begin_ns + before;
            let halted = !self.awake.contains(&true);
            let right = begin_ns == end_ns || (begin_ns > end_ns && halted);
            self.wrong += u64::from(!right || executed_ns < now.executed_ns);
            if let Some(turn) = self.cpus.get_mut(now.cpu).and_then(|all| all.last_mut()) {
                turn.ns = before;
            }
        }
        if let Some(all) = self.cpus.get_mut(cpu) {
            own_ns = all.last().map_or(own_ns, |last| last.own_ns + last.ns);
            all.push(Turn { begin_ns, own_ns, ns: u64::MAX });
        }
        if let Some(awake) = self.awake.get_mut(cpu) {
            *awake = true;
        }
        self.now = Some(Now { cpu, begin_ns, executed_ns });
    }

    /// Are there several CPUs?
    #[must_use]
    pub fn several(&self) -> bool {
        self.n > 0
    }

    /// Those that had a turn, by their numbers; with one CPU that one.
    #[must_use]
    pub fn cpus(&self) -> Vec<u8> {
        let had = (0u8..).zip(&self.cpus).filter(|(_, turns)| !turns.is_empty());
        let all: Vec<u8> = had.map(|(cpu, _)| cpu).collect();
        if all.is_empty() { vec![0] } else { all }
    }

    /// What a CPU had executed itself at `t_ns`.
    #[must_use]
    pub fn own(&self, cpu: u8, t_ns: u64) -> u64 {
        if !self.several() {
            return t_ns;
        }
        let turns = self.cpus.get(usize::from(cpu)).map_or(&[][..], Vec::as_slice);
        let next = turns.partition_point(|turn| turn.begin_ns <= t_ns);
        let turn = next.checked_sub(1).and_then(|at| turns.get(at));
        turn.map_or(0, |turn| turn.own_ns + (t_ns - turn.begin_ns).min(turn.ns))
    }

    /// How long a CPU that executes at `t_ns` waits for its next turn, if it loses this one within `own_ns` of its own time.
    #[must_use]
    pub fn lost(&self, cpu: u8, t_ns: u64, own_ns: u64) -> u64 {
        let turns = self.cpus.get(usize::from(cpu)).map_or(&[][..], Vec::as_slice);
        let next = turns.partition_point(|turn| turn.begin_ns <= t_ns);
        let Some(turn) = next.checked_sub(1).and_then(|at| turns.get(at)) else { return 0 };
        let end_ns = turn.begin_ns.saturating_add(turn.ns);
        if end_ns.saturating_sub(t_ns) > own_ns {
            return 0;
        }
        turns.get(next).map_or(0, |next| next.begin_ns.saturating_sub(end_ns))
    }

    /// How much of a time a CPU executed itself.
    #[must_use]
    pub fn within(&self, cpu: u8, from_ns: u64, to_ns: u64) -> u64 {
        self.own(cpu, to_ns).saturating_sub(self.own(cpu, from_ns))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn turn(t_ns: u64, cpu: u8, executed_ns: u64) -> Record {
        Record { t_ns, cpu, state: 0, kind: kind::TURN, value: executed_ns }
    }

    fn halt(t_ns: u64, cpu: u8) -> Record {
        Record { t_ns, cpu, state: 0, kind: kind::HALT, value: 0 }
    }

    fn turns(records: &[Record]) -> Turns {
        let mut turns = Turns::default();
        records.iter().for_each(|r| turns.add(r));
        turns
    }

    #[test]
    fn a_cpu_executes_in_its_turns_and_nobody_while_all_halt() {
        // CPU 0: 100..140, 170..190; CPU 1: 140..170, and from 500 on.
        let all = turns(&[
            turn(100, 0, 0),
            turn(140, 1, 40),
            halt(169, 1),
            turn(170, 0, 70),
            halt(189, 0),
            turn(500, 1, 90),
        ]);
        assert_eq!((all.n, all.wrong, all.cpus()), (4, 0, vec![0, 1]));
        assert_eq!([90, 100, 130, 150, 180, 400].map(|t| all.own(0, t)), [0, 0, 30, 40, 50, 60]);
        assert_eq!([90, 139, 150, 400, 510].map(|t| all.own(1, t)), [0, 0, 10, 30, 40]);
        assert_eq!((all.within(0, 130, 180), all.within(1, 130, 180)), (20, 30));
        assert_eq!([all.lost(0, 125, 20), all.lost(0, 125, 10), all.lost(1, 510, 20)], [30, 0, 0]);
    }

    #[test]
    fn turns_that_leave_a_hole_or_overlap_are_counted() {
        let hole = turns(&[turn(100, 0, 0), turn(150, 1, 40)]);
        assert_eq!(hole.wrong, 1);
        let one_awake = turns(&[turn(100, 0, 0), turn(140, 1, 40), halt(150, 1), turn(300, 1, 51)]);
        assert_eq!(one_awake.wrong, 1);
        let overlap = turns(&[turn(100, 0, 0), turn(130, 1, 40)]);
        assert_eq!(overlap.wrong, 1);
    }

    #[test]
    fn one_cpu_has_all_time() {
        let one = turns(&[halt(10, 0)]);
        assert!(!one.several());
        assert_eq!((one.own(0, 7), one.within(0, 5, 9), one.cpus()), (7, 4, vec![0]));
    }
}
