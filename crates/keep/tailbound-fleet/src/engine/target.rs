// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of targets: which machines there are, and how each is reached.
//!
//! Paths in the file are relative to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tailbound_agent::client::{PlainHttp, Server};
use toml::Spanned;

pub use super::target_entry::EngineName;

use super::reservation::{LabgridPlace, SlurmJob, labgrid_place, slurm_job};
use super::target_entry::TargetEntry;

/// How a target is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is this machine.
    Local,
    /// By the machine's own ssh.
    Ssh {
        /// What is typed behind `ssh`.
        host: String,
        /// Instead of the user's own configuration.
        config: Option<PathBuf>,
    },
    /// A kernel of the laboratory.
    Lab {
        /// As `campaign run --kernel` takes it.
        kernel: String,
    },
    /// By a server that its agent asks.
    Agent {
        /// With an operator's token.
        server: Server,
        /// The machine's name there.
        system: String,
    },
    /// By a job of Slurm.
    Slurm(SlurmJob),
    /// By a place of labgrid.
    Labgrid(LabgridPlace),
}

impl Reach {
    /// The engine's name.
    #[must_use]
    pub fn engine(&self) -> EngineName {
        match self {
            Self::Local => EngineName::Local,
            Self::Ssh { .. } => EngineName::Ssh,
            Self::Lab { .. } => EngineName::Lab,
            Self::Agent { .. } => EngineName::Agent,
            Self::Slurm(_) => EngineName::Slurm,
            Self::Labgrid(_) => EngineName::Labgrid,
        }
    }

    /// Can its clock be asked, and a run there begin at an instant of it?
    pub(super) fn has_clock(&self) -> bool {
        matches!(self, Self::Local | Self::Ssh { .. })
    }

    /// Are its runs in a folder with the target's own name? Those of the laboratory are called by their kernels.
    #[must_use]
    pub(super) fn names_its_folder(&self) -> bool {
        !matches!(self, Self::Lab { .. })
    }
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name, also of its folder.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// Words by which some of the targets can be chosen.
    pub tags: Vec<String>,
    /// Measured CPUs, instead of those of the campaign.
    pub cpus: Option<String>,
    /// A folder on the machine for the program and its results, instead of the user's home.
    pub folder: Option<String>,
    /// Of a run in the lab: with each, loads and activations begin elsewhere.
    pub seed: Option<u64>,
}

/// All that a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// In the order of the file.
    pub targets: Vec<Target>,
    /// Static programs by architecture, as uname(1) -m has it.
    pub programs: Vec<(String, PathBuf)>,
}

/// What is wrong with a file of targets.
#[derive(Debug, thiserror::Error)]
pub enum TargetsError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no file of targets.
    #[error("{path}:{line}: {why}")]
    Wrong {
        /// Which.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong, and what to do.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    programs: BTreeMap<String, PathBuf>,
    #[serde(default)]
    target: Vec<Spanned<TargetEntry>>,
}

impl Targets {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read or is wrong, with the line and what to do.
    pub fn read(path: &Path) -> Result<Self, TargetsError> {
        let text = tailbound_sys::given::text(path, tailbound_core::limits::TEXT_BYTES_MAX)
            .map_err(|source| TargetsError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text)
    }

    /// Reads `text`, which the file at `path` holds.
    ///
    /// # Errors
    /// When it is wrong, with the line and what to do.
    pub fn parse(path: &Path, text: &str) -> Result<Self, TargetsError> {
        let wrong = |(at, why): (usize, String)| TargetsError::Wrong {
            path: path.to_owned(),
            line: 1 + text.bytes().take(at).filter(|b| *b == b'\n').count(),
            why,
        };
        let written: Written = toml::from_str(text)
            .map_err(|e| wrong((e.span().map_or(0, |s| s.start), e.message().to_owned())))?;
        let base = path.parent().unwrap_or(Path::new("."));
        let mut targets: Vec<Target> = Vec::new();
        for one in written.target {
            let at = one.span().start;
            let target = target(one.into_inner(), at, base).map_err(wrong)?;
            if targets.iter().any(|t| t.name == target.name) {
                let why = format!("two targets are called `{}`: rename one", target.name);
                return Err(wrong((at, why)));
            }
            targets.push(target);
        }
        if targets.is_empty() {
            let why = "no target: write a table [[target]] with name and engine".to_owned();
            return Err(wrong((0, why)));
        }
        let programs = written.programs.into_iter().map(|(a, p)| (a, base.join(p))).collect();
        Ok(Self { targets, programs })
    }
}

