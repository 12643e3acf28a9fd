// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published figures beside ours, and its claims judged by them.
//!
//! A claim is judged on intervals where there are any: *holds* needs the whole of ours on the
//! right side, *does not hold* the whole of it on the wrong one. An extreme that stays below a
//! limit in fewer events than the publication's proves nothing; one that exceeds it is a fact.

use serde::Serialize;
use tailbound_core::campaign::{Claim, Figure, Relation, Side, Statistic};

use super::given::{CampaignEvidence, CampaignRun, CampaignSystem, State, share};
use super::phrases;
use super::value::{Value, value};

/// How near two figures are that are called alike, as a share.
const ALIKE: f64 = 0.1;

/// A figure of the publication for one of its systems, and ours for one of ours.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The figure's name.
    pub figure: String,
    /// The publication's system, by its name there; empty where it has no such figure for ours.
    pub system: String,
    /// The publication's figure, with its unit; empty where it has none.
    pub told: String,
    /// What it is compared by: both ends, in our units.
    pub told_ends: Option<(f64, f64)>,
    /// Our system; empty where none stands beside it.
    pub measured_on: String,
    /// Ours; `None` where nothing was measured.
    pub value: Option<Value>,
    /// Our figure over the publication's, or over the nearer end of its range.
    pub ratio: Option<f64>,
    /// Does it agree with the publication's: our interval, or a tenth of it, holds the publication's figure?
    pub agrees: Option<bool>,
    /// In words.
    pub words: String,
    /// Unit of the publication, for rendering.
    #[serde(skip)]
    pub unit: tailbound_core::campaign::Unit,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Our figures confirm it.
    Holds,
    /// They do not tell.
    #[serde(rename = "cannot-be-told")]
    Undecidable,
    /// They contradict it.
    DoesNotHold,
}

impl Word {
    /// For people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Undecidable => "undecidable here",
            Self::DoesNotHold => "does not hold here",
        }
    }
}

/// A claim judged on one pair of systems.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// The answer.
    pub word: Word,
    /// Why, with figures.
    pub why: String,
}

/// A claim and its judgements.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The publication's claim.
    pub claim: String,
    /// The gravest of the judgements.
    pub word: Word,
    /// One a pair of systems.
    pub judgements: Vec<Judgement>,
}

/// Every figure beside ours.
#[must_use]
pub fn rows(given: &CampaignEvidence) -> Vec<Row> {
    let mut out = Vec::new();
    for figure in &given.file.figures {
        for system in &given.file.systems {
            let told = figure.values.get(&system.id);
            let beside: Vec<&CampaignSystem> = given.of_kind(system.kind).collect();
            match told {
                Some(_) if beside.is_empty() || figure.cannot.is_some() => {
                    out.push(row(given, figure, &system.id, None));
                }
                _ => out.extend(
                    beside
                        .iter()
                        .filter(|_| told.is_some())
                        .map(|m| row(given, figure, &system.id, Some(m))),
                ),
            }
        }
        // Systems of ours that the publication has no figure for.
        let told = |m: &CampaignSystem| {
            let of_kind = given.file.systems.iter().filter(|s| s.kind == m.kind);
            of_kind.into_iter().any(|s| figure.values.contains_key(&s.id))
        };
        if figure.cannot.is_none() {
            let alone: Vec<&CampaignSystem> = given.systems.iter().filter(|m| !told(m)).collect();
            let alone = alone.iter().map(|m| row(given, figure, "", Some(m)));
            // Nothing beside nothing is no row.
            out.extend(alone.filter(|r| r.value.as_ref().is_some_and(|v| v.value.is_some())));
        }
    }
    out
}

fn row(
    given: &CampaignEvidence,
    figure: &Figure,
    system: &str,
    measured: Option<&CampaignSystem>,
) -> Row {
    let told = figure.values.get(system);
    let factor = figure.unit.factor();
    let mut out = Row {
        figure: figure.name.clone(),
        system: given.file.system(system).map(|s| s.name.clone()).unwrap_or_default(),
        told: told.map(|t| published_text(&t.text(), figure.unit)).unwrap_or_default(),
        told_ends: told.map(|t| t.ends()).map(|(low, high)| (low * factor, high * factor)),
        measured_on: measured.map(|m| m.name.clone()).unwrap_or_default(),
        value: None,
        ratio: None,
        agrees: None,
        words: String::new(),
        unit: figure.unit,
    };
    if let Some(why) = &figure.cannot {
        out.words = format!("not measured: {why}");
        return out;
    }
    let (Some(measured), Some(part), Some(Ok(statistic))) =
        (measured, &figure.step, figure.statistic.as_deref().map(str::parse::<Statistic>))
    else {
        out.words = "no such system was measured".to_owned();
        return out;
    };
    let ours = of(given, measured, part, &statistic);
    let share = share_of(given, measured, part);
    (out.ratio, out.agrees, out.words) = compare(out.told_ends, &ours, share);
    if let (Some(why), Some(_)) = (&figure.not_compared, out.agrees) {
        (out.ratio, out.agrees, out.words) = (None, None, why.clone());
    }
    out.value = Some(ours);
    out
}

