// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pieces of configuration: ours by name, others by file, merged so that the later wins.
//!
//! A fragment holds `CONFIG_X=value` and `# CONFIG_X is not set`. In ours,
//! `# if known` behind a line means: only where the kernel's series has the option.

use std::collections::BTreeMap;
use std::path::Path;

use tailbound_core::limits;
use tailbound_core::words::did_you_mean;
use tailbound_sys::given;

use crate::arch::Arch;
use crate::error::{BuildError, LabError};
use crate::kernel::config;

/// A fragment of ours.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// Its name, for `--fragment`.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    text: &'static str,
}

/// Every fragment that can be asked for by name.
pub const FRAGMENTS: &[Fragment] = &[
    Fragment { name: "rt", about: "PREEMPT_RT", text: include_str!("fragments/rt.config") },
    Fragment {
        name: "none",
        about: "no preemption of the kernel, fixed at build time",
        text: include_str!("fragments/none.config"),
    },
    Fragment {
        name: "full",
        about: "a preemptible kernel, fixed at build time",
        text: include_str!("fragments/full.config"),
    },
    Fragment {
        name: "lazy",
        about: "lazy preemption, where the series has it",
        text: include_str!("fragments/lazy.config"),
    },
    Fragment {
        name: "trace",
        about: "function, hwlat, osnoise and timerlat tracers",
        text: include_str!("fragments/trace.config"),
    },
    Fragment {
        name: "preemptirq",
        about: "events where interrupts and preemption are disabled, for bound --theory here; with full or rt",
        text: include_str!("fragments/preemptirq.config"),
    },
    Fragment {
        name: "gpio-sim",
        about: "simulated GPIO lines (5.17 and later)",
        text: include_str!("fragments/gpio-sim.config"),
    },
    Fragment {
        name: "nohz-full",
        about: "CPUs without a tick",
        text: include_str!("fragments/nohz-full.config"),
    },
    Fragment {
        name: "virtio",
        about: "virtio disks, consoles and shared folders (not reproducible: host time)",
        text: include_str!("fragments/virtio.config"),
    },
    Fragment {
        name: "kvm-guest",
        about: "what a guest under KVM wants (x86_64)",
        text: include_str!("fragments/kvm-guest.config"),
    },
    Fragment {
        name: "mitigations",
        about: "mitigations against speculative execution, as distributions have them",
        text: include_str!("fragments/mitigations.config"),
    },
    Fragment {
        name: "debug",
        about: "lock checking and stall detectors, for finding bugs",
        text: include_str!("fragments/debug.config"),
    },
];

/// One wanted option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) value: String,
    /// Only where the kernel knows it.
    pub(crate) if_known: bool,
    /// The fragment it is from.
    pub(crate) from: String,
}

/// What is wanted of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted(pub(crate) BTreeMap<String, Want>);

impl Wanted {
    /// Our small guest for `arch`.
    pub(crate) fn guest(arch: Arch) -> Self {
        let mut wanted = Self::default();
        wanted.add("guest", include_str!("fragments/guest.config"));
        let (name, text) = match arch {
            Arch::X86_64 => ("guest-x86_64", include_str!("fragments/guest-x86_64.config")),
            Arch::Aarch64 => ("guest-arm64", include_str!("fragments/guest-arm64.config")),
            Arch::Arm => ("guest-arm", include_str!("fragments/guest-arm.config")),
        };
        wanted.add(name, text);
        wanted
    }

    /// Adds a fragment of ours or a file.
    ///
    /// # Errors
    /// Usage: neither a name nor a file, or a file without one option in it.
    pub(crate) fn add_named(&mut self, name: &str) -> Result<(), LabError> {
        if let Some(fragment) = FRAGMENTS.iter().find(|f| f.name == name) {
            self.add(name, fragment.text);
            return Ok(());
        }
        let text = given::text(Path::new(name), limits::TEXT_BYTES_MAX).map_err(|source| {
            let known: Vec<&str> = FRAGMENTS.iter().map(|f| f.name).collect();
            let near = did_you_mean(name, known.iter().copied());
            BuildError::UnknownFragment { name: name.to_owned(), known, near, source }
        })?;
        if self.add(name, &text) == 0 {
            return Err(BuildError::EmptyFragment { name: name.to_owned() }.into());
        }
        Ok(())
    }

    /// Adds the options in `text`; how many there were.
    pub(crate) fn add(&mut self, from: &str, text: &str) -> usize {
        let mut count = 0;
        for line in text.lines() {
            let (line, if_known) = match line.strip_suffix("# if known") {
                Some(line) => (line, true),
                None => (line, false),
            };
            if let Some((name, value)) = config::wanted(line) {
                let (value, from) = (value.trim().to_owned(), from.to_owned());
                self.0.insert(name.to_owned(), Want { value, if_known, from });
                count += 1;
            }
        }
        count
    }

    /// As lines of a configuration file.
    pub(crate) fn text(&self) -> String {
        let line = |(name, want): (&String, &Want)| match want.value.as_str() {
            "n" => format!("# CONFIG_{name} is not set\n"),
            value => format!("CONFIG_{name}={value}\n"),
        };
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_fragment_wins() {
        let mut wanted = Wanted::guest(Arch::X86_64);
        assert_eq!(wanted.0.get("PREEMPT_VOLUNTARY").unwrap().value, "y");
        wanted.add_named("rt").unwrap();
        assert_eq!(wanted.0.get("PREEMPT_VOLUNTARY").unwrap().value, "n");
        assert!(wanted.0.get("EMBEDDED").unwrap().if_known);
        let text = wanted.text();
        assert!(text.contains("CONFIG_PREEMPT_RT=y\n") && !text.contains("if known"), "{text}");
        assert!(text.contains("# CONFIG_PREEMPT_VOLUNTARY is not set\n"), "{text}");
        let e = wanted.add_named("rtt").unwrap_err().to_string();
        assert!(e.contains("not one of rt, none,"), "{e}");
    }

    #[test]
    fn every_fragment_of_ours_holds_options() {
        for fragment in FRAGMENTS {
            assert!(Wanted::default().add(fragment.name, fragment.text) > 0, "{}", fragment.name);
        }
        for arch in Arch::ALL {
            assert!(Wanted::guest(arch).0.len() > 60);
        }
    }
}
