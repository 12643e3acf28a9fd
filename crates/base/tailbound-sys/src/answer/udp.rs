// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams that are answered to their sender, with the kernel's stamp of their arrival.
//!
//! Context: HOT (the `PulseLine` methods: recvmsg, sendto, ppoll, io_uring_enter), SETUP (`open`). Units: ns, bytes.
//! The stamp is taken in software, when the driver hands the packet to the stack, on CLOCK_REALTIME. Datagrams of
//! another length, magic or kind, and those of other senders than the one named, get no answer.
//! Source: recvmsg(2), udp(7), socket(7), Documentation/networking/timestamping.rst.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _};

use tailbound_rt::answer::clocks::ClockPair;
use tailbound_rt::answer::datagram::{self, BYTES};
use tailbound_rt::answer::kept::PulseMark;
use tailbound_rt::answer::sequence::Sequence;
use tailbound_rt::answer::{AnswerRefusal, Arrival, Pulse, PulseLine, Stamp};

use super::datagrams::{self, RAW_HARDWARE, RX_HARDWARE, RX_SOFTWARE, SOFTWARE, Told};
use super::ring_wait::{Behind, RingWait, Waited};
use super::{By, LOOK_MS, Ready, last_errno, ready, stamped};
use crate::clock::{CLOCK_REALTIME, now_ns};
use crate::error::SysError;
use crate::socket_option::set_option;

/// A socket whose pulses are answered.
pub struct Udp {
    socket: UdpSocket,
    by: By,
    ring: Option<RingWait>,
    clock: libc::clockid_t,
    only: Option<IpAddr>,
    clocks: ClockPair,
    sender: libc::sockaddr_storage,
    sender_bytes: libc::socklen_t,
    pulse: datagram::PulsePacket,
    stamp_ns: i64,
    ran_real_ns: i64,
    drops: u32,
    hardware_stamps: u64,
}

impl Udp {
    /// A socket at `at`, for a run whose clock is `clock`; it answers `only` this sender, or any.
    ///
    /// # Errors
    /// EADDRINUSE, EADDRNOTAVAIL, EACCES below port 1024; ENOPROTOOPT before Linux 5.1.
    pub fn open(
        at: SocketAddr,
        only: Option<IpAddr>,
        by: By,
        clock: libc::clockid_t,
    ) -> Result<Self, SysError> {
        let refused = |call, e: &std::io::Error| {
            SysError::code(call, at.to_string(), e.raw_os_error().unwrap_or(0))
        };
        let socket = UdpSocket::bind(at).map_err(|e| {
            refused("bind", &e).needs("CAP_NET_BIND_SERVICE, or a port from 1024 on")
        })?;
        let flags = RX_HARDWARE | RX_SOFTWARE | SOFTWARE | RAW_HARDWARE;
        let fd = socket.as_fd();
        datagrams::stamp(fd, flags)?;
        let timeout = libc::timeval { tv_sec: 0, tv_usec: (LOOK_MS * 1000) as _ };
        set_option(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &timeout, "SO_RCVTIMEO")?;
        if by == By::IoUring {
            // Refused here, before anything runs.
            RingWait::check()?;
        }
        Ok(Self {
            socket,
            by,
            ring: None,
            clock,
            only,
            clocks: ClockPair::default(),
            // SAFETY: all-zero bytes are a valid address.
            sender: unsafe { std::mem::zeroed() },
            sender_bytes: 0,
            pulse: datagram::PulsePacket { sender: 0, number: 0, token: 0 },
            stamp_ns: 0,
            ran_real_ns: 0,
            drops: 0,
            hardware_stamps: 0,
        })
    }

    /// What the calling thread, which answers, needs of its own.
    ///
    /// # Errors
    /// ENOSYS, EPERM: there is no io_uring.
    pub fn attach(&mut self) -> Result<(), SysError> {
        if self.by == By::IoUring {
            self.ring = Some(RingWait::new()?);
        }
        Ok(())
    }

    /// Where it is, with the port that the kernel chose.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn at(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Pulses that the card stamped too, by a clock of its own.
    #[must_use]
    pub fn hardware_stamps(&self) -> u64 {
        self.hardware_stamps
    }

    /// Takes one datagram: its length, or -1 with errno.
    #[inline]
    fn receive(&mut self, into: &mut [u8; BYTES + 1], flags: libc::c_int) -> (isize, Told) {
        let (n, from_bytes, told) =
            datagrams::receive(self.socket.as_fd(), into, Some(&mut self.sender), flags);
        if n >= 0 {
            self.sender_bytes = from_bytes;
        }
        (n, told)
    }