/// One target, or the place and what is wrong there.
fn target(one: TargetEntry, at: usize, base: &Path) -> Result<Target, (usize, String)> {
    let name = one.name.get_ref();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if name.is_empty() || !name.chars().all(plain) || name.starts_with(['.', '-']) {
        let why = format!("`{name}` is no name of a folder: use letters, digits, - _ . +");
        return Err((one.name.span().start, why));
    }
    let engine = one.engine;
    for (key, there, of) in one.particular() {
        if let Some(at) = there.filter(|_| !of.contains(&engine)) {
            let of: Vec<String> = of.iter().map(|e| format!("`{e}`")).collect();
            let of = of.join(" or ");
            let why = format!("`{key}` belongs to an engine {of}, not to `{engine}`: remove it");
            return Err((at, why));
        }
    }
    let needs = |key: &str, like: &str| {
        (at, format!("the target `{name}` has no `{key}`: write {key} = \"{like}\""))
    };
    let reach = match engine {
        EngineName::Local => Reach::Local,
        EngineName::Ssh => {
            let host = one.host.ok_or_else(|| needs("host", "root@board"))?;
            // ssh would take it for an option.
            if host.get_ref().is_empty() || host.get_ref().starts_with('-') {
                let why = format!("`{}` is no host: write USER@HOST", host.get_ref());
                return Err((host.span().start, why));
            }
            let config = one.config.map(|c| base.join(c.into_inner()));
            Reach::Ssh { host: host.into_inner(), config }
        }
        EngineName::Lab => {
            let kernel = one.kernel.ok_or_else(|| needs("kernel", "debian:6.12"))?;
            Reach::Lab { kernel: kernel.into_inner() }
        }
        EngineName::Agent => {
            let url = one.server.ok_or_else(|| needs("server", "https://farm.example:8787"))?;
            let token = one.token_file.ok_or_else(|| needs("token-file", "operator.token"))?;
            let server = Server {
                url: url.into_inner(),
                token_file: base.join(token.into_inner()),
                ca: one.ca.map(|c| base.join(c.into_inner())),
                plain_http: PlainHttp::Refused,
            };
            let system = one.system.map_or_else(|| name.clone(), Spanned::into_inner);
            Reach::Agent { server, system }
        }
        EngineName::Slurm => Reach::Slurm(slurm_job(&one)?),
        EngineName::Labgrid => {
            Reach::Labgrid(labgrid_place(&one, base)?.ok_or_else(|| needs("place", "press"))?)
        }
    };
    let folder = match one.folder {
        Some(folder) if !folder.get_ref().starts_with('/') => {
            let why = format!("`{}` is not absolute: begin it with /", folder.get_ref());
            return Err((folder.span().start, why));
        }
        folder => folder.map(Spanned::into_inner),
    };
    let seed = one.seed.map(Spanned::into_inner);
    Ok(Target { name: name.clone(), reach, tags: one.tags, cpus: one.cpus, folder, seed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        match Targets::parse(Path::new("lab/TARGETS.toml"), text) {
            Ok(t) => format!("{t:?}"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_what_to_do() {
        let two = "[[target]]\nname = \"a\"\nengine = \"local\"\n";
        for (text, expected) in [
            ("", "lab/TARGETS.toml:1: no target: write a table [[target]] with name and engine"),
            (
                "[[target]]\nname = \"a\"\nengine = \"ssh\"\n",
                "lab/TARGETS.toml:1: the target `a` has no `host`: write host = \"root@board\"",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"local\"\nhost = \"b\"\n",
                "lab/TARGETS.toml:4: `host` belongs to an engine `ssh`, not to `local`: remove it",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"local\"\nseed = 2\n",
                "lab/TARGETS.toml:4: `seed` belongs to an engine `lab`, not to `local`: remove it",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"local\"\nfolder = \"/scratch\"\n",
                "lab/TARGETS.toml:4: `folder` belongs to an engine `ssh` or `slurm` or `labgrid`, not to `local`: remove it",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"slurm\"\noptions = [\"-A lab\"]\n",
                "lab/TARGETS.toml:4: `-A lab` is no long option of srun: write --NAME=VALUE in one word",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"labgrid\"\n",
                "lab/TARGETS.toml:1: the target `a` has no `place`: write place = \"press\"",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"labgrid\"\nplace = \"p\"\nstate = \"rt\"\n",
                "lab/TARGETS.toml:5: `state` needs labgrid's file with the strategy: write environment = \"lab.yaml\"",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"labgrid\"\nplace = \"p\"\nenvironment = \"e\"\n",
                "lab/TARGETS.toml:5: `environment` needs the state in which the board is measured: write state = \"shell\"",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"labgrid\"\nplace = \"p\"\nenvironment = \"e\"\nstate = \"rt\"\npower-cycle = true\n",
                "lab/TARGETS.toml:7: `power-cycle` and `state` exclude each other, as the strategy switches the power: remove one",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"labgrid\"\nplace-tags = [\"press\"]\n",
                "lab/TARGETS.toml:4: `press` is no tag of a place: write KEY=VALUE",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"slurm\"\nfolder = \"scratch\"\n",
                "lab/TARGETS.toml:4: `scratch` is not absolute: begin it with /",
            ),
            (
                "[[target]]\nname = \"../a\"\nengine = \"local\"\n",
                "lab/TARGETS.toml:2: `../a` is no name of a folder: use letters, digits, - _ . +",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"ssh\"\nhost = \"-oProxyCommand=x\"\n",
                "lab/TARGETS.toml:4: `-oProxyCommand=x` is no host: write USER@HOST",
            ),
            (
                "[[target]]\nname = \"a\"\nengine = \"agent\"\nserver = \"https://farm\"\n",
                "lab/TARGETS.toml:1: the target `a` has no `token-file`: write token-file = \"operator.token\"",
            ),
            (&format!("{two}{two}"), "lab/TARGETS.toml:4: two targets are called `a`: rename one"),
        ] {
            assert_eq!(said(text), expected, "{text}");
        }
        let unknown = said("[[target]]\nname = \"a\"\nengine = \"telnet\"\n");
        assert!(
            unknown.starts_with("lab/TARGETS.toml:3: ") && unknown.contains("telnet"),
            "{unknown}"
        );
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let text = "[programs]\naarch64 = \"bin/tb\"\n[[target]]\nname = \"a\"\nengine = \"ssh\"\nhost = \"h\"\nconfig = \"c\"\n";
        let read = Targets::parse(Path::new("lab/TARGETS.toml"), text).expect("it is right");
        assert_eq!(read.programs, [("aarch64".to_owned(), PathBuf::from("lab/bin/tb"))]);
        let config = Some(PathBuf::from("lab/c"));
        assert_eq!(read.targets[0].reach, Reach::Ssh { host: "h".to_owned(), config });
    }
}
