// SPDX-License-Identifier: MIT OR Apache-2.0
//! Works: loads with an end, by the names that people compare systems by.
//!
//! Context: COLD. A work is a load of a fixed amount, so that its time is its cost.

use tailbound_core::plan::LoadSpec;

use crate::error::LoadError;
use crate::options;

/// One work there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkKind {
    /// Its name.
    pub name: &'static str,
    /// The load it is.
    load: &'static str,
    /// Its amount, where none is given.
    loops: Option<u64>,
    /// What it does, in a line.
    pub about: &'static str,
}

/// Every work, with an amount that takes a desk machine about a second.
pub const WORKS: &[WorkKind] = &[
    WorkKind {
        name: "arithmetic",
        load: "cpu",
        loops: Some(300_000),
        about: "pure user mode: a fixed number of instructions on each CPU",
    },
    WorkKind {
        name: "file",
        load: "file",
        loops: Some(32),
        about: "files written, synced, read back and dropped",
    },
    WorkKind {
        name: "messages",
        load: "hackbench",
        loops: Some(200),
        about: "a fixed number of messages between many tasks, as hackbench sends them",
    },
    WorkKind {
        name: "compile",
        load: "compile",
        loops: Some(24),
        about: "C compiled with the machine's cc, a compiler a CPU",
    },
    WorkKind { name: "cmd", load: "cmd", loops: None, about: "any shell command: cmd:make -j8" },
];

/// The work that `text` names, its amount filled in: `messages`, `file:loops=8,size=1M`,
/// `cmd:make -j8`.
///
/// # Errors
/// Which word is wrong and what would be right.
pub fn work(text: &str) -> Result<LoadSpec, LoadError> {
    let line = text.strip_prefix("cmd:").filter(|rest| !rest.starts_with("line="));
    let mut spec = match line {
        Some(line) => LoadSpec::command(line),
        None => text.parse().map_err(|_| LoadError::UnknownWork(text.to_owned()))?,
    };
    let kind = WORKS.iter().find(|w| w.name == spec.name);
    let kind = kind.ok_or_else(|| LoadError::UnknownWork(spec.name.clone()))?;
    if let (Some(loops), None) = (kind.loops, spec.option("loops")) {
        spec.options.push(("loops".to_owned(), loops.to_string()));
    }
    if spec.option("repeat") == Some("yes") {
        return Err(LoadError::BadValue {
            load: "cmd",
            option: "repeat".into(),
            value: "yes".into(),
            reason: "a work has an end; --repeat says how many times it is done".into(),
        });
    }
    options::parse(&as_load(&spec))?;
    Ok(spec)
}

/// The load that a work is.
pub(crate) fn as_load(spec: &LoadSpec) -> LoadSpec {
    let name = WORKS.iter().find(|w| w.name == spec.name).map_or(spec.name.as_str(), |w| w.load);
    LoadSpec { name: name.to_owned(), options: spec.options.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_are_filled_in_and_wrong_words_named() {
        let said = |text: &str| work(text).map(|w| w.to_string()).map_err(|e| e.to_string());
        assert_eq!(said("arithmetic"), Ok("arithmetic:loops=300000".into()));
        assert_eq!(said("messages:groups=1,loops=5"), Ok("messages:groups=1,loops=5".into()));
        assert_eq!(said("cmd:make -j8, all"), Ok("cmd:line=make -j8, all".into()));
        assert_eq!(said("cmd:line=true"), Ok("cmd:line=true".into()));
        assert!(said("memory").is_err_and(|e| e.contains("arithmetic, file, messages")));
        assert!(said("file:loops=0").is_err_and(|e| e.contains("loops=0")));
        assert!(said("cmd:").is_err());
    }
}
