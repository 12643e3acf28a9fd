// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a configuration from what is wanted, and checks that the kernel granted it.
//!
//! Without a configuration of the user's everything not named is off
//! (`allnoconfig` with the wanted options as its answers): small, quick to build, and the same
//! for everyone. With one, the wanted options are put on top (`olddefconfig`).
//! Source: Documentation/kbuild/kconfig.rst (KCONFIG_ALLCONFIG).

use std::fs;
use std::path::Path;

use tailbound_sys::new_file::{self, Existing};

use super::fragment::Wanted;
use super::kconfig::{Tree, granted};
use super::make::Make;
use crate::error::{BuildError, LabError};
use crate::kernel::Config;
use crate::kernel::lists::Note;

/// Writes `.config` into the output folder and checks it.
///
/// # Errors
/// Usage: options that were not granted, each with the reason; or a file that is no
/// configuration.
pub(crate) fn configure(
    make: &Make,
    wanted: &Wanted,
    base: Option<&Path>,
    note: &mut Note<'_>,
) -> Result<Config, LabError> {
    fs::create_dir_all(&make.out).map_err(|e| LabError::file(&make.out, e))?;
    let dot = make.out.join(".config");
    let before = fs::read(&dot).ok();
    let base = base.map(Config::read).transpose()?;
    match &base {
        None => {
            let answers = make.out.join("wanted.config");
            new_file::write(&answers, Existing::Replace, wanted.text().as_bytes())
                .map_err(|e| LabError::file(&answers, e))?;
            make.ask(&["allnoconfig"], &[format!("KCONFIG_ALLCONFIG={}", answers.display())])?;
        }
        Some(base) => {
            let mut text: String = base.iter().map(|(n, v)| format!("CONFIG_{n}={v}\n")).collect();
            text.push_str(&wanted.text());
            new_file::write(&dot, Existing::Replace, text.as_bytes())
                .map_err(|e| LabError::file(&dot, e))?;
        }
    }
    make.ask(&["olddefconfig"], &[])?;
    // An untouched file keeps its time, and the next build what it has.
    if let Some(before) = before
        && fs::read(&dot).is_ok_and(|now| now == before)
    {
        note("the configuration is unchanged");
    }
    let config = Config::read(&dot)?;
    verify(make, wanted, &config)?;
    if let Some(base) = base {
        say_lost(&base, wanted, &config, note);
    }
    Ok(config)
}

fn verify(make: &Make, wanted: &Wanted, config: &Config) -> Result<(), LabError> {
    let refused: Vec<_> =
        wanted.0.iter().filter(|(name, want)| !granted(config, name, &want.value)).collect();
    if refused.is_empty() {
        return Ok(());
    }
    let tree = Tree::read(&make.source, make.arch.kbuild());
    let mut lines = Vec::new();
    for (name, want) in refused {
        if want.if_known && !tree.knows(name) {
            continue;
        }
        let is = config.option(name).unwrap_or("off");
        lines.push(format!(
            "CONFIG_{name}={} (fragment {}) became {is}: {}",
            want.value,
            want.from,
            tree.why(name, &want.value, config)
        ));
    }
    if lines.is_empty() {
        return Ok(());
    }
    for gap in tree.gaps.iter().take(3) {
        lines.push(format!("(not understood while looking for reasons: {gap})"));
    }
    Err(BuildError::NotGranted { options: lines }.into())
}

/// Options of the user's configuration that this source does not have, or not with that value.
fn say_lost(base: &Config, wanted: &Wanted, config: &Config, note: &mut Note<'_>) {
    let lost: Vec<String> = base
        .iter()
        .filter(|(n, v)| !wanted.0.contains_key(*n) && config.option(n) != Some(*v))
        // What describes the compiler is the compiler's.
        .filter(|(n, _)| {
            !["CC_", "GCC_", "CLANG_", "AS_", "LD_", "RUSTC", "PAHOLE_"]
                .iter()
                .any(|p| n.starts_with(p))
        })
        .map(|(n, v)| format!("CONFIG_{n}={v}"))
        .collect();
    if !lost.is_empty() {
        let shown: Vec<&str> = lost.iter().take(8).map(String::as_str).collect();
        let more = lost.len() - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        note(&format!("not kept of the given configuration: {}{more}", shown.join(", ")));
    }
}
