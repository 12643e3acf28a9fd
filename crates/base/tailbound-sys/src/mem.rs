// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that is there before it is needed: locked, prefaulted, zero.
//!
//! Context: SETUP. Units: bytes. Source: mlockall(2), capget(2), mmap(2).

use std::marker::PhantomData;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::ptr::NonNull;

use crate::error::{SysError, check};

/// Locks every page of the process from the moment it is first touched (what the measuring
/// loop uses is touched in the warm-up), and until then leaves it where it is: locking the
/// whole program at once would cost megabytes of pages that nobody reads.
///
/// Under a finite limit nothing is locked at all: with MCL_FUTURE the first allocation beyond it
/// would fail, and end the program in the middle of a run.
///
/// # Errors
/// ENOMEM under a finite RLIMIT_MEMLOCK without CAP_IPC_LOCK; EPERM.
pub fn lock_all() -> Result<(), SysError> {
    let needs = "root, CAP_IPC_LOCK or an unlimited RLIMIT_MEMLOCK";
    let (limit_bytes, _) = crate::limits::get(libc::RLIMIT_MEMLOCK)?;
    if limit_bytes != u64::MAX && !may_lock_anything() {
        let what = format!("RLIMIT_MEMLOCK is {} KiB", limit_bytes / 1024);
        return Err(SysError::code("mlockall", what, libc::ENOMEM).needs(needs));
    }
    let all = libc::MCL_CURRENT | libc::MCL_FUTURE;
    // SAFETY: flags only.
    let mut locked = unsafe { libc::mlockall(all | libc::MCL_ONFAULT) };
    if locked != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        // Before Linux 4.4, and under user-mode emulators.
        // SAFETY: flags only.
        locked = unsafe { libc::mlockall(all) };
    }
    check(locked, "mlockall", "").map(drop).map_err(|e| e.needs(needs))
}

/// Is CAP_IPC_LOCK among the effective capabilities of this thread, where it counts? In a user
/// namespace of its own (a rootless container) a process may have every capability, and still the
/// limit holds: an allocation beyond it would fail, and end the program.
fn may_lock_anything() -> bool {
    const VERSION_3: u32 = 0x2008_0522;
    const CAP_IPC_LOCK: u32 = 14;
    let header = [VERSION_3, 0];
    let mut sets = [0u32; 6];
    // SAFETY: capget(2) of version 3 reads two words and writes two sets of three words.
    let got = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) };
    let has = got == 0 && sets.first().is_some_and(|effective| effective >> CAP_IPC_LOCK & 1 == 1);
    has && in_first_user_namespace()
}

/// Source: `PROC_USER_INIT_INO` of the kernel's include/linux/proc_ns.h.
fn in_first_user_namespace() -> bool {
    const FIRST: u64 = 0xEFFF_FFFD;
    // A kernel without user namespaces has no such file.
    std::fs::metadata("/proc/self/ns/user").map_or(true, |m| m.ino() == FIRST)
}

/// The smallest page of any machine Linux runs on.
const PAGE_BYTES: usize = 4096;

/// Types for which all zero bytes are a valid value that needs no drop.
///
/// # Safety
/// Exactly that must hold.
pub unsafe trait Zeroed: Sync {}

// SAFETY: a struct of atomic integers and arrays of them.
unsafe impl Zeroed for tailbound_rt::Recorder {}
// SAFETY: a struct of atomic integers.
unsafe impl Zeroed for tailbound_rt::jobs::Counts {}
// SAFETY: a struct of atomic integers and arrays of them.
unsafe impl<const W: usize, const N: usize> Zeroed for tailbound_rt::ring::Ring<W, N> {}

/// A `T` of zero bytes in pages of its own, faulted in before the constructor returns; or as much of it as its writer needs.
#[derive(Debug)]
pub struct Prefaulted<T: Zeroed> {
    at: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: the mapping is owned, and T is Sync: threads share only `&T`.
unsafe impl<T: Zeroed> Send for Prefaulted<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed> Sync for Prefaulted<T> {}

impl<T: Zeroed> Prefaulted<T> {
    /// Maps and faults in a zero `T`.
    ///
    /// # Errors
    /// ENOMEM, or EAGAIN when it would have to be locked beyond RLIMIT_MEMLOCK.
    pub fn new() -> Result<Self, SysError> {
        Self::up_to(size_of::<T>())
    }

    /// Maps a zero `T`, and faults in its first `bytes`.
    ///
    /// # Errors
    /// Those of [`Prefaulted::new`].
    pub fn up_to(bytes: usize) -> Result<Self, SysError> {
        const { assert!(align_of::<T>() <= 4096) };
        let bytes = bytes.min(size_of::<T>());
        // SAFETY: an anonymous private mapping at no particular address.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let (Some(place), true) = (NonNull::new(at.cast::<T>()), at != libc::MAP_FAILED) else {
            return Err(SysError::last("mmap", format!("{} bytes", size_of::<T>())));
        };
        // The kernel passes over MAP_POPULATE where memory is locked as it is touched.
        // SAFETY: within the mapping just made.
        if bytes > 0 && unsafe { libc::madvise(at, bytes, libc::MADV_POPULATE_WRITE) } != 0 {
            // Before Linux 5.14, by hand.
            for offset in (0..bytes).step_by(PAGE_BYTES) {
                // SAFETY: a byte of the mapping just made, which nobody else knows yet; 0 as it was.
                unsafe { at.cast::<u8>().add(offset).write_volatile(0) };
            }
        }
        Ok(Self { at: place, owns: PhantomData })
    }
}

impl<T: Zeroed> Deref for Prefaulted<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: a live, page-aligned mapping of at least size_of::<T>() zero bytes, valid by `Zeroed`.
        unsafe { self.at.as_ref() }
    }
}

impl<T: Zeroed> Drop for Prefaulted<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this address and length.
        unsafe { libc::munmap(self.at.as_ptr().cast(), size_of::<T>()) };
    }
}
