// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the site that was made holds together: every page is there, every link and anchor leads somewhere within it, and
//! nothing is loaded from elsewhere.
//!
//! Only what mdBook writes is read, which closes its quotes. A link that a reader may follow to another site is not
//! followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::chapters;

/// What a page has, and where it leads.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    ids: BTreeSet<String>,
    /// What a reader may follow.
    links: Vec<String>,
    /// What a browser loads by itself.
    loads: Vec<String>,
}

/// What is wrong with the site in `folder`, a line each; `pages` are its sources.
pub(super) fn all(folder: &Path, pages: &[String]) -> anyhow::Result<Vec<String>> {
    let files = chapters::files(folder)?;
    let there: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    let mut wrong = Vec::new();
    for page in pages {
        let made = page.strip_suffix(".md").map(|p| format!("{p}.html")).unwrap_or_default();
        if !there.contains(made.as_str()) {
            wrong.push(format!("{page}: it was not made"));
        }
    }
    let mut read = BTreeMap::new();
    for file in files.iter().filter(|f| f.ends_with(".html")) {
        let text = fs::read_to_string(folder.join(file)).with_context(|| file.clone())?;
        // mdBook's script asks a server about such an element as soon as it is loaded.
        if text.contains("class=\"playground") {
            wrong.push(format!("{file}: code of it would be run elsewhere"));
        }
        read.insert(file.as_str(), scanned(&text));
    }
    for (file, page) in &read {
        for link in &page.links {
            if let Some(why) = broken(file, link, &there, &read) {
                wrong.push(format!("{file}: {link}: {why}"));
            }
        }
        for target in &page.loads {
            if let Some(why) = broken(file, target, &there, &read) {
                wrong.push(format!("{file}: it loads {target}: {why}"));
            }
            if is_elsewhere(target) {
                wrong.push(format!("{file}: it loads {target}"));
            }
        }
    }
    for file in files.iter().filter(|f| f.ends_with(".css")) {
        let text = fs::read_to_string(folder.join(file)).with_context(|| file.clone())?;
        let targets = text.split("url(").skip(1).filter_map(|rest| rest.split(')').next());
        let targets = targets.map(|t| t.trim_matches(['"', '\'', ' ']));
        wrong.extend(targets.filter(|t| is_elsewhere(t)).map(|t| format!("{file}: it loads {t}")));
        if text.contains("@import") {
            wrong.push(format!("{file}: it imports another"));
        }
    }
    Ok(wrong)
}

fn is_elsewhere(target: &str) -> bool {
    target.starts_with("//") || (target.contains(':') && !target.starts_with("data:"))
}

fn broken(
    file: &str,
    link: &str,
    there: &BTreeSet<&str>,
    read: &BTreeMap<&str, Page>,
) -> Option<String> {
    if is_elsewhere(link) {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = resolved(file, path);
    if !there.contains(target.as_str()) {
        return Some(format!("there is no {target}"));
    }
    let is_there = |page: &Page| page.ids.contains(anchor);
    match read.get(target.as_str()) {
        Some(page) if !anchor.is_empty() && !is_there(page) => {
            Some(format!("{target} has no such heading"))
        }
        _ => None,
    }
}

/// A path as seen from `file`; a folder is its index.
fn resolved(file: &str, path: &str) -> String {
    if path.is_empty() {
        return file.to_owned();
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    if path.ends_with('/') || parts.is_empty() {
        parts.push("index.html");
    }
    parts.join("/")
}

fn scanned(html: &str) -> Page {
    let mut page = Page::default();
    let mut rest = html;
    while let Some((_, tag)) = rest.split_once('<') {
        rest = tag;
        if let Some(comment) = tag.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).collect();
        if name.is_empty() {
            continue;
        }
        let (attributes, after) = attributes(&tag[name.len()..]);
        rest = after;
        for (attribute, value) in attributes {
            match (name.as_str(), attribute) {
                (_, "id") => drop(page.ids.insert(value)),
                ("a", "href") => page.links.push(value),
                (_, "href" | "src" | "data" | "poster") => page.loads.push(value),
                _ => {}
            }
        }
        // What stands in it is no markup.
        if name == "script" || name == "style" {
            let end = format!("</{name}");
            rest = rest.split_once(&end).map_or("", |(_, after)| after);
        }
    }
    page
}

/// The attributes of a tag, and what follows it.
fn attributes(tag: &str) -> (Vec<(&str, String)>, &str) {
    let mut all = Vec::new();
    let mut rest = tag;
    loop {
        rest = rest.trim_start_matches([' ', '\n', '\t', '/']);
        if let Some(after) = rest.strip_prefix('>') {
            return (all, after);
        }
        let end = rest.find(['=', ' ', '\n', '\t', '>', '/']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if let Some(quoted) = after.strip_prefix("=\"") {
            let (value, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            all.push((name, value.replace("&amp;", "&").replace("%20", " ")));
            rest = after;
        } else if let Some(bare) = after.strip_prefix('=') {
            let end = bare.find([' ', '\n', '>']).unwrap_or(bare.len());
            let (value, after) = bare.split_at(end);
            all.push((name, value.to_owned()));
            rest = after;
        } else {
            rest = after;
        }
        if rest.is_empty() {
            return (all, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_is_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let page = |body: &str| format!("<html><head><link href=\"../a.css\"></head>{body}</html>");
        fs::create_dir_all(dir.path().join("b")).unwrap();
        let good = "<h1 id=\"x\">X</h1><a href=\"../c.html#y\">1</a><a href=#x>2</a><a href='?'>\
                    <a href=\"https://h.invalid/\">3</a><script>\"<a href='no.html'>\"</script>";
        let bad = "<!-- <a href=\"no\"> --><h1 id=\"y\">Y</h1><a class=\"k\" href=\"b/d.html\">1</a>\
                   <a href=\"b/a.html#no\">2</a><img src=\"//h.invalid/p\" alt=\"a>b\"/>";
        fs::write(dir.path().join("b/a.html"), page(&good.replace("<a href='?'>", ""))).unwrap();
        fs::write(dir.path().join("c.html"), page(bad)).unwrap();
        fs::write(dir.path().join("a.css"), "@font-face { src: url(\"http://h.invalid/f\") }")
            .unwrap();
        let wrong = all(dir.path(), &["c.md".into(), "e.md".into()]).unwrap();
        let expected = [
            "e.md: it was not made",
            "c.html: b/d.html: there is no b/d.html",
            "c.html: b/a.html#no: b/a.html has no such heading",
            "c.html: it loads //h.invalid/p",
            "a.css: it loads http://h.invalid/f",
        ];
        assert_eq!(wrong, expected);
    }
}
