// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP echo: a request out, its reply back, by raw socket or by unprivileged ping socket.
//!
//! Context: HOT in [`Echo::round_trip`] (of a load, never of a measured loop), SETUP elsewhere.
//! Units: ms for time limits, bytes for payloads.
//! A raw socket is handed every ICMP packet of the machine: a socket filter keeps those of
//! other flows away, or each flow would pay for all.
//! Source: icmp(7), raw(7), RFC 792, RFC 1071, bpf(4) classic filters.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::{SysError, check};
use crate::ipc;
use crate::socket_option::set_option;

const HEADER_BYTES: usize = 8;
const ECHO_REQUEST: u8 = 8;
/// Longest payload: what fits an IPv4 packet.
pub const PAYLOAD_MAX: usize = 65_507;

/// How the socket was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SOCK_RAW: root or CAP_NET_RAW.
    Raw,
    /// SOCK_DGRAM, IPPROTO_ICMP: groups inside net.ipv4.ping_group_range.
    Ping,
}

/// One flow of echo requests to one address.
#[derive(Debug)]
pub struct Echo {
    socket: OwnedFd,
    kind: Kind,
    sequence: u16,
    packet: Vec<u8>,
    reply: Vec<u8>,
}

impl Echo {
    /// Opens a flow to `to`, told from others on the machine by `id`, that waits at most
    /// `timeout_ms` for each reply. A raw socket is tried first.
    ///
    /// # Errors
    /// EPERM or EACCES when neither kind of socket is allowed.
    pub fn open(to: Ipv4Addr, id: u16, payload: usize, timeout_ms: u32) -> Result<Self, SysError> {
        let (socket, kind) = match new_socket(libc::SOCK_RAW) {
            Ok(socket) => (socket, Kind::Raw),
            Err(e) if e.is_permission() => (
                new_socket(libc::SOCK_DGRAM).map_err(|e| {
                    e.needs("CAP_NET_RAW, or a group within net.ipv4.ping_group_range")
                })?,
                Kind::Ping,
            ),
            Err(e) => return Err(e),
        };
        if kind == Kind::Raw {
            only_replies_to(socket.as_fd(), id)?;
        }
        let timeout = libc::timeval {
            tv_sec: (timeout_ms / 1000) as _,
            tv_usec: (timeout_ms % 1000 * 1000) as _,
        };
        set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, &timeout, "SO_RCVTIMEO")?;
        connect(socket.as_fd(), to)?;
        let payload = payload.min(PAYLOAD_MAX);
        let mut packet = vec![0; HEADER_BYTES + payload];
        for (i, byte) in packet.iter_mut().enumerate().skip(HEADER_BYTES) {
            *byte = i.to_le_bytes()[0];
        }
        packet[0] = ECHO_REQUEST;
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        // A raw socket delivers the IP header (up to 60 bytes) too.
        let reply = vec![0; packet.len() + 60];
        Ok(Self { socket, kind, sequence: 0, packet, reply })
    }

    /// How it was opened.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Sends one request and waits for its reply; `false` when it did not come in time.
    /// Late replies of earlier requests are thrown away.
    ///
    /// # Errors
    /// ENETUNREACH and the like from send(2); EINTR is retried.
    pub fn round_trip(&mut self) -> io::Result<bool> {
        self.sequence = self.sequence.wrapping_add(1);
        self.packet[6..8].copy_from_slice(&self.sequence.to_be_bytes());
        self.packet[2..4].copy_from_slice(&[0, 0]);
        let sum = checksum(&self.packet);
        self.packet[2..4].copy_from_slice(&sum.to_be_bytes());
        match ipc::write(self.socket.as_fd(), &self.packet) {
            Ok(_) => {}
            // The queue is full: the packet counts as lost, as for anyone else.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN)) => {
                return Ok(false);
            }
            Err(e) => return Err(e),
        }
        loop {
            let n = match ipc::read(self.socket.as_fd(), &mut self.reply) {
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            };
            let got = self.reply.get(..n).unwrap_or_default();
            let skip = match self.kind {
                Kind::Raw => got.first().map_or(0, |b| usize::from(b & 0x0f) * 4),
                Kind::Ping => 0,
            };
            if got.get(skip + 6..skip + 8) == Some(&self.sequence.to_be_bytes()) {
                return Ok(true);
            }
        }
    }
}

fn new_socket(kind: libc::c_int) -> Result<OwnedFd, SysError> {
    // SAFETY: socket(2) on integers.
    let raw = unsafe { libc::socket(libc::AF_INET, kind | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP) };
    check(raw, "socket", "ICMP")?;
    // SAFETY: `raw` is a fresh descriptor, ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn connect(socket: BorrowedFd<'_>, to: Ipv4Addr) -> Result<(), SysError> {
    // SAFETY: all-zero bytes are a valid sockaddr_in.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_addr.s_addr = u32::from(to).to_be();
    // SAFETY: connect(2) reads the live address of the given length.
    let done = unsafe {
        libc::connect(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_in>() as libc::socklen_t,
        )
    };
    check(done, "connect", &to.to_string()).map(drop)
}

/// A classic filter: echo replies with our id, nothing else. The packet begins with its
/// IP header, whose length the first instruction loads into X.
fn only_replies_to(socket: BorrowedFd<'_>, id: u16) -> Result<(), SysError> {
    let op = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        op(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, 0),
        op(libc::BPF_LD | libc::BPF_B | libc::BPF_IND, 0, 0, 0),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 3, 0),
        op(libc::BPF_LD | libc::BPF_H | libc::BPF_IND, 0, 0, 4),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, id.into()),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let filter =
        libc::sock_fprog { len: program.len() as libc::c_ushort, filter: program.as_mut_ptr() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter, "SO_ATTACH_FILTER")
}

/// RFC 1071: the one's complement of the one's complement sum of 16-bit words.
fn checksum(packet: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in packet.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([pair[0], low]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_of_rfc_1071() {
        let words = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&words), !0xddf2);
    }

    #[test]
    fn loopback_answers() {
        match Echo::open(Ipv4Addr::LOCALHOST, 0x7461, 56, 1000) {
            Ok(mut echo) => {
                for _ in 0..3 {
                    assert!(echo.round_trip().is_ok_and(|answered| answered));
                }
            }
            Err(e) if e.is_permission() => tailbound_testing::skip("net", e),
            Err(e) => panic!("{e}"),
        }
    }
}
