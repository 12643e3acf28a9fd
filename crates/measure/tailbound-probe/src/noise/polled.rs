// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a probe that polls: one a measured CPU, with three slots each (windows, all
//! gaps, gaps beneath the kernel).
//!
//! Context: SETUP, HOT in the bodies. Units: ns, ticks.

use std::sync::Arc;

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::plan::Plan;
use tailbound_core::policy::Policy;
use tailbound_core::record::FigureRecord;
use tailbound_core::{Context, Finding, Impact};
use tailbound_host::{Root, clock_id};
use tailbound_rt::poll::{self, Polling, Settings, Sinks};
use tailbound_sys::clock::{self, Nanosleep};

use crate::error::ProbeError;
use crate::kind::Setup;
use crate::noise::findings;
use crate::noise::gauge::{Gauge, KernelEntries};
use crate::noise::interrupts::{Column, Interrupts};
use crate::noise::poll_settings::{PollSettings, THRESHOLD_NS};
use crate::noise::poller::{Nap, Poller, Stall};
use crate::thread_group::{
    Finished, ProbeOutput, RecordSlot, Recorders, Running, ThreadContext, ThreadGroup,
    ThreadResult, thread_spec,
};

/// What recording a gap may take before the rest of it is a gap of its own.
const OWN_NS: i64 = 2_000;
/// The same where interrupts have to be read from a file after it.
const OWN_READING_NS: i64 = 2_000_000;
const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
/// Below the kernel's limit by this share: accounts of time are coarse.
const BELOW_THE_LIMIT: f64 = 0.05;
const DUTY_REALTIME: f64 = 0.9;

/// The planted standstill.
const STALL_NS: i64 = 300_000;
const STALL_EVERY_NS: i64 = 50_000_000;

/// How much of its budget may a real-time loop use? `None`: the kernel sets no limit.
fn limit(root: &Root) -> Option<f64> {
    let number =
        |name: &str| root.parsed::<i64>(&format!("/proc/sys/kernel/sched_rt_{name}_us")).ok();
    let (runtime, period) = (number("runtime")?, number("period")?);
    (runtime >= 0 && runtime < period).then(|| runtime.real() / period.real())
}

/// The share of each window to poll: what was asked for, or all of it for threads that others can
/// preempt, and less for those that starve them.
///
/// # Errors
/// More than the kernel lets real-time threads have.
pub(super) fn duty(setup: &Setup<'_>) -> Result<f64, ProbeError> {
    let realtime = matches!(setup.plan.policy, Policy::Fifo(_) | Policy::Rr(_));
    let limit = if realtime { limit(setup.root) } else { None };
    let options = setup.options();
    if options.text("duty") == Some("auto") {
        let most = limit.map_or(1.0, |l| l - BELOW_THE_LIMIT);
        return Ok(if realtime { DUTY_REALTIME.min(most) } else { 1.0 });
    }
    let percent = options.number("duty", 1.0..=100.0)?;
    let duty = percent / 100.0;
    match limit {
        Some(limit) if duty > limit - BELOW_THE_LIMIT / 2.0 => {
            Err(ProbeError::DutyThrottled { limit, percent, most: limit - BELOW_THE_LIMIT })
        }
        _ => Ok(duty),
    }
}

/// Refuses what no polling probe can do.
///
/// # Errors
/// [`ProbeError`].
pub(super) fn check(setup: &Setup<'_>) -> Result<(), ProbeError> {
    if let policy @ Policy::Deadline { .. } = setup.plan.policy {
        return Err(ProbeError::Policy {
            probe: setup.plan.probe.clone(),
            policy,
            why: "a polling loop has its CPU to itself, and SCHED_DEADLINE threads cannot be pinned; use other or fifo".to_owned(),
        });
    }
    if setup.options().flag("siblings")? {
        return Ok(());
    }
    match siblings(setup.plan, setup.root) {
        Some((first, second)) => Err(ProbeError::Siblings { first, second }),
        None => Ok(()),
    }
}

/// As [`check`], for a probe that has no way to rest.
///
/// # Errors
/// [`ProbeError`].
pub(super) fn check_busy(setup: &Setup<'_>) -> Result<(), ProbeError> {
    check_unlimited(setup)?;
    check(setup)
}

/// Refuses real-time threads that never sleep where the kernel would throttle them.
///
/// # Errors
/// [`ProbeError::PollingThrottled`].
pub(crate) fn check_unlimited(setup: &Setup<'_>) -> Result<(), ProbeError> {
    let realtime = matches!(setup.plan.policy, Policy::Fifo(_) | Policy::Rr(_));
    match limit(setup.root) {
        Some(limit) if realtime => Err(ProbeError::PollingThrottled { limit }),
        _ => Ok(()),
    }
}

/// Two measured CPUs of one core.
pub(super) fn siblings(plan: &Plan, root: &Root) -> Option<(u32, u32)> {
    plan.cpus.iter().find_map(|cpu| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let core = root.cpus(&path).ok()?;
        core.iter().find(|other| *other > cpu && plan.cpus.contains(*other)).map(|o| (cpu, o))
    })
}

/// What one thread is given.
struct Body {
    cpu: u32,
    way: PollSettings,
    gauge: Gauge,
    clock: i32,
    column: Option<Column>,
    gaps: Arc<Recorders>,
    outside: Arc<Recorders>,
}

