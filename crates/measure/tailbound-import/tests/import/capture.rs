// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures of logic analysers as runs: latencies, what was not answered, and what is said of both.
//!
//! Not here: reading the formats, pairing of edges (`tailbound-box`).

use tailbound_core::{Context, EndReason, Impact, Run};
use tailbound_import::{CaptureOptions, EdgeRule, Format, Options, Wiring, import_with};

use crate::consistent;

fn options(rule: EdgeRule) -> Options {
    let wiring = Wiring { stimulus: "in".to_owned(), answer: "1".to_owned() };
    let capture = Some(CaptureOptions { wiring, rule, sample_rate: None });
    Options { capture, ..Options::default() }
}

/// A VCD of 1 µs a tick in which every line changes at its ticks.
fn vcd(stimulus: &[i64], answer: &[i64], end: i64) -> String {
    let mut changes: Vec<(i64, char, usize)> = Vec::new();
    for (code, ticks) in [('!', stimulus), ('"', answer)] {
        changes.extend(ticks.iter().enumerate().map(|(i, t)| (*t, code, (i + 1) % 2)));
    }
    changes.sort_unstable();
    let mut text = "$comment Acquisition with 2/2 channels at 1 MHz $end $timescale 1 us $end $var wire 1 ! in $end $var wire 1 \" out $end $enddefinitions $end\n#0 0! 0\"\n".to_owned();
    for (tick, code, level) in changes {
        text.push_str(&format!("#{tick} {level}{code}\n"));
    }
    text.push_str(&format!("#{end}\n"));
    text
}

fn read(text: &str, rule: EdgeRule) -> Run {
    assert_eq!(Format::detect(text.as_bytes()), Ok(Format::Vcd));
    let run = import_with(None, "c.vcd", text.as_bytes(), &options(rule))
        .unwrap_or_else(|e| panic!("{e}"));
    consistent("c.vcd", &run);
    run
}

fn impact(run: &Run, id: &str) -> Option<Impact> {
    run.findings.iter().find(|f| f.id == id).map(|f| f.impact)
}

fn figure(run: &Run, name: &str) -> f64 {
    run.figures.iter().find(|f| f.name == name).map_or(f64::NAN, |f| f.value)
}

const MS: i64 = 1000;

#[test]
fn pulses_and_answers_are_a_run_of_context_external() {
    let pulses: Vec<i64> = (0..5000).map(|k| 7 + k * MS).collect();
    let delays = |k: i64| 20 + k * 7919 % 60;
    let answers: Vec<i64> = pulses.iter().zip(0..).map(|(t, k)| t + delays(k)).collect();
    let run = read(&vcd(&pulses, &answers, 5_000_000), EdgeRule::Toggle);
    let [thread] = run.threads.as_slice() else { panic!("{}", run.threads.len()) };
    assert_eq!((thread.context, thread.wakeup.n, thread.missed.n), (Context::External, 5000, 0));
    assert_eq!((thread.wakeup.min_ns, thread.wakeup.max_ns), (Some(20_000), Some(79_000)));
    let sum: i64 = (0..5000).map(|k| delays(k) * 1000).sum();
    assert_eq!(thread.wakeup.sums.map(|s| s.s1), Some(i128::from(sum)));
    assert_eq!(thread.wakeup.resolution_ns, 1000);
    let plan = &run.header.plan;
    assert_eq!((plan.interval_ns, plan.event.as_deref()), (1_000_000, Some("pulse")));
    assert_eq!((run.seconds.len(), run.seconds[1].n), (5, 1000));
    assert_eq!(run.end.as_ref().map(|e| e.reason), Some(EndReason::Complete));
    assert!(run.findings.iter().all(|f| f.impact == Impact::Notice), "{:?}", run.findings);
    assert!(run.figures.iter().any(|f| f.name == "period" && f.note.ends_with("are even")));
    assert_eq!(thread.counters.get("answered"), Some(&5000));
}

#[test]
fn an_unanswered_pulse_is_missed_and_as_late_as_the_capture_lasts() {
    let pulses: Vec<i64> = (0..2000).map(|k| k * MS).collect();
    // Those to 600 and 601 never come, as the machine read the same level again.
    let answered = pulses.iter().filter(|t| ![600 * MS, 601 * MS].contains(t));
    let answers: Vec<i64> = answered.map(|t| t + 30).collect();
    let run = read(&vcd(&pulses, &answers, 2000 * MS), EdgeRule::Toggle);
    let thread = &run.threads[0];
    assert_eq!((thread.wakeup.n, thread.missed.n), (1998, 2));
    // Given up after 16 answers that may have been of pulses two periods older, and were read as such.
    assert_eq!((figure(&run, "ambiguous"), figure(&run, "unanswered")), (16.0, 2.0));
    assert_eq!(thread.wakeup.max_ns, Some(2_030_000));
    let given_up = (616 * MS, 617 * MS);
    assert_eq!(thread.missed.max_ns, Some((2000 * MS - given_up.0) * 1000));
    assert_eq!(thread.missed.min_ns, Some((2000 * MS - given_up.1) * 1000));
    assert_eq!(thread.missed.mean(), None, "of what lasted at least so long there is no mean");
    for id in ["source-unanswered", "source-ambiguous"] {
        assert_eq!(impact(&run, id), Some(Impact::Doubt), "{id}");
    }
}

