// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one window holds, as it is written; and reading it from what the programs counted.
//!
//! Units: ns. Bytes of another length are none. A class of the histogram is known by the largest value
//! that falls into it.

use std::collections::BTreeMap;

use serde::Serialize;
use tailbound_core::blame::{BlameRecord, Cause, Sureness};
use tailbound_core::disturbance::DisturbanceRecord;
use tailbound_trace::bpf::classes;

use crate::cost::Cost;
use crate::layout::{CLASSES, entry, key, late};
use crate::outbox::OutboxState;

/// Source: include/linux/sched.h, PF_KTHREAD.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Numbers that no policy of the kernel has.
const REALTIME: u32 = u32::MAX - 1;
const SEVERAL: u32 = u32::MAX;

/// A policy and its priority, as people write them: `fifo:80`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Policy {
    number: u32,
    priority: u32,
}

impl Policy {
    /// A real-time one: whether SCHED_FIFO or SCHED_RR is not known.
    pub(crate) fn realtime(priority: u32) -> Self {
        Self { number: REALTIME, priority }
    }

    /// SCHED_DEADLINE.
    pub(crate) fn deadline() -> Self {
        Self { number: 6, priority: 0 }
    }

    /// What goes together, of many.
    pub(crate) fn several() -> Self {
        Self { number: SEVERAL, priority: 0 }
    }

    /// Is it one of those that are counted?
    pub(crate) fn is_realtime(self) -> bool {
        matches!(self.number, 1 | 2 | 6 | REALTIME)
    }

    /// By the kernel's number.
    #[must_use]
    pub fn of(number: u32, priority: u32) -> Self {
        Self { number, priority }
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number {
            0 => f.write_str("other"),
            1 => write!(f, "fifo:{}", self.priority),
            2 => write!(f, "rr:{}", self.priority),
            3 => f.write_str("batch"),
            5 => f.write_str("idle"),
            6 => f.write_str("deadline"),
            REALTIME => write!(f, "real-time:{}", self.priority),
            SEVERAL => f.write_str("(several)"),
            n => write!(f, "policy {n}"),
        }
    }
}

impl Serialize for Policy {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Who had the CPU until a thread got it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Before {
    /// Its name; of `swapper/N`, the idle thread, the CPU had nothing else to do.
    pub comm: String,
    /// Its number; 0 of the idle thread.
    pub tid: u32,
    /// Its policy.
    pub policy: Policy,
}

/// The longest wait of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worst {
    /// How long.
    pub wait_ns: u64,
    /// When it ended.
    pub at_ns: u64,
    /// Where.
    pub cpu: u32,
    /// Who had the CPU until then.
    pub before: Before,
}

/// Counts by class: `upper_ns[i]` is the largest value of the class with `count[i]`; empty classes are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Classes {
    /// Largest values, ascending.
    pub upper_ns: Vec<u64>,
    /// How many.
    pub count: Vec<u64>,
}

impl Classes {
    /// One more in the class that ends at `upper`.
    pub(crate) fn add(&mut self, upper: u64) {
        match self.upper_ns.binary_search(&upper) {
            Ok(at) => self.count.iter_mut().skip(at).take(1).for_each(|n| *n = n.saturating_add(1)),
            Err(at) => {
                self.upper_ns.insert(at, upper);
                self.count.insert(at, 1);
            }
        }
    }
}

/// The largest value of the class of `ns`, as the programs in the kernel have them.
pub(crate) fn class_of(ns: u64) -> u64 {
    let ns = ns.max(4);
    let shift = ns.ilog2().saturating_sub(2);
    let above = u128::from(ns >> shift).saturating_add(1) << shift;
    u64::try_from(above.saturating_sub(1)).unwrap_or(u64::MAX)
}

/// Who made a wake-up late.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    /// What kind.
    pub cause: Cause,
    /// Which, as the kernel names it.
    pub who: String,
    /// Both, for people.
    pub sentence: String,
    /// How much of the wait it took.
    pub share_ns: i64,
    /// How sure that is.
    pub sureness: Sureness,
}

/// [`Culprit`], or why nobody can be named.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Named {
    /// The recorder shows it.
    Known(Culprit),
    /// `unknown: reason`
    Unknown(String),
}

/// What the flight recorder wrote of one late wake-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dump {
    /// The file, for `tailbound blame` and trace-cmd.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// Since when the recorder was on without a break.
    pub on_since_ns: u64,
    /// The first event that it holds.
    pub from_ns: Option<u64>,
    /// When the thread got its CPU.
    pub at_ns: u64,
    /// How long it waited for it.
    pub wait_ns: u64,
    /// Its name.
    pub comm: String,
    /// Its number.
    pub tid: u32,
    /// Who made it late.
    pub culprit: Named,
    /// The same part by part, where it is known: for a run file.
    #[serde(skip)]
    pub record: Option<Box<BlameRecord>>,
}

/// When the flight recorder saw nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gaps {
    /// For so long it was off: while a file was written.
    pub off_ns: i64,
    /// Late wake-ups that fell into that, whole or in part: they can have no file.
    pub late: u64,
}

