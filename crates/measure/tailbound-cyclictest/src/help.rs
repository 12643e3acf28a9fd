// SPDX-License-Identifier: MIT OR Apache-2.0
//! The help, made from the table of options.

use std::fmt::Write as _;

use crate::option::{OPTIONS, Takes, Treatment};

/// Which program answers: cyclictest has no `--version`, and its help begins with one too.
const VERSION: &str = concat!("tailbound ", env!("CARGO_PKG_VERSION"), ", as cyclictest");

/// All that `--help` prints.
pub(crate) fn help() -> String {
    format!("{VERSION}\nUsage: tailbound cyclictest [OPTIONS]\n\n{}", options())
}

/// Options that are honoured, and those that are refused, each with its reason.
#[must_use]
pub fn options() -> String {
    let mut text = String::new();
    let parts = [
        (Treatment::Honoured, "Options:\n"),
        (Treatment::Refused, "\nRefused, because they cannot be honoured exactly:\n"),
    ];
    for (treatment, title) in parts {
        text.push_str(title);
        for option in OPTIONS.iter().filter(|o| o.treatment == treatment) {
            let short = option.short.map_or_else(|| "   ".to_owned(), |short| format!("-{short} "));
            let value = match option.takes {
                Takes::Nothing => String::new(),
                Takes::Value(value) => format!("={value}"),
                Takes::Maybe(value) => format!("[={value}]"),
            };
            let long = format!("--{}{value}", option.long);
            let _ = writeln!(text, "  {short}{long:<22} {}", option.about);
        }
    }
    text.push_str(
        "\nOutput and exit status are those of cyclictest. The run file lies beside the file of --json or --histfile \
         (FILE.tailbound.jsonl), or where TAILBOUND_CYCLICTEST_OUT says.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_says_which_program_and_version_answers() {
        let help = help();
        let mut lines = help.lines();
        let first = concat!("tailbound ", env!("CARGO_PKG_VERSION"), ", as cyclictest");
        assert_eq!(lines.next(), Some(first));
        assert!(lines.next().is_some_and(|line| line.starts_with("Usage: ")));
    }
}
