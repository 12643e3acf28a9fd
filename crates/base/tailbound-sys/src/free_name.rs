// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of files that nobody chose: they contain what was measured, and a taken one gets a number.
//!
//! Not here: writing (`new_file`).

use std::path::{Path, PathBuf};

/// Suffixes that stay together.
const SUFFIXES: [&str; 2] = [".tailbound.jsonl", ".html"];

/// `path`, then the same with -2, -3, … before its suffix.
pub fn numbered(path: &Path) -> impl Iterator<Item = PathBuf> {
    let path = path.to_owned();
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let known = SUFFIXES.into_iter().find(|s| name.ends_with(s)).map(str::len);
    let at = known.or_else(|| name.rsplit_once('.').map(|(_, end)| end.len() + 1)).unwrap_or(0);
    let (stem, suffix) = name.split_at(name.len() - at);
    let (stem, suffix) = (stem.to_owned(), suffix.to_owned());
    (1u32..).map(move |n| match n {
        1 => path.clone(),
        _ => path.with_file_name(format!("{stem}-{n}{suffix}")),
    })
}

/// Nothing is called so, not even a link to nothing.
#[must_use]
pub fn is_free(path: &Path) -> bool {
    path.symlink_metadata().is_err()
}

/// What can stand in the name of a file, of any text: `mqueue:between=processes` is
/// `mqueue-between=processes`.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(60) {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '=' | '+' => out.push(c),
            _ if out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    out.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_before_the_suffix() {
        let third = |p: &str| numbered(Path::new(p)).nth(2).unwrap().display().to_string();
        assert_eq!(
            third("a/lab-debian-6.12.tailbound.jsonl"),
            "a/lab-debian-6.12-3.tailbound.jsonl"
        );
        assert_eq!(third("b.html"), "b-3.html");
        assert_eq!(third("mckenney-2009.campaign"), "mckenney-2009-3.campaign");
        assert_eq!(third("matrix"), "matrix-3");
        assert_eq!(plain("mqueue:between=processes,hops=2"), "mqueue-between=processes-hops=2");
        assert_eq!(plain("../../etc/x y"), "etc-x-y");
    }
}
