// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page for each verb, from its definition: what `--help` and the man page say.

use super::facts::{Verb, VerbOption};
use super::markdown::{block, cell, code, names, paragraphs, text};

/// A verb's page: where it stands, its title, its text, and how deep below another verb it is.
#[derive(Debug)]
pub(super) struct VerbPage {
    pub(super) path: String,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) depth: usize,
}

/// The source of a verb's page; `words` are it and those above it.
pub(super) fn path(words: &[&str]) -> String {
    format!("verbs/{}.md", words.join("-"))
}

/// The pages of a verb and of those below it.
pub(super) fn pages(verb: &Verb) -> Vec<VerbPage> {
    let mut all = Vec::new();
    add(&mut all, &[], verb);
    all
}

fn add(all: &mut Vec<VerbPage>, above: &[&str], verb: &Verb) {
    let words: Vec<&str> = above.iter().copied().chain([verb.name.as_str()]).collect();
    let title = words.join(" ");
    all.push(VerbPage { path: path(&words), text: page(&words, verb), title, depth: above.len() });
    verb.verbs.iter().for_each(|below| add(all, &words, below));
}

fn page(words: &[&str], verb: &Verb) -> String {
    let mut out = format!("# tailbound {}\n\n{}", words.join(" "), paragraphs(&verb.long));
    out.push_str(&block("text", &verb.usage));
    if !verb.verbs.is_empty() {
        let rows = verb.verbs.iter().map(|below| {
            let target = path(&[words, &[below.name.as_str()]].concat());
            let target = target.trim_start_matches("verbs/");
            (format!("[{}]({target})", code(&below.name)), cell(&below.about))
        });
        out.push_str(&format!("\n{}", names(["command", "what it does"], rows)));
    }
    let mut groups: Vec<&str> = Vec::new();
    for option in &verb.options {
        if !groups.contains(&option.group.as_str()) {
            groups.push(&option.group);
        }
    }
    for group in groups {
        let head = if group.is_empty() { "Options" } else { group };
        let rows = verb.options.iter().filter(|o| o.group == group).map(row);
        let table = names(["option", "what it does"], rows);
        out.push_str(&format!("\n## {}\n\n{table}", text(head)));
    }
    if !verb.after.is_empty() {
        out.push_str(&format!("\n## More\n\n{}", paragraphs(&verb.after)));
    }
    out
}

fn row(option: &VerbOption) -> (String, String) {
    let mut about = cell(&option.about);
    if !option.words.is_empty() {
        about.push_str(&format!("<br>One of: {}", cell(&option.words.join("; "))));
    }
    if !option.default.is_empty() {
        about.push_str(&format!("<br>Default: {}", code(&option.default)));
    }
    (code(&option.written), about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_and_those_below_it_have_pages() {
        let option = VerbOption {
            written: "-D, --duration <TIME>".into(),
            about: "How long".into(),
            default: "1m".into(),
            words: Vec::new(),
            group: String::new(),
        };
        let below = Verb { name: "run".into(), options: vec![option], ..Verb::default() };
        let lab = Verb { name: "lab".into(), verbs: vec![below], ..Verb::default() };
        let made = pages(&lab);
        assert!(made[0].text.contains("[`run`](lab-run.md)"), "{}", made[0].text);
        let (path, depth) = (made[1].path.as_str(), made[1].depth);
        assert_eq!((path, depth, made[1].title.as_str()), ("verbs/lab-run.md", 1, "lab run"));
        let row = "| `-D, --duration <TIME>` | How long<br>Default: `1m` |";
        assert!(made[1].text.contains(row), "{}", made[1].text);
    }
}