/// One thread in one window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadWindow {
    /// Its name, as it was at its longest wait.
    pub comm: String,
    /// Its number, in the first PID namespace.
    pub tid: u32,
    /// Is it a thread of the kernel? None where that is not known any more.
    pub kernel: Option<bool>,
    /// Its policy and priority, as they were last.
    pub policy: Policy,
    /// Where it began to run last.
    pub cpu: u32,
    /// Is it the monitor's own light probe?
    #[serde(rename = "probe", skip_serializing_if = "std::ops::Not::not")]
    pub is_probe: bool,
    /// Wake-ups.
    pub n: u64,
    /// The sum of the waits.
    pub sum_ns: u64,
    /// The longest.
    pub worst: Worst,
    /// The latest of its wake-ups that the flight recorder wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Dump>,
    /// All of them.
    pub histogram: Classes,
}

/// One wake-up over the threshold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Late {
    /// When it got its CPU.
    pub at_ns: u64,
    /// How long it waited for it.
    pub wait_ns: u64,
    /// Where.
    pub cpu: u32,
    /// Its name.
    pub comm: String,
    /// Its number.
    pub tid: u32,
    /// Its policy.
    pub policy: Policy,
    /// Who had the CPU until then.
    pub before: Before,
}

/// One window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// 1, 2, …
    pub window: u64,
    /// The time of the day at its end.
    pub utc: String,
    /// From, on CLOCK_MONOTONIC, which stands still during a suspend.
    pub begin_ns: i64,
    /// Until.
    pub end_ns: i64,
    /// Of the time between, what the machine slept (suspend).
    pub suspended_ns: i64,
    /// By how much the time of the day went another way: steps, and what NTP does slowly.
    pub realtime_shift_ns: i64,
    /// CPUs that were online at the end, or why that is unknown.
    pub cpus_online: String,
    /// Those at the begin, if they were others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_online_before: Option<String>,
    /// Wake-ups that were counted.
    pub n: u64,
    /// Wake-ups that are not counted: the kernel's tables were full.
    pub lost: u64,
    /// Wake-ups over the threshold; none without one.
    pub late: u64,
    /// Of those, the ones that were not told one by one.
    pub late_untold: u64,
    /// Threads that could run and did not for longer than the threshold of starving; none where nobody looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starving: Option<u64>,
    /// Late wake-ups that the flight recorder could not write.
    pub not_recorded: u64,
    /// With a flight recorder: when it saw nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder_gaps: Option<Gaps>,
    /// Windows before this one that could not be written (a full disk).
    pub not_written: u64,
    /// With an upload: how its run files stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<OutboxState>,
    /// What the monitor itself cost, since it began.
    pub own: Cost,
    /// What comes with the late ones of the last windows, where that is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What was taken of the CPUs in it.
    #[serde(skip)]
    pub taken: DisturbanceRecord,
    /// The threads that were woken.
    pub threads: Vec<ThreadWindow>,
}

fn bytes<const N: usize>(from: &[u8], at: i16) -> Option<[u8; N]> {
    let at = usize::try_from(at).ok()?;
    from.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn double(from: &[u8], at: i16) -> Option<u64> {
    bytes(from, at).map(u64::from_ne_bytes)
}

pub(crate) fn word(from: &[u8], at: i16) -> Option<u32> {
    bytes(from, at).map(u32::from_ne_bytes)
}

fn name(from: &[u8], at: i16) -> Option<String> {
    let comm: [u8; 16] = bytes(from, at)?;
    let end = comm.iter().position(|b| *b == 0).unwrap_or(comm.len());
    Some(String::from_utf8_lossy(comm.get(..end)?).into_owned())
}

/// The counts of all classes of an entry.
pub(crate) fn counts(value: &[u8]) -> impl Iterator<Item = (usize, u64)> + '_ {
    (0..CLASSES).filter_map(|class| {
        let at = entry::CLASS.checked_add(i16::try_from(class.checked_mul(8)?).ok()?)?;
        double(value, at).filter(|n| *n > 0).map(|n| (class, n))
    })
}

/// One thread, from its key and what is kept of it.
pub(crate) fn thread(of: &[u8], value: &[u8]) -> Option<ThreadWindow> {
    let mut histogram = Classes::default();
    for (class, n) in counts(value) {
        histogram.upper_ns.push(classes::upper(class));
        histogram.count.push(n);
    }
    Some(ThreadWindow {
        comm: name(value, entry::COMM)?,
        tid: word(of, key::TID)?,
        kernel: Some(word(value, entry::FLAGS)? & KERNEL_THREAD != 0),
        policy: Policy::of(word(value, entry::POLICY)?, word(value, entry::PRIORITY)?),
        cpu: word(value, entry::CPU)?,
        n: double(value, entry::N)?,
        sum_ns: double(value, entry::SUM)?,
        worst: Worst {
            wait_ns: double(value, entry::MAX)?,
            at_ns: double(value, entry::MAX_AT)?,
            cpu: word(value, entry::MAX_CPU)?,
            before: Before {
                comm: name(value, entry::BEFORE_COMM)?,
                tid: word(value, entry::BEFORE_TID)?,
                policy: Policy::of(
                    word(value, entry::BEFORE_POLICY)?,
                    word(value, entry::BEFORE_PRIORITY)?,
                ),
            },
        },
        is_probe: false,
        recorded: None,
        histogram,
    })
}

