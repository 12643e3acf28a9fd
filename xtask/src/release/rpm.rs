// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages of rpm, made by rpmbuild from a folder.
//!
//! Source: rpmbuild(8); rpm's documentation, "Spec file format", "Reproducible builds".

use std::fs;
use std::path::PathBuf;

use anyhow::ensure;

use super::maintainer::Maintainer;
use super::programs::{Architecture, Program};
use super::tree::{About, PackageFormat, PackageTree};
use super::{Effort, Release, said};
use crate::exec;

/// Why none can be made.
pub(crate) fn missing() -> Option<&'static str> {
    (!exec::exists("rpmbuild")).then_some("there is no rpmbuild (Debian package rpm)")
}

/// Makes that of one program; its path.
pub(crate) fn make(
    release: &Release,
    architecture: &Architecture,
    program: Program,
    about: &About,
) -> anyhow::Result<PathBuf> {
    let name = program.name();
    let scratch = release.scratch("rpm")?;
    let tree = PackageTree::new(scratch.join("tree"));
    tree.fill(release, (architecture, program), about, PackageFormat::Rpm)?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree.put(
            &format!("usr/share/licenses/{name}/{file}"),
            fs::read(release.project.join(file))?,
        )?;
    }
    tree.seal(release)?;
    let mut list: String =
        tree.files()?.iter().map(|path| listed(&format!("/{}", path.display()))).collect();
    for folder in ["doc", "licenses"] {
        list.push_str(&format!("%dir /usr/share/{folder}/{name}\n"));
    }
    fs::write(scratch.join("files"), list)?;
    let applied = release.filled("applied.sh", &[])?;
    let spec = scratch.join(format!("{name}.spec"));
    let (maintainer, date) = (Maintainer::of(release)?, release.date("+%a %b %d %Y")?);
    let values = [("APPLIED", &*applied), ("MAINTAINER", maintainer.line()), ("DATE", &*date)];
    fs::write(&spec, release.filled(&format!("rpm/{name}.spec"), &values)?)?;
    let mut rpmbuild = release.command("rpmbuild");
    rpmbuild.arg("-bb").arg("--quiet").arg(format!("--target={}-linux", architecture.rpm));
    let payload = match release.effort {
        Effort::Final => "w6.xzdio",
        Effort::Trial => "w1.gzdio",
    };
    let top = scratch.display();
    for (key, value) in [
        ("_topdir", format!("{top}")),
        ("_rpmdir", format!("{top}/rpms")),
        ("_rpmfilename", "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm".into()),
        ("_binary_payload", payload.into()),
        ("_buildhost", "reproducible".into()),
        ("use_source_date_epoch_as_buildtime", "1".into()),
        ("clamp_mtime_to_source_date_epoch", "1".into()),
        ("source_date_epoch_from_changelog", "0".into()),
        ("tree", format!("{top}/tree")),
    ] {
        rpmbuild.arg("--define").arg(format!("{key} {value}"));
    }
    said(rpmbuild.arg(&spec))?;
    let file = format!("{name}-{}-1.{}.rpm", release.version, architecture.rpm);
    let made = scratch.join("rpms").join(&file);
    ensure!(made.is_file(), "rpmbuild made no {file}");
    let product = release.out.join(file);
    fs::rename(&made, &product)?;
    Ok(product)
}

/// A line of `%files`.
fn listed(path: &str) -> String {
    let kind = if path.starts_with("/usr/share/licenses/") {
        "%license "
    } else if path.starts_with("/usr/share/doc/") || path.starts_with("/usr/share/man/") {
        "%doc "
    } else {
        ""
    };
    format!("{kind}{path}\n")
}
