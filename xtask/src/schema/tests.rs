// SPDX-License-Identifier: MIT OR Apache-2.0
//! The published schema and the reader of `tailbound-core` accept the same lines.
//!
//! Every field of every line type is removed and replaced by values of every kind; after each
//! change the schema must say what the reader says. A field added to a record, dropped or
//! retyped without the schema fails here.

use serde_json::{Value, json};
use tailbound_core::record::{self, Fact, Facts, Line};
use tailbound_core::runfile::{pack_raw, read_line};
use tailbound_core::stated::StatedQuantiles;
use tailbound_core::{Distribution, Finding, Impact, Outcome, Verdict, histogram::Histogram};

use super::check::published;
use super::validate::Schema;
use crate::root;

fn schema() -> Schema {
    published(&root::project().unwrap()).unwrap()
}

#[test]
fn fields_and_words_of_run_files_stay() {
    let project = root::project().unwrap();
    let text = std::fs::read_to_string(project.join("docs/run-file.schema.json")).unwrap();
    let mut now = std::collections::BTreeSet::new();
    tailbound_testing::names::of_schema(&serde_json::from_str(&text).unwrap(), "", &mut now);
    tailbound_testing::promised(&project.join("xtask/src/schema/promised.txt"), &now);
}

fn distribution() -> Distribution {
    let mut d = Distribution::default();
    for v in [-40_000, 3, 54_000, 1 << 35] {
        d.add(v);
    }
    d
}

/// With every field that may be left out.
fn imported_distribution() -> Distribution {
    let mut d = distribution();
    d.mean_ns = Some(12.5);
    d.unbinned = 2;
    d.unbinned_from_ns = Some(400_000);
    d.quantiles = StatedQuantiles::new([(0.5, 900), (0.99, 54_000)]).unwrap();
    d.resolution_ns = 1000;
    d
}

fn facts() -> Facts {
    Facts::from([
        ("kernel.release".into(), Fact::of("6.18")),
        ("cpu.online".into(), Fact::of(2)),
        ("cpu.governor".into(), Fact::NotApplicable("no cpufreq".into())),
        ("kernel.lockdown".into(), Fact::Unknown("EACCES".into())),
    ])
}

fn plan() -> Value {
    json!({
        "name": "n", "probe": "cyclic", "interval_ns": 200_000, "activations": 10,
        "warm_up_ns": 0, "cpus": "0-1", "policy": "fifo:95", "clock": "monotonic",
        "means": "nanosleep", "loads": ["hackbench:groups=4"],
        "requirement": {
            "deadline_ns": 100_000, "early_ns": 5, "class": "95", "rate": "1/24h",
            "confidence": 0.95
        },
        "cpu_dma_latency_us": 0, "raw": true, "paranoid": false, "observe": "tracepoints"
    })
}

/// Cycles of a watched thread.
fn cycle(distribution: &Value) -> Value {
    let worst = json!({"thread": 0, "name": "n", "t_ns": 1, "latency_ns": 2, "cpu": 3,
                      "parts": [{"phase": "running", "from_ns": 0, "ns": 2, "cause": "own",
                                 "who": "w", "sureness": "likely"}],
                      "chain": ["c"],
                      "lanes": [{"cpu": 3, "spans": [{"from_ns": -1, "to_ns": 2,
                                                      "activity": "idle", "who": "w"}]}],
                      "tracing_ns": 1, "lost": true});
    json!({"type": "cycle", "thread": 0, "name": "n", "tid": 7, "process": 6, "policy": "fifo:80",
           "cpu": 1,
           "activation": {"wait": "w", "waits": 1, "others": 2, "sureness": "sure", "given": true},
           "pace": {"kind": "periodic", "period_ns": 10, "given": true, "sureness": "likely",
                    "intervals": 2, "fitting": 1, "jitter_ns": 3, "least_ns": 4},
           "deadline_ns": 9, "misses": 1, "cycles": 2, "overruns": 1, "broken": 1, "lossy": 1,
           "page_faults": 3, "wakeup": distribution, "execution": distribution,
           "blocked": distribution, "response": distribution,
           "causes": [{"phase": "blocked", "cause": "blocked", "who": "in read", "sureness": "sure",
                       "cycles": 1, "total_ns": 5, "worst_ns": 5}],
           "causes_left_out_ns": 1,
           "late_reasons": [{"phase": "blocked", "cause": "blocked", "who": "in read", "sureness": "sure",
                             "cycles": 2, "backlog": 1, "total_ns": 5, "worst_ns": 5}],
           "worst": [worst],
           "jobs": [{"release_ns": 1, "wakeup_ns": 2, "execution_ns": 3, "blocked_ns": 4,
                     "response_ns": 5}],
           "jobs_left_out": 1})
}