    fn is_wanted(&self) -> bool {
        let Some(only) = self.only else { return true };
        let at = (&raw const self.sender).cast::<u8>();
        let from: IpAddr = match i32::from(self.sender.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says that it is such an address; the storage is large and aligned enough.
                let from = unsafe { &*at.cast::<libc::sockaddr_in>() };
                IpAddr::V4(u32::from_be(from.sin_addr.s_addr).into())
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let from = unsafe { &*at.cast::<libc::sockaddr_in6>() };
                IpAddr::V6(from.sin6_addr.s6_addr.into())
            }
            _ => return false,
        };
        from.to_canonical() == only.to_canonical()
    }

    fn took(&mut self, bytes: &[u8], told: Told, ran_ns: i64) -> Arrival {
        let dropped = told.drops.map_or(0, |drops| drops.wrapping_sub(self.drops));
        let pulse = datagram::PulsePacket::read(bytes).filter(|_| self.is_wanted());
        let Some(pulse) = pulse else { return Arrival::Foreign };
        self.drops = told.drops.unwrap_or(self.drops);
        self.hardware_stamps += u64::from(told.card_ns.is_some());
        let clocks = [self.clock, CLOCK_REALTIME];
        let (stamp, real_ns) = stamped(&mut self.clocks, clocks, ran_ns, told.kernel_ns);
        self.pulse = pulse;
        self.ran_real_ns = real_ns;
        self.stamp_ns = match (stamp, told.kernel_ns) {
            (Stamp::Kernel { .. }, Some(stamp_ns)) => stamp_ns,
            _ => 0,
        };
        let sequence = Sequence { sender: pulse.sender, number: pulse.number, bits: 64 };
        let mark = PulseMark { sender: pulse.sender, number: pulse.number, token: pulse.token };
        Arrival::Pulse(Pulse {
            stamp,
            ran_ns,
            sequence: Some(sequence),
            mark: Some(mark),
            dropped: u64::from(dropped),
        })
    }
}

impl Drop for Udp {
    fn drop(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.end(self.socket.as_fd());
        }
    }
}

impl PulseLine for Udp {
    fn wait(&mut self, until_ns: i64) -> Arrival {
        let mut bytes = [0; BYTES + 1];
        if self.by == By::Poll {
            let left_ns = until_ns.wrapping_sub(self.now_ns());
            match ready(self.socket.as_fd(), left_ns) {
                Ready::Yes | Ready::Gone => {}
                Ready::No => return Arrival::Nothing,
                Ready::Interrupted => return Arrival::Interrupted,
                Ready::Failed(errno) => return Arrival::Failed(errno),
            }
        }
        if self.by == By::IoUring {
            let left_ns = until_ns.wrapping_sub(self.now_ns()).max(0);
            // `attach` made it.
            let Some(ring) = &mut self.ring else { return Arrival::Failed(libc::EBADF) };
            // recvmsg(2) has the stamps.
            match ring.wait(self.socket.as_fd(), Behind::Caller, left_ns) {
                Waited::Ready(_) => {}
                Waited::Nothing => return Arrival::Nothing,
                Waited::Interrupted => return Arrival::Interrupted,
                Waited::Failed(errno) => return Arrival::Failed(errno),
            }
        }
        let flags = if self.by == By::Read { 0 } else { libc::MSG_DONTWAIT };
        let (n, told) = self.receive(&mut bytes, flags);
        let ran_ns = self.now_ns();
        let Ok(n) = usize::try_from(n) else {
            return match last_errno() {
                // The first is also the end of SO_RCVTIMEO.
                libc::EAGAIN => Arrival::Nothing,
                libc::EINTR => Arrival::Interrupted,
                errno => Arrival::Failed(errno),
            };
        };
        self.took(bytes.get(..n).unwrap_or_default(), told, ran_ns)
    }

