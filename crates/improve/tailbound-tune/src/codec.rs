// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a file of the kernel is read and written, where the two differ.
//!
//! A state is text in one form, the canonical one, so that two states can be
//! compared. Writing back what was read is wrong for many files: `always [madvise] never` is
//! refused by transparent_hugepage/enabled, and makes queue/scheduler choose `none`.
//! Source: Documentation/admin-guide/mm/transhuge.rst, cpuset(7) "Mask format",
//! Documentation/admin-guide/cgroup-v2.rst.

use serde::{Deserialize, Serialize};
use tailbound_core::CpuSet;
use tailbound_host::resctrl;
use tailbound_host::root::chosen;

/// The form of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// Read as it is written.
    Text,
    /// A whole number.
    Number,
    /// Several words with the chosen one in brackets; the word alone is written.
    Choice,
    /// CPUs as groups of 32 bits in hexadecimal; the canonical form is a list.
    Mask,
    /// CPUs as a list.
    List,
    /// `Y` and `N` of a module's parameter.
    Flag,
    /// One controller of cgroup.subtree_control: `on` or `off`.
    Controller(String),
    /// One resource of a schemata file of resctrl, behind its name: `0=ff0;1=fff`.
    Schemata(String),
}

/// Why a text is not in the form of its file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct CodecError {
    text: String,
    wanted: &'static str,
}

impl Codec {
    /// The canonical form of what was read.
    ///
    /// # Errors
    /// The text is not of this form.
    pub fn decode(&self, text: &str) -> Result<String, CodecError> {
        let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
        let bad =
            |wanted| CodecError { text: tailbound_core::printable::excerpt(text, 80), wanted };
        match self {
            Self::Text => Ok(text.to_owned()),
            Self::Number => {
                text.parse::<i64>().map(|n| n.to_string()).map_err(|_| bad("a whole number"))
            }
            Self::Choice => chosen(text)
                .or_else(|| Some(text).filter(|t| !t.is_empty() && !t.contains(' ')))
                .map(str::to_owned)
                .ok_or_else(|| bad("a choice with one word in brackets")),
            Self::Mask => {
                CpuSet::of_mask(text).map(|c| c.to_string()).ok_or_else(|| bad("a mask of CPUs"))
            }
            Self::List => match text {
                "(null)" => Ok(String::new()),
                list => {
                    list.parse::<CpuSet>().map(|c| c.to_string()).map_err(|_| bad("a list of CPUs"))
                }
            },
            Self::Flag => match text {
                "Y" | "y" | "1" => Ok("Y".to_owned()),
                "N" | "n" | "0" => Ok("N".to_owned()),
                _ => Err(bad("Y or N")),
            },
            Self::Controller(name) => {
                let on = text.split_ascii_whitespace().any(|word| word == name);
                Ok(if on { "on" } else { "off" }.to_owned())
            }
            Self::Schemata(name) => resctrl::shares(text, name)
                .map(|shares| resctrl::shares_text(name, &shares))
                .ok_or_else(|| bad("a schemata file with that resource")),
        }
    }

    /// What is written for a canonical state, without the end of the line.
    ///
    /// # Errors
    /// The state is not of this form.
    pub fn encode(&self, state: &str) -> Result<String, CodecError> {
        match self {
            Self::Mask => {
                let cpus: CpuSet = state
                    .parse()
                    .map_err(|_| CodecError { text: state.to_owned(), wanted: "a list of CPUs" })?;
                Ok(groups(&cpus))
            }
            Self::Controller(name) => {
                Ok(format!("{}{name}", if state == "on" { '+' } else { '-' }))
            }
            Self::Schemata(name) => resctrl::shares_of(state, name)
                .map(|shares| format!("{name}:{}", resctrl::shares_text(name, &shares)))
                .ok_or_else(|| CodecError { text: state.to_owned(), wanted: "a line of schemata" }),
            Self::Choice | Self::Text => Ok(state.to_owned()),
            Self::Number | Self::List | Self::Flag => self.decode(state),
        }
    }
}

/// `ff,00000001`: groups of 32 bits, the highest first.
fn groups(cpus: &CpuSet) -> String {
    let last = cpus.iter().last().unwrap_or(0) / 32;
    let word = |group: u32| {
        let bits = cpus.iter().filter(|c| c / 32 == group).fold(0u32, |w, c| w | 1 << (c % 32));
        if group == last { format!("{bits:x}") } else { format!("{bits:08x}") }
    };
    (0..=last).rev().map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_and_what_is_written() {
        let both = |codec: Codec, read: &str| {
            let state = codec.decode(read).expect(read);
            (codec.encode(&state).expect(read), state)
        };
        let of = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(both(Codec::Choice, "always [madvise] never\n"), of("madvise", "madvise"));
        assert_eq!(both(Codec::Choice, "none (full) lazy"), of("full", "full"));
        assert_eq!(both(Codec::Choice, "none"), of("none", "none"));
        assert_eq!(both(Codec::Mask, "3\n"), of("3", "0-1"));
        assert_eq!(both(Codec::Mask, "00000001,00000006"), of("1,00000006", "1-2,32"));
        assert_eq!(both(Codec::Mask, "00000000"), of("0", ""));
        assert_eq!(both(Codec::List, "(null)\n"), of("", ""));
        assert_eq!(both(Codec::List, "2,0-1"), of("0-2", "0-2"));
        assert_eq!(both(Codec::Number, " 0950000\n"), of("950000", "950000"));
        assert_eq!(both(Codec::Flag, "N"), of("N", "N"));
        let cpuset = Codec::Controller("cpuset".to_owned());
        assert_eq!(both(cpuset.clone(), "cpu memory"), of("-cpuset", "off"));
        assert_eq!(both(cpuset, "cpuset cpu"), of("+cpuset", "on"));
        let ways = Codec::Schemata("L3".to_owned());
        assert_eq!(both(ways, "  MB:0=100\n  L3:0=0f0;1=fff"), of("L3:0=f0;1=fff", "0=f0;1=fff"));
    }

    #[test]
    fn nonsense_is_refused() {
        for (codec, text) in [
            (Codec::Number, "x"),
            (Codec::Choice, "always never"),
            (Codec::Mask, "xyz"),
            (Codec::Mask, ""),
            (Codec::List, "a"),
            (Codec::Flag, "maybe"),
            (Codec::Schemata("L3".to_owned()), "MB:0=100"),
        ] {
            assert!(codec.decode(text).is_err(), "{codec:?} {text}");
        }
        assert!(Codec::Mask.decode(&"f,".repeat(400)).is_err());
    }

    #[test]
    fn every_mask_is_its_list() {
        for cpus in ["0", "31", "32", "0-63", "5,95", "8191"] {
            let set: CpuSet = cpus.parse().expect(cpus);
            assert_eq!(CpuSet::of_mask(&groups(&set)), Some(set), "{cpus}");
        }
    }
}
