// SPDX-License-Identifier: MIT OR Apache-2.0
//! The theoretical bound: a worked example by hand, and what must be so of every one.

use proptest::prelude::*;
use tailbound_core::theory::{
    Evidence, Execution, Holds, Precondition, TheoryRecord, Variable, VariableRecord, Vector,
};
use tailbound_stats::theory::{Model, TheoreticalBound, answer, at, condense, greatest, steps};

fn variable(variable: Variable, ns: i64) -> VariableRecord {
    VariableRecord {
        variable,
        ns,
        n: 1,
        tracing_ns: None,
        at_ns: 0,
        from: "a".to_owned(),
        to: "b".to_owned(),
    }
}

fn vector(name: &str, executions: &[(i64, i64)]) -> Vector {
    let one = |(at_ns, ns): &(i64, i64)| Execution { at_ns: *at_ns, end_ns: at_ns + ns, ns: *ns };
    Vector { name: name.to_owned(), executions: executions.iter().map(one).collect() }
}

fn evidence(variables: &[(Variable, i64)], vectors: Vec<Vector>) -> Evidence {
    Evidence {
        variables: variables.iter().map(|(v, ns)| variable(*v, *ns)).collect(),
        vectors,
        span_ns: 1_000_000,
        step_ns: 1,
        ..Evidence::default()
    }
}

fn latency(answer: &TheoreticalBound, model: Model) -> Option<i64> {
    answer.of(model).and_then(|m| m.latency_ns)
}

/// By hand. POID 50, ST 30, PAIE 5, PSD 20, one instruction 1: without interrupts 76.
/// Timer: 10 ns at 0, 100, 300. Device: 8 ns at 1000, and 4 at 1080.
///
/// Windows: the timer's first ends at 10 and its second begins at 100, so windows from 90 on have two. The device's: from 72 on.
/// L = 76 + 10 + (8 + 4) = 98; windows of 98 have two of the timer: 76 + 20 + 12 = 108; the third is 290 away: 108.
/// Counts: L = 76 + 10 + 2·8 = 102; then 76 + 20 + 16 = 112.
/// Sporadic: timer each 100, device each 80: 76 + 10 + 8 = 94; ⌈94/80⌉ = 2: 76 + 10 + 16 = 102; ⌈102/100⌉ = 2: 112; ⌈112/80⌉ = 2: 112.
#[test]
fn worked_by_hand() {
    use Variable::{Paie, Poid, Psd, St};
    let vectors = vec![
        vector("timer", &[(0, 10), (100, 10), (300, 10)]),
        vector("device", &[(1000, 8), (1080, 4)]),
    ];
    let record = condense(&evidence(&[(Poid, 50), (St, 30), (Paie, 5), (Psd, 20)], vectors));
    let answer = answer(&record);
    assert_eq!(answer.refused, Vec::<String>::new());
    for (model, ns) in [
        (Model::None, 76),
        (Model::WorstSingle, 86),
        (Model::OneOfEach, 94),
        (Model::Window, 108),
        (Model::WindowCounts, 112),
        (Model::Sporadic, 112),
    ] {
        assert_eq!(latency(&answer, model), Some(ns), "{model:?}");
    }
    assert_eq!(answer.terms[0].name, "POID (preemption or interrupts disabled)");
    // Without POID the switch is in the way: 30 + 5 + 20 + 1 = 56, and 10 + 8 of interrupts: 74, which has both of
    // the device: 78.
    assert_eq!((answer.terms[0].ns, answer.terms[0].without_ns), (50, Some(78)));
}

/// The proof of concept takes the interference of L less that interference: it would stop at 98 above, which has no time
/// for the second interrupt of the timer.
#[test]
fn interference_is_of_the_whole_window() {
    let record = condense(&evidence(
        &[(Variable::Poid, 60), (Variable::St, 0), (Variable::Psd, 29)],
        vec![vector("timer", &[(0, 10), (100, 10), (1000, 10)])],
    ));
    // 90 without interrupts. The window that they make longer has the second one: 100, then 110.
    assert_eq!(latency(&answer(&record), Model::Window), Some(110));
}

