// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison in one plain sentence, and what a reader must know of how it was made.
//!
//! Not here: the figures themselves ([`mod@super::difference`]).

use tailbound_core::number::Whole as _;
use tailbound_core::units::{format_ns, grouped};

use super::design::Design;
use super::difference::{Difference, Dominance, Feature};
use super::margin::{Margin, Word};
use super::settings::Settings;
use crate::phrases::exactly;

/// `× 1.22 (1.10 to 1.35)`.
#[must_use]
pub fn ratio_words(f: &Feature) -> String {
    match &f.ratio {
        Some(r) => {
            let [low, high] = r.simultaneous;
            format!("× {} ({} to {})", number(r.estimate), number(low), number(high))
        }
        None => {
            let [low, high] = f.difference_ns.simultaneous;
            format!("{} ({} to {})", signed(f.difference_ns.estimate), signed(low), signed(high))
        }
    }
}

/// Three digits that count.
#[must_use]
pub fn number(v: f64) -> String {
    match v.abs() {
        a if !a.is_finite() => "unknown".to_owned(),
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        a if a >= 0.1 => format!("{v:.2}"),
        _ => format!("{v:.3}"),
    }
}

fn signed(ns: f64) -> String {
    let sign = if ns > 0.0 { "+" } else { "" };
    format!("{sign}{}", format_ns(ns))
}

/// `5 % and 1 µs`.
#[must_use]
pub fn margin_words(m: &Margin) -> String {
    let percent = format!("{:.3}", m.relative * 100.0);
    let percent = percent.trim_end_matches('0').trim_end_matches('.');
    let time_ns = m.time_ns.whole_i64();
    format!("{percent} % and {}", exactly(time_ns))
}

/// `p99 × 1.22 (1.10 to 1.35), p99.9 …`
fn list(d: &Difference, word: Word) -> String {
    let of = d.features.iter().filter(|f| f.word == word);
    of.map(|f| format!("{} {}", f.name, ratio_words(f))).collect::<Vec<_>>().join(", ")
}

/// The answer.
#[must_use]
pub fn sentence(d: &Difference, a: &str, b: &str, settings: &Settings) -> String {
    let margin = margin_words(&settings.margin);
    let names = |word: Word| d.features.iter().filter(move |f| f.word == word);
    let mut out = match d.word {
        Word::Regression => {
            let mut s = format!(
                "{b} is later than {a} by more than the margin of {margin}: {}.",
                list(d, Word::Regression)
            );
            if names(Word::Improvement).next().is_some() {
                s.push_str(&format!(" It is earlier at {}.", list(d, Word::Improvement)));
            }
            s
        }
        Word::Improvement => format!(
            "{b} is earlier than {a} by more than the margin of {margin}: {}.",
            list(d, Word::Improvement)
        ),
        Word::Equivalent => format!(
            "{b} and {a} do not differ by more than the margin of {margin} in any figure from {} to {}.",
            d.features.first().map_or("", |f| &f.name),
            d.features.last().map_or("", |f| &f.name)
        ),
        Word::Inconclusive => inconclusive(d, a, b, &margin),
    };
    match d.dominance {
        Some(Dominance::Later) => {
            out.push_str(&format!(" {b} is later at every quantile examined."))
        }
        Some(Dominance::Earlier) => {
            out.push_str(&format!(" {b} is earlier at every quantile examined."));
        }
        None => {}
    }
    out
}

fn inconclusive(d: &Difference, a: &str, b: &str, margin: &str) -> String {
    let open: Vec<&Feature> = d.features.iter().filter(|f| f.word == Word::Inconclusive).collect();
    let sided = |f: &&&Feature| {
        let [low, high] = f.difference_ns.simultaneous;
        low > 0.0 || high < 0.0
    };
    let changed: Vec<String> =
        open.iter().filter(sided).map(|f| format!("{} {}", f.name, ratio_words(f))).collect();
    let widths =
        |f: &Feature| f.ratio.map_or(0.0, |r| (r.simultaneous[1] / r.simultaneous[0]).ln());
    let widest = open.iter().max_by(|x, y| widths(x).total_cmp(&widths(y)));
    let mut out = if open.is_empty() && !d.censored.is_empty() {
        format!(
            "Undecided: {b} and {a} do not differ by more than the margin of {margin} in any figure that is known, but {}.",
            censored(d)
        )
    } else if changed.is_empty() {
        format!(
            "Undecided: no difference of {b} from {a} is shown, and none beyond {margin} is excluded{}.",
            widest.map_or_else(String::new, |f| format!(
                "; least known is {} {}",
                f.name,
                ratio_words(f)
            ))
        )
    } else {
        format!(
            "{b} differs from {a} ({}), but whether by more than the margin of {margin} is undecided.",
            changed.join(", ")
        )
    };
    if let Some(more) = more_words(d) {
        out.push(' ');
        out.push_str(&more);
    }
    out
}

