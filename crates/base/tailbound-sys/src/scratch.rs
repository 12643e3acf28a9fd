// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files without a name, and how much room there is for them.
//!
//! Context: SETUP. Units: bytes. The kernel frees such a file when its last user ends,
//! however he ends. Source: open(2) O_TMPFILE, statvfs(3).

use std::ffi::CString;
use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{SysError, check};

fn words(path: &Path) -> Result<CString, SysError> {
    let what = path.display().to_string();
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| SysError::code("open", what, libc::EINVAL))
}

/// Opens a new file of no name in the folder `dir`, to be read and written.
///
/// # Errors
/// ENOENT, EACCES, EROFS; EOPNOTSUPP (EISDIR, EINVAL on old kernels) where the file system
/// has no such files: [`unsupported`] tells.
pub fn nameless(dir: &Path) -> Result<File, SysError> {
    let path = words(dir)?;
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC | libc::O_LARGEFILE;
    // SAFETY: a NUL-terminated path and numbers.
    let raw = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    check(raw, "open", &dir.display().to_string())?;
    // SAFETY: a fresh descriptor, ours alone.
    Ok(unsafe { File::from_raw_fd(raw) })
}

/// Does this error of [`nameless`] mean that the file system has no nameless files?
#[must_use]
pub fn unsupported(error: &SysError) -> bool {
    [libc::EOPNOTSUPP, libc::EISDIR, libc::EINVAL].contains(&error.errno)
}

/// Bytes that an ordinary user can still write in the folder `dir`; `None` where the file
/// system has no limit of its own (ramfs).
///
/// # Errors
/// ENOENT, EACCES.
pub fn free_bytes(dir: &Path) -> Result<Option<u64>, SysError> {
    Ok(free_and_whole_bytes(dir)?.map(|(free, _)| free))
}

/// As [`free_bytes`], and the bytes of the whole file system.
///
/// # Errors
/// ENOENT, EACCES.
pub fn free_and_whole_bytes(dir: &Path) -> Result<Option<(u64, u64)>, SysError> {
    /// Their types differ from machine to machine.
    fn wide(n: impl Into<u64>) -> u64 {
        n.into()
    }
    let path = words(dir)?;
    // SAFETY: all-zero bytes are a valid statvfs64, which the call fills.
    let stat = unsafe {
        let mut stat: libc::statvfs64 = std::mem::zeroed();
        let done = libc::statvfs64(path.as_ptr(), &raw mut stat);
        check(done, "statvfs", &dir.display().to_string())?;
        stat
    };
    let unit = wide(stat.f_frsize);
    let free = wide(stat.f_bavail).saturating_mul(unit);
    let whole = wide(stat.f_blocks).saturating_mul(unit);
    Ok((stat.f_blocks > 0).then_some((free, whole)))
}

/// Does the folder `dir` lie in memory (tmpfs, ramfs), with no disk behind it?
///
/// # Errors
/// ENOENT, EACCES.
pub fn in_memory(dir: &Path) -> Result<bool, SysError> {
    /// Its type differs from machine to machine; the numbers fit in all of them.
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    let path = words(dir)?;
    // SAFETY: all-zero bytes are a valid statfs64, which the call fills.
    let kind = unsafe {
        let mut stat: libc::statfs64 = std::mem::zeroed();
        let done = libc::statfs64(path.as_ptr(), &raw mut stat);
        check(done, "statfs", &dir.display().to_string())?;
        stat.f_type as u32
    };
    Ok([TMPFS, RAMFS].contains(&kind))
}

/// Asks the kernel to forget what it has of `file` in memory; what was not written to the disk
/// yet stays.
///
/// # Errors
/// ESPIPE for what is no file.
pub fn drop_cache(file: &File) -> Result<(), SysError> {
    use std::os::fd::AsRawFd;
    // SAFETY: a borrowed descriptor and integers; the errno is the result.
    let errno = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if errno == 0 { Ok(()) } else { Err(SysError::code("posix_fadvise", "", errno)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_nameless_file_is_written_and_never_seen() {
        let dir = std::env::temp_dir();
        assert!(free_bytes(&dir).is_ok());
        match nameless(&dir) {
            Ok(mut file) => {
                assert!(file.write_all(b"x").is_ok());
                assert!(file.metadata().is_ok_and(|m| m.len() == 1));
            }
            Err(e) => assert!(unsupported(&e), "{e}"),
        }
        let shm = Path::new("/dev/shm");
        if shm.exists()
            && std::fs::read_to_string("/proc/mounts").is_ok_and(|m| m.contains(" /dev/shm tmpfs "))
        {
            assert_eq!(in_memory(shm), Ok(true));
        }
        assert!(File::open("/proc/self/exe").is_ok_and(|f| drop_cache(&f).is_ok()));
        let nowhere = Path::new("/nonexistent");
        assert!(nameless(nowhere).is_err_and(|e| !unsupported(&e) && e.errno == libc::ENOENT));
        assert!(free_bytes(nowhere).is_err());
    }
}
