// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as checks see it: read once, asked often.
//!
//! Context: COLD, some 10 ms. Reads only.

use std::cell::OnceCell;
use tailbound_core::order;

use serde_json::Value;
use tailbound_core::CpuSet;
use tailbound_core::record::{Fact, Facts};
use tailbound_host::cgroups::Process;
use tailbound_host::interrupts::{Interrupts, interrupts};
use tailbound_host::root::{Found, Root};
use tailbound_host::threads::{Thread, threads};
use tailbound_host::{Cpus, GroupLimits, group_limits, inventory, kmsg};

use crate::need::Need;
use crate::outcome::CheckOutcome;
use crate::sample::Sample;

/// What the real-time work is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// It wakes up, works and sleeps.
    #[default]
    Cyclic,
    /// It never sleeps.
    Polling,
}

/// What is to be checked.
#[derive(Clone, Debug, Default)]
pub struct CheckScope {
    /// CPUs for real-time work; where none are named, those that are isolated.
    pub rt_cpus: CpuSet,
    /// What the work is like.
    pub workload: Workload,
    /// The program that is to be in time.
    pub pid: Option<u32>,
    /// Its threads of these names alone, or all.
    pub comm: Vec<String>,
}

/// One machine.
#[derive(Debug)]
pub struct Machine {
    /// Where it is read.
    pub root: Root,
    /// Facts of the inventory.
    pub facts: Facts,
    /// Major and minor number of the kernel.
    pub release: (u32, u32),
    /// Online CPUs.
    pub online: CpuSet,
    /// CPUs for real-time work.
    pub rt: CpuSet,
    /// The others.
    pub hk: CpuSet,
    /// What is to be checked.
    pub wanted: CheckScope,
    /// Two looks some seconds apart, where there were two.
    pub sample: Option<Sample>,
    threads: OnceCell<Found<Vec<Thread>>>,
    interrupts: OnceCell<Found<Interrupts>>,
    log: OnceCell<Found<Vec<String>>>,
    group: OnceCell<Found<GroupLimits>>,
}

impl Machine {
    /// Reads a machine.
    #[must_use]
    pub fn read(root: &Root, wanted: CheckScope, sample: Option<Sample>) -> Self {
        Self { sample, ..Self::with_facts(root, wanted, inventory(root)) }
    }

