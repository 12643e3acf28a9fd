// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same run again up to one instant: varied from there on, or stopped there for a debugger.
//!
//! What is varied, and what its log says, is `tailbound_paths::varied`.
//! A run that is stopped has QEMU's stub for gdb at a socket of its own folder, which its user alone (and root) reaches.
//! Source: QEMU docs/system/gdb.rst, qapi/char.json (`query-chardev`).

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tailbound_paths::plan::Plan;
use tailbound_paths::varied::Variation;

use crate::boot::{self, Ended, Progress, Snapshot, Watch};
use crate::boot_folder::BootFolder;
use crate::cell::Prepared;
use crate::error::{GuestError, LabError, SnapshotError};
use crate::paths;
use crate::qmp::{Heard, Qmp};
use crate::run::{self, Means};
use crate::snapshot::Place;
use crate::store::Beside;

/// A log of the last moments may be so long.
const LOG_BYTES: u64 = 1 << 30;
/// Where a state in the middle of a run lies, and what it is called.
const ROOM: &str = "boots";
const STATE: &str = "state";
/// How often it is asked whether gdb is there.
const LOOK: Duration = Duration::from_millis(300);

fn boot_folder(
    prepared: &Prepared,
    means: &Means<'_>,
    plan: &Plan,
    variation: &Variation<'_>,
) -> Result<BootFolder, LabError> {
    let mut boot_folder = BootFolder::make(means.store, &prepared.setup, &prepared.job)?;
    boot_folder.watch(paths::plugin(means.emulator)?, &plan.bytes(), LOG_BYTES)?;
    boot_folder.vary(&variation.bytes())?;
    Ok(boot_folder)
}

fn place(
    prepared: &Prepared,
    means: &Means<'_>,
) -> Result<(Option<Place>, Option<File>), LabError> {
    let place = run::place(prepared, means)?;
    let there = place.as_ref().and_then(|p| p.open(&mut |_| {}));
    Ok((place, there))
}

/// Makes the run up to its sample, from `rewound` or from its beginning; what the plugin wrote.
///
/// # Errors
/// As [`run::run`].
pub fn prepared(
    prepared: &Prepared,
    means: &Means<'_>,
    rewound: Option<&Rewound>,
    plan: &Plan,
    variation: &Variation<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<File, LabError> {
    let boot_folder = boot_folder(prepared, means, plan, variation)?;
    let (place, there) = match rewound {
        Some(rewound) => (None, Some(rewound.open()?)),
        None => place(prepared, means)?,
    };
    let snapshot = match (&there, &place) {
        (Some(file), _) => Snapshot::Use(file),
        (None, Some(place)) => Snapshot::Make(means.store, place),
        (None, None) => Snapshot::None,
    };
    let (emulator, limit, stop) = (means.emulator, means.host_limit_s, means.stop);
    let booted =
        boot::boot(emulator, &prepared.setup, &boot_folder, snapshot, limit, stop, progress)?;
    match booted.ended {
        // The plugin ends QEMU once the sample is there; a run may be over before it is.
        Ended::Quit(why) if why.is_empty() => boot_folder.log(),
        Ended::Restarted => boot_folder.log(),
        Ended::Quit(said) => Err(GuestError::QemuEnded { said }.into()),
        ended => Err(GuestError::NoSample { ended }.into()),
    }
}

/// The run's state at an instant, to go on from as often as one likes; removed when dropped.
#[derive(Debug)]
pub struct Rewound {
    beside: Beside,
}

impl Rewound {
    /// The run up to the instant at which `variation` stops it; nothing where it has no snapshot to begin from.
    ///
    /// # Errors
    /// As [`run::run`].
    pub fn make(
        prepared: &Prepared,
        means: &Means<'_>,
        plan: &Plan,
        variation: &Variation<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<Self>, LabError> {
        let (_, there) = place(prepared, means)?;
        let Some(there) = there else { return Ok(None) };
        let rewound = Self { beside: means.store.beside(ROOM)? };
        let path = rewound.path();
        let state = File::create_new(&path).map_err(|e| LabError::file(&path, e))?;
        let boot_folder = boot_folder(prepared, means, plan, variation)?;
        let begin = begin(prepared, means, &boot_folder, &there);
        boot::until_stopped(begin, progress, &mut |watch| watch.migrate(Some(&state)).map(drop))?;
        Ok(Some(rewound))
    }

    fn path(&self) -> PathBuf {
        self.beside.path().join(STATE)
    }

    /// Each QEMU reads it from its beginning.
    fn open(&self) -> Result<File, LabError> {
        let path = self.path();
        File::open(&path).map_err(|e| LabError::file(&path, e))
    }
}

fn begin<'a>(
    prepared: &'a Prepared,
    means: &Means<'a>,
    boot_folder: &'a BootFolder,
    incoming: &'a File,
) -> boot::Begin<'a> {
    boot::Begin {
        emulator: means.emulator,
        setup: &prepared.setup,
        boot_folder,
        incoming,
        host_limit_s: means.host_limit_s,
        stop: means.stop,
    }
}

