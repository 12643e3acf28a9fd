// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that could run and do not get to it for long: who, since when, and who has their CPU.
//!
//! Units: ns of CLOCK_MONOTONIC. Looks are far apart and find the same thread with the same progress, so
//! that a wait is at least as long as it says. Where the kernel says that hardly a thread waited for a CPU (PSI), no
//! thread can have waited all the time, and nothing is read.
//! Not here: waits of real-time threads, which are counted to the ns (`counter`); ending it (`Boost`).
//! Source: Documentation/accounting/psi.rst, proc_pid_stat(5).

use std::collections::BTreeMap;

use serde::Serialize;
use tailbound_host::pressure;
use tailbound_host::root::{Found, Root};
use tailbound_host::runnable::{RunProgress, Runnable, runnable};

use crate::window::{Before, Policy};

/// Looks within the threshold, and how far apart they are at least and at most.
const LOOKS: i64 = 3;
const LOOK_MIN_NS: i64 = 1_000_000_000;
const LOOK_MAX_NS: i64 = 10_000_000_000;
/// Threads of a window that are told one by one.
const TOLD_MAX: u64 = 100;
/// The kernel adds pressure up every 2 s: a shorter time says nothing.
const CALM_MIN_NS: i64 = 5_000_000_000;

/// Who has the CPU of a starving thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Starver {
    /// The one of the highest rank that ran there since the look before.
    Known(Before),
    /// `unknown: reason`
    Unknown(&'static str),
}

/// One thread that starves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Starving {
    /// Its name.
    pub comm: String,
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// When it began, in ticks since boot.
    #[serde(skip)]
    pub start_ticks: u64,
    /// Its policy.
    pub policy: Policy,
    /// In whose queue it waits.
    pub cpu: u32,
    /// When it was first seen not to run.
    pub since_ns: i64,
    /// For at least so long.
    pub for_ns: i64,
    /// Who has the CPU.
    pub by: Starver,
}

const ALONE: &str =
    "unknown: nothing else is runnable on that CPU: a limit of its group, or real-time throttling";
const NOBODY_RAN: &str =
    "unknown: no thread of that CPU ran between two looks and is still runnable";

impl Starver {
    fn of(by: &Runnable) -> Self {
        let policy = Policy::of(by.policy, by.priority);
        Self::Known(Before { comm: by.name.clone(), tid: by.tid, policy })
    }

    /// Is it known, and no real-time thread?
    #[must_use]
    pub fn is_ordinary(&self) -> bool {
        matches!(self, Self::Known(by) if !by.policy.is_realtime())
    }
}

/// What a look came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StarvingChange {
    /// It starves for longer than the threshold.
    Starves(Starving),
    /// It ran again, or does not want to any more; `for_ns` is until the last look that saw it starve.
    Over(Starving),
}

/// A thread as it was when it was first seen with this progress.
#[derive(Clone, Debug)]
struct Standstill {
    start_ticks: u64,
    progress: RunProgress,
    since_ns: i64,
    told: Option<Starving>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct StarvationWatch {
    threshold_ns: i64,
    next_ns: i64,
    /// The last look, and what the kernel had counted of waiting.
    before: Option<(i64, Option<u64>)>,
    all: BTreeMap<u32, Standstill>,
    /// Of this window.
    told: u64,
    /// Of those, the ones of windows before.
    carried: u64,
}

/// How long threads waited for a CPU since boot, in µs.
fn pressure_us(root: &Root) -> Option<u64> {
    pressure::total_us(root, "cpu", "some ").ok()
}

/// Above whom a policy goes: deadline, real-time by priority, all others.
fn rank(thread: &Runnable) -> (u32, u32) {
    match thread.policy {
        6 => (2, 0),
        1 | 2 => (1, thread.priority),
        _ => (0, 0),
    }
}

impl StarvationWatch {
    pub(crate) fn new(threshold_ns: i64, now_ns: i64) -> Self {
        Self {
            threshold_ns,
            next_ns: now_ns,
            before: None,
            all: BTreeMap::new(),
            told: 0,
            carried: 0,
        }
    }

    fn every_ns(&self) -> i64 {
        (self.threshold_ns / LOOKS).clamp(LOOK_MIN_NS, LOOK_MAX_NS)
    }

    /// From now to the next look.
    pub(crate) fn left_ns(&self, now_ns: i64) -> i64 {
        self.next_ns.saturating_sub(now_ns).max(0)
    }

    /// A new window begins; how many began to starve in the one before, and how many starved in it.
    pub(crate) fn next_window(&mut self) -> (u64, u64) {
        let began = std::mem::take(&mut self.told);
        let all = began.saturating_add(self.carried);
        self.carried = u64::try_from(self.now().count()).unwrap_or(u64::MAX);
        (began, all)
    }

    /// Threads that starve now.
    pub(crate) fn now(&self) -> impl Iterator<Item = &Starving> {
        self.all.values().filter_map(|s| s.told.as_ref())
    }

