// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own tracing beside a run: where on its way from the timer to the user a
//! wake-up loses its time.
//!
//! Context: SETUP (`choose`, `prepare`, `begin`), COLD (`poll`, `end`). Units: ns.
//! The trace is the binary ring buffer of an instance of our own, read by the supervisor;
//! what it costs the reader is counted, what it costs the measured threads shows only
//! beside a run without it (docs/observe.md).
//! Not here: tracefs (`tailbound-host`), what the records say (`tailbound-trace`).
//! Source: Documentation/trace/{timerlat-tracer,osnoise-tracer,hwlat_detector,events}.rst.

mod fold;
mod setup;

use std::path::Path;

use tailbound_core::finding::Impact;
use tailbound_core::number::Real as _;
use tailbound_core::plan::{Clock, Means, Observe, Plan};
use tailbound_core::record::{SelfCost, ThreadRecord};
use tailbound_core::units::grouped;
use tailbound_core::{CpuSet, Finding, ThreadEnd};
use tailbound_host::{Root, Tracefs, TracefsError, clock_id};
use tailbound_sys::clock;
use tailbound_trace::split::LateInterrupt;
use tailbound_trace::{Counts, Decoder, Merge, Sample};

use crate::error::ObserveError;
use crate::measured_thread::MeasuredThread;
use crate::own_trace::{OwnTrace, first_namespace};
use crate::trace_clock::trace_clock_id;
use fold::Fold;

/// A gap that hwlat saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where.
    pub cpu: u32,
    /// On the trace's clock.
    pub t_ns: i64,
    /// How long it was.
    pub ns: i64,
}

/// From the word to what this machine can do; `auto` is timerlat where the kernel has it,
/// else tracepoints.
///
/// # Errors
/// [`ObserveError`]: wrong words, no tracefs, not root, no such tracer.
pub fn choose(
    word: &str,
    root: &Root,
    clock: Clock,
    means: Means,
) -> Result<Observe, ObserveError> {
    let wanted = match word {
        "auto" => None,
        _ => Some(word.parse::<Observe>().map_err(|_| ObserveError::Word(word.to_owned()))?),
    };
    if wanted == Some(Observe::Tracepoints) {
        absolute(clock, means)?;
    }
    let tracefs = Tracefs::find(root)?;
    let has = |tracer: &str| {
        tracefs.has_tracer(tracer).map_err(|e| ObserveError::Format(e.reason().to_owned()))
    };
    let how = match wanted {
        Some(how) => how,
        None if has("timerlat")? => Observe::Timerlat,
        None => Observe::Tracepoints,
    };
    if how == Observe::Tracepoints {
        absolute(clock, means)?;
        first_namespace(root)?;
        setup::formats(&tracefs, how)?;
        return Ok(how);
    }
    if !has(&how.to_string())? {
        let (option, instead) = match how {
            Observe::Timerlat => {
                ("CONFIG_TIMERLAT_TRACER", "; --observe tracepoints works without")
            }
            Observe::Osnoise => ("CONFIG_OSNOISE_TRACER", ""),
            _ => ("CONFIG_HWLAT_TRACER", ""),
        };
        let what = format!("{how} tracer");
        return Err(ObserveError::Lacking { what, option, instead });
    }
    tracefs.free_for_tracer()?;
    Ok(how)
}

/// Tracepoints tell a thread's timers by their due times.
fn absolute(clock: Clock, means: Means) -> Result<(), ObserveError> {
    let linux = matches!(means, Means::Nanosleep | Means::Timerfd | Means::PosixTimer);
    if linux && clock != Clock::Realtime {
        return Ok(());
    }
    Err(ObserveError::Unfit(format!(
        "--observe tracepoints knows a thread's timers by their due times: they have to be absolute and on a clock that the trace can run on, not --sleep {means} with --clock {clock}"
    )))
}

/// The trace of one run.
pub struct Observer {
    how: Observe,
    clock: Clock,
    cpus: CpuSet,
    trace: OwnTrace,
    decoder: Decoder,
    merge: Merge,
    fold: Fold,
    records: u64,
    lost_uncounted: bool,
    read_ns: i64,
}

