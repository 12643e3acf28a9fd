// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a kernel can be called: `debian:…`, `path:…`, `build:…`.
//!
//! A name is kept as it was typed; what it comes to today is found elsewhere
//! (`debian` asks apt, `obtain` looks).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tailbound_core::words::did_you_mean;

use crate::error::{KernelError, LabError};

/// A kernel by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelName {
    /// A kernel of Debian, after the colon: `6.12-rt`, `6.1-cloud`, `rt`, `stock`,
    /// `6.12.117+deb12-rt-amd64`, `linux-image-rt-amd64`, `PACKAGE=VERSION`; `@SUITE` behind
    /// it asks another suite of the same archives.
    Debian(String),
    /// A kernel image of the user's own, and its `lib/modules/<release>`.
    Path {
        /// The image.
        image: PathBuf,
        /// Its modules, where it has any.
        modules: Option<PathBuf>,
    },
    /// What `lab kernel build --name` made.
    Build(BuildName),
}

const FORMS: &str = "debian:6.12-rt, debian:6.1-cloud, debian:rt, debian:PACKAGE=VERSION, \
                     path:VMLINUZ[,MODULES_FOLDER] or build:NAME";

impl FromStr for KernelName {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let wrong = |source| LabError::from(KernelError::Name { name: text.to_owned(), source });
        let Some((kind, rest)) = text.split_once(':') else {
            return Err(wrong(KernelNameError::NoOrigin));
        };
        match kind {
            "debian" => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "+-.~=:_@".contains(c);
                if rest.is_empty() || rest.starts_with('-') || !rest.chars().all(plain) {
                    return Err(wrong(KernelNameError::Debian));
                }
                Ok(Self::Debian(rest.to_owned()))
            }
            "path" => {
                let (image, modules) = match rest.split_once(',') {
                    Some((image, modules)) => (image, Some(modules)),
                    None => (rest, None),
                };
                if image.is_empty() || modules.is_some_and(str::is_empty) {
                    return Err(wrong(KernelNameError::Path));
                }
                Ok(Self::Path { image: image.into(), modules: modules.map(PathBuf::from) })
            }
            "build" => Ok(Self::Build(rest.parse().map_err(|e| wrong(KernelNameError::Build(e)))?)),
            _ => {
                let near = did_you_mean(kind, ["debian", "path", "build"]);
                Err(wrong(KernelNameError::UnknownOrigin { origin: kind.to_owned(), near }))
            }
        }
    }
}

/// What a build is called: it becomes a folder and a git branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildName(String);

impl BuildName {
    /// As it was typed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BuildName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BuildName {
    type Err = BuildNameError;

    fn from_str(name: &str) -> Result<Self, BuildNameError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        let edges = name.starts_with(['.', '-']) || name.ends_with('.') || name.ends_with(".lock");
        if name.is_empty() || name.len() > 64 || edges || name.contains("..") {
            return Err(BuildNameError::Form);
        }
        if !name.chars().all(plain) {
            return Err(BuildNameError::Letters);
        }
        Ok(Self(name.to_owned()))
    }
}

/// What is wrong with the name of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelNameError {
    /// It does not say where the kernel comes from.
    #[error("say where it comes from: {FORMS}")]
    NoOrigin,
    /// No kernel of Debian is called so.
    #[error(
        "after `debian:` stands a version, a flavour or both (6.12, rt, 6.12-rt), or PACKAGE=VERSION"
    )]
    Debian,
    /// The file of an image, or the folder of its modules, is missing.
    #[error("after `path:` stands VMLINUZ or VMLINUZ,MODULES_FOLDER")]
    Path,
    /// No build is called so.
    #[error("{0}")]
    Build(BuildNameError),
    /// Kernels do not come from there.
    #[error("`{origin}:` is not known{near}; there are {FORMS}")]
    UnknownOrigin {
        /// What stands before the colon.
        origin: String,
        /// A word like it, as the end of a sentence.
        near: String,
    },
}

/// Why a build may not be called this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildNameError {
    /// Too short, too long, or a name that a file system or git reads otherwise.
    #[error(
        "a build's name is 1 to 64 characters, not beginning with `.` or `-`, nor ending with `.`"
    )]
    Form,
    /// Other characters.
    #[error("a build's name is made of letters, digits and - _ . +")]
    Letters,
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian(rest) => write!(f, "debian:{rest}"),
            Self::Path { image, modules: None } => write!(f, "path:{}", image.display()),
            Self::Path { image, modules: Some(m) } => {
                write!(f, "path:{},{}", image.display(), m.display())
            }
            Self::Build(name) => write!(f, "build:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_as_typed() {
        for text in [
            "debian:6.12-rt",
            "debian:6.12.117+deb12-rt-amd64",
            "debian:6.12-rt@trixie",
            "debian:linux-image-6.1.0-47-amd64=6.1.170-3",
            "path:/boot/vmlinuz",
            "path:bzImage,out/lib/modules/6.1",
            "build:rt-6.12",
        ] {
            assert_eq!(text.parse::<KernelName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn wrong_names_say_what_is_right() {
        for (text, says) in [
            ("6.12-rt", "debian:6.12-rt"),
            ("fedora:42", "`fedora:` is not known"),
            ("debian:", "after `debian:`"),
            ("debian:-o=Dir::Cache=/", "after `debian:`"),
            ("debian:a b", "after `debian:`"),
            ("path:", "after `path:`"),
            ("path:a,", "after `path:`"),
            ("build:../x", "build's name"),
            ("build:a/b", "letters"),
        ] {
            let e = text.parse::<KernelName>().unwrap_err();
            assert_eq!(e.kind(), tailbound_core::FailureKind::Usage, "{text}");
            assert!(e.to_string().contains(says), "{text}: {e}");
        }
    }
}
