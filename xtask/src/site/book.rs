// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source of the book, as mdBook reads it: all pages in one folder, their order, and the settings.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

use super::chapters::{self, Chapter, ChapterPart};
use super::facts::{SiteFacts, Verb};
use super::manual::ManualPage;
use super::markdown::{cell, names};
use super::{ids, pages, verbs};

/// Where the landing page, the style and the chapters are.
const FOLDER: &str = "packaging/book";
/// Where the landing page lists the questions.
const QUESTIONS: &str = "<!-- questions -->\n";

const SETTINGS: &str = "\
[book]
title = \"Tailbound\"
description = \"How late can this Linux machine be?\"
language = \"en\"
src = \"src\"

[build]
create-missing = false
use-default-preprocessors = false

[output.html]
default-theme = \"light\"
preferred-dark-theme = \"navy\"
additional-css = [\"extra.css\"]
no-section-label = true
smart-punctuation = false
input-404 = \"\"

[output.html.fold]
enable = true
level = 0

[output.html.print]
enable = false

[output.html.playground]
runnable = false

[output.html.search]
limit-results = 20
boost-title = 4
heading-split-level = 2
";

/// One page of the book: where its source is, its title, how deep it stands below its chapter.
#[derive(Debug)]
struct Entry {
    path: String,
    title: String,
    depth: usize,
}

/// What is written, so that nothing is written twice or left out.
#[derive(Debug)]
struct Source<'a> {
    folder: &'a Path,
    written: Vec<String>,
}

impl Source<'_> {
    fn page(&mut self, path: &str, text: &str) -> anyhow::Result<()> {
        if self.written.iter().any(|p| p == path) {
            bail!("{path}: two pages have this name");
        }
        self.written.push(path.to_owned());
        file(&self.folder.join(path), text.as_bytes())
    }
}

/// Writes the source of the book; the pages of it.
pub(super) fn write(project: &Path, facts: &SiteFacts, to: &Path) -> anyhow::Result<Vec<String>> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    let mut source = Source { folder: &to.join("src"), written: Vec::new() };
    let chapters = chapters::read(project)?;
    all_have_a_place(&chapters, facts)?;
    let manual = documents(project, &mut source)?;
    let mut summary = "# Summary\n\n[Tailbound](index.md)\n\n".to_owned();
    let mut questions = String::new();
    for chapter in &chapters {
        let entries = entries(chapter, facts, &manual, &mut source)?;
        summary.push_str(&format!("- [{}]({})\n", chapter.title, chapter.path()));
        for e in &entries {
            let inset = "  ".repeat(e.depth + 1);
            summary.push_str(&format!("{inset}- [{}]({})\n", e.title, e.path));
        }
        source.page(&chapter.path(), &overview(chapter, facts, &entries))?;
        if facts.questions.iter().any(|q| q.title == chapter.title) {
            questions.push_str(&question(chapter, facts));
        }
    }
    summary.push_str("\n[All pages](contents.md)\n");
    let landing = fs::read_to_string(project.join(FOLDER).join("landing.md"))?;
    if !landing.contains(QUESTIONS) {
        bail!("{FOLDER}/landing.md has no line {QUESTIONS}");
    }
    source.page("index.md", &landing.replace(QUESTIONS, &questions))?;
    file(&to.join("src/SUMMARY.md"), summary.as_bytes())?;
    file(&to.join("book.toml"), SETTINGS.as_bytes())?;
    fs::copy(project.join(FOLDER).join("extra.css"), to.join("extra.css"))?;
    Ok(source.written)
}

fn file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

/// Every question of the help and every subject of ids is in a chapter.
fn all_have_a_place(chapters: &[Chapter], facts: &SiteFacts) -> anyhow::Result<()> {
    let parts: Vec<&ChapterPart> = chapters.iter().flat_map(|c| &c.parts).collect();
    for q in &facts.questions {
        let own = ChapterPart::Verbs(q.title.clone());
        if parts.iter().filter(|p| ***p == own).count() != 1 {
            bail!("{FOLDER}/chapters: `verbs {}` does not stand there once", q.title);
        }
    }
    let subjects: BTreeSet<&str> = facts.ids.iter().map(|id| id.subject.as_str()).collect();
    for subject in subjects {
        let own = ChapterPart::Ids(subject.to_owned());
        if parts.iter().filter(|p| ***p == own).count() != 1 || ids::title(subject).is_none() {
            bail!("{FOLDER}/chapters: `ids {subject}` does not stand there once");
        }
    }
    let grouped: Vec<&String> = facts.questions.iter().flat_map(|q| &q.verbs).collect();
    match facts.verbs.iter().find(|v| !grouped.contains(&&v.name)) {
        Some(verb) => bail!("no question of the help has the verb {}", verb.name),
        None => Ok(()),
    }
}

