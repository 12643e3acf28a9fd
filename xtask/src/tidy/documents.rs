// SPDX-License-Identifier: MIT OR Apache-2.0
//! Documents deny no feature that exists, name no option that does not, and state the budgets that are enforced.
//!
//! The pages for users of other tools age fastest: a verb that is added makes "none" untrue, and no
//! test of the program reads them. Sources: `crates/tailbound/src/help.rs` for verbs, `cli*.rs` for options.
//! Not here: whether a command of a page works (the stage `commands`).

use std::collections::BTreeSet;

use super::edges::{DIRECT_MAX, LOCKED_MAX};
use super::files::File;
use super::finding::Finding;

/// A feature, by the source that has it, and what no page may say then.
const DENIALS: &[(&str, &[&str])] = &[
    (
        "crates/tailbound/src/cli_blame.rs",
        &[
            "no analysis",
            "no auto-analysis",
            "no stack trace",
            "no trace is saved",
            "no trace file",
            "use rtla to name",
        ],
    ),
    ("crates/measure/tailbound-run/src/instant.rs", &["the start cannot be chosen"]),
];

/// Pages whose tables have the options of another tool in the first column and ours in the second.
const FROM: &str = "docs/from-";

/// The page with the budgets of dependencies.
const RULES: &str = "CONTRIBUTING.md";

/// See the module.
pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|f| f.path == path).and_then(File::text);
    let verbs = verbs(text("crates/tailbound/src/help.rs").unwrap_or_default());
    let options = options(files);
    let mut found = Vec::new();
    for file in files.iter().filter(|f| is_page(&f.path)) {
        for (at, line) in (1..).zip(file.text().unwrap_or_default().lines()) {
            let mut say = |rule, why: String, remedy| {
                found.push(Finding::new((&file.path, at), rule, why, remedy));
            };
            let low = line.to_lowercase();
            for word in denied(&low, &verbs).filter(|word| text(word.1).is_some()) {
                let why = format!("\"{}\" is untrue: {} has it", word.0, word.1);
                say("denial", why, "Say how it is done here");
            }
            if !file.path.starts_with(FROM) {
                continue;
            }
            let ours = line.split('|').nth(2).unwrap_or_default();
            for name in long_options(ours).filter(|name| !options.contains(*name)) {
                say("option", format!("there is no option --{name}"), "Name the one there is");
            }
        }
    }
    if let Some(rules) = text(RULES) {
        let budgets = format!(
            "At most {DIRECT_MAX} external direct ones and {LOCKED_MAX} packages of others"
        );
        if !rules.contains(&budgets) {
            found.push(Finding::new(
                (RULES, 1),
                "budgets",
                "the budgets of dependencies are not those of xtask/src/tidy/edges.rs",
                format!("Write \"{budgets}\""),
            ));
        }
    }
    found
}

fn is_page(path: &str) -> bool {
    path.ends_with(".md") && (path.starts_with("docs/") || path == "README.md")
}

/// What a line denies, and the source that has it.
fn denied<'a>(
    line: &'a str,
    verbs: &'a [&'a str],
) -> impl Iterator<Item = (String, &'static str)> + 'a {
    const VERBS: &str = "crates/tailbound/src/help.rs";
    let listed = DENIALS.iter().flat_map(|(source, denials)| {
        denials.iter().map(move |denial| ((*denial).to_owned(), *source))
    });
    let of_verbs = verbs.iter().flat_map(|verb| {
        ["there is no `V`", "there is no `tailbound V`", "no verb `V`", "none: no `V`"]
            .map(|form| (form.replace('V', verb), VERBS))
    });
    listed.chain(of_verbs).filter(move |(denial, _)| line.contains(denial.as_str()))
}

/// The verbs of the help: quoted words of the lines with `verbs: &[`, and of the line after one that ends so.
fn verbs(help: &str) -> Vec<&str> {
    help.split("verbs: &[")
        .skip(1)
        .filter_map(|rest| rest.split(']').next())
        .flat_map(|list| list.split('"').skip(1).step_by(2))
        .collect()
}

/// Every long option that a definition of the command line, a probe or a load has, or might have.
fn options(files: &[File]) -> BTreeSet<String> {
    let mut out = BTreeSet::from(["help".to_owned(), "version".to_owned()]);
    let sources = |f: &&File| f.path.starts_with("crates/tailbound/src/cli") || is_probe(&f.path);
    for text in files.iter().filter(sources).filter_map(File::text) {
        let fields = text.split("pub(crate) ").skip(1).filter_map(|rest| {
            let name = rest.split(':').next()?;
            name.chars().all(|c| c.is_ascii_lowercase() || c == '_').then(|| name.replace('_', "-"))
        });
        out.extend(fields);
        out.extend(text.split('"').skip(1).step_by(2).map(str::to_owned));
    }
    out
}

fn is_probe(path: &str) -> bool {
    path.starts_with("crates/measure/tailbound-probe/src/") && path.ends_with(".rs")
}

/// The long options in a cell of a table, of which some are written with their value.
fn long_options(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).flat_map(|code| code.split([' ', '='])).filter_map(|word| {
        let name = word.strip_prefix("--")?.trim_end_matches(',');
        (!name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
            .then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(pages: &[(&str, &str)]) -> Vec<(usize, &'static str)> {
        let sources = [
            ("crates/tailbound/src/help.rs", "verbs: &[\"run\", \"watch\"] }"),
            (
                "crates/tailbound/src/cli_blame.rs",
                "pub(crate) worst: usize, #[arg(long = \"break\")]",
            ),
        ];
        let files: Vec<File> =
            sources.iter().chain(pages).map(|(path, text)| File::fake(path, text)).collect();
        check(&files).iter().map(|f| (f.line, f.rule)).collect()
    }

    #[test]
    fn a_page_denies_nothing_that_exists() {
        let page = "| `-s` | none: no stack traces | |\nThere is no `watch` here.\nthere is no `nosuch`\nthe start cannot be chosen\n";
        assert_eq!(rules(&[("docs/from-x.md", page)]), [(1, "denial"), (2, "denial")]);
        assert!(rules(&[("CHANGELOG.md", page)]).is_empty());
    }

    #[test]
    fn an_option_that_is_gone_is_found() {
        let page =
            "| `--theirs` | `-b TIME`, `--break` | |\n| `-w` | `--worst=3`, `--wurst 3` | |\n";
        assert_eq!(rules(&[("docs/from-x.md", page)]), [(2, "option")]);
        assert!(rules(&[("docs/x.md", page)]).is_empty());
    }

    #[test]
    fn budgets_are_those_that_are_enforced() {
        let old = "At most 3 external direct ones and 4 packages of others in the lock file";
        assert_eq!(rules(&[(RULES, old)]), [(1, "budgets")]);
    }
}
