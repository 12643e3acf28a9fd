// SPDX-License-Identifier: MIT OR Apache-2.0
//! One look at a machine, and what two of them tell: rates.
//!
//! Units: ns of a clock that only goes forward; rates a second.
//! A count that went backwards belongs to something else by now: it has no rate.

use super::grid::Amounts;
use std::collections::BTreeMap;

use tailbound_core::CpuSet;
use tailbound_core::number::Real as _;

use super::rows::{ClassRow, Handler, InterruptRow, SwitchRate, ThreadId, ThreadRow, interrupt_of};

/// The machine at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// When.
    pub at_ns: i64,
    /// The CPUs that run.
    pub online: CpuSet,
    /// Those kept free of other work.
    pub isolated: CpuSet,
    /// Every thread.
    pub threads: Vec<ThreadRow>,
    /// Every numbered interrupt.
    pub interrupts: Vec<InterruptRow>,
    /// Interrupts without a number.
    pub classes: Vec<ClassRow>,
    /// What could not be read at all, and why.
    pub missing: Vec<String>,
}

/// What is shown: a look, and the time its rates are over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineView {
    /// The later look.
    pub look: Look,
    /// The time from the look before; without one, figures are totals since boot.
    pub over_ns: Option<i64>,
}

impl MachineView {
    /// What its figures count.
    #[must_use]
    pub fn amounts(&self) -> Amounts {
        if self.over_ns.is_some() { Amounts::Rates } else { Amounts::Totals }
    }
}

impl Look {
    /// Gives each interrupt the kernel threads that handle it.
    #[must_use]
    pub fn with_handlers(mut self) -> Self {
        let mut by_number: BTreeMap<u32, Vec<Handler>> = BTreeMap::new();
        for thread in self.threads.iter().filter(|t| t.kernel) {
            if let Some(number) = interrupt_of(&thread.name) {
                by_number.entry(number).or_default().push(Handler {
                    id: thread.id,
                    name: thread.name.clone(),
                    policy: thread.policy,
                    affinity: thread.affinity.clone(),
                });
            }
        }
        for interrupt in &mut self.interrupts {
            interrupt.handlers = by_number.remove(&interrupt.number).unwrap_or_default();
        }
        self
    }

    /// Totals since boot.
    #[must_use]
    pub fn totals(self) -> MachineView {
        MachineView { look: self, over_ns: None }
    }

    /// With the rates since `before`; totals where no time has passed.
    #[must_use]
    pub fn since(mut self, before: &Self) -> MachineView {
        let over_ns = self.at_ns.saturating_sub(before.at_ns);
        if over_ns <= 0 {
            return self.totals();
        }
        let seconds = over_ns.real() / 1e9;
        let known: BTreeMap<ThreadId, &ThreadRow> =
            before.threads.iter().map(|t| (t.id, t)).collect();
        for thread in &mut self.threads {
            thread.rate = switch_rate(thread, known.get(&thread.id).copied(), seconds);
        }
        let lines: BTreeMap<u32, &InterruptRow> =
            before.interrupts.iter().map(|i| (i.number, i)).collect();
        for interrupt in &mut self.interrupts {
            let same = lines.get(&interrupt.number).filter(|old| old.users == interrupt.users);
            interrupt.rates = same.and_then(|old| rates(&interrupt.counts, &old.counts, seconds));
        }
        let kinds: BTreeMap<&str, &ClassRow> =
            before.classes.iter().map(|c| (c.name.as_str(), c)).collect();
        for class in &mut self.classes {
            let old = kinds.get(class.name.as_str());
            class.rates = old.and_then(|old| rates(&class.counts, &old.counts, seconds));
        }
        MachineView { look: self, over_ns: Some(over_ns) }
    }
}

/// A thread that was not there before did all it did since.
fn switch_rate(now: &ThreadRow, before: Option<&ThreadRow>, seconds: f64) -> Option<SwitchRate> {
    let now = now.switches.as_ref().ok()?;
    let before = match before {
        Some(row) => *row.switches.as_ref().ok()?,
        None => super::Switches::default(),
    };
    let rate = |now: u64, before: u64| Some(now.checked_sub(before)?.real() / seconds);
    Some(SwitchRate {
        voluntary: rate(now.voluntary, before.voluntary)?,
        involuntary: rate(now.involuntary, before.involuntary)?,
    })
}

