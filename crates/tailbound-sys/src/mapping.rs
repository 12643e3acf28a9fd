// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that is mapped to be touched and thrown away: the work of a load that makes page
//! faults and empties TLBs.
//!
//! Context: HOT of a load, never of a measured loop. Units: bytes, pages.
//! Huge pages are refused: whether a kernel hands them out would decide how much work
//! touching is, and runs on two kernels could not be compared.
//! Not here: memory that must be there before it is needed (`mem`).
//! Source: mmap(2), mprotect(2), madvise(2) MADV_NOHUGEPAGE, sysconf(3).

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

/// Private anonymous memory of its owner; dropping it unmaps it.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
    writable: bool,
}

// SAFETY: the mapping is owned, and changed through `&mut` alone.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` (at least one page), readable and writable, none of it there yet.
    ///
    /// # Errors
    /// ENOMEM, or EAGAIN where it would be locked beyond the limit.
    pub fn new(bytes: usize) -> Result<Self, SysError> {
        let bytes = bytes.max(page_bytes());
        // SAFETY: an anonymous private mapping at no particular address.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let (Some(at), true) = (NonNull::new(at.cast::<u8>()), at != libc::MAP_FAILED) else {
            return Err(SysError::last("mmap", format!("{bytes} bytes")));
        };
        // SAFETY: exactly the mapping just made. EINVAL: a kernel without huge pages, as wanted.
        unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Self { at, bytes, writable: true })
    }

    /// Takes the permission to write away, or gives it back: every CPU that runs a thread of
    /// this process must forget what it knew of these pages.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn protect(&mut self, writable: bool) -> Result<(), SysError> {
        let flags = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: exactly the mapping made in `new`, which nobody else knows.
        let done = unsafe { libc::mprotect(self.at.as_ptr().cast(), self.bytes, flags) };
        check(done, "mprotect", "").map(drop)?;
        self.writable = writable;
        Ok(())
    }

    /// Touches a byte of every page, writing `value` where that is permitted and reading
    /// elsewhere; `every` is told of each run of at most 256 pages that is done.
    pub fn touch(&mut self, value: u8, every: &dyn Fn(u64)) {
        let page = page_bytes();
        let mut told = 0;
        for (done, offset) in (1..).zip((0..self.bytes).step_by(page)) {
            // SAFETY: a byte inside the mapping, which is readable always and writable by
            // `writable`; volatile, so that it happens although nobody looks.
            unsafe {
                let byte = self.at.as_ptr().add(offset);
                if self.writable {
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
        for writable in [true, false, true] {
            assert_eq!(mapping.protect(writable), Ok(()));
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
    fn what_cannot_be_mapped_is_an_error() {
        assert!(Mapping::new(usize::MAX / 2).is_err_and(|e| e.call == "mmap"));
    }
}