/// A run that was watched from within the emulator.
fn of_paths() -> Value {
    let tree = json!([{"depth": 0, "name": "f", "calls": 1, "total_ns": 2, "own_ns": 1}]);
    json!({"type": "paths", "window_ns": 9,
           "checks": {"same_bytes": true, "samples": 1, "constant_ns": 2, "drift_ppb": 3, "delayed": 1,
                      "several": {"turns": 9, "out_of_turn": 1, "handed_over": 1, "unexplained": 1}},
           "cpus": [{"cpu": 1, "executed_ns": 4, "share_permille": 375}],
           "totals": [{"kind": "interrupts-off", "cpu": 1, "n": 1, "sum_ns": 2, "longest_ns": 2,
                       "own_ns": 1}],
           "sections": [{"kind": "preemption-off", "cpu": 1, "from": "f", "to": "g", "n": 1,
                         "mean_ns": 2, "longest_ns": 2, "own_ns": 1, "at_ns": 1, "tree": tree}],
           "wakeups": [{"activation": 1, "latency_ns": 2,
                        "legs": [{"name": "entry", "ns": 2, "own_ns": 1}],
                        "behind": {"from": "f", "to": "g", "ns": 3, "own_ns": 2},
                        "handed_over": {"cpu": 0, "by": "f", "tree": tree}, "tree": tree}],
           "curve": [{"ns": 1, "samples": 0.5, "instants": 0.25}]})
}

/// Lines about what made threads late, and what they did.
fn of_causes() -> [Value; 4] {
    [
        json!({"type": "blame", "thread": 0, "name": "n", "t_ns": 1, "latency_ns": 2, "cpu": 3,
               "parts": [{"phase": "switch", "from_ns": 0, "ns": 2, "cause": "nmi", "who": "w",
                          "sureness": "likely", "stack": ["f"], "holder": "h-1"}],
               "chain": ["c"],
               "lanes": [{"cpu": 3, "spans": [{"from_ns": -1, "to_ns": 2, "activity": "idle",
                                               "who": "w"}]}],
               "tracing_ns": 1, "near": true, "lost": true}),
        json!({"type": "task", "thread": 0, "name": "n", "tid": 7, "policy": "fifo:80", "cpus": [1],
               "jobs": 3, "lost": 1, "from_ns": 1, "to_ns": 9,
               "arrival": {"model": "periodic", "period_ns": 4, "jitter_ns": 1, "offset_ns": 1,
                           "skipped": 2},
               "distance_min_ns": [3, 8], "distance_max_ns": [4, 8],
               "execution_max_ns": [2, 3], "execution_min_ns": [1, 3],
               "suspension_max_ns": [1], "blocked_max_ns": [1], "latency_max_ns": [1],
               "unwatched_max_ns": [1],
               "response": {"ns": 2, "t_ns": 1}, "suspension": {"ns": 0, "t_ns": 1},
               "suspensions": 1, "blocked": {"ns": 0, "t_ns": 1}, "latency": {"ns": 1, "t_ns": 5},
               "section": {"ns": 1, "t_ns": 5}, "unwatched": {"ns": 0, "t_ns": 1}}),
        of_paths(),
        json!({"type": "violation", "rule": "page-fault", "tid": 1, "name": "n", "site": "s", "n": 2,
               "total": {"ns": 3, "at_most": true},
               "first": {"t_ns": 1, "cost": {"ns": 1, "at_most": true}, "text": "t",
                         "stack": {"method": "dwarf", "frames": ["f"], "reason": "r"}},
               "worst": {"t_ns": 2, "cost": {"ns": 2, "at_most": true}, "text": "t",
                         "stack": {"method": "none", "frames": ["f"], "reason": "r"}}}),
    ]
}

