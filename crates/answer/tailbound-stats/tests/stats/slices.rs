// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of guests with several CPUs are compared only where the CPUs' shares of virtual time are equal.

use tailbound_core::Run;
use tailbound_core::lab::LabRecord;
use tailbound_stats::compare::slices::{comparable, doubt};

use crate::verdicts::{plan, run_of};

fn run(smp: u32, slice_ns: u64, load: &str) -> Run {
    let mut plan = plan(None);
    plan.loads = vec![load.parse().expect("a load")];
    let mut run = run_of(plan, Vec::new());
    let lab = LabRecord { accelerator: "tcg".to_owned(), smp, slice_ns, ..LabRecord::default() };
    run.header.lab = Some(Box::new(lab));
    run
}

#[test]
fn slices_and_load_must_be_equal() {
    let base = run(2, 4000, "hackbench:groups=2");
    assert_eq!(comparable(&base, &base), Ok(()));
    for (other, says) in [
        (run(1, 0, "hackbench:groups=2"), "shares of virtual time"),
        (run(4, 4000, "hackbench:groups=2"), "2 and 4 CPUs"),
        (run(2, 8000, "hackbench:groups=2"), "4 µs and 8 µs"),
        (run(2, 0, "hackbench:groups=2"), "QEMU's own length"),
        (run(2, 4000, "mmap"), "hackbench:groups=2 and mmap"),
    ] {
        let why = comparable(&base, &other).expect_err(says).to_string();
        assert!(why.contains(says), "{says}: {why}");
        assert!(comparable(&other, &base).is_err(), "{says}");
    }
}

#[test]
fn one_cpu_and_real_machines_have_no_slices() {
    let (one, other) = (run(1, 0, "mmap"), run(1, 0, "hackbench"));
    assert_eq!(comparable(&one, &other), Ok(()));
    let here = run_of(plan(None), Vec::new());
    assert_eq!(comparable(&here, &one), Ok(()));
    assert_eq!(doubt(&[&one, &here]), None);
    assert_eq!(doubt(&[&run(2, 4000, "mmap")]), None);
    assert!(doubt(&[&one, &run(2, 0, "mmap")]).is_some_and(|text| text.contains("long slices")));
}