#[test]
fn a_dead_answer_is_a_run_in_which_all_is_missed() {
    let pulses: Vec<i64> = (0..20_000).map(|k| k * 100).collect();
    let run = read(&vcd(&pulses, &[], 1_999_950), EdgeRule::Toggle);
    let thread = &run.threads[0];
    assert_eq!((thread.wakeup.n, thread.missed.n), (0, 20_000));
    assert_eq!(thread.missed.max_ns, Some(1_999_950_000));
    assert_eq!(thread.missed.late.total(), 20_000);
    assert_eq!((figure(&run, "unanswered"), figure(&run, "in-flight")), (19_999.0, 1.0));
}

#[test]
fn the_end_of_a_capture_may_cut_an_answer_off() {
    // Pulses of 10 µs every 100, answered after 40; the last one 20, then 90 before the end.
    let rise = |n: i64, delay: i64| -> Vec<i64> {
        (0..n).flat_map(|k| [k * 100 + delay, k * 100 + delay + 10]).collect()
    };
    for (after, missed) in [(20, 0), (90, 1)] {
        let run = read(&vcd(&rise(51, 0), &rise(50, 40), 5000 + after), EdgeRule::Rising);
        assert_eq!((run.threads[0].wakeup.n, run.threads[0].missed.n), (50, missed));
        assert_eq!(impact(&run, "source-in-flight"), Some(Impact::Notice));
        assert_eq!(figure(&run, "in-flight"), 1.0);
    }
}

#[test]
fn what_is_odd_about_the_lines_is_said() {
    let pulses: Vec<i64> = (0..100).map(|k| 50 + k * 100 + k * k % 37).collect();
    let mut answers: Vec<i64> = vec![3, 4];
    answers.extend(pulses.iter().map(|t| t + 20));
    // A glitch of one sample.
    answers.extend([5080, 5081]);
    answers.sort_unstable();
    let text = vcd(&pulses, &answers, 11_000)
        .replace("#7000 ", "#7000 x! ")
        .replace("#11000", "x\"\n#11000");
    let run = read(&text, EdgeRule::Toggle);
    for (id, expected) in [
        ("source-spurious", Impact::Doubt),
        ("source-unknown-level", Impact::Doubt),
        ("source-short-level", Impact::Notice),
    ] {
        assert_eq!(impact(&run, id), Some(expected), "{id}");
    }
    assert_eq!(figure(&run, "before-first"), 2.0);
    assert_eq!((figure(&run, "spurious"), figure(&run, "answered-twice")), (1.0, 1.0));
    assert!(run.figures.iter().any(|f| f.name == "period" && f.note.contains("not even")));
    // A line of the other sense: everything is late, and the remedy is named.
    let inverted = vcd(&pulses, &pulses.iter().map(|t| t + 20).collect::<Vec<_>>(), 11_000);
    let run = read(&inverted, EdgeRule::Inverted);
    assert_eq!(impact(&run, "source-all-late"), Some(Impact::Notice));
    assert!(run.threads[0].wakeup.min_ns >= Some(60_000), "nothing is better than it was");
}

#[test]
fn a_capture_that_was_cut_off_is_a_shorter_run() {
    let pulses: Vec<i64> = (0..100).map(|k| k * 100).collect();
    let text = vcd(&pulses, &pulses.iter().map(|t| t + 20).collect::<Vec<_>>(), 10_000);
    let cut = &text[..text.len() * 2 / 3];
    let cut = cut.trim_end_matches(char::is_whitespace);
    let run = read(cut, EdgeRule::Toggle);
    assert!(run.end.is_none() && impact(&run, "source-cut-off") == Some(Impact::Doubt));
    let n = run.threads[0].wakeup.n;
    assert!((50..80).contains(&n), "{n}");
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let text = vcd(&[10, 20], &[12, 22], 30);
    let told = |options: &Options, text: &str| {
        import_with(None, "c", text.as_bytes(), options).expect_err("it is refused").to_string()
    };
    let none = told(&Options::default(), &text);
    assert!(none.contains("--stimulus CHANNEL") && none.contains("0 `in`, 1 `out`"), "{none}");
    let silent = told(&options(EdgeRule::Rising), &vcd(&[], &[12, 22], 30));
    assert!(silent.contains("the stimulus `in` has no rising edge"), "{silent}");
    let other = told(&options(EdgeRule::Rising), "# latency_us\n1\n2\n3\n");
    assert!(other.contains("--stimulus, --answer") && other.contains("without them"), "{other}");
    let late = told(&options(EdgeRule::Rising), &format!("{text}#3 1!\n"));
    assert!(late.contains("line ") && late.contains("time goes back"), "{late}");
}
