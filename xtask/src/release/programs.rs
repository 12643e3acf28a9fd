// SPDX-License-Identifier: MIT OR Apache-2.0
//! Architectures of a release: what each is called elsewhere, and which programs it has.

use std::path::PathBuf;

use super::Release;
use crate::cross::Target;

/// One architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// In names of files.
    pub(crate) name: &'static str,
    /// As Debian calls it.
    pub(crate) deb: &'static str,
    /// As rpm calls it.
    pub(crate) rpm: &'static str,
    /// What is built for it.
    pub(crate) target: Target,
}

/// A program of an architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// `tailbound`.
    Tool,
    /// `tailbound-server`.
    Server,
}

impl Program {
    /// As it is called where it is installed, and its package.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tailbound",
            Self::Server => "tailbound-server",
        }
    }
}

impl Architecture {
    /// This machine's, which has both programs.
    pub(crate) fn native() -> Self {
        let (name, deb) = match std::env::consts::ARCH {
            "aarch64" => ("aarch64", "arm64"),
            _ => ("x86_64", "amd64"),
        };
        Self { name, deb, rpm: name, target: Target::native() }
    }

    /// This machine's, and those of boards, which have the tool.
    pub(crate) fn all() -> Vec<Self> {
        let native = Self::native();
        let boards = [
            Self { name: "aarch64", deb: "arm64", rpm: "aarch64", target: Target::arm64() },
            Self { name: "armv7", deb: "armhf", rpm: "armv7hl", target: Target::arm32() },
            Self { name: "riscv64", deb: "riscv64", rpm: "riscv64", target: Target::riscv64() },
        ];
        let others = boards.into_iter().filter(|a| a.name != native.name);
        std::iter::once(native.clone()).chain(others).collect()
    }

    /// Which programs there are.
    pub(crate) fn programs(&self) -> &'static [Program] {
        if self.target.is_for_boards() {
            &[Program::Tool]
        } else {
            &[Program::Tool, Program::Server]
        }
    }

    /// Where one lies.
    pub(crate) fn path(&self, release: &Release, program: Program) -> PathBuf {
        match program {
            Program::Tool => release.programs.join(self.target.file()),
            Program::Server => release.programs.join(program.name()),
        }
    }

    /// Why it cannot be packed.
    pub(crate) fn missing(&self, release: &Release) -> Option<String> {
        let paths = self.programs().iter().map(|p| self.path(release, *p));
        paths.into_iter().find(|p| !p.is_file()).map(|p| format!("there is no {}", p.display()))
    }
}
