// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the folder of a series says of it: `rounds.json`, read once and checked.
//!
//! A folder may come from anybody: names are single parts of a path and numbers have
//! ranges; nothing else of the file is used.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tailbound_core::limits;
use tailbound_sys::given;

use crate::error::SeriesError;

/// Version of `rounds.json`.
pub(super) const SCHEMA: &str = "tailbound-rounds/1";
pub(super) const FILE: &str = "rounds.json";
/// Most rounds of a series: a year of them, one every five minutes.
pub const ROUNDS_MAX: u32 = 100_000;
/// Most variants of a series.
const VARIANTS_MAX: usize = 1000;
/// Longest name of a variant.
pub const NAME_MAX: usize = 40;

/// Can this be the name of a variant? It is part of a file's name, and never more than that.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=NAME_MAX).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
        && !text.starts_with(['.', '-'])
}

/// Why a text describes no series.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// It is no JSON, or lacks a member.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is of something else, or of another version.
    #[error("its schema {found:?} is not {SCHEMA}")]
    Schema {
        /// What it says it is.
        found: String,
    },
    /// What it is called is no identity.
    #[error("series {found:?}: an identity is up to 64 of a-z, A-Z, 0-9, `-`")]
    Identity {
        /// What it is called.
        found: String,
    },
    /// A number of rounds that cannot be.
    #[error("rounds {found}: not between 1 and {ROUNDS_MAX}")]
    Rounds {
        /// The number.
        found: u64,
    },
    /// A number of variants that cannot be.
    #[error("{found} variants: not between 1 and {VARIANTS_MAX}")]
    Variants {
        /// The number.
        found: usize,
    },
    /// A name that cannot be.
    #[error("variant {found:?}: not the name of a variant, or there twice")]
    Variant {
        /// The name.
        found: String,
    },
}

/// What the folder of a series says of it, checked.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) id: String,
    pub(super) seed: u64,
    pub(super) rounds: u32,
    pub(super) names: Vec<String>,
    /// The variants with their words and plans, to be compared with those that are asked for.
    pub(super) as_written: Value,
}

impl Described {
    /// Is this the name of one of its run files?
    pub(super) fn holds(&self, file: &str) -> bool {
        let Some((round, name)) =
            file.strip_suffix(".tailbound.jsonl").and_then(|f| f.split_once('-'))
        else {
            return false;
        };
        let number = round.parse::<u32>().ok().filter(|n| (1..=self.rounds).contains(n));
        number.is_some_and(|n| format!("{n:03}") == round) && self.names.iter().any(|n| n == name)
    }

    /// The description in `text`.
    fn parse(text: &str) -> Result<Self, DescriptionError> {
        #[derive(Deserialize)]
        struct Raw {
            schema: String,
            series: String,
            seed: u64,
            rounds: u64,
            variants: Vec<Value>,
        }
        let raw: Raw = serde_json::from_str(text)?;
        if raw.schema != SCHEMA {
            return Err(DescriptionError::Schema { found: raw.schema });
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if !(1..=64).contains(&raw.series.len()) || !raw.series.chars().all(plain) {
            return Err(DescriptionError::Identity { found: raw.series });
        }
        let rounds = u32::try_from(raw.rounds).ok().filter(|n| (1..=ROUNDS_MAX).contains(n));
        let rounds = rounds.ok_or(DescriptionError::Rounds { found: raw.rounds })?;
        if !(1..=VARIANTS_MAX).contains(&raw.variants.len()) {
            return Err(DescriptionError::Variants { found: raw.variants.len() });
        }
        let mut names = Vec::new();
        for variant in &raw.variants {
            let name = variant["name"].as_str().unwrap_or_default();
            if !is_name(name) || names.iter().any(|n| n == name) {
                return Err(DescriptionError::Variant { found: name.to_owned() });
            }
            names.push(name.to_owned());
        }
        let as_written = Value::Array(raw.variants);
        Ok(Self { id: raw.series, seed: raw.seed, rounds, names, as_written })
    }
}

/// What the folder says of itself; `None` where it says nothing.
pub(super) fn read(folder: &Path) -> Result<Option<Described>, SeriesError> {
    let path = folder.join(FILE);
    if path.metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    match given::text(&path, limits::TEXT_BYTES_MAX) {
        Err(source) => Err(SeriesError::Read { path, source }),
        Ok(text) => match Described::parse(&text) {
            Ok(described) => Ok(Some(described)),
            Err(why) => Err(SeriesError::Description { path, why }),
        },
    }
}

/// The variants of the series in `folder`, the reference first; none where it holds no series.
///
/// # Errors
/// When what describes it cannot be read, or is not what we write.
pub fn variants(folder: &Path) -> Result<Vec<String>, SeriesError> {
    Ok(read(folder)?.map(|d| d.names).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(change: impl FnOnce(&mut Value)) -> Result<Described, DescriptionError> {
        let mut all = json!({"schema": SCHEMA, "series": "20261122T150000Z-17", "seed": 7, "rounds": 3,
            "variants": [{"name": "plain", "words": []}, {"name": "a-b_c.d+1", "words": ["-i", "2ms"]}]});
        change(&mut all);
        Described::parse(&all.to_string())
    }

    #[test]
    fn a_folder_of_anybody_names_nothing_but_its_own_files() {
        let own = described(|_| ()).expect("as we write it");
        assert_eq!((own.seed, own.rounds, own.names.len()), (7, 3, 2));
        assert!(own.holds("003-plain.tailbound.jsonl"));
        assert!(own.holds("001-a-b_c.d+1.tailbound.jsonl"));
        for other in [
            "004-plain.tailbound.jsonl",
            "000-plain.tailbound.jsonl",
            "3-plain.tailbound.jsonl",
            "+03-plain.tailbound.jsonl",
            "003-other.tailbound.jsonl",
            "003-plain.html",
            "rounds.json",
        ] {
            assert!(!own.holds(other), "{other}");
        }
    }

    #[test]
    fn what_cannot_be_a_series_is_refused_when_it_is_read() {
        for name in
            ["x/../../precious", "..", ".hidden", "-flag", "", "a b", "a\n", "ä", &"a".repeat(41)]
        {
            let e =
                described(|d| d["variants"][0]["name"] = json!(name)).expect_err(name).to_string();
            assert!(e.contains("variant") && !e.contains('\n'), "{e}");
        }
        let again = described(|d| d["variants"][1]["name"] = json!("plain"));
        assert!(again.is_err_and(|e| e.to_string().contains("twice")));
        for rounds in [json!(0), json!(u64::MAX), json!(100_001), json!(-1), json!(1.5), json!("3")]
        {
            assert!(described(|d| d["rounds"] = rounds.clone()).is_err(), "{rounds}");
        }
        for series in ["", "../x", "a b", "\u{1b}[2J", &"a".repeat(65)] {
            assert!(described(|d| d["series"] = json!(series)).is_err(), "{series:?}");
        }
        assert!(described(|d| d["variants"] = json!([])).is_err());
        assert!(described(|d| d["schema"] = json!("tailbound-rounds/2")).is_err());
        assert!(described(|d| d["seed"] = json!(null)).is_err());
    }
}