/// The published value, with its unit where it is a number.
fn published_text(text: &str, unit: tailbound_core::campaign::Unit) -> String {
    if text.contains(|c: char| c.is_ascii_digit()) {
        format!("{text}{unit}")
    } else {
        text.to_owned()
    }
}

/// Ratio, agreement and words.
fn compare(
    told: Option<(f64, f64)>,
    ours: &Value,
    share: f64,
) -> (Option<f64>, Option<bool>, String) {
    let Some(v) = ours.value else {
        return (None, None, ours.why.clone().unwrap_or_else(|| "unknown".to_owned()));
    };
    let Some((from, to)) = told else {
        return (None, None, "not published".to_owned());
    };
    if v >= from && v <= to {
        return (Some(1.0), Some(true), "the same".to_owned());
    }
    let near = if v < from { from } else { to };
    let ratio = (near != 0.0).then(|| v / near);
    if let (Some(low), Some(high)) = (ours.low, ours.high)
        && low <= to
        && high >= from
    {
        return (ratio, Some(true), "agrees".to_owned());
    }
    if (v - near).abs() <= ALIKE * near.abs() {
        return (ratio, Some(true), "alike".to_owned());
    }
    // Which way it differs is in the ratio.
    let words = if ours.extreme && share < 1.0 { "differs, of fewer events" } else { "differs" };
    (ratio, Some(false), words.to_owned())
}

/// A statistic of one system's run of `part`.
fn of(given: &CampaignEvidence, m: &CampaignSystem, part: &str, statistic: &Statistic) -> Value {
    let Some(place) = m.place(part) else {
        return Value { why: Some("not run yet".to_owned()), ..Value::default() };
    };
    let Some(run) = place.run() else {
        return Value { why: Some(place.words()), ..Value::default() };
    };
    let base = given.of_kind(tailbound_core::campaign::Kind::Stock);
    let base = base.filter_map(|b| b.place(part)?.run()).next();
    let mut value = value(run, statistic, base);
    if let State::Cut(_, why) = &place.state {
        let more = value.why.take().map_or_else(String::new, |w| format!("; {w}"));
        value.why = Some(format!("the run is not complete ({why}){more}"));
    }
    value
}

fn share_of(given: &CampaignEvidence, m: &CampaignSystem, part: &str) -> f64 {
    let found = given.parts.iter().find(|p| p.id == part);
    let run = m.place(part).and_then(CampaignRun::run);
    found.zip(run).map_or(1.0, |(part, run)| share(part, run))
}

impl CampaignEvidence {
    /// The exit status for scripts: a run that could not be made, runs that are missing, a claim that does not
    /// hold.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        if self.has_failed() {
            3
        } else if !self.is_complete() {
            5
        } else {
            u8::from(claims(self).iter().any(|c| c.word == Word::DoesNotHold))
        }
    }
}

/// Every claim, judged.
#[must_use]
pub fn claims(given: &CampaignEvidence) -> Vec<Judged> {
    given.file.claims.iter().map(|claim| judged(given, claim)).collect()
}

fn judged(given: &CampaignEvidence, claim: &Claim) -> Judged {
    let mut judgements = Vec::new();
    match claim.sides() {
        Ok(Some((left, is, right))) => {
            pairs(given, claim, &ClaimSides { left: &left, is, right: &right }, &mut judgements)
        }
        Ok(None) => judgements.push(Judgement {
            word: Word::Undecidable,
            why: claim.cannot.clone().unwrap_or_default(),
        }),
        Err(why) => judgements.push(Judgement { word: Word::Undecidable, why: why.to_string() }),
    }
    let word = judgements.iter().map(|j| j.word).max().unwrap_or(Word::Undecidable);
    Judged { claim: claim.text.clone(), word, judgements }
}

/// A side without a system.
#[derive(Clone, Debug, thiserror::Error)]
enum NoSystem {
    #[error("no system `{0}`")]
    Unnamed(String),
    #[error("no system {} was measured", with(*.0))]
    Unmeasured(tailbound_core::campaign::Kind),
}

