// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a look reads beside findings, to be laid beside the late activations: quota, firmware interrupts, pressure,
//! frequency, how long the measured threads were ready and waited, and which real-time threads ran above them.
//!
//! Units: ns, kHz, counts; each look has what passed since the one before.
//! A look reads a few small files more. None of them interrupts a measured CPU: firmware interrupts are counted by
//! another CPU, and the frequency is read only where the kernel keeps it (on x86 since Linux 5.18).
//! What cannot be read at the start is never in a record, and `watched` says why; what fails later is named in the
//! record. Threads above are those of the last scan.
//! Not here: time by /proc/stat (`taken`). Source: Documentation/accounting/psi.rst, scheduler/sched-stats.rst,
//! arch/x86/kernel/cpu/aperfmperf.c.

use std::collections::{BTreeMap, BTreeSet};

use tailbound_core::CpuSet;
use tailbound_core::disturbance::{
    CpuTaken, DisturbanceKind as Kind, DisturbanceRecord, MachineTaken, RanAbove,
};
use tailbound_core::record::Fact;

use super::higher_priority::comes_before;
use super::recurring::Courses;
use super::{Look, frequency, quota};
use crate::root::{Found, Missing, Root};
use crate::schedstat::Schedstat;
use crate::{pressure, smi, tasks};

/// Most threads above whose time is read at each look.
const ABOVE_MAX: usize = 32;
/// Pressure of less than so much between two looks is none: there is always a little.
const PRESSURE_MIN_NS: i64 = 1_000_000;
/// Since then reading a frequency interrupts no CPU on x86.
const FREQUENCY_SINCE: (u32, u32) = (5, 18);

/// Files of /proc/pressure, the line that counts, and what they tell.
const PRESSURES: [(&str, &str, Kind); 4] = [
    ("cpu", "some ", Kind::CpuPressure),
    ("io", "some ", Kind::IoPressure),
    ("memory", "some ", Kind::MemoryPressure),
    ("irq", "full ", Kind::IrqPressure),
];

/// Kinds that come from /proc/stat.
const PROC_STAT: [Kind; 3] = [Kind::Steal, Kind::Interrupt, Kind::Softirq];

/// Something that the kernel counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counter {
    /// By the folder of the group.
    Quota(String),
    Firmware,
    Pressure(Kind),
    /// By the number of the measured thread.
    Waited(u32),
    /// By the number of the thread.
    Above(u32),
}

/// A thread whose schedstat is read.
struct ReadThread {
    /// Its folder in /proc.
    dir: String,
    /// Its name and policy.
    label: String,
    /// Where it alone may run.
    cpu: Option<u32>,
}

/// See the module.
pub(crate) struct Readings {
    groups: Vec<String>,
    smi_cpu: Option<u32>,
    /// CPUs whose frequency is read.
    frequency: CpuSet,
    measured: BTreeMap<u32, ReadThread>,
    above: Found<BTreeMap<u32, ReadThread>>,
    counts: BTreeMap<Counter, u64>,
    /// As they are, and as the last record had them.
    khz: BTreeMap<u32, i64>,
    khz_told: BTreeMap<u32, i64>,
    /// What cannot be read here.
    missing: BTreeMap<Kind, Missing>,
    newest: DisturbanceRecord,
    courses: Courses,
}

impl Readings {
    pub(crate) fn begin(first: &Look) -> Self {
        let (root, mut missing) = (&first.root, BTreeMap::new());
        let mut lacks = |kind, why: String| drop(missing.insert(kind, Missing::Unknown(why)));
        let online = first.online.as_ref().map(|c| c.iter().collect()).unwrap_or_default();
        let smi_cpu = match counting(root, online, &first.cpus) {
            Ok(cpu) => Some(cpu),
            Err(why) => {
                lacks(Kind::Firmware, why);
                None
            }
        };
        let frequency = if frequency_is_kept(root) {
            first.cpus.clone()
        } else {
            let (major, minor) = FREQUENCY_SINCE;
            lacks(
                Kind::Frequency,
                format!("before Linux {major}.{minor} to read it interrupts the CPU"),
            );
            CpuSet::default()
        };
        let measured = measured(first);
        if measured.is_empty() {
            lacks(Kind::Waited, "no measured thread is pinned to one CPU".to_owned());
        }
        let groups = match quota::groups(root) {
            Ok(groups) => groups.dirs,
            Err(why) => {
                missing.insert(Kind::Quota, why);
                Vec::new()
            }
        };
        let mut readings = Self {
            groups,
            smi_cpu,
            frequency,
            measured,
            above: Ok(BTreeMap::new()),
            counts: BTreeMap::new(),
            khz: BTreeMap::new(),
            khz_told: BTreeMap::new(),
            missing,
            newest: DisturbanceRecord::default(),
            courses: Courses::default(),
        };
        readings.look(first);
        let absent = |what: &str| Missing::NotApplicable(what.to_owned());
        if !readings.counts.keys().any(|c| matches!(c, Counter::Quota(_))) {
            let why = absent("no group around this process has throttling counters");
            readings.missing.entry(Kind::Quota).or_insert(why);
        }
        if readings.khz.is_empty() {
            let why = absent("the kernel knows of no frequency scaling here");
            readings.missing.entry(Kind::Frequency).or_insert(why);
        }
        readings
    }

