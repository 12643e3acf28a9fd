// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about any file: size, kind, white space, places of one machine, pages that must
//! work offline; the changelog, the size of the overview, of the manual, the tutorials and of the README, the
//! dates of results, and the README of each crate.

use super::files::File;
use super::finding::Finding;

const BLOB_MAX: usize = 512 << 10;

/// Words of a version's section of the changelog: a page, read in two minutes.
const CHANGELOG_WORDS_MAX: usize = 400;
/// Words of the overview: a quarter of an hour's reading. What is about one crate stands in its README.
const OVERVIEW_WORDS_MAX: usize = 3_500;
/// Words of the manual, which is `docs` without [`RESULTS`] and [`TUTORIALS`]: an afternoon's reading. The site's landing page is in
/// `packaging/book`, for it is no part of the manual.
const MANUAL_WORDS_MAX: usize = 60_000;
/// Words of all tutorials, and of one: ten minutes, with what it has people do.
const TUTORIALS_WORDS_MAX: usize = 5_000;
const TUTORIAL_WORDS_MAX: usize = 600;
/// Lines of the README: what a newcomer looks through.
const README_LINES_MAX: usize = 110;
/// The folder of what was measured. It may grow; each page says when.
const RESULTS: &str = "docs/results/";
/// The folder of what a newcomer does step by step.
const TUTORIALS: &str = "docs/tutorials/";
/// Lines of a page of results within which its date stands.
const DATE_WITHIN: usize = 6;

/// Files above the limit, and why.
const BLOBS: &[(&str, &str)] = &[];

/// Kinds of files that are never source.
const FORBIDDEN: &[&str] = &[
    "o", "a", "so", "rlib", "exe", "dll", "class", "pyc", "zip", "gz", "xz", "bz2", "zst", "tar",
    "7z", "deb", "rpm", "pem", "key", "p12", "orig", "rej", "bak", "swp", "tmp", "log", "pdf",
    "doc", "docx", "DS_Store",
];

/// Words of one machine or of one registry, written in halves so that this file passes itself.
const PLACES: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("crates", ".io"), "the name of a registry"),
    (concat!("docs", ".rs/"), "the name of a registry"),
    (concat!("static.rust", "-lang"), "the name of a registry"),
    (concat!("deb.debian", ".org"), "the name of a registry"),
    (concat!("registry.npm", "js"), "the name of a registry"),
    (concat!("pypi", ".org"), "the name of a registry"),
    (concat!("proxy.go", "lang"), "the name of a registry"),
];

/// All rules about one file.
pub(crate) fn check(file: &File) -> Vec<Finding> {
    let mut found = kind_and_size(file);
    if let Some(text) = file.text() {
        found.extend(places(file, text));
        if !file.is_foreign() {
            found.extend(white_space(&file.path, text));
            found.extend(offline(file, text));
        }
        if text.starts_with("#!") && !text.starts_with("#![") && !file.executable {
            found.push(Finding::new(
                (&file.path, 1),
                "executable",
                "a script that cannot be started",
                format!("chmod +x {}", file.path),
            ));
        }
    }
    found
}

fn kind_and_size(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    let path = file.path.as_str();
    if file.bytes.len() > BLOB_MAX && !BLOBS.iter().any(|(p, _)| *p == path) {
        found.push(Finding::new(
            (path, 1),
            "blob",
            format!(
                "{} KiB, above {}: every clone carries it for ever",
                file.bytes.len() >> 10,
                BLOB_MAX >> 10
            ),
            "Generate it, cut it down, or list it in xtask/src/tidy/text.rs with a reason",
        ));
    }
    let foreign_archive =
        file.is_foreign() && ["gz", "xz", "bz2", "zst"].contains(&file.extension());
    if FORBIDDEN.contains(&file.extension()) && !foreign_archive && !is_fixture_log(file) {
        found.push(Finding::new(
            (path, 1),
            "file-kind",
            format!("`.{}` files are not source", file.extension()),
            "Remove it, or add its pattern to .gitignore",
        ));
    }
    found
}

/// HdrHistogram logs are input of the importers.
fn is_fixture_log(file: &File) -> bool {
    file.is_foreign() && file.extension() == "log"
}

fn places(file: &File, text: &str) -> Vec<Finding> {
    // Cargo writes the registry's name there; its sources are checked with the edges.
    if file.path.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for (place, what) in PLACES {
            if line.match_indices(place).any(|(at, _)| begins_a_word(line, at)) {
                found.push(Finding::new(
                    (&file.path, i + 1),
                    "place",
                    format!("`{place}` is {what}: it means nothing elsewhere"),
                    "Use a relative path, or say it without the name",
                ));
            }
        }
    }
    found
}

