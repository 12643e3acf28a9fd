// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads and interrupts that began while a change was applied and inherited it: a daemon that was
//! started on the CPUs that were left to it, the interrupts of a network device that was brought up.
//!
//! CPUs and policy are handed on by fork(2) and clone(2), so what was changed on one thread lives on
//! in those that it began, also after it was put back. An heir is given the state that the thread
//! which began it had before the change. Only what is still exactly as it was handed on is an heir:
//! what was given other CPUs since is left.
//! Who began a thread is known while that process lives, or where a process that the change
//! covered took it over. Otherwise the thread may have been put there on purpose: it is told, and left.
//! Source: sched(7), fork(2), Documentation/core-api/irq/irq-affinity.rst (default_smp_affinity).

use std::collections::HashMap;

use serde::Serialize;
use tailbound_core::Policy;
use tailbound_host::root::Found;
use tailbound_host::threads::Thread;

use crate::journal::Transaction;
use crate::machine::{Moment, System};
use crate::step::State;
use crate::target::{DEFAULT_AFFINITY, Target, ThreadId, ThreadProperty};

/// What inherited a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heir {
    /// The thread's CPUs or policy, or the interrupt's CPUs.
    pub target: Target,
    /// As it is now, and as the change had written it.
    pub now: State,
    /// As that from which it inherited was before the change.
    pub before: State,
    /// From which.
    pub lineage: Lineage,
}

/// Where a state was inherited from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lineage {
    /// From that, which the change covered.
    From(String),
    /// Who began it has ended.
    Unknown,
}

/// A state that a change wrote on a thread.
struct Written<'a> {
    id: &'a ThreadId,
    old: &'a State,
    ours: &'a State,
    property: ThreadProperty,
}

/// The heirs of `transaction` on `system`, after its steps were undone.
///
/// # Errors
/// The moment of the change is not in its journal, or the threads cannot be read.
pub(crate) fn heirs(system: &dyn System, transaction: &Transaction) -> Found<Vec<Heir>> {
    let Some(plan) = transaction.plan() else { return Ok(Vec::new()) };
    let (mut written, mut default) = (Vec::new(), None);
    let ever = transaction.made_ever();
    for made in &ever {
        let Some(step) = plan.steps.get(made.step) else { continue };
        let (old, ours) = (&made.old, made.now.as_ref().unwrap_or(&step.new));
        if old == ours {
            continue;
        }
        if let Some((id, property)) = step.target.thread() {
            written.push(Written { id, old, ours, property });
        } else if matches!(&step.target, Target::Setting { path, .. } if path == DEFAULT_AFFINITY) {
            default = Some(DefaultAffinity { before: old, ours });
        }
    }
    if written.is_empty() && default.is_none() {
        return Ok(Vec::new());
    }
    let moment = transaction.moment().ok_or_else(|| {
        tailbound_host::Missing::Unknown(
            "the journal does not say at which moment after the boot the change was made"
                .to_owned(),
        )
    })?;
    let mut found = Vec::new();
    if !written.is_empty() {
        found.extend(of_threads(system, &written, moment)?);
    }
    if let Some(default) = default {
        found.extend(of_interrupts(system, &default, moment)?);
    }
    Ok(found)
}

/// The affinity that new interrupts get.
struct DefaultAffinity<'a> {
    before: &'a State,
    /// As the change had set it.
    ours: &'a State,
}

fn of_interrupts(
    system: &dyn System,
    default: &DefaultAffinity<'_>,
    moment: &Moment,
) -> Found<Vec<Heir>> {
    let new = system.moment()?.interrupts.into_iter().filter(|i| !moment.interrupts.contains(i));
    let heir = |id| {
        let target = Target::Interrupt(id);
        let now = system.read(&target).ok()?;
        let lineage = Lineage::From(DEFAULT_AFFINITY.to_owned());
        (now == *default.ours).then(|| Heir {
            target,
            now,
            before: default.before.clone(),
            lineage,
        })
    };
    Ok(new.filter_map(heir).collect())
}

