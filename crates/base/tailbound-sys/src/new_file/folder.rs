// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens to names in a folder that was opened once: made, given, taken, removed.
//!
//! Context: SETUP and COLD. Every call names the folder by its descriptor, so that a folder that is
//! exchanged meanwhile changes nothing.
//! Source: openat(2), linkat(2), renameat2(2), unlinkat(2), getrandom(2).

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::NameRefusal;

/// The folder of a file, opened once.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    /// It may be read, and so brought to the disk.
    readable: bool,
    pub(super) shown: PathBuf,
}

impl Folder {
    /// Folder and name of the file `to`.
    pub(super) fn of(to: &Path) -> io::Result<(Self, CString)> {
        let ends_in_name = !to.as_os_str().as_bytes().ends_with(b"/");
        let name = to.file_name().filter(|_| ends_in_name).ok_or(NameRefusal::NoName)?;
        let name = CString::new(name.as_bytes())?;
        let shown = match to.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let open =
            |flags| File::options().read(true).custom_flags(libc::O_DIRECTORY | flags).open(&shown);
        let (file, readable) = match open(0) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => (open(libc::O_PATH)?, false),
            other => (other?, true),
        };
        Ok((Self { fd: file.into(), readable, shown }, name))
    }

    /// A new file: without a name where the file system can, else with one that nobody knows.
    pub(super) fn make(&self) -> io::Result<(File, Option<CString>)> {
        let nameless = libc::O_TMPFILE | libc::O_RDWR;
        match self.open_at(c".", nameless) {
            // To get a name it needs /proc.
            Ok(file) if Path::new("/proc/self/fd").is_dir() => return Ok((file, None)),
            Ok(_) => {}
            Err(e) => match e.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL | libc::ENOENT) => {}
                _ => return Err(e),
            },
        }
        self.make_named().map(|(file, name)| (file, Some(name)))
    }

    /// A new file under a name that nobody knows.
    pub(super) fn make_named(&self) -> io::Result<(File, CString)> {
        self.try_names(|name| {
            self.open_at(name, libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_RDWR)
        })
    }

    fn open_at(&self, name: &CStr, flags: libc::c_int) -> io::Result<File> {
        let flags = flags | libc::O_CLOEXEC | libc::O_LARGEFILE;
        // SAFETY: a live descriptor, a NUL-terminated name and numbers.
        let raw = unsafe { libc::openat(self.fd.as_raw_fd(), name.as_ptr(), flags, 0o666) };
        done(raw)?;
        // SAFETY: a fresh descriptor, ours alone.
        Ok(unsafe { File::from_raw_fd(raw) })
    }

    /// Calls `make` with random names until one is free.
    fn try_names<T>(
        &self,
        mut make: impl FnMut(&CStr) -> io::Result<T>,
    ) -> io::Result<(T, CString)> {
        let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..16 {
            let name = random_name()?;
            match make(&name) {
                Ok(made) => return Ok((made, name)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => taken = e,
                Err(e) => return Err(e),
            }
        }
        Err(taken)
    }

    /// Gives a file the name `name`, which nothing may have.
    pub(super) fn name_it(
        &self,
        file: &File,
        beside: Option<&CStr>,
        name: &CStr,
    ) -> io::Result<()> {
        let Some(beside) = beside else { return self.link(file, name) };
        let fd = self.fd.as_raw_fd();
        // SAFETY: live descriptors, NUL-terminated names and a number.
        let renamed = done(unsafe {
            libc::syscall(
                libc::SYS_renameat2,
                fd,
                beside.as_ptr(),
                fd,
                name.as_ptr(),
                libc::RENAME_NOREPLACE,
            )
        });
        match renamed {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {}
            other => return other,
        }
        // An old kernel or file system: a second name fails where the name is taken.
        // SAFETY: as above.
        let linked = done(unsafe { libc::linkat(fd, beside.as_ptr(), fd, name.as_ptr(), 0) });
        match linked {
            Ok(()) => self.unlink(beside),
            // No second names either: take the name with an empty file, and replace that.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EPERM | libc::EOPNOTSUPP)) => {
                let flags = libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_WRONLY;
                drop(self.open_at(name, flags)?);
                self.rename(beside, name)?;
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// A nameless file gets a name that nobody knows.
    pub(super) fn link_beside(&self, file: &File) -> io::Result<CString> {
        self.try_names(|name| self.link(file, name)).map(|((), name)| name)
    }

    fn link(&self, file: &File, name: &CStr) -> io::Result<()> {
        let own = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let fd = self.fd.as_raw_fd();
        // SAFETY: a live descriptor, NUL-terminated names and numbers.
        done(unsafe {
            libc::linkat(libc::AT_FDCWD, own.as_ptr(), fd, name.as_ptr(), libc::AT_SYMLINK_FOLLOW)
        })
    }

    pub(super) fn rename(&self, from: &CStr, to: &CStr) -> io::Result<()> {
        let fd = self.fd.as_raw_fd();
        // SAFETY: a live descriptor and NUL-terminated names.
        done(unsafe { libc::renameat(fd, from.as_ptr(), fd, to.as_ptr()) })
    }

    pub(super) fn unlink(&self, name: &CStr) {
        // What cannot be removed is in nobody's way.
        // SAFETY: a live descriptor, a NUL-terminated name and a number.
        unsafe { libc::unlinkat(self.fd.as_raw_fd(), name.as_ptr(), 0) };
    }

    /// What has the name now, itself.
    pub(super) fn look(&self, name: &CStr) -> io::Result<std::fs::Metadata> {
        self.open_at(name, libc::O_PATH | libc::O_NOFOLLOW)?.metadata()
    }

    /// Brings the names to the disk, where the file system can.
    pub(super) fn sync(&self) -> io::Result<()> {
        if !self.readable {
            return Ok(());
        }
        // SAFETY: a live descriptor.
        match done(unsafe { libc::fsync(self.fd.as_raw_fd()) }) {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => Ok(()),
            other => other,
        }
    }
}

fn done<T: PartialOrd + Default>(result: T) -> io::Result<()> {
    if result < T::default() { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `.tailbound-` and 64 bits that differ from call to call: hidden, and seldom taken. Whoever
/// guesses it and is there first has the next name tried: the file is made with `O_EXCL`.
fn random_name() -> io::Result<CString> {
    Ok(CString::new(format!(".tailbound-{:016x}", random_bits()))?)
}

/// Random where the kernel has randomness. A board without a source of it has none until long
/// after boot, and a call that waits for it would wait for minutes, or for ever.
fn random_bits() -> u64 {
    let mut bits = [0u8; 8];
    // The first gives what there is (Linux 5.6), the second nothing where there is too little.
    for flags in [libc::GRND_INSECURE, libc::GRND_NONBLOCK] {
        // SAFETY: a live buffer and its length.
        let got =
            unsafe { libc::syscall(libc::SYS_getrandom, bits.as_mut_ptr(), bits.len(), flags) };
        if usize::try_from(got) == Ok(bits.len()) {
            return u64::from_ne_bytes(bits);
        }
    }
    let now = crate::clock::now_ns(crate::clock::CLOCK_MONOTONIC).unsigned_abs();
    now ^ u64::from(std::process::id()) << 48
}