/// Our systems that a side speaks of; `Err`: which kind is missing.
fn systems<'a>(
    given: &'a CampaignEvidence,
    side: &Side,
) -> Result<Vec<Option<&'a CampaignSystem>>, NoSystem> {
    let Side::Ours { system, .. } = side else { return Ok(vec![None]) };
    let Some(text) = given.file.system(system) else {
        return Err(NoSystem::Unnamed(system.clone()));
    };
    let all: Vec<_> = given.of_kind(text.kind).map(Some).collect();
    if all.is_empty() {
        return Err(NoSystem::Unmeasured(text.kind));
    }
    Ok(all)
}

fn with(kind: tailbound_core::campaign::Kind) -> String {
    use tailbound_core::campaign::Kind;
    match kind {
        Kind::PreemptRt => "with PREEMPT_RT".to_owned(),
        Kind::Stock => "without PREEMPT_RT".to_owned(),
        other => format!("on {}", other.word()),
    }
}

/// What a claim says of its two sides.
struct ClaimSides<'a> {
    left: &'a Side,
    is: Relation,
    right: &'a Side,
}

/// One of them, of one of our systems.
struct ClaimSide<'a> {
    side: &'a Side,
    system: Option<&'a CampaignSystem>,
}

fn pairs(
    given: &CampaignEvidence,
    claim: &Claim,
    sides: &ClaimSides<'_>,
    out: &mut Vec<Judgement>,
) {
    let ClaimSides { left, is, right } = *sides;
    let (ours, theirs) = match (systems(given, left), systems(given, right)) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (Err(why), _) | (_, Err(why)) => {
            out.push(Judgement { word: Word::Undecidable, why: why.to_string() });
            return;
        }
    };
    let same = |a: &Side, b: &Side| match (a, b) {
        (Side::Ours { system: a, .. }, Side::Ours { system: b, .. }) => a == b,
        _ => false,
    };
    for a in &ours {
        for b in &theirs {
            // Two runs of one system are compared within it.
            let own = a.zip(*b).is_none_or(|(a, b)| a.name == b.name);
            if !same(left, right) || own {
                let left = ClaimSide { side: left, system: *a };
                let right = ClaimSide { side: right, system: *b };
                out.push(judge(given, claim, is, &left, &right));
            }
        }
    }
}

/// One side with its figure, what it rests on and its words.
struct ClaimOperand {
    value: Value,
    share: f64,
    words: String,
}

fn known(given: &CampaignEvidence, side: &Side, m: Option<&CampaignSystem>) -> ClaimOperand {
    match (side, m) {
        (Side::Ours { part, statistic, .. }, Some(m)) => {
            let value = of(given, m, part, statistic);
            let shown = phrases::shown(&value, statistic);
            let words = format!("{shown} on {} ({part})", m.name);
            ClaimOperand { value, share: share_of(given, m, part), words }
        }
        (Side::Value(v), _) => ClaimOperand {
            value: Value { value: Some(*v), low: Some(*v), high: Some(*v), ..Value::default() },
            share: 1.0,
            words: String::new(),
        },
        _ => ClaimOperand { value: Value::default(), share: 1.0, words: String::new() },
    }
}

fn judge(
    given: &CampaignEvidence,
    claim: &Claim,
    is: Relation,
    left: &ClaimSide<'_>,
    right: &ClaimSide<'_>,
) -> Judgement {
    let (a, mut b) = (known(given, left.side, left.system), known(given, right.side, right.system));
    if let (Side::Value(v), Side::Ours { statistic, .. }) = (right.side, left.side) {
        b.words = phrases::plain(*v, statistic);
    }
    let why_not = [&a, &b].into_iter().find(|k| k.value.value.is_none());
    if let Some(k) = why_not {
        let why = k.value.why.clone().unwrap_or_else(|| "unknown".to_owned());
        return Judgement { word: Word::Undecidable, why: format!("{}: {why}", k.words) };
    }
    let times = claim.times.unwrap_or(1.0);
    let factor = if claim.times.is_some() {
        format!("{} times ", phrases::number(times))
    } else {
        String::new()
    };
    // Without an interval a figure is only a figure; what was the latest or earliest is a fact.
    let bare =
        |k: &&ClaimOperand| k.value.low.is_none() && k.value.high.is_none() && !k.value.extreme;
    let unknown_width = [&a, &b].into_iter().find(bare);
    let word = match unknown_width {
        Some(_) => Word::Undecidable,
        None => related(&a.value, &b.value, times, is, claim.within.unwrap_or(ALIKE)),
    };
    let mut why = format!("{} against {factor}{}", a.words, b.words);
    if let Some(note) = a.value.why.as_ref().or(b.value.why.as_ref()) {
        why.push_str(&format!("; {note}"));
    }
    let limit = matches!(right.side, Side::Value(_));
    let short = a.share.min(b.share);
    let word = match word {
        Word::Holds if limit && a.value.extreme && short < 1.0 => {
            why.push_str(&format!(
                "; not exceeded, but these are only {} of the published events",
                phrases::part_of(short)
            ));
            Word::Undecidable
        }
        Word::Undecidable => {
            why.push_str(match unknown_width {
                Some(_) => "; how well it is known is not known",
                None => "; the intervals overlap",
            });
            word
        }
        _ => {
            if (a.value.extreme || b.value.extreme) && short < 1.0 {
                let part = phrases::part_of(short);
                why.push_str(&format!("; in {part} of the published events"));
            }
            word
        }
    };
    Judgement { word, why }
}

