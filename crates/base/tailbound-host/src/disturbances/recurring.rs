// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who comes evenly while a run goes on: threads above the measured ones and interrupts of measured CPUs, by their
//! counts at each look; and what the kernel does every so often, by its settings.
//!
//! Units: counts, s, ns. A count that stays near a straight line over the whole run comes at a period; one that does
//! not is left out. Interrupts are counted from the first scan on, in files that take no lock of an interrupt.
//! Source: Documentation/ABI/testing/sysfs-kernel-irq, admin-guide/sysctl/{kernel,vm}.rst,
//! admin-guide/mm/transhuge.rst.

use std::collections::BTreeMap;

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::record::Fact;
use tailbound_core::recurring::{Recurring, RecurringKind};
use tailbound_sys::hostinfo;

use super::Look;
use crate::root::Root;

const IRQS: &str = "/sys/kernel/irq";
/// Machines with more lines are left alone.
const LINES_MAX: usize = 512;
/// Most interrupts whose counts are read at each look.
const INTERRUPTS_MAX: usize = 16;
/// An interrupt that comes more often between two scans has no period that anybody would look for.
const OFTEN: u64 = 2000;
/// Most points of a course; a long one keeps every second, every fourth and so on.
const POINTS_MAX: usize = 512;
/// Fewest looks that show a course.
const LOOKS_MIN: usize = 6;
/// So far may a count be from the line: it stands still between two events, and one may be late.
const OFF_MAX: f64 = 1.5;

/// An interrupt on one CPU.
type Line = (u32, u32);

/// Settings of the kernel that are periods: name, file, ns of one unit.
const SETTINGS: [(&str, &str, i64); 5] = [
    ("the period of real-time throttling", "/proc/sys/kernel/sched_rt_period_us", 1000),
    ("the update of memory statistics", "/proc/sys/vm/stat_interval", 1_000_000_000),
    ("the write-back of dirty pages", "/proc/sys/vm/dirty_writeback_centisecs", 10_000_000),
    // Two fifths of the threshold. Source: kernel/watchdog.c.
    ("the watchdog of lock-ups", "/proc/sys/kernel/watchdog_thresh", 400_000_000),
    (
        "the machine check",
        "/sys/devices/system/machinecheck/machinecheck0/check_interval",
        1_000_000_000,
    ),
];

/// From this release on most kernels throttle no real-time threads, whatever the setting says.
const THROTTLES_UNTIL: (u32, u32) = (6, 12);

/// The counts of one thing, look by look.
#[derive(Clone, Debug)]
struct Course {
    kind: RecurringKind,
    name: String,
    cpu: Option<u32>,
    points: Vec<(f64, u64)>,
    /// Looks from one point to the next, and those since the last.
    every: usize,
    since: usize,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Courses {
    threads: BTreeMap<u32, Course>,
    interrupts: BTreeMap<Line, Course>,
    /// The counts of the scan before, until it is known which interrupts are read.
    scanned: Option<BTreeMap<Line, u64>>,
    chosen: bool,
}

impl Course {
    fn new(kind: RecurringKind, name: String, cpu: Option<u32>) -> Self {
        Self { kind, name, cpu, points: Vec::new(), every: 1, since: 0 }
    }

    fn add(&mut self, at_s: f64, count: u64) {
        self.since = self.since.saturating_add(1);
        if self.since < self.every && !self.points.is_empty() {
            return;
        }
        self.since = 0;
        self.points.push((at_s, count));
        if self.points.len() > POINTS_MAX {
            self.points = self.points.iter().step_by(2).copied().collect();
            self.every = self.every.saturating_mul(2);
        }
    }

    /// What recurs, if the counts are near a line.
    fn recurring(&self) -> Option<Recurring> {
        let ((from_s, from), (to_s, to)) = (*self.points.first()?, *self.points.last()?);
        let (span_s, count) = (to_s - from_s, to.checked_sub(from)?);
        if self.points.len() < LOOKS_MIN || count < Recurring::COUNT_MIN || span_s <= 0.0 {
            return None;
        }
        let off = |(at_s, n): &(f64, u64)| {
            let expected = count.real() * (at_s - from_s) / span_s;
            (n.saturating_sub(from).real() - expected).abs()
        };
        self.points.iter().all(|p| off(p) <= OFF_MAX).then(|| Recurring {
            kind: self.kind,
            name: self.name.clone(),
            cpu: self.cpu,
            count,
            span_ns: (span_s * 1e9).whole_i64(),
            period_ns: None,
        })
    }
}

impl Courses {
    /// One thread's turns, at a look.
    pub(crate) fn thread(
        &mut self,
        look: &Look,
        tid: u32,
        (name, cpu): (&str, Option<u32>),
        n: u64,
    ) {
        let Ok(at_s) = look.uptime_s else { return };
        let new = || Course::new(RecurringKind::Thread, name.to_owned(), cpu);
        let course = self.threads.entry(tid).or_insert_with(new);
        if course.name != name || course.points.last().is_some_and(|(_, before)| *before > n) {
            // Another thread with this number.
            *course = new();
        }
        course.add(at_s, n);
    }

    /// The interrupts of a look.
    pub(crate) fn look(&mut self, look: &Look) {
        if look.tasks.is_some() && !self.chosen {
            self.scan(look);
        }
        let Ok(at_s) = look.uptime_s else { return };
        for ((irq, cpu), course) in &mut self.interrupts {
            let n = counts(&look.root, *irq).and_then(|all| all.get(*cpu as usize).copied());
            n.into_iter().for_each(|n| course.add(at_s, n));
        }
    }

