// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `monitor`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// The probe's CPU where none is named.
pub(crate) const AUTO: &str = "auto";

/// By what wake-ups are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Way {
    /// Programs in the kernel (BPF): CONFIG_DEBUG_INFO_BTF, CAP_BPF and CAP_PERFMON
    Bpf,
    /// The kernel's events in a trace instance: tracefs and root; costs more
    Instance,
}

/// Arguments of `monitor`.
#[derive(Debug, Args)]
#[command(
    after_help = "What the lines hold, what it costs and how it runs as a service: docs/monitor.md. Programs in the kernel (BPF) count \
how long each real-time thread waits from its wake-up until it has a CPU; where the kernel does not allow them, a trace instance does. Nothing stays in the kernel when this \
ends. Needs root, or CAP_BPF and CAP_PERFMON; --record and --by instance root and tracefs. Ctrl-C and SIGTERM end it with the last window written; SIGHUP opens the file again.\n\
Exit status: 0; 2 usage; 3 this machine or user cannot.\n\
Examples:\n  \
tailbound monitor --out /var/log/tailbound/monitor.jsonl --listen 127.0.0.1:9732\n  \
tailbound monitor --every 10s --threshold 200us -D 1min\n  \
tailbound monitor --threshold 1ms --record /var/lib/tailbound/late --keep 20 --out /var/log/tailbound/monitor.jsonl\n  \
tailbound monitor --out /var/log/tailbound/monitor.jsonl --upload https://farm.example:8787 --token-file /etc/tailbound/monitor.token"
)]
pub(crate) struct MonitorArgs {
    /// Length of a window
    #[arg(long, value_name = "TIME", default_value = "5min")]
    pub(crate) every: String,
    /// Write each wake-up that waited longer too, by itself, with who had the CPU
    #[arg(short, long, value_name = "TIME")]
    pub(crate) threshold: Option<String>,
    /// Write each thread that could run and has not for so long, with who has its CPU; `off`: do not look
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) starving: String,
    /// Lend such a thread CPU time for 3 s, one at a time: SCHED_DEADLINE with this budget and period, such as 20us/1s. It goes before every real-time thread
    #[arg(long, value_name = "RUNTIME/PERIOD")]
    pub(crate) boost_starving: Option<String>,
    /// Append the lines (JSON) to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Keep the kernel's last events, and write them into this folder when a wake-up waited longer than --threshold: files for `tailbound blame` and trace-cmd
    #[arg(long, value_name = "FOLDER", requires = "threshold")]
    pub(crate) record: Option<PathBuf>,
    /// With --record: keep so many files; the oldest go first
    #[arg(long, value_name = "N", default_value_t = 10, requires = "record", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) keep: u32,
    /// Count by programs in the kernel, or by a trace instance of its own [default: bpf, and instance where the kernel does not allow it]
    #[arg(long, value_enum, value_name = "WAY")]
    pub(crate) by: Option<Way>,
    /// Begin a light probe too, for a machine where nothing real-time runs: one thread that sleeps and wakes ten times a second, with the lowest real-time priority, on this CPU [default: the first that is not isolated]
    #[arg(long, value_name = "CPU", num_args = 0..=1, default_missing_value = AUTO)]
    pub(crate) probe: Option<String>,
    /// Answer Prometheus at /metrics of this address, which must be one of this machine alone
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Hand run files with the windows in to this server of `tailbound serve`: https://NAME:PORT; plain http to this machine alone
    #[cfg(feature = "agent")]
    #[arg(long, value_name = "URL", requires = "token_file")]
    pub(crate) upload: Option<String>,
    /// With --upload: file with this machine's token, which others must not read
    #[cfg(feature = "agent")]
    #[arg(long, value_name = "FILE", requires = "upload")]
    pub(crate) token_file: Option<PathBuf>,
    /// With --upload: certificates (PEM) of the authorities to believe, instead of the machine's own
    #[cfg(feature = "agent")]
    #[arg(long, value_name = "FILE", requires = "upload")]
    pub(crate) ca: Option<PathBuf>,
    /// With --upload: allow plain http to another machine: only where something else encrypts the way
    #[cfg(feature = "agent")]
    #[arg(long, requires = "upload")]
    pub(crate) insecure_http: bool,
    /// With --upload: where run files are kept until the server has them
    #[cfg(feature = "agent")]
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/lib/tailbound/monitor",
        requires = "upload"
    )]
    pub(crate) spool: PathBuf,
    /// With --upload: most MiB that wait there; beyond it the oldest file goes, and is counted
    #[cfg(feature = "agent")]
    #[arg(long, value_name = "MIB", default_value_t = 64, requires = "upload", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) spool_max: u32,
    /// With --upload: length of a run file; it ends with a window
    #[cfg(feature = "agent")]
    #[arg(long, value_name = "TIME", default_value = "1h", requires = "upload")]
    pub(crate) upload_every: String,
    /// Monitor for this long [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
}
