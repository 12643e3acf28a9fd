// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that two processes map: zero, prefaulted, gone with the last of them.
//!
//! Context: SETUP. Units: bytes. It has no name in any file system, so nothing is left behind
//! whatever happens to its users.
//! Source: memfd_create(2), mmap(2).

use std::fs::File;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{SysError, check};
use crate::mem::Zeroed;

/// The smallest page of any machine Linux runs on.
const PAGE_BYTES: usize = 4096;

// SAFETY: structs of atomic integers and arrays of them.
unsafe impl Zeroed for tailbound_rt::handover::Block {}

/// A `T` of zero bytes in memory that other processes can map too.
#[derive(Debug)]
pub struct Shared<T: Zeroed> {
    at: NonNull<T>,
    fd: OwnedFd,
    owns: PhantomData<T>,
}

// SAFETY: the mapping is owned, and T is Sync: threads share only `&T`.
unsafe impl<T: Zeroed> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed> Sync for Shared<T> {}

impl<T: Zeroed> Shared<T> {
    /// New memory.
    ///
    /// # Errors
    /// ENOMEM; ENOSYS before Linux 3.17.
    pub fn new() -> Result<Self, SysError> {
        // SAFETY: a NUL-terminated name; the new descriptor is ours alone.
        let fd = unsafe {
            let raw = libc::memfd_create(c"tailbound".as_ptr(), libc::MFD_CLOEXEC);
            check(raw, "memfd_create", "")?;
            OwnedFd::from_raw_fd(raw)
        };
        let bytes = libc::off_t::try_from(size_of::<T>())
            .map_err(|_| SysError::code("ftruncate", "", libc::EFBIG))?;
        // SAFETY: ftruncate(2) on a live descriptor.
        check(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes) }, "ftruncate", "shared memory")?;
        Self::map(fd)
    }

    /// The memory behind a descriptor that another process made by [`Shared::new`] of the same
    /// type and handed down.
    ///
    /// # Errors
    /// EINVAL where the size is another: the two sides are not the same program.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, SysError> {
        // The standard library's asks for times of 64 bits.
        let file = File::from(fd);
        let size = file.metadata().map_err(|_| SysError::last("fstat", "shared memory"))?.len();
        if usize::try_from(size) != Ok(size_of::<T>()) {
            return Err(SysError::code(
                "mmap",
                format!("shared memory of {size} bytes"),
                libc::EINVAL,
            ));
        }
        Self::map(file.into())
    }

    /// Never unmaps it: for memory whose address the kernel keeps.
    pub(crate) fn leak(self) -> &'static T {
        let kept: &'static Self = Box::leak(Box::new(self));
        kept
    }

    fn map(fd: OwnedFd) -> Result<Self, SysError> {
        const { assert!(align_of::<T>() <= PAGE_BYTES) };
        // SAFETY: a mapping of the descriptor's memory at no particular address.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        let (Some(place), true) = (NonNull::new(at.cast::<T>()), at != libc::MAP_FAILED) else {
            return Err(SysError::last("mmap", format!("{} bytes", size_of::<T>())));
        };
        for offset in (0..size_of::<T>()).step_by(PAGE_BYTES) {
            // SAFETY: a word of the mapping, aligned to a page.
            let word = unsafe { &*at.cast::<u8>().add(offset).cast::<AtomicU32>() };
            // Written, so that the first write later is no fault, with what it holds: the other
            // side may be there already. (Adding 0 would be compiled to a mere reading.)
            let held = word.load(Ordering::Relaxed);
            let _was_unchanged =
                word.compare_exchange(held, held, Ordering::Relaxed, Ordering::Relaxed);
        }
        Ok(Self { at: place, fd, owns: PhantomData })
    }
}

impl<T: Zeroed> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: a live, page-aligned mapping of size_of::<T>() bytes, zero at first and since
        // then written as a T by every side.
        unsafe { self.at.as_ref() }
    }
}

impl<T: Zeroed> AsFd for Shared<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl<T: Zeroed> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this address and length.
        unsafe { libc::munmap(self.at.as_ptr().cast(), size_of::<T>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_rt::handover::Block;

    #[test]
    fn two_mappings_are_one_memory() {
        let one = Shared::<Block>::new().expect("memory");
        one.control.stop.store(7, Ordering::Relaxed);
        let other = Shared::<Block>::from_fd(one.as_fd().try_clone_to_owned().expect("descriptor"))
            .expect("the same size");
        assert_eq!(other.control.stop.load(Ordering::Relaxed), 7);
        let file = std::fs::File::open("/dev/null").expect("a file");
        let wrong = Shared::<Block>::from_fd(file.into());
        assert_eq!(wrong.map(drop).map_err(|e| e.errno), Err(libc::EINVAL));
    }
}
