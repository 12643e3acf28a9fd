// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound lab`.
//!
//! Context: COLD.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::ColorArg;
use crate::cli_config::InLab;
use crate::lazy::Lazy;

/// What the lab can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Boot one or more kernels in QEMU and measure on each; the results are byte-identical on any host
    Run(Lazy<LabRunArgs>),
    /// Repeat a lab run from its own record and compare the files byte for byte
    Repeat(Lazy<LabRepeatArgs>),
    /// Name the kernel's longest sections and the way of the latest wake-ups, instruction by instruction
    Paths(Lazy<LabPathsArgs>),
    /// Find the instant from which a late sample of a run was inevitable, and name what happened there
    Why(Lazy<crate::cli_lab_why::LabWhyArgs>),
    /// Measure every kernel with every load: a run file each, one table, one report; resumes an interrupted matrix
    Matrix(Lazy<LabMatrixArgs>),
    /// List, verify or remove the contents of the lab's folder
    Cache(Lazy<LabCacheArgs>),
    /// Kernels by name: list, fetch, build from source
    #[command(subcommand)]
    Kernel(crate::cli_lab_kernel::LabKernel),
    /// QEMU beside the system's: list, fetch, remove
    #[command(subcommand)]
    Qemu(crate::cli_lab_qemu::LabQemu),
}

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

/// What is measured in guests.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// The probe, with options after a colon: any probe of `tailbound measure --help` [default: cyclic]
    #[arg(long, value_name = "PROBE[:OPTIONS]", help_heading = "Measurement")]
    pub(crate) probe: Option<String>,
    #[command(flatten)]
    pub(crate) measurement: InLab,
    /// Further options of the measurement, from a run configuration (TOML)
    #[arg(short, long, alias = "campaign", value_name = "FILE", help_heading = "Measurement")]
    pub(crate) config: Option<PathBuf>,
    /// Measure with another program: a command line that begins with its path, with --with for its file; or the names of a --target's testers, separated by commas; `own` is Tailbound's loop, `all` is everything
    #[arg(long, value_name = "CMD", help_heading = "Measurement")]
    pub(crate) tester: Option<String>,
    /// Format of the tester's output, if it cannot be detected
    #[arg(long, value_name = "FORMAT", requires = "tester", help_heading = "Measurement")]
    pub(crate) format: Option<String>,
    /// File in the guest that the tester writes its output to, if not standard output
    #[arg(long, value_name = "FILE", requires = "tester", help_heading = "Measurement")]
    pub(crate) tester_file: Option<String>,
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

/// Which kernels, under which loads, measured how.
#[derive(Debug, Args)]
pub(crate) struct SubjectArgs {
    /// `debian:6.12-rt`, `debian:6.12`, `path:VMLINUZ[,MODULES]`, `build:NAME`; several are compared
    #[arg(short, long, value_name = "KERNEL", help_heading = "Guest")]
    pub(crate) kernel: Vec<String>,
    /// Append to the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, help_heading = "Guest")]
    pub(crate) append: Option<String>,
    /// Loads during the measurement: hackbench, memory, … (all of them: `tailbound load --help`), or `none` [default: hackbench]
    #[arg(short = 'L', long, value_name = "LOADS", help_heading = "Measurement")]
    pub(crate) load: Vec<String>,
    #[command(flatten)]
    pub(crate) work: crate::cli_config::BenchmarkArgs,
    #[command(flatten)]
    pub(crate) guest: GuestArgs,
    #[command(flatten)]
    pub(crate) probe: ProbeArgs,
}

/// Arguments of `lab run`.
#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    #[command(flatten)]
    pub(crate) subject: SubjectArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Watch each run from within the emulator too: longest sections of the kernel, way of the latest wake-ups; see docs/paths.md
    #[arg(long, help_heading = "Measurement")]
    pub(crate) paths: bool,
    /// Where the run file goes; a folder for several kernels [default: named after kernel, load and probe, with a number if that exists]
    #[arg(short, long, value_name = "PATH", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Where the HTML report goes [default: beside the run file; `lab.html` beside several]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
}

/// Arguments of `lab paths`.
#[derive(Debug, Args)]
pub(crate) struct LabPathsArgs {
    #[command(flatten)]
    pub(crate) subject: SubjectArgs,
    /// State the theoretical bound on the scheduling latency, see docs/theory.md
    #[arg(long, help_heading = "Output")]
    pub(crate) theory: bool,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments of `lab repeat`.
#[derive(Debug, Args)]
pub(crate) struct LabRepeatArgs {
    /// A run file made in the lab
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The target description, for a run that was made with one
    #[arg(short, long, value_name = "FILE", help_heading = "Guest")]
    pub(crate) target: Option<PathBuf>,
    /// Keep the new run file here
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Arguments of `lab cache`.
#[derive(Debug, Args)]
pub(crate) struct LabCacheArgs {
    /// Check everything that has a hash; exit status 1 if something is damaged
    #[arg(long)]
    pub(crate) verify: bool,
    /// Remove what exceeds the limits, kernels, sources and builds included, least recently used first
    #[arg(long)]
    pub(crate) prune: bool,
    /// Remove everything, builds included
    #[arg(long, conflicts_with = "prune")]
    pub(crate) clear: bool,
    /// Size limit of the folder [default: $TAILBOUND_LAB_SIZE, or 8G]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,
    /// Age limit of unused files [default: $TAILBOUND_LAB_AGE, or 30d]
    #[arg(long, value_name = "AGE")]
    pub(crate) max_age: Option<String>,
    /// Print the answer as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Arguments of `lab matrix`.
#[derive(Debug, Args)]
pub(crate) struct LabMatrixArgs {
    /// A TOML file: kernels, append, system, loads, campaign; options on the command line take precedence
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Kernels, separated by spaces or given several times
    #[arg(short, long, value_name = "KERNELS", value_delimiter = ' ', help_heading = "Guest")]
    pub(crate) kernels: Vec<String>,
    /// Loads (all of them: `tailbound load --help`), separated by spaces or given several times; commas join what runs together
    #[arg(
        short = 'L',
        long,
        value_name = "LOADS",
        value_delimiter = ' ',
        help_heading = "Measurement"
    )]
    pub(crate) loads: Vec<String>,
    /// Append to the kernels' command lines; several times for several systems; '' appends nothing
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, help_heading = "Guest")]
    pub(crate) append: Vec<String>,
    #[command(flatten)]
    pub(crate) guest: GuestArgs,
    #[command(flatten)]
    pub(crate) probe: ProbeArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Watch each run from within the emulator too: longest sections of the kernel of each cell; see docs/paths.md
    #[arg(long, help_heading = "Measurement")]
    pub(crate) paths: bool,
    /// Folder of the run files and the report [default: matrix; if that was made with other options, matrix-2 and so on]
    #[arg(short, long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Also write one plot of all kernels under one load: `histogram=FILE` or `survival=FILE`
    #[arg(long, value_name = "KIND=FILE", value_parser = picture, help_heading = "Output")]
    pub(crate) svg: Vec<(String, PathBuf)>,
    /// Make cells again that were made with different options
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
}

/// `survival=FILE`
fn picture(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((kind @ ("histogram" | "survival"), file)) if !file.is_empty() => {
            Ok((kind.to_owned(), PathBuf::from(file)))
        }
        _ => Err("expected histogram=FILE or survival=FILE".to_owned()),
    }
}
