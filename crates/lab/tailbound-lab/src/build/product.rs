// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a build leaves in the store: `builds/<name>/` with image, configuration, modules,
//! device trees and a manifest.
//!
//! Units: s.

use std::fs;
use std::path::{Path, PathBuf};
use tailbound_core::order;

use serde::{Deserialize, Serialize};
use tailbound_core::lab::KernelRecord;
use tailbound_core::words::did_you_mean;

use tailbound_sys::new_file::{self, Existing};

use super::make::Make;
use super::source::SourceRecord;
use crate::arch::Arch;
use crate::error::{BuildError, LabError};
use crate::hash;
use crate::kernel::Kernel;
use crate::kernel::package::json;
use crate::kernel::tool::Tool;
use crate::kernel::{BuildName, Config};
use crate::store::Store;

/// What a build is a function of, and what it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildManifest {
    /// Its name: `build:NAME`.
    pub name: String,
    /// x86_64, aarch64 or arm.
    pub arch: String,
    /// What `uname -r` says in it.
    pub release: String,
    /// The image, from the manifest's folder.
    pub image: String,
    /// SHA-256 of the image.
    pub image_sha256: String,
    /// SHA-256 of the configuration.
    pub config_sha256: String,
    /// Where the source came from, with its patches.
    pub source: SourceRecord,
    /// Fragments, in order.
    pub fragments: Vec<String>,
    /// SHA-256 of the configuration that was given to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_config_sha256: Option<String>,
    /// First line of the compiler's `--version`.
    pub compiler: String,
    /// Was ccache used?
    pub ccache: bool,
    /// How long the compilation took.
    pub seconds: f64,
    /// Processor time of all compilers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Files compiled, assembled and linked; those ccache had are counted too.
    pub objects: u64,
}

const MANIFEST: &str = "manifest.json";

/// The image of each architecture, from the output folder, and the target that makes it.
pub(crate) fn image_of(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("arch/x86/boot/bzImage", "bzImage"),
        Arch::Aarch64 => ("arch/arm64/boot/Image", "Image"),
        Arch::Arm => ("arch/arm/boot/zImage", "zImage"),
    }
}

/// Moves what was built into the store as `manifest.name`, in place of what was there.
///
/// # Errors
/// A file is missing or the disk is full.
pub(crate) fn keep(
    store: &Store,
    make: &Make,
    mut manifest: BuildManifest,
    config: &Config,
) -> Result<BuildManifest, LabError> {
    let (image, target) = image_of(make.arch);
    let beside = store.beside("builds")?;
    let whole = beside.path().join("whole");
    fs::create_dir_all(&whole).map_err(|e| LabError::file(&whole, e))?;
    let copy =
        |from: &Path, to: &Path| new_file::copy(from, to).map_err(|e| LabError::file(from, e));
    copy(&make.out.join(image), &whole.join(target))?;
    copy(&make.out.join(".config"), &whole.join("config"))?;
    let release = make.ask(&["kernelrelease"], &[])?.out.trim().to_owned();
    if config.is_builtin("CONFIG_MODULES") {
        make.ask(&["modules_install"], &[format!("INSTALL_MOD_PATH={}", whole.display())])?;
        // Links to the folders of source and output, which a guest does not have.
        for link in ["build", "source"] {
            let _absent = fs::remove_file(whole.join("lib/modules").join(&release).join(link));
        }
    }
    let trees = make.out.join("arch/arm/boot/dts");
    if make.arch == Arch::Arm && trees.exists() {
        let script = "mkdir \"$1\" && find . -name '*.dtb' -exec cp {} \"$1\" \\;";
        let to = whole.join("dtbs");
        Tool::new("sh").args(["-c", script, "sh"]).arg(&to).within(&trees).succeed()?;
    }
    manifest.release = release;
    manifest.image = target.to_owned();
    manifest.image_sha256 = hash::of_file(&whole.join(target))?;
    manifest.config_sha256 = hash::of_file(&whole.join("config"))?;
    let path = whole.join(MANIFEST);
    new_file::write(&path, Existing::Replace, &json(&manifest))
        .map_err(|e| LabError::file(&path, e))?;
    store.place(&whole, &folder(store, &manifest.name)?)?;
    Ok(manifest)
}

fn folder(store: &Store, name: &str) -> Result<PathBuf, LabError> {
    Ok(store.room("builds")?.join(name))
}

/// Every build in the store.
///
/// # Errors
/// The store cannot be read.
pub fn builds(store: &Store) -> Result<Vec<BuildManifest>, LabError> {
    let room = store.room("builds")?;
    let entries = fs::read_dir(&room).map_err(|e| LabError::file(&room, e))?;
    let mut found: Vec<BuildManifest> = entries
        .flatten()
        .filter_map(|e| fs::read(e.path().join(MANIFEST)).ok())
        .filter_map(|b| serde_json::from_slice(&b).ok())
        .collect();
    order::by(&mut found, |a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The kernel a build left.
///
/// # Errors
/// Usage: there is none of this name (and which there are), or it is for another architecture.
pub fn kernel(name: &BuildName, arch: Arch, store: &Store) -> Result<Kernel, LabError> {
    let folder = folder(store, name.as_str())?;
    let Ok(bytes) = fs::read(folder.join(MANIFEST)) else {
        let known: Vec<String> = builds(store)?.into_iter().map(|b| b.name).collect();
        let near = did_you_mean(name.as_str(), known.iter().map(String::as_str));
        return Err(BuildError::NoBuild { name: name.to_string(), near, known }.into());
    };
    let manifest: BuildManifest = serde_json::from_slice(&bytes)
        .map_err(|source| BuildError::Manifest { path: folder.join(MANIFEST), source })?;
    if manifest.arch != arch.name() {
        let (name, built) = (name.to_string(), manifest.arch);
        return Err(BuildError::OtherArch { name, built, wanted: arch }.into());
    }
    let image = folder.join(&manifest.image);
    if hash::of_file(&image)? != manifest.image_sha256 {
        return Err(BuildError::OtherImage { name: name.to_string(), image }.into());
    }
    let there = |path: PathBuf| path.exists().then_some(path);
    let mut package = manifest.source.name.clone();
    if !manifest.source.patches.is_empty() {
        package.push_str(&format!(", {} patches", manifest.source.patches.len()));
    }
    if !manifest.fragments.is_empty() {
        package.push_str(&format!(", {}", manifest.fragments.join("+")));
    }
    Ok(Kernel {
        record: KernelRecord {
            name: format!("build:{name}"),
            package: Some(package),
            sha256: manifest.image_sha256,
            ..KernelRecord::default()
        },
        arch,
        image,
        modules: there(folder.join("lib/modules").join(&manifest.release)),
        config: there(folder.join("config")),
        device_trees: there(folder.join("dtbs")),
    })
}