/// A path such as `/sys/fs/cgroup/x` with the word inside is somebody else's.
fn begins_a_word(line: &str, at: usize) -> bool {
    if !line[at..].starts_with('/') {
        return true;
    }
    let before = line[..at].chars().next_back();
    !before.is_some_and(|c| c.is_alphanumeric() || "_-.}*".contains(c))
}

fn white_space(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut say = |line, why: &str, remedy: &str| {
        found.push(Finding::new((path, line), "white-space", why, remedy));
    };
    for (i, line) in text.split('\n').enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            say(
                i + 1,
                "white space at the end of the line: it makes noise in every diff",
                "Remove it",
            );
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        say(text.lines().count(), "no newline at the end of the file", "Add it");
    }
    if text.ends_with("\n\n") {
        say(text.lines().count(), "empty lines at the end of the file", "Remove them");
    }
    found
}

/// A report must open without a network, years later.
fn offline(file: &File, text: &str) -> Vec<Finding> {
    let assets = file.path.starts_with("crates/answer/tailbound-report/")
        && ["js", "css", "html", "svg"].contains(&file.extension());
    if !assets {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        // Names of XML vocabularies look like addresses, but nothing fetches them.
        let rest = line.replace("http://www.w3.org/", "");
        if ["http://", "https://", "@import", "src=\"//"].iter().any(|w| rest.contains(w)) {
            found.push(Finding::new(
                (&file.path, i + 1),
                "offline",
                "the report would fetch something: it must open without a network",
                "Put what is needed into the file",
            ));
        }
    }
    found
}

/// Rules about the changelog: `[Unreleased]` is there, and of each version a section that is read in two minutes.
pub(crate) fn changelog(text: &str) -> Vec<Finding> {
    let sections: Vec<&str> = text.split("\n## ").skip(1).collect();
    let finding =
        |why: String, remedy: &str| Finding::new(("CHANGELOG.md", 1), "changelog", why, remedy);
    let mut found = Vec::new();
    if !sections.iter().any(|s| s.starts_with("[Unreleased]")) {
        found.push(finding("no `## [Unreleased]`".to_owned(), "Add the section"));
    }
    for section in sections {
        let name = section.lines().next().unwrap_or_default();
        for title in ["### Formats", "### Numbers"].iter().filter(|t| !section.contains(**t)) {
            found.push(finding(
                format!("{name}: no `{title}`: readers of old files and figures look there first"),
                "Add the section, with `- None.` if there is nothing",
            ));
        }
        let words = section.split_whitespace().count();
        if words > CHANGELOG_WORDS_MAX {
            found.push(finding(
                format!("{name}: {words} words, at most {CHANGELOG_WORDS_MAX}: nobody reads more"),
                "Leave out what no user of an earlier version must know",
            ));
        }
    }
    found
}

/// The overview stays one that is read: `text` of ARCHITECTURE.md.
pub(crate) fn overview(text: &str) -> Option<Finding> {
    let words = text.split_whitespace().count();
    (words > OVERVIEW_WORDS_MAX).then(|| {
        Finding::new(
            ("ARCHITECTURE.md", 1),
            "overview",
            format!("{words} words, at most {OVERVIEW_WORDS_MAX}: nobody reads a longer overview"),
            "Move what is about one crate to the README.md of its folder",
        )
    })
}

/// The manual stays one that is read.
pub(crate) fn manual(files: &[File]) -> Option<Finding> {
    let elsewhere = |f: &File| [RESULTS, TUTORIALS].iter().any(|at| f.path.starts_with(at));
    let count: usize = files.iter().filter(|f| is_page(f) && !elsewhere(f)).map(words).sum();
    (count > MANUAL_WORDS_MAX).then(|| {
        Finding::new(
            ("docs/README.md", 1),
            "manual",
            format!(
                "docs without results and tutorials has {count} words, at most {MANUAL_WORDS_MAX}"
            ),
            "Say each thing once and link; move what was measured to docs/results, with its date",
        )
    })
}

/// Tutorials stay such that a person can finish one in ten minutes.
pub(crate) fn tutorials(files: &[File]) -> Vec<Finding> {
    let pages = || files.iter().filter(|f| is_page(f) && f.path.starts_with(TUTORIALS));
    let long = |path: &str, count: usize, most: usize| {
        (count > most).then(|| {
            Finding::new(
                (path, 1),
                "tutorials",
                format!("{count} words, at most {most}"),
                "Leave out what is no step; link the page that explains it",
            )
        })
    };
    let all: usize = pages().map(words).sum();
    let index = long("docs/tutorials/README.md", all, TUTORIALS_WORDS_MAX);
    index
        .into_iter()
        .chain(pages().filter_map(|f| long(&f.path, words(f), TUTORIAL_WORDS_MAX)))
        .collect()
}

fn words(file: &File) -> usize {
    file.text().unwrap_or_default().split_whitespace().count()
}