/// What a trace came to.
#[derive(Debug, Default)]
pub struct Observed {
    /// One record per thread and context.
    pub threads: Vec<ThreadRecord>,
    /// What the reader must know.
    pub findings: Vec<Finding>,
    /// What reading it cost.
    pub self_cost: SelfCost,
}

impl Observer {
    /// Makes the instance, with everything set that does not depend on the threads; `None` when
    /// the plan wants no trace. `exe trace-guard` is started to remove it if this process is killed.
    ///
    /// # Errors
    /// [`ObserveError`]; nothing is left behind then.
    pub fn prepare(root: &Root, plan: &Plan, exe: &Path) -> Result<Option<Self>, ObserveError> {
        let Some(how) = plan.observe else { return Ok(None) };
        let tracefs = Tracefs::find(root)?;
        if how != Observe::Tracepoints {
            tracefs.free_for_tracer()?;
        }
        let decoder = Decoder::new(&setup::formats(&tracefs, how)?)?;
        let mut trace = OwnTrace::make(root, exe)?;
        trace.findings.push(setup::cost_finding(how));
        let notes = setup::instance(&mut trace.instance, how, plan)?;
        trace.notes.extend(notes);
        Ok(Some(Self {
            how,
            clock: plan.clock,
            cpus: plan.cpus.clone(),
            trace,
            decoder,
            merge: Merge::default(),
            fold: Fold::new(how, plan),
            records: 0,
            lost_uncounted: false,
            read_ns: 0,
        }))
    }

