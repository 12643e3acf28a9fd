// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that the measuring loop can reach nothing but its two system calls, and the hot calls
//! of the C interface nothing but the clock.
//!
//! Compiles `crates/base/tailbound-rt/tests/link-probe` and its sister of the C
//! interface as the release is compiled (fat link-time optimisation, overflow checks) and reads
//! the names left undefined in the object. With an overflow check, a bounds check or a formatted panic anywhere in reach, the
//! panic handler survives and its marker is among them. Two variants with such a flaw on
//! purpose show each time that the probe can see one.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::{elf, exec, root};

/// One probe: where it is, what it must hold, and what it may call.
struct Probe {
    /// For people.
    what: &'static str,
    /// Its folder.
    dir: &'static str,
    /// Its package, with underscores.
    name: &'static str,
    /// Functions that its object must define.
    entries: &'static [&'static str],
    /// System calls it may make, and why.
    allowed: &'static [(&'static str, &'static str)],
}

const PROBES: &[Probe] = &[
    Probe {
        what: "the measuring loop",
        dir: "crates/base/tailbound-rt/tests/link-probe",
        name: "tailbound_link_probe",
        entries: &["tailbound_link_probe"],
        allowed: &[("clock_nanosleep", "the sleep"), ("clock_gettime", "the clock, in the vDSO")],
    },
    Probe {
        what: "the C interface's hot calls",
        dir: "crates/measure/tailbound-capi/tests/link-probe",
        name: "tailbound_capi_link_probe",
        entries: &[
            "tb_cycle_start",
            "tb_cycle_start_at",
            "tb_cycle_end",
            "tb_cycle_end_at",
            "tb_next_due",
            "tb_now",
            "tb_finish",
        ],
        allowed: &[("clock_gettime", "the clock, in the vDSO")],
    },
];

/// What any of them may call: compilers emit these for copies and zeroed structures.
const COMPILER: &[&str] = &["memcpy", "memset"];

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

/// Builds and checks the probes and their flawed variants; says what was found.
pub(crate) fn check() -> anyhow::Result<Vec<String>> {
    let project = root::project()?;
    let mut said = Vec::new();
    for probe in PROBES {
        probe.check(&project, &mut said)?;
    }
    Ok(said)
}

impl Probe {
    fn check(&self, project: &Path, said: &mut Vec<String>) -> anyhow::Result<()> {
        let what = self.what;
        let clean = self.undefined(project, None)?;
        let foreign: Vec<&str> =
            clean.iter().map(String::as_str).filter(|n| !self.allows(n)).collect();
        if foreign.contains(&PANIC_MARKER) {
            bail!(
                "{what}: it can panic: its panic handler survived link-time optimisation (with \
                 {foreign:?}). Find the path with `objdump -dr` on the object, and use wrapping, \
                 saturating or checked arithmetic and `get`."
            );
        }
        if !foreign.is_empty() {
            bail!("{what}: it reaches {foreign:?}, which is not in the list of link_probe.rs");
        }
        said.push(format!("link probe: {what}: reaches {} and nothing else", clean.join(", ")));
        for flaw in FLAWS {
            if !self.undefined(project, Some(flaw))?.iter().any(|n| n == PANIC_MARKER) {
                bail!("{what}: the probe did not see `{flaw}`: it cannot be trusted");
            }
            said.push(format!("link probe: {what}: {flaw}, put in on purpose, was seen"));
        }
        Ok(())
    }

    fn allows(&self, name: &str) -> bool {
        COMPILER.contains(&name) || self.allowed.iter().any(|(allowed, _)| *allowed == name)
    }

    /// The names the probe's own object leaves undefined.
    fn undefined(&self, project: &Path, flaw: Option<&str>) -> anyhow::Result<Vec<String>> {
        let crate_dir = project.join(self.dir);
        let target = root::target(project).join("link-probe");
        let mut build = exec::cargo(&crate_dir);
        build.args(["build", "--release", "--quiet", "--offline", "--target-dir"]).arg(&target);
        if let Some(flaw) = flaw {
            build.args(["--features", flaw]);
        }
        // Flags meant for the tool (coverage, sanitisers, another linker) would change the object.
        build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        exec::succeed(&mut build)?;
        let path = target.join(format!("release/lib{}.a", self.name));
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let mut names = Vec::new();
        let mut objects = 0;
        for (member, object) in elf::members(&bytes)? {
            if !member.starts_with(self.name) {
                continue;
            }
            objects += 1;
            let symbols = elf::symbols(object).with_context(|| member.clone())?;
            for entry in self.entries {
                if !symbols.iter().any(|s| s.defined && s.name == *entry) {
                    bail!("{member} does not hold {entry}: was it compiled in several units?");
                }
            }
            names.extend(symbols.into_iter().filter(|s| !s.defined).map(|s| s.name));
        }
        if objects != 1 {
            bail!("{} holds {objects} objects of the probe, expected one", path.display());
        }
        names.sort();
        Ok(names)
    }
}
