// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine models of the lab: what QEMU is told, and where the guest finds its lines.
//!
//! Units: MiB.
//! Nothing here may complete in host time: no disk, no network, no display; a clock that
//! stands still with the guest; a CPU model without a source of entropy.
//! Source: qemu-system(1); docs/virtual-time.md.

use std::path::{Path, PathBuf};
use tailbound_core::order;

use crate::arch::Arch;
use crate::error::{KernelError, LabError, OptionError};
use crate::kernel::Kernel;

/// A model and what goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Architecture.
    pub arch: Arch,
    /// `-M`
    pub model: String,
    /// `-cpu`
    pub cpu: String,
    /// The guest's console.
    pub console: &'static str,
    /// The line the results come back over.
    pub results: &'static str,
    /// Devices beyond the model's own: the watchdog that stops it, the line of the results.
    devices: &'static [&'static str],
    /// Can the guest be stopped at one instant of its time, and read a job given after that?
    pub stops: bool,
    /// The device tree a board needs, by file name.
    device_tree: Option<&'static str>,
}

/// Who executes the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// QEMU, instruction by instruction: in virtual time.
    Tcg,
    /// The host's CPU.
    Kvm,
}

impl Accelerator {
    /// As `--kvm` says it.
    #[must_use]
    pub fn kvm_if(kvm: bool) -> Self {
        if kvm { Self::Kvm } else { Self::Tcg }
    }
}

impl Machine {
    /// The model for `arch`, or the one asked for.
    ///
    /// # Errors
    /// No such model is known for this architecture.
    pub fn choose(
        arch: Arch,
        asked: Option<&str>,
        accelerator: Accelerator,
    ) -> Result<Self, LabError> {
        let known = match arch {
            Arch::X86_64 => vec![Self::pc("pc"), Self::pc("q35")],
            Arch::Aarch64 => vec![Self::virt()],
            Arch::Arm => vec![Self::vexpress("vexpress-a9"), Self::virt32()],
        };
        let models: Vec<&str> = known.iter().map(|m| m.base()).collect();
        let wanted = asked.unwrap_or_default();
        let base = wanted.split(',').next().unwrap_or_default();
        switches(wanted)
            .map_err(|source| OptionError::MachineSwitch { model: wanted.to_owned(), source })?;
        let mut machine = match known.iter().find(|m| m.base() == base) {
            Some(found) => Self { model: wanted.to_owned(), ..found.clone() },
            None if wanted.is_empty() => {
                known.first().cloned().ok_or(OptionError::NoMachine { arch })?
            }
            None => {
                let known = models.into_iter().map(str::to_owned).collect();
                return Err(OptionError::Machine { model: wanted.to_owned(), arch, known }.into());
            }
        };
        if accelerator == Accelerator::Kvm {
            "host".clone_into(&mut machine.cpu);
        }
        Ok(machine)
    }

    fn base(&self) -> &str {
        self.model.split(',').next().unwrap_or_default()
    }

    fn pc(model: &str) -> Self {
        Self {
            arch: Arch::X86_64,
            model: model.to_owned(),
            cpu: "qemu64,+ssse3,+sse4.1,+sse4.2,-rdrand,-rdseed".to_owned(),
            console: "ttyS0",
            results: "/dev/ttyS1",
            devices: &["-device", "ib700"],
            stops: true,
            device_tree: None,
        }
    }

    fn virt() -> Self {
        Self {
            arch: Arch::Aarch64,
            model: "virt,gic-version=3".to_owned(),
            cpu: "cortex-a57".to_owned(),
            console: "ttyAMA0",
            results: "/dev/ttyS0",
            devices: &["-device", "pci-serial,chardev=results"],
            stops: false,
            device_tree: None,
        }
    }

    fn virt32() -> Self {
        Self {
            arch: Arch::Arm,
            cpu: "cortex-a15".to_owned(),
            model: "virt,highmem=off".to_owned(),
            ..Self::virt()
        }
    }

    fn vexpress(model: &str) -> Self {
        Self {
            arch: Arch::Arm,
            model: model.to_owned(),
            cpu: "cortex-a9".to_owned(),
            console: "ttyAMA0",
            results: "/dev/ttyAMA1",
            devices: &[],
            stops: false,
            device_tree: Some("vexpress-v2p-ca9.dtb"),
        }
    }