    fn answer(&mut self) -> Result<i64, AnswerRefusal> {
        let answer = datagram::AnswerPacket {
            pulse: self.pulse,
            arrived_ns: self.stamp_ns,
            ran_ns: self.ran_real_ns,
        };
        let bytes = answer.bytes();
        // SAFETY: sendto(2) reads the live bytes and the live address, whose length recvmsg(2) gave.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                (&raw const self.sender).cast(),
                self.sender_bytes,
            )
        };
        let given_ns = self.now_ns();
        if sent < 0 { Err(AnswerRefusal::Answer(last_errno())) } else { Ok(given_ns) }
    }

    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::testing::{arrival, ways};
    use crate::clock::CLOCK_MONOTONIC;
    use tailbound_rt::answer::datagram::AnswerPacket;

    fn open(by: By, only: Option<IpAddr>) -> (Udp, UdpSocket) {
        let mut line =
            Udp::open(([127, 0, 0, 1], 0).into(), only, by, CLOCK_MONOTONIC).expect("a port");
        line.attach().expect("attached");
        let sender = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
        sender.connect(line.at().expect("its port")).expect("loopback");
        sender.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a timeout");
        (line, sender)
    }

    #[test]
    fn a_pulse_is_stamped_and_answered_by_each_way_of_waiting() {
        for by in ways() {
            let (mut line, sender) = open(by, None);
            let pulse = datagram::PulsePacket { sender: 3, number: 9, token: 77 };
            let before_ns = line.now_ns();
            // The kernel may begin to stamp a moment after it was asked to: then the first have none.
            let stamp = loop {
                sender.send(&pulse.bytes()).expect("sent");
                let Arrival::Pulse(taken) = arrival(&mut line) else { panic!("{by:?}: no pulse") };
                assert_eq!(taken.sequence, Some(Sequence { sender: 3, number: 9, bits: 64 }));
                let given_ns = line.answer().expect("answered");
                assert!(given_ns >= taken.ran_ns, "{by:?}");
                let mut bytes = [0; 100];
                let n = sender.recv(&mut bytes).expect("an answer");
                assert_eq!(n, BYTES, "as long as the pulse");
                let answer =
                    AnswerPacket::read(bytes.get(..n).unwrap_or_default()).expect("an answer");
                assert_eq!(answer.pulse, pulse);
                assert!(answer.ran_ns >= answer.arrived_ns);
                if let Stamp::Kernel { arrived_ns, error_ns } = taken.stamp {
                    assert!(answer.arrived_ns > 0);
                    break (arrived_ns, error_ns, taken.ran_ns);
                }
            };
            let (arrived_ns, error_ns, ran_ns) = stamp;
            assert!(arrived_ns.saturating_add(error_ns) >= before_ns, "{by:?}");
            assert!(arrived_ns <= ran_ns.saturating_add(error_ns), "{by:?}");
        }
    }

    #[test]
    fn what_is_no_pulse_or_of_another_sender_gets_no_answer() {
        let pulse = datagram::PulsePacket { sender: 3, number: 9, token: 77 };
        let (mut line, sender) = open(By::Read, None);
        let answer = AnswerPacket { pulse, arrived_ns: 1, ran_ns: 2 };
        let long = [&pulse.bytes()[..], &[0; 2000]].concat();
        for wrong in [&b""[..], b"x", &pulse.bytes()[..47], &long, &answer.bytes()] {
            sender.send(wrong).expect("sent");
            assert_eq!(arrival(&mut line), Arrival::Foreign, "{} bytes", wrong.len());
        }
        let (mut line, sender) = open(By::Poll, Some(IpAddr::from([192, 0, 2, 1])));
        sender.send(&pulse.bytes()).expect("sent");
        assert_eq!(arrival(&mut line), Arrival::Foreign);
        let (mut line, sender) = open(By::Poll, Some(IpAddr::from([127, 0, 0, 1])));
        sender.send(&pulse.bytes()).expect("sent");
        assert!(matches!(arrival(&mut line), Arrival::Pulse(_)));
    }

    #[test]
    fn what_a_full_queue_dropped_is_counted() {
        let (mut line, sender) = open(By::Read, None);
        set_option(line.socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &1i32, "SO_RCVBUF")
            .expect("the smallest queue");
        let send = |number| {
            let pulse = datagram::PulsePacket { sender: 1, number, token: 0 };
            sender.send(&pulse.bytes()).expect("sent");
        };
        (0..1000).for_each(send);
        let mut taken = 0;
        while let Arrival::Pulse(pulse) = line.wait(0) {
            assert_eq!(pulse.dropped, 0, "before them");
            taken += 1;
        }
        send(1000);
        let Arrival::Pulse(after) = arrival(&mut line) else { panic!("no pulse") };
        assert_eq!(taken + after.dropped, 1000);
    }

    #[test]
    fn a_port_in_use_is_refused() {
        let (line, _) = open(By::Poll, None);
        let at = line.at().expect("its port");
        let second = Udp::open(at, None, By::Poll, CLOCK_MONOTONIC);
        let error = second.map(drop).expect_err("in use").to_string();
        assert!(error.contains(&at.to_string()) && error.contains("in use"), "{error}");
    }
}
