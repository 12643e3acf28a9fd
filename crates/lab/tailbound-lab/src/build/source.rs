// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's source, unpacked once into the store or taken where it is, with the patches on.
//!
//! What the user named is never written to: without patches a folder is built
//! from where it is (all output goes elsewhere), with patches from a copy, and a git tree from
//! a work tree of our own.

use std::fs;
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use tailbound_archive::Limits;
use tailbound_sys::given;
use tailbound_sys::new_file::{self, Existing};

use super::git::{self, Worktree};
use super::request::{Request, Source};
use super::series::{self, Patch, PatchRecord};
use crate::arch::Arch;
use crate::error::{BuildError, LabError, SourceError};
use crate::hash::{self, Hashing};
use crate::kernel::apt::{Apt, Package};
use crate::kernel::lists::{self, Note, PackageLists, Question};
use crate::kernel::obtain::split_suite;
use crate::kernel::package::{json, unpack_deb};
use crate::kernel::tool::Tool;
use crate::store::Store;

/// The largest archive that is read; Linux 6.18, not packed, has 1.6 GiB.
const ARCHIVE_BYTES_MAX: u64 = 4 << 30;

/// Where a build's source came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRecord {
    /// Package and version, file name, or folder.
    pub name: String,
    /// SHA-256 of the package or archive; the commit of a git tree; nothing for a plain folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// What was applied, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<PatchRecord>,
    /// What the series was moved onto.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebased_onto: Option<String>,
}

/// A source tree that can be built.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) root: PathBuf,
    pub(crate) record: SourceRecord,
}

/// A source before patches.
#[derive(Debug)]
struct Pristine {
    root: PathBuf,
    name: String,
    identity: Option<String>,
    /// Where a package's own patches are.
    shipped: Option<PathBuf>,
}

/// Fetches, unpacks and patches what `request` names; `work` is the build's own folder.
///
/// # Errors
/// Usage: no such source, or patches that do not apply (all of them, with files and hunks).
pub(crate) fn prepare(
    request: &Request,
    store: &Store,
    work: &Path,
    note: &mut Note<'_>,
) -> Result<Prepared, LabError> {
    if let Source::Path(path) = &request.source
        && git::is_tree(path)
    {
        return of_git(path, request, work, note);
    }
    if let Some(onto) = &request.rebase_onto {
        let source_name = request.source.to_string();
        return Err(BuildError::NotRebased { onto: onto.clone(), source_name }.into());
    }
    let pristine = match &request.source {
        Source::Debian(package) => of_debian(package, store, note)?,
        Source::Path(path) if path.is_dir() => of_folder(path)?,
        Source::Path(path) => of_archive(path, store, note)?,
    };
    let mut record = SourceRecord {
        name: pristine.name,
        identity: pristine.identity,
        patches: Vec::new(),
        rebased_onto: None,
    };
    if request.patches.is_empty() {
        return Ok(Prepared { root: pristine.root, record });
    }
    let patches =
        series::gather(&request.patches, pristine.shipped.as_deref(), &work.join("patches"))?;
    record.patches = patches.iter().map(|p| p.record.clone()).collect();
    let root = patched(&pristine.root, &record, &patches, work, note)?;
    Ok(Prepared { root, record })
}

fn of_git(
    path: &Path,
    request: &Request,
    work: &Path,
    note: &mut Note<'_>,
) -> Result<Prepared, LabError> {
    let patches = series::gather(&request.patches, None, &work.join("patches"))?;
    let uncommitted = git::uncommitted(path)?;
    if uncommitted > 0 {
        note(&format!(
            "{}: {uncommitted} files have changes that are in no commit: they are not built",
            path.display()
        ));
    }
    note("making a work tree");
    let tree = Worktree::make(path, work, request.name.as_str())?;
    series::judge(&tree.apply(&patches)?, &format!("{} at HEAD", path.display()))?;
    let mut records: Vec<PatchRecord> = patches.iter().map(|p| p.record.clone()).collect();
    if let Some(onto) = &request.rebase_onto {
        let (tried, moved) = tree.rebase(onto)?;
        note(&format!("{} patches moved onto {onto}, branch {}", tried.len(), tree.branch()));
        series::judge(&tried, onto)?;
        records = moved;
    }
    Ok(Prepared {
        record: SourceRecord {
            name: path.display().to_string(),
            identity: Some(tree.tip()?),
            patches: records,
            rebased_onto: request.rebase_onto.clone(),
        },
        root: tree.folder,
    })
}

