// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound lab qemu`.

use clap::{Args, Subcommand};

use crate::lazy::Lazy;

/// Subcommands about QEMU.
#[derive(Debug, Subcommand)]
pub(crate) enum LabQemu {
    /// List the system's QEMU and those that were fetched
    #[command(visible_alias = "ls")]
    List(Lazy<QemuListArgs>),
    /// Fetch a QEMU of Debian with its libraries into the lab's folder; nothing is installed
    Fetch(Lazy<QemuFetchArgs>),
    /// Remove one that was fetched
    #[command(visible_alias = "rm")]
    Remove(Lazy<QemuRemoveArgs>),
}

/// Arguments of `lab qemu list`.
#[derive(Debug, Args)]
pub(crate) struct QemuListArgs {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `lab qemu fetch`.
#[derive(Debug, Args)]
pub(crate) struct QemuFetchArgs {
    /// Architecture of the guests: `x86_64`, `aarch64`, `arm` [default: x86_64]
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Suite of Debian that it comes from, in the archives this machine uses
    #[arg(long, value_name = "SUITE", default_value = tailbound_lab::emulator::SUITE)]
    pub(crate) suite: String,
    /// Fetch the package lists anew
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress notes
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `lab qemu remove`.
#[derive(Debug, Args)]
pub(crate) struct QemuRemoveArgs {
    /// Its version, or the beginning of one: `10`
    #[arg(value_name = "VERSION")]
    pub(crate) version: String,
    /// Only the one for guests of this architecture
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
}