/// All of `docs`, and what it links to.
fn documents(project: &Path, source: &mut Source<'_>) -> anyhow::Result<Vec<ManualPage>> {
    let mut manual = Vec::new();
    let docs = project.join("docs");
    let mut files = BTreeSet::new();
    for path in chapters::files(&docs)? {
        let from = docs.join(&path);
        if path.ends_with(".md") {
            let text = fs::read_to_string(&from).with_context(|| from.display().to_string())?;
            let text = pages::rewritten(project, &path, &text, &mut files);
            let title = text.lines().find_map(|l| l.strip_prefix("# "));
            let title = title.with_context(|| format!("docs/{path} has no title"))?;
            let (path, title) = (pages::place(&path), title.replace(['`', '[', ']'], ""));
            source.page(&path, &text)?;
            manual.push(ManualPage { path, title, text });
        } else {
            file(&source.folder.join(&path), &fs::read(&from)?)?;
        }
    }
    for name in files {
        file(&source.folder.join("files").join(&name), &fs::read(project.join(&name))?)?;
    }
    Ok(manual)
}

/// What stands in a chapter, in its order; generated pages are written.
fn entries(
    chapter: &Chapter,
    facts: &SiteFacts,
    manual: &[ManualPage],
    source: &mut Source<'_>,
) -> anyhow::Result<Vec<Entry>> {
    let mut all = Vec::new();
    for part in &chapter.parts {
        match part {
            ChapterPart::Page(page) => {
                let path = pages::place(page);
                let title = manual.iter().find(|p| p.path == path).map(|p| p.title.clone());
                let depth = usize::from(page.contains('/') && !page.ends_with("/README.md"));
                let depth = depth.min(all.len());
                all.push(Entry { path, title: title.unwrap_or_default(), depth });
            }
            ChapterPart::Verbs(question) => {
                for verb in of_question(question, facts) {
                    for page in verbs::pages(verb) {
                        source.page(&page.path, &page.text)?;
                        let (path, title, depth) = (page.path, page.title, page.depth);
                        all.push(Entry { path, title, depth });
                    }
                }
            }
            ChapterPart::Ids(subject) => {
                let title = ids::title(subject).unwrap_or(subject);
                for (i, (path, text)) in
                    ids::pages(subject, &facts.ids, manual).into_iter().enumerate()
                {
                    source.page(&path, &text)?;
                    let name = path.rsplit('/').next().unwrap_or(&path).trim_end_matches(".md");
                    let title = if i == 0 { title } else { name }.to_owned();
                    all.push(Entry { path, title, depth: usize::from(i > 0) });
                }
            }
        }
    }
    Ok(all)
}

fn of_question<'a>(title: &str, facts: &'a SiteFacts) -> impl Iterator<Item = &'a Verb> {
    let names = facts.questions.iter().find(|q| q.title == title);
    let names: Vec<&str> = names.iter().flat_map(|q| &q.verbs).map(String::as_str).collect();
    names.into_iter().filter_map(|name| facts.verbs.iter().find(|v| v.name == name))
}

/// A chapter's own page: its verbs with what they do, and its pages.
fn overview(chapter: &Chapter, facts: &SiteFacts, entries: &[Entry]) -> String {
    let mut out = format!("# {}\n", chapter.title);
    for part in &chapter.parts {
        let ChapterPart::Verbs(title) = part else { continue };
        let head = if *title == chapter.title { "Commands" } else { title };
        let rows = of_question(title, facts).map(|verb| {
            let target = verbs::path(&[&verb.name]);
            (format!("[`tailbound {}`](../{target})", verb.name), cell(&verb.about))
        });
        let table = names(["command", "what it does"], rows);
        out.push_str(&format!("\n## {head}\n\n{table}"));
    }
    let of_verbs = |e: &&Entry| e.path.starts_with("verbs/") || e.depth > 0;
    let pages: Vec<&Entry> = entries.iter().filter(|e| !of_verbs(e)).collect();
    if !pages.is_empty() {
        out.push_str("\n## Pages\n\n");
        for e in pages {
            out.push_str(&format!("- [{}](../{})\n", e.title, e.path));
        }
    }
    out
}

/// A question on the landing page.
fn question(chapter: &Chapter, facts: &SiteFacts) -> String {
    let titles = chapter.parts.iter().filter_map(|part| match part {
        ChapterPart::Verbs(title) => Some(title.as_str()),
        _ => None,
    });
    let names: Vec<String> = titles
        .flat_map(|title| of_question(title, facts))
        .map(|verb| format!("[`{}`]({})", verb.name, verbs::path(&[&verb.name])))
        .collect();
    format!("- **[{}]({})** {}\n", chapter.title, chapter.path(), names.join(", "))
}
