// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which module files a guest needs, in the order they are to be loaded.
//!
//! What a module needs stands in the module itself, so that neither depmod nor a
//! `modules.dep` is needed. Files stay as they are, compressed ones too, where the kernel
//! unpacks them itself (CONFIG_MODULE_DECOMPRESS); for other kernels they are unpacked here.
//! Not here: what a module says of itself (`modinfo`).
//! Source: modprobe(8), depmod(8), modules.builtin of Documentation/kbuild/kbuild.rst.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tailbound_core::limits;
use tailbound_sys::given;

use super::config::Config;
use super::modinfo::{self, Info, Packed};
use crate::error::{KernelError, LabError};

pub(crate) use super::modinfo::unpacked;

/// Deeper folders, and longer chains of needs, are no kernel's.
const DEPTH_MAX: u8 = 24;

/// Files for the modules `names` and everything they need, each after what it needs;
/// those built into the kernel need none. `modules` is a `lib/modules/<release>`.
///
/// # Errors
/// The folder cannot be read; a name is neither a module nor built in (all such names are
/// named at once, with who needs them); a module file is damaged.
pub fn closure(modules: &Path, names: &[&str]) -> Result<Vec<PathBuf>, LabError> {
    let files = files(modules)?;
    let built_in =
        given::text(&modules.join("modules.builtin"), limits::TEXT_BYTES_MAX).unwrap_or_default();
    let built_in: BTreeSet<String> = built_in.lines().map(module_name).collect();
    let mut search = Search {
        built_in: &built_in,
        files: &files,
        read: &|file| {
            let bytes = modinfo::unpacked(file)?;
            modinfo::read(&bytes)
                .ok_or_else(|| KernelError::NoModule { path: file.to_owned() }.into())
        },
        seen: BTreeSet::new(),
        order: Vec::new(),
        missing: BTreeSet::new(),
    };
    for name in names {
        search.add(&modinfo::name(name), None, 0)?;
    }
    if search.missing.is_empty() {
        return Ok(search.order);
    }
    let missing = search.missing.into_iter().collect();
    Err(KernelError::ModulesMissing { folder: modules.to_owned(), missing }.into())
}

/// Every module file below a folder, by the module's name. Symbolic links are not followed:
/// all that goes into a guest is below that folder.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn files(modules: &Path) -> Result<BTreeMap<String, PathBuf>, LabError> {
    let mut found = BTreeMap::new();
    let mut open = vec![(modules.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| LabError::file(&folder, e))?;
        for entry in entries {
            let entry = entry.map_err(|e| LabError::file(&folder, e))?;
            let kind = entry.file_type().map_err(|e| LabError::file(&entry.path(), e))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let module = [".ko", ".ko.xz", ".ko.zst", ".ko.gz"].iter().any(|e| name.ends_with(e));
            if kind.is_dir() && depth < DEPTH_MAX {
                open.push((entry.path(), depth + 1));
            } else if kind.is_file() && module {
                // Of two files of one name the first in the order of paths, whatever the disk's order.
                let kept = found.entry(module_name(&name)).or_insert_with(|| entry.path());
                if entry.path() < *kept {
                    *kept = entry.path();
                }
            }
        }
    }
    Ok(found)
}

struct Search<'a> {
    built_in: &'a BTreeSet<String>,
    files: &'a BTreeMap<String, PathBuf>,
    read: &'a dyn Fn(&Path) -> Result<Info, LabError>,
    seen: BTreeSet<String>,
    order: Vec<PathBuf>,
    missing: BTreeSet<String>,
}

impl Search<'_> {
    /// Adds what `name` needs, then its own file. A cycle, which no kernel has, ends.
    fn add(&mut self, name: &str, by: Option<&str>, depth: u8) -> Result<(), LabError> {
        let Some(file) = self.files.get(name) else {
            if !self.built_in.contains(name) {
                let by = by.map_or_else(String::new, |by| format!(" (needed by `{by}`)"));
                self.missing.insert(format!("`{name}`{by}"));
            }
            return Ok(());
        };
        if !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        if depth == DEPTH_MAX {
            return Err(KernelError::ModuleChain { path: file.to_owned(), depth: DEPTH_MAX }.into());
        }
        let info = (self.read)(file)?;
        for wish in info.wishes.iter().filter(|w| self.files.contains_key(*w)) {
            self.add(wish, Some(name), depth + 1)?;
        }
        for needed in &info.depends {
            self.add(needed, Some(name), depth + 1)?;
        }
        self.order.push(file.clone());
        Ok(())
    }
}

/// Can the kernel with this configuration load this file as it is?
#[must_use]
pub fn loadable(file: &Path, config: &Config) -> bool {
    let means = match Packed::of(file) {
        Packed::No => return true,
        Packed::Xz => "CONFIG_MODULE_COMPRESS_XZ",
        Packed::Gzip => "CONFIG_MODULE_COMPRESS_GZIP",
        Packed::Zstd => "CONFIG_MODULE_COMPRESS_ZSTD",
    };
    config.is_builtin("CONFIG_MODULE_DECOMPRESS") && config.is_builtin(means)
}

