// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cycle as a job of schedulability analysis: its time divided by who had the CPU.
//!
//! Units: ns on the trace's clock. docs/tasks.md says what each kind of time is for.
//! A cycle that waited for the one before it of the same thread spent that time in that one.
//! Not here: the parts (`tracker`, `blame`), what is made of jobs (`tailbound_stats::tasks`).

use std::collections::{BTreeMap, BTreeSet};

use tailbound_core::blame::{Cause, Phase};
use tailbound_core::tasks::Job;

use super::part::{Part, PartCharge, Whats};

/// Begin and end of a cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) release: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) cpu: u32,
}

/// Watched threads that others waited for, and the CPUs where they did.
pub(super) type Delayers = BTreeMap<i32, BTreeSet<u32>>;

/// To whom a part's time belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Execution,
    Asleep,
    Blocked,
    Latency,
    Preempted(i32),
    Unwatched,
    Before,
}

fn kind(what: &PartCharge, watched: &BTreeSet<i32>) -> Kind {
    match (what.phase, what.cause) {
        (Phase::Running | Phase::Return, _) => Kind::Execution,
        (Phase::Blocked, Cause::PriorityInversion) => Kind::Blocked,
        (Phase::Blocked, _) => Kind::Asleep,
        (_, Cause::Backlog) => Kind::Before,
        (_, Cause::HigherPriority | Cause::FairShare) => match pid_of(&what.who) {
            Some(pid) if watched.contains(&pid) => Kind::Preempted(pid),
            _ => Kind::Unwatched,
        },
        _ => Kind::Latency,
    }
}

/// The thread's number in a name as the engine gives it: `name-12`, `thread 12`, `kworker/0:1-12 function`.
fn pid_of(who: &str) -> Option<i32> {
    if let Some(number) = who.strip_prefix("thread ") {
        return number.parse().ok();
    }
    let (_, behind) = who.rsplit_once('-')?;
    behind.split(' ').next()?.parse().ok()
}

/// The job that `parts` are, which adjoin from the release to the end.
pub(super) fn job(
    whats: &Whats,
    parts: &[Part],
    cycle: Cycle,
    watched: &BTreeSet<i32>,
    delayers: &mut Delayers,
) -> Job {
    let signed = |t: u64| i64::try_from(t).unwrap_or(i64::MAX);
    let mut job = Job {
        release_ns: signed(cycle.release),
        start_ns: signed(cycle.start),
        end_ns: signed(cycle.end),
        cpu: cycle.cpu,
        ..Job::default()
    };
    let (mut stretch, mut slept) = (0i64, false);
    for part in parts {
        let ns = signed(part.ns);
        let kind = whats.get(*part).map_or(Kind::Latency, |what| kind(what, watched));
        let sum = match kind {
            Kind::Execution => &mut job.execution_ns,
            Kind::Asleep => &mut job.suspension_ns,
            Kind::Blocked => &mut job.blocked_ns,
            Kind::Latency => &mut job.latency_ns,
            Kind::Unwatched => &mut job.unwatched_ns,
            Kind::Preempted(pid) => {
                delayers.entry(pid).or_default().insert(cycle.cpu);
                &mut 0
            }
            Kind::Before => &mut 0,
        };
        *sum = sum.saturating_add(ns);
        stretch = if kind == Kind::Latency { stretch.saturating_add(ns) } else { 0 };
        job.section_ns = job.section_ns.max(stretch);
        let sleeps = matches!(kind, Kind::Asleep | Kind::Blocked);
        job.suspensions = job.suspensions.saturating_add(u32::from(sleeps && !slept));
        slept = sleeps;
    }
    job
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_core::blame::Sureness;

    #[test]
    fn every_ns_belongs_to_one_kind() {
        let mut whats = Whats::default();
        let mut parts = Vec::new();
        for (phase, cause, who, ns) in [
            (Phase::Timer, Cause::TimerInterrupt, "", 1),
            (Phase::Switch, Cause::NotPreemptible, "x-9", 2),
            (Phase::Switch, Cause::HigherPriority, "high-up-7", 4),
            (Phase::Switch, Cause::HigherPriority, "irq/24-eth0-8", 8),
            (Phase::Return, Cause::WakeUp, "", 16),
            (Phase::Running, Cause::Interrupt, "24 eth0", 32),
            (Phase::Running, Cause::Own, "", 64),
            (Phase::Blocked, Cause::PriorityInversion, "low-3", 128),
            (Phase::Preempted, Cause::Softirq, "NET_RX", 256),
            (Phase::Blocked, Cause::Blocked, "read", 512),
            (Phase::Preempted, Cause::HigherPriority, "thread 7", 1024),
            (Phase::Running, Cause::Own, "", 2048),
            (Phase::WakeUp, Cause::Backlog, "", 4096),
        ] {
            let who = who.to_owned();
            let what = whats.number(PartCharge { phase, cause, who, sureness: Sureness::Sure });
            parts.push(Part { ns, what });
        }
        let cycle = Cycle { release: 100, start: 131, end: 100 + 8191, cpu: 1 };
        let mut delayers = Delayers::new();
        let got = job(&whats, &parts, cycle, &BTreeSet::from([7]), &mut delayers);
        assert_eq!(delayers, Delayers::from([(7, BTreeSet::from([1]))]));
        let expected = Job {
            release_ns: 100,
            start_ns: 131,
            end_ns: 8291,
            execution_ns: 16 + 32 + 64 + 2048,
            suspension_ns: 512,
            suspensions: 2,
            blocked_ns: 128,
            latency_ns: 1 + 2 + 256,
            section_ns: 256,
            unwatched_ns: 8,
            cpu: 1,
        };
        assert_eq!(got, expected);
        assert_eq!((pid_of("kworker/1:0-41 vmstat_update"), pid_of("idle")), (Some(41), None));
    }
}
