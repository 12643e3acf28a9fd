// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no kernel to boot: its name, its package, its image, its modules.

use std::path::PathBuf;

use tailbound_archive::ArchiveError;
use tailbound_core::FailureKind;

use super::LabError;
use crate::kernel::{KernelNameError, NoImage};

/// A kernel that is not to be had, or cannot be booted.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The name of a kernel is none.
    #[error("kernel `{name}`: {source}")]
    Name {
        /// As it was written.
        name: String,
        /// What is wrong with it.
        source: KernelNameError,
    },
    /// A system is asked for by a kernel's name that is none.
    #[error("--kernel {name}: {source}")]
    Asked {
        /// As it was written.
        name: String,
        /// What is wrong with it.
        source: Box<LabError>,
    },
    /// Behind `@` stands no suite.
    #[error("debian:{name}: after `@` stands a suite: trixie")]
    Suite {
        /// As it was written, without its origin.
        name: String,
    },
    /// apt has no kernels.
    #[error("apt knows no kernel for {arch}")]
    NoneKnown {
        /// The architecture, as Debian calls it.
        arch: &'static str,
    },
    /// apt has no such kernel.
    #[error("debian:{name}: no such kernel; {known}")]
    Unknown {
        /// As it was written, without its origin.
        name: String,
        /// Those that there are, nearest first.
        known: String,
    },
    /// apt has not all packages of a kernel.
    #[error(
        "{package} {version}: apt knows no package {part} of that version, which holds a part of that kernel"
    )]
    PartUnknown {
        /// The kernel's package.
        package: String,
        /// Its version.
        version: String,
        /// The package that is missing.
        part: String,
    },
    /// No apt had it.
    #[error("{wanted} for {arch} is not in the store, and was not to be had\n  {}", .tried.join("\n  "))]
    NotToBeHad {
        /// As it was asked for.
        wanted: String,
        /// The architecture, as Debian calls it.
        arch: &'static str,
        /// What was tried, and why it did not do.
        tried: Vec<String>,
    },
    /// It is not in the store, and there is no apt to fetch it.
    #[error("{wanted} is not in the store ({}), and {source}: on a machine without apt {remedy}", .store.display())]
    NoApt {
        /// As it was asked for.
        wanted: String,
        /// The store.
        store: PathBuf,
        /// What is wrong with apt.
        source: Box<LabError>,
        /// What to do instead.
        remedy: &'static str,
    },
    /// apt has no archive of Debian.
    #[error("none of this machine's apt sources is an archive of Debian with package lists")]
    NoSources,
    /// apt-get said that it downloaded, and did not.
    #[error("apt-get download {package} left no .deb behind")]
    NotDownloaded {
        /// Name and version.
        package: String,
    },
    /// A package is not what the archive says.
    #[error("{package}: SHA-256 is {is}, the archive's index says {listed}")]
    OtherPackage {
        /// Its name.
        package: String,
        /// Its SHA-256.
        is: String,
        /// The one that it should have.
        listed: String,
    },
    /// Its packages were not unpacked, and are kept.
    #[error("{0}\n  what was fetched is kept for the next attempt")]
    Unpacking(Box<LabError>),
    /// A package has no image.
    #[error("package {package} holds neither boot/vmlinuz-* nor lib/modules/*/vmlinuz")]
    NoImageIn {
        /// Its name.
        package: String,
    },
    /// A part of it is missing after it was unpacked.
    #[error("{}: not whole after unpacking", .folder.display())]
    NotWhole {
        /// Where it lies.
        folder: PathBuf,
    },
    /// A file is no image that QEMU boots.
    #[error("{}: {source}", .path.display())]
    NoImage {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        source: NoImage,
    },
    /// A file of a configuration has no options.
    #[error("{}: no line CONFIG_…=… in it: not a kernel's configuration", .path.display())]
    NoConfig {
        /// The file.
        path: PathBuf,
    },
    /// A folder has no modules.
    #[error("{}: no module in it; name the folder lib/modules/<release>", .folder.display())]
    NoModules {
        /// The folder.
        folder: PathBuf,
    },
    /// Modules that a guest needs are not there.
    #[error("{} has no module {}, nor is it built in", .folder.display(), .missing.join(", "))]
    ModulesMissing {
        /// The folder of modules.
        folder: PathBuf,
        /// Their names.
        missing: Vec<String>,
    },
    /// A file is no module.
    #[error("{}: not a kernel module", .path.display())]
    NoModule {
        /// The file.
        path: PathBuf,
    },
    /// A module cannot be unpacked.
    #[error("{}: {source}", .path.display())]
    PackedModule {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// Modules need each other in a chain that is too long.
    #[error("{}: module {depth} of a chain in which each needs the next", .path.display())]
    ModuleChain {
        /// The last of them.
        path: PathBuf,
        /// How many.
        depth: u8,
    },
    /// It has no device tree for the board.
    #[error(
        "{kernel}: the board model {model} needs the device tree {tree}, and this kernel brings none"
    )]
    NoDeviceTree {
        /// The kernel's name.
        kernel: String,
        /// The board model.
        model: String,
        /// The file of the tree.
        tree: &'static str,
    },
}

impl KernelError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Name { .. }
            | Self::Asked { .. }
            | Self::Suite { .. }
            | Self::NoneKnown { .. }
            | Self::Unknown { .. }
            | Self::NoImage { .. }
            | Self::NoConfig { .. }
            | Self::NoModules { .. }
            | Self::NoDeviceTree { .. } => FailureKind::Usage,
            Self::PartUnknown { .. }
            | Self::NotToBeHad { .. }
            | Self::NoApt { .. }
            | Self::NoSources
            | Self::NotDownloaded { .. }
            | Self::OtherPackage { .. }
            | Self::Unpacking(_)
            | Self::NoImageIn { .. }
            | Self::NotWhole { .. }
            | Self::ModulesMissing { .. }
            | Self::NoModule { .. }
            | Self::PackedModule { .. }
            | Self::ModuleChain { .. } => FailureKind::Cannot,
        }
    }
}