/// A CPU that was not there before was offline: its count goes on from where it was, nobody knows where.
fn rates(
    now: &BTreeMap<u32, u64>,
    before: &BTreeMap<u32, u64>,
    seconds: f64,
) -> Option<BTreeMap<u32, f64>> {
    let both = now.iter().filter_map(|(cpu, n)| Some((cpu, n, before.get(cpu)?)));
    both.map(|(cpu, n, old)| Some((*cpu, n.checked_sub(*old)?.real() / seconds))).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use tailbound_core::Policy;

    use super::super::rows::Switches;
    use super::*;

    pub(crate) fn thread(tid: u32, name: &str, policy: Policy) -> ThreadRow {
        ThreadRow {
            id: ThreadId { tid, start_ticks: 1 },
            pid: tid,
            name: name.to_owned(),
            process: None,
            kernel: name.starts_with("irq/"),
            fixed: false,
            policy,
            nice: 0,
            last_cpu: 0,
            affinity: Ok([0, 1].into_iter().collect()),
            switches: Ok(Switches { voluntary: 10, involuntary: 2 }),
            rate: None,
        }
    }

    pub(crate) fn interrupt(number: u32, users: &[&str]) -> InterruptRow {
        InterruptRow {
            number,
            counts: BTreeMap::from([(0, 5), (1, 7)]),
            rates: None,
            chip: "IO-APIC 4-edge".to_owned(),
            users: users.iter().map(|u| (*u).to_owned()).collect(),
            affinity: Ok([0, 1].into_iter().collect()),
            effective: Ok([1].into_iter().collect()),
            managed: Ok(false),
            handlers: Vec::new(),
        }
    }

    #[test]
    fn an_interrupt_has_the_threads_that_bear_its_number() {
        let look = Look {
            threads: vec![
                thread(7, "irq/4-ttyS0", Policy::Fifo(50)),
                thread(8, "irq/4-s-ttyS0", Policy::Fifo(49)),
                ThreadRow { kernel: false, ..thread(9, "irq/5-forged", Policy::Other) },
            ],
            interrupts: vec![interrupt(4, &["ttyS0"]), interrupt(5, &["eth0"])],
            ..Look::default()
        }
        .with_handlers();
        let of = |i: &InterruptRow| i.handlers.iter().map(|h| h.id.tid).collect::<Vec<_>>();
        assert_eq!(look.interrupts.iter().map(of).collect::<Vec<_>>(), [vec![7, 8], vec![]]);
        let first = look.interrupts.first().and_then(InterruptRow::handler).map(|h| h.policy);
        assert_eq!(first, Some(Policy::Fifo(50)));
    }

    #[test]
    fn rates_are_differences_over_time() {
        let before = Look {
            at_ns: 1_000_000_000,
            threads: vec![thread(1, "a", Policy::Other), thread(2, "b", Policy::Other)],
            interrupts: vec![interrupt(4, &["x"]), interrupt(5, &["x"]), interrupt(6, &["x"])],
            ..Look::default()
        };
        let mut after = before.clone();
        after.at_ns += 2_000_000_000;
        after.threads.push(thread(3, "new", Policy::Other));
        for t in &mut after.threads {
            t.switches = Ok(Switches { voluntary: 14, involuntary: 3 });
        }
        // Number 2 is another thread by now, interrupt 5 has another user, 6 begins anew.
        if let Some(t) = after.threads.get_mut(1) {
            t.id.start_ticks = 2;
        }
        if let [four, five, six] = after.interrupts.as_mut_slice() {
            four.counts = BTreeMap::from([(0, 5), (1, 8), (2, 9)]);
            five.users = vec!["y".to_owned()];
            six.counts = BTreeMap::from([(0, 4), (1, 9)]);
        }
        let shown = after.clone().since(&before);
        assert_eq!(shown.over_ns, Some(2_000_000_000));
        let voluntary: Vec<Option<f64>> =
            shown.look.threads.iter().map(|t| t.rate.map(|r| r.voluntary)).collect();
        assert_eq!(voluntary, [Some(2.0), Some(7.0), Some(7.0)]);
        let rates: Vec<_> = shown.look.interrupts.iter().map(|i| i.rates.clone()).collect();
        assert_eq!(rates, [Some(BTreeMap::from([(0, 0.0), (1, 0.5)])), None, None]);
        assert_eq!(before.clone().since(&before).over_ns, None, "no time, no rate");
    }
}
