// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search on a landscape that was made up: a worst case behind three conditions.
//!
//! Context: tests. Nothing here is measured. Each condition shows a pair of sections. The first two make nothing later by
//! themselves, so that whoever looks at latencies alone has nothing to go by; the third is an interval, and as on
//! kernels one that is near it is a little later than one that is not.

use std::collections::HashSet;

use crate::hunt::{
    Candidate, End, Entry, Evaluator, Figures, GENERATION, Guidance, Origin, Outcome, Search, hunt,
    lab, shrink,
};

const EVALUATIONS: u64 = 1500;
const PLANTED_NS: i64 = 500_000;

fn conditions(it: &Candidate) -> [bool; 3] {
    let load = |name: &str| it.loads.iter().find(|l| l.name == name);
    let number = |name: &str, option: &str| -> Option<u64> {
        load(name)?.option(option)?.trim_end_matches('K').parse().ok()
    };
    let pipes = load("hackbench").is_some_and(|l| l.option("ipc") == Some("pipe"));
    let files = number("file", "tasks").is_some_and(|n| n >= 5);
    [pipes, files, (236_000..238_000).contains(&it.interval_ns)]
}

/// Latencies and sections of a kernel that does not exist.
fn landscape(it: &Candidate) -> Outcome {
    if it.loads.iter().any(|l| l.name == "interrupts") {
        return Outcome::Failed("no such interrupts".to_owned());
    }
    let met = conditions(it);
    // What is of no use looks like some.
    let base = 5_000 + i64::try_from(it.key().len() % 13).unwrap_or(0) * 25;
    let apart_us = i64::try_from(it.interval_ns.abs_diff(237_000) / 1_000).unwrap_or(0);
    let near = (60 - apart_us).max(0) * 50;
    let latest_ns = match met {
        [true, true, true] => PLANTED_NS,
        [true, true, false] => base + 1_000 + near,
        _ => base,
    };
    let pair = |(nth, met): (usize, &bool)| met.then(|| format!("from {nth} to {nth}"));
    let pairs = met.iter().enumerate().filter_map(pair).collect();
    Outcome::Ran(Figures { latest_ns, pairs, ..Figures::default() })
}

/// Answers at once; ends after so many.
struct Made {
    left: usize,
    asked: usize,
}

impl Evaluator for Made {
    fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End {
        for candidate in batch {
            if self.left == 0 {
                return End::Early;
            }
            self.left -= 1;
            self.asked += 1;
            told(landscape(candidate));
        }
        End::Done
    }
}

fn hunted(seed: u64, guidance: Guidance, most: u64) -> Search {
    let mut search = Search::new(lab(), seed, guidance);
    let mut evaluator = Made { left: usize::MAX, asked: 0 };
    assert_eq!(hunt(&mut search, Vec::new(), most, &mut evaluator, &mut |_, _| {}), Ok(End::Done));
    assert_eq!(search.entries().len() as u64, most);
    search
}

fn found(search: &Search) -> bool {
    search.worst().and_then(Entry::latest_ns) == Some(PLANTED_NS)
}

#[test]
fn what_is_planted_behind_three_conditions_is_found_and_not_by_chance() {
    let of =
        |guidance| (1..=12).filter(|seed| found(&hunted(*seed, guidance, EVALUATIONS))).count();
    assert!(of(Guidance::Results) >= 9, "found with {} of 12 seeds", of(Guidance::Results));
    assert_eq!(of(Guidance::Chance), 0, "found by chance");
}

#[test]
fn the_base_line_comes_first_and_nothing_is_tried_twice() {
    let search = hunted(1, Guidance::Results, 300);
    let base = lab().kinds.len() + 1;
    let origins: Vec<bool> = search.entries().iter().map(|e| e.origin == Origin::Base).collect();
    assert!(origins[..base].iter().all(|b| *b) && origins[base..].iter().all(|b| !*b));
    let keys: HashSet<String> = search.entries().iter().map(|e| e.candidate.key()).collect();
    assert_eq!(keys.len(), 300);
    assert!(search.worst_of_base().is_some_and(|e| e.latest_ns() < Some(6_000)));
    for e in search.entries() {
        let names: HashSet<&str> = e.candidate.loads.iter().map(|l| l.name.as_str()).collect();
        assert!(names.len() == e.candidate.loads.len() && names.len() <= 4, "{}", e.candidate);
        let (least, most) = lab().interval_ns;
        assert!((least..=most).contains(&e.candidate.interval_ns), "{}", e.candidate);
    }
}

#[test]
fn a_hunt_that_was_ended_goes_on_to_the_same_corpus() {
    let whole = hunted(7, Guidance::Results, 200);
    for cut in [0, 3, 15, 16, 40, 199] {
        let mut first = Search::new(lab(), 7, Guidance::Results);
        let mut kept: Vec<String> = Vec::new();
        let mut evaluator = Made { left: cut, asked: 0 };
        let keep = |kept: &mut Vec<String>, e: &Entry| {
            kept.push(serde_json::to_string(e).expect("a line"));
        };
        let end = hunt(&mut first, Vec::new(), 200, &mut evaluator, &mut |_, e| keep(&mut kept, e));
        assert_eq!((end, kept.len()), (Ok(End::Early), cut));
        let known = kept.iter().map(|line| serde_json::from_str(line).expect("a line")).collect();
        let mut second = Search::new(lab(), 7, Guidance::Results);
        let mut evaluator = Made { left: usize::MAX, asked: 0 };
        let end = hunt(&mut second, known, 200, &mut evaluator, &mut |_, e| keep(&mut kept, e));
        assert_eq!((end, evaluator.asked), (Ok(End::Done), 200 - cut));
        assert_eq!(second.entries(), whole.entries());
        assert_eq!(second.pairs(), whole.pairs());
    }
}