/// The README stays one that a newcomer looks through: `text` of README.md.
pub(crate) fn readme(text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > README_LINES_MAX).then(|| {
        Finding::new(
            ("README.md", 1),
            "readme",
            format!("{lines} lines, at most {README_LINES_MAX}"),
            "Move what is about one command to its page in docs",
        )
    })
}

/// Pages of results that do not say when their figures were measured.
pub(crate) fn results(files: &[File]) -> Vec<Finding> {
    let pages = files.iter().filter(|f| is_page(f) && f.path.starts_with(RESULTS));
    let dated = |f: &&File| {
        let lines = f.text().unwrap_or_default().lines().take(DATE_WITHIN);
        f.path.ends_with("/README.md") || lines.into_iter().any(has_date)
    };
    pages
        .filter(|f| !dated(f))
        .map(|f| {
            Finding::new(
                (&f.path, 1),
                "result-date",
                format!(
                    "no date in its first {DATE_WITHIN} lines: nobody knows of when its figures are"
                ),
                "Write `Measured on YYYY-MM-DD with COMMAND.` below the heading",
            )
        })
        .collect()
}

fn is_page(file: &File) -> bool {
    file.path.starts_with("docs/") && file.extension() == "md"
}

/// Whether a word of the line begins with a day, as in `2026-11-25`.
fn has_date(line: &str) -> bool {
    line.split_whitespace().any(|word| {
        let word = word.trim_start_matches(['(', '*']).as_bytes();
        let form = b"0000-00-00";
        word.len() >= form.len()
            && form
                .iter()
                .zip(word)
                .all(|(f, c)| if *f == b'-' { c == f } else { c.is_ascii_digit() })
    })
}

/// Crates whose folder has no README.
pub(crate) fn readmes(files: &[File]) -> Vec<Finding> {
    let has = |path: &str| files.iter().any(|f| f.path == path);
    let manifests = files.iter().filter_map(|f| f.path.strip_suffix("/Cargo.toml"));
    manifests
        .filter(|folder| *folder == "xtask" || is_crate(folder))
        .map(|folder| format!("{folder}/README.md"))
        .filter(|readme| !has(readme))
        .map(|readme| {
            Finding::new(
                (&readme, 1),
                "crate-readme",
                "a crate without a README: who changes it has to find out how it works from its code",
                "Write what it is, what it is not, its context, its main types, and the test of its invariant",
            )
        })
        .collect()
}

