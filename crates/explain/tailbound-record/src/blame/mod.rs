// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--blame`: the kernel's events of the last seconds are kept beside a run, and each late
//! wake-up that is chosen is taken apart with those of its time.
//!
//! Context: SETUP (`prepare`, `begin`), COLD (`poll`, `end`). Units: ns.
//! The measured threads do nothing for it: the supervisor reads the ring buffers ten times a second
//! and keeps their pages, so that the trace never stops and no spike falls into a gap. Pages are
//! decoded only around a late wake-up.
//! Not here: what the events mean (`tailbound_trace::blame`).

mod choice;
pub(crate) mod cost;
mod kept;
pub(crate) mod setup;
mod store;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tailbound_core::blame::BlameRecord;
use tailbound_core::finding::Impact;
use tailbound_core::number::Real as _;
use tailbound_core::plan::{BlamePlan, Clock, Plan};
use tailbound_core::record::{ExceedanceRecord, SelfCost};
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Context, Finding};
use tailbound_host::smi::Smis;
use tailbound_host::{Root, Tracefs, clock_id};
use tailbound_sys::clock;
use tailbound_trace::EventDecoder;
use tailbound_trace::blame::{Engine, Ground, Late, WakeUp, WatchFilter};
use tailbound_trace::event::Entry;
use tailbound_trace::symbols::Symbols;

use crate::bpf::{self, Tier};
use crate::error::ObserveError;
use crate::measured_thread::MeasuredThread;
use crate::own_trace::{OwnTrace, first_namespace};
use crate::recording::WaitNotes;
use crate::trace_clock::trace_clock_id;
use choice::Choice;
pub use kept::KeptTrace;
use kept::TraceKeeper;
use setup::Ready;
use store::Store;

/// How long before a late wake-up its cause may lie: a second's limit of real-time time ends
/// with up to 50 ms for ordinary threads.
const BEFORE_NS: i64 = 120_000_000;
/// Events behind the end that belong to it: the thread's going to sleep again.
const AFTER_NS: i64 = 1_000_000;

/// Can `--blame` work here?
///
/// # Errors
/// [`ObserveError`]: no tracefs, not root, a namespace, events that are needed and not there.
pub fn possible(root: &Root) -> Result<(), ObserveError> {
    let tracefs = Tracefs::find(root)?;
    first_namespace(root)?;
    setup::formats(&tracefs).map(drop)
}

/// See the module.
pub struct Blamer {
    trace: OwnTrace,
    decoder: EventDecoder,
    symbols: Arc<Symbols>,
    store: Store,
    choice: Choice,
    /// The limit that was asked for.
    above_ns: Option<i64>,
    threads: BTreeMap<u32, (i32, Option<u32>)>,
    clock: i32,
    trace_clock: i32,
    /// The first due activation of the measurement, on the trace's clock.
    start_ns: i64,
    ground: Ground,
    cpus: Vec<u32>,
    /// The measured loop does nothing but sleep.
    sleeps: bool,
    lost: u64,
    /// Records that were made, of the measured threads.
    told: u64,
    read_ns: i64,
    explain_ns: i64,
    /// Programs in the kernel, where they are allowed.
    stacks: Option<Tier>,
    /// The firmware's interrupts, where they are counted.
    smis: Option<Smis>,
    /// What keeps the trace around the latest wake-up, where a file of it is wanted.
    keeper: Option<TraceKeeper>,
}

/// What blaming came to, beside the records that were told on the way.
#[derive(Debug, Default)]
pub struct Blamed {
    /// The last records.
    pub records: Vec<BlameRecord>,
    /// What the reader must know.
    pub findings: Vec<Finding>,
    /// What was done, and what the kernel counted.
    pub notes: Vec<String>,
    /// What it cost.
    pub self_cost: SelfCost,
    /// The trace around the latest wake-up, where it was wanted and there was one.
    pub kept: Option<KeptTrace>,
}

