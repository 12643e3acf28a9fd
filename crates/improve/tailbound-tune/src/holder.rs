// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that holds a request which the kernel forgets with its descriptor.
//!
//! Units: µs. `/dev/cpu_dma_latency` is in force while it is open, so somebody
//! has to keep it open after `tune apply` has ended: the program itself, as `tune-holder`. It
//! writes its number and start into a file before it opens the device, so that a kill of the
//! program that starts it loses nothing. Source: Documentation/power/pm_qos_interface.rst.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tailbound_host::root::{Found, Missing, Root};
use tailbound_host::threads;
use tailbound_sys::SysError;
use tailbound_sys::environment::Environment;
use tailbound_sys::new_file::{self, Existing};
use tailbound_sys::process::{self, Pid};
use tailbound_sys::signal::Signals;
use tailbound_sys::spawn::Spawn;

use crate::refused::Refused;
use crate::step::State;

/// Where holders are noted: it vanishes with the boot, as they do.
pub const HOLDERS: &str = "/run/tailbound/holders";
/// Why a process of this program's own is not started, or does not hold.
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    /// Where this program lies is not known, or a pipe cannot be made.
    #[error(transparent)]
    File(#[from] io::Error),
    /// Nothing to take the place of its input and output.
    #[error("/dev/null: {0}")]
    Null(io::Error),
    /// A call was refused.
    #[error(transparent)]
    System(#[from] SysError),
    /// Who it is cannot be read, so it could not be noted.
    #[error(transparent)]
    Thread(#[from] Missing),
    /// It ended before it held anything.
    #[error("the holder ended: {how}")]
    Ended {
        /// How.
        how: String,
    },
    /// It holds nothing yet.
    #[error("the holder did not begin within 2 s")]
    Late,
}

const SIGTERM: i32 = 15;
/// Looks at a process that begins or ends, and the time between two.
const LOOKS: u32 = 400;
const LOOK: Duration = Duration::from_millis(5);

fn note(root: &Root, name: &str) -> PathBuf {
    root.path(&format!("{HOLDERS}/{name}"))
}

/// `PID START`, or absent.
pub(crate) fn state(root: &Root, name: &str) -> Found<State> {
    let text = match fs::read_to_string(note(root, name)) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Missing::Unknown(format!("{HOLDERS}/{name}: {e}"))),
    };
    Ok(living(root, &text).map(|_| text.trim().to_owned()))
}

/// Number and start of the holder that a note names, if it lives.
fn living(root: &Root, text: &str) -> Option<(u32, u64)> {
    let (pid, start) = text.trim().split_once(' ')?;
    let (pid, start) = (pid.parse().ok()?, start.parse().ok()?);
    threads::is_alive(root, pid, start).then_some((pid, start))
}

/// Starts or ends the holder; `state` is the request, such as `0`.
pub(crate) fn set(root: &Root, name: &str, state: &State) -> Result<(), Refused> {
    let denied = |what: &dyn std::fmt::Display| Refused::Denied(format!("{name}: {what}"));
    if !root.is_real() {
        return Err(denied(&"a tree of files has no processes"));
    }
    let file = note(root, name);
    let old = fs::read_to_string(&file).ok().and_then(|text| living(root, &text));
    if let Some((pid, start)) = old {
        process::kill(Pid(pid.cast_signed()), SIGTERM).map_err(|e| denied(&e))?;
        await_end(root, pid, start);
    }
    match state {
        None => match new_file::remove(&file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(denied(&e)),
            _ => Ok(()),
        },
        Some(us) => start(root, &file, us).map_err(|e| denied(&e)),
    }
}

/// A process ends some time after its signal.
fn await_end(root: &Root, pid: u32, start: u64) {
    for _ in 0..LOOKS {
        if !threads::is_alive(root, pid, start) {
            return;
        }
        std::thread::park_timeout(LOOK);
    }
}

/// Starts this program again as a process that outlives the caller, its terminal and its pipes.
///
/// `input` becomes its standard input.
///
/// # Errors
/// The call that was refused.
pub(crate) fn start_detached(
    arguments: &[OsString],
    input: Option<BorrowedFd<'_>>,
    more: Option<(BorrowedFd<'_>, i32)>,
) -> Result<Pid, HolderError> {
    let exe = std::env::current_exe()?;
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(HolderError::Null)?;
    let input = input.unwrap_or_else(|| null.as_fd());
    let mut descriptors = vec![(input, 0), (null.as_fd(), 1), (null.as_fd(), 2)];
    descriptors.extend(more);
    let spawn = Spawn {
        program: &exe,
        arguments,
        descriptors: &descriptors,
        pid_namespace: false,
        new_session: true,
        death_signal: 0,
        cpus: &[],
        environment: Environment::Inherited,
    };
    Ok(spawn.start()?)
}

fn start(root: &Root, file: &Path, us: &str) -> Result<(), HolderError> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let pid = start_detached(&["tune-holder".into(), us.into(), file.into()], None, None)?;
    // It notes itself once it holds the request; until then there is no such state.
    for _ in 0..LOOKS {
        if fs::read_to_string(file).ok().and_then(|text| living(root, &text)).is_some() {
            return Ok(());
        }
        if let Ok(Some(status)) = process::try_wait(pid) {
            return Err(HolderError::Ended { how: process::ended(status) });
        }
        std::thread::park_timeout(LOOK);
    }
    Err(HolderError::Late)
}

/// `tailbound tune-holder US NOTE`: holds until it is ended.
///
/// # Errors
/// The request was refused, or the note cannot be written.
pub fn hold(us: i32, note: &Path) -> Result<(), HolderError> {
    let signals = Signals::block_and_open()?;
    let _held = crate::dma_latency::hold(us)?;
    let this = threads::thread(&Root::real(), std::process::id())?;
    let text = format!("{} {}\n", this.tid, this.start_ticks);
    new_file::write(note, Existing::Replace, text.as_bytes())?;
    while signals.wait(-1).is_none() {}
    Ok(())
}
