// SPDX-License-Identifier: MIT OR Apache-2.0
//! `rt-throttling` and `fair-server`: the kernel takes CPU time away from real-time threads
//! so that others can run.
//!
//! Units: ns. Evidence, strongest first: the kernel log says that throttling
//! began (once a boot, so its silence proves nothing if it spoke before); debugfs shows a
//! run queue throttled when the measurement is over; real-time threads reached the limit of CPU
//! time between two scans.
//! The rows of debugfs are read at the last look only: to print them the kernel takes the lock of each run queue, and
//! a kernel that does not preempt its own code prints all threads in one go, about 11 µs each: with 700 of them
//! the lab saw a wake-up 7.8 ms late for it.
//! Source: Documentation/scheduler/sched-rt-group.rst; kernel/sched/{rt,deadline,debug}.c
//! for the names of the rows.

use std::collections::BTreeMap;

use tailbound_core::number::Real as _;
use tailbound_core::record::{Fact, Facts};
use tailbound_core::{CpuSet, Finding, Impact};
use tailbound_sys::hostinfo::release;

use super::{Disturbance, Look, percent, run_queues};
use crate::inventory::{FAIR_SERVER_SINCE, server};
use crate::root::{Found, Missing, Root};
use crate::tasks::{self, Task};

const LOG_LINE: &str = "RT throttling activated";
/// Shortest time between scans from which a share is made.
const SPAN_MIN_S: f64 = 5.0;
/// Below the limit by no more than this counts as having reached it: CPU time is blurred by
/// threads that move, and by what interrupts take.
const MARGIN: f64 = 0.01;

/// Remembers the limits and the last scan.
pub(crate) struct Throttling {
    /// Is there throttling at all: the fact `sched.rt_throttling`.
    armed: Fact,
    limit: Option<f64>,
    /// Why the log cannot tell of it any more.
    mute: Option<String>,
    logged: bool,
    debug: Option<Missing>,
    /// The measured CPUs whose run queues were found throttled.
    throttled: Vec<u32>,
    /// Budget and period of the fair server of each measured CPU.
    servers: Vec<(u32, Found<(u64, u64)>)>,
    modern: bool,
    scan: Option<(f64, BTreeMap<u32, Task>)>,
    /// The greatest share real-time threads had of each CPU between two scans.
    shares: BTreeMap<u32, f64>,
}

impl Throttling {
    pub(crate) fn begin(first: &Look, facts: &Facts) -> Self {
        let number = |name: &str| match facts.get(name) {
            Some(Fact::Value(v)) => v.as_f64(),
            _ => None,
        };
        let limit = number("sched.rt_runtime_us").zip(number("sched.rt_period_us"));
        let armed = facts.get("sched.rt_throttling").cloned();
        let mut throttling = Self {
            armed: armed
                .unwrap_or_else(|| Fact::Unknown("sched.rt_throttling was not read".to_owned())),
            limit: limit.filter(|(r, p)| *r >= 0.0 && r < p).map(|(r, p)| r / p),
            mute: mute(first),
            logged: false,
            debug: None,
            throttled: Vec::new(),
            servers: first
                .cpus
                .iter()
                .map(|cpu| (cpu, server(&first.root, "fair_server", cpu)))
                .collect(),
            modern: facts
                .get("kernel.release")
                .and_then(Fact::as_str)
                .is_some_and(|r| release(r) >= Some(FAIR_SERVER_SINCE)),
            scan: None,
            shares: BTreeMap::new(),
        };
        throttling.see_tasks(first);
        throttling
    }

    /// A share of CPU time between this scan and the last.
    fn see_tasks(&mut self, look: &Look) {
        let (Some(Ok(tasks)), Ok(now)) = (&look.tasks, &look.uptime_s) else { return };
        let Some((then, before)) = &self.scan else {
            self.scan = Some((*now, tasks.clone()));
            return;
        };
        let span_s = now - then;
        if span_s < SPAN_MIN_S {
            return;
        }
        for (cpu, ns) in tasks::used_by_cpu(before, tasks) {
            let share = ns.real() / 1e9 / span_s;
            let most = self.shares.entry(cpu).or_insert(0.0);
            *most = most.max(share);
        }
        self.scan = Some((*now, tasks.clone()));
    }

    /// Rows `.rt_throttled : 1` of measured CPUs, at this very moment.
    fn see_debug(&mut self, root: &Root, cpus: &CpuSet) {
        if self.limit.is_none() || matches!(self.armed, Fact::NotApplicable(_)) {
            return;
        }
        match run_queues(root) {
            Ok(text) => {
                let now = throttled_now(&text).into_iter();
                self.throttled = now.filter(|c| cpus.contains(*c)).collect();
            }
            Err(why) => self.debug = Some(why),
        }
    }

    fn throttling(&self, cpus: &CpuSet) -> Option<Finding> {
        let limit = self.limit.unwrap_or(1.0);
        let seen = self.throttled.iter().min();
        let near = self
            .shares
            .iter()
            .find(|(c, s)| cpus.contains(**c) && self.limit.is_some() && **s >= limit - MARGIN)
            .filter(|_| !matches!(self.armed, Fact::NotApplicable(_)));
        let (impact, title) = if self.logged {
            (
                Impact::Unfit,
                "the kernel throttled real-time threads during the run (its log says so, but not on which CPU)"
                    .to_owned(),
            )
        } else if let Some(cpu) = seen {
            (
                Impact::Unfit,
                format!(
                    "the real-time run queue of CPU {cpu} was found throttled at the end of the run"
                ),
            )
        } else if let Some((cpu, share)) = near {
            (
                Impact::Doubt,
                format!(
                    "real-time threads had {} of CPU {cpu}, up to their limit of {}: they were probably throttled",
                    percent(*share),
                    percent(limit)
                ),
            )
        } else {
            return None;
        };
        Some(Finding::listed("rt-throttling", impact, title))
    }

