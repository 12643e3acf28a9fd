// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other one of the two programs: where it is, and how `tailbound` becomes it.
//!
//! `tailbound` measures and is copied to boards; `tailbound-server` has the database and the network server.
//! Both are found beside each other, in `../libexec/tailbound`, or on the PATH, and must be of the same version.
//! Source: execve(2), environ(7) on PATH; the Filesystem Hierarchy Standard 3.0 on libexec.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tailbound_sys::program;

use crate::say::Failure;

/// One of the two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// `tailbound`: everything about one machine.
    #[cfg(feature = "server")]
    Machine,
    /// `tailbound-server`: `serve`, `store`, `fleet`.
    Server,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "server")]
            Self::Machine => "tailbound",
            Self::Server => "tailbound-server",
        }
    }

    /// How a person gets it.
    fn origin(self) -> &'static str {
        match self {
            #[cfg(feature = "server")]
            Self::Machine => "`make build` builds it: target/release/tailbound",
            Self::Server => "`make server` builds it: target/release/tailbound-server",
        }
    }

    /// Its file: beside this program, else in `libexec`, else on the PATH.
    ///
    /// # Errors
    /// If it is nowhere, or only where others may change it while this user is root.
    pub(crate) fn found(self) -> Result<PathBuf, Failure> {
        let own = env::current_exe().ok();
        let beside = own.as_deref().and_then(Path::parent);
        program::find_nearer(self.name(), &folders(beside)).map_err(|missing| {
            Failure::cannot(format!(
                "{missing}. {}; put it into {}, ../libexec/tailbound or a folder of the PATH",
                self.origin(),
                beside.unwrap_or(Path::new("/")).display(),
            ))
        })
    }
}

/// Where one of the two is, seen from the folder `beside` of the other.
fn folders(beside: Option<&Path>) -> Vec<PathBuf> {
    // From `libexec` itself, people's programs are two up.
    let places = ["", "../libexec/tailbound", "../../bin"];
    beside.map(|folder| places.map(|place| folder.join(place)).to_vec()).unwrap_or_default()
}

/// Why the version of a program is not known.
#[derive(Debug)]
enum NoVersion {
    /// It could not be started.
    NotStarted(std::io::Error),
    /// It prints something else.
    NotSaid,
}

impl std::fmt::Display for NoVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotStarted(e) => e.fmt(f),
            Self::NotSaid => f.write_str("it does not say its version"),
        }
    }
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
fn become_program(program: &Path) -> std::io::Error {
    Command::new(program).args(env::args_os().skip(1)).exec()
}

/// Replaces this process by `tailbound-server` with the same words. Returns only if that is not possible.
pub(crate) fn become_server(verb: &str) -> Failure {
    let program = match Program::Server.found() {
        Ok(program) => program,
        Err(missing) => return Failure::cannot(format!("{verb}: {missing}")),
    };
    let shown = program.display();
    match version(&program) {
        Ok(v) if v == env!("CARGO_PKG_VERSION") => {}
        Ok(v) => {
            return Failure::cannot(format!(
                "{verb}: {shown} is version {v}, this program is {}: install both from one release",
                env!("CARGO_PKG_VERSION")
            ));
        }
        Err(why) => return Failure::cannot(format!("{verb}: {shown} cannot be used: {why}")),
    }
    let failed = become_program(&program);
    Failure::cannot(format!("{verb}: {shown} cannot be started: {failed}"))
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
