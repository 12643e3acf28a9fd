// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of `docs` as the site has them: `README.md` is `index.md`, and links lead to what the site has.
//!
//! A file of the project that a page links to, such as an example in C, comes along; a folder or a page outside of `docs`
//! does not, and its name stays as text.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::markdown::code;

/// Where the page that the site's landing page stands in for is.
const CONTENTS: &str = "contents.md";
/// Where files of the project outside of `docs` are.
const FILES: &str = "files";

/// Where a page of `docs` is on the site.
pub(super) fn place(page: &str) -> String {
    match page {
        "README.md" => CONTENTS.to_owned(),
        _ => match page.strip_suffix("README.md") {
            Some(folder) if folder.ends_with('/') => format!("{folder}index.md"),
            _ => page.to_owned(),
        },
    }
}

/// The text of a page of `docs` for the site; files outside of `docs` that it links to are added to `files`.
pub(super) fn rewritten(
    project: &Path,
    page: &str,
    text: &str,
    files: &mut BTreeSet<String>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            out.push_str(line);
        } else {
            out.push_str(&of_line(project, page, line, files));
        }
    }
    out
}

fn of_line(project: &Path, page: &str, line: &str, files: &mut BTreeSet<String>) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, link)) = rest.split_once("](") {
        let Some((target, after)) = link.split_once(')') else { break };
        rest = after;
        match leads(project, page, target) {
            Link::Kept => out.push_str(&format!("{before}]({target})")),
            Link::Page(to) => out.push_str(&format!("{before}]({to})")),
            Link::File(name) => {
                out.push_str(&format!("{before}]({}{FILES}/{name})", up(page)));
                files.insert(name);
            }
            // Its words, and where it is among the sources.
            Link::Outside(name) => match before.rsplit_once('[') {
                Some((head, words)) => {
                    out.push_str(&format!("{head}{words} ({} of the sources)", code(&name)));
                }
                None => out.push_str(&format!("{before}]({target})")),
            },
        }
    }
    out.push_str(rest);
    out
}

enum Link {
    /// As it is.
    Kept,
    /// A page that is called otherwise on the site.
    Page(String),
    /// A file of the project.
    File(String),
    /// What the site has not.
    Outside(String),
}

fn leads(project: &Path, page: &str, target: &str) -> Link {
    if target.starts_with('#') || target.contains("://") || target.starts_with("mailto:") {
        return Link::Kept;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, format!("#{anchor}")),
        None => (target, String::new()),
    };
    let folder = Path::new("docs").join(page);
    let Some(full) = folder.parent().and_then(|f| plain(&f.join(path))) else { return Link::Kept };
    match full.strip_prefix("docs/") {
        Some("README.md") => Link::Page(format!("{}{CONTENTS}{anchor}", up(page))),
        Some(inside) if inside.ends_with("README.md") => {
            Link::Page(format!("{}{anchor}", path.replace("README.md", "index.md")))
        }
        Some(_) => Link::Kept,
        None if project.join(&full).is_file() && !full.ends_with(".md") => Link::File(full),
        None => Link::Outside(full),
    }
}

/// `../` for each folder that a page is in.
fn up(page: &str) -> String {
    "../".repeat(page.matches('/').count())
}

/// Without `..`; nothing where it leaves the project.
fn plain(path: &Path) -> Option<String> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !out.pop() => return None,
            Component::Normal(name) => out.push(name),
            _ => {}
        }
    }
    Some(out.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn links_lead_to_what_the_site_has() {
        let project = root::project().unwrap();
        let mut files = BTreeSet::new();
        let page = "[a](../README.md) [b](x.md#y) [c](../../include/tailbound.h)\n\
                    ```\n[d](../README.md)\n```\n[e](../../python) [f](../results/README.md#z) [g](https://h.invalid/)\n";
        let made = rewritten(&project, "probes/p.md", page, &mut files);
        let expected = "[a](../contents.md) [b](x.md#y) [c](../files/include/tailbound.h)\n\
                    ```\n[d](../README.md)\n```\ne (`python` of the sources) [f](../results/index.md#z) [g](https://h.invalid/)\n";
        assert_eq!(made, expected);
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["include/tailbound.h"]);
        assert_eq!(place("results/README.md"), "results/index.md");
    }
}
