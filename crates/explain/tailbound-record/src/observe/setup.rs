// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written to tracefs for each way to observe.
//!
//! Context: SETUP. Units: ns here, µs and KiB in the kernel's files.
//! Source: Documentation/trace/{ftrace,timerlat-tracer,osnoise-tracer,hwlat_detector}.rst.

use tailbound_core::finding::Impact;
use tailbound_core::plan::{Observe, Plan};
use tailbound_core::units::format_ns_i64;
use tailbound_core::{CpuSet, Finding, Policy};
use tailbound_host::{Instance, Missing, Tracefs, TracefsError};
use tailbound_trace::EventFormat;

use crate::error::ObserveError;
use crate::trace_clock::trace_clock_name;

const SECOND_NS: i64 = 1_000_000_000;
/// Limits of osnoise/timerlat_period_us.
const TIMERLAT_PERIOD_US: (i64, i64) = (100, 1_000_000);
/// osnoise looks all the time, as by the kernel's defaults, and says so ten times in the
/// measurement, within these limits.
const OSNOISE_PERIOD_US: (i64, i64) = (10_000, 1_000_000);
/// hwlat looks for a tenth of the measurement, within these limits.
const ALONE_NS: (i64, i64) = (2 * SECOND_NS, 60 * SECOND_NS);
/// Buffer of a CPU: what comes in three seconds, in this range.
const BUFFER_KIB: (i64, i64) = (512, 16 << 10);

/// The kernel's descriptions of the events of `how`.
///
/// # Errors
/// An event that this kernel does not have, or whose description is not understood.
pub(super) fn formats(tracefs: &Tracefs, how: Observe) -> Result<Vec<EventFormat>, ObserveError> {
    let events: &[(&str, &str)] = match how {
        Observe::Timerlat => &[("ftrace", "timerlat")],
        Observe::Osnoise => &[("ftrace", "osnoise")],
        Observe::Hwlat => &[("ftrace", "hwlat")],
        Observe::Tracepoints => &[
            ("timer", "hrtimer_start"),
            ("timer", "hrtimer_expire_entry"),
            ("sched", "sched_switch"),
        ],
        Observe::Unknown(_) => &[],
    };
    let read = |&(system, event): &(&str, &str)| {
        let text = tracefs.event_format(system, event).map_err(|e| match e {
            Missing::NotApplicable(_) => ObserveError::Lacking {
                what: format!("trace event {system}:{event}"),
                option: "CONFIG_ENABLE_DEFAULT_TRACERS or CONFIG_FTRACE",
                instead: "",
            },
            Missing::Unknown(why) => ObserveError::Format(why),
        })?;
        Ok(EventFormat::parse(&text)?)
    };
    events.iter().map(read).collect()
}

/// How long hwlat looks: a tenth of the measurement, and each CPU at least once.
pub(super) fn alone_ns(plan: &Plan) -> i64 {
    let cpus = i64::try_from(plan.cpus.len()).unwrap_or(1);
    (plan.duration_ns() / 10).clamp(ALONE_NS.0, ALONE_NS.1).max(cpus.saturating_mul(SECOND_NS))
}

/// timerlat's period: the interval, in whole µs and within the kernel's limits.
pub(super) fn timerlat_period_ns(plan: &Plan) -> i64 {
    (plan.interval_ns / 1000).clamp(TIMERLAT_PERIOD_US.0, TIMERLAT_PERIOD_US.1) * 1000
}

