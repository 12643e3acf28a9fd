// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way a verdict can go, and the sentence that people read.
//!
//! Units: ns.

use proptest::prelude::*;
use tailbound_core::plan::{Clock, Means, StopRule, Until};
use tailbound_core::record::{Header, SCHEMA, SecondRecord, ThreadRecord};
use tailbound_core::requirement::{Class, Requirement};
use tailbound_core::{
    Distribution, EndReason, Finding, Impact, Outcome, Plan, Policy, Run, Verdict,
};
use tailbound_stats::stopping::Stopping;
use tailbound_stats::verdict;

const S: i64 = 1_000_000_000;

pub(crate) fn plan(deadline_ns: Option<i64>) -> Plan {
    Plan {
        name: None,
        probe: "cyclic".to_owned(),
        options: std::collections::BTreeMap::new(),
        event: None,
        property: None,
        interval_ns: 500_000,
        activations: 120_000,
        warm_up_ns: 0,
        cpus: "0-1".parse().expect("a list"),
        policy: Policy::Fifo(95),
        clock: Clock::Monotonic,
        means: Means::Nanosleep,
        loads: Vec::new(),
        requirement: Requirement { deadline_ns, ..Requirement::default() },
        cpu_dma_latency_us: None,
        raw: false,
        paranoid: false,
        observe: None,
        blame: None,
        tasks: None,
        spread: None,
        timer_slack_ns: None,
        tune: None,
        work: None,
        until: None,
    }
}

pub(crate) fn run_of(plan: Plan, threads: Vec<ThreadRecord>) -> Run {
    let mut run = Run::new(Header {
        schema: SCHEMA.to_owned(),
        tool: "tailbound".to_owned(),
        id: "test".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        command: Vec::new(),
        plan,
        machine: Default::default(),
        source: None,
        lab: None,
        round: None,
        purpose: None,
    });
    run.threads = threads;
    run
}

/// Two CPUs, 60 s, 60,000 wake-ups each: CPU 0 at 20 µs, CPU 1 at 30 µs but for `late`, given
/// as (second, latency).
struct Scene {
    plan: Plan,
    threads: Vec<ThreadRecord>,
    seconds: Vec<SecondRecord>,
    findings: Vec<Finding>,
    ended: EndReason,
    measured_ns: i64,
}

impl Scene {
    fn new(late: &[(u64, i64)]) -> Self {
        let mut plan = plan(Some(100_000));
        plan.interval_ns = 1_000_000;
        plan.activations = 60_000;
        let mut seconds = Vec::new();
        let mut threads = Vec::new();
        for (id, usual) in [(0u32, 20_000i64), (1, 30_000)] {
            let mut t = ThreadRecord {
                thread: id,
                cpu: Some(id),
                context: "user".into(),
                ended: "complete".into(),
                ..ThreadRecord::default()
            };
            for second in 0..60u64 {
                let here = late.iter().filter(|(s, _)| id == 1 && *s == second);
                let worst = here.clone().map(|l| l.1).max();
                here.clone().for_each(|l| t.wakeup.add(l.1));
                t.wakeup.add_many(usual, 1000 - here.count() as u64);
                seconds.push(SecondRecord {
                    thread: id,
                    second,
                    n: 1000,
                    max_ns: worst.unwrap_or(usual),
                    argmax: second * 1000 + 400,
                    min_ns: usual,
                    sum_ns: 0,
                    missed: 0,
                });
            }
            threads.push(t);
        }
        let findings = Vec::new();
        Self { plan, threads, seconds, findings, ended: EndReason::Complete, measured_ns: 60 * S }
    }
    fn require(mut self, class: Class, rate: Option<&str>) -> Self {
        self.plan.requirement.class = class;
        self.plan.requirement.rate = rate.map(|r| r.parse().expect("a rate"));
        self
    }
    fn verdict(&self) -> Verdict {
        let v = verdict(
            &self.plan,
            &self.threads,
            &self.seconds,
            &self.findings,
            self.ended,
            self.measured_ns,
        );
        let all = format!("{} {}", v.sentence, v.statements.join(" ")).to_lowercase();
        assert!(!all.contains("guarant"), "{all}");
        assert!(v.sentence.ends_with('.') && !v.sentence.contains(".."), "{}", v.sentence);
        v
    }
}

