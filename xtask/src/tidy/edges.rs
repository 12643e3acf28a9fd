// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which crate may use which, and how many crates of others there may be.
//!
//! The table is the architecture: an edge that is not in it is an
//! error, whatever kind of dependency it is (normal, build, dev).
//! Source: `cargo metadata`, format version 1.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::finding::Finding;
use crate::exec;

/// Crate, and the workspace crates it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("tailbound-rt", &[]),
    ("tailbound-wire", &[]),
    ("tailbound-sys", &["rt"]),
    ("tailbound-archive", &["sys"]),
    ("tailbound-core", &["rt"]),
    ("tailbound-stats", &["core"]),
    ("tailbound-host", &["sys", "core"]),
    ("tailbound-load", &["sys", "core"]),
    ("tailbound-probe", &["rt", "sys", "host", "core", "record"]),
    ("tailbound-record", &["sys", "host", "core", "trace"]),
    ("tailbound-box", &["wire"]),
    ("tailbound-import", &["box", "core"]),
    ("tailbound-stimulus", &["rt", "box", "core", "host", "import", "sys", "wire"]),
    ("tailbound-report", &["core", "stats"]),
    // How a file becomes a run, whoever wrote or packed it: what the command line and searches both do.
    ("tailbound-files", &["archive", "core", "import", "stats", "sys", "trace"]),
    (
        "tailbound-run",
        &["rt", "core", "sys", "host", "load", "probe", "record", "stats", "rules", "tune"],
    ),
    // import: of tests, which read its output back.
    ("tailbound-cyclictest", &["core", "host", "import", "run", "sys", "tune"]),
    ("tailbound-series", &["core", "stats", "sys"]),
    ("tailbound-store", &["core", "stats", "sys"]),
    ("tailbound-agent", &["core", "host", "load", "monitor", "series", "sys"]),
    ("tailbound-fleet", &["agent", "core", "stats", "report", "series", "store", "sys"]),
    ("tailbound-monitor", &["sys", "core", "host", "trace"]),
    ("tailbound-trace", &["core"]),
    ("tailbound-paths", &["core", "trace"]),
    ("tailbound-testing", &[]),
    // rules, stats and trace: what the verdict, the bound and the watching of a guest's run are made of.
    (
        "tailbound-lab",
        &["archive", "sys", "core", "host", "import", "paths", "rules", "stats", "trace"],
    ),
    // import and load: of its tests. tune: the changes that are tried in guests, and the profiles that these apply.
    (
        "tailbound-search",
        &[
            "core", "host", "import", "lab", "load", "paths", "report", "run", "series", "stats",
            "sys", "trace", "tune",
        ],
    ),
    ("tailbound-guest", &["sys", "core"]),
    ("tailbound-rules", &["core", "host"]),
    // The interactive view of a machine draws the tables of the report, and changes what they show.
    ("tailbound-tune", &["sys", "core", "host", "report"]),
    ("tailbound-capi", &["rt", "sys", "core", "stats", "host"]),
    (
        "tailbound",
        &[
            "rt",
            "sys",
            "core",
            "stats",
            "host",
            "load",
            "probe",
            "record",
            "import",
            "report",
            "run",
            "series",
            "trace",
            "paths",
            "search",
            "lab",
            "guest",
            "fleet",
            "store",
            "tune",
            "rules",
            "monitor",
            "agent",
            "archive",
            "files",
            "stimulus",
            "wire",
            "cyclictest",
        ],
    ),
];

/// The folders below `crates`, named by the question that their crates answer. A crate uses none of a folder
/// behind its own.
const FOLDERS: [&str; 7] = ["base", "answer", "explain", "improve", "measure", "lab", "keep"];

/// The one crate that every other may use, in its tests.
const TESTING: &str = "tailbound-testing";

/// xtask sees the tool's command line (man pages) and the run file (schema), nothing deeper.
const XTASK: &[&str] = &["tailbound", "tailbound-core"];

/// The one crate that may name libc.
const LIBC_OWNER: &str = "tailbound-sys";

/// External crates named directly by any of ours.
pub(super) const DIRECT_MAX: usize = 42;

