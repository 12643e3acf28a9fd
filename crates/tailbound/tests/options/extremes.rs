// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each flag at its extremes, on the command line and in a file; and numbers at random.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use tailbound_core::plan::{DURATION_MAX_NS, INTERVAL_MAX_NS, INTERVAL_MIN_NS};
use tailbound_core::units::exact;

use super::{Bench, line_of_file};

/// What becomes of a value.
enum Fate {
    /// It stands at this place of the header.
    At(&'static str, Value),
    /// It is refused, and the flag is named.
    Refused,
    /// One or the other, as the kernel and the user allow.
    AsAllowed(&'static str, Value),
}
use Fate::{AsAllowed, At, Refused};

/// A value, what else must be given with it, and its fate.
type Case = (&'static str, &'static [&'static str], Fate);

const DEADLINE: &[&str] = &["deadline=100us"];
const SHOWN: &[&str] = &["deadline=100us", "rate=1/1h"];
const MILLION: &[&str] = &["interval=10us"];
const HUGE_NS: i64 = 1_152_921_504_606_846_975;

fn cases(flag: &str) -> Option<Vec<Case>> {
    [requirement, length, ending, threads, sleeping, beside].iter().find_map(|of| of(flag))
}

fn requirement(flag: &str) -> Option<Vec<Case>> {
    const LATE: &str = "/plan/requirement/deadline_ns";
    const EARLY: &str = "/plan/requirement/early_ns";
    const CLASS: &str = "/plan/requirement/class";
    const RATE: &str = "/plan/requirement/rate";
    const CONFIDENCE: &str = "/plan/requirement/confidence";
    Some(match flag {
        "deadline" => vec![
            ("1152921504606846975ns", &[], At(LATE, json!(HUGE_NS))),
            ("100ns", &[], AsAllowed(LATE, json!(100))),
            ("1152921504606846976ns", &[], Refused),
            ("99ns", &[], Refused),
            ("0us", &[], Refused),
            ("-100us", &[], Refused),
            ("100", &[], Refused),
            ("infs", &[], Refused),
            ("", &[], Refused),
        ],
        "early" => vec![
            ("1152921504606846975ns", DEADLINE, At(EARLY, json!(HUGE_NS))),
            ("0us", DEADLINE, Refused),
            ("-1us", DEADLINE, Refused),
            ("1us", &[], Refused),
        ],
        "class" => vec![
            ("best-effort", DEADLINE, At(CLASS, json!("best-effort"))),
            ("95%", DEADLINE, At(CLASS, json!("95"))),
            ("safe", SHOWN, At(CLASS, json!("safe"))),
            ("safe", DEADLINE, Refused),
            ("96", DEADLINE, Refused),
            ("", DEADLINE, Refused),
        ],
        "rate" => vec![
            ("4294967295/1ns", DEADLINE, At(RATE, json!("4294967295/1ns"))),
            ("1/1152921504606846975ns", DEADLINE, At(RATE, json!("1/1152921504606846975ns"))),
            ("4294967296/1h", DEADLINE, Refused),
            ("0/1h", DEADLINE, Refused),
            ("1/0h", DEADLINE, Refused),
            ("1/1h", &[], Refused),
        ],
        "confidence" => vec![
            ("0.5", &[], At(CONFIDENCE, json!(0.5))),
            ("0.9999999999999999", &[], At(CONFIDENCE, json!(0.999_999_999_999_999_9))),
            ("1.0", &[], Refused),
            ("0.49999999999999994", &[], Refused),
            ("-0.95", &[], Refused),
            ("nan", &[], Refused),
            ("inf", &[], Refused),
            ("-inf", &[], Refused),
            ("1e308", &[], Refused),
        ],
        _ => return None,
    })
}

fn length(flag: &str) -> Option<Vec<Case>> {
    const INTERVAL: &str = "/plan/interval_ns";
    const ACTIVATIONS: &str = "/plan/activations";
    const WARM_UP: &str = "/plan/warm_up_ns";
    const HALF_WIDTH: &[&str] = &["until=precision"];
    const DEMONSTRATED: &[&str] = &["deadline=100us", "rate=1/1h", "until=demonstrated"];
    Some(match flag {
        "interval" => vec![
            ("10us", &[], At(INTERVAL, json!(INTERVAL_MIN_NS))),
            ("1h", &["loops=1"], At(INTERVAL, json!(INTERVAL_MAX_NS))),
            ("9999ns", &[], Refused),
            ("3600000000001ns", &["loops=1"], Refused),
            ("-1ms", &[], Refused),
            ("1", &[], Refused),
        ],
        "duration" => vec![
            ("365d", &[], At(ACTIVATIONS, json!(31_536_000_000_u64))),
            ("1ms", &[], At(ACTIVATIONS, json!(1))),
            ("31536000001ms", &[], Refused),
            ("999us", &[], Refused),
            ("-1h", &[], Refused),
            ("10", &[], Refused),
            // A stopping rule has a longest time of its own, which must not hide these.
            ("10", DEMONSTRATED, Refused),
            ("soon", DEMONSTRATED, Refused),
            ("10", HALF_WIDTH, Refused),
            ("10h", DEMONSTRATED, At(ACTIVATIONS, json!(36_000_000))),
        ],
        "loops" => vec![
            ("1", &[], At(ACTIVATIONS, json!(1))),
            ("3153600000000", MILLION, At(ACTIVATIONS, json!(3_153_600_000_000_u64))),
            ("3153600000001", MILLION, Refused),
            ("0", &[], Refused),
            ("18446744073709551615", &[], Refused),
            ("18446744073709551616", &[], Refused),
            ("-1", &[], Refused),
            ("9", &["duration=1s"], Refused),
            ("18446744073709551615", HALF_WIDTH, Refused),
            ("18446744073709551615", DEMONSTRATED, Refused),
        ],
        "warm-up" => vec![
            ("0s", &[], At(WARM_UP, json!(0))),
            ("365d", &[], At(WARM_UP, json!(DURATION_MAX_NS))),
            ("31535999999999999ns", &[], At(WARM_UP, json!(31_535_999_999_999_999_i64))),
            ("31536000000000001ns", &[], Refused),
            ("-1ns", &[], Refused),
            ("1", &[], Refused),
        ],
        _ => return None,
    })
}

fn ending(flag: &str) -> Option<Vec<Case>> {
    const RULE: &str = "/plan/until/rule";
    const UNTIL: &str = "/plan/until";
    const HALF_WIDTH: &[&str] = &["until=precision"];
    Some(match flag {
        "until" => vec![
            ("exceedance", DEADLINE, At(RULE, json!("exceedance"))),
            ("precision", &[], At(RULE, json!("precision"))),
            ("anytime", SHOWN, At(RULE, json!("anytime"))),
            ("demonstrated", SHOWN, At(RULE, json!("demonstrated"))),
            ("exceedance", &[], Refused),
            ("demonstrated", DEADLINE, Refused),
            ("demonstrated", &["deadline=100us", "rate=1/365d"], Refused),
            ("never", &[], Refused),
        ],
        "precision" => vec![
            (
                "0.01%:p1e-300,p99.99999999999999",
                HALF_WIDTH,
                At(
                    UNTIL,
                    json!({"rule": "precision", "precision": 0.01 / 100.0, "quantiles": [1e-300 / 100.0, 99.999_999_999_999_99 / 100.0]}),
                ),
            ),
            ("0.009%", HALF_WIDTH, Refused),
            ("100%", HALF_WIDTH, Refused),
            ("nan%", HALF_WIDTH, Refused),
            ("5%:p0", HALF_WIDTH, Refused),
            ("5%:p100", HALF_WIDTH, Refused),
            ("5%:", HALF_WIDTH, Refused),
            ("5%", &[], Refused),
            ("5%", &["until=exceedance", "deadline=1ms"], Refused),
        ],
        "break" => vec![
            ("1152921504606846975ns", &[], At("/plan/requirement/deadline_ns", json!(HUGE_NS))),
            ("1ms", &[], At(RULE, json!("exceedance"))),
            ("0us", &[], Refused),
            ("-1us", &[], Refused),
            ("5", &[], Refused),
        ],
        "begin-at" => vec![
            ("9223372036.854775807", &[], At("/begin-at", json!(i64::MAX))),
            ("0", &[], At("/begin-at", json!(0))),
            ("9223372036.854775808", &[], Refused),
            ("1.0000000001", &[], Refused),
            ("-1", &[], Refused),
            ("noon", &[], Refused),
        ],
        _ => return None,
    })
}

fn threads(flag: &str) -> Option<Vec<Case>> {
    const CPUS: &str = "/plan/cpus";
    const POLICY: &str = "/plan/policy";
    Some(match flag {
        "cpus" => vec![
            ("all", &[], At(CPUS, json!("0-3"))),
            ("3,0", &[], At(CPUS, json!("0,3"))),
            ("4", &[], Refused),
            ("4294967296", &[], Refused),
            ("8192", &[], Refused),
            ("", &[], Refused),
            ("isolated", &[], Refused),
            ("-1", &[], Refused),
        ],
        "policy" => vec![
            ("idle", &[], AsAllowed(POLICY, json!("idle"))),
            ("99", &[], AsAllowed(POLICY, json!("fifo:99"))),
            ("rr:1", &[], AsAllowed(POLICY, json!("rr:1"))),
            (
                "deadline:1024ns/1152921504606846975ns",
                &[],
                AsAllowed(POLICY, json!("deadline:1024ns/1152921504606846975ns")),
            ),
            ("fifo:0", &[], Refused),
            ("fifo:100", &[], Refused),
            ("fifo:257", &[], Refused),
            ("deadline:1ms/-1ms", &[], Refused),
            ("deadline:1023ns/1ms", &[], Refused),
            ("", &[], Refused),
        ],
        "clock" => vec![
            ("realtime", &[], At("/plan/clock", json!("realtime"))),
            ("tai", &[], At("/plan/clock", json!("tai"))),
            ("sundial", &[], Refused),
            ("", &[], Refused),
        ],
        "tasks" => vec![
            ("1", &[], At("/plan/tasks", json!(1))),
            ("256", &[], At("/plan/tasks", json!(256))),
            ("257", &[], Refused),
            ("0", &[], Refused),
            ("4294967295", &[], Refused),
            ("4294967296", &[], Refused),
            ("1", &["probe=busy"], Refused),
        ],
        "one-per-cpu" => vec![
            ("", &[], At(CPUS, json!("0-3"))),
            ("4", &[], At(CPUS, json!("0-3"))),
            ("1", &["cpus=2"], At(CPUS, json!("2"))),
            ("0", &[], Refused),
            ("3", &[], Refused),
            ("4", &["cpus=2"], Refused),
            ("4", &["tasks=2"], Refused),
            ("4294967296", &[], Refused),
        ],
        _ => return None,
    })
}

fn sleeping(flag: &str) -> Option<Vec<Case>> {
    const MEANS: &str = "/plan/means";
    const SPREAD: &str = "/plan/spread";
    const SLACK: &str = "/plan/timer_slack_ns";
    const DMA: &str = "/plan/cpu_dma_latency_us";
    Some(match flag {
        "sleep" => vec![
            ("usleep", &[], At(MEANS, json!("usleep"))),
            ("nanosleep", &[], At(MEANS, json!("nanosleep"))),
            ("itimer", &[], Refused),
            ("polling", &[], Refused),
            ("unknown", &[], Refused),
            ("", &[], Refused),
        ],
        "interval-spread" => vec![
            ("90%:18446744073709551615", &[], At(SPREAD, json!({"share": 0.9, "seed": u64::MAX}))),
            ("1e-300%:0", &[], At(SPREAD, json!({"share": 1e-300 / 100.0, "seed": 0}))),
            ("90.00000000000001%", &[], Refused),
            ("50%:18446744073709551616", &[], Refused),
            ("50%:-1", &[], Refused),
            ("0%", &[], Refused),
            ("nan%", &[], Refused),
            ("50", &[], Refused),
            ("50%", &["sleep=timerfd"], Refused),
        ],
        "timer-slack" => vec![
            ("1ns", &[], At(SLACK, json!(1))),
            ("1152921504606846975ns", &[], At(SLACK, json!(HUGE_NS))),
            ("0ns", &[], Refused),
            ("-1ns", &[], Refused),
            ("1", &[], Refused),
        ],
        "cpu-dma-latency" => vec![
            ("0", &[], At(DMA, json!(0))),
            ("2147483647us", &[], At(DMA, json!(i32::MAX))),
            ("2147483648us", &[], Refused),
            ("-1us", &[], Refused),
            ("1ns", &[], Refused),
            ("1", &[], Refused),
        ],
        "raw" => vec![("true", &[], At("/plan/raw", json!(true)))],
        "paranoid" => vec![
            ("true", &[], At("/plan/paranoid", json!(true))),
            ("true", &["probe=busy"], Refused),
        ],
        _ => return None,
    })
}

fn beside(flag: &str) -> Option<Vec<Case>> {
    const LOADS: &str = "/plan/loads";
    const WORK: &str = "/plan/work/works";
    const LINE: &str = "/purpose/title";
    const COMMAS: &str = "cmd:line=awk -F, , a=1";
    Some(match flag {
        "probe" => vec![
            ("busy", &[], At("/plan/probe", json!("busy"))),
            ("signal:between=processes", &[], At("/plan/options/between", json!("processes"))),
            ("signal:between=planets", &[], Refused),
            ("nosuch", &[], Refused),
            ("", &[], Refused),
        ],
        "load" => vec![
            ("none", &[], At(LOADS, json!([]))),
            ("clock,memory", &[], At(LOADS, json!(["clock", "memory"]))),
            (COMMAS, &[], At(LOADS, json!([COMMAS]))),
            ("hackbench:groups=18446744073709551616", &[], Refused),
            ("nosuch", &[], Refused),
            ("", &[], Refused),
            (",", &[], Refused),
        ],
        "load-cmd" => {
            vec![("a,b ,=c", &[], At(LOADS, json!(["cmd:line=a,b ,=c"]))), ("", &[], Refused)]
        }
        "work" => vec![
            ("arithmetic", &[], At("/plan/work/repeat", json!(3))),
            ("nosuch", &[], Refused),
            ("arithmetic,arithmetic", &[], Refused),
            ("", &[], Refused),
        ],
        "work-cmd" => {
            vec![("a,b ,=c", &[], At(WORK, json!(["cmd:line=a,b ,=c"]))), ("", &[], Refused)]
        }
        "repeat" => vec![
            ("10000", &["work=arithmetic"], At("/plan/work/repeat", json!(10_000))),
            ("10001", &["work=arithmetic"], Refused),
            ("0", &["work=arithmetic"], Refused),
            ("4294967296", &["work=arithmetic"], Refused),
            ("1", &[], Refused),
        ],
        "observe" => vec![
            ("timerlat", &[], AsAllowed("/plan/observe", json!("timerlat"))),
            ("nosuch", &[], Refused),
            ("", &[], Refused),
        ],
        "blame" => vec![
            ("auto", &[], AsAllowed("/plan/blame", json!({}))),
            ("1152921504606846975ns", &[], AsAllowed("/plan/blame/above_ns", json!(HUGE_NS))),
            ("9", &[], Refused),
            ("", &[], Refused),
        ],
        "tune" => vec![("nosuch", &[], Refused), ("", &[], Refused)],
        "rt-cpus" => vec![("1", &[], Refused), ("99999", &["tune=cyclic"], Refused)],
        "title" => {
            vec![("é", &[], At(LINE, json!("é"))), ("", &[], Refused), ("a\nb", &[], Refused)]
        }
        "operator" => vec![
            ("A. Nother", &[], At("/purpose/operator", json!("A. Nother"))),
            ("\u{202e}", &[], Refused),
        ],
        "requirement" => vec![
            ("REQ-17: x", &[], At("/purpose/requirement", json!("REQ-17: x"))),
            (" ", &[], Refused),
        ],
        "as-round" => vec![
            (
                r#"{"series":"s","variant":"v","round":4294967295,"rounds":4294967295,"place":0,"seed":18446744073709551615}"#,
                &[],
                At("/round/seed", json!(u64::MAX)),
            ),
            ("{}", &[], Refused),
        ],
        // Of a series: it is for `--rounds` alone.
        "margin" | "margin-time" | "seed" => vec![("1", &[], Refused)],
        "require-equivalent" => vec![("true", &[], Refused)],
        _ => return None,
    })
}

/// Flags that say where files go, what is shown, whom to wait for and how many runs there are: no header has them.
const NOT_OF_A_RUN: [&str; 20] = [
    "virtual-time",
    "config",
    "yes",
    "wait-for-machine",
    "out",
    "force",
    "json",
    "brief",
    "quiet",
    "color",
    "report",
    "rounds",
    "variants",
    // What is done at a threshold is of the command line alone: no file and no header has it.
    "break-irq",
    "on-end",
    "on-late",
    "on-threshold",
    "signal",
    "trace",
    // The whole of `raw` and the like in a file.
    "help",
];

/// Names of the flags; those without a long one by their identifier.
fn flags() -> BTreeSet<String> {
    let command = tailbound::command();
    let run = command.find_subcommand("run").expect("a verb");
    let name = |a: &clap::Arg| a.get_long().unwrap_or(a.get_id().as_str()).to_owned();
    run.get_arguments().map(name).collect()
}

/// The words of a flag with a value.
fn word(flag: &str, value: &str) -> String {
    match (flag, value) {
        ("one-per-cpu", "") => "-t".to_owned(),
        ("one-per-cpu", n) => format!("-t{n}"),
        ("raw" | "paranoid" | "require-equivalent", _) => format!("--{flag}"),
        _ => format!("--{flag}={value}"),
    }
}

/// Why the value neither stands in the header nor is refused by the name of its flag.
fn fault(flag: &str, said: &str, header: Result<Value, String>, fate: &Fate) -> Option<String> {
    let (place, value) = match (fate, &header) {
        (Refused, Ok(_)) => return Some(format!("{said}: let pass")),
        (At(..), Err(e)) => return Some(format!("{said}: refused: {e}")),
        (_, Err(e)) if names(e, flag) => return None,
        (_, Err(e)) => return Some(format!("{said}: does not name its flag: {e}")),
        (At(place, value) | AsAllowed(place, value), Ok(_)) => (place, value),
    };
    let arrived = header.ok().and_then(|h| h.pointer(place).cloned());
    (arrived.as_ref() != Some(value)).then(|| format!("{said}: {arrived:?} instead of {value}"))
}

fn names(error: &str, flag: &str) -> bool {
    error.contains(if flag == "one-per-cpu" { "-t" } else { flag })
}

#[test]
fn every_flag_is_listed_here_with_its_extremes() {
    let unlisted: Vec<String> = flags()
        .into_iter()
        .filter(|f| !NOT_OF_A_RUN.contains(&f.as_str()) && cases(f).is_none())
        .collect();
    assert!(unlisted.is_empty(), "list the extremes of {unlisted:?}, or why no header has it");
}

#[test]
fn extremes_of_every_flag_arrive_in_the_header_or_are_refused_by_name() {
    let bench = Bench::new();
    let mut faults = Vec::new();
    for flag in flags() {
        for (value, with, fate) in cases(&flag).unwrap_or_default() {
            let given = word(&flag, value);
            let own = flag == "policy" || given.is_empty();
            let mut words: Vec<String> = with.iter().map(|w| format!("--{w}")).collect();
            if !own {
                words.push("--policy=other".to_owned());
            }
            words.push(given);
            faults.extend(fault(&flag, &words.join(" "), bench.header(&words), &fate));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn extremes_in_a_file_arrive_in_the_header_or_are_refused_by_name() {
    let bench = Bench::new();
    let no_keys = ["break", "begin-at", "one-per-cpu", "work-cmd", "as-round", "margin", "seed"];
    let no_keys = [&no_keys[..], &["margin-time", "require-equivalent"]].concat();
    let mut faults = Vec::new();
    for flag in flags().iter().filter(|f| !no_keys.contains(&f.as_str())) {
        for (value, with, fate) in cases(flag).unwrap_or_default() {
            let mut file: String = with.iter().map(|w| line_of_file(w)).collect();
            if flag != "policy" {
                file.push_str(&line_of_file("policy=other"));
            }
            file.push_str(&line_of_file(&format!("{flag}={value}")));
            faults.extend(fault(flag, &file, bench.header_of_file(&file), &fate));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The number at the place, or a refusal that names the flag.
fn arrives(flag: &str, value: &str, with: &[&str], place: &'static str, number: Value) {
    let bench = Bench::new();
    let mut words: Vec<String> = with.iter().map(|w| format!("--{w}")).collect();
    words.extend(["--policy=other".to_owned(), word(flag, value)]);
    let fate = AsAllowed(place, number);
    assert_eq!(fault(flag, &words.join(" "), bench.header(&words), &fate), None);
    let mut file: String = with.iter().map(|w| line_of_file(w)).collect();
    file.push_str(&line_of_file("policy=other"));
    file.push_str(&line_of_file(&format!("{flag}={value}")));
    assert_eq!(fault(flag, &file, bench.header_of_file(&file), &fate), None);
}

/// Times of every size, also just beside what is accepted.
fn times() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), 0i64..1_000_000_000, (0u32..63).prop_map(|b| 1i64 << b)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_time_arrives_to_the_nanosecond(ns in times()) {
        let text = exact(ns);
        arrives("deadline", &text, &[], "/plan/requirement/deadline_ns", json!(ns));
        arrives("early", &text, DEADLINE, "/plan/requirement/early_ns", json!(ns));
        arrives("interval", &text, &["loops=1"], "/plan/interval_ns", json!(ns));
        arrives("warm-up", &text, &[], "/plan/warm_up_ns", json!(ns));
        arrives("timer-slack", &text, &[], "/plan/timer_slack_ns", json!(ns));
        arrives("cpu-dma-latency", &text, &[], "/plan/cpu_dma_latency_us", json!(ns / 1000));
        arrives("duration", &text, &[], "/plan/activations", json!(ns / 1_000_000));
        arrives("rate", &format!("7/{text}"), DEADLINE, "/plan/requirement/rate", json!(format!("7/{text}")));
    }

    #[test]
    fn any_number_arrives(n in any::<u64>(), small in any::<u32>(), share in any::<f64>()) {
        arrives("loops", &n.to_string(), &[], "/plan/activations", json!(n));
        arrives("loops", &small.to_string(), &[], "/plan/activations", json!(small));
        arrives("tasks", &(small % 300).to_string(), &[], "/plan/tasks", json!(small % 300));
        arrives("repeat", &(small % 20_000).to_string(), &["work=arithmetic"], "/plan/work/repeat", json!(small % 20_000));
        arrives("interval-spread", &format!("50%:{n}"), &[], "/plan/spread/seed", json!(n));
        let share = share.rem_euclid(1.0);
        arrives("confidence", &format!("{share:?}"), &[], "/plan/requirement/confidence", json!(share));
    }
}
