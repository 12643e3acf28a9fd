// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine that is played: states by target, things that are gone, and writes that are refused,
//! land elsewhere, or never return because the program is killed.

use std::collections::{BTreeMap, BTreeSet};

use tailbound_host::root::{Found, Missing};
use tailbound_host::threads::Thread;
use tailbound_tune::{Codec, Moment, Plan, Refused, State, Step, System, Target};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Played {
    pub(crate) states: BTreeMap<String, State>,
    pub(crate) gone: BTreeSet<String>,
    pub(crate) refuses: BTreeSet<String>,
    /// Reads back as this, whatever is written.
    pub(crate) stubborn: BTreeMap<String, String>,
    pub(crate) writes: usize,
    pub(crate) moment: Moment,
    pub(crate) threads: Vec<Thread>,
}

pub(crate) fn target(name: &str) -> Target {
    Target::setting(format!("/sys/{name}"), Codec::Text)
}

fn name(target: &Target) -> String {
    match target {
        Target::Setting { path, .. } => path.trim_start_matches("/sys/").to_owned(),
        other => other.to_string(),
    }
}

impl Played {
    pub(crate) fn with(states: &[(&str, &str)]) -> Self {
        let states = states.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned())));
        Self { states: states.collect(), ..Self::default() }
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        self.states[name].as_deref().unwrap_or("-")
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.states.insert(name.to_owned(), Some(value.to_owned()));
    }
}

impl System for Played {
    fn read(&self, target: &Target) -> Found<State> {
        let name = name(target);
        if self.gone.contains(&name) {
            return Err(Missing::NotApplicable(format!("{name} is gone")));
        }
        self.states
            .get(&name)
            .cloned()
            .ok_or_else(|| Missing::NotApplicable(format!("there is no {name}")))
    }

    fn write(&mut self, target: &Target, state: &State) -> Result<(), Refused> {
        let name = name(target);
        if self.gone.contains(&name) {
            return Err(Refused::Gone(format!("{name} is gone")));
        }
        if self.refuses.contains(&name) {
            return Err(Refused::Denied(format!("{name}: Invalid argument")));
        }
        self.writes += 1;
        let written = match self.stubborn.get(&name) {
            Some(other) => Some(other.clone()),
            None => state.clone(),
        };
        self.states.insert(name, written);
        Ok(())
    }

    fn anchor(&self, _: &Target) -> Option<u64> {
        Some(1)
    }

    fn moment(&self) -> Found<Moment> {
        Ok(self.moment.clone())
    }

    fn threads(&self) -> Found<Vec<Thread>> {
        Ok(self.threads.clone())
    }
}

pub(crate) fn step(name: &str, old: &str, new: &str) -> Step {
    Step {
        target: target(name),
        old: Some(old.to_owned()),
        new: Some(new.to_owned()),
        setting: name.to_owned(),
        may_fail: false,
    }
}

pub(crate) fn plan(steps: Vec<Step>) -> Plan {
    Plan { format: 1, name: "test".to_owned(), steps, ..Plan::default() }
}
