// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware of the box onto a board that shows its boot loader as a drive.
//!
//! Bytes of the program: the two UF2 files, of which half is padding.
//! Source: the bootrom's INFO_UF2.TXT (RP2040 datasheet 2.8.4.2, RP2350 datasheet 5.5.2).

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use tailbound_sys::new_file::{self, Existing};
use tailbound_wire::Chip;

use crate::error::StimulusError;

const RP2040: &[u8] = include_bytes!("../../../../firmware/tailbound-box-rp2040.uf2");
const RP2350: &[u8] = include_bytes!("../../../../firmware/tailbound-box-rp2350.uf2");

/// What a boot loader says of itself has a few hundred bytes.
const INFO_MAX: u64 = 4_096;
const INFO: &str = "INFO_UF2.TXT";
/// Of the file on the drive.
const FILE: &str = "tailbound-box.uf2";

/// The firmware of a chip, as UF2.
const fn image(chip: Chip) -> &'static [u8] {
    match chip {
        Chip::Rp2040 => RP2040,
        Chip::Rp2350 => RP2350,
    }
}

/// The word for a chip.
const fn chip_word(chip: Chip) -> &'static str {
    match chip {
        Chip::Rp2040 => "rp2040",
        Chip::Rp2350 => "rp2350",
    }
}

/// The chip that a word means.
///
/// # Errors
/// It is none of those that the box can be made of.
fn chip(word: &str) -> Result<Chip, StimulusError> {
    let found = [Chip::Rp2040, Chip::Rp2350].into_iter().find(|chip| chip_word(*chip) == word);
    found.ok_or_else(|| {
        StimulusError::Impossible(format!(
            "`{word}` is no chip of the box: there are rp2040 (Pico) and rp2350 (Pico 2)"
        ))
    })
}

/// Where the firmware goes, as it was typed.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlashTarget<'a> {
    /// Word for the chip.
    pub chip: Option<&'a str>,
    /// Drive of the board.
    pub drive: Option<&'a Path>,
    /// A file instead of a board.
    pub file: Option<&'a Path>,
}

/// Writes the firmware; what was done, for people.
///
/// # Errors
/// There is no such chip, no board or several, or it was not written.
pub fn flash(target: FlashTarget<'_>) -> Result<String, StimulusError> {
    let wanted = target.chip.map(chip).transpose()?;
    if let (Some(file), Some(chip)) = (target.file, wanted) {
        new_file::write(file, Existing::Keep, image(chip)).map_err(|e| {
            StimulusError::Unreachable { place: file.display().to_string(), reason: e.to_string() }
        })?;
        return Ok(format!("Firmware  {}", file.display()));
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let board = chosen(target.drive, wanted, &mounts)?;
    write(&board)?;
    Ok(format!(
        "The firmware is on the board at {}, which restarts as a box. To check it: tailbound box check --via pico:/dev/ttyACM0",
        board.drive.display()
    ))
}

/// A board that waits for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BootDrive {
    /// Where its drive is mounted.
    drive: PathBuf,
    /// What it is.
    chip: Chip,
}

/// The board whose drive this is.
///
/// # Errors
/// It is no such drive, or one of another chip.
fn board(drive: &Path) -> Result<BootDrive, StimulusError> {
    let file = drive.join(INFO);
    let refuse =
        |reason: String| StimulusError::Unreachable { place: drive.display().to_string(), reason };
    let mut text = String::new();
    File::open(&file)
        .and_then(|file| file.take(INFO_MAX).read_to_string(&mut text))
        .map_err(|e| refuse(format!("{INFO} cannot be read ({e}): this is no drive of a board; hold BOOTSEL while you plug it in")))?;
    let id = text.lines().find_map(|line| line.strip_prefix("Board-ID:")).map(str::trim);
    let chip = match id {
        Some("RPI-RP2") => Chip::Rp2040,
        Some("RP2350") => Chip::Rp2350,
        _ => {
            let id = tailbound_core::printable::line(id.unwrap_or("none"))
                .chars()
                .take(60)
                .collect::<String>();
            return Err(refuse(format!(
                "its Board-ID is {id}: the box is made of RPI-RP2 (Pico) or RP2350 (Pico 2)"
            )));
        }
    };
    Ok(BootDrive { drive: drive.to_owned(), chip })
}

/// Every board that shows its drive, by the mounted file systems: the text of `/proc/self/mounts`.
fn boards(mounts: &str) -> Vec<BootDrive> {
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(unescaped);
    places
        .filter(|place| place.join(INFO).is_file())
        .filter_map(|place| board(&place).ok())
        .collect()
}

/// A mount point as it is written there: blanks and the like in octal.
fn unescaped(text: &str) -> PathBuf {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from(String::from_utf8_lossy(&out).into_owned()))
}

