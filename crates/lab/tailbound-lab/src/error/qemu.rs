// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no QEMU, or why it did not do what it was asked for.

use std::io;
use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_sys::error::SysError;
use tailbound_sys::program::Missing;

use super::LabError;
use crate::arch::Arch;

/// A QEMU that is not to be had, or failed.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    // Choosing and fetching it.
    /// It is not installed.
    #[error(
        "{missing}: install Debian's {package}, give --qemu PROGRAM, or fetch one beside the system with `tailbound lab qemu fetch`"
    )]
    Missing {
        /// What was looked for.
        missing: Missing,
        /// The package that brings it.
        package: &'static str,
    },
    /// A program is no QEMU.
    #[error("{} --version does not speak of QEMU: is it QEMU?{}", .program.display(), if .said.is_empty() { String::new() } else { format!(" ({said})") })]
    Other {
        /// The program.
        program: PathBuf,
        /// The first line of its complaint.
        said: String,
    },
    /// The version that was asked for is not in the store.
    #[error("--qemu {version}: QEMU {version} for {arch} was not fetched; {fetched}")]
    VersionNotFetched {
        /// As it was asked for.
        version: String,
        /// For guests of this architecture.
        arch: Arch,
        /// Those that are there.
        fetched: String,
    },
    /// The version that is to be removed is not in the store.
    #[error("QEMU {version} was not fetched; {fetched}")]
    NotFetched {
        /// As it was asked for.
        version: String,
        /// Those that are there.
        fetched: String,
    },
    /// A fetched one was changed.
    #[error("{} is not what was unpacked (its SHA-256 is another): remove it with `tailbound lab qemu remove {version}` and fetch it again", .path.display())]
    Altered {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// The name of a suite is none.
    #[error("--suite {suite}: the name of a suite, such as {}", crate::emulator::SUITE)]
    Suite {
        /// As it was written.
        suite: String,
    },
    /// A suite does not have it.
    #[error("{suite} has no package {package}")]
    NoPackage {
        /// The suite.
        suite: String,
        /// The package.
        package: &'static str,
    },
    /// apt-get did not download all of its packages.
    #[error("apt-get left {left} of {all} packages of {package}")]
    PackagesMissing {
        /// How many there are.
        left: usize,
        /// How many it needs.
        all: usize,
        /// Its package.
        package: &'static str,
    },
    /// None of its packages brings its loader.
    #[error("none of the packages has the loader `{loader}` of {program}")]
    NoLoader {
        /// The loader.
        loader: String,
        /// The program.
        program: String,
    },
    /// The fetched one does not start.
    #[error("what was fetched does not start here: {0}")]
    FetchedUnfit(Box<LabError>),
    /// The fetched one does not say its version.
    #[error("it names no version")]
    NoVersion,
    /// There is none.
    #[error("no QEMU")]
    None,

    // Starting it.
    /// Root starts none without a filter of system calls.
    #[error("{} was built without seccomp, so that `-sandbox` is missing, and root starts no QEMU without it: run this as an ordinary user, or use Debian's QEMU", .program.display())]
    NoSandbox {
        /// The program.
        program: PathBuf,
    },
    /// There is no connection to it.
    #[error("{0}")]
    Connection(io::Error),
    /// It cannot be started.
    #[error("{0}")]
    Start(SysError),
    /// No thread can be started that keeps its main loop waiting.
    #[error("{0}")]
    Thread(io::Error),
    /// It ended with this complaint.
    #[error("{said}")]
    Complaint {
        /// What it printed.
        said: String,
    },

    // Talking with it.
    /// It is gone.
    #[error("QEMU ended ({command})")]
    Ended {
        /// What it was asked.
        command: String,
    },
    /// It takes no commands.
    #[error("QEMU does not listen ({command}): {source}")]
    Deaf {
        /// What it was to be asked.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// It does not do what it is asked.
    #[error("QEMU refuses {command}: {why}")]
    Refuses {
        /// What it was asked.
        command: String,
        /// What it says.
        why: String,
    },
    /// It does not answer in time.
    #[error("QEMU does not answer ({command})")]
    Silent {
        /// What it was asked.
        command: String,
    },
    /// It does not say which thread executes the guest.
    #[error("QEMU does not name the thread of its CPUs")]
    NoCpuThread,
}

impl QemuError {
    /// Did it end by itself, as it does where it cannot load the kernel?
    pub(super) fn is_of_kernel(&self) -> bool {
        matches!(self, Self::Complaint { .. } | Self::Ended { .. })
    }

    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::VersionNotFetched { .. }
            | Self::NotFetched { .. }
            | Self::Suite { .. }
            | Self::NoPackage { .. } => FailureKind::Usage,
            Self::Missing { .. }
            | Self::Other { .. }
            | Self::Altered { .. }
            | Self::PackagesMissing { .. }
            | Self::NoLoader { .. }
            | Self::FetchedUnfit(_)
            | Self::NoVersion
            | Self::None
            | Self::NoSandbox { .. }
            | Self::Connection(_)
            | Self::Start(_)
            | Self::Thread(_)
            | Self::Complaint { .. }
            | Self::Ended { .. }
            | Self::Deaf { .. }
            | Self::Refuses { .. }
            | Self::Silent { .. }
            | Self::NoCpuThread => FailureKind::Cannot,
        }
    }
}
