// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the site says of each probe, from its [`ProbeKind`].
//!
//! Context: SETUP.

use tailbound_core::id_page::{IdContent, IdPage, Subject};

use crate::catalogue::CATALOGUE;
use crate::kind::ProbeKind;

/// A page a probe.
#[must_use]
pub fn pages() -> Vec<IdPage> {
    CATALOGUE.iter().map(|kind| page(kind)).collect()
}

fn page(kind: &ProbeKind) -> IdPage {
    let options = kind.options.iter().filter(|o| !o.hidden).map(|o| {
        let default = match o.default {
            "" => String::new(),
            value => format!(" (`{value}` if it is not given)"),
        };
        (format!("--{} {}", o.name, o.value), format!("{}{default}", o.about))
    });
    let from = ("from".to_owned(), kind.from.to_owned());
    let to = ("to".to_owned(), kind.to.to_owned());
    let property = kind.property.map_or_else(String::new, |clause| format!("That {clause}."));
    IdPage::new(Subject::Probe, kind.name, kind.about)
        .with("Measure with it", IdContent::Command(format!("tailbound measure {}", kind.name)))
        .with("What it times", IdContent::Names(vec![from, to]))
        .text("It tries the kernel for", &property)
        .with("Its options", IdContent::Names(options.collect()))
        .text("Interval, if none is given", kind.interval)
        .text("It replaces", &kind.replaces.join(", "))
}
