// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a run of the lab is not made as it was asked for: its machine, its time, its words.
//!
//! Units: MiB, µs, bytes.

use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_core::units::ParseTimeError;
use tailbound_core::words::UnknownWord;

use crate::arch::Arch;
use crate::machine::UnknownSwitch;
use crate::slices::{SLICE_US, SLICE_US_MAX, SliceError};

/// An option that is not possible.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    // The machine.
    /// No such architecture.
    #[error("--arch: {0}")]
    Arch(UnknownWord),
    /// A record names no architecture that is known.
    #[error("{0}")]
    RecordedArch(UnknownWord),
    /// There is no machine model for this architecture.
    #[error("no machine model for {arch}")]
    NoMachine {
        /// The architecture.
        arch: Arch,
    },
    /// No machine model has this name.
    #[error("--machine {model}: not known for {arch}; known are {}", .known.join(", "))]
    Machine {
        /// As it was written.
        model: String,
        /// The architecture.
        arch: Arch,
        /// All of this architecture.
        known: Vec<String>,
    },
    /// A machine model has no such option.
    #[error("--machine {model}: {source}")]
    MachineSwitch {
        /// As it was written.
        model: String,
        /// What is wrong with it.
        source: UnknownSwitch,
    },
    /// Too few or too many CPUs.
    #[error("--smp {smp}: 1 to 64")]
    Smp {
        /// As asked for.
        smp: u32,
    },
    /// QEMU counts no longer instructions.
    #[error("--shift {shift}: QEMU's limit is 10")]
    Shift {
        /// As asked for.
        shift: u8,
    },
    /// Too little memory for a kernel.
    #[error("--memory {memory_mib}: no kernel starts with less than 32")]
    LittleMemory {
        /// As asked for.
        memory_mib: u32,
    },
    /// More memory than is free.
    #[error("--memory {memory_mib}: this machine has {free_mib} MiB free")]
    MuchMemory {
        /// As asked for.
        memory_mib: u32,
        /// What is free.
        free_mib: u64,
    },
    /// The command line of the kernel is too long, or no text.
    #[error("--append: at most {most_bytes} bytes, and no control characters")]
    Append {
        /// The longest.
        most_bytes: usize,
    },

    // Slices of several CPUs.
    /// The length of a slice is none.
    #[error(
        "--slice {text}: {source}; a whole number of microseconds up to {SLICE_US_MAX}us, such as {SLICE_US}us, or `off`"
    )]
    Slice {
        /// As it was written.
        text: String,
        /// What is wrong with it.
        source: SliceError,
    },
    /// KVM has no slices.
    #[error("--slice {slice_us}us: KVM runs all CPUs at once: leave it out")]
    SliceOfKvm {
        /// As asked for.
        slice_us: u32,
    },
    /// One CPU has no slices.
    #[error(
        "--slice {slice_us}us: a guest with one CPU has no slices: give --smp 2, or leave it out"
    )]
    SliceOfOneCpu {
        /// As asked for.
        slice_us: u32,
    },
    /// This machine model is not stopped.
    #[error(
        "--slice {slice_us}us: slices begin where a snapshot ends, and this machine model has none: use x86-64"
    )]
    SliceOfMachine {
        /// As asked for.
        slice_us: u32,
    },
    /// This QEMU has no slices.
    #[error(
        "--slice {slice_us}us: QEMU {version} does not divide time among CPUs, 8.1 and later do: `tailbound lab qemu fetch` gets one"
    )]
    SliceOfQemu {
        /// As asked for.
        slice_us: u32,
        /// QEMU's.
        version: String,
    },

    // What runs.
    /// No kernel was asked for.
    #[error("no kernel: give --kernel, such as debian:6.12-rt")]
    NoKernel,
    /// No profile has this name.
    #[error("there is no profile `{name}`")]
    NoProfile {
        /// The name.
        name: String,
    },
    /// The name of a program is no text.
    #[error("--with {}: not a name in UTF-8", .path.display())]
    With {
        /// The program.
        path: PathBuf,
    },
    /// A length of time cannot be read.
    #[error("{option}: {source}")]
    Time {
        /// The option.
        option: &'static str,
        /// What is wrong with it.
        source: ParseTimeError,
    },
    /// A guest cannot run a benchmark.
    #[error(
        "--work {benchmark}: a guest holds one program, tailbound, and neither a shell nor a compiler; {remedy}"
    )]
    Benchmark {
        /// As it was asked for.
        benchmark: String,
        /// What to do instead.
        remedy: String,
    },
}

impl OptionError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Arch(_)
            | Self::RecordedArch(_)
            | Self::Machine { .. }
            | Self::MachineSwitch { .. }
            | Self::Smp { .. }
            | Self::Shift { .. }
            | Self::LittleMemory { .. }
            | Self::MuchMemory { .. }
            | Self::Append { .. }
            | Self::Slice { .. }
            | Self::SliceOfKvm { .. }
            | Self::SliceOfOneCpu { .. }
            | Self::SliceOfMachine { .. }
            | Self::NoKernel
            | Self::NoProfile { .. }
            | Self::With { .. }
            | Self::Time { .. }
            | Self::Benchmark { .. } => FailureKind::Usage,
            Self::NoMachine { .. } | Self::SliceOfQemu { .. } => FailureKind::Cannot,
        }
    }
}