#[test]
fn met_and_not_met_in_one_sentence() {
    let met = Scene::new(&[(5, 63_123)]).verdict();
    assert_eq!(met.outcome, Outcome::Met);
    assert_eq!(
        met.sentence,
        "Met: none of 120,000 activations on 2 CPUs in 60 s came later than 100 µs; the latest \
         was 63.1 µs."
    );
    assert_eq!((met.due, met.beyond, met.beyond_unknown), (120_000, 0, 0));
    assert_eq!(
        met.statements[0],
        "At 95 % confidence, wake-ups later than 100 µs are rarer than one per 20 s."
    );
    let late: Vec<(u64, i64)> = (0..16).map(|_| (23, 200_000)).chain([(23, 4_310_000)]).collect();
    let not = Scene::new(&late).verdict();
    assert_eq!(not.outcome, Outcome::NotMet);
    assert_eq!(
        not.sentence,
        "Not met: 17 of 120,000 activations on 2 CPUs in 60 s (0.014 %) came later than 100 µs; \
         the worst was 4.31 ms, on CPU 1, 23.4 s into the run."
    );
    assert!(not.statements[0].contains("seconds with wake-ups"), "{:?}", not.statements);
}

#[test]
fn a_nanosecond_decides_and_is_shown() {
    assert_eq!(Scene::new(&[(5, 100_000)]).verdict().outcome, Outcome::Met);
    let v = Scene::new(&[(5, 100_001)]).verdict();
    assert_eq!((v.outcome, v.beyond), (Outcome::NotMet, 1));
    assert!(v.sentence.contains("100.001 µs"), "{}", v.sentence);
}

#[test]
fn doubt_undoes_met_and_nothing_else() {
    for (impact, late, want) in [
        (Impact::Notice, 50_000, Outcome::Met),
        (Impact::Doubt, 50_000, Outcome::Undecided),
        (Impact::Doubt, 500_000, Outcome::NotMet),
        // A word of a later version may mean anything but a notice.
        (Impact::of("from-later"), 50_000, Outcome::Undecided),
        (Impact::of("from-later"), 500_000, Outcome::NotMet),
        (Impact::Unfit, 50_000, Outcome::Unfit),
        (Impact::Unfit, 500_000, Outcome::Unfit),
    ] {
        let mut scene = Scene::new(&[(1, late)]);
        scene.findings.push(Finding::new("x", impact, "the load stopped after 3 s."));
        let v = scene.verdict();
        assert_eq!(v.outcome, want, "{impact:?} {late}");
        let named = format!("{} {}", v.sentence, v.statements.join(" "));
        assert_eq!(named.contains("the load stopped after 3 s"), impact != Impact::Notice);
    }
}

#[test]
fn a_run_that_was_stopped_shows_failure_but_not_success() {
    let mut scene = Scene::new(&[(1, 50_000)]);
    (scene.ended, scene.measured_ns) = (EndReason::Interrupted, 12 * S);
    let v = scene.verdict();
    assert_eq!(v.outcome, Outcome::Undecided);
    assert!(v.sentence.contains("interrupted after 12 s of 60 s"), "{}", v.sentence);
    let mut scene = Scene::new(&[(1, 500_000)]);
    scene.ended = EndReason::Interrupted;
    assert_eq!(scene.verdict().outcome, Outcome::NotMet);
    let mut scene = Scene::new(&[]);
    scene.threads[1].ended = "clock_nanosleep: invalid argument".into();
    let v = scene.verdict();
    assert_eq!(v.outcome, Outcome::Undecided);
    assert!(v.sentence.contains("thread 1 on CPU 1 ended early"), "{}", v.sentence);
}

#[test]
fn silence_is_not_success() {
    let mut scene = Scene::new(&[]);
    scene.threads.pop();
    let v = scene.verdict();
    assert_eq!(v.outcome, Outcome::Undecided);
    assert!(v.sentence.contains("nothing was recorded on CPU 1"), "{}", v.sentence);
    scene.threads.clear();
    let v = scene.verdict();
    assert_eq!((v.outcome, v.due), (Outcome::Undecided, 0));
    scene.plan.requirement.deadline_ns = None;
    assert_eq!(scene.verdict().outcome, Outcome::Undecided);
}

