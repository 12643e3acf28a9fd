// SPDX-License-Identifier: MIT OR Apache-2.0
//! A serial port whose bytes are answered by the same bytes.
//!
//! Context: HOT (the `PulseLine` methods: read, write, ppoll, io_uring_enter), SETUP (`open`, drop). Units: ns, bytes, baud.
//! The kernel stamps no byte: the time begins when the wait is over, and ends when write(2) has taken the answer, which
//! may still be on its way. The port itself is `serial`.

use std::os::fd::AsFd as _;
use std::path::Path;

use tailbound_rt::answer::sequence::Sequence;
use tailbound_rt::answer::{AnswerRefusal, Arrival, Pulse, PulseLine, Stamp};

use super::ring_wait::{Behind, RingWait, Waited};
use super::{By, Ready, ready};
use crate::clock::now_ns;
use crate::error::SysError;
use crate::ipc;
use crate::serial::{Reads, SerialPort};

pub use crate::serial::SPEEDS;

/// Most bytes of a frame.
pub const FRAME_BYTES_MAX: usize = 64;
/// A read that waits ends after so many tenths of a second without a byte.
const LOOK_TENTHS: u8 = 1;

/// How a port is used.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Its speed, one of [`SPEEDS`].
    pub baud: u32,
    /// Bytes of a pulse and of its answer, at most [`FRAME_BYTES_MAX`].
    pub frame_bytes: usize,
    /// The first byte of each frame counts up.
    pub counts: bool,
    /// A frame that is not whole after this is dropped.
    pub whole_within_ns: i64,
    /// How it is waited for.
    pub by: By,
    /// The run's clock.
    pub clock: libc::clockid_t,
}

/// A port whose pulses are answered.
pub struct Uart {
    port: SerialPort,
    how: Use,
    ring: Option<RingWait>,
    frame: [u8; FRAME_BYTES_MAX],
    filled: usize,
    first_byte_ns: i64,
    torn: u64,
}

impl Uart {
    /// The port at `path`, raw: eight bits, no parity, no flow control.
    ///
    /// # Errors
    /// EACCES, EBUSY where another program has it, ENOTTY where it is no serial port, EINVAL where it has no such speed.
    pub fn open(path: &Path, how: Use) -> Result<Self, SysError> {
        let reads = match how.by {
            By::Read => Reads::Within(LOOK_TENTHS),
            By::Poll | By::Busy | By::IoUring => Reads::AtOnce,
        };
        let port = SerialPort::open_as(path, how.baud, reads)?;
        let frame_bytes = how.frame_bytes.clamp(1, FRAME_BYTES_MAX);
        let how = Use { frame_bytes, ..how };
        let (frame, filled) = ([0; FRAME_BYTES_MAX], 0);
        if how.by == By::IoUring {
            // Refused here, before anything runs.
            RingWait::check()?;
        }
        Ok(Self { port, how, ring: None, frame, filled, first_byte_ns: 0, torn: 0 })
    }

    /// Frames that were dropped because they did not become whole.
    #[must_use]
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// What the calling thread, which answers, needs of its own; what came and was not read belongs to nobody.
    ///
    /// # Errors
    /// ENOSYS, EPERM: there is no io_uring.
    pub fn attach(&mut self) -> Result<(), SysError> {
        if self.how.by == By::IoUring {
            self.ring = Some(RingWait::new()?);
        }
        self.flush();
        Ok(())
    }

    fn flush(&mut self) {
        self.filled = 0;
        self.port.flush();
    }

    /// Drops the begin of a frame whose rest did not come.
    fn drop_torn(&mut self) {
        if self.filled > 0
            && self.now_ns().wrapping_sub(self.first_byte_ns) > self.how.whole_within_ns
        {
            self.filled = 0;
            self.torn += 1;
        }
    }

    /// A read of nothing: its time was over, or the other end has hung up.
    fn nothing(&mut self) -> Arrival {
        if ready(self.port.as_fd(), 0) == Ready::Gone || self.port.is_hung_up() {
            return Arrival::Failed(libc::EIO);
        }
        self.drop_torn();
        Arrival::Nothing
    }

