// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware of the box: built for each chip, the same bytes in every folder, and packed for its boot loader.
//!
//! UF2 is blocks of 512 bytes with 256 of the flash each (github.com/microsoft/uf2).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use object::{Object as _, ObjectSegment as _};

use crate::{exec, root};

/// A chip that the box can be made of.
pub(crate) struct Chip {
    pub(crate) name: &'static str,
    pub(crate) target: &'static str,
    /// Of its UF2 files.
    family: u32,
}

pub(crate) const CHIPS: [Chip; 2] = [
    Chip { name: "rp2040", target: "thumbv6m-none-eabi", family: 0xE48B_FF56 },
    Chip { name: "rp2350", target: "thumbv8m.main-none-eabihf", family: 0xE48B_FF59 },
];

const PROGRAM: &str = "tailbound-box";

/// Bytes of the flash in a block.
const PAGE: u64 = 256;

/// `cargo xtask firmware`: builds both and writes the files that are committed.
pub(crate) fn command() -> anyhow::Result<()> {
    let project = root::project()?;
    for chip in &CHIPS {
        let elf = build(&project, chip)?;
        let bytes = packed(&fs::read(&elf)?, chip)?;
        let file = committed(&project, chip);
        fs::write(&file, &bytes).with_context(|| file.display().to_string())?;
        println!("{}: {} bytes", file.display(), bytes.len());
    }
    let version = exec::output(exec::command("rustc").arg("-V"))?.stdout;
    fs::write(compiler(&project), version)?;
    Ok(())
}

/// The file that is committed.
pub(crate) fn committed(project: &Path, chip: &Chip) -> PathBuf {
    project.join("firmware").join(format!("{PROGRAM}-{}.uf2", chip.name))
}

/// What the committed files were made by: another compiler gives other bytes.
pub(crate) fn compiler(project: &Path) -> PathBuf {
    project.join("firmware").join("uf2-compiler.txt")
}

/// Where the firmware is built.
pub(crate) fn target(project: &Path) -> PathBuf {
    root::target(project).join("xtask").join("firmware")
}

/// The linked program of a chip.
pub(crate) fn build(project: &Path, chip: &Chip) -> anyhow::Result<PathBuf> {
    let target = target(project);
    let project = project.canonicalize()?;
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    // No path of this machine gets into the program.
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let flags = [remap(&project, "tailbound"), remap(&home, "cargo")].join("\u{1f}");
    let mut cargo = exec::cargo(&project.join("firmware"));
    cargo.args(["build", "--quiet", "--locked", "--release", "-p", "tailbound-box-firmware"]);
    cargo.args(["--target", chip.target]).env("CARGO_ENCODED_RUSTFLAGS", flags);
    exec::succeed(cargo.env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join(chip.target).join("release").join(PROGRAM))
}

/// A linked program as the chip's boot loader takes it.
pub(crate) fn packed(elf: &[u8], chip: &Chip) -> anyhow::Result<Vec<u8>> {
    let mut pages = std::collections::BTreeMap::<u64, [u8; PAGE as usize]>::new();
    for (address, data) in loaded(elf)? {
        for (at, byte) in (address..).zip(data) {
            let page = pages.entry(at / PAGE).or_insert([0xFF; PAGE as usize]);
            if let Some(place) = page.get_mut(usize::try_from(at % PAGE)?) {
                *place = *byte;
            }
        }
    }
    ensure!(!pages.is_empty(), "the program has nothing for the flash");
    let count = u32::try_from(pages.len())?;
    let mut blocks = Vec::new();
    for (number, (page, data)) in (0_u32..).zip(&pages) {
        let address = u32::try_from(page * PAGE)?;
        let begin = blocks.len();
        // Two magic words, a flag (the family is given), where, how much, which, of how many, the family.
        let head = [0x0A32_4655, 0x9E5D_5157, 0x2000, address, 256, number, count, chip.family];
        blocks.extend(head.into_iter().flat_map(u32::to_le_bytes));
        blocks.extend(data);
        blocks.resize(begin + 508, 0);
        blocks.extend(0x0AB1_6F30_u32.to_le_bytes());
    }
    Ok(blocks)
}

/// What lies in the flash, and where: by the addresses at which a segment is loaded, not those at which it runs.
fn loaded(elf: &[u8]) -> anyhow::Result<Vec<(u64, &[u8])>> {
    let file = object::read::elf::ElfFile32::<object::LittleEndian>::parse(elf)?;
    let mut all = Vec::new();
    for (head, segment) in file
        .elf_program_headers()
        .iter()
        .filter(|head| head.p_type.get(object::LittleEndian) == object::elf::PT_LOAD)
        .zip(file.segments())
    {
        let data = segment.data()?;
        if !data.is_empty() {
            all.push((u64::from(head.p_paddr.get(object::LittleEndian)), data));
        }
    }
    ensure!(file.architecture() == object::Architecture::Arm, "not a program for Arm");
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{CHIPS, packed};

    #[test]
    fn what_is_no_program_is_refused() {
        assert!(packed(b"no program", &CHIPS[0]).is_err());
    }
}
