// SPDX-License-Identifier: MIT OR Apache-2.0
//! One cell of the lab: everything a run is a function of, brought together.
//!
//! Units: MiB, s.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tailbound_core::lab::{Job, LabRecord};
use tailbound_core::limits;
use tailbound_sys::given;

use crate::cpio::Tree;
use crate::emulator::Emulator;
use crate::error::{FileError, GuestError, LabError, OptionError, SnapshotError};
use crate::hash;
use crate::kernel::{Config, Kernel, modules};
use crate::machine::Machine;
use crate::setup::Setup;
use crate::slices::{self, Slice};
use crate::{elf, program};

/// What randomness, addresses and the console are pinned to on every guest's command line.
///
/// No entropy from CPU or loader, no address randomisation (so that kernels compare), a
/// console that says only what ends a kernel, restart at once after a panic, and panic where a
/// CPU did not schedule for 20 s of its own time.
const PINNED: &str = "panic=-1 softlockup_panic=1 nokaslr norandmaps random.trust_cpu=off random.trust_bootloader=off loglevel=3 rdinit=/init";

/// Modules that Tailbound's loads and probes use, where the kernel has them as modules.
const MODULES: &[&str] = &["veth"];

/// Folders of the guest that something is mounted on, so that added files would not be seen.
const HIDDEN: &[&str] = &["/dev/", "/proc/", "/run/", "/sys/", "/tmp/"];

/// What may be added to a command line: kernels take 2048 bytes of it in all, or 1024.
const APPEND_BYTES_MAX: usize = 1500;

/// Memory that this machine could give without swapping; none where it does not tell.
fn memory_available_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / 1024)
}

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
    /// How long the slices of several CPUs are.
    pub slice: Slice,
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

impl Prepared {
    /// The same guest with the job and the seed of `cell`, which differs from the one this was made of in nothing else:
    /// its files are not read and hashed again.
    ///
    /// # Errors
    /// The guest would be another one before it takes its job.
    pub fn with_job(&self, cell: &Cell) -> Result<Self, LabError> {
        if !self.setup.machine.stops || cell.boot_seed() != self.setup.seed {
            return Err(SnapshotError::JobFromBoot.into());
        }
        let mut next = self.clone();
        next.record.job = slices::counted(&cell.job, self.setup.slice_us);
        next.job = serde_json::to_vec(&next.record.job).map_err(FileError::Record)?;
        next.record.seed = cell.seed;
        Ok(next)
    }
}

impl Cell {
    /// Where the seed moves the beginning it need not alter the boot: one snapshot serves all seeds.
    fn boot_seed(&self) -> u32 {
        if self.job.begin_after_ns > 0 { 1 } else { self.seed }
    }

    /// Between two ends of slices; 0 where none are ended.
    fn slice_us(&self, emulator: &Emulator) -> Result<u32, LabError> {
        let cpus = if self.kvm { 0 } else { self.smp };
        self.slice.us(cpus, &self.machine, emulator)
    }

    /// Brings everything together.
    ///
    /// # Errors
    /// A file is missing, a program does not fit, a module needs what the kernel lacks.
    pub fn prepare(&self, emulator: &Emulator) -> Result<Prepared, LabError> {
        self.check()?;
        let slice_us = self.slice_us(emulator)?;
        let job = slices::counted(&self.job, slice_us);
        let job_bytes = serde_json::to_vec(&job).map_err(FileError::Record)?;
        let guest = program::find(self.kernel.arch, self.guest.as_deref())?;
        let (tree, guest_sha256, files) = self.tree(&guest, &job_bytes)?;
        let archive = tree.archive()?;
        let initramfs_sha256 = hash::of_bytes(&archive);
        let boot_seed = self.boot_seed();
        let setup = Setup {
            machine: self.machine.clone(),
            smp: self.smp,
            memory_mib: self.memory_mib,
            shift: self.shift,
            seed: boot_seed,
            slice_us,
            kvm: self.kvm,
            image: self.kernel.image.clone(),
            image_sha256: self.kernel.record.sha256.clone(),
            initramfs: archive,
            command_line: self.command_line(slice_us),
            device_tree: self.machine.device_tree(&self.kernel)?,
        };
        let record = LabRecord {
            arch: self.kernel.arch.name().to_owned(),
            machine: self.machine.model.clone(),
            cpu: self.machine.cpu.clone(),
            smp: self.smp,
            memory_mib: self.memory_mib,
            shift: self.shift,
            slice_ns: u64::from(slice_us) * 1000,
            seed: self.seed,
            accelerator: if self.kvm { "kvm" } else { "tcg" }.to_owned(),
            qemu: emulator.version.clone(),
            kernel: self.kernel.record.clone(),
            append: self.append.clone(),
            command_line: setup.command_line.clone(),
            initramfs_sha256,
            files,
            guest_sha256,
            job,
            later: BTreeMap::new(),
        };
        // Slices are short from the job on.
        let without_job =
            LabRecord { job: Job::default(), seed: boot_seed, slice_ns: 0, ..record.clone() };
        let key = serde_json::to_vec(&without_job).map_err(FileError::Record)?;
        Ok(Prepared { setup, record, job: job_bytes, key: hash::of_bytes(&key) })
    }

