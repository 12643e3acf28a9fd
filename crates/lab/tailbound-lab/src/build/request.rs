// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a kernel build is asked for, as typed.
//!
//! Pure.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::arch::Arch;
use crate::error::{BuildError, LabError};
use crate::kernel::BuildName;

/// A kernel to be built, or to be tested for building.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it is called afterwards: `build:NAME`.
    pub name: BuildName,
    /// For which architecture.
    pub arch: Arch,
    /// Where the source comes from.
    pub source: Source,
    /// Patches, in order: files (plain, .gz or .xz), or `package:FILE` for one that comes with
    /// Debian's source package.
    pub patches: Vec<String>,
    /// For a git tree: the series is moved onto this commit.
    pub rebase_onto: Option<String>,
    /// Names of fragments of ours, or files.
    pub fragments: Vec<String>,
    /// A whole configuration to begin with in place of our small guest's.
    pub config: Option<PathBuf>,
    /// Compilers at a time.
    pub jobs: u32,
}

/// Where a kernel's source comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A source package of Debian, with `@SUITE` behind it where it is of another suite.
    Debian(String),
    /// A folder (a git tree or not) or an archive.
    Path(PathBuf),
}

impl FromStr for Source {
    type Err = LabError;
    fn from_str(text: &str) -> Result<Self, LabError> {
        match text.strip_prefix("debian:") {
            Some(package) => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "+-.~=:@".contains(c);
                if !package.starts_with("linux-source-") || !package.chars().all(plain) {
                    return Err(BuildError::SourcePackage { name: text.to_owned() }.into());
                }
                Ok(Self::Debian(package.to_owned()))
            }
            None if text.is_empty() => Err(BuildError::NoSource.into()),
            None => Ok(Self::Path(text.into())),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian(package) => write!(f, "debian:{package}"),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A configuration that is only built, not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildTest {
    /// Everything that can be a module is one.
    AllMod,
    /// Everything is built in.
    AllYes,
    /// As little as there can be.
    AllNo,
    /// By chance, but the same for the same seed.
    Random(u32),
    /// The configuration a build would have.
    Guest,
}

impl FromStr for BuildTest {
    type Err = LabError;
    fn from_str(text: &str) -> Result<Self, LabError> {
        Ok(match text {
            "allmodconfig" => Self::AllMod,
            "allyesconfig" => Self::AllYes,
            "allnoconfig" => Self::AllNo,
            "guest" => Self::Guest,
            _ => match text.split_once(':') {
                Some(("randconfig", seed)) => Self::Random(random_seed(seed)?),
                _ if text == "randconfig" => {
                    return Err(BuildError::NoSeed.into());
                }
                _ => {
                    return Err(BuildError::UnknownTest { name: text.to_owned() }.into());
                }
            },
        })
    }
}

fn random_seed(text: &str) -> Result<u32, LabError> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| BuildError::Seed { seed: text.to_owned() }.into())
}

impl fmt::Display for BuildTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllMod => f.write_str("allmodconfig"),
            Self::AllYes => f.write_str("allyesconfig"),
            Self::AllNo => f.write_str("allnoconfig"),
            Self::Random(seed) => write!(f, "randconfig:{seed}"),
            Self::Guest => f.write_str("guest"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_sources_are_read_and_printed_again() {
        for text in ["allmodconfig", "allyesconfig", "allnoconfig", "randconfig:7", "guest"] {
            assert_eq!(text.parse::<BuildTest>().unwrap().to_string(), text);
        }
        assert_eq!("randconfig:0x10".parse::<BuildTest>().unwrap(), BuildTest::Random(16));
        for (text, says) in [
            ("randconfig", "needs a seed"),
            ("randconfig:x", "a seed is a number"),
            ("randconfig:4294967296", "a seed is a number"),
            ("defconfig", "is not one of"),
        ] {
            let e = text.parse::<BuildTest>().unwrap_err();
            assert!(
                e.to_string().contains(says) && e.kind() == tailbound_core::FailureKind::Usage,
                "{e}"
            );
        }
        for text in ["debian:linux-source-6.12", "debian:linux-source-5.10@bullseye", "../linux"] {
            assert_eq!(text.parse::<Source>().unwrap().to_string(), text);
        }
        for text in ["debian:bash", "", "debian:linux-source-6 -o x"] {
            assert!(text.parse::<Source>().is_err(), "{text}");
        }
    }
}
