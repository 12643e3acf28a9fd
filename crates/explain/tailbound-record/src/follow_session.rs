// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the wake-ups of a process that runs, for a while: its threads are looked at and the events taken, until it or the
//! time is over.
//!
//! Units: ns. The process is never stopped or changed.
//! Not here: the cycles of a program ([`crate::watch_session`]).

use std::collections::BTreeSet;
use std::path::Path;

use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_host::Root;
use tailbound_trace::blame::{BlameSelection, BlameSummary, Follow, Ground, WatchFilter};

use crate::error::ObserveError;
use crate::looks::{LookProgress, Looks};
use crate::recording::{Recording, SystemCalls};
use crate::watch::{Target, Watching};

/// Looks from one look at the threads to the next.
const THREADS_EVERY: u32 = 5;

/// Which wake-ups are followed, and how.
#[derive(Clone, Debug)]
pub struct FollowRequest {
    /// The process.
    pub pid: u32,
    /// Threads of these names alone, or all.
    pub comm: Vec<String>,
    /// Which of the wake-ups are kept.
    pub wanted: BlameSelection,
    /// Load no programs into the kernel.
    pub plain: bool,
    /// Is a hypervisor beneath?
    pub virtual_machine: Option<bool>,
}

/// What following came to.
#[derive(Debug)]
pub struct FollowEnd {
    /// The wake-ups.
    pub found: BlameSummary,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// Follows. `exe trace-guard` removes the trace if this process is killed.
///
/// # Errors
/// [`ObserveError`]; nothing is left behind then.
pub fn follow(
    root: Root,
    exe: &Path,
    request: FollowRequest,
    mut looks: Looks,
    progress: &mut dyn LookProgress,
) -> Result<FollowEnd, ObserveError> {
    let FollowRequest { pid, comm, wanted, plain, virtual_machine } = request;
    let target = Target { pid: Some(pid), comm, ..Target::default() };
    let make = |recording: &Recording| {
        let event_ns = recording.event_ns().unwrap_or(0);
        let ground = Ground { virtual_machine, event_ns, ..Ground::default() };
        let watched = WatchFilter::Threads(BTreeSet::new());
        Follow::new(watched, recording.symbols(), ground, wanted)
    };
    let mut watching = Watching::begin(root, exe, target, SystemCalls::LeftOut, make)?;
    if !plain {
        watching.with_stacks();
    }
    let mut notes = Vec::new();
    looks.start();
    let mut n = 0u32;
    while looks.wait() {
        n = n.wrapping_add(1);
        watching.poll(&mut |_| {});
        watching.take_stacks();
        if n.is_multiple_of(THREADS_EVERY) && !watching.look() {
            notes.push(format!("process {pid} ended"));
            break;
        }
        looks.tell(progress, &mut || line(watching.so_far().so_far()));
    }
    watching.poll(&mut |_| {});
    watching.take_stacks();
    let ended = watching.end(&mut |_| {});
    notes.extend(ended.recorded.notes);
    notes.extend(ended.recorded.findings.into_iter().map(|f| f.title));
    if ended.recorded.lost > 0 {
        notes.push(format!("{} events were lost", grouped(ended.recorded.lost)));
    }
    Ok(FollowEnd { found: ended.sink.finish(), notes })
}

/// How far it is.
fn line(found: &BlameSummary) -> String {
    let latest = found.threads.values().filter_map(|t| t.wakeups.max_ns).max();
    let wakeups: u64 = found.threads.values().map(|t| t.wakeups.n).sum();
    let latest = latest.map_or_else(|| "-".to_owned(), format_ns_i64);
    format!("{} wake-ups, latest {latest}", grouped(wakeups))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_nothing_has_no_latest() {
        assert_eq!(line(&BlameSummary::default()), "0 wake-ups, latest -");
    }
}
