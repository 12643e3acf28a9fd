// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace instance of this run, with its readers.
//!
//! Context: SETUP (`make`), COLD (`end`). What predecessors left is removed first. Nobody else's
//! trace is touched.
//! Not here: which events (`observe`, `blame`), tracefs itself (`tailbound-host`).

use std::path::Path;

use tailbound_core::Finding;
use tailbound_core::finding::Impact;
use tailbound_host::{Instance, Missing, Root, Tracefs};
use tailbound_trace::event::Entry;
use tailbound_trace::{Counts, EventDecoder, PageLayout};

use crate::error::ObserveError;
use crate::trace_ring::RingReaders;

/// The number of the kernel's first PID namespace.
/// Source: include/linux/proc_ns.h, PROC_PID_INIT_INO.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// See the module.
pub(crate) struct OwnTrace {
    // Readers before the instance: it cannot be removed while one is open.
    pub(crate) readers: RingReaders,
    pub(crate) instance: Instance,
    pub(crate) layout: PageLayout,
    /// What was done on the way.
    pub(crate) notes: Vec<String>,
    /// What a reader of the run must know.
    pub(crate) findings: Vec<Finding>,
}

impl OwnTrace {
    /// Makes the instance; `exe trace-guard` is started to remove it if this process is killed.
    ///
    /// # Errors
    /// [`ObserveError`]; nothing is left behind then.
    pub(crate) fn make(root: &Root, exe: &Path) -> Result<Self, ObserveError> {
        let tracefs = Tracefs::find(root)?;
        let mut notes: Vec<String> = tracefs
            .remove_leftovers()
            .iter()
            .map(|name| format!("removed the trace instance {name} of a run that was killed"))
            .collect();
        notes.extend(tracefs.foreign_tracers().into_iter().map(|(place, tracer)| {
            format!(
                "the tracer `{tracer}` of somebody else runs in {place}: its cost is in the figures"
            )
        }));
        Self::open(tracefs, exe, None, notes)
    }

    /// One more beside the first, with a `part` in its name.
    ///
    /// # Errors
    /// [`ObserveError`]; nothing is left behind then.
    pub(crate) fn beside(root: &Root, exe: &Path, part: &str) -> Result<Self, ObserveError> {
        Self::open(Tracefs::find(root)?, exe, Some(part), Vec::new())
    }

    fn open(
        tracefs: Tracefs,
        exe: &Path,
        part: Option<&str>,
        notes: Vec<String>,
    ) -> Result<Self, ObserveError> {
        let unread = |e: Missing| ObserveError::Format(e.reason().to_owned());
        let layout = PageLayout::parse(&tracefs.read("events/header_page").map_err(unread)?)?;
        let instance = Instance::make(tracefs, part, exe)?;
        let unguarded = instance.unguarded().map(|why| {
            let what = "no guard process: the trace would stay if this run were killed";
            Finding::new("no-trace-guard", Impact::Notice, format!("{what}: {why}"))
        });
        let findings = unguarded.into_iter().collect();
        let readers = RingReaders::new(layout.size);
        Ok(Self { readers, instance, layout, notes, findings })
    }

    /// Reads what there is: events to `pending`, times of lost ones to `holes`.
    pub(crate) fn read(
        &mut self,
        decoder: &EventDecoder,
        pending: &mut Vec<Entry>,
        holes: &mut Vec<u64>,
    ) {
        let layout = self.layout;
        self.readers.read(|cpu, page| {
            if let Some(head) = layout.head(page).filter(|h| h.lost) {
                holes.push(head.t_ns);
            }
            let each = |t_ns: u64, record: &[u8]| pending.extend(decoder.decode(t_ns, cpu, record));
            layout.records(page, each).map(drop)
        });
    }

    /// Events that were overwritten before they were read.
    pub(crate) fn lost(&self, cpus: &[u32]) -> u64 {
        cpus.iter().fold(0u64, |sum, cpu| {
            let counts = self.instance.read(&format!("per_cpu/cpu{cpu}/stats"));
            sum.saturating_add(counts.map_or(0, |text| Counts::parse(&text).lost()))
        })
    }

    /// Removes it; what must be told.
    pub(crate) fn end(mut self) -> Vec<Finding> {
        self.readers.close();
        let mut findings = self.findings;
        if let Some(why) = self.readers.unreadable() {
            findings.push(Finding::listed(
                "trace-unreadable",
                Impact::Notice,
                format!("a part of the trace could not be read: {why}"),
            ));
        }
        if let Err(e) = self.instance.remove() {
            findings.push(Finding::listed(
                "trace-left",
                Impact::Notice,
                format!("the trace instance {} could not be removed: {e}", self.instance.name()),
            ));
        }
        findings
    }
}

/// Traces name threads by their numbers in the first PID namespace, and have the time of the first time namespace.
///
/// # Errors
/// [`ObserveError::Namespace`], [`ObserveError::TimeNamespace`]. Where it cannot be told, what was seen is counted.
pub(crate) fn first_namespace(root: &Root) -> Result<(), ObserveError> {
    first_pid_namespace(root)?;
    first_time_namespace(root)
}

/// The numbers of threads alone.
///
/// # Errors
/// [`ObserveError::Namespace`].
pub(crate) fn first_pid_namespace(root: &Root) -> Result<(), ObserveError> {
    match root.link("/proc/self/ns/pid") {
        Ok(own) if own != FIRST_NAMESPACE => Err(ObserveError::Namespace),
        _ => Ok(()),
    }
}

/// Source: time_namespaces(7).
fn first_time_namespace(root: &Root) -> Result<(), ObserveError> {
    let Ok(text) = root.text("/proc/self/timens_offsets") else { return Ok(()) };
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (name, seconds) = (words.next(), words.next().and_then(|s| s.parse::<i64>().ok()));
        let rest = words.next().and_then(|s| s.parse::<i64>().ok()).unwrap_or(0);
        let clock = match name {
            Some("monotonic") => "MONOTONIC",
            Some("boottime") => "BOOTTIME",
            _ => continue,
        };
        if let Some(ahead) = seconds.filter(|s| (*s, rest) != (0, 0)) {
            return Err(ObserveError::TimeNamespace { clock, ahead });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_ahead_of_the_traces_is_named_with_how_far() {
        let dir = std::env::temp_dir().join(format!("tailbound-timens-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("proc/self")).expect("a folder");
        let found = |text: &str| {
            std::fs::write(dir.join("proc/self/timens_offsets"), text).expect("written");
            first_namespace(&Root::at(&dir)).map_err(|e| e.to_string())
        };
        assert_eq!(
            found("monotonic           0         0\nboottime            0         0\n"),
            Ok(())
        );
        let ahead = found("monotonic     1000000         0\nboottime      2000000         0\n");
        assert!(ahead.is_err_and(|e| e.contains("CLOCK_MONOTONIC is 1000000 s ahead")));
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
