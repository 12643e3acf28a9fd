// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chapters of the site and what is in each: `packaging/book/chapters`.
//!
//! A line at the margin is the title of a chapter. Below it, set in: a page of `docs`, a folder of pages (`results/`),
//! `verbs TITLE` for the verbs that the help lists under this title, `ids SUBJECT` for the pages about these ids.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Where the table stands.
const TABLE: &str = "packaging/book/chapters";

/// One chapter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chapter {
    pub(super) title: String,
    pub(super) parts: Vec<ChapterPart>,
}

/// What a chapter holds, in its order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChapterPart {
    /// A page, below `docs`.
    Page(String),
    /// The verbs of a question.
    Verbs(String),
    /// The ids of a subject.
    Ids(String),
}

impl Chapter {
    /// Its own page.
    pub(super) fn path(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = self.title.chars().map(plain).collect();
        format!("chapters/{}.md", name.trim_matches('-'))
    }
}

/// All chapters, with folders taken apart; every page of `docs` is in one of them, once.
pub(super) fn read(project: &Path) -> anyhow::Result<Vec<Chapter>> {
    let text = std::fs::read_to_string(project.join(TABLE)).context(TABLE)?;
    let there = pages(&project.join("docs"))?;
    let all = parsed(&text, &there)?;
    let mut left: BTreeSet<&str> = there.iter().map(String::as_str).collect();
    for part in all.iter().flat_map(|c| &c.parts) {
        match part {
            ChapterPart::Page(page) if !left.remove(page.as_str()) => {
                bail!("{TABLE}: docs/{page} does not exist, or stands there twice");
            }
            _ => {}
        }
    }
    // Every other page is linked from there: `contents.md`.
    left.remove("README.md");
    if !left.is_empty() {
        let left: Vec<&str> = left.into_iter().collect();
        bail!("{TABLE}: no chapter has {}", left.join(", "));
    }
    Ok(all)
}

fn parsed(text: &str, there: &[String]) -> anyhow::Result<Vec<Chapter>> {
    let mut all: Vec<Chapter> = Vec::new();
    for line in text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')) {
        let Some(item) = line.strip_prefix("  ").map(str::trim) else {
            all.push(Chapter { title: line.trim().to_owned(), parts: Vec::new() });
            continue;
        };
        let chapter =
            all.last_mut().with_context(|| format!("{TABLE}: `{item}` has no chapter"))?;
        if let Some(title) = item.strip_prefix("verbs ") {
            chapter.parts.push(ChapterPart::Verbs(title.to_owned()));
        } else if let Some(subject) = item.strip_prefix("ids ") {
            chapter.parts.push(ChapterPart::Ids(subject.to_owned()));
        } else if item.ends_with('/') {
            let mut inside: Vec<&String> = there.iter().filter(|p| p.starts_with(item)).collect();
            inside.sort_by_key(|p| (!p.ends_with("/README.md"), *p));
            chapter.parts.extend(inside.into_iter().cloned().map(ChapterPart::Page));
        } else {
            chapter.parts.push(ChapterPart::Page(item.to_owned()));
        }
    }
    Ok(all)
}

/// Every page below a folder, as its path in it.
pub(super) fn pages(folder: &Path) -> anyhow::Result<Vec<String>> {
    let all = files(folder)?.into_iter();
    Ok(all.filter(|path| path.ends_with(".md")).collect())
}

/// Every file below a folder, as its path in it.
pub(super) fn files(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut folders: Vec<PathBuf> = vec![folder.to_path_buf()];
    let mut all = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(within) = path.strip_prefix(folder) {
                all.push(within.display().to_string());
            }
        }
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn no_page_of_the_documentation_is_missing() {
        read(&root::project().unwrap()).unwrap();
    }

    #[test]
    fn a_table_is_read_and_what_is_wrong_with_it_said() {
        let there = ["a.md", "r/README.md", "r/b.md", "r/A.md"].map(str::to_owned);
        let text = "# comment\nBegin\n  a.md\n  r/\n\nHow late?\n  verbs How late?\n  ids probe\n";
        let all = parsed(text, &there).unwrap();
        let page = |p: &str| ChapterPart::Page(p.to_owned());
        let parts = [page("a.md"), page("r/README.md"), page("r/A.md"), page("r/b.md")];
        assert_eq!(all[0].parts, parts);
        assert_eq!(
            all[1].parts,
            [ChapterPart::Verbs("How late?".into()), ChapterPart::Ids("probe".into())]
        );
        assert_eq!(all[1].path(), "chapters/how-late.md");
        assert!(parsed("  a.md\n", &there).is_err());
    }
}
