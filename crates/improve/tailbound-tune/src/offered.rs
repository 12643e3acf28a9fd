// SPDX-License-Identifier: MIT OR Apache-2.0
//! What there is to choose from: profiles and settings, for people and for scripts.

use serde_json::{Value, json};
use tailbound_report::table::Table;

use crate::error::TuneError;
use crate::profile::{Profile, SHIPPED};
use crate::settings::catalogue;

/// The text of the profile called `name`.
///
/// # Errors
/// [`TuneError::NotShipped`].
pub fn profile_text(name: &str) -> Result<&'static str, TuneError> {
    SHIPPED.iter().find(|(n, _)| *n == name).map(|(_, text)| *text).ok_or_else(|| {
        let known = SHIPPED.iter().map(|(n, _)| *n).collect();
        TuneError::NotShipped { name: name.to_owned(), known }
    })
}

fn profiles() -> Vec<Profile> {
    SHIPPED.iter().filter_map(|(n, _)| Profile::shipped(n)).collect()
}

/// A line for each profile.
#[must_use]
pub fn profiles_text() -> String {
    let line = |p: &Profile| format!("{:<20} {}", p.name, p.about);
    profiles().iter().map(line).collect::<Vec<_>>().join("\n")
}

/// All profiles, for scripts.
#[must_use]
pub fn profiles_json() -> Value {
    let row = |p: &Profile| json!({ "name": p.name, "about": p.about, "settings": p.settings().collect::<Vec<_>>() });
    json!({ "profiles": profiles().iter().map(row).collect::<Vec<_>>() })
}

/// A row for each setting, in so many columns.
#[must_use]
pub fn settings_text(width: usize) -> String {
    let mut table = Table::new(&["setting", "values", "what it does"]).with_words(&[1, 2]);
    for s in catalogue() {
        table.row(vec![s.name.to_owned(), s.values.to_string(), s.about.to_owned()]);
    }
    table.text(width).join("\n")
}

/// All settings, for scripts.
#[must_use]
pub fn settings_json() -> Value {
    let rows: Vec<Value> = catalogue()
        .iter()
        .map(|s| {
            json!({
                "name": s.name, "values": s.values.to_string(), "about": s.about,
                "cost": s.cost, "cures": s.cures, "needs_cpus": s.needs_cpus,
            })
        })
        .collect();
    json!({ "settings": rows })
}
