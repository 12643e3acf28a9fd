// SPDX-License-Identifier: MIT OR Apache-2.0
//! The QEMU programs that there are, in words and for scripts.

use serde_json::{Value, json};

use super::{Emulator, Stored, stored};
use crate::arch::Arch;
use crate::error::LabError;
use crate::store::Store;

/// Those of this system, and those that were fetched.
#[derive(Debug)]
pub struct EmulatorListing {
    system: Vec<(Arch, Emulator)>,
    fetched: Vec<Stored>,
}

impl EmulatorListing {
    /// Looks for them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of(store: &Store) -> Result<Self, LabError> {
        let fetched = stored(store)?;
        let found = Arch::ALL.into_iter().filter_map(|a| Some((a, Emulator::find(a, None).ok()?)));
        Ok(Self { system: found.collect(), fetched })
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        let system = self.system.iter().map(|(arch, e)| {
            json!({"arch": arch.name(), "version": e.number(), "says": e.version, "program": e.program, "short_slices": e.shares_time()})
        });
        let fetched = self.fetched.iter().map(Stored::json);
        json!({"system": system.collect::<Vec<_>>(), "fetched": fetched.collect::<Vec<_>>()})
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (arch, e) in &self.system {
            let version = e.number().unwrap_or("unknown");
            let (arch, program) = (arch.name(), e.program.display());
            text.push_str(&format!("{version:<10} {arch:<8} system   {program}\n"));
        }
        for one in &self.fetched {
            text.push_str(&format!(
                "{:<10} {:<8} fetched  {} of {}\n",
                one.version, one.arch, one.package, one.suite
            ));
        }
        if text.is_empty() {
            text.push_str("none on the path, and none was fetched: tailbound lab qemu fetch\n");
        }
        text
    }
}

impl Stored {
    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "version": self.version, "arch": self.arch, "says": self.says, "suite": self.suite,
            "package": self.package, "packages": self.packages, "folder": self.folder,
        })
    }

    /// What was fetched, and how it is used, for people.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "QEMU {} for {} ({} of {}, with {} packages that it needs) lies in {}: `lab run --qemu {}`, and several CPUs take it by themselves",
            self.version,
            self.arch,
            self.package,
            self.suite,
            self.packages.len().saturating_sub(1),
            self.folder.display(),
            self.version
        )
    }
}
