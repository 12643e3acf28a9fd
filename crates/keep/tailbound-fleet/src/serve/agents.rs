// SPDX-License-Identifier: MIT OR Apache-2.0
//! What agents said of themselves since the server began: in memory, as it is said anew all the time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tailbound_agent::wire::{self, AgentStatus, Ask};

/// Agents that asked for work since the server began: by their machines' names, with the time.
#[derive(Default)]
pub(super) struct AgentDirectory(Mutex<BTreeMap<String, (Ask, i64)>>);

impl AgentDirectory {
    /// What one said last.
    pub(super) fn note(&self, system: &str, said: Ask, now_s: i64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(system.to_owned(), (said, now_s));
    }

    /// All of them.
    pub(super) fn all(&self, now_s: i64) -> Vec<AgentStatus> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |(system, (said, at)): (&String, &(Ask, i64))| AgentStatus {
            system: system.clone(),
            said: said.clone(),
            seen_s_ago: u64::try_from(now_s - at).unwrap_or(0),
        };
        all.iter().map(known).collect()
    }
}

/// What agents make now, by the work's identity, with the time: said anew each minute, and known since the server began.
#[derive(Default)]
pub(super) struct Doing(Mutex<BTreeMap<String, (wire::Doing, i64)>>);

impl Doing {
    /// What one said last.
    pub(super) fn note(&self, work: &str, said: wire::Doing, now_s: i64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(work.to_owned(), (said, now_s));
    }

    /// Of those that are running; the others are forgotten. What, and how long ago it was said.
    pub(super) fn of(&self, running: &[&str], now_s: i64) -> BTreeMap<String, (wire::Doing, i64)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|work, _| running.contains(&work.as_str()));
        let ago = |(work, (said, at)): (&String, &(wire::Doing, i64))| {
            (work.clone(), (said.clone(), (now_s - at).max(0)))
        };
        all.iter().map(ago).collect()
    }
}