/// Compares `a` with `times` × `b`, by their intervals.
fn related(a: &Value, b: &Value, times: f64, is: Relation, within: f64) -> Word {
    let (Some(av), Some(bv)) = (a.value, b.value) else { return Word::Undecidable };
    let (a_low, a_high) = (a.low.unwrap_or(av), a.high.unwrap_or(av));
    let b_low = b.low.unwrap_or(bv) * times;
    let b_high = b.high.unwrap_or(bv) * times;
    let decide = |yes: bool, no: bool| match (yes, no) {
        (true, _) => Word::Holds,
        (_, true) => Word::DoesNotHold,
        _ => Word::Undecidable,
    };
    match is {
        Relation::Below => decide(a_high < b_low, a_low >= b_high),
        Relation::Above => decide(a_low > b_high, a_high <= b_low),
        Relation::AtMost => decide(a_high <= b_low, a_low > b_high),
        Relation::AtLeast => decide(a_low >= b_high, a_high < b_low),
        Relation::About => {
            let (low, high) = (bv * times * (1.0 - within), bv * times * (1.0 + within));
            decide(a_low >= low && a_high <= high, a_high < low || a_low > high)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(value: f64, half: f64) -> Value {
        let (low, high) = (Some(value - half), Some(value + half));
        Value { value: Some(value), low, high, n: 100, ..Value::default() }
    }

    #[test]
    fn a_claim_needs_the_whole_interval() {
        let is =
            |a: f64, relation, b: f64| related(&known(a, 1.0), &known(b, 1.0), 1.0, relation, 0.1);
        assert_eq!(is(5.0, Relation::Below, 8.0), Word::Holds);
        assert_eq!(is(5.0, Relation::Below, 6.5), Word::Undecidable);
        assert_eq!(is(8.0, Relation::Below, 5.0), Word::DoesNotHold);
        assert_eq!(is(8.0, Relation::Above, 5.0), Word::Holds);
        assert_eq!(is(5.0, Relation::AtLeast, 8.0), Word::DoesNotHold);
        assert_eq!(is(100.0, Relation::About, 105.0), Word::Holds);
        assert_eq!(is(100.0, Relation::About, 110.5), Word::Undecidable);
        assert_eq!(is(100.0, Relation::About, 200.0), Word::DoesNotHold);
        let triple = related(&known(10.0, 1.0), &known(2.0, 0.1), 3.0, Relation::Above, 0.1);
        assert_eq!(triple, Word::Holds);
    }

    #[test]
    fn a_figure_agrees_by_its_interval_or_a_tenth() {
        let agrees = |told, ours: &Value| compare(Some(told), ours, 1.0).1;
        assert_eq!(agrees((20.0, 20.0), &known(15.0, 6.0)), Some(true));
        assert_eq!(agrees((20.0, 20.0), &known(21.0, 0.1)), Some(true));
        assert_eq!(agrees((20.0, 20.0), &known(200.0, 0.1)), Some(false));
        assert_eq!(agrees((90.0, 95.0), &known(93.0, 0.1)), Some(true));
        let ratio = compare(Some((90.0, 95.0)), &known(950.0, 1.0), 1.0).0;
        assert_eq!(ratio, Some(10.0));
        let most = Value { value: Some(5.0), extreme: true, ..Value::default() };
        assert!(compare(Some((20.0, 20.0)), &most, 0.01).2.contains("fewer events"));
        assert_eq!(compare(None, &known(1.0, 0.1), 1.0).1, None);
    }
}
