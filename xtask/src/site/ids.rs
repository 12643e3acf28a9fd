// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page for each id that an answer or a report shows, and one that lists those of each subject.

use super::facts::{Content, Id};
use super::manual::ManualPage;
use super::markdown::{block, cell, code, names, text};

/// What an id is of.
struct Subject {
    /// In paths, as `tailbound_core::id_page` has it.
    name: &'static str,
    /// What its ids are called together.
    all: &'static str,
    /// What one of them is called.
    one: &'static str,
    /// What they are.
    about: &'static str,
}

const fn subject(
    name: &'static str,
    all: &'static str,
    one: &'static str,
    about: &'static str,
) -> Subject {
    Subject { name, all, one, about }
}

const SUBJECTS: [Subject; 9] = [
    subject("probe", "Probes", "probe", "What `tailbound measure` and `run --probe` measure."),
    subject("load", "Loads", "load", "What `run --load` and `tailbound load` put on the machine."),
    subject("check", "Checks", "check", "What `tailbound check` looks for."),
    subject(
        "rule",
        "Rules",
        "rule",
        "What `tailbound watch --rules` looks for in a real-time program.",
    ),
    subject("finding", "Findings", "finding", "What a report says that it noticed."),
    subject("cause", "Causes", "cause", "What `tailbound blame` says that made a wake-up late."),
    subject(
        "no-bound",
        "Reasons against a bound",
        "reason against a bound",
        "Why `tailbound bound` gives none.",
    ),
    subject("outcome", "Answers", "answer", "The answer of a run in a word."),
    subject("impact", "Impacts", "impact of a finding", "What a finding does to the answer."),
];

fn known(name: &str) -> Option<&'static Subject> {
    SUBJECTS.iter().find(|subject| subject.name == name)
}

/// A word that more pages have means something else in most of them.
const PAGES_MAX: usize = 6;

/// The name of a subject's ids together.
pub(super) fn title(subject: &str) -> Option<&'static str> {
    known(subject).map(|subject| subject.all)
}

/// The source of an id's page.
pub(super) fn path(id: &Id) -> String {
    format!("ids/{}/{}.md", id.subject, id.id)
}

/// The source of the page that lists them.
pub(super) fn list_path(subject: &str) -> String {
    format!("ids/{subject}/index.md")
}

/// Path and text of every page about the ids of a subject, the list first.
pub(super) fn pages(subject: &str, ids: &[Id], manual: &[ManualPage]) -> Vec<(String, String)> {
    let own: Vec<&Id> = ids.iter().filter(|id| id.subject == subject).collect();
    let mut all = vec![(list_path(subject), list(subject, &own))];
    all.extend(own.iter().map(|id| (path(id), page(id, manual))));
    all
}

fn list(subject: &str, ids: &[&Id]) -> String {
    let (title, what) = known(subject).map_or((subject, ""), |known| (known.all, known.about));
    let mut out = format!("# {title}\n\n{what}\n");
    let mut groups: Vec<&str> = Vec::new();
    for id in ids {
        if !groups.contains(&id.group.as_str()) {
            groups.push(&id.group);
        }
    }
    for group in groups {
        if !group.is_empty() {
            out.push_str(&format!("\n## {group}\n"));
        }
        let own = ids.iter().filter(|id| id.group == group);
        let rows = own.map(|id| (format!("[{}]({}.md)", code(&id.id), id.id), cell(&id.about)));
        out.push_str(&format!("\n{}", names(["id", "what it is"], rows)));
    }
    out
}

fn page(id: &Id, manual: &[ManualPage]) -> String {
    let kind = known(&id.subject).map_or("", |subject| subject.one);
    let mut out = format!("# {}\n\n*{kind}*\n\n{}\n", code(&id.id), text(&id.about));
    for section in &id.sections {
        out.push_str(&format!("\n## {}\n\n", text(&section.title)));
        match &section.content {
            Content::Text(words) => out.push_str(&format!("{}\n", text(words))),
            Content::Command(command) => out.push_str(&block("text", command)),
            Content::Names(rows) => {
                let rows = rows.iter().map(|(name, what)| (code(name), cell(what)));
                out.push_str(&names(["name", "what it does"], rows));
            }
            Content::See(subject, other) => {
                out.push_str(&format!("[{}](../{subject}/{other}.md)\n", code(other)));
            }
        }
    }
    let naming: Vec<String> = manual.iter().filter_map(|page| page.naming(&id.id)).collect();
    if (1..=PAGES_MAX).contains(&naming.len()) {
        out.push_str("\n## Read on\n\n");
        naming.iter().for_each(|link| out.push_str(&format!("- {link}\n")));
    }
    let all = title(&id.subject).unwrap_or("of these").to_lowercase();
    out.push_str(&format!("\n[All {all}](index.md)\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::super::facts::Section;
    use super::*;

    #[test]
    fn a_page_says_what_the_catalogue_says() {
        let content = Content::See("check".into(), "irq.affinity".into());
        let see = Section { title: "Look".into(), content };
        let one = Id {
            subject: "cause".into(),
            id: "interrupt".into(),
            group: String::new(),
            about: "A device's handler.".into(),
            sections: vec![see],
        };
        let made = pages("cause", &[one], &[]);
        assert_eq!(made[0].0, "ids/cause/index.md");
        assert!(made[0].1.contains("| [`interrupt`](interrupt.md) | A device's handler. |"));
        assert_eq!(made[1].0, "ids/cause/interrupt.md");
        assert!(made[1].1.contains("[`irq.affinity`](../check/irq.affinity.md)"));
    }
}
