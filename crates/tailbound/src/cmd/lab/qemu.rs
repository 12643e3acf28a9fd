// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab qemu`: QEMU programs listed, fetched, removed.

use std::process::ExitCode;

use serde_json::{Value, json};
use tailbound_lab::emulator::{self, Stored};
use tailbound_lab::{Arch, Emulator, Store, cache, needs};

use crate::cli_lab_qemu::{LabQemu, QemuFetchArgs, QemuListArgs, QemuRemoveArgs};
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
    word.parse().map_err(|e| Failure::usage(format!("--arch: {e}")))
}

fn list(args: &QemuListArgs) -> Result<ExitCode, Failure> {
    let store = Store::of_user()?;
    let stored = emulator::stored(&store)?;
    let found = Arch::ALL.map(|arch| (arch, Emulator::find(arch, None)));
    let of_system: Vec<(Arch, &Emulator)> =
        found.iter().filter_map(|(arch, e)| Some((*arch, e.as_ref().ok()?))).collect();
    if args.json {
        let system: Vec<Value> = of_system
            .iter()
            .map(|(arch, e)| json!({"arch": arch.name(), "version": e.number(), "says": e.version, "program": e.program, "short_slices": e.shares_time()}))
            .collect();
        let fetched: Vec<Value> = stored.iter().map(described).collect();
        say::answer_json(&json!({"system": system, "fetched": fetched}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (arch, e) in of_system {
        let version = e.number().unwrap_or("unknown");
        text.push_str(&format!(
            "{version:<10} {:<8} system   {}\n",
            arch.name(),
            e.program.display()
        ));
    }
    for one in &stored {
        text.push_str(&format!(
            "{:<10} {:<8} fetched  {} of {}\n",
            one.version, one.arch, one.package, one.suite
        ));
    }
    if text.is_empty() {
        text.push_str("none on the path, and none was fetched: tailbound lab qemu fetch\n");
    }
    say::answer(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn described(one: &Stored) -> Value {
    json!({
        "version": one.version, "arch": one.arch, "says": one.says, "suite": one.suite,
        "package": one.package, "packages": one.packages, "folder": one.folder,
    })
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
    let one = emulator::fetch(&store, arch, &args.suite, args.refresh, &mut note)?;
    if args.json {
        say::answer_json(&described(&one))?;
        return Ok(ExitCode::SUCCESS);
    }
    say::answer(&format!(
        "QEMU {} for {} ({} of {}, with {} packages that it needs) lies in {}: `lab run --qemu {}`, and several CPUs take it by themselves",
        one.version,
        one.arch,
        one.package,
        one.suite,
        one.packages.len().saturating_sub(1),
        one.folder.display(),
        one.version
    ))?;
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
