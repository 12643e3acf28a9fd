// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `queue`: would a packet queue of this depth overflow at this rate?
//!
//! Context: SETUP; HOT in `tailbound_rt::queue`. Units: packets, packets a second, bytes, ns.
//! The queue is virtual, the work is not: each packet is worked off by moving its bytes. With
//! `max-rate` the highest rate is searched for and confirmed on the rest of the schedule; what
//! is claimed of it is distribution-free: seconds without loss, and how many there were.

use tailbound_core::number::Real as _;
use tailbound_core::record::FigureRecord;
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Finding, Impact};
use tailbound_host::clock_id;
use tailbound_rt::cyclic::LoopEnd;
use tailbound_rt::queue::{self, Drained, Feed, RATE_MAX};
use tailbound_sys::SysError;

use crate::error::ProbeError;
use crate::figures::of_cpu;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::noise::gauge::{Gauge, KernelEntries};
use crate::noise::polled;
use crate::noise::poller::{Poller, Stall, WORK_MAX};
use crate::thread_group::{Finished, ProbeOutput, RecordSlot, Running, ThreadContext, thread_spec};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "queue",
    about: "Would a packet queue overflow? A virtual queue, drained by a loop that does real work for each packet",
    from: "the time at which a packet is due to come",
    to: "the read of the CPU's time counter at which it is taken off the queue, the longest of each window",
    replaces: &["queuelat", "determine_maximum_mpps"],
    options: &[
        ProbeOption::new("depth", "N", "1024", "packets that the queue holds"),
        ProbeOption::new(
            "pps",
            "N",
            "100000",
            "packets a second; with --max-rate, where the search begins",
        ),
        ProbeOption::new("size", "BYTES", "1500", "bytes moved for each packet"),
        ProbeOption::new(
            "max-rate",
            "WORD",
            "no",
            "`yes`: search for the highest rate without loss, and confirm it on the rest of the run",
        ),
        ProbeOption::new(
            "trial",
            "TIME",
            "auto",
            "length of a trial of the search; `auto`: a 40th of the run",
        ),
        ProbeOption::new(
            "siblings",
            "WORD",
            "no",
            "`yes`: measure both threads of a core, and mark the run",
        ),
        ProbeOption::plant("`stall`: the drain stands still for 20 ms every quarter of a second"),
    ],
    interval: "1ms",
    policy: Some("other"),
    event: Some("window"),
    property: Some("no packet was lost at the rate that is claimed"),
    hog: true,
    takes: &[],
    prepare,
};

const STALL_NS: i64 = 20_000_000;
const STALL_EVERY_NS: i64 = 250_000_000;
const DEPTH_MAX: u64 = 1 << 32;
const SECOND_NS: i64 = 1_000_000_000;
/// Trials that a run has room for, at least.
const TRIALS_A_RUN: i64 = 40;

#[derive(Clone, Copy, Debug)]
struct Options {
    depth: u64,
    rate: u64,
    work_bytes: usize,
    trial_ns: Option<i64>,
    stalls: bool,
    confidence: f64,
}

fn options(setup: &Setup<'_>) -> Result<Options, ProbeError> {
    let options = setup.options();
    let search = options.flag("max-rate")?;
    let trial_ns = match options.text("trial") {
        Some("auto") => setup.plan.duration_ns() / TRIALS_A_RUN,
        _ => options.time_ns("trial")?,
    };
    if search && trial_ns.saturating_mul(10) > setup.plan.duration_ns() {
        return Err(options.wrong(
            "trial",
            format!(
                "ten of them do not fit into the run of {}",
                format_ns_i64(setup.plan.duration_ns())
            ),
        ));
    }
    let stalls = match options.text("plant") {
        None => false,
        Some(_) => options.word("plant", &["stall"])? == 0,
    };
    Ok(Options {
        depth: options.count("depth", 1..=DEPTH_MAX)?,
        rate: options.count("pps", 1..=RATE_MAX)?,
        work_bytes: usize::try_from(options.count("size", 0..=WORK_MAX)?).unwrap_or(0),
        trial_ns: search.then_some(trial_ns.max(1)),
        stalls,
        confidence: setup.plan.requirement.confidence,
    })
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = options(setup)?;
    polled::check_busy(setup)?;
    Ok(Prepared::with(options, begin))
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    let gauge = Gauge::take()?;
    let clock = clock_id(setup.plan.clock);
    let mut threads = setup.threads()?.busy();
    for (cpu, thread) in setup.cpus().into_iter().zip(0u32..) {
        let spec = thread_spec(setup.plan.policy, vec![cpu]);
        let slot = RecordSlot::user(thread, Some(cpu));
        threads.measured(slot, spec, move |thread| run(thread, cpu, &options, &gauge, clock))?;
    }
    polled::release(setup, threads, gauge, |_| {})
}

