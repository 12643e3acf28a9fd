// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two system calls of another program that wait until they are allowed to go on: waiting for
//! descriptors, and waiting on a condition variable. So its threads can be made to take turns.
//!
//! The calls themselves are not looked into and not altered.
//! Not here: starting the program (`spawn`), when a call may go on.
//! Source: seccomp(2), seccomp_unotify(2), futex(2), unix(7).

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::duplicate::duplicate_above;
use crate::error::{SysError, check};
use crate::hostinfo;
use crate::process::Pid;
use crate::seccomp::{JEQ, LOAD, RET};

const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
/// The low half of the second argument.
const OPERATION_AT: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };
/// `FUTEX_WAIT_BITSET`: what the C library's condition variables wait with, its mutexes do not.
const FUTEX_WAIT_BITSET: u32 = 9;
/// All bits of a futex operation but `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
const FUTEX_COMMAND: u32 = 0x7f;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "arm")]
const ARCHITECTURE: u32 = 0x4000_0028;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: u32 = 0xc000_00f3;

#[cfg(any(target_arch = "x86_64", target_arch = "arm"))]
const POLLS: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_ppoll, PPOLL_TIME64];
#[cfg(not(any(target_arch = "x86_64", target_arch = "arm")))]
const POLLS: &[libc::c_long] = &[libc::SYS_ppoll];
/// The one of them whose timeout is a number.
#[cfg(any(target_arch = "x86_64", target_arch = "arm"))]
const PLAIN_POLL: Option<libc::c_long> = Some(libc::SYS_poll);
#[cfg(not(any(target_arch = "x86_64", target_arch = "arm")))]
const PLAIN_POLL: Option<libc::c_long> = None;
/// 64-bit time on 32-bit machines; the numbers are no calls of others.
#[cfg(any(target_arch = "x86_64", target_arch = "arm"))]
const PPOLL_TIME64: libc::c_long = 414;
const FUTEX_TIME64: libc::c_long = 422;

/// What a waiting thread asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// ppoll(2) or poll(2).
    Poll,
    /// futex(2), to wait on a condition variable.
    Condition,
}

/// A call that waits.
#[derive(Clone, Copy, Debug)]
pub struct PendingCall {
    id: u64,
    /// The thread that made it.
    pub thread: Pid,
    /// What it is.
    pub call: Call,
    /// A poll that ends by itself after some time.
    pub limited: bool,
}

/// The calls of one program and of all its threads. Once this is dropped, they fail with ENOSYS.
#[derive(Debug)]
pub struct HeldCalls {
    listener: OwnedFd,
}

impl HeldCalls {
    /// The next call that waits; `None`: none within this time.
    ///
    /// # Errors
    /// ENOENT when the program has ended.
    pub fn next(&self, timeout: Duration) -> Result<Option<PendingCall>, SysError> {
        let ended = || SysError::code("seccomp", "listener", libc::ENOENT);
        let mut ready =
            libc::pollfd { fd: self.listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one live pollfd.
        if unsafe { libc::poll(&raw mut ready, 1, ms) } <= 0 {
            return Ok(None);
        }
        if ready.revents & libc::POLLIN == 0 {
            return Err(ended());
        }
        // SAFETY: all-zero bytes are a valid seccomp_notif, and what the kernel wants to get.
        let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one seccomp_notif.
        let done = unsafe {
            libc::ioctl(self.listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notice)
        };
        if done < 0 {
            // Its thread ended or a signal took it out of the call.
            return Ok(None);
        }
        let number = libc::c_long::from(notice.data.nr);
        let call = if POLLS.contains(&number) { Call::Poll } else { Call::Condition };
        // ppoll(2) takes a pointer, which may be null; poll(2) milliseconds, which may be negative.
        let [_, _, timeout, ..] = notice.data.args;
        let limited = call == Call::Poll
            && if PLAIN_POLL == Some(number) { timeout as i32 >= 0 } else { timeout != 0 };
        Ok(Some(PendingCall {
            id: notice.id,
            thread: Pid(notice.pid.cast_signed()),
            call,
            limited,
        }))
    }

    /// Lets it go on. A call that is not there any more is none.
    pub fn go_on(&self, held: PendingCall) {
        let answer = libc::seccomp_notif_resp { id: held.id, val: 0, error: 0, flags: 1 };
        // SAFETY: the kernel reads one live seccomp_notif_resp.
        let _gone = unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const answer,
            )
        };
    }
}

