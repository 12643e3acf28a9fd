// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vocabulary of profiles: every setting with its values, what it cures, and the steps it
//! comes to on a machine.
//!
//! The order of the catalogue is the order of a plan: threads and interrupts leave
//! CPUs before these are isolated, so that undoing in reverse gives each its own CPUs back.

mod cache;
mod draft;
mod isolation;
mod memory;
mod network;
mod power;
mod scheduler;
mod system;

pub use draft::Draft;
pub(crate) use draft::{Omission, OnRefusal};
pub(crate) use isolation::THREADS;

use std::fmt;

use crate::codec::Codec;
use crate::resctrl::BandwidthLimit;

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name in profiles and on the command line.
    pub name: &'static str,
    /// What it does, one line.
    pub about: &'static str,
    /// Checks it cures.
    pub cures: &'static [&'static str],
    /// What it costs, for those who decide.
    pub cost: &'static str,
    /// Its values.
    pub values: Values,
    /// It means nothing without CPUs for real-time work.
    pub needs_cpus: bool,
    effect: Effect,
}

/// What values a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// One of these words; behind each, what it stands for in the kernel's files.
    Words(&'static [(&'static str, &'static str)]),
    /// A whole number in this range.
    Number(i64, i64),
    /// A time, written into the kernel's file in µs.
    Microseconds(i64, i64),
    /// A time in this range, or `off`, which stands for 0.
    OffOrMicroseconds(i64, i64),
    /// `50%` of all there is, or `4000MBps`.
    Bandwidth,
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => {
                f.write_str(&words.iter().map(|(w, _)| *w).collect::<Vec<_>>().join("|"))
            }
            Self::Number(low, high) => write!(f, "{low} to {high}"),
            Self::Microseconds(low, high) => write!(f, "{low}us to {high}us"),
            Self::OffOrMicroseconds(low, high) => write!(f, "off|{low}us to {high}us"),
            Self::Bandwidth => f.write_str("1% to 99%, or a number with MBps"),
        }
    }
}

/// A value in the kernel's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value(pub(crate) String);

