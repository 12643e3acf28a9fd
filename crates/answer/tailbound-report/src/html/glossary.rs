// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terms that a page uses, with their meanings, at its end: those of `docs/glossary.md`, which is
//! compiled in, so that there is one source and the page needs no other file.
//!
//! Not here: the meanings themselves.

use std::fmt::Write as _;

use crate::escape::xml;

const GLOSSARY: &str = include_str!("../../../../../docs/glossary.md");

/// Terms of reports, each with what a page that uses it contains in lower case.
const TERMS: [(&str, &str); 17] = [
    ("activation", "activation"),
    ("autocorrelation factor", "autocorrelation"),
    ("batch means", "batch means"),
    ("benchmark", "benchmark"),
    ("bound", "bound"),
    ("culprit", "culprit"),
    ("deadline", "deadline"),
    ("due time", "due"),
    ("exceedance", "exceedance"),
    ("finding", "finding"),
    ("latency", "laten"),
    ("load", "load"),
    ("missed activation", "missed"),
    ("percentile", "quantile"),
    ("steal time", "steal"),
    ("virtual time", "virtual time"),
    ("warm-up", "warm-up"),
];

/// Term and meaning of each row of a table in Markdown; the rest is passed over.
fn rows(markdown: &str) -> impl Iterator<Item = (&str, &str)> {
    markdown
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
        .filter(|(term, _)| *term != "term")
}

/// Markdown without its marks for code and emphasis.
fn plain(markdown: &str) -> String {
    markdown.replace(['`', '*'], "")
}

/// The terms that `body`, a page without its end, uses; nothing where it uses none.
pub(super) fn section(body: &str) -> String {
    let body = body.to_lowercase();
    let mut list = String::new();
    for (term, meaning) in rows(GLOSSARY) {
        if TERMS.iter().any(|(known, used)| *known == term && body.contains(used)) {
            let meaning = plain(meaning);
            let _ = write!(list, "<dt>{}</dt><dd>{}</dd>", xml(term), xml(&meaning));
        }
    }
    if list.is_empty() {
        return list;
    }
    format!(
        "<h2>Glossary</h2><details class=\"paper\"><summary>Terms of this page</summary>\
         <dl>{list}</dl></details>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_is_in_the_glossary_once() {
        for (term, used) in TERMS {
            let meanings: Vec<&str> =
                rows(GLOSSARY).filter(|(t, _)| *t == term).map(|(_, m)| m).collect();
            assert_eq!(meanings.len(), 1, "{term}");
            assert_eq!(used, used.to_lowercase(), "{term}");
            assert!(!plain(meanings[0]).contains(['`', '*']), "{term}");
        }
    }

    #[test]
    fn a_page_explains_what_it_uses_and_nothing_else() {
        let page = section("<p>3 activations were <b>missed</b>.</p>");
        assert!(page.contains("<dt>missed activation</dt>"), "{page}");
        assert!(page.contains("<dt>activation</dt>") && !page.contains("steal time"), "{page}");
        assert_eq!(section("<p>Nothing.</p>"), "");
    }
}