    fn fair_server(&self) -> Option<Finding> {
        let on: Vec<(u32, u64, u64)> = self
            .servers
            .iter()
            .filter_map(|(cpu, s)| {
                s.as_ref().ok().map(|(runtime, period)| (*cpu, *runtime, *period))
            })
            .filter(|(_, runtime, period)| *runtime > 0 && *period > 0)
            .collect();
        let (impact, title) = if let Some((_, runtime, period)) = on.first() {
            let cpus: CpuSet = on.iter().map(|(cpu, _, _)| *cpu).collect();
            let starved = on.iter().find_map(|(cpu, runtime, period)| {
                let share = *self.shares.get(cpu)?;
                (share >= 1.0 - super::share(*runtime, *period) - MARGIN).then_some((*cpu, share))
            });
            let grant = format!("{} ms in {} ms", runtime / 1_000_000, period / 1_000_000);
            match starved {
                Some((cpu, share)) => (
                    Impact::Doubt,
                    format!(
                        "real-time threads had {} of CPU {cpu}: the fair server ({grant}) probably ran before them",
                        percent(share)
                    ),
                ),
                None => (
                    Impact::Notice,
                    format!(
                        "the fair server may take {grant} from real-time threads on CPU {cpus} when ordinary threads starve"
                    ),
                ),
            }
        } else if let (true, Some(Err(Missing::Unknown(why)))) =
            (self.modern, self.servers.first().map(|(_, s)| s))
        {
            (
                Impact::Notice,
                format!(
                    "the fair server's budget is not known ({why}); by default it is 50 ms in 1000 ms"
                ),
            )
        } else {
            return None;
        };
        Some(Finding::listed("fair-server", impact, title))
    }
}

/// The kernel speaks of throttling once a boot, and only to those who may read its log.
fn mute(first: &Look) -> Option<String> {
    if let Some(why) = &first.log_missing {
        return Some(format!("the kernel log cannot be read ({})", why.reason()));
    }
    let before = first.log.iter().any(|r| r.text.contains(LOG_LINE));
    before.then(|| "the kernel speaks of throttling once a boot, and already had".to_owned())
}

/// CPUs with a section `rt_rq[N]:…` that holds `.rt_throttled : 1`.
fn throttled_now(text: &str) -> Vec<u32> {
    let mut cpu = None;
    let mut out = Vec::new();
    for line in text.lines() {
        if let Some((number, _)) = line.strip_prefix("rt_rq[").and_then(|l| l.split_once(']')) {
            cpu = number.parse().ok();
        } else if !line.starts_with(' ') && !line.is_empty() {
            cpu = None;
        } else if let (Some(cpu), Some(("rt_throttled", value))) = (
            cpu,
            line.trim().trim_start_matches('.').split_once(':').map(|(k, v)| (k.trim(), v.trim())),
        ) && value != "0"
            && !out.contains(&cpu)
        {
            out.push(cpu);
        }
    }
    out
}

impl Disturbance for Throttling {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        self.logged |= look.log.iter().any(|r| r.text.contains(LOG_LINE));
        self.see_tasks(look);
        if look.last {
            self.see_debug(&look.root, &look.cpus);
        }
        self.throttling(&look.cpus).into_iter().chain(self.fair_server()).collect()
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        let armed = match &self.armed {
            Fact::NotApplicable(why) => Fact::NotApplicable(why.clone()),
            _ if self.limit.is_none() => Fact::of("throttling is switched off"),
            _ => match (&self.debug, &self.mute) {
                (None, None) => {
                    Fact::of("watched: kernel log, run queues, CPU time of real-time threads")
                }
                (None, Some(why)) => {
                    Fact::of(format!("watched: run queues, CPU time of real-time threads; {why}"))
                }
                (Some(_), None) => Fact::of("watched: kernel log, CPU time of real-time threads"),
                (Some(debug), Some(why)) => Fact::Unknown(format!(
                    "only CPU time of real-time threads could be watched: {why}; {}",
                    debug.reason()
                )),
            },
        };
        let servers = match self.servers.first() {
            Some((_, Err(why))) => why.clone().into(),
            Some((_, Ok(_))) => {
                Fact::of("watched: CPU time of real-time threads; the kernel counts no runs of it")
            }
            None => Fact::Unknown("no CPU is measured".to_owned()),
        };
        vec![("rt-throttling", armed), ("fair-server", servers)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_throttled_run_queue_among_others() {
        let text = "cpu#0, 2100.000 MHz\n\nrt_rq[0]:/a\n  .rt_nr_running                 : 0\n  .rt_throttled                  : 0\n\
                    rt_rq[1]:/\n  .rt_throttled                  : 1\n  .rt_time                       : 950.1\n\
                    dl_rq[2]:\n  .rt_throttled                  : 1\n";
        assert_eq!(throttled_now(text), [1]);
        assert_eq!(throttled_now("rt_rq[x]:\n  .rt_throttled : 1\n"), [] as [u32; 0]);
    }

    #[test]
    fn releases_compare_by_number() {
        assert_eq!(release("6.12.0-rt1"), Some((6, 12)));
        assert!(release("6.9.1") < Some((6, 12)) && release("7.2") >= Some((6, 12)));
        assert_eq!(release("linux"), None);
    }
}
