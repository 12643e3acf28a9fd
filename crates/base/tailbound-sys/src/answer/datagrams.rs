// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams with what the kernel says of them: stamps, and how many it dropped.
//!
//! Context: HOT (`receive`), SETUP (`stamp`). Units: ns, bytes.
//! Source: recvmsg(2), socket(7), Documentation/networking/timestamping.rst.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::error::SysError;
use crate::socket_option::set_option;

/// `SO_TIMESTAMPING_NEW`, which libc does not name; its message has 64-bit times on every machine.
const SO_TIMESTAMPING_NEW: libc::c_int = 65;
pub(super) const TX_HARDWARE: u32 = 1 << 0;
pub(super) const TX_SOFTWARE: u32 = 1 << 1;
pub(super) const RX_HARDWARE: u32 = 1 << 2;
pub(super) const RX_SOFTWARE: u32 = 1 << 3;
pub(super) const SOFTWARE: u32 = 1 << 4;
pub(super) const RAW_HARDWARE: u32 = 1 << 6;
/// Both stamps of a pulse that leaves, where the card makes one too.
pub(super) const BOTH_LEAVING: u32 = 1 << 14;
const SECOND_NS: i64 = 1_000_000_000;

/// Room for the kernel's messages about one datagram: stamps (64 bytes), drops (24 bytes).
#[repr(C, align(8))]
struct Control([u8; 256]);

/// `struct scm_timestamping64`: software, nothing, raw hardware; seconds and ns each.
#[repr(C)]
#[derive(Clone, Copy)]
struct Stamps([[i64; 2]; 3]);

/// What the kernel said about one datagram.
#[derive(Clone, Copy, Default)]
pub(super) struct Told {
    /// On CLOCK_REALTIME.
    pub(super) kernel_ns: Option<i64>,
    /// On the card's clock.
    pub(super) card_ns: Option<i64>,
    /// Datagrams that this socket dropped until then.
    pub(super) drops: Option<u32>,
}

/// Asks for stamps, as `flags` say, and for the number of drops.
///
/// # Errors
/// ENOPROTOOPT before Linux 5.1.
pub(super) fn stamp(socket: BorrowedFd<'_>, flags: u32) -> Result<(), SysError> {
    set_option(socket, libc::SOL_SOCKET, SO_TIMESTAMPING_NEW, &flags, "SO_TIMESTAMPING")?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &1i32, "SO_RXQ_OVFL")
}

/// Takes one datagram: its length, or -1 with errno; the length of its sender's address.
#[inline]
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    sender: Option<&mut libc::sockaddr_storage>,
    flags: libc::c_int,
) -> (isize, libc::socklen_t, Told) {
    let mut control = Control([0; 256]);
    let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    if let Some(sender) = sender {
        message.msg_name = std::ptr::from_mut(sender).cast();
        message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    }
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: recvmsg(2) writes to the live buffers above, within their lengths.
    let n = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    if n < 0 {
        return (n, 0, Told::default());
    }
    (n, message.msg_namelen, told(&message))
}

/// The kernel's messages that came with a datagram.
fn told(message: &libc::msghdr) -> Told {
    let mut told = Told::default();
    // SAFETY: the header and its control bytes are live and were filled by recvmsg(2).
    let mut at = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !at.is_null() {
        // SAFETY: not null: it is the header of a message within the control bytes.
        let head = unsafe { &*at };
        // SAFETY: the data of that message follow its header.
        let data = unsafe { libc::CMSG_DATA(at) };
        let room = (head.cmsg_len as usize).saturating_sub(data.addr() - at.addr());
        match (head.cmsg_level, head.cmsg_type) {
            (libc::SOL_SOCKET, SO_TIMESTAMPING_NEW) if room >= size_of::<Stamps>() => {
                // SAFETY: the kernel wrote as many bytes; they may lie unaligned.
                let Stamps([software, _, hardware]) =
                    unsafe { data.cast::<Stamps>().read_unaligned() };
                let ns = |[seconds, ns]: [i64; 2]| seconds.wrapping_mul(SECOND_NS).wrapping_add(ns);
                told.kernel_ns = (software != [0, 0]).then(|| ns(software));
                told.card_ns = (hardware != [0, 0]).then(|| ns(hardware));
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) if room >= size_of::<u32>() => {
                // SAFETY: as above.
                told.drops = Some(unsafe { data.cast::<u32>().read_unaligned() });
            }
            _ => {}
        }
        // SAFETY: as for the first.
        at = unsafe { libc::CMSG_NXTHDR(message, at) };
    }
    told
}
