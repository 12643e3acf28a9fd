// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small io_uring: a few operations at a time, on bytes of its own.
//!
//! Context: HOT (`queue`, `enter`: one io_uring_enter(2), `next_result`), SETUP (`new`). Units: ns, bytes.
//! A ring may be dropped while an operation is in flight, and the kernel ends that later: so the bytes
//! that it reads into are never freed ([`Bytes`]).
//! The crate io-uring has no bindings of 32-bit ARM, and makes them with libclang where it has none.
//! Source: io_uring(7), io_uring_setup(2), io_uring_enter(2), linux/io_uring.h.

use std::cell::UnsafeCell;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{SysError, check};

const ENTRIES: u32 = 4;
const OFFSET_SUBMISSIONS: libc::off_t = 0;
const OFFSET_ENTRIES: libc::off_t = 0x1000_0000;
const FEATURE_SINGLE_MMAP: u32 = 1;
const FEATURE_EXT_ARG: u32 = 1 << 8;
const SETUP_SINGLE_ISSUER: u32 = 1 << 12;
const SETUP_DEFER_TASKRUN: u32 = 1 << 13;
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTRY_LINK: u8 = 1 << 2;
const OP_POLL_ADD: u8 = 6;
const OP_CANCEL: u8 = 14;
const OP_READ: u8 = 22;
const OP_WRITE: u8 = 23;
/// `POLLIN`
const POLL_IN: u32 = 1;
const SECOND_NS: i64 = 1_000_000_000;
/// Most bytes of an operation.
pub(crate) const BYTES_MAX: usize = 64;
const NEEDS: &str = "io_uring of Linux 5.11 or later (CONFIG_IO_URING), the setting kernel.io_uring_disabled=0, and a container that lets io_uring_setup through";

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SubmissionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user_addr: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CompletionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    cqes: u32,
    flags: u32,
    reserved: u32,
    user_addr: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Parameters {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: SubmissionOffsets,
    cq: CompletionOffsets,
}

/// A submission queue entry: the fields of a read, write or poll, the rest zero.
#[repr(C)]
struct Entry {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: i32,
    offset: u64,
    address: u64,
    length: u32,
    /// Of a poll: its events.
    operation_flags: u32,
    user_data: u64,
    rest: [u32; 6],
}

#[repr(C)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
struct WaitArguments {
    mask: u64,
    mask_bytes: u32,
    reserved: u32,
    span: u64,
}

/// `struct __kernel_timespec`.
#[repr(C)]
struct KernelSpan {
    seconds: i64,
    ns: i64,
}

const _: () = assert!(
    size_of::<Parameters>() == 120
        && size_of::<Entry>() == 64
        && size_of::<Completion>() == 16
        && size_of::<WaitArguments>() == 24
);

/// What the kernel is asked to do, with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// To say when there is something to read.
    PollIn,
    /// To end such a one: of whatever file.
    EndPoll,
    /// To read so many bytes at most into those of the ring.
    Read(u32),
    /// To write the first bytes of the ring, so many.
    Write(u32),
}

/// What follows an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing.
    Nothing,
    /// The operation queued next begins when this one has succeeded.
    Next,
}

/// When the kernel ends operations whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completing {
    /// As soon as their thread can be interrupted for it.
    AtOnce,
    /// When their thread, the only one that may use the ring, waits for them (Linux 6.1; before that as soon as it can).
    InWait,
}

/// A mapping of the ring's memory.
struct Area {
    at: *mut u8,
    bytes: usize,
}

