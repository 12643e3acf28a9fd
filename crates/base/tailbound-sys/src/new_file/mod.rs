// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one way of this project to write a file: nobody's link is followed, nothing is lost.
//!
//! Context: SETUP and COLD. Units: bytes. Not here: what is written, and what a person is told.
//! A file is made without a name (`O_TMPFILE`; where the file system has none: under a random name
//! in the same folder, `O_EXCL`), filled, brought to the disk, and then gets its name in one step.
//! So a name never stands for half a file, a failure leaves what was there, a kill nothing that has the name (a nameless file goes with it).
//!
//! | what the name stands for | [`Existing::Keep`] | [`Existing::Replace`] |
//! |---|---|---|
//! | nothing | made | made |
//! | a file | EEXIST | replaced; the old file's permissions are kept where it is the caller's own |
//! | a character device, a pipe with a reader | EEXIST | written into, as it is |
//! | a symbolic link, a folder, a block device, a socket | EEXIST | refused: [`NameRefusal`] |
//!
//! `/dev/stdout`, `/dev/stderr`, `/dev/fd/N` are the kernel's names of the caller's own descriptors
//! and count as what they stand for. Only the last part of a path is looked at so: links among its
//! folders are the caller's business, and are followed once, when the folder is opened.
//!
//! - A whole text: [`write()`], [`write_with`], [`copy`].
//! - Something that is written for long: [`NewFile`]; [`NewFile::place`] gives it its name, and the
//!   same descriptor goes on being written. A log that others read meanwhile: [`begin_log`], [`append_log`].
//! - A lock: [`open_lock`]. Something made whole elsewhere: [`rename`].
//!
//! Source: open(2), linkat(2), renameat2(2), fsync(2).

mod folder;

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use self::folder::Folder;

/// What happens to a file that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the new one is refused with `AlreadyExists`.
    Keep,
    /// The new one takes its place.
    Replace,
}

impl Existing {
    /// What `--force` stands for.
    #[must_use]
    pub fn replaced_if(force: bool) -> Self {
        if force { Self::Replace } else { Self::Keep }
    }
}

/// Why a name is not written, although its old file may be replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameRefusal {
    /// A symbolic link, and what it points to.
    #[error(
        "it is a symbolic link to {0:?}, and links are not followed: name that file itself, or remove the link"
    )]
    Link(PathBuf),
    /// Something else that is no file.
    #[error("it is {0}, not a file: choose another name")]
    NoFile(&'static str),
    /// The path ends in no name.
    #[error("the path does not end in the name of a file")]
    NoName,
}

impl From<NameRefusal> for io::Error {
    fn from(refused: NameRefusal) -> Self {
        Self::new(io::ErrorKind::InvalidInput, refused)
    }
}

/// A file that is being written and has not got its name yet, or has got it.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    way: WriteStage,
}

#[derive(Debug)]
enum WriteStage {
    /// It is what it is: a device, a pipe.
    InPlace,
    /// Nameless so far, or under the name `beside`.
    Pending { folder: Folder, name: CString, beside: Option<CString>, existing: Existing },
    /// It has its name.
    Placed { folder: Folder, name: CString },
}

impl NewFile {
    /// Opens a new file that will be called `to`. Looks at once at what has that name now, so
    /// that a long run is refused at its start.
    ///
    /// # Errors
    /// `AlreadyExists`; [`NameRefusal`]; those of open(2).
    pub fn open(to: &Path, existing: Existing) -> io::Result<Self> {
        if let Some(file) = in_place(to, existing)? {
            return Ok(Self { file, way: WriteStage::InPlace });
        }
        let (folder, name) = Folder::of(to)?;
        let (file, beside) = folder.make()?;
        let new = Self { file, way: WriteStage::Pending { folder, name, beside, existing } };
        new.keep_permissions(to);
        Ok(new)
    }

    /// The file, to be written.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Is this a file that gets a name, and no device or pipe?
    #[must_use]
    pub fn is_file(&self) -> bool {
        !matches!(self.way, WriteStage::InPlace)
    }

