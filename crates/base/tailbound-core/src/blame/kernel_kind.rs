// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kind of kernel a late wake-up is of: what can be advised depends on it.
//!
//! Source: scripts/mkcompile_h and init/Makefile (the version), print_trace_header in kernel/trace/trace.c and
//! preempt_model_str in kernel/sched/core.c (the preemption model above a trace).

use serde::Serialize;

use crate::facts::{Fact, Facts};

/// The preemption of a kernel, as far as advice depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelKind {
    /// Linux without PREEMPT_RT.
    Stock,
    /// Linux with PREEMPT_RT.
    PreemptRt,
    /// Nothing says which.
    #[default]
    Unknown,
}

impl KernelKind {
    /// By the facts of a machine, of a run or of this one.
    #[must_use]
    pub fn of_facts(machine: &Facts) -> Self {
        let text = |name: &str| machine.get(name).and_then(Fact::as_str);
        match text("kernel.preempt") {
            Some("rt") => Self::PreemptRt,
            Some(_) => Self::Stock,
            None => text("kernel.version").map_or(Self::Unknown, Self::of_version),
        }
    }

    /// By what `uname -v` prints: `#1 SMP PREEMPT_RT Debian 6.12.30-1`.
    #[must_use]
    pub fn of_version(version: &str) -> Self {
        let mut words = version.split_whitespace().peekable();
        if !words.peek().is_some_and(|first| first.starts_with('#')) {
            return Self::Unknown;
        }
        while let Some(word) = words.next() {
            // Until Linux 5.3 the patch wrote two words.
            let two = word == "PREEMPT" && words.peek() == Some(&"RT");
            if two || names_rt(word) {
                return Self::PreemptRt;
            }
        }
        Self::Stock
    }

    /// By the preemption model above a trace of the kernel `release`: `server`, `preempt`, `PREEMPT_{RT,(lazy)}`.
    #[must_use]
    pub fn of_model(model: &str, release: Option<&str>) -> Self {
        let first = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-';
        match model.split(first).next().unwrap_or("") {
            _ if names_rt(model) => Self::PreemptRt,
            // Until Linux 5.2 the patch wrote the same with PREEMPT_RT as without.
            "preempt" if release.is_none_or(is_of_the_patch) => Self::Unknown,
            "server" | "desktop" | "preempt" | "PREEMPT" => Self::Stock,
            _ => Self::Unknown,
        }
    }
}

/// `PREEMPT_RT`, `PREEMPT-RT`, `preempt_rt`, `PREEMPT_{RT,(full)}`
fn names_rt(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    let rest = word.strip_prefix("PREEMPT_").or_else(|| word.strip_prefix("PREEMPT-"));
    let rest = rest.map(|rest| rest.trim_start_matches('{'));
    rest.and_then(|rest| rest.strip_prefix("RT"))
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Does the release name the patch PREEMPT_RT: `4.19.94-rt39`, `4.19.0-9-rt-amd64`?
fn is_of_the_patch(release: &str) -> bool {
    release.split("-rt").skip(1).any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::KernelKind::{PreemptRt, Stock, Unknown};
    use super::*;

    #[test]
    fn versions_of_kernels_tell_which_they_are() {
        for (version, kind) in [
            ("#1 SMP PREEMPT_RT Debian 6.12.30-1 (2025-05-25)", PreemptRt),
            ("#1 SMP PREEMPT RT Debian 4.19.118-2 (2020-04-29)", PreemptRt),
            ("#1 SMP PREEMPT_{RT,(lazy)} Wed", PreemptRt),
            ("#1 SMP PREEMPT_DYNAMIC @0", Stock),
            ("#101-Ubuntu SMP Mon", Stock),
            ("6.12.30-rt", Unknown),
            ("", Unknown),
        ] {
            assert_eq!(KernelKind::of_version(version), kind, "{version}");
        }
    }

    #[test]
    fn the_line_above_a_trace_tells_which_it_is() {
        for (model, release, kind) in [
            ("preempt_rt", None, PreemptRt),
            ("PREEMPT_RT", Some("6.15.0"), PreemptRt),
            ("PREEMPT_{RT,(full)}", Some("6.15.0"), PreemptRt),
            ("PREEMPT(full)", Some("6.15.0"), Stock),
            ("desktop", Some("4.19.94-rt39"), Stock),
            ("preempt", Some("5.15.0"), Stock),
            ("preempt", Some("4.19.94-rt39"), Unknown),
            ("preempt", None, Unknown),
            ("unknown", None, Unknown),
            ("PREEMPT_RTX", None, Unknown),
        ] {
            assert_eq!(KernelKind::of_model(model, release), kind, "{model} {release:?}");
        }
    }

    #[test]
    fn facts_of_a_machine_tell_it_or_leave_it_open() {
        let of = |facts: &[(&str, Fact)]| {
            let facts = facts.iter().map(|(n, f)| ((*n).to_owned(), f.clone()));
            KernelKind::of_facts(&facts.collect())
        };
        assert_eq!(of(&[("kernel.preempt", Fact::of("rt"))]), PreemptRt);
        assert_eq!(of(&[("kernel.preempt", Fact::of("lazy"))]), Stock);
        let hidden = ("kernel.preempt", Fact::Unknown("hidden".to_owned()));
        assert_eq!(of(std::slice::from_ref(&hidden)), Unknown);
        let version = ("kernel.version", Fact::of("#1 SMP PREEMPT_RT Debian"));
        assert_eq!(of(&[hidden, version]), PreemptRt);
    }
}
