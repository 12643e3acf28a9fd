// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes lost and flipped, the cable pulled at any instant: what the run says is what the box said.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tailbound_box::stimulus::{
    StimulusEnd, StimulusPlan, StimulusProgress, StimulusReaction, StimulusRecord, StimulusShape,
    StimulusSpacing,
};
use tailbound_core::{EndReason, Run};
use tailbound_import::stimulus::{RunFacts, StimulusRecorder};
use tailbound_stimulus::{StimulusError, Streaming, Via, measure};
use tailbound_wire::Reaction;

use crate::pty_box::{PtyBox, Weather};
use crate::simulated_box::SimulatedBox;

fn plan(ms: i64) -> StimulusPlan {
    StimulusPlan {
        period_ns: 100_000,
        duration_ns: ms * 1_000_000,
        channels: 1,
        shape: StimulusShape::Toggle,
        spacing: StimulusSpacing::Even,
        deadline_ns: None,
    }
}

/// 5 to 60 µs, now and then more than a period, now and then never.
fn mixed(_: u8, number: u64) -> Option<u64> {
    match number % 1_009 {
        7 => None,
        500 => Some(8_000),
        _ => Some(300 + number * 7_919 % 3_400),
    }
}

type Measured = (Result<(StimulusRecord, Run), StimulusError>, SimulatedBox);

fn measured(weather: Weather, plan: &StimulusPlan, streaming: Streaming) -> Option<Measured> {
    let at = PtyBox::new(SimulatedBox::new(mixed), weather)?;
    let mut recorder = StimulusRecorder::new(|_: &StimulusProgress| {});
    let via = Via::Pico(at.port.clone());
    let record = measure(&via, plan, streaming, &mut recorder, &AtomicBool::new(false));
    let facts = RunFacts { id: "x".to_owned(), ..RunFacts::default() };
    let both = record.map(|record| {
        let run = recorder.finish(&record, &facts).expect("a run");
        (record, run)
    });
    Some((both, at.into_box()))
}

/// Every latency of the run is one that the box told of, and none is counted twice.
fn true_to(record: &StimulusRecord, run: &Run, of: &SimulatedBox) {
    let thread = &run.threads[0];
    let mut answered: Vec<i64> = Vec::new();
    let mut others = 0;
    for told in of.truth.values() {
        match told.reaction {
            Reaction::Answered(ticks) | Reaction::Late(ticks) => {
                answered.push(record.tick.latency_ns(ticks.into()));
            }
            Reaction::AtLeast(_) | Reaction::Unknown => others += 1,
        }
    }
    answered.sort_unstable();
    let n = thread.wakeup.n;
    assert!(n <= answered.len() as u64, "{n} of {}", answered.len());
    assert!(thread.missed.n <= others + record.channels[0].lost, "{}", thread.missed.n);
    assert!(thread.wakeup.max_ns <= answered.last().copied());
    for limit_ns in [20_000, 50_000, 60_000, 120_000] {
        let truth = answered.iter().filter(|ns| **ns > limit_ns).count() as u64;
        assert!(thread.wakeup.beyond(limit_ns).0 <= truth, "later than {limit_ns}");
    }
    for sample in &record.channels[0].worst {
        let truth = of.truth[&(0, sample.number)];
        assert_eq!(sample.reaction.ticks(), Some(u64::from(truth.reaction.ticks())));
        assert!(!matches!(sample.reaction, StimulusReaction::Unknown));
    }
}

#[test]
fn over_a_good_line_every_pulse_is_in_the_run() {
    for streaming in [Streaming::Samples, Streaming::Cells] {
        let Some((measured, of)) = measured(Weather::default(), &plan(1_500), streaming) else {
            return;
        };
        let (record, run) = measured.expect("measured");
        true_to(&record, &run, &of);
        assert_eq!((&record.end, record.channels[0].lost), (&StimulusEnd::Whole, 0));
        let thread = &run.threads[0];
        let in_flight = u64::from(record.channels[0].in_flight.is_some());
        assert_eq!(thread.wakeup.n + thread.missed.n + in_flight, of.truth.len() as u64);
        assert_eq!(run.end.as_ref().map(|e| e.reason), Some(EndReason::Complete));
        assert!(!of.is_measuring(), "it was stopped");
    }
}

#[test]
fn over_a_bad_line_nothing_is_invented_and_nothing_is_missing() {
    for bad_of in [3_000, 30_000] {
        let weather = Weather { bad_of, ..Weather::default() };
        let Some((measured, of)) = measured(weather, &plan(1_500), Streaming::Samples) else {
            return;
        };
        let (record, run) = measured.expect("measured");
        true_to(&record, &run, &of);
        assert_eq!((&record.end, record.channels[0].lost), (&StimulusEnd::Whole, 0));
        let thread = &run.threads[0];
        let in_flight = u64::from(record.channels[0].in_flight.is_some());
        assert_eq!(thread.wakeup.n + thread.missed.n + in_flight, of.truth.len() as u64);
        assert!(record.link.damaged > 0);
    }
}

#[test]
fn a_cable_that_is_pulled_at_any_instant_leaves_a_true_shorter_run() {
    for seed in 0..8_u64 {
        let pulled_after = Some(Duration::from_micros(1 + seed * 77_713));
        let weather = Weather { bad_of: seed % 2 * 20_000, pulled_after };
        let Some((measured, of)) = measured(weather, &plan(5_000), Streaming::Samples) else {
            return;
        };
        match measured {
            Ok((record, run)) => {
                true_to(&record, &run, &of);
                assert!(matches!(record.end, StimulusEnd::Lost(_)), "{:?}", record.end);
                assert_eq!(run.end.as_ref().map(|e| e.reason), Some(EndReason::Failed));
                assert!(run.findings.iter().any(|f| f.id == "source-ended"));
            }
            // Before anything of a pulse was read.
            Err(e) => assert!(e.to_string().contains("nothing was measured"), "{e}"),
        }
    }
}