#[test]
fn idle_is_another_way_and_the_greater_is_taken() {
    use Variable::{IdleIn, IdleOut, IdleThrough, Paie, Poid, Psd, St};
    let base = [(Poid, 50), (St, 30), (Paie, 5), (Psd, 20)];
    let with = |more: &[(Variable, i64)]| {
        latency(&answer(&condense(&evidence(&[&base, more].concat(), Vec::new()))), Model::None)
    };
    assert_eq!(with(&[]), Some(76));
    assert_eq!(with(&[(IdleIn, 10), (IdleOut, 14)]), Some(76));
    // 30 + 20 + 30 is more than 55.
    assert_eq!(with(&[(IdleIn, 20), (IdleOut, 30)]), Some(101));
    assert_eq!(with(&[(IdleIn, 20), (IdleOut, 30), (IdleThrough, 60)]), Some(111));
}

#[test]
fn a_sample_has_timer_return_and_reading_and_the_interrupts_of_the_longer_window() {
    use Variable::{Poid, Psd, Reading, Return, St, Timer};
    let record = condense(&evidence(
        &[(Poid, 50), (St, 0), (Psd, 20), (Timer, 2), (Return, 15), (Reading, 3)],
        vec![vector("timer", &[(0, 10), (95, 10)])],
    ));
    let answer = answer(&record);
    let window = answer.of(Model::Window).unwrap();
    // 71 and 81; 91 and 101, and with the second one 111.
    assert_eq!((window.latency_ns, window.sample_ns), (Some(81), Some(111)));
}

#[test]
fn what_cannot_be_said_is_refused() {
    use Variable::{Poid, Psd, St};
    let base = [(Poid, 50), (St, 30), (Psd, 20)];
    let dense = evidence(&base, vec![vector("timer", &[(0, 10), (10, 10), (15, 10), (500, 1)])]);
    let dense = answer(&condense(&dense));
    let sporadic = dense.of(Model::Sporadic).unwrap();
    assert!(sporadic.refused.as_ref().is_some_and(|why| why.contains("5 ns apart")));
    assert!(latency(&dense, Model::Window).is_some());

    let mut short = evidence(&base, Vec::new());
    short.span_ns = 60;
    assert_eq!(latency(&answer(&condense(&short)), Model::Window), None);

    let unseen = answer(&condense(&evidence(&[(Poid, 50)], Vec::new())));
    assert_eq!((unseen.refused.len(), unseen.models.len()), (2, 0));

    let mut broken = evidence(&base, Vec::new());
    broken.preconditions.push(Precondition {
        name: "deadline tasks".to_owned(),
        holds: Holds::No,
        why: "one ran".to_owned(),
    });
    assert_eq!(answer(&condense(&broken)).refused, ["deadline tasks: one ran"]);
}

#[test]
fn evidence_of_others_that_contradicts_itself_is_refused() {
    let mut record = condense(&evidence(
        &[(Variable::Poid, 50), (Variable::St, 30), (Variable::Psd, 20)],
        vec![vector("timer", &[(0, 10), (100, 10)])],
    ));
    assert!(answer(&record).refused.is_empty());
    record.interrupts[0].curve.reverse();
    assert_eq!(answer(&record).refused.len(), 1);
    let extreme = TheoryRecord {
        variables: Variable::ALL.map(|v| variable(v, i64::MAX)).to_vec(),
        span_ns: i64::MAX,
        curves_to_ns: i64::MAX,
        ..TheoryRecord::default()
    };
    // No overflow.
    assert_eq!(latency(&answer(&extreme), Model::None), Some(i64::MAX));
}

#[test]
fn an_observation_above_the_bound_is_no_bound() {
    let mut record = condense(&evidence(
        &[(Variable::Poid, 50), (Variable::St, 30), (Variable::Psd, 20)],
        Vec::new(),
    ));
    record.observed.scheduling_ns = 71;
    assert!(answer(&record).holds(&record).is_ok());
    record.observed.scheduling_ns = 72;
    assert!(answer(&record).holds(&record).is_err());
}

