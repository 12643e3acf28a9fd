// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks side by side: a guest keeps one core of the host busy, and its figures do not depend on the others.
//!
//! What needs the host's cores to itself, or damages what others use, is no such check.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::stages::deadline;
use crate::stages::tally::Tally;

/// A name for people, and the check. Each writes files of its own names.
pub(super) type Check<'a> = (&'static str, Box<dyn Fn() -> Tally + Send + Sync + 'a>);

/// All of them, as many at once as there are cores, in the order given; how long each took is printed.
pub(super) fn side_by_side(checks: &[Check<'_>]) -> Tally {
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((name, check)) = checks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    let tally =
                        if deadline::is_over() { deadline::left_out(name) } else { check() };
                    println!("    {name} ({} s)", begun.elapsed().as_secs());
                    total.lock().unwrap_or_else(std::sync::PoisonError::into_inner).absorb(tally);
                }
            });
        }
    });
    total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
