// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread that another one wakes: was that one late itself, who kept it off its CPU, and who was to
//! wake it in turn. A priority inversion is such a wait.
//!
//! Units: ns. System calls are not among the events: that the two met at a lock is not
//! known, that the one waited for the other is.
//! Source: Documentation/locking/rt-mutex-design.rst (unbounded priority inversion).

use std::collections::BTreeMap;

use tailbound_core::blame::{Cause, Sureness};
use tailbound_core::units::format_ns_i64;

use super::charge::{Charge, SegmentContext};
use super::cpu::CpuActivity;
use super::engine::Engine;
use super::explain::offset;
use super::ground::{since, total};
use super::thread::ORDINARY;
use super::wakeup::Waker;

/// Longest chain that is told.
const LINKS_MAX: usize = 5;

/// What a thread did until it woke another.
#[derive(Debug, Default)]
struct Wait {
    /// It was ready and had no CPU.
    kept_off_ns: i64,
    /// Who had its CPU in that time, and how long.
    by: BTreeMap<i32, i64>,
    /// It slept, until it was woken: when, and by whom (0: an interrupt).
    woken: Option<(u64, i32)>,
}

impl Engine {
    /// What the time until a wake-up by another thread is charged to; `None` where an interrupt woke it.
    pub(super) fn waker(&self, place: &SegmentContext, waker: Waker, from: u64) -> Option<Charge> {
        if waker.by_interrupt || waker.pid <= 0 {
            return None;
        }
        let who = self.thread_name(waker.pid);
        let late = Charge { cause: Cause::Waker, who: who.clone(), sureness: Sureness::Sure };
        let Some(by) = self.inverted_by(place.prio, &waker, from) else { return Some(late) };
        let who = format!("{who} behind {}", self.thread_name(by));
        Some(Charge { cause: Cause::PriorityInversion, who, sureness: Sureness::Sure })
    }

    /// Who kept the owner of a lock off its CPU most, where that was an inversion for the thread of priority
    /// `prio` that waited from `from` until the owner woke it: who keeps the owner off would not keep off the one that
    /// waits.
    pub(crate) fn inverted_by(&self, prio: i32, owner: &Waker, from: u64) -> Option<i32> {
        let lower = |pid: i32| self.threads.get(&pid).is_some_and(|t| t.prio > prio);
        if !lower(owner.pid) {
            return None;
        }
        let wait = self.wait(owner.pid, owner.at.cpu, from, owner.at.t_ns);
        let by: Vec<(i32, i64)> = wait.by.into_iter().filter(|(pid, _)| lower(*pid)).collect();
        let sum = total(by.iter().map(|(_, ns)| *ns));
        let whole_ns = since(owner.at.t_ns, from);
        let most = by.into_iter().max_by_key(|(_, ns)| *ns);
        most.filter(|_| sum.saturating_mul(2) >= whole_ns).map(|(pid, _)| pid)
    }

    /// What `pid` waited for on `cpu` between two times.
    fn wait(&self, pid: i32, cpu: u32, from: u64, to: u64) -> Wait {
        let Some(thread) = self.threads.get(&pid) else { return Wait::default() };
        let mut kept_off_ns = 0i64;
        let mut by: BTreeMap<i32, i64> = BTreeMap::new();
        for (begin, end) in thread.waits_between(from, to) {
            kept_off_ns = kept_off_ns.saturating_add(since(end, begin));
            let segments = self
                .cpus
                .get(&cpu)
                .map_or_else(Vec::new, |c| c.between(begin, end, CpuActivity::Thread));
            for s in segments.iter().filter(|s| s.what.is_thread() && s.pid > 0 && s.pid != pid) {
                let sum = by.entry(s.pid).or_default();
                *sum = sum.saturating_add(s.ns());
            }
        }
        Wait {
            kept_off_ns,
            by,
            woken: thread.wakers.iter().rev().find(|(t, _)| (from..=to).contains(t)).copied(),
        }
    }

    /// The chain of those who had to act before the thread could be woken, in sentences.
    pub(super) fn owners(&self, due_ns: u64, waker: &Waker) -> Vec<String> {
        let mut out = Vec::new();
        let (mut pid, cpu, mut to) = (waker.pid, waker.at.cpu, waker.at.t_ns);
        while out.len() < LINKS_MAX && pid > 0 && to > due_ns {
            let wait = self.wait(pid, cpu, due_ns, to);
            let mut did = Vec::new();
            if wait.kept_off_ns > 0 {
                let most = wait.by.into_iter().max_by_key(|(_, ns)| *ns);
                let by = most.map_or_else(String::new, |(by, ns)| {
                    format!(", {} of it because of {}", format_ns_i64(ns), self.with_priority(by))
                });
                let ns = format_ns_i64(wait.kept_off_ns);
                did.push(format!("was ready and had no CPU for {ns}{by}"));
            }
            if let Some((t, by)) = wait.woken {
                let at = offset(since(t, due_ns));
                let by = if by > 0 { self.thread_name(by) } else { "an interrupt".to_owned() };
                did.push(format!("had slept until {by} woke it at {at}"));
            }
            if did.is_empty() {
                break;
            }
            out.push(format!("{} {}.", self.with_priority(pid), did.join(", and ")));
            match wait.woken {
                Some((t, by)) if by > 0 && t < to => (pid, to) = (by, t),
                _ => break,
            }
        }
        out
    }

    /// `load/1-13 (real-time priority 60)`.
    fn with_priority(&self, pid: i32) -> String {
        let name = self.thread_name(pid);
        let Some(thread) = self.threads.get(&pid) else { return name };
        let inherited = if thread.inherited { ", inherited" } else { "" };
        match thread.prio {
            ..0 => format!("{name} (deadline{inherited})"),
            prio @ 0..ORDINARY => {
                let prio = (ORDINARY - 1).saturating_sub(prio);
                format!("{name} (real-time priority {prio}{inherited})")
            }
            _ => format!("{name} (ordinary)"),
        }
    }
}