impl Area {
    fn map(fd: RawFd, bytes: usize, offset: libc::off_t) -> Result<Self, SysError> {
        // SAFETY: a mapping of the ring's memory at no particular address.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd,
                offset,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(SysError::last("mmap", "io_uring"));
        }
        Ok(Self { at: at.cast(), bytes })
    }

    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset of an aligned u32 inside the mapping, which it
        // reads and writes atomically too.
        unsafe { &*self.at.add(offset as usize).cast::<AtomicU32>() }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`.
        unsafe { libc::munmap(self.at.cast(), self.bytes) };
    }
}

/// The bytes that operations write or read, on a cache line of their own. Never freed: the kernel may write to them after
/// the ring is gone. A run makes a few rings.
#[repr(align(64))]
struct Bytes(UnsafeCell<[u8; BYTES_MAX]>);

impl Bytes {
    fn new() -> &'static Self {
        let mut bytes = [0; BYTES_MAX];
        bytes[0] = 1;
        Box::leak(Box::new(Self(UnsafeCell::new(bytes))))
    }
}

/// One ring, used by one thread at a time.
pub(crate) struct Ring {
    queues: Area,
    entries: Area,
    parameters: Parameters,
    bytes: &'static Bytes,
    fd: OwnedFd,
}

// SAFETY: the mappings and the bytes are this ring's alone; it is used by one thread at a time.
unsafe impl Send for Ring {}

impl Ring {
    /// An empty ring, of the calling thread alone with [`Completing::InWait`].
    ///
    /// # Errors
    /// ENOSYS, EPERM: the kernel has no io_uring, or refuses it.
    pub(crate) fn new(completing: Completing) -> Result<Self, SysError> {
        let flags = match completing {
            Completing::AtOnce => 0,
            Completing::InWait => SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN,
        };
        match Self::with(flags) {
            // Flags that this kernel does not know.
            Err(e) if e.errno == libc::EINVAL && flags != 0 => Self::with(0),
            made => made,
        }
    }

    fn with(flags: u32) -> Result<Self, SysError> {
        let mut parameters = Parameters { flags, ..Parameters::default() };
        // SAFETY: io_uring_setup(2) reads and writes the live parameters.
        let raw = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut parameters) };
        let raw = check(raw, "io_uring_setup", "").map_err(|e| match e.errno {
            libc::ENOSYS => SysError { needs: NEEDS, ..e },
            _ => e.needs(NEEDS),
        })?;
        // SAFETY: a fresh descriptor, ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(i32::try_from(raw).unwrap_or(-1)) };
        if parameters.features & FEATURE_SINGLE_MMAP == 0 {
            return Err(too_old());
        }
        let (sq, cq) = (&parameters.sq, &parameters.cq);
        let bytes = (sq.array as usize + parameters.sq_entries as usize * 4)
            .max(cq.cqes as usize + parameters.cq_entries as usize * size_of::<Completion>());
        let queues = Area::map(fd.as_raw_fd(), bytes, OFFSET_SUBMISSIONS)?;
        let bytes = parameters.sq_entries as usize * size_of::<Entry>();
        let entries = Area::map(fd.as_raw_fd(), bytes, OFFSET_ENTRIES)?;
        Ok(Self { queues, entries, parameters, bytes: Bytes::new(), fd })
    }

    /// Can a wait have a limit?
    ///
    /// # Errors
    /// ENOSYS: this kernel's cannot, before Linux 5.11.
    pub(crate) fn has_limits(&self) -> Result<(), SysError> {
        if self.parameters.features & FEATURE_EXT_ARG == 0 { Err(too_old()) } else { Ok(()) }
    }

    /// Queues an operation on a file that is open until it is over: at most [`ENTRIES`] before they are taken.
    pub(crate) fn queue(&self, operation: Operation, file: BorrowedFd<'_>, then: Then) {
        let (sq, tail) = (&self.parameters.sq, self.queues.word(self.parameters.sq.tail));
        let position = tail.load(Ordering::Relaxed);
        let slot = position & self.queues.word(sq.ring_mask).load(Ordering::Relaxed);
        let most = |bytes: u32| bytes.min(BYTES_MAX as u32);
        let own = self.bytes.0.get().expose_provenance() as u64;
        let (opcode, offset, address, length, operation_flags) = match operation {
            Operation::PollIn => (OP_POLL_ADD, 0, 0, 0, POLL_IN),
            // What is cancelled is told by its number, and has its code for one.
            Operation::EndPoll => (OP_CANCEL, 0, u64::from(OP_POLL_ADD), 0, 0),
            Operation::Read(bytes) => (OP_READ, u64::MAX, own, most(bytes), 0),
            Operation::Write(bytes) => (OP_WRITE, u64::MAX, own, most(bytes), 0),
        };
        let flags = if then == Then::Next { ENTRY_LINK } else { 0 };
        let entry = Entry {
            opcode,
            flags,
            priority: 0,
            fd: file.as_raw_fd(),
            offset,
            address,
            length,
            operation_flags,
            user_data: u64::from(opcode),
            rest: [0; 6],
        };
        // SAFETY: `slot` is below the number of entries, and of an entry that the kernel has
        // taken: there are never more than that.
        unsafe { self.entries.at.cast::<Entry>().add(slot as usize).write(entry) };
        self.queues.word(sq.array + 4 * slot).store(slot, Ordering::Relaxed);
        tail.store(position.wrapping_add(1), Ordering::Release);
    }

    /// Submits what is queued and waits until `results` are there, or for at most `span_ns`.
    ///
    /// # Errors
    /// EINTR: a signal came first; ETIME: the time is over. Either may also be no error: [`Self::results`] tells.
    pub(crate) fn enter(&self, results: u32, span_ns: Option<i64>) -> Result<(), i32> {
        let sq = &self.parameters.sq;
        let queued = self
            .queues
            .word(sq.tail)
            .load(Ordering::Relaxed)
            .wrapping_sub(self.queues.word(sq.head).load(Ordering::Acquire));
        let span_ns = span_ns.map(|ns| ns.max(0));
        let span = span_ns.map(|ns| KernelSpan { seconds: ns / SECOND_NS, ns: ns % SECOND_NS });
        let at = span.as_ref().map_or(0, |span| (&raw const *span).expose_provenance() as u64);
        let arguments = WaitArguments { mask: 0, mask_bytes: 0, reserved: 0, span: at };
        let (flags, arguments, bytes) = match span {
            Some(_) => (ENTER_EXT_ARG, &raw const arguments, size_of::<WaitArguments>()),
            None => (0, std::ptr::null(), 0),
        };
        // SAFETY: io_uring_enter(2) reads the live arguments and the live span that they point to; no signal mask.
        let entered = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.fd.as_raw_fd(),
                queued,
                results,
                ENTER_GETEVENTS | flags,
                arguments,
                bytes,
            )
        };
        if entered < 0 {
            return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        Ok(())
    }

    /// Results that are there.
    pub(crate) fn results(&self) -> u32 {
        let cq = &self.parameters.cq;
        let tail = self.queues.word(cq.tail).load(Ordering::Acquire);
        tail.wrapping_sub(self.queues.word(cq.head).load(Ordering::Relaxed))
    }

    /// The next result, if one is there: a number that is not negative, or a negative errno.
    pub(crate) fn next_result(&self) -> Option<i32> {
        let cq = &self.parameters.cq;
        if self.results() == 0 {
            return None;
        }
        let head = self.queues.word(cq.head);
        let position = head.load(Ordering::Relaxed);
        let slot = position & self.queues.word(cq.ring_mask).load(Ordering::Relaxed);
        // SAFETY: `slot` is below the number of completions, and of one that the kernel has
        // written before it moved the tail.
        let result = unsafe {
            let all = self.queues.at.add(cq.cqes as usize).cast::<Completion>();
            (*all.add(slot as usize)).result
        };
        head.store(position.wrapping_add(1), Ordering::Release);
        Some(result)
    }

    /// The first bytes, so many, as they are now; only where no operation is in flight they stay so.
    pub(crate) fn bytes(&self) -> [u8; BYTES_MAX] {
        // SAFETY: the bytes live for ever; the kernel may write to them meanwhile, so that they are copied without being referred to.
        unsafe { self.bytes.0.get().read_volatile() }
    }
}

fn too_old() -> SysError {
    let old = SysError::code("io_uring_setup", "this kernel's is too old", libc::ENOSYS);
    SysError { needs: NEEDS, ..old }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::{JEQ, LOAD, RET, install};

    /// In a thread of its own, where io_uring_setup(2) fails so.
    fn refused(errno: i32) -> String {
        let made = std::thread::spawn(move || {
            let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
            let number = u32::try_from(libc::SYS_io_uring_setup).expect("a number");
            let program = vec![
                op(LOAD, 0, 0, 0),
                op(JEQ, 0, 1, number),
                op(RET, 0, 0, libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()),
                op(RET, 0, 0, libc::SECCOMP_RET_ALLOW),
            ];
            install(program).expect("a filter");
            Ring::new(Completing::InWait).map(drop)
        });
        made.join().expect("ended").expect_err("refused").to_string()
    }

    #[test]
    fn a_kernel_without_it_and_one_that_refuses_it_are_told_with_what_they_need() {
        for errno in [libc::ENOSYS, libc::EPERM] {
            let text = refused(errno);
            assert!(text.contains("io_uring_setup"), "{text}");
            assert!(
                text.contains("CONFIG_IO_URING") && text.contains("io_uring_disabled"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_wait_that_is_ended_has_its_results() {
        use std::os::fd::AsFd as _;
        let Ok(ring) = Ring::new(Completing::InWait) else {
            return tailbound_testing::skip("io_uring", "none to be had");
        };
        let (from, to) = std::io::pipe().expect("a pipe");
        ring.queue(Operation::PollIn, from.as_fd(), Then::Next);
        ring.queue(Operation::Read(8), from.as_fd(), Then::Nothing);
        assert_eq!(ring.enter(2, Some(1_000_000)), Ok(()), "submitted");
        assert_eq!(ring.results(), 0);
        assert_eq!(ring.enter(2, Some(1_000_000)), Err(libc::ETIME));
        ring.queue(Operation::EndPoll, from.as_fd(), Then::Nothing);
        assert_eq!(ring.enter(3, Some(1_000_000_000)), Ok(()));
        let mut all: Vec<i32> = std::iter::from_fn(|| ring.next_result()).collect();
        all.sort_unstable();
        assert_eq!(all, [-libc::ECANCELED, -libc::ECANCELED, 0]);
        drop(to);
    }
}
