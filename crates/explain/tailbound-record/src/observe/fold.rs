// SPDX-License-Identifier: MIT OR Apache-2.0
//! From samples of a trace to thread records: one a measured CPU or thread and context.
//!
//! Units: ns. What lies outside the measurement is left out. timerlat passes
//! over activations that a late thread missed, and says nothing: they are found again by
//! their due times, and get the latency they would have had, as our own do.

use std::collections::BTreeMap;

use tailbound_core::plan::{Observe, Plan};
use tailbound_core::record::ThreadRecord;
use tailbound_core::{Context, Distribution, ThreadEnd};
use tailbound_trace::split::{LateInterrupt, WakeupSplit};
use tailbound_trace::{Record, Sample, Schedule, Split, TimerlatContext};

use crate::measured_thread::MeasuredThread;
use crate::observe::{Gap, setup};

/// Most missed activations entered one by one for one late thread; beyond, they are counted only.
const MISSED_MAX: i64 = 1 << 20;
const US: u64 = 1000;

/// Everything a trace said so far.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    how: Observe,
    from_ns: i64,
    until_ns: i64,
    plan: Plan,
    cpus: BTreeMap<u32, Cpu>,
    split: Option<Split>,
    threads: Vec<MeasuredThread>,
    looked_ns: i64,
    /// Gaps of hwlat one by one, for a probe that wants them.
    kept: Option<Vec<Gap>>,
    irq_limit_ns: i64,
    /// Of timerlat's interrupts the first beyond the limit; [`Split`] has that of our own.
    late: Option<LateInterrupt>,
}

/// What was seen on one CPU.
#[derive(Clone, Debug, Default)]
struct Cpu {
    irq: Distribution,
    thread: Distribution,
    missed: Distribution,
    gaps: Distribution,
    counters: BTreeMap<&'static str, u64>,
    lost: u64,
    /// Due time and latency of timerlat's last thread sample.
    last: Option<(i64, i64)>,
}

impl Cpu {
    fn count(&mut self, name: &'static str, n: u64) {
        let slot = self.counters.entry(name).or_default();
        *slot = slot.saturating_add(n);
    }
    fn most(&mut self, name: &'static str, n: i64) {
        let slot = self.counters.entry(name).or_default();
        *slot = (*slot).max(n.max(0).cast_unsigned());
    }
}

impl Fold {
    pub(super) fn new(how: Observe, plan: &Plan) -> Self {
        Self {
            how,
            from_ns: i64::MAX,
            until_ns: i64::MAX,
            plan: plan.clone(),
            cpus: plan.cpus.iter().map(|cpu| (cpu, Cpu::default())).collect(),
            split: None,
            threads: Vec::new(),
            looked_ns: 0,
            kept: None,
            irq_limit_ns: i64::MAX,
            late: None,
        }
    }

    /// Later interrupts are told by [`Self::take_late`].
    pub(super) fn limit_irq(&mut self, limit_ns: i64) {
        self.irq_limit_ns = limit_ns;
    }

    /// The first one since the last call; its due time counts from the begin of the measurement.
    pub(super) fn take_late(&mut self) -> Option<LateInterrupt> {
        let late = self.split.as_mut().map_or(self.late.take(), Split::take_late)?;
        Some(LateInterrupt { due_ns: late.due_ns.saturating_sub(self.from_ns), ..late })
    }

