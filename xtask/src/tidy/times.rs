// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the README says of how long its two commands take is what was recorded.
//!
//! `docs/times.json` is `target/xtask/times.json` of a whole run of `make test` (`stages::times`), with the times of both
//! commands from nothing: what `make test` installs comes before its stages.
//! Units: minutes, rounded up.

use serde_json::Value;

use super::finding::Finding;

/// What was recorded.
const RECORD: &str = "docs/times.json";

/// What is measured, and the record's word for it.
const COMMANDS: [(&str, &str); 2] =
    [("`make test` takes", "test_wall_s"), ("`make demo` takes", "demo_wall_s")];

/// Compares the README with `record`, the text of [`RECORD`].
pub(super) fn check(readme: &str, record: &str) -> Vec<Finding> {
    let rule = "times";
    let record: Option<Value> = serde_json::from_str(record).ok();
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for (words, key) in COMMANDS {
        let Some(wall_s) = record.as_ref().and_then(|all| all[key].as_u64()) else {
            let instead = "copy target/xtask/times.json of a whole run of `make test` to it, with `test_wall_s` and `demo_wall_s` of `time make test` and `time make demo`, each from nothing";
            found.push(Finding::new((RECORD, 1), rule, format!("has no `{key}`"), instead));
            continue;
        };
        let wanted = format!("{words} {} minutes", wall_s.div_ceil(60));
        if !readme.contains(&wanted) {
            let text = format!("does not say \"{wanted}\", as {RECORD} has it");
            found.push(Finding::new(("README.md", 1), rule, text, "write it so"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_recorded_minutes() {
        let record = r#"{"wall_s": 2601, "test_wall_s": 2701, "demo_wall_s": 230, "stages": []}"#;
        let demo = "`make demo` takes 4 minutes,";
        let both = format!("{demo} and `make test`\ntakes 46 minutes from nothing.");
        assert!(check(&both, record).is_empty());
        assert_eq!(check(&format!("{demo} `make test` takes 25 minutes"), record).len(), 1);
        assert_eq!(check("`make test` takes 46 minutes", record).len(), 1);
        assert_eq!(check(&both, "{}").len(), 2);
    }
}
