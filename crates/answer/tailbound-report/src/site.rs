// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links from reports and from answers on a terminal to the pages of the site about the ids that they show.
//!
//! Who compiles a program says where the site is; without an address no link is made and nothing else changes. A link
//! leads only to a page that the site has: an id of another version stays text.
//! Not here: the pages (`tailbound_core::id_page`, `xtask/src/site`).
//! Source: the OSC 8 escape sequence, "Hyperlinks in Terminal Emulators".

use std::borrow::Cow;
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

impl Site {
    fn page(&self, subject: Subject, id: &str) -> Option<&IdPage> {
        let kind = (subject == Subject::Finding).then(|| finding_kinds::of(id)).flatten();
        self.pages.get(&(subject, kind.map_or(id, |kind| kind.id).to_owned()))
    }

    /// The page that a word in a text can only mean.
    fn only_page(&self, id: &str) -> Option<&IdPage> {
        if !id.contains(['-', '.']) {
            return None;
        }
        let mut pages = Subject::ALL.iter().filter_map(|subject| self.page(*subject, id));
        pages.next().filter(|_| pages.next().is_none())
    }

    /// The text, and a link around each id.
    fn linked_words(&self, text: &str) -> String {
        let is_of_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(begin) = rest.find(is_of_id) {
            let (before, from) = rest.split_at(begin);
            let (word, after) = from.split_at(from.find(|c| !is_of_id(c)).unwrap_or(from.len()));
            let id = word.trim_end_matches(['-', '.']);
            out.push_str(before);
            match self.only_page(id) {
                Some(page) => {
                    let (target, end) = (self.target(page), word.get(id.len()..).unwrap_or(""));
                    out.push_str(&format!("{OSC_8}{target}{ST}{id}{OSC_8}{ST}{end}"));
                }
                None => out.push_str(word),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn target(&self, page: &IdPage) -> String {
        format!("{}{}", self.address, page.path())
    }
}

/// Begins a link of a terminal, and without an address ends it.
const OSC_8: &str = "\u{1b}]8;;";
/// Ends an escape sequence that has a text.
const ST: &str = "\u{1b}\\";

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
    // A load and its options.
    let of_load = subject == Subject::Load;
    let id = if of_load { id.split(':').next().unwrap_or(id) } else { id };
    let found = SITE.get().and_then(|site| Some((site, site.page(subject, id)?)));
    found.map_or_else(
        || markup.to_owned(),
        |(site, page)| {
            let target = xml(&site.target(page));
            format!("<a href=\"{target}\" title=\"{}\">{markup}</a>", xml(&page.about))
        },
    )
}

/// Does the terminal know links? One that does not may show them as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalLinks {
    /// It does.
    Known,
    /// It does not, or that is not known.
    Unknown,
}

impl TerminalLinks {
    /// The text, its ids as links. `memory` is a load and a word: only what has a hyphen or a dot within is taken for an
    /// id, and only where one page is about it.
    pub(crate) fn within(self, text: Cow<'_, str>) -> String {
        match SITE.get() {
            Some(site) if self == Self::Known => site.linked_words(&text),
            _ => text.into_owned(),
        }
    }
}