#[test]
fn a_tool_that_found_nothing_above_its_threshold_has_an_answer() {
    let mut scene = Scene::new(&[]);
    scene.threads.clear();
    scene.threads.push(ThreadRecord { ended: "complete".into(), ..ThreadRecord::default() });
    let id = tailbound_core::finding::NOTHING_FOUND;
    scene.findings.push(Finding::new(id, Impact::Notice, "hwlatdetect found nothing above 10 µs"));
    let v = scene.verdict();
    assert_eq!(v.outcome, Outcome::Undecided, "what it does not record may be beyond a deadline");
    scene.plan.requirement.deadline_ns = None;
    let v = scene.verdict();
    assert_eq!(v.outcome, Outcome::Measured);
    assert!(v.sentence.contains("found nothing above 10 µs in 60 s"), "{}", v.sentence);
    scene.ended = EndReason::Interrupted;
    assert!(scene.verdict().sentence.contains("interrupted"));
}

#[test]
fn missed_activations_count_with_their_lateness() {
    // Woken 1.5 ms late at 1 ms: one missed that would have been 0.5 ms late.
    let mut scene = Scene::new(&[(3, 1_500_000)]);
    scene.threads[1].missed.add(500_000);
    let v = scene.verdict();
    assert_eq!((v.outcome, v.due, v.beyond), (Outcome::NotMet, 120_001, 2));
    assert!(v.sentence.ends_with("; one activation was missed."), "{}", v.sentence);
    // A deadline longer than that is met although one was missed.
    scene.plan.requirement.deadline_ns = Some(2_000_000);
    let v = scene.verdict();
    assert_eq!((v.outcome, v.beyond), (Outcome::Met, 0));
    assert!(v.sentence.contains("missed"), "{}", v.sentence);
}

#[test]
fn early_is_as_bad_as_late() {
    let mut scene = Scene::new(&[]);
    scene.plan.requirement.early_ns = Some(5_000);
    scene.threads[0].wakeup.add(-5_000);
    assert_eq!(scene.verdict().outcome, Outcome::Met);
    scene.threads[0].wakeup.add(-7_000);
    let v = scene.verdict();
    assert_eq!((v.outcome, v.beyond), (Outcome::NotMet, 1));
    assert!(v.sentence.contains("later than 100 µs or more than 5 µs early"), "{}", v.sentence);
    assert!(v.sentence.contains("the worst was 7.00 µs early, on CPU 0"), "{}", v.sentence);
    scene.plan.requirement.deadline_ns = None;
    assert_eq!(scene.verdict().outcome, Outcome::NotMet, "early alone is a requirement too");
}

#[test]
fn classes_differ_in_what_they_allow() {
    let late: Vec<(u64, i64)> = (0..60).flat_map(|s| vec![(s, 200_000); 50]).collect();
    let few = |class| Scene::new(&late).require(class, None).verdict();
    assert_eq!(few(Class::NinetyFive).outcome, Outcome::Met, "2.5 %");
    assert_eq!(few(Class::Hard).outcome, Outcome::NotMet);
    assert_eq!(few(Class::Safe).outcome, Outcome::NotMet);
    let v = few(Class::BestEffort);
    assert_eq!(v.outcome, Outcome::Measured);
    assert!(v.sentence.contains("3,000 of 120,000"), "{}", v.sentence);
    let many: Vec<(u64, i64)> = (0..60).flat_map(|s| vec![(s, 200_000); 110]).collect();
    let v = Scene::new(&many).require(Class::NinetyFive, None).verdict();
    assert_eq!(v.outcome, Outcome::NotMet);
    assert!(v.sentence.contains("only 5 % may"), "{}", v.sentence);
    let mut scene = Scene::new(&[]);
    scene.plan.requirement.deadline_ns = None;
    let v = scene.verdict();
    assert_eq!(v.outcome, Outcome::Measured);
    assert!(v.sentence.contains("the median"), "{}", v.sentence);
}

