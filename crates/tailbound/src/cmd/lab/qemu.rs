// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab qemu`: QEMU programs listed, fetched, removed.

use std::process::ExitCode;

use tailbound_lab::emulator::{self, EmulatorListing};
use tailbound_lab::{Arch, Store, cache, needs};

use crate::cli_lab_qemu::{LabQemu, QemuFetchArgs, QemuListArgs, QemuRemoveArgs};
use crate::flags;
use crate::say::{self, Failure};

/// `tailbound lab qemu`
pub(super) fn qemu(what: &LabQemu) -> Result<ExitCode, Failure> {
    match what {
        LabQemu::List(args) => list(args),
        LabQemu::Fetch(args) => fetch(args),
        LabQemu::Remove(args) => remove(args),
    }
}

fn arch(word: &str) -> Result<Arch, Failure> {
    word.parse().map_err(flags::refused("--arch"))
}

fn list(args: &QemuListArgs) -> Result<ExitCode, Failure> {
    let listing = EmulatorListing::of(&Store::of_user()?)?;
    match args.json {
        true => say::answer_json(&listing.json())?,
        false => say::answer(&listing.text())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn fetch(args: &QemuFetchArgs) -> Result<ExitCode, Failure> {
    let store = Store::of_user()?;
    let _working = cache::working(&store)?;
    let arch = args.arch.as_deref().map_or(Ok(Arch::X86_64), arch)?;
    needs::for_fetching_qemu()?;
    let mut note = |text: &str| {
        if !args.quiet {
            say::note(text);
        }
    };
    let one = emulator::fetch(
        &store,
        arch,
        &args.suite,
        tailbound_lab::kernel::PackageLists::anew_if(args.refresh),
        &mut note,
    )?;
    match args.json {
        true => say::answer_json(&one.json())?,
        false => say::answer(&one.text())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(args: &QemuRemoveArgs) -> Result<ExitCode, Failure> {
    let store = Store::of_user()?;
    let arch = args.arch.as_deref().map(arch).transpose()?;
    for one in emulator::remove(&store, &args.version, arch, &mut |text| say::note(text))? {
        say::answer(&format!("QEMU {} for {} was removed", one.version, one.arch))?;
    }
    Ok(ExitCode::SUCCESS)
}