    pub(super) fn keep_gaps(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// Those since the last call.
    pub(super) fn take_gaps(&mut self) -> Vec<Gap> {
        self.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The measurement on the trace's clock; without it nothing counts.
    pub(super) fn window(&mut self, from_ns: i64, until_ns: i64) {
        (self.from_ns, self.until_ns) = (from_ns, until_ns);
    }

    /// How long hwlat looked.
    pub(super) fn looked(&mut self, span_ns: i64) {
        self.looked_ns = span_ns;
    }

    /// The measured threads; their first activation is at `start_ns` and phased.
    pub(super) fn threads(&mut self, threads: &[MeasuredThread], start_ns: i64) {
        self.threads = threads.to_vec();
        if self.how == Observe::Tracepoints {
            let schedule = |thread: &MeasuredThread| Schedule {
                pid: thread.tid,
                first_ns: start_ns.saturating_add(thread.phase_ns),
                interval_ns: self.plan.interval_ns,
                activations: self.plan.activations,
            };
            let mut split = Split::new(&threads.iter().map(schedule).collect::<Vec<_>>());
            split.limit_irq(self.irq_limit_ns);
            self.split = Some(split);
        }
    }

    pub(super) fn lost(&mut self, cpu: u32, events: u64) {
        self.cpus.entry(cpu).or_default().lost = events;
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        if let Some(split) = &mut self.split {
            split.sample(sample);
            return;
        }
        let t = i64::try_from(sample.t_ns).unwrap_or(i64::MAX);
        let inside = |t: i64| t >= self.from_ns && t < self.until_ns;
        let period = setup::timerlat_period_ns(&self.plan);
        let cpu = self.cpus.entry(sample.cpu).or_default();
        match sample.record {
            Record::Timerlat { context, latency_ns } if inside(t.saturating_sub(latency_ns)) => {
                match context {
                    TimerlatContext::Irq => {
                        cpu.irq.add(latency_ns);
                        if latency_ns > self.irq_limit_ns {
                            let (cpu, due_ns) = (sample.cpu, t.saturating_sub(latency_ns));
                            self.late.get_or_insert(LateInterrupt { cpu, due_ns, latency_ns });
                        }
                    }
                    // Only with a user thread on timerlat_fd, which there is none of.
                    TimerlatContext::User => cpu.count("user_samples", 1),
                    TimerlatContext::Thread => {
                        cpu.thread.add(latency_ns);
                        cpu.passed_over(t.saturating_sub(latency_ns), latency_ns, period);
                    }
                }
            }
            Record::Osnoise { noise_ns, runtime_ns, single_ns_max, sources }
                if inside(t.saturating_sub(runtime_ns)) =>
            {
                cpu.gaps.add(noise_ns);
                cpu.count("runtime_ns", runtime_ns.max(0).cast_unsigned());
                cpu.count("noise_ns", noise_ns.max(0).cast_unsigned());
                cpu.most("single_noise_ns_max", single_ns_max);
                let names = ["hardware", "nmi", "irq", "softirq", "thread"];
                names.into_iter().zip(sources).for_each(|(name, n)| cpu.count(name, n));
            }
            Record::Hwlat { inner_ns, outer_ns, nmis } if inside(t) => {
                cpu.gaps.add(inner_ns.max(outer_ns));
                if let Some(kept) = &mut self.kept {
                    kept.push(Gap { cpu: sample.cpu, t_ns: t, ns: inner_ns.max(outer_ns) });
                }
                cpu.count("nmi", nmis);
            }
            _ => {}
        }
    }

    /// The records, in the order of the way: interrupt, thread, user.
    pub(super) fn end(self) -> Vec<ThreadRecord> {
        let mut out = Vec::new();
        let record = |thread: u32,
                      cpu: Option<u32>,
                      context: Context,
                      wakeup: Distribution,
                      lost: u64| ThreadRecord {
            thread,
            cpu,
            context,
            wakeup,
            dropped: (lost > 0).then(|| ("trace_events".to_owned(), lost)).into_iter().collect(),
            ended: ThreadEnd::Complete,
            ..ThreadRecord::default()
        };
        if let Some(split) = self.split {
            let ways = split.end();
            for measured in &self.threads {
                let Some(way) = ways.get(&measured.tid) else { continue };
                let lost = match measured.cpu {
                    Some(cpu) => self.cpus.get(&cpu).map_or(0, |c| c.lost),
                    None => self.cpus.values().map(|c| c.lost).sum(),
                };
                for (context, d) in [(Context::Irq, &way.irq), (Context::Thread, &way.thread)] {
                    let mut one = record(measured.thread, measured.cpu, context, d.clone(), lost);
                    one.counters = way_counters(way);
                    out.push(one);
                }
            }
            return out;
        }
        for ((cpu, seen), thread) in self.cpus.into_iter().zip(0u32..) {
            let counters: BTreeMap<String, u64> =
                seen.counters.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
            let coarse = |mut d: Distribution| {
                d.resolution_ns = US;
                d
            };
            let mut push = |context: Context, d: Distribution, missed: Distribution| {
                let mut one = record(thread, Some(cpu), context, d, seen.lost);
                one.missed = missed;
                one.counters.clone_from(&counters);
                if self.how == Observe::Hwlat {
                    one.counters
                        .insert("looked_ns".to_owned(), self.looked_ns.max(0).cast_unsigned());
                }
                out.push(one);
            };
            match self.how {
                Observe::Timerlat => {
                    push(Context::Irq, seen.irq, Distribution::default());
                    push(Context::Thread, seen.thread, seen.missed);
                }
                Observe::Osnoise => {
                    push(Context::Osnoise, coarse(seen.gaps), Distribution::default())
                }
                Observe::Hwlat => push(Context::Hwlat, coarse(seen.gaps), Distribution::default()),
                Observe::Tracepoints | Observe::Unknown(_) => {}
            }
        }
        out
    }
}

impl Cpu {
    /// Enters what timerlat passed over between its last thread sample and this one.
    fn passed_over(&mut self, due_ns: i64, latency_ns: i64, period: i64) {
        if let Some((last_due, last_latency)) = self.last {
            // The stamp is taken a little after the latency: to the nearest whole period.
            let steps = due_ns.saturating_sub(last_due).saturating_add(period / 2) / period;
            for k in 1..steps.min(MISSED_MAX) {
                self.missed.add(last_latency.saturating_sub(k.saturating_mul(period)).max(0));
            }
            if steps > MISSED_MAX {
                self.count("missed_not_entered", (steps - MISSED_MAX).cast_unsigned());
            }
        }
        self.last = Some((due_ns, latency_ns));
    }
}

fn way_counters(way: &WakeupSplit) -> BTreeMap<String, u64> {
    [("timers_set", way.started), ("timers_awake", way.awake), ("timers_unseen", way.unseen)]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_timerlat_passes_over_is_found_again() {
        let mut cpu = Cpu::default();
        for (due, latency) in [(0, 10), (1000, 3300), (5001, 20), (6000, 20)] {
            cpu.passed_over(due, latency, 1000);
        }
        assert_eq!(
            (cpu.missed.n, cpu.missed.max_ns, cpu.missed.min_ns),
            (3, Some(2300), Some(300))
        );
    }
}
