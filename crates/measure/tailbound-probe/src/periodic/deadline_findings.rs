// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the probe `deadline` refuses, and what it tells beside its latencies.
//!
//! Context: SETUP, COLD. Units: ns; shares of a CPU.
//! When is a late job the kernel's fault? Global EDF on m CPUs promises every deadline where the
//! shares add up to no more than m - (m - 1) times the largest (Goossens, Funk, Baruah, 2003); a
//! hypervisor that takes the CPU away is none of the kernel's doing.
//! Source: Documentation/scheduler/sched-deadline.rst.

use tailbound_core::Finding;
use tailbound_core::finding::Impact;
use tailbound_core::number::Real as _;

use super::deadline_options::Options;
use super::{figure, span};
use crate::error::ProbeError;
use crate::kind::Setup;
use crate::thread_group::ProbeOutput;

/// What threads saw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    jobs: u64,
    /// Done after the end of their period.
    late: u64,
    /// Of those, asked for no more than the runtime.
    late_within: u64,
    /// Periods in which nothing began.
    pub(super) missed: u64,
    /// The kernel began a period anew: later ones lie elsewhere.
    pub(super) shifts: u64,
    /// SIGXCPU by SCHED_FLAG_DL_OVERRUN.
    pub(super) overruns: u64,
}

impl Counts {
    /// A job that was done `done_ns` after the begin of its period.
    #[inline]
    pub(super) fn job(&mut self, done_ns: i64, options: Options) {
        self.jobs = self.jobs.wrapping_add(1);
        if done_ns > options.period_ns.max(1) {
            let within = options.work_ns.cast_unsigned() <= options.runtime_ns;
            self.late = self.late.wrapping_add(1);
            self.late_within = self.late_within.wrapping_add(u64::from(within));
        }
    }
    pub(super) fn add(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.late += other.late;
        self.late_within += other.late_within;
        self.missed += other.missed;
        self.shifts += other.shifts;
        self.overruns += other.overruns;
    }
}

/// What the kernel guarantees here.
#[derive(Clone, Debug)]
pub(super) struct Guarantee {
    promised: bool,
    virtual_machine: bool,
}

impl Guarantee {
    pub(super) fn of(setup: &Setup<'_>, options: Options) -> Self {
        let cpus = cpus(setup);
        let (share, total) = shares(options);
        let flags = setup.root.read_trimmed("/proc/cpuinfo").unwrap_or_default();
        Self {
            promised: total <= cpus - (cpus - 1.0) * share,
            virtual_machine: flags.split_whitespace().any(|w| w == "hypervisor"),
        }
    }
}

fn cpus(setup: &Setup<'_>) -> f64 {
    f64::from(u32::try_from(setup.cpus().len()).unwrap_or(1).max(1))
}

fn shares(options: Options) -> (f64, f64) {
    let share = options.runtime_ns.real() / options.period_ns.max(1).real();
    (share, share * f64::from(options.threads))
}

/// Refuses what the kernel's admission test would refuse, with its figures.
pub(super) fn admitted(setup: &Setup<'_>, options: Options) -> Result<(), ProbeError> {
    let read = |name: &str| {
        let text = setup.root.read_trimmed(&format!("/proc/sys/kernel/sched_rt_{name}_us"));
        text.ok().and_then(|t| t.parse::<f64>().ok())
    };
    let (Some(runtime), Some(period)) = (read("runtime"), read("period")) else {
        return Ok(()); // The kernel itself will say.
    };
    let (share, total) = shares(options);
    let limit = cpus(setup) * runtime / period.max(1.0);
    if runtime < 0.0 || total <= limit {
        return Ok(());
    }
    let (threads, cpus) = (options.threads, cpus(setup));
    Err(ProbeError::NotAdmitted { threads, share, total, limit, cpus })
}

/// Says why deadline threads may have been refused.
pub(super) fn refused(e: ProbeError, options: Options) -> ProbeError {
    let ProbeError::Thread { source, .. } = e else { return e };
    let Options { threads, runtime_ns, period_ns, .. } = options;
    let runtime_ns = runtime_ns.cast_signed();
    ProbeError::DeadlineThreads { source, threads, runtime_ns, period_ns }
}

/// Figures and findings of all threads.
pub(super) fn output(counts: &Counts, options: Options, guarantee: &Guarantee) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    let (_, total) = shares(options);
    let n = |name: &str, value: u64, note: &str| figure(name, value.real(), "1", note);
    output.figures = vec![
        n("jobs", counts.jobs, "periods in which a thread worked"),
        n("deadlines-missed", counts.late, "jobs done after the end of their period"),
        n("periods-missed", counts.missed, "periods that had passed before their thread ran"),
        n(
            "period-shifts",
            counts.shifts,
            "times that the kernel began the periods of a thread anew, off the old grid",
        ),
        n(
            "overruns",
            counts.overruns,
            "times the kernel reported a thread that had used more than its runtime (SIGXCPU): it looks at ticks, so there may be more",
        ),
        figure("bandwidth", total, "CPU", "runtime over period, of all threads together"),
    ];
    if counts.late_within > 0 {
        let title = format!(
            "{} of {} jobs within their runtime ({} of {}) were done after their deadline",
            counts.late_within,
            counts.jobs,
            span(options.work_ns),
            span(options.runtime_ns.cast_signed())
        );
        let (impact, meaning) = if guarantee.virtual_machine {
            (
                Impact::Doubt,
                "This is a virtual machine: whether its kernel or the hypervisor withheld the CPU cannot be known.",
            )
        } else if guarantee.promised {
            (
                Impact::Violation,
                "These threads were admitted and few enough for every deadline to be met on this number of CPUs.",
            )
        } else {
            (
                Impact::Notice,
                "With so much of the CPUs in use, global EDF promises bounded tardiness and not every deadline.",
            )
        };
        output.findings.push(Finding::new("deadline-missed", impact, title).meaning(meaning));
    }
    if counts.overruns > 0 && options.work_ns.cast_unsigned() > options.runtime_ns {
        output.findings.push(Finding::listed(
            "overrun-asked-for",
            Impact::Notice,
            format!("the kernel reported {} overruns, as --busy asked for", counts.overruns),
        ));
    }
    output
}
