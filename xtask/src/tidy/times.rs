// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the README says of how long `make test` takes is what its last whole run recorded.
//!
//! Context: COLD. `docs/times.json` is `target/xtask/times.json` of that run (`stages::times`).
//! Units: minutes, rounded up.

use serde_json::Value;

use super::finding::Finding;

/// What a whole run recorded.
const RECORD: &str = "docs/times.json";

/// Compares the README with `record`, the text of [`RECORD`].
pub(super) fn check(readme: &str, record: &str) -> Vec<Finding> {
    let rule = "times";
    let wall_s = serde_json::from_str::<Value>(record).ok().and_then(|all| all["wall_s"].as_u64());
    let Some(wall_s) = wall_s else {
        let instead = "copy target/xtask/times.json of a whole run of `make test` to it";
        return vec![Finding::new((RECORD, 1), rule, "has no `wall_s`".to_owned(), instead)];
    };
    let wanted = format!("`make test` takes {} minutes", wall_s.div_ceil(60));
    let words: Vec<&str> = readme.split_whitespace().collect();
    if words.join(" ").contains(&wanted) {
        return Vec::new();
    }
    let text = format!("does not say \"{wanted}\", as {RECORD} has it");
    vec![Finding::new(("README.md", 1), rule, text, "write it so")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_recorded_minutes() {
        let record = r#"{"wall_s": 2701, "stages": []}"#;
        assert!(
            check("On two cores `make test`\ntakes 46 minutes from nothing.", record).is_empty()
        );
        assert_eq!(check("`make test` takes 25 minutes", record).len(), 1);
        assert_eq!(check("`make test` takes 46 minutes", "{}").len(), 1);
    }
}
