// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `busy`: what a loop that never sleeps loses to the machine.
//!
//! Context: SETUP; HOT in `tailbound_rt::poll`. Units: ns.
//! At ordinary priority by default: a real-time loop that never sleeps is throttled by the
//! kernel, and starves the threads whose work it would then meet as noise of its own making.
//! docs/probes/noise.md says how to read it.

use tailbound_core::policy::Policy;
use tailbound_core::units::format_ns_i64;
use tailbound_host::clock_id;
use tailbound_rt::cyclic::Port;
use tailbound_sys::clock::Nanosleep;
use tailbound_sys::counter;

use crate::error::ProbeError;
use crate::kind::{PlantedFault, Prepared, ProbeKind, ProbeOption, Setup};
use crate::noise::gauge::Gauge;
use crate::noise::poll_settings::PollSettings;
use crate::noise::polled;
use crate::noise::poller::WORK_MAX;
use crate::thread_group::{Running, ThreadGroup, thread_spec};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "busy",
    about: "How much of its time, and how much at a stretch, does a polling loop lose?",
    from: "one read of the CPU's time counter",
    to: "the next read of it, less what an undisturbed turn of the loop takes",
    replaces: &["oslat", "preempt_timing", "sysjitter"],
    options: &[
        ProbeOption::new(
            "threshold",
            "TIME",
            "auto",
            "shortest gap beyond a turn that counts; `auto`: 100ns",
        ),
        ProbeOption::new(
            "work",
            "BYTES",
            "0",
            "bytes moved in each turn of the loop, as part of its period",
        ),
        ProbeOption::new(
            "duty",
            "PERCENT",
            "auto",
            "part of each window that is polled, the rest is slept; `auto`: 100, with fifo and rr 90",
        ),
        ProbeOption::new(
            "siblings",
            "WORD",
            "no",
            "`yes`: measure both threads of a core, and mark the run",
        ),
        ProbeOption::plant(
            "`thief`: a SCHED_FIFO thread takes the first CPU for 5 ms ten times a second",
        ),
    ],
    interval: "1ms",
    policy: Some("other"),
    event: Some("window"),
    property: None,
    hog: true,
    takes: &[],
    prepare,
};

const THIEF_NS: i64 = 5_000_000;
const THIEF_INTERVAL_NS: i64 = 100_000_000;
const THIEF_PRIORITY: u8 = 50;

fn way(setup: &Setup<'_>) -> Result<PollSettings, ProbeError> {
    let options = setup.options();
    let threshold_ns = match options.text("threshold") {
        Some("auto") => None,
        _ => Some(options.time_ns("threshold")?),
    };
    Ok(PollSettings {
        threshold_ns,
        least_ns: 0,
        outside_only: false,
        work_bytes: usize::try_from(options.count("work", 0..=WORK_MAX)?).unwrap_or(0),
        duty: polled::duty(setup)?,
        stands_still: false,
    })
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let way = way(setup)?;
    if way.threshold_ns.is_some_and(|ns| ns >= setup.plan.interval_ns) {
        return Err(setup.options().wrong(
            "threshold",
            format!(
                "not shorter than a window (--interval {})",
                format_ns_i64(setup.plan.interval_ns)
            ),
        ));
    }
    let planted = match setup.options().text("plant") {
        None => PlantedFault::Absent,
        Some(_) => setup.options().word("plant", &["thief"]).map(|_| PlantedFault::Present)?,
    };
    polled::check(setup)?;
    Ok(Prepared::with((way, planted), begin))
}

fn begin(
    setup: &Setup<'_>,
    (way, planted): (PollSettings, PlantedFault),
) -> Result<Running, ProbeError> {
    let gauge = Gauge::take()?;
    let mut threads = polled::threads(setup, way, &gauge)?;
    if planted.is_present() {
        thief(setup, &mut threads, &gauge)?;
    }
    polled::release(setup, threads, gauge, |_| {})
}

/// Real theft: what a real-time thread of somebody else does to the loop.
fn thief(setup: &Setup<'_>, threads: &mut ThreadGroup, gauge: &Gauge) -> Result<(), ProbeError> {
    let cpus: Vec<u32> = setup.cpus().into_iter().take(1).collect();
    let (id, ticks) = (clock_id(setup.plan.clock), gauge.scale().ticks(THIEF_NS));
    threads.helper("thief", thread_spec(Policy::Fifo(THIEF_PRIORITY), cpus), move |thread| {
        let mut due = thread.warm_up().first_ns;
        let last = thread.measurement();
        let span = last.interval_ns.saturating_mul(last.activations.cast_signed());
        let end = last.first_ns.saturating_add(span);
        while due < end && !thread.stop().load(std::sync::atomic::Ordering::Relaxed) {
            Nanosleep(id).sleep_until(due);
            let begin = counter::ticks();
            while counter::ticks().wrapping_sub(begin) < ticks {
                std::hint::spin_loop();
            }
            due = due.saturating_add(THIEF_INTERVAL_NS);
        }
        Ok(())
    })
}
