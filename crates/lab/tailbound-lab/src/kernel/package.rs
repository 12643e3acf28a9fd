// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacked kernel packages in the store, by the hash of the package, and what each name
//! came to when it was last asked for.
//!
//! `kernels/<sha256 of the .deb>/` holds `boot`, `lib/modules`, device trees
//! and `manifest.json`; `kernels/names/<arch>-<name>.json` says which one a name means, so
//! that neither apt nor a network is needed again.
//! Source: dpkg-deb(1), deb(5).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tailbound_core::order;

use serde::{Deserialize, Serialize};
use tailbound_archive::Limits;
use tailbound_core::lab::KernelRecord;
use tailbound_core::limits;
use tailbound_sys::given;

use tailbound_sys::new_file::{self, Existing};

use super::Kernel;
use super::apt::Package;
use super::image;
use super::tool::Tool;
use crate::arch::Arch;
use crate::error::{KernelError, LabError};
use crate::hash;
use crate::store::Store;

/// Where an unpacked kernel came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Architecture, as Debian says it.
    pub architecture: String,
    /// SHA-256 of the package (.deb).
    pub deb_sha256: String,
    /// SHA-256 of the kernel image.
    pub image_sha256: String,
    /// The image, from the manifest's folder.
    pub image: String,
    /// What `uname -r` says in it.
    pub release: String,
}

/// What a name came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    pub(crate) name: String,
    pub(crate) deb_sha256: String,
}

const MANIFEST: &str = "manifest.json";

/// The folder of the package with this hash.
pub(crate) fn folder(store: &Store, deb_sha256: &str) -> Result<PathBuf, LabError> {
    Ok(store.room("kernels")?.join(deb_sha256))
}

/// What `name` came to when it was last asked for, if its kernel is still there.
pub(crate) fn remembered(
    store: &Store,
    name: &str,
    arch: Arch,
) -> Result<Option<Kernel>, LabError> {
    let path = name_file(store, name, arch)?;
    let Some(known) = given::read(&path, limits::TEXT_BYTES_MAX)
        .ok()
        .and_then(|b| serde_json::from_slice(&b).ok())
    else {
        return Ok(None);
    };
    let known: Remembered = known;
    load(&folder(store, &known.deb_sha256)?, &format!("debian:{name}"), arch)
}

/// Removes the folder of the kernel that `name` means.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn forget(store: &Store, name: &str, arch: Arch) -> Result<(), LabError> {
    let bytes = fs::read(name_file(store, name, arch)?).unwrap_or_default();
    let Ok(known) = serde_json::from_slice::<Remembered>(&bytes) else { return Ok(()) };
    let folder = folder(store, &known.deb_sha256)?;
    fs::remove_dir_all(&folder).map_err(|e| LabError::file(&folder, e))
}

/// Is the kernel of Debian's called `name` in the store?
///
/// # Errors
/// The store cannot be read.
pub fn is_in_store(store: &Store, name: &str, arch: Arch) -> Result<bool, LabError> {
    remembered(store, name, arch).map(|kernel| kernel.is_some())
}

/// Remembers what `name` came to.
pub(crate) fn remember(
    store: &Store,
    name: &str,
    arch: Arch,
    deb_sha256: &str,
) -> Result<(), LabError> {
    let known = Remembered { name: name.to_owned(), deb_sha256: deb_sha256.to_owned() };
    store.write_whole(&name_file(store, name, arch)?, &json(&known))
}

fn name_file(store: &Store, name: &str, arch: Arch) -> Result<PathBuf, LabError> {
    Ok(store.room("kernels/names")?.join(format!("{arch}-{}.json", name.replace(':', "%3a"))))
}

pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// The kernel unpacked in `folder`, if there is one and it is whole.
pub(crate) fn load(folder: &Path, name: &str, arch: Arch) -> Result<Option<Kernel>, LabError> {
    let path = folder.join(MANIFEST);
    let Ok(bytes) = given::read(&path, limits::TEXT_BYTES_MAX) else { return Ok(None) };
    // A damaged one says nothing of what lies there: it is fetched anew, into its place.
    let Ok(manifest) = serde_json::from_slice::<Manifest>(&bytes) else { return Ok(None) };
    let there = |path: PathBuf| path.exists().then_some(path);
    let Some(image) = there(folder.join(&manifest.image)) else { return Ok(None) };
    // When it was last used, for the one who looks for what was not.
    let _unknown = File::open(&path).and_then(|f| f.set_modified(SystemTime::now()));
    let release = &manifest.release;
    let modules = folder.join("lib/modules").join(release);
    Ok(Some(Kernel {
        record: KernelRecord {
            name: name.to_owned(),
            package: Some(format!("{} {}", manifest.package, manifest.version)),
            sha256: manifest.image_sha256,
            ..KernelRecord::default()
        },
        arch,
        image,
        config: there(folder.join(format!("boot/config-{release}"))),
        // Debian's packages have them beside the modules from 6.18 on.
        device_trees: there(folder.join("dtbs")).or_else(|| there(modules.join("dtb"))),
        modules: there(modules),
    }))
}