    /// Looks, if it is time.
    ///
    /// # Errors
    /// Nobody's progress can be read.
    pub(crate) fn look(&mut self, root: &Root, now_ns: i64) -> Found<Vec<StarvingChange>> {
        if now_ns < self.next_ns {
            return Ok(Vec::new());
        }
        self.next_ns = now_ns.saturating_add(self.every_ns());
        let pressure = pressure_us(root);
        let calm = self
            .before
            .is_some_and(|(at, was)| is_calm(now_ns.saturating_sub(at), was, pressure, cpus(root)));
        self.before = Some((now_ns, pressure));
        let threads = if calm { Vec::new() } else { runnable(root)? };
        Ok(self.judge(threads, now_ns))
    }

    fn judge(&mut self, threads: Vec<Runnable>, now_ns: i64) -> Vec<StarvingChange> {
        let before = std::mem::take(&mut self.all);
        let mut turns = Vec::new();
        let stood = |t: &Runnable| {
            let was = before.get(&t.tid)?;
            (was.start_ticks == t.start_ticks && was.progress == t.progress).then_some(was)
        };
        for thread in &threads {
            let fresh = Standstill {
                start_ticks: thread.start_ticks,
                progress: thread.progress,
                since_ns: now_ns,
                told: None,
            };
            let mut state = stood(thread).cloned().unwrap_or(fresh);
            let for_ns = now_ns.saturating_sub(state.since_ns);
            if let Some(told) = &mut state.told {
                told.for_ns = for_ns;
            } else if for_ns >= self.threshold_ns {
                let there = || threads.iter().filter(|t| t.cpu == thread.cpu);
                let ran = there().filter(|t| stood(t).is_none()).max_by_key(|t| rank(t));
                let by = match ran {
                    Some(by) => Starver::of(by),
                    // A thread that alone is runnable there runs, on a CPU whose ticks are off.
                    None if there().all(|t| t.tid == thread.tid) => Starver::Unknown(ALONE),
                    None => Starver::Unknown(NOBODY_RAN),
                };
                let starving = starving(thread, state.since_ns, for_ns, by);
                if self.told < TOLD_MAX {
                    turns.push(StarvingChange::Starves(starving.clone()));
                }
                self.told = self.told.saturating_add(1);
                state.told = Some(starving);
            }
            self.all.insert(thread.tid, state);
        }
        let over = |(tid, was): (u32, Standstill)| {
            let goes_on = self.all.get(&tid).is_some_and(|s| s.told.is_some());
            was.told.filter(|_| !goes_on).map(StarvingChange::Over)
        };
        turns.extend(before.into_iter().filter_map(over).take(TOLD_MAX as usize));
        turns
    }
}

fn starving(thread: &Runnable, since_ns: i64, for_ns: i64, by: Starver) -> Starving {
    Starving {
        comm: thread.name.clone(),
        pid: thread.pid,
        tid: thread.tid,
        start_ticks: thread.start_ticks,
        policy: Policy::of(thread.policy, thread.priority),
        cpu: thread.cpu,
        since_ns,
        for_ns,
        by,
    }
}

fn cpus(root: &Root) -> i64 {
    let online = root.cpus("/sys/devices/system/cpu/online").map_or(0, |cpus| cpus.len());
    i64::try_from(online).unwrap_or(i64::MAX)
}

/// Can no thread have waited all the time? Pressure is the mean of the CPUs that have work: one thread that waits on one of
/// them is at least its part. Half of that is left for what is rounded.
fn is_calm(elapsed_ns: i64, was_us: Option<u64>, is_us: Option<u64>, cpus: i64) -> bool {
    let (Some(was), Some(is)) = (was_us, is_us) else { return false };
    let waited_ns = i64::try_from(is.saturating_sub(was)).unwrap_or(i64::MAX).saturating_mul(1000);
    cpus > 0
        && elapsed_ns >= CALM_MIN_NS
        && waited_ns.saturating_mul(cpus).saturating_mul(2) < elapsed_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn thread(tid: u32, cpu: u32, (policy, priority): (u32, u32), run_ns: u64) -> Runnable {
        Runnable {
            pid: tid / 10,
            tid,
            start_ticks: 5,
            name: format!("t{tid}"),
            policy,
            priority,
            cpu,
            progress: RunProgress { run_ns, turns: 1, cpu_ticks: 0 },
        }
    }

    fn watch() -> StarvationWatch {
        StarvationWatch::new(30 * S, 0)
    }

    #[test]
    fn a_thread_that_stands_still_for_longer_than_the_threshold_is_told_once_with_who_ran() {
        let mut watch = watch();
        let look = |watch: &mut StarvationWatch, at: i64| {
            let run = u64::try_from(at).unwrap();
            // A hog, a thread below it that ran too, one on another CPU, and two that wait.
            let all = vec![
                thread(10, 1, (1, 50), run),
                thread(11, 1, (0, 0), run),
                thread(12, 2, (1, 99), run),
                thread(20, 1, (0, 0), 7),
                thread(21, 2, (1, 10), 7),
            ];
            watch.judge(all, at)
        };
        for at in [0, 10, 20] {
            assert_eq!(look(&mut watch, at * S), [], "{at} s");
        }
        let told = look(&mut watch, 30 * S);
        let [StarvingChange::Starves(a), StarvingChange::Starves(b)] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert_eq!((a.tid, a.pid, a.cpu, a.since_ns, a.for_ns), (20, 2, 1, 0, 30 * S));
        let by = |s: &Starving| match &s.by {
            Starver::Known(by) => (by.tid, by.policy.to_string()),
            Starver::Unknown(why) => panic!("{why}"),
        };
        assert_eq!((by(a), by(b)), ((10, "fifo:50".to_owned()), (12, "fifo:99".to_owned())));
        assert_eq!(b.policy.to_string(), "fifo:10");
        assert_eq!(look(&mut watch, 40 * S), [], "once");
        assert_eq!((watch.now().count(), watch.next_window()), (2, (2, 2)));
        // One runs, the other ends; the wait is as long as it was seen.
        let over = watch.judge(vec![thread(20, 1, (0, 0), 8)], 50 * S);
        let lengths: Vec<(u32, i64)> = over
            .iter()
            .map(|t| match t {
                StarvingChange::Over(s) => (s.tid, s.for_ns),
                StarvingChange::Starves(s) => panic!("{s:?}"),
            })
            .collect();
        assert_eq!(lengths, [(20, 40 * S), (21, 40 * S)]);
        assert_eq!((watch.now().count(), watch.next_window()), (0, (0, 2)));
        assert_eq!(watch.next_window(), (0, 0));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_thread_and_nobody_is_named_for_nothing() {
        let mut watch = watch();
        let mut one = thread(20, 1, (0, 0), 7);
        for at in [0, 20] {
            assert_eq!(watch.judge(vec![one.clone()], at * S), []);
        }
        one.start_ticks = 6;
        assert_eq!(watch.judge(vec![one.clone()], 40 * S), []);
        let told = watch.judge(vec![one.clone()], 80 * S);
        let [StarvingChange::Starves(s)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(s.since_ns, 40 * S);
        let why = |s: &Starving| serde_json::to_string(&s.by).unwrap();
        assert!(why(s).contains("unknown: nothing else is runnable"), "{}", why(s));
        // What ran and sleeps now is not there to be named.
        let mut watch = super::tests::watch();
        let two = vec![one, thread(21, 1, (0, 0), 7)];
        let told: Vec<StarvingChange> =
            [0, 40].iter().flat_map(|at| watch.judge(two.clone(), at * S)).collect();
        let [StarvingChange::Starves(s), StarvingChange::Starves(_)] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert!(why(s).contains("unknown: no thread of that CPU ran"), "{}", why(s));
    }

    #[test]
    fn without_pressure_nothing_is_read_and_a_flood_is_counted() {
        // Of four CPUs one had a thread that waited all of 10 s: a quarter.
        let calm = |ms: u64| is_calm(10 * S, Some(5), Some(5 + ms * 1000), 4);
        assert!(calm(0) && calm(1_000) && !calm(2_500) && !calm(10_000));
        assert!(!is_calm(10 * S, None, Some(5), 4) && !is_calm(10 * S, Some(5), Some(5), 0));
        assert!(!is_calm(2 * S, Some(5), Some(5), 4), "the kernel's figure may be as old");
        let mut watch = watch();
        let many: Vec<Runnable> = (1..=150).map(|tid| thread(tid, 0, (0, 0), 1)).collect();
        assert_eq!(watch.judge(many.clone(), 0), []);
        assert_eq!(watch.judge(many, 31 * S).len(), 100);
        assert_eq!(watch.next_window(), (150, 150));
    }

    #[test]
    fn a_tree_of_files_is_looked_at_when_it_is_time() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let stat = |tid: u32, priority: u32| {
            let policy = u32::from(priority > 0);
            format!(
                "{tid} (t{tid}) R 2 0 0 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 12 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 {priority} {policy} 0"
            )
        };
        let root = Root::at(dir.path());
        let mut watch = watch();
        put("sys/devices/system/cpu/online", "0-1\n");
        put("proc/7/task/8/stat", &stat(8, 0));
        put("proc/7/task/8/schedstat", "100 9 2");
        put("proc/7/task/9/stat", &stat(9, 60));
        let mut told = Vec::new();
        for second in 0..=32i64 {
            put("proc/7/task/9/schedstat", &format!("{second} 0 1"));
            // The hog's CPU is half of all.
            put("proc/pressure/cpu", &format!("some avg10=50.00 total={}\n", second * 500_000));
            told.extend(watch.look(&root, second * S).unwrap());
        }
        let [StarvingChange::Starves(s)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((s.tid, s.pid, s.cpu, s.for_ns), (8, 7, 1, 30 * S));
        assert!(matches!(&s.by, Starver::Known(by) if by.tid == 9));
        assert_eq!(watch.left_ns(32 * S), 8 * S);
        // Pressure stands still: the thread ran or ended, and nothing is read to know it.
        std::fs::remove_dir_all(dir.path().join("proc/7")).unwrap();
        let told = watch.look(&root, 40 * S).unwrap();
        assert!(matches!(told.as_slice(), [StarvingChange::Over(_)]), "{told:?}");
    }
}