    /// The same, of facts that were read already.
    #[must_use]
    pub fn with_facts(root: &Root, wanted: CheckScope, facts: Facts) -> Self {
        let release = root.read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpus = Cpus::read(root).ok();
        let online = cpus.as_ref().map(|c| c.online.clone()).unwrap_or_default();
        let mut rt = wanted.rt_cpus.clone();
        if rt.is_empty() {
            let nohz = root.cpus("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
            let isolated = cpus.map(|c| c.isolated).unwrap_or_default();
            rt = isolated.iter().chain(nohz.iter()).collect();
        }
        Self {
            facts,
            release: kmsg::release(&release),
            hk: online.minus(&rt),
            online,
            rt,
            wanted,
            sample: None,
            root: root.clone(),
            threads: OnceCell::new(),
            interrupts: OnceCell::new(),
            log: OnceCell::new(),
            group: OnceCell::new(),
        }
    }

    /// Every thread.
    pub(crate) fn threads(&self) -> Result<&[Thread], CheckOutcome> {
        let found = self.threads.get_or_init(|| threads(&self.root));
        found.as_ref().map(Vec::as_slice).map_err(|e| e.clone().into())
    }

    /// Every interrupt.
    pub(crate) fn interrupts(&self) -> Result<&Interrupts, CheckOutcome> {
        let found = self.interrupts.get_or_init(|| interrupts(&self.root));
        found.as_ref().map_err(|e| e.clone().into())
    }

    /// What the kernel said since boot, as far as it still has it.
    pub(crate) fn log(&self) -> Result<&[String], CheckOutcome> {
        let found = self.log.get_or_init(|| kmsg::messages(&self.root));
        found.as_ref().map(Vec::as_slice).map_err(|e| e.clone().into())
    }

    /// The last message with one of these words.
    pub(crate) fn said(&self, words: &[&str]) -> Result<Option<&str>, CheckOutcome> {
        let hit = |line: &&String| words.iter().any(|w| line.contains(w));
        Ok(self.log()?.iter().rev().find(hit).map(String::as_str))
    }

    /// A fact's value.
    pub(crate) fn fact(&self, name: &str) -> Result<&Value, CheckOutcome> {
        match self.facts.get(name) {
            Some(Fact::Value(value)) => Ok(value),
            Some(Fact::Unknown(why)) => Err(CheckOutcome::unknown(why.clone())),
            Some(Fact::NotApplicable(why)) => Err(CheckOutcome::not_applicable(why.clone())),
            None => Err(CheckOutcome::unknown(format!("there is no fact {name}"))),
        }
    }

    /// A fact's text.
    pub(crate) fn word(&self, name: &str) -> Result<String, CheckOutcome> {
        let value = self.fact(name)?;
        Ok(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// A file's number.
    pub(crate) fn number(&self, path: &str) -> Result<i64, CheckOutcome> {
        Ok(self.root.parsed(path)?)
    }

    /// A file's text.
    pub(crate) fn text(&self, path: &str) -> Result<String, CheckOutcome> {
        Ok(self.root.read_trimmed(path)?)
    }

    /// The value of a parameter of the kernel's command line; empty for one without a value. The last counts.
    pub(crate) fn parameter(&self, name: &str) -> Result<Option<String>, CheckOutcome> {
        Ok(self.words()?.iter().rev().find_map(|word| match word.split_once('=') {
            Some((n, value)) if n == name => Some(value.to_owned()),
            None if word == name => Some(String::new()),
            _ => None,
        }))
    }

    /// The kernel's command line.
    pub(crate) fn words(&self) -> Result<Vec<String>, CheckOutcome> {
        let text = self.text("/proc/cmdline")?;
        Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// Is it a kernel with PREEMPT_RT?
    pub(crate) fn is_rt(&self) -> bool {
        // Where nothing tells it is taken for none: no check is ok because of that.
        let version = self.root.read_trimmed("/proc/sys/kernel/version").unwrap_or_default();
        version.contains("PREEMPT_RT") || self.number("/sys/kernel/realtime") == Ok(1)
    }

    /// Is it an x86 machine? Unknown machines are not.
    pub(crate) fn is_x86(&self) -> bool {
        let info = self.root.text("/proc/cpuinfo").unwrap_or_default();
        info.lines().any(|l| l.starts_with("vendor_id"))
    }

    /// The hypervisor's name; `None` on bare metal and where nobody knows.
    pub(crate) fn hypervisor(&self) -> Option<String> {
        self.word("virt.kind").ok().filter(|k| k != "none")
    }

    /// An option of the kernel's configuration.
    pub(crate) fn config(&self, option: &str) -> Result<Option<String>, CheckOutcome> {
        let release = self.root.read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(self.root.kernel_option(&release, option)?)
    }

    /// The memory nodes.
    pub(crate) fn nodes(&self) -> usize {
        let names = self.root.list("/sys/devices/system/node").unwrap_or_default();
        names
            .iter()
            .filter(|n| n.strip_prefix("node").is_some_and(|r| r.parse::<u32>().is_ok()))
            .count()
    }

    /// Running programs of these names.
    pub(crate) fn running(&self, names: &[&str]) -> Result<Vec<String>, CheckOutcome> {
        let is_one = |t: &&Thread| {
            t.pid == t.tid && !t.kernel && names.iter().any(|n| t.name.starts_with(n))
        };
        let mut found: Vec<String> =
            self.threads()?.iter().filter(is_one).map(|t| t.name.clone()).collect();
        order::by(&mut found, Ord::cmp);
        found.dedup();
        Ok(found)
    }

    /// Major and minor number of the kernel.
    pub(crate) fn linux(&self) -> Result<(u32, u32), CheckOutcome> {
        match self.release {
            (0, 0) => Err(CheckOutcome::unknown("/proc/sys/kernel/osrelease cannot be read")),
            known => Ok(known),
        }
    }

    /// What control groups allow the program that is to be in time; where none was named, this one.
    pub(crate) fn group(&self) -> Result<&GroupLimits, CheckOutcome> {
        let found = self.group.get_or_init(|| group_limits(&self.root, self.process()));
        found.as_ref().map_err(|e| e.clone().into())
    }

    /// The program that is to be in time; where none was named, this one.
    pub(crate) fn process(&self) -> Process {
        self.wanted.pid.map_or(Process::Own, Process::Pid)
    }

    /// Threads of the program that is to be in time.
    pub(crate) fn target(&self) -> Result<Vec<&Thread>, CheckOutcome> {
        let Some(pid) = self.wanted.pid else {
            return Err(CheckOutcome::not_applicable("no program was named (PID, --comm)"));
        };
        let comm = &self.wanted.comm;
        let named = |t: &&Thread| comm.is_empty() || comm.contains(&t.name);
        let own: Vec<&Thread> = self.threads()?.iter().filter(|t| t.pid == pid).collect();
        if own.is_empty() {
            return Err(CheckOutcome::unknown(format!("there is no process {pid}")));
        }
        let own: Vec<&Thread> = own.into_iter().filter(named).collect();
        if own.is_empty() {
            let names = comm.join(" or ");
            return Err(CheckOutcome::unknown(format!("process {pid} has no thread {names}")));
        }
        Ok(own)
    }

    /// The real-time CPUs among `cpus`.
    pub(crate) fn rt_in(&self, cpus: &CpuSet) -> CpuSet {
        cpus.and(&self.rt)
    }

    /// Why a check with this need cannot be made.
    pub(crate) fn lacks(&self, need: Need) -> Option<CheckOutcome> {
        let not = |why: &str| Some(CheckOutcome::not_applicable(why));
        match need {
            Need::RtCpus if self.rt.is_empty() => {
                not("no CPUs for real-time work were named (--rt-cpus) or found")
            }
            Need::X86 if !self.is_x86() => not("this is not an x86 machine"),
            Need::Guest if self.hypervisor().is_none() => Some(match self.facts.get("virt.kind") {
                Some(Fact::Unknown(why)) => CheckOutcome::unknown(why.clone()),
                _ => CheckOutcome::not_applicable("this is not a virtual machine"),
            }),
            Need::Metal => self.hypervisor().map(|kind| {
                CheckOutcome::not_applicable(format!(
                    "a virtual machine ({kind}): the host decides"
                ))
            }),
            Need::Target if self.wanted.pid.is_none() => not("no program was named (PID, --comm)"),
            Need::Polling if self.wanted.workload != Workload::Polling => {
                not("for programs that never sleep (--workload polling)")
            }
            Need::Sample if self.sample.is_none() => {
                Some(CheckOutcome::unknown("it takes some seconds of watching: add --sample 5s"))
            }
            Need::Numa if self.nodes() < 2 => not("the machine has one memory node"),
            _ => None,
        }
    }

    /// A text of a fix with this machine's CPUs.
    #[must_use]
    pub fn filled(&self, text: &str) -> String {
        let list = |cpus: &CpuSet, word: &str| {
            if cpus.is_empty() { word.to_owned() } else { cpus.to_string() }
        };
        let group = self.group().ok();
        let lift = group.and_then(|g| Some(g.quota.as_ref().ok()?.as_ref()?.lift.as_str()));
        let budget = group.and_then(|g| Some(g.budget.as_ref().ok()?.file.as_str()));
        let mask = self.hk.iter().filter(|c| *c < 64).fold(0u64, |m, c| m | 1 << c);
        text.replace("{rt}", &list(&self.rt, "LIST"))
            .replace("{hk}", &list(&self.hk, "OTHERS"))
            .replace("{mask}", &format!("{mask:x}"))
            .replace("{budget}", budget.unwrap_or("cpu.rt_runtime_us of the group"))
            .replace("{lift}", lift.unwrap_or_default())
    }
}
