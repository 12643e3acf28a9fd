// SPDX-License-Identifier: MIT OR Apache-2.0
//! A search from its ends to its answer.

use std::collections::BTreeSet;
use std::path::Path;

use tailbound_core::units;
use tailbound_lab::{Accelerator, Bench, Emulator, Request, hash, program};

use super::answer::{Answered, Found};
use super::ends::{limit, measured};
use super::folder;
use super::measure::Measure;
use super::meter::LabMeter;
use super::variants::Variants;
use super::way::Way;
use super::{BisectAnswer, BisectOptions};
use crate::bisect::{Arm, Culprits, Journal, Judged, Limit, Span, recall};
use crate::error::SearchError;

/// What was found, and why it ended before its end.
type Searched<T> = (Found<T>, Result<(), SearchError>);

/// Everything that a figure depends on, so that a journal is never gone on with by another search.
fn subject(
    way: &Way<'_>,
    base: &Request,
    what: &str,
    bench: &Bench<'_>,
    emulator: &Emulator,
) -> Result<String, SearchError> {
    let guest = hash::of_file(&program::find(base.arch()?, base.guest.as_deref())?)?;
    let mut kernels = Vec::new();
    for (name, arch) in base.names()? {
        kernels.push(bench.obtain(&name, arch)?.record.sha256);
    }
    let all = format!(
        "{} {base:?} {what} {} {} {guest} {} {kernels:?}",
        way.kind, way.options.measure, way.options.seeds, emulator.version
    );
    let hash = hash::of_bytes(all.as_bytes());
    Ok(format!("{} {}", way.kind, hash.get(..16).unwrap_or(&hash)))
}

/// The measure and the limit; refuses what cannot be searched before anything boots.
pub(super) fn readable(
    options: &BisectOptions,
    base: &Request,
) -> Result<(Measure, Option<i64>), SearchError> {
    let measure: Measure = options.measure.parse()?;
    let asked = options.limit.as_deref().map(units::parse_ns).transpose();
    let asked = asked.map_err(SearchError::Limit)?;
    if base.kvm {
        return Err(SearchError::RealTime);
    }
    if measure == Measure::Section {
        tailbound_lab::paths::possible(
            base.arch()?,
            Accelerator::kvm_if(base.kvm),
            base.smp.unwrap_or(1),
        )?;
        tailbound_lab::paths::one_cpu("bisect", base.smp.unwrap_or(1))?;
    }
    Ok((measure, asked))
}

/// The ends of a search, and how many measurements between them it takes about.
struct SearchEnds<T> {
    good: T,
    bad: T,
    about: usize,
}

