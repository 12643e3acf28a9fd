// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a campaign says: a publication, the runs that repeat its measurements, its figures and its claims.
//!
//! Units: in the file those of the publication, named beside each figure. The words of
//! each run are those of the command line ([`plan::RunConfig`](crate::plan)).
//! Not here: shortening (`scale`), statistics by name (`statistic`), running (`tailbound`),
//! judging and rendering (`tailbound-report`). docs/campaigns.md describes the file.
//!
//! ```text
//! [text]  ─ the publication        [[system]]  ─ whose figures it holds
//! [[step]] ─► parts: one run per variant        [[figure]], [[claim]] ─► part + statistic
//! ```

mod check;
mod error;
mod scale;
mod statistic;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan;
pub use error::{CampaignError, Fault};
pub use scale::{LOOPS_MIN, REPEAT_MIN, Shortened, scaled};
pub use statistic::{Cost, Of, Statistic, StatisticKind, Unit};

/// What is done again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Text {
    /// Its title.
    pub title: String,
    /// Who wrote it.
    pub authors: Vec<String>,
    /// When.
    pub year: u32,
    /// Where.
    #[serde(default)]
    pub published: Option<String>,
    /// The machine it measured on, as far as it says.
    pub machine: String,
    /// What it asks, in a sentence or two.
    pub about: String,
}

/// What tells one measured system from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Linux without PREEMPT_RT.
    Stock,
    /// Linux with PREEMPT_RT.
    PreemptRt,
    /// Measured threads on Xenomai 3's Cobalt core.
    Cobalt,
    /// Measured threads on Xenomai 4's EVL core.
    Evl,
    /// Anything else: nothing measured is set beside it.
    Other,
}

impl Kind {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Stock => "without PREEMPT_RT",
            Self::PreemptRt => "PREEMPT_RT",
            Self::Cobalt => "Cobalt",
            Self::Evl => "EVL",
            Self::Other => "another system",
        }
    }
}

/// A system of the publication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TextSystem {
    /// Its short name in the file.
    pub id: String,
    /// What the publication calls it.
    pub name: String,
    /// Which measured systems stand beside it.
    pub kind: Kind,
}

/// Whose clock times a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimedFrom {
    /// The machine's own.
    #[default]
    Inside,
    /// That of a source of pulses outside of it (`tailbound box run`); `run` has interval, duration and deadline.
    Outside,
}

/// One of several runs of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    /// Its short name.
    pub id: String,
    /// For people.
    pub title: String,
    /// Options that replace those of the step.
    #[serde(default)]
    pub run: plan::RunConfig,
    /// Options that replace both in the lab.
    #[serde(default)]
    pub lab: plan::RunConfig,
    /// Added to the kernel's command line in the lab.
    #[serde(default)]
    pub append: String,
    /// CPUs of the guest in the lab, at least.
    #[serde(default)]
    pub smp: Option<u32>,
    /// Why the lab cannot do it.
    #[serde(default)]
    pub not_in_lab: Option<String>,
}

/// One measurement of the publication, done again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Step {
    /// Its short name: the stem of its run files.
    pub id: String,
    /// For people.
    pub title: String,
    /// What the publication did.
    pub told: String,
    /// How it is done here, where that differs.
    #[serde(default)]
    pub ours: Option<String>,
    /// A run for each of these numbers of tasks: `1-12`.
    #[serde(default)]
    pub tasks: Option<String>,
    /// Only benchmarks are timed, no latency.
    #[serde(default)]
    pub only_work: bool,
    /// Whose clock times it.
    #[serde(default)]
    pub timed_from: TimedFrom,
    /// Options of `tailbound run`.
    #[serde(default)]
    pub run: plan::RunConfig,
    /// Options that replace them in the lab.
    #[serde(default)]
    pub lab: plan::RunConfig,
    /// What is different in the lab.
    #[serde(default)]
    pub lab_note: Option<String>,
    /// Why the lab cannot do it.
    #[serde(default)]
    pub not_in_lab: Option<String>,
    /// Several runs instead of one.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
}

