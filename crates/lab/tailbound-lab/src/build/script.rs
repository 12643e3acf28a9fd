// SPDX-License-Identifier: MIT OR Apache-2.0
//! A build by a command of the user's: it gets places, and leaves a kernel image at one of them.
//!
//! It runs in a session of its own at nice 19, in the user's environment, and ends with us.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, SIGTERM};
use tailbound_sys::program;
use tailbound_sys::spawn::Spawn;

use crate::error::{BuildError, LabError, ToolError};

/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Puts values in the place of `{name}`; as a shell reads them.
///
/// # Errors
/// Usage: a name that there is not.
pub fn filled(command: &str, values: &[(&str, &str)]) -> Result<String, LabError> {
    let mut out = command.to_owned();
    for (name, value) in values {
        let quoted = shlex::try_quote(value).map_err(BuildError::Quote)?;
        out = out.replace(&format!("{{{name}}}"), &quoted);
    }
    Ok(out)
}

/// Runs a shell command in `folder`, with what it says in `log`.
///
/// # Errors
/// Cannot: it failed, with the end of its output; interrupted, after it ended.
pub fn run(
    command: &str,
    folder: &Path,
    log: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<(), LabError> {
    let file = tailbound_sys::new_file::begin_log(log).map_err(|e| LabError::file(log, e))?;
    let null = File::open("/dev/null").map_err(|e| LabError::file(Path::new("/dev/null"), e))?;
    let sh = program::find("sh").map_err(ToolError::Missing)?;
    let within = shlex::try_quote(folder.to_str().unwrap_or(".")).map_err(BuildError::Quote)?;
    let line = format!("cd {within} || exit; renice -n 19 $$ >/dev/null 2>&1; {command}");
    let pid = Spawn {
        program: &sh,
        arguments: &[OsString::from("-c"), line.into()],
        descriptors: &[(null.as_fd(), 0), (file.as_fd(), 1), (file.as_fd(), 2)],
        pid_namespace: false,
        new_session: true,
        death_signal: SIGTERM,
        cpus: &[],
        environment: Environment::Users,
    }
    .start()
    .map_err(ToolError::Call)?;
    let status = loop {
        if let Some(status) = process::try_wait(pid).map_err(ToolError::Call)? {
            break status;
        }
        if stop() {
            process::kill_session(pid);
            while let Ok(None) = process::try_wait(pid) {
                std::thread::park_timeout(LOOK);
            }
            return Err(LabError::Interrupted);
        }
        std::thread::park_timeout(LOOK);
    };
    if status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let last =
        text.lines().rev().map(str::trim).find(|l| !l.is_empty()).unwrap_or("it said nothing");
    let (status, last_line) = (process::ended(status), last.to_owned());
    Err(BuildError::Command { status, last_line }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_its_places_and_its_failure_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (image, log) = (folder.path().join("an image"), folder.path().join("log"));
        let line = filled(
            "echo {commit} > {image}",
            &[("commit", "abc; false"), ("image", &image.display().to_string())],
        )
        .unwrap();
        run(&line, folder.path(), &log, &|| false).unwrap();
        assert_eq!(fs::read_to_string(&image).unwrap(), "abc; false\n");
        let e = run("echo no such compiler >&2; exit 3", folder.path(), &log, &|| false);
        let e = e.unwrap_err().to_string();
        assert!(e.contains("no such compiler") && e.contains('3'), "{e}");
        let e = run("sleep 100", folder.path(), &log, &|| true).unwrap_err();
        assert!(matches!(e, LabError::Interrupted));
    }
}
