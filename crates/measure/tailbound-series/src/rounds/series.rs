// SPDX-License-Identifier: MIT OR Apache-2.0
//! A series of rounds: what is compared, in which order, and the folder it is kept in.
//!
//! Layout of the folder: `rounds.json` says what the series is; each run has a
//! file of its own, `003-NAME.tailbound.jsonl` for round 3 (from 1) of variant NAME.
//! The order of a round depends on seed and round alone, so that a longer series begins as the
//! shorter one did. Not here: `rounds.json` itself (`description`).

use std::path::PathBuf;

use serde_json::{Value, json};
use tailbound_core::plan::Plan;
use tailbound_core::record::Round;
use tailbound_stats::random::Random;
use tailbound_sys::new_file::{self, Existing};

use super::description::{Described, FILE, SCHEMA, read};
use crate::error::SeriesError;

/// One of the things compared.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What people call it: part of the names of its files.
    pub name: String,
    /// Its own words, after the common ones.
    pub words: Vec<String>,
    /// What all its words come to.
    pub plan: Plan,
}

/// The whole series.
#[derive(Clone, Debug)]
pub struct Series {
    /// What tells it from other series.
    pub id: String,
    /// Of its random order.
    pub seed: u64,
    /// Number of rounds.
    pub rounds: u32,
    /// Where its runs lie.
    pub folder: PathBuf,
    /// What is compared, the reference first.
    pub variants: Vec<Variant>,
}

impl Series {
    /// The variants of a round, from 0, in the order they are run.
    #[must_use]
    pub fn order(&self, round: u32) -> Vec<&Variant> {
        let mut order: Vec<&Variant> = self.variants.iter().collect();
        Random::new(self.seed.wrapping_add(u64::from(round).wrapping_mul(0x9e37_79b9)))
            .shuffle(&mut order);
        order
    }

    /// Where the run of a variant goes.
    #[must_use]
    pub fn file(&self, round: u32, variant: &Variant) -> PathBuf {
        self.folder.join(format!("{:03}-{}.tailbound.jsonl", round + 1, variant.name))
    }

    /// What its header says.
    #[must_use]
    pub fn place(&self, round: u32, place: usize, variant: &Variant) -> Round {
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
    /// identity and seed it keeps, unless it is replaced.
    ///
    /// # Errors
    /// When the folder holds something else, or cannot be read or written.
    pub fn settle(
        &mut self,
        asked_seed: Option<u64>,
        existing: Existing,
    ) -> Result<(), SeriesError> {
        let path = self.folder.clone();
        let cannot = |source| SeriesError::Make { path: path.clone(), source };
        if let Some(old) = read(&path)? {
            if existing == Existing::Replace {
                self.clear(&old).map_err(cannot)?;
            } else {
                let same = old.as_written == self.description()["variants"];
                if !same || asked_seed.is_some_and(|s| s != old.seed) {
                    return Err(SeriesError::OtherRounds { path });
                }
                self.seed = old.seed;
                self.id = old.id;
            }
        } else if path.exists() {
            return Err(SeriesError::NoRounds { path });
        }
        std::fs::create_dir_all(&path).map_err(cannot)?;
        let text = serde_json::to_string_pretty(&self.description())
            .map_err(|source| SeriesError::Encode { path: path.clone(), source })?;
        // Whole or not at all: a cut file would make the folder nobody's.
        new_file::write(&path.join(FILE), Existing::Replace, text.as_bytes()).map_err(cannot)
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
