// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who could have put a file where it is: is it in the hands of the caller and of root alone?
//!
//! Context: SETUP, COLD. Whoever may write to a folder may exchange what is in it, and whoever may
//! write to one above it may exchange the folder: so every level is looked at, as sshd(8) does.
//! Not here: what follows from the answer (`program`, the lab's store).
//! Source: path_resolution(7), inode(7) on the sticky bit; Debian Policy 9.1.2 (the group staff).

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Groups below this number are the system's own (Debian Policy 9.2.2).
const FIRST_USER: u32 = 1000;

/// A level of a path that somebody else may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The level.
    pub path: PathBuf,
    /// Why it is not the caller's alone.
    pub why: String,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.why)
    }
}

/// The user whose rights the caller has.
#[must_use]
pub fn effective_user() -> u32 {
    // SAFETY: geteuid(2) cannot fail and takes no memory.
    unsafe { libc::geteuid() }
}

/// May nobody but the caller and root change `path`, or exchange any level of it? A path that is
/// not there yet is judged by its levels that are.
///
/// # Errors
/// The first level, from the root on, that somebody else may change.
pub fn alone(path: &Path) -> Result<(), Foreign> {
    judged(path, effective_user())
}

/// The caller's home. Root's own where HOME is somebody else's, as sudo leaves it on some systems:
/// what lies there (a cache, a configuration of git) is not root's to believe.
#[must_use]
pub fn home() -> Option<PathBuf> {
    let said = std::env::var_os("HOME").map(PathBuf::from).filter(|h| h.is_absolute());
    if effective_user() != 0 || said.as_deref().is_some_and(|h| alone(h).is_ok()) {
        return said;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    Some(home_of_root(&users).unwrap_or_else(|| PathBuf::from("/root")))
}

fn home_of_root(users: &str) -> Option<PathBuf> {
    let mut fields = users.lines().map(|l| l.split(':').collect::<Vec<_>>());
    fields.find_map(|f| match f.as_slice() {
        [_, _, "0", _, _, home, ..] if home.starts_with('/') => Some(PathBuf::from(home)),
        _ => None,
    })
}

/// May nobody but the caller and root change what is in the folder `path`? Those above it are
/// believed: enough for somebody who only risks what is his own.
///
/// # Errors
/// Who may; or it cannot be looked at.
pub fn folder(path: &Path) -> Result<(), Foreign> {
    let judged = match fs::metadata(path) {
        Ok(found) => foreign(&found, effective_user()),
        Err(e) => Some(format!("cannot be looked at: {e}")),
    };
    judged.map_or(Ok(()), |why| Err(Foreign { path: path.to_owned(), why }))
}

/// Is what lies at `path` the caller's to believe: a folder of state, a policy, a token, a key? Root believes what only root may
/// change, on every level. Somebody else risks only what is his own: there the file counts, and the folder that it lies in.
///
/// # Errors
/// Who else may change it.
pub fn believed(path: &Path) -> Result<(), Foreign> {
    if effective_user() == 0 {
        return alone(path);
    }
    let parent = path.parent().filter(|p| !path.is_dir() && !p.as_os_str().is_empty());
    [parent, Some(path)].into_iter().flatten().filter(|p| p.exists()).try_for_each(folder)
}

/// What lies in a folder that was put there by somebody who is neither the caller nor root: it may have been open to others once.
///
/// # Errors
/// The folder cannot be read.
pub fn of_others(path: &Path) -> std::io::Result<Vec<Foreign>> {
    let me = effective_user();
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(there) => {
                let why = foreign(&there, me).map(|why| Foreign { path: entry.path(), why });
                found.extend(why);
            }
            // It went meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn judged(path: &Path, me: u32) -> Result<(), Foreign> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    levels(&path, me)?;
    // Where links lead is another path, with levels of its own.
    match fs::canonicalize(&path) {
        Ok(real) if real != path => levels(&real, me),
        _ => Ok(()),
    }
}

fn levels(path: &Path, me: u32) -> Result<(), Foreign> {
    let mut all: Vec<&Path> = path.ancestors().collect();
    all.reverse();
    for level in all {
        let Ok(found) = fs::symlink_metadata(level) else { return Ok(()) };
        if let Some(why) = foreign(&found, me) {
            return Err(Foreign { path: level.to_owned(), why });
        }
    }
    Ok(())
}

fn foreign(found: &Metadata, me: u32) -> Option<String> {
    if found.uid() != me && found.uid() != 0 {
        return Some(format!("belongs to user {}", found.uid()));
    }
    let (mode, link) = (found.mode(), found.file_type().is_symlink());
    // What others put into a folder with the sticky bit they may not exchange: /tmp.
    let sticky = found.is_dir() && mode & 0o1000 != 0;
    if link || sticky {
        return None;
    }
    if mode & 0o002 != 0 {
        return Some("may be written by everybody".to_owned());
    }
    // SAFETY: getegid(2) cannot fail and takes no memory.
    let own = unsafe { libc::getegid() };
    // Where each user has a group, what he makes may be the group's too.
    (mode & 0o020 != 0 && found.gid() >= FIRST_USER && found.gid() != own)
        .then(|| format!("may be written by group {}", found.gid()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    #[test]
    fn roots_home_is_in_the_list_of_users() {
        let users = "daemon:x:1:1::/usr/sbin:/bin/sh\nroot:x:0:0:root:/roots/own:/bin/sh\n";
        assert_eq!(home_of_root(users), Some("/roots/own".into()));
        assert_eq!(home_of_root("root:x\n::0:::relative:\n"), None);
    }

    #[test]
    fn what_others_may_change_is_not_believed_and_what_they_left_is_found() {
        let top = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let (folder, file) = (top.path().join("state"), top.path().join("state/token"));
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "x").unwrap();
        assert_eq!((believed(&folder), believed(&file)), (Ok(()), Ok(())));
        assert_eq!(believed(&folder.join("not-there-yet")), Ok(()));
        assert_eq!(of_others(&folder).unwrap(), []);
        mode(&file, 0o666);
        assert_eq!(believed(&file).unwrap_err().path, file);
        assert_eq!(of_others(&folder).unwrap()[0].path, file);
        mode(&file, 0o600);
        mode(&folder, 0o777);
        assert_eq!(believed(&folder).unwrap_err().path, folder);
        assert_eq!(believed(&file).unwrap_err().path, folder);
    }

    #[test]
    fn every_level_counts_and_so_does_where_a_link_leads() {
        let top = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::create_dir_all(at("mine")).unwrap();
        symlink(at("a/b"), at("mine/link")).unwrap();
        let me = effective_user();
        assert_eq!(judged(&at("a/b/not-there-yet"), me), Ok(()));
        mode(&at("a"), 0o777);
        assert_eq!(judged(&at("a/b"), me).unwrap_err().path, at("a"));
        assert_eq!(judged(&at("mine/link"), me).unwrap_err().path, at("a"));
        assert_eq!(judged(&at("mine"), me), Ok(()));
        mode(&at("a"), 0o1777);
        assert_eq!(judged(&at("a/b"), me), Ok(()));
        if me == 0 {
            chown(at("a/b"), Some(65534), None).unwrap();
            let found = judged(&at("a/b"), me).unwrap_err();
            assert_eq!(found.why, "belongs to user 65534");
            // To its owner it is his own, root's and all above it.
            assert_eq!(judged(&at("a/b"), 65534), levels(&at("a/b"), 65534));
            chown(at("a/b"), Some(0), Some(4711)).unwrap();
            mode(&at("a/b"), 0o775);
            assert!(judged(&at("a/b"), me).is_err());
        }
    }
}
