// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often a comparison errs, and how often it finds what is there: the table of
//! `docs/results/compare.md`. Minutes; run it with `--release`.
//!
//! Every repetition has its number as seed.
#![expect(clippy::print_stdout, reason = "the table is its answer")]

#[path = "../tests/stats/rounds.rs"]
mod rounds;

use rounds::{DEADLINE_NS, Shift, made_up, real, relabelled};
use tailbound_stats::compare::{Block, Design, Difference, Settings, Word, difference};
use tailbound_stats::random::Random;

const REPETITIONS: u64 = 200;

fn main() {
    println!("Per cent of {REPETITIONS} repetitions.\n");
    println!(
        "| data | p <= 0.05 | simultaneous excludes 1 | regression | improvement | equivalent | pointwise excludes 1: p50, p90, p99, p99.9, p99.99, maximum |"
    );
    println!("|---|---|---|---|---|---|---|");
    let [a, b] = real();
    let mut random = Random::new(11);
    let equal = |_| relabelled(&a, &b, &mut random);
    row("real, equal (relabelled)", Design::Rounds, equal);
    row("real, equal, taken as not interleaved", Design::Runs, |_| relabelled(&a, &b, &mut random));
    for (name, shift) in [
        ("made up, equal", Shift::None),
        ("made up, × 1.10 everywhere", Shift::Body),
        ("made up, × 1.5 above p99.9", Shift::Tail),
    ] {
        row(name, Design::Rounds, |seed| made_up(30, 20_000, shift, seed));
    }
}

fn row(name: &str, design: Design, mut make: impl FnMut(u64) -> [Vec<Block>; 2]) {
    let all: Vec<Difference> = (0..REPETITIONS)
        .filter_map(|seed| {
            let [a, b] = make(seed);
            let settings = Settings { seed, ..Settings::default() };
            difference(&a, &b, design, Some(DEADLINE_NS), &settings).ok()
        })
        .collect();
    let percent = |of: &dyn Fn(&Difference) -> bool| {
        let count = all.iter().filter(|d| of(d)).count();
        format!("{:.1}", count as f64 / all.len() as f64 * 100.0)
    };
    let outside = |[low, high]: [f64; 2]| low > 1.0 || high < 1.0;
    let word = |word| percent(&move |d: &Difference| d.word == word);
    let features = all.first().map_or(0, |d| d.features.len());
    let pointwise: Vec<String> = (0..features)
        .map(|i| {
            percent(&move |d: &Difference| {
                let ratio = d.features.get(i).and_then(|f| f.ratio);
                ratio.is_some_and(|r| outside(r.pointwise))
            })
        })
        .collect();
    println!(
        "| {name} | {} | {} | {} | {} | {} | {} |",
        percent(&|d| d.p.is_some_and(|p| p <= 0.05)),
        percent(&|d| d.features.iter().any(|f| f.ratio.is_some_and(|r| outside(r.simultaneous)))),
        word(Word::Regression),
        word(Word::Improvement),
        word(Word::Equivalent),
        pointwise.join(", "),
    );
}
