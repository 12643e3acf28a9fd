// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tailbound that goes into the guest: this very program where it can, or the one
//! built for the guest's architecture.

use std::path::{Path, PathBuf};

use tailbound_core::limits;
use tailbound_sys::given;

use crate::arch::Arch;
use crate::elf;
use crate::error::{GuestError, LabError};

/// Finds it: `asked`, `$TAILBOUND_GUEST_<ARCH>`, this program, or one beside it by the
/// name that `cargo xtask build` gives it.
///
/// # Errors
/// There is none for this architecture: where it was looked for.
pub fn find(arch: Arch, asked: Option<&Path>) -> Result<PathBuf, LabError> {
    if let Some(path) = asked {
        return fits(path, arch).map(|()| path.to_owned());
    }
    let variable = format!("TAILBOUND_GUEST_{}", arch.name().to_ascii_uppercase());
    if let Some(path) = std::env::var_os(&variable).filter(|v| !v.is_empty()).map(PathBuf::from) {
        return fits(&path, arch).map(|()| path);
    }
    let own = std::env::current_exe().map_err(GuestError::OwnProgram)?;
    let name = match arch {
        Arch::X86_64 => "tailbound-x86_64",
        Arch::Aarch64 => "tailbound-aarch64",
        Arch::Arm => "tailbound-armv7",
    };
    let folders = own.ancestors().skip(1).take(4).flat_map(|f| [f.to_owned(), f.join("dist")]);
    let mut beside = folders.map(|f| f.join(name)).filter(|p| p.is_file());
    if arch == Arch::of_host() {
        return Ok(own);
    }
    beside
        .find(|p| fits(p, arch).is_ok())
        .ok_or_else(|| GuestError::NoProgram { arch, name, variable }.into())
}

fn fits(path: &Path, arch: Arch) -> Result<(), LabError> {
    let bytes = given::read(path, limits::OBJECT_BYTES_MAX).map_err(|e| LabError::file(path, e))?;
    let found = elf::arch(&bytes);
    if found == Some(arch) {
        return Ok(());
    }
    Err(GuestError::OtherProgram { path: path.to_owned(), found, arch }.into())
}
