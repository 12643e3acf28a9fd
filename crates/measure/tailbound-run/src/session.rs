// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run to make, and what its run file begins with.
//!
//! Context: SETUP. Units: ns. Not here: making it (`run`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use tailbound_core::finding::Finding;
use tailbound_core::plan::Plan;
use tailbound_core::purpose::Purpose;
use tailbound_core::record::{Fact, Header, Round, SCHEMA};
use tailbound_core::utc;
use tailbound_host::Root;
use tailbound_host::machine_lock::Shared;
use tailbound_sys::{clock, limits};

use crate::actions::Actions;
use crate::view::SamplesTo;

/// A fact of this process.
pub(crate) const TIMER_SLACK: &str = "sched.timer_slack_ns";

/// One run to make.
#[derive(Debug)]
pub struct Session {
    /// What to do.
    pub plan: Plan,
    /// What was noticed while making the plan.
    pub findings: Vec<Finding>,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// The machine.
    pub root: Root,
    /// The binary that load workers are started from.
    pub exe: PathBuf,
    /// Loads that cannot be started are a finding, not an error.
    pub loads_optional: bool,
    /// Read the inventory during the warm-up instead of before: a bare probe starts at once.
    pub inventory_late: bool,
    /// How often the watcher is shown something; 0 for never.
    pub refresh_ms: u32,
    /// Time counts executed instructions, as in the lab: nobody can take the CPU.
    pub virtual_time: bool,
    /// Its place among runs made in turn, for the record.
    pub round: Option<Round>,
    /// What persons stated about it, for the record.
    pub purpose: Option<Box<Purpose>>,
    /// Its share of the machine; none: nothing else matters to it.
    pub machine: Option<Shared>,
    /// Where every sample goes.
    pub samples: SamplesTo,
    /// When it is to begin, on CLOCK_REALTIME; none: as soon as it is ready.
    pub begin_at_ns: Option<i64>,
    /// What is done when a wake-up is late, and at the end.
    pub actions: Actions,
}

impl Session {
    /// What its run file begins with; the machine's facts follow when they are read.
    #[must_use]
    pub fn header(&self) -> Header {
        let now = clock::now_ns(clock::CLOCK_REALTIME);
        let stamp = utc::from_ns(now);
        let compact: String = stamp.chars().filter(char::is_ascii_alphanumeric).collect();
        Header {
            schema: SCHEMA.to_owned(),
            tool: format!("tailbound {}", env!("CARGO_PKG_VERSION")),
            // No name of the machine: run files are sent to strangers. Time, its fraction and the
            // process tell runs apart.
            id: format!("{compact}-{:08x}-{}", now.rem_euclid(1_000_000_000), std::process::id()),
            started: stamp,
            command: self.command.clone(),
            plan: Plan {
                raw: self.plan.raw && self.samples == SamplesTo::File,
                ..self.plan.clone()
            },
            machine: BTreeMap::new(),
            source: None,
            lab: None,
            round: self.round.clone(),
            purpose: self.purpose.clone(),
        }
    }

    /// Facts of the machine, and those that a model asks for.
    pub(crate) fn inventory(&self) -> BTreeMap<String, Fact> {
        let mut facts = tailbound_host::inventory(&self.root);
        let slack =
            limits::timer_slack_ns().map_or_else(|e| Fact::Unknown(e.to_string()), Fact::of);
        facts.insert(TIMER_SLACK.to_owned(), slack);
        let wanted =
            tailbound_rules::CheckScope { rt_cpus: self.plan.cpus.clone(), ..Default::default() };
        let machine = tailbound_rules::Machine::with_facts(&self.root, wanted, facts.clone());
        facts.extend(tailbound_rules::precondition_facts(&machine));
        facts
    }
}
