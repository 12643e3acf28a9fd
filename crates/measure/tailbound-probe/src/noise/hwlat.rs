// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `hwlat`: time that is taken from beneath the kernel: firmware (SMM), a hypervisor,
//! the hardware itself.
//!
//! Context: SETUP; HOT in `tailbound_rt::poll`. Units: ns.
//! Two means. The kernel's hwlat tracer polls with interrupts off, so that what it sees can only
//! come from beneath; it does so for part of the time. Our own loop polls in user mode with
//! interrupts on, and counts only gaps in which this CPU's kernel was not entered. Which one was
//! used is a finding and stands in the plan; how much of the time was looked at is in the verdict.

use tailbound_core::number::Real as _;
use tailbound_core::plan::Plan;
use tailbound_core::record::FigureRecord;
use tailbound_core::{Finding, Impact};
use tailbound_host::Root;
use tailbound_host::smi::{self, NoSmiCount};
use tailbound_record::ObserveError;
use tailbound_record::observe;

use crate::error::ProbeError;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::noise::gauge::{Gauge, KernelEntries};
use crate::noise::poll_settings::PollSettings;
use crate::noise::polled;
use crate::noise::tracer;
use crate::thread_group::{ProbeOutput, Running};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "hwlat",
    about: "Is time taken from beneath the kernel: by firmware, a hypervisor, the hardware?",
    from: "one read of the CPU's time counter",
    to: "the next read of it, where no interrupt, fault or task of this kernel came between",
    replaces: &["hwlatdetect", "rtla hwnoise"],
    options: &[
        ProbeOption::new(
            "with",
            "WORD",
            "auto",
            "`tracer`: the kernel's hwlat tracer; `polling`: our own loop; `auto`: the tracer where the kernel has it",
        ),
        ProbeOption::new(
            "threshold",
            "TIME",
            "10us",
            "shortest gap that is recorded (the tracer counts whole µs)",
        ),
        ProbeOption::new(
            "duty",
            "PERCENT",
            "auto",
            "of `polling`: part of each window that is polled, the rest is slept; `auto`: 100, with fifo and rr 90",
        ),
        ProbeOption::new(
            "siblings",
            "WORD",
            "no",
            "`yes`: measure both threads of a core, and mark the run",
        ),
        ProbeOption::plant(
            "`gap`: the loop itself stands still for 300 us twenty times a second, unknown to the kernel",
        ),
    ],
    interval: "100ms",
    policy: Some("other"),
    event: Some("window"),
    property: None,
    hog: true,
    takes: &[],
    prepare,
};

/// May the kernel's tracer be used here?
fn has_tracer(setup: &Setup<'_>) -> Result<(), ObserveError> {
    observe::choose("hwlat", setup.root, setup.plan.clock, setup.plan.means).map(drop)
}

/// How gaps are looked for.
enum Looking {
    /// By the kernel's tracer.
    Tracer,
    /// By a loop in user mode; why not by the tracer.
    Polling(Option<String>),
}

fn looking(setup: &Setup<'_>) -> Result<Looking, ProbeError> {
    let at = setup.options().word("with", &["auto", "tracer", "polling"])?;
    match (at, has_tracer(setup)) {
        (0 | 1, Ok(())) => Ok(Looking::Tracer),
        (1, Err(why)) => Err(ProbeError::NeedlessTracer(why)),
        (_, has) => Ok(Looking::Polling(has.err().map(|why| why.to_string()))),
    }
}

fn way(setup: &Setup<'_>) -> Result<PollSettings, ProbeError> {
    Ok(PollSettings {
        threshold_ns: None,
        least_ns: setup.options().time_ns("threshold")?,
        outside_only: true,
        work_bytes: 0,
        duty: polled::duty(setup)?,
        stands_still: setup.options().text("plant").is_some(),
    })
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let way = way(setup)?;
    if setup.options().text("plant").is_some() {
        setup.options().word("plant", &["gap"])?;
    }
    setup.options().flag("siblings")?;
    let looking = looking(setup)?;
    if let Looking::Polling(_) = looking {
        polled::check(setup)?;
    }
    Ok(Prepared::with((way, looking), begin))
}

fn begin(
    setup: &Setup<'_>,
    (way, looking): (PollSettings, Looking),
) -> Result<Running, ProbeError> {
    let (root, plan) = (setup.root.clone(), setup.plan.clone());
    let before = smi_counts(&root, &plan);
    let smi = move |output: &mut ProbeOutput| smis(&root, &plan, before, output);
    let why = match looking {
        Looking::Tracer => return tracer::begin(setup, way.least_ns, smi),
        Looking::Polling(why) => why,
    };
    let gauge = Gauge::take()?;
    let threads = polled::threads(setup, way, &gauge)?;
    let witness = match gauge.entries {
        KernelEntries::Reported => "a register of the CPU shows whether the kernel was entered",
        KernelEntries::Hidden => {
            "/proc/interrupts is read after each gap: one interrupt before the gap may hide it"
        }
    };
    polled::release(setup, threads, gauge, move |output| {
        smi(output);
        output.findings.push(means(why, witness));
    })
}

/// Says which means was used.
fn means(no_tracer: Option<String>, witness: &str) -> Finding {
    let why = no_tracer.map_or(String::new(), |w| format!(" ({w})"));
    Finding::new(
        "hwlat-means",
        Impact::Notice,
        format!("measured from user mode, by a polling loop, not by the kernel's hwlat tracer{why}"),
    )
    .meaning(format!(
        "{witness}. Interrupts stay on, so firmware activity at the same moment as an interrupt is attributed to the interrupt."
    ))
    .remedy("A kernel with CONFIG_HWLAT_TRACER, as root: --with tracer.")
}

type Counts = Vec<(u32, Result<u64, NoSmiCount>)>;

fn smi_counts(root: &Root, plan: &Plan) -> Counts {
    plan.cpus.iter().map(|cpu| (cpu, smi::count(root, cpu))).collect()
}

/// The firmware's own count of its interrupts, where the CPU has one.
fn smis(root: &Root, plan: &Plan, before: Counts, output: &mut ProbeOutput) {
    let mut unknown = None;
    for ((cpu, before), (_, after)) in before.into_iter().zip(smi_counts(root, plan)) {
        match (before, after) {
            (Ok(before), Ok(after)) => output.figures.push(FigureRecord {
                name: format!("smi-cpu{cpu}"),
                value: after.saturating_sub(before).real(),
                unit: "1".to_owned(),
                low: None,
                high: None,
                confidence: None,
                note: "system management interrupts during the run, by MSR 0x34".to_owned(),
            }),
            (Err(why), _) | (_, Err(why)) => unknown = unknown.or(Some(why)),
        }
    }
    if let Some(why) = unknown {
        output.findings.push(Finding::listed(
            "smi-unknown",
            Impact::Notice,
            format!("SMIs are not counted: {why}"),
        ));
    }
}
