// SPDX-License-Identifier: MIT OR Apache-2.0
//! From `6.12-rt` to the one package that holds such a kernel today.
//!
//! Pure but for [`resolve`] and [`parts`], which ask apt. Debian calls its kernels
//! `linux-image-<release>-<flavour>`, and has empty packages (`linux-image-rt-amd64`,
//! `linux-image-6.12-rt-amd64`) that depend on the current one. From 7.0 on the package of a kernel holds nothing itself: image,
//! configuration and modules are packages of their own, of the same version.
//! Source: Debian Kernel Handbook, chapter 3.

use std::collections::{BTreeMap, BTreeSet};
use tailbound_core::order;

use tailbound_core::words::did_you_mean;

use super::apt::{Apt, Package};
use super::version;
use crate::arch::Arch;
use crate::error::{KernelError, LabError};

/// Every kernel package apt knows, and its versions, the latest first.
pub(crate) type Known = BTreeMap<String, Vec<String>>;

/// Kernel packages in `apt`'s lists.
///
/// # Errors
/// There is no apt, or it fails.
pub(crate) fn known(apt: &Apt) -> Result<Known, LabError> {
    let mut all = apt.versions("^linux-image-")?;
    all.retain(|name, _| {
        !["-dbg", "-unsigned", "-signed-template"].iter().any(|end| name.ends_with(end))
    });
    Ok(all)
}

/// The package that holds the kernel called `name`, or nothing.
///
/// # Errors
/// There is no apt, or it fails.
pub(crate) fn resolve(
    apt: &Apt,
    known: &Known,
    name: &str,
    arch: Arch,
) -> Result<Option<Package>, LabError> {
    let Some((mut package, mut version)) = chosen(known, name, arch) else { return Ok(None) };
    // A package that holds no kernel names the one that does, sometimes over two steps.
    for _ in 0..4 {
        let Some(found) = apt.show(&package, &version)? else { return Ok(None) };
        let Some(next) = found.depends.iter().find(|d| d.starts_with("linux-image-")) else {
            return Ok(Some(found));
        };
        let Some(latest) = known.get(next).and_then(|v| v.first()) else { return Ok(None) };
        (package, version) = (next.clone(), latest.clone());
    }
    Ok(None)
}

/// What begins the name of the package that holds a kernel's image, where the kernel's own does not.
const IMAGE: &str = "linux-binary-";
/// And those of the packages that hold parts of such a kernel.
const PARTS: [&str; 3] = [IMAGE, "linux-modules-", "linux-base-"];

/// `package`, and the packages that hold the rest of its kernel.
///
/// # Errors
/// There is no apt, or the archive no longer has a part.
pub(crate) fn parts(apt: &Apt, package: Package) -> Result<Vec<Package>, LabError> {
    let mut all = Vec::new();
    for name in part_names(&package) {
        let part = apt.show(name, &package.version)?;
        all.push(part.ok_or_else(|| KernelError::PartUnknown {
            package: package.name.clone(),
            version: package.version.clone(),
            part: name.to_owned(),
        })?);
    }
    all.insert(0, package);
    Ok(all)
}

fn part_names(package: &Package) -> impl Iterator<Item = &String> {
    let is_split = package.depends.iter().any(|d| d.starts_with(IMAGE));
    let is_part = move |d: &&String| is_split && PARTS.iter().any(|part| d.starts_with(part));
    package.depends.iter().filter(is_part)
}

/// Package and version `name` means among those known.
fn chosen(known: &Known, name: &str, arch: Arch) -> Option<(String, String)> {
    if let Some((package, version)) = name.split_once('=') {
        let package = full(package);
        let versions = known.get(&package)?;
        return versions.iter().any(|v| v == version).then(|| (package, version.to_owned()));
    }
    let latest = |package: String| {
        let version = known.get(&package)?.first()?.clone();
        Some((package, version))
    };
    if name == "stock" {
        return latest(format!("linux-image-{}", flavour(arch, "")));
    }
    latest(full(name))
        .or_else(|| latest(format!("linux-image-{name}-{}", flavour(arch, ""))))
        .or_else(|| latest(format!("linux-image-{}", flavour(arch, name))))
        .or_else(|| newest_of_series(known, name, arch))
}

fn full(package: &str) -> String {
    if package.starts_with("linux-image-") {
        package.to_owned()
    } else {
        format!("linux-image-{package}")
    }
}

/// What Debian appends for this flavour: `rt` is `rt-amd64`, and `rt-armmp` on armhf.
fn flavour(arch: Arch, name: &str) -> String {
    let base = if arch == Arch::Arm { "armmp" } else { arch.debian() };
    match name {
        "" => base.to_owned(),
        "lpae" => format!("{base}-lpae"),
        name if name.ends_with(base) => name.to_owned(),
        name => format!("{name}-{base}"),
    }
}