/// `p99.99 lies among values of 10.0 ms or more, which are in no bucket of the source`.
fn censored(d: &Difference) -> String {
    let from = d.censored_from_ns.map_or_else(|| "unknown size".to_owned(), exactly);
    let (names, verb) = match d.censored.as_slice() {
        [one] => (one.clone(), "lies"),
        all => (all.join(", "), "lie"),
    };
    format!("{names} {verb} among values of {from} or more, which are in no bucket of the source")
}

/// How many more units would decide the figures that are open.
#[must_use]
pub fn more_words(d: &Difference) -> Option<String> {
    let open: Vec<&Feature> = d.features.iter().filter(|f| f.word == Word::Inconclusive).collect();
    let first = open.iter().filter_map(|f| Some((f.more_units?, &f.name))).min()?;
    let unit = plural(d.design, first.0);
    let mut out = format!("About {} more {unit} would decide {}", grouped(first.0), first.1);
    let last = open.iter().filter_map(|f| Some((f.more_units?, &f.name))).max()?;
    if last.0 != first.0 {
        out.push_str(&format!(", {} all that can be decided", grouped(last.0)));
    }
    out.push('.');
    Some(out)
}

fn plural(design: Design, n: u64) -> &'static str {
    match (design, n) {
        (Design::Rounds, 1) => "round",
        (Design::Rounds, _) => "rounds",
        (Design::Runs, 1) => "run of each",
        (Design::Runs, _) => "runs of each",
        (Design::Stretches, 1) => "stretch of each",
        (Design::Stretches, _) => "stretches of each",
    }
}

/// The time that runs were measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunTime {
    /// That of a machine.
    Real,
    /// That of the lab, in which nothing drifts between runs.
    Virtual,
}

/// How the comparison was made and what it cannot tell, a sentence each.
#[must_use]
pub fn notes(d: &Difference, time: RunTime) -> Vec<String> {
    let mut out = Vec::new();
    let [a, b] = d.units;
    out.push(match d.design {
        Design::Rounds | Design::Runs if time == RunTime::Virtual => format!(
            "{a} and {b} runs, each taken for one independent unit. Their time is virtual: no machine drifts between them."
        ),
        Design::Stretches if time == RunTime::Virtual => format!(
            "{a} and {b} stretches of one run each; the intervals hold for these two runs only. Their time is virtual: no machine drifts between them."
        ),
        Design::Rounds => format!(
            "{a} rounds, each with one run of both in random order: the round is the unit, and drift of the machine cancels."
        ),
        Design::Runs => format!(
            "Not interleaved: drift not controlled. {a} runs and {b} runs, each taken for one independent unit."
        ),
        Design::Stretches => format!(
            "Not interleaved: drift not controlled. {a} and {b} stretches of one run each; the intervals hold for these two runs only."
        ),
    });
    if let Some(p) = d.p {
        let kind = match d.design {
            Design::Rounds => "within rounds",
            Design::Runs | Design::Stretches => "between units, as if they could be exchanged",
        };
        out.push(format!(
            "Permutation test ({kind}): p = {p:.3}; {} give a difference as great. No verdict rests on it.",
            share(p)
        ));
    }
    out.push(format!(
        "On average a wake-up differs by {} (Wasserstein); exchanged labels stay below {} in 95 %.",
        format_ns(d.wasserstein_ns),
        format_ns(d.wasserstein_by_chance_ns)
    ));
    if let Some(e) = &d.exceedance {
        let [xa, xb] = e.beyond.map(grouped);
        let [na, nb] = e.due.map(grouped);
        let ratio = e.ratio.map_or_else(
            || "no ratio: neither was ever later".to_owned(),
            |r| {
                let [low, high] = r.pointwise;
                format!("rate × {} ({} to {})", number(r.estimate), number(low), number(high))
            },
        );
        out.push(format!(
            "Later than the deadline of {}: {xa} of {na} and {xb} of {nb}; {ratio}.",
            exactly(e.deadline_ns)
        ));
    }
    if !d.censored.is_empty() {
        out.push(format!("Not compared: {}.", censored(d)));
    } else if let Some(from) = d.censored_from_ns {
        out.push(format!(
            "Values of {} or more are in no bucket of the source: their rank counts, their size does not.",
            exactly(from)
        ));
    }
    for (name, more) in &d.unsupported {
        out.push(format!(
            "{name} is not compared: it takes {} more activations of each.",
            grouped(*more)
        ));
    }
    out
}

fn share(p: f64) -> String {
    if p < 0.1 {
        format!("{:.1} % of them", p * 100.0)
    } else {
        format!("{:.0} % of them", p * 100.0)
    }
}
