// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a kernel's name to files that boot.
//!
//! What was fetched once is used again without asking anyone; see
//! [`refresh`] for asking anew. Callers at the same time wait for each other.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tailbound_core::lab::KernelRecord;

use super::apt::{Apt, Package};
use super::lists::{self, Note, PackageLists, Question};
use super::{Kernel, KernelName, debian, image, modules, package};
use crate::arch::Arch;
use crate::error::{KernelError, LabError};
use crate::hash;
use crate::store::Store;

/// The kernel called `name`, for `arch`, fetched where it is not in the store yet.
/// `note` gets a line whenever something takes time or is worth knowing.
///
/// # Errors
/// Usage: no such kernel, and which there are. Cannot: neither in the store nor to be had,
/// and what was tried.
pub fn obtain(
    name: &KernelName,
    arch: Arch,
    store: &Store,
    note: &mut dyn FnMut(&str),
) -> Result<Kernel, LabError> {
    match name {
        KernelName::Debian(debian_name) => match package::remembered(store, debian_name, arch)? {
            Some(kernel) if is_sound(&kernel)? => Ok(kernel),
            Some(kernel) => mend(debian_name, &kernel, arch, store, note),
            None => fetch(debian_name, arch, store, PackageLists::AtHand, note),
        },
        KernelName::Path { image, modules } => of_path(name, image, modules.as_deref(), arch),
        KernelName::Build(build) => crate::build::kernel(build, arch, store),
    }
}

/// As [`obtain`], but apt is asked again what a Debian name means today, with fresh lists.
///
/// # Errors
/// As [`obtain`].
pub fn refresh(
    name: &KernelName,
    arch: Arch,
    store: &Store,
    note: &mut dyn FnMut(&str),
) -> Result<Kernel, LabError> {
    match name {
        KernelName::Debian(debian_name) => {
            fetch(debian_name, arch, store, PackageLists::Anew, note)
        }
        _ => obtain(name, arch, store, note),
    }
}

/// Is the image what it was when it was unpacked?
fn is_sound(kernel: &Kernel) -> Result<bool, LabError> {
    Ok(hash::of_file(&kernel.image)? == kernel.record.sha256)
}

/// Removes a kernel that is not what it was, and fetches it again: the same package where it is
/// still to be had.
fn mend(
    name: &str,
    kernel: &Kernel,
    arch: Arch,
    store: &Store,
    note: &mut dyn FnMut(&str),
) -> Result<Kernel, LabError> {
    note(&format!(
        "{}: not what was unpacked; it is removed and fetched again",
        kernel.image.display()
    ));
    package::forget(store, name, arch)?;
    let package = kernel.record.package.as_deref().and_then(|p| p.split_once(' '));
    if let Some((package, version)) = package {
        let at = split_suite(name)?.1.map(|s| format!("@{s}")).unwrap_or_default();
        let exact =
            fetch(&format!("{package}={version}{at}"), arch, store, PackageLists::AtHand, note);
        if let (Ok(_), Some(again)) = (exact, package::remembered(store, name, arch)?) {
            return Ok(again);
        }
    }
    fetch(name, arch, store, PackageLists::AtHand, note)
}

fn fetch(
    name: &str,
    arch: Arch,
    store: &Store,
    lists: PackageLists,
    note: &mut dyn FnMut(&str),
) -> Result<Kernel, LabError> {
    let _lock = store.lock("kernels", note)?;
    // Another process may have fetched it while we waited.
    if lists == PackageLists::AtHand
        && let Some(kernel) = package::remembered(store, name, arch)?
    {
        return Ok(kernel);
    }
    let (short, suite) = split_suite(name)?;
    let what = format!("debian:{name}");
    let question = Question { what: &what, arch, suite, lists, otherwise: lists::OTHER_KERNEL };
    lists::ask(question, store, note, &mut |apt, note| through(apt, name, short, arch, store, note))
}

/// A kernel that can be had by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Available {
    /// `debian:6.12-rt`.
    pub name: String,
    /// The package it means today; this may only point to the one with the kernel.
    pub package: String,
    /// Its version.
    pub version: String,
    /// What the name means in the store, where it was fetched.
    pub fetched: Option<String>,
}

