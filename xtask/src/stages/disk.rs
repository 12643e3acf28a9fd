// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells at the beginning that the disk will be full before the end: then every later stage fails, each with words of its own.
//!
//! Units: GB (10⁹ bytes) as told, KiB as df(1) gives them.
//! Source: df(1) `-P -k`, whose output POSIX fixes.

use std::path::Path;

use super::extent::Extent;
use crate::{exec, root};

/// What stages leave in the target directory of a fresh clone: `.ci/run` 14.7 GB (`du -sm target`, 2026-11-29), `make test` 8, as the README says; links
/// take some more meanwhile.
const EVERYTHING_GB: u64 = 16;
const WITHOUT_LONG_GB: u64 = 9;

/// The lab's kernels, and its snapshots up to their limit (`tailbound-lab`, `cache`).
const LAB_GB: u64 = 10;

/// Why there is too little room for all stages; `None` where there is enough, or where nobody can tell.
pub(super) fn too_small(project: &Path, extent: Extent) -> Option<String> {
    if !root::is_fresh(project) {
        return None;
    }
    let mut df = exec::command("df");
    // The target directory may not be there yet; xtask lies in it.
    df.args(["-P", "-k"]).arg(std::env::current_exe().ok()?);
    let said = exec::output(&mut df).ok()?;
    let free_gb = free_kib(&String::from_utf8_lossy(&said.stdout))? * 1024 / 1_000_000_000;
    let target = root::target(project);
    let target_gb = match extent {
        Extent::Everything => EVERYTHING_GB,
        Extent::WithoutLong => WITHOUT_LONG_GB,
    };
    (free_gb < target_gb + LAB_GB).then(|| {
        format!(
            "the stages need about {target_gb} GB for {}, and the lab up to {LAB_GB} for its folder (`tailbound lab cache`); {free_gb} GB are free. Free \
             some, or name other folders in CARGO_TARGET_DIR and TAILBOUND_LAB",
            target.display()
        )
    })
}

/// The column `Available` of the only file system asked about.
fn free_kib(df: &str) -> Option<u64> {
    df.lines().nth(1)?.split_whitespace().rev().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::free_kib;

    #[test]
    fn free_space_as_df_tells_it() {
        let df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
                  /dev/my disk 263174212 35048552 60817228 37% /\n";
        assert_eq!(free_kib(df), Some(60_817_228));
        assert_eq!(free_kib("df: no such file\n"), None);
    }
}
