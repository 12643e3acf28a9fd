// SPDX-License-Identifier: MIT OR Apache-2.0
//! Some targets of a file, all asked at once: what they are, and off and on again.
//!
//! One thread a target: it waits.

use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};
use tailbound_core::FailureKind;

use super::target::TargetsError;
use super::{EngineError, Facts, Power, Target, Targets, of, spread};

/// Why there are no targets.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// Their file.
    #[error(transparent)]
    File(#[from] TargetsError),
    /// Nobody says which machines they are.
    #[error("{}: {source}", .path.display())]
    Unknown {
        /// Their file.
        path: PathBuf,
        /// Why.
        source: EngineError,
    },
    /// No target has this name or tag.
    #[error("--target {word}: no target has this name or tag; there are {}", .known.join(", "))]
    NoTarget {
        /// What was asked for.
        word: String,
        /// All names.
        known: Vec<String>,
    },
}

impl SelectionError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Unknown { .. } => FailureKind::Cannot,
            Self::File(_) | Self::NoTarget { .. } => FailureKind::Usage,
        }
    }
}

/// All targets of the file at `path`, and those that have one of `words` as name or tag; without words, all.
///
/// # Errors
/// [`SelectionError`].
pub fn selected(path: &Path, words: &[String]) -> Result<(Targets, Vec<Target>), SelectionError> {
    let mut all = Targets::read(path)?;
    all.targets = spread(&all.targets)
        .map_err(|source| SelectionError::Unknown { path: path.to_owned(), source })?;
    let is = |t: &Target, word: &String| t.name == *word || t.tags.contains(word);
    for word in words {
        if !all.targets.iter().any(|t| is(t, word)) {
            let known = all.targets.iter().map(|t| t.name.clone()).collect();
            return Err(SelectionError::NoTarget { word: word.clone(), known });
        }
    }
    let wanted = |t: &&Target| words.is_empty() || words.iter().any(|w| is(t, w));
    let some = all.targets.iter().filter(wanted).cloned().collect();
    Ok((all, some))
}

fn at_once<T: Send>(
    targets: &[Target],
    ask: &(dyn Fn(&Target) -> Result<T, EngineError> + Sync),
) -> Vec<Result<T, EngineError>> {
    thread::scope(|scope| {
        let begun: Vec<_> = targets.iter().map(|t| scope.spawn(move || ask(t))).collect();
        let bug = || EngineError::Failed { what: "asking", why: "a bug of tailbound".to_owned() };
        begun.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(bug()))).collect()
    })
}

/// What each of `targets` is.
#[must_use]
pub fn facts(targets: &[Target]) -> Vec<Result<Facts, EngineError>> {
    at_once(targets, &|t| of(t).list(None))
}

/// Has the power of each of `targets` changed; `heard` gets what is said meanwhile, and by which.
#[must_use]
pub fn power(
    targets: &[Target],
    what: Power,
    heard: &(dyn Fn(&str, &str) + Sync),
) -> Vec<Result<(), EngineError>> {
    at_once(targets, &|t| of(t).power(what, &mut |line| heard(&t.name, line)))
}

/// A target in a line.
#[must_use]
pub fn text(target: &Target, facts: &Result<Facts, EngineError>) -> String {
    let state = match facts {
        Ok(f) => {
            let held = f.held.as_ref().map_or("free".to_owned(), |w| format!("held: {w}"));
            format!("{}, {}, {} CPUs; {held}", f.kernel, f.architecture, f.cpus)
        }
        Err(e) => format!("unknown: {e}"),
    };
    format!("{}  {}  {state}", target.name, target.reach.engine())
}

/// The same for scripts.
#[must_use]
pub fn json(target: &Target, facts: &Result<Facts, EngineError>) -> Value {
    let mut row = json!({
        "name": target.name,
        "engine": target.reach.engine().to_string(),
        "tags": target.tags,
    });
    let more = match facts {
        Ok(f) => json!({
            "architecture": f.architecture, "kernel": f.kernel, "cpus": f.cpus, "held": f.held,
        }),
        Err(e) => json!({ "error": e.to_string() }),
    };
    if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) {
        row.extend(more);
    }
    row
}

/// What became of the power of each of `targets`, a line each.
#[must_use]
pub fn power_text(targets: &[Target], done: &[Result<(), EngineError>]) -> String {
    let line = |(target, done): (&Target, &Result<(), EngineError>)| match done {
        Ok(()) => format!("{}  off and on; it answers\n", target.name),
        Err(why) => format!("{}  {why}\n", target.name),
    };
    targets.iter().zip(done).map(line).collect()
}

/// The same for scripts.
#[must_use]
pub fn power_json(targets: &[Target], done: &[Result<(), EngineError>]) -> Value {
    let row = |(target, done): (&Target, &Result<(), EngineError>)| {
        let why = done.as_ref().err().map(ToString::to_string);
        json!({ "name": target.name, "answers": why.is_none(), "why": why })
    };
    json!({ "targets": targets.iter().zip(done).map(row).collect::<Vec<_>>() })
}