fn header() -> record::Header {
    record::Header {
        schema: record::SCHEMA.into(),
        tool: "tailbound 0".into(),
        id: "i".into(),
        started: "2026-01-01T00:00:00Z".into(),
        command: vec!["tailbound".into()],
        plan: serde_json::from_value(plan()).unwrap(),
        machine: facts(),
        lab: None,
        round: Some(record::Round {
            series: "s".into(),
            variant: "v".into(),
            round: 0,
            rounds: 30,
            place: 1,
            seed: 7,
        }),
        source: Some(record::Source {
            tool: "t".into(),
            format: "f".into(),
            file: "x".into(),
            lost: vec!["all".into()],
        }),
        purpose: Some(Box::new(tailbound_core::purpose::Purpose {
            title: Some("t".into()),
            operator: Some("o".into()),
            requirement: Some("r".into()),
        })),
    }
}

/// One line of each type, with every field filled.
fn lines() -> Vec<Value> {
    let header = header();
    let thread = record::ThreadRecord {
        thread: 1,
        name: Some("control".into()),
        cpu: Some(1),
        context: "user".into(),
        wakeup: distribution(),
        missed: imported_distribution(),
        warm_up: Some(record::WarmUp { n: 3, missed: 1, max_ns: Some(9) }),
        counters: [("minor_faults".to_owned(), 0)].into(),
        dropped: [("raw".to_owned(), 1)].into(),
        p2: [("p50".to_owned(), 1.5)].into(),
        ended: "complete".into(),
        requirement: serde_json::from_value(plan()["requirement"].clone()).ok(),
    };
    let mut out = vec![
        serde_json::to_value(Line::Header(Box::new(header))).unwrap(),
        serde_json::to_value(Line::Thread(Box::new(thread))).unwrap(),
        serde_json::to_value(Line::Raw(pack_raw(0, 5, &[1, -2, 3]))).unwrap(),
        serde_json::to_value(Line::After { facts: facts() }).unwrap(),
        serde_json::to_value(Line::Finding(
            Finding::new("a", Impact::Doubt, "t").meaning("m").remedy("r"),
        ))
        .unwrap(),
        serde_json::to_value(Line::Verdict(Verdict {
            outcome: Outcome::NotMet,
            sentence: "s".into(),
            statements: vec!["a".into()],
            due: 3,
            beyond: 1,
            beyond_unknown: 1,
        }))
        .unwrap(),
    ];
    let distribution_json = serde_json::to_value(distribution()).unwrap();
    out.extend([
        json!({"type": "event", "t_ns": -5, "event": "e", "text": "t"}),
        json!({"type": "second", "thread": 0, "second": 1, "n": 2, "max_ns": -3, "argmax": 4,
               "min_ns": -5, "sum_ns": -8, "missed": 0}),
        json!({"type": "window", "thread": 0, "window_s": 10, "second": 9, "n": 5,
               "values": {"mean": 1.5}}),
        json!({"type": "block", "thread": 0, "second": 10, "seconds": 10, "n": 5,
               "sums": distribution_json["sums"], "late": {"precision": 7, "index": [1], "count": [4]},
               "early": {"precision": 7, "index": [1], "count": [1]}}),
        json!({"type": "exceedance", "thread": 0, "activation": 1, "error_ns": 2, "t_ns": 3,
               "missed": 4}),
        cycle(&distribution_json),
        json!({"type": "load", "load": 0, "name": "memory", "t_ns": 1, "span_ns": 2, "count": 3,
               "unit": "accesses"}),
        json!({"type": "self-cost", "values": {"clock_read_ns": 20.5}}),
        json!({"type": "end", "reason": "complete", "measured_ns": 5, "lines": 7}),
    ]);
    out.extend(of_causes());
    out
}

fn read(value: &Value) -> bool {
    matches!(read_line(value.to_string().as_bytes()), Ok(Some(_)))
}

