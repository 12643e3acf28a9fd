// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that is there before it is needed: locked, prefaulted, zero.
//!
//! Context: SETUP. Units: bytes. Source: mlockall(2), capget(2), mmap(2).

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::error::{SysError, check};

/// Locks every page of the process from the moment it is first touched (what the measuring
/// loop uses is touched in the warm-up), and until then leaves it where it is: locking the
/// whole program at once would cost megabytes of pages that nobody reads. Its code is touched here.
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
    check(locked, "mlockall", "").map_err(|e| e.needs(needs))?;
    // Without /proc the warm-up touches what it takes; faults in the loop are counted.
    drop(touch_code());
    Ok(())
}

/// Touches every page of code this process could execute, so that a path which the warm-up did not
/// take costs no page fault when it is taken in the measurement; the number of bytes.
///
/// A build without link-time optimisation has the code of one loop on many pages.
///
/// # Errors
/// /proc/self/maps cannot be read.
fn touch_code() -> std::io::Result<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let mut touched = 0;
    for (from, to) in maps.lines().filter_map(code) {
        for at in (from..to).step_by(PAGE_BYTES) {
            // SAFETY: mapped and readable, as the kernel has just said; code of a program that runs
            // is not unmapped.
            unsafe { std::ptr::with_exposed_provenance::<u8>(at).read_volatile() };
        }
        touched += to - from;
    }
    Ok(touched)
}

/// Begin and end of a mapping of a file that is readable and executable. Source: proc_pid_maps(5).
fn code(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let flags = words.next()?;
    let of_a_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
    let address = |text| usize::from_str_radix(text, 16).ok();
    (flags.starts_with("r-x") && of_a_file).then(|| Some((address(from)?, address(to)?)))?
}

/// Is CAP_IPC_LOCK among the effective capabilities of this thread?
fn may_lock_anything() -> bool {
    const VERSION_3: u32 = 0x2008_0522;
    const CAP_IPC_LOCK: u32 = 14;
    let header = [VERSION_3, 0];
    let mut sets = [0u32; 6];
    // SAFETY: capget(2) of version 3 reads two words and writes two sets of three words.
    let got = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) };
    got == 0 && sets.first().is_some_and(|effective| effective >> CAP_IPC_LOCK & 1 == 1)
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

/// A `T` of zero bytes in pages of its own, faulted in before the constructor returns.
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
        const { assert!(align_of::<T>() <= 4096) };
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
        // By hand: the kernel passes over MAP_POPULATE where memory is locked as it is touched.
        for offset in (0..size_of::<T>()).step_by(PAGE_BYTES) {
            // SAFETY: a byte of the mapping just made, which nobody else knows yet; 0 as it was.
            unsafe { at.cast::<u8>().add(offset).write_volatile(0) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_touched_and_nothing_else() {
        let line = "55d0-55e0 r-xp 00001000 fe:00 17 /usr/bin/tailbound";
        assert_eq!(code(line), Some((0x55d0, 0x55e0)));
        for other in ["55d0-55e0 r--p 0 fe:00 17 /a", "7ff0-7ff2 r-xp 0 00:00 0 [vdso]", "", "x"] {
            assert_eq!(code(other), None, "{other}");
        }
        assert!(touch_code().is_ok_and(|bytes| bytes > PAGE_BYTES));
    }
}