impl Body {
    fn run(self, thread: &ThreadContext) -> Result<Finished, tailbound_sys::SysError> {
        let reads = self.column.is_some();
        let mut poller = Poller::new(self.gauge.entries, self.column, self.way.work_bytes);
        let turn_ticks = poller.turn_ticks();
        let scale = self.gauge.scale();
        poller.stalls(self.way.stands_still.then(|| Stall {
            every_ticks: scale.ticks(STALL_EVERY_NS),
            ticks: scale.ticks(STALL_NS),
        }));
        let threshold_ns = self.way.threshold_ns.unwrap_or(THRESHOLD_NS);
        let settings = Settings {
            threshold_ticks: turn_ticks.saturating_add(scale.ticks(threshold_ns)),
            turn_ticks,
            own_ticks: scale.ticks(if reads { OWN_READING_NS } else { OWN_NS }),
            least_ns: self.way.least_ns,
            outside_only: self.way.outside_only,
        };
        let mut seen = None;
        let mut measured = false;
        let finished = thread.phases(|schedule, windows| {
            let pick = |r: &'_ Arc<Recorders>| Arc::clone(r);
            let (gaps, outside) = (pick(&self.gaps), pick(&self.outside));
            let sinks = if measured {
                Sinks { windows, gaps: &gaps.measured, outside: &outside.measured }
            } else {
                Sinks { windows, gaps: &gaps.warm_up, outside: &outside.warm_up }
            };
            let mut nap = Nap {
                sleep: Nanosleep(self.clock),
                first_ns: schedule.first_ns,
                polled_ns: (self.way.duty < 1.0).then(|| part(schedule.interval_ns, self.way.duty)),
                stop: thread.stop(),
            };
            let what = Polling {
                origin: self.gauge.at(self.clock, schedule.first_ns),
                scale,
                settings,
                schedule: *schedule,
                sinks,
                stop: thread.stop(),
            };
            let (ended, tally) = poll::run(&mut poller, &mut nap, &what);
            seen = measured.then_some(tally);
            measured = true;
            ended
        })?;
        if let Some(tally) = seen {
            thread.output(|output| {
                findings::of(self.cpu, &tally, &settings, &self.way, scale, output)
            });
        }
        Ok(finished)
    }
}

fn part(ns: i64, share: f64) -> i64 {
    (ns.real() * share).whole_i64()
}

/// Threads on every measured CPU.
///
/// # Errors
/// [`ProbeError`].
pub(super) fn threads(
    setup: &Setup<'_>,
    way: PollSettings,
    gauge: &Gauge,
) -> Result<ThreadGroup, ProbeError> {
    let mut threads = setup.threads()?.busy();
    let cpus = setup.cpus();
    let n = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    for (&cpu, thread) in cpus.iter().zip(0u32..) {
        // Only where it matters, and only if the CPU does not tell: it costs a read after each gap.
        let column = if way.outside_only && gauge.entries == KernelEntries::Hidden {
            Some(Column::open(setup.root, cpu).map_err(ProbeError::NoInterrupts)?)
        } else {
            None
        };
        let on = |thread, context| RecordSlot { context, ..RecordSlot::user(thread, Some(cpu)) };
        let mut poller = threads.thread(on(thread, Context::User))?;
        let body = Body {
            cpu,
            way,
            gauge: *gauge,
            clock: clock_id(setup.plan.clock),
            column,
            gaps: poller.beside(on(thread + n, Context::Gap))?,
            outside: poller.beside(on(thread + 2 * n, Context::Outside))?,
        };
        let spec = thread_spec(setup.plan.policy, vec![cpu]);
        poller.start(spec, move |thread| body.run(thread))?;
    }
    Ok(threads)
}

/// Lets them go; at the end the machine's own counts are laid beside theirs.
///
/// # Errors
/// [`ProbeError`].
pub(super) fn release(
    setup: &Setup<'_>,
    mut threads: ThreadGroup,
    gauge: Gauge,
    more: impl FnOnce(&mut ProbeOutput) + Send + 'static,
) -> Result<Running, ProbeError> {
    let (root, plan) = (setup.root.clone(), setup.plan.clone());
    let before = Interrupts::read(&root);
    let used_ns = clock::now_ns(CLOCK_PROCESS_CPUTIME_ID);
    threads.after(move |results| {
        let mut output = ProbeOutput::default();
        let (figures, findings) = gauge.end(&root);
        output.figures.extend(figures);
        output.findings.extend(findings);
        let span_ns = plan.duration_ns().saturating_add(plan.warm_up_ns).max(1);
        match (before, Interrupts::read(&root)) {
            (Ok(before), Ok(after)) => {
                output.figures.extend(
                    plan.cpus
                        .iter()
                        .map(|cpu| findings::interrupts(cpu, &after.since(&before, cpu), span_ns)),
                );
            }
            (Err(e), _) | (_, Err(e)) => output.findings.push(Finding::new(
                "interrupts-unknown",
                Impact::Notice,
                format!("the number of interrupts is unknown: {}", e.reason()),
            )),
        }
        output.figures.push(own(results, clock::now_ns(CLOCK_PROCESS_CPUTIME_ID) - used_ns));
        if let Some((a, b)) = siblings(&plan, &root) {
            output.findings.push(Finding::listed(
                "siblings-measured",
                Impact::Doubt,
                format!("CPUs {a} and {b} are threads of one core and were both measured"),
            ));
        }
        more(&mut output);
        output
    });
    threads.release()
}

/// What the rest of this program used meanwhile: where no CPU is left to it, it is noise.
fn own(results: &[ThreadResult], process_ns: i64) -> FigureRecord {
    let threads: u64 = results.iter().map(|r| r.finished.usage.cpu_ns).sum();
    let rest = process_ns.saturating_sub(i64::try_from(threads).unwrap_or(i64::MAX)).max(0);
    FigureRecord {
        name: "own-beside".to_owned(),
        value: rest.real(),
        unit: "ns".to_owned(),
        low: None,
        high: None,
        confidence: None,
        note: "CPU time of this program beside the measured loops, warm-up included; where every CPU is measured, it is part of what they saw".to_owned(),
    }
}
