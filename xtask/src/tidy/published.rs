// SPDX-License-Identifier: MIT OR Apache-2.0
//! The crates that can be published say what a registry shows, and depend on no other of ours; all others cannot be published.
//!
//! Not here: whether they can be packed and compiled from what is packed (the stage `registry`).

use super::files::File;
use super::finding::Finding;

/// Crates that people would use, and whose documentation begins with an example. What they need is published with them.
const FOR_USERS: [&str; 5] =
    ["tailbound-rt", "tailbound-core", "tailbound-stats", "tailbound-import", "tailbound-capi"];

/// What each manifest has, and why.
const KEYS: [(&str, &str); 5] = [
    ("description = \"", "a registry shows it"),
    ("keywords = [", "it is found by them"),
    ("categories = [", "it is listed in them"),
    ("include = [", "tests and their data are not packed"),
    ("[package.metadata.docs.rs]", "its documentation is built for these targets"),
];

/// See the module.
pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|f| f.path == path).and_then(File::text);
    let rust = text("Cargo.toml").and_then(|t| value(t, "rust-version")).unwrap_or_default();
    let manifests: Vec<(&str, &str, &str)> = files
        .iter()
        .filter(|f| f.path.starts_with("crates/") && !f.path.contains("/tests/"))
        .filter_map(|f| Some((f.path.strip_suffix("/Cargo.toml")?, f.text()?)))
        .filter_map(|(folder, manifest)| Some((folder, manifest, value(manifest, "name")?)))
        .collect();
    let published = |name: &str| manifests.iter().any(|(_, m, n)| *n == name && is_published(m));
    let mut found = Vec::new();
    for (folder, manifest, name) in &manifests {
        let path = format!("{folder}/Cargo.toml");
        let mut say = |path: &str, why: String, remedy: &str| {
            found.push(Finding::new((path, 1), "published", why, remedy));
        };
        if !is_published(manifest) {
            if FOR_USERS.contains(name) || !has(manifest, "publish.workspace = true") {
                say(
                    &path,
                    format!("{name} says not whether it is published"),
                    "Write `publish = true`, or `publish.workspace = true`",
                );
            }
            continue;
        }
        for (key, why) in KEYS.iter().filter(|(key, _)| !has(manifest, key)) {
            say(&path, format!("no `{key}`: {why}"), "Write it");
        }
        let needed = manifest.split("\n[dev-dependencies]").next().unwrap_or_default();
        let ours = needed.lines().filter_map(|l| l.split_once(".workspace = true"));
        for (other, _) in ours.filter(|(n, _)| n.starts_with("tailbound-") && !published(n)) {
            say(&path, format!("{other} is not published"), "Publish it as well, or do without it");
        }
        if FOR_USERS.contains(name) {
            let source = format!("{folder}/src/lib.rs");
            let docs = text(&source).unwrap_or_default();
            let stated = format!("//! Rust {rust}.");
            for words in ["#![deny(missing_docs)]", "//! # Compatibility", "//! ```\n", &stated] {
                if !docs.contains(words) {
                    say(
                        &source,
                        format!("no `{}`", words.trim()),
                        "Write it: it is the first page of the documentation",
                    );
                }
            }
            let readme = format!("{folder}/README.md");
            let stated = format!("Rust {rust};");
            if !text(&readme).is_some_and(|t| t.contains(&stated)) {
                say(&readme, format!("no `{stated}`"), "Write it: a registry shows this page");
            }
        }
    }
    found
}

fn is_published(manifest: &str) -> bool {
    has(manifest, "publish = true")
}

fn has(manifest: &str, begin: &str) -> bool {
    manifest.lines().any(|l| l.starts_with(begin))
}

/// The text behind `key = `.
fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    manifest.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_crate_says_what_a_registry_shows_and_needs_published_ones_only() {
        let root = File::fake("Cargo.toml", "[workspace.package]\nrust-version = \"1.90\"\n");
        let keys: String = KEYS.iter().map(|(key, _)| format!("{key}\n")).collect();
        let rt = format!("[package]\nname = \"tailbound-rt\"\npublish = true\n{keys}");
        let docs =
            "#![deny(missing_docs)]\n//! ```\n//! ```\n//! # Compatibility\n//! Rust 1.90.\n";
        let sys = format!(
            "name = \"tailbound-sys\"\npublish = true\n{keys}[dependencies]\ntailbound-rt.workspace = true\n"
        );
        let own = "name = \"tailbound-run\"\npublish.workspace = true\n";
        let project = |rt: &str, docs: &str, sys: &str, own: &str| {
            check(&[
                root.clone(),
                File::fake("crates/rt/Cargo.toml", rt),
                File::fake("crates/rt/src/lib.rs", docs),
                File::fake("crates/rt/README.md", "Rust 1.90; MIT"),
                File::fake("crates/sys/Cargo.toml", sys),
                File::fake("crates/run/Cargo.toml", own),
            ])
            .into_iter()
            .map(|f| f.path)
            .collect::<Vec<_>>()
        };
        assert_eq!(project(&rt, docs, &sys, own), Vec::<String>::new());
        assert_eq!(
            project(&rt.replace("keywords", "words"), docs, &sys, own),
            ["crates/rt/Cargo.toml"]
        );
        assert_eq!(
            project(&rt, &docs.replace("1.90", "1.80"), &sys, own),
            ["crates/rt/src/lib.rs"]
        );
        let more = format!("{sys}tailbound-run.workspace = true\n");
        assert_eq!(project(&rt, docs, &more, own), ["crates/sys/Cargo.toml"]);
        let for_tests = format!("{sys}[dev-dependencies]\ntailbound-run.workspace = true\n");
        assert_eq!(project(&rt, docs, &for_tests, own), Vec::<String>::new());
        assert_eq!(
            project(&rt, docs, &sys, "name = \"tailbound-run\"\n"),
            ["crates/run/Cargo.toml"]
        );
        let none = rt.replace("publish = true", "publish.workspace = true");
        assert_eq!(
            project(&none, docs, &sys, own),
            ["crates/rt/Cargo.toml", "crates/sys/Cargo.toml"]
        );
    }
}
