// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader of a matrix must mind: which cells failed, what kind of time it is, and in
//! what the cells differ besides kernel and load.
//!
//! Not here: figures.

use std::collections::BTreeMap;
use tailbound_core::order;

use tailbound_core::units::format_ns_i64;
use tailbound_core::verdict::Outcome;
use tailbound_core::{Context, Run};

use super::grid::{Grid, GridSlot, load_name};
use crate::digest;

/// `12 of 12 cells measured. …`: how late each kernel was at worst.
pub(super) fn headline(grid: &Grid) -> String {
    let all = grid.variants.len() * grid.loads.len();
    let measured = grid.places().filter(|(_, _, p)| p.measured().is_some()).count();
    let mut worst: Vec<(bool, i64, String)> = Vec::new();
    for (variant, row) in grid.variants.iter().zip(&grid.rows) {
        let known: Vec<i64> = row.iter().filter_map(|p| p.measured()?.summary.max_ns).collect();
        let Some(max) = known.iter().max() else { continue };
        // A kernel without its worst load must not seem to win.
        let partly = known.len() < row.len();
        let of = if partly {
            format!(" ({} of {} loads)", known.len(), row.len())
        } else {
            String::new()
        };
        worst.push((partly, *max, format!("{} on {}{of}", format_ns_i64(*max), variant.name())));
    }
    order::by_key(&mut worst, |w| (w.0, w.1));
    // Partly known ones stand last whatever their figure: then there is no "from, to".
    let short = worst.len() > 4 && !worst.iter().any(|w| w.0);
    let words: Vec<String> = worst.into_iter().map(|w| w.2).collect();
    let late = match words.as_slice() {
        [first, between @ .., last] if short => {
            format!("from {first} to {last}, {} kernels between them", between.len())
        }
        [all @ .., last] if !all.is_empty() => format!("by {} and {last}", all.join(", ")),
        _ => format!("by {}", words.join("")),
    };
    let cells = if all == 1 { "cell" } else { "cells" };
    let counted = format!("{measured} of {all} {cells} measured.");
    if words.is_empty() {
        return counted;
    }
    let loads = match grid.loads.as_slice() {
        [one] => format!("Under {}", load_name(one)),
        many => format!("Over {} loads", many.len()),
    };
    format!("{counted} {loads} the latest activation was late {late}.")
}

/// What kind of time all runs were made in; `None` where there is no lab run, or not one answer.
pub(super) fn virtual_time(grid: &Grid) -> Option<String> {
    let mut all = grid.runs().map(digest::virtual_time);
    let first = all.next()??;
    all.all(|w| w.as_ref() == Some(&first)).then_some(first)
}

/// The options of all kernels, which stand beside none of their names then.
pub(super) fn shared_options(grid: &Grid) -> Option<String> {
    grid.shared_options().map(|options| format!("all kernels with {options}"))
}

/// A sentence for everything else.
pub(super) fn notes(grid: &Grid) -> Vec<String> {
    let mut out = Vec::new();
    for (variant, load, place) in grid.places() {
        let under = format!("{} under {}", variant.name(), load_name(load));
        match place {
            // The exit status says it too, and nobody should have to guess of which cell.
            GridSlot::Measured(m) => {
                let verdict = grid.run(m).and_then(|run| run.verdict.as_ref());
                if let Some(v) = verdict.filter(|v| v.outcome == Outcome::NotMet) {
                    out.push(format!("{under}: {}", v.sentence));
                }
            }
            GridSlot::Failed(reason) => out.push(format!("{under}: failed: {reason}")),
            GridSlot::NotRun => out.push(format!("{under}: not run")),
        }
    }
    if grid.repeated > 0 {
        out.push(format!(
            "Cells with the same labels as an earlier one: {}; only the first is shown.",
            grid.repeated
        ));
    }
    let times = kinds(grid, |r| {
        digest::virtual_time(r).unwrap_or_else(|| "measured on a machine, in its own time".into())
    });
    if times.len() > 1 {
        out.push(format!(
            "Some cells are in virtual and some in real time; their figures must not be compared: {}.",
            counted(&times)
        ));
    }
    let plans = kinds(grid, plan);
    if plans.len() > 1 {
        out.push(format!("The cells do not share one plan: {}.", counted(&plans)));
    }
    for (what, of) in PINNED {
        let values = kinds(grid, |r| of(r).unwrap_or_else(|| "not recorded".to_owned()));
        if values.len() > 1 && grid.runs().any(|r| r.header.lab.is_some()) {
            out.push(format!("The cells differ in {what}: {}.", counted(&values)));
        }
    }
    let mut hidden: Vec<Context> = grid
        .runs()
        .flat_map(|r| r.contexts().into_iter().filter(|c| Some(*c) != r.judged_context()))
        .collect();
    order::by(&mut hidden, |a, b| a.as_str().cmp(b.as_str()));
    hidden.dedup();
    let hidden: Vec<&str> = hidden.iter().map(Context::as_str).collect();
    if !hidden.is_empty() {
        out.push(format!(
            "The figures are those of the context `user`; the runs also contain {}.",
            hidden.join(", ")
        ));
    }
    out
}

/// What a lab run is a function of, besides kernel and load.
type Pinned = (&'static str, fn(&Run) -> Option<String>);
const PINNED: [Pinned; 7] = [
    ("architecture", |r| Some(r.header.lab.as_ref()?.arch.clone())),
    ("machine model", |r| Some(r.header.lab.as_ref()?.machine.clone())),
    ("CPU model", |r| Some(r.header.lab.as_ref()?.cpu.clone())),
    ("number of CPUs", |r| Some(r.header.lab.as_ref()?.smp.to_string())),
    ("length of the CPUs' slices", |r| {
        let lab = r.header.lab.as_ref()?;
        Some(match lab.slice_ns {
            0 => "QEMU's own".to_owned(),
            ns => format!("{} us", ns / 1000),
        })
    }),
    ("seed", |r| Some(r.header.lab.as_ref()?.seed.to_string())),
    ("QEMU", |r| Some(r.header.lab.as_ref()?.qemu.clone())),
];

fn plan(run: &Run) -> String {
    let p = &run.header.plan;
    format!(
        "{} {}, {} times, {}, {} on clock {}",
        p.probe_words(),
        p.every(),
        tailbound_core::units::grouped(p.activations),
        p.policy,
        p.means_words(),
        p.clock
    )
}

/// How many runs there are of each kind.
fn kinds(grid: &Grid, kind: impl Fn(&Run) -> String) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    grid.runs().for_each(|r| *out.entry(kind(r)).or_default() += 1);
    out
}

fn counted(kinds: &BTreeMap<String, usize>) -> String {
    let one = |(what, n): (&String, &usize)| format!("{what} ({n})");
    kinds.iter().map(one).collect::<Vec<_>>().join("; ")
}
