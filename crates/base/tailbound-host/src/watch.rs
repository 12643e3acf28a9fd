// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps an eye on the machine during a run: one look at the start, one per second, one at
//! the end.
//!
//! Context: COLD, on a CPU that is not measured; a look is about a millisecond, one in
//! [`SCAN_EVERY`] also goes through all threads of the machine. Nothing is changed, and what
//! could reach a measured CPU (interrupts, locks of its run queue) is read seldom or not at all.
//! Rule for readers of the findings: a later finding of the same id replaces the earlier one.
//! Not here: what is looked for (`disturbances`, a file each).

use std::collections::BTreeMap;
use tailbound_core::order;

use tailbound_core::disturbance::{CpuTaken, DisturbanceKind, DisturbanceRecord};
use tailbound_core::record::{Fact, Facts, ThreadRecord};
use tailbound_core::{CpuSet, Finding, Impact};

use crate::cpus;
use crate::disturbances::readings::Readings;
use crate::disturbances::traffic::Switches;
use crate::disturbances::{self, Disturbance, Look, faults};
use crate::inventory::{changed, inventory};
use crate::kmsg::KernelLog;
use crate::procstat::{self, Ticks};
use crate::root::{Found, Missing, Root};
use crate::tasks;
use crate::watch_plan::WatchPlan;

/// Looks between two scans of all threads: a scan reads a few files per thread.
pub const SCAN_EVERY: u64 = 10;

/// How much a look reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookKind {
    /// No threads: that takes a few files each.
    Brief,
    /// All threads too.
    Whole,
    /// The same, at the end of the run.
    Last,
}

/// The eye on one run.
pub struct Watch {
    root: Root,
    plan: WatchPlan,
    cpus: CpuSet,
    before: Facts,
    log: KernelLog,
    disturbances: Vec<Box<dyn Disturbance>>,
    reported: BTreeMap<String, Finding>,
    looks: u64,
    /// Of the look before, and of the last.
    ticks: [Found<Ticks>; 2],
    /// What else each look reads; `None` before the first.
    readings: Option<Readings>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("plan", &self.plan).field("looks", &self.looks).finish()
    }
}

impl Watch {
    /// Takes the first look: call it when the measured threads are ready to run, before the
    /// first activation. `before` are the facts that the run was begun with, `switches` those of the time before it began
    /// anything. What it already notices comes with the first [`Watch::tick`].
    #[must_use]
    pub fn begin(root: &Root, plan: &WatchPlan, before: Facts, switches: Switches) -> Self {
        let cpus = if plan.cpus.is_empty() {
            cpus::online(root).unwrap_or_default()
        } else {
            plan.cpus.clone()
        };
        let (log, backlog) = KernelLog::open(root);
        let mut watch = Self {
            root: root.clone(),
            plan: plan.clone(),
            cpus,
            before,
            log,
            disturbances: Vec::new(),
            reported: BTreeMap::new(),
            looks: 0,
            ticks: [const { Err(Missing::Unknown(String::new())) }; 2],
            readings: None,
        };
        let first = watch.look(backlog, LookKind::Whole);
        watch.ticks = [first.ticks.clone(), first.ticks.clone()];
        watch.readings = Some(Readings::begin(&first));
        watch.disturbances = disturbances::all(&first, &watch.before, switches);
        watch
    }

    /// The facts at the start.
    #[must_use]
    pub fn before(&self) -> &Facts {
        &self.before
    }

    /// Looks again, once a second: what is newly noticed, or is worse than when it was noticed.
    pub fn tick(&mut self) -> Vec<Finding> {
        self.looks = self.looks.saturating_add(1);
        let kind = match self.looks.is_multiple_of(SCAN_EVERY) {
            true => LookKind::Whole,
            false => LookKind::Brief,
        };
        let findings = self.findings(kind);
        let mut new = Vec::new();
        for finding in findings {
            let worse =
                self.reported.get(&finding.id).is_none_or(|old| finding.impact > old.impact);
            if worse {
                self.reported.insert(finding.id.clone(), finding.clone());
                new.push(finding);
            }
        }
        new
    }

    /// What was taken from the look before the last to the last, `span_ns` and up to `t_ns`; reads nothing.
    #[must_use]
    pub fn taken(&mut self, t_ns: i64, span_ns: i64) -> DisturbanceRecord {
        let read = self.readings.as_mut().map(Readings::record).unwrap_or_default();
        let mut record = DisturbanceRecord { t_ns, span_ns, ..read };
        match &self.ticks {
            [Ok(before), Ok(now)] => {
                for taken in disturbances::taken(&self.cpus, before, now) {
                    match record.cpus.iter_mut().find(|c| c.cpu == taken.cpu) {
                        Some(cpu) => {
                            let CpuTaken { waited_ns, frequency_khz, .. } = *cpu;
                            *cpu = CpuTaken { waited_ns, frequency_khz, ..taken };
                        }
                        None => record.cpus.push(taken),
                    }
                }
                order::by_key(&mut record.cpus, |c| c.cpu);
            }
            [Err(_), Err(_)] => {}
            _ => record.unread.extend([
                DisturbanceKind::Steal,
                DisturbanceKind::Interrupt,
                DisturbanceKind::Softirq,
            ]),
        }
        record
    }

