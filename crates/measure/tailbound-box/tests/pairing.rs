// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulses and answers: what is told of each, and that no edge is dropped, whatever comes.

use proptest::prelude::*;
use tailbound_box::{
    Answered, CaptureLine, Edge, EdgeCounts, EdgeRule, Level, Pairing, Promptness, PulseOutcome,
};

/// Edges of one line that changes at `ticks`, low at first.
fn toggles(line: CaptureLine, ticks: &[i64]) -> Vec<Edge> {
    let levels = [Level::High, Level::Low].into_iter().cycle();
    ticks.iter().zip(levels).map(|(tick, level)| Edge { tick: *tick, line, level }).collect()
}

/// What becomes of the pulses of two lines.
fn paired(
    rule: EdgeRule,
    stimulus: &[i64],
    answer: &[i64],
    end: i64,
) -> (EdgeCounts, Vec<PulseOutcome>) {
    let mut edges = toggles(CaptureLine::Stimulus, stimulus);
    edges.extend(toggles(CaptureLine::Answer, answer));
    edges.sort_by_key(|e| (e.tick, e.line));
    of_edges(rule, &edges, end)
}

fn of_edges(rule: EdgeRule, edges: &[Edge], end: i64) -> (EdgeCounts, Vec<PulseOutcome>) {
    let (mut pairing, mut told) = (Pairing::new(rule), Vec::new());
    edges.iter().for_each(|e| pairing.edge(*e, &mut |o| told.push(o)));
    pairing.end(end, &mut |o| told.push(o));
    (pairing.counts(), told)
}

fn answered(tick: i64, latency: i64, promptness: Promptness) -> PulseOutcome {
    PulseOutcome::Answered(Answered { tick, latency, promptness })
}

#[test]
fn where_levels_toggle_a_late_answer_is_its_own_pulses_and_not_the_next_ones() {
    // Pulse 2 is answered 20 after pulse 3, which is answered at once then.
    let (counts, told) = paired(EdgeRule::Toggle, &[0, 100, 200, 300], &[7, 220, 225, 309], 400);
    assert_eq!(
        told,
        [
            answered(0, 7, Promptness::BeforeNext),
            answered(100, 120, Promptness::AfterNext),
            answered(200, 25, Promptness::BeforeNext),
            answered(300, 9, Promptness::BeforeNext),
        ]
    );
    assert_eq!(counts, EdgeCounts { pulses: 4, in_time: 3, late: 1, ..EdgeCounts::default() });
}

#[test]
fn where_levels_toggle_a_machine_that_is_always_one_pulse_late_is_seen_to_be() {
    let pulses: Vec<i64> = (0..200).map(|k| k * 100).collect();
    let answers: Vec<i64> = pulses.iter().map(|t| t + 130).collect();
    let (counts, told) = paired(EdgeRule::Toggle, &pulses, &answers, 30_000);
    assert_eq!((counts.late, counts.in_time, counts.ambiguous), (199, 1, 0));
    let all = |o: &PulseOutcome| matches!(o, PulseOutcome::Answered(a) if a.latency == 130);
    assert!(told.iter().all(all), "{told:?}");
}

#[test]
fn a_pulse_that_left_no_trace_is_unanswered_and_the_next_one_is_not_blamed() {
    // Two pulses merged: the machine read the same level again. The answer to the third may be of the first: longest reading.
    let (counts, told) = paired(EdgeRule::Toggle, &[0, 100, 200, 300, 400], &[5, 306, 409], 1000);
    assert_eq!(counts.ambiguous, 2);
    assert_eq!(told[1], answered(100, 206, Promptness::AfterNext), "the oldest of its level");
    assert_eq!((counts.unanswered, counts.in_flight), (2, 0));
    // A wrong level that nobody asked for: the next pulse cannot show, and only it is unanswered.
    let (counts, told) = paired(EdgeRule::Toggle, &[0, 100, 200, 300], &[5, 50, 205, 305], 400);
    assert_eq!(
        told,
        [
            answered(0, 5, Promptness::BeforeNext),
            PulseOutcome::Unanswered(100),
            answered(200, 5, Promptness::BeforeNext),
            answered(300, 5, Promptness::BeforeNext),
        ]
    );
    assert_eq!((counts.spurious, counts.unanswered), (1, 1));
}

#[test]
fn an_inverted_answer_is_one_where_that_was_said() {
    let mut edges = toggles(CaptureLine::Stimulus, &[0, 100, 200]);
    for (edge, delay) in toggles(CaptureLine::Answer, &[0, 100, 200]).into_iter().zip([3, 4, 5]) {
        let level = edge.level.inverted();
        edges.push(Edge { tick: edge.tick + delay, level, ..edge });
    }
    edges.sort_by_key(|e| (e.tick, e.line));
    let (counts, _) = of_edges(EdgeRule::Inverted, &edges, 300);
    assert_eq!(counts, EdgeCounts { pulses: 3, in_time: 3, ..EdgeCounts::default() });
    // Otherwise nothing comes out better than it was.
    let (counts, told) = of_edges(EdgeRule::Toggle, &edges, 300);
    assert_eq!((counts.in_time, counts.late, counts.spurious), (0, 2, 1));
    assert!(
        told.iter().all(|o| !matches!(o, PulseOutcome::Answered(a) if a.latency < 100)),
        "{told:?}"
    );
}