    /// Reads all of it again.
    pub(crate) fn look(&mut self, look: &Look) {
        if let Some(tasks) = &look.tasks {
            self.above = above(look, tasks);
        }
        let now = self.counted(look);
        self.courses.look(look);
        let mut record = DisturbanceRecord::default();
        let mut unread = BTreeSet::new();
        let mut cpus: BTreeMap<u32, CpuTaken> = BTreeMap::new();
        for (counter, before) in &self.counts {
            let passed = now.get(counter).map(|n| n.saturating_sub(*before));
            let passed = passed.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            match (counter, passed) {
                (Counter::Waited(tid), Some(ns)) => {
                    if let Some(cpu) = self.measured.get(tid).and_then(|t| t.cpu) {
                        let of = cpus.entry(cpu).or_insert(CpuTaken { cpu, ..CpuTaken::default() });
                        of.waited_ns = of.waited_ns.saturating_add(ns);
                    }
                }
                (Counter::Above(tid), Some(ns)) if ns > 0 => {
                    record.above.extend(self.ran_above(look, *tid, ns));
                }
                (Counter::Quota(_), Some(ns)) => {
                    record.machine.quota_ns = record.machine.quota_ns.max(ns);
                }
                (Counter::Firmware, Some(n)) => record.machine.smis = n,
                (Counter::Pressure(kind), Some(ns)) if ns >= PRESSURE_MIN_NS => {
                    *pressure_of(&mut record.machine, *kind) = ns;
                }
                // Threads end.
                (Counter::Waited(_) | Counter::Above(_), _) | (_, Some(_)) => {}
                (Counter::Quota(_), None) => drop(unread.insert(Kind::Quota)),
                (Counter::Firmware, None) => drop(unread.insert(Kind::Firmware)),
                (Counter::Pressure(kind), None) => drop(unread.insert(*kind)),
            }
        }
        for cpu in self.frequency.iter() {
            match frequency::current(&look.root, cpu) {
                Some(khz) => drop(self.khz.insert(cpu, khz)),
                None if self.khz.contains_key(&cpu) => drop(unread.insert(Kind::Frequency)),
                None => {}
            }
        }
        record.cpus = cpus.into_values().filter(|c| !c.is_nothing()).collect();
        record.unread = unread.into_iter().collect();
        // What failed once is compared with its last count later.
        self.counts.retain(|c, _| !matches!(c, Counter::Waited(_) | Counter::Above(_)));
        self.counts.extend(now);
        self.newest = record;
    }

    /// What the newest look found, without its times; frequencies where they are not those of the record before.
    pub(crate) fn record(&mut self) -> DisturbanceRecord {
        let mut record = self.newest.clone();
        for (cpu, khz) in &self.khz {
            if self.khz_told.insert(*cpu, *khz) == Some(*khz) {
                continue;
            }
            match record.cpus.iter_mut().find(|c| c.cpu == *cpu) {
                Some(of) => of.frequency_khz = *khz,
                None => record.cpus.push(CpuTaken {
                    cpu: *cpu,
                    frequency_khz: *khz,
                    ..CpuTaken::default()
                }),
            }
        }
        record
    }

    fn counted(&mut self, look: &Look) -> BTreeMap<Counter, u64> {
        let (root, mut now) = (&look.root, BTreeMap::new());
        for dir in &self.groups {
            let ns = quota::held(root, dir).and_then(|h| h.ns);
            now.extend(ns.map(|ns| (Counter::Quota(dir.clone()), ns)));
        }
        if let Some(n) = self.smi_cpu.and_then(|cpu| smi::count(root, cpu).ok()) {
            now.insert(Counter::Firmware, n);
        }
        for (kind, total) in Pressures::read(root).0 {
            match total {
                Ok(ns) => drop(now.insert(Counter::Pressure(kind), ns)),
                Err(why) => drop(self.missing.entry(kind).or_insert(why)),
            }
        }
        for (tid, thread) in self.above.iter().flatten() {
            let Ok(stat) = Schedstat::read(root, &thread.dir) else { continue };
            now.insert(Counter::Above(*tid), stat.run_ns);
            self.courses.thread(look, *tid, (&thread.label, thread.cpu), stat.turns);
        }
        for (tid, thread) in &self.measured {
            let stat = Schedstat::read(root, &thread.dir);
            now.extend(stat.ok().map(|s| (Counter::Waited(*tid), s.wait_ns)));
        }
        now
    }

    /// Where the thread ran, if on a measured CPU.
    fn ran_above(&self, look: &Look, tid: u32, ns: i64) -> Option<RanAbove> {
        let thread = self.above.as_ref().ok()?.get(&tid)?;
        let cpu = thread.cpu.or_else(|| tasks::last_cpu(&look.root, &thread.dir))?;
        let ran = || RanAbove { cpu, thread: thread.label.clone(), ns };
        look.cpus.contains(cpu).then(ran)
    }

