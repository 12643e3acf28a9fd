// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that is mapped to be touched and thrown away: the work of a load that makes page
//! faults and empties TLBs.
//!
//! Context: HOT of a load, never of a measured loop. Units: bytes, pages.
//! Huge pages are refused by [`Mapping::new`]: whether a kernel hands them out would decide how much work
//! touching is, and runs on two kernels could not be compared.
//! Not here: memory that must be there before it is needed (`mem`).
//! Source: mmap(2), mprotect(2), madvise(2), mlock(2), mremap(2), sysconf(3).

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use crate::error::{SysError, check};

/// Bytes of a page of this machine.
#[must_use]
pub fn page_bytes() -> usize {
    // SAFETY: sysconf(3) on a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
        .ok()
        .filter(|n| *n > 0)
        .unwrap_or(4096)
}

/// What [`Mapping::advise`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// MADV_DONTNEED.
    Drop,
    /// MADV_HUGEPAGE.
    Huge,
}

/// What may be done with pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// They are read alone.
    Read,
    /// They are read and written.
    Write,
}

/// Memory that its owner mapped; dropping it unmaps it.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
    access: Access,
}

// SAFETY: the mapping is owned, and changed through `&mut` alone.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` (at least one page), readable and writable, none of it there yet, without huge pages.
    ///
    /// # Errors
    /// ENOMEM, or EAGAIN where it would be locked beyond the limit.
    pub fn new(bytes: usize) -> Result<Self, SysError> {
        let it = Self::plain(bytes)?;
        // SAFETY: exactly the mapping just made. EINVAL: a kernel without huge pages, as wanted.
        unsafe { libc::madvise(it.at.as_ptr().cast(), it.bytes, libc::MADV_NOHUGEPAGE) };
        Ok(it)
    }

    /// As [`Mapping::new`], with huge pages where the kernel gives them by itself.
    ///
    /// # Errors
    /// Those of [`Mapping::new`].
    pub fn plain(bytes: usize) -> Result<Self, SysError> {
        Self::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// Maps the first `bytes` of `file`, shared. Who touches what lies beyond its end is ended by SIGBUS.
    ///
    /// # Errors
    /// Those of [`Mapping::new`]; EACCES where the file is not open for both.
    pub fn of_file(file: BorrowedFd<'_>, bytes: usize) -> Result<Self, SysError> {
        Self::map(bytes, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map(bytes: usize, flags: libc::c_int, file: libc::c_int) -> Result<Self, SysError> {
        let bytes = bytes.max(page_bytes());
        let both = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping at no particular address.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, both, flags, file, 0) };
        match NonNull::new(at.cast::<u8>()) {
            Some(at) if at.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Self { at, bytes, access: Access::Write })
            }
            _ => Err(SysError::last("mmap", format!("{bytes} bytes"))),
        }
    }

    /// Takes the permission to write away, or gives it back: every CPU that runs a thread of
    /// this process must forget what it knew of these pages.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn protect(&mut self, access: Access) -> Result<(), SysError> {
        let flags = match access {
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
            Access::Read => libc::PROT_READ,
        };
        // SAFETY: exactly the mapping made in `new`, which nobody else knows.
        let done = unsafe { libc::mprotect(self.at.as_ptr().cast(), self.bytes, flags) };
        check(done, "mprotect", "").map(drop)?;
        self.access = access;
        Ok(())
    }

    /// Touches a byte of every page, writing `value` where that is permitted and reading
    /// elsewhere; `every` is told of each run of at most 256 pages that is done.
    pub fn touch(&mut self, value: u8, every: &dyn Fn(u64)) {
        let page = page_bytes();
        let mut told = 0;
        for (done, offset) in (1..).zip((0..self.bytes).step_by(page)) {
            // SAFETY: a byte inside the mapping, which is readable always and writable by
            // `access`; volatile, so that it happens although nobody looks.
            unsafe {
                let byte = self.at.as_ptr().add(offset);
                if self.access == Access::Write {
                    byte.write_volatile(value);
                } else {
                    byte.read_volatile();
                }
            }
            if done - told == 256 || offset + page >= self.bytes {
                every(done - told);
                told = done;
            }
        }
    }
}

impl Mapping {
    /// Reads a word of every page, in an order that no prefetcher follows and with a step that
    /// visits every set of a cache; `every` is told of each run of at most 256 pages that is
    /// done. Every page has its own entry in the page tables: beyond some thousand of them each
    /// read is a walk.
    pub fn walk(&self, every: &dyn Fn(u64)) {
        let page = page_bytes();
        let pages = (self.bytes / page).max(1);
        // Odd, and so prime to the power of two: each page once.
        let (whole, step) = (pages.next_power_of_two(), (pages.next_power_of_two() / 8 * 5) | 1);
        let (mut at, mut told) = (0usize, 0);
        for _ in 0..whole {
            at = at.wrapping_add(step) & (whole - 1);
            if at >= pages {
                continue;
            }
            let line = at.wrapping_mul(64) & (page - 1) & !63;
            // SAFETY: a byte of a page inside the mapping, which is readable always; volatile,
            // so that it happens although nobody looks.
            unsafe { self.at.as_ptr().add(at * page + line).read_volatile() };
            told += 1;
            if told == 256 {
                every(told);
                told = 0;
            }
        }
        if told > 0 {
            every(told);
        }
    }
}

