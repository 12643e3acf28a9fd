// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan: steps in their order, what was left out and why, and the machine it was made for.
//!
//! A plan changes nothing. Source of the model: write-ahead logging; the state
//! before a step is read when the step is made, and once more when it is done.

use serde::{Deserialize, Serialize};

use crate::target::Target;

/// A state: canonical text, or `None` where the thing is absent.
pub type State = Option<String>;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What is changed.
    pub target: Target,
    /// As it was when the plan was made.
    pub old: State,
    /// As it is to be.
    pub new: State,
    /// The setting of the profile it belongs to.
    pub setting: String,
    /// A refusal of this step does not end the whole: the kernel keeps some threads and
    /// interrupts where they are, and says so only when asked.
    #[serde(default)]
    pub may_fail: bool,
}

/// Something that was wanted and cannot be had here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The setting of the profile.
    pub setting: String,
    /// Why.
    pub why: String,
    /// Nothing to be done: it is already as wanted, or this machine has no such thing. Otherwise
    /// it was wanted and could not be planned.
    pub harmless: bool,
}

/// The machine that a plan is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineId {
    /// /proc/sys/kernel/random/boot_id: threads and interrupts are of one boot.
    pub boot_id: String,
    /// The kernel.
    pub release: String,
    /// Online CPUs.
    pub online: String,
}

/// What a plan is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// The profile, as TOML.
    pub profile: String,
    /// CPUs for real-time work, as a list.
    #[serde(default)]
    pub rt_cpus: String,
    /// Settings of the profile that are left out.
    #[serde(default)]
    pub without: Vec<String>,
    /// Boot parameters too.
    #[serde(default)]
    pub boot: bool,
    /// CPU 0 may be among the CPUs for real-time work.
    #[serde(default)]
    pub allow_cpu0: bool,
}

/// What is to be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this format.
    pub format: u32,
    /// For people: the profile or the command.
    pub name: String,
    /// CPUs kept for real-time work.
    pub rt_cpus: String,
    /// For which machine.
    pub machine: MachineId,
    /// What it was made from, so that it can be made again and compared.
    #[serde(default)]
    pub recipe: Recipe,
    /// In the order in which they are done; undone in reverse.
    pub steps: Vec<Step>,
    /// What was left out.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// Of [`Plan::format`].
pub const PLAN_FORMAT: u32 = 1;

impl Plan {
    /// Steps that change what outlives a reboot.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        self.steps.iter().any(|s| s.target.is_persistent())
    }

    /// The plan as a shell script.
    #[must_use]
    pub fn script(&self) -> String {
        let lines =
            self.steps.iter().map(|s| s.target.shell_between(s.old.as_deref(), s.new.as_deref()));
        script(&format!("{}: apply", self.name), lines)
    }

    /// What undoes it, as a shell script.
    #[must_use]
    pub fn undo_script(&self) -> String {
        let lines = self
            .steps
            .iter()
            .rev()
            .map(|s| s.target.shell_between(s.new.as_deref(), s.old.as_deref()));
        script(&format!("{}: undo", self.name), lines)
    }
}

fn script(title: &str, lines: impl Iterator<Item = String>) -> String {
    let title: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut text = format!("#!/bin/sh\n# {title}\nset -eu\n");
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}