/// `crates/tailbound`, or a folder `tailbound-…` below one of the questions.
fn is_crate(folder: &str) -> bool {
    let Some(rest) = folder.strip_prefix("crates/") else { return false };
    match rest.split_once('/') {
        None => true,
        Some((_, name)) => name.starts_with("tailbound-") && !name.contains('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(&File::fake(path, text)).iter().map(|f| f.rule).collect()
    }

    #[test]
    fn places_of_one_machine_are_found() {
        for (place, _) in PLACES {
            assert_eq!(rules("docs/a.md", &format!("see {place}x\n")), ["place"], "{place}");
        }
        let inside = format!("cgroup{}x and /sys{}y\n", PLACES[1].0, PLACES[0].0);
        assert!(rules("docs/a.md", &inside).is_empty());
        assert!(rules("Cargo.lock", &format!("{}\n", PLACES[2].0)).is_empty());
    }

    #[test]
    fn white_space_kinds_and_blobs_are_found() {
        assert_eq!(rules("a.md", "x \n"), ["white-space"]);
        assert_eq!(rules("a.md", "x"), ["white-space"]);
        assert_eq!(rules("a.md", "x\r\n"), ["white-space"]);
        assert_eq!(rules("a.md", "x\n\n"), ["white-space"]);
        assert!(rules("tests/fixtures/a.txt", "x \n\n").is_empty());
        assert_eq!(rules("a.o", "x\n"), ["file-kind"]);
        assert_eq!(rules("run.log", "x\n"), ["file-kind"]);
        assert!(rules("tests/fixtures/hdr.log", "x\n").is_empty());
        assert_eq!(rules("a.txt", &"x\n".repeat(BLOB_MAX)), ["blob"]);
        assert_eq!(rules("tool", "#!/bin/sh\n"), ["executable"]);
        assert!(rules("a.rs", "#![no_std]\n").is_empty());
    }

    #[test]
    fn reports_stay_offline() {
        let asset = "crates/answer/tailbound-report/assets/a.js";
        assert_eq!(rules(asset, "import 'https://x.example/a.js'\n"), ["offline"]);
        assert!(rules(asset, "const ns = 'http://www.w3.org/2000/svg'\n").is_empty());
    }

    #[test]
    fn the_changelog_needs_its_sections() {
        let both = "### Formats\n\n### Numbers\n";
        let good = format!("# C\n\n## [Unreleased]\n\n{both}\n## [1.0]\n\n{both}");
        assert_eq!(changelog(&good), Vec::new());
        let old = format!("# C\n\n## [Unreleased]\n\n## [1.0]\n\n{both}");
        assert_eq!(changelog(&old).len(), 2);
        assert_eq!(changelog("# C\n").len(), 1);
        let long = format!("{good}{}", "word ".repeat(CHANGELOG_WORDS_MAX));
        assert_eq!(changelog(&long).len(), 1);
    }

    #[test]
    fn a_long_overview_is_found() {
        assert!(overview(&"word ".repeat(OVERVIEW_WORDS_MAX)).is_none());
        let long = overview(&"word\n".repeat(OVERVIEW_WORDS_MAX + 1));
        assert_eq!(long.map(|f| f.rule), Some("overview"));
    }

    #[test]
    fn a_long_manual_is_found_and_results_are_no_part_of_it() {
        let most = "word ".repeat(MANUAL_WORDS_MAX - 1);
        let manual = |more: &str, path: &str| {
            manual(&[File::fake("docs/a.md", &most), File::fake(path, more)]).map(|f| f.rule)
        };
        assert_eq!(manual("word\n", "docs/probes/b.md"), None);
        assert_eq!(manual("two words\n", "docs/probes/b.md"), Some("manual"));
        assert_eq!(manual("two words\n", "docs/results/b.md"), None);
        assert_eq!(manual("two words\n", "docs/tutorials/b.md"), None);
        assert_eq!(manual("two words\n", "docs/b.toml"), None);
        assert_eq!(manual("two words\n", "crates/a/README.md"), None);
    }

    #[test]
    fn a_long_tutorial_is_found_and_many_are() {
        let found = |pages: &[(&str, usize)]| {
            let fake = |(path, n): &(&str, usize)| File::fake(path, &"word ".repeat(*n));
            let files: Vec<File> = pages.iter().map(fake).collect();
            tutorials(&files).into_iter().map(|f| f.path).collect::<Vec<_>>()
        };
        let [a, most] = ["docs/tutorials/a.md", "docs/tutorials/b.md"];
        assert!(found(&[(a, TUTORIAL_WORDS_MAX), ("docs/b.md", 9_000)]).is_empty());
        assert_eq!(found(&[(a, TUTORIAL_WORDS_MAX + 1), (most, TUTORIAL_WORDS_MAX)]), [a]);
        let many = [(a, TUTORIAL_WORDS_MAX); TUTORIALS_WORDS_MAX / TUTORIAL_WORDS_MAX + 1];
        assert_eq!(found(&many), ["docs/tutorials/README.md"]);
    }

    #[test]
    fn a_long_readme_is_found() {
        assert!(readme(&"line\n".repeat(README_LINES_MAX)).is_none());
        let long = readme(&"line\n".repeat(README_LINES_MAX + 1));
        assert_eq!(long.map(|f| f.rule), Some("readme"));
    }

    #[test]
    fn results_without_a_date_are_found() {
        let found = |path: &str, text: &str| {
            results(&[File::fake(path, text)]).iter().map(|f| f.rule).collect::<Vec<_>>()
        };
        for dated in ["Measured on 2026-11-25.", "Measured on 2026-11-22 and later", "(2026-11-25)"]
        {
            assert!(found("docs/results/a.md", &format!("# A\n\n{dated}\n")).is_empty(), "{dated}");
        }
        for without in ["Measured in November.", "Kernel 2026-1-25", "6.12.117-2026-11-25", ""] {
            let text = format!("# A\n\n{without}\n");
            assert_eq!(found("docs/results/a.md", &text), ["result-date"], "{without}");
        }
        let late = format!("# A\n{}2026-11-25\n", "\n".repeat(DATE_WITHIN));
        assert_eq!(found("docs/results/a.md", &late), ["result-date"]);
        assert!(found("docs/results/README.md", "# Results\n").is_empty());
        assert!(found("docs/a.md", "# A\n").is_empty());
    }

    #[test]
    fn a_crate_without_a_readme_is_found() {
        let files = |paths: &[&str]| paths.iter().map(|p| File::fake(p, "")).collect::<Vec<_>>();
        let good = files(&[
            "Cargo.toml",
            "crates/a/Cargo.toml",
            "crates/a/README.md",
            "crates/a/tests/other/Cargo.toml",
            "xtask/Cargo.toml",
            "xtask/README.md",
        ]);
        assert!(readmes(&good).is_empty());
        let without =
            files(&["crates/a/Cargo.toml", "crates/a/tests/README.md", "xtask/Cargo.toml"]);
        let found: Vec<String> = readmes(&without).into_iter().map(|f| f.path).collect();
        assert_eq!(found, ["crates/a/README.md", "xtask/README.md"]);
    }
}