fn executions() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((1i64..200, 1i64..40), 1..40).prop_map(|gaps| {
        let mut t = 0;
        gaps.into_iter()
            .map(|(gap, ns)| {
                t += gap;
                let at = t;
                t += ns;
                (at, ns)
            })
            .collect()
    })
}

fn vars() -> impl Strategy<Value = Vec<(Variable, i64)>> {
    prop::collection::vec(1i64..500, Variable::ALL.len())
        .prop_map(|ns| Variable::ALL.into_iter().zip(ns).collect())
}

/// Each window by itself: it begins just before an execution ends.
fn by_force(all: &[Execution], within_ns: i64) -> (u64, i64) {
    let window = |first: &Execution| {
        let (begin, end) = (first.end_ns, first.end_ns + within_ns);
        let inside = all.iter().filter(|e| e.end_ns >= begin && e.at_ns <= end);
        inside.fold((0, 0), |(n, sum), e| (n + 1, sum + e.ns))
    };
    all.iter().map(window).fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)))
}

proptest! {
    #[test]
    fn two_pointers_are_brute_force(all in executions(), within in 0i64..3000) {
        let all = vector("v", &all).executions;
        prop_assert_eq!(greatest(&all, within), by_force(&all, within));
        let step = at(&steps(&all, 3000), within);
        prop_assert_eq!((step.n, step.sum_ns), greatest(&all, within));
    }

    /// No window has more of the time of interrupts, cut where it is cut.
    #[test]
    fn no_window_has_more(all in executions(), within in 0i64..3000, begin in -100i64..5000) {
        let all = vector("v", &all).executions;
        let end = begin + within;
        let has: i64 = all.iter().map(|e| (e.end_ns.min(end) - e.at_ns.max(begin)).max(0)).sum();
        prop_assert!(has <= greatest(&all, within).1);
    }

    #[test]
    fn windows_are_below_counts(all in executions(), more in executions(), variables in vars()) {
        let vectors = vec![vector("a", &all), vector("b", &more)];
        let answer = answer(&condense(&evidence(&variables, vectors)));
        let of = |model| latency(&answer, model).unwrap_or(i64::MAX);
        prop_assert!(of(Model::None) < of(Model::WorstSingle));
        prop_assert!(of(Model::WorstSingle) <= of(Model::OneOfEach));
        prop_assert!(of(Model::OneOfEach) <= of(Model::WindowCounts));
        prop_assert!(of(Model::Window) <= of(Model::WindowCounts));
    }

    #[test]
    fn monotone_in_every_variable(
        all in executions(),
        variables in vars(),
        which in 0usize..Variable::ALL.len(),
        more in 1i64..300,
    ) {
        let mut larger = variables.clone();
        larger[which].1 += more;
        let of = |variables: &[(Variable, i64)]| {
            answer(&condense(&evidence(variables, vec![vector("a", &all)])))
        };
        let (before, after) = (of(&variables), of(&larger));
        for (b, a) in before.models.iter().zip(&after.models) {
            let at = |ns: Option<i64>| ns.unwrap_or(i64::MAX);
            prop_assert!(at(b.latency_ns) <= at(a.latency_ns));
            prop_assert!(at(b.sample_ns) <= at(a.sample_ns));
        }
    }

    /// What is told is a fixed point, and no smaller one is.
    #[test]
    fn the_least_fixed_point(all in executions(), variables in vars()) {
        let record = condense(&evidence(&variables, vec![vector("a", &all)]));
        let answer = answer(&record);
        let base = latency(&answer, Model::None).unwrap();
        if let Some(found) = latency(&answer, Model::Window) {
            let of = |l: i64| base + at(&record.interrupts[0].curve, l).sum_ns;
            prop_assert_eq!(of(found), found);
            prop_assert!((base..found).all(|l| of(l) != l));
        }
    }
}
