// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hwlat` by the kernel's tracer: its gaps as the windows of a schedule.
//!
//! Context: COLD: the kernel measures, this reads. Units: ns; the tracer counts whole µs.
//! The tracer goes round the measured CPUs, one window of its own each, and looks for a part of
//! each window. So there is one slot, not one per CPU; the figures show the CPU of each gap.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use tailbound_core::number::Real as _;
use tailbound_core::plan::{Observe, Plan};
use tailbound_core::record::FigureRecord;
use tailbound_core::units::format_ns_i64;
use tailbound_core::{Finding, Impact, Policy};
use tailbound_host::clock_id;
use tailbound_record::{Gap, Observer, trace_clock_id};
use tailbound_rt::cyclic::{LoopEnd, Port, Schedule};
use tailbound_rt::recorder::Recorder;
use tailbound_rt::window::{Absence, Windows};
use tailbound_sys::SysError;
use tailbound_sys::clock::{self, Nanosleep};

use crate::error::ProbeError;
use crate::kind::Setup;
use crate::noise::observed_share;
use crate::thread_group::{Finished, ProbeOutput, RecordSlot, Running, ThreadContext, thread_spec};

/// From one look at the trace to the next.
const LOOK_NS: i64 = 100_000_000;
/// So long a gap may take to come out of the trace.
const LAG_NS: i64 = 300_000_000;

/// Gaps of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct GapTally {
    n: u64,
    ns: i64,
    ns_max: i64,
}

/// Sets the tracer up and starts the thread that reads it.
///
/// # Errors
/// [`ProbeError::Tracer`]: tracefs refuses.
pub(super) fn begin(
    setup: &Setup<'_>,
    least_ns: i64,
    more: impl FnOnce(&mut ProbeOutput) + Send + 'static,
) -> Result<Running, ProbeError> {
    let plan = Plan { observe: Some(Observe::Hwlat), ..setup.plan.clone() };
    let observer = Observer::prepare(setup.root, &plan, setup.exe)
        .map_err(ProbeError::Tracer)?
        .ok_or(ProbeError::NoTracer)?;
    let mut threads = setup.threads()?;
    let clocks =
        ClockIds { schedule: clock_id(setup.plan.clock), trace: trace_clock_id(setup.plan.clock) };
    // It sleeps and takes no CPU time: any CPU will do.
    let spec = thread_spec(Policy::Other, Vec::new());
    threads.measured(RecordSlot::user(0, None), spec, move |thread| {
        read(thread, observer, clocks, least_ns)
    })?;
    threads.after(move |_| {
        let mut output = ProbeOutput::default();
        more(&mut output);
        output
    });
    threads.release()
}

/// The kernel's numbers of the clocks that are read.
#[derive(Clone, Copy, Debug)]
struct ClockIds {
    /// The schedule's.
    schedule: i32,
    /// The one that gaps are stamped with.
    trace: i32,
}

/// The windows of the schedule, and the gaps that came in so far.
struct Eye<'a> {
    thread: &'a ThreadContext,
    id: i32,
    first_ns: i64,
    windows: Windows<'a>,
    least_ns: i64,
    pending: Vec<(i64, i64)>,
    cpus: BTreeMap<u32, GapTally>,
}

impl<'a> Eye<'a> {
    fn new(
        thread: &'a ThreadContext,
        id: i32,
        schedule: &Schedule,
        recorder: &'a Recorder,
    ) -> Self {
        Self {
            thread,
            id,
            first_ns: schedule.first_ns,
            windows: Windows::new(recorder, schedule),
            least_ns: 0,
            pending: Vec::new(),
            cpus: BTreeMap::new(),
        }
    }

    fn now_ns(&self) -> i64 {
        clock::now_ns(self.id).saturating_sub(self.first_ns)
    }

    fn take(&mut self, gaps: &[Gap], id_apart_ns: i64) {
        for &Gap { cpu, t_ns, ns } in gaps.iter().filter(|g| g.ns >= self.least_ns) {
            let seen = self.cpus.entry(cpu).or_default();
            *seen = GapTally { n: seen.n + 1, ns: seen.ns + ns, ns_max: seen.ns_max.max(ns) };
            let at = t_ns.saturating_sub(id_apart_ns).saturating_sub(self.first_ns);
            self.pending.push((at, ns));
        }
        self.pending.sort_unstable();
    }