    /// Picks the interrupts that came a few times since the last scan.
    fn scan(&mut self, look: &Look) {
        let names = look.root.list(IRQS).unwrap_or_default();
        if names.len() > LINES_MAX {
            self.chosen = true;
            return;
        }
        let mut now: BTreeMap<Line, u64> = BTreeMap::new();
        for irq in names.iter().filter_map(|n| n.parse::<u32>().ok()) {
            let all = counts(&look.root, irq).unwrap_or_default();
            let of = |cpu: u32| Some(((irq, cpu), *all.get(cpu as usize)?));
            now.extend(look.cpus.iter().filter_map(of).filter(|(_, n)| *n > 0));
        }
        let Some(before) = self.scanned.replace(now.clone()) else { return };
        self.chosen = true;
        let passed = |line: &Line, n: u64| n.saturating_sub(before.get(line).copied().unwrap_or(0));
        let few = now.iter().filter(|(line, n)| (1..=OFTEN).contains(&passed(line, **n)));
        for (line, _) in few.take(INTERRUPTS_MAX) {
            let (irq, cpu) = *line;
            let actions = look.root.read_trimmed(&format!("{IRQS}/{irq}/actions"));
            let name = match actions.as_deref() {
                Ok("") | Err(_) => irq.to_string(),
                Ok(actions) => format!("{irq} ({actions})"),
            };
            self.interrupts.insert(*line, Course::new(RecurringKind::Interrupt, name, Some(cpu)));
        }
    }

    /// The list of [`tailbound_core::recurring`].
    pub(crate) fn fact(&self, root: &Root) -> Fact {
        let counted = self.threads.values().chain(self.interrupts.values());
        let all: Vec<Recurring> =
            counted.filter_map(Course::recurring).chain(settings(root)).collect();
        Fact::of(serde_json::to_value(all).unwrap_or_default())
    }
}

/// How often an interrupt came, CPU by CPU.
fn counts(root: &Root, irq: u32) -> Option<Vec<u64>> {
    let text = root.read_trimmed(&format!("{IRQS}/{irq}/per_cpu_count")).ok()?;
    text.split(',').map(|n| n.trim().parse().ok()).collect()
}

/// Those that are on: 0 and less are off.
fn settings(root: &Root) -> impl Iterator<Item = Recurring> + '_ {
    let off = |file: &str, value: i64| root.parsed::<i64>(file).is_ok_and(|v| v == value);
    let release = root.read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
    let no_throttling = hostinfo::release(&release).is_none_or(|r| r >= THROTTLES_UNTIL);
    let is_off = move |file: &str| match file {
        "/proc/sys/kernel/sched_rt_period_us" => {
            no_throttling || off("/proc/sys/kernel/sched_rt_runtime_us", -1)
        }
        "/proc/sys/kernel/watchdog_thresh" => off("/proc/sys/kernel/watchdog", 0),
        _ => false,
    };
    SETTINGS.into_iter().filter(move |(_, file, _)| !is_off(file)).filter_map(
        |(name, file, unit_ns)| {
            let period_ns = root.parsed::<i64>(file).ok()?.checked_mul(unit_ns)?;
            let setting = file.rsplit('/').next().unwrap_or(file);
            (period_ns > 0).then(|| Recurring {
                kind: RecurringKind::Setting,
                name: format!("{name} ({setting})"),
                cpu: None,
                count: 0,
                span_ns: 0,
                period_ns: Some(period_ns),
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between 0 and 1. Source: Steele, Lea and Flood 2014 (SplitMix64).
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) + 1).real() / (1u64 << 53).real()
    }

    /// Looks once a second at what comes at these times.
    fn looked_at(times_s: &[f64], length_s: u64) -> Option<Recurring> {
        let mut course = Course::new(RecurringKind::Thread, "x".to_owned(), None);
        for s in 0..=length_s {
            let n = times_s.iter().filter(|t| **t <= s.real()).count();
            course.add(s.real(), 100 + n as u64);
        }
        course.recurring()
    }

    #[test]
    fn what_comes_by_chance_has_no_period_and_what_comes_evenly_has_its_own() {
        let (state, runs) = (&mut 1u64, 1000usize);
        let mut wrong = 0;
        for _ in 0..runs {
            let length_s = 10 + (uniform(state) * 50.0) as u64;
            let mut at = 0.0;
            let next = || {
                at -= uniform(state).ln() * 0.5;
                (at < length_s.real()).then_some(at)
            };
            let times: Vec<f64> = std::iter::from_fn(next).collect();
            let found = looked_at(&times, length_s);
            wrong += usize::from(found.is_some_and(|r| r.has_period(500_000_000, 1_000_000)));
        }
        assert!(wrong * 100 <= runs, "{wrong} of {runs}");
        for i in 0..50 {
            let period_s = 0.05 + f64::from(i) * 0.02;
            let times: Vec<f64> = (0..2000)
                .map(|n| f64::from(n) * period_s + 0.01 * uniform(state))
                .take_while(|t| *t < 30.0)
                .collect();
            let found = looked_at(&times, 30).expect("it is even");
            assert!(
                found.has_period((period_s * 1e9).whole_i64(), 10_000_000),
                "{period_s}: {found:?}"
            );
        }
    }

    #[test]
    fn a_long_course_keeps_its_period_in_few_points() {
        let mut course = Course::new(RecurringKind::Interrupt, "x".to_owned(), Some(1));
        (0..100_000u64).for_each(|s| course.add(s.real(), 2 * s));
        assert!(course.points.len() <= POINTS_MAX);
        assert!(course.recurring().is_some_and(|r| r.has_period(500_000_000, 1_000_000)));
    }
}