/// Chooses the board: that of the drive that was named, or the only one that there is.
///
/// # Errors
/// There is none, or several, or it has another chip than `wanted`.
fn chosen(
    drive: Option<&Path>,
    wanted: Option<Chip>,
    mounts: &str,
) -> Result<BootDrive, StimulusError> {
    let found = match drive {
        Some(drive) => vec![board(drive)?],
        None => boards(mounts),
    };
    let mut fitting = found.iter().filter(|board| wanted.is_none_or(|chip| chip == board.chip));
    match (fitting.next(), fitting.next(), found.first()) {
        (Some(one), None, _) => Ok(one.clone()),
        (Some(one), Some(other), _) => Err(StimulusError::Impossible(format!(
            "several boards wait for a program, at {} and {}: choose one with --to",
            one.drive.display(),
            other.drive.display()
        ))),
        (None, _, Some(other)) => Err(StimulusError::Impossible(format!(
            "the board at {} has the chip {}: leave --chip out, or plug the other one in",
            other.drive.display(),
            chip_word(other.chip)
        ))),
        (None, _, None) => Err(StimulusError::Unreachable {
            place: "no board".to_owned(),
            reason: "none shows its drive: hold BOOTSEL while you plug it in, and mount the drive; or write the file with --out and copy it yourself".to_owned(),
        }),
    }
}

/// Writes the firmware to a board, which restarts with it.
///
/// # Errors
/// The drive did not take all of it.
fn write(board: &BootDrive) -> Result<(), StimulusError> {
    let path = board.drive.join(FILE);
    let refused = |e: std::io::Error| StimulusError::Unreachable {
        place: path.display().to_string(),
        reason: format!("the firmware was not written: {e}"),
    };
    let mut file = File::create(&path).map_err(refused)?;
    file.write_all(image(board.chip)).map_err(refused)?;
    match file.sync_all() {
        // A board that has all of it restarts at once, and its drive is gone before it answers.
        Err(e) if board.drive.join(INFO).is_file() => Err(refused(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(id: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!("UF2 Bootloader v3.0\r\nModel: Raspberry Pi RP2\r\nBoard-ID: {id}\r\n");
        std::fs::write(folder.path().join(INFO), text).expect("written");
        folder
    }

    #[test]
    fn each_image_is_whole_and_of_its_chip() {
        for (chip, family) in [(Chip::Rp2040, 0xE48B_FF56_u32), (Chip::Rp2350, 0xE48B_FF59)] {
            let (blocks, rest) = image(chip).as_chunks::<512>();
            assert!(rest.is_empty() && !blocks.is_empty());
            for (number, block) in (0_u32..).zip(blocks) {
                let word = |at: usize| {
                    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
                };
                assert_eq!((word(0), word(4), word(508)), (0x0A32_4655, 0x9E5D_5157, 0x0AB1_6F30));
                assert_eq!((word(20), word(24) as usize, word(28)), (number, blocks.len(), family));
            }
        }
    }

    #[test]
    fn a_board_is_found_by_its_drive_and_gets_the_firmware_of_its_chip() {
        let (first, second, other) = (drive("RPI-RP2"), drive("RP2350"), drive("SAMD21G18A-v0"));
        let line =
            |d: &tempfile::TempDir| format!("/dev/sdb1 {} vfat rw 0 0\n", d.path().display());
        let mounts = [&first, &second, &other].map(line).concat();
        assert_eq!(boards(&mounts).len(), 2);
        let found = chosen(None, Some(Chip::Rp2350), &mounts).expect("one");
        assert_eq!(found.drive, second.path());
        write(&found).expect("written");
        assert_eq!(std::fs::read(second.path().join(FILE)).expect("there"), RP2350);
        let told = |drive: Option<&Path>, chip, mounts: &str| {
            chosen(drive, chip, mounts).expect_err("none").to_string()
        };
        assert!(told(None, None, &mounts).contains("--to"));
        assert!(told(Some(other.path()), None, "").contains("SAMD21G18A-v0"));
        assert!(told(Some(first.path()), Some(Chip::Rp2350), "").contains("rp2040"));
        assert!(told(None, None, "proc /proc proc rw 0 0\n").contains("BOOTSEL"));
        assert_eq!(unescaped("/media/my\\040drive"), PathBuf::from("/media/my drive"));
    }

    #[test]
    fn the_firmware_goes_with_this_program() {
        let manifest = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../firmware/Cargo.toml"
        ))
        .expect("there");
        let [major, minor] = tailbound_box::pico::FIRMWARE;
        assert!(manifest.contains(&format!("version = \"{major}.{minor}.")));
    }
}
