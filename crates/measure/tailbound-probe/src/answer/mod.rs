// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes that answer pulses from outside: one thread, one line, and what its counts mean.
//!
//! Context: SETUP in `begin`, HOT in the body (in `tailbound_rt::answer`). Units: ns.
//! A line is added as one file here, with its `ProbeKind` and an [`Answering`]; whatever it is, it implements
//! `tailbound_rt::answer::PulseLine` in `tailbound-sys`.
//! Not here: who sends the pulses; their timing as the sender sees it.

mod findings;
pub(crate) mod gpio;
mod gpio_sim;
mod kept;
pub(crate) mod uart;
pub(crate) mod udp;

use std::sync::Arc;

use tailbound_core::Context;
use tailbound_core::policy::Policy;
use tailbound_rt::answer::kept::KeptPulses;
use tailbound_rt::answer::sequence::Sequences;
use tailbound_rt::answer::{self, Logs, PulseLine, PulseTally};
use tailbound_sys::SysError;
use tailbound_sys::answer::By;

use crate::error::ProbeError;
use crate::kind::{ProbeOption, Setup};
use crate::noise::polled;
use crate::thread_group::{
    Finished, ProbeOutput, RecordSlot, Recorders, Running, ThreadContext, ThreadGroup, thread_spec,
};

pub(crate) const BY: ProbeOption = ProbeOption::new(
    crate::kind::SPINS_BY.0,
    "WORD",
    "poll",
    "how the thread waits: `poll` (ppoll, then a read), `read` (a read that waits), `io_uring` (one io_uring_enter), `busy` (it never sleeps, and takes its CPU)",
);

/// A line and what is to be said of it.
pub(crate) trait Answering: PulseLine + Send + 'static {
    /// Drops what came before the threads were let go; called by the thread that answers.
    ///
    /// # Errors
    /// What it needs for that was refused.
    fn forget(&mut self) -> Result<(), SysError>;
    /// From where to where it times, and what only this line counts.
    fn output(&self, tally: &PulseTally) -> ProbeOutput;
    /// Its edges, where pulses are told by these.
    fn edges(&self) -> Option<kept::EdgeTotals> {
        None
    }
}

/// Reads `--by`.
fn by(setup: &Setup<'_>) -> Result<By, ProbeError> {
    let words = ["poll", "read", "io_uring", crate::kind::SPINS_BY.1];
    let by = match setup.options().word(BY.name, &words)? {
        0 => By::Poll,
        1 => By::Read,
        2 => By::IoUring,
        _ => By::Busy,
    };
    if let policy @ Policy::Deadline { .. } = setup.plan.policy {
        return Err(ProbeError::Policy {
            probe: setup.plan.probe.clone(),
            policy,
            why: "SCHED_DEADLINE threads run in their own periods, not when a pulse comes; choose fifo:N, rr:N or other".to_owned(),
        });
    }
    if by == By::Busy {
        polled::check_unlimited(setup)?;
    }
    Ok(by)
}

/// One thread answers on `line`, once everything else is ready.
fn begin<L: Answering>(setup: &Setup<'_>, line: L) -> Result<Running, ProbeError> {
    begin_beside(setup, line, |_| Ok(()))
}

/// The same, with the threads that `helpers` adds.
fn begin_beside<L: Answering>(
    setup: &Setup<'_>,
    line: L,
    helpers: impl FnOnce(&mut ThreadGroup) -> Result<(), ProbeError>,
) -> Result<Running, ProbeError> {
    // How many pulses come is the sender's business: a thread that has no rest is none of ours to refuse.
    let mut threads = setup.threads()?.busy();
    let cpus = setup.cpus();
    let cpu = match cpus.as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    let slot = |thread, context| RecordSlot { context, ..RecordSlot::user(thread, cpu) };
    let mut thread = threads.thread(slot(0, Context::User))?;
    let start = thread.beside(slot(1, Context::Start))?;
    let work = thread.beside(slot(2, Context::Work))?;
    let body = Body { line, start, work, kept: Box::default() };
    thread.start(thread_spec(setup.plan.policy, cpus), move |thread| body.run(thread))?;
    helpers(&mut threads)?;
    threads.release()
}

struct Body<L> {
    line: L,
    start: Arc<Recorders>,
    work: Arc<Recorders>,
    kept: Box<KeptPulses>,
}

impl<L: Answering> Body<L> {
    fn run(mut self, thread: &ThreadContext) -> Result<Finished, SysError> {
        let mut sequences = Sequences::default();
        let (mut is_measuring, mut overdue) = (false, None);
        let mut tally = None;
        self.line.forget()?;
        let finished = thread.phases(|schedule, whole| {
            let [start, work] = [&self.start, &self.work].map(|r| match is_measuring {
                true => &*r.measured,
                false => &*r.warm_up,
            });
            let logs = Logs { whole, start, work };
            self.kept.clear();
            let (line, sequences) = (&mut self.line, &mut sequences);
            let (ended, counts) = answer::run(
                line,
                schedule,
                &logs,
                sequences,
                &mut self.kept,
                &mut overdue,
                thread.stop(),
            );
            tally = is_measuring.then_some(counts);
            is_measuring = true;
            ended
        })?;
        if let Some(tally) = tally {
            let mut own = self.line.output(&tally);
            let first_ns = thread.measurement().first_ns;
            own.pulses.extend(kept::record(&self.kept, self.line.edges(), first_ns));
            thread.output(|output| {
                output.append(own);
                output.append(findings::output(&tally));
            });
        }
        Ok(finished)
    }
}
