// SPDX-License-Identifier: MIT OR Apache-2.0
//! Archives and packed files that others made: the one place of this project that unpacks them.
//!
//! Units: bytes unless named otherwise.
//!
//! - [`walk()`] reads the members of a tar archive one by one, within [`Limits`]. Nothing is written: a captured
//!   machine is read into memory this way.
//! - [`unpack`] writes them below a folder that the caller made for itself alone.
//! - [`Packing`] tells gzip, xz and zstd by their first bytes and unpacks them up to a limit.
//!
//! An archive decides about names and contents of plain files and folders, and, where the caller allows it, about links
//! that stay within the archive. Owners, set-user-ID bits and other special bits, times, devices and pipes are
//! never taken from it. A pending signal ends the work between two members and within a large one.
//!
//! Not here: which archive, and what its files mean.
//! Source: POSIX.1-2017 pax (ustar, pax formats); GNU tar manual, "Basic Tar Format"; RFC 1952; RFC 8878.

mod error;
mod limits;
mod member;
mod name;
mod packing;
mod shown_name;
mod unpack;
mod walk;
mod watch;

pub use self::error::ArchiveError;
pub use self::limits::{Limits, Links};
pub use self::member::{Kind, Member};
pub use self::packing::{Packing, plain_name};
pub use self::unpack::{Unpacked, unpack};
pub use self::walk::walk;
