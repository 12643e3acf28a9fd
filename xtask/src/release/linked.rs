// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which crates are linked into the programs of an architecture, as cargo resolves them: features and platform of the
//! build, normal dependencies, no procedural macros.
//!
//! Source: cargo-tree(1) for what is chosen, cargo-metadata(1) for what is known of it, Cargo.lock for checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::Value;

use super::programs::Architecture;
use super::{Release, said};
use crate::exec;

/// One crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinkedCrate {
    pub(super) name: String,
    pub(super) version: String,
    /// As an expression of SPDX; empty where its manifest says none.
    pub(super) licence: String,
    /// Of the packed crate; ours have none.
    pub(super) sha256: Option<String>,
    /// Its folder of sources.
    pub(super) folder: PathBuf,
    /// Name and version of those that it uses.
    pub(super) uses: BTreeSet<String>,
}

impl LinkedCrate {
    /// `NAME@VERSION`.
    pub(super) fn id(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// Is it part of this project?
    pub(super) fn is_ours(&self) -> bool {
        self.name == "tailbound" || self.name.starts_with("tailbound-")
    }
}

/// All crates of an architecture's programs, by [`LinkedCrate::id`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) crates: BTreeMap<String, LinkedCrate>,
}

impl Linked {
    /// Asks cargo.
    pub(super) fn of(release: &Release, architecture: &Architecture) -> anyhow::Result<Self> {
        let mut tree = exec::cargo(&release.project);
        tree.args(["tree", "--locked", "-p", "tailbound", "-e", "normal,no-proc-macro"]);
        tree.args([
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--target",
            architecture.target.triple(),
        ]);
        tree.args(architecture.target.features());
        let chosen = chosen(&said(&mut tree)?);
        let mut metadata = exec::cargo(&release.project);
        metadata.args([
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--filter-platform",
            architecture.target.triple(),
        ]);
        let metadata: Value =
            serde_json::from_str(&said(&mut metadata)?).context("cargo metadata")?;
        let lock = std::fs::read_to_string(release.project.join("Cargo.lock"))?;
        joined(&chosen, &metadata, &checksums(&lock))
    }
}

/// `NAME@VERSION` of each line `NAME vVERSION …`.
fn chosen(tree: &str) -> BTreeSet<String> {
    let id = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{}@{}", words.next()?, words.next()?.strip_prefix('v')?))
    };
    tree.lines().filter_map(id).collect()
}

/// The checksum of each package in the lock file that has one.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(" = \""));
        line.map(|l| l.trim_end_matches('"').to_owned())
    };
    let entry = |block: &str| {
        let id = format!("{}@{}", value(block, "name")?, value(block, "version")?);
        Some((id, value(block, "checksum")?))
    };
    lock.split("[[package]]").filter_map(entry).collect()
}

fn joined(
    chosen: &BTreeSet<String>,
    metadata: &Value,
    checksums: &BTreeMap<String, String>,
) -> anyhow::Result<Linked> {
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let mut crates = BTreeMap::new();
    let mut by_package = BTreeMap::new();
    for package in metadata["packages"].as_array().context("cargo metadata has no packages")? {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let id = format!("{name}@{version}");
        if !chosen.contains(&id) {
            continue;
        }
        by_package.insert(text(package, "id"), id.clone());
        let manifest = PathBuf::from(text(package, "manifest_path"));
        let linked = LinkedCrate {
            name,
            version,
            licence: text(package, "license").replace('/', " OR ").replace("  ", " "),
            sha256: checksums.get(&id).cloned(),
            folder: manifest.parent().context("a manifest without a folder")?.to_owned(),
            uses: BTreeSet::new(),
        };
        crates.insert(id, linked);
    }
    if let Some(lost) = chosen.iter().find(|id| !crates.contains_key(*id)) {
        anyhow::bail!("cargo metadata does not know {lost}, which cargo tree has");
    }
    for node in metadata["resolve"]["nodes"].as_array().into_iter().flatten() {
        let Some(id) = by_package.get(&text(node, "id")) else { continue };
        let normal = |dep: &&Value| {
            dep["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
        };
        let deps = node["deps"].as_array().into_iter().flatten().filter(normal);
        let uses = deps.filter_map(|dep| by_package.get(dep["pkg"].as_str()?).cloned()).collect();
        if let Some(linked) = crates.get_mut(id) {
            linked.uses = uses;
        }
    }
    Ok(Linked { crates })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_linked_is_listed_with_what_it_uses() {
        let tree = "tailbound v0.1.0 (/p)\na v1.0.0\nb v2.0.0\na v1.0.0 (*)\n";
        let chosen = chosen(tree);
        assert_eq!(chosen.len(), 3);
        let package = |name: &str, version: &str| json!({"name": name, "version": version, "id": name, "license": "MIT/Apache-2.0", "manifest_path": format!("/r/{name}/Cargo.toml")});
        let metadata = json!({
            "packages": [package("tailbound", "0.1.0"), package("a", "1.0.0"), package("b", "2.0.0"), package("c", "3.0.0")],
            "resolve": {"nodes": [{"id": "a", "deps": [
                {"pkg": "b", "dep_kinds": [{"kind": null}]},
                {"pkg": "tailbound", "dep_kinds": [{"kind": "build"}]},
                {"pkg": "c", "dep_kinds": [{"kind": null}]},
            ]}]},
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"tailbound\"\nversion = \"0.1.0\"\n";
        let linked = joined(&chosen, &metadata, &checksums(lock)).unwrap();
        let a = &linked.crates["a@1.0.0"];
        assert_eq!(linked.crates.len(), 3, "c is not linked");
        assert_eq!(a.uses, BTreeSet::from(["b@2.0.0".to_owned()]));
        assert_eq!((a.sha256.as_deref(), a.licence.as_str()), (Some("ab"), "MIT OR Apache-2.0"));
        let lost = BTreeSet::from(["x@1.0.0".to_owned()]);
        assert!(joined(&lost, &metadata, &BTreeMap::new()).is_err());
    }
}
