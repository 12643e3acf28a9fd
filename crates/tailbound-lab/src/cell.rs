// SPDX-License-Identifier: MIT OR Apache-2.0
//! One cell of the lab: everything a run is a function of, brought together.
//!
//! Context: COLD. Units: MiB, s.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tailbound_core::lab::{Job, LabRecord};
use tailbound_core::limits;
use tailbound_sys::given;

use crate::cpio::Tree;
use crate::error::LabError;
use crate::hash;
use crate::kernel::{Config, Kernel, modules};
use crate::machine::Machine;
use crate::qemu::{Emulator, Setup};
use crate::store::Store;
use crate::{elf, program};

/// What randomness, addresses and the console are pinned to on every guest's command line.
///
/// No entropy from CPU or loader, no address randomisation (so that kernels compare), a
/// console that says only what ends a kernel, restart at once after a panic, and panic where a
/// CPU did not schedule for 20 s of its own time.
const PINNED: &str = "panic=-1 softlockup_panic=1 nokaslr norandmaps random.trust_cpu=off random.trust_bootloader=off loglevel=3 rdinit=/init";

/// Modules that the house's loads and probes use, where the kernel has them as modules.
const MODULES: &[&str] = &["veth"];

/// Folders of the guest that something is mounted on, so that added files would not be seen.
const HIDDEN: &[&str] = &["/dev/", "/proc/", "/run/", "/sys/", "/tmp/"];

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The kernel.
    pub kernel: Kernel,
    /// The machine model.
    pub machine: Machine,
    /// CPUs.
    pub smp: u32,
    /// Memory.
    pub memory_mib: u32,
    /// One instruction is 2^shift ns.
    pub shift: u8,
    /// Seed of everything random.
    pub seed: u32,
    /// The host's time instead of virtual time.
    pub kvm: bool,
    /// Added to the kernel's command line.
    pub append: String,
    /// Files added to the guest: path there, path here. Their libraries are in it.
    pub files: BTreeMap<String, PathBuf>,
    /// Modules that are loaded at boot, in this order: files here.
    pub modules: Vec<PathBuf>,
    /// The program for the guest, where it is not this one.
    pub guest: Option<PathBuf>,
    /// What the guest does.
    pub job: Job,
}

/// Ready to boot.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// For QEMU.
    pub setup: Setup,
    /// For the run file.
    pub record: LabRecord,
    /// The job, as the guest reads it.
    pub job: Vec<u8>,
    /// What everything up to the job depends on.
    pub key: String,
}

impl Cell {
    /// Brings everything together.
    ///
    /// # Errors
    /// A file is missing, a program does not fit, a module needs what the kernel lacks.
    pub fn prepare(&self, emulator: &Emulator, store: &Store) -> Result<Prepared, LabError> {
        let job = serde_json::to_vec(&self.job).map_err(LabError::cannot)?;
        let guest = program::find(self.kernel.arch, self.guest.as_deref())?;
        let (tree, guest_sha256, files) = self.tree(&guest, &job)?;
        let archive = tree.archive()?;
        let initramfs_sha256 = hash::of_bytes(&archive);
        let initramfs = store.room("initramfs")?.join(format!("{initramfs_sha256}.cpio"));
        if !initramfs.is_file() {
            store.write_whole(&initramfs, &archive)?;
        }
        let setup = Setup {
            machine: self.machine.clone(),
            smp: self.smp,
            memory_mib: self.memory_mib,
            shift: self.shift,
            seed: self.seed,
            kvm: self.kvm,
            image: self.kernel.image.clone(),
            initramfs,
            command_line: self.command_line(),
            device_tree: self.machine.device_tree(&self.kernel)?,
        };
        let record = LabRecord {
            arch: self.kernel.arch.name().to_owned(),
            machine: self.machine.model.clone(),
            cpu: self.machine.cpu.clone(),
            smp: self.smp,
            memory_mib: self.memory_mib,
            shift: self.shift,
            seed: self.seed,
            accelerator: if self.kvm { "kvm" } else { "tcg" }.to_owned(),
            qemu: emulator.version.clone(),
            kernel: self.kernel.record.clone(),
            append: self.append.clone(),
            command_line: setup.command_line.clone(),
            initramfs_sha256,
            files,
            guest_sha256,
            job: self.job.clone(),
            later: BTreeMap::new(),
        };
        let without_job = LabRecord { job: Job::default(), ..record.clone() };
        let key = serde_json::to_vec(&without_job).map_err(LabError::cannot)?;
        Ok(Prepared { setup, record, job, key: hash::of_bytes(&key) })
    }

    fn command_line(&self) -> String {
        let job = if self.machine.stops { "fw_cfg" } else { "file" };
        let mut line = format!(
            "console={} {PINNED} tailbound.results={} tailbound.job={job}",
            self.machine.console, self.machine.results
        );
        if !self.append.trim().is_empty() {
            line.push(' ');
            line.push_str(self.append.trim());
        }
        line
    }

    /// The guest's files; also the hash of its program and of the files that were added.
    fn tree(
        &self,
        guest: &Path,
        job: &[u8],
    ) -> Result<(Tree, String, BTreeMap<String, String>), LabError> {
        let read = |path: &Path| {
            given::read(path, limits::OBJECT_BYTES_MAX).map_err(|e| LabError::file(path, &e))
        };
        let mut tree = Tree::default();
        let program = read(guest)?;
        let guest_sha256 = hash::of_bytes(&program);
        tree.file("tailbound", program);
        tree.link("init", "tailbound");
        tree.character_device("dev/console", 5, 1);
        tree.folder("lib64");
        for (path, host) in elf::libraries(guest, self.kernel.arch, &[])? {
            tree.file(&path, read(&host)?);
        }
        if !self.machine.stops {
            tree.file("job.json", job.to_vec());
        }
        let mut list = String::new();
        for module in self.all_modules()? {
            let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let path = format!("/modules/{name}");
            tree.file(&path, read(&module)?);
            list.push_str(&path);
            list.push('\n');
        }
        tree.file("modules.list", list.into_bytes());
        let mut hashes = BTreeMap::new();
        for (path, host) in &self.files {
            if let Some(folder) = HIDDEN.iter().find(|folder| path.starts_with(*folder)) {
                return Err(LabError::usage(format!(
                    "{path} cannot be added to the guest: something else is mounted on {folder} there; put the file elsewhere, such as /usr/local/bin"
                )));
            }
            let bytes = read(host)?;
            hashes.insert(path.clone(), hash::of_bytes(&bytes));
            tree.file(path, bytes);
        }
        Ok((tree, guest_sha256, hashes))
    }

    fn all_modules(&self) -> Result<Vec<PathBuf>, LabError> {
        let mut all = Vec::new();
        if let Some(folder) = &self.kernel.modules {
            let wanted: Vec<&str> = MODULES
                .iter()
                .copied()
                .filter(|m| modules::closure(folder, &[m]).is_ok())
                .collect();
            all = modules::closure(folder, &wanted)?;
            if let Some(config) = &self.kernel.config {
                modules::loadable(&all, &Config::read(config)?)?;
            }
        }
        all.extend(self.modules.iter().cloned());
        Ok(all)
    }
}