fn run(
    thread: &ThreadContext,
    cpu: u32,
    options: &Options,
    gauge: &Gauge,
    clock: i32,
) -> Result<Finished, SysError> {
    let scale = gauge.scale();
    let mut poller = Poller::new(KernelEntries::Hidden, None, options.work_bytes);
    let turn_ns = scale.ns(poller.turn_ticks());
    poller.stalls(
        options.stalls.then(|| Stall {
            every_ticks: scale.ticks(STALL_EVERY_NS),
            ticks: scale.ticks(STALL_NS),
        }),
    );
    let mut seen = None;
    let mut measured = false;
    let finished = thread.phases(|schedule, recorder| {
        let feed = Feed {
            origin: gauge.at(clock, schedule.first_ns),
            scale,
            hz: gauge.hz(),
            rate: options.rate,
            depth: options.depth,
            trial_ns: options.trial_ns.filter(|_| measured),
            schedule: *schedule,
            recorder,
            stop: thread.stop(),
        };
        let (ended, drained) = queue::run(&mut poller, &feed);
        seen = measured.then_some((ended, drained));
        measured = true;
        ended
    })?;
    if let Some((ended, drained)) = seen {
        let windows = match ended {
            LoopEnd::Complete => thread.measurement().activations,
            LoopEnd::Stopped(n) | LoopEnd::Failed(_, n) => n,
        };
        let span_ns = thread.measurement().interval_ns.saturating_mul(windows.cast_signed());
        thread.output(|output| add_figures(cpu, options, &drained, span_ns, turn_ns, output));
    }
    Ok(finished)
}

fn add_figures(
    cpu: u32,
    options: &Options,
    d: &Drained,
    span_ns: i64,
    turn_ns: i64,
    output: &mut ProbeOutput,
) {
    let mut add = |name: &str, value: f64, unit: &str, note: String| {
        output.figures.push(of_cpu(name, cpu, value, unit, note));
    };
    add(
        "packets",
        d.packets.real(),
        "1",
        format!(
            "worked off; each moved {} bytes and took {} undisturbed",
            grouped(options.work_bytes as u64),
            format_ns_i64(turn_ns)
        ),
    );
    add(
        "lost",
        d.lost.real(),
        "1",
        format!(
            "packets that found the queue full, at {} times, in {} of the run's seconds",
            grouped(d.overflows),
            d.overflow_seconds
        ),
    );
    add(
        "queue-longest",
        d.deepest.real(),
        "1",
        format!(
            "packets waiting at once, before those beyond the depth of {} were lost",
            grouped(options.depth)
        ),
    );
    if options.trial_ns.is_some() {
        return searched(cpu, options, d, output);
    }
    let wait = u128::from(options.depth) * 1_000_000_000 / u128::from(options.rate.max(1));
    add(
        "queue-full-after",
        wait.real(),
        "ns",
        format!(
            "a standstill so long fills a queue of {} at {} packets/s",
            grouped(options.depth),
            grouped(options.rate)
        ),
    );
    if d.lost == 0 {
        return;
    }
    let seconds = (span_ns + SECOND_NS - 1) / SECOND_NS;
    output.findings.push(
        Finding::listed(
            &format!("queue-overflow-{cpu}"),
            Impact::Violation,
            format!(
                "on CPU {cpu} {} of {} packets found the queue of {} full, in {} of {seconds} seconds",
                grouped(d.lost),
                grouped(d.packets.saturating_add(d.lost)),
                grouped(options.depth),
                d.overflow_seconds
            ),
        )
        .meaning(format!(
            "The drain stood still for longer than {}, or a packet's work takes longer than the time to the next.",
            format_ns_i64(i64::try_from(wait).unwrap_or(i64::MAX))
        )),
    );
}

/// What the search found, and what its confirmation is worth.
fn searched(cpu: u32, options: &Options, d: &Drained, output: &mut ProbeOutput) {
    let seconds = d.confirmed_ns / SECOND_NS;
    let (tried, failed) =
        d.remembered().fold((0u64, 0u64), |(n, bad), t| (n + 1, bad + u64::from(t.overflowed)));
    let lowest_lost = d.remembered().filter(|t| t.overflowed).map(|t| t.rate).min();
    let beyond =
        if d.trials_n > tried { format!(" (of {} in all)", d.trials_n) } else { String::new() };
    let trials = format!("{tried} trials{beyond}, {failed} of them with loss");
    if seconds == 0 {
        output.findings.push(Finding::listed(
            &format!("rate-not-confirmed-{cpu}"),
            Impact::Doubt,
            format!("CPU {cpu}: no rate was confirmed for a second; {trials}"),
        ));
        return;
    }
    // Distribution-free: none of n seconds lost a packet.
    let often = 1.0 - (1.0 - options.confidence).powf(1.0 / seconds.real());
    output.figures.push(FigureRecord {
        name: format!("rate-highest-cpu{cpu}"),
        value: d.rate.real(),
        unit: "1/s".to_owned(),
        low: Some(d.rate.real()),
        high: lowest_lost.filter(|r| *r > d.rate).map(|r| r.real()),
        confidence: None,
        note: format!(
            "packets a second without loss at depth {}, confirmed for {}; the upper limit is the lowest rate that lost any; {trials}",
            grouped(options.depth),
            format_ns_i64(d.confirmed_ns)
        ),
    });
    output.figures.push(FigureRecord {
        name: format!("rate-highest-lossy-seconds-cpu{cpu}"),
        value: 0.0,
        unit: "%".to_owned(),
        low: Some(0.0),
        high: Some(often * 100.0),
        confidence: Some(options.confidence),
        note: format!("seconds with loss at that rate: none of {seconds} seen; the limit assumes that they are alike, and nothing of their distribution"),
    });
}
