// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fault campaign: runs, rounds, campaigns and lab runs are killed, stopped, interrupted and
//! deprived of disk space at instants nobody chose. Afterwards every file is valid or absent, and no
//! process, lock, mount, control group or setting is left.
//!
//! The instants come from a seed (`TAILBOUND_FAULT_SEED`, printed with a failure);
//! `TAILBOUND_FAULTS=50` makes fifty instead of a few per subject. Where in the program an instant
//! falls depends on the host; what is asserted holds wherever it falls.
//! Not here: each probe of the catalogue killed while it measures (`../cli/probes.rs`).
//!
//! ```text
//! subject.rs  what is disturbed, and how long it takes undisturbed
//! fault.rs    what is done to it, and when
//! files.rs    is every file in a folder whole?
//! disk.rs     a disk that becomes full
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "skips and seeds are said on standard output")]
#![expect(clippy::disallowed_methods, reason = "children and pauses of tests")]

mod disk;
mod fault;
mod files;
#[path = "../cli/remains.rs"]
mod remains;
#[path = "../cli/small.rs"]
mod small;
mod subject;

use std::sync::{Mutex, MutexGuard, PoisonError};

use fault::{Fault, Instants};
use subject::Subject;
use tailbound_sys::process::is_root;

/// One at a time: what is left on the machine must be this one's.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn campaign(subject: &Subject) {
    let _alone = alone();
    let Some(length) = subject.undisturbed() else { return };
    let mut instants = Instants::of(subject.name);
    for round in 0..instants.rounds {
        for fault in Fault::ALL {
            let at = length.mul_f64(instants.next());
            let place = format!("{}, {fault:?} after {at:?} ({instants})", subject.name);
            subject.disturb(fault, at, &place, round);
        }
    }
}

#[test]
fn a_run() {
    campaign(&subject::run());
}

#[test]
fn a_run_that_traces() {
    campaign(&subject::observed());
}

#[test]
fn rounds() {
    campaign(&subject::rounds());
}

#[test]
fn a_campaign() {
    campaign(&subject::campaign());
}

#[test]
fn a_lab_run() {
    campaign(&subject::lab());
}
