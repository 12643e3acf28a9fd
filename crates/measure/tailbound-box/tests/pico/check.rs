// SPDX-License-Identifier: MIT OR Apache-2.0
//! The check of a box: its wires, its crystal, its frames.

use tailbound_box::pico::{BoxCheck, BoxCheckReport};

use crate::simulated_box::{SimulatedBox, TICK_HZ};

/// A check over a line that takes up to a ms each way; the box's crystal runs faster by `ppm`.
fn report(mut of: SimulatedBox, channels: u8, ppm: u64) -> BoxCheckReport {
    let mut check = BoxCheck::begin(channels, 10_000_000_000, 0);
    let (mut now_ns, mut turn) = (0_u64, 0_u64);
    while !check.is_over() {
        turn += 1;
        // Frames of USB are not in step with the readings.
        now_ns += 200_000 + turn * 7_919 % 50_000;
        assert!(now_ns < 60_000_000_000, "it comes to no end");
        let out = check.outgoing().to_vec();
        check.sent(out.len());
        let ticks = u128::from(now_ns) * u128::from(TICK_HZ) * u128::from(1_000_000 + ppm);
        of.advance(u64::try_from(ticks / 1_000_000_000_000_000).expect("small"));
        of.hear(&out);
        let back = of.outgoing();
        let now = i64::try_from(now_ns).expect("small");
        check.take(&back, now);
        check.at(now);
    }
    check.finish().expect("a report")
}

fn wired(_: u8, _: u64) -> Option<u64> {
    Some(1)
}

#[test]
fn a_box_that_is_well_is_not_refused_and_its_crystal_is_known() {
    for ppm in [0, 30] {
        let report = report(SimulatedBox::new(wired), 4, ppm);
        assert_eq!(report.refusals(), Vec::<String>::new());
        assert_eq!(report.wires.len(), 4);
        let drift = report.drift.expect("a drift");
        let ppb = i64::try_from(ppm).expect("small") * 1_000;
        assert!((drift.least_ppb..=drift.most_ppb).contains(&ppb), "{drift:?}");
        assert!(drift.half_width_ppb() < 80_000, "{drift:?}");
    }
}

#[test]
fn what_is_wrong_is_said_with_the_pins() {
    let mut of = SimulatedBox::new(wired);
    of.wires = vec![Some(1), None, Some(9), Some(1)];
    let told = report(of, 3, 0).refusals();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("channel 1") && told[0].contains("GPIO 4 to GPIO 5"), "{told:?}");
    assert!(told[1].contains("9 to 9 ticks instead of 1"), "{told:?}");
    let mut of = SimulatedBox::new(wired);
    of.wires[0] = None;
    let without = report(of, 1, 0);
    assert_eq!((without.drift, without.refusals().len()), (None, 1));
}

#[test]
fn a_crystal_that_is_far_off_is_refused() {
    let told = report(SimulatedBox::new(wired), 1, 400).refusals();
    assert!(told.iter().any(|t| t.contains("the clocks of box and host differ")), "{told:?}");
}
