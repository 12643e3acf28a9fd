// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machine is, as facts with dotted names: everything that may matter for how late
//! a wake-up can be, read before a run and again after it.
//!
//! Some ms. Each fact stands alone: a value, *unknown* with the reason, or
//! *not applicable* with the reason. No fact is a reason to stop.
//! The names are documented in docs/facts.md, and a test keeps the two together.
//! Not here: judgement. Facts are read, `disturbances` and later rules say what they mean.

mod clock;
mod cpu;
mod groups;
mod kernel;
mod limits;
mod machine;
pub(crate) mod memory;
mod power;
mod sched;
mod virt;

pub(crate) use cpu::siblings;
pub(crate) use power::{cpu_dma_latency, states as idle_states};
pub(crate) use sched::{FAIR_SERVER_SINCE, server};
pub use virt::{is_virtual_machine, machine_of};

use std::sync::Arc;

use serde_json::{Map, Value};
use tailbound_core::CpuSet;
use tailbound_core::record::{Fact, Facts};

use crate::kconfig::KernelConfig;
use crate::root::{Found, Missing, Root, chosen};

/// Reads every fact of the machine under `root`.
#[must_use]
pub fn inventory(root: &Root) -> Facts {
    let mut sheet = Sheet::of(root);
    kernel::read(&mut sheet);
    machine::read(&mut sheet);
    cpu::read(&mut sheet);
    clock::read(&mut sheet);
    sched::read(&mut sheet);
    power::read(&mut sheet);
    memory::read(&mut sheet);
    virt::read(&mut sheet);
    groups::read(&mut sheet);
    limits::read(&mut sheet);
    sheet.facts
}

/// Reads the facts of kernel, machine and CPUs alone: for who must not ask a CPU for its counters or idle states.
#[must_use]
pub fn inventory_of_identity(root: &Root) -> Facts {
    let mut sheet = Sheet::of(root);
    kernel::read(&mut sheet);
    machine::read(&mut sheet);
    cpu::read(&mut sheet);
    sheet.facts
}

/// The facts of `after` that differ from `before`, and those that are new; a fact that
/// vanished is *unknown* now.
#[must_use]
pub fn changed(before: &Facts, after: &Facts) -> Facts {
    let mut out: Facts = after
        .iter()
        .filter(|(name, fact)| before.get(*name) != Some(fact))
        .map(|(name, fact)| (name.clone(), fact.clone()))
        .collect();
    for name in before.keys().filter(|n| !after.contains_key(*n)) {
        out.insert(name.clone(), Fact::Unknown("it was there at the start".to_owned()));
    }
    out
}

/// The facts being collected, and what several of them are made of.
struct Sheet<'a> {
    root: &'a Root,
    online: CpuSet,
    config: Found<Arc<KernelConfig>>,
    release: String,
    facts: Facts,
}

impl<'a> Sheet<'a> {
    /// Without any fact.
    fn of(root: &'a Root) -> Self {
        let release = root.read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            root,
            online: crate::cpus::online(root).unwrap_or_default(),
            config: root.kernel_config(&release),
            release,
            facts: Facts::new(),
        }
    }

    /// Puts one fact.
    fn put<T: Into<Value>>(&mut self, name: &str, found: Found<T>) {
        let fact = found.map_or_else(Fact::from, Fact::of);
        self.facts.insert(name.to_owned(), fact);
    }

    /// A file that is text.
    fn text(&mut self, name: &str, path: &str) {
        let found = self.root.read_trimmed(path);
        self.put(name, found);
    }

    /// A file that is a whole number.
    fn number(&mut self, name: &str, path: &str) {
        let found = self.root.parsed::<i64>(path);
        self.put(name, found);
    }

    /// A file with its choice in brackets.
    fn choice(&mut self, name: &str, path: &str) {
        let found = self.root.read_trimmed(path).map(|t| chosen(&t).unwrap_or(&t).to_owned());
        self.put(name, found);
    }

    /// A value for each online CPU: one value when all agree, else an object from CPU list
    /// to value.
    fn by_cpu<T: Into<Value>>(&mut self, name: &str, read: impl Fn(&Root, u32) -> Found<T>) {
        let fact = by_cpu(&self.online, |cpu| read(self.root, cpu).map(Into::into));
        self.facts.insert(name.to_owned(), fact);
    }

    /// Major and minor number of the kernel's release.
    fn version(&self) -> Option<(u32, u32)> {
        let mut parts = self.release.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// The kernel's command line, word by word.
    fn command_line(&self) -> Found<Vec<String>> {
        let text = self.root.read_trimmed("/proc/cmdline")?;
        Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
    }
}

/// Groups CPUs by what `read` gives for each.
fn by_cpu(cpus: &CpuSet, read: impl Fn(u32) -> Found<Value>) -> Fact {
    let mut groups: Vec<(Found<Value>, Vec<u32>)> = Vec::new();
    for cpu in cpus.iter() {
        // The reason names the path of its own CPU: two absent files are the same answer.
        let same = |a: &Found<Value>, b: &Found<Value>| match (a, b) {
            (Ok(a), Ok(b)) => a == b,
            (Err(a), Err(b)) => std::mem::discriminant(a) == std::mem::discriminant(b),
            _ => false,
        };
        let found = read(cpu);
        match groups.iter_mut().find(|(f, _)| same(f, &found)) {
            Some((_, list)) => list.push(cpu),
            None => groups.push((found, vec![cpu])),
        }
    }
    if groups.len() > 1 {
        let object: Map<String, Value> = groups
            .into_iter()
            .map(|(found, list)| {
                let key = list.into_iter().collect::<CpuSet>().to_string();
                (key, found.unwrap_or_else(|e| Value::from(e.to_string())))
            })
            .collect();
        return Fact::Value(object.into());
    }
    match groups.pop() {
        Some((found, _)) => found.map_or_else(Fact::from, Fact::Value),
        None => Missing::Unknown("which CPUs are online is not known".to_owned()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_agree_are_one_value() {
        let cpus: CpuSet = [0, 1, 2, 5].into_iter().collect();
        assert_eq!(by_cpu(&cpus, |_| Ok("a".into())), Fact::of("a"));
        let mixed = by_cpu(&cpus, |c| match c {
            5 => Err(Missing::Unknown("no".into())),
            c => Ok((c < 2).into()),
        });
        let want = serde_json::json!({"0-1": true, "2": false, "5": "unknown: no"});
        assert_eq!(mixed, Fact::Value(want));
        let none = by_cpu(&cpus, |c| Err(Missing::NotApplicable(format!("cpu{c}"))));
        assert_eq!(none, Fact::NotApplicable("cpu0".into()));
        assert!(matches!(by_cpu(&CpuSet::default(), |_| Ok(1.into())), Fact::Unknown(_)));
    }

    #[test]
    fn what_changed_and_what_vanished() {
        let facts = |list: &[(&str, i64)]| -> Facts {
            list.iter().map(|(k, v)| ((*k).to_owned(), Fact::of(*v))).collect()
        };
        let out = changed(&facts(&[("a", 1), ("b", 2), ("c", 3)]), &facts(&[("a", 1), ("b", 5)]));
        assert_eq!(out.get("b"), Some(&Fact::of(5)));
        assert!(matches!(out.get("c"), Some(Fact::Unknown(_))));
        assert_eq!(out.len(), 2);
    }
}
