// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's configuration: what was switched on when it was built.
//!
//! Pure but for [`Config::read`].
//! Source: Documentation/kbuild/kconfig.rst; a file of `CONFIG_X=value` lines, and
//! `# CONFIG_X is not set` for what is off.

use std::collections::BTreeMap;
use std::path::Path;

use tailbound_core::limits;
use tailbound_sys::given;

use crate::error::{KernelError, LabError};

/// The options of a kernel; those that are off, and those it does not know, are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config(BTreeMap<String, String>);

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// It cannot be read, or holds not one option.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text =
            given::text(path, limits::TEXT_BYTES_MAX).map_err(|e| LabError::file(path, e))?;
        let config = Self::parse(&text);
        if config.0.is_empty() {
            return Err(KernelError::NoConfig { path: path.to_owned() }.into());
        }
        Ok(config)
    }

    /// The options in `text`; later lines win, as in Kconfig.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut options = BTreeMap::new();
        for line in text.lines() {
            match wanted(line) {
                Some((name, "n")) => {
                    options.remove(name);
                }
                Some((name, value)) => {
                    options.insert(name.to_owned(), value.to_owned());
                }
                None => {}
            }
        }
        Self(options)
    }

    /// The value of `CONFIG_X` (the prefix may be left out): `y`, `m`, a number, a text with
    /// its quotes; `None` when it is off or unknown to this kernel.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.0.get(name.strip_prefix("CONFIG_").unwrap_or(name)).map(String::as_str)
    }

    /// Is it `y`?
    #[must_use]
    pub fn is_builtin(&self, name: &str) -> bool {
        self.option(name) == Some("y")
    }

    /// Is it `y` or `m`?
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        matches!(self.option(name), Some("y" | "m"))
    }

    /// All options that are on, without prefix, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

/// One line of a configuration or fragment: name without prefix and value; `n` for
/// `# CONFIG_X is not set`.
pub(crate) fn wanted(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("# CONFIG_") {
        return rest.strip_suffix(" is not set").map(|name| (name, "n"));
    }
    line.strip_prefix("CONFIG_")?.split_once('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_kconfig_writes_them() {
        let config = Config::parse(
            "#\n# Automatically generated\n#\nCONFIG_CC_VERSION_TEXT=\"gcc = 12\"\nCONFIG_HZ=250\n\
             CONFIG_PREEMPT_RT=y\nCONFIG_VETH=m\n# CONFIG_DEBUG_INFO is not set\nCONFIG_SMP=y\nCONFIG_SMP=n\n",
        );
        assert_eq!(config.option("CONFIG_HZ"), Some("250"));
        assert_eq!(config.option("CC_VERSION_TEXT"), Some("\"gcc = 12\""));
        assert!(
            config.is_builtin("PREEMPT_RT") && config.has("VETH") && !config.is_builtin("VETH")
        );
        assert!(config.option("DEBUG_INFO").is_none() && config.option("SMP").is_none());
    }
}
