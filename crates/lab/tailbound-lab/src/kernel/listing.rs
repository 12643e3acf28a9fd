// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels that there are, and one that was fetched, in words and for scripts.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Available, Kernel, Manifest, PackageLists, available, in_store};
use crate::arch::Arch;
use crate::build::{self, BuildManifest};
use crate::error::LabError;
use crate::store::Store;

/// Where kernels are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources<'a> {
    /// In the store alone.
    Store,
    /// At Debian too.
    Debian {
        /// The suite; none: those of this machine's sources.
        suite: Option<&'a str>,
        /// Ask again what the names mean today.
        lists: PackageLists,
    },
}

/// Kernels of one architecture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelListing {
    /// Those that can be had by name.
    pub available: Vec<Available>,
    /// Those that were fetched.
    pub stored: Vec<Manifest>,
    /// Those that were built.
    pub built: Vec<BuildManifest>,
}

impl KernelListing {
    /// Looks for them.
    ///
    /// # Errors
    /// The store cannot be read; there is no apt, or there are no lists and none can be fetched.
    pub fn of(
        arch: Arch,
        sources: Sources<'_>,
        store: &Store,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, LabError> {
        let (mut stored, mut built) = (in_store(store)?, build::builds(store)?);
        stored.retain(|m| m.architecture == arch.debian());
        built.retain(|b| b.arch == arch.name());
        let available = match sources {
            Sources::Store => Vec::new(),
            Sources::Debian { suite, lists } => available(arch, suite, store, lists, note)?,
        };
        Ok(Self { available, stored, built })
    }

    /// For people, a line each; what was fetched has its own line where nothing else was looked for.
    #[must_use]
    pub fn text(&self, sources: Sources<'_>) -> String {
        let mut text = String::new();
        for one in &self.available {
            let fetched =
                one.fetched.as_ref().map(|f| format!("  fetched: {f}")).unwrap_or_default();
            text.push_str(&format!(
                "{:<20} {:<40} {}{fetched}\n",
                one.name, one.package, one.version
            ));
        }
        if sources == Sources::Store {
            for one in &self.stored {
                text.push_str(&format!("debian:{}={}\n", one.package, one.version));
            }
        }
        for one in &self.built {
            let name = format!("build:{}", one.name);
            text.push_str(&format!("{name:<20} {:<40} {}\n", one.source.name, one.release));
        }
        if text.is_empty() {
            text.push_str("none in the store yet: tailbound lab kernel fetch, or build\n");
        }
        text
    }
}

impl Kernel {
    /// What was fetched, for people.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{} is {}, image {}, SHA-256 {}",
            self.record.name,
            self.record.package.as_deref().unwrap_or("a file"),
            self.image.display(),
            self.record.sha256
        )
    }

    /// The same for scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "kernel": self.record, "arch": self.arch.name(), "image": self.image,
            "modules": self.modules, "config": self.config,
        })
    }
}

impl BuildManifest {
    /// What was built, for people.
    #[must_use]
    pub fn text(&self) -> String {
        let cpu =
            self.cpu_seconds.map_or_else(String::new, |s| format!(" ({s:.0} s of processor time)"));
        format!(
            "build:{} is {} for {} from {}: {} objects in {:.0} s{cpu}, image SHA-256 {}\nTry: tailbound lab run --kernel build:{}",
            self.name,
            self.release,
            self.arch,
            self.source.name,
            self.objects,
            self.seconds,
            self.image_sha256,
            self.name
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_told_how_to_get_something() {
        let none = KernelListing::default();
        assert!(none.text(Sources::Store).contains("lab kernel fetch"));
        let one = Available {
            name: "debian:6.12-rt".to_owned(),
            package: "linux-image-rt-amd64".to_owned(),
            version: "6.12.48-1".to_owned(),
            fetched: Some("6.12.48-1".to_owned()),
        };
        let listing = KernelListing { available: vec![one], ..KernelListing::default() };
        let text = listing.text(Sources::Debian { suite: None, lists: PackageLists::AtHand });
        assert!(text.starts_with("debian:6.12-rt "), "{text}");
        assert!(text.ends_with(" 6.12.48-1  fetched: 6.12.48-1\n"), "{text}");
    }
}