fn of_folder(path: &Path) -> Result<Pristine, LabError> {
    let root = fs::canonicalize(path).map_err(|e| LabError::file(path, e))?;
    is_kernel(&root)?;
    if root.join(".config").exists() || root.join("include/config").exists() {
        return Err(BuildError::BuiltInPlace { folder: root }.into());
    }
    Ok(Pristine { name: root.display().to_string(), root, identity: None, shipped: None })
}

fn is_kernel(root: &Path) -> Result<(), LabError> {
    if root.join("Kconfig").exists() && root.join("scripts/kconfig").exists() {
        return Ok(());
    }
    Err(BuildError::NoKernelSource { folder: root.to_owned() }.into())
}

fn of_archive(path: &Path, store: &Store, note: &mut Note<'_>) -> Result<Pristine, LabError> {
    let wrong = |source| BuildError::Source { path: path.to_owned(), source };
    let unreadable = |e| wrong(SourceError::Unreadable(e));
    let mut file = given::file(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => wrong(SourceError::Missing),
        _ => unreadable(e),
    })?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes > ARCHIVE_BYTES_MAX {
        let most_gib = ARCHIVE_BYTES_MAX >> 30;
        return Err(wrong(SourceError::TooLarge { most_gib }).into());
    }
    let identity = hash::of_reader(&mut file, path)?;
    let folder = store.room("sources")?.join(&identity);
    let _lock = store.lock("sources", note)?;
    if !folder.exists() {
        note(&format!("unpacking {}", path.display()));
        let beside = store.beside("sources")?;
        let whole = beside.path().join("whole");
        fs::create_dir(&whole).map_err(|e| LabError::file(&whole, e))?;
        file.rewind().map_err(unreadable)?;
        let mut hashing = Hashing::new(file);
        let unpacked = tailbound_archive::unpack(&mut hashing, &whole, &Limits::source(bytes))
            .map_err(|e| LabError::archive(format!("source {}", path.display()), e))?;
        if hashing.read_rest().map_err(unreadable)?.finish()? != identity {
            return Err(wrong(SourceError::Changed).into());
        }
        if let Some(first) = unpacked.left_out.first() {
            let n = unpacked.left_out.len();
            note(&format!(
                "{n} links lead out of the archive and are left out; the first is {first}"
            ));
        }
        // Looked at before it is kept.
        top_of(&whole).map_err(|e| wrong(SourceError::Content(Box::new(e))))?;
        store.place(&whole, &folder)?;
    }
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    Ok(Pristine { root: top_of(&folder)?, name, identity: Some(identity), shipped: None })
}

/// Archives have one folder at their top, or the source itself.
fn top_of(folder: &Path) -> Result<PathBuf, LabError> {
    if is_kernel(folder).is_ok() {
        return Ok(folder.to_owned());
    }
    let entries = fs::read_dir(folder).map_err(|e| LabError::file(folder, e))?;
    let mut tops: Vec<PathBuf> =
        entries.flatten().map(|e| e.path()).filter(|p| is_kernel(p).is_ok()).collect();
    match (tops.pop(), tops.is_empty()) {
        (Some(top), true) => Ok(top),
        _ => Err(BuildError::NotOneSource.into()),
    }
}

fn of_debian(name: &str, store: &Store, note: &mut Note<'_>) -> Result<Pristine, LabError> {
    let (package, suite) = split_suite(name)?;
    let what = format!("debian:{name}");
    let _lock = store.lock("sources", note)?;
    let remembered = store.room("sources/names")?.join(format!("{name}.json"));
    let known: Option<Package> =
        fs::read(&remembered).ok().and_then(|b| serde_json::from_slice(&b).ok());
    let room = store.room("sources")?;
    if let Some(known) = known.filter(|k| room.join(&k.sha256).exists()) {
        return unpacked(&known, &room.join(&known.sha256));
    }
    let question = Question {
        what: &what,
        arch: Arch::of_host(),
        suite,
        lists: PackageLists::AtHand,
        otherwise: lists::OTHER_KERNEL,
    };
    let found = lists::ask(question, store, note, &mut |apt, note| {
        fetch_source(apt, &what, package, store, note)
    })?;
    store.write_whole(&remembered, &json(&found))?;
    unpacked(&found, &room.join(&found.sha256))
}