    /// The words for QEMU that say which machine this is; the order is part of the machine.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> =
            ["-M", &self.model, "-cpu", &self.cpu].map(String::from).into();
        words.extend(self.devices.iter().map(|w| (*w).to_owned()));
        words
    }

    /// Does the results line belong to a device of its own, rather than to the second serial port?
    #[must_use]
    pub fn results_by_device(&self) -> bool {
        self.devices.iter().any(|d| d.contains("chardev=results"))
    }

    /// Does the kernel read a device tree of its own, rather than one that QEMU made for this machine?
    #[must_use]
    pub fn has_tree_of_a_board(&self) -> bool {
        self.device_tree.is_some()
    }

    /// The device tree of the board among those of `kernel`.
    ///
    /// # Errors
    /// The board needs one and the kernel brings none.
    pub fn device_tree(&self, kernel: &Kernel) -> Result<Option<PathBuf>, LabError> {
        let Some(name) = self.device_tree else { return Ok(None) };
        let found = kernel.device_trees.as_deref().and_then(|folder| find(folder, name, 3));
        found.map(Some).ok_or_else(|| {
            let (kernel, model) = (kernel.record.name.clone(), self.base().to_owned());
            KernelError::NoDeviceTree { kernel, model, tree: name }.into()
        })
    }
}

/// Options of a model that may be given: what they change is the machine, and nothing of the host.
/// QEMU has others (`dumpdtb=FILE` writes a file).
const SWITCHES: [(&str, &[&str]); 6] = [
    ("acpi", &["on", "off"]),
    ("gic-version", &["2", "3", "max"]),
    ("highmem", &["on", "off"]),
    ("hpet", &["on", "off"]),
    ("its", &["on", "off"]),
    ("vmport", &["on", "off"]),
];

/// An option of a model that may not be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{option}` is not among {}", all_switches())]
pub struct UnknownSwitch {
    /// As it was written.
    pub option: String,
}

fn all_switches() -> String {
    let one = |(name, values): &(&str, &[&str])| format!("{name}={}", values.join("|"));
    SWITCHES.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Are the options behind the model's name such ones?
fn switches(model: &str) -> Result<(), UnknownSwitch> {
    for option in model.split(',').skip(1) {
        let known = option.split_once('=').and_then(|(name, value)| {
            let (_, values) = SWITCHES.iter().find(|(known, _)| *known == name)?;
            values.contains(&value).then_some(())
        });
        if known.is_none() {
            return Err(UnknownSwitch { option: option.to_owned() });
        }
    }
    Ok(())
}

fn find(folder: &Path, name: &str, depth: u8) -> Option<PathBuf> {
    let direct = folder.join(name);
    if direct.is_file() {
        return Some(direct);
    }
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.is_dir())
        .collect();
    order::by(&mut folders, Ord::cmp);
    (depth > 0).then(|| folders.iter().find_map(|f| find(f, name, depth - 1))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_one_of_ours_with_options_that_touch_no_host() {
        let chosen = |arch, model| Machine::choose(arch, Some(model), Accelerator::Tcg);
        for (arch, model) in [
            (Arch::X86_64, "pc"),
            (Arch::X86_64, "q35,hpet=off"),
            (Arch::Aarch64, "virt,gic-version=3"),
            (Arch::Arm, "virt,highmem=off"),
            (Arch::Arm, "vexpress-a9"),
        ] {
            assert_eq!(chosen(arch, model).unwrap().model, model);
        }
        for model in [
            "pc,dumpdtb=/etc/passwd",
            "pc,,dumpdtb=/etc/passwd",
            "pc,hpet=off,dumpdtb=/x",
            "pc,hpet",
            "pc,firmware=/x",
            "pc,hpet=/x",
            "none",
            "-drive",
            "microvm",
        ] {
            assert_eq!(
                chosen(Arch::X86_64, model).unwrap_err().kind(),
                tailbound_core::FailureKind::Usage,
                "{model}"
            );
        }
    }
}
