// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulses as datagrams, with stamps of their leaving and of their answers' arrival.
//!
//! Context: HOT (the `SenderLine` methods: sendto, recvmsg, ppoll), SETUP (`open`). Units: ns, bytes.
//! The kernel stamps a datagram when it hands it to the driver, and an answer when the driver hands it over. Stamps of
//! leaving come back with the datagram itself, so that they belong to a pulse by its number and not by counting. No
//! setting of the card is changed: where its stamps are switched on they come too.
//! Source: udp(7), socket(7), Documentation/networking/timestamping.rst.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};

use tailbound_rt::answer::AnswerRefusal;
use tailbound_rt::answer::datagram::{AnswerPacket, BYTES, PulsePacket};
use tailbound_rt::answer::sender::{ClockReading, EdgeStamps, SenderEvent, SenderLine};

use super::datagrams::{
    self, BOTH_LEAVING, RAW_HARDWARE, RX_HARDWARE, RX_SOFTWARE, SOFTWARE, TX_HARDWARE, TX_SOFTWARE,
    Told,
};
use super::{LOOK_MS, MILLISECOND_NS, last_errno};
use crate::clock::{CLOCK_REALTIME, now_ns, span};
use crate::error::SysError;

/// A datagram with the headers of wire, address and port before it.
const WITH_HEADERS: usize = 256;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Answers,
    /// Pulses come back to the socket that sent them, for the sender's own delays.
    Itself,
}

/// What is there to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Stamps,
    Arrivals,
    Nothing,
}

/// A socket from which pulses leave.
#[derive(Debug)]
pub struct SenderUdp {
    socket: UdpSocket,
    to: SocketAddr,
    peer: Peer,
    clock: libc::clockid_t,
    drops: u32,
}

impl SenderUdp {
    /// Pulses to whoever answers at `to`; `clock` is the run's.
    ///
    /// # Errors
    /// ENETUNREACH, EACCES; ENOPROTOOPT before Linux 5.1.
    pub fn open(to: SocketAddr, clock: libc::clockid_t) -> Result<Self, SysError> {
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self::bound((any, 0).into(), Some(to), clock)
    }

    /// Pulses that come back to this socket at once, over the loopback device.
    ///
    /// # Errors
    /// As [`SenderUdp::open`].
    pub fn open_to_itself(clock: libc::clockid_t) -> Result<Self, SysError> {
        Self::bound((Ipv4Addr::LOCALHOST, 0).into(), None, clock)
    }

    fn bound(
        at: SocketAddr,
        to: Option<SocketAddr>,
        clock: libc::clockid_t,
    ) -> Result<Self, SysError> {
        let refused = |call, place: SocketAddr, e: &std::io::Error| {
            SysError::code(call, place.to_string(), e.raw_os_error().unwrap_or(0))
        };
        let socket = UdpSocket::bind(at).map_err(|e| refused("bind", at, &e))?;
        let own = socket.local_addr().map_err(|e| refused("getsockname", at, &e))?;
        let (to, peer) = match to {
            Some(to) => (to, Peer::Answers),
            None => (own, Peer::Itself),
        };
        // Arrivals of others are then dropped by the kernel.
        socket.connect(to).map_err(|e| refused("connect", to, &e))?;
        let hardware = TX_HARDWARE | RX_HARDWARE | RAW_HARDWARE;
        let flags = TX_SOFTWARE | RX_SOFTWARE | SOFTWARE | hardware;
        // BOTH_LEAVING came with Linux 4.13, before the stamps that are asked for.
        datagrams::stamp(socket.as_fd(), flags | BOTH_LEAVING)?;
        Ok(Self { socket, to, peer, clock, drops: 0 })
    }

