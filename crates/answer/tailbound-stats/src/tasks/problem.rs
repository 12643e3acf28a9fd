// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a bound of a response time is asked for: one thread, those that may go before it, and what holds it up.
//!
//! Units: ns. Not here: the fixed point (`bound`), demand (`demand`).

use response_time_analysis::time::Duration;
use tailbound_core::policy::Policy;
use tailbound_core::tasks::Task;

use super::answer::NoBound;
use super::demand::JobDemand;

/// How far a fixed point is looked for.
pub(super) const LIMIT_NS: u64 = 1_000_000_000_000;

/// One thread and those that may go before it.
pub(super) struct Problem<'a> {
    pub(super) task: &'a Task,
    /// With their places in the model.
    pub(super) higher: Vec<(usize, &'a Task)>,
    pub(super) cpu: u32,
    /// How long one thread of lower priority can hold this one up: a lock, or a stretch for which it does
    /// not let itself be preempted.
    pub(super) stretch_ns: i64,
    /// The longest section that any thread met on this CPU.
    pub(super) section_ns: i64,
}

impl<'a> Problem<'a> {
    /// Thread `k`, or why nothing bounds its response time.
    pub(super) fn of(tasks: &'a [Task], k: usize) -> Result<Self, NoBound> {
        let task = tasks.get(k).ok_or(NoBound::Policy(Policy::Other))?;
        let priority = task.fixed_priority().ok_or(NoBound::Policy(task.policy))?;
        let cpu = task.cpu().ok_or_else(|| match task.cpus.is_empty() {
            true => NoBound::FewJobs { name: task.name.clone(), jobs: 0 },
            false => NoBound::Moves(task.cpus.clone()),
        })?;
        let here = || tasks.iter().enumerate().filter(|(i, t)| *i != k && t.cpus.contains(&cpu));
        if let Some((_, t)) = here().find(|(_, t)| matches!(t.policy, Policy::Deadline { .. })) {
            return Err(NoBound::DeadlineThread { name: t.name.clone(), cpu });
        }
        let above = |t: &Task| t.fixed_priority().is_some_and(|p| p >= priority);
        let higher: Vec<(usize, &Task)> = here().filter(|(_, t)| above(t)).collect();
        if let Some((_, t)) = higher.iter().find(|(_, t)| t.cpu().is_none()) {
            return Err(NoBound::OtherMoves { name: t.name.clone(), cpus: t.cpus.clone(), cpu });
        }
        let lower = here().filter(|(_, t)| !above(t)).map(|(_, t)| t.non_preemptible_ns);
        let sections = here().map(|(_, t)| t.section_ns);
        Ok(Self {
            task,
            higher,
            cpu,
            stretch_ns: lower.max().unwrap_or(0).saturating_add(task.blocking_once_ns),
            section_ns: sections.chain([task.section_ns]).max().unwrap_or(0),
        })
    }

    /// How long stretches of lower threads can hold up one job: each sleep lets one begin.
    pub(super) fn stretches_ns(&self, task: &Task) -> i64 {
        self.stretch_ns.saturating_mul(i64::from(task.suspensions))
    }

    /// Everything that jobs of `task` ask for. Of latency at least the longest section that any thread met
    /// on this CPU, since that can meet this one too.
    pub(super) fn everything<'t>(&self, task: &'t Task) -> JobDemand<'t> {
        JobDemand {
            lists: vec![
                &task.execution_ns,
                &task.suspension_ns,
                &task.blocking_ns,
                &task.unwatched_ns,
                &task.latency_ns,
            ],
            each_ns: self.stretches_ns(task),
            last_least_ns: self.section_ns,
        }
    }

    /// See [`LIMIT_NS`].
    pub(super) fn limit() -> Duration {
        Duration::from(LIMIT_NS)
    }
}
