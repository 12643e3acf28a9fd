// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same run again, from what its file records; and what is not the same any more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::lab::LabRecord;

use crate::arch::Arch;
use crate::bench::{self, Bench};
use crate::cell::Cell;
use crate::elf;
use crate::error::{GuestError, LabError, OptionError, RepeatError};
use crate::hash;
use crate::kernel::{Kernel, KernelName};
use crate::machine::{Accelerator, Machine};
use crate::run::Made;
use crate::slices::Slice;
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
        return Err(RepeatError::LaterVersion { unknown }.into());
    }
    let arch: Arch = record.arch.parse().map_err(OptionError::RecordedArch)?;
    match record.accelerator.as_str() {
        "tcg" => {}
        "kvm" => return Err(RepeatError::Kvm.into()),
        _ => return Err(RepeatError::Accelerator.into()),
    }
    if record.files.len() > FILES_MAX {
        return Err(RepeatError::TooManyFiles { most: FILES_MAX }.into());
    }
    let machine = Machine::choose(arch, Some(&record.machine), Accelerator::Tcg)?;
    let kernel = kernel(record, arch, obtain)?;
    let mut files = BTreeMap::new();
    for (path, sha256) in &record.files {
        // Programs stand in the guest where they stood here. What it names is only a file's place:
        // its bytes must be those that were recorded.
        if !plain(path) {
            return Err(RepeatError::Place { path: path.clone() }.into());
        }
        let here = PathBuf::from(path);
        let of_target = target.and_then(|t| t.files.get(path)).cloned();
        let host = match of_target {
            Some(host) => host,
            None if here.is_file() => here,
            None => system_file(path, arch)?,
        };
        let found = hash::of_file(&host)?;
        if found != *sha256 {
            let (then, now) = (short(sha256).to_owned(), short(&found).to_owned());
            return Err(RepeatError::OtherFile { path: host, then, now }.into());
        }
        files.insert(path.clone(), host);
    }
    let cell = Cell {
        kernel,
        machine,
        smp: record.smp,
        memory_mib: record.memory_mib,
        shift: record.shift,
        slice: match record.slice_ns {
            0 => Slice::Long,
            slice_ns => Slice::of_ns(slice_ns).ok_or(RepeatError::Slice { slice_ns })?,
        },
        seed: record.seed,
        kvm: false,
        append: record.append.clone(),
        files,
        modules: target.map_or_else(Vec::new, |t| t.modules.clone()),
        guest,
        job: record.job.clone(),
    };
    cell.check().map(|()| cell)
}

/// More files than this are no guest of ours.
const FILES_MAX: usize = 1024;

/// An absolute path of an ordinary file: none of what the kernel makes up.
fn plain(path: &str) -> bool {
    let hidden = ["/proc/", "/sys/", "/dev/", "/run/"].iter().any(|f| path.starts_with(f));
    path.starts_with('/') && !hidden && !path.split('/').any(|part| part == "..")
}

fn kernel(
    record: &LabRecord,
    arch: Arch,
    obtain: &mut dyn FnMut(&KernelName, Arch) -> Result<Kernel, LabError>,
) -> Result<Kernel, LabError> {
    let wanted = &record.kernel.sha256;
    let mut tried = Vec::new();
    // The name may mean a newer package today; the package's own name and version do not.
    let package = record.kernel.package.as_deref().and_then(|p| p.split_once(' '));
    let exact = package.map(|(name, version)| format!("debian:{name}={version}"));
    for name in [Some(record.kernel.name.clone()), exact].into_iter().flatten() {
        let parsed: KernelName = name.parse()?;
        match obtain(&parsed, arch) {
            Ok(kernel) if kernel.record.sha256 == *wanted => {
                let record = record.kernel.clone();
                return Ok(Kernel { record, ..kernel });
            }
            Ok(kernel) => tried.push(format!(
                "{name} is now {} (SHA-256 {})",
                kernel.record.package.unwrap_or_else(|| "another image".to_owned()),
                short(&kernel.record.sha256)
            )),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(e) => tried.push(format!("{name}: {e}")),
        }
    }
    let package = record.kernel.package.as_ref().unwrap_or(&record.kernel.name).clone();
    Err(RepeatError::KernelMissing { package, sha256: short(wanted).to_owned(), tried }.into())
}