/// A figure of the publication for one of its systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PublishedValue {
    /// A number.
    Number(f64),
    /// From, to.
    Range([f64; 2]),
    /// A number, and how the publication writes it.
    Said {
        /// What is compared.
        value: f64,
        /// `just over 90`.
        said: String,
    },
}

impl PublishedValue {
    /// Its two ends.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        match self {
            Self::Number(v) | Self::Said { value: v, .. } => (*v, *v),
            Self::Range([low, high]) => (low.min(*high), low.max(*high)),
        }
    }
    /// As the publication writes it, without unit.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Number(v) => v.to_string(),
            Self::Range([low, high]) => format!("{low} to {high}"),
            Self::Said { said, .. } => said.clone(),
        }
    }
}

/// A figure of the publication, and which of ours stands beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    /// For people.
    pub name: String,
    /// The part: a step's id, or `STEP-VARIANT`; none where nothing of ours stands beside it.
    #[serde(default)]
    pub step: Option<String>,
    /// Which statistic of it: `max`, `p99.999`, `within:20us`, `real.mean`, …
    #[serde(default)]
    pub statistic: Option<String>,
    /// Unit of the publication's values.
    #[serde(default)]
    pub unit: Unit,
    /// The publication's value by system.
    pub values: BTreeMap<String, PublishedValue>,
    /// Why nothing of ours can stand beside it.
    #[serde(default)]
    pub cannot: Option<String>,
    /// Why the two stand side by side and are not compared.
    #[serde(default)]
    pub not_compared: Option<String>,
    /// What a reader should know.
    #[serde(default)]
    pub note: Option<String>,
}

/// How the sides of a claim stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Less than.
    Below,
    /// More than.
    Above,
    /// Not more than.
    AtMost,
    /// Not less than.
    AtLeast,
    /// Within a share of it.
    About,
}

/// A sentence of the publication that our figures can confirm or contradict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// In words.
    pub text: String,
    /// `SYSTEM PART STATISTIC`
    #[serde(default)]
    pub left: Option<String>,
    /// How the two stand to each other.
    #[serde(default)]
    pub is: Option<Relation>,
    /// The same, or a value with its unit: `20us`, `16.8%`, `0.5`.
    #[serde(default)]
    pub right: Option<String>,
    /// Factor of the right side.
    #[serde(default)]
    pub times: Option<f64>,
    /// How near `about` is, as a share [default: 0.1].
    #[serde(default)]
    pub within: Option<f64>,
    /// Why nothing measured here can tell.
    #[serde(default)]
    pub cannot: Option<String>,
}

/// One side of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Side {
    /// A figure of ours.
    Ours {
        /// The publication's system, whose kind says which measured ones.
        system: String,
        /// The part.
        part: String,
        /// The statistic.
        statistic: Statistic,
    },
    /// A value: ns for times, percent, or a bare number.
    Value(f64),
}

/// A whole campaign file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CampaignFile {
    /// Its short name.
    pub name: String,
    /// What is done again.
    pub text: Text,
    /// Systems of the publication.
    #[serde(rename = "system")]
    pub systems: Vec<TextSystem>,
    /// Measurements.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// Figures.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
    /// Claims.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// What differs between what the publication did and what is done here, a sentence each.
    #[serde(default)]
    pub differs: Vec<String>,
}

/// One run of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Stem of its run file.
    pub id: String,
    /// Which step it is of, by position.
    pub step: usize,
    /// For people.
    pub title: String,
    /// Only benchmarks are timed.
    pub only_work: bool,
    /// Whose clock times it.
    pub timed_from: TimedFrom,
    /// Options on a machine.
    pub run: plan::RunConfig,
    /// Options in the lab.
    pub lab: plan::RunConfig,
    /// Added to the kernel's command line in the lab.
    pub append: String,
    /// CPUs of the guest, at least.
    pub smp: Option<u32>,
    /// Why the lab cannot do it.
    pub not_in_lab: Option<String>,
}