/// What a setting comes to.
#[derive(Clone, Debug)]
enum Effect {
    /// The value goes into these files; those that do not exist are passed over.
    Files(&'static [(&'static str, Codec)]),
    /// The value goes into this file of every real-time CPU (`{}` is its number).
    RtCpus(&'static str, Codec),
    /// The value goes into this file of every entry of a folder (`{}`), as far as it has it.
    Each(&'static str, &'static str, Codec),
    /// A function plans it.
    Function(fn(&mut Draft<'_>, &Value)),
}

/// Why a setting cannot be planned as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No such setting.
    #[error("there is no setting `{name}`{}; `tailbound tune settings` lists them", suggestion(.near))]
    Unknown {
        /// As written.
        name: String,
        /// One of nearly that name.
        near: Option<&'static str>,
    },
    /// A value it does not take.
    #[error("{name}: `{value}` is not a value it takes: {values}")]
    Value {
        /// The setting.
        name: &'static str,
        /// As written.
        value: String,
        /// What it takes.
        values: String,
    },
    /// CPUs are missing.
    #[error("{0} needs CPUs for real-time work: name them with --rt-cpus LIST")]
    NoCpus(&'static str),
}

fn suggestion(near: &Option<&'static str>) -> String {
    near.map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default()
}

/// Every setting, in the order in which they are planned.
#[must_use]
pub fn catalogue() -> Vec<&'static Setting> {
    [
        isolation::SETTINGS,
        cache::SETTINGS,
        scheduler::SETTINGS,
        power::SETTINGS,
        memory::SETTINGS,
        system::SETTINGS,
        network::SETTINGS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The setting of that name.
///
/// # Errors
/// [`SettingError::Unknown`].
pub fn named(name: &str) -> Result<&'static Setting, SettingError> {
    let all = catalogue();
    all.iter().find(|s| s.name == name).copied().ok_or_else(|| {
        let near = all
            .iter()
            .map(|s| s.name)
            .find(|n| n.contains(name) || name.contains(n) || n.get(..3) == name.get(..3));
        SettingError::Unknown { name: tailbound_core::printable::excerpt(name, 40), near }
    })
}

impl Setting {
    /// The value that `text` means.
    ///
    /// # Errors
    /// [`SettingError::Value`].
    pub fn value(&self, text: &str) -> Result<Value, SettingError> {
        let found = match self.values {
            Values::Words(words) => {
                words.iter().find(|(w, _)| *w == text).map(|(_, written)| (*written).to_owned())
            }
            Values::Number(low, high) => {
                text.parse::<i64>().ok().filter(|n| (low..=high).contains(n)).map(|n| n.to_string())
            }
            Values::OffOrMicroseconds(..) if text == "off" => Some("0".to_owned()),
            Values::Microseconds(low, high) | Values::OffOrMicroseconds(low, high) => {
                microseconds(text).filter(|us| (low..=high).contains(us)).map(|us| us.to_string())
            }
            Values::Bandwidth => BandwidthLimit::parse(text).map(|_| text.to_owned()),
        };
        found.map(Value).ok_or_else(|| SettingError::Value {
            name: self.name,
            value: tailbound_core::printable::excerpt(text, 40),
            values: self.values.to_string(),
        })
    }

    /// Adds what it comes to on the machine of `draft`.
    ///
    /// # Errors
    /// [`SettingError::NoCpus`].
    pub fn plan(&self, draft: &mut Draft<'_>, value: &Value) -> Result<(), SettingError> {
        draft.begin(self.name);
        let alone = draft.facts.online.len() == 1;
        let each = matches!(self.effect, Effect::RtCpus(..));
        if self.needs_cpus && draft.facts.rt.is_empty() && !(alone && each) {
            if !alone {
                return Err(SettingError::NoCpus(self.name));
            }
            draft.leave_out(
                "the machine has one CPU, which does everything".to_owned(),
                Omission::Harmless,
            );
            return Ok(());
        }
        match &self.effect {
            Effect::Files(files) => {
                for (path, codec) in *files {
                    draft.set(path, codec.clone(), &value.0);
                }
            }
            Effect::RtCpus(path, codec) => {
                // The only CPU does the real-time work too.
                let cpus = if alone { &draft.facts.online } else { &draft.facts.rt };
                for cpu in cpus.clone().iter() {
                    draft.set(&path.replace("{}", &cpu.to_string()), codec.clone(), &value.0);
                }
            }
            Effect::Each(folder, path, codec) => draft.each(folder, path, codec, &value.0),
            Effect::Function(plan) => plan(draft, value),
        }
        Ok(())
    }
}

/// A time in whole µs.
fn microseconds(text: &str) -> Option<i64> {
    tailbound_core::units::parse_ns(text).ok().filter(|ns| ns % 1000 == 0).map(|ns| ns / 1000)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_values_are_their_own() {
        let all = catalogue();
        let names: BTreeSet<&str> = all.iter().map(|s| s.name).collect();
        assert_eq!(names.len(), all.len());
        for setting in all {
            match setting.values {
                Values::Words(words) => {
                    for (word, written) in words {
                        assert_eq!(setting.value(word), Ok(Value((*written).to_owned())));
                    }
                }
                Values::Number(low, high) => {
                    assert!(setting.value(&low.to_string()).is_ok());
                    assert!(setting.value(&high.saturating_add(1).to_string()).is_err());
                }
                Values::Microseconds(low, _) | Values::OffOrMicroseconds(low, _) => {
                    assert_eq!(setting.value(&format!("{low}us")), Ok(Value(low.to_string())));
                    assert!(setting.value("1").is_err(), "a bare number has no unit");
                }
                Values::Bandwidth => {
                    assert!(setting.value("50%").is_ok() && setting.value("4000MBps").is_ok());
                    for wrong in ["1", "0%", "100%", "-1MBps", "0MBps", "MBps", "5 %"] {
                        assert!(setting.value(wrong).is_err(), "{wrong}");
                    }
                }
            }
            assert!(setting.value("nonsense").is_err(), "{}", setting.name);
        }
    }

    #[test]
    fn a_near_name_is_offered() {
        let unknown = named("governer").expect_err("misspelt").to_string();
        assert!(unknown.contains("governor"), "{unknown}");
    }
}
