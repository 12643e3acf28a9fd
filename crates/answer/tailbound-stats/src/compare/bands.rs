// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bands that pictures draw around a system's histogram and survival curve.
//!
//! Units: ns; shares of due activations. Pointwise bootstrap over the units, as
//! the intervals are, of bins for the eye: about a hundred, so this costs next to nothing.

use serde::Serialize;

use super::block::{Block, OPEN};
use super::interval::{quantile_sorted, widening};
use super::settings::Settings;
use crate::random::Random;
use tailbound_core::number::Real as _;

/// A value with its band: best, least, greatest.
pub type Banded = [f64; 3];

/// One bin of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Band {
    /// From here.
    pub low_ns: u64,
    /// To here, exclusive.
    pub high_ns: u64,
    /// Share of due activations in it.
    pub share: Banded,
    /// Share of due activations at `low_ns` or later.
    pub later: Banded,
}

/// The bands of one system over bins with these ascending edges; those from the first to the
/// last that hold something. With fewer than two units the bands have no width.
#[must_use]
pub fn bands(units: &[Block], edges_ns: &[u64], settings: &Settings) -> Vec<Band> {
    let bins = edges_ns.len().saturating_sub(1);
    let rows: Vec<Vec<f64>> = units.iter().map(|u| binned(u, edges_ns)).collect();
    let due: Vec<f64> = units.iter().map(|u| u.n.real()).collect();
    let weigh = |weights: &[f64]| {
        let mut share = vec![0.0; bins];
        let mut n = 0.0;
        for ((row, w), d) in rows.iter().zip(weights).zip(&due).filter(|((_, w), _)| **w > 0.0) {
            share.iter_mut().zip(row).for_each(|(s, c)| *s += w * c);
            n += w * d;
        }
        share.iter_mut().for_each(|s| *s /= n.max(1.0));
        let mut later = share.clone();
        let mut above = 0.0;
        for s in later.iter_mut().rev() {
            above += *s;
            *s = above;
        }
        share.extend(later);
        share
    };
    let best = weigh(&vec![1.0; units.len()]);
    let mut replicates: Vec<Vec<f64>> = vec![Vec::new(); best.len()];
    let mut random = Random::new(settings.seed ^ 0x62_616e_6473);
    if units.len() > 1 {
        for _ in 0..settings.replicates {
            let mut weights = vec![0.0; units.len()];
            for _ in 0..units.len() {
                if let Some(w) = weights.get_mut(random.below(units.len())) {
                    *w += 1.0;
                }
            }
            replicates.iter_mut().zip(weigh(&weights)).for_each(|(column, v)| column.push(v));
        }
    }
    let wider = widening(units.len(), settings.confidence);
    let tail = (1.0 - settings.confidence) / 2.0;
    let mut banded = best.iter().zip(&mut replicates).map(|(best, column)| {
        column.sort_unstable_by(f64::total_cmp);
        let end = |p: f64| match column.is_empty() {
            true => *best,
            false => (best + (quantile_sorted(column, p) - best) * wider).max(0.0),
        };
        [*best, end(tail), end(1.0 - tail)]
    });
    let share: Vec<Banded> = banded.by_ref().take(bins).collect();
    let later: Vec<Banded> = banded.collect();
    let holds = |s: &Banded| s[0] > 0.0;
    let (Some(first), Some(last)) = (share.iter().position(holds), share.iter().rposition(holds))
    else {
        return Vec::new();
    };
    let edges = edges_ns.iter().zip(edges_ns.iter().skip(1));
    edges
        .zip(share.iter().zip(later))
        .map(|((low, high), (share, later))| Band {
            low_ns: *low,
            high_ns: *high,
            share: *share,
            later,
        })
        .skip(first)
        .take(last + 1 - first)
        .collect()
}

/// Counts of a unit by bin; early values are below all of them.
fn binned(unit: &Block, edges_ns: &[u64]) -> Vec<f64> {
    let mut out = vec![0.0; edges_ns.len().saturating_sub(1)];
    for cell in &unit.cells {
        // Censored values are in the bin where they begin, or in the last.
        let open = cell.width_ns == OPEN;
        let half = if open { 0 } else { cell.width_ns / 2 };
        let middle = cell.low_ns.saturating_add_unsigned(half);
        let Ok(middle) = u64::try_from(middle) else { continue };
        let after = edges_ns.partition_point(|e| *e <= middle);
        let after = if open { after.min(out.len()) } else { after };
        if let Some(bin) = after.checked_sub(1).and_then(|i| out.get_mut(i)) {
            *bin += cell.count.real();
        }
    }
    out
}