/// A library that stood in the guest's `/lib`, where this system keeps it.
fn system_file(path: &str, arch: Arch) -> Result<PathBuf, LabError> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut places = elf::system(arch).into_iter().map(|folder| folder.join(name));
    let found = places.find(|p| p.is_file());
    found.ok_or_else(|| RepeatError::FileMissing { path: path.to_owned() }.into())
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

/// A run that was made again.
#[derive(Debug)]
pub struct Repeated {
    /// As it is now.
    pub made: Made,
    /// Number of bytes of its file.
    pub bytes: usize,
    /// The first line that is another one; none where both files are the same.
    pub first_different_line: Option<usize>,
    /// What explains it.
    pub differences: Vec<String>,
    /// QEMU, as it names itself.
    pub qemu: String,
}

impl Repeated {
    /// Does its file have the same bytes?
    #[must_use]
    pub fn is_identical(&self) -> bool {
        self.first_different_line.is_none()
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "identical": self.is_identical(), "bytes": self.bytes,
            "first_different_line": self.first_different_line, "differences": self.differences,
        })
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let Some(line) = self.first_different_line else {
            let Self { bytes, qemu, .. } = self;
            return format!("Identical: {bytes} bytes, repeated with {qemu} on this machine.");
        };
        let mut text = format!("Different, from line {line} on.");
        for reason in &self.differences {
            text.push_str(&format!("\n  {reason}"));
        }
        if self.differences.is_empty() {
            text.push_str(
                "\n  Everything that a run is a function of is the same: something is not pinned. Please report it with both files.",
            );
        }
        text
    }
}

/// Makes `run` again, whose file has the bytes `before`.
///
/// # Errors
/// As [`cell`] and [`crate::run()`].
pub fn again(
    bench: &Bench<'_>,
    run: &Run,
    before: &[u8],
    target: Option<&Path>,
) -> Result<Repeated, LabError> {
    let record = run.header.lab.as_deref().ok_or(LabError::Bug)?;
    let emulator = bench.ready_again(record)?;
    let target = target.map(Target::read).transpose()?;
    let obtain = &mut |name: &KernelName, arch| bench.obtain(name, arch);
    let cell = cell(record, bench.guest(), target.as_ref(), obtain)?;
    let mut result = None;
    bench.make(&[cell], &emulator, &mut |_, made| {
        let note = made.as_ref().map_or_else(|_| "failed".to_owned(), |m| m.summary("repeated"));
        result = Some(made);
        note
    })?;
    let made = result.ok_or(GuestError::NotRun)??;
    let now = bench::bytes(&made.run)?;
    let record_now = made.run.header.lab.as_deref();
    Ok(Repeated {
        bytes: now.len(),
        first_different_line: first_difference(before, &now),
        differences: record_now.map_or_else(Vec::new, |new| differences(record, new)),
        qemu: emulator.version,
        made,
    })
}

fn first_difference(before: &[u8], now: &[u8]) -> Option<usize> {
    let (mut a, mut b) = (before.split(|c| *c == b'\n'), now.split(|c| *c == b'\n'));
    (1usize..).find_map(|line| match (a.next(), b.next()) {
        (None, None) => Some(None),
        (x, y) if x == y => None,
        _ => Some(Some(line)),
    })?
}

#[cfg(test)]
mod tests {
    use tailbound_core::lab::KernelRecord;

    use super::*;

