// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages of Debian, made by dpkg-deb from a folder.
//!
//! Source: deb(5), deb-control(5), dpkg-deb(1); Debian Policy, chapters 6 and 12.

use std::fs;
use std::path::PathBuf;

use super::maintainer::Maintainer;
use super::programs::{Architecture, Program};
use super::tree::{About, PackageFormat, PackageTree};
use super::{Effort, Release, said};

/// Makes that of one program; its path.
pub(crate) fn make(
    release: &Release,
    architecture: &Architecture,
    program: Program,
    about: &About,
) -> anyhow::Result<PathBuf> {
    let name = program.name();
    let tree = PackageTree::new(release.scratch("deb")?);
    tree.fill(release, (architecture, program), about, PackageFormat::Deb)?;
    let maintainer = Maintainer::of(release)?;
    let maintainer = maintainer.line();
    let doc = format!("usr/share/doc/{name}");
    tree.put(&format!("{doc}/copyright"), release.filled("deb/copyright", &[])?)?;
    let changelog = format!(
        "{name} ({}) unstable; urgency=medium\n\n  * Release {}: CHANGELOG.md of its sources.\n\n -- {maintainer}  {}\n",
        release.version,
        release.version,
        release.date("-R")?
    );
    tree.put_packed(release, &format!("{doc}/changelog"), changelog)?;
    let overrides = release.filled(&format!("deb/{name}.overrides"), &[])?;
    tree.put(&format!("usr/share/lintian/overrides/{name}"), overrides)?;
    let (mut size_kib, mut sums) = (0, String::new());
    for path in tree.files()? {
        size_kib += fs::metadata(tree.root.join(&path))?.len().div_ceil(1024);
        let mut md5 = release.command("md5sum");
        sums.push_str(&said(md5.current_dir(&tree.root).arg(&path))?);
    }
    // What runs kernels in virtual time, and what reads its traces.
    let suggests =
        if architecture.deb == "amd64" { "qemu-system-x86, trace-cmd" } else { "trace-cmd" };
    let values = [
        ("ARCHITECTURE", architecture.deb),
        ("MAINTAINER", maintainer),
        ("SIZE_KIB", &size_kib.to_string()),
        ("SUGGESTS", suggests),
    ];
    tree.put("DEBIAN/control", release.filled(&format!("deb/{name}.control"), &values)?)?;
    tree.put("DEBIAN/md5sums", sums)?;
    let applied = release.filled("applied.sh", &[])?;
    for script in ["postinst", "prerm", "postrm"] {
        let text = release.filled(&format!("deb/{name}.{script}"), &[("APPLIED", &applied)])?;
        tree.put_program(&format!("DEBIAN/{script}"), text)?;
    }
    tree.seal(release)?;
    let product = release.out.join(format!("{name}_{}_{}.deb", release.version, architecture.deb));
    let mut dpkg = release.command("dpkg-deb");
    dpkg.args(["--root-owner-group", "--uniform-compression"]);
    dpkg.args(match release.effort {
        Effort::Final => ["-Zxz", "-z6"],
        Effort::Trial => ["-Zgzip", "-z1"],
    });
    // One thread: with more, the bytes depend on how many there are.
    dpkg.args(["--threads-max=1", "--build"]).arg(&tree.root).arg(&product);
    said(&mut dpkg)?;
    Ok(product)
}
