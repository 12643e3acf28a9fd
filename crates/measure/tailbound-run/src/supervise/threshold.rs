// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the supervisor does when a wake-up, or an interrupt, is beyond its limit.
//!
//! Units: ns of the run's clock, from the first due activation.
//! Signals go out at the look that finds it; commands of a run that ends there wait until its trace is written.
//! Not here: what is done (`crate::actions`), the deadline as a rule that ends the run (`tailbound_stats::stopping`).

use std::sync::atomic::Ordering;

use tailbound_core::Context;
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::occurrence::Occurrence;
use tailbound_core::record::ExceedanceRecord;
use tailbound_core::units::format_ns_i64;
use tailbound_probe::RecordSlot;
use tailbound_record::Observer;

use super::Supervisor;
use crate::actions::{CommandGate, IrqLimit, LateEvent, Occasions, TraceFile};
use crate::world::{Threads as _, World};

/// What is done at a threshold.
#[derive(Default)]
pub(crate) struct AtThreshold {
    pub(crate) occasions: Occasions,
    /// Where the trace around the latest wake-up goes.
    pub(crate) trace: Option<TraceFile>,
    /// How late an interrupt may be.
    pub(crate) irq: Option<IrqLimit>,
}

/// A wake-up of a measured thread that was later than `limit_ns`.
pub(super) fn late_wakeup(slot: RecordSlot, e: &ExceedanceRecord, limit_ns: i64) -> LateEvent {
    LateEvent {
        context: slot.context,
        thread: Some(slot.thread),
        cpu: slot.cpu,
        cycle: Some(e.activation),
        latency_ns: e.error_ns,
        limit_ns,
        t_ns: e.t_ns,
    }
}

impl<W: World> Supervisor<'_, W> {
    /// Looks for an interrupt beyond its limit, which may end the run.
    pub(super) fn judge_interrupts(&mut self) {
        let Some(limit) = self.at_threshold.irq else { return };
        let late = self.observer.as_mut().and_then(Observer::take_late_interrupt);
        let Some(late) = late else { return };
        let t_ns = late.due_ns.saturating_add(late.latency_ns);
        let event = LateEvent {
            context: Context::Irq,
            thread: None,
            cpu: Some(late.cpu),
            cycle: None,
            latency_ns: late.latency_ns,
            limit_ns: limit.ns,
            t_ns,
        };
        self.at_threshold.occasions.late(&event, self.running.clocks_at_start().realtime_ns);
        let (was, most) = (format_ns_i64(late.latency_ns), format_ns_i64(limit.ns));
        let what = format!("the timer's interrupt came {was} late on CPU {}", late.cpu);
        if !self.journal.run.findings.iter().any(|f| f.id == "irq-late") {
            let title = format!("{what}, the limit is {most}");
            let finding = Finding::listed("irq-late", Impact::Violation, title);
            self.journal.finding(finding);
        }
        if limit.ends && !self.by_rule && !self.stop.load(Ordering::Relaxed) {
            self.by_rule = true;
            let at = format_ns_i64(t_ns.max(0));
            let why = format!(
                "ended at the first interrupt later than {most}: {what}, {at} after the begin"
            );
            self.journal.event(self.running.t_ns(), Occurrence::Until { why: &why });
            self.stop.store(true, Ordering::Relaxed);
            self.running.wake();
        }
    }

    /// Goes on with what is to be done.
    pub(super) fn act(&mut self) {
        let ends = self.stop.load(Ordering::Relaxed);
        let gate = match ends && self.at_threshold.trace.is_some() {
            true => CommandGate::Closed,
            false => CommandGate::Open,
        };
        self.at_threshold.occasions.go_on(gate);
        let t = self.running.t_ns();
        for note in self.at_threshold.occasions.take_notes() {
            self.journal.event(t, Occurrence::OnLate { note: &note });
        }
    }
}
