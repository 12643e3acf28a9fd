// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that the measuring loop can reach nothing but its two system calls.
//!
//! Context: COLD. Compiles `crates/tailbound-rt/tests/link-probe` as the release is compiled
//! (fat link-time optimisation, overflow checks) and reads the names left undefined in its
//! object. With an overflow check, a bounds check or a formatted panic anywhere in reach, the
//! panic handler survives and its marker is among them. Two variants with such a flaw on
//! purpose show each time that the probe can see one.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::{elf, exec, root};

/// What the loop may call: its two system calls, and what compilers emit for copies.
const ALLOWED: &[(&str, &str)] = &[
    ("clock_nanosleep", "the sleep"),
    ("clock_gettime", "the clock, in the vDSO"),
    ("memcpy", "compilers emit it for copies of structures"),
    ("memset", "compilers emit it for zeroed structures"),
];

/// Defined nowhere; called by the probe's panic handler alone.
const PANIC_MARKER: &str = "tailbound_link_probe_panicked";

/// Flaws on purpose: features of the probe crate.
const FLAWS: &[&str] = &["flaw-bounds-check", "flaw-overflow-check"];

/// `cargo xtask link-probe`.
pub(crate) fn command() -> anyhow::Result<()> {
    for line in check()? {
        println!("{line}");
    }
    Ok(())
}

/// Builds and checks the probe and its flawed variants; says what was found.
pub(crate) fn check() -> anyhow::Result<Vec<String>> {
    let project = root::project()?;
    let clean = undefined(&project, None)?;
    let foreign: Vec<&str> = clean.iter().map(String::as_str).filter(|n| !allowed(n)).collect();
    if foreign.contains(&PANIC_MARKER) {
        bail!(
            "the measuring loop can panic: its panic handler survived link-time optimisation \
             (with {foreign:?}). Find the path with `objdump -dr` on the object, and use \
             wrapping, saturating or checked arithmetic and `get`."
        );
    }
    if !foreign.is_empty() {
        bail!("the measuring loop reaches {foreign:?}, which is not in the list of link_probe.rs");
    }
    let mut said =
        vec![format!("link probe: the loop reaches {} and nothing else", clean.join(", "))];
    for flaw in FLAWS {
        if !undefined(&project, Some(flaw))?.iter().any(|n| n == PANIC_MARKER) {
            bail!("the probe did not see `{flaw}`: it cannot be trusted");
        }
        said.push(format!("link probe: {flaw}, put in on purpose, was seen"));
    }
    Ok(said)
}

fn allowed(name: &str) -> bool {
    ALLOWED.iter().any(|(allowed, _)| *allowed == name)
}

/// The names the probe's own object leaves undefined.
fn undefined(project: &Path, flaw: Option<&str>) -> anyhow::Result<Vec<String>> {
    let crate_dir = project.join("crates/tailbound-rt/tests/link-probe");
    let target = root::target(project).join("link-probe");
    let mut build = exec::cargo(&crate_dir);
    build.args(["build", "--release", "--quiet", "--offline", "--target-dir"]).arg(&target);
    if let Some(flaw) = flaw {
        build.args(["--features", flaw]);
    }
    // Flags meant for the tool (coverage, sanitisers, another linker) would change the object.
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    exec::succeed(&mut build)?;
    let path = target.join("release/libtailbound_link_probe.a");
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let mut names = Vec::new();
    let mut objects = 0;
    for (member, object) in elf::members(&bytes)? {
        if !member.starts_with("tailbound_link_probe") {
            continue;
        }
        objects += 1;
        let symbols = elf::symbols(object).with_context(|| member.clone())?;
        if !symbols.iter().any(|s| s.defined && s.name == "tailbound_link_probe") {
            bail!("{member} does not hold the probe: was it compiled in several units?");
        }
        names.extend(symbols.into_iter().filter(|s| !s.defined).map(|s| s.name));
    }
    if objects != 1 {
        bail!("{} holds {objects} objects of the probe, expected one", path.display());
    }
    names.sort();
    Ok(names)
}