#[test]
fn a_rate_is_shown_only_by_a_run_long_enough() {
    let rate = |late: &[(u64, i64)], rate: &str| {
        Scene::new(late).require(Class::Safe, Some(rate)).verdict()
    };
    // A clean minute shows one per 20 s.
    assert_eq!(rate(&[], "1/20s").outcome, Outcome::Met);
    let v = rate(&[], "1/24h");
    assert_eq!(v.outcome, Outcome::Undecided);
    assert!(v.sentence.contains("takes a run of 3 d without one"), "{}", v.sentence);
    // Ten seconds hit in a minute: at least 5.4 at 95 %, at most 17.
    let ten: Vec<(u64, i64)> = (0..10).map(|i| (i * 6, 200_000)).collect();
    assert_eq!(rate(&ten, "1/24h").outcome, Outcome::NotMet);
    assert_eq!(rate(&ten, "5/60s").outcome, Outcome::NotMet);
    assert_eq!(rate(&ten, "6/60s").outcome, Outcome::Undecided);
    assert_eq!(rate(&[(7, 200_000)], "5/60s").outcome, Outcome::Met, "one hit: at most 4.75");
    let burst = vec![(7, 200_000); 50];
    let v = rate(&burst, "5/60s");
    assert_eq!((v.outcome, v.beyond), (Outcome::Undecided, 50), "{}", v.sentence);
    let v = rate(&ten, "100/1s");
    assert_eq!(v.outcome, Outcome::Undecided, "{}", v.sentence);
    let mut scene = Scene::new(&[]).require(Class::Safe, Some("1/20s"));
    scene.plan.requirement.confidence = 95.0;
    assert_eq!(scene.verdict().outcome, Outcome::Undecided, "95 is not a confidence");
}

#[test]
fn lost_seconds_are_counted_against_the_rate() {
    let mut scene = Scene::new(&[(7, 200_000)]).require(Class::Safe, Some("5/60s"));
    scene.seconds.retain(|s| s.second < 5);
    // One activation was beyond, so one second at most was hit.
    assert_eq!(scene.verdict().outcome, Outcome::Met);
    scene.threads[1].wakeup.add_many(300_000, 20);
    assert_ne!(scene.verdict().outcome, Outcome::Met, "20 more, in unknown seconds");
}

#[test]
fn an_imported_histogram_that_overflowed_is_undecided() {
    let mut scene = Scene::new(&[]);
    scene.seconds.clear();
    let d = &mut scene.threads[0].wakeup;
    *d = Distribution { resolution_ns: 1000, ..Distribution::default() };
    d.add_many(20_000, 59_997);
    (d.n, d.unbinned, d.unbinned_from_ns, d.max_ns) = (60_000, 3, Some(90_000), None);
    let v = scene.verdict();
    assert_eq!((v.outcome, v.beyond_unknown), (Outcome::Undecided, 3));
    assert!(v.sentence.contains("for 3 of 120,000"), "{}", v.sentence);
    scene.threads[0].wakeup.unbinned_from_ns = Some(400_000);
    assert_eq!(scene.verdict().outcome, Outcome::NotMet);
    scene.threads[0].wakeup.unbinned_from_ns = Some(90_000);
    scene.threads[0].wakeup.max_ns = Some(95_000);
    assert_eq!(scene.verdict().outcome, Outcome::Met, "its maximum settles it");
}

#[test]
fn the_outermost_context_is_judged() {
    let mut scene = Scene::new(&[]);
    let mut irq = scene.threads[0].clone();
    irq.context = "irq".into();
    irq.wakeup.add(5_000_000);
    scene.threads.push(irq);
    assert_eq!(scene.verdict().outcome, Outcome::Met, "user is there");
    scene.threads.retain(|t| t.context == tailbound_core::Context::Irq);
    let v = scene.verdict();
    assert_eq!(v.outcome, Outcome::NotMet);
    assert!(v.statements.iter().any(|s| s.contains("`irq`")), "{:?}", v.statements);
}

