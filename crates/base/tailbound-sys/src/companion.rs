// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that is installed with this one: where it is, and how this one becomes it.
//!
//! Context: SETUP. Both are found beside each other, in `../libexec/tailbound`, or on the PATH, and must be of the same version.
//! Source: execve(2), environ(7) on PATH; the Filesystem Hierarchy Standard 3.0 on libexec.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt, io};

use crate::program::{self, Missing};

/// The other program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Companion {
    /// The name of its file.
    pub name: &'static str,
    /// How a person gets it.
    pub origin: &'static str,
    /// The version of this program, which must be its own.
    pub version: &'static str,
}

/// Why it is of no use.
#[derive(Debug)]
pub enum CompanionError {
    /// It is nowhere, or only where others may change it while this user is root.
    Missing {
        /// Where it was looked for.
        missing: Missing,
        /// How a person gets it.
        origin: &'static str,
        /// Where this program is.
        beside: PathBuf,
    },
    /// It is of another version.
    OtherVersion {
        /// Its file.
        program: PathBuf,
        /// Its version.
        version: String,
        /// This program's.
        own: &'static str,
    },
    /// Its version is not known.
    Unusable {
        /// Its file.
        program: PathBuf,
        /// Why.
        why: NoVersion,
    },
    /// The kernel does not execute it.
    NotStarted {
        /// Its file.
        program: PathBuf,
        /// Why.
        why: io::Error,
    },
}

impl fmt::Display for CompanionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { missing, origin, beside } => write!(
                f,
                "{missing}. {origin}; put it into {}, ../libexec/tailbound or a folder of the PATH",
                beside.display()
            ),
            Self::OtherVersion { program, version, own } => write!(
                f,
                "{} is version {version}, this program is {own}: install both from one release",
                program.display()
            ),
            Self::Unusable { program, why } => {
                write!(f, "{} cannot be used: {why}", program.display())
            }
            Self::NotStarted { program, why } => {
                write!(f, "{} cannot be started: {why}", program.display())
            }
        }
    }
}

impl std::error::Error for CompanionError {}

/// Why the version of a program is not known.
#[derive(Debug)]
pub enum NoVersion {
    /// It could not be started.
    NotStarted(io::Error),
    /// It prints something else.
    NotSaid,
}

impl fmt::Display for NoVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(e) => e.fmt(f),
            Self::NotSaid => f.write_str("it does not say its version"),
        }
    }
}

impl Companion {
    /// Its file: beside this program, else in `libexec`, else on the PATH.
    ///
    /// # Errors
    /// If it is nowhere, or only where others may change it while this user is root.
    pub fn file(self) -> Result<PathBuf, CompanionError> {
        let own = env::current_exe().ok();
        let beside = own.as_deref().and_then(Path::parent);
        program::find_nearer(self.name, &folders(beside)).map_err(|missing| {
            let beside = beside.unwrap_or(Path::new("/")).to_owned();
            CompanionError::Missing { missing, origin: self.origin, beside }
        })
    }

    /// Replaces this process by it with the same words. Returns only if that is not possible.
    #[must_use]
    pub fn take_over(self) -> CompanionError {
        let program = match self.file() {
            Ok(program) => program,
            Err(e) => return e,
        };
        match version(&program) {
            Ok(v) if v == self.version => {}
            Ok(version) => {
                return CompanionError::OtherVersion { program, version, own: self.version };
            }
            Err(why) => return CompanionError::Unusable { program, why },
        }
        let why = become_program(&program);
        CompanionError::NotStarted { program, why }
    }
}

/// Where one of the two is, seen from the folder `beside` of the other.
fn folders(beside: Option<&Path>) -> Vec<PathBuf> {
    // From `libexec` itself, people's programs are two up.
    let places = ["", "../libexec/tailbound", "../../bin"];
    beside.map(|folder| places.map(|place| folder.join(place)).to_vec()).unwrap_or_default()
}

/// The version of `program`, as it says itself.
#[expect(clippy::disallowed_methods, reason = "prints its version and ends")]
fn version(program: &Path) -> Result<String, NoVersion> {
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let said = said.map_err(NoVersion::NotStarted)?;
    let text = String::from_utf8_lossy(&said.stdout);
    let word = text.split_whitespace().nth(1).filter(|_| said.status.success());
    word.map(str::to_owned).ok_or(NoVersion::NotSaid)
}

#[expect(clippy::disallowed_methods, reason = "no child: this process becomes it")]
fn become_program(program: &Path) -> io::Error {
    Command::new(program).args(env::args_os().skip(1)).exec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_say_its_version_is_refused() {
        let told = version(Path::new("/bin/false")).expect_err("no version").to_string();
        assert!(told.contains("version"), "{told}");
        let told = version(Path::new("/nonexistent/program")).expect_err("not there").to_string();
        assert!(told.contains("No such file"), "{told}");
    }
}