    /// A record of a run of the kernel in `folder`, which is there.
    fn record(folder: &std::path::Path) -> LabRecord {
        let mut image = vec![0u8; 0x400];
        image.splice(0x202..0x206, *b"HdrS");
        let path = folder.join("bzImage");
        std::fs::write(&path, &image).unwrap();
        LabRecord {
            arch: "x86_64".to_owned(),
            machine: "pc".to_owned(),
            smp: 1,
            memory_mib: 64,
            accelerator: "tcg".to_owned(),
            kernel: KernelRecord {
                name: format!("path:{}", path.display()),
                package: None,
                sha256: hash::of_bytes(&image),
                ..KernelRecord::default()
            },
            ..LabRecord::default()
        }
    }

    fn repeated(record: &LabRecord) -> Result<Cell, LabError> {
        let folder = tempfile::tempdir().unwrap();
        let store = crate::Store::at(folder.path());
        cell(record, None, None, &mut |name, arch| {
            assert!(!matches!(name, KernelName::Debian(_)), "something would be fetched");
            crate::kernel::obtain(name, arch, &store, &mut |_| {})
        })
    }

    #[test]
    fn what_a_record_holds_reaches_no_qemu_unless_it_is_on_a_list() {
        let folder = tempfile::tempdir().unwrap();
        let good = record(folder.path());
        assert_eq!(repeated(&good).unwrap().machine.model, "pc");
        type Change = fn(&mut LabRecord);
        let hostile: [(&str, Change); 13] = [
            ("dumpdtb", |r| r.machine = "pc,dumpdtb=/etc/passwd".to_owned()),
            ("not known", |r| r.machine = "none".to_owned()),
            ("--smp", |r| r.smp = 4_000_000_000),
            ("--smp", |r| r.smp = 0),
            ("--memory", |r| r.memory_mib = u32::MAX),
            ("--memory", |r| r.memory_mib = 0),
            ("--shift", |r| r.shift = 255),
            ("slice", |r| r.slice_ns = 1500),
            ("accelerator", |r| r.accelerator = "xen".to_owned()),
            ("KVM", |r| r.accelerator = "kvm".to_owned()),
            ("--append", |r| r.append = "quiet\nmore".to_owned()),
            ("--append", |r| r.append = "x".repeat(100_000)),
            ("is not one of", |r| r.arch = "../x86_64".to_owned()),
        ];
        for (says, change) in hostile {
            let mut bad = good.clone();
            change(&mut bad);
            let e = repeated(&bad).expect_err(says);
            assert_eq!(e.kind(), tailbound_core::FailureKind::Usage, "{e}");
            assert!(e.to_string().contains(says), "{says}: {e}");
        }
        // What QEMU is told of CPU and command line is ours, whatever stands in the record.
        let lying = LabRecord {
            cpu: "max,x-something=/etc/passwd".to_owned(),
            command_line: "init=/bin/sh".to_owned(),
            ..good.clone()
        };
        let cell = repeated(&lying).unwrap();
        assert_eq!(
            cell.machine,
            Machine::choose(Arch::X86_64, Some("pc"), Accelerator::Tcg).unwrap()
        );
        assert!(cell.append.is_empty());
    }

    #[test]
    fn files_and_kernels_that_a_record_names_are_read_only_where_they_end_and_fit() {
        let folder = tempfile::tempdir().unwrap();
        let good = record(folder.path());
        for path in ["/proc/kmsg", "/dev/zero", "/etc/../proc/kmsg", "relative", "/etc/passwd"] {
            let files = [(path.to_owned(), "0".repeat(64))].into();
            let e = repeated(&LabRecord { files, ..good.clone() }).unwrap_err().to_string();
            assert!(e.contains("no place of a program") || e.contains("is not the file"), "{e}");
        }
        let pipe = folder.path().join("pipe");
        #[expect(clippy::disallowed_methods, reason = "makes a pipe and ends")]
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|s| s.success()));
        for image in ["/dev/zero", "/proc/kcore", &pipe.display().to_string()] {
            let mut bad = good.clone();
            bad.kernel.name = format!("path:{image}");
            assert!(repeated(&bad).is_err(), "{image}");
        }
        let many = (0..=FILES_MAX).map(|n| (format!("/f{n}"), String::new())).collect();
        assert!(repeated(&LabRecord { files: many, ..good }).is_err());
    }
}
