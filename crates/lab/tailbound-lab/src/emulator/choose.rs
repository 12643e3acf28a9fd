// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which QEMU a run takes: the one asked for, else the system's, else one that was fetched, with the reason.
//!
//! Nothing is fetched here: that takes somebody who asks for it (`lab qemu fetch`).

use std::path::{Path, PathBuf};

use super::stored::{self, Stored};
use super::{Emulator, named};
use crate::arch::Arch;
use crate::error::{LabError, QemuError};
use crate::store::Store;

/// The variable that names one.
const VARIABLE: &str = "TAILBOUND_QEMU";
/// The word for the one on the path.
const SYSTEM: &str = "system";

/// What a run needs of QEMU and of the guest's program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// `system`, a version that was fetched, or a program.
    pub qemu: Option<&'a Path>,
    /// The guest's program.
    pub guest: Option<&'a Path>,
    /// Are there several CPUs to be run in short slices?
    pub slices: bool,
    /// What QEMU said of itself when a run was made that is to be repeated.
    pub says: Option<&'a str>,
}

/// The emulator for guests of `arch`.
///
/// # Errors
/// There is none, or not the one that was asked for.
pub fn choose(store: &Store, arch: Arch, asked: Asked<'_>) -> Result<Emulator, LabError> {
    let named = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from);
    chosen(store, arch, asked, named.as_deref(), &|| Emulator::find(arch, None))
}

fn chosen(
    store: &Store,
    arch: Arch,
    asked: Asked<'_>,
    variable: Option<&Path>,
    system: &dyn Fn() -> Result<Emulator, LabError>,
) -> Result<Emulator, LabError> {
    if let Some(word) = asked.qemu.or(variable) {
        return match word.to_str() {
            Some(SYSTEM) => system(),
            Some(version) if is_version(version) && !word.exists() => {
                of_version(store, arch, version)
            }
            _ => Emulator::find(arch, Some(word)),
        };
    }
    let fetched = || -> Result<Vec<Stored>, LabError> {
        let all = stored::stored(store)?;
        Ok(all.into_iter().filter(|s| s.arch == arch.name()).collect())
    };
    let taken = |one: &Stored, reason: String| {
        one.emulator().map(|e| Emulator { reason: Some(reason), ..e })
    };
    let system = system();
    let its_version = system.as_ref().map(|s| s.version.clone()).unwrap_or_default();
    if let Some(says) = asked.says
        && its_version != says
        && let Some(one) = fetched()?.iter().find(|s| s.says == says)
    {
        return taken(
            one,
            format!("QEMU {}, which was fetched: the run was made with it", one.version),
        );
    }
    match system {
        Ok(system) if asked.slices && !system.shares_time() => {
            match fetched()?.iter().find(|s| stored::numbers(&s.version) >= vec![8, 1]) {
                Some(one) => taken(
                    one,
                    format!(
                        "QEMU {}, which was fetched, in place of the system's {}: that one has no short slices for several CPUs",
                        one.version,
                        system.number().unwrap_or("one")
                    ),
                ),
                None => Ok(Emulator {
                    reason: Some(format!(
                        "this QEMU ({}) has no short slices for several CPUs: `tailbound lab qemu fetch` gets one that has them",
                        system.number().unwrap_or("of unknown version")
                    )),
                    ..system
                }),
            }
        }
        Ok(system) => Ok(system),
        Err(e) => match fetched()?.first() {
            Some(one) => taken(
                one,
                format!(
                    "QEMU {}, which was fetched: there is no {} on the path",
                    one.version,
                    named(arch)
                ),
            ),
            None => Err(e),
        },
    }
}

/// `10`, `10.0`, `10.0.13`
fn is_version(word: &str) -> bool {
    !word.is_empty()
        && word.split('.').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn of_version(store: &Store, arch: Arch, version: &str) -> Result<Emulator, LabError> {
    let all = stored::stored(store)?;
    let found = all.iter().find(|s| s.arch == arch.name() && stored::is_of(&s.version, version));
    match found {
        Some(one) => one.emulator(),
        None => {
            let (version, fetched) = (version.to_owned(), stored::listed(&all));
            Err(QemuError::VersionNotFetched { version, arch, fetched }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stored::tests_put as put;
    use super::*;

    fn system(version: &str) -> Emulator {
        Emulator {
            program: PathBuf::from("/usr/bin/qemu"),
            version: format!("QEMU emulator version {version}"),
            sandbox: true,
            beside: None,
            reason: None,
        }
    }

    #[test]
    fn what_was_fetched_is_taken_where_it_is_needed_and_that_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let of = |asked, version: &'static str| {
            chosen(&store, Arch::X86_64, asked, None, &|| match version {
                "" => Err(QemuError::None.into()),
                _ => Ok(system(version)),
            })
        };
        let slices = Asked { slices: true, ..Asked::default() };
        let alone = of(slices, "7.2.22").unwrap();
        assert!(alone.reason.unwrap().contains("lab qemu fetch"));
        assert!(of(Asked::default(), "").is_err());
        put(&store, "10.0.13");
        let number = |e: Result<Emulator, LabError>| e.unwrap().number().unwrap().to_owned();
        assert_eq!(number(of(slices, "7.2.22")), "10.0.13");
        assert!(of(slices, "7.2.22").unwrap().reason.unwrap().contains("in place of"));
        assert_eq!(number(of(slices, "9.0.0")), "9.0.0");
        assert_eq!(number(of(Asked::default(), "7.2.22")), "7.2.22");
        assert_eq!(number(of(Asked::default(), "")), "10.0.13");
        let again = |says| Asked { says: Some(says), ..Asked::default() };
        assert_eq!(number(of(again("QEMU emulator version 10.0.13"), "7.2.22")), "10.0.13");
        assert_eq!(number(of(again("QEMU emulator version 7.2.22"), "7.2.22")), "7.2.22");
        let named = |word: &'static str| Asked { qemu: Some(Path::new(word)), ..slices };
        assert_eq!(number(of(named("system"), "7.2.22")), "7.2.22");
        assert_eq!(number(of(named("10.0"), "7.2.22")), "10.0.13");
        let e = of(named("11"), "7.2.22").unwrap_err();
        assert!(
            e.kind() == tailbound_core::FailureKind::Usage
                && e.to_string().contains("fetched are 10.0.13"),
            "{e}"
        );
    }
}
