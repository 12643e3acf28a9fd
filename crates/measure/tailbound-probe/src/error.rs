// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a probe could not start, by who can mend it.
//!
//! Context: SETUP. Units: ns.

use std::io;
use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_core::number::Real as _;
use tailbound_core::plan::Clock;
use tailbound_core::policy::Policy;
use tailbound_core::units::{format_ns, format_ns_i64};
use tailbound_host::Missing;
use tailbound_record::ObserveError;
use tailbound_sys::error::SysError;
use tailbound_sys::gpio::GpioError;
use tailbound_sys::handover::NoMedium;

/// Why a probe could not start.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No such probe.
    #[error("no probe is called `{name}`{near}; choose {}", .names.join(", "))]
    UnknownProbe {
        /// What was asked for.
        name: String,
        /// A name like it, as the end of a sentence.
        near: String,
        /// All names.
        names: Vec<&'static str>,
    },
    /// The probe has no such option.
    #[error("probe {probe} has no option `{option}`{near}: {}", if .options.is_empty() { "it has none".to_owned() } else { .options.join(", ") })]
    UnknownOption {
        /// The probe.
        probe: String,
        /// What was asked for.
        option: String,
        /// An option like it, as the end of a sentence.
        near: String,
        /// The options it has.
        options: Vec<&'static str>,
    },
    /// The probe has no such second process.
    #[error("no peer is called `{role}`")]
    UnknownPeer {
        /// What was asked for.
        role: String,
    },
    /// An option has no such value.
    #[error("probe {probe}: --{option} {value}: {why}")]
    Value {
        /// The probe.
        probe: String,
        /// Its option.
        option: String,
        /// What was written.
        value: String,
        /// What is wrong with it, or what is right.
        why: String,
    },
    /// An option that the probe cannot do without.
    #[error("probe {probe}: --{option} is needed: {what}")]
    NeedsOption {
        /// The probe.
        probe: &'static str,
        /// Its option.
        option: String,
        /// What to write.
        what: String,
    },
    /// The probe has no such carrier.
    #[error(transparent)]
    Medium(#[from] NoMedium),
    /// There is no CPU to measure on.
    #[error("no CPU to measure on: give --cpus")]
    NoCpu,
    /// The probe's threads cannot have this policy.
    #[error("probe {probe}: --policy {policy}: {why}")]
    Policy {
        /// The probe.
        probe: String,
        /// The policy.
        policy: Policy,
        /// Why, and which to choose.
        why: String,
    },
    /// Games leave no pause.
    #[error("probe sched-football: a game of {} leaves no pause in {}: make --interval longer", format_ns(.game_ns.real()), format_ns(.interval_ns.real()))]
    NoPause {
        /// Length of a game.
        game_ns: i64,
        /// From one to the next.
        interval_ns: i64,
    },
    /// The kernel would stop the game.
    #[error("probe sched-football: games of {} every {} come near the kernel's throttle of real-time tasks ({runtime_us} us in {period_us} us, kernel.sched_rt_runtime_us), which would stop the defence in the game: make --interval longer, or set kernel.sched_rt_runtime_us to -1 for the run", format_ns(.game_ns.real()), format_ns(.interval_ns.real()))]
    NearThrottle {
        /// Length of a game.
        game_ns: i64,
        /// From one to the next.
        interval_ns: i64,
        /// What the kernel gives real-time tasks.
        runtime_us: f64,
        /// In this time.
        period_us: f64,
    },
    /// There are too few priorities.
    #[error(
        "probe rt-migrate: {tasks} tasks need as many real-time priorities, and there are 98: name fewer --cpus"
    )]
    TooManyTasks {
        /// The probe's tasks.
        tasks: usize,
    },
    /// Tasks are busy for too long.
    #[error("probe rt-migrate: the tasks are busy for {} of every {}: make --interval longer or --busy shorter", format_ns(.busy_ns.real()), format_ns(.interval_ns.real()))]
    TooBusy {
        /// All tasks of a CPU together.
        busy_ns: i64,
        /// From one turn to the next.
        interval_ns: i64,
    },
    /// Locks between processes are held for too long.
    #[error("probe pi-process: --hold and --spin leave no pause in {}: make --interval at least {}", format_ns(.interval_ns.real()), format_ns(.least_ns.real()))]
    HeldTooLong {
        /// From one trial to the next.
        interval_ns: i64,
        /// The shortest interval.
        least_ns: i64,
    },
    /// Locks are held for too long.
    #[error("probe pi: --hold and --spin want {} of every {}: make --interval at least {}", format_ns(.busy_ns.real()), format_ns(.interval_ns.real()), format_ns(.least_ns.real()))]
    TrialTooLong {
        /// Length of a trial.
        busy_ns: i64,
        /// From one to the next.
        interval_ns: i64,
        /// The shortest interval.
        least_ns: i64,
    },
    /// The amounts of work ask for too much of a CPU.
    #[error("probe fixed-work: --amount {} every {} and --tick-amount {} ask for {:.0} % of a CPU, at most {:.0} % can be kept: make --interval longer", format_ns(.amount_ns.real()), format_ns(.interval_ns.real()), format_ns(.tick_amount_ns.real()), .share * 100.0, .most * 100.0)]
    TooMuchWork {
        /// Of an activation.
        amount_ns: i64,
        /// From one to the next.
        interval_ns: i64,
        /// Of a tick.
        tick_amount_ns: i64,
        /// Of a CPU, both together.
        share: f64,
        /// The largest that can be kept.
        most: f64,
    },
    /// Period and interval differ.
    #[error("probe deadline: the period of --policy is {}, --interval is {}: give both alike", format_ns(.period_ns.real()), format_ns(.interval_ns.real()))]
    OtherPeriod {
        /// Of the policy.
        period_ns: i64,
        /// Of the run.
        interval_ns: i64,
    },
    /// The kernel does not admit threads of SCHED_DEADLINE.
    #[error(
        "the kernel does not admit {threads} threads of {:.0} % of a CPU each, {:.0} % together: deadline threads may have {:.0} % of {cpus} CPUs (sched_rt_runtime_us / sched_rt_period_us); ask for less runtime, a longer period or fewer --threads",
        .share * 100.0,
        .total * 100.0,
        .limit * 100.0
    )]
    NotAdmitted {
        /// How many.
        threads: u32,
        /// Of a CPU, each.
        share: f64,
        /// Of a CPU, together.
        total: f64,
        /// Of a CPU, what the kernel gives.
        limit: f64,
        /// CPUs of this machine.
        cpus: f64,
    },
    /// The kernel refused threads of SCHED_DEADLINE.
    #[error("{source}: {threads} deadline threads of {} every {}; busy means that others have what is left of the CPUs, not permitted that root is needed or that this process may not use every CPU of its root domain (taskset, cpuset)", format_ns(.runtime_ns.real()), format_ns(.period_ns.real()))]
    DeadlineThreads {
        /// What was refused.
        source: SysError,
        /// How many.
        threads: u32,
        /// Of each.
        runtime_ns: i64,
        /// Of each.
        period_ns: i64,
    },
    /// The kernel would throttle the loop.
    #[error(
        "the kernel gives real-time threads {:.0} % of a CPU and would throttle a loop that polls {percent} % of the time, which would look like noise: --duty {:.0}, or --policy other, or `sysctl kernel.sched_rt_runtime_us=-1`",
        .limit * 100.0,
        (.most * 100.0).max(1.0)
    )]
    DutyThrottled {
        /// Of a CPU, what the kernel gives.
        limit: f64,
        /// Of the time, what was asked for.
        percent: f64,
        /// Of a CPU, what can be asked for.
        most: f64,
    },
    /// The kernel would throttle a thread that never sleeps.
    #[error(
        "the kernel gives real-time threads {:.0} % of a CPU and would throttle a thread that polls all the time, which would look like loss: --policy other, or `sysctl kernel.sched_rt_runtime_us=-1`",
        .limit * 100.0
    )]
    PollingThrottled {
        /// Of a CPU, what the kernel gives.
        limit: f64,
    },
    /// Two measured CPUs are one core.
    #[error(
        "CPUs {first} and {second} are threads of one core, and two polling loops on one core slow each other down: measure one of them (--cpus), or add --siblings yes: then the run is marked"
    )]
    Siblings {
        /// One.
        first: u32,
        /// The other.
        second: u32,
    },
    /// Interrupts cannot be counted.
    #[error("neither the CPU nor a file shows interrupts: {0}")]
    NoInterrupts(Missing),
    /// This machine has no such CPU beside the measured one.
    #[error("CPU {cpu} has no {what} here; choose another --where, or a machine that has one")]
    NoPlace {
        /// The measured one.
        cpu: u32,
        /// What it lacks.
        what: &'static str,
    },
    /// The priority of the probe's threads is refused.
    #[error("probe {probe}: {source}")]
    NotAllowed {
        /// The probe.
        probe: String,
        /// What was refused.
        source: SysError,
    },
    /// The kernel has no locks with priority inheritance.
    #[error(
        "this kernel has no locks with priority inheritance (FUTEX_LOCK_PI: not implemented); it needs CONFIG_FUTEX_PI"
    )]
    NoPiLocks,
    /// The kernel has no locks with priority inheritance between processes.
    #[error(
        "probe pi-process: this kernel has no locks with priority inheritance (FUTEX_LOCK_PI); it needs CONFIG_FUTEX_PI"
    )]
    NoSharedPiLocks,
    /// The processor has no single steps.
    #[error(
        "probe ptrace: 32-bit ARM and RISC-V have no single steps (PTRACE_SINGLESTEP); measure on x86-64 or 64-bit ARM"
    )]
    NoSteps,
    /// Nobody may trace.
    #[error(
        "probe ptrace: nobody may trace here until the next boot (kernel.yama.ptrace_scope is 3); boot with another value"
    )]
    TracingForbidden,
    /// The second process did not begin.
    #[error("the process of the sender on CPU {cpu} could not begin: {how}")]
    Sender {
        /// Where it is.
        cpu: u32,
        /// How it ended, or that it is late.
        how: String,
    },
    /// There are fewer channels than receivers.
    #[error("no channel {at}: a bug of ours")]
    NoChannel {
        /// From 0.
        at: usize,
    },
    /// The instant to begin at is over.
    #[error("the run was not ready in time: the instant to begin at is over by {}", format_ns_i64(*.late_ns))]
    Late {
        /// Since it.
        late_ns: i64,
    },
    /// Cycles are not counted here.
    #[error(
        "this machine gives no counter of cycles that could overflow: {0}; hardware has one, virtual machines often have none (KVM: `-cpu host,pmu=on`). --source clock measures an ordinary interrupt instead"
    )]
    NoCycles(SysError),
    /// The clock event is refused.
    #[error("this machine gives no clock event: {0}")]
    NoClockEvent(SysError),
    /// The kernel's tracer cannot be used.
    #[error("--with tracer: {0}")]
    Tracer(ObserveError),
    /// The kernel's tracer cannot be used, and the probe does not need it.
    #[error("--with tracer: {0}; --with polling needs no tracer")]
    NeedlessTracer(ObserveError),
    /// A tracer was asked for, and none is there.
    #[error("--with tracer: no tracer was set up: a bug of ours")]
    NoTracer,
    /// The kernel lacks the clock that the probe reads.
    #[error("this kernel does not know the clock: {0}; choose another with --of")]
    UnknownClock(SysError),
    /// The lines of a GPIO chip cannot be had.
    #[error("probe answer-gpio: --{option}: {source}")]
    Gpio {
        /// The option that names it.
        option: String,
        /// Why.
        source: GpioError,
    },
    /// The kernel has no simulated GPIO chips.
    #[error(
        "probe answer-gpio: --chip sim: this kernel has no simulated GPIO chips: CONFIG_GPIO_SIM (`modprobe gpio-sim`), and configfs (`mount -t configfs none /sys/kernel/config`)"
    )]
    NoGpioSim,
    /// A simulated GPIO chip could not be made.
    #[error("probe answer-gpio: --chip sim: {}: {source}", .path.display())]
    GpioSim {
        /// Its folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A system call was refused.
    #[error("thread on CPU {cpu}: {source}")]
    Thread {
        /// Which CPU, or `any`.
        cpu: String,
        /// What was refused.
        source: SysError,
    },
    /// The plan's clock is not known to this kernel.
    #[error("clock `{clock}`: {source}")]
    Clock {
        /// The clock.
        clock: Clock,
        /// What was refused.
        source: SysError,
    },
    /// A system call that sets the probe up was refused.
    #[error(transparent)]
    System(#[from] SysError),
}

impl ProbeError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::UnknownProbe { .. }
            | Self::UnknownOption { .. }
            | Self::UnknownPeer { .. }
            | Self::Value { .. }
            | Self::NeedsOption { .. }
            | Self::Medium(_)
            | Self::NoCpu
            | Self::Policy { .. }
            | Self::NoPause { .. }
            | Self::TooManyTasks { .. }
            | Self::TooBusy { .. }
            | Self::HeldTooLong { .. }
            | Self::TrialTooLong { .. }
            | Self::TooMuchWork { .. }
            | Self::OtherPeriod { .. } => FailureKind::Usage,
            Self::Gpio { source, .. } => match source {
                GpioError::NotAChip { .. }
                | GpioError::NoSuchLine { .. }
                | GpioError::NoSuchName { .. }
                | GpioError::AmbiguousName { .. } => FailureKind::Usage,
                _ => FailureKind::Cannot,
            },
            Self::NearThrottle { .. }
            | Self::NotAdmitted { .. }
            | Self::DeadlineThreads { .. }
            | Self::DutyThrottled { .. }
            | Self::PollingThrottled { .. }
            | Self::Siblings { .. }
            | Self::NoInterrupts(_)
            | Self::NoPlace { .. }
            | Self::NotAllowed { .. }
            | Self::NoPiLocks
            | Self::NoSharedPiLocks
            | Self::NoSteps
            | Self::TracingForbidden
            | Self::Sender { .. }
            | Self::NoChannel { .. }
            | Self::Late { .. }
            | Self::NoCycles(_)
            | Self::NoClockEvent(_)
            | Self::Tracer(_)
            | Self::NeedlessTracer(_)
            | Self::NoTracer
            | Self::UnknownClock(_)
            | Self::NoGpioSim
            | Self::GpioSim { .. }
            | Self::Thread { .. }
            | Self::Clock { .. }
            | Self::System(_) => FailureKind::Cannot,
        }
    }
}
