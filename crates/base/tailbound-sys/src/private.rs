// SPDX-License-Identifier: MIT OR Apache-2.0
//! What nobody but this process and its children sees, and the kernel takes down with the last
//! of them: mounts, files in memory, a layer of changes over a folder, System V and POSIX IPC.
//!
//! Context: SETUP of a load. Units: bytes.
//! Not here: PID namespaces (`spawn`), networks (`netns`).
//! Source: unshare(2), mount_namespaces(7), tmpfs(5), ipc_namespaces(7), the kernel's
//! Documentation/filesystems/overlayfs.rst.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{SysError, check};

const NEEDS: &str = "CAP_SYS_ADMIN";

fn words(path: &Path) -> Result<CString, SysError> {
    let what = path.display().to_string();
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| SysError::code("mount", what, libc::EINVAL))
}

/// Gives this process mounts of its own: what it mounts from now on nobody else sees.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn own_mounts() -> Result<(), SysError> {
    // SAFETY: integers and a NUL-terminated string; the null pointers are unused arguments.
    unsafe {
        let done = libc::unshare(libc::CLONE_NEWNS);
        check(done, "unshare", "CLONE_NEWNS").map_err(|e| e.needs(NEEDS))?;
        let nothing = std::ptr::null();
        let flags = libc::MS_REC | libc::MS_SLAVE;
        let done = libc::mount(nothing, c"/".as_ptr(), nothing, flags, std::ptr::null());
        check(done, "mount", "/ as slave").map(drop).map_err(|e| match e.errno {
            // What is mounted below a root that is no mount point could be seen by everybody.
            libc::EINVAL => SysError {
                needs: "a root that is a mount point: for a chroot, `mount --bind ROOT ROOT` before it",
                ..e
            },
            _ => e,
        })
    }
}

/// Gives this process System V objects and POSIX message queues of its own.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN; EINVAL where the kernel has no IPC namespaces.
pub fn own_ipc() -> Result<(), SysError> {
    // SAFETY: unshare(2) on an integer.
    let done = unsafe { libc::unshare(libc::CLONE_NEWIPC) };
    check(done, "unshare", "CLONE_NEWIPC").map(drop).map_err(|e| e.needs(NEEDS))
}

fn mount(kind: &std::ffi::CStr, at: &Path, options: &str) -> Result<(), SysError> {
    let what = format!("{} at {}", kind.to_string_lossy(), at.display());
    let (target, options) = (words(at)?, words(Path::new(options))?);
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: NUL-terminated strings that live until the call is over.
    let done = unsafe {
        libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    check(done, "mount", &what).map(drop).map_err(|e| e.needs(NEEDS))
}

/// Files in memory at the folder `at`, of at most `bytes` bytes. Call after [`own_mounts`].
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN; ENODEV where the kernel has no tmpfs.
pub fn memory_files(at: &Path, bytes: u64) -> Result<(), SysError> {
    mount(c"tmpfs", at, &format!("size={bytes},mode=1777"))
}

/// Shows the folder `below` at `at`; what is changed there lies in `changes`, for which `work`,
/// empty and beside it, is needed too. Call after [`own_mounts`].
///
/// # Errors
/// EINVAL for a path with a comma or colon, or a file system that cannot be layered; ENODEV
/// where the kernel has no overlayfs.
pub fn layer(below: &Path, changes: &Path, work: &Path, at: &Path) -> Result<(), SysError> {
    let mut text = String::new();
    for (key, path) in [("lowerdir", below), ("upperdir", changes), ("workdir", work)] {
        let path = path.to_str().filter(|p| !p.contains([',', ':', '\\']));
        let path = path.ok_or_else(|| {
            SysError::code("mount", "overlay: a path with a comma or colon", libc::EINVAL)
        })?;
        let comma = if text.is_empty() { "" } else { "," };
        text.push_str(&format!("{comma}{key}={path}"));
    }
    mount(c"overlay", at, &text)
}

/// Takes away what is mounted at `at`, as soon as nobody uses it.
///
/// # Errors
/// EINVAL where nothing is.
pub fn unmount(at: &Path) -> Result<(), SysError> {
    let target = words(at)?;
    // SAFETY: a NUL-terminated string.
    let done = unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    check(done, "umount2", &at.display().to_string()).map(drop)
}
