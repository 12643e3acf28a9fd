// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run that is watched from within QEMU: the kernel's symbols, the plugin, the log.
//!
//! What the log says is `tailbound_paths`.

use std::fs::File;

use tailbound_paths::plan::{Guest, Plan};

use crate::arch::Arch;
use crate::boot::Progress;
use crate::cell::{Cell, Prepared};
use crate::emulator::Emulator;
use crate::error::{GuestError, LabError, WatchError};
use crate::machine::Accelerator;
use crate::run::{self, Made, Means, Watched};
use crate::symbols;

const SYMBOLS: &str = "/proc/kallsyms";
/// A log may be so long; it takes no room before it is written.
const LOG_BYTES: u64 = 16 << 30;
/// A log has room for so many CPUs.
const CPUS: u32 = tailbound_paths::record::CPUS as u32;

/// How such a guest is watched.
#[must_use]
pub fn guest(arch: Arch) -> Guest {
    match arch {
        Arch::X86_64 => Guest::X86_64,
        Arch::Aarch64 => Guest::Arm64,
        Arch::Arm => Guest::Arm32,
    }
}

/// Can such a guest be watched?
///
/// # Errors
/// Usage: why not, and what can.
pub fn possible(arch: Arch, accelerator: Accelerator, smp: u32) -> Result<(), LabError> {
    if accelerator == Accelerator::Kvm {
        return Err(WatchError::Kvm.into());
    }
    if smp != 1 && arch != Arch::X86_64 {
        return Err(WatchError::SeveralCpus.into());
    }
    if smp > CPUS {
        return Err(WatchError::TooManyCpus { most: CPUS, smp }.into());
    }
    Ok(())
}

/// For what is known of one CPU only: `who` does it.
///
/// # Errors
/// Usage: there are several.
pub fn one_cpu(verb: &'static str, smp: u32) -> Result<(), LabError> {
    if smp == 1 {
        return Ok(());
    }
    Err(WatchError::OneCpu { verb }.into())
}

/// Several CPUs are watched while they execute in short slices.
///
/// # Errors
/// They are not short.
pub fn in_slices(prepared: &Prepared) -> Result<(), LabError> {
    let record = &prepared.record;
    if record.smp == 1 || record.slice_ns > 0 {
        return Ok(());
    }
    Err(WatchError::LongSlices.into())
}

/// The plugin for this QEMU.
///
/// # Errors
/// There is none for this machine.
pub fn plugin(emulator: &Emulator) -> Result<&'static [u8], LabError> {
    let plugin = match emulator.major() {
        Some(0..=8) => tailbound_paths::PLUGIN_1,
        _ => tailbound_paths::PLUGIN_2,
    };
    if plugin.is_empty() {
        return Err(WatchError::NoPlugin.into());
    }
    Ok(plugin)
}

/// The kernel's symbols, as this guest has them: the text of /proc/kallsyms, with addresses as the plugin tells them. Once
/// a guest told them they are kept beside its snapshot.
///
/// # Errors
/// As [`run::run`].
pub fn symbols(
    cell: &Cell,
    means: &Means<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<String, LabError> {
    let place = run::place(&cell.prepare(means.emulator)?, means)?;
    if let Some(text) = place.as_ref().and_then(symbols::read) {
        return Ok(text);
    }
    let files = run::collect(cell, means, &[SYMBOLS.to_owned()], progress)?;
    let guest = guest(cell.kernel.arch);
    let text =
        files.get(SYMBOLS).map(|bytes| guest.told(String::from_utf8_lossy(bytes).into_owned()));
    let text = text.ok_or(GuestError::NotSent { name: SYMBOLS })?;
    if let Some(place) = &place {
        symbols::keep(place, &text);
    }
    Ok(text)
}

/// The run of what is prepared and can be watched ([`possible`]), watched by `plan`; second value: the log.
///
/// # Errors
/// As [`run::run`].
pub fn prepared_watched(
    prepared: &Prepared,
    means: &Means<'_>,
    plan: &Plan,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Made, File), LabError> {
    let plugin = plugin(means.emulator)?;
    let watched = Watched { plugin, plan: &plan.bytes(), log_bytes: LOG_BYTES };
    run::prepared_watched(prepared, means, watched, progress)
}
