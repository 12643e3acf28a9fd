// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of the site about ids: each has a place of its own, and what one of them names has a page.
//!
//! Not here: links of a report (`tailbound-report/tests/site.rs`).

use std::collections::BTreeSet;

use tailbound_core::id_page::IdContent;
use tailbound_report::site;

#[test]
fn every_id_of_the_catalogues_has_a_page_and_a_link_to_it() {
    let pages = tailbound::site_pages();
    let there: BTreeSet<String> = pages.iter().map(|page| page.path()).collect();
    assert_eq!(there.len(), pages.len());
    for page in &pages {
        assert!(!page.about.is_empty(), "{}", page.path());
        for section in &page.sections {
            if let IdContent::See(subject, id) = &section.content {
                let seen = pages.iter().any(|p| (p.subject, &p.id) == (*subject, id));
                assert!(seen, "{}: there is no {id}", page.path());
            }
        }
    }
    for probe in tailbound_probe::CATALOGUE {
        assert!(there.contains(&format!("ids/probe/{}.html", probe.name)), "{}", probe.name);
    }
    site::link_to("https://site.invalid", pages.clone());
    for page in &pages {
        let link = site::linked(page.subject, &page.id, "x");
        // Of some findings the id goes on.
        let numbered = site::linked(page.subject, &format!("{}-0", page.id), "x");
        let led = [link, numbered].iter().any(|l| l.contains(&format!("/{}\"", page.path())));
        assert!(led, "{} is not linked", page.path());
    }
}
