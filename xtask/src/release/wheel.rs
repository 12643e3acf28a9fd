// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Python reader as a wheel.
//!
//! Source: PEP 427; wheel's documentation on SOURCE_DATE_EPOCH.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::{Release, emptied, said};
use crate::exec;

/// A copy of the reader's sources: building leaves traces beside them.
pub(crate) fn sources(project: &Path, to: &Path) -> anyhow::Result<()> {
    emptied(&to.join("tailbound"))?;
    let mut files: Vec<PathBuf> =
        ["pyproject.toml", "README.md"].iter().map(PathBuf::from).collect();
    for entry in fs::read_dir(project.join("python/tailbound"))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push(Path::new("tailbound").join(entry.file_name()));
        }
    }
    for file in files {
        let copy = to.join(&file);
        fs::copy(project.join("python").join(&file), &copy)
            .with_context(|| copy.display().to_string())?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

/// The first interpreter that can build one.
pub(crate) fn builder() -> Option<&'static str> {
    let mut all = ["python3", "/usr/bin/python3"].into_iter();
    all.find(|python| {
        let mut asked = exec::command(python);
        let out = exec::output(asked.args(["-c", "import setuptools, wheel, pip"]));
        out.is_ok_and(|o| o.status.success())
    })
}

/// Makes it, without a network; its path.
pub(crate) fn make(release: &Release) -> anyhow::Result<PathBuf> {
    let Some(python) = builder() else {
        bail!(
            "no python3 has pip, setuptools and wheel (Debian packages python3-pip, python3-setuptools, python3-wheel)"
        );
    };
    let folder = release.scratch("wheel")?;
    sources(&release.project, &folder.join("source"))?;
    let mut pip = release.command(python);
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "wheel", "--no-index"]);
    pip.args(["--no-build-isolation", "--no-deps", "--wheel-dir"]).arg(folder.join("made"));
    said(pip.arg(folder.join("source")))?;
    for entry in fs::read_dir(folder.join("made"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "whl") {
            let product = release.out.join(path.file_name().unwrap_or_default());
            fs::copy(&path, &product)?;
            return Ok(product);
        }
    }
    bail!("pip made no wheel")
}
