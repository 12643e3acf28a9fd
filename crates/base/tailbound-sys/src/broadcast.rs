// SPDX-License-Identifier: MIT OR Apache-2.0
//! One packet that very many sockets are offered: a soft interrupt of the network of any length.
//!
//! Context: the packet is the load; SETUP in [`Broadcast::new`]. Units: sockets.
//! A UDP packet to loopback's own broadcast address goes to each socket of its port, all in the soft
//! interrupt in which it arrives, which runs at the end of the send(2) that sent it. Each socket has a
//! filter as long as the kernel takes everywhere, which refuses the packet in the end: nothing is
//! queued. Nothing leaves the machine.
//! Not here: how long it should take (the load `culprit`).
//! Source: udp(7), ip(7), socket(7) SO_ATTACH_FILTER, net/ipv4/udp.c (`__udp4_lib_mcast_deliver`).

use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::error::{SysError, check};
use crate::ipc;
use crate::socket_option::set_option;

/// Loopback's broadcast address.
const ALL: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 255);
/// Instructions of a filter: with the least net.core.optmem_max of any kernel (20 KiB) it may be as long.
const FILTER: usize = 2000;

/// The sockets, and the one that sends to them.
#[derive(Debug)]
pub struct Broadcast {
    sender: OwnedFd,
    _sockets: Vec<OwnedFd>,
}

impl Broadcast {
    /// So many sockets of one port.
    ///
    /// # Errors
    /// EMFILE, ENOMEM, EADDRNOTAVAIL without a loopback network.
    pub fn new(sockets: usize) -> Result<Self, SysError> {
        let mut port = 0;
        let mut made = Vec::new();
        for _ in 0..sockets.max(1) {
            let socket = udp()?;
            set_option(
                socket.as_fd(),
                libc::SOL_SOCKET,
                libc::SO_REUSEADDR,
                &1i32,
                "SO_REUSEADDR",
            )?;
            refuse_slowly(&socket)?;
            // SAFETY: bind(2) reads one live address.
            let bound = unsafe {
                let at = address(port);
                libc::bind(socket.as_raw_fd(), (&raw const at).cast(), ADDRESS_BYTES)
            };
            check(bound, "bind", "127.255.255.255")?;
            if port == 0 {
                port = bound_to(&socket)?;
            }
            made.push(socket);
        }
        let sender = udp()?;
        set_option(sender.as_fd(), libc::SOL_SOCKET, libc::SO_BROADCAST, &1i32, "SO_BROADCAST")?;
        // SAFETY: connect(2) reads one live address.
        let connected = unsafe {
            let at = address(port);
            libc::connect(sender.as_raw_fd(), (&raw const at).cast(), ADDRESS_BYTES)
        };
        check(connected, "connect", "127.255.255.255")?;
        Ok(Self { sender, _sockets: made })
    }

    /// Sends one packet, and so has it offered to all.
    ///
    /// # Errors
    /// Those of send(2).
    pub fn send(&self) -> Result<(), SysError> {
        ipc::write(self.sender.as_fd(), &[0; 8])
            .map(drop)
            .map_err(|e| SysError::code("send", "loopback", e.raw_os_error().unwrap_or(0)))
    }
}

const ADDRESS_BYTES: libc::socklen_t = size_of::<libc::sockaddr_in>() as libc::socklen_t;

fn address(port: u16) -> libc::sockaddr_in {
    // SAFETY: all-zero bytes are a valid sockaddr_in.
    let mut at: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    at.sin_family = libc::AF_INET as libc::sa_family_t;
    at.sin_port = port.to_be();
    at.sin_addr.s_addr = u32::from(ALL).to_be();
    at
}

fn udp() -> Result<OwnedFd, SysError> {
    // SAFETY: integer arguments only.
    let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(raw, "socket", "UDP")?;
    // SAFETY: `raw` is a fresh, valid descriptor that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn bound_to(socket: &OwnedFd) -> Result<u16, SysError> {
    let mut at = address(0);
    let mut bytes = ADDRESS_BYTES;
    // SAFETY: getsockname(2) writes at most `bytes` to the live address.
    let told =
        unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut at).cast(), &raw mut bytes) };
    check(told, "getsockname", "UDP")?;
    Ok(u16::from_be(at.sin_port))
}

/// A filter that adds again and again, and refuses the packet. (Each look at the packet would become
/// several instructions in the kernel, and the whole longer than it may be.)
fn refuse_slowly(socket: &OwnedFd) -> Result<(), SysError> {
    let op = |code: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: 0 };
    let mut program = vec![op(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K); FILTER - 1];
    program.push(op(libc::BPF_RET | libc::BPF_K));
    let filter = libc::sock_fprog { len: FILTER as libc::c_ushort, filter: program.as_mut_ptr() };
    set_option(
        socket.as_fd(),
        libc::SOL_SOCKET,
        libc::SO_ATTACH_FILTER,
        &filter,
        "SO_ATTACH_FILTER",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_offered_to_all_and_kept_by_none() {
        let Ok(all) = Broadcast::new(3) else {
            // Without a loopback network there is nobody to send to.
            return;
        };
        assert_eq!(all.send(), Ok(()));
        let fd = all._sockets[0].as_fd();
        assert_eq!(ipc::wait_readable(&[fd], 10), Ok(vec![false]));
    }
}
