// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts a worker: a process of this program at the other end of a socket, in a PID
//! namespace of its own where that is permitted.
//!
//! Context: SETUP. Not here: what is said over the socket (`protocol`).

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use tailbound_core::CpuSet;
use tailbound_sys::SysError;
use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, Pid};
use tailbound_sys::spawn::Spawn;

use crate::loads::StartOptions;
use crate::worker::STATUS_FD;

/// Starts a worker of the specification `spec` on `cpus`, or on those of `how`; our end of the
/// socket does not block.
pub(crate) fn worker(
    spec: &str,
    cpus: Option<&CpuSet>,
    how: &StartOptions,
) -> Result<(Pid, UnixStream), SysError> {
    let failed =
        |call, e: std::io::Error| SysError::code(call, "", e.raw_os_error().unwrap_or_default());
    let (ours, theirs) = UnixStream::pair().map_err(|e| failed("socketpair", e))?;
    ours.set_nonblocking(true).map_err(|e| failed("fcntl", e))?;
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|e| failed("open /dev/null", e))?;
    let mut arguments = how.arguments.clone();
    arguments.push(spec.into());
    let cpus = cpus.or(how.cpus.as_ref());
    let cpus: Vec<u32> = cpus.map(|c| c.iter().collect()).unwrap_or_default();
    let start = |pid_namespace| {
        Spawn {
            program: &how.exe,
            arguments: &arguments,
            descriptors: &[(null.as_fd(), 0), (null.as_fd(), 1), (theirs.as_fd(), STATUS_FD)],
            pid_namespace,
            new_session: true,
            // Without a namespace the worker must live to end what it started.
            death_signal: if pid_namespace { process::SIGKILL } else { process::SIGTERM },
            cpus: &cpus,
            environment: Environment::Inherited,
        }
        .start()
    };
    // No right to a namespace, or a kernel without them: the worker cleans up by itself.
    let pid = start(true).or_else(|e| if e.call == "clone" { start(false) } else { Err(e) })?;
    Ok((pid, ours))
}
