// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a page of the site says of one id: whoever owns a catalogue makes these of it.
//!
//! Text is plain, with code in backquotes. Not here: the pages themselves (`xtask/src/site`), links to them
//! (`tailbound-report`).

use serde::Serialize;

use crate::blame::{Cause, KernelKind, Remedy};
use crate::finding_kinds::{self, IdForm};
use crate::rules::Rule;

/// What an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// What is measured.
    Probe,
    /// What the machine is loaded with.
    Load,
    /// What `tailbound check` looks for.
    Check,
    /// What a real-time program must not do.
    Rule,
    /// Something noticed in a run.
    Finding,
    /// What a part of a latency went to.
    Cause,
    /// Why no bound is given.
    NoBound,
    /// The answer of a run.
    Outcome,
    /// What a finding does to the answer.
    Impact,
}

impl Subject {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Probe,
        Self::Load,
        Self::Check,
        Self::Rule,
        Self::Finding,
        Self::Cause,
        Self::NoBound,
        Self::Outcome,
        Self::Impact,
    ];

    /// The folder of their pages.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Load => "load",
            Self::Check => "check",
            Self::Rule => "rule",
            Self::Finding => "finding",
            Self::Cause => "cause",
            Self::NoBound => "no-bound",
            Self::Outcome => "outcome",
            Self::Impact => "impact",
        }
    }
}

/// What there is to say of an id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdPage {
    /// What it names.
    pub subject: Subject,
    /// The id.
    pub id: String,
    /// What it belongs to among those of its subject; empty where they are not grouped.
    pub group: String,
    /// What it is, in a line.
    pub about: String,
    /// More, each under a title.
    pub sections: Vec<IdSection>,
}

/// A part of a page under a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdSection {
    /// The title.
    pub title: String,
    /// What stands there.
    pub content: IdContent,
}

/// The form of a part of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdContent {
    /// A sentence or more.
    Text(String),
    /// A command, or several.
    Command(String),
    /// A name and what it means, in each row.
    Names(Vec<(String, String)>),
    /// Another id that it has to do with.
    See(Subject, String),
}

impl IdPage {
    /// The page about `id`.
    #[must_use]
    pub fn new(subject: Subject, id: &str, about: &str) -> Self {
        let group = String::new();
        Self { subject, id: id.to_owned(), group, about: about.to_owned(), sections: Vec::new() }
    }

    /// What it belongs to.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        group.clone_into(&mut self.group);
        self
    }

    /// Adds a part, except of an empty text.
    #[must_use]
    pub fn with(mut self, title: &str, content: IdContent) -> Self {
        let is_empty = match &content {
            IdContent::Text(text) | IdContent::Command(text) => text.is_empty(),
            IdContent::Names(rows) => rows.is_empty(),
            IdContent::See(..) => false,
        };
        if !is_empty {
            self.sections.push(IdSection { title: title.to_owned(), content });
        }
        self
    }

    /// Adds a sentence, if there is one.
    #[must_use]
    pub fn text(self, title: &str, text: &str) -> Self {
        self.with(title, IdContent::Text(text.to_owned()))
    }

    /// Adds what to do, with the check that looks for it and the setting that changes it.
    #[must_use]
    fn remedy(self, title: &str, remedy: &Remedy) -> Self {
        let setting =
            remedy.setting.map_or_else(String::new, |s| format!("tailbound tune set {s}"));
        let page = self.text(title, remedy.text);
        let page = match remedy.check {
            Some(check) => page.with("Look", IdContent::See(Subject::Check, check.to_owned())),
            None => page,
        };
        page.with("Change", IdContent::Command(setting))
    }

    /// Its place below the site's address.
    #[must_use]
    pub fn path(&self) -> String {
        format!("ids/{}/{}.html", self.subject.folder(), self.id)
    }
}

/// The pages about findings.
#[must_use]
pub fn of_findings() -> Vec<IdPage> {
    let all = finding_kinds::GROUPS.iter().flat_map(|(group, kinds)| {
        kinds.iter().map(|kind| {
            let id = match kind.form {
                IdForm::Whole => "",
                IdForm::Numbered => {
                    "Behind it stands which thread, CPU, task or clock it is about."
                }
            };
            let seen = "Depends on what was seen: the report says it.";
            let meaning = if kind.meaning.is_empty() { seen } else { kind.meaning };
            IdPage::new(Subject::Finding, kind.id, kind.about)
                .group(group)
                .text("The id", id)
                .text("What it means", meaning)
                .text("What to do", kind.remedy)
        })
    });
    all.collect()
}

/// The pages about what a part of a latency went to.
#[must_use]
pub fn of_causes() -> Vec<IdPage> {
    let all = Cause::WORDS.iter().map(|word| {
        let cause = Cause::of(word);
        let page = IdPage::new(Subject::Cause, word, cause.about())
            .text("In an answer", &format!("{}.", cause.sentence("")));
        let of = |kernel| Remedy::of(cause, "", kernel);
        match (of(KernelKind::Stock), of(KernelKind::PreemptRt)) {
            (Some(stock), Some(rt)) if stock.text != rt.text => {
                page.remedy("What to do", &stock).text("What to do with PREEMPT_RT", rt.text)
            }
            (Some(remedy), _) => page.remedy("What to do", &remedy),
            (None, _) => page,
        }
    });
    all.collect()
}

/// The pages about rules for real-time programs.
#[must_use]
pub fn of_rules() -> Vec<IdPage> {
    let all = Rule::ALL.iter().map(|rule| {
        let page = IdPage::new(Subject::Rule, rule.as_str(), rule.about())
            .text("In an answer", &format!("{}.", rule.phrase()));
        match rule.remedy() {
            Some(remedy) => page.remedy("What to do", &remedy),
            None => page,
        }
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_says_something_and_has_a_place_of_its_own() {
        let all = [of_findings(), of_causes(), of_rules()].concat();
        for (i, page) in all.iter().enumerate() {
            assert!(page.about.ends_with('.'), "{}: {}", page.id, page.about);
            assert!(!page.sections.is_empty(), "{}", page.id);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(page.id.chars().all(plain), "{}", page.id);
            assert!(all.iter().skip(i + 1).all(|p| p.path() != page.path()), "{}", page.id);
        }
    }
}