/// `6.1-cloud`: the latest package of that series and flavour.
fn newest_of_series(known: &Known, name: &str, arch: Arch) -> Option<(String, String)> {
    let (series, wanted) = name.split_once('-').unwrap_or((name, ""));
    let wanted = flavour(arch, wanted);
    let mut best: Option<(&String, &String, &str)> = None;
    for (package, versions) in known {
        let (Some((release, kind)), Some(latest)) = (split(package), versions.first()) else {
            continue;
        };
        let later = |(_, v, r): (&String, &String, &str)| {
            version::compare(latest, v).then_with(|| version::compare(release, r)).is_gt()
        };
        if kind == wanted && of_series(release, series) && best.is_none_or(later) {
            best = Some((package, latest, release));
        }
    }
    best.map(|(p, v, _)| (p.clone(), v.clone()))
}

/// `linux-image-6.1.0-47-cloud-amd64` as `6.1.0-47` and `cloud-amd64`; nothing for packages
/// without a version in their names.
fn split(package: &str) -> Option<(&str, &str)> {
    let rest = package.strip_prefix("linux-image-")?;
    let mut end = 0;
    for part in rest.split('-') {
        if !part.starts_with(|c: char| c.is_ascii_digit()) {
            break;
        }
        end += part.len() + 1;
    }
    let release = rest.get(..end.checked_sub(1)?)?;
    Some((release, rest.get(end..).unwrap_or_default()))
}

fn of_series(release: &str, series: &str) -> bool {
    release
        .strip_prefix(series)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+', '~']))
}

/// The short names that lead to a kernel, with the package each stands for: series with
/// flavour, and the suite's own choice of each flavour.
pub(crate) fn short_names(known: &Known, arch: Arch) -> BTreeMap<String, (String, String)> {
    let base = flavour(arch, "");
    let short = |kind: &str| {
        if kind == base {
            return String::new();
        }
        let end = format!("-{base}");
        kind.strip_suffix(&end)
            .or_else(|| kind.strip_prefix(&format!("{base}-")))
            .unwrap_or(kind)
            .to_owned()
    };
    let mut names = BTreeSet::new();
    for package in known.keys() {
        match split(package) {
            Some((release, kind)) => {
                let series: Vec<&str> = release.split(['.', '-', '+']).take(2).collect();
                let kind = short(kind);
                let dash = if kind.is_empty() { "" } else { "-" };
                names.insert(format!("{}{dash}{kind}", series.join(".")));
            }
            None => {
                let kind = short(package.strip_prefix("linux-image-").unwrap_or(package));
                names.insert(if kind.is_empty() { "stock".to_owned() } else { kind });
            }
        }
    }
    names.into_iter().filter_map(|n| chosen(known, &n, arch).map(|c| (n, c))).collect()
}

