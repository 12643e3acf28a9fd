// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of ioctl(2) requests.
//!
//! Source: asm-generic/ioctl.h; the architectures that Tailbound is built for use it.

pub(crate) const WRITE: u64 = 1;
pub(crate) const READ: u64 = 2;

/// The number of a request: direction, size of its structure, letter of the driver, number.
pub(crate) const fn request(direction: u64, letter: u8, number: u64, size: usize) -> u64 {
    direction << 30 | (size as u64) << 16 | (letter as u64) << 8 | number
}
