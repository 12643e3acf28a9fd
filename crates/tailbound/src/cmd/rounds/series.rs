// SPDX-License-Identifier: MIT OR Apache-2.0
//! A series of rounds: what is compared, in which order, and the folder it is kept in.
//!
//! Context: COLD. Layout of the folder: `rounds.json` says what the series is; each run has a
//! file of its own, `003-NAME.tailbound.jsonl` for round 3 (from 1) of variant NAME.
//! The order of a round depends on seed and round alone, so that a longer series begins as the
//! shorter one did. A folder may come from anybody: `rounds.json` is read once, into [`Described`],
//! whose names are single parts of a path and whose numbers have ranges; nothing else of it is used.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use tailbound_core::limits;
use tailbound_core::plan::Plan;
use tailbound_core::record::Round;
use tailbound_stats::random::Random;
use tailbound_sys::given;
use tailbound_sys::new_file::{self, Existing};

use crate::say::Failure;

/// Version of `rounds.json`.
const SCHEMA: &str = "tailbound-rounds/1";
const FILE: &str = "rounds.json";
/// Most rounds of a series: a year of them, one every five minutes.
pub(super) const ROUNDS_MAX: u32 = 100_000;
/// Most variants of a series.
const VARIANTS_MAX: usize = 1000;
/// Longest name of a variant.
const NAME_MAX: usize = 40;

/// Can this be the name of a variant? It is part of a file's name, and never more than that.
pub(super) fn is_name(text: &str) -> bool {
    (1..=NAME_MAX).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
        && !text.starts_with(['.', '-'])
}

/// One of the things compared.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) name: String,
    /// Its own words, after the common ones.
    pub(super) words: Vec<String>,
    /// What all its words come to.
    pub(super) plan: Plan,
}

/// The whole series.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) id: String,
    pub(super) seed: u64,
    pub(super) rounds: u32,
    pub(super) folder: PathBuf,
    pub(super) variants: Vec<Variant>,
}

impl Series {
    /// The variants of a round, from 0, in the order they are run.
    pub(super) fn order(&self, round: u32) -> Vec<&Variant> {
        let mut order: Vec<&Variant> = self.variants.iter().collect();
        Random::new(self.seed.wrapping_add(u64::from(round).wrapping_mul(0x9e37_79b9)))
            .shuffle(&mut order);
        order
    }

    /// Where the run of a variant goes.
    pub(super) fn file(&self, round: u32, variant: &Variant) -> PathBuf {
        self.folder.join(format!("{:03}-{}.tailbound.jsonl", round + 1, variant.name))
    }

    /// What its header says.
    pub(super) fn place(&self, round: u32, place: usize, variant: &Variant) -> Round {
        Round {
            series: self.id.clone(),
            variant: variant.name.clone(),
            round,
            rounds: self.rounds,
            place: u32::try_from(place).unwrap_or(u32::MAX),
            seed: self.seed,
        }
    }

    fn description(&self) -> Value {
        let variants: Vec<Value> = self
            .variants
            .iter()
            .map(|v| json!({"name": v.name, "words": v.words, "plan": v.plan}))
            .collect();
        json!({"schema": SCHEMA, "series": self.id, "seed": self.seed, "rounds": self.rounds, "variants": variants})
    }

    /// Takes the folder: a new one, or one that holds the beginning of this very series, whose
    /// identity and seed it keeps. `force` begins anew.
    pub(super) fn settle(&mut self, asked_seed: Option<u64>, force: bool) -> Result<(), Failure> {
        let shown = self.folder.display().to_string();
        let cannot = |e: std::io::Error| Failure::cannot(format!("{shown}: {e}"));
        if let Some(old) = read(&self.folder)? {
            if force {
                self.clear(&old).map_err(cannot)?;
            } else {
                let same = old.as_written == self.description()["variants"];
                if !same || asked_seed.is_some_and(|s| s != old.seed) {
                    return Err(Failure::usage(format!(
                        "{shown} holds rounds of other variants, flags or seed: choose another --out, or give --force to begin anew"
                    )));
                }
                self.seed = old.seed;
                self.id = old.id;
            }
        } else if self.folder.exists() {
            return Err(Failure::usage(format!(
                "{shown} exists and holds no rounds: choose another --out"
            )));
        }
        std::fs::create_dir_all(&self.folder).map_err(cannot)?;
        let text = serde_json::to_string_pretty(&self.description())
            .map_err(|e| Failure::cannot(format!("{shown}: {e}")))?;
        // Whole or not at all: a cut file would make the folder nobody's.
        new_file::write(&self.folder.join(FILE), Existing::Replace, text.as_bytes()).map_err(cannot)
    }