fn of_threads(system: &dyn System, written: &[Written<'_>], moment: &Moment) -> Found<Vec<Heir>> {
    let threads = system.threads()?;
    let family = Family::new(&threads, written, moment);
    let mut found = Vec::new();
    for thread in threads.iter().filter(|t| family.is_new(t)) {
        for property in ThreadProperty::ALL {
            let target = property.of(ThreadId::from(thread));
            // One that ends meanwhile needs nothing.
            let Ok(now) = system.read(&target) else { continue };
            // Most threads have an ordinary policy, and none needs to be given a real-time one.
            if property == ThreadProperty::Policy && !is_real_time(&now) {
                continue;
            }
            let same = |w: &&Written<'_>| w.property == property && *w.ours == now;
            let candidates: Vec<&Written<'_>> = written.iter().filter(same).collect();
            let heir = |before: &State, lineage| {
                let (target, now) = (target.clone(), now.clone());
                Heir { target, now, before: before.clone(), lineage }
            };
            match family.ancestor(thread, &candidates) {
                Some(from) => {
                    found.push(heir(from.old, Lineage::From(from.id.to_string())));
                }
                None => {
                    found.extend(unanimous(&candidates).map(|old| heir(old, Lineage::Unknown)));
                }
            }
        }
    }
    Ok(found)
}

/// The state before that all of them had.
fn unanimous<'a>(candidates: &[&Written<'a>]) -> Option<&'a State> {
    let first = candidates.first()?.old;
    candidates.iter().all(|c| c.old == first).then_some(first)
}

fn is_real_time(state: &State) -> bool {
    let policy = state.as_deref().and_then(|s| s.split(' ').next()?.parse::<Policy>().ok());
    matches!(policy, Some(Policy::Fifo(_) | Policy::Rr(_)))
}

/// Who began whom.
struct Family<'a> {
    /// The process that began each process.
    parents: HashMap<u32, u32>,
    /// The process of each thread that the change covered and that is still there.
    covered: HashMap<(u32, u64), u32>,
    moment: &'a Moment,
}

impl<'a> Family<'a> {
    fn new(threads: &[Thread], written: &[Written<'_>], moment: &'a Moment) -> Self {
        let parents = threads.iter().map(|t| (t.pid, t.parent)).collect();
        let is_covered = |t: &&Thread| {
            written.iter().any(|w| (w.id.tid, w.id.start_ticks) == (t.tid, t.start_ticks))
        };
        let covered =
            threads.iter().filter(is_covered).map(|t| ((t.tid, t.start_ticks), t.pid)).collect();
        Self { parents, covered, moment }
    }

    /// Did it begin after the change, by fork? The kernel's threads inherit nothing.
    fn is_new(&self, thread: &Thread) -> bool {
        thread.start_ticks >= self.moment.ticks
            && !thread.kernel
            && thread.pid != std::process::id()
            && !self.covered.contains_key(&(thread.tid, thread.start_ticks))
    }

    /// The nearest of `candidates` in its own process, in the one that began that, and so on.
    fn ancestor<'b>(
        &self,
        thread: &Thread,
        candidates: &[&'b Written<'b>],
    ) -> Option<&'b Written<'b>> {
        let process = |w: &Written<'_>| self.covered.get(&(w.id.tid, w.id.start_ticks)).copied();
        let mut pid = thread.pid;
        // No process is its own ancestor, but two looks at /proc may differ.
        for _ in 0..self.parents.len() {
            let here: Vec<&Written<'_>> =
                candidates.iter().copied().filter(|w| process(w) == Some(pid)).collect();
            let first = here.iter().copied().find(|w| w.id.tid == pid);
            if let Some(found) = first.or_else(|| unanimous(&here).and(here.first().copied())) {
                return Some(found);
            }
            pid = *self.parents.get(&pid)?;
        }
        None
    }
}