/// What to say when `name` leads nowhere: the short names, and the releases nearest to it.
pub(crate) fn candidates(known: &Known, name: &str, arch: Arch) -> String {
    let names: Vec<String> = short_names(known, arch).into_keys().collect();
    let near = did_you_mean(name, names.iter().map(String::as_str));
    let short: Vec<String> = names.iter().map(|n| format!("debian:{n}")).collect();
    let mut text = if short.is_empty() {
        format!("apt knows no kernel for {}", arch.debian())
    } else {
        format!("apt knows for {}: {}{near}", arch.debian(), short.join(", "))
    };
    let wanted = name.split('=').next().unwrap_or(name);
    let wanted = wanted.strip_prefix("linux-image-").unwrap_or(wanted);
    let alike = |n: &str| n.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
    let mut near: Vec<(usize, &String, &Vec<String>)> = known
        .iter()
        .map(|(n, v)| (alike(n.strip_prefix("linux-image-").unwrap_or(n)), n, v))
        .filter(|(same, ..)| *same >= 4)
        .collect();
    order::by(&mut near, |a, b| b.0.cmp(&a.0).then_with(|| b.1.cmp(a.1)));
    if wanted.len() > 7 && !near.is_empty() {
        let list: Vec<String> = near
            .iter()
            .take(4)
            .map(|(_, n, v)| format!("{n}={}", v.first().map_or("", String::as_str)))
            .collect();
        text.push_str(&format!("; nearest: {}", list.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bookworm() -> Known {
        [
            ("linux-image-6.1.0-47-amd64", "6.1.170-3"),
            ("linux-image-6.1.0-56-amd64", "6.1.192-2"),
            ("linux-image-6.1.0-47-cloud-amd64", "6.1.170-3"),
            ("linux-image-6.1.0-56-cloud-amd64", "6.1.192-2"),
            ("linux-image-6.1.0-56-rt-amd64", "6.1.192-2"),
            ("linux-image-6.12-amd64", "6.12.117-1~deb12u1"),
            ("linux-image-6.12-rt-amd64", "6.12.117-1~deb12u1"),
            ("linux-image-6.12.100+deb12-rt-amd64", "6.12.100-1~deb12u1"),
            ("linux-image-6.12.117+deb12-rt-amd64", "6.12.117-1~deb12u1"),
            ("linux-image-amd64", "6.1.192-2"),
            ("linux-image-cloud-amd64", "6.1.192-2"),
            ("linux-image-rt-amd64", "6.1.192-2"),
        ]
        .map(|(n, v)| (n.to_owned(), vec![v.to_owned()]))
        .into()
    }

    fn armhf() -> Known {
        [
            "6.1.0-47-armmp",
            "6.1.0-50-armmp",
            "6.1.0-50-armmp-lpae",
            "6.1.0-50-rt-armmp",
            "armmp",
            "armmp-lpae",
            "rt-armmp",
        ]
        .map(|n| (format!("linux-image-{n}"), vec!["6.1.176-1".to_owned()]))
        .into()
    }

    #[test]
    fn names_lead_to_packages() {
        for (name, package) in [
            ("6.12-rt", "linux-image-6.12-rt-amd64"),
            ("6.12", "linux-image-6.12-amd64"),
            ("6.1", "linux-image-6.1.0-56-amd64"),
            ("6.1-cloud", "linux-image-6.1.0-56-cloud-amd64"),
            ("6.1-rt", "linux-image-6.1.0-56-rt-amd64"),
            ("rt", "linux-image-rt-amd64"),
            ("stock", "linux-image-amd64"),
            ("6.12.117+deb12-rt-amd64", "linux-image-6.12.117+deb12-rt-amd64"),
            ("6.12.117-rt", "linux-image-6.12.117+deb12-rt-amd64"),
            ("linux-image-6.1.0-47-amd64=6.1.170-3", "linux-image-6.1.0-47-amd64"),
        ] {
            let found = chosen(&bookworm(), name, Arch::X86_64);
            assert_eq!(found.map(|f| f.0).as_deref(), Some(package), "{name}");
        }
        for (name, package) in [
            ("6.1", "linux-image-6.1.0-50-armmp"),
            ("6.1-armmp", "linux-image-6.1.0-50-armmp"),
            ("6.1-rt-armmp", "linux-image-6.1.0-50-rt-armmp"),
            ("6.1-lpae", "linux-image-6.1.0-50-armmp-lpae"),
            ("rt", "linux-image-rt-armmp"),
            ("stock", "linux-image-armmp"),
        ] {
            let found = chosen(&armhf(), name, Arch::Arm);
            assert_eq!(found.map(|f| f.0).as_deref(), Some(package), "{name}");
        }
        for name in ["6.13", "6.1.0-47-amd64=1", "cloudy", "6.1-xen", "5.10-rt"] {
            let found = chosen(&bookworm(), name, Arch::X86_64);
            assert!(found.is_none(), "{name}: {found:?}");
        }
    }

    #[test]
    fn a_kernel_may_lie_in_several_packages() {
        let of = |depends: &[&str]| Package {
            depends: depends.iter().map(|d| (*d).to_owned()).collect(),
            ..Package::default()
        };
        // 6.12, and 6.18, which names a package that need not be there.
        for whole in [&["kmod", "linux-base"], &["kmod", "linux-base-6.18.15+deb13-amd64"]] {
            assert_eq!(part_names(&of(whole)).count(), 0, "{whole:?}");
        }
        let split = of(&[
            "dracut",
            "linux-base-7.3.4+deb13-amd64",
            "linux-binary-7.3.4+deb13-amd64",
            "linux-modules-7.3.4+deb13-amd64",
        ]);
        assert_eq!(part_names(&split).count(), 3);
    }

    #[test]
    fn what_exists_is_reported() {
        let text = candidates(&bookworm(), "5.10-rt", Arch::X86_64);
        for name in
            ["debian:6.1,", "debian:6.1-cloud", "debian:6.12-rt", "debian:rt", "debian:stock"]
        {
            assert!(text.contains(name), "{name} in {text}");
        }
        let text =
            candidates(&bookworm(), "linux-image-6.12.99+deb12-rt-amd64=6.12.99-1", Arch::X86_64);
        assert!(text.contains("nearest: linux-image-6.12.117+deb12-rt-amd64=6.12.117"), "{text}");
        let text = candidates(&armhf(), "x", Arch::Arm);
        assert!(text.contains("debian:6.1-lpae") && text.contains("debian:6.1-rt"), "{text}");
        assert_eq!(candidates(&Known::new(), "6.1", Arch::Arm), "apt knows no kernel for armhf");
    }
}