impl Mapping {
    /// Reads a byte of every page, in order.
    pub fn look(&self) {
        for offset in (0..self.bytes).step_by(page_bytes()) {
            // SAFETY: a byte inside the mapping, which is readable always; volatile, so that it happens.
            unsafe { self.at.as_ptr().add(offset).read_volatile() };
        }
    }

    /// Gives the pages back (MADV_DONTNEED) or asks for huge ones (MADV_HUGEPAGE).
    ///
    /// # Errors
    /// EINVAL: locked pages; a kernel without huge pages.
    pub fn advise(&mut self, advice: Advice) -> Result<(), SysError> {
        let (value, word) = match advice {
            Advice::Drop => (libc::MADV_DONTNEED, "MADV_DONTNEED"),
            Advice::Huge => (libc::MADV_HUGEPAGE, "MADV_HUGEPAGE"),
        };
        // SAFETY: exactly the mapping made before, which nobody else knows.
        let done = unsafe { libc::madvise(self.at.as_ptr().cast(), self.bytes, value) };
        check(done, "madvise", word).map(drop)
    }

    /// Locks the pages.
    ///
    /// # Errors
    /// ENOMEM, EPERM beyond the limit of locked memory.
    pub fn lock(&mut self) -> Result<(), SysError> {
        // SAFETY: exactly the mapping made before.
        let done = unsafe { libc::mlock(self.at.as_ptr().cast(), self.bytes) };
        check(done, "mlock", "").map(drop)
    }

    /// Unlocks them.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn unlock(&mut self) -> Result<(), SysError> {
        // SAFETY: exactly the mapping made before.
        let done = unsafe { libc::munlock(self.at.as_ptr().cast(), self.bytes) };
        check(done, "munlock", "").map(drop)
    }

    /// Makes it `bytes` long (at least one page), at another place where there is no room.
    ///
    /// # Errors
    /// ENOMEM; EAGAIN where it would be locked beyond the limit.
    pub fn resize(&mut self, bytes: usize) -> Result<(), SysError> {
        let bytes = bytes.max(page_bytes());
        let old = self.at.as_ptr().cast();
        // SAFETY: exactly the mapping made before, to which no reference exists.
        let at = unsafe { libc::mremap(old, self.bytes, bytes, libc::MREMAP_MAYMOVE) };
        match NonNull::new(at.cast::<u8>()) {
            Some(at) if at.as_ptr().cast() != libc::MAP_FAILED => {
                self.at = at;
                self.bytes = bytes;
                Ok(())
            }
            _ => Err(SysError::last("mremap", format!("{bytes} bytes"))),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; no reference to it exists.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn every_page_is_touched_once_whatever_the_permission() {
        let pages = 600;
        let Ok(mut mapping) = Mapping::new(pages * page_bytes() - 1) else { panic!("mmap") };
        for access in [Access::Write, Access::Read, Access::Write] {
            assert_eq!(mapping.protect(access), Ok(()));
            let (touched, tellings) = (Cell::new(0), Cell::new(0));
            mapping.touch(7, &|n| {
                touched.set(touched.get() + n);
                tellings.set(tellings.get() + 1);
            });
            assert_eq!((touched.get(), tellings.get()), (pages as u64, 3));
        }
    }

    #[test]
    fn a_walk_visits_every_page_once() {
        for pages in [1, 2, 7, 256, 1000] {
            let Ok(mut mapping) = Mapping::new(pages * page_bytes()) else { panic!("mmap") };
            mapping.touch(1, &|_| {});
            let seen = Cell::new(0);
            mapping.walk(&|n| seen.set(seen.get() + n));
            assert_eq!(seen.get(), pages as u64);
        }
    }

    #[test]
    fn a_mapping_grows_and_shrinks() {
        let Ok(mut it) = Mapping::plain(4 * page_bytes()) else { panic!("mmap") };
        it.touch(3, &|_| {});
        for pages in [8, 2] {
            assert_eq!(it.resize(pages * page_bytes()), Ok(()));
            it.look();
        }
    }

    #[test]
    fn locked_pages_are_not_given_back() {
        let Ok(mut it) = Mapping::plain(2 * page_bytes()) else { panic!("mmap") };
        it.touch(3, &|_| {});
        assert_eq!(it.lock(), Ok(()));
        assert!(it.advise(Advice::Drop).is_err_and(|e| e.errno == libc::EINVAL));
        assert_eq!(it.unlock(), Ok(()));
        assert_eq!(it.advise(Advice::Drop), Ok(()));
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        assert!(Mapping::new(usize::MAX / 2).is_err_and(|e| e.call == "mmap"));
    }
}
