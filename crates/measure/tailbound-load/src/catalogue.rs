// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every load, by name.
//!
//! Help texts and error messages are made of it, in this order.
//! Not here: what a load is (`kind`), its words, options and start (the file of each load).

use std::collections::BTreeSet;

use tailbound_core::plan::RunConfig;
use tailbound_core::{Spec, split_loads};

use crate::benchmarks::benchmark;
use crate::kind::LoadKind;

/// Every load there is.
pub static CATALOGUE: &[&LoadKind] = &[
    &crate::hackbench::KIND,
    &crate::memory::KIND,
    &crate::ping::KIND,
    &crate::spin::CLOCK,
    &crate::spin::CPU,
    &crate::fork::KIND,
    &crate::mmap::KIND,
    &crate::file::KIND,
    &crate::disk::KIND,
    &crate::compile::KIND,
    &crate::download::KIND,
    &crate::stress_ng::KIND,
    &crate::tlb::KIND,
    &crate::timers::KIND,
    &crate::interrupts::KIND,
    &crate::syscalls::KIND,
    &crate::calls::KIND,
    &crate::ping_pong::KIND,
    &crate::culprit::KIND,
    &crate::command::KIND,
];

/// The options of every load: when it works.
pub const PHASE: &[(&str, &str)] = &[
    ("from", "time of the measurement at which it begins (default 0s: it runs in the warm-up too)"),
    ("for", "how long it runs (default: to the end, or until `every` starts it again)"),
    ("every", "time from one start to the next: it runs repeatedly"),
];

/// The load of this name.
pub(crate) fn kind(name: &str) -> Option<&'static LoadKind> {
    CATALOGUE.iter().find(|k| k.name == name).copied()
}

/// The command that a load starts because somebody wrote it, and not because this program
/// chose it; `None` where there is none.
#[must_use]
pub fn command_of(spec: &Spec) -> Option<String> {
    kind(&spec.name)?.command?(spec)
}

/// Every command that `words` name, once: loads, benchmarks and commands in words. What cannot be read is refused
/// elsewhere, and not run.
#[must_use]
pub fn commands_in(words: &[&RunConfig]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for w in words {
        let loads = w.load.iter().flatten().flat_map(|l| split_loads(l));
        let loads = loads.filter_map(|l| l.parse::<Spec>().ok());
        let benchmarks = w.work.iter().flatten().filter_map(|t| benchmark(t).ok());
        all.extend(loads.chain(benchmarks).filter_map(|spec| command_of(&spec)));
        all.extend(w.load_cmd.iter().cloned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_starts_a_command_is_seen() {
        let words = RunConfig::parse(
            "load = [\"hackbench,cmd:line=touch /a\", \"compile:tree=/b\", \"cpu\"]\n\
             load-cmd = \"touch /c\"\nwork = [\"cmd:touch /d\", \"messages\", \"cmd:line=touch /e\"]",
        )
        .expect("words");
        let other = RunConfig { load: Some(vec!["compile:make=x".into()]), ..RunConfig::default() };
        let all: Vec<String> = commands_in(&[&words, &other]).into_iter().collect();
        let joined = all.join("\n");
        for sign in ["/a", "/b", "/c", "/d", "/e", "make x"] {
            assert!(joined.contains(sign), "{sign}: {joined}");
        }
        assert_eq!(all.len(), 6, "{joined}");
    }

    #[test]
    fn names_and_options_are_distinct_and_explained() {
        for (i, kind) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE.iter().skip(i + 1).all(|k| k.name != kind.name), "{}", kind.name);
            let options: Vec<_> = kind.options.iter().chain(PHASE).collect();
            for (j, option) in options.iter().enumerate() {
                assert!(options.iter().skip(j + 1).all(|o| o.0 != option.0), "{}", kind.name);
                assert!(!option.1.is_empty(), "{} {}", kind.name, option.0);
            }
        }
    }

    #[test]
    fn a_command_is_named_where_somebody_wrote_one() {
        let of = |text: &str| text.parse().ok().and_then(|spec| command_of(&spec));
        assert_eq!(of("cmd:repeat=yes,line=echo a,b=c").as_deref(), Some("echo a,b=c"));
        assert_eq!(of("compile:tree=/x,make=all").as_deref(), Some("make all (in /x)"));
        assert_eq!(of("compile:jobs=2"), None);
        assert_eq!(of("hackbench"), None);
    }
}
