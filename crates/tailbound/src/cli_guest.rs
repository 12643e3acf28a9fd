// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments about guests of the lab, of every verb that can use it.

use std::path::PathBuf;

use clap::Args;

use crate::cli_color::ColorArg;

/// The guest.
#[derive(Debug, Args)]
pub(crate) struct GuestArgs {
    /// A target description (TOML) instead of a kernel: image, files, options and testers of a dual kernel, see docs/dual-kernels.md
    #[arg(short, long, value_name = "FILE", help_heading = "Guest")]
    pub(crate) target: Vec<PathBuf>,
    /// Architecture of the guest: `x86_64`, `aarch64`, `arm` [default: x86_64]
    #[arg(long, value_name = "ARCH", help_heading = "Guest")]
    pub(crate) arch: Option<String>,
    /// QEMU's machine model: `pc`, `q35`; `virt`; `vexpress-a9` [default: pc, virt, vexpress-a9]
    #[arg(long, value_name = "MODEL", help_heading = "Guest")]
    pub(crate) machine: Option<String>,
    /// CPUs of the guest; QEMU runs them alternately, see docs/virtual-time.md [default: 1]
    #[arg(long, value_name = "N", help_heading = "Guest")]
    pub(crate) smp: Option<u32>,
    /// Virtual time between two ends of the CPUs' slices, or `off`: shorter is nearer to CPUs that run at once, and slower on the host; QEMU 8.1 or later, x86-64 [default: 4us]
    #[arg(long, value_name = "TIME", help_heading = "Guest")]
    pub(crate) slice: Option<String>,
    /// Memory of the guest in MiB [default: 768]
    #[arg(long, value_name = "MIB", help_heading = "Guest")]
    pub(crate) memory: Option<u32>,
    /// One instruction lasts 2^N ns [default: 0]
    #[arg(long, value_name = "N", help_heading = "Guest")]
    pub(crate) shift: Option<u8>,
    /// Seed of a repeatable run: with each, loads and activations begin elsewhere among the periods of the kernel [default: 1]
    #[arg(long, value_name = "N", help_heading = "Guest")]
    pub(crate) seed: Option<u32>,
    /// Use KVM: fast, but in real time of the host, and noisy; the figures are labelled as such
    #[arg(long, help_heading = "Guest")]
    pub(crate) kvm: bool,
    /// Add a program with its libraries to the guest, at the same path
    #[arg(long, value_name = "FILE", help_heading = "Guest")]
    pub(crate) with: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) tune: TuneInLab,
}

/// What guests apply before they measure.
#[derive(Debug, Args)]
pub(crate) struct TuneInLab {
    /// Apply a profile in the guest before the measurement, and undo it after it: the name of one (`tailbound tune profiles`) or a file; several times to compare, '' applies none
    #[arg(long, value_name = "PROFILE", help_heading = "Guest")]
    pub(crate) tune: Vec<String>,
    /// CPUs of the guest for real-time work, as a list: for --tune
    #[arg(long, value_name = "LIST", help_heading = "Guest")]
    pub(crate) rt_cpus: Option<String>,
}

/// How guests are run; no figure depends on it.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Number of guests in parallel [default: one per core]
    #[arg(short, long, value_name = "N", help_heading = "Host")]
    pub(crate) jobs: Option<usize>,
    /// QEMU: a program, a version that was fetched (`tailbound lab qemu list`), or `system` [default: $TAILBOUND_QEMU, or qemu-system-ARCH on the path; one that was fetched where that one cannot do it]
    #[arg(long, value_name = "QEMU", help_heading = "Host")]
    pub(crate) qemu: Option<PathBuf>,
    /// The tailbound program for the guest [default: this one, or the one beside it for the guest's architecture]
    #[arg(long, value_name = "FILE", help_heading = "Host")]
    pub(crate) guest: Option<PathBuf>,
    /// Boot each time instead of resuming from a snapshot after boot
    #[arg(long, help_heading = "Host")]
    pub(crate) no_snapshot: bool,
    /// Time limit of one guest, in seconds of the host
    #[arg(long, value_name = "S", default_value_t = 3600, help_heading = "Host")]
    pub(crate) host_limit: u64,
    /// Ask apt again what a kernel's name means today
    #[arg(long, help_heading = "Host")]
    pub(crate) refresh: bool,
    /// Print the answer as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// No progress
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) color: ColorArg,
}
