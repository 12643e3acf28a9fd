// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ARM boards: the same run twice, and its exact paths.

use std::path::{Path, PathBuf};

use super::Lab;
use crate::cross::Target;
use crate::exec;
use crate::stages::tally::Tally;

/// Architecture, emulator, kernel, the program's build.
pub(super) type Board = (&'static str, &'static str, &'static str, fn() -> Target);
pub(super) const BOARDS: &[Board] = &[
    ("aarch64", "qemu-system-aarch64", "debian:6.1-rt", Target::arm64),
    ("arm", "qemu-system-arm", "debian:6.1-rt-armmp", Target::arm32),
];

/// What a check on a board has to do without.
pub(super) struct Lack {
    /// In the list of what a CI requires.
    pub(super) word: &'static str,
    pub(super) why: String,
}

impl Lab {
    pub(super) fn board(&self, project: &Path, board: &Board) -> anyhow::Result<Tally> {
        let (arch, _, kernel, _) = board;
        let mut tally = Tally::default();
        let name = format!("{kernel} on {arch}, twice");
        match self.program_for(project, board) {
            Err(lack) => tally.skip(&name, lack.word, &lack.why),
            Ok(program) => {
                tally.add(&name, self.on_board(arch, kernel, &program));
                let told = self.paths_on_board(arch, kernel, &program.display().to_string());
                tally.add(&format!("paths of {kernel} on {arch} are exact"), told);
            }
        }
        Ok(tally)
    }

    /// The static program for a board whose emulator and kernel are there.
    pub(super) fn program_for(&self, project: &Path, board: &Board) -> Result<PathBuf, Lack> {
        let (arch, emulator, kernel, target) = board;
        let program = target().trial(project);
        if !program.is_file() {
            let why = format!("{} is missing: run the stage `boards` first", program.display());
            return Err(Lack { word: arch, why });
        }
        if !exec::exists(emulator) {
            let why = format!("there is no {emulator} (Debian package qemu-system-arm)");
            return Err(Lack { word: "lab-arm", why });
        }
        let fetched = self.fetch(&["lab", "kernel", "fetch", "--arch", arch, kernel]);
        let lacks =
            |e| Lack { word: "kernels", why: format!("{kernel} for {arch} cannot be had: {e:#}") };
        fetched.map(|()| program).map_err(lacks)
    }

    fn on_board(&self, arch: &str, kernel: &str, program: &Path) -> anyhow::Result<()> {
        let program = program.display().to_string();
        let out = format!("{arch}.jsonl");
        self.run(kernel, &out, &["--arch", arch, "--guest", &program, "-L", "none"])?;
        self.answers(&["lab", "repeat", "--guest", &program, &out], 0).map(drop)
    }
}
