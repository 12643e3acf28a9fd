// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which rows are shown: by text, by CPU, by kind of thread.

use tailbound_core::CpuSet;

use super::look::MachineView;
use super::rows::{ClassRow, InterruptRow, MachineFact, ThreadRow};

/// Which tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// Both.
    #[default]
    Both,
    /// Threads only.
    Threads,
    /// Interrupts only.
    Interrupts,
}

impl Which {
    /// Are threads among it?
    #[must_use]
    pub fn threads(self) -> bool {
        self != Self::Interrupts
    }
    /// Are interrupts among it?
    #[must_use]
    pub fn interrupts(self) -> bool {
        self != Self::Threads
    }
}

/// Which threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// All.
    #[default]
    Any,
    /// Those of the kernel.
    Kernel,
    /// Those of programs.
    User,
}

/// Which rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Rows that hold this text, in small or capital letters; all where it is empty.
    pub text: String,
    /// Rows that concern one of these CPUs; all where it is empty.
    pub cpus: CpuSet,
    /// Threads of a kind.
    pub kind: Kind,
    /// Only threads of SCHED_FIFO, SCHED_RR and SCHED_DEADLINE.
    pub realtime: bool,
}

impl Choice {
    /// Leaves only what was chosen; interrupts of chosen CPUs keep the counts of these alone.
    pub fn apply(&self, shown: &mut MachineView) {
        shown.look.threads.retain(|t| self.thread(t));
        shown.look.interrupts.retain(|i| self.interrupt(i));
        shown.look.classes.retain(|c| self.class(c));
        if !self.cpus.is_empty() {
            for i in &mut shown.look.interrupts {
                i.counts.retain(|cpu, _| self.cpus.contains(*cpu));
                i.rates.iter_mut().for_each(|r| r.retain(|cpu, _| self.cpus.contains(*cpu)));
            }
            for c in &mut shown.look.classes {
                c.counts.retain(|cpu, _| self.cpus.contains(*cpu));
                c.rates.iter_mut().for_each(|r| r.retain(|cpu, _| self.cpus.contains(*cpu)));
            }
        }
    }

    /// May this thread be seen? On a CPU it is where it may run there.
    #[must_use]
    pub fn thread(&self, t: &ThreadRow) -> bool {
        let kind = match self.kind {
            Kind::Any => true,
            Kind::Kernel => t.kernel,
            Kind::User => !t.kernel,
        };
        let here = || self.meets(&t.affinity, Some(t.last_cpu));
        let words = || {
            self.holds(&t.name)
                || t.process.as_deref().is_some_and(|p| self.holds(p))
                || self.holds(&t.policy.to_string())
                || self.holds(&t.id.tid.to_string())
                || self.holds(&t.pid.to_string())
        };
        kind && (!self.realtime || t.policy.is_realtime()) && here() && words()
    }

    /// May this interrupt be seen? On a CPU it is where it may be handled there, or came there.
    #[must_use]
    pub fn interrupt(&self, i: &InterruptRow) -> bool {
        let came = match &i.rates {
            Some(rates) => rates.iter().any(|(cpu, r)| *r > 0.0 && self.cpus.contains(*cpu)),
            None => i.counts.iter().any(|(cpu, n)| *n > 0 && self.cpus.contains(*cpu)),
        };
        let words = || {
            self.holds(&i.number.to_string())
                || self.holds(&i.chip)
                || i.users.iter().any(|u| self.holds(u))
                || i.handlers.iter().any(|h| self.holds(&h.name))
        };
        (came || self.meets(&i.affinity, None)) && words()
    }

    fn class(&self, c: &ClassRow) -> bool {
        self.holds(&c.name) || self.holds(&c.about)
    }

    /// What may be anywhere concerns every CPU; so does what is not known to be elsewhere.
    fn meets(&self, affinity: &MachineFact<CpuSet>, last: Option<u32>) -> bool {
        self.cpus.is_empty()
            || match (affinity, last) {
                (Ok(allowed), _) => !allowed.and(&self.cpus).is_empty(),
                (Err(_), Some(cpu)) => self.cpus.contains(cpu),
                (Err(_), None) => true,
            }
    }

    fn holds(&self, text: &str) -> bool {
        self.text.is_empty() || text.to_lowercase().contains(&self.text.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use tailbound_core::Policy;

    use super::super::look::Look;
    use super::super::look::tests::{interrupt, thread};
    use super::*;

    fn shown() -> MachineView {
        Look {
            threads: vec![
                thread(1, "systemd", Policy::Other),
                thread(40, "irq/4-ttyS0", Policy::Fifo(50)),
                ThreadRow {
                    affinity: Ok([3].into_iter().collect()),
                    process: Some("Robot".to_owned()),
                    ..thread(77, "control", Policy::Rr(80))
                },
            ],
            interrupts: vec![interrupt(4, &["ttyS0"]), interrupt(9, &["acpi"])],
            ..Look::default()
        }
        .totals()
    }

    fn left(choice: &Choice) -> (Vec<u32>, Vec<u32>) {
        let mut shown = shown();
        choice.apply(&mut shown);
        let threads = shown.look.threads.iter().map(|t| t.id.tid).collect();
        (threads, shown.look.interrupts.iter().map(|i| i.number).collect())
    }

    #[test]
    fn each_word_leaves_what_it_says() {
        let all = Choice::default();
        assert_eq!(left(&all), (vec![1, 40, 77], vec![4, 9]));
        let text = |t: &str| left(&Choice { text: t.to_owned(), ..Choice::default() });
        assert_eq!(text("TTYS"), (vec![40], vec![4]));
        assert_eq!(text("robot").0, [77], "the name of its process");
        assert_eq!(text("rr:80").0, [77]);
        assert_eq!(left(&Choice { realtime: true, ..all.clone() }).0, [40, 77]);
        assert_eq!(left(&Choice { kind: Kind::Kernel, ..all.clone() }).0, [40]);
        assert_eq!(left(&Choice { kind: Kind::User, realtime: true, ..all }).0, [77]);
    }

    #[test]
    fn cpus_leave_what_may_be_there_and_count_only_there() {
        let on = |cpu: u32| Choice { cpus: [cpu].into_iter().collect(), ..Choice::default() };
        assert_eq!(left(&on(3)), (vec![77], vec![]));
        assert_eq!(left(&on(0)), (vec![1, 40], vec![4, 9]));
        let mut one = shown();
        on(0).apply(&mut one);
        let counts = one.look.interrupts.first().map(|i| i.counts.clone()).unwrap_or_default();
        assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(0, 5)]);
    }

    #[test]
    fn an_interrupt_that_came_where_it_may_not_be_is_seen() {
        let on = Choice { cpus: [1].into_iter().collect(), ..Choice::default() };
        let mut row = interrupt(4, &["x"]);
        row.affinity = Ok([0].into_iter().collect());
        assert!(on.interrupt(&row), "it came there since boot");
        row.rates = Some([(0, 3.0), (1, 0.0)].into_iter().collect());
        assert!(!on.interrupt(&row), "and not within the interval");
    }
}
