// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration the running kernel was built with, where it can be read.
//!
//! Not here: what the options mean for latency (`disturbances`).
//! Source: Documentation/kbuild/kconfig-language.rst; gzip: RFC 1952.

use std::collections::BTreeMap;

use crate::missing::{Found, Missing};

/// Longest configuration, in bytes.
const TEXT_MAX: usize = 4 << 20;

/// A kernel's configuration: option without `CONFIG_` to `y`, `m` or its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelConfig {
    options: BTreeMap<String, String>,
    /// Which file it came from.
    pub(crate) source: String,
}

impl KernelConfig {
    /// Reads /proc/config.gz, else the file of this release below /boot or /lib/modules, by `bytes_of`.
    pub(crate) fn read(bytes_of: impl Fn(&str) -> Found<Vec<u8>>, release: &str) -> Found<Self> {
        let mut refused = None;
        match bytes_of("/proc/config.gz") {
            Ok(packed) => return Ok(Self::parse(&gunzip(&packed)?, "/proc/config.gz")),
            Err(Missing::Unknown(why)) => refused = Some(why),
            Err(Missing::NotApplicable(_)) => {}
        }
        // The release becomes part of a path: one that could leave the directory is refused.
        if !release.is_empty() && !release.contains('/') && !release.starts_with('.') {
            let places =
                [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
            for path in places {
                match bytes_of(&path) {
                    Ok(text) => return Ok(Self::parse(&String::from_utf8_lossy(&text), &path)),
                    Err(Missing::Unknown(why)) => refused = Some(why),
                    Err(Missing::NotApplicable(_)) => {}
                }
            }
        }
        Err(Missing::Unknown(refused.unwrap_or_else(|| {
            "neither /proc/config.gz nor a config file of this release below /boot or /lib/modules"
                .to_owned()
        })))
    }

    fn parse(text: &str, source: &str) -> Self {
        let options = text
            .lines()
            .filter_map(|l| l.trim().strip_prefix("CONFIG_")?.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.trim_matches('"').to_owned()))
            .collect();
        Self { options, source: source.to_owned() }
    }

    /// Is the option built in?
    pub(crate) fn yes(&self, option: &str) -> bool {
        self.value(option) == Some("y")
    }

    /// The option's value, if it is set.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    /// A number that differs between configurations that differ, for comparing runs: 64-bit
    /// FNV-1a over the set options in the order of their names. No protection against malice.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut eat = |bytes: &[u8]| {
            for b in bytes {
                hash = (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for (option, value) in &self.options {
            eat(option.as_bytes());
            eat(b"=");
            eat(value.as_bytes());
            eat(b"\n");
        }
        format!("fnv1a64:{hash:016x}")
    }
}

/// Unpacks one gzip member; its checksum is not checked, the options speak for themselves.
fn gunzip(packed: &[u8]) -> Found<String> {
    let bad = |what: &str| Missing::Unknown(format!("/proc/config.gz: {what}"));
    let [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, rest @ ..] = packed else {
        return Err(bad("not a gzip file"));
    };
    let mut rest = rest;
    if flags & 4 != 0 {
        let [low, high, after @ ..] = rest else { return Err(bad("cut off")) };
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        rest = after.get(length..).ok_or_else(|| bad("cut off"))?;
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|b| *b == 0).ok_or_else(|| bad("cut off"))?;
            rest = rest.get(end.saturating_add(1)..).ok_or_else(|| bad("cut off"))?;
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..).ok_or_else(|| bad("cut off"))?;
    }
    let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(rest, TEXT_MAX)
        .map_err(|e| bad(&e.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# comment\nCONFIG_HZ=250\nCONFIG_PREEMPT_RT=y\n# CONFIG_KASAN is not set\nCONFIG_LOCALVERSION=\"-x\"\n";

    #[test]
    fn a_packed_file_is_the_same_as_a_plain_one() {
        let mut gz = vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3];
        gz.extend(b"config\0");
        gz.extend(miniz_oxide::deflate::compress_to_vec(TEXT.as_bytes(), 6));
        gz.extend([0; 8]);
        let config = gunzip(&gz).map(|t| KernelConfig::parse(&t, "x"));
        assert_eq!(config, Ok(KernelConfig::parse(TEXT, "x")));
        for cut in 0..gz.len() - 9 {
            assert!(gunzip(gz.get(..cut).unwrap_or_default()).is_err(), "{cut}");
        }
    }

    #[test]
    fn options_are_found_and_the_fingerprint_tells_configurations_apart() {
        let config = KernelConfig::parse(TEXT, "x");
        assert!(config.yes("PREEMPT_RT") && !config.yes("KASAN") && !config.yes("HZ"));
        assert_eq!((config.value("HZ"), config.value("LOCALVERSION")), (Some("250"), Some("-x")));
        let other = KernelConfig::parse(&TEXT.replace("250", "1000"), "x");
        assert_ne!(config.fingerprint(), other.fingerprint());
        let comment = KernelConfig::parse(&TEXT.replace("comment", "Compiler: gcc"), "y");
        assert_eq!(config.fingerprint(), comment.fingerprint());
    }
}
