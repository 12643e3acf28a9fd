// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which order rows are shown.
//!
//! Rows that are equal by the key keep the order of their numbers, so that a table
//! does not jump from look to look.

use std::cmp::Ordering;
use tailbound_core::order;

use super::look::MachineView;
use super::rows::{InterruptRow, ThreadRow, urgency};
use super::sums::{per_second, total};

/// A key, and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<K> {
    /// By what.
    pub key: K,
    /// The greatest first.
    pub descending: bool,
}

/// What threads are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadKey {
    /// Process and number.
    #[default]
    Number,
    /// Whom the kernel prefers.
    Priority,
    /// The CPU it ran on last.
    Cpu,
    /// Where it may run: few CPUs before many.
    Affinity,
    /// Voluntary switches.
    Voluntary,
    /// Involuntary switches.
    Involuntary,
    /// Its name.
    Command,
}

/// What interrupts are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterruptKey {
    /// Their number.
    #[default]
    Number,
    /// The most urgent thread.
    Priority,
    /// Where the hardware sends it.
    Cpu,
    /// Where it may be handled: few CPUs before many.
    Affinity,
    /// How often it comes.
    Rate,
    /// Those the kernel decides about.
    Managed,
    /// Its devices.
    Users,
}

impl ThreadKey {
    /// All, in the order in which a person steps through them.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Number, "number"),
        (Self::Priority, "priority"),
        (Self::Cpu, "cpu"),
        (Self::Affinity, "affinity"),
        (Self::Voluntary, "voluntary"),
        (Self::Involuntary, "involuntary"),
        (Self::Command, "command"),
    ];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        word_of(&Self::ALL, self)
    }

    /// The one after it; the first after the last.
    #[must_use]
    pub fn next(self) -> Self {
        after(&Self::ALL, self)
    }
}

impl InterruptKey {
    /// All, in the order in which a person steps through them.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Number, "number"),
        (Self::Priority, "priority"),
        (Self::Cpu, "cpu"),
        (Self::Affinity, "affinity"),
        (Self::Rate, "rate"),
        (Self::Managed, "managed"),
        (Self::Users, "users"),
    ];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        word_of(&Self::ALL, self)
    }

    /// The one after it; the first after the last.
    #[must_use]
    pub fn next(self) -> Self {
        after(&Self::ALL, self)
    }
}