fn unpacked(package: &Package, folder: &Path) -> Result<Pristine, LabError> {
    Ok(Pristine {
        root: top_of(folder)?,
        name: format!("{} {}", package.name, package.version),
        identity: Some(package.sha256.clone()),
        shipped: Some(folder.join("shipped")),
    })
}

fn fetch_source(
    apt: &Apt,
    what: &str,
    wanted: &str,
    store: &Store,
    note: &mut Note<'_>,
) -> Result<Package, LabError> {
    let known = apt.versions("^linux-source-[0-9]")?;
    let (name, version) = wanted.split_once('=').unwrap_or((wanted, ""));
    let versions = known.get(name).map(Vec::as_slice).unwrap_or_default();
    let chosen =
        if version.is_empty() { versions.first() } else { versions.iter().find(|v| *v == version) };
    let Some(chosen) = chosen else {
        let known = known.iter().map(|(n, v)| format!("debian:{n} ({})", v.join(", "))).collect();
        return Err(BuildError::UnknownSource { name: what.to_owned(), known }.into());
    };
    let package = apt
        .show(name, chosen)?
        .ok_or_else(|| BuildError::SourceNotShown { name: what.to_owned() })?;
    let folder = store.room("sources")?.join(&package.sha256);
    if folder.exists() {
        return Ok(package);
    }
    note(&format!("fetching {name} {chosen} ({} MB)", package.size.div_ceil(1_000_000)));
    let beside = store.beside("sources")?;
    let deb = apt.download(&package, beside.path())?;
    if hash::of_file(&deb)? != package.sha256 {
        return Err(BuildError::OtherSource { name: what.to_owned() }.into());
    }
    note("unpacking the source");
    let all = beside.path().join("all");
    unpack_deb(&deb, &all)?;
    let shipped = all.join("usr/src");
    let archive = shipped.join(format!("{name}.tar.xz"));
    let whole = beside.path().join("whole");
    fs::create_dir_all(&whole).map_err(|e| LabError::file(&whole, e))?;
    let packed = given::file(&archive).map_err(|e| LabError::file(&archive, e))?;
    let bytes = packed.metadata().map_err(|e| LabError::file(&archive, e))?.len();
    tailbound_archive::unpack(packed, &whole, &Limits::source(bytes))
        .map_err(|e| LabError::archive(what, e))?;
    fs::remove_file(&archive).map_err(|e| LabError::file(&archive, e))?;
    new_file::rename(&shipped, &whole.join("shipped")).map_err(|e| LabError::file(&shipped, e))?;
    store.place(&whole, &folder)?;
    Ok(package)
}

/// A patched copy in `work`; the one of last time if nothing it is made of changed, so that a
/// second build compiles only what it must.
fn patched(
    pristine: &Path,
    record: &SourceRecord,
    patches: &[Patch],
    work: &Path,
    note: &mut Note<'_>,
) -> Result<PathBuf, LabError> {
    let (tree, stamp) = (work.join("tree"), work.join("tree.json"));
    let made_of = json(record);
    let same = record.identity.is_some() && fs::read(&stamp).is_ok_and(|b| b == made_of);
    if same && tree.exists() {
        return Ok(tree);
    }
    for old in [&tree, &stamp] {
        // Either may be absent.
        let _gone = if old.is_dir() { fs::remove_dir_all(old) } else { fs::remove_file(old) };
    }
    note("copying the source, to patch it");
    Tool::new("cp").args(["-a", "--reflink=auto"]).arg(pristine).arg(&tree).succeed()?;
    series::judge(&series::apply(&tree, patches)?, &record.name)?;
    new_file::write(&stamp, Existing::Replace, &made_of).map_err(|e| LabError::file(&stamp, e))?;
    Ok(tree)
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
