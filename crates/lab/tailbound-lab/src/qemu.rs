// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU started so that a guest's time is what it executed.
//!
//! Units: MiB; one instruction is 2^shift ns.
//! Source: qemu-system(1), `-icount`, `-rtc`, `-seed`, `-action`; docs/virtual-time.md.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tailbound_sys::environment::Environment;
use tailbound_sys::error::SysError;
use tailbound_sys::process::{self, Pid};
use tailbound_sys::spawn::Spawn;
use tailbound_sys::{hostinfo, owner};

use crate::boot_files;
use crate::boot_folder::BootFolder;
use crate::emulator::Emulator;
use crate::error::{LabError, QemuError};
use crate::in_turn::{InTurn, NotInTurn};
use crate::setup::Setup;

const SIGKILL: i32 = 9;

/// What QEMU's own filter of system calls refuses: old calls, new rights, new processes, other
/// priorities and CPUs. Nothing that a guest's figures depend on.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
/// The first descriptor beyond those of the control line: a snapshot, a folder.
const FIRST: i32 = 3;

/// The words for QEMU of one boot, or of one resumed from the state that comes in by a descriptor, and where a debugger
/// may come in.
fn all_words(
    emulator: &Emulator,
    setup: &Setup,
    boot_folder: &BootFolder,
    [incoming, debugger]: [Option<i32>; 2],
) -> Vec<OsString> {
    let mut words = setup.words();
    let mut pair = |flag: &str, value: String| {
        words.push(OsString::from(flag));
        words.push(OsString::from(value));
    };
    if emulator.sandbox {
        pair("-sandbox", SANDBOX.to_owned());
    }
    for name in [boot_files::CONSOLE, boot_files::RESULTS] {
        pair("-chardev", format!("file,id={name},path={name}"));
    }
    pair("-serial", format!("chardev:{}", boot_files::CONSOLE));
    if !setup.machine.results_by_device() {
        pair("-serial", format!("chardev:{}", boot_files::RESULTS));
    }
    if setup.machine.stops {
        pair("-fw_cfg", format!("name=opt/tailbound/job,file={}", boot_files::JOB));
    }
    if boot_folder.watched() {
        pair("-plugin", format!("./{}", boot_files::PLUGIN));
    }
    // A resumed machine announces its network cards by timers of the host's clock, and those
    // would end slices of the guest's time. It has no cards.
    pair("-global", "migration.announce-rounds=0".to_owned());
    if let Some(number) = incoming {
        if setup.slice_us > 0 {
            // Its timer is of virtual time, interrupts nothing and belongs to no device: all it does is to end
            // slices. In a boot it would cost a hundred times what it is worth there.
            pair("-netdev", "hubport,id=slices,hubid=0".to_owned());
            let object =
                format!("filter-buffer,id=slice,netdev=slices,interval={}", setup.slice_us);
            pair("-object", object);
        }
        pair("-incoming", format!("fd:{number}"));
    }
    if let Some(number) = debugger {
        pair("-chardev", format!("socket,id=gdb,fd={number},server=on,wait=off"));
        pair("-gdb", "chardev:gdb".to_owned());
    }
    pair("-qmp", "stdio".to_owned());
    words
}

/// Where root may execute it, QEMU's user may not.
fn not_started(mut e: SysError) -> QemuError {
    if e.is_permission() && e.call == "execve" && owner::effective_user() == 0 {
        e.needs =
            "a program, in folders, that everybody may execute: QEMU runs as a user of its own";
    }
    QemuError::Start(e)
}

/// A running QEMU; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Running {
    pid: Pid,
    ended: bool,
    /// Keeps its threads in turn.
    in_turn: Result<InTurn, NotInTurn>,
}

impl Running {
    /// Starts it in its folder; the control line is the second value.
    pub(crate) fn start(
        emulator: &Emulator,
        setup: &Setup,
        boot_folder: &BootFolder,
        incoming: Option<&File>,
    ) -> Result<(Self, UnixStream), LabError> {
        if !emulator.sandbox && owner::effective_user() == 0 {
            return Err(QemuError::NoSandbox { program: emulator.program.clone() }.into());
        }
        let (ours, theirs) = UnixStream::pair().map_err(QemuError::Connection)?;
        let errors = boot_folder.errors()?;
        let mut descriptors = vec![(theirs.as_fd(), 0), (theirs.as_fd(), 1), (errors.as_fd(), 2)];
        let mut next = FIRST;
        let mut hand = |file| {
            descriptors.push((file, next));
            next += 1;
            next - 1
        };
        // Folders above it need not be open to QEMU's user.
        let (mut program, mut words) = (emulator.program.clone(), Vec::new());
        let root = emulator
            .beside
            .as_ref()
            .map(|beside| File::open(&beside.root).map_err(|e| LabError::file(&beside.root, e)));
        let root = root.transpose()?;
        if let (Some(beside), Some(root)) = (&emulator.beside, &root) {
            let number = hand(root.as_fd());
            (program, words) = beside.words(Path::new(&format!("/proc/self/fd/{number}")));
        }
        let incoming = incoming.map(|state| hand(state.as_fd()));
        let debugger = boot_folder.gdb().map(|listener| hand(listener.as_fd()));
        words.extend(all_words(emulator, setup, boot_folder, [incoming, debugger]));
        let spawn = Spawn {
            program: &program,
            arguments: &words,
            descriptors: &descriptors,
            pid_namespace: false,
            new_session: true,
            death_signal: SIGKILL,
            cpus: &[],
            environment: Environment::Clean,
        };
        let confinement = boot_folder.confinement();
        let (pid, held) = if setup.kvm {
            let pid = spawn.start_confined(&confinement).map_err(not_started)?;
            (pid, Err(NotInTurn::Kvm))
        } else {
            let (pid, held) = spawn.start_held(&confinement).map_err(not_started)?;
            (pid, held.map_err(NotInTurn::NotHeld))
        };
        // Ended by its drop, whatever comes now.
        let mut running = Self { pid, ended: false, in_turn: Err(NotInTurn::Unseen) };
        running.in_turn = match held {
            Ok(calls) => Ok(InTurn::start(pid, calls)?),
            Err(why) => Err(why),
        };
        Ok((running, ours))
    }

    /// From now on its main loop runs only while the thread of its virtual CPUs waits; says why not.
    pub(crate) fn take_turns(&self, virtual_cpus: Pid) -> Option<String> {
        match &self.in_turn {
            Ok(in_turn) => in_turn.behind(self.pid, virtual_cpus).err().map(|why| why.to_string()),
            Err(why) => Some(why.to_string()),
        }
    }

    /// From now on they run as they like.
    pub(crate) fn at_will(&self) {
        if let Ok(in_turn) = &self.in_turn {
            in_turn.at_will();
        }
    }

    /// CPU time it has used so far, all its threads together.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // The name in brackets may hold anything; state is the first field behind it.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        Some(Duration::from_millis((ticks()? + ticks()?) * 1000 / hostinfo::ticks_per_second()))
    }

    /// Ends it.
    pub(crate) fn end(&mut self) {
        if !self.ended {
            self.ended = true;
            drop(process::kill(self.pid, SIGKILL));
            process::wait(self.pid);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
