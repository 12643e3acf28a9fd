// SPDX-License-Identifier: MIT OR Apache-2.0
//! From two lists of options, the good one and the bad one, to the changes that lead from one to the other.
//!
//! Pure. Words of a kernel's command line keep their order, because the last word of a name counts;
//! options of a configuration have none.

use std::collections::BTreeMap;
use tailbound_core::order;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What the good end has in its place.
    pub good: Option<String>,
    /// What the bad end has.
    pub bad: Option<String>,
}

impl Difference {
    /// `init_on_alloc=1`, `without quiet`, `preempt=full instead of preempt=none`.
    #[must_use]
    pub fn title(&self) -> String {
        match (&self.good, &self.bad) {
            (Some(good), Some(bad)) => format!("{bad} instead of {good}"),
            (None, Some(bad)) => bad.clone(),
            (Some(good), None) => format!("without {good}"),
            (None, None) => String::new(),
        }
    }
}

/// The words of an option list that both ends share and those that differ, in the order they are given in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Slots: a word of both ends, or a change.
    slots: Vec<Slot>,
    /// The changes.
    pub differences: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    Shared(String),
    Change(usize),
}

/// What stands before `=`.
fn name(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// Compares two lists of words. The same name once on each side, with two values, is one change.
#[must_use]
pub fn words(good: &[String], bad: &[String]) -> Words {
    let mut left: Vec<Option<&String>> = good.iter().map(Some).collect();
    let once = |list: &[String], n: &str| list.iter().filter(|w| name(w) == n).count() == 1;
    // First the same words, each with one of the other side, then the same names.
    let mut take = |matches: &dyn Fn(&str) -> bool| {
        left.iter_mut().find(|w| w.is_some_and(|w| matches(w))).and_then(Option::take)
    };
    let same: Vec<bool> = bad.iter().map(|w| take(&|g| g == w).is_some()).collect();
    let mut slots = Vec::new();
    let mut differences = Vec::new();
    for (word, same) in bad.iter().zip(same) {
        if same {
            slots.push(Slot::Shared(word.clone()));
            continue;
        }
        let pair = once(good, name(word)) && once(bad, name(word));
        let before = if pair { take(&|g| name(g) == name(word)) } else { None };
        slots.push(Slot::Change(differences.len()));
        differences.push(Difference { good: before.cloned(), bad: Some(word.clone()) });
    }
    for word in left.into_iter().flatten() {
        slots.push(Slot::Change(differences.len()));
        differences.push(Difference { good: Some(word.clone()), bad: None });
    }
    Words { slots, differences }
}

impl Words {
    /// The list with these changes made, and no others.
    #[must_use]
    pub fn with(&self, changes: &[usize]) -> Vec<String> {
        let mut out = Vec::new();
        for slot in &self.slots {
            match slot {
                Slot::Shared(word) => out.push(word.clone()),
                Slot::Change(i) => {
                    let Some(d) = self.differences.get(*i) else { continue };
                    let side = if changes.contains(i) { &d.bad } else { &d.good };
                    out.extend(side.clone());
                }
            }
        }
        out
    }
}

/// Changes between two configurations, by name: value of the good one, value of the bad one. What describes the
/// compiler, or is text for people, is left out where `ignored` says so.
#[must_use]
pub fn configurations(
    good: &BTreeMap<String, String>,
    bad: &BTreeMap<String, String>,
    ignored: &dyn Fn(&str) -> bool,
) -> Vec<(String, Difference)> {
    let mut names: Vec<&String> = good.keys().chain(bad.keys()).collect();
    order::by(&mut names, Ord::cmp);
    names.dedup();
    names
        .into_iter()
        .filter(|name| !ignored(name) && good.get(*name) != bad.get(*name))
        .map(|name| {
            let set = |of: &BTreeMap<String, String>| {
                Some(format!("{name}={}", of.get(name).map_or("n", String::as_str)))
            };
            (name.clone(), Difference { good: set(good), bad: set(bad) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn titles(w: &Words) -> Vec<String> {
        w.differences.iter().map(Difference::title).collect()
    }

    #[test]
    fn what_both_have_is_no_change_and_two_values_of_a_name_are_one() {
        let w = words(&list("quiet preempt=none audit=0"), &list("audit=0 preempt=full nohz=off"));
        assert_eq!(
            titles(&w),
            ["preempt=full instead of preempt=none", "nohz=off", "without quiet"]
        );
        assert_eq!(w.with(&[]), list("audit=0 preempt=none quiet"));
        assert_eq!(w.with(&[0, 1, 2]), list("audit=0 preempt=full nohz=off"));
        assert_eq!(w.with(&[1]), list("audit=0 preempt=none nohz=off quiet"));
    }

    #[test]
    fn a_word_that_is_given_twice_is_two() {
        let w = words(&list("console=a"), &list("console=a console=b console=b"));
        assert_eq!(titles(&w), ["console=b", "console=b"]);
        assert_eq!(w.with(&[1]), list("console=a console=b"));
        assert!(words(&list("a b"), &list("b a")).differences.is_empty());
    }

    #[test]
    fn options_of_configurations_are_compared_by_name() {
        let config = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
        };
        let good = config(&[("HZ", "250"), ("SMP", "y"), ("CC_VERSION", "1")]);
        let bad = config(&[("HZ", "1000"), ("SMP", "y"), ("KASAN", "y"), ("CC_VERSION", "2")]);
        let all = configurations(&good, &bad, &|name| name.starts_with("CC_"));
        let titles: Vec<String> = all.iter().map(|(_, d)| d.title()).collect();
        assert_eq!(titles, ["HZ=1000 instead of HZ=250", "KASAN=y instead of KASAN=n"]);
    }
}
