// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads and interrupts that were not there when a change was made: of a device that was plugged
//! in, of a service that was started.
//!
//! What was there before is left alone, whoever changed it since. So are threads of
//! programs that no rule names: they begin with the CPUs of whoever started them, and one that was
//! put on a CPU for real-time work belongs there.

use std::collections::HashSet;

use tailbound_host::interrupts::interrupts;
use tailbound_host::{Root, threads};

use crate::rules::RuleError;
use crate::settings::THREADS;
use crate::step::Plan;
use crate::target::{InterruptId, Target, ThreadProperty};

/// What was there, and what has been changed of the rest.
#[derive(Debug)]
pub struct Appeared {
    interrupts: Vec<InterruptId>,
    /// Number and start.
    threads: HashSet<(u32, u64, ThreadProperty)>,
}

impl Appeared {
    /// After now.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn since_now(root: &Root) -> Result<Self, RuleError> {
        let there = threads::threads(root).map_err(RuleError::Unread)?;
        let lines = interrupts(root).map_err(RuleError::Unread)?.lines;
        Ok(Self {
            interrupts: lines.iter().map(InterruptId::from).collect(),
            threads: there
                .iter()
                .flat_map(|t| ThreadProperty::ALL.map(|of| (t.tid, t.start_ticks, of)))
                .collect(),
        })
    }

    /// Keeps of `plan`, made just now, what is about these, each once.
    pub fn of(&mut self, mut plan: Plan) -> Plan {
        plan.steps.retain(|step| match &step.target {
            Target::Affinity(_) if step.setting == THREADS => false,
            Target::Interrupt(id) => {
                let new = !self.interrupts.contains(id);
                if new {
                    self.interrupts.push(id.clone());
                }
                new
            }
            target => target
                .thread()
                .is_some_and(|(id, of)| self.threads.insert((id.tid, id.start_ticks, of))),
        });
        plan
    }
}
