// SPDX-License-Identifier: MIT OR Apache-2.0
//! A series of rounds: what is compared, in which order, and the folder it is kept in.
//!
//! Context: COLD. Layout of the folder: `rounds.json` says what the series is; each run has a
//! file of its own, `003-NAME.tailbound.jsonl` for round 3 (from 1) of variant NAME.
//! The order of a round depends on seed and round alone, so that a longer series begins as the
//! shorter one did.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tailbound_core::plan::Plan;
use tailbound_core::record::Round;
use tailbound_stats::random::Random;

use crate::say::Failure;

/// Version of `rounds.json`.
const SCHEMA: &str = "tailbound-rounds/1";
const FILE: &str = "rounds.json";

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
                let seed = old["seed"].as_u64().unwrap_or(0);
                let same = old["variants"] == self.description()["variants"];
                if !same || asked_seed.is_some_and(|s| s != seed) {
                    return Err(Failure::usage(format!(
                        "{shown} holds rounds of other variants, flags or seed: choose another --out, or give --force to begin anew"
                    )));
                }
                self.seed = seed;
                self.id = old["series"].as_str().unwrap_or_default().to_owned();
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
        let temporary = self.folder.join("rounds.json.new");
        let written = std::fs::File::create(&temporary)
            .and_then(|mut f| f.write_all(text.as_bytes()).and_then(|()| f.sync_all()))
            .and_then(|()| std::fs::rename(&temporary, self.folder.join(FILE)));
        written.map_err(cannot)
    }

    /// Removes the runs of an old series, and nothing else.
    fn clear(&self, old: &Value) -> std::io::Result<()> {
        for name in names(old) {
            for round in 1..=old["rounds"].as_u64().unwrap_or(0) {
                let file = self.folder.join(format!("{round:03}-{name}.tailbound.jsonl"));
                if file.exists() {
                    std::fs::remove_file(file)?;
                }
            }
        }
        Ok(())
    }
}

fn names(description: &Value) -> Vec<String> {
    let variants = description["variants"].as_array();
    let name = |v: &Value| v["name"].as_str().map(str::to_owned);
    variants.into_iter().flatten().filter_map(name).collect()
}

/// What the folder says of itself; `None` where it says nothing.
fn read(folder: &Path) -> Result<Option<Value>, Failure> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let text = tailbound_sys::given::text(&path, tailbound_core::limits::TEXT_BYTES_MAX)
        .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    if value["schema"] != SCHEMA {
        return Err(Failure::usage(format!(
            "{}: its schema {} is not {SCHEMA}",
            path.display(),
            value["schema"]
        )));
    }
    Ok(Some(value))
}

/// The variants of the series in `folder`, the reference first; none where it holds no series.
pub(crate) fn variants(folder: &Path) -> Result<Vec<String>, Failure> {
    Ok(read(folder)?.as_ref().map(names).unwrap_or_default())
}
