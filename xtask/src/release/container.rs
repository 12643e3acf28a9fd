// SPDX-License-Identifier: MIT OR Apache-2.0
//! The container with the programs alone, as an archive that docker, podman and skopeo load.
//!
//! Built by buildah with storage of its own in the release's folder, so that images of the machine stay as they are.
//! Source: buildah-build(1), `--timestamp`; the OCI image format.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::programs::Architecture;
use super::tree::{About, PackageTree};
use super::{Release, said, tarball};
use crate::exec;

/// Makes it; its path.
pub(super) fn make(
    release: &Release,
    architecture: &Architecture,
    about: &About,
) -> anyhow::Result<PathBuf> {
    ensure!(exec::exists("buildah"), "there is no buildah (Debian package buildah)");
    let folder = release.scratch("container")?;
    let context = PackageTree::new(folder.join("context"));
    for program in architecture.programs() {
        let built = architecture.path(release, *program);
        let bytes = fs::read(&built).with_context(|| built.display().to_string())?;
        context.put_program(program.name(), bytes)?;
    }
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        context.put(&format!("doc/{file}"), fs::read(release.project.join(file))?)?;
    }
    context.put("doc/THIRD-PARTY.txt", &about.licences)?;
    context.put("doc/sbom.cdx.json", &about.sbom)?;
    context.seal(release)?;
    let storage = folder.join("storage");
    let image = format!("tailbound:{}", release.version);
    let mut build = buildah(release, &storage);
    build.args(["build", "--quiet", "--isolation=chroot", "--format=oci", "--timestamp"]);
    build.arg(release.date_s.to_string()).args(["--tag", &image, "--file"]);
    build.arg(release.project.join("packaging/Containerfile")).arg(&context.root);
    said(&mut build)?;
    // As a folder: an archive that buildah makes itself has the time in it.
    let layout = folder.join("layout");
    let mut push = buildah(release, &storage);
    push.args(["push", "--quiet", &image]);
    said(push.arg(format!("oci:{}:{image}", layout.display())))?;
    let name = format!("tailbound-{}-{}.oci.tar", release.version, architecture.name);
    tarball::packed(release, &layout, ".", &release.out.join(name), None)
}

/// buildah with nothing of this machine's: neither its images nor its settings.
fn buildah(release: &Release, storage: &Path) -> Command {
    let mut c = release.command("buildah");
    c.args(["--storage-driver=vfs", "--root"]).arg(storage.join("images"));
    c.arg("--runroot").arg(storage.join("run"));
    c
}
