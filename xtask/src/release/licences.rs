// SPDX-License-Identifier: MIT OR Apache-2.0
//! The licence texts of everything that is linked into the programs of an architecture, from its own sources: crates, what
//! they compile in, the standard library, the C library.
//!
//! A text that several have stands once, below all of their names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::linked::Linked;
use super::programs::Architecture;
use super::{Release, said};
use crate::exec;

/// What a file with a licence begins with, in capital letters.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

const LINE: &str =
    "================================================================================\n";

/// `THIRD-PARTY.txt`.
pub(super) fn text(
    release: &Release,
    architecture: &Architecture,
    linked: &Linked,
) -> anyhow::Result<String> {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut head = format!(
        "What is linked into tailbound {} for {}, beside its own code (MIT OR Apache-2.0).\n\n",
        release.version, architecture.name
    );
    for one in linked.crates.values().filter(|c| !c.is_ours()) {
        let texts = texts(&one.folder)?;
        let note = if texts.is_empty() { ", whose crate has no text of it" } else { "" };
        let licence = if one.licence.is_empty() { "in a file of its own" } else { &one.licence };
        head.push_str(&format!("{} {}: {licence}{note}\n", one.name, one.version));
        for (name, text) in texts {
            by_text.entry(text).or_default().push(format!("{} {}: {name}", one.name, one.version));
        }
    }
    for (name, licence, text) in libraries(release, architecture)? {
        head.push_str(&format!("{name}: {licence}\n"));
        by_text.entry(text).or_default().push(name);
    }
    // In the order of the first name of each.
    let mut sections: Vec<(Vec<String>, String)> =
        by_text.into_iter().map(|(t, n)| (n, t)).collect();
    sections.sort();
    for (names, text) in sections {
        head.push_str(&format!("\n{LINE}{}\n{LINE}\n{}\n", names.join("\n"), text.trim()));
    }
    Ok(head)
}

/// Name and text of each licence in a crate's folder, and of the libraries in folders below it.
fn texts(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for path in sorted(folder)? {
        if path.is_dir() {
            let below = sorted(&path)?.into_iter().filter(|p| is_licence(p) && !is_alternative(p));
            found.extend(below);
        } else if is_licence(&path) {
            found.push(path);
        }
    }
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        Ok((name, text))
    };
    found.into_iter().map(read).collect()
}

fn sorted(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    path.is_file() && NAMES.iter().any(|n| name.starts_with(n)) && !name.ends_with(".RS")
}

/// Zstandard may be had under the GPL too, which nobody chose.
fn is_alternative(path: &Path) -> bool {
    path.file_name().is_some_and(|n| n == "COPYING")
}

/// Rust's standard library and the C library.
fn libraries(
    release: &Release,
    architecture: &Architecture,
) -> anyhow::Result<Vec<(String, &'static str, String)>> {
    let rust = said(exec::command("rustc").arg("--version"))?;
    let sysroot = said(exec::command("rustc").args(["--print", "sysroot"]))?;
    let page = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    let text = match fs::read_to_string(&page) {
        Ok(html) => without_markup(&html),
        Err(_) => "The texts come with the compiler: share/doc/rust/COPYRIGHT-library.html.".into(),
    };
    let c = if architecture.target.triple().ends_with("musl") { "musl" } else { "glibc" };
    let note = release.project.join("packaging/licences").join(format!("{c}.txt"));
    let note = fs::read_to_string(&note).with_context(|| note.display().to_string())?;
    let licence = if c == "musl" { "MIT" } else { "LGPL-2.1-or-later" };
    Ok(vec![
        (format!("the standard library of {}", rust.trim()), "MIT OR Apache-2.0", text),
        (format!("{c}, the C library"), licence, note),
    ])
}

/// The text of a page of HTML, without empty lines in a row.
fn without_markup(html: &str) -> String {
    let body = html.split_once("<body").map_or(html, |(_, body)| body);
    let mut text = String::new();
    for (i, part) in body.split('<').enumerate() {
        text.push_str(if i == 0 { "" } else { part.split_once('>').map_or("", |(_, t)| t) });
    }
    for (code, sign) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
    {
        text = text.replace(code, sign);
    }
    let mut out = String::new();
    let mut empty = true;
    for line in text.lines().map(str::trim_end) {
        if !(line.trim().is_empty() && empty) {
            out.push_str(line);
            out.push('\n');
        }
        empty = line.trim().is_empty();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_found_in_a_crate_and_in_what_it_compiles() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            "LICENSE-MIT",
            "license.rs",
            "src/lib.rs",
            "zstd/LICENSE",
            "zstd/COPYING",
            "UNLICENSE",
        ];
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text\r\n").unwrap();
        }
        let found = texts(dir.path()).unwrap();
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["LICENSE-MIT", "UNLICENSE", "zstd/LICENSE"]);
        assert_eq!(found[0].1, "text\n");
    }

    #[test]
    fn a_page_becomes_its_text() {
        let page = "<html><head><title>x</title></head><body class=\"a\">\n\n\n<p>A &amp; B</p>\n\n\n&lt;c&gt;</body>";
        assert_eq!(without_markup(page), "A & B\n\n<c>\n");
    }
}