impl Blamer {
    /// Makes and sets up the trace, off; `None` when the plan wants none.
    ///
    /// # Errors
    /// [`ObserveError`]; nothing is left behind then.
    pub fn prepare(root: &Root, plan: &Plan, exe: &Path) -> Result<Option<Self>, ObserveError> {
        let Some(wanted) = plan.blame else { return Ok(None) };
        match Self::make(root, plan, wanted, exe) {
            Ok(made) => Ok(Some(made)),
            Err(_) if wanted.optional => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn make(root: &Root, plan: &Plan, wanted: BlamePlan, exe: &Path) -> Result<Self, ObserveError> {
        let Ready { mut trace, decoder, symbols, cpus, event_ns } =
            setup::ready(root, exe, plan.clock)?;
        trace.findings.push(setup::cost_finding(event_ns));
        let stacks = stacks(root, &symbols, &mut trace);
        let trace_clock = trace_clock_id(plan.clock);
        let smis = Smis::begin(root, &cpus, &plan.cpus);
        Ok(Self {
            store: Store::new(trace.layout),
            trace,
            decoder,
            symbols,
            choice: Choice::new(wanted.above_ns),
            above_ns: wanted.above_ns,
            threads: BTreeMap::new(),
            clock: clock_id(plan.clock),
            trace_clock,
            start_ns: 0,
            ground: Ground { event_ns: event_ns.unwrap_or(0), ..Ground::default() },
            cpus,
            sleeps: plan.probe == "cyclic",
            lost: 0,
            told: 0,
            read_ns: 0,
            explain_ns: 0,
            stacks,
            smis,
            keeper: None,
        })
    }

    /// The trace around the latest wake-up is kept from here on, for [`Blamed::kept`].
    ///
    /// # Errors
    /// [`ObserveError::Format`]: the kernel does not describe its pages.
    pub fn keep_trace(&mut self, root: &Root, clock: Clock) -> Result<(), ObserveError> {
        self.keeper = Some(TraceKeeper::new(root, clock, self.trace.layout.size)?);
        Ok(())
    }

    /// Wake-ups above `limit_ns` will be told: stacks are taken accordingly.
    pub fn limit(&mut self, limit_ns: i64) {
        let limit_ns = self.choice.near_ns().unwrap_or(limit_ns);
        if let Some(stacks) = &mut self.stacks {
            stacks.limit(limit_ns);
            self.trace.notes.push(format!(
                "kernel stacks are taken of waits above {}",
                format_ns_i64(stacks.threshold_ns())
            ));
        }
    }

    /// What was done on the way that a reader of the run should know.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace.notes)
    }

    /// Does a hypervisor lie beneath the machine, as far as that is known?
    pub fn on_ground(&mut self, virtual_machine: Option<bool>) {
        self.ground.virtual_machine = virtual_machine;
    }

    /// Time counts executed instructions.
    pub fn in_virtual_time(&mut self) {
        // Several CPUs take turns in virtual time: then one that is silent may have waited for its turn.
        self.ground.virtual_time = self.cpus.len() == 1;
    }

    /// Lets the trace run beside the threads. What is refused is a finding: they run already.
    /// Their first activation is at `start_ns` of the plan's clock.
    pub fn begin(&mut self, threads: &[MeasuredThread], start_ns: i64) {
        // The trace may have to run on another clock than the schedule.
        let apart = clock::now_ns(self.trace_clock).saturating_sub(clock::now_ns(self.clock));
        self.start_ns = start_ns.saturating_add(apart);
        self.threads = threads
            .iter()
            .filter(|thread| thread.context == Context::User)
            .map(|thread| (thread.thread, (thread.tid, thread.cpu)))
            .collect();
        if let Some(stacks) = &mut self.stacks {
            self.threads.values().for_each(|(tid, _)| stacks.watch(*tid));
        }
        let mut on = self.trace.instance.set("tracing_on", "1");
        for cpu in &self.cpus {
            on = on.and_then(|()| self.trace.readers.open(&self.trace.instance, *cpu));
        }
        if let Err(e) = on {
            self.trace.findings.push(Finding::listed(
                "not-blamed",
                Impact::Notice,
                format!("--blame: {e}"),
            ));
        }
    }

    /// The latency above which wake-ups have to be told, if there is a limit: near misses too.
    #[must_use]
    pub fn near_ns(&self) -> Option<i64> {
        self.choice.near_ns()
    }

    /// A late wake-up of a measured thread.
    pub fn late(&mut self, e: &ExceedanceRecord) {
        self.told += 1;
        if self.threads.contains_key(&e.thread) {
            self.choice.offer(e);
            self.keeper.iter_mut().for_each(|keeper| keeper.offer(e));
        }
    }

    /// Takes what the trace holds, and takes the chosen late wake-ups apart. To be called several times a
    /// second.
    pub fn poll(&mut self) -> Vec<BlameRecord> {
        let before = clock::now_ns(clock::CLOCK_THREAD_CPUTIME_ID);
        let store = &mut self.store;
        self.trace.readers.read(|cpu, page| {
            store.add(cpu, page);
            Ok(())
        });
        if let Some(stacks) = &mut self.stacks {
            let monotonic = clock::now_ns(clock::CLOCK_MONOTONIC);
            stacks.poll(clock::now_ns(self.trace_clock).saturating_sub(monotonic));
            self.trace.notes.append(&mut stacks.take_notes());
        }
        for late in self.keeper.iter_mut().flat_map(TraceKeeper::wanted).collect::<Vec<_>>() {
            let Some(keeper) = &mut self.keeper else { break };
            let woke = self.start_ns.saturating_add(late.t_ns);
            let from = woke.saturating_sub(late.error_ns).saturating_sub(BEFORE_NS);
            let span = (unsigned(from), unsigned(woke.saturating_add(AFTER_NS)));
            if keeper.keep(late, span, &self.store, (&self.decoder, &self.symbols)) {
                break;
            }
        }
        let read = clock::now_ns(clock::CLOCK_THREAD_CPUTIME_ID);
        self.read_ns += read.saturating_sub(before);
        self.ground.firmware = self.smis.as_mut().and_then(Smis::any);
        let chosen = self.choice.take();
        let records = if chosen.is_empty() { Vec::new() } else { self.explain(&chosen) };
        if let Some(above) = self.choice.step() {
            self.stacks.iter_mut().for_each(|s| s.limit(above));
            self.trace.notes.push(format!(
                "from here on only wake-ups later than {} are analysed (the histogram has all)",
                format_ns_i64(above)
            ));
        }
        self.explain_ns += clock::now_ns(clock::CLOCK_THREAD_CPUTIME_ID).saturating_sub(read);
        records
    }

    /// Takes them apart with the events of their time.
    fn explain(&mut self, chosen: &[ExceedanceRecord]) -> Vec<BlameRecord> {
        let woke = |e: &ExceedanceRecord| self.start_ns.saturating_add(e.t_ns);
        let due = |e: &ExceedanceRecord| woke(e).saturating_sub(e.error_ns);
        let from = chosen.iter().map(due).min().unwrap_or(0).saturating_sub(BEFORE_NS);
        let to = chosen.iter().map(woke).max().unwrap_or(0).saturating_add(AFTER_NS);
        let window = self.store.between(&self.decoder, unsigned(from), unsigned(to));
        let tids = self.threads.values().map(|(tid, _)| *tid).collect();
        let mut engine = Engine::new(WatchFilter::Threads(tids), Arc::clone(&self.symbols));
        window.entries.iter().for_each(|e: &Entry| engine.entry(e));
        let mut wakeups = engine.take_wakeups();
        wakeups.extend(engine.open_wakeups());
        let mut out = Vec::new();
        for e in chosen {
            let Some((tid, cpu)) = self.threads.get(&e.thread).copied() else { continue };
            let (due_ns, end_ns) = (unsigned(due(e)), unsigned(woke(e)));
            let lost = window.lost_between(due_ns, end_ns);
            let ground = Ground { lost, ..self.ground };
            let late = Late { pid: tid, due_ns, end_ns, cpu, ours: self.sleeps };
            let mut record = engine.explain(&late, of(&wakeups, &late), &ground);
            if let Some(stacks) = &mut self.stacks {
                stacks.onto(&mut record, due(e), |t| t == tid);
            }
            record.thread = e.thread;
            record.near = self.above_ns.is_some_and(|above| record.latency_ns <= above);
            record.t_ns = e.t_ns.saturating_sub(e.error_ns);
            out.push(record);
        }
        out
    }

    /// Ends the trace and removes it.
    #[must_use]
    pub fn end(mut self) -> Blamed {
        drop(self.trace.instance.set("tracing_on", "0"));
        let records = self.poll();
        self.lost = self.lost.saturating_add(self.trace.lost(&self.cpus));
        let mut notes = std::mem::take(&mut self.trace.notes);
        notes.extend(self.stacks.iter().flat_map(|s| s.last_words(WaitNotes::Told)));
        let mut findings = self.trace.end();
        if self.lost > 0 {
            findings.push(
                Finding::new(
                    "trace-lost",
                    Impact::Notice,
                    format!("{} trace events were overwritten before they were read", grouped(self.lost)),
                )
                .meaning("Late wake-ups of such a time are marked: a part of them may have another cause. The threads' own figures are whole."),
            );
        }
        let left_out = self.choice.left_out();
        if left_out > 0 {
            findings.push(
                Finding::listed(
                    "not-all-blamed",
                    Impact::Notice,
                    format!("{} late wake-ups above the limit of --blame were not analysed: too many came at once", grouped(left_out)),
                ),
            );
        }
        let mut self_cost = SelfCost::new();
        self_cost.insert("blame_read_ns".to_owned(), self.read_ns.real());
        self_cost.insert("blame_explain_ns".to_owned(), self.explain_ns.real());
        if self.ground.event_ns > 0 {
            self_cost.insert("blame_event_ns".to_owned(), self.ground.event_ns.real());
        }
        if self.stacks.is_some() {
            self_cost.insert("blame_stacks_bytes".to_owned(), bpf::kernel_bytes().real());
        }
        let kept = self.keeper.and_then(TraceKeeper::end);
        Blamed { records, findings, notes, self_cost, kept }
    }
}

/// Programs for stacks; a finding where there can be none.
fn stacks(root: &Root, symbols: &Arc<Symbols>, trace: &mut OwnTrace) -> Option<Tier> {
    match Tier::begin(root, Arc::clone(symbols)) {
        Ok(mut stacks) => {
            trace.notes.append(&mut stacks.take_notes());
            Some(stacks)
        }
        Err(e) => {
            trace.findings.push(bpf::lost_finding(&e));
            None
        }
    }
}

fn unsigned(t: i64) -> u64 {
    t.max(0).cast_unsigned()
}

/// The wake-up that ended with a late sample: the last one of its thread that was made ready before
/// its end and not before it was due.
fn of<'a>(wakeups: &'a [WakeUp], late: &Late) -> Option<&'a WakeUp> {
    // A clock's reading and a trace's stamp of the same moment may differ by this much.
    const APART_NS: u64 = 2_000;
    wakeups.iter().rfind(|w| {
        w.pid == late.pid
            && w.waking.is_some_and(|k| {
                k.at.t_ns <= late.end_ns && k.at.t_ns.saturating_add(APART_NS) >= late.due_ns
            })
    })
}
