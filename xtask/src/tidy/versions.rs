// SPDX-License-Identifier: MIT OR Apache-2.0
//! The version of the workspace is the version everywhere: in packages, in the box, in the reader for Python, in the
//! C interface, in the pages that name a file of a release.
//!
//! `Cargo.toml` says it; a copy that was forgotten installs a file that is not there.
//! Not here: fixtures, which were written by the version they name; `docs/results`, which are dated.

use super::files::File;
use super::finding::Finding;

const SOURCE: &str = "Cargo.toml";

/// Files that must state it, and what stands before it. A digit follows; other places of the words do not count.
const COPIES: [(&str, &str); 10] = [
    ("firmware/Cargo.toml", "\nversion = \""),
    ("python/pyproject.toml", "\nversion = \""),
    ("python/tailbound/__init__.py", "\n__version__ = \""),
    ("packaging/buildroot/tailbound/tailbound.mk", "\nTAILBOUND_VERSION = "),
    ("packaging/nix/flake.nix", " version = \""),
    ("include/tailbound.h", "The version of the library that is running, \""),
    ("docs/install.md", "tailbound_"),
    ("docs/install.md", "tailbound-"),
    ("docs/run-file.md", "\"tool\":\"tailbound "),
    ("CHANGELOG.md", "\n## ["),
];

/// Files that state its first two numbers, which name the C interface until 1.0.
const MINOR_COPIES: [(&str, &str); 4] = [
    ("docs/library.md", "libtailbound.so."),
    ("docs/library.md", "find_package(tailbound "),
    ("examples/c/CMakeLists.txt", "find_package(tailbound "),
    ("examples/cpp/CMakeLists.txt", "find_package(tailbound "),
];

/// Recipes of Yocto have it in their name.
const RECIPES: &str = "packaging/yocto/tailbound_";

/// A crate outside the workspace, which is not given to others.
const UNVERSIONED: &str = "0.0.0";

/// See the module.
pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|f| f.path == path).and_then(File::text);
    let manifest = text(SOURCE).unwrap_or_default();
    let Some(version) = after(manifest, "\nversion = \"").next().map(|(_, v)| v.to_owned()) else {
        return vec![Finding::new((SOURCE, 1), "version", "it states no version", "State one")];
    };
    let mut found = Vec::new();
    for (path, before) in COPIES {
        let text = text(path).unwrap_or_default();
        let mut stated = after(text, before).peekable();
        if stated.peek().is_none() {
            let why = format!("no version follows \"{}\"", before.trim());
            found.push(Finding::new((path, 1), "version", why, format!("Write {version}")));
        }
        // A changelog has earlier versions below.
        let most = if path == "CHANGELOG.md" { 1 } else { usize::MAX };
        found.extend(
            stated.take(most).filter(|(_, v)| *v != version).map(|s| other(path, s, &version)),
        );
    }
    let minor = version.rsplit_once('.').map_or("", |(minor, _)| minor);
    for (path, before) in MINOR_COPIES {
        let stated = text(path).and_then(|t| t.split_once(before)).map_or("", |(_, rest)| rest);
        let end = stated.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(stated.len());
        let stated = stated.get(..end).unwrap_or_default();
        if stated != minor {
            let why = format!("\"{stated}\" behind \"{before}\" is not {minor}");
            found.push(Finding::new((path, 1), "version", why, format!("Write {minor}")));
        }
    }
    for file in files {
        found.extend(of_file(file, &version));
    }
    found
}

/// What holds of every file of a kind.
fn of_file(file: &File, version: &str) -> Vec<Finding> {
    let path = file.path.as_str();
    let text = file.text().unwrap_or_default();
    let mut found = Vec::new();
    if let Some(name) = path.strip_prefix(RECIPES).filter(|n| n.ends_with(".bb"))
        && name != format!("{version}.bb")
    {
        found.push(other(path, (1, name), version));
    }
    // Versions that the crates given to others ask of each other.
    if path == SOURCE {
        let asked = after(text, "version = \"").filter(|(line, _)| {
            text.lines().nth(line - 1).is_some_and(|l| l.starts_with("tailbound-"))
        });
        found.extend(asked.filter(|(_, v)| *v != version).map(|s| other(path, s, version)));
    }
    if path.ends_with("Cargo.lock") {
        let ours = text.split("\n[[package]]\n").filter(|p| p.starts_with("name = \"tailbound"));
        let stated = ours.flat_map(|p| after(p, "\nversion = \"").map(|(_, v)| v));
        let wrong = stated.filter(|v| *v != version && *v != UNVERSIONED);
        found.extend(wrong.map(|v| other(path, (1, v), version)));
    }
    if is_page(path) && !COPIES.iter().any(|(copy, _)| *copy == path) {
        for before in ["tailbound-", "tailbound_", "tailbound "] {
            let wrong = after(text, before).filter(|(_, v)| *v != version);
            found.extend(wrong.map(|s| other(path, s, version)));
        }
    }
    found
}

