// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done when a wake-up is too late, and when the run is over: signals, commands, a file of the kernel's trace.
//!
//! ```text
//! words of the command line ─► Threshold ─► run configuration: deadline, rule, tracing
//!                                  └──────► Actions ─► Occasions (while it runs), `at_end`
//! ```
//!
//! Context: SETUP ([`Threshold`]), COLD. Units: ns.
//! They are of the command line alone: no file has a word for them, so that nothing that was received runs a command.
//! Not here: the words of an action (`words`), which are performed when (`occasions`), processes (`command`, `guard`).

mod action_error;
mod at_end;
mod command;
mod guard;
mod occasions;
mod words;

use std::path::PathBuf;

use tailbound_core::plan::{Observe, Plan, RunConfig, StopRule};
use tailbound_host::Root;
use tailbound_sys::addressee::Addressee;
use tailbound_sys::new_file::{Existing, NewFile};

pub use action_error::ActionError;
pub(crate) use at_end::at_end;
pub(crate) use command::{GuardedShell, path_variable};
pub use guard::guard_main;
pub(crate) use occasions::{CommandGate, LateEvent, Occasions};
use words::{ActionWord, Recipient, TaskWord};

use crate::option_text::time;

/// Where a trace goes that nobody named.
const TRACE_FILE: &str = "tailbound-trace.dat";

/// What the command line says about a threshold, as it was typed.
#[derive(Clone, Debug, Default)]
pub struct ThresholdOptions {
    /// `--break`
    pub break_at: Option<String>,
    /// `--break-irq`
    pub break_irq: Option<String>,
    /// `--on-late`
    pub on_late: Vec<String>,
    /// `--on-threshold`
    pub on_threshold: Vec<String>,
    /// `--signal`
    pub signal: Vec<String>,
    /// `--on-end`
    pub on_end: Vec<String>,
    /// `--trace`
    pub trace: Option<PathBuf>,
}

/// The same, read; nothing is opened yet.
#[derive(Debug, Default)]
pub struct Threshold {
    break_at: Option<String>,
    irq_limit_ns: Option<i64>,
    late: Vec<TaskWord>,
    end: Vec<TaskWord>,
    trace: Option<PathBuf>,
    after: AfterThreshold,
}

/// What becomes of a run with `--break` at its threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AfterThreshold {
    /// It ends.
    #[default]
    Ends,
    /// It goes on.
    GoesOn,
}

/// Everything that is to be done, with whom it concerns opened.
#[derive(Debug, Default)]
pub struct Actions {
    pub(crate) late: Vec<Action>,
    pub(crate) end: Vec<Action>,
    pub(crate) trace: Option<TraceFile>,
    pub(crate) irq: Option<IrqLimit>,
}

/// How late an interrupt may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IrqLimit {
    pub(crate) ns: i64,
    /// The first later one ends the run.
    pub(crate) ends: bool,
}

/// A trace that gets its name when there is something in it.
#[derive(Debug)]
pub(crate) struct TraceFile {
    pub(crate) path: PathBuf,
    pub(crate) file: NewFile,
}

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Action {
    Signal { to: Addressee, number: i32 },
    Command(String),
}

impl Threshold {
    /// Reads the words.
    ///
    /// # Errors
    /// [`ActionError`] with the option and what could be written.
    pub fn read(options: &ThresholdOptions) -> Result<Self, ActionError> {
        let mut it = Self::default();
        if let Some(limit) = &options.break_at {
            limit_ns(limit, "--break")?;
            it.break_at = Some(limit.clone());
        }
        it.irq_limit_ns =
            options.break_irq.as_deref().map(|text| limit_ns(text, "--break-irq")).transpose()?;
        it.trace.clone_from(&options.trace);
        for text in &options.on_threshold {
            match words::action("--on-threshold", text)? {
                ActionWord::Trace(path) => it.trace_to(path)?,
                ActionWord::Continue => it.after = AfterThreshold::GoesOn,
                ActionWord::Task(task) => it.late.push(task),
            }
        }
        for text in &options.signal {
            it.late.push(words::signal(text)?);
        }
        for text in &options.on_late {
            it.late.push(words::command("--on-late", text)?);
        }
        for text in &options.on_end {
            match words::action_or_command("--on-end", text)? {
                ActionWord::Trace(path) => it.trace_to(path)?,
                // As in rtla it has no effect there.
                ActionWord::Continue => {}
                ActionWord::Task(task) => it.end.push(task),
            }
        }
        Ok(it)
    }

