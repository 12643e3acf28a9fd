// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is booted, and the words for QEMU that follow from it.
//!
//! Units: MiB; one instruction is 2^shift ns.
//! Source: qemu-system(1), `-icount`, `-rtc`, `-seed`, `-action`; docs/virtual-time.md.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::boot_files;
use crate::machine::Machine;

/// What to boot.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine model.
    pub machine: Machine,
    /// CPUs.
    pub smp: u32,
    /// Memory.
    pub memory_mib: u32,
    /// One instruction is 2^shift ns.
    pub shift: u8,
    /// Of everything random.
    pub seed: u32,
    /// Between timers of QEMU's that end slices of several CPUs once the guest has its job; 0: no such timer.
    pub slice_us: u32,
    /// The host's own time instead of virtual time.
    pub kvm: bool,
    /// The kernel image.
    pub image: PathBuf,
    /// Its SHA-256.
    pub image_sha256: String,
    /// The initramfs.
    pub initramfs: Vec<u8>,
    /// The kernel's command line.
    pub command_line: String,
    /// The board's device tree.
    pub device_tree: Option<PathBuf>,
}

impl Setup {
    /// The words for QEMU that the guest's life up to its job depends on.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
                .map(OsString::from)
                .into();
        let mut word = |text: &str| words.push(OsString::from(text));
        for own in self.machine.words() {
            word(&own);
        }
        if self.kvm {
            word("-accel");
            word("kvm");
        } else {
            word("-accel");
            word("tcg");
            word("-icount");
            word(&format!("shift={},sleep=off,align=off", self.shift));
        }
        for (flag, value) in [
            ("-smp", self.smp.to_string()),
            ("-m", self.memory_mib.to_string()),
            ("-seed", self.seed.to_string()),
            ("-rtc", "base=2026-01-01T00:00:00,clock=vm".to_owned()),
            ("-append", self.command_line.clone()),
        ] {
            word(flag);
            word(&value);
        }
        // A guest stands still where its watchdog expires, and where it is done.
        word("-action");
        word("watchdog=pause,shutdown=pause");
        // Not before its control line is open.
        word("-S");
        for (flag, name) in [("-kernel", boot_files::KERNEL), ("-initrd", boot_files::INITRAMFS)] {
            word(flag);
            word(name);
        }
        if self.device_tree.is_some() {
            word("-dtb");
            word(boot_files::TREE);
        }
        words
    }
}