/// Sets up the instance, off; what the reader should know.
///
/// # Errors
/// [`TracefsError`] with what was written.
pub(super) fn instance(
    instance: &mut Instance,
    how: Observe,
    plan: &Plan,
) -> Result<Vec<String>, TracefsError> {
    let mut notes = Vec::new();
    instance.set("tracing_on", "0")?;
    instance.set("trace_clock", trace_clock_name(plan.clock))?;
    // Four events of about 64 bytes a wake-up, and as much again for timers of others.
    let kib = 3 * SECOND_NS / plan.interval_ns.max(1) * 512 / 1024;
    instance.set("buffer_size_kb", &kib.clamp(BUFFER_KIB.0, BUFFER_KIB.1).to_string())?;
    // Names of threads are not used; recording them would hook every switch once more. Older
    // kernels have the option at the top only, which is not ours to change.
    drop(instance.set("options/record-cmd", "0"));
    let pinned = !matches!(plan.policy, Policy::Deadline { .. });
    if pinned {
        instance.set("tracing_cpumask", &mask(&plan.cpus))?;
    }
    if matches!(how, Observe::Timerlat | Observe::Osnoise) {
        instance.set_shared("osnoise/cpus", &plan.cpus.to_string())?;
        for path in ["osnoise/stop_tracing_us", "osnoise/stop_tracing_total_us"] {
            instance.set_shared(path, "0")?;
        }
        let options = instance.read_shared("osnoise/options").unwrap_or_default();
        if options.split_whitespace().any(|o| o == "NO_OSNOISE_WORKLOAD") {
            instance.set_option("osnoise/options", "OSNOISE_WORKLOAD", "NO_OSNOISE_WORKLOAD")?;
        }
    }
    match how {
        Observe::Timerlat => {
            let period = timerlat_period_ns(plan);
            instance.set_shared("osnoise/timerlat_period_us", &(period / 1000).to_string())?;
            instance.set_shared("osnoise/print_stack", "0")?;
            if period != plan.interval_ns {
                notes.push(format!("timerlat's period is {}", format_ns_i64(period)));
            }
        }
        Observe::Osnoise => {
            let period =
                (plan.duration_ns() / 10_000).clamp(OSNOISE_PERIOD_US.0, OSNOISE_PERIOD_US.1);
            // The runtime may never be longer than the period, on the way to the new values too.
            let now = instance.read_shared("osnoise/period_us").unwrap_or_default();
            let mut order = ["osnoise/runtime_us", "osnoise/period_us"];
            if now.parse::<i64>().is_ok_and(|now| now < period) {
                order.reverse();
            }
            for path in order {
                instance.set_shared(path, &period.to_string())?;
            }
        }
        Observe::Hwlat => notes.push(format!(
            "hwlat looks alone for {} before anything else",
            format_ns_i64(alone_ns(plan))
        )),
        Observe::Tracepoints | Observe::Unknown(_) => {}
    }
    Ok(notes)
}

/// Lets it run: filters on the threads, then the events or the tracer.
///
/// # Errors
/// [`TracefsError`] with what was written.
pub(super) fn switch_on(
    instance: &Instance,
    how: Observe,
    tids: &[i32],
) -> Result<(), TracefsError> {
    let any = |field: &str| {
        tids.iter().map(|t| format!("{field} == {t}")).collect::<Vec<_>>().join(" || ")
    };
    instance.set("tracing_on", "1")?;
    if how != Observe::Tracepoints {
        return instance.set("current_tracer", &how.to_string());
    }
    instance.set("events/timer/hrtimer_start/filter", &any("common_pid"))?;
    instance.set("events/sched/sched_switch/filter", &any("next_pid"))?;
    for event in ["sched/sched_switch", "timer/hrtimer_expire_entry", "timer/hrtimer_start"] {
        instance.set(&format!("events/{event}/enable"), "1")?;
    }
    Ok(())
}

/// What observing does to the figures.
pub(super) fn cost_finding(how: Observe) -> Finding {
    let what = match how {
        Observe::Timerlat => {
            "a timer and a kernel thread (SCHED_FIFO 95) of the timerlat tracer ran on each measured CPU"
        }
        Observe::Osnoise => {
            "a kernel thread of the osnoise tracer kept each measured CPU busy at ordinary priority"
        }
        Observe::Hwlat => "the hwlat tracer looked before the measurement, alone",
        Observe::Tracepoints => "tracepoints of timers and the scheduler were on",
        Observe::Unknown(_) => "nothing: the word is not known",
    };
    let finding = Finding::new("observed", Impact::Notice, format!("--observe {how}: {what}"));
    if how == Observe::Hwlat {
        return finding.meaning(
            "The measurement itself was not observed, and nothing of it is a cost of this.",
        );
    }
    finding
        .meaning("The threads' own figures include what that cost them.")
        .remedy("Make the same run without --observe and `tailbound compare` the two.")
}

/// The kernel's CPU mask: hexadecimal, in groups of 32 from the highest.
fn mask(cpus: &CpuSet) -> String {
    let words = cpus.iter().max().map_or(1, |top| top / 32 + 1);
    let mut bits = vec![0u32; words as usize];
    for cpu in cpus.iter() {
        if let Some(word) = bits.get_mut((cpu / 32) as usize) {
            *word |= 1 << (cpu % 32);
        }
    }
    bits.iter().rev().map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_the_kernels() {
        let text = |list: &str| list.parse::<CpuSet>().map(|c| mask(&c)).unwrap_or_default();
        assert_eq!(text("0"), "00000001");
        assert_eq!(text("0-1,33,64"), "00000001,00000002,00000003");
    }
}
