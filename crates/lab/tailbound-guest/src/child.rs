// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that the guest starts, and how each ended.
//!
//! Context: SETUP. Units: s of the guest's clock.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::path::Path;

use tailbound_sys::environment::Environment;
use tailbound_sys::ipc;
use tailbound_sys::new_file;
use tailbound_sys::process::{self, ChildSignals, Pid};
use tailbound_sys::sched::{self, Attributes, SCHED_FIFO};
use tailbound_sys::spawn::Spawn;

use crate::error::GuestError;

/// Ourselves by another name than `/init`: a load that is the first process of a PID
/// namespace of its own must not take itself for the guest.
pub(crate) const PROGRAM: &str = "/tailbound";
/// Priorities of this process and of the one that measures.
const SIGKILL: i32 = 9;
const PRIORITY_HERE: u32 = 3;
const PRIORITY_WORK: u32 = 2;

pub(crate) fn start(
    program: &Path,
    arguments: &[OsString],
    out: &str,
    words: &mut Vec<String>,
) -> Result<Pid, GuestError> {
    let create = |path: &str| new_file::begin_log(Path::new(path)).map_err(GuestError::file(path));
    let (stdout, stderr) = (create(out)?, create(&format!("{out}.stderr"))?);
    let low = |priority| Attributes { policy: SCHED_FIFO, priority, ..Attributes::default() };
    if let Err(e) = sched::set(0, &low(PRIORITY_HERE)) {
        words.push(e.to_string());
    }
    let spawn = Spawn {
        program,
        arguments,
        descriptors: &[(stdout.as_fd(), 1), (stderr.as_fd(), 2)],
        pid_namespace: false,
        new_session: true,
        death_signal: SIGKILL,
        cpus: &[],
        environment: Environment::Users,
    };
    let pid = spawn.start()?;
    if let Err(e) = sched::set(pid.0, &low(PRIORITY_WORK)) {
        words.push(e.to_string());
    }
    Ok(pid)
}

/// Waits for `pid`, at most `limit_s`; how everything else ended on the way is in `others`.
pub(crate) fn wait(
    pid: Pid,
    limit_s: u64,
    others: &mut BTreeMap<i32, String>,
) -> Result<String, GuestError> {
    let signals = ChildSignals::open()?;
    let begun = std::time::Instant::now();
    loop {
        while let Some((ended, status)) = process::reap_any() {
            if ended == pid {
                return Ok(process::ended(status));
            }
            others.insert(ended.0, process::ended(status));
        }
        let left = limit_s.saturating_sub(begun.elapsed().as_secs());
        if left == 0 {
            process::kill_session(pid);
            return Err(GuestError::NotDone { limit_s });
        }
        let timeout_ms = i32::try_from(left.saturating_mul(1000)).unwrap_or(i32::MAX);
        ipc::wait_readable(&[signals.as_fd()], timeout_ms)?;
        let _ = signals.take();
    }
}
