// SPDX-License-Identifier: MIT OR Apache-2.0
//! A serial port for one program alone: raw, without flow control, as it was found when it is closed.
//!
//! Context: SETUP (`open`, drop), COLD elsewhere. Units: baud, ns.
//! Source: termios(3), ioctl_tty(2), flock(2), ppoll(2).

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::clock;
use crate::error::{SysError, check};
use crate::file_lock::FileLock;

/// The speeds that a port may have, in baud.
pub const SPEEDS: [u32; 13] = [
    9_600, 19_200, 38_400, 57_600, 115_200, 230_400, 460_800, 921_600, 1_000_000, 1_500_000,
    2_000_000, 3_000_000, 4_000_000,
];

fn code_of(baud: u32) -> Option<libc::speed_t> {
    Some(match baud {
        9_600 => libc::B9600,
        19_200 => libc::B19200,
        38_400 => libc::B38400,
        57_600 => libc::B57600,
        115_200 => libc::B115200,
        230_400 => libc::B230400,
        460_800 => libc::B460800,
        921_600 => libc::B921600,
        1_000_000 => libc::B1000000,
        1_500_000 => libc::B1500000,
        2_000_000 => libc::B2000000,
        3_000_000 => libc::B3000000,
        4_000_000 => libc::B4000000,
        _ => return None,
    })
}

/// What a port is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Bytes to read.
    Bytes,
    /// Bytes to read, or room for bytes to write.
    BytesOrRoom,
    /// Time to pass, unless the port goes away.
    Nothing,
}

/// How a read that does not wait is set up; of a read that waits, after how many tenths of a second it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    AtOnce,
    Within(u8),
}

/// An open port. No other program that asks for it so gets it.
#[derive(Debug)]
pub struct SerialPort {
    port: FileLock,
    before: libc::termios,
}

impl SerialPort {
    /// The port at `path`, raw: eight bits, no parity, no flow control; reads and writes do not wait.
    ///
    /// # Errors
    /// EACCES, EBUSY where another program has it, ENOTTY where it is no serial port, EINVAL where it has no such speed.
    pub fn open(path: &Path, baud: u32) -> Result<Self, SysError> {
        Self::open_as(path, baud, Reads::AtOnce)
    }

