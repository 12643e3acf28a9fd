// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds `docs/probes.md` to the catalogue: each probe beside a link to its page, every
//! program it replaces, and commands that the command line understands.
//!
//! `TAILBOUND_BLESS=1 cargo test -p tailbound --test cli probes_page` writes
//! the rows.

use std::path::{Path, PathBuf};

use tailbound_probe::CATALOGUE;

const BEGIN: &str = "<!-- probes: from the catalogue -->\n";
const END: &str = "<!-- end -->\n";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn pages() -> Vec<(String, String)> {
    let found = std::fs::read_dir(docs().join("probes")).expect("docs/probes").flatten();
    let mut pages: Vec<(String, String)> = found
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
        .map(|p| {
            let text = std::fs::read_to_string(&p).expect("a page");
            (p.file_name().expect("a name").to_string_lossy().into_owned(), text)
        })
        .collect();
    pages.sort();
    pages
}

/// The page that has a heading with the name of the probe, or a row of its own for it.
fn page(pages: &[(String, String)], name: &str) -> Option<String> {
    let row = format!("| `{name}` |");
    let about = |line: &str| {
        let heading = line.starts_with('#').then(|| line.trim_start_matches(['#', ' ', '`']));
        heading.and_then(|h| h.split([':', '`', ' ']).next()) == Some(name)
    };
    let heading = |text: &str| text.lines().any(about);
    // A table of probes, and not one that happens to begin with the same word.
    let listed =
        |text: &str| text.contains("\n| probe |") && text.lines().any(|l| l.starts_with(&row));
    let by_heading = pages.iter().find(|(_, text)| heading(text));
    let found = by_heading.or_else(|| pages.iter().find(|(_, text)| listed(text)))?;
    Some(found.0.clone())
}

#[test]
fn every_probe_is_named_beside_its_page() {
    let pages = pages();
    let mut rows = String::from("| page | probes |\n|---|---|\n");
    let mut without = Vec::new();
    let mut of_page: Vec<(String, Vec<String>)> = Vec::new();
    for kind in CATALOGUE {
        let Some(file) = page(&pages, kind.name) else {
            without.push(kind.name);
            continue;
        };
        let name = format!("`{}`", kind.name);
        match of_page.iter_mut().find(|(known, _)| *known == file) {
            Some((_, names)) => names.push(name),
            None => of_page.push((file, vec![name])),
        }
    }
    for (file, names) in of_page {
        let stem = file.trim_end_matches(".md");
        rows.push_str(&format!("| [{stem}](probes/{file}) | {} |\n", names.join(", ")));
    }
    assert!(without.is_empty(), "no heading in docs/probes/*.md for {without:?}");
    let path = docs().join("probes.md");
    let text = std::fs::read_to_string(&path).expect("docs/probes.md");
    let (head, rest) = text.split_once(BEGIN).expect("the mark of the table's begin");
    let (table, tail) = rest.split_once(END).expect("the mark of its end");
    if std::env::var_os("TAILBOUND_BLESS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{rows}{END}{tail}")).expect("docs/probes.md");
    } else {
        assert_eq!(table, rows, "TAILBOUND_BLESS=1 writes it");
    }
}

#[test]
fn every_program_replaced_is_named_there() {
    let text = std::fs::read_to_string(docs().join("probes.md")).expect("docs/probes.md");
    let missing: Vec<&str> = CATALOGUE
        .iter()
        .flat_map(|k| k.replaces)
        .filter(|program| {
            let word = program.rsplit(' ').next().unwrap_or(program);
            !text.contains(word)
        })
        .copied()
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn commands_of_the_pages_are_understood() {
    let mut texts = pages();
    for name in ["probes.md", "loads.md", "campaigns.md"] {
        if let Ok(text) = std::fs::read_to_string(docs().join(name)) {
            texts.push((name.to_owned(), text));
        }
    }
    for (file, text) in texts {
        for command in text.split('`').filter(|t| t.starts_with("tailbound ")) {
            // Placeholders and lines of a shell are for people.
            if command.contains(['…', '\n', '|', '\'', '"', '<', '[', '$', '>', '{'])
                || command.split(' ').any(|w| w.chars().all(|c| c.is_ascii_uppercase()))
            {
                continue;
            }
            let words = command.split_whitespace();
            if let Err(e) = tailbound::command().try_get_matches_from(words) {
                assert!(!e.use_stderr() || is_group(&e), "{file}: `{command}`: {e}");
            }
        }
    }
}

/// `tailbound lab kernel` names a group of verbs: that is no wrong command in a text.
fn is_group(e: &clap::Error) -> bool {
    use clap::error::ErrorKind;
    matches!(
        e.kind(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::MissingSubcommand
            | ErrorKind::MissingRequiredArgument
    )
}