    /// What is read each second and what is not, and who came evenly.
    pub(crate) fn watched(&self, root: &Root) -> Vec<(&'static str, Fact)> {
        let lacks = |kind: &Kind| match (kind, &self.above) {
            (Kind::RanAbove, Err(why)) => Some(why),
            _ => self.missing.get(kind),
        };
        let all = Kind::ALL.iter().filter(|kind| !PROC_STAT.contains(kind));
        let (without, read): (Vec<&Kind>, Vec<&Kind>) = all.partition(|k| lacks(k).is_some());
        let read: Vec<String> = read.into_iter().map(ToString::to_string).collect();
        let why = |kind: &Kind| Some(format!("{kind} ({})", lacks(kind)?));
        let without: Vec<String> = without.into_iter().filter_map(why).collect();
        let mut words = format!("each second: {}", read.join(", "));
        if !without.is_empty() {
            words.push_str(&format!("; not: {}", without.join(", ")));
        }
        vec![("readings", Fact::of(words)), ("recurring", self.courses.fact(root))]
    }
}

/// For how long tasks waited, since the machine was started.
#[derive(Debug)]
pub(crate) struct Pressures(Vec<(Kind, Found<u64>)>);

impl Pressures {
    pub(crate) fn read(root: &Root) -> Self {
        let total_ns = |resource, line| {
            pressure::total_us(root, resource, line).map(|us| us.saturating_mul(1000))
        };
        Self(PRESSURES.map(|(resource, line, kind)| (kind, total_ns(resource, line))).into())
    }

    /// Puts into `machine` what passed up to `now`; gives back what cannot be read any more.
    pub(crate) fn passed(&self, now: &Self, machine: &mut MachineTaken) -> Vec<Kind> {
        let mut unread = Vec::new();
        for ((kind, before), (_, now)) in self.0.iter().zip(&now.0) {
            match (before, now) {
                (Ok(before), Ok(now)) => {
                    let ns = i64::try_from(now.saturating_sub(*before)).unwrap_or(i64::MAX);
                    *pressure_of(machine, *kind) = if ns < PRESSURE_MIN_NS { 0 } else { ns };
                }
                (Ok(_), Err(_)) | (Err(_), Ok(_)) => unread.push(*kind),
                (Err(_), Err(_)) => {}
            }
        }
        unread
    }
}

/// The field of a pressure.
fn pressure_of(machine: &mut MachineTaken, kind: Kind) -> &mut i64 {
    match kind {
        Kind::IoPressure => &mut machine.io_pressure_ns,
        Kind::MemoryPressure => &mut machine.memory_pressure_ns,
        Kind::IrqPressure => &mut machine.irq_pressure_ns,
        _ => &mut machine.cpu_pressure_ns,
    }
}

/// A CPU that counts firmware interrupts and is not measured.
fn counting(root: &Root, online: Vec<u32>, measured: &CpuSet) -> Result<u32, String> {
    let cpu = online.into_iter().find(|c| !measured.contains(*c));
    let cpu = cpu.ok_or("every CPU is measured, and to read a count would interrupt one")?;
    smi::count(root, cpu).map(|_| cpu).map_err(|why| why.to_string())
}

/// Does the kernel keep frequencies, so that reading one asks no CPU?
fn frequency_is_kept(root: &Root) -> bool {
    if !cfg!(target_arch = "x86_64") {
        return true;
    }
    let release = root.read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
    tailbound_sys::hostinfo::release(&release).is_some_and(|r| r >= FREQUENCY_SINCE)
}

/// The measured threads that are pinned to one CPU.
fn measured(first: &Look) -> BTreeMap<u32, ReadThread> {
    let one = |tid: &u32| {
        let dir = format!("/proc/self/task/{tid}");
        Schedstat::read(&first.root, &dir).ok()?;
        let cpu = only(&tasks::allowed(&first.root, &dir).ok()?);
        Some((*tid, ReadThread { dir, label: String::new(), cpu: Some(cpu?) }))
    };
    first.plan.threads.iter().filter_map(one).collect()
}

/// Those that the scheduler does not put behind the measured ones.
fn above(
    look: &Look,
    tasks: &Found<BTreeMap<u32, tasks::Task>>,
) -> Found<BTreeMap<u32, ReadThread>> {
    let tasks = tasks.as_ref().map_err(Clone::clone)?;
    let above: BTreeMap<u32, ReadThread> = tasks
        .values()
        .filter(|t| !look.plan.threads.contains(&t.tid) && comes_before(t, look.plan.policy))
        .map(|t| {
            let cpu = t.allowed.as_ref().and_then(only);
            (t.tid, ReadThread { dir: t.dir.clone(), label: t.label(), cpu })
        })
        .collect();
    if above.len() > ABOVE_MAX {
        return Err(Missing::Unknown(format!(
            "{} threads come before the measured ones: too many to read each second",
            above.len()
        )));
    }
    Ok(above)
}

/// The CPU of a set of one.
fn only(cpus: &CpuSet) -> Option<u32> {
    let mut all = cpus.iter();
    all.next().filter(|_| all.next().is_none())
}
