// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stage `registry`: the library crates as they would be published, packed and compiled from what is packed.
//!
//! `cargo publish --dry-run` does all but the upload; it reads the registry's index, so it needs a network. Which crates:
//! those whose manifest says so (rule `published` of tidy).

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::tally::Tally;
use crate::{exec, root};

/// A crate whose manifest lets it be published.
struct Library {
    name: String,
    folder: PathBuf,
}

/// What each package must hold.
const FILES: [&str; 4] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"];

/// Bytes of all files of a package: what is larger has data in it that nobody needs.
const PACKAGE_MAX: usize = 2 << 20;

/// What cargo says where it reaches no registry.
const UNREACHABLE: [&str; 5] = [
    "Could not resolve host",
    "Couldn't resolve host",
    "failed to connect",
    "Failed to connect",
    "attempting to make an HTTP request, but --offline was specified",
];

/// `cargo xtask test registry`.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let libraries = libraries(project)?;
    let mut tally = Tally::default();
    for library in &libraries {
        let packed = packs_what_it_needs(project, library);
        tally.add(&format!("what {} packs", library.name), packed);
    }
    let check = "the crates are compiled from their packages";
    let mut publish = exec::cargo(project);
    publish.args(["publish", "--dry-run", "--allow-dirty", "--quiet"]);
    // Beside the other builds: what is compiled here is compiled without their profile.
    publish.arg("--target-dir").arg(root::target(project).join("xtask/registry"));
    publish.args(libraries.iter().flat_map(|library| ["-p", library.name.as_str()]));
    let out = exec::output(&mut publish)?;
    let said = String::from_utf8_lossy(&out.stderr);
    if out.status.success() {
        tally.pass(check);
    } else if let Some(line) = unreachable(&said) {
        tally.skip(check, "registry", line);
    } else {
        tally.fail(check, format!("`{}`: {}", exec::shown(&publish), said.trim()));
    }
    Ok(tally)
}

/// The crates that may be published, in the order of their names.
fn libraries(project: &Path) -> anyhow::Result<Vec<Library>> {
    let mut cargo = exec::cargo(project);
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_slice(&exec::output(&mut cargo)?.stdout)?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("no packages")?;
    // `publish = false` is an empty list of registries, `publish = true` no list.
    let may = packages.iter().filter(|p| p.get("publish").is_some_and(Value::is_null));
    let mut libraries: Vec<Library> = may
        .filter_map(|p| {
            let text = |key: &str| p.get(key)?.as_str();
            let folder = Path::new(text("manifest_path")?).parent()?.to_owned();
            Some(Library { name: text("name")?.to_owned(), folder })
        })
        .collect();
    libraries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(libraries)
}

/// Licences, the page of the registry, and nothing that makes it large.
fn packs_what_it_needs(project: &Path, Library { name, folder }: &Library) -> anyhow::Result<()> {
    let mut cargo = exec::cargo(project);
    cargo.args(["package", "--list", "--allow-dirty", "--offline", "--quiet", "-p", name]);
    let list = String::from_utf8_lossy(&exec::output(&mut cargo)?.stdout).into_owned();
    for file in FILES {
        anyhow::ensure!(list.lines().any(|line| line == file), "{file} is not packed");
    }
    let tests = list.lines().find(|l| l.starts_with("tests/"));
    anyhow::ensure!(tests.is_none(), "{} is packed", tests.unwrap_or_default());
    let sizes = list.lines().filter_map(|file| folder.join(file).metadata().ok());
    let bytes: usize = sizes.map(|m| usize::try_from(m.len()).unwrap_or(usize::MAX)).sum();
    anyhow::ensure!(bytes <= PACKAGE_MAX, "{bytes} bytes, at most {PACKAGE_MAX}");
    Ok(())
}

/// The line that says that no registry answers.
fn unreachable(said: &str) -> Option<&str> {
    said.lines().map(str::trim).find(|line| UNREACHABLE.iter().any(|words| line.contains(words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_that_does_not_answer_is_no_broken_crate() {
        let said = "error: failed to get `libc`\n\nCaused by:\n  [6] Could not resolve hostname (Could not resolve host: index.example)\n";
        assert!(unreachable(said).is_some_and(|line| line.starts_with("[6]")));
        assert_eq!(unreachable("error: 1 files contain changes that were not yet committed"), None);
    }

    #[test]
    fn what_people_would_use_may_be_published_and_the_program_may_not() {
        let libraries = libraries(&root::project().unwrap()).unwrap();
        let names: Vec<String> = libraries.into_iter().map(|library| library.name).collect();
        for name in ["tailbound-rt", "tailbound-core", "tailbound-capi", "tailbound-import"] {
            assert!(names.iter().any(|n| n == name), "{names:?}");
        }
        assert!(!names.iter().any(|n| n == "tailbound" || n == "xtask"), "{names:?}");
    }
}