#[test]
fn lines_of_another_search_are_refused() {
    let known = hunted(7, Guidance::Results, 100).entries().to_vec();
    let mut search = Search::new(lab(), 8, Guidance::Results);
    let mut evaluator = Made { left: usize::MAX, asked: 0 };
    let end = hunt(&mut search, known, 100, &mut evaluator, &mut |_, _| {});
    // Both begin with the base line.
    assert_eq!(end.map_err(|e| e.nr), Err(lab().kinds.len() as u64 + 1));
}

#[test]
fn lines_that_contradict_those_before_them_are_refused() {
    let known = hunted(7, Guidance::Results, 100).entries().to_vec();
    let going_on = |known: Vec<Entry>| {
        let mut search = Search::new(lab(), 7, Guidance::Results);
        let mut evaluator = Made { left: usize::MAX, asked: 0 };
        hunt(&mut search, known, 100, &mut evaluator, &mut |_, _| {})
    };
    assert_eq!(going_on(known.clone()), Ok(End::Done));
    let mut number = known.clone();
    number[40].nr = 41;
    assert_eq!(going_on(number).map_err(|e| (e.nr, e.why)), Err((40, "its number is another")));
    let shown = known.iter().find_map(|e| e.outcome.figures()?.pairs.first().cloned());
    let of = |change: &dyn Fn(&mut crate::hunt::Figures)| {
        let mut changed = known.clone();
        match &mut changed[40].outcome {
            Outcome::Ran(figures) => change(figures),
            Outcome::Failed(why) => panic!("{why}"),
        }
        going_on(changed).map_err(|e| (e.nr, e.why))
    };
    let pair = shown.expect("a pair");
    let pairs = of(&|f| f.pairs.push(pair.clone()));
    assert_eq!(pairs, Err((40, "it has a pair as new that an earlier one showed")));
    let again = of(&|f| f.again.push(40));
    assert!(again.is_err_and(|(nr, why)| nr == 40 && why.contains("the first to execute nothing")));
}

#[test]
fn generations_behind_the_corners_are_of_the_same_size() {
    struct Sizes(Vec<usize>);
    impl Evaluator for Sizes {
        fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End {
            self.0.push(batch.len());
            batch.iter().for_each(|c| told(landscape(c)));
            End::Done
        }
    }
    let mut search = Search::new(lab(), 1, Guidance::Results);
    let mut sizes = Sizes(Vec::new());
    let base = lab().kinds.len() + 1;
    // Two of each load that has options, which may be alike.
    let varied = lab().kinds.iter().filter(|k| !k.parameters.is_empty()).count();
    let most = (base + 2 * varied + 2 * GENERATION) as u64;
    assert_eq!(hunt(&mut search, Vec::new(), most, &mut sizes, &mut |_, _| {}), Ok(End::Done));
    let corners = search.entries().iter().filter(|e| e.origin == Origin::Corner).count();
    assert!((varied + 1..=2 * varied).contains(&corners), "{corners} of {varied}");
    assert_eq!(sizes.0.get(..4), Some([base, corners, GENERATION, GENERATION].as_slice()));
    let at_most = search.entries().iter().any(|e| {
        let options = e.candidate.loads.iter().flat_map(|l| &l.options);
        e.origin == Origin::Corner && options.clone().any(|(_, v)| v == "2000")
    });
    assert!(at_most, "no corner has the most timers");
}

#[test]
fn a_find_is_shrunk_to_what_it_needs() {
    let find = Candidate {
        loads: [
            "cpu",
            "hackbench:groups=7,ipc=pipe,size=900",
            "fork:tasks=3",
            "file:tasks=8,size=99K",
        ]
        .map(|l| l.parse().expect("a load"))
        .to_vec(),
        interval_ns: 236_817,
        seed: 4711,
    };
    let mut evaluator = Made { left: usize::MAX, asked: 0 };
    let shrunk = shrink(&find, PLANTED_NS, 0.05, &lab(), &mut evaluator);
    assert_eq!(
        shrunk.candidate.to_string(),
        "hackbench:ipc=pipe,file:tasks=6 -i 237000ns --seed 1"
    );
    assert_eq!((shrunk.latest_ns, shrunk.end), (PLANTED_NS, End::Done));
    assert!(evaluator.asked < 100 && shrunk.steps.len() == evaluator.asked, "{}", evaluator.asked);
    // Ended early, it is what was reached.
    let mut evaluator = Made { left: 6, asked: 0 };
    let shrunk = shrink(&find, PLANTED_NS, 0.05, &lab(), &mut evaluator);
    assert_eq!(shrunk.end, End::Early);
    assert!(conditions(&shrunk.candidate) == [true; 3] && shrunk.candidate.loads.len() < 4);
}
