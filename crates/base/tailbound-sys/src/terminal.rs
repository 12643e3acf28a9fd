// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terminal: its size, and taking it over for a view that reads single keys.
//!
//! Units: character cells. Whoever takes a terminal over gives it back as it was:
//! when the guard is dropped, which an unwinding panic does too, or earlier by [`restore`], so that
//! a panic's message is not lost with the view's screen.
//! Not here: what is drawn, which keys there are.
//! Source: ioctl_tty(2) (TIOCGWINSZ), termios(3), pty(7), xterm's control sequences (1049, 25).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError};

use crate::error::{SysError, check};

/// To the other screen, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
/// Back to the screen as it was, with a cursor.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// The size of a terminal's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    /// Cells of a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

impl WindowSize {
    /// That of a terminal which nobody looks at.
    pub const USUAL: Self = Self { columns: 80, rows: 24 };
}

/// The size of the terminal behind `fd`, if it is one that knows.
pub fn size(fd: &impl AsRawFd) -> Option<WindowSize> {
    // SAFETY: all-zero bytes are a valid winsize.
    let mut w: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ writes one live winsize.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut w) };
    (result == 0 && w.ws_col > 0 && w.ws_row > 0)
        .then_some(WindowSize { columns: w.ws_col, rows: w.ws_row })
}

/// A terminal as it was before it was taken over.
struct Before {
    input: OwnedFd,
    output: OwnedFd,
    modes: libc::termios,
}

/// Of the one terminal that is taken over.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);

/// A terminal taken over: each key comes as it is pressed, nothing is echoed, and what is drawn goes to a
/// screen of its own.
#[derive(Debug)]
pub struct Raw(());

impl Raw {
    /// Takes over the terminal that `input` and `output` are.
    ///
    /// # Errors
    /// ENOTTY where `input` is none; EBUSY where one is taken over already.
    pub fn enter(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> Result<Self, SysError> {
        let mut slot = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_some() {
            return Err(SysError::code("terminal", "it is taken over already", libc::EBUSY));
        }
        let own = |fd: BorrowedFd<'_>| {
            fd.try_clone_to_owned().map_err(|e| {
                SysError::code("dup", "terminal", e.raw_os_error().unwrap_or_default())
            })
        };
        let before = Before { modes: modes(input)?, input: own(input)?, output: own(output)? };
        let mut raw = before.modes;
        // SAFETY: changes a live termios.
        unsafe { libc::cfmakeraw(&raw mut raw) };
        set_modes(input, &raw)?;
        write_all(output, ENTER);
        *slot = Some(before);
        Ok(Self(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives back the terminal that was taken over; nothing where none is. What was typed and not read is dropped.
pub fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        write_all(before.output.as_fd(), LEAVE);
        // A terminal that is gone needs no modes.
        drop(set_modes(before.input.as_fd(), &before.modes));
    }
}

fn modes(terminal: BorrowedFd<'_>) -> Result<libc::termios, SysError> {
    // SAFETY: all-zero bytes are a valid termios.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: writes one live termios.
    let result = unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes) };
    check(result, "tcgetattr", "")?;
    Ok(modes)
}

fn set_modes(terminal: BorrowedFd<'_>, modes: &libc::termios) -> Result<(), SysError> {
    // SAFETY: reads one live termios.
    let result = unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSAFLUSH, modes) };
    check(result, "tcsetattr", "").map(drop)
}

/// As much as goes: there is nobody to tell.
fn write_all(terminal: BorrowedFd<'_>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match crate::ipc::write(terminal, bytes) {
            Ok(n) if n > 0 => bytes = bytes.get(n..).unwrap_or_default(),
            _ => return,
        }
    }
}

/// A pseudo-terminal of that size: the end that plays the person, and the terminal. For tests
/// of what speaks to one, and for a load that keeps one busy.
///
/// # Errors
/// ENOSPC, ENOENT where the machine has none to give.
pub fn pair(window: WindowSize) -> Result<(OwnedFd, OwnedFd), SysError> {
    let size =
        libc::winsize { ws_row: window.rows, ws_col: window.columns, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut person, mut terminal) = (-1, -1);
    // SAFETY: writes two live integers, reads a live winsize; neither name nor modes are asked for.
    let result = unsafe {
        libc::openpty(
            &raw mut person,
            &raw mut terminal,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        )
    };
    check(result, "openpty", "")?;
    for fd in [person, terminal] {
        // SAFETY: integer arguments only.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: openpty(3) made both, and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(person), OwnedFd::from_raw_fd(terminal)) })
}

/// Holds back what the terminal says, its echo too, as Ctrl-S does.
///
/// # Errors
/// ENOTTY.
pub fn hold_output(terminal: BorrowedFd<'_>) -> Result<(), SysError> {
    // SAFETY: integer arguments only.
    check(unsafe { libc::tcflow(terminal.as_raw_fd(), libc::TCOOFF) }, "tcflow", "").map(drop)
}

/// Is it a terminal that hands on lines and echoes, as a shell leaves it?
///
/// # Errors
/// ENOTTY.
pub fn is_cooked(terminal: BorrowedFd<'_>) -> Result<bool, SysError> {
    let line = libc::ICANON | libc::ECHO | libc::ISIG;
    Ok(modes(terminal)?.c_lflag & line == line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test: there is one terminal that can be taken over in a process.
    #[test]
    fn a_terminal_is_given_back_as_it_was() {
        let Ok((person, terminal)) = pair(WindowSize::USUAL) else {
            tailbound_testing::skip("pseudo-terminal", "none to be had");
            return;
        };
        assert_eq!(size(&terminal), Some(WindowSize { columns: 80, rows: 24 }));
        let fd = terminal.as_fd();
        let bytes = |modes: &libc::termios| {
            (modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag, modes.c_cc)
        };
        let before = modes(fd).expect("a terminal");
        let said = |expected: &[u8]| {
            let mut buffer = [0; 256];
            let n = crate::ipc::read(person.as_fd(), &mut buffer).expect("what was drawn");
            assert_eq!(buffer.get(..n), Some(expected));
        };
        {
            let _raw = Raw::enter(fd, fd).expect("taken over");
            assert_eq!(is_cooked(fd), Ok(false));
            said(ENTER);
            assert!(Raw::enter(fd, fd).is_err_and(|e| e.is_busy()), "only once");
        }
        said(LEAVE);
        assert_eq!(bytes(&modes(fd).expect("a terminal")), bytes(&before));
        assert_eq!(is_cooked(fd), Ok(true));

        let ended = std::panic::catch_unwind(|| {
            let _raw = Raw::enter(fd, fd).expect("taken over again");
            said(ENTER);
            std::panic::resume_unwind(Box::new("a bug"));
        });
        assert!(ended.is_err());
        said(LEAVE);
        assert_eq!(bytes(&modes(fd).expect("a terminal")), bytes(&before));
        restore();
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        assert!(Raw::enter(reader.as_fd(), reader.as_fd()).is_err(), "no terminal");
    }
}
