// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a kernel's name to files that boot.
//!
//! Context: COLD. What was fetched once is used again without asking anyone; see
//! [`refresh`] for asking anew. Callers at the same time wait for each other.

use std::fs;
use std::path::Path;

use serde::Serialize;
use tailbound_core::lab::KernelRecord;

use super::apt::{Apt, Package};
use super::lists::{self, Note, Question};
use super::{Kernel, KernelName, debian, image, package};
use crate::arch::Arch;
use crate::error::LabError;
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
        KernelName::Debian(debian_name) => {
            if let Some(kernel) = package::remembered(store, debian_name, arch)? {
                return Ok(kernel);
            }
            fetch(debian_name, arch, store, false, note)
        }
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
        KernelName::Debian(debian_name) => fetch(debian_name, arch, store, true, note),
        _ => obtain(name, arch, store, note),
    }
}

fn fetch(
    name: &str,
    arch: Arch,
    store: &Store,
    fresh: bool,
    note: &mut dyn FnMut(&str),
) -> Result<Kernel, LabError> {
    let _lock = store.lock("kernels", note)?;
    // Another process may have fetched it while we waited.
    if !fresh && let Some(kernel) = package::remembered(store, name, arch)? {
        return Ok(kernel);
    }
    let (short, suite) = split_suite(name)?;
    let what = format!("debian:{name}");
    let question = Question { what: &what, arch, suite, fresh };
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
    fresh: bool,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Available>, LabError> {
    let at = suite.map(|s| format!("@{s}")).unwrap_or_default();
    // The suite has to be a plain word here, too.
    split_suite(&format!("any{at}"))?;
    let what = format!("a kernel of Debian{at}");
    let known =
        lists::ask(Question { what: &what, arch, suite, fresh }, store, note, &mut |apt, _| {
            let known = debian::known(apt)?;
            if known.is_empty() {
                return Err(LabError::usage(format!("apt knows no kernel for {}", arch.debian())));
            }
            Ok(known)
        })?;
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
        return Err(LabError::usage(format!("debian:{name}: after `@` stands a suite: trixie")));
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
    let package = debian::resolve(apt, &known, short, arch)?.ok_or_else(|| {
        LabError::usage(format!(
            "debian:{name}: no such kernel; {}",
            debian::candidates(&known, short, arch)
        ))
    })?;
    let folder = package::folder(store, &package.sha256)?;
    if package::load(&folder, name, arch)?.is_none() {
        note(&format!(
            "fetching {} {} ({} MB)",
            package.name,
            package.version,
            package.size.div_ceil(1_000_000)
        ));
        download(apt, &package, arch, store)?;
    }
    package::remember(store, name, arch, &package.sha256)?;
    package::load(&folder, &format!("debian:{name}"), arch)?
        .ok_or_else(|| LabError::cannot(format!("{}: not whole after unpacking", folder.display())))
}

fn download(apt: &Apt, package: &Package, arch: Arch, store: &Store) -> Result<(), LabError> {
    let beside = store.beside("kernels")?;
    let deb = apt.download(package, beside.path())?;
    let got = hash::of_file(&deb)?;
    if got != package.sha256 {
        return Err(LabError::cannot(format!(
            "{}: SHA-256 is {got}, the archive's index says {}",
            package.name, package.sha256
        )));
    }
    package::unpack(store, &deb, package, arch)
}

fn of_path(
    name: &KernelName,
    file: &Path,
    modules: Option<&Path>,
    arch: Arch,
) -> Result<Kernel, LabError> {
    image::check(file, arch)?;
    if let Some(modules) = modules
        && !modules.join("modules.dep").exists()
    {
        return Err(LabError::usage(format!(
            "{}: no modules.dep in it; name the folder lib/modules/<release>, after depmod",
            modules.display()
        )));
    }
    // Beside vmlinuz-X distributions keep config-X; a build tree keeps .config at its top.
    let beside = file
        .file_name()
        .and_then(|n| n.to_str()?.split_once('-').map(|(_, release)| format!("config-{release}")));
    let config = beside.map(|b| file.with_file_name(b)).filter(|c| c.exists());
    let absolute = |p: &Path| fs::canonicalize(p).map_err(|e| LabError::file(p, &e));
    Ok(Kernel {
        record: KernelRecord {
            name: name.to_string(),
            package: None,
            sha256: hash::of_file(file)?,
            ..KernelRecord::default()
        },
        arch,
        image: absolute(file)?,
        modules: modules.map(absolute).transpose()?,
        config: config.as_deref().map(absolute).transpose()?,
        device_trees: None,
    })
}
