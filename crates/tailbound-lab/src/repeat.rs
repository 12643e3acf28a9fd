// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same run again, from what its file records; and what is not the same any more.
//!
//! Context: COLD.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tailbound_core::lab::LabRecord;

use crate::arch::Arch;
use crate::cell::Cell;
use crate::elf;
use crate::error::LabError;
use crate::hash;
use crate::kernel::{Kernel, KernelName};
use crate::machine::Machine;
use crate::target::Target;

/// The cell that `record` describes.
///
/// # Errors
/// A word this version does not know; a kernel or file that is not to be had, or not the
/// same any more.
pub fn cell(
    record: &LabRecord,
    guest: Option<PathBuf>,
    target: Option<&Target>,
    obtain: &mut dyn FnMut(&KernelName, Arch) -> Result<Kernel, LabError>,
) -> Result<Cell, LabError> {
    let unknown = record.unknown_fields();
    if !unknown.is_empty() {
        return Err(LabError::cannot(format!(
            "the run's lab record holds {}, which this version does not know: repeat it with the tailbound that made it",
            unknown.join(", ")
        )));
    }
    let arch: Arch = record.arch.parse().map_err(LabError::usage)?;
    let kvm = record.accelerator == "kvm";
    let machine = Machine::choose(arch, Some(&record.machine), kvm)?;
    let kernel = kernel(record, arch, obtain)?;
    let mut files = BTreeMap::new();
    for (path, sha256) in &record.files {
        // Programs stand in the guest where they stood here.
        let here = PathBuf::from(path);
        let of_target = target.and_then(|t| t.files.get(path)).cloned();
        let host = match of_target {
            Some(host) => host,
            None if here.is_file() => here,
            None => system_file(path, arch)?,
        };
        let found = hash::of_file(&host)?;
        if found != *sha256 {
            return Err(LabError::cannot(format!(
                "{} is not the file it was (SHA-256 {}, now {})",
                host.display(),
                short(sha256),
                short(&found)
            )));
        }
        files.insert(path.clone(), host);
    }
    Ok(Cell {
        kernel,
        machine,
        smp: record.smp,
        memory_mib: record.memory_mib,
        shift: record.shift,
        seed: record.seed,
        kvm,
        append: record.append.clone(),
        files,
        modules: target.map_or_else(Vec::new, |t| t.modules.clone()),
        guest,
        job: record.job.clone(),
    })
}

fn kernel(
    record: &LabRecord,
    arch: Arch,
    obtain: &mut dyn FnMut(&KernelName, Arch) -> Result<Kernel, LabError>,
) -> Result<Kernel, LabError> {
    let wanted = &record.kernel.sha256;
    let mut seen = Vec::new();
    // The name may mean a newer package today; the package's own name and version do not.
    let package = record.kernel.package.as_deref().and_then(|p| p.split_once(' '));
    let exact = package.map(|(name, version)| format!("debian:{name}={version}"));
    for name in [Some(record.kernel.name.clone()), exact].into_iter().flatten() {
        let parsed: KernelName = name.parse().map_err(LabError::usage)?;
        match obtain(&parsed, arch) {
            Ok(kernel) if kernel.record.sha256 == *wanted => {
                let record = record.kernel.clone();
                return Ok(Kernel { record, ..kernel });
            }
            Ok(kernel) => seen.push(format!(
                "{name} is now {} (SHA-256 {})",
                kernel.record.package.unwrap_or_else(|| "another image".to_owned()),
                short(&kernel.record.sha256)
            )),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(e) => seen.push(format!("{name}: {e}")),
        }
    }
    Err(LabError::cannot(format!(
        "the kernel of this run ({}, SHA-256 {}) is not to be had: {}",
        record.kernel.package.as_deref().unwrap_or(&record.kernel.name),
        short(wanted),
        seen.join("; ")
    )))
}

/// A library that stood in the guest's `/lib`, where this system keeps it.
fn system_file(path: &str, arch: Arch) -> Result<PathBuf, LabError> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut places = elf::system(arch).into_iter().map(|folder| folder.join(name));
    places.find(|p| p.is_file()).ok_or_else(|| LabError::cannot(format!("{path}, which was in that guest, is not here; give --target for a run that was made on one")))
}

fn short(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}

/// What the two records differ in, a sentence each: what explains different bytes.
#[must_use]
pub fn differences(before: &LabRecord, now: &LabRecord) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: &str, a: &str, b: &str| {
        if a != b {
            found.push(format!("{what}: was {a}, is {b}"));
        }
    };
    check("QEMU", &before.qemu, &now.qemu);
    check("tailbound in the guest", short(&before.guest_sha256), short(&now.guest_sha256));
    check("initramfs", short(&before.initramfs_sha256), short(&now.initramfs_sha256));
    check("kernel", short(&before.kernel.sha256), short(&now.kernel.sha256));
    check("command line", &before.command_line, &now.command_line);
    check("CPU model", &before.cpu, &now.cpu);
    found
}
