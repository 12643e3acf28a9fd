// SPDX-License-Identifier: MIT OR Apache-2.0
//! Default file names: they contain what was measured, and never collide (a taken one gets a number). A name that was given is used as it is, or refused before anything starts.
//!
//! Not here: writing (`input`), the words of a command line.

use std::path::{Path, PathBuf};

use crate::input;
use crate::say::Failure;

/// Suffixes that stay together.
const SUFFIXES: [&str; 2] = [".tailbound.jsonl", ".html"];

/// `path`, then the same with -2, -3, … before its suffix.
pub(crate) fn numbered(path: &Path) -> impl Iterator<Item = PathBuf> {
    let path = path.to_owned();
    let name = input::name(&path);
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
fn is_free(path: &Path) -> bool {
    path.symlink_metadata().is_err()
}

/// The first of them that is free, with the files of the same stem that would be written beside it
/// (`.html`, `.console`).
pub(crate) fn free(path: &Path, beside: &[&str]) -> PathBuf {
    let free =
        |p: &PathBuf| is_free(p) && beside.iter().all(|suffix| is_free(&input::sibling(p, suffix)));
    numbered(path).find(free).unwrap_or_else(|| path.to_owned())
}

/// Writes under the first free name, and says which it was.
pub(crate) fn write_free(path: &Path, text: &str) -> Result<PathBuf, Failure> {
    loop {
        let free = free(path, &[]);
        match input::write(&free, text, false) {
            // Somebody else took it meanwhile.
            Err(e) if is_free(&free) => return Err(e),
            Err(_) => {}
            Ok(()) => return Ok(free),
        }
    }
}

/// What can stand in the name of a file, of any text: `mqueue:between=processes` is
/// `mqueue-between=processes`.
pub(crate) fn plain(text: &str) -> String {
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

    #[test]
    fn taken_names_and_those_of_files_beside_them_are_passed_over() {
        let folder = std::env::temp_dir().join(format!("tailbound-names-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("r.tailbound.jsonl");
        std::fs::write(&path, "").unwrap();
        std::fs::write(folder.join("r-2.html"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.join("r-3.tailbound.jsonl")).unwrap();
        assert_eq!(free(&path, &[".html"]), folder.join("r-4.tailbound.jsonl"));
        assert_eq!(free(&path, &[]), folder.join("r-2.tailbound.jsonl"));
        let made = write_free(&path, "text").unwrap();
        assert_eq!(made, folder.join("r-2.tailbound.jsonl"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "", "nothing was overwritten");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
