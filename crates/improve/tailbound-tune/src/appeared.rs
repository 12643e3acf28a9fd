// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads and interrupts that were not there when a change was made: of a device that was plugged
//! in, of a service that was started.
//!
//! What was there before is left alone, whoever changed it since. So are threads of
//! programs that no rule names: they begin with the CPUs of whoever started them, and one that was
//! put on a CPU for real-time work belongs there.

use std::collections::HashSet;

use tailbound_host::interrupts::interrupts;
use tailbound_host::{Missing, Root, threads};

use crate::settings::THREADS;
use crate::step::Plan;
use crate::target::{InterruptId, Target};

/// What was there, and what has been changed of the rest.
#[derive(Debug)]
pub struct Appeared {
    interrupts: Vec<InterruptId>,
    /// Number, start, and whether its policy is meant, or its CPUs.
    threads: HashSet<(u32, u64, bool)>,
}

impl Appeared {
    /// After now.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn since_now(root: &Root) -> Result<Self, String> {
        let why = |missing: Missing| missing.reason().to_owned();
        let there = threads::threads(root).map_err(why)?;
        let lines = interrupts(root).map_err(why)?.lines;
        Ok(Self {
            interrupts: lines.iter().map(InterruptId::from).collect(),
            threads: there
                .iter()
                .flat_map(|t| [true, false].map(|is_policy| (t.tid, t.start_ticks, is_policy)))
                .collect(),
        })
    }

    /// Keeps of `plan`, made just now, what is about these, each once.
    pub fn of(&mut self, mut plan: Plan) -> Plan {
        plan.steps.retain(|step| match &step.target {
            Target::Affinity(_) if step.setting == THREADS => false,
            Target::Affinity(id) | Target::Policy(id) => {
                let is_policy = matches!(step.target, Target::Policy(_));
                self.threads.insert((id.tid, id.start_ticks, is_policy))
            }
            Target::Interrupt(id) => {
                let new = !self.interrupts.contains(id);
                if new {
                    self.interrupts.push(id.clone());
                }
                new
            }
            _ => false,
        });
        plan
    }
}
