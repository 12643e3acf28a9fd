// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cpu-offline`, `affinity-changed`, `policy-changed`: the measured threads are no longer
//! where, or what, they were.
//!
//! A CPU that goes away takes the affinity of its threads with it, silently.
//! Threads are looked at with the scans only: the read takes a lock that a thread waiting for
//! a signal needs.
//! Source: Documentation/core-api/cpu_hotplug.rst, sched_setaffinity(2).

use std::collections::BTreeMap;

use tailbound_core::record::Fact;
use tailbound_core::{CpuSet, Finding, Impact};

use super::{Disturbance, Look};
use crate::root::{Missing, Root};
use crate::stat::Stat;
use crate::tasks;

/// Number and priority of a policy.
type Policy = (u64, u8);
/// Where a thread may run and with what policy.
type Placement = (CpuSet, Policy);

/// Remembers each measured thread's place.
pub(crate) struct Hotplug {
    places: BTreeMap<u32, Placement>,
    gone: CpuSet,
    moved: BTreeMap<u32, (CpuSet, CpuSet)>,
    demoted: BTreeMap<u32, (Policy, Policy)>,
    online: Option<Missing>,
    unread: Option<String>,
}

fn place(root: &Root, tid: u32) -> Option<Placement> {
    let dir = format!("/proc/self/task/{tid}");
    let stat = root.text(&format!("{dir}/stat")).ok()?;
    Some((tasks::allowed(root, &dir).ok()?, Stat::parse(&stat)?.policy()?))
}

impl Hotplug {
    pub(crate) fn begin(first: &Look) -> Self {
        let mut hotplug = Self {
            places: BTreeMap::new(),
            gone: CpuSet::default(),
            moved: BTreeMap::new(),
            demoted: BTreeMap::new(),
            online: first.online.as_ref().err().cloned(),
            unread: None,
        };
        for &tid in &first.plan.threads {
            match place(&first.root, tid) {
                Some(place) => drop(hotplug.places.insert(tid, place)),
                None => hotplug.unread = Some(format!("/proc/self/task/{tid} could not be read")),
            }
        }
        hotplug
    }
}

fn policy_name((number, priority): Policy) -> String {
    match number {
        0 => "other".to_owned(),
        1 => format!("fifo:{priority}"),
        2 => format!("rr:{priority}"),
        3 => "batch".to_owned(),
        5 => "idle".to_owned(),
        6 => "deadline".to_owned(),
        n => format!("policy {n}"),
    }
}

impl Disturbance for Hotplug {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        if let Ok(online) = &look.online {
            self.gone = crate::cpus::union(&self.gone, &look.cpus.minus(online));
        }
        for (tid, (cpus, policy)) in self.places.iter().filter(|_| look.tasks.is_some()) {
            // A thread that has ended is not there any more: nothing to compare.
            let Some((now_cpus, now_policy)) = place(&look.root, *tid) else { continue };
            if now_cpus != *cpus {
                self.moved.insert(*tid, (cpus.clone(), now_cpus));
            }
            if now_policy != *policy {
                self.demoted.insert(*tid, (*policy, now_policy));
            }
        }
        let mut out = Vec::new();
        if !self.gone.is_empty() {
            out.push(Finding::listed(
                "cpu-offline",
                Impact::Unfit,
                format!("measured CPU {} went offline during the run", self.gone),
            ));
        }
        if let Some((tid, (was, is))) = self.moved.iter().next() {
            out.push(
                Finding::listed("affinity-changed", Impact::Unfit, format!(
                    "{} measured thread(s) lost their CPU during the run: thread {tid} was bound to CPU {was} and may now run on {is}",
                    self.moved.len()
                )),
            );
        }
        if let Some((tid, (was, is))) = self.demoted.iter().next() {
            out.push(
                Finding::listed("policy-changed", Impact::Unfit, format!(
                    "{} measured thread(s) changed policy during the run: thread {tid} from {} to {}",
                    self.demoted.len(),
                    policy_name(*was),
                    policy_name(*is)
                )),
            );
        }
        out
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        let online = self.online.clone().map_or_else(|| Fact::of("watched"), Fact::from);
        let affinity = match &self.unread {
            Some(why) => Fact::Unknown(why.clone()),
            None if self.places.is_empty() => {
                Fact::Unknown("no thread numbers were given".to_owned())
            }
            None => Fact::of(format!("watched: {} threads", self.places.len())),
        };
        vec![
            ("cpu-offline", online),
            ("affinity-changed", affinity.clone()),
            ("policy-changed", affinity),
        ]
    }
}
