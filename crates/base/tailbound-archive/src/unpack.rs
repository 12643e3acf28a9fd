// SPDX-License-Identifier: MIT OR Apache-2.0
//! An archive as files below a folder.
//!
//! Units: bytes. The folder is the caller's alone: made for this, with mode 0700, below folders that nobody
//! else may write to. So paths cannot be exchanged meanwhile, and what the archive itself placed is looked at before each
//! step: a member is never written through a link.
//! Files get the permissions of the archive without special bits and without those of group and others to write.
//! Source: open(2), link(2), symlink(2).

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::error::ArchiveError;
use crate::limits::Limits;
use crate::member::{Kind, Member};
use crate::walk::walk;

const FOLDER_MODE: u32 = 0o755;
/// Nobody but the owner writes.
const FILE_MODE_MAX: u32 = 0o755;
const FILE_MODE_LEAST: u32 = 0o600;

/// What was unpacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Files, links counted.
    pub files: u64,
    /// Links that would have led out of the archive, and were left out.
    pub left_out: Vec<String>,
}

/// Unpacks the tar archive `from` below `folder`, which exists and may hold what an earlier archive brought: later
/// files replace earlier ones, folders stay.
///
/// # Errors
/// As [`walk`]; a member that cannot be written. What was unpacked until then is the caller's to remove.
pub fn unpack(
    from: impl Read + Send,
    folder: &Path,
    limits: &Limits,
) -> Result<Unpacked, ArchiveError> {
    let mut to = Target { folder, folders: HashSet::new(), unpacked: Unpacked::default() };
    walk(from, limits, &mut |member| to.place(member))?;
    Ok(to.unpacked)
}

struct Target<'a> {
    folder: &'a Path,
    /// Folders that are known to be folders, and no links to some.
    folders: HashSet<PathBuf>,
    unpacked: Unpacked,
}

impl Target<'_> {
    fn place(&mut self, member: &mut Member<'_>) -> Result<(), ArchiveError> {
        let name = member.name.clone();
        let failed = |why: io::Error| ArchiveError::Write { name: name.clone(), why };
        let kind = member.kind.clone();
        if let Kind::Folder = kind {
            return self.folder_of(Path::new(&name), &name);
        }
        if let Kind::LinkOutside(_) = kind {
            self.unpacked.left_out.push(name);
            return Ok(());
        }
        if let Some(parent) = Path::new(&name).parent() {
            self.folder_of(parent, &name)?;
        }
        let path = self.folder.join(&name);
        match fs::symlink_metadata(&path) {
            Ok(old) if old.is_dir() => return Err(ArchiveError::Twice(name)),
            Ok(_) => fs::remove_file(&path).map_err(failed)?,
            Err(_) => {}
        }
        match kind {
            Kind::File { mode } => write(&path, mode, member)?,
            Kind::SymbolicLink(target) => symlink(target, &path).map_err(failed)?,
            Kind::HardLink(target) => {
                let of = self.folder.join(&target);
                if let Some(parent) = Path::new(&target).parent() {
                    self.folder_of(parent, &target)?;
                }
                if !fs::symlink_metadata(&of).is_ok_and(|m| m.is_file()) {
                    let kind = "a hard link to what is no file of it";
                    return Err(ArchiveError::Kind { kind, name });
                }
                fs::hard_link(&of, &path).map_err(failed)?;
            }
            Kind::Folder | Kind::LinkOutside(_) => {}
        }
        self.unpacked.files = self.unpacked.files.saturating_add(1);
        Ok(())
    }

    /// Makes a folder and those above it; `member` is what for.
    fn folder_of(&mut self, below: &Path, member: &str) -> Result<(), ArchiveError> {
        if self.folders.contains(below) {
            return Ok(());
        }
        let mut so_far = PathBuf::new();
        for part in below {
            so_far.push(part);
            if self.folders.contains(&so_far) {
                continue;
            }
            let path = self.folder.join(&so_far);
            let made = DirBuilder::new().mode(FOLDER_MODE).create(&path);
            let there = match made {
                Ok(()) => true,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    fs::symlink_metadata(&path).is_ok_and(|m| m.is_dir())
                }
                Err(why) => return Err(ArchiveError::Write { name: member.to_owned(), why }),
            };
            if !there {
                return Err(ArchiveError::NotBelowFolder(member.to_owned()));
            }
            self.folders.insert(so_far.clone());
        }
        Ok(())
    }
}

/// A new file; what has its name was removed.
fn write(path: &Path, mode: u32, member: &mut Member<'_>) -> Result<(), ArchiveError> {
    let name = member.name.clone();
    let failed = |why: io::Error| ArchiveError::Write { name: name.clone(), why };
    let mut options = File::options();
    let mut file =
        options.write(true).create_new(true).mode(FILE_MODE_LEAST).open(path).map_err(failed)?;
    member.each(&mut |piece| file.write_all(piece).map_err(failed))?;
    let mode = (mode & FILE_MODE_MAX) | FILE_MODE_LEAST;
    file.set_permissions(Permissions::from_mode(mode)).map_err(failed)
}

#[cfg(test)]
#[path = "unpack_tests.rs"]
mod tests;
