// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that is there before it is needed: locked, prefaulted, zero.
//!
//! Context: SETUP. Units: bytes. Source: mlockall(2), mmap(2).

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::error::{SysError, check};

/// Locks all present and future pages of the process.
///
/// # Errors
/// EPERM or ENOMEM without CAP_IPC_LOCK beyond RLIMIT_MEMLOCK.
pub fn lock_all() -> Result<(), SysError> {
    // SAFETY: flags only.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }, "mlockall", "")
        .map(drop)
        .map_err(|e| e.needs("root, CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK"))
}

/// Types for which all zero bytes are a valid value that needs no drop.
///
/// # Safety
/// Exactly that must hold.
pub unsafe trait Zeroed: Sync {}

// SAFETY: a struct of atomic integers and arrays of them.
unsafe impl Zeroed for tailbound_rt::Recorder {}

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
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        match NonNull::new(at.cast::<T>()) {
            Some(at_t) if at != libc::MAP_FAILED => Ok(Self { at: at_t, owns: PhantomData }),
            _ => Err(SysError::last("mmap", format!("{} bytes", size_of::<T>()))),
        }
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