    /// Removes the runs of an old series, and nothing else.
    fn clear(&self, old: &Described) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_str().is_some_and(|n| old.holds(n)) {
                new_file::remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// What the folder of a series says of it, checked.
#[derive(Debug)]
struct Described {
    id: String,
    seed: u64,
    rounds: u32,
    names: Vec<String>,
    /// The variants with their words and plans, to be compared with those that are asked for.
    as_written: Value,
}

impl Described {
    /// Is this the name of one of its run files?
    fn holds(&self, file: &str) -> bool {
        let Some((round, name)) =
            file.strip_suffix(".tailbound.jsonl").and_then(|f| f.split_once('-'))
        else {
            return false;
        };
        let number = round.parse::<u32>().ok().filter(|n| (1..=self.rounds).contains(n));
        number.is_some_and(|n| format!("{n:03}") == round) && self.names.iter().any(|n| n == name)
    }

    /// The description in `text`.
    fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Raw {
            schema: String,
            series: String,
            seed: u64,
            rounds: u64,
            variants: Vec<Value>,
        }
        let raw: Raw = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if raw.schema != SCHEMA {
            return Err(format!("its schema {:?} is not {SCHEMA}", raw.schema));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if !(1..=64).contains(&raw.series.len()) || !raw.series.chars().all(plain) {
            return Err(format!(
                "series {:?}: an identity is up to 64 of a-z, A-Z, 0-9, `-`",
                raw.series
            ));
        }
        let rounds = u32::try_from(raw.rounds).ok().filter(|n| (1..=ROUNDS_MAX).contains(n));
        let rounds = rounds
            .ok_or_else(|| format!("rounds {}: not between 1 and {ROUNDS_MAX}", raw.rounds))?;
        if !(1..=VARIANTS_MAX).contains(&raw.variants.len()) {
            return Err(format!(
                "{} variants: not between 1 and {VARIANTS_MAX}",
                raw.variants.len()
            ));
        }
        let mut names = Vec::new();
        for variant in &raw.variants {
            let name = variant["name"].as_str().unwrap_or_default();
            if !is_name(name) || names.iter().any(|n| n == name) {
                return Err(format!("variant {name:?}: not the name of a variant, or there twice"));
            }
            names.push(name.to_owned());
        }
        let as_written = Value::Array(raw.variants);
        Ok(Self { id: raw.series, seed: raw.seed, rounds, names, as_written })
    }
}

/// What the folder says of itself; `None` where it says nothing.
fn read(folder: &Path) -> Result<Option<Described>, Failure> {
    let path = folder.join(FILE);
    let failed = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
    if path.metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let text = given::text(&path, limits::TEXT_BYTES_MAX).map_err(|e| failed(&e))?;
    Described::parse(&text).map(Some).map_err(|e| failed(&e))
}

/// The variants of the series in `folder`, the reference first; none where it holds no series.
pub(crate) fn variants(folder: &Path) -> Result<Vec<String>, Failure> {
    Ok(read(folder)?.map(|d| d.names).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(change: impl FnOnce(&mut Value)) -> Result<Described, String> {
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
            let e = described(|d| d["variants"][0]["name"] = json!(name)).expect_err(name);
            assert!(e.contains("variant") && !e.contains('\n'), "{e}");
        }
        let again = described(|d| d["variants"][1]["name"] = json!("plain"));
        assert!(again.is_err_and(|e| e.contains("twice")));
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
