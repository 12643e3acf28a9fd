// SPDX-License-Identifier: MIT OR Apache-2.0
//! A type's name is the noun of its domain and stands in few places: a ratchet over the names that stand in many.
//!
//! `names.txt` has each name of a visible type that stands more than [`PLACES_MAX`] times, with how often it does
//! today. More is refused, and so is a name that is not in it; one that became rarer is to be written down.

use std::collections::BTreeMap;

use super::files::File;
use super::finding::Finding;

/// Places that a name may have without being written down.
const PLACES_MAX: usize = 3;
const RECORD: &str = "xtask/src/tidy/names.txt";
/// Every crate has one of each, and everybody knows what they are.
const COMMON: [&str; 2] = ["Options", "Error"];

/// The name of the visible type that this line begins.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')')?.1,
        None => rest,
    };
    let (kind, rest) = rest.trim_start().split_once(' ')?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    ["struct", "enum", "trait", "type"].contains(&kind).then(|| rest.get(..end)).flatten()
}

/// The names that stand too often, with their number.
fn frequent<'f>(texts: impl Iterator<Item = &'f str>) -> BTreeMap<&'f str, usize> {
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    for name in texts.flat_map(str::lines).filter_map(declared) {
        *all.entry(name).or_default() += 1;
    }
    all.retain(|name, n| *n > PLACES_MAX && !COMMON.contains(name));
    all
}

/// Compares with `record`, the text of [`RECORD`].
fn compared(now: &BTreeMap<&str, usize>, record: &str) -> Vec<Finding> {
    let line = |line: &str| {
        let (n, name) = line.split_once(' ')?;
        Some((name.to_owned(), n.parse::<usize>().ok()?))
    };
    let allowed: BTreeMap<String, usize> = record.lines().filter_map(line).collect();
    let finding = |text: String, instead: &str| Finding::new((RECORD, 1), "names", text, instead);
    let mut found = Vec::new();
    for (name, n) in now {
        let most = allowed.get(*name).copied().unwrap_or(PLACES_MAX);
        if *n > most {
            let text = format!("{n} visible types are called `{name}`, {most} may be");
            found.push(finding(text, "name the new one by the noun of its domain"));
        }
    }
    for (name, most) in &allowed {
        let n = now.get(name.as_str()).copied().unwrap_or(0);
        if n < *most {
            let text = format!("{n} visible types are called `{name}`, not {most}");
            found.push(finding(
                text,
                "write the smaller number, or leave the name out at 3 and less",
            ));
        }
    }
    found
}

/// Looks at the sources of every crate.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let sources = files.iter().filter(|f| f.path.ends_with(".rs") && (f.path.contains("/src/")));
    let record = files.iter().find(|f| f.path == RECORD).and_then(File::text).unwrap_or_default();
    compared(&frequent(sources.filter_map(File::text)), record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_frequent_may_not_become_more_so() {
        let text = "pub struct Seen;\n  pub(crate) enum Seen {\npub(super) type Seen<T> = T;\npub trait Seen: X {\n\
                    struct Seen;\npub fn seen() {}\npub struct Error;\n";
        assert_eq!(frequent(text.lines().take(3)), BTreeMap::new());
        let now = frequent(std::iter::once(text));
        assert_eq!(now, BTreeMap::from([("Seen", 4)]));
        assert!(compared(&now, "4 Seen\n").is_empty());
        assert_eq!(compared(&now, "").len(), 1);
        assert_eq!(compared(&now, "5 Seen\n").len(), 1);
        assert_eq!(compared(&now, "4 Seen\n4 Told\n").len(), 1);
    }
}