/// One wake-up over the threshold, from the ring.
pub(crate) fn told(from: &[u8]) -> Option<Late> {
    if from.len() < late::BYTES {
        return None;
    }
    Some(Late {
        at_ns: double(from, late::T)?,
        wait_ns: double(from, late::LATENCY)?,
        cpu: word(from, late::CPU)?,
        comm: name(from, late::COMM)?,
        tid: word(from, late::TID)?,
        policy: Policy::of(word(from, late::POLICY)?, word(from, late::PRIORITY)?),
        before: Before {
            comm: name(from, late::BEFORE_COMM)?,
            tid: word(from, late::BEFORE_TID)?,
            policy: Policy::of(
                word(from, late::BEFORE_POLICY)?,
                word(from, late::BEFORE_PRIORITY)?,
            ),
        },
    })
}

/// Threads of one name and policy, added up since the begin: what a series of Prometheus is. Numbers of threads are not in
/// it, or a machine that starts threads all day would make a new series for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Series {
    pub(crate) n: u64,
    pub(crate) sum_ns: u64,
    /// Of the window that is under way or the last one.
    pub(crate) max_ns: u64,
    pub(crate) classes: BTreeMap<u64, u64>,
}

impl Series {
    pub(crate) fn add(&mut self, thread: &ThreadWindow) {
        self.n = self.n.saturating_add(thread.n);
        self.sum_ns = self.sum_ns.saturating_add(thread.sum_ns);
        self.max_ns = self.max_ns.max(thread.worst.wait_ns);
        for (upper, n) in thread.histogram.upper_ns.iter().zip(&thread.histogram.count) {
            let sum = self.classes.entry(*upper).or_default();
            *sum = sum.saturating_add(*n);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn put(to: &mut [u8], at: i16, value: &[u8]) {
        let at = usize::try_from(at).unwrap();
        to.get_mut(at..at + value.len()).unwrap().copy_from_slice(value);
    }

    /// One wake-up of 5 ns and one of 700 ns.
    pub(crate) fn raw(tid: u32, comm: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut of, mut value) = (vec![0; key::BYTES], vec![0; entry::BYTES]);
        put(&mut of, key::TID, &tid.to_ne_bytes());
        put(&mut value, entry::COMM, comm);
        put(&mut value, entry::POLICY, &1u32.to_ne_bytes());
        put(&mut value, entry::PRIORITY, &80u32.to_ne_bytes());
        for (at, n) in [(entry::N, 2u64), (entry::SUM, 705), (entry::MAX, 700), (entry::MAX_AT, 9)]
        {
            put(&mut value, at, &n.to_ne_bytes());
        }
        put(&mut value, entry::BEFORE_COMM, b"swapper/1\0");
        for class in [1i16, 29] {
            put(&mut value, entry::CLASS + class * 8, &1u64.to_ne_bytes());
        }
        (of, value)
    }

    #[test]
    fn a_thread_is_read_and_one_that_is_cut_off_is_none() {
        let (of, value) = raw(7, b"control\0");
        let t = thread(&of, &value).unwrap();
        assert_eq!((t.comm.as_str(), t.tid, t.n, t.sum_ns), ("control", 7, 2, 705));
        assert_eq!((t.policy.to_string(), t.kernel), ("fifo:80".into(), Some(false)));
        assert_eq!((t.worst.wait_ns, t.worst.before.comm.as_str()), (700, "swapper/1"));
        assert_eq!(t.histogram, Classes { upper_ns: vec![5, 767], count: vec![1, 1] });
        for length in 0..entry::CLASS as usize {
            assert!(thread(&of, value.get(..length).unwrap()).is_none(), "{length}");
        }
        assert!(thread(&[], &value).is_none() && told(&[0; late::BYTES - 1]).is_none());
    }

    #[test]
    fn classes_are_those_of_the_programs_in_the_kernel() {
        let uppers: Vec<u64> = (0..CLASSES).map(classes::upper).collect();
        for value in (0..5000).chain([1 << 20, (1 << 20) - 1, 3 << 30]) {
            let first = uppers.iter().find(|upper| **upper >= value).unwrap();
            assert_eq!(class_of(value), *first, "{value}");
        }
        assert_eq!(class_of(u64::MAX), u64::MAX);
        let mut all = Classes::default();
        [9, 5, 9].into_iter().for_each(|upper| all.add(upper));
        assert_eq!(all, Classes { upper_ns: vec![5, 9], count: vec![1, 2] });
    }

    #[test]
    fn threads_of_one_name_are_one_series() {
        let mut series = Series::default();
        for tid in [7, 8] {
            let (of, value) = raw(tid, b"control\0");
            series.add(&thread(&of, &value).unwrap());
        }
        assert_eq!((series.n, series.sum_ns, series.max_ns), (4, 1410, 700));
        assert_eq!(series.classes, BTreeMap::from([(5, 2), (767, 2)]));
    }
}