    fn trace_to(&mut self, path: Option<PathBuf>) -> Result<(), ActionError> {
        let path = path.unwrap_or_else(|| PathBuf::from(TRACE_FILE));
        match &self.trace {
            Some(other) if *other != path => {
                Err(ActionError::TwoTraces { one: other.clone(), other: path })
            }
            _ => {
                self.trace = Some(path);
                Ok(())
            }
        }
    }

    /// Refuses what only a run alone can have, for one of many.
    ///
    /// # Errors
    /// [`ActionError::OfOneRun`].
    pub fn of_many(&self) -> Result<(), ActionError> {
        let some = !self.late.is_empty() || !self.end.is_empty() || self.trace.is_some();
        if some { Err(ActionError::OfOneRun) } else { Ok(()) }
    }

    /// Lays what follows from it over `given`, the options of the command line; `file` are those of a file.
    ///
    /// # Errors
    /// [`ActionError`]: they contradict each other; the kernel's tracing cannot be used.
    pub fn onto(&self, given: &mut RunConfig, file: &RunConfig) -> Result<(), ActionError> {
        let until = given.until.as_ref().or(file.until.as_ref());
        let ends = until.is_some_and(|rule| *rule == StopRule::Exceedance.to_string());
        if self.after == AfterThreshold::GoesOn && ends {
            return Err(ActionError::GoesOnAndEnds);
        }
        if let Some(limit) = &self.break_at {
            given.deadline = Some(limit.clone());
            if self.after == AfterThreshold::Ends {
                given.until = Some(StopRule::Exceedance.to_string());
            }
        }
        let observed = given.observe.is_some() || file.observe.is_some();
        if self.trace.is_some() {
            if observed || self.irq_limit_ns.is_some() {
                return Err(ActionError::TraceAndObserve);
            }
            tailbound_record::blame::possible(&Root::real()).map_err(ActionError::Untraceable)?;
            let blame = given.blame.as_ref().or(file.blame.as_ref());
            let limit = blame.or(given.deadline.as_ref()).or(file.deadline.as_ref());
            let limit = limit.map_or("auto", String::as_str);
            given.blame = Some(limit.trim_end_matches(",if-possible").to_owned());
        } else if self.irq_limit_ns.is_some() {
            if given.blame.is_some() {
                return Err(ActionError::IrqAndBlame);
            }
            if !observed {
                given.observe = Some("auto".to_owned());
            }
        } else if let (Some(limit), None, None) = (&self.break_at, &given.blame, &given.observe) {
            given.blame = Some(format!("{limit},if-possible"));
        }
        Ok(())
    }

    /// Opens whom it concerns, for a run of `plan`: processes that are signalled, the file of the trace.
    ///
    /// # Errors
    /// [`ActionError`]: nothing says what is late; a process is not there; the file is.
    pub fn actions(self, plan: &Plan, existing: Existing) -> Result<Actions, ActionError> {
        let limited = plan.requirement.deadline_ns.is_some() || self.irq_limit_ns.is_some();
        if !self.late.is_empty() && !limited {
            return Err(ActionError::NoThreshold);
        }
        let told = [Observe::Timerlat, Observe::Tracepoints];
        let irq = self.irq_limit_ns.map(|ns| match plan.observe {
            Some(how) if told.contains(&how) => {
                Ok(IrqLimit { ns, ends: self.after == AfterThreshold::Ends })
            }
            _ => Err(ActionError::NoInterrupts),
        });
        let trace = self.trace.map(|path| match NewFile::open(&path, existing) {
            Ok(file) => Ok(TraceFile { path, file }),
            Err(e) => Err(ActionError::TraceFile { path, why: e }),
        });
        Ok(Actions {
            late: self.late.into_iter().map(opened).collect::<Result<_, _>>()?,
            end: self.end.into_iter().map(opened).collect::<Result<_, _>>()?,
            trace: trace.transpose()?,
            irq: irq.transpose()?,
        })
    }
}

/// The same with whom it concerns.
fn opened(word: TaskWord) -> Result<Action, ActionError> {
    let (to, number) = match word {
        TaskWord::Command(line) => return Ok(Action::Command(line)),
        TaskWord::Signal { to, number } => (to, number),
    };
    let process = match to {
        Recipient::Parent => Addressee::parent(),
        Recipient::Process(pid) => Addressee::open(pid),
    };
    Ok(Action::Signal { to: process.map_err(ActionError::Recipient)?, number })
}

fn limit_ns(text: &str, flag: &'static str) -> Result<i64, ActionError> {
    match time(text, flag)? {
        ns if ns > 0 => Ok(ns),
        _ => Err(crate::option_error::OptionError::NotPositive { flag }.into()),
    }
}
