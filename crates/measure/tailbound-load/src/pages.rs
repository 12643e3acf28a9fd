// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the site says of each load, from its [`LoadKind`](crate::LoadKind).

use tailbound_core::id_page::{IdContent, IdPage, Subject};

use crate::catalogue::{CATALOGUE, PHASE};

/// A page a load.
#[must_use]
pub fn pages() -> Vec<IdPage> {
    let names = |options: &[(&str, &str)]| {
        let rows = options.iter().map(|(name, about)| (format!("{name}="), (*about).to_owned()));
        IdContent::Names(rows.collect())
    };
    let all = CATALOGUE.iter().map(|kind| {
        IdPage::new(Subject::Load, kind.name, kind.about)
            .with(
                "Measure beside it",
                IdContent::Command(format!("tailbound run -L {}", kind.name)),
            )
            .text("It counts", kind.unit)
            .with("Its options", names(kind.options))
            .with("Options of every load", names(PHASE))
    });
    all.collect()
}