#[test]
fn with_rising_edges_an_answer_that_may_be_late_is_read_as_late_and_said_to_be_ambiguous() {
    // Rising at 0, 100, 200, …; the answer to the second never comes.
    let pulses: Vec<i64> = (0..40).flat_map(|k| [k * 100, k * 100 + 50]).collect();
    let answers: Vec<i64> =
        (0..40).filter(|k| *k != 1).flat_map(|k| [k * 100 + 10, k * 100 + 20]).collect();
    let (counts, told) = paired(EdgeRule::Rising, &pulses, &answers, 4000);
    assert_eq!(told[1], answered(100, 110, Promptness::AfterNext));
    assert_eq!((counts.ambiguous, counts.given_up, counts.late), (16, 1, 16));
    assert_eq!((counts.unanswered, counts.in_time), (1, 23));
    // One that is late and caught up is read as it was.
    let (counts, told) = paired(
        EdgeRule::Rising,
        &[0, 50, 100, 150, 200, 250],
        &[110, 111, 115, 116, 207, 208],
        300,
    );
    assert_eq!((counts.ambiguous, counts.late, counts.unanswered), (1, 1, 0));
    assert_eq!(told[0], answered(0, 110, Promptness::AfterNext));
    assert_eq!(told[1], answered(100, 15, Promptness::BeforeNext));
}

#[test]
fn edges_too_many_and_ends_are_counted() {
    let rising =
        |stimulus: &[i64], answer: &[i64], end| paired(EdgeRule::Rising, stimulus, answer, end);
    let (counts, _) = rising(&[100, 150], &[10, 11, 20, 21, 103, 104, 105, 106, 107, 108], 160);
    let expected = EdgeCounts {
        pulses: 1,
        in_time: 1,
        answered_twice: 1,
        spurious: 1,
        before_first: 2,
        ..EdgeCounts::default()
    };
    assert_eq!(counts, expected);
    // In flight only while a period has not passed.
    let (counts, told) = rising(&[0, 50, 100, 150, 200], &[5, 6, 105, 106], 250);
    assert_eq!((counts.in_flight, told[2]), (1, PulseOutcome::InFlight(200)));
    let (counts, told) = rising(&[0, 50, 100, 150, 200], &[5, 6, 105, 106], 301);
    assert_eq!(
        (counts.unanswered, counts.in_flight, told[2]),
        (1, 0, PulseOutcome::Unanswered(200))
    );
    let (counts, told) = rising(&[], &[5, 6], 10);
    assert_eq!((counts, told.len()), (EdgeCounts { before_first: 1, ..EdgeCounts::default() }, 0));
}

#[test]
fn a_dead_line_keeps_nothing_that_grows() {
    let pulses: Vec<i64> = (0..100_000).collect();
    let (counts, told) = paired(EdgeRule::Toggle, &pulses, &[], 100_000);
    assert_eq!((counts.unanswered + counts.in_flight, told.len()), (100_000, 100_000));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_dropped(
        stimulus in proptest::collection::vec(1i64..40, 0..200),
        answer in proptest::collection::vec(1i64..40, 0..200),
        rule in proptest::sample::select(EdgeRule::ALL.to_vec()),
        more in 0i64..100,
    ) {
        let sums = |steps: &[i64]| -> Vec<i64> {
            steps.iter().scan(0, |t, step| { *t += step; Some(*t) }).collect()
        };
        let (stimulus, answer) = (sums(&stimulus), sums(&answer));
        let end = stimulus.last().max(answer.last()).copied().unwrap_or(0) + more;
        let (c, told) = paired(rule.1, &stimulus, &answer, end);
        let of = |n: usize| if rule.1 == EdgeRule::Rising { n.div_ceil(2) } else { n } as u64;
        prop_assert_eq!(c.pulses, of(stimulus.len()));
        prop_assert_eq!(c.pulses, c.in_time + c.late + c.unanswered + c.in_flight);
        prop_assert_eq!(told.len() as u64, c.pulses);
        let edges = c.in_time + c.late + c.answered_twice + c.spurious + c.before_first;
        prop_assert_eq!(of(answer.len()), edges);
        prop_assert!(c.in_flight <= 1);
        let tick = |o: &PulseOutcome| match o {
            PulseOutcome::Answered(a) => a.tick,
            PulseOutcome::Unanswered(tick) | PulseOutcome::InFlight(tick) => *tick,
        };
        prop_assert!(told.is_sorted_by_key(tick), "in the order of the pulses");
        let causal = |o: &PulseOutcome| !matches!(o, PulseOutcome::Answered(a) if a.latency < 0);
        prop_assert!(told.iter().all(causal));
    }

    /// Answers in the order of the pulses, none more than two periods late: toggling tells each delay exactly.
    #[test]
    fn delays_below_two_periods_are_found_exactly_where_levels_toggle(
        delays in proptest::collection::vec(1i64..1990, 1..300),
    ) {
        let mut answers: Vec<i64> = Vec::new();
        let mut planted = Vec::new();
        for (k, delay) in delays.iter().enumerate() {
            let due = k as i64 * 1000;
            let at = (due + delay).max(answers.last().map_or(0, |t| t + 1));
            // What queued up behind a late one stays below two periods.
            let at = at.min(due + 1999);
            if answers.last().is_some_and(|t| *t >= at) { break; }
            planted.push(at - due);
            answers.push(at);
        }
        let pulses: Vec<i64> = (0..planted.len() as i64).map(|k| k * 1000).collect();
        let (c, told) = paired(EdgeRule::Toggle, &pulses, &answers, 1_000_000);
        let found: Vec<i64> = told.iter().filter_map(|o| match o {
            PulseOutcome::Answered(a) => Some(a.latency),
            _ => None,
        }).collect();
        prop_assert_eq!(found, planted);
        prop_assert_eq!((c.spurious, c.answered_twice, c.unanswered, c.ambiguous), (0, 0, 0, 0));
    }
}
