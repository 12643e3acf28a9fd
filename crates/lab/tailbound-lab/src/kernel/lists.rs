// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts a question to apt: first on lists that are at hand, then on fresh ones.
//!
//! Not here: what is asked (`obtain`, `build::source`).

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tailbound_core::FailureKind;

use super::apt::Apt;
use crate::arch::Arch;
use crate::error::{KernelError, LabError};
use crate::store::Store;

/// Private lists younger than this are asked before they are fetched again.
const YOUNG: Duration = Duration::from_secs(3600);

/// Which lists of packages answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageLists {
    /// Those that are at hand, where they have the answer.
    AtHand,
    /// New ones, whatever is at hand.
    Anew,
}

impl PackageLists {
    /// What `--refresh` stands for.
    #[must_use]
    pub fn anew_if(refresh: bool) -> Self {
        if refresh { Self::Anew } else { Self::AtHand }
    }
}

/// What is asked for, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// As the user wrote it, for messages.
    pub(crate) what: &'a str,
    pub(crate) arch: Arch,
    /// A suite that the machine's sources need not name, from the same archives.
    pub(crate) suite: Option<&'a str>,
    pub(crate) lists: PackageLists,
    /// What to do on a machine without apt.
    pub(crate) otherwise: &'static str,
}

/// What is said to people while it takes time.
pub(crate) type Note<'a> = dyn FnMut(&str) + 'a;

/// Asks `question` of one apt after another until one has the answer.
///
/// # Errors
/// Usage when all lists are complete and there is no such thing; otherwise what was tried.
pub(crate) fn ask<T>(
    question: Question<'_>,
    store: &Store,
    note: &mut Note<'_>,
    through: &mut dyn FnMut(&Apt, &mut Note<'_>) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let Question { what, arch, suite, lists, .. } = question;
    let folder = store.room("apt")?;
    let mut tried = Vec::new();
    if arch == Arch::of_host() && lists == PackageLists::AtHand && suite.is_none() {
        match Apt::of_system(&folder).and_then(|apt| through(&apt, note)) {
            Ok(answer) => return Ok(answer),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(e) => tried.push(format!("with the system's package lists: {e}")),
        }
    }
    let mut apt =
        Apt::private(&folder, arch, suite).map_err(|e| without_apt(&question, store, e))?;
    let stamp = apt.stamp();
    if lists == PackageLists::AtHand && is_young(&stamp) {
        match through(&apt, note) {
            Ok(answer) => return Ok(answer),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(_) => {}
        }
    }
    let of_suite = suite.map(|s| format!(" of {s}")).unwrap_or_default();
    note(&format!("fetching package lists{of_suite} for {}", arch.debian()));
    apt.update().map_err(|e| without_apt(&question, store, e))?;
    for complaint in &apt.complaints {
        note(&format!("apt: {complaint}"));
    }
    store.write_whole(&stamp, b"")?;
    match through(&apt, note) {
        Ok(answer) => Ok(answer),
        Err(e) if e.kind() == FailureKind::Usage && apt.complaints.is_empty() => Err(e),
        Err(LabError::Interrupted) => Err(LabError::Interrupted),
        Err(e) => {
            tried.push(format!("with fresh lists in {}: {e}", folder.display()));
            tried.extend(apt.complaints.iter().map(|c| format!("apt reported: {c}")));
            let (wanted, arch) = (what.to_owned(), arch.debian());
            Err(KernelError::NotToBeHad { wanted, arch, tried }.into())
        }
    }
}

/// What a user of kernels does on a machine without apt.
pub(crate) const OTHER_KERNEL: &str = "use path:VMLINUZ";

fn without_apt(question: &Question<'_>, store: &Store, why: LabError) -> LabError {
    if why.is_cut_off() {
        return why;
    }
    KernelError::NoApt {
        wanted: question.what.to_owned(),
        store: store.folder().to_owned(),
        source: Box::new(why),
        remedy: question.otherwise,
    }
    .into()
}

fn is_young(stamp: &Path) -> bool {
    let made = fs::metadata(stamp).and_then(|m| m.modified());
    made.is_ok_and(|m| SystemTime::now().duration_since(m).is_ok_and(|age| age < YOUNG))
}
