// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links from a report to the pages of the site about the ids that it shows.
//!
//! Who compiles a program says where the site is; without an address no link is made and nothing else changes. A link
//! leads only to a page that the site has: an id of another version stays text.
//! Not here: the pages (`tailbound_core::id_page`, `xtask/src/site`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tailbound_core::id_page::{IdPage, of_causes, of_findings, of_rules};
use tailbound_core::{Impact, Outcome, finding_kinds};
use tailbound_stats::bound::Cause as Refusal;

pub use tailbound_core::id_page::Subject;

use crate::escape::xml;
use crate::label;

/// The pages about ids that this crate and those below it own.
#[must_use]
pub fn own_pages() -> Vec<IdPage> {
    let page = IdPage::new;
    let mut all = [of_rules(), of_findings(), of_causes()].concat();
    all.extend(Refusal::ALL.iter().map(|(_, id, about)| page(Subject::NoBound, id, about)));
    all.extend(Outcome::WORDS.iter().map(|word| {
        let outcome = Outcome::of(word);
        let status = format!("{}", outcome.exit_status());
        page(Subject::Outcome, word, outcome.about()).text("Exit status", &status)
    }));
    let impacts = Impact::WORDS.iter().map(|word| (word, Impact::of(word)));
    all.extend(impacts.map(|(word, i)| {
        page(Subject::Impact, word, i.about()).text("In a report", label::impact_meaning(i))
    }));
    all
}

/// The site of a program: its address and its pages.
#[derive(Debug)]
struct Site {
    /// Ends with a slash.
    address: String,
    pages: BTreeMap<(Subject, String), IdPage>,
}

/// Reports of a program all link to the same site, wherever they are made.
static SITE: OnceLock<Site> = OnceLock::new();

/// From now on reports link to `pages` below `address`; one that is no address of the web changes nothing, nor does a second.
pub fn link_to(address: &str, pages: Vec<IdPage>) {
    let address = address.trim();
    if !["https://", "http://"].iter().any(|scheme| address.starts_with(scheme)) {
        return;
    }
    let address = format!("{}/", address.trim_end_matches('/'));
    let pages = pages.into_iter().map(|p| ((p.subject, p.id.clone()), p)).collect();
    let _first = SITE.set(Site { address, pages });
}

/// Markup: `words`, as a link to the page about `id` where there is one.
#[must_use]
pub fn linked(subject: Subject, id: &str, words: &str) -> String {
    marked(subject, id, &xml(words))
}

/// The same around markup.
pub(crate) fn marked(subject: Subject, id: &str, markup: &str) -> String {
    let id = match subject {
        Subject::Finding => finding_kinds::of(id).map_or(id, |kind| kind.id),
        // A load and its options.
        Subject::Load => id.split(':').next().unwrap_or(id),
        _ => id,
    };
    let site = SITE.get();
    let page = site.and_then(|s| Some((s, s.pages.get(&(subject, id.to_owned()))?)));
    page.map_or_else(
        || markup.to_owned(),
        |(site, page)| {
            let target = xml(&format!("{}{}", site.address, page.path()));
            format!("<a href=\"{target}\" title=\"{}\">{markup}</a>", xml(&page.about))
        },
    )
}