/// Every kernel package in the store.
///
/// # Errors
/// The store cannot be read.
pub fn in_store(store: &Store) -> Result<Vec<Manifest>, LabError> {
    let room = store.room("kernels")?;
    let entries = fs::read_dir(&room).map_err(|e| LabError::file(&room, e))?;
    let mut found: Vec<Manifest> = entries
        .flatten()
        .filter_map(|e| given::read(&e.path().join(MANIFEST), limits::TEXT_BYTES_MAX).ok())
        .filter_map(|b| serde_json::from_slice(&b).ok())
        .collect();
    order::by(&mut found, |a, b| (&a.architecture, &a.package).cmp(&(&b.architecture, &b.package)));
    Ok(found)
}

/// Unpacks `debs`, all packages of one kernel, and puts it into the store, as `package`.
///
/// # Errors
/// They are not a kernel's packages, or dpkg-deb or the disk fail.
pub(crate) fn unpack(
    store: &Store,
    debs: &[PathBuf],
    package: &Package,
    arch: Arch,
) -> Result<(), LabError> {
    let beside = store.beside("kernels")?;
    let all = beside.path().join("all");
    for deb in debs {
        unpack_deb(deb, &all)?;
    }
    let whole = beside.path().join("whole");
    let manifest = arrange(&all, &whole, package, arch)?;
    let path = whole.join(MANIFEST);
    new_file::write(&path, Existing::Replace, &json(&manifest))
        .map_err(|e| LabError::file(&path, e))?;
    store.place(&whole, &folder(store, &package.sha256)?)
}

/// Unpacks the files of one package below `to`, which is made. Owners and special bits stay in the package, and so do
/// links that lead out, such as a kernel's to its headers.
///
/// # Errors
/// It is damaged, or has more than a package has; dpkg-deb or the disk fail; interrupted.
pub(crate) fn unpack_deb(deb: &Path, to: &Path) -> Result<(), LabError> {
    fs::create_dir_all(to).map_err(|e| LabError::file(to, e))?;
    Tool::new("dpkg-deb").arg("--fsys-tarfile").arg(deb).reading(&mut |tar| {
        tailbound_archive::unpack(tar, to, &Limits::PACKAGE)
            .map(drop)
            .map_err(|e| LabError::archive(deb.display(), e))
    })
}

/// Moves what a boot needs from the unpacked package `all` to `whole`.
fn arrange(all: &Path, whole: &Path, package: &Package, arch: Arch) -> Result<Manifest, LabError> {
    let moved = |from: &Path, to: &Path| {
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(|e| LabError::file(parent, e))?;
        }
        new_file::rename(from, to).map_err(|e| LabError::file(from, e))
    };
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(all.join(folder)).into_iter().flatten().flatten();
        entries.filter_map(|e| e.file_name().into_string().ok()).collect()
    };
    // Before and after Debian's merge of /lib into /usr.
    let libs = ["lib/modules", "usr/lib/modules"];
    let in_boot = names("boot").iter().find_map(|n| n.strip_prefix("vmlinuz-").map(str::to_owned));
    let release = if let Some(release) = in_boot {
        moved(&all.join("boot"), &whole.join("boot"))?;
        release
    } else {
        // From 7.0 on the image and what belongs to it lie beside the modules.
        let at = |lib: &str, n: &str| all.join(lib).join(n);
        let (lib, release) = libs
            .iter()
            .flat_map(|lib| names(lib).into_iter().map(move |n| (lib, n)))
            .find(|(lib, n)| at(lib, n).join("vmlinuz").is_file())
            .ok_or_else(|| KernelError::NoImageIn { package: package.name.clone() })?;
        for file in ["vmlinuz", "config", "System.map"] {
            let from = at(lib, &release).join(file);
            if from.exists() {
                moved(&from, &whole.join(format!("boot/{file}-{release}")))?;
            }
        }
        release
    };
    for lib in libs {
        let modules = all.join(lib).join(&release);
        if modules.exists() {
            moved(&modules, &whole.join("lib/modules").join(&release))?;
        }
    }
    let trees = all.join(format!("usr/lib/linux-image-{release}"));
    if trees.exists() {
        moved(&trees, &whole.join("dtbs"))?;
    }
    let file = format!("boot/vmlinuz-{release}");
    let image_path = whole.join(&file);
    image::check(&image_path, arch)?;
    Ok(Manifest {
        package: package.name.clone(),
        version: package.version.clone(),
        architecture: arch.debian().to_owned(),
        deb_sha256: package.sha256.clone(),
        image_sha256: hash::of_file(&image_path)?,
        image: file,
        release,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_trees_are_found_where_packages_of_any_time_have_them() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = serde_json::json!({
            "package": "p", "version": "1", "architecture": "armhf", "deb_sha256": "", "image_sha256": "",
            "image": "vmlinuz", "release": "7.2",
        });
        fs::write(dir.path().join(MANIFEST), manifest.to_string()).unwrap();
        fs::write(dir.path().join("vmlinuz"), "").unwrap();
        let trees = || load(dir.path(), "k", Arch::Arm).unwrap().unwrap().device_trees;
        assert_eq!(trees(), None);
        for folder in ["lib/modules/7.2/dtb", "dtbs"] {
            let folder = dir.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            assert_eq!(trees(), Some(folder));
        }
    }
}
