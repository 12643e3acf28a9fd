// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel to boot: what a name comes to.

pub(crate) mod apt;
pub mod config;
mod debian;
pub(crate) mod image;
mod listing;
pub(crate) mod lists;
mod modinfo;
pub mod modules;
pub(crate) mod name;
pub(crate) mod obtain;
pub(crate) mod package;
pub(crate) mod tool;
mod version;

use std::path::PathBuf;

use tailbound_core::lab::KernelRecord;

pub use self::config::Config;
pub use self::image::NoImage;
pub use self::listing::{KernelListing, Sources};
pub use self::lists::PackageLists;
pub use self::name::{BuildName, BuildNameError, KernelName, KernelNameError};
pub use self::obtain::{Available, available, obtain, refresh};
pub use self::package::{Manifest, in_store, is_in_store};
use crate::arch::Arch;

/// A kernel on this machine, ready to boot.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Where it came from and its hash.
    pub record: KernelRecord,
    /// Its architecture.
    pub arch: Arch,
    /// The image QEMU loads: bzImage, Image or zImage.
    pub image: PathBuf,
    /// `lib/modules/<release>`, where the kernel has modules.
    pub modules: Option<PathBuf>,
    /// Its configuration, where it is known.
    pub config: Option<PathBuf>,
    /// Folder with device trees (`*.dtb`), for boards that need one.
    pub device_trees: Option<PathBuf>,
}
