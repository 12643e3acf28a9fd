// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written to tracefs for `--blame`.
//!
//! Context: SETUP. Units: KiB in the kernel's files.
//! Source: Documentation/trace/{ftrace,events}.rst.

use std::path::Path;
use std::sync::Arc;

use tailbound_core::Finding;
use tailbound_core::finding::Impact;
use tailbound_core::plan::Clock;
use tailbound_core::units::format_ns_i64;
use tailbound_host::{Missing, Root, Tracefs, TracefsError};
use tailbound_trace::event::{EventSpec, WANTED};
use tailbound_trace::symbols::Symbols;
use tailbound_trace::{EventDecoder, EventFormat};

use super::cost;
use crate::error::ObserveError;
use crate::own_trace::{OwnTrace, first_namespace};
use crate::trace_clock::trace_clock_name;

/// Buffer of a CPU, of which a fifth of a second has to fit; all together a small share of the memory.
const BUFFER_KIB: (u64, u64) = (256, 4096);
const SHARE_OF_MEMORY: u64 = 32;

/// Longer than the list of any kernel's functions, in bytes.
const KALLSYMS_MAX: u64 = 64 << 20;

/// A trace that could run, and what its events mean.
pub(crate) struct Ready {
    pub(crate) trace: OwnTrace,
    pub(crate) decoder: EventDecoder,
    pub(crate) symbols: Arc<Symbols>,
    /// Those that have a buffer.
    pub(crate) cpus: Vec<u32>,
    /// What recording one event costs, where it could be measured.
    pub(crate) event_ns: Option<i64>,
}

/// Makes the trace, with all events on, and off itself. `exe trace-guard` removes it if this process is killed.
///
/// # Errors
/// [`ObserveError`]: no tracefs, not root, a namespace, events that are needed and not there. Nothing is left then.
pub(crate) fn ready(root: &Root, exe: &Path, clock: Clock) -> Result<Ready, ObserveError> {
    first_namespace(root)?;
    let tracefs = Tracefs::find(root)?;
    let formats = formats(&tracefs)?;
    let mut trace = OwnTrace::make(root, exe)?;
    let cpus = instance(root, &mut trace, clock)?;
    let event_ns = cost::event_ns(&trace);
    events_on(&mut trace, &formats)?;
    let decoder = EventDecoder::new(&formats);
    for lacking in decoder.lacking() {
        trace.notes.push(format!("{lacking}: the event is not used"));
    }
    let symbols = Arc::new(Symbols::parse(&kallsyms(root)));
    if symbols.is_empty() {
        trace.notes.push(
            "/proc/kallsyms does not tell the kernel's functions: they have no names".to_owned(),
        );
    }
    Ok(Ready { trace, decoder, symbols, cpus, event_ns })
}

/// The kernel's functions; nothing where they are not told.
pub(crate) fn kallsyms(root: &Root) -> String {
    let bytes = root.bytes("/proc/kallsyms", KALLSYMS_MAX).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The kernel's descriptions of the events that it has.
///
/// # Errors
/// An event without which nothing can be said.
pub(crate) fn formats(tracefs: &Tracefs) -> Result<Vec<EventFormat>, ObserveError> {
    let mut out = Vec::new();
    for EventSpec { system, name, needed } in WANTED {
        match tracefs.event_format(system, name) {
            Ok(text) => out.push(EventFormat::parse(&text)?),
            Err(Missing::NotApplicable(_)) if *needed => {
                return Err(ObserveError::Lacking {
                    what: format!("trace event {system}:{name}"),
                    option: "CONFIG_ENABLE_DEFAULT_TRACERS or CONFIG_FTRACE",
                    instead: "",
                });
            }
            Err(Missing::NotApplicable(_)) => {}
            Err(Missing::Unknown(why)) => return Err(ObserveError::Format(why)),
        }
    }
    Ok(out)
}

/// Sets up the instance, off; the CPUs it has.
///
/// # Errors
/// [`TracefsError`] with what was written.
pub(crate) fn instance(
    root: &Root,
    trace: &mut OwnTrace,
    clock: Clock,
) -> Result<Vec<u32>, TracefsError> {
    let cpus: Vec<u32> = tailbound_host::Cpus::read(root)
        .map(|c| c.online.iter().collect())
        .unwrap_or_else(|_| vec![0]);
    let memory_kib = tailbound_host::meminfo(root, "MemTotal").unwrap_or(0);
    let share = memory_kib.max(0).cast_unsigned() / SHARE_OF_MEMORY / (cpus.len() as u64).max(1);
    trace.instance.set("tracing_on", "0")?;
    trace.instance.set("trace_clock", trace_clock_name(clock))?;
    trace.instance.set("buffer_size_kb", &share.clamp(BUFFER_KIB.0, BUFFER_KIB.1).to_string())?;
    // Names are in the events; recording them again would hook every switch once more. Older
    // kernels have the option at the top only, which is not ours to change.
    drop(trace.instance.set("options/record-cmd", "0"));
    Ok(cpus)
}

/// Switches the events on.
///
/// # Errors
/// [`TracefsError`] for one that is needed; others are noted.
fn events_on(trace: &mut OwnTrace, formats: &[EventFormat]) -> Result<(), TracefsError> {
    for wanted in WANTED.iter().filter(|w| formats.iter().any(|f| f.name == w.name)) {
        let path = format!("events/{}/{}/enable", wanted.system, wanted.name);
        match trace.instance.set(&path, "1") {
            Err(e) if wanted.needed => return Err(e),
            Err(e) => trace.notes.push(format!("{e}: the event is not used")),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// What it does to the figures.
pub(crate) fn cost_finding(event_ns: Option<i64>) -> Finding {
    let cost = match event_ns {
        Some(ns) => format!("one event costs about {}", format_ns_i64(ns)),
        None => "what one event costs could not be measured".to_owned(),
    };
    Finding::listed(
        "blamed",
        Impact::Notice,
        format!(
            "--blame: the kernel's events of scheduler, timers, interrupts and locks were recorded; {cost}"
        ),
    )
}