/// A guest that stands still for a debugger.
#[derive(Debug)]
pub struct Held {
    /// Where gdb connects to.
    pub socket: PathBuf,
    /// Address of the next instruction, where QEMU tells it.
    pub at: Option<u64>,
}

/// Makes the run up to the instant at which `variation` stops it, and stays until gdb was there and is gone. `held` is called
/// once it stands still, with what gdb needs; `hear` again and again meanwhile.
///
/// # Errors
/// As [`run::run`]; [`LabError::Interrupted`] where Ctrl-C came.
pub fn debug(
    prepared: &Prepared,
    means: &Means<'_>,
    plan: &Plan,
    variation: &Variation<'_>,
    hear: &mut dyn FnMut(),
    held: &mut dyn FnMut(&Held) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let mut boot_folder = boot_folder(prepared, means, plan, variation)?;
    let socket = boot_folder.debug()?;
    let (_, there) = place(prepared, means)?;
    let there = there.ok_or(SnapshotError::None)?;
    let begin = begin(prepared, means, &boot_folder, &there);
    boot::until_stopped(begin, &mut |_| {}, &mut |watch| {
        held(&Held { socket: socket.clone(), at: instruction(&mut watch.qmp)? })?;
        until_gone(watch, hear)
    })
}

fn instruction(qmp: &mut Qmp) -> Result<Option<u64>, LabError> {
    let words = json!({"command-line": "info registers"});
    let answer = qmp.ask("human-monitor-command", &words)?;
    let text = answer.as_str().unwrap_or_default();
    let word = text.split_once("RIP=").and_then(|(_, rest)| rest.split_whitespace().next());
    Ok(word.and_then(|w| u64::from_str_radix(w, 16).ok()))
}

/// Waits until gdb was connected and is no more, or QEMU is gone.
fn until_gone(watch: &mut Watch<'_>, hear: &mut dyn FnMut()) -> Result<(), LabError> {
    let mut was_there = false;
    loop {
        hear();
        watch.interrupted()?;
        if watch.qmp.hear(LOOK) == Heard::Closed {
            return Ok(());
        }
        // gdb may end QEMU, whose control line is then gone.
        let Ok(all) = watch.qmp.ask("query-chardev", &json!({})) else { return Ok(()) };
        let all = all.as_array().cloned().unwrap_or_default();
        let gdb = all.iter().find(|c| c.get("label").and_then(Value::as_str) == Some("gdb"));
        let name = gdb.and_then(|c| c.get("filename")).and_then(Value::as_str);
        let is_there = name.is_some_and(|name| !name.starts_with("disconnected"));
        if was_there && !is_there {
            return Ok(());
        }
        was_there |= is_there;
    }
}
