// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU programs: the system's, one that was named, one that was fetched beside the system.
//!
//! One that was fetched has libraries of its own, its C library among them, and is
//! started through their loader; the system's are not looked at.
//! Not here: which of them a run takes (`choose`), fetching one (`fetch`), a guest's words (`qemu`).
//! Source: qemu-system(1), ld.so(8).

mod choose;
mod fetch;
mod listing;
mod stored;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tailbound_sys::environment::Environment;
use tailbound_sys::program;

pub use self::choose::{Asked, choose};
pub use self::fetch::{SUITE, fetch};
pub use self::listing::EmulatorListing;
pub use self::stored::{Stored, damaged, remove, stored};
use crate::arch::Arch;
use crate::error::{LabError, QemuError};

/// The emulator of one architecture on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    /// The program.
    pub program: PathBuf,
    /// First line of `--version`.
    pub version: String,
    /// Does it have a filter of its own system calls?
    pub sandbox: bool,
    /// Where it lies with its libraries, if it was fetched.
    pub beside: Option<Beside>,
    /// Why it was chosen, where that was not asked for.
    pub reason: Option<String>,
}

/// A folder with a program, its libraries and its files, apart from the system's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The folder.
    pub root: PathBuf,
    /// The program in it.
    pub program: String,
    /// The loader of its libraries in it.
    pub loader: String,
    /// Folders with libraries in it.
    pub libraries: Vec<String>,
    /// Folders with firmware in it.
    pub data: Vec<String>,
}

impl Beside {
    /// What is executed, and its first words, where this folder is reached as `root`.
    #[must_use]
    pub fn words(&self, root: &Path) -> (PathBuf, Vec<OsString>) {
        let libraries: Vec<String> =
            self.libraries.iter().map(|l| root.join(l).display().to_string()).collect();
        let mut words: Vec<OsString> =
            ["--library-path", &libraries.join(":")].map(OsString::from).into();
        words.push(root.join(&self.program).into_os_string());
        for folder in &self.data {
            words.push(OsString::from("-L"));
            words.push(root.join(folder).into_os_string());
        }
        (root.join(&self.loader), words)
    }
}

impl Emulator {
    /// The one at `asked`, or on the path.
    ///
    /// # Errors
    /// It is missing or does not say its version.
    pub fn find(arch: Arch, asked: Option<&Path>) -> Result<Self, LabError> {
        let program = match asked {
            Some(path) => std::path::absolute(path).map_err(|e| LabError::file(path, e))?,
            None => program::find(&named(arch))
                .map_err(|missing| QemuError::Missing { missing, package: package(arch) })?,
        };
        Self::asked_itself(program, None)
    }

    /// The one in this folder.
    ///
    /// # Errors
    /// It does not start or does not say its version.
    pub(crate) fn in_folder(beside: Beside) -> Result<Self, LabError> {
        let program = beside.root.join(&beside.program);
        Self::asked_itself(program, Some(beside))
    }

    /// Starts it to hear its version and whether it has a sandbox.
    fn asked_itself(program: PathBuf, beside: Option<Beside>) -> Result<Self, LabError> {
        let (execute, first) = match &beside {
            Some(beside) => beside.words(&beside.root),
            None => (program.clone(), Vec::new()),
        };
        // Where it has no sandbox, that word is an error.
        let (output, sandbox) = match output_of(&execute, &first, &["-sandbox", "on", "--version"])?
        {
            (text, _) if text.contains("QEMU emulator") => ((text, String::new()), true),
            _ => (output_of(&execute, &first, &["--version"])?, false),
        };
        let version = output.0.lines().next().unwrap_or_default().trim().to_owned();
        if !version.contains("QEMU") {
            let said = output.1.lines().next().unwrap_or_default().to_owned();
            return Err(QemuError::Other { program, said }.into());
        }
        Ok(Self { program, version, sandbox, beside, reason: None })
    }

    /// Its version's numbers as text, where they can be read: `10.0.13`.
    #[must_use]
    pub fn number(&self) -> Option<&str> {
        let number = self.version.split("version ").nth(1)?;
        number.split(|c: char| !c.is_ascii_digit() && c != '.').next().filter(|n| !n.is_empty())
    }

    /// Major version, where it can be read.
    #[must_use]
    pub fn major(&self) -> Option<u32> {
        self.number()?.split('.').next()?.parse().ok()
    }

    /// Does it share the time up to the next timer among the CPUs of a counted guest? Since 8.1; before that each
    /// CPU executes until that timer is due.
    #[must_use]
    pub fn shares_time(&self) -> bool {
        let mut numbers = self.number().unwrap_or_default().split('.').map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (8, 1),
            _ => false,
        }
    }
}

/// QEMU's name for the emulator of `arch`.
pub(crate) fn named(arch: Arch) -> String {
    format!("qemu-system-{arch}")
}

/// The package of Debian that has it.
pub(crate) fn package(arch: Arch) -> &'static str {
    if arch == Arch::X86_64 { "qemu-system-x86" } else { "qemu-system-arm" }
}

/// What QEMU says with these words, which end it at once: its standard output and error.
fn output_of(
    program: &Path,
    first: &[OsString],
    words: &[&str],
) -> Result<(String, String), LabError> {
    #[expect(clippy::disallowed_methods, reason = "prints its version and ends")]
    let mut command = std::process::Command::new(program);
    command.args(first).args(words).env_clear().envs(Environment::Clean.variables());
    let out = command.output().map_err(|e| LabError::file(program, e))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&out.stdout), text(&out.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: &str) -> Emulator {
        Emulator {
            program: PathBuf::new(),
            version: version.to_owned(),
            sandbox: true,
            beside: None,
            reason: None,
        }
    }

    #[test]
    fn versions_are_read() {
        let old = of("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)");
        assert_eq!(
            (old.number(), old.major(), old.shares_time()),
            (Some("7.2.22"), Some(7), false)
        );
        for (text, shares) in
            [("8.0.4", false), ("8.1.0", true), ("10.0.13 (x)", true), ("x", false)]
        {
            assert_eq!(
                of(&format!("QEMU emulator version {text}")).shares_time(),
                shares,
                "{text}"
            );
        }
        assert_eq!(of("QEMU").number(), None);
    }

    #[test]
    fn one_beside_the_system_is_started_through_its_own_loader() {
        let beside = Beside {
            root: PathBuf::from("/store"),
            program: "usr/bin/qemu".to_owned(),
            loader: "usr/lib/ld.so".to_owned(),
            libraries: vec!["usr/lib/a".to_owned(), "lib/a".to_owned()],
            data: vec!["usr/share/qemu".to_owned()],
        };
        let (program, words) = beside.words(Path::new("/proc/self/fd/4"));
        assert_eq!(program, Path::new("/proc/self/fd/4/usr/lib/ld.so"));
        let words: Vec<_> = words.iter().filter_map(|w| w.to_str()).collect();
        assert_eq!(
            words,
            [
                "--library-path",
                "/proc/self/fd/4/usr/lib/a:/proc/self/fd/4/lib/a",
                "/proc/self/fd/4/usr/bin/qemu",
                "-L",
                "/proc/self/fd/4/usr/share/qemu"
            ]
        );
    }
}
