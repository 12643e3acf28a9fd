// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program for a board: static, for the board's architecture, and able to be its first process.

use std::path::{Path, PathBuf};

use tailbound_core::board::JOB;
use tailbound_core::limits;
use tailbound_host::elf::Elf;
use tailbound_sys::given;

use crate::arch::Arch;
use crate::error::{BoardError, GuestError, LabError};
use crate::program;

/// Machines of elf(5), by the names of uname(2).
const MACHINES: [(u16, &str); 4] =
    [(40, "arm"), (62, "x86_64"), (183, "aarch64"), (243, "riscv64")];

/// A program that fits.
#[derive(Debug)]
pub(super) struct BoardProgram {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// Its machine, as elf(5) counts them.
    pub(super) machine: u16,
}

/// The name of a machine.
pub(super) fn name(machine: u16) -> String {
    let known = MACHINES.iter().find(|(number, _)| *number == machine);
    known.map_or_else(|| format!("machine {machine} of ELF"), |(_, name)| (*name).to_owned())
}

/// Finds it: the one that was asked for, this one, or the one beside it for `arch`.
///
/// # Errors
/// There is none, or it does not fit.
pub(super) fn find(asked: Option<&Path>, arch: Option<&str>) -> Result<BoardProgram, LabError> {
    let wanted = arch.map(machine).transpose()?;
    let path = match (asked, arch.map(str::parse::<Arch>)) {
        (Some(path), _) => path.to_owned(),
        (None, Some(Ok(arch))) => program::find(arch, None)?,
        (None, _) => std::env::current_exe().map_err(GuestError::OwnProgram)?,
    };
    let bytes =
        given::read(&path, limits::OBJECT_BYTES_MAX).map_err(|e| LabError::file(&path, e))?;
    let machine = fits(&path, &bytes, wanted)?;
    Ok(BoardProgram { path, bytes, machine })
}

fn machine(word: &str) -> Result<u16, BoardError> {
    let name = match word.parse::<Arch>() {
        Ok(arch) => arch.name(),
        Err(_) => word,
    };
    let known = MACHINES.iter().find(|(_, known)| *known == name);
    known.map(|(number, _)| *number).ok_or_else(|| BoardError::Arch(word.to_owned()))
}

/// Its machine, where it fits.
fn fits(path: &Path, bytes: &[u8], wanted: Option<u16>) -> Result<u16, BoardError> {
    let path = || path.to_owned();
    let elf = Elf::new(bytes).ok_or_else(|| BoardError::NoProgram { path: path() })?;
    let needs = elf.needs().ok_or_else(|| BoardError::NoProgram { path: path() })?;
    let machine = elf.machine();
    if let Some(wanted) = wanted.filter(|wanted| *wanted != machine) {
        let (found, wanted) = (name(machine), name(wanted));
        return Err(BoardError::OtherMachine { path: path(), found, wanted });
    }
    if let Some(needed) = needs.interpreter.into_iter().chain(needs.libraries).next() {
        return Err(BoardError::Dynamic { path: path(), needed });
    }
    // Whoever reads this file has its name.
    if !bytes.windows(JOB.len()).any(|window| window == JOB.as_bytes()) {
        return Err(BoardError::NoFirstProcess { path: path() });
    }
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of that machine with one segment that is loaded, and these bytes behind it.
    fn program(machine: u16, interpreter: &str, more: &str) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 2 * 56];
        let mut put = |at: usize, value: u64, length: usize| {
            bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        };
        put(0, 0x0001_0102_464c_457f, 8);
        put(16, 2, 2);
        put(18, machine.into(), 2);
        put(20, 1, 4);
        put(32, 64, 8);
        put(52, 64, 2);
        put(54, 56, 2);
        put(56, 2, 2);
        // Loaded; the loader's name, or nothing.
        put(64, 1, 4);
        if !interpreter.is_empty() {
            put(120, 3, 4);
            put(128, 176, 8);
            put(152, interpreter.len() as u64, 8);
        }
        bytes.extend(interpreter.bytes());
        bytes.extend(more.bytes());
        bytes
    }

    #[test]
    fn only_a_static_program_of_the_board_that_can_be_its_first_process_fits() {
        let says = |bytes: &[u8], wanted| match fits(Path::new("x"), bytes, wanted) {
            Ok(machine) => name(machine),
            Err(e) => e.to_string(),
        };
        assert_eq!(says(&program(40, "", JOB), Some(40)), "arm");
        assert_eq!(says(&program(243, "", JOB), None), "riscv64");
        let other = says(&program(62, "", JOB), Some(183));
        assert!(other.contains("x86_64") && other.contains("aarch64"), "{other}");
        let dynamic = says(&program(62, "/lib64/ld-linux-x86-64.so.2\0", JOB), None);
        assert!(dynamic.contains("ld-linux") && dynamic.contains("make arm"), "{dynamic}");
        assert!(says(&program(62, "", "another"), None).contains("first process"));
        assert!(says(b"#!/bin/sh\n", None).contains("no program"));
        assert_eq!(machine("armhf").unwrap(), 40);
        assert!(machine("mips").is_err());
    }
}