    /// Is every number and word one that QEMU may be given? The same for what a person asks for
    /// and what a run file that somebody sent holds.
    ///
    /// # Errors
    /// Usage: which is not, and what is.
    pub fn check(&self) -> Result<(), LabError> {
        let (smp, shift, memory_mib) = (self.smp, self.shift, self.memory_mib);
        if !(1..=64).contains(&smp) {
            return Err(OptionError::Smp { smp }.into());
        }
        if shift > 10 {
            return Err(OptionError::Shift { shift }.into());
        }
        if memory_mib < 32 {
            return Err(OptionError::LittleMemory { memory_mib }.into());
        }
        if let Some(free_mib) = memory_available_mib().filter(|mib| u64::from(memory_mib) > *mib) {
            return Err(OptionError::MuchMemory { memory_mib, free_mib }.into());
        }
        let append = &self.append;
        if append.len() > APPEND_BYTES_MAX || append.chars().any(|c| c.is_control()) {
            return Err(OptionError::Append { most_bytes: APPEND_BYTES_MAX }.into());
        }
        Ok(())
    }

    fn command_line(&self, slice_us: u32) -> String {
        let job = if self.machine.stops { "fw_cfg" } else { "file" };
        let mut line = format!(
            "console={} {PINNED} tailbound.results={} tailbound.job={job}",
            self.machine.console, self.machine.results
        );
        // A board's tree names CPUs that the model has not: Linux would wait for each of them, and of one CPU alone the interrupt
        // controller does not tell who it is, so that its interrupts to itself (irq_work) would go to nobody.
        if self.machine.has_tree_of_a_board() {
            line.push_str(&format!(" nr_cpus={}", self.smp));
        }
        if slice_us > 0 {
            line.push_str(slices::WAKES);
        }
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
            given::read(path, limits::OBJECT_BYTES_MAX).map_err(|e| LabError::file(path, e))
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
        for (name, bytes) in self.all_modules()? {
            let path = format!("/modules/{name}");
            tree.file(&path, bytes);
            list.push_str(&path);
            list.push('\n');
        }
        tree.file("modules.list", list.into_bytes());
        let mut hashes = BTreeMap::new();
        for (path, host) in &self.files {
            if let Some(folder) = HIDDEN.iter().find(|folder| path.starts_with(*folder)) {
                return Err(GuestError::Hidden { path: path.clone(), folder }.into());
            }
            let bytes = read(host)?;
            hashes.insert(path.clone(), hash::of_bytes(&bytes));
            tree.file(path, bytes);
        }
        Ok((tree, guest_sha256, hashes))
    }

    /// Name and bytes of the guest's modules, in the order of loading.
    fn all_modules(&self) -> Result<Vec<(String, Vec<u8>)>, LabError> {
        let mut all = Vec::new();
        if let Some(folder) = &self.kernel.modules {
            let there = modules::files(folder)?;
            let wanted: Vec<&str> =
                MODULES.iter().copied().filter(|m| there.contains_key(*m)).collect();
            let config = self.kernel.config.as_deref().map(Config::read).transpose()?;
            for file in modules::closure(folder, &wanted)? {
                all.push(modules::for_guest(&file, config.as_ref())?);
            }
        }
        for file in &self.modules {
            all.push(modules::for_guest(file, None)?);
        }
        Ok(all)
    }
}