/// What is the same for every kind: the lab, the folder, the ends; then `go` searches and answers.
fn with_ends<T: Clone, V: Variants<T>>(
    way: &Way<'_>,
    base: &Request,
    what: &str,
    make: &mut dyn FnMut(&Path) -> Result<V, SearchError>,
    SearchEnds { good, bad, about }: SearchEnds<T>,
    go: impl FnOnce(&mut LabMeter<'_, V>, &mut Journal, Limit) -> Searched<T>,
) -> Result<BisectAnswer, SearchError> {
    let (measure, asked) = readable(way.options, base)?;
    let bench = way.bench;
    let emulator = bench.ready(base)?;
    let subject = subject(way, base, what, bench, &emulator)?;
    let (folder, mut journal, notes) = folder::open(way.options, &subject, measure, way.read)?;
    notes.iter().for_each(|note| bench.note(note));
    let recalled = journal.steps().len();
    let mut ends = vec![(good.clone(), Arm::Itself), (bad.clone(), Arm::Itself)];
    if way.options.has_controls {
        ends.extend([(good.clone(), Arm::Control), (bad.clone(), Arm::Control)]);
    }
    let mut lab = LabMeter {
        bench,
        emulator: &emulator,
        options: way.options,
        read: way.read,
        measure,
        folder: &folder,
        variants: make(&folder)?,
        limit: None,
        about: about + ends.len(),
        believed: BTreeSet::new(),
    };
    let steps = recall(&mut lab, &mut journal, &ends)
        .map_err(|e| interrupted(e, &folder, "the ends are not measured yet"))?;
    let measurements = measured(steps)?;
    let limit = limit(&measurements, asked)?;
    lab.limit = Some(limit);
    let (found, ended) = go(&mut lab, &mut journal, limit);
    let answered = Answered {
        way,
        measurements: &measurements,
        limit,
        limit_is_given: asked.is_some(),
        journal: &journal,
        recalled,
        found,
    };
    answered.tell(&mut lab, ended)
}

fn interrupted(e: SearchError, folder: &Path, known: &str) -> SearchError {
    if !e.is_cut_off() {
        return e;
    }
    SearchError::Interrupted { known: known.to_owned(), folder: folder.to_owned() }
}

/// Among changes without an order.
pub(super) fn among_changes<V: Variants<Vec<usize>>>(
    way: &Way<'_>,
    base: &Request,
    what: &str,
    make: &mut dyn FnMut(&Path) -> Result<V, SearchError>,
    n: usize,
    name: impl Fn(&V, usize) -> String,
) -> Result<BisectAnswer, SearchError> {
    let all: Vec<usize> = (0..n).collect();
    let halves = usize::try_from(Span::new(0, n).about()).unwrap_or(0);
    // The change alone, and the rest without it.
    let about = if n > 1 { halves + 2 } else { 0 };
    let ends = SearchEnds { good: Vec::new(), bad: all, about };
    with_ends(way, base, what, make, ends, |lab, journal, limit| {
        let mut culprits = Culprits::new(n);
        let ended = culprits.search(&mut Judged { meter: lab, journal, limit });
        let names = |of: &[usize]| -> Vec<String> {
            of.iter().map(|at| name(&lab.variants, *at)).collect()
        };
        let found = Found {
            among: format!("{n} changes"),
            culprits: culprits
                .found
                .iter()
                .map(|c| (names(&c.members), c.is_minimal, Vec::new(), c.members.clone()))
                .collect(),
            rest_is_good: Some(culprits.rest_is_good),
            left: left(&culprits, &names),
            notes: Vec::new(),
        };
        (found, ended)
    })
}

/// What an interrupted search knows.
fn left(culprits: &Culprits, names: &dyn Fn(&[usize]) -> Vec<String>) -> String {
    let mut text = String::new();
    for one in &culprits.found {
        text.push_str(&format!("found {}; ", names(&one.members).join(" and ")));
    }
    if !culprits.kept.is_empty() {
        text.push_str(&format!("{} belongs to it; ", names(&culprits.kept).join(" and ")));
    }
    match culprits.among.as_slice() {
        [] => {
            text.push_str("what is left is whether anything can be spared, or anything else is bad")
        }
        among => text.push_str(&format!(
            "the last change that it takes is one of {}: {}",
            among.len(),
            names(among).join(", ")
        )),
    }
    text
}

/// Among versions in an order, the first good and the last bad.
pub(super) fn in_order<V: Variants<usize>>(
    way: &Way<'_>,
    base: &Request,
    what: &str,
    make: &mut dyn FnMut(&Path) -> Result<V, SearchError>,
    last: usize,
    plural: &str,
) -> Result<BisectAnswer, SearchError> {
    let about = usize::try_from(Span::new(0, last).about()).unwrap_or(0);
    let ends = SearchEnds { good: 0, bad: last, about };
    with_ends(way, base, what, make, ends, |lab, journal, limit| {
        let mut span = Span::new(0, last);
        let ended = span.narrow(&mut Judged { meter: lab, journal, limit });
        let title = |at: usize| lab.variants.title(&at, Arm::Itself);
        let members: Vec<String> = (span.good + 1..=span.bad).map(title).collect();
        let mut notes = Vec::new();
        for at in &span.good_after_bad {
            notes.push(format!(
                "{} is good again after it: there is more than one change.",
                title(*at)
            ));
        }
        if !span.skipped.is_empty() {
            notes.push(format!(
                "{} were passed over: {}",
                span.skipped.len(),
                span.skipped.iter().map(|at| title(*at)).collect::<Vec<_>>().join(", ")
            ));
        }
        let found = Found {
            among: format!("{last} {plural} after the good one"),
            left: format!("it is one of {}: {}", members.len(), members.join(", ")),
            culprits: vec![(members, span.is_exact(), span.good, span.bad)],
            rest_is_good: None,
            notes,
        };
        (found, ended)
    })
}