/// Packages in Cargo.lock that are not ours. 74 of them came with the store: the client of PostgreSQL, with the runtime below it,
/// SQLite and Zstandard. What is copied to a board (feature `board`) has none of those. 3 came with the agent's client,
/// 8 with the certificates that its tests make, and 28 with Parquet, half of them for systems other than Linux.
pub(super) const LOCKED_MAX: usize = 264;

/// One dependency as cargo knows it.
#[derive(Debug, Clone)]
struct Edge {
    from: String,
    manifest: String,
    to: String,
    ours: bool,
    /// Of tests only.
    dev: bool,
}

/// All rules about dependencies.
pub(crate) fn check(project: &Path, lock: &str) -> anyhow::Result<Vec<Finding>> {
    let mut cargo = exec::cargo(project);
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let out = exec::output(&mut cargo)?;
    if !out.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    let metadata = serde_json::from_slice(&out.stdout).context("cargo metadata")?;
    let edges = edges(&metadata, project)?;
    let mut found = directions(&edges);
    found.extend(folders(&edges));
    found.extend(budgets(&edges, lock));
    Ok(found)
}

fn edges(metadata: &Value, project: &Path) -> anyhow::Result<Vec<Edge>> {
    let text = |v: &Value, key: &str| -> anyhow::Result<String> {
        Ok(v[key].as_str().with_context(|| format!("cargo metadata has no `{key}`"))?.to_owned())
    };
    let mut out = Vec::new();
    for package in metadata["packages"].as_array().context("cargo metadata has no packages")? {
        let manifest = text(package, "manifest_path")?;
        let relative = Path::new(&manifest).strip_prefix(project).unwrap_or(Path::new(&manifest));
        for d in package["dependencies"].as_array().into_iter().flatten() {
            out.push(Edge {
                from: text(package, "name")?,
                manifest: relative.display().to_string(),
                to: text(d, "name")?,
                ours: d["source"].is_null(),
                dev: d["kind"] == "dev",
            });
        }
    }
    Ok(out)
}

fn directions(edges: &[Edge]) -> Vec<Finding> {
    let mut found = Vec::new();
    for e in edges {
        let place = (e.manifest.as_str(), 1);
        if e.to == "libc" && e.from != LIBC_OWNER {
            found.push(Finding::new(
                place,
                "libc",
                format!("`{}` names libc: system calls have one home", e.from),
                format!("Put the call into {LIBC_OWNER} with a type of its own"),
            ));
        }
        if !e.ours || e.from == e.to {
            continue;
        }
        let allowed = if e.to == TESTING {
            e.dev || e.from == "xtask"
        } else if e.from == "xtask" {
            XTASK.contains(&e.to.as_str())
        } else if let Some((_, rooms)) = ROOMS.iter().find(|(name, _)| *name == e.from) {
            e.to.strip_prefix("tailbound-").is_some_and(|to| rooms.contains(&to))
        } else {
            found.push(Finding::new(
                place,
                "edge",
                format!("`{}` is not in the table of crates", e.from),
                "Add it to xtask/src/tidy/edges.rs and say in the commit what room it is",
            ));
            continue;
        };
        if !allowed {
            found.push(Finding::new(
                place,
                "edge",
                format!("`{}` may not use `{}`: add the edge to the table in edges.rs, with a reason, or move the code", e.from, e.to),
                "Move the code to the crate that may, or change the table in \
                 xtask/src/tidy/edges.rs with a reason",
            ));
        }
    }
    found
}

/// Edges to a folder behind the own one.
fn folders(edges: &[Edge]) -> Vec<Finding> {
    let place = |manifest: &str| {
        let folder = manifest.strip_prefix("crates/")?.split('/').next()?;
        FOLDERS.iter().position(|f| *f == folder)
    };
    let of: BTreeMap<&str, Option<usize>> =
        edges.iter().map(|e| (e.from.as_str(), place(&e.manifest))).collect();
    let behind = |e: &&Edge| {
        let (from, to) = (of.get(e.from.as_str()), of.get(e.to.as_str()));
        matches!((from, to), (Some(Some(from)), Some(Some(to))) if from < to)
    };
    let finding = |e: &Edge| {
        Finding::new(
            (e.manifest.as_str(), 1),
            "folder",
            format!(
                "`{}` uses `{}`, which lies in a folder behind its own: {FOLDERS:?}",
                e.from, e.to
            ),
            "Move the crate to the folder of its question, or the code to a crate that may be used",
        )
    };
    edges.iter().filter(|e| e.ours && !e.dev).filter(behind).map(finding).collect()
}

