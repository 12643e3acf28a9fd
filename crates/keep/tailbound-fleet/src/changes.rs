// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a machine knew of itself at two runs, and what of it differs.
//!
//! Facts that change from run to run by themselves (load, free memory, clock offset) are not kept by the store.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tailbound_core::printable::excerpt;
use tailbound_core::record::Facts;
use tailbound_core::units::exact;
use tailbound_stats::change::{self, FactChange, REACH, RunFacts};
use tailbound_store::{RunRow, Store, StoreError};

/// A fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// Its name.
    pub fact: String,
    /// Before; `None`: it was not known.
    pub before: Option<Value>,
    /// After.
    pub after: Option<Value>,
}

/// The facts that differ between the runs `a` and `b`, by name.
///
/// # Errors
/// The database refuses.
pub fn between(store: &mut Store, a: &str, b: &str) -> Result<Vec<Change>, StoreError> {
    let mut known = |run: &str| -> Result<BTreeMap<String, Value>, StoreError> {
        Ok(serde_json::from_str(&store.facts_of(run)?.unwrap_or_default()).unwrap_or_default())
    };
    let (a, b) = (known(a)?, known(b)?);
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differs = names.into_iter().filter(|name| a.get(*name) != b.get(*name));
    let one = |name: &String| Change {
        fact: name.clone(),
        before: a.get(name).cloned(),
        after: b.get(name).cloned(),
    };
    Ok(differs.map(one).collect())
}

/// The facts that changed near the run `at` of a series, the oldest first; the nearest come first. As `history` names them.
///
/// # Errors
/// The database refuses.
pub fn near(store: &mut Store, runs: &[RunRow], at: usize) -> Result<Vec<FactChange>, StoreError> {
    let from = at.saturating_sub(REACH + 1);
    let mut window: Vec<RunFacts> = Vec::new();
    for run in runs.iter().skip(from).take(at - from + REACH + 1) {
        let json = store.facts_of(&run.id)?.unwrap_or_default();
        let facts: Facts = serde_json::from_str(&json).unwrap_or_default();
        let mut all: RunFacts = facts.into_iter().map(|(name, fact)| (name, fact.text())).collect();
        all.insert("tool".to_owned(), run.tool.clone());
        let deadline = run.deadline_ns.map_or_else(|| "none".to_owned(), exact);
        all.insert("plan.deadline".to_owned(), deadline);
        window.push(all);
    }
    let mut found = change::near(&window, at - from);
    found.truncate(NEAR_MAX);
    for fact in &mut found {
        for text in [&mut fact.name, &mut fact.before, &mut fact.after] {
            *text = excerpt(text, CHARS);
        }
    }
    Ok(found)
}

/// Facts that are kept of a change, and characters of each: strangers write them, and every overview reads them.
const NEAR_MAX: usize = 200;
const CHARS: usize = 200;

/// A fact that changed, in words: `cpu.governor: performance → powersave (2 runs earlier)`.
#[must_use]
pub fn fact_words(f: &FactChange) -> String {
    let runs = if f.off.abs() == 1 { "run" } else { "runs" };
    let when = match f.off {
        0 => String::new(),
        n if n < 0 => format!(" ({} {runs} earlier)", n.abs()),
        n => format!(" ({n} {runs} later)"),
    };
    format!("{}: {} → {}{when}", f.name, f.before, f.after)
}

/// A fact in a word or a few; a dash where it was not known. What a run file says of why it is not known is said too.
#[must_use]
pub fn words(value: Option<&Value>) -> String {
    let value = value.map(|v| v.get("value").unwrap_or(v));
    match value {
        None => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(all)) => {
            let all: Vec<String> = all.iter().map(|v| words(Some(v))).collect();
            all.join(" ")
        }
        Some(other) => other.to_string(),
    }
}
