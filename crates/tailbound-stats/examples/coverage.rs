// SPDX-License-Identifier: MIT OR Apache-2.0
//! The coverage study of the worst-case bound: `cargo xtask coverage` runs it.
//!
//! Context: COLD, two threads. Options: `--repetitions N` (300), `--seed N` (1), `--extrapolate H`
//! (10), `--json`. The answer goes to standard output, progress to standard error. Exit
//! status 0: every target is met; 1: one is not; 2: wrong words.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tailbound_stats::bound::study::{CASES, Case, Outcome, Row};

struct Options {
    repetitions: usize,
    seed: u64,
    extrapolate: f64,
    json: bool,
}

fn words() -> Result<Options, String> {
    let mut out = Options { repetitions: 300, seed: 1, extrapolate: 10.0, json: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or_else(|| format!("{word} needs a number"))?;
            text.parse::<u32>().map_err(|_| format!("`{text}` is not a number for {word}"))
        };
        match word.as_str() {
            "--repetitions" => out.repetitions = number()?.max(1) as usize,
            "--seed" => out.seed = u64::from(number()?),
            "--extrapolate" => out.extrapolate = f64::from(number()?.max(1)),
            "--json" => out.json = true,
            _ => {
                return Err(format!(
                    "`{word}` is not known: --repetitions, --seed, --extrapolate, --json"
                ));
            }
        }
    }
    Ok(out)
}

/// All outcomes of a case, drawn on two threads; each repetition has its own seed.
fn outcomes(case: Case, number: u64, words: &Options, done: &AtomicUsize) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let draw = || {
        let mut drawn = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= words.repetitions {
                return drawn;
            }
            let seed =
                words.seed.wrapping_mul(1_000_003).wrapping_add(number * 100_000_007 + i as u64);
            drawn.push((i, case.once(seed, words.extrapolate)));
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut all = std::thread::scope(|s| {
        let other = s.spawn(draw);
        let mut mine = draw();
        mine.extend(other.join().unwrap_or_default());
        mine
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, o)| o).collect()
}

fn main() -> ExitCode {
    let words = match words() {
        Ok(words) => words,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::from(2);
        }
    };
    let begun = Instant::now();
    let mut told = begun;
    let done = AtomicUsize::new(0);
    let total = CASES.len() * words.repetitions;
    let mut rows = Vec::new();
    for (case, number) in CASES.into_iter().zip(0u64..) {
        let outcomes = outcomes(case, number, &words, &done);
        rows.push(Row::of(case, &outcomes));
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            let done = done.load(Ordering::Relaxed);
            eprintln!("{done} of {total} series in {} s", begun.elapsed().as_secs());
        }
    }
    let good = rows.iter().all(Row::good);
    if words.json {
        let answer = serde_json::json!({
            "schema": "tailbound-coverage/1",
            "repetitions": words.repetitions,
            "seed": words.seed,
            "extrapolate": words.extrapolate,
            "rows": rows,
            "met": good,
        });
        println!("{answer:#}");
    } else {
        print!("{}", table(&rows));
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The table as Markdown.
fn table(rows: &[Row]) -> String {
    let mut out = "| series | refused | holds, of those answered | bound / truth: median (5–95 %) | target |\n\
                   |---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let name = match row.case.fault {
            Some(fault) => format!("{}: {}", fault.name(), row.case.tail.name()),
            None => row.case.tail.name().to_owned(),
        };
        let faulty = row.case.fault.is_some();
        let holds = match row.holds() {
            Some(_) if faulty => "–".to_owned(),
            Some(share) => format!("{:.1} %", share * 100.0),
            None => "–".to_owned(),
        };
        let ratio = match row.ratio {
            Some([low, middle, high]) if !faulty => {
                format!("{middle:.2} ({low:.2}–{high:.2})")
            }
            _ => "–".to_owned(),
        };
        let good = if row.good() { "met" } else { "**missed**" };
        let refused = row.refusals() * 100.0;
        out.push_str(&format!("| {name} | {refused:.1} % | {holds} | {ratio} | {good} |\n"));
    }
    out
}
