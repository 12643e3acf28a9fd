// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a call answers, as numbers: 0 is success, everything else is negative.
//!
//! Context: HOT and COLD. The same names stand in `tailbound.h`; a test compares them.

/// Done.
pub const TB_OK: i32 = 0;
/// Null, never opened, or closed.
pub const TB_ERR_HANDLE: i32 = -1;
/// An argument is null, out of range or not a number.
pub const TB_ERR_ARGUMENT: i32 = -2;
/// A due time that is not after the one before, or an end without a start.
pub const TB_ERR_ORDER: i32 = -3;
/// Another thread is in a call of the same loop.
pub const TB_ERR_BUSY: i32 = -4;
/// As many recorders are open as there can be.
pub const TB_ERR_FULL: i32 = -5;
/// No memory.
pub const TB_ERR_MEMORY: i32 = -6;
/// A file could not be written.
pub const TB_ERR_IO: i32 = -7;
/// The buffer is too small.
pub const TB_ERR_SIZE: i32 = -8;
/// There is no data for an answer yet.
pub const TB_ERR_NO_DATA: i32 = -9;
/// A bug of the library.
pub const TB_ERR_BUG: i32 = -10;

/// A time that is not there: no limit, no value.
pub const TB_NONE: i64 = i64::MIN;
/// The latency of a cycle's start.
pub const TB_START: i32 = 0;
/// The latency of a cycle's completion.
pub const TB_COMPLETION: i32 = 1;
/// Recorders that can be open at a time.
pub const TB_RECORDERS_MAX: usize = 64;