fn word_of<K: Copy + PartialEq>(all: &[(K, &'static str)], key: K) -> &'static str {
    all.iter().find(|(k, _)| *k == key).map_or("", |(_, word)| word)
}

fn after<K: Copy + PartialEq>(all: &[(K, &'static str)], key: K) -> K {
    all.iter().skip_while(|(k, _)| *k != key).nth(1).or(all.first()).map_or(key, |(k, _)| *k)
}

fn key_of<K: Copy>(all: &[(K, &'static str)], word: &str) -> Option<K> {
    all.iter().find(|(_, w)| *w == word).map(|(k, _)| *k)
}

/// The order of both tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    /// Of threads.
    pub threads: Order<ThreadKey>,
    /// Of interrupts.
    pub interrupts: Order<InterruptKey>,
}

impl<K: Default> Default for Order<K> {
    fn default() -> Self {
        Self { key: K::default(), descending: false }
    }
}

/// Why a text names no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortError(String);

impl std::error::Error for SortError {}

impl std::fmt::Display for SortError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`{}` is not an order: write KEY or KEY:desc, with a key of threads ({}) or of interrupts ({})",
            self.0,
            ThreadKey::ALL.map(|(_, w)| w).join(", "),
            InterruptKey::ALL.map(|(_, w)| w).join(", ")
        )
    }
}

impl std::str::FromStr for Sort {
    type Err = SortError;

    /// `KEY`, `KEY:asc` or `KEY:desc`; a table that does not have the key keeps its own order.
    fn from_str(text: &str) -> Result<Self, SortError> {
        let fail = || SortError(tailbound_core::printable::excerpt(text, 80));
        let (word, descending) = match text.split_once(':') {
            None | Some((_, "asc")) => (text.split(':').next().unwrap_or(text), false),
            Some((word, "desc")) => (word, true),
            Some(_) => return Err(fail()),
        };
        let (threads, interrupts) =
            (key_of(&ThreadKey::ALL, word), key_of(&InterruptKey::ALL, word));
        if threads.is_none() && interrupts.is_none() {
            return Err(fail());
        }
        Ok(Self {
            threads: threads.map_or_else(Order::default, |key| Order { key, descending }),
            interrupts: interrupts.map_or_else(Order::default, |key| Order { key, descending }),
        })
    }
}

impl Sort {
    /// Puts the rows in order.
    pub fn apply(&self, shown: &mut MachineView) {
        self.threads(&mut shown.look.threads);
        self.interrupts(&mut shown.look.interrupts);
    }

    /// Puts threads in order.
    pub fn threads(&self, rows: &mut [ThreadRow]) {
        let number = |t: &ThreadRow| (t.pid, t.id);
        let by = self.threads;
        order::by(rows, |a, b| {
            let by_key = by_thread_key(by.key, a, b);
            let by_key = if by.descending { by_key.reverse() } else { by_key };
            by_key.then_with(|| number(a).cmp(&number(b)))
        });
    }

    /// Puts interrupts in order.
    pub fn interrupts(&self, rows: &mut [InterruptRow]) {
        let by = self.interrupts;
        order::by(rows, |a, b| {
            let by_key = by_interrupt_key(by.key, a, b);
            let by_key = if by.descending { by_key.reverse() } else { by_key };
            by_key.then(a.number.cmp(&b.number))
        });
    }
}

fn by_thread_key(key: ThreadKey, a: &ThreadRow, b: &ThreadRow) -> Ordering {
    let switches =
        |t: &ThreadRow, of: fn(&super::Switches) -> u64| t.switches.as_ref().ok().map(of);
    match key {
        ThreadKey::Number => (a.pid, a.id).cmp(&(b.pid, b.id)),
        ThreadKey::Priority => urgency(a.policy, a.nice).cmp(&urgency(b.policy, b.nice)),
        ThreadKey::Cpu => a.last_cpu.cmp(&b.last_cpu),
        ThreadKey::Affinity => cpus(&a.affinity).cmp(&cpus(&b.affinity)),
        ThreadKey::Voluntary => amounts(a.rate.map(|r| r.voluntary), b.rate.map(|r| r.voluntary))
            .then_with(|| switches(a, |s| s.voluntary).cmp(&switches(b, |s| s.voluntary))),
        ThreadKey::Involuntary => {
            amounts(a.rate.map(|r| r.involuntary), b.rate.map(|r| r.involuntary))
                .then_with(|| switches(a, |s| s.involuntary).cmp(&switches(b, |s| s.involuntary)))
        }
        ThreadKey::Command => a.name.cmp(&b.name),
    }
}

fn by_interrupt_key(key: InterruptKey, a: &InterruptRow, b: &InterruptRow) -> Ordering {
    let priority = |i: &InterruptRow| i.handler().map(|h| urgency(h.policy, 0));
    match key {
        InterruptKey::Number => a.number.cmp(&b.number),
        InterruptKey::Priority => priority(a).cmp(&priority(b)),
        InterruptKey::Cpu => cpus(&a.effective).cmp(&cpus(&b.effective)),
        InterruptKey::Affinity => cpus(&a.affinity).cmp(&cpus(&b.affinity)),
        InterruptKey::Rate => {
            amounts(a.rates.as_ref().map(per_second), b.rates.as_ref().map(per_second))
                .then_with(|| total(&a.counts).cmp(&total(&b.counts)))
        }
        InterruptKey::Managed => a.managed.as_ref().ok().cmp(&b.managed.as_ref().ok()),
        InterruptKey::Users => a.users.cmp(&b.users),
    }
}

/// Few CPUs before many, then by their numbers; the unknown first.
fn cpus(set: &super::MachineFact<tailbound_core::CpuSet>) -> Option<(usize, Vec<u32>)> {
    set.as_ref().ok().map(|s| (s.len(), s.iter().collect()))
}

fn amounts(a: Option<f64>, b: Option<f64>) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use tailbound_core::Policy;

    use super::super::look::tests::{interrupt, thread};
    use super::super::rows::SwitchRate;
    use super::*;

    fn tids(sort: &str, mut rows: Vec<ThreadRow>) -> Vec<u32> {
        let sort: Sort = sort.parse().unwrap_or_else(|e| panic!("{e}"));
        sort.threads(&mut rows);
        rows.iter().map(|t| t.id.tid).collect()
    }

    #[test]
    fn threads_are_in_the_order_asked_for() {
        let rate = |voluntary| Some(SwitchRate { voluntary, involuntary: 0.0 });
        let rows = vec![
            ThreadRow { rate: rate(5.0), ..thread(3, "b", Policy::Other) },
            ThreadRow { rate: rate(50.0), last_cpu: 2, ..thread(2, "a", Policy::Fifo(10)) },
            ThreadRow { rate: rate(0.5), nice: 5, ..thread(1, "c", Policy::Other) },
        ];
        assert_eq!(tids("number", rows.clone()), [1, 2, 3]);
        assert_eq!(tids("priority:desc", rows.clone()), [2, 3, 1]);
        assert_eq!(tids("voluntary", rows.clone()), [1, 3, 2]);
        assert_eq!(tids("command", rows.clone()), [2, 3, 1]);
        assert_eq!(tids("cpu:desc", rows.clone()), [2, 1, 3], "equal ones by number");
        assert_eq!(tids("rate:desc", rows), [1, 2, 3], "threads have no such key");
    }

    #[test]
    fn interrupts_are_in_the_order_asked_for() {
        let mut rows = [interrupt(4, &["b"]), interrupt(5, &["a"]), interrupt(6, &["c"])];
        if let Some(five) = rows.get_mut(1) {
            five.counts.insert(0, 1000);
            five.managed = Ok(true);
        }
        for (sort, order) in [
            ("rate:desc", [5, 4, 6]),
            ("users", [5, 4, 6]),
            ("managed", [4, 6, 5]),
            ("number:desc", [6, 5, 4]),
        ] {
            sort.parse::<Sort>().unwrap_or_default().interrupts(&mut rows);
            assert_eq!(rows.clone().map(|i| i.number), order, "{sort}");
        }
    }

    #[test]
    fn wrong_words_are_told_with_the_right_ones() {
        for wrong in ["", "size", "number:up", ":desc", "number:desc:desc"] {
            let told = wrong.parse::<Sort>().map(|_| ()).map_err(|e| e.to_string());
            assert!(
                told.is_err_and(|e| e.contains("involuntary") && e.contains("managed")),
                "{wrong}"
            );
        }
        let mut key = ThreadKey::default();
        for _ in ThreadKey::ALL {
            key = key.next();
        }
        assert_eq!(key, ThreadKey::default(), "stepping comes round");
        assert_eq!(InterruptKey::Users.next(), InterruptKey::Number);
    }
}