    /// To where pulses go.
    #[must_use]
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Waits until something can be taken.
    fn ready(&self, left_ns: i64) -> Result<Queue, SenderEvent> {
        let fd = self.socket.as_raw_fd();
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let span = span(left_ns.min(LOOK_MS * MILLISECOND_NS));
        // SAFETY: ppoll(2) reads one live timespec, reads and writes one live pollfd; the mask stays.
        let n = unsafe { libc::ppoll(&raw mut poll, 1, &raw const span, std::ptr::null()) };
        match n {
            1 if poll.revents & libc::POLLNVAL != 0 => Err(SenderEvent::Failed(libc::EBADF)),
            1 if poll.revents & libc::POLLERR != 0 => Ok(Queue::Stamps),
            1 => Ok(Queue::Arrivals),
            0 => Ok(Queue::Nothing),
            _ => match last_errno() {
                libc::EINTR => Err(SenderEvent::Interrupted),
                errno => Err(SenderEvent::Failed(errno)),
            },
        }
    }

    /// A stamp of a pulse that left; `None`: there is none, and the socket's error is another.
    fn take_stamp(&self) -> Option<SenderEvent> {
        let mut bytes = [0; WITH_HEADERS];
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        let (n, _, told) = datagrams::receive(self.socket.as_fd(), &mut bytes, None, flags);
        let n = usize::try_from(n).ok()?;
        let datagram = n.checked_sub(BYTES).and_then(|at| bytes.get(at..n)).unwrap_or_default();
        Some(
            PulsePacket::read(datagram)
                .map_or(SenderEvent::Foreign, |pulse| SenderEvent::Left(pulse, stamps(told))),
        )
    }

    fn take_arrival(&mut self) -> SenderEvent {
        let mut bytes = [0; BYTES + 1];
        let (n, _, told) =
            datagrams::receive(self.socket.as_fd(), &mut bytes, None, libc::MSG_DONTWAIT);
        let taken = self.read();
        let Ok(n) = usize::try_from(n) else {
            return match last_errno() {
                libc::EAGAIN => SenderEvent::Nothing,
                // No end: somebody may begin to listen.
                errno @ (libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) => {
                    SenderEvent::Unreachable(errno)
                }
                libc::EINTR => SenderEvent::Interrupted,
                errno => SenderEvent::Failed(errno),
            };
        };
        let dropped = told.drops.map_or(0, |drops| drops.wrapping_sub(self.drops));
        self.drops = told.drops.unwrap_or(self.drops);
        let bytes = bytes.get(..n).unwrap_or_default();
        let pulse = match self.peer {
            Peer::Answers => AnswerPacket::read(bytes).map(|answer| answer.pulse),
            Peer::Itself => PulsePacket::read(bytes),
        };
        match pulse {
            Some(pulse) => SenderEvent::Answer {
                pulse,
                stamps: stamps(told),
                taken,
                dropped: u64::from(dropped),
            },
            None => SenderEvent::Foreign,
        }
    }
}

fn stamps(told: Told) -> EdgeStamps {
    EdgeStamps { kernel_ns: told.kernel_ns, card_ns: told.card_ns }
}

impl SenderLine for SenderUdp {
    fn wait(&mut self, until_ns: i64) -> SenderEvent {
        let left_ns = until_ns.wrapping_sub(now_ns(self.clock)).max(0);
        match self.ready(left_ns) {
            Ok(Queue::Nothing) => SenderEvent::Nothing,
            Ok(Queue::Arrivals) => self.take_arrival(),
            Ok(Queue::Stamps) => self.take_stamp().unwrap_or_else(|| self.take_arrival()),
            Err(event) => event,
        }
    }

    fn send(&mut self, pulse: &PulsePacket) -> Result<(), AnswerRefusal> {
        let bytes = pulse.bytes();
        // SAFETY: send(2) reads the live bytes.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        if sent < 0 { Err(AnswerRefusal::Answer(last_errno())) } else { Ok(()) }
    }