    /// What was done on the way that a reader of the run should know.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace.notes)
    }

    /// A look that must be alone, before loads and threads: hwlat keeps interrupts off for half of
    /// each second. `pause` waits for a number of ms and returns whether the run is to end.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn look_alone(
        &mut self,
        plan: &Plan,
        pause: &mut dyn FnMut(i32) -> bool,
    ) -> Result<(), ObserveError> {
        if self.how != Observe::Hwlat {
            return Ok(());
        }
        let length_ns = setup::alone_ns(plan);
        let id = trace_clock_id(self.clock);
        let begin = clock::now_ns(id);
        self.fold.window(begin, begin.saturating_add(length_ns));
        self.switch_on(&[])?;
        while clock::now_ns(id) < begin.saturating_add(length_ns) && !pause(100) {
            self.poll();
        }
        self.fold.looked(clock::now_ns(id).saturating_sub(begin));
        self.trace.instance.set("tracing_on", "0")?;
        self.poll();
        self.trace.readers.close();
        self.trace.instance.set("current_tracer", "nop")?;
        Ok(())
    }

    /// As [`Self::look_alone`], for a probe whose measurement this is: hands every gap over as
    /// they come, to `seen`, which waits for the next ones and says when it is to end.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn watch_gaps(&mut self, seen: &mut dyn FnMut(&[Gap]) -> bool) -> Result<(), ObserveError> {
        self.fold.window(i64::MIN, i64::MAX);
        self.fold.keep_gaps();
        self.switch_on(&[])?;
        while !seen(&self.fold.take_gaps()) {
            self.poll();
        }
        self.trace.instance.set("tracing_on", "0")?;
        self.poll();
        seen(&self.fold.take_gaps());
        self.trace.readers.close();
        self.trace.instance.set("current_tracer", "nop")?;
        Ok(())
    }

    /// A setting of the tracer, as the kernel has it.
    #[must_use]
    pub fn setting(&self, path: &str) -> Option<String> {
        self.trace.instance.read_shared(path).ok()
    }

    /// Lets it run and opens it for reading, in this order: a tracer cannot be chosen while
    /// somebody reads.
    fn switch_on(&mut self, tids: &[i32]) -> Result<(), TracefsError> {
        setup::switch_on(&self.trace.instance, self.how, tids)?;
        for cpu in self.cpus.iter() {
            self.trace.readers.open(&self.trace.instance, cpu)?;
        }
        Ok(())
    }

    /// Lets the trace run beside the threads. What is refused is a finding: the threads run already.
    /// Their first activation is at `start_ns` of the plan's clock, and phased.
    pub fn begin(&mut self, threads: &[MeasuredThread], start_ns: i64, plan: &Plan) {
        if self.how == Observe::Hwlat {
            return;
        }
        let id = trace_clock_id(self.clock);
        // The trace may have to run on another clock than the schedule.
        let apart = clock::now_ns(id).saturating_sub(clock::now_ns(clock_id(self.clock)));
        let start =
            start_ns.saturating_add(if self.how == Observe::Tracepoints { 0 } else { apart });
        self.fold.window(start, start.saturating_add(plan.duration_ns()));
        self.fold.threads(threads, start_ns);
        let tids: Vec<i32> = threads.iter().map(|thread| thread.tid).collect();
        if let Err(e) = self.switch_on(&tids) {
            self.trace.findings.push(Finding::listed(
                "not-observed",
                Impact::Notice,
                format!("--observe {}: {e}", self.how),
            ));
        }
    }

    /// Interrupts of the timer that are later than this are told by [`Self::take_late_interrupt`]. To be called before
    /// [`Self::begin`].
    pub fn limit_irq(&mut self, limit_ns: i64) {
        self.fold.limit_irq(limit_ns);
    }

    /// The first such interrupt since the last call; its due time counts from the first activation of the measurement.
    pub fn take_late_interrupt(&mut self) -> Option<LateInterrupt> {
        self.fold.take_late()
    }

    /// Takes what the trace holds. To be called several times a second.
    pub fn poll(&mut self) {
        let before = clock::now_ns(clock::CLOCK_THREAD_CPUTIME_ID);
        let until = clock::now_ns(trace_clock_id(self.clock));
        let (decoder, merge, layout) = (&self.decoder, &mut self.merge, &self.trace.layout);
        let (records, uncounted) = (&mut self.records, &mut self.lost_uncounted);
        self.trace.readers.read(|cpu, page| {
            let held = layout.records(page, |t_ns, bytes| {
                if let Some((pid, record)) = decoder.decode(bytes) {
                    merge.add(Sample { t_ns, cpu, pid, record });
                }
            });
            let held = held?;
            *records = records.saturating_add(held.records);
            *uncounted |= held.lost_uncounted;
            Ok(())
        });
        for sample in self.merge.take(until.max(0).cast_unsigned()) {
            self.fold.sample(&sample);
        }
        self.read_ns += clock::now_ns(clock::CLOCK_THREAD_CPUTIME_ID).saturating_sub(before);
    }

    /// What was seen so far, for a run that may be cut off.
    #[must_use]
    pub fn so_far(&self) -> Vec<ThreadRecord> {
        let mut threads = self.fold.clone().end();
        threads.iter_mut().for_each(|t| t.ended = ThreadEnd::Running);
        threads
    }

    /// Ends the trace, takes the rest, and removes it.
    #[must_use]
    pub fn end(mut self) -> Observed {
        drop(self.trace.instance.set("tracing_on", "0"));
        self.poll();
        for sample in self.merge.take(u64::MAX) {
            self.fold.sample(&sample);
        }
        let mut lost = 0u64;
        for cpu in self.cpus.iter() {
            let counts = self.trace.instance.read(&format!("per_cpu/cpu{cpu}/stats"));
            let here = counts.map_or(0, |text| Counts::parse(&text).lost());
            self.fold.lost(cpu, here);
            lost = lost.saturating_add(here);
        }
        let mut findings = self.trace.end();
        if lost > 0 || self.lost_uncounted {
            findings.push(
                Finding::new(
                    "trace-lost",
                    Impact::Notice,
                    format!(
                        "{} trace events were overwritten before they were read",
                        grouped(lost)
                    ),
                )
                .meaning("The kernel's columns lack them; the threads' own figures are whole.")
                .remedy(
                    "Choose a longer interval, or leave the supervisor a CPU that is not measured.",
                ),
            );
        }
        let mut self_cost = SelfCost::new();
        if self.records > 0 {
            self_cost.insert("trace_read_ns".to_owned(), self.read_ns.real() / self.records.real());
        }
        Observed { threads: self.fold.end(), findings, self_cost }
    }
}
