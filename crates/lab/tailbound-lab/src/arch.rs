// SPDX-License-Identifier: MIT OR Apache-2.0
//! The architectures a guest can have, by the names of the kernel, Debian and QEMU.

use std::fmt;
use std::str::FromStr;

use tailbound_core::words::UnknownWord;

/// Architecture of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// 32-bit ARM, hard float.
    Arm,
}

impl Arch {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::X86_64, Self::Aarch64, Self::Arm];

    /// The architecture of this program.
    #[must_use]
    pub fn of_host() -> Self {
        if cfg!(target_arch = "aarch64") {
            Self::Aarch64
        } else if cfg!(target_arch = "arm") {
            Self::Arm
        } else {
            Self::X86_64
        }
    }

    /// As uname(2) and QEMU's programs say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::Arm => "arm",
        }
    }

    /// As Debian says it.
    #[must_use]
    pub fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
            Self::Arm => "armhf",
        }
    }

    /// As the kernel's makefiles say it.
    #[must_use]
    pub fn kbuild(self) -> &'static str {
        match self {
            Self::X86_64 => "x86",
            Self::Aarch64 => "arm64",
            Self::Arm => "arm",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arch {
    type Err = UnknownWord;
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text {
            "x86_64" | "amd64" | "x86-64" | "x86" => Ok(Self::X86_64),
            "aarch64" | "arm64" => Ok(Self::Aarch64),
            "arm" | "armhf" | "armv7" => Ok(Self::Arm),
            _ => Err(UnknownWord {
                typed: text.to_owned(),
                known: [Self::X86_64, Self::Aarch64, Self::Arm].map(Self::name).to_vec(),
            }),
        }
    }
}
