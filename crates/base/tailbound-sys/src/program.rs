// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where other programs are: the one function that looks for them, and the PATH they get.
//!
//! Context: SETUP, COLD. Only absolute folders count, never the current one, which `.`, an empty
//! entry and a missing PATH would stand for: what lies in a folder that somebody sent is not run.
//! For root a folder or program that others may change does not count either.
//! Source: environ(7), exec(3p), `secure_path` of sudoers(5).

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::owner;

/// Where programs are when nobody says it; and administrators' programs are looked for there too.
const FOLDERS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where ordinary users' PATH does not lead, though they may run what is there.
const OF_ADMINISTRATORS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// A program that is not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// What was found of that name, and why it does not count.
    pub passed_over: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not installed", self.name)?;
        for one in &self.passed_over {
            write!(f, "; {one}")?;
        }
        Ok(())
    }
}

/// The program called `name`.
///
/// # Errors
/// It is in no folder that counts.
pub fn find(name: &str) -> Result<PathBuf, Missing> {
    among(name, std::env::var_os("PATH").as_deref(), Trusted::by(owner::effective_user()))
}

/// The same, looked for in `nearer` before the PATH.
///
/// # Errors
/// It is in no folder that counts.
pub fn find_nearer(name: &str, nearer: &[PathBuf]) -> Result<PathBuf, Missing> {
    let path = folders(std::env::var_os("PATH").as_deref());
    let all = nearer.iter().filter(|folder| folder.is_absolute()).cloned().chain(path);
    first(name, all, Trusted::by(owner::effective_user()))
}

/// PATH for a program that is started: the folders that count, in their order.
#[must_use]
pub fn path() -> OsString {
    let root = owner::effective_user() == 0;
    let mut folders = folders(std::env::var_os("PATH").as_deref());
    folders.retain(|f| !root || owner::alone(f).is_ok());
    std::env::join_paths(folders).unwrap_or_else(|_| FOLDERS.into())
}

fn folders(path: Option<&OsStr>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = path
        .map(|p| std::env::split_paths(p).filter(|f| f.is_absolute()).collect())
        .unwrap_or_default();
    if all.is_empty() {
        all = std::env::split_paths(FOLDERS).collect();
    }
    for more in OF_ADMINISTRATORS {
        if !all.iter().any(|f| f == Path::new(more)) {
            all.push(more.into());
        }
    }
    all
}

/// Whose programs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trusted {
    /// Root's alone.
    OfRoot,
    OfAnybody,
}

impl Trusted {
    /// Root runs what nobody else can change.
    fn by(user: u32) -> Self {
        if user == 0 { Self::OfRoot } else { Self::OfAnybody }
    }
}

fn among(name: &str, path: Option<&OsStr>, trusted: Trusted) -> Result<PathBuf, Missing> {
    first(name, folders(path).into_iter(), trusted)
}

fn first(
    name: &str,
    folders: impl Iterator<Item = PathBuf>,
    trusted: Trusted,
) -> Result<PathBuf, Missing> {
    let mut passed_over = Vec::new();
    let plain = !name.is_empty() && !name.contains('/');
    for folder in folders.filter(|_| plain) {
        let program = folder.join(name);
        let runs = |m: std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o111 != 0;
        if !std::fs::metadata(&program).is_ok_and(runs) {
            continue;
        }
        match owner::alone(&program) {
            Err(foreign) if trusted == Trusted::OfRoot => passed_over.push(format!(
                "{} is passed over: {foreign}, and root runs only what is root's",
                program.display()
            )),
            _ => return Ok(program),
        }
    }
    Err(Missing { name: name.to_owned(), passed_over })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn the_current_folder_never_counts() {
        let folder = tempfile::tempdir().unwrap();
        let name = "tailbound-no-such-program";
        let there = program(folder.path(), name, 0o755);
        let own = folder.path().as_os_str();
        // As seen from it: a missing, an empty and a relative PATH.
        let relative = pathdiff_to(folder.path());
        for path in [None, Some(""), Some(":"), Some("."), Some(":/usr/bin:"), Some(&*relative)] {
            assert!(among(name, path.map(OsStr::new), Trusted::OfAnybody).is_err(), "{path:?}");
        }
        assert_eq!(among(name, Some(own), Trusted::OfAnybody), Ok(there));
        assert!(among(&format!("./{name}"), Some(own), Trusted::OfAnybody).is_err());
        assert!(among("", Some(own), Trusted::OfAnybody).is_err());
        assert_eq!(folders(None), std::env::split_paths(FOLDERS).collect::<Vec<_>>());
        assert!(among("sh", None, Trusted::OfRoot).is_ok(), "the system's shell");
        let nearer = |folder: &Path| find_nearer(name, &[folder.to_owned()]);
        assert!(nearer(folder.path()).is_ok() && nearer(Path::new(".")).is_err());
    }

    /// `path` from the current folder, as `../../tmp/x`.
    fn pathdiff_to(path: &Path) -> String {
        let up = std::env::current_dir().unwrap().components().count() - 1;
        format!("{}{}", "../".repeat(up), path.strip_prefix("/").unwrap().display())
    }

    #[test]
    fn root_runs_only_what_is_roots() {
        let folder = tempfile::tempdir().unwrap();
        let own = Some(folder.path().as_os_str());
        program(folder.path(), "open", 0o777);
        program(folder.path(), "no-program", 0o644);
        let missing = among("open", own, Trusted::OfRoot).unwrap_err().to_string();
        assert!(missing.contains("may be written by everybody"), "{missing}");
        assert!(among("open", own, Trusted::OfAnybody).is_ok());
        assert!(among("no-program", own, Trusted::OfAnybody).is_err());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        program(folder.path(), "closed", 0o755);
        assert!(among("closed", own, Trusted::OfRoot).is_err(), "its folder is everybody's");
    }
}
