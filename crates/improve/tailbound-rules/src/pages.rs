// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the site says of each check.

use tailbound_core::id_page::{IdContent, IdPage, Subject};

use crate::checks::catalogue;

/// What stands for what in the text of a fix.
const PLACES: &str =
    "`CPUS` are those for real-time work, `OTHERS` all others, `MASK` is the mask of the others.";

/// A page a check.
#[must_use]
pub fn pages() -> Vec<IdPage> {
    let all = catalogue().into_iter().map(|check| {
        let places = [("{rt}", "CPUS"), ("{hk}", "OTHERS"), ("{mask}", "MASK")];
        let command = |text: &str| {
            let filled =
                places.iter().fold(text.to_owned(), |t, (place, word)| t.replace(place, word));
            IdContent::Command(filled)
        };
        IdPage::new(Subject::Check, check.id, check.why)
            .group(check.group.title())
            .with("Look", command("tailbound check --all"))
            .with("Mend it until the next boot", command(check.now))
            .with("Mend it for good", command(check.for_good))
            .with("Take that back", command(check.undo))
            .text(
                "In these lines",
                if [check.now, check.for_good, check.undo].concat().contains('{') {
                    PLACES
                } else {
                    ""
                },
            )
            .text("Where the rule comes from", check.source)
    });
    all.collect()
}