    /// Gives the file its name; it can go on being written. What a power failure must not cost when
    /// this takes the place of an older file is brought to the disk by the caller before.
    /// Does nothing the second time.
    ///
    /// # Errors
    /// `AlreadyExists`, [`NameRefusal`]: what has the name now; those of rename(2). The file
    /// has no name then, and goes when this is dropped.
    pub fn place(&mut self) -> io::Result<()> {
        let WriteStage::Pending { folder, name, beside, existing } = &mut self.way else {
            return Ok(());
        };
        match existing {
            Existing::Keep => folder.name_it(&self.file, beside.as_deref(), name)?,
            Existing::Replace => {
                replaceable(&folder.shown.join(OsStr::from_bytes(name.to_bytes())))?;
                let linked = match beside.take() {
                    Some(beside) => beside,
                    None => folder.link_beside(&self.file)?,
                };
                let renamed = folder.rename(&linked, name);
                if renamed.is_err() {
                    *beside = Some(linked);
                }
                renamed?;
            }
        }
        if let WriteStage::Pending { folder, name, .. } =
            std::mem::replace(&mut self.way, WriteStage::InPlace)
        {
            self.way = WriteStage::Placed { folder, name };
        }
        Ok(())
    }

    /// Brings the whole file to the disk, and its name.
    ///
    /// # Errors
    /// Those of [`NewFile::place`] and of fsync(2).
    pub fn finish(mut self) -> io::Result<()> {
        if !self.is_file() {
            return Ok(());
        }
        self.file.sync_all()?;
        self.place()?;
        match &self.way {
            WriteStage::Placed { folder, .. } => folder.sync(),
            _ => Ok(()),
        }
    }

    /// Takes the file away again, its name too if it has one and the name is still its own.
    pub fn discard(self) {
        if let WriteStage::Placed { folder, name } = &self.way {
            let own = self.file.metadata();
            let there = folder.look(name);
            if let (Ok(own), Ok(there)) = (own, there)
                && (own.dev(), own.ino()) == (there.dev(), there.ino())
            {
                folder.unlink(name);
            }
        }
    }

    /// The old file's permissions, where it is the caller's own: a result that was closed to others stays so.
    fn keep_permissions(&self, to: &Path) {
        if let (Ok(old), Ok(new)) = (to.symlink_metadata(), self.file.metadata())
            && old.is_file()
            && old.uid() == new.uid()
        {
            // A file system without permissions has none to keep.
            // SAFETY: a live descriptor and a number.
            unsafe { libc::fchmod(self.file.as_raw_fd(), old.mode() & 0o777) };
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let WriteStage::Pending { folder, beside: Some(beside), .. } = &self.way {
            folder.unlink(beside);
        }
    }
}

/// Writes `bytes` as the file `to`: whole or not at all, on the disk when this returns.
///
/// # Errors
/// `AlreadyExists`; [`NameRefusal`]; those of open(2), write(2), fsync(2), rename(2).
pub fn write(to: &Path, existing: Existing, bytes: &[u8]) -> io::Result<()> {
    let new = NewFile::open(to, existing)?;
    new.file().write_all(bytes)?;
    new.finish()
}

/// Has `fill` write the file `to`, whole or not at all.
///
/// # Errors
/// Those of [`write()`], and of `fill`.
pub fn write_with(
    to: &Path,
    existing: Existing,
    fill: impl FnOnce(&mut io::BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let new = NewFile::open(to, existing)?;
    let mut out = io::BufWriter::new(new.file());
    fill(&mut out)?;
    out.flush()?;
    drop(out);
    new.finish()
}

/// May the file `to` be written, as far as its name and its folder go? For work that takes long before it is.
///
/// # Errors
/// `AlreadyExists`; [`NameRefusal`]; those of stat(2), and of access(2) of the folder, or of the nearest that is there.
pub fn may_write(to: &Path, existing: Existing) -> io::Result<()> {
    let is_own = is_own_descriptor(to);
    match if is_own { to.metadata() } else { to.symlink_metadata() } {
        Err(e) if e.kind() == io::ErrorKind::NotFound => folder_takes(to),
        Err(e) => Err(e),
        Ok(_) if existing == Existing::Keep => Err(io::ErrorKind::AlreadyExists.into()),
        Ok(m) if is_own || m.file_type().is_char_device() || m.file_type().is_fifo() => Ok(()),
        Ok(_) => replaceable(to),
    }
}

/// Can something be made in the folder of `to`, or in the nearest above that is there?
fn folder_takes(to: &Path) -> io::Result<()> {
    let above = to.ancestors().skip(1).map(|f| if f == Path::new("") { Path::new(".") } else { f });
    let Some(folder) = above.into_iter().find(|f| f.exists()) else { return Ok(()) };
    let name = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes())?;
    let mode = libc::W_OK | libc::X_OK;
    // SAFETY: reads a live string that ends in NUL.
    match unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), mode, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Opens the file of a lock, made where it is missing; what it holds is left alone.
///
/// # Errors
/// ELOOP: it is a symbolic link; those of open(2).
pub fn open_lock(path: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o666)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(NameRefusal::NoFile("something else").into()),
    }
}

