// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file system of the kernel that everybody sees, mounted and taken away again where nobody uses it.
//!
//! Context: SETUP, COLD. Not here: mounts of this process alone (`private`), those of the first process (`boot`).
//! Source: mount(2), umount2(2).

use std::ffi::CString;

use crate::error::{SysError, check};

const NEEDS: &str = "CAP_SYS_ADMIN";

fn words(text: &str) -> Result<CString, SysError> {
    CString::new(text).map_err(|_| SysError::code("mount", text, libc::EINVAL))
}

/// Mounts the file system `kind` at `at`; no program is run from it.
///
/// # Errors
/// ENODEV where the kernel has none, EBUSY where it can be mounted once and is, EPERM without CAP_SYS_ADMIN.
pub fn mount(kind: &str, at: &str, options: &str) -> Result<(), SysError> {
    let (name, target, words_of) = (words(kind)?, words(at)?, words(options)?);
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: NUL-terminated strings that live until the call is over.
    let done = unsafe {
        libc::mount(name.as_ptr(), target.as_ptr(), name.as_ptr(), flags, words_of.as_ptr().cast())
    };
    check(done, "mount", &format!("{kind} at {at}")).map(drop).map_err(|e| e.needs(NEEDS))
}

/// Takes away what is mounted at `at`, unless a file of it is open or somebody is in it.
///
/// # Errors
/// EBUSY then; EINVAL where nothing is mounted.
pub fn unmount(at: &str) -> Result<(), SysError> {
    let target = words(at)?;
    // SAFETY: a NUL-terminated string.
    let done = unsafe { libc::umount2(target.as_ptr(), libc::UMOUNT_NOFOLLOW) };
    check(done, "umount2", at).map(drop).map_err(|e| e.needs(NEEDS))
}