proptest! {
    /// Whatever a file says: no panic, and never "met" with a value beyond.
    #[test]
    fn no_input_breaks_it(
        values in prop::collection::vec((any::<i64>(), 0u64..1000), 0..20),
        deadline in prop::option::of(any::<i64>()),
        early in prop::option::of(any::<i64>()),
        lost in 0u64..10, unbinned in 0u64..10, from in prop::option::of(any::<i64>()),
        measured_ns in any::<i64>(), interval_ns in any::<i64>(), resolution_ns in 0u64..5000,
        class in 0usize..4, confidence in -1.0f64..2.0,
    ) {
        let mut scene = Scene::new(&[]);
        let d = &mut scene.threads[0].wakeup;
        *d = Distribution { resolution_ns, ..Distribution::default() };
        // Distances of 2^63 are not latencies: the recorder cannot make them.
        values.iter().for_each(|(v, n)| d.add_many((*v).max(-i64::MAX), *n));
        let worst = d.max_ns;
        d.n += lost + unbinned;
        (d.unbinned, d.unbinned_from_ns) = (unbinned, from);
        let classes = [Class::Hard, Class::Safe, Class::NinetyFive, Class::BestEffort];
        scene.plan.requirement = Requirement {
            deadline_ns: deadline,
            early_ns: early,
            class: classes[class],
            rate: (class == 1).then(|| "1/10s".parse().expect("a rate")),
            confidence,
        };
        (scene.plan.interval_ns, scene.measured_ns) = (interval_ns, measured_ns);
        let v = scene.verdict();
        if class == 0 && let Some((worst, deadline)) = worst.zip(deadline) {
            prop_assert!(worst <= deadline || v.outcome != Outcome::Met, "{}", v.sentence);
        }
    }
}

#[test]
fn the_first_exceedance_decides_before_its_second_is_over() {
    let rule = StopRule::Demonstrated;
    let mut plan = plan(Some(100_000));
    plan.until = Some(Until { rule, precision: None, quantiles: Vec::new() });
    plan.requirement.rate = "1/1h".parse().ok();
    let mut stopping = Stopping::new(&plan);
    assert!(stopping.wants_exceedances());
    stopping.exceedance(40_000_000, 100_000);
    assert_eq!(stopping.look(0), None, "as late as the deadline is in time");
    stopping.exceedance(50_000_000, 100_001);
    let stop = stopping.look(0).expect("an end");
    assert!(!stop.reached && stop.text.contains("within 1 s"), "{}", stop.text);
    assert!(stop.text.contains("anyway takes 4 h 45 min"), "{}", stop.text);
}

/// A sentence that says of jobs that they were late does not end with "each was in time".
#[test]
fn a_doubt_about_a_property_is_not_followed_by_the_property() {
    let mut scene = Scene::new(&[]);
    scene.plan.requirement.deadline_ns = None;
    scene.plan.property = Some("each thread had its runtime".to_owned());
    let judged = |findings: &[Finding]| {
        let Scene { plan, threads, seconds, ended, measured_ns, .. } = &scene;
        verdict(plan, threads, seconds, findings, *ended, *measured_ns).sentence
    };
    let clean = judged(&[]);
    assert!(clean.starts_with("Met: each thread had its runtime, in "), "{clean}");
    let doubt = judged(&[Finding::new("deadline-missed", Impact::Doubt, "18 jobs were late")]);
    let shown = "18 jobs were late; it is not shown that each thread had its runtime, in ";
    assert!(doubt.contains(shown), "{doubt}");
}

/// What was missed was not tried: neither is the property claimed of it, nor is its latency one that the probe timed.
#[test]
fn a_property_is_told_of_what_was_tried() {
    let mut scene = Scene::new(&[(5, 63_123)]);
    scene.plan.requirement.deadline_ns = None;
    scene.plan.event = Some("inversion".to_owned());
    scene.plan.property = Some("nobody was kept waiting".to_owned());
    assert_eq!(
        scene.verdict().sentence,
        "Met: nobody was kept waiting, in 120,000 inversions on 2 CPUs in 60 s; the latest was 63.1 µs."
    );
    scene.threads[1].missed.add_many(12_000_000, 2);
    // What is timed beside it is no row of what is judged.
    let mut wait = scene.threads[1].clone();
    (wait.thread, wait.context) = (2, "wait".into());
    wait.wakeup.add(312_000);
    scene.threads.push(wait);
    let verdict = scene.verdict();
    assert_eq!(
        verdict.sentence,
        "Met: nobody was kept waiting, in 120,000 inversions on 2 CPUs in 60 s; the latest (`user`) was 63.1 µs; 2 inversions were missed."
    );
    let missed = "they were not tried, and in the table's rows \"+ missed\" they count";
    assert!(verdict.statements.iter().any(|s| s.contains(missed)), "{:?}", verdict.statements);
}
