// SPDX-License-Identifier: MIT OR Apache-2.0
//! The site that reports of this program link to: its address, its pages about ids.

use tailbound_core::id_page::IdPage;
use tailbound_report::site;

/// Said at compile time by who builds a release (`cargo xtask build`): without it reports link nowhere.
const ADDRESS: Option<&str> = option_env!("TAILBOUND_SITE");

/// Every page of the site about an id that a report may show.
#[must_use]
pub fn site_pages() -> Vec<IdPage> {
    let own = [tailbound_probe::pages::pages(), tailbound_load::pages::pages()];
    [own.concat(), tailbound_rules::pages::pages(), site::own_pages()].concat()
}

pub(crate) fn link() {
    if let Some(address) = ADDRESS.filter(|address| !address.is_empty()) {
        site::link_to(address, site_pages());
    }
}