/// Places at which the reader knows more than a schema of kinds and ranges can say: the inner
/// grammar of a text, that two arrays have one length, that the schema's version is checked later.
/// Its deserialiser also takes a record as an array of its fields, which nobody writes.
fn beyond_a_schema(pointer: &str, was: &Value, to: &Value) -> bool {
    if was.is_object() && to.is_array() {
        return true;
    }
    let grammar = ["/cpus", "/policy", "/rate", "/s1", "/s2", "/s3", "/s4_low"];
    let inner = grammar.iter().any(|end| pointer.ends_with(end)) && to.is_string();
    // A word of a later version is read; the schema names those of this one. So with facts.
    let words = [
        "/class",
        "/clock",
        "/means",
        "/policy",
        "/observe",
        "/rule",
        "/impact",
        "/outcome",
        "/reason",
        "/phase",
        "/cause",
        "/sureness",
        "/activity",
        "/model",
        "/pace/kind",
        "/stack/method",
        "/totals/0/kind",
        "/sections/0/kind",
    ];
    let word = words.iter().any(|end| pointer.ends_with(end)) && to.is_string();
    let fact = ["/machine/", "/facts/"].iter().any(|within| pointer.contains(within))
        && (to.as_object().is_some_and(serde_json::Map::is_empty)
            || to == "removed"
            || to.is_null());
    let arrays = ["/index", "/count"].iter().any(|end| pointer.ends_with(end)) && to.is_array();
    // The largest counts are the reader's limits (docs/run-file.md), not the schema's.
    let limit = *to == json!(u64::MAX);
    inner
        || word
        || fact
        || arrays
        || limit
        || pointer.ends_with("/index/0")
        || pointer == "/schema"
}

fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    let deeper: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Value::Array(items) => {
            items.iter().take(1).enumerate().map(|(i, v)| (i.to_string(), v)).collect()
        }
        _ => Vec::new(),
    };
    for (key, inner) in deeper {
        let pointer = format!("{at}/{key}");
        pointers(inner, &pointer, out);
        out.push(pointer);
    }
}

/// Removes the field at `pointer`; `false` if it is not a field.
fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        return false;
    };
    let parent = value.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.is_some_and(|fields| fields.remove(key).is_some())
}

#[test]
fn every_type_of_line_is_in_the_schema() {
    let schema = schema();
    for line in lines() {
        assert!(read(&line), "the reader refuses its own {line}");
        assert_eq!(schema.errors(&line), Vec::<String>::new(), "{line}");
    }
    assert_eq!(lines().len(), 19, "one line of each type");
}

#[test]
fn what_the_reader_accepts_the_schema_accepts_and_no_more() {
    let schema = schema();
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!("x"),
        json!({}),
        json!([]),
        json!(u64::MAX),
    ];
    let mut changes = 0;
    for line in lines() {
        let mut places = Vec::new();
        pointers(&line, "", &mut places);
        for pointer in &places {
            let mut changed = Vec::new();
            let mut without = line.clone();
            if remove(&mut without, pointer) {
                changed.push((json!("removed"), without));
            }
            for other in &others {
                let mut with = line.clone();
                *with.pointer_mut(pointer).unwrap() = other.clone();
                changed.push((other.clone(), with));
            }
            for (to, changed) in changed {
                let errors = schema.errors(&changed);
                if beyond_a_schema(pointer, line.pointer(pointer).unwrap(), &to) {
                    continue;
                }
                changes += 1;
                assert_eq!(
                    read(&changed),
                    errors.is_empty(),
                    "{} {pointer} := {to}: {errors:?}",
                    line["type"]
                );
            }
        }
    }
    assert!(changes > 1000, "{changes} changes tried");
}

#[test]
fn an_unknown_field_is_not_in_the_schema() {
    for mut line in lines() {
        line["surplus"] = json!(1);
        assert_eq!(schema().errors(&line).len(), 1);
    }
}

#[test]
fn the_version_of_the_schema_is_checked() {
    let mut header = lines().remove(0);
    header["schema"] = json!("tailbound-run/2");
    assert_eq!(schema().errors(&header).len(), 1);
}

#[test]
fn examples_in_the_documentation_follow_it() {
    let text = std::fs::read_to_string(root::project().unwrap().join("docs/run-file.md")).unwrap();
    let examples: Vec<&str> = text.lines().filter(|l| l.starts_with("{\"type\":")).collect();
    let mut types = std::collections::BTreeSet::new();
    for example in examples {
        let value: Value = serde_json::from_str(example).unwrap();
        assert_eq!(schema().errors(&value), Vec::<String>::new(), "{example}");
        // A digest is no record: the reader looks at it and passes over it.
        assert!(value["type"] == "digest" || read(&value), "{example}");
        types.insert(value["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(types.len(), 27, "an example of each line type: {types:?}");
}

#[test]
fn histograms_of_the_schema_are_those_of_the_core() {
    let mut h = Histogram::new(16);
    h.add(1 << 33, 2);
    assert!(serde_json::to_value(&h).is_ok_and(|v| v["precision"] == 16));
}
