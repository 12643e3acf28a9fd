// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory whose pages another thread brings, when it likes: a page fault that has to wait, as of a page that
//! lies on a slow disk.
//!
//! Context: HOT of a load (`touch`), SETUP (`new`). Units: pages.
//! Source: userfaultfd(2), ioctl_userfaultfd(2), the kernel's include/uapi/linux/userfaultfd.h.

use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::NonNull;

use crate::error::{SysError, check};
use crate::ipc;
use crate::mapping::page_bytes;

const API: u64 = 0xAA;
const EVENT_PAGEFAULT: u8 = 0x12;
/// Pages that are missing, not those that are written.
const MODE_MISSING: u64 = 1;
/// `_IOWR(0xAA, number, bytes)`.
const UFFDIO_API: u64 = 0xC018_AA3F;
const UFFDIO_REGISTER: u64 = 0xC020_AA00;
const UFFDIO_ZEROPAGE: u64 = 0xC020_AA04;
/// Of a message; the address begins at its sixteenth byte.
const MESSAGE_BYTES: usize = 32;
const NEEDS: &str = "root or vm.unprivileged_userfaultfd=1, and a kernel with CONFIG_USERFAULTFD";

/// The memory, none of whose pages is there at first.
#[derive(Debug)]
pub struct Paged {
    faults: OwnedFd,
    at: NonNull<u8>,
    pages: usize,
}

// SAFETY: the mapping is owned; its bytes are touched by volatile reads alone.
unsafe impl Send for Paged {}
// SAFETY: as above; the descriptor may be read and told by several threads.
unsafe impl Sync for Paged {}

impl Paged {
    /// As many pages.
    ///
    /// # Errors
    /// EPERM without the right to it; ENOSYS on a kernel without; ENOMEM.
    pub fn new(pages: usize) -> Result<Self, SysError> {
        // SAFETY: userfaultfd(2) on a flag.
        let raw = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let raw = check(raw, "userfaultfd", "").map_err(|e| e.needs(NEEDS))?;
        let raw = i32::try_from(raw).unwrap_or(-1);
        // SAFETY: a fresh, valid descriptor that nobody else knows.
        let faults = unsafe { OwnedFd::from_raw_fd(raw) };
        let pages = pages.max(1);
        // SAFETY: an anonymous private mapping at no particular address.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                pages * page_bytes(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let (Some(at), true) = (NonNull::new(at.cast::<u8>()), at != libc::MAP_FAILED) else {
            return Err(SysError::last("mmap", format!("{pages} pages")));
        };
        let paged = Self { faults, at, pages };
        paged.ask(UFFDIO_API, &mut [API, 0, 0], "UFFDIO_API")?;
        let [from, bytes] = [paged.address(0), paged.bytes()];
        paged.ask(UFFDIO_REGISTER, &mut [from, bytes, MODE_MISSING, 0], "UFFDIO_REGISTER")?;
        Ok(paged)
    }

    fn bytes(&self) -> u64 {
        (self.pages * page_bytes()) as u64
    }

    fn address(&self, page: usize) -> u64 {
        (self.at.as_ptr() as usize + page % self.pages * page_bytes()) as u64
    }

    fn ask(&self, what: u64, words: &mut [u64], name: &'static str) -> Result<(), SysError> {
        // SAFETY: each of the three reads and writes a struct of these words; the descriptor is open.
        let done = unsafe { libc::ioctl(self.faults.as_raw_fd(), what as _, words.as_mut_ptr()) };
        check(done, "ioctl", name).map(drop)
    }

    /// Reads a byte of a page: the thread waits until the page was brought.
    pub fn touch(&self, page: usize) {
        let at = self.at.as_ptr().wrapping_add(page % self.pages * page_bytes());
        // SAFETY: a byte of the mapping, which lives as long as `self`.
        unsafe { at.read_volatile() };
    }

    /// Waits until a thread waits for a page; its address, or `None` where the message is another.
    ///
    /// # Errors
    /// EINTR.
    pub fn wait(&self) -> Result<Option<u64>, SysError> {
        let mut message = [0u8; MESSAGE_BYTES];
        ipc::read(self.faults.as_fd(), &mut message)
            .map_err(|e| SysError::code("read", "userfaultfd", e.raw_os_error().unwrap_or(0)))?;
        let address = message.get(16..24).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes);
        Ok(address.filter(|_| message.first() == Some(&EVENT_PAGEFAULT)))
    }

    /// Brings the page at `address`, zero, and wakes who waits for it.
    ///
    /// # Errors
    /// EEXIST where it is there.
    pub fn bring(&self, address: u64) -> Result<(), SysError> {
        let page = page_bytes() as u64;
        let mut words = [address / page * page, page, 0, 0];
        self.ask(UFFDIO_ZEROPAGE, &mut words, "UFFDIO_ZEROPAGE")
    }

    /// Takes all pages away again.
    ///
    /// # Errors
    /// EINVAL where they are locked.
    pub fn forget(&self) -> Result<(), SysError> {
        // SAFETY: exactly the mapping, whose bytes nobody keeps a reference to.
        let done = unsafe {
            libc::madvise(self.at.as_ptr().cast(), self.pages * page_bytes(), libc::MADV_DONTNEED)
        };
        check(done, "madvise", "MADV_DONTNEED").map(drop)
    }
}

impl Drop for Paged {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`, once.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.pages * page_bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn a_page_comes_when_it_is_brought() {
        let paged = match Paged::new(4) {
            Ok(paged) => Arc::new(paged),
            Err(e) => return tailbound_testing::skip("userfaultfd", e),
        };
        let toucher = Arc::clone(&paged);
        let waits = thread::spawn(move || toucher.touch(2));
        let address = paged.wait().expect("a message").expect("a page fault");
        assert_eq!(address / page_bytes() as u64 * page_bytes() as u64, paged.address(2));
        assert!(!waits.is_finished());
        assert_eq!(paged.bring(address), Ok(()));
        waits.join().expect("it goes on");
        assert_eq!(paged.forget(), Ok(()));
    }
}
