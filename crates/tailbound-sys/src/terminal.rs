// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size of the terminal.
//!
//! Context: COLD. Units: character cells. Source: ioctl_tty(2), TIOCGWINSZ.

use std::os::fd::AsRawFd;

/// Columns and rows of the terminal behind `fd`, if it is one that knows.
pub fn size(fd: &impl AsRawFd) -> Option<(usize, usize)> {
    // SAFETY: all-zero bytes are a valid winsize.
    let mut w: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ writes one live winsize.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut w) };
    (result == 0 && w.ws_col > 0 && w.ws_row > 0)
        .then(|| (usize::from(w.ws_col), usize::from(w.ws_row)))
}
