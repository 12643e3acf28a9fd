// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole run files against the schema, line by line.
//!
//! Also checked, because a schema of one line cannot say it: the first line is
//! a header, the last an end that counts the lines.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::validate::Schema;
use crate::root;

/// `cargo xtask schema FILE...`.
pub(crate) fn command(files: &[&str]) -> anyhow::Result<()> {
    let project = root::project()?;
    for file in files {
        let lines = check_run(&project, Path::new(file))?;
        println!("{file}: {lines} lines follow the schema");
    }
    Ok(())
}

/// The published schema.
pub(crate) fn published(project: &Path) -> anyhow::Result<Schema> {
    let path = project.join("docs/run-file.schema.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(Schema::new(value))
}

/// Checks a complete run file; gives the number of its lines.
pub(crate) fn check_run(project: &Path, file: &Path) -> anyhow::Result<usize> {
    let schema = published(project)?;
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let place = || format!("{}:{}", file.display(), i + 1);
        let value: Value = serde_json::from_str(line).with_context(place)?;
        if let Some(error) = schema.errors(&value).into_iter().next() {
            bail!("{}: {error}", place());
        }
        lines.push(value);
    }
    if lines.first().is_none_or(|l| l["type"] != "header") {
        bail!("{}: the first line is not a header", file.display());
    }
    let end = lines.last().filter(|l| l["type"] == "end");
    let end = end.with_context(|| format!("{}: the last line is not an end", file.display()))?;
    if end["lines"].as_u64() != Some(lines.len() as u64 - 1) {
        bail!(
            "{}: the end counts {} lines before it, not {}",
            file.display(),
            end["lines"],
            lines.len() - 1
        );
    }
    Ok(lines.len())
}