fn budgets(edges: &[Edge], lock: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let external: BTreeSet<&str> =
        edges.iter().filter(|e| !e.ours).map(|e| e.to.as_str()).collect();
    if external.len() > DIRECT_MAX {
        found.push(Finding::new(
            ("Cargo.toml", 1),
            "direct-dependencies",
            format!("{} external crates, at most {DIRECT_MAX}: {external:?}", external.len()),
            "Do without one",
        ));
    }
    // Ours have no source.
    let packages = lock.lines().filter(|l| l.starts_with("source = ")).count();
    if packages > LOCKED_MAX {
        found.push(Finding::new(
            ("Cargo.lock", 1),
            "locked-packages",
            format!("{packages} packages, at most {LOCKED_MAX}: each is code others must trust"),
            "See `cargo tree` for what brings them; switch off default features",
        ));
    }
    // In halves: tidy looks for the name of the registry, here too.
    let official = concat!("registry+https://github.com/rust-lang/crates", ".io-index");
    for (i, line) in lock.lines().enumerate() {
        if line.strip_prefix("source = ").is_some_and(|s| s.trim_matches('"') != official) {
            found.push(Finding::new(
                ("Cargo.lock", i + 1),
                "lock-source",
                "a package comes from somewhere else than the public registry",
                "Use a published version: nobody else can reach your mirror or fork",
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, ours: bool) -> Edge {
        Edge { from: from.into(), manifest: "m".into(), to: to.into(), ours, dev: false }
    }

    fn rules(found: &[Finding]) -> Vec<&'static str> {
        found.iter().map(|f| f.rule).collect()
    }

    #[test]
    fn only_edges_of_the_table_pass() {
        let good = [
            edge("tailbound-sys", "tailbound-rt", true),
            edge("tailbound-sys", "libc", false),
            edge("tailbound", "tailbound-run", true),
            edge("xtask", "tailbound", true),
        ];
        assert!(directions(&good).is_empty());
        let test = Edge { dev: true, ..edge("tailbound-sys", TESTING, true) };
        assert!(directions(&[test]).is_empty());
        for (from, to, ours, rule) in [
            ("tailbound-sys", TESTING, true, "edge"),
            ("tailbound-core", "tailbound-sys", true, "edge"),
            ("tailbound-rt", "tailbound-core", true, "edge"),
            ("tailbound-report", "tailbound-import", true, "edge"),
            ("tailbound-new", "tailbound-core", true, "edge"),
            ("xtask", "tailbound-host", true, "edge"),
            ("tailbound-host", "libc", false, "libc"),
        ] {
            assert_eq!(rules(&directions(&[edge(from, to, ours)])), [rule], "{from} {to}");
        }
    }

    #[test]
    fn no_crate_uses_one_of_a_folder_behind_its_own() {
        let at = |from: &str, folder: &str, to: &str| Edge {
            manifest: format!("crates/{folder}/{from}/Cargo.toml"),
            ..edge(from, to, true)
        };
        let libc = |from: &str, folder: &str| Edge { ours: false, ..at(from, folder, "libc") };
        let good = [at("tailbound-run", "measure", "tailbound-sys"), libc("tailbound-sys", "base")];
        assert!(folders(&good).is_empty());
        let bad = [at("tailbound-sys", "base", "tailbound-run"), libc("tailbound-run", "measure")];
        assert_eq!(rules(&folders(&bad)), ["folder"]);
    }

    #[test]
    fn budgets_are_counted() {
        let many: Vec<Edge> =
            (0..=DIRECT_MAX).map(|i| edge("xtask", &format!("c{i}"), false)).collect();
        assert_eq!(rules(&budgets(&many, "")), ["direct-dependencies"]);
        assert!(budgets(&many[1..], "").is_empty());
        let official = concat!("registry+https://github.com/rust-lang/crates", ".io-index");
        let lock = format!("source = \"{official}\"\n").repeat(LOCKED_MAX + 1);
        assert_eq!(rules(&budgets(&[], &lock)), ["locked-packages"]);
        let mirror = "source = \"registry+https://mirror.example/index\"\n";
        assert_eq!(rules(&budgets(&[], mirror)), ["lock-source"]);
    }
}
