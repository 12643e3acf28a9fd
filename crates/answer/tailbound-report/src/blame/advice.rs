// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to do about the culprits: a sentence each, and the commands that look for it, change it and
//! prove that the change helps.
//!
//! Source: docs/check.md, docs/tune.md (`tune auto` with `--set` alone measures the
//! machine with that setting against the untouched one, in turn).

use std::collections::BTreeSet;

use tailbound_core::blame::{BlameRecord, Culprit, KernelKind, Ranking, Remedy};

use super::rows;

/// What to do about one culprit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    /// The culprit in words.
    pub(super) about: String,
    /// What to do.
    pub(super) text: &'static str,
    /// The check that looks for it.
    pub(super) check: Option<&'static str>,
    /// What a command is for, and the command.
    pub(super) commands: Vec<(String, String)>,
}

/// Advice about the first `most` culprits for which there is any; no two are the same.
pub(super) fn advice(
    records: &[BlameRecord],
    ranking: &Ranking,
    kernel: KernelKind,
    most: usize,
) -> Vec<Advice> {
    let mut out: Vec<Advice> = Vec::new();
    let all = rows::ranked(ranking, usize::MAX);
    let remedies = all.iter().filter_map(|c| Some((c, Remedy::of(c.cause, &c.who, kernel)?)));
    for (culprit, remedy) in remedies {
        if out.len() < most && !out.iter().any(|a| a.text == remedy.text) {
            let commands = commands(&remedy, &on_cpus(records, culprit));
            let (about, check) = (rows::words(culprit), remedy.check);
            out.push(Advice { about, text: remedy.text, check, commands });
        }
    }
    out
}

/// The command against who was late most often: one that measures whether a setting helps, else one that looks for
/// the reason.
#[must_use]
pub(crate) fn command(records: &[BlameRecord], kernel: KernelKind) -> Option<String> {
    let ranking = Ranking::of(records);
    let first = rows::ranked(&ranking, 1).first()?;
    let remedy = Remedy::of(first.cause, &first.who, kernel)?;
    commands(&remedy, &on_cpus(records, first)).pop().map(|(_, command)| command)
}

/// ` -c 1,3`, the CPUs that `culprit` was late on; nothing where CPU 0 is among them, which `tune`
/// takes only when asked to, or where one is not known.
fn on_cpus(records: &[BlameRecord], culprit: &Culprit) -> String {
    let late = records.iter().filter(|r| r.parts.iter().any(|p| p.cause == culprit.cause));
    let cpus: Option<BTreeSet<u32>> = late.map(|r| r.cpu).collect();
    match cpus {
        Some(cpus) if !cpus.is_empty() && !cpus.contains(&0) => {
            let list: tailbound_core::CpuSet = cpus.into_iter().collect();
            format!(" -c {list}")
        }
        _ => String::new(),
    }
}

fn commands(remedy: &Remedy, cpus: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    if let Some(id) = remedy.check {
        out.push((format!("look at {id}"), format!("tailbound check --all{cpus}")));
    }
    if let Some(setting) = remedy.setting {
        out.push(("change it".to_owned(), format!("tailbound tune set {setting}{cpus}")));
        let prove = format!("tailbound tune auto --set {setting}{cpus} --no-apply");
        out.push(("prove it".to_owned(), prove));
    }
    out
}