/// Opens a log that is only added to, made where it is missing.
///
/// # Errors
/// [`NameRefusal`]: a symbolic link, or no file; those of open(2).
pub fn append_log(path: &Path) -> io::Result<File> {
    // Says what it is; the flags below hold whoever comes between.
    replaceable(path)?;
    let file = File::options()
        .append(true)
        .create(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(NameRefusal::NoFile("something else").into()),
    }
}

/// Copies the file `from` to `to`, whole or not at all, in place of a file that is there.
///
/// # Errors
/// Those of [`write()`], and of reading.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let new = NewFile::open(to, Existing::Replace)?;
    io::copy(&mut File::open(from)?, &mut new.file())?;
    new.finish()
}

/// Begins a log that others read while it grows: an old one is removed, and whoever comes
/// between is not followed.
///
/// # Errors
/// Those of unlink(2) and open(2).
pub fn begin_log(path: &Path) -> io::Result<File> {
    remove(path)?;
    File::options().write(true).create_new(true).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Moves what is whole, a file or a folder, from `from` to `to`, in place of a file or an empty
/// folder that is there.
///
/// # Errors
/// Those of rename(2).
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    let (folder, _) = Folder::of(to)?;
    folder.sync()
}

/// Removes the file or link `path` itself; one that is not there is no error.
///
/// # Errors
/// Those of unlink(2).
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// May the file `path` be replaced, if there is one?
fn replaceable(path: &Path) -> io::Result<()> {
    let kind = match path.symlink_metadata() {
        Ok(m) => m.file_type(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    if kind.is_file() {
        return Ok(());
    }
    let refused = if kind.is_symlink() {
        NameRefusal::Link(std::fs::read_link(path).unwrap_or_default())
    } else if kind.is_dir() {
        NameRefusal::NoFile("a folder")
    } else if kind.is_block_device() {
        NameRefusal::NoFile("a disk")
    } else if kind.is_socket() {
        NameRefusal::NoFile("a socket")
    } else {
        NameRefusal::NoFile("a device or a pipe")
    };
    Err(refused.into())
}

/// A device or a pipe is written as it is; `None`: a new file is to be made.
fn in_place(to: &Path, existing: Existing) -> io::Result<Option<File>> {
    let own = is_own_descriptor(to);
    let looked = if own { to.metadata() } else { to.symlink_metadata() };
    let kind = match looked {
        Ok(m) => m.file_type(),
        Err(e) if e.kind() == io::ErrorKind::NotFound && !own => return Ok(None),
        Err(e) => return Err(e),
    };
    if existing == Existing::Keep {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if !own && !kind.is_char_device() && !kind.is_fifo() {
        return replaceable(to).map(|()| None);
    }
    // Without waiting for a reader of a pipe; the descriptors of the caller have theirs.
    let flags = if own { 0 } else { libc::O_NOFOLLOW | libc::O_NONBLOCK };
    let file = File::options().write(true).custom_flags(flags | libc::O_NOCTTY).open(to)?;
    let opened = file.metadata()?.file_type();
    if !own && !opened.is_char_device() && !opened.is_fifo() {
        return Err(NameRefusal::NoFile("something else than a moment ago").into());
    }
    // SAFETY: a live descriptor and numbers; only O_NONBLOCK is taken off.
    unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK);
    }
    Ok(Some(file))
}

/// The kernel's names of a process's own descriptors.
#[must_use]
pub fn is_own_descriptor(path: &Path) -> bool {
    let Some(text) = path.to_str() else { return false };
    let numbered = text.strip_prefix("/dev/fd/").or(text.strip_prefix("/proc/self/fd/"));
    ["/dev/stdout", "/dev/stderr"].contains(&text)
        || numbered.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
