// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a piece of work in the lab needs on this machine, looked at before anything is fetched.
//!
//! Units: MiB. Everything that is missing is reported at once.
//! Not here: what a build needs (`build::toolchain`).

use tailbound_core::FailureKind;
use tailbound_core::lab::KernelRecord;
use tailbound_sys::{program, scratch};

use crate::arch::Arch;
use crate::emulator::{self, Asked, Emulator};
use crate::error::{LabError, QemuError, StoreError, ToolError};
use crate::kernel::{self, Kernel, KernelName, PackageLists};
use crate::program as guest;
use crate::store::Store;

/// Disk that a kernel of Debian takes while it is unpacked: the package and what is in it.
const KERNEL_MIB: u64 = 700;
/// Disk that one boot takes: initramfs, image, console, a snapshot.
pub(crate) const BOOT_MIB: u64 = 300;
/// What fetches kernels, and the package of Debian that each is in.
const FETCHERS: [(&str, &str); 3] =
    [("apt-get", "apt"), ("apt-cache", "apt"), ("dpkg-deb", "dpkg")];

/// Is everything there that fetching those of `names` that are not in the store needs?
///
/// # Errors
/// Cannot: all that is missing.
pub fn for_fetching(
    store: &Store,
    names: &[(KernelName, Arch)],
    lists: PackageLists,
) -> Result<(), LabError> {
    refuse_missing("the kernel cannot be fetched", fetching(store, names, lists)?)
}

/// Is everything there that fetching a QEMU needs?
///
/// # Errors
/// Cannot: all that is missing.
pub fn for_fetching_qemu() -> Result<(), LabError> {
    let missing = FETCHERS.iter().filter_map(|(name, package)| {
        let e = program::find(name).err()?;
        Some(format!("{e} (Debian's package {package}): on a machine without apt name a QEMU with --qemu PROGRAM"))
    });
    refuse_missing("QEMU cannot be fetched", missing.collect())
}

/// Is everything there that booting `names` needs? QEMU, if so.
///
/// # Errors
/// Cannot: all that is missing, before anything is fetched.
pub fn for_booting(
    store: &Store,
    names: &[(KernelName, Arch)],
    arch: Arch,
    lists: PackageLists,
    asked: Asked<'_>,
) -> Result<Emulator, LabError> {
    let mut missing = Vec::new();
    let emulator = match emulator::choose(store, arch, asked) {
        Ok(emulator) => Some(emulator),
        Err(e) if e.kind() == FailureKind::Usage => return Err(e),
        Err(e) => {
            missing.push(e.to_string());
            None
        }
    };
    match guest::find(arch, asked.guest) {
        Ok(_) => {}
        // A file that was named and is not right.
        Err(e) if e.kind() == FailureKind::Usage => return Err(e),
        Err(e) => missing.push(e.to_string()),
    }
    missing.extend(fetching(store, names, lists)?);
    refuse_missing("nothing was begun", missing)?;
    emulator.ok_or_else(|| QemuError::None.into())
}

fn refuse_missing(undone: &'static str, missing: Vec<String>) -> Result<(), LabError> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(ToolError::Lacking { undone, missing }.into())
}

fn fetching(
    store: &Store,
    names: &[(KernelName, Arch)],
    lists: PackageLists,
) -> Result<Vec<String>, LabError> {
    let mut missing = Vec::new();
    let mut open = 0;
    for (name, arch) in names {
        if let KernelName::Debian(debian) = name
            && (lists == PackageLists::Anew || !kernel::is_in_store(store, debian, *arch)?)
        {
            open += 1;
        }
    }
    if open > 0 {
        for (name, package) in FETCHERS {
            if let Err(e) = program::find(name) {
                missing.push(format!(
                    "{e} (Debian's package {package}), and kernels of Debian come through it: on a machine without apt use path:VMLINUZ"
                ));
            }
        }
    }
    let wanted = BOOT_MIB + KERNEL_MIB * open;
    let folder = store.room("kernels")?;
    if let Ok(Some(free)) = scratch::free_bytes(&folder)
        && free >> 20 < wanted
    {
        let full = StoreError::Full { folder, free_mib: free >> 20, wanted_mib: wanted };
        missing.push(full.to_string());
    }
    Ok(missing)
}

/// A kernel that stands for one which is not fetched yet: enough to find out whether everything
/// else that was asked for can be.
#[must_use]
pub fn stand_in(name: &KernelName, arch: Arch) -> Kernel {
    Kernel {
        record: KernelRecord { name: name.to_string(), ..KernelRecord::default() },
        arch,
        image: std::path::PathBuf::new(),
        modules: None,
        config: None,
        device_trees: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_reported_at_once_and_before_a_fetch() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let names = [("debian:6.12".parse().unwrap(), Arch::Arm)];
        let nowhere = folder.path().join("no-qemu");
        let e = for_booting(
            &store,
            &names,
            Arch::Arm,
            PackageLists::AtHand,
            Asked { qemu: Some(&nowhere), ..Asked::default() },
        )
        .unwrap_err();
        let text = e.to_string();
        assert_eq!(e.kind(), tailbound_core::FailureKind::Cannot, "{text}");
        assert!(text.contains("no-qemu"), "{text}");
        // The test's own program is for this machine, and none for ARM lies beside it.
        if Arch::of_host() != Arch::Arm {
            assert!(text.contains("no tailbound for arm") && text.contains("lacks:\n"), "{text}");
        }
        assert!(!folder.path().join("apt").exists(), "apt was asked");
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        let asked = Asked { qemu: Some(&nowhere), guest: Some(&script), ..Asked::default() };
        let e = for_booting(&store, &names, Arch::Arm, PackageLists::AtHand, asked).unwrap_err();
        assert_eq!(e.kind(), tailbound_core::FailureKind::Usage, "{e}");
    }
}