impl Part {
    /// Has a run of it the default load, where it names none?
    #[must_use]
    pub fn has_default_load(&self) -> bool {
        !self.only_work && self.timed_from == TimedFrom::Inside
    }
}

impl CampaignFile {
    /// Reads a campaign file's text and checks that everything it refers to is there.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub fn parse(text: &str) -> Result<Self, CampaignError> {
        let file: Self = toml::from_str(text)?;
        check::check(&file, text)?;
        Ok(file)
    }

    /// Every run, in order.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let mut out = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let base = Part {
                id: step.id.clone(),
                step: at,
                title: step.title.clone(),
                only_work: step.only_work,
                timed_from: step.timed_from,
                run: step.run.clone(),
                lab: step.run.over(&step.lab),
                append: String::new(),
                smp: None,
                not_in_lab: step.not_in_lab.clone(),
            };
            for n in tasks(step).unwrap_or_default() {
                let words = plan::RunConfig { tasks: Some(n), ..plan::RunConfig::default() };
                out.push(Part {
                    id: format!("{}-{n}", step.id),
                    title: format!("{}, {n} task{}", step.title, if n == 1 { "" } else { "s" }),
                    run: base.run.over(&words),
                    lab: base.lab.over(&words),
                    ..base.clone()
                });
            }
            for v in &step.variants {
                out.push(Part {
                    id: format!("{}-{}", step.id, v.id),
                    title: format!("{}, {}", step.title, v.title),
                    run: base.run.over(&v.run),
                    lab: base.lab.over(&v.run).over(&v.lab),
                    append: v.append.clone(),
                    smp: v.smp,
                    not_in_lab: v.not_in_lab.clone().or_else(|| base.not_in_lab.clone()),
                    ..base.clone()
                });
            }
            if step.tasks.is_none() && step.variants.is_empty() {
                out.push(base);
            }
        }
        out
    }

    /// The publication's system of that name.
    #[must_use]
    pub fn system(&self, id: &str) -> Option<&TextSystem> {
        self.systems.iter().find(|s| s.id == id)
    }

    /// `C. Williams: An overview of realtime Linux (2008)`
    #[must_use]
    pub fn reference(&self) -> String {
        let t = &self.text;
        let place = t.published.as_ref().map_or_else(String::new, |p| format!(", {p}"));
        format!("{}: {}{place} ({})", t.authors.join(", "), t.title, t.year)
    }
}

impl Claim {
    /// Both sides, or `None` where the publication's claim is beyond what is measured.
    ///
    /// # Errors
    /// Which side is wrong and what it should look like.
    pub fn sides(&self) -> Result<Option<(Side, Relation, Side)>, Fault> {
        match (&self.left, self.is, &self.right, &self.cannot) {
            (None, None, None, Some(_)) => Ok(None),
            (Some(left), Some(is), Some(right), None) => Ok(Some((side(left)?, is, side(right)?))),
            _ => Err(Fault::Claim),
        }
    }
}

fn side(text: &str) -> Result<Side, Fault> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [system, part, statistic] => Ok(Side::Ours {
            system: (*system).to_owned(),
            part: (*part).to_owned(),
            statistic: statistic.parse()?,
        }),
        [value] => statistic::value(value).map(Side::Value),
        _ => Err(Fault::Side(text.to_owned())),
    }
}

/// Numbers of tasks of a step.
fn tasks(step: &Step) -> Result<Vec<u32>, Fault> {
    let Some(text) = &step.tasks else { return Ok(Vec::new()) };
    // A list of numbers, as of CPUs.
    let set: crate::CpuSet =
        text.parse().map_err(|error| Fault::Tasks { text: text.clone(), error })?;
    Ok(set.iter().collect())
}

#[cfg(test)]
mod tests;
