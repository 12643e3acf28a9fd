// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a loop as C structs, at any moment and from any thread but the loop's.
//!
//! Units: ns. What the data does not support is NaN or `TB_NONE`, never a number.

use tailbound_core::Distribution;
use tailbound_stats::{Summary, exceed, quantile};

use crate::codes::*;
use crate::collected::Side;
use crate::open::with_kept;
use crate::slots::tb_recorder;
use crate::status::{Failure, guarded};

/// One latency; `struct tb_summary` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tb_summary {
    /// Due activations: served and missed.
    pub n: u64,
    /// Of these, missed.
    pub missed: u64,
    /// Certainly later or earlier than the limits.
    pub beyond: u64,
    /// Perhaps.
    pub beyond_unknown: u64,
    /// Cycles kept one by one.
    pub exceedances: u64,
    /// Cycles that should have been kept and were not: nobody emptied the ring.
    pub dropped: u64,
    /// Activations that mean and sd cover: all but those of the second at hand.
    pub moments_n: u64,
    /// Activations of 17.2 s and later, which share one bucket.
    pub over_range: u64,
    /// Exact least, or `TB_NONE`.
    pub min_ns: i64,
    /// Exact greatest, or `TB_NONE`.
    pub max_ns: i64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation over n-1.
    pub sd_ns: f64,
    /// Quantile 0.5; it and the following are within 0.1 %.
    pub p50_ns: f64,
    /// Quantile 0.95.
    pub p95_ns: f64,
    /// Quantile 0.99.
    pub p99_ns: f64,
    /// Quantile 0.999.
    pub p99_9_ns: f64,
    /// Quantile 0.9999.
    pub p99_99_ns: f64,
    /// Quantile 0.99999.
    pub p99_999_ns: f64,
}

/// A loop at one moment; `struct tb_figures` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tb_figures {
    /// Activations that fell due so far, served or missed.
    pub activations: u64,
    /// Cycles without an end.
    pub unended: u64,
    /// Calls of the loop that were refused.
    pub refused: u64,
    /// 1 when the loop said that it is over.
    pub finished: u64,
    /// Due time of the first activation, or `TB_NONE`.
    pub first_due_ns: i64,
    /// From the due time to the start.
    pub start: tb_summary,
    /// From the due time to the completion.
    pub completion: tb_summary,
}

fn summary(side: &Side) -> tb_summary {
    let (served, missed) = side.distributions();
    let mut due = served.clone();
    due.merge(&missed);
    let count = |d: &Distribution| exceed::count(d, side.limits.late_ns, side.limits.early_ns);
    let found = count(&served).plus(count(&missed));
    let s = Summary::of(&due);
    let q = |p| s.quantile(p).and_then(|q| q.ns()).unwrap_or(f64::NAN);
    tb_summary {
        n: due.n,
        missed: missed.n,
        beyond: found.beyond(),
        beyond_unknown: found.unknown,
        exceedances: side.exceedances.len() as u64,
        dropped: side.recorder.dropped().0,
        moments_n: s.moments_n,
        over_range: s.over_range,
        min_ns: s.min_ns.unwrap_or(TB_NONE),
        max_ns: s.max_ns.unwrap_or(TB_NONE),
        mean_ns: s.mean_ns.unwrap_or(f64::NAN),
        sd_ns: s.sd_ns.unwrap_or(f64::NAN),
        p50_ns: q(0.5),
        p95_ns: q(0.95),
        p99_ns: q(0.99),
        p99_9_ns: q(0.999),
        p99_99_ns: q(0.9999),
        p99_999_ns: q(0.99999),
    }
}

/// The figures so far; `size` is `sizeof *figures`.
///
/// # Safety
/// `figures` is null or points to `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_snapshot(
    recorder: *mut tb_recorder,
    figures: *mut tb_figures,
    size: usize,
) -> i32 {
    guarded(|| {
        if figures.is_null() {
            return Err(Failure::argument("tb_snapshot: figures is null"));
        }
        let now = with_kept(recorder, |kept| {
            let progress = kept.collect();
            Ok(tb_figures {
                activations: progress.activations,
                unended: progress.unended,
                refused: progress.refused,
                finished: progress.finished.into(),
                first_due_ns: progress.first_due_ns.unwrap_or(TB_NONE),
                start: summary(&kept.start),
                completion: summary(&kept.completion),
            })
        })?;
        // SAFETY: the caller's promise; at most `size` bytes are written, as bytes, and what a
        // newer header has beyond our struct is zero.
        unsafe {
            std::ptr::write_bytes(figures.cast::<u8>(), 0, size);
            std::ptr::copy_nonoverlapping(
                (&raw const now).cast::<u8>(),
                figures.cast::<u8>(),
                size.min(size_of::<tb_figures>()),
            );
        }
        Ok(())
    })
}

/// The quantile of `probability` of one latency, per due activation.
///
/// # Safety
/// `value_ns` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tb_quantile(
    recorder: *mut tb_recorder,
    context: i32,
    probability: f64,
    value_ns: *mut f64,
) -> i32 {
    guarded(|| {
        if value_ns.is_null() || !value_ns.is_aligned() || !(0.0..=1.0).contains(&probability) {
            return Err(Failure::argument(
                "tb_quantile: value_ns is null, or the probability is not between 0 and 1",
            ));
        }
        let ns = with_kept(recorder, |kept| {
            kept.collect();
            let side = match context {
                TB_START => &kept.start,
                TB_COMPLETION => &kept.completion,
                _ => {
                    return Err(Failure::argument(
                        "tb_quantile: context is TB_START or TB_COMPLETION",
                    ));
                }
            };
            let (mut due, missed) = side.distributions();
            due.merge(&missed);
            quantile(&due, probability).ns().ok_or_else(|| {
                let needed = tailbound_stats::quantile::needed(probability);
                Failure::new(TB_ERR_NO_DATA, format!(
                    "tb_quantile: {} activations do not support this quantile; it needs {needed}", due.n
                ))
            })
        })?;
        // SAFETY: checked above, and the caller's promise.
        unsafe { *value_ns = ns };
        Ok(())
    })
}
