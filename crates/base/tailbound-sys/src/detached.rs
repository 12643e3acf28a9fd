// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file system of the kernel that is mounted nowhere: whoever holds its descriptor sees it, and nobody else.
//!
//! Context: SETUP, COLD. No mount point is needed and no table of mounts changes, that of this process neither.
//! Source: fsopen(2), fsconfig(2), fsmount(2); before Linux 5.2 unshare(2), of one thread.

use std::ffi::{CStr, CString, OsStr};
use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::{io, thread};

use crate::error::{SysError, check};
use crate::private::own_mounts;

const NEEDS: &str = "CAP_SYS_ADMIN";
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const MOUNT_ATTR: libc::c_uint = 2 | 4 | 8; // nosuid, nodev, noexec

/// The root folder of the file system `kind`. `at` is a folder of the machine, which kernels before 5.2 need.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN, or in a user namespace; ENODEV where the kernel has no such file system.
pub fn file_system(kind: &CStr, at: &CStr) -> Result<OwnedFd, SysError> {
    match nowhere(kind) {
        Err(e) if e.errno == libc::ENOSYS => in_a_namespace(kind, at),
        other => other,
    }
}

/// What a system call that makes a descriptor gave.
fn descriptor(done: libc::c_long, call: &'static str, kind: &CStr) -> Result<OwnedFd, SysError> {
    match i32::try_from(done) {
        // SAFETY: the kernel made it for us, and nobody else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(SysError::last(call, kind.to_string_lossy()).needs(NEEDS)),
    }
}

fn nowhere(kind: &CStr) -> Result<OwnedFd, SysError> {
    // SAFETY: fsopen(2) on a NUL-terminated string.
    let made = unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) };
    let context = descriptor(made, "fsopen", kind)?;
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: a live descriptor, and a command that takes no other argument.
    let done = unsafe {
        let (fd, command) = (context.as_raw_fd(), FSCONFIG_CMD_CREATE);
        libc::syscall(libc::SYS_fsconfig, fd, command, nothing, nothing, 0)
    };
    let done = libc::c_int::try_from(done).unwrap_or(-1);
    check(done, "fsconfig", &kind.to_string_lossy()).map_err(|e| e.needs(NEEDS))?;
    // SAFETY: a live descriptor and flags.
    let made = unsafe {
        libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, MOUNT_ATTR)
    };
    descriptor(made, "fsmount", kind)
}

/// Mounted by a thread in a mount namespace of its own, which ends with it; the descriptor keeps the file system.
fn in_a_namespace(kind: &CStr, at: &CStr) -> Result<OwnedFd, SysError> {
    let (kind, at): (CString, CString) = (kind.into(), at.into());
    let mounted = thread::Builder::new().spawn(move || {
        own_mounts()?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        // SAFETY: NUL-terminated strings; the null pointer is an unused argument.
        let done = unsafe {
            libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, std::ptr::null())
        };
        check(done, "mount", &kind.to_string_lossy()).map_err(|e| e.needs(NEEDS))?;
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let folder = Path::new(OsStr::from_bytes(at.as_bytes()));
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(folder);
        let code = |e: io::Error| e.raw_os_error().unwrap_or(0);
        opened.map(OwnedFd::from).map_err(|e| SysError::code("open", at.to_string_lossy(), code(e)))
    });
    let thread =
        mounted.map_err(|e| SysError::code("pthread_create", "", e.raw_os_error().unwrap_or(0)))?;
    thread.join().unwrap_or_else(|_| Err(SysError::code("thread", "it panicked: a bug of ours", 0)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process;

    #[test]
    fn it_is_read_and_written_and_no_table_of_mounts_changes() {
        if !process::is_root() {
            tailbound_testing::skip("root", "mounts need it");
            return;
        }
        let mounts = || {
            let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
            all.lines().filter(|l| l.contains(" - ramfs ")).count()
        };
        let before = mounts();
        let kinds = [nowhere(c"ramfs"), in_a_namespace(c"ramfs", c"/tmp")];
        for made in kinds {
            let folder = match made {
                Ok(folder) => folder,
                // A container, or an older kernel.
                Err(e) if e.is_permission() || e.errno == libc::ENOSYS => {
                    tailbound_testing::skip("mounts", e);
                    continue;
                }
                Err(e) => panic!("{e}"),
            };
            let path = format!("/proc/self/fd/{}/a", folder.as_raw_fd());
            fs::create_dir(&path).unwrap();
            fs::write(format!("{path}/b"), "text").unwrap();
            assert_eq!(fs::read_to_string(format!("{path}/b")).unwrap(), "text");
            fs::remove_dir_all(path).unwrap();
            assert_eq!(mounts(), before);
        }
    }

    #[test]
    fn a_file_system_that_there_is_not_is_refused() {
        let why = file_system(c"no-such-file-system", c"/tmp").unwrap_err();
        assert!([libc::ENODEV, libc::EPERM].contains(&why.errno), "{why}");
    }
}