    /// Closes the windows that ended before `until_ns`, each with its gaps.
    fn close(&mut self, until_ns: i64) {
        let later = self.pending.partition_point(|g| g.0 < until_ns);
        let ready: Vec<_> = self.pending.drain(..later).collect();
        for (at, ns) in ready {
            self.windows_until(at);
            self.windows.see(ns);
        }
        self.windows_until(until_ns);
    }

    fn windows_until(&mut self, ns: i64) {
        while !self.windows.complete() && self.windows.end_ns() <= ns {
            self.windows.close(self.windows.end_ns(), Absence::Waited);
        }
    }

    /// Waits a little; is it over?
    fn wait(&mut self) -> bool {
        Nanosleep(self.id).sleep_until(clock::now_ns(self.id).saturating_add(LOOK_NS));
        self.close(self.now_ns().saturating_sub(LAG_NS));
        self.windows.complete() || self.thread.stop().load(Ordering::Relaxed)
    }

    /// Nothing more comes.
    fn end(&mut self) -> LoopEnd {
        self.close(self.now_ns());
        self.windows.finish();
        if self.windows.complete() {
            LoopEnd::Complete
        } else {
            LoopEnd::Stopped(self.windows.accounted())
        }
    }
}

/// Reads the tracer over the measurement; in the warm-up nothing is looked at.
fn read(
    thread: &ThreadContext,
    mut observer: Observer,
    clocks: ClockIds,
    least_ns: i64,
) -> Result<Finished, SysError> {
    let setting = |path: &str| observer.setting(path).and_then(|t| t.trim().parse::<f64>().ok());
    let duty = setting("hwlat_detector/width")
        .zip(setting("hwlat_detector/window"))
        .filter(|(_, window)| *window > 0.0)
        .map(|(width, window)| width / window);
    let apart_ns = clock::now_ns(clocks.trace).saturating_sub(clock::now_ns(clocks.schedule));
    let mut cpus = BTreeMap::new();
    let mut refused = None;
    let mut warm = true;
    let finished = thread.phases(|schedule, recorder| {
        let mut eye = Eye::new(thread, clocks.schedule, schedule, recorder);
        eye.least_ns = least_ns;
        if std::mem::take(&mut warm) {
            while !eye.wait() {}
            return eye.end();
        }
        let mut over = false;
        let looked = observer.watch_gaps(&mut |gaps| {
            eye.take(gaps, apart_ns);
            over = over || eye.wait();
            over
        });
        refused = looked.err().map(|e| e.to_string());
        let ended = eye.end();
        cpus = std::mem::take(&mut eye.cpus);
        ended
    })?;
    let observed = observer.end();
    thread.output(|output| {
        output.findings.extend(observed.findings.into_iter().filter(|f| f.id != "observed"));
        add_figures(&cpus, duty, refused, output);
    });
    Ok(finished)
}

fn add_figures(
    cpus: &BTreeMap<u32, GapTally>,
    duty: Option<f64>,
    refused: Option<String>,
    output: &mut ProbeOutput,
) {
    output.findings.push(Finding::new(
        "hwlat-means",
        Impact::Notice,
        "measured by the kernel's hwlat tracer, with interrupts off, one CPU after the other",
    ));
    if let Some(why) = refused {
        output.findings.push(Finding::listed(
            "hwlat-refused",
            Impact::Unfit,
            format!("the tracer did not run: {why}"),
        ));
    }
    match duty {
        Some(duty) => output.findings.push(observed_share::finding(duty)),
        None => output.findings.push(Finding::new(
            "duty-cycle",
            Impact::Doubt,
            "the observed share of the time is unknown: hwlat_detector/width and window could not be read",
        )),
    }
    for (cpu, seen) in cpus {
        output.figures.push(FigureRecord {
            name: format!("gaps-cpu{cpu}"),
            value: seen.n.real(),
            unit: "1".to_owned(),
            low: None,
            high: None,
            confidence: None,
            note: format!(
                "gaps seen, {} together, the longest {}",
                format_ns_i64(seen.ns),
                format_ns_i64(seen.ns_max)
            ),
        });
    }
}
