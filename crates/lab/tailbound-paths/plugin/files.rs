// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two files that the plugin shares with who started QEMU: the plan, and the log.
//!
//! Context: SETUP (open), HOT (write). Both are mapped: what was written is there when QEMU is killed.
//! Source: open(2), mmap(2).

use core::ffi::{CStr, c_int};

use crate::qemu;
use crate::record::{
    self, LOG_COMPARED, LOG_COUNT, LOG_HEAD_BYTES, LOG_STATUS, RECORD_BYTES, plan, status,
};

const O_RDWR: c_int = 2;
const O_CLOEXEC: c_int = 0o2_000_000;
const SEEK_END: c_int = 2;
const PROT_READ_WRITE: c_int = 3;
const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE_ANONYMOUS: c_int = 0x22;
const PAGE: usize = 4096;
const POOL_BYTES: usize = 1 << 20;

/// What is done with a file.
#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

/// A file as words of memory.
fn mapped(path: &CStr, access: Access) -> Option<(*mut u64, usize)> {
    let (flags, protection) = match access {
        Access::Read => (0, PROT_READ),
        Access::Write => (O_RDWR, PROT_READ_WRITE),
    };
    // SAFETY: a path that ends with 0; the descriptor is ours; the mapping lives as long as the process.
    unsafe {
        let file = qemu::open(path.as_ptr(), flags | O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let bytes = usize::try_from(qemu::lseek(file, 0, SEEK_END)).ok()?;
        let at = qemu::mmap(core::ptr::null_mut(), bytes, protection, MAP_SHARED, file, 0);
        (at.addr() != usize::MAX && bytes >= PAGE).then_some((at.cast(), bytes))
    }
}

/// A file of the current folder as words, if it is there.
pub fn words(path: &CStr) -> Option<&'static [u64]> {
    let (at, bytes) = mapped(path, Access::Read)?;
    // SAFETY: mapped, that long, and never unmapped.
    Some(unsafe { core::slice::from_raw_parts(at.cast_const(), bytes / 8) })
}

/// A place of the kernel that is watched, from its first byte to behind its last.
pub struct Point {
    pub begin: u64,
    pub end: u64,
    pub kind: u64,
}

/// A time of which blocks are recorded.
#[derive(Clone, Copy)]
pub struct Window {
    /// Its number in the plan.
    pub nth: usize,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// The plan, read whole.
#[derive(Clone, Copy)]
pub struct Plan {
    words: &'static [u64],
}

impl Plan {
    pub fn open(path: &CStr) -> Option<Self> {
        let words = words(path)?;
        let plan = Self { words };
        let whole = plan::WORDS + plan.points_words() + plan.word(plan::WINDOWS) as usize * plan::WINDOW_WORDS;
        (words.first() == Some(&record::MAGIC) && words.len() >= whole).then_some(plan)
    }

    pub fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    fn points_words(&self) -> usize {
        self.word(plan::POINTS) as usize * plan::POINT_WORDS
    }

    /// The point that lies in `from..to`.
    pub fn point(&self, from: u64, to: u64) -> Option<Point> {
        let points = self.words.get(plan::WORDS..plan::WORDS + self.points_words())?;
        let (mut low, mut high) = (0, points.len() / plan::POINT_WORDS);
        while low < high {
            let middle = low.midpoint(high);
            let end = *points.get(middle * plan::POINT_WORDS + 1)?;
            if end <= from { low = middle + 1 } else { high = middle }
        }
        let begin = *points.get(low * plan::POINT_WORDS)?;
        let end = *points.get(low * plan::POINT_WORDS + 1)?;
        let kind = *points.get(low * plan::POINT_WORDS + 2)?;
        (begin < to).then_some(Point { begin, end, kind })
    }

    /// Window number `nth`.
    pub fn window(&self, nth: usize) -> Option<Window> {
        if nth as u64 >= self.word(plan::WINDOWS) {
            return None;
        }
        let at = plan::WORDS + self.points_words() + nth * plan::WINDOW_WORDS;
        Some(Window { nth, from_ns: *self.words.get(at)?, to_ns: *self.words.get(at + 1)? })
    }
}

/// The log.
pub struct Log {
    head: *mut u64,
    next: *mut u64,
    end: *mut u64,
    count: u64,
    compared: u64,
}

impl Log {
    pub fn open(path: &CStr) -> Option<Self> {
        let (head, bytes) = mapped(path, Access::Write)?;
        // SAFETY: within the mapping.
        let (next, end) = unsafe { (head.add(LOG_HEAD_BYTES / 8), head.add(bytes / RECORD_BYTES * 2)) };
        let log = Self { head, next, end, count: 0, compared: 0 };
        log.word(0, record::MAGIC);
        log.word(LOG_COUNT, 0);
        log.word(LOG_COMPARED, 0);
        Some(log)
    }

    fn word(&self, at: usize, value: u64) {
        // SAFETY: within the head's page.
        unsafe { self.head.add(at).write_volatile(value) };
    }

    pub fn status(&self, status: u64) {
        self.word(LOG_STATUS, status);
    }

    /// What is wrong besides stays.
    pub fn found(&self) {
        // SAFETY: within the head's page.
        if unsafe { self.head.add(LOG_STATUS).read_volatile() } == status::UNKNOWN_GUEST {
            self.status(status::WHOLE);
        }
    }

    /// The plugin's time was compared with QEMU's once more.
    pub fn compared(&mut self) {
        self.compared += 1;
        self.word(LOG_COMPARED, self.compared);
    }

    #[inline]
    pub fn write(&mut self, head: u64, value: u64) {
        if self.next >= self.end {
            self.status(status::FULL);
            return;
        }
        // SAFETY: before the end of the mapping.
        unsafe {
            self.next.write(head);
            self.next.add(1).write(value);
            self.next = self.next.add(2);
        }
        self.count += 1;
        self.word(LOG_COUNT, self.count);
    }
}

/// Memory that is never given back: what blocks of instructions carry.
pub struct Pool {
    at: *mut u8,
    left: usize,
}

impl Pool {
    pub const fn new() -> Self {
        Self { at: core::ptr::null_mut(), left: 0 }
    }

    /// A place for `value`; null where there is no memory.
    pub fn keep<T>(&mut self, value: T) -> *mut T {
        let bytes = size_of::<T>().next_multiple_of(16);
        if self.left < bytes {
            // SAFETY: new memory.
            let at = unsafe {
                qemu::mmap(
                    core::ptr::null_mut(),
                    POOL_BYTES,
                    PROT_READ_WRITE,
                    MAP_PRIVATE_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if at.addr() == usize::MAX {
                return core::ptr::null_mut();
            }
            (self.at, self.left) = (at.cast(), POOL_BYTES);
        }
        let place = self.at.cast::<T>();
        // SAFETY: that many bytes are left; 16 bytes apart.
        unsafe {
            place.write(value);
            self.at = self.at.add(bytes);
        }
        self.left -= bytes;
        place
    }
}