    /// So many bytes are read.
    fn took(&mut self, n: usize, ran_ns: i64) -> Arrival {
        if n == 0 {
            return self.nothing();
        }
        if self.filled == 0 {
            self.first_byte_ns = ran_ns;
        }
        self.filled += n;
        if self.filled < self.how.frame_bytes {
            return Arrival::Interrupted;
        }
        self.filled = 0;
        let number = u64::from(self.frame[0]);
        let sequence = self.how.counts.then_some(Sequence { sender: 0, number, bits: 8 });
        // Its counter is too short to tell it from all others.
        let mark = None;
        Arrival::Pulse(Pulse { stamp: Stamp::Absent, ran_ns, sequence, mark, dropped: 0 })
    }

    fn wait_in_ring(&mut self, until_ns: i64) -> Arrival {
        let left_ns = until_ns.wrapping_sub(self.now_ns()).max(0);
        // `attach` made it.
        let Some(ring) = &mut self.ring else { return Arrival::Failed(libc::EBADF) };
        let room = self.frame.get_mut(self.filled..self.how.frame_bytes).unwrap_or_default();
        // What is under way may be of a frame that was dropped since, and then brings less than there is room for.
        let waited = ring.wait(self.port.as_fd(), Behind::Read(room.len() as u32), left_ns);
        let ran_ns = now_ns(self.how.clock);
        match waited {
            Waited::Ready(n) => {
                for (place, byte) in room.iter_mut().zip(ring.bytes().into_iter().take(n)) {
                    *place = byte;
                }
                self.took(n, ran_ns)
            }
            Waited::Nothing => {
                self.drop_torn();
                Arrival::Nothing
            }
            Waited::Interrupted => Arrival::Interrupted,
            Waited::Failed(errno) => Arrival::Failed(errno),
        }
    }
}

impl Drop for Uart {
    fn drop(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.end(self.port.as_fd());
        }
    }
}

impl PulseLine for Uart {
    fn wait(&mut self, until_ns: i64) -> Arrival {
        if self.how.by == By::IoUring {
            return self.wait_in_ring(until_ns);
        }
        if self.how.by == By::Poll {
            let left_ns = until_ns.wrapping_sub(self.now_ns());
            match ready(self.port.as_fd(), left_ns) {
                Ready::Yes | Ready::Gone => {}
                Ready::No => {
                    self.drop_torn();
                    return Arrival::Nothing;
                }
                Ready::Interrupted => return Arrival::Interrupted,
                Ready::Failed(errno) => return Arrival::Failed(errno),
            }
        }
        let room = self.frame.get_mut(self.filled..self.how.frame_bytes).unwrap_or_default();
        let read = ipc::read(self.port.as_fd(), room);
        let ran_ns = self.now_ns();
        match read {
            Ok(n) => self.took(n, ran_ns),
            Err(e) => match e.raw_os_error().unwrap_or(0) {
                libc::EAGAIN => {
                    self.drop_torn();
                    Arrival::Nothing
                }
                libc::EINTR => Arrival::Interrupted,
                errno => Arrival::Failed(errno),
            },
        }
    }

    fn answer(&mut self) -> Result<i64, AnswerRefusal> {
        let frame = self.frame.get(..self.how.frame_bytes).unwrap_or_default();
        let written = ipc::write(self.port.as_fd(), frame);
        let given_ns = now_ns(self.how.clock);
        match written {
            Ok(n) if n == frame.len() => Ok(given_ns),
            // A part of an answer is none.
            Ok(_) => Err(AnswerRefusal::Answer(libc::EAGAIN)),
            Err(e) => Err(match e.raw_os_error().unwrap_or(0) {
                errno @ (libc::EIO | libc::ENXIO | libc::ENODEV) => AnswerRefusal::Line(errno),
                errno => AnswerRefusal::Answer(errno),
            }),
        }
    }

    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.how.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::testing::{arrival, ways};
    use crate::clock::CLOCK_MONOTONIC;
    use crate::terminal::{WindowSize, is_cooked, pair};
    use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
    use std::path::PathBuf;

    fn path_of(fd: BorrowedFd<'_>) -> PathBuf {
        std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("its name")
    }