    pub(crate) fn open_as(path: &Path, baud: u32, reads: Reads) -> Result<Self, SysError> {
        let name = || path.display().to_string();
        let refused = |call, e: &std::io::Error| {
            SysError::code(call, name(), e.raw_os_error().unwrap_or(0))
                .needs("membership of the port's group, often `dialout`")
        };
        let speed =
            code_of(baud).ok_or_else(|| SysError::code("tcsetattr", name(), libc::EINVAL))?;
        // A device may do things when it is opened: look first.
        let kind = path.metadata().map_err(|e| refused("stat", &e))?.file_type();
        if !kind.is_char_device() {
            return Err(SysError::code("open", name(), libc::ENOTTY));
        }
        // Without waiting for a carrier.
        let port = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
            .open(path)
            .map_err(|e| refused("open", &e))?;
        let fd = port.as_raw_fd();
        // Root is not refused by TIOCEXCL, by a lock it is.
        let port = FileLock::try_exclusive(port)
            .map_err(|_| SysError::code("flock", name(), libc::EBUSY))?;
        // SAFETY: all-zero bytes are a valid termios.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: writes one live termios.
        check(unsafe { libc::tcgetattr(fd, &raw mut before) }, "tcgetattr", &name())?;
        // SAFETY: integer arguments only.
        check(unsafe { libc::ioctl(fd, libc::TIOCEXCL) }, "TIOCEXCL", &name())?;
        let mut raw = before;
        // SAFETY: changes a live termios.
        unsafe { libc::cfmakeraw(&raw mut raw) };
        raw.c_cflag |= libc::CLOCAL | libc::CREAD;
        raw.c_cflag &= !(libc::CRTSCTS | libc::CSTOPB | libc::PARENB);
        let (least, tenths) = match reads {
            Reads::AtOnce => (1, 0),
            Reads::Within(tenths) => (0, tenths),
        };
        raw.c_cc[libc::VMIN] = least;
        raw.c_cc[libc::VTIME] = tenths;
        // As cfsetspeed(3), whose symbol not every static C library has: the speed of both directions.
        raw.c_cflag = raw.c_cflag & !(libc::CBAUD | libc::CIBAUD) | speed;
        // From here on the modes are given back.
        let this = Self { port, before };
        // What came before belongs to nobody.
        // SAFETY: reads one live termios.
        let set = unsafe { libc::tcsetattr(fd, libc::TCSAFLUSH, &raw const raw) };
        check(set, "tcsetattr", &name())?;
        this.is_as_asked(&raw, baud, &name())?;
        if let Reads::Within(_) = reads {
            // SAFETY: integer arguments only.
            check(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_RDWR) }, "fcntl", &name())?;
        }
        Ok(this)
    }

    /// tcsetattr(3) succeeds where it could do any part of it.
    fn is_as_asked(&self, asked: &libc::termios, baud: u32, name: &str) -> Result<(), SysError> {
        let mut now = *asked;
        // SAFETY: writes one live termios.
        let result = unsafe { libc::tcgetattr(self.port.as_raw_fd(), &raw mut now) };
        check(result, "tcgetattr", name)?;
        let raw = libc::ICANON | libc::ECHO | libc::ISIG;
        if (now.c_cflag ^ asked.c_cflag) & libc::CBAUD != 0 || now.c_lflag & raw != 0 {
            let what = format!("{name}: it does not take {baud} baud, raw");
            return Err(SysError::code("tcsetattr", what, libc::EINVAL));
        }
        Ok(())
    }

    /// Drops what came and was not read.
    pub fn flush(&self) {
        // SAFETY: integer arguments only; of a port that is gone the next read says so.
        unsafe { libc::tcflush(self.port.as_raw_fd(), libc::TCIFLUSH) };
    }

    /// Of a port that is gone the modes cannot be read any more.
    #[must_use]
    pub fn is_hung_up(&self) -> bool {
        let mut modes = self.before;
        // SAFETY: writes one live termios.
        unsafe { libc::tcgetattr(self.port.as_raw_fd(), &raw mut modes) < 0 }
    }

    /// Waits for what is wanted, for at most `left_ns`; early where a signal came.
    ///
    /// # Errors
    /// Those of ppoll(2).
    pub fn wait(&self, wanted: Wanted, left_ns: i64) -> Result<(), SysError> {
        let events = match wanted {
            Wanted::Bytes => libc::POLLIN,
            Wanted::BytesOrRoom => libc::POLLIN | libc::POLLOUT,
            Wanted::Nothing => 0,
        };
        let mut poll = libc::pollfd { fd: self.port.as_raw_fd(), events, revents: 0 };
        let span = clock::span(left_ns);
        // SAFETY: ppoll(2) reads one live timespec, reads and writes one live pollfd; the mask stays.
        let n = unsafe { libc::ppoll(&raw mut poll, 1, &raw const span, std::ptr::null()) };
        let failed = SysError::last("ppoll", "");
        if n < 0 && failed.errno != libc::EINTR { Err(failed) } else { Ok(()) }
    }

    /// Bytes that came; none where there are none.
    ///
    /// # Errors
    /// EIO, ENXIO, ENODEV where the port is gone.
    pub fn read<'a>(&mut self, into: &'a mut [u8]) -> Result<&'a [u8], SysError> {
        match (&*self.port).read(into) {
            Ok(0) if self.is_hung_up() => Err(SysError::code("read", "", libc::EIO)),
            Ok(n) => Ok(into.get(..n).unwrap_or_default()),
            Err(e) => self.refused("read", &e).map(|()| &[][..]),
        }
    }

    /// Writes what there is room for; how much that was.
    ///
    /// # Errors
    /// EIO, ENXIO, ENODEV where the port is gone.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, SysError> {
        match (&*self.port).write(bytes) {
            Ok(n) => Ok(n),
            Err(e) => self.refused("write", &e).map(|()| 0),
        }
    }

    fn refused(&self, call: &'static str, e: &std::io::Error) -> Result<(), SysError> {
        match e.raw_os_error().unwrap_or(0) {
            libc::EAGAIN | libc::EINTR => Ok(()),
            errno => Err(SysError::code(call, "", errno)),
        }
    }
}

impl AsFd for SerialPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}

impl Drop for SerialPort {
    fn drop(&mut self) {
        let fd = self.port.as_raw_fd();
        // SAFETY: integer arguments only; a port that is gone needs none of it.
        unsafe { libc::ioctl(fd, libc::TIOCNXCL) };
        // SAFETY: reads one live termios.
        unsafe { libc::tcsetattr(fd, libc::TCSANOW, &raw const self.before) };
    }
}
