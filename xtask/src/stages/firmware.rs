// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware of the box: built for both chips, in an emulator, and the files that are committed.

use std::fs;
use std::path::Path;

use anyhow::ensure;

use super::tally::Tally;
use crate::{exec, firmware};

/// `cargo xtask test firmware`.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    if let Some(why) = missing(project)? {
        tally.skip("firmware", "thumb targets", &why);
        return Ok(tally);
    }
    let made_by = fs::read_to_string(firmware::compiler(project)).unwrap_or_default();
    let here = exec::output(exec::command("rustc").arg("-V"))?.stdout;
    let same = made_by.trim() == String::from_utf8_lossy(&here).trim();
    for chip in &firmware::CHIPS {
        let name = format!("{} builds", chip.name);
        let built = firmware::build(project, chip);
        let elf = match built {
            Ok(elf) => elf,
            Err(e) => {
                tally.add(&name, Err(e));
                continue;
            }
        };
        tally.pass(&name);
        let name = format!("{} is the committed file", chip.name);
        if same {
            tally.add(&name, is_committed(project, chip, &elf));
        } else {
            tally.skip(&name, "compiler", &format!("the file was made by {}", made_by.trim()));
        }
    }
    tally.add("in the emulator", emulated(project));
    Ok(tally)
}

/// What cannot be had here.
fn missing(project: &Path) -> anyhow::Result<Option<String>> {
    let root = exec::output(exec::command("rustc").args(["--print", "sysroot"]))?.stdout;
    let root = String::from_utf8_lossy(&root).trim().to_owned();
    for chip in &firmware::CHIPS {
        if !Path::new(&root).join("lib/rustlib").join(chip.target).exists() {
            return Ok(Some(format!("no {0}: rustup target add {0}", chip.target)));
        }
    }
    let mut fetch = exec::cargo(&project.join("firmware"));
    let fetched = exec::output(fetch.args(["fetch", "--quiet", "--locked"]))?;
    let said = String::from_utf8_lossy(&fetched.stderr).into_owned();
    Ok((!fetched.status.success())
        .then(|| format!("its crates cannot be had: {}", said.lines().next().unwrap_or_default())))
}

fn is_committed(project: &Path, chip: &firmware::Chip, elf: &Path) -> anyhow::Result<()> {
    let bytes = firmware::packed(&fs::read(elf)?, chip)?;
    let file = firmware::committed(project, chip);
    let committed = fs::read(&file).unwrap_or_default();
    ensure!(
        bytes == committed,
        "{} is not what the source gives: cargo xtask firmware",
        file.display()
    );
    Ok(())
}

fn emulated(project: &Path) -> anyhow::Result<()> {
    let target = firmware::target(project);
    let mut tests = exec::cargo(&project.join("firmware"));
    tests.args(["test", "--quiet", "--locked"]).env("CARGO_TARGET_DIR", &target);
    let elf = target.join(firmware::CHIPS[0].target).join("release/tailbound-box");
    exec::succeed(tests.env("TAILBOUND_BOX_ELF", elf))
}
