// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the options of a run mean nothing, or contradict each other, on any machine.
//!
//! Units: ns. Not here: what this machine refuses (`error`), the rule that ends a run (`until_error`).

use std::error::Error;

use tailbound_core::Spec;
use tailbound_core::plan::{Clock, INTERVAL_MAX_NS, INTERVAL_MIN_NS, Means};
use tailbound_core::policy::Policy;
use tailbound_core::purpose::PurposeError;
use tailbound_core::units::{format_ns_i64, format_span, grouped};

/// An option that means nothing.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// Its value cannot be read.
    #[error("{flag}: {why}")]
    Value {
        /// The option.
        flag: &'static str,
        /// What is wrong with the value.
        why: Box<dyn Error + Send + Sync>,
    },
    /// Its number is too small or too large.
    #[error("{flag}: {value} is not from 1 to {max}")]
    Number {
        /// The option.
        flag: &'static str,
        /// Its value.
        value: u32,
        /// The largest that is allowed.
        max: u32,
    },
    /// Its list is empty.
    #[error("{flag}: `{written}` names nothing: write a name{or}")]
    NoNames {
        /// The option.
        flag: &'static str,
        /// Its value.
        written: String,
        /// What else can be written, as the end of a sentence.
        or: &'static str,
    },
    /// Its time is none.
    #[error("{flag}: must be more than 0")]
    NotPositive {
        /// The option.
        flag: &'static str,
    },
    /// Its time is below what the clock resolves.
    #[error("{flag}: {} is below the resolution of the {clock} clock here ({})", format_ns_i64(*.ns), format_ns_i64(*.floor_ns))]
    BelowResolution {
        /// The option.
        flag: &'static str,
        /// Its value.
        ns: i64,
        /// The clock.
        clock: Clock,
        /// The shortest time that says something.
        floor_ns: i64,
    },
    /// The interval is too short or too long.
    #[error("--interval: {} is outside {} to {}: below that the loop itself would fill the CPU", format_ns_i64(*.ns), format_ns_i64(INTERVAL_MIN_NS), format_span(INTERVAL_MAX_NS))]
    Interval {
        /// Its value.
        ns: i64,
    },
    /// The warm-up is below zero or too long.
    #[error("--warm-up: write 0s or more")]
    WarmUp,
    /// What persons state about the run is no such text.
    #[error(transparent)]
    Purpose(#[from] PurposeError),
    /// The probe has no such option.
    #[error("--{option} has no meaning for the probe {probe}: it belongs to {}", .takers.join(", "))]
    OtherProbe {
        /// The option, without its dashes.
        option: &'static str,
        /// The probe.
        probe: &'static str,
        /// Those that take it.
        takers: Vec<&'static str>,
    },
    /// There is nothing to repeat.
    #[error("--repeat: there is no benchmark to repeat; name one with --work")]
    NothingToRepeat,
    /// A benchmark is named twice.
    #[error("--work: {benchmark} is given twice; --repeat says how many times it is run")]
    BenchmarkTwice {
        /// Which.
        benchmark: Spec,
    },
    /// The run would time benchmarks, and has none.
    #[error("no benchmark: name one, such as `messages`")]
    NoBenchmark,
    /// The length is given twice.
    #[error("--loops and --duration: give one of them, the other follows from the interval")]
    LoopsAndDuration,
    /// The run ends before its first activation.
    #[error("--duration: {} is shorter than one interval of {}", format_ns_i64(*.duration_ns), format_ns_i64(*.interval_ns))]
    ShorterThanInterval {
        /// Of the run.
        duration_ns: i64,
        /// From one activation to the next.
        interval_ns: i64,
    },
    /// There are no activations.
    #[error("--loops: 0 loops measure nothing")]
    NoLoops,
    /// The run takes too long.
    #[error("{} loops of {} are more than a year: write a smaller --loops or --duration", grouped(*.loops), format_ns_i64(*.interval_ns))]
    TooLong {
        /// Activations.
        loops: u64,
        /// From one activation to the next.
        interval_ns: i64,
    },
    /// Nobody would believe it, or nothing could be said with it.
    #[error("--confidence: {confidence} is not between 0.5 and 1, for example 0.95")]
    Confidence {
        /// Its value.
        confidence: f64,
    },
    /// There is no deadline to be strict about.
    #[error("--class, --rate and --early belong to a deadline: add for example --deadline 100us")]
    NoDeadline,
    /// The class needs a rate.
    #[error("--class safe needs the rate to be demonstrated: add for example --rate 1/24h")]
    NoRate,
    /// The latency of idle states is no number of microseconds.
    #[error("--cpu-dma-latency: write whole microseconds from 0, for example `0` or `50us`")]
    DmaLatency,
    /// The slack of timers is none.
    #[error("--timer-slack: write 1ns or more; to the kernel 0 means its default")]
    NoSlack,
    /// A periodic timer has equal intervals.
    #[error(
        "--interval-spread cannot be given with --sleep {means}: that is a periodic timer, whose intervals are all equal"
    )]
    EvenIntervals {
        /// The timer.
        means: Means,
    },
    /// A process has one interval timer.
    #[error(
        "--sleep itimer: a process has one such timer, so it serves one thread and not {threads}: add --cpus with one CPU, or --tasks 1"
    )]
    OneItimer {
        /// Measured threads.
        threads: u64,
    },
    /// System calls of a second kernel cannot be filtered.
    #[error(
        "--paranoid cannot be given with --sleep {means}: Linux cannot filter the system calls of a second kernel"
    )]
    SecondKernelFilter {
        /// How its threads sleep.
        means: Means,
    },
    /// A second kernel has real-time threads only.
    #[error(
        "--sleep {means} needs a real-time priority, for the second kernel too: --policy fifo:N"
    )]
    SecondKernelPolicy {
        /// How its threads sleep.
        means: Means,
    },
    /// Threads with a deadline cannot be pinned.
    #[error(
        "--cpus cannot be given with --policy {policy}: the kernel refuses to pin SCHED_DEADLINE threads (one with a period of {} runs per online CPU, unpinned)",
        format_ns_i64(*.period_ns)
    )]
    PinnedDeadline {
        /// The policy.
        policy: Policy,
        /// Its period.
        period_ns: i64,
    },
    /// The number of threads with a deadline follows from the CPUs.
    #[error(
        "--tasks cannot be given with --policy {policy}: there is one such thread per online CPU"
    )]
    DeadlineTasks {
        /// The policy.
        policy: Policy,
    },
    /// Somebody expects another number of threads.
    #[error(
        "-t {given}: there is one thread per measured CPU, {planned} here; choose CPUs with --cpus, or write --tasks N for that many unpinned threads"
    )]
    Threads {
        /// As it was written.
        given: u32,
        /// Those of the plan.
        planned: u64,
    },
    /// Two recorders at once.
    #[error("--blame cannot be given with --observe: each would measure the other's cost")]
    BlameAndObserve,
    /// CPUs for a profile that is not named.
    #[error("--rt-cpus: only with --tune PROFILE")]
    NoProfile,
}