/// Kernels of Debian for `arch`, of the machine's sources or of `suite`.
///
/// # Errors
/// There is no apt, or there are no lists and none can be fetched.
pub fn available(
    arch: Arch,
    suite: Option<&str>,
    store: &Store,
    lists: PackageLists,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Available>, LabError> {
    let at = suite.map(|s| format!("@{s}")).unwrap_or_default();
    // The suite has to be a plain word here, too.
    split_suite(&format!("any{at}"))?;
    let what = format!("a kernel of Debian{at}");
    let known = lists::ask(
        Question { what: &what, arch, suite, lists, otherwise: lists::OTHER_KERNEL },
        store,
        note,
        &mut |apt, _| {
            let known = debian::known(apt)?;
            if known.is_empty() {
                return Err(KernelError::NoneKnown { arch: arch.debian() }.into());
            }
            Ok(known)
        },
    )?;
    let mut all = Vec::new();
    for (short, (package, version)) in debian::short_names(&known, arch) {
        let name = format!("{short}{at}");
        let fetched = package::remembered(store, &name, arch)?.and_then(|k| k.record.package);
        all.push(Available { name: format!("debian:{name}"), package, version, fetched });
    }
    Ok(all)
}

/// `6.12-rt@trixie` as name and suite.
pub(crate) fn split_suite(name: &str) -> Result<(&str, Option<&str>), LabError> {
    let Some((short, suite)) = name.split_once('@') else { return Ok((name, None)) };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    if short.is_empty() || suite.is_empty() || suite.starts_with('-') || !suite.chars().all(plain) {
        return Err(KernelError::Suite { name: name.to_owned() }.into());
    }
    Ok((short, Some(suite)))
}

/// Resolves, downloads and unpacks by this apt.
fn through(
    apt: &Apt,
    name: &str,
    short: &str,
    arch: Arch,
    store: &Store,
    note: &mut Note<'_>,
) -> Result<Kernel, LabError> {
    let known = debian::known(apt)?;
    let package =
        debian::resolve(apt, &known, short, arch)?.ok_or_else(|| KernelError::Unknown {
            name: name.to_owned(),
            known: debian::candidates(&known, short, arch),
        })?;
    let folder = package::folder(store, &package.sha256)?;
    if package::load(&folder, name, arch)?.is_none() {
        let parts = debian::parts(apt, package.clone())?;
        let bytes: u64 = parts.iter().map(|p| p.size).sum();
        let mb = bytes.div_ceil(1_000_000);
        note(&format!("fetching {} {} ({mb} MB)", package.name, package.version));
        put(store, &parts, arch, &mut |part, folder| apt.download(part, folder))?;
    }
    package::remember(store, name, arch, &package.sha256)?;
    package::load(&folder, &format!("debian:{name}"), arch)?
        .ok_or_else(|| KernelError::NotWhole { folder }.into())
}

/// Has the packages of a kernel fetched into a folder by `fetch`, then unpacked. They are kept until they are
/// unpacked: where that fails (a full disk, say), the next attempt fetches nothing. The first names the kernel.
fn put(
    store: &Store,
    packages: &[Package],
    arch: Arch,
    fetch: &mut dyn FnMut(&Package, &Path) -> Result<PathBuf, LabError>,
) -> Result<(), LabError> {
    let Some(named) = packages.first() else { return Ok(()) };
    let mut debs = Vec::new();
    for package in packages {
        let kept = store.room("kernels/debs")?.join(format!("{}.deb", package.sha256));
        if !kept.is_file() || hash::of_file(&kept)? != package.sha256 {
            let beside = store.beside("kernels")?;
            let deb = fetch(package, beside.path())?;
            let is = hash::of_file(&deb)?;
            if is != package.sha256 {
                let (package, listed) = (package.name.clone(), package.sha256.clone());
                return Err(KernelError::OtherPackage { package, is, listed }.into());
            }
            tailbound_sys::new_file::rename(&deb, &kept).map_err(|e| LabError::file(&deb, e))?;
        }
        debs.push(kept);
    }
    package::unpack(store, &debs, named, arch)
        .map_err(|e| if e.is_cut_off() { e } else { KernelError::Unpacking(Box::new(e)).into() })?;
    debs.iter().try_for_each(|kept| fs::remove_file(kept).map_err(|e| LabError::file(kept, e)))
}

fn of_path(
    name: &KernelName,
    file: &Path,
    folder: Option<&Path>,
    arch: Arch,
) -> Result<Kernel, LabError> {
    image::check(file, arch)?;
    if let Some(folder) = folder
        && modules::files(folder)?.is_empty()
    {
        return Err(KernelError::NoModules { folder: folder.to_owned() }.into());
    }
    // Beside vmlinuz-X distributions keep config-X, and config beside vmlinuz.
    let beside = file.file_name().and_then(|n| match n.to_str()? {
        "vmlinuz" => Some("config".to_owned()),
        name => name.split_once('-').map(|(_, release)| format!("config-{release}")),
    });
    let config = beside.map(|b| file.with_file_name(b)).filter(|c| c.exists());
    let absolute = |p: &Path| fs::canonicalize(p).map_err(|e| LabError::file(p, e));
    Ok(Kernel {
        record: KernelRecord {
            name: name.to_string(),
            package: None,
            sha256: hash::of_file(file)?,
            ..KernelRecord::default()
        },
        arch,
        image: absolute(file)?,
        modules: folder.map(absolute).transpose()?,
        config: config.as_deref().map(absolute).transpose()?,
        device_trees: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_fetched_outlives_a_failure_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        // Whole, by its hash, but not a package: dpkg-deb fails, or is not installed at all.
        let bytes = b"not a package";
        let package = Package { sha256: hash::of_bytes(bytes), ..Package::default() };
        let mut fetched = 0;
        let mut attempt = || {
            let made =
                put(&store, std::slice::from_ref(&package), Arch::X86_64, &mut |_, folder| {
                    fetched += 1;
                    let deb = folder.join("x.deb");
                    fs::write(&deb, bytes).unwrap();
                    Ok(deb)
                });
            made.unwrap_err().to_string()
        };
        assert!(attempt().contains("is kept"));
        attempt();
        assert_eq!(fetched, 1, "fetched again");
    }
}
