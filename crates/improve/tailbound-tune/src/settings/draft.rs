// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan that is being made: what a setting asks for becomes a step, or a reason why not.
//!
//! Reads only.

use tailbound_host::root::Missing;

use crate::codec::Codec;
use crate::facts::Facts;
use crate::machine::{Machine, System as _};
use crate::step::{LeftOut, PLAN_FORMAT, Plan, State, Step};
use crate::target::Target;

/// What becomes of a plan when a step of it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnRefusal {
    /// The steps before it are undone.
    Undo,
    /// The step is skipped: the kernel keeps some threads and interrupts where they are.
    Skip,
}

/// Why something is not in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omission {
    /// There is nothing to be done.
    Harmless,
    /// It was wanted, and could not be planned.
    Wanting,
}

/// A plan that is being made.
#[derive(Debug)]
pub struct Draft<'a> {
    /// The machine.
    pub(crate) facts: &'a Facts,
    machine: Machine,
    plan: Plan,
    setting: &'static str,
}

impl<'a> Draft<'a> {
    /// An empty plan for a machine.
    #[must_use]
    pub fn new(facts: &'a Facts, name: &str) -> Self {
        let plan = Plan {
            format: PLAN_FORMAT,
            name: name.to_owned(),
            rt_cpus: facts.rt.to_string(),
            machine: facts.id.clone(),
            ..Plan::default()
        };
        Self { facts, machine: facts.machine(), plan, setting: "" }
    }

    /// The plan.
    #[must_use]
    pub fn finish(self) -> Plan {
        self.plan
    }

    /// What follows belongs to this setting.
    pub(crate) fn begin(&mut self, setting: &'static str) {
        self.setting = setting;
    }

    /// The state of a target now, or a reason among what was left out.
    pub(crate) fn read(&mut self, target: &Target) -> Option<State> {
        match self.machine.read(target) {
            Ok(old) => Some(old),
            Err(Missing::NotApplicable(why)) => {
                self.leave_out(why, Omission::Harmless);
                None
            }
            Err(Missing::Unknown(why)) => {
                self.leave_out(why, Omission::Wanting);
                None
            }
        }
    }

    /// A file is to hold `new`.
    pub(crate) fn set(&mut self, path: &str, codec: Codec, new: &str) {
        self.change(Target::setting(path, codec), Some(new.to_owned()), OnRefusal::Undo);
    }

    /// A target is to be `new`; nothing to do where it is so.
    pub(crate) fn change(&mut self, target: Target, new: State, refused: OnRefusal) {
        let Some(old) = self.read(&target) else { return };
        if old == new {
            self.leave_out(format!("{target} is so already"), Omission::Harmless);
        } else {
            self.push(target, old, new, refused);
        }
    }

    /// A step whose old state is known, because the steps before it make the thing.
    pub(crate) fn push(&mut self, target: Target, old: State, new: State, refused: OnRefusal) {
        let setting = self.setting.to_owned();
        let may_fail = refused == OnRefusal::Skip;
        self.plan.steps.push(Step { target, old, new, setting, may_fail });
    }

    /// The state to which a step of this plan brings `target`.
    pub(crate) fn planned(&self, target: &Target) -> Option<&State> {
        self.plan.steps.iter().rev().find(|s| s.target == *target).map(|s| &s.new)
    }

    /// A file of every entry of a folder.
    pub(crate) fn each(&mut self, folder: &str, path: &str, codec: &Codec, new: &str) {
        let names = match self.facts.root.list(folder) {
            Ok(names) => names,
            Err(why) => return self.leave_out(why.reason().to_owned(), Omission::Harmless),
        };
        for name in names {
            let path = path.replace("{}", &name);
            if self.facts.root.exists(&path) {
                self.set(&path, codec.clone(), new);
            }
        }
    }

    /// Something of the setting cannot be had, or need not be done.
    pub(crate) fn leave_out(&mut self, why: String, omission: Omission) {
        let setting = self.setting.to_owned();
        let left = LeftOut { setting, why, harmless: omission == Omission::Harmless };
        if !self.plan.left_out.contains(&left) {
            self.plan.left_out.push(left);
        }
    }
}