    /// Takes the last look: the facts that changed since the start and those only known now
    /// (`watch.*`: what was watched with which evidence), and every finding that is new or
    /// whose figures have grown since it was told. `threads` are the measured threads with
    /// their counters.
    #[must_use]
    pub fn end(mut self, threads: &[ThreadRecord]) -> (Facts, Vec<Finding>) {
        let mut findings = self.findings(LookKind::Last);
        let (fault_findings, fault_fact) = faults::judge(threads);
        findings.extend(fault_findings);
        findings.retain(|f| self.reported.get(&f.id) != Some(f));

        let mut facts = changed(&self.before, &inventory(&self.root));
        facts.insert("watch.page-faults".to_owned(), fault_fact);
        for disturbance in &self.disturbances {
            for (name, fact) in disturbance.watched() {
                facts.insert(format!("watch.{name}"), fact);
            }
        }
        for (name, fact) in self.readings.iter().flat_map(|r| r.watched(&self.root)) {
            facts.insert(format!("watch.{name}"), fact);
        }
        facts.insert("watch.kernel-log".to_owned(), self.log_fact());
        findings.extend(self.blind(&facts));
        (facts, findings)
    }

    /// Where a whole file system is not there, with everything that could therefore not be watched.
    fn blind(&self, facts: &Facts) -> Option<Finding> {
        let trees = [
            ("/proc", "/proc/uptime", "mount -t proc proc /proc"),
            ("/sys", "/sys/devices/system/cpu/online", "mount -t sysfs sysfs /sys"),
        ];
        let gone: Vec<_> =
            trees.into_iter().filter(|(_, file, _)| self.root.text(file).is_err()).collect();
        if gone.is_empty() {
            return None;
        }
        let unseen: Vec<&str> = facts
            .iter()
            .filter(|(_, fact)| !matches!(fact, Fact::Value(_)))
            .filter_map(|(name, _)| name.strip_prefix("watch."))
            .collect();
        let names = gone.iter().map(|(tree, ..)| *tree).collect::<Vec<_>>().join(" and ");
        let mounts = gone.iter().map(|(.., mount)| *mount).collect::<Vec<_>>().join("; ");
        let finding = Finding::new(
            "unwatched",
            Impact::Doubt,
            format!("{names} cannot be read; not watched during the run: {}", unseen.join(", ")),
        );
        Some(
            finding
                .meaning("What disturbs a measurement, or makes its figures those of another machine, could not be looked for: the figures are what was measured, and why is unknown.")
                .remedy(format!("Make {names} visible ({mounts}; in a container: without masking it), and measure again.")),
        )
    }

    fn log_fact(&self) -> Fact {
        match (&self.log.missing, self.log.lost) {
            (Some(why), _) => why.clone().into(),
            (None, 0) => Fact::of("watched"),
            (None, n) => Fact::Unknown(format!(
                "the kernel overwrote records before they were read, {n} times"
            )),
        }
    }

    fn findings(&mut self, kind: LookKind) -> Vec<Finding> {
        let records = self.log.read_new();
        let look = self.look(records, kind);
        self.ticks.swap(0, 1);
        self.ticks[1].clone_from(&look.ticks);
        if let Some(readings) = self.readings.as_mut().filter(|_| !look.last) {
            readings.look(&look);
        }
        self.disturbances.iter_mut().flat_map(|s| s.look(&look)).collect()
    }

    fn look(&self, log: Vec<crate::kmsg::Record>, kind: LookKind) -> Look {
        Look {
            root: self.root.clone(),
            plan: self.plan.clone(),
            cpus: self.cpus.clone(),
            online: cpus::online(&self.root),
            ticks: procstat::read(&self.root),
            uptime_s: uptime(&self.root),
            tasks: (kind != LookKind::Brief).then(|| tasks::scan(&self.root, &self.cpus)),
            log,
            log_missing: self.log.missing.clone(),
            last: kind == LookKind::Last,
        }
    }
}

fn uptime(root: &Root) -> Found<f64> {
    let text = root.read_trimmed("/proc/uptime")?;
    text.split(' ')
        .next()
        .and_then(|w| w.parse().ok())
        .ok_or_else(|| Missing::Unknown("/proc/uptime is not a number".to_owned()))
}