    fn how(by: By) -> Use {
        Use {
            baud: 115_200,
            frame_bytes: 1,
            counts: false,
            whole_within_ns: 50_000_000,
            by,
            clock: CLOCK_MONOTONIC,
        }
    }

    fn ends() -> Option<(OwnedFd, OwnedFd, PathBuf)> {
        let Ok((person, terminal)) = pair(WindowSize::USUAL) else {
            tailbound_testing::skip("pseudo-terminal", "none to be had");
            return None;
        };
        let path = path_of(terminal.as_fd());
        Some((person, terminal, path))
    }

    #[test]
    fn bytes_are_answered_and_the_port_is_left_as_it_was() {
        let Some((person, terminal, path)) = ends() else { return };
        for by in ways() {
            let mut line = Uart::open(&path, how(by)).expect("a port");
            line.attach().expect("attached");
            assert_eq!(is_cooked(terminal.as_fd()), Ok(false));
            let second = Uart::open(&path, how(by)).map(drop).expect_err("in use");
            assert!(second.is_busy(), "{second}");
            // Neither end of line nor Ctrl-C means anything.
            for byte in [b'\r', 3, 0, 255] {
                ipc::write(person.as_fd(), &[byte]).expect("written");
                let Arrival::Pulse(pulse) = arrival(&mut line) else { panic!("{by:?}: no pulse") };
                assert_eq!((pulse.stamp, pulse.sequence), (Stamp::Absent, None));
                assert!(line.answer().expect("answered") >= pulse.ran_ns);
                let mut answer = [0; 9];
                assert_eq!(ipc::read(person.as_fd(), &mut answer).ok(), Some(1), "{by:?}");
                assert_eq!(answer[0], byte);
            }
            drop(line);
            assert_eq!(is_cooked(terminal.as_fd()), Ok(true), "{by:?}");
        }
    }

    #[test]
    fn frames_are_whole_or_torn_and_their_first_byte_counts() {
        let Some((person, _terminal, path)) = ends() else { return };
        for by in ways() {
            frames_are_whole_or_torn(by, &path, person.as_fd());
        }
    }

    fn frames_are_whole_or_torn(by: By, path: &Path, person: BorrowedFd<'_>) {
        let how = Use { frame_bytes: 3, counts: true, ..how(by) };
        let mut line = Uart::open(path, how).expect("a port");
        line.attach().expect("attached");
        let send = |bytes: &[u8]| ipc::write(person, bytes).expect("written");
        let number = |arrival| match arrival {
            Arrival::Pulse(Pulse { sequence: Some(s), .. }) => (s.number, s.bits),
            other => panic!("{other:?}"),
        };
        send(&[254, 1, 2, 255, 1]);
        assert_eq!(number(arrival(&mut line)), (254, 8));
        let until_ns = line.now_ns().saturating_add(20_000_000_000);
        while line.torn() == 0 {
            assert!(!matches!(line.wait(until_ns), Arrival::Pulse(_)), "no whole frame");
        }
        send(&[1, 9, 9]);
        assert_eq!(number(arrival(&mut line)), (1, 8));
        line.answer().expect("answered");
        let mut answer = [0; 9];
        assert_eq!(ipc::read(person, &mut answer).ok(), Some(3));
        assert_eq!(answer.get(..3), Some(&[1, 9, 9][..]));
    }

    #[test]
    fn a_port_that_goes_away_is_no_silence() {
        for by in ways() {
            let Some((person, terminal, path)) = ends() else { return };
            let mut line = Uart::open(&path, how(by)).expect("a port");
            line.attach().expect("attached");
            drop((person, terminal));
            assert!(matches!(arrival(&mut line), Arrival::Failed(_)), "{by:?}");
        }
    }

    #[test]
    fn what_is_no_port_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let refused = |path: &Path| Uart::open(path, how(By::Poll)).map(drop).expect_err("no port");
        for path in [file.path(), Path::new("/dev/null")] {
            assert_eq!(refused(path).errno, libc::ENOTTY, "{}", path.display());
        }
        assert_eq!(refused(Path::new("/nonexistent/tty")).errno, libc::ENOENT);
    }
}
