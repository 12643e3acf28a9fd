// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every rule over the project.

use anyhow::bail;

use super::finding::Finding;
use super::{
    claims, documents, edges, files, hall, headers, names, promises, published, purity, text,
    times, unpacking, versions, writing,
};
use crate::root;

/// Everything that is wrong, in the order of the paths.
pub(crate) fn check() -> anyhow::Result<Vec<Finding>> {
    let project = root::project()?;
    let files = files::all(&project)?;
    let mut found: Vec<Finding> = files
        .iter()
        .flat_map(|f| {
            text::check(f)
                .into_iter()
                .chain(headers::check(f))
                .chain(writing::RULE.check(f))
                .chain(unpacking::RULE.check(f))
                .chain(purity::check(f))
        })
        .collect();
    let read = |path: &str| {
        let file = files.iter().find(|f| f.path == path);
        file.and_then(files::File::text).unwrap_or_default()
    };
    found.extend(names::check(&files));
    found.extend(hall::check(&files));
    found.extend(promises::check(&files));
    found.extend(documents::check(&files));
    found.extend(claims::check(&files));
    found.extend(versions::check(&files));
    found.extend(published::check(&files));
    found.extend(text::changelog(read("CHANGELOG.md")));
    found.extend(text::overview(read("ARCHITECTURE.md")));
    found.extend(text::manual(&files));
    found.extend(text::readme(read("README.md")));
    found.extend(text::results(&files));
    found.extend(text::readmes(&files));
    found.extend(times::check(read("README.md"), read("docs/times.json")));
    found.extend(edges::check(&project, read("Cargo.lock"))?);
    found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(found)
}

/// `cargo xtask tidy`.
pub(crate) fn command() -> anyhow::Result<()> {
    let found = check()?;
    for f in &found {
        println!("{f}");
    }
    match found.iter().filter(|f| !f.warning).count() {
        0 => Ok(()),
        n => bail!("tidy: {n} broken rules"),
    }
}
