// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which module files a guest needs, in the order they are to be loaded.
//!
//! Context: COLD. Files stay as they are, compressed ones too: the kernel unpacks them
//! itself where it was built with CONFIG_MODULE_DECOMPRESS.
//! Source: modules.dep(5), modprobe(8); `-` and `_` in a module's name are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tailbound_core::limits;
use tailbound_sys::given;

use super::config::Config;
use crate::error::LabError;

/// Files for the modules `names` and everything they need, each after what it needs;
/// those built into the kernel need none. `modules` is a `lib/modules/<release>`.
///
/// # Errors
/// modules.dep cannot be read; a name is neither a module nor built in (all such names are
/// said at once); a file that modules.dep lists is missing.
pub fn closure(modules: &Path, names: &[&str]) -> Result<Vec<PathBuf>, LabError> {
    let path = modules.join("modules.dep");
    let text = given::text(&path, limits::TEXT_BYTES_MAX)
        .map_err(|e| LabError::cannot(format!("{}: {e}; depmod(8) makes it", path.display())))?;
    let built_in =
        given::text(&modules.join("modules.builtin"), limits::TEXT_BYTES_MAX).unwrap_or_default();
    let files = order(&text, &built_in, names).map_err(|missing| {
        LabError::cannot(format!(
            "{} has no module {}, nor is it built in",
            modules.display(),
            missing.join(", ")
        ))
    })?;
    files
        .into_iter()
        .map(|file| {
            let path = modules.join(file);
            match path.try_exists() {
                Ok(true) => Ok(path),
                _ => Err(LabError::cannot(format!(
                    "{} is in modules.dep, but missing",
                    path.display()
                ))),
            }
        })
        .collect()
}

/// Can the kernel with this configuration load these files as they are?
///
/// # Errors
/// One is compressed and the kernel cannot unpack it: with the remedy.
pub fn loadable(files: &[PathBuf], config: &Config) -> Result<(), LabError> {
    let packed = files.iter().find(|f| f.extension().is_some_and(|e| e != "ko"));
    let Some(file) = packed else { return Ok(()) };
    let means = match file.extension().and_then(|e| e.to_str()) {
        Some("xz") => "CONFIG_MODULE_COMPRESS_XZ",
        Some("gz") => "CONFIG_MODULE_COMPRESS_GZIP",
        _ => "CONFIG_MODULE_COMPRESS_ZSTD",
    };
    if config.is_builtin("CONFIG_MODULE_DECOMPRESS") && config.is_builtin(means) {
        return Ok(());
    }
    Err(LabError::cannot(format!(
        "{}: this kernel cannot unpack compressed modules (it lacks CONFIG_MODULE_DECOMPRESS or {means}): \
         unpack them in a copy of the folder and run depmod, or build the option in",
        file.display()
    )))
}

fn order<'a>(dep: &'a str, built_in: &str, names: &[&str]) -> Result<Vec<&'a str>, Vec<String>> {
    let mut needs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut by_name: BTreeMap<String, &str> = BTreeMap::new();
    for line in dep.lines() {
        if let Some((file, rest)) = line.split_once(':') {
            needs.insert(file, rest.split_whitespace().collect());
            by_name.insert(module_name(file), file);
        }
    }
    let built_in: BTreeSet<String> = built_in.lines().map(module_name).collect();
    let mut files = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        let name = name.replace('-', "_");
        match by_name.get(&name) {
            Some(file) => add(file, &needs, &mut files, 0),
            None if built_in.contains(&name) => {}
            None => missing.push(format!("`{name}`")),
        }
    }
    if missing.is_empty() { Ok(files) } else { Err(missing) }
}

fn add<'a>(
    file: &'a str,
    needs: &BTreeMap<&'a str, Vec<&'a str>>,
    files: &mut Vec<&'a str>,
    depth: usize,
) {
    // modules.dep has no cycles; the bound is against a file made by hand.
    if depth > 64 || files.contains(&file) {
        return;
    }
    for needed in needs.get(file).into_iter().flatten() {
        add(needed, needs, files, depth + 1);
    }
    if !files.contains(&file) {
        files.push(file);
    }
}

fn module_name(file: &str) -> String {
    let base = file.rsplit('/').next().unwrap_or(file);
    base.split_once(".ko").map_or(base, |(name, _)| name).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "kernel/net/a-b.ko.xz: kernel/c.ko.xz kernel/d.ko.xz\n\
                       kernel/c.ko.xz: kernel/d.ko.xz\nkernel/d.ko.xz:\nkernel/e.ko:\n";

    #[test]
    fn needed_modules_come_first() {
        let files = order(DEP, "kernel/drivers/block/loop.ko\n", &["e", "a_b", "loop", "c"]);
        assert_eq!(
            files.unwrap(),
            ["kernel/e.ko", "kernel/d.ko.xz", "kernel/c.ko.xz", "kernel/net/a-b.ko.xz"]
        );
        assert_eq!(
            order(DEP, "", &["e", "loop", "x-y"]),
            Err(vec!["`loop`".into(), "`x_y`".into()])
        );
        // A cycle made by hand ends.
        assert!(order("a.ko: b.ko\nb.ko: a.ko\n", "", &["a"]).is_ok());
    }

    #[test]
    fn compressed_modules_need_a_kernel_that_unpacks_them() {
        let files = [PathBuf::from("e.ko"), PathBuf::from("d.ko.xz")];
        let able = Config::parse("CONFIG_MODULE_DECOMPRESS=y\nCONFIG_MODULE_COMPRESS_XZ=y\n");
        assert!(loadable(&files, &able).is_ok());
        let unable = loadable(&files, &Config::default()).unwrap_err().to_string();
        assert!(
            unable.contains("d.ko.xz") && unable.contains("CONFIG_MODULE_DECOMPRESS"),
            "{unable}"
        );
        assert!(loadable(&files[..1], &Config::default()).is_ok());
    }
}
