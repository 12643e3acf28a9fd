// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tarball of an architecture: unpack it, and start the program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::programs::Architecture;
use super::tree::{About, PackageTree};
use super::{Effort, Release, said};

/// Makes it; its path.
pub(super) fn make(
    release: &Release,
    architecture: &Architecture,
    about: &About,
) -> anyhow::Result<PathBuf> {
    let name = format!("tailbound-{}-{}", release.version, architecture.name);
    let folder = release.scratch("tarball")?;
    let tree = PackageTree::new(folder.join(&name));
    for program in architecture.programs() {
        let built = architecture.path(release, *program);
        let bytes = fs::read(&built).with_context(|| built.display().to_string())?;
        tree.put_program(program.name(), bytes)?;
    }
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"] {
        tree.put(file, fs::read(release.project.join(file))?)?;
    }
    tree.put("THIRD-PARTY.txt", &about.licences)?;
    tree.put("sbom.cdx.json", &about.sbom)?;
    for folder in ["man", "completions"] {
        for entry in fs::read_dir(release.programs.join(folder))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !name.contains("-help") {
                tree.put(&format!("{folder}/{name}"), fs::read(&path)?)?;
            }
        }
    }
    let product = release.out.join(format!("{name}.tar.gz"));
    packed(release, &folder, &name, &product, Some(gzip(release)))
}

/// The program that packs a tarball, without a time in it.
fn gzip(release: &Release) -> &'static str {
    match release.effort {
        Effort::Final => "gzip -9n",
        Effort::Trial => "gzip -1n",
    }
}

/// Packs `name` of `folder` into `product`: sorted, of root, of the release's date.
pub(super) fn packed(
    release: &Release,
    folder: &Path,
    name: &str,
    product: &Path,
    packer: Option<&str>,
) -> anyhow::Result<PathBuf> {
    let mut tar = release.command("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg("--mode=go=rX,u+rw").arg(format!("--mtime=@{}", release.date_s));
    tar.args(packer.map(|p| format!("--use-compress-program={p}")));
    said(tar.arg("-cf").arg(product).arg("-C").arg(folder).arg(name))?;
    Ok(product.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_folders_give_the_same_bytes() {
        let pack = |order: [&str; 3]| {
            let dir = tempfile::tempdir().unwrap();
            let release = Release {
                project: dir.path().into(),
                programs: dir.path().into(),
                out: dir.path().into(),
                version: "1.0.0".into(),
                date_s: 1_700_000_000,
                effort: Effort::Trial,
            };
            let tree = PackageTree::new(dir.path().join("x"));
            for name in order {
                tree.put(name, name).unwrap();
            }
            tree.put_program("run", "program").unwrap();
            tree.seal(&release).unwrap();
            let product = dir.path().join("x.tar.gz");
            packed(&release, dir.path(), "x", &product, Some(gzip(&release))).unwrap();
            fs::read(product).unwrap()
        };
        assert_eq!(pack(["a", "b/c", "d"]), pack(["d", "b/c", "a"]));
    }
}
