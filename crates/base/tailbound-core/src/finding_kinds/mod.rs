// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every finding there is, in words that hold for each of its kind: what reports print, and what the site's pages are made of.
//!
//! A meaning or a remedy stands here where it is always the same; the others are written where the finding is made, with
//! what was seen. Not here: figures of a run (`finding`).

mod lab;
mod machine;
mod probe;
mod run;
mod runfile;
mod source;
mod tracing;

/// What all findings of an id have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingKind {
    /// The id, or what it begins with.
    pub id: &'static str,
    /// Whether a finding's id goes on.
    pub form: IdForm,
    /// What was noticed, in a sentence without figures.
    pub about: &'static str,
    /// What it means for the figures; empty where that depends on what was seen.
    pub meaning: &'static str,
    /// What to do about it; empty where nothing is, or where it depends on what was seen.
    pub remedy: &'static str,
}

/// How the id of a finding is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdForm {
    /// It is the kind's.
    Whole,
    /// The kind's, and behind a hyphen which thread, CPU, task or clock it is about.
    Numbered,
}

impl FindingKind {
    const fn new(id: &'static str, about: &'static str) -> Self {
        Self { id, form: IdForm::Whole, about, meaning: "", remedy: "" }
    }

    const fn numbered(self) -> Self {
        Self { form: IdForm::Numbered, ..self }
    }

    const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    const fn remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    fn is_of(&self, id: &str) -> bool {
        let rest = id.strip_prefix(self.id);
        match self.form {
            IdForm::Whole => rest == Some(""),
            IdForm::Numbered => rest.is_some_and(|rest| rest.starts_with('-') && rest.len() > 1),
        }
    }
}

/// Groups of findings, each with what they are about.
pub const GROUPS: &[(&str, &[FindingKind])] = &[
    ("The machine", machine::KINDS),
    ("The run", run::KINDS),
    ("Tracing", tracing::KINDS),
    ("Probes", probe::KINDS),
    ("The lab", lab::KINDS),
    ("Files of other tools", source::KINDS),
    ("The run file", runfile::KINDS),
];

/// Every kind, group by group.
pub fn all() -> impl Iterator<Item = &'static FindingKind> {
    GROUPS.iter().flat_map(|(_, kinds)| kinds.iter())
}

/// The kind of a finding with this id; `None` for one of another version.
#[must_use]
pub fn of(id: &str) -> Option<&'static FindingKind> {
    all().find(|kind| kind.is_of(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinct_and_said_in_a_sentence() {
        for (i, kind) in all().enumerate() {
            assert!(all().skip(i + 1).all(|k| k.id != kind.id), "{}", kind.id);
            assert!(kind.about.ends_with('.') && !kind.about.contains('\n'), "{}", kind.id);
        }
    }

    #[test]
    fn a_finding_has_its_kind() {
        let id_of = |id| of(id).map(|kind| kind.id);
        assert_eq!(id_of("steal-time"), Some("steal-time"));
        assert_eq!(id_of("late-start-3"), Some("late-start"));
        assert_eq!(id_of("clock-back-across-boottime"), Some("clock-back"));
        for strange in ["steal-time-3", "late-start", "late-start-", "nosuch", ""] {
            assert_eq!(id_of(strange), None, "{strange}");
        }
    }
}