/// A module as it goes into the guest: its file's name and its bytes, unpacked where the kernel
/// with this configuration cannot do that itself.
///
/// # Errors
/// The file cannot be read or is damaged.
pub(crate) fn for_guest(
    file: &Path,
    config: Option<&Config>,
) -> Result<(String, Vec<u8>), LabError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if config.is_none_or(|config| loadable(file, config)) {
        let bytes = given::read(file, limits::OBJECT_BYTES_MAX);
        return Ok((name, bytes.map_err(|e| LabError::file(file, e))?));
    }
    Ok((format!("{}.ko", module_base(&name)), modinfo::unpacked(file)?))
}

fn module_base(file: &str) -> &str {
    let base = file.rsplit('/').next().unwrap_or(file);
    base.split_once(".ko").map_or(base, |(name, _)| name)
}

fn module_name(file: &str) -> String {
    modinfo::name(module_base(file))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::modinfo::tests::module;
    use super::*;

    fn folder(modules: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, depends) in modules {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, module(&[&format!("depends={depends}")])).unwrap();
        }
        fs::write(folder.path().join("modules.builtin"), "kernel/drivers/block/loop.ko\n").unwrap();
        folder
    }

    #[test]
    fn needed_modules_come_first_without_depmod() {
        let all = folder(&[
            ("kernel/net/a-b.ko", "c,d,loop"),
            ("kernel/c.ko", "d"),
            ("kernel/d.ko", ""),
            ("kernel/e.ko", ""),
            ("kernel/x.ko", "y"),
            ("kernel/y.ko", "x"),
            ("kernel/z.ko", "gone"),
        ]);
        let found = |names: &[&str]| {
            closure(all.path(), names).map(|files| {
                let of = |f: &PathBuf| {
                    f.strip_prefix(all.path()).unwrap().to_string_lossy().into_owned()
                };
                files.iter().map(of).collect::<Vec<_>>()
            })
        };
        assert_eq!(
            found(&["e", "a_b", "loop", "c"]).unwrap(),
            ["kernel/e.ko", "kernel/d.ko", "kernel/c.ko", "kernel/net/a-b.ko"]
        );
        let e = found(&["e", "x-y"]).unwrap_err().to_string();
        assert!(e.contains("has no module `x_y`,"), "{e}");
        let e = found(&["z"]).unwrap_err().to_string();
        assert!(e.contains("`gone` (needed by `z`)"), "{e}");
        // A cycle made by hand ends.
        assert_eq!(found(&["x"]).unwrap().len(), 2);
    }

    #[test]
    fn nothing_outside_the_folder_gets_into_a_guest() {
        let all = folder(&[("kernel/d.ko", "")]);
        let outside = folder(&[("secret.ko", "")]);
        let link = |from: &Path, to: &str| {
            std::os::unix::fs::symlink(from, all.path().join(to)).unwrap();
        };
        link(&outside.path().join("secret.ko"), "kernel/secret.ko");
        link(outside.path(), "kernel/more");
        fs::write(all.path().join("modules.dep"), "../../etc/shadow.ko:\n").unwrap();
        assert_eq!(files(all.path()).unwrap().into_keys().collect::<Vec<_>>(), ["d"]);
        for name in ["secret", "shadow"] {
            assert!(closure(all.path(), &[name]).is_err(), "{name}");
        }
    }

    #[test]
    fn compressed_modules_are_unpacked_where_the_kernel_does_not() {
        let all = folder(&[("e.ko", "")]);
        let (e, packed) = (all.path().join("e.ko"), all.path().join("d-x.ko.gz"));
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&module(&["depends=e"])).unwrap();
        let gz = gz.finish().unwrap();
        fs::write(&packed, &gz).unwrap();
        assert_eq!(closure(all.path(), &["d_x"]).unwrap(), [e.clone(), packed.clone()]);
        let able = Config::parse("CONFIG_MODULE_DECOMPRESS=y\nCONFIG_MODULE_COMPRESS_GZIP=y\n");
        let unable = Config::parse("CONFIG_MODULE_COMPRESS_GZIP=y\n");
        assert!(loadable(&packed, &able) && !loadable(&packed, &unable));
        assert_eq!(for_guest(&packed, Some(&able)).unwrap(), ("d-x.ko.gz".to_owned(), gz));
        let unpacked = ("d-x.ko".to_owned(), module(&["depends=e"]));
        assert_eq!(for_guest(&packed, Some(&unable)).unwrap(), unpacked);
        assert_eq!(for_guest(&e, Some(&unable)).unwrap().0, "e.ko");
    }
}
