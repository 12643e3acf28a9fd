// SPDX-License-Identifier: MIT OR Apache-2.0
//! The campaigns that come with the program, and those of files.

use std::path::Path;

use tailbound_core::campaign::CampaignFile;
use tailbound_core::words::did_you_mean;

use crate::error::SeriesError;

/// Name and text of each.
pub const SHIPPED: &[(&str, &str)] = &[
    ("williams-redhat-2008", include_str!("../../../../../campaigns/williams-redhat-2008.toml")),
    ("williams-redhat-tuna", include_str!("../../../../../campaigns/williams-redhat-tuna.toml")),
    ("mckenney-2009", include_str!("../../../../../campaigns/mckenney-2009.toml")),
    ("altera-2014", include_str!("../../../../../campaigns/altera-2014.toml")),
    ("altenberg-2016", include_str!("../../../../../campaigns/altenberg-2016.toml")),
    ("osadl-farm", include_str!("../../../../../campaigns/osadl-farm.toml")),
];

/// Their names.
#[must_use]
pub fn shipped_names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// A campaign with its text.
#[derive(Debug)]
pub struct Chosen {
    /// What the text says.
    pub file: CampaignFile,
    /// The text.
    pub text: String,
    /// It came with this program, not with a file.
    pub shipped: bool,
}

/// The campaign of that name, or in that file.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn find(name: &str) -> Result<Chosen, SeriesError> {
    if let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
        return parse(name, (*text).to_owned()).map(|c| Chosen { shipped: true, ..c });
    }
    let path = Path::new(name);
    let looks_like_a_file = name.contains('/') || name.ends_with(".toml");
    if !path.exists() && !looks_like_a_file {
        let known = shipped_names();
        let hint = did_you_mean(name, known.iter().copied());
        return Err(SeriesError::UnknownCampaign { name: name.to_owned(), hint, known });
    }
    let text = tailbound_sys::given::text(path, tailbound_core::limits::TEXT_BYTES_MAX)
        .map_err(|source| SeriesError::CampaignFile { name: name.to_owned(), source })?;
    parse(name, text)
}

/// Reads `text`, which `name` holds.
///
/// # Errors
/// When it is no campaign.
pub fn parse(name: &str, text: String) -> Result<Chosen, SeriesError> {
    let file = CampaignFile::parse(&text).map_err(|e| SeriesError::Campaign {
        name: name.to_owned(),
        why: e.to_string().trim_end().to_owned(),
    })?;
    Ok(Chosen { file, text, shipped: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_to_be_far_is_asked_to_be_ten_times_so() {
        let mut found = 0;
        for (name, _) in SHIPPED {
            let chosen = find(name).unwrap_or_else(|e| panic!("{e}"));
            let far = |text: &str| text.split(' ').any(|word| word == "far");
            for claim in chosen.file.claims.iter().filter(|c| c.left.is_some() && far(&c.text)) {
                found += 1;
                let times = claim.times.unwrap_or(1.0);
                assert!(!(0.1001..9.999).contains(&times), "{name}: {}: {times}", claim.text);
            }
        }
        assert!(found > 2, "{found} claims");
    }
}
