// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every Rust file begins with, how long it may be, and where `unsafe` may stand.

use super::files::File;
use super::finding::Finding;

const SPDX: &str = "// SPDX-License-Identifier: MIT OR Apache-2.0";
const LINES_WARN: usize = 600;
const LINES_MAX: usize = 1000;

/// Folders with `unsafe` in them, and why.
const UNSAFE_HOMES: &[(&str, &str)] = &[
    ("firmware/box/", "registers and interrupts of a chip; another workspace"),
    ("crates/base/tailbound-sys/", "the home of system calls"),
    ("crates/measure/tailbound-capi/", "the border to C: raw pointers come in"),
    (
        "crates/lab/tailbound-paths/plugin/",
        "the border to QEMU, which loads it: raw pointers come in",
    ),
    ("crates/base/tailbound-rt/tests/link-probe/", "declares the two system calls without libc"),
];

/// All rules about one Rust file.
pub(crate) fn check(file: &File) -> Vec<Finding> {
    if file.extension() != "rs" || file.is_foreign() {
        return Vec::new();
    }
    let Some(text) = file.text() else {
        return Vec::new();
    };
    let mut found = header(&file.path, text);
    found.extend(length(&file.path, text));
    found.extend(unsafe_code(&file.path, text));
    found
}

/// Is it a test, an example, or a chore, rather than a part of a library?
fn is_library(path: &str) -> bool {
    path.starts_with("crates/")
        && path.contains("/tailbound-")
        && path.contains("/src/")
        && !path.contains("/tests/")
        && !path.ends_with("/tests.rs")
}

fn header(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if text.lines().next() != Some(SPDX) {
        found.push(Finding::new(
            (path, 1),
            "licence",
            "the first line is not the SPDX licence: a copied file must still say it",
            format!("Begin with `{SPDX}`"),
        ));
    }
    let mut lines = text.lines().skip_while(|l| l.starts_with("// ")).peekable();
    let header: Vec<&str> =
        std::iter::from_fn(|| lines.next_if(|l| l.starts_with("//!"))).collect();
    if header.is_empty() {
        found.push(Finding::new(
            (path, 2),
            "header",
            "no `//!` header: a reader must know what the file owns before its first line of code",
            "Write what it owns, `Context:` where it is HOT or SETUP, `Units:`, `Not here:`, `Source:`",
        ));
    } else if is_library(path) {
        let context = header.iter().find_map(|l| l.strip_prefix("//! Context:"));
        let known = |rest: &str| ["HOT", "SETUP", "COLD"].iter().any(|w| rest.contains(w));
        let (what, instead) = match context {
            Some(rest) if !known(rest) => (
                "the header's `Context:` has neither HOT, SETUP nor COLD: what may be done here depends on it",
                "Write one of them",
            ),
            Some(rest) if rest.trim_start().starts_with("COLD.") => {
                ("the header says COLD, which every file is that says nothing", "Leave it out")
            }
            _ => return found,
        };
        found.push(Finding::new((path, 2), "context", what, instead));
    }
    found
}

fn length(path: &str, text: &str) -> Option<Finding> {
    if path.contains("/tests/") || path.ends_with("/tests.rs") {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let opens_tests = |pair: &[&str]| pair == ["#[cfg(test)]", "mod tests {"];
    let n = lines.windows(2).position(opens_tests).unwrap_or(lines.len());
    let finding = |limit| {
        Finding::new(
            (path, n),
            "file-length",
            format!("{n} lines without tests, above {limit}: one idea per file"),
            "Split it by what the parts own",
        )
    };
    if n > LINES_MAX {
        Some(finding(LINES_MAX))
    } else if n > LINES_WARN {
        Some(finding(LINES_WARN).warning())
    } else {
        None
    }
}

fn unsafe_code(path: &str, text: &str) -> Vec<Finding> {
    if UNSAFE_HOMES.iter().any(|(home, _)| path.starts_with(home)) {
        return Vec::new();
    }
    // Put together here, so that this file does not find itself.
    let word = concat!("uns", "afe");
    let forms: Vec<String> = [" {", " fn", " impl", " extern", " trait"]
        .iter()
        .map(|after| format!("{word}{after}"))
        .chain([format!("#[{word}("), format!("expect({word}_code"), format!("allow({word}_code")])
        .collect();
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if forms.iter().any(|form| code.contains(form.as_str())) {
            found.push(Finding::new(
                (path, i + 1),
                word,
                format!("`{word}` outside tailbound-sys: it has one home, where it is reviewed"),
                "Call a safe function of tailbound-sys, or add one there",
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<String> {
        let found = check(&File::fake(path, text));
        found.iter().map(|f| format!("{}:{}", f.rule, f.warning)).collect()
    }

    #[test]
    fn headers_are_demanded_where_they_belong() {
        let good = format!("{SPDX}\n//! What.\n\nfn f() {{}}\n");
        assert!(rules("crates/base/tailbound-core/src/a.rs", &good).is_empty());
        let bare = "fn f() {}\n";
        let all = ["licence:false", "header:false"];
        assert_eq!(rules("crates/base/tailbound-core/src/a.rs", bare), all);
        assert_eq!(rules("fuzz/a.rs", bare), all);
        assert!(rules("tests/fixtures/a.rs", bare).is_empty());
        let with = |context: &str| {
            let text = format!("{SPDX}\n//! What.\n//! Context: {context}\n\nfn f() {{}}\n");
            rules("crates/base/tailbound-core/src/a.rs", &text)
        };
        for wrong in ["COLD. Units: ns.", "tests."] {
            assert_eq!(with(wrong), ["context:false"], "{wrong}");
        }
        for right in ["HOT.", "SETUP, COLD.", "COLD while it measures."] {
            assert!(with(right).is_empty(), "{right}");
        }
    }

    #[test]
    fn length_counts_code_only() {
        let head = format!("{SPDX}\n//! What.\n");
        let with_tests = format!("{head}#[cfg(test)]\nmod tests {{\n{}", "x\n".repeat(2000));
        assert!(rules("xtask/src/a.rs", &with_tests).is_empty());
        let long = format!("{head}{}", "x\n".repeat(700));
        assert_eq!(rules("xtask/src/a.rs", &long), ["file-length:true"]);
        let longer = format!("{head}{}", "x\n".repeat(1000));
        assert_eq!(rules("xtask/src/a.rs", &longer), ["file-length:false"]);
        assert!(rules("crates/base/tailbound-rt/tests/a.rs", &longer).is_empty());
    }

    #[test]
    fn unsafe_has_one_home() {
        let word = concat!("uns", "afe");
        let text = format!("{SPDX}\n//! What.\n{word} {{ f() }}\n");
        assert_eq!(
            rules("crates/measure/tailbound-load/src/a.rs", &text),
            [format!("{word}:false")]
        );
        assert!(rules("crates/base/tailbound-sys/src/a.rs", &text).is_empty());
        let comment = format!("{SPDX}\n//! What.\n// {word} {{\n");
        assert!(rules("crates/measure/tailbound-load/src/a.rs", &comment).is_empty());
    }
}
