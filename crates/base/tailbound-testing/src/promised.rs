// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of names that others rely on: what is on one stays, what is new is put on it.

use std::collections::BTreeSet;
use std::path::Path;

/// Compares what there is with the committed list of what was promised, a name a line, `# ` before a comment.
///
/// `TAILBOUND_BLESS=1` adds what is new. What is gone is taken off the list by hand, and the changelog says so.
///
/// # Panics
/// A name of the list is gone, or one that there is is not on it.
pub fn promised(list: &Path, now: &BTreeSet<String>) {
    let text = std::fs::read_to_string(list).unwrap_or_default();
    let (head, names): (Vec<&str>, Vec<&str>) =
        text.lines().filter(|l| !l.is_empty()).partition(|l| l.starts_with("# "));
    let names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
    let gone: Vec<&String> = names.difference(now).collect();
    assert!(
        gone.is_empty(),
        "{}: promised, and gone (docs/compatibility.md): {gone:#?}",
        list.display()
    );
    let new: Vec<&String> = now.difference(&names).collect();
    if !new.is_empty() && std::env::var_os("TAILBOUND_BLESS").is_some() {
        let lines = head.into_iter().map(str::to_owned).chain(now.iter().cloned());
        let text: String = lines.map(|line| line + "\n").collect();
        assert!(std::fs::write(list, text).is_ok(), "{} cannot be written", list.display());
        return;
    }
    assert!(new.is_empty(), "{}: TAILBOUND_BLESS=1 adds {new:#?}", list.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(list: &Path, names: &[&str]) -> bool {
        let names = names.iter().map(|n| (*n).to_owned()).collect();
        std::panic::catch_unwind(|| promised(list, &names)).is_ok()
    }

    #[test]
    fn what_is_gone_or_new_is_found() {
        let list = std::env::temp_dir().join(format!("promised-{}", std::process::id()));
        assert!(std::fs::write(&list, "# A list.\n#a\nb\n").is_ok());
        let came = [&["#a", "b"][..], &["#a"], &["#a", "b", "c"]].map(|names| tried(&list, names));
        assert!(std::fs::remove_file(&list).is_ok());
        assert_eq!(came, [true, false, std::env::var_os("TAILBOUND_BLESS").is_some()]);
    }
}
