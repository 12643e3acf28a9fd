// SPDX-License-Identifier: MIT OR Apache-2.0
//! An entry of the file of targets as it is written there: its keys, and which of them belong to which engine.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

/// Engines by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// This machine.
    Local,
    /// A machine that ssh(1) reaches.
    Ssh,
    /// A kernel of the laboratory, in virtual time.
    Lab,
    /// A machine that asks a server for work.
    Agent,
    /// A node that Slurm gives.
    Slurm,
    /// A place of labgrid.
    Labgrid,
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Ssh => "ssh",
            Self::Lab => "lab",
            Self::Agent => "agent",
            Self::Slurm => "slurm",
            Self::Labgrid => "labgrid",
        })
    }
}

/// A table `[[target]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TargetEntry {
    pub(super) name: Spanned<String>,
    pub(super) engine: EngineName,
    pub(super) host: Option<Spanned<String>>,
    pub(super) config: Option<Spanned<PathBuf>>,
    pub(super) kernel: Option<Spanned<String>>,
    pub(super) server: Option<Spanned<String>>,
    pub(super) token_file: Option<Spanned<PathBuf>>,
    pub(super) ca: Option<Spanned<PathBuf>>,
    pub(super) system: Option<Spanned<String>>,
    pub(super) partition: Option<Spanned<String>>,
    pub(super) features: Option<Spanned<Vec<String>>>,
    pub(super) node: Option<Spanned<String>>,
    pub(super) time_limit: Option<Spanned<String>>,
    pub(super) wait_s: Option<Spanned<u32>>,
    pub(super) options: Option<Spanned<Vec<String>>>,
    pub(super) every_node: Option<Spanned<bool>>,
    pub(super) coordinator: Option<Spanned<String>>,
    pub(super) place: Option<Spanned<String>>,
    pub(super) place_tags: Option<Spanned<Vec<String>>>,
    pub(super) power_cycle: Option<Spanned<bool>>,
    pub(super) environment: Option<Spanned<PathBuf>>,
    pub(super) state: Option<Spanned<String>>,
    pub(super) console: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    pub(super) cpus: Option<String>,
    pub(super) folder: Option<Spanned<String>>,
    pub(super) seed: Option<Spanned<u64>>,
}

/// Where a key stands, if it does.
fn at<T>(key: Option<&Spanned<T>>) -> Option<usize> {
    key.map(|k| k.span().start)
}

impl TargetEntry {
    /// Each key that belongs to some engines only: its name, where it stands, and to which.
    pub(super) fn particular(&self) -> [(&'static str, Option<usize>, &'static [EngineName]); 23] {
        use EngineName::{Agent, Lab, Labgrid, Slurm, Ssh};
        [
            ("host", at(self.host.as_ref()), &[Ssh]),
            ("config", at(self.config.as_ref()), &[Ssh, Labgrid]),
            ("kernel", at(self.kernel.as_ref()), &[Lab, Labgrid]),
            ("seed", at(self.seed.as_ref()), &[Lab]),
            ("server", at(self.server.as_ref()), &[Agent]),
            ("token-file", at(self.token_file.as_ref()), &[Agent]),
            ("ca", at(self.ca.as_ref()), &[Agent]),
            ("system", at(self.system.as_ref()), &[Agent]),
            ("partition", at(self.partition.as_ref()), &[Slurm]),
            ("features", at(self.features.as_ref()), &[Slurm]),
            ("node", at(self.node.as_ref()), &[Slurm]),
            ("time-limit", at(self.time_limit.as_ref()), &[Slurm]),
            ("wait-s", at(self.wait_s.as_ref()), &[Slurm, Labgrid]),
            ("options", at(self.options.as_ref()), &[Slurm]),
            ("every-node", at(self.every_node.as_ref()), &[Slurm]),
            ("folder", at(self.folder.as_ref()), &[Ssh, Slurm, Labgrid]),
            ("coordinator", at(self.coordinator.as_ref()), &[Labgrid]),
            ("place", at(self.place.as_ref()), &[Labgrid]),
            ("place-tags", at(self.place_tags.as_ref()), &[Labgrid]),
            ("power-cycle", at(self.power_cycle.as_ref()), &[Labgrid]),
            ("environment", at(self.environment.as_ref()), &[Labgrid]),
            ("state", at(self.state.as_ref()), &[Labgrid]),
            ("console", at(self.console.as_ref()), &[Labgrid]),
        ]
    }
}