    #[inline]
    fn read(&mut self) -> ClockReading {
        let run_ns = now_ns(self.clock);
        let real_ns = now_ns(CLOCK_REALTIME);
        ClockReading { run_ns, real_ns, after_ns: now_ns(self.clock) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::By;
    use crate::answer::testing::arrival;
    use crate::answer::udp::Udp;
    use crate::clock::CLOCK_MONOTONIC;
    use tailbound_rt::answer::PulseLine as _;

    /// Stamps of pulse `number`, and its answer, whichever comes first.
    fn both(line: &mut SenderUdp, number: u64) -> [EdgeStamps; 2] {
        let mut seen = [None; 2];
        loop {
            let until_ns = line.read().run_ns.saturating_add(20_000_000_000);
            match line.wait(until_ns) {
                SenderEvent::Left(pulse, stamps) if pulse.number == number => {
                    seen[0] = Some(stamps);
                }
                SenderEvent::Answer { pulse, stamps, .. } if pulse.number == number => {
                    seen[1] = Some(stamps);
                }
                SenderEvent::Failed(errno) => panic!("errno {errno}"),
                _ => {}
            }
            if let [Some(left), Some(arrived)] = seen {
                return [left, arrived];
            }
        }
    }

    /// Sends until the kernel stamps at both ends: it may begin to a moment after it was asked to.
    fn stamped_pulse(line: &mut SenderUdp, mut answer: impl FnMut()) {
        for number in 0.. {
            let before_ns = line.read().real_ns;
            line.send(&PulsePacket { sender: 5, number, token: 77 }).expect("sent");
            answer();
            let [left, arrived] = both(line, number).map(|stamps| stamps.kernel_ns);
            if let (Some(left), Some(arrived)) = (left, arrived) {
                assert!(before_ns <= left && left <= arrived && arrived <= line.read().real_ns);
                return;
            }
        }
    }

    #[test]
    fn a_pulse_that_comes_back_at_once_is_stamped_at_both_ends() {
        let mut line = SenderUdp::open_to_itself(CLOCK_MONOTONIC).expect("loopback");
        stamped_pulse(&mut line, || {});
    }

    #[test]
    fn an_answer_is_stamped_and_what_is_none_is_foreign() {
        let at = (Ipv4Addr::LOCALHOST, 0).into();
        let mut there = Udp::open(at, None, By::Read, CLOCK_MONOTONIC).expect("a port");
        let to = there.at().expect("its port");
        let mut line = SenderUdp::open(to, CLOCK_MONOTONIC).expect("loopback");
        assert_eq!(line.to(), to);
        stamped_pulse(&mut line, || {
            arrival(&mut there);
            there.answer().expect("answered");
        });
        // A pulse is no answer.
        let own = line.socket.local_addr().expect("its port");
        let other = UdpSocket::bind(to).map(drop).expect_err("in use");
        assert_eq!(other.kind(), std::io::ErrorKind::AddrInUse);
        drop(there);
        let other = UdpSocket::bind(to).expect("free again");
        other.send_to(&PulsePacket { sender: 5, number: 0, token: 77 }.bytes(), own).expect("sent");
        let foreign = loop {
            let until_ns = line.read().run_ns.saturating_add(20_000_000_000);
            match line.wait(until_ns) {
                SenderEvent::Nothing | SenderEvent::Interrupted | SenderEvent::Left(..) => {}
                other => break other,
            }
        };
        assert_eq!(foreign, SenderEvent::Foreign);
    }

    #[test]
    fn nobody_there_is_no_end_of_the_line() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let to = socket.local_addr().expect("its port");
        drop(socket);
        let mut line = SenderUdp::open(to, CLOCK_MONOTONIC).expect("loopback");
        let mut told = 0;
        for number in 0..20 {
            match line.send(&PulsePacket { sender: 5, number, token: 0 }) {
                Ok(()) => {}
                Err(AnswerRefusal::Answer(errno)) => {
                    assert_eq!(errno, libc::ECONNREFUSED);
                    told += 1;
                }
                Err(AnswerRefusal::Line(errno)) => panic!("errno {errno}"),
            }
            // A stamp of its leaving, then the network's word.
            for _ in 0..2 {
                match line.wait(0) {
                    SenderEvent::Unreachable(errno) => {
                        assert_eq!(errno, libc::ECONNREFUSED);
                        told += 1;
                    }
                    SenderEvent::Nothing | SenderEvent::Left(..) | SenderEvent::Interrupted => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(told > 0);
    }
}
