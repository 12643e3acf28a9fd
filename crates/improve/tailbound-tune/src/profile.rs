// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles: settings with their values, rules for threads and services, boot parameters.
//!
//! A profile says what is wanted, whatever the machine; a plan what that comes to
//! on one. Format: `docs/tune.md`. Source: the shipped ones are `profiles/*.toml`.

use std::collections::BTreeMap;
use tailbound_core::order;

use serde::{Deserialize, Serialize};

use crate::boot::{self, BootError};
use crate::facts::Facts;
use crate::rules::{self, InterruptRule, RuleError, ServiceRule, ThreadRule};
use crate::settings::{self, Draft, Omission, Setting, SettingError, Value};
use crate::step::{Plan, Recipe};

/// The profiles that come with the program, by name.
pub const SHIPPED: &[(&str, &str)] = &[
    ("cyclic", include_str!("../profiles/cyclic.toml")),
    ("polling", include_str!("../profiles/polling.toml")),
    ("low-latency-desktop", include_str!("../profiles/low-latency-desktop.toml")),
    ("virtual-host", include_str!("../profiles/virtual-host.toml")),
    ("board", include_str!("../profiles/board.toml")),
];

/// A profile as it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Its name.
    pub name: String,
    /// For whom it is.
    #[serde(default)]
    pub about: String,
    /// Settings with their values.
    #[serde(default)]
    pub settings: BTreeMap<String, toml::Value>,
    /// Boot parameters.
    #[serde(default)]
    pub boot: Boot,
    /// Rules for threads.
    #[serde(default)]
    pub thread: Vec<ThreadRule>,
    /// Rules for interrupts.
    #[serde(default)]
    pub interrupt: Vec<InterruptRule>,
    /// Rules for services.
    #[serde(default)]
    pub service: Vec<ServiceRule>,
}

impl Written {
    /// Gives a setting a value, in place of an older one.
    pub fn set(&mut self, setting: &str, value: &str) {
        self.settings.insert(setting.to_owned(), toml::Value::String(value.to_owned()));
    }
}

/// Boot parameters of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// `name` or `name=value`; `{rt}` and `{housekeeping}` stand for CPUs.
    #[serde(default)]
    pub parameters: Vec<String>,
}

/// A profile whose settings and values are known.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// For whom it is.
    pub about: String,
    settings: Vec<(&'static Setting, Value)>,
    written: Written,
}

/// Why a text is not a profile, or cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No TOML, or other keys.
    #[error("{0}")]
    Format(String),
    /// A profile of tuned.
    #[error(
        "a profile of tuned, in another language: write one of your own, beginning with `tailbound tune profiles cyclic` (docs/from-tuned.md has its keys)"
    )]
    OfTuned,
    /// A setting or its value.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Boot parameters.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// A rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let written = toml::from_str(text).map_err(|e| match is_of_tuned(text) {
            true => ProfileError::OfTuned,
            false => ProfileError::Format(e.to_string()),
        })?;
        Self::of(written)
    }

    /// Looks up what is written.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn of(written: Written) -> Result<Self, ProfileError> {
        let mut named = Vec::new();
        for (name, value) in &written.settings {
            let setting = settings::named(name)?;
            named.push((setting, setting.value(&scalar(value))?));
        }
        Ok(Self {
            name: tailbound_core::printable::excerpt(&written.name, 60),
            about: written.about.clone(),
            settings: in_order(named),
            written,
        })
    }

    /// One of those that come with the program.
    #[must_use]
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(n, _)| *n == name)?;
        Self::parse(text).ok()
    }

    /// As it is written.
    #[must_use]
    pub fn written(&self) -> &Written {
        &self.written
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

    /// What it comes to on a machine, with what `recipe` says beside its profile.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub(crate) fn plan(&self, facts: &Facts, recipe: &Recipe) -> Result<Plan, ProfileError> {
        let mut draft = Draft::new(facts, &self.name);
        for (setting, value) in
            self.settings.iter().filter(|(s, _)| !recipe.without.iter().any(|w| w == s.name))
        {
            setting.plan(&mut draft, value)?;
        }
        rules::threads(&mut draft, &self.written.thread)?;
        rules::interrupts(&mut draft, &self.written.interrupt)?;
        rules::services(&mut draft, &self.written.service);
        if recipe.boot {
            boot::plan(&mut draft, &self.written.boot.parameters)?;
        } else if !self.written.boot.parameters.is_empty() {
            draft.begin("boot");
            draft.leave_out(
                "boot parameters are added with --boot only, and count after a reboot".to_owned(),
                Omission::Harmless,
            );
        }
        Ok(draft.finish())
    }
}

/// The settings in the order of the catalogue.
fn in_order(mut named: Vec<(&'static Setting, Value)>) -> Vec<(&'static Setting, Value)> {
    let all = settings::catalogue();
    order::by_key(&mut named, |(s, _)| all.iter().position(|a| a.name == s.name));
    named
}

/// Has it a section of tuned.conf(5), which no profile of ours has?
fn is_of_tuned(text: &str) -> bool {
    const SECTIONS: &[&str] =
        &["[main]", "[sysctl]", "[sysfs]", "[cpu]", "[vm]", "[scheduler]", "[bootloader]"];
    text.lines().any(|line| SECTIONS.contains(&line.trim()))
}

fn scalar(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
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
        let tuned = "# tuned\n[main]\ninclude = network-latency\n[sysctl]\nvm.stat_interval = 10\n";
        assert!(error(tuned).contains("docs/from-tuned.md"));
    }
}