fn is_page(path: &str) -> bool {
    let dated = path.starts_with("docs/results/");
    path.ends_with(".md") && !dated && (path.starts_with("docs/") || path == "README.md")
}

fn other(path: &str, (line, stated): (usize, &str), version: &str) -> Finding {
    let why = format!("{stated} is not the version of the workspace");
    Finding::new((path, line), "version", why, format!("Write {version}"))
}

/// Versions of three numbers that follow the words, and their lines.
fn after<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    text.match_indices(before).filter_map(move |(at, _)| {
        let from = at + before.len();
        let rest = text.get(from..)?;
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
        let stated = rest.get(..end)?.trim_end_matches('.');
        let line = text.get(..from)?.matches('\n').count() + 1;
        (stated.split('.').filter(|n| !n.is_empty()).count() == 3).then_some((line, stated))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every copy, with the version it states.
    fn project(version: &str) -> Vec<File> {
        let mut files: Vec<File> = Vec::new();
        for (path, before) in COPIES {
            let text = format!("#\n{before}{version}\"\n");
            match files.iter_mut().find(|f| f.path == path) {
                Some(file) => file.bytes.extend(text.bytes()),
                None => files.push(File::fake(path, &text)),
            }
        }
        for (path, before) in MINOR_COPIES {
            let minor = version.rsplit_once('.').map_or("", |(minor, _)| minor);
            let text = format!("#\n{before}{minor})\n");
            match files.iter_mut().find(|f| f.path == path) {
                Some(file) => file.bytes.extend(text.bytes()),
                None => files.push(File::fake(path, &text)),
            }
        }
        files.push(File::fake(SOURCE, "[workspace.package]\nversion = \"1.2.3\"\n"));
        files
    }

    fn paths(files: &[File]) -> Vec<String> {
        check(files).into_iter().map(|f| format!("{}:{}", f.path, f.line)).collect()
    }

    #[test]
    fn each_copy_that_differs_is_found() {
        assert_eq!(paths(&project("1.2.3")), Vec::<String>::new());
        assert_eq!(paths(&project("1.2.2")).len(), COPIES.len());
        assert_eq!(paths(&project("")).len(), COPIES.len() + MINOR_COPIES.len());
        assert_eq!(paths(&project("1.3.3")).len(), COPIES.len() + MINOR_COPIES.len());
    }

    #[test]
    fn names_locks_pages_and_dependencies_are_read() {
        let mut files = project("1.2.3");
        files.extend([
            File::fake("packaging/yocto/tailbound_1.2.0.bb", ""),
            File::fake(
                "a/Cargo.lock",
                "\n[[package]]\nname = \"tailbound-rt\"\nversion = \"1.2.0\"\n",
            ),
            File::fake(
                "b/Cargo.lock",
                "\n[[package]]\nname = \"tailbound-probe\"\nversion = \"0.0.0\"\n",
            ),
            File::fake(
                "docs/a.md",
                "x\n`tailbound-1.2.0-x86_64.tar.gz`, tailbound 1.2.3, tailbound-9\n",
            ),
            File::fake("docs/results/a.md", "tailbound 1.0.0"),
        ]);
        if let Some(source) = files.iter_mut().find(|f| f.path == SOURCE) {
            source
                .bytes
                .extend(b"tailbound-rt = { path = \"x\", version = \"1.2.0\" }\nx = \"1.0.0\"\n");
        }
        let expected = [
            "Cargo.toml:3",
            "packaging/yocto/tailbound_1.2.0.bb:1",
            "a/Cargo.lock:1",
            "docs/a.md:2",
        ];
        assert_eq!(paths(&files), expected);
    }

    #[test]
    fn a_changelog_has_earlier_versions_below() {
        let mut files = project("1.2.3");
        if let Some(file) = files.iter_mut().find(|f| f.path == "CHANGELOG.md") {
            file.bytes =
                b"# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - a\n\n## [1.2.2] - b\n".to_vec();
        }
        assert_eq!(paths(&files), Vec::<String>::new());
    }
}