/// What a child needs to have its calls held, made before it is.
#[derive(Debug)]
pub(crate) struct Preparation {
    filter: Vec<libc::sock_filter>,
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Preparation {
    /// # Errors
    /// ENOSYS before Linux 5.5, which cannot let a held call go on; no descriptors.
    pub(crate) fn new(lowest_fd: i32) -> Result<Self, SysError> {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if hostinfo::release(&release).is_none_or(|release| release < (5, 5)) {
            return Err(SysError::code(
                "seccomp",
                "SECCOMP_USER_NOTIF_FLAG_CONTINUE",
                libc::ENOSYS,
            ));
        }
        let (ours, theirs) = UnixStream::pair()
            .map_err(|e| SysError::code("socketpair", "", e.raw_os_error().unwrap_or(0)))?;
        let theirs = duplicate_above(theirs.as_raw_fd(), lowest_fd)?;
        Ok(Self { filter: filter(), ours: ours.into(), theirs })
    }

    /// The number that must stay open in the child until [`Self::in_child`].
    pub(crate) fn child_fd(&self) -> i32 {
        self.theirs.as_raw_fd()
    }

    /// In the child, where it can gain no right any more: sends the listener by `fd`. No allocation, no lock.
    pub(crate) fn in_child(&self, fd: i32) -> Result<(), i32> {
        let errno = || std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        let program = libc::sock_fprog {
            len: u16::try_from(self.filter.len()).unwrap_or(0),
            filter: self.filter.as_ptr().cast_mut(),
        };
        // SAFETY: a live program; the listener is a new descriptor of the child.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
                &raw const program,
            )
        };
        let listener = i32::try_from(listener).unwrap_or(-1);
        if listener < 0 {
            return Err(errno());
        }
        send(fd, listener).map_err(|()| errno())
    }

    /// In the parent, when the child has executed its program.
    pub(crate) fn finish(self) -> Result<HeldCalls, SysError> {
        drop(self.theirs);
        receive(&self.ours).map(|listener| HeldCalls { listener })
    }
}

fn filter() -> Vec<libc::sock_filter> {
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let number = |n: libc::c_long| u32::try_from(n).unwrap_or(u32::MAX);
    let mut program = vec![
        op(LOAD, 0, 0, ARCHITECTURE_AT),
        op(JEQ, 1, 0, ARCHITECTURE),
        op(RET, 0, 0, libc::SECCOMP_RET_ALLOW),
        op(LOAD, 0, 0, NUMBER_AT),
    ];
    for n in POLLS {
        program.push(op(JEQ, 0, 1, number(*n)));
        program.push(op(RET, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    }
    program.extend([
        op(JEQ, 2, 0, number(libc::SYS_futex)),
        op(JEQ, 1, 0, number(FUTEX_TIME64)),
        op(RET, 0, 0, libc::SECCOMP_RET_ALLOW),
        op(LOAD, 0, 0, OPERATION_AT),
        op(AND, 0, 0, FUTEX_COMMAND),
        op(JEQ, 0, 1, FUTEX_WAIT_BITSET),
        op(RET, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        op(RET, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]);
    program
}

/// Room for one descriptor in a control message, aligned as one.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// A message of one byte, for `use_it`, which gets its header.
fn with_message<T>(control: &mut Control, use_it: impl FnOnce(&mut libc::msghdr) -> T) -> T {
    let mut byte = [0_u8];
    let mut part = IoSliceMut::new(&mut byte);
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSliceMut is laid out as iovec.
    message.msg_iov = std::ptr::from_mut(&mut part).cast();
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: arithmetic on a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<i32>() as u32) } as _;
    use_it(&mut message)
}

fn send(socket: i32, fd: i32) -> Result<(), ()> {
    let mut control = Control([0; 64]);
    with_message(&mut control, |message| {
        // SAFETY: the control buffer has room for one header and one descriptor.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as _;
            std::ptr::write_unaligned(libc::CMSG_DATA(header).cast(), fd);
            if libc::sendmsg(socket, message, libc::MSG_NOSIGNAL) == 1 { Ok(()) } else { Err(()) }
        }
    })
}

fn receive(socket: &OwnedFd) -> Result<OwnedFd, SysError> {
    let mut control = Control([0; 64]);
    with_message(&mut control, |message| {
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        // SAFETY: the buffers of `message` are live.
        let got = unsafe { libc::recvmsg(socket.as_raw_fd(), message, flags) };
        check(got, "recvmsg", "listener")?;
        // SAFETY: walks what the kernel wrote; a descriptor that came is ours alone.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return Err(SysError::code("recvmsg", "listener", libc::ENOMSG));
            }
            let fd: i32 = std::ptr::read_unaligned(libc::CMSG_DATA(header).cast());
            Ok(OwnedFd::from_raw_fd(fd))
        }
    })
}
