// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles: settings with their values, rules for threads and services, boot parameters.
//!
//! Context: COLD. A profile says what is wanted, whatever the machine; a plan what that comes to
//! on one. Format: `docs/tune.md`. Source: the shipped ones are `profiles/*.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use tailbound_core::{CpuSet, Policy};

use crate::boot::{self, BootError};
use crate::facts::Facts;
use crate::rules::{self, ServiceRule, ThreadRule};
use crate::settings::{self, Draft, Setting, SettingError, Value};
use crate::step::Plan;

/// The profiles that come with the program, by name.
pub const SHIPPED: &[(&str, &str)] = &[
    ("cyclic", include_str!("../profiles/cyclic.toml")),
    ("polling", include_str!("../profiles/polling.toml")),
    ("low-latency-desktop", include_str!("../profiles/low-latency-desktop.toml")),
    ("virtual-host", include_str!("../profiles/virtual-host.toml")),
    ("board", include_str!("../profiles/board.toml")),
];

/// A profile as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    settings: BTreeMap<String, toml::Value>,
    #[serde(default)]
    thread: Vec<ThreadRule>,
    #[serde(default)]
    service: Vec<ServiceRule>,
    #[serde(default)]
    boot: Boot,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Boot {
    #[serde(default)]
    parameters: Vec<String>,
}

/// A profile whose settings and values are known.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// For whom it is.
    pub about: String,
    settings: Vec<(&'static Setting, Value)>,
    threads: Vec<ThreadRule>,
    services: Vec<ServiceRule>,
    parameters: Vec<String>,
}

/// Why a text is not a profile, or cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No TOML, or other keys.
    #[error("{0}")]
    Format(String),
    /// A setting or its value.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Boot parameters.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// A rule.
    #[error("{0}")]
    Rule(String),
}

/// What of a profile a plan is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Also the boot parameters, which count after a reboot.
    pub boot: bool,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let written: Written =
            toml::from_str(text).map_err(|e| ProfileError::Format(e.to_string()))?;
        let mut named = Vec::new();
        for (name, value) in &written.settings {
            let setting = settings::named(name)?;
            named.push((setting, setting.value(&scalar(value))?));
        }
        Ok(Self {
            name: tailbound_core::printable::excerpt(&written.name, 60),
            about: written.about,
            settings: in_order(named),
            threads: written.thread,
            services: written.service,
            parameters: written.boot.parameters,
        })
    }

    /// One of those that come with the program.
    #[must_use]
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(n, _)| *n == name)?;
        Self::parse(text).ok()
    }

    /// Of `NAME=VALUE` words.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn of_words<'a>(
        name: &str,
        words: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ProfileError> {
        let mut named = Vec::new();
        for (setting, value) in words {
            let setting = settings::named(setting)?;
            named.push((setting, setting.value(value)?));
        }
        Ok(Self {
            name: name.to_owned(),
            about: String::new(),
            settings: in_order(named),
            threads: Vec::new(),
            services: Vec::new(),
            parameters: Vec::new(),
        })
    }

    /// Does it mean nothing without CPUs for real-time work?
    #[must_use]
    pub fn needs_cpus(&self) -> bool {
        self.settings.iter().any(|(s, _)| s.needs_cpus)
    }

    /// The names of its settings, in the order in which they are planned.
    pub fn settings(&self) -> impl Iterator<Item = &'static str> {
        self.settings.iter().map(|(s, _)| s.name)
    }

    /// Only those settings whose name `keep` says yes to; rules and boot parameters go.
    #[must_use]
    pub fn only(&self, name: &str, keep: impl Fn(&str) -> bool) -> Self {
        let settings = self.settings.iter().filter(|(s, _)| keep(s.name)).cloned().collect();
        Self {
            name: name.to_owned(),
            about: self.about.clone(),
            settings,
            threads: Vec::new(),
            services: Vec::new(),
            parameters: Vec::new(),
        }
    }

    /// What it comes to on a machine.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn plan(&self, facts: &Facts, extent: Extent) -> Result<Plan, ProfileError> {
        let mut draft = Draft::new(facts, &self.name);
        for (setting, value) in &self.settings {
            setting.plan(&mut draft, value)?;
        }
        rules::threads(&mut draft, &self.threads).map_err(ProfileError::Rule)?;
        rules::services(&mut draft, &self.services);
        if extent.boot {
            boot::plan(&mut draft, &self.parameters)?;
        } else if !self.parameters.is_empty() {
            draft.begin("boot");
            draft.leave_out(
                "boot parameters are added with --boot only, and count after a reboot".to_owned(),
                true,
            );
        }
        Ok(draft.finish())
    }
}

/// The settings in the order of the catalogue.
fn in_order(mut named: Vec<(&'static Setting, Value)>) -> Vec<(&'static Setting, Value)> {
    let all = settings::catalogue();
    named.sort_by_key(|(s, _)| all.iter().position(|a| a.name == s.name));
    named
}

fn scalar(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// CPUs of a rule: `rt`, `housekeeping`, or a list.
pub(crate) fn cpus_of(facts: &Facts, text: &str) -> Result<CpuSet, String> {
    match text {
        "rt" if facts.rt.is_empty() => {
            Err("`rt` needs CPUs for real-time work: name them with --rt-cpus LIST".to_owned())
        }
        "rt" => Ok(facts.rt.clone()),
        "housekeeping" => Ok(facts.housekeeping.clone()),
        list => list.parse::<CpuSet>().map_err(|e| e.to_string()),
    }
}

/// A policy of a rule that the kernel can be given.
pub(crate) fn policy_of(text: &str) -> Result<Policy, String> {
    match text.parse::<Policy>().map_err(|e| e.to_string())? {
        Policy::Deadline { .. } => {
            Err(format!("{text}: a deadline is for the program itself to ask for"))
        }
        policy => Ok(policy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_profiles_can_be_read() {
        for (name, text) in SHIPPED {
            let profile = Profile::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(profile.name, *name);
            assert!(!profile.about.is_empty() && profile.settings().count() > 3, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_profile_is_said() {
        let error = |text: &str| Profile::parse(text).expect_err(text).to_string();
        assert!(error("name = \"x\"\n[settings]\ngovernr = \"performance\"").contains("governor"));
        assert!(error("name = \"x\"\n[settings]\ngovernor = \"fast\"").contains("performance|"));
        assert!(error("name = \"x\"\ncolour = 1").contains("colour"));
        assert!(error("x").contains("line 1"));
    }
}
