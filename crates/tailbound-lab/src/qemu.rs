// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU: found, asked for its version, started so that a guest's time is what it executed.
//!
//! Context: COLD. Units: MiB; one instruction is 2^shift ns.
//! Source: qemu-system(1), `-icount`, `-rtc`, `-seed`, `-action`; docs/virtual-time.md.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tailbound_sys::environment::Environment;
use tailbound_sys::hostinfo;
use tailbound_sys::process::{self, Pid};
use tailbound_sys::spawn::Spawn;

use crate::arch::Arch;
use crate::error::LabError;
use crate::machine::Machine;

const SIGKILL: i32 = 9;

/// The emulator of one architecture on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    /// The program.
    pub program: PathBuf,
    /// First line of `--version`.
    pub version: String,
}

impl Emulator {
    /// The one at `asked`, in `$TAILBOUND_QEMU`, or on the path.
    ///
    /// # Errors
    /// It is missing or does not say its version.
    pub fn find(arch: Arch, asked: Option<&Path>) -> Result<Self, LabError> {
        let name = format!("qemu-system-{arch}");
        let package = if arch == Arch::X86_64 { "qemu-system-x86" } else { "qemu-system-arm" };
        let named = std::env::var_os("TAILBOUND_QEMU").filter(|v| !v.is_empty()).map(PathBuf::from);
        let program = match asked.map(Path::to_owned).or(named) {
            Some(path) => path,
            None => on_path(&name).ok_or_else(|| {
                LabError::cannot(format!(
                    "no {name} on this machine: install Debian's {package}, or give --qemu PROGRAM"
                ))
            })?,
        };
        #[expect(clippy::disallowed_methods, reason = "prints its version and ends")]
        let out = std::process::Command::new(&program).arg("--version").output();
        let out = out.map_err(|e| LabError::file(&program, &e))?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        if !version.contains("QEMU") {
            return Err(LabError::cannot(format!(
                "{} --version does not speak of QEMU: is it QEMU?",
                program.display()
            )));
        }
        Ok(Self { program, version })
    }

    /// Major version, where it can be read.
    #[must_use]
    pub fn major(&self) -> Option<u32> {
        let number = self.version.split("version ").nth(1)?;
        number.split('.').next()?.parse().ok()
    }
}

pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|p| p.is_file())
}

/// What to boot.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine model.
    pub machine: Machine,
    /// CPUs.
    pub smp: u32,
    /// Memory.
    pub memory_mib: u32,
    /// One instruction is 2^shift ns.
    pub shift: u8,
    /// Of everything random.
    pub seed: u32,
    /// The host's own time instead of virtual time.
    pub kvm: bool,
    /// The kernel image.
    pub image: PathBuf,
    /// The initramfs.
    pub initramfs: PathBuf,
    /// The kernel's command line.
    pub command_line: String,
    /// The board's device tree.
    pub device_tree: Option<PathBuf>,
}

impl Setup {
    /// The words for QEMU that the guest's life up to its job depends on.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
                .map(OsString::from)
                .into();
        let mut word = |text: &str| words.push(OsString::from(text));
        for own in self.machine.words() {
            word(&own);
        }
        if self.kvm {
            word("-accel");
            word("kvm");
        } else {
            word("-accel");
            word("tcg");
            word("-icount");
            word(&format!("shift={},sleep=off,align=off", self.shift));
        }
        for (flag, value) in [
            ("-smp", self.smp.to_string()),
            ("-m", self.memory_mib.to_string()),
            ("-seed", self.seed.to_string()),
            ("-rtc", "base=2026-01-01T00:00:00,clock=vm".to_owned()),
            ("-append", self.command_line.clone()),
        ] {
            word(flag);
            word(&value);
        }
        // A guest stands still where its watchdog expires, and where it is done.
        word("-action");
        word("watchdog=pause,shutdown=pause");
        // Not before its control line is open.
        word("-S");
        let files = [("-kernel", Some(&self.image)), ("-initrd", Some(&self.initramfs))];
        for (flag, path) in files.into_iter().chain([("-dtb", self.device_tree.as_ref())]) {
            if let Some(path) = path {
                words.push(OsString::from(flag));
                words.push(path.into());
            }
        }
        words
    }
}

/// A running QEMU; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Running {
    pid: Pid,
    ended: bool,
    errors: PathBuf,
}

/// The files of one boot.
#[derive(Clone, Debug)]
pub(crate) struct Lines<'a> {
    pub(crate) console: &'a Path,
    pub(crate) results: &'a Path,
    pub(crate) job: Option<&'a Path>,
    pub(crate) incoming: Option<&'a Path>,
    pub(crate) errors: &'a Path,
}

impl Running {
    /// Starts it; the control line is the second value.
    pub(crate) fn start(
        emulator: &Emulator,
        setup: &Setup,
        lines: &Lines<'_>,
    ) -> Result<(Self, UnixStream), LabError> {
        let mut words = setup.words();
        let mut pair = |flag: &str, value: OsString| {
            words.push(OsString::from(flag));
            words.push(value);
        };
        for (id, path) in [("console", lines.console), ("results", lines.results)] {
            pair("-chardev", with_path(&format!("file,id={id},path="), path));
        }
        pair("-serial", OsString::from("chardev:console"));
        if !setup.machine.results_by_device() {
            pair("-serial", OsString::from("chardev:results"));
        }
        if let Some(job) = lines.job {
            pair("-fw_cfg", with_path("name=opt/tailbound/job,file=", job));
        }
        if let Some(snapshot) = lines.incoming {
            let mut uri = OsString::from("exec:cat ");
            uri.push(quoted(snapshot)?);
            pair("-incoming", uri);
        }
        pair("-qmp", OsString::from("stdio"));
        let (ours, theirs) = UnixStream::pair().map_err(LabError::cannot)?;
        let errors = File::create(lines.errors).map_err(|e| LabError::file(lines.errors, &e))?;
        let spawn = Spawn {
            program: &emulator.program,
            arguments: &words,
            descriptors: &[(theirs.as_fd(), 0), (theirs.as_fd(), 1), (errors.as_fd(), 2)],
            pid_namespace: false,
            new_session: true,
            death_signal: SIGKILL,
            cpus: &[],
            environment: Environment::Clean,
        };
        let pid = spawn.start().map_err(LabError::cannot)?;
        Ok((Self { pid, ended: false, errors: lines.errors.to_owned() }, ours))
    }

    /// CPU time it has used so far, all its threads together.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // The name in brackets may hold anything; state is the first field behind it.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        Some(Duration::from_millis((ticks()? + ticks()?) * 1000 / hostinfo::ticks_per_second()))
    }

    /// What QEMU itself complained of.
    pub(crate) fn complaint(&self) -> String {
        let text = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        lines.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join("; ")
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

/// QEMU's option syntax doubles commas in values.
fn with_path(before: &str, path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let mut bytes = before.as_bytes().to_vec();
    for &b in path.as_os_str().as_bytes() {
        bytes.push(b);
        if b == b',' {
            bytes.push(b);
        }
    }
    OsString::from_vec(bytes)
}

/// A path as one word of the shell that QEMU starts.
pub(crate) fn quoted(path: &Path) -> Result<String, LabError> {
    let text = path.to_str().ok_or_else(|| {
        LabError::usage(format!("{}: not a name that QEMU can be told", path.display()))
    })?;
    Ok(format!("'{}'", text.replace('\'', "'\\''")))
}
