// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace for Perfetto, read back by a decoder of its own: tracks, times, nesting, harmless names.
//!
//! Units: ns. Source: protobuf.dev, "Encoding"; Perfetto, `trace_packet.proto`.

#[path = "common/blames.rs"]
mod blames;
mod common;

use std::collections::BTreeMap;

use tailbound_core::Run;
use tailbound_core::blame::BlameRecord;
use tailbound_core::record::{Clocks, Event, ExceedanceRecord, WARM_UP_OVER};
use tailbound_report::export::{Exported, Format, export, late_wakeups};
use tailbound_stats::Analysis;

/// The fields of a message: number, and a value or bytes.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut out = 0;
    for shift in (0..70).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number goes on");
        *bytes = rest;
        out |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return out;
        }
    }
    panic!("a number without end");
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value)> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(inner.to_vec())
            }
            kind => panic!("wire type {kind}"),
        };
        out.push((key >> 3, value));
    }
    out
}

fn number(message: &[(u64, Value)], field: u64) -> Option<u64> {
    message.iter().find_map(|(f, v)| match v {
        Value::Number(n) if *f == field => Some(*n),
        _ => None,
    })
}

fn all_bytes(message: &[(u64, Value)], field: u64) -> Vec<&[u8]> {
    let of = |(f, v): &'_ (u64, Value)| *f == field && matches!(v, Value::Bytes(_));
    fn bytes(v: &Value) -> &[u8] {
        match v {
            Value::Bytes(b) => b.as_slice(),
            Value::Number(_) => &[],
        }
    }
    message.iter().filter(|f| of(f)).map(|(_, v)| bytes(v)).collect()
}

fn text(message: &[(u64, Value)], field: u64) -> String {
    let all = all_bytes(message, field);
    all.first().map_or_else(String::new, |b| String::from_utf8(b.to_vec()).expect("UTF-8"))
}

/// What was read back of a trace.
#[derive(Debug, Default)]
struct Read {
    /// Names by number, with the parent's number.
    tracks: BTreeMap<u64, (String, Option<u64>)>,
    /// Track, begin, end, name, depth, in the order of their ends.
    slices: Vec<(String, u64, u64, String, usize)>,
    instants: Vec<(String, u64, String)>,
    values: Vec<(String, u64, i64)>,
    /// Clock of the packets, and those of the snapshot.
    clocks: Vec<(u64, u64)>,
    timed_by: Vec<Option<u64>>,
    notes: Vec<(String, String)>,
}

impl Read {
    fn path(&self, uuid: u64) -> String {
        let (name, parent) = &self.tracks[&uuid];
        match parent {
            Some(parent) => format!("{}/{name}", self.path(*parent)),
            None => name.clone(),
        }
    }

    fn on(&self, track: &str) -> Vec<(u64, u64, &str, usize)> {
        let of = self.slices.iter().filter(|(t, ..)| t.ends_with(track));
        of.map(|(_, from, to, name, depth)| (*from, *to, name.as_str(), *depth)).collect()
    }
}

fn read(bytes: &[u8]) -> Read {
    let mut out = Read::default();
    let mut open: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for (field, packet) in fields(bytes) {
        let (1, Value::Bytes(packet)) = (field, packet) else { panic!("not a packet") };
        let packet = fields(&packet);
        assert!(number(&packet, 10).is_some_and(|n| n > 0 && n <= u64::from(u32::MAX)));
        for track in all_bytes(&packet, 60).into_iter().map(fields) {
            let uuid = number(&track, 1).expect("a number");
            let parent = number(&track, 5);
            assert!(uuid > 0 && parent.is_none_or(|p| out.tracks.contains_key(&p)));
            assert!(out.tracks.insert(uuid, (text(&track, 2), parent)).is_none(), "a number twice");
        }
        for snapshot in all_bytes(&packet, 6).into_iter().map(fields) {
            assert_eq!(number(&snapshot, 2), Some(3), "the trace's clock is CLOCK_MONOTONIC");
            for clock in all_bytes(&snapshot, 1).into_iter().map(fields) {
                out.clocks.push((number(&clock, 1).unwrap(), number(&clock, 2).unwrap()));
            }
        }
        for event in all_bytes(&packet, 11).into_iter().map(fields) {
            let (at, uuid) = (number(&packet, 8).expect("a time"), number(&event, 11).unwrap());
            out.timed_by.push(number(&packet, 58));
            let (path, name) = (out.path(uuid), text(&event, 23));
            let stack = open.entry(uuid).or_default();
            let before = last.insert(uuid, at).unwrap_or(0);
            match number(&event, 9) {
                Some(1) => {
                    assert!(at >= before, "{path}: begins in order");
                    stack.push((at, name));
                }
                Some(2) => {
                    assert!(at >= before, "{path}: ends in order");
                    let (from, name) = stack.pop().expect("an end has its begin");
                    let depth = stack.len();
                    out.slices.push((path, from, at, name, depth));
                }
                Some(3) => out.instants.push((path, at, name)),
                Some(4) => {
                    let value = number(&event, 30).expect("a value");
                    out.values.push((path, at, i64::from_le_bytes(value.to_le_bytes())));
                }
                other => panic!("kind {other:?}"),
            }
            for note in all_bytes(&event, 4).into_iter().map(fields) {
                out.notes.push((text(&note, 10), text(&note, 6)));
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice has its end");
    out
}

fn run(records: Vec<BlameRecord>) -> Run {
    let shape = common::Shape { seconds: 3, per_second: 500, ..common::Shape::default() };
    let mut run = common::run(&shape);
    run.blames = records;
    run
}

fn trace(run: &Run) -> Read {
    match export(&Analysis::of(run), Format::Perfetto) {
        Exported::Bytes(bytes) => {
            if let Some(path) = std::env::var_os("TAILBOUND_TEST_TRACE") {
                std::fs::write(path, &bytes).expect("the trace can be written");
            }
            read(&bytes)
        }
        Exported::Text(text) => panic!("text: {text}"),
    }
}

const MONOTONIC: u64 = 5_000_000_000;

fn clocked(records: Vec<BlameRecord>) -> Run {
    let mut run = run(records);
    let clocks = Clocks {
        monotonic_ns: 5_000_000_000,
        boottime_ns: 6_000_000_000,
        realtime_ns: 1_795_287_536_000_000_000,
    };
    run.events = vec![Event { clocks: Some(clocks), ..Event::new(0, WARM_UP_OVER, "") }];
    run
}

#[test]
fn tracks_hold_latencies_causes_and_what_cpus_did() {
    let run = clocked(blames::all());
    let read = trace(&run);
    let root = format!("tailbound {}", run.header.id);
    let names: Vec<&str> = read.tracks.values().map(|(n, _)| n.as_str()).collect();
    for name in [&root, "latency", "cause", "CPU 0", "CPU 1", "latest of each second"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert_eq!(read.tracks.values().filter(|(_, parent)| parent.is_none()).count(), 1);
    let due = MONOTONIC + 12_345_000_000;
    let latency = read.on("CPU 1/latency");
    let worker = "work queue function kworker/1:0-41 vmstat_update";
    let late = format!("2.31 ms late: {worker}");
    assert!(latency.contains(&(due, due + 2_310_000, &late, 0)), "{latency:?}");
    assert!(latency.contains(&(due, due + 60_000, "timer", 1)));
    assert!(latency.contains(&(due + 64_000, due + 2_308_000, "switch", 1)), "parts of one phase");
    let cause = read.on("CPU 1/cause");
    assert!(cause.contains(&(due + 64_000, due + 1_764_000, worker, 0)), "{cause:?}");
    // The interrupt lies within what it interrupted.
    let cpu = read.on(&format!("{root}/CPU 1"));
    let interrupt = (due + 1_764_000, due + 1_805_000, "interrupt: nvme0q1", 1);
    assert!(cpu.contains(&interrupt), "{cpu:?}");
    assert!(read.notes.contains(&("sureness".into(), "likely".into())), "{:?}", read.notes);
    assert!(read.timed_by.iter().all(|c| *c == Some(3)));
    assert_eq!(read.clocks.first(), Some(&(3, MONOTONIC)));
}

#[test]
fn without_records_and_clocks_it_has_the_counters() {
    let mut plain = run(Vec::new());
    plain.events.clear();
    plain.exceedances = vec![ExceedanceRecord {
        thread: 1,
        activation: 42,
        error_ns: 99_000,
        t_ns: 7_000,
        missed: 0,
    }];
    let read = trace(&plain);
    assert!(read.slices.is_empty() && read.clocks.is_empty());
    assert!(read.timed_by.iter().all(Option::is_none));
    let seconds = read.values.iter().filter(|(t, ..)| t.ends_with("latest of each second"));
    assert_eq!(seconds.count(), plain.seconds.iter().filter(|s| s.n > 0).count());
    assert!(read.values.iter().any(|(t, ..)| t.contains("/load ")));
    let instants: Vec<_> = read.instants.iter().map(|(t, at, n)| (*at, n.as_str(), t)).collect();
    assert!(
        matches!(instants.as_slice(), [(7_000, "exceedance", track)] if track.ends_with("latency"))
    );
}

#[test]
fn samples_that_overlap_and_times_before_the_run_stay_in_order() {
    let (mut first, mut second) = (blames::work(), blames::work());
    // Without clocks, what came before the first due activation moves all times.
    (first.t_ns, second.t_ns) = (0, 400_000);
    (first.thread, second.thread) = (0, 1);
    let mut plain = run(vec![second, first]);
    plain.events.clear();
    let read = trace(&plain);
    let cpu = read.on("/CPU 0");
    let idle: Vec<_> = cpu.iter().filter(|(_, _, name, _)| *name == "idle").collect();
    assert_eq!(idle.first().map(|s| s.0), Some(100_000), "{cpu:?}");
    assert_eq!(read.on("CPU 0/latency").first().map(|s| s.0), Some(300_000));
    let outer: Vec<_> = cpu.iter().filter(|(.., depth)| *depth == 0).collect();
    assert!(outer.windows(2).all(|w| w[0].1 <= w[1].0), "{outer:?}");
}

#[test]
fn hostile_names_and_times_do_no_harm() {
    let mut late = blames::work();
    let evil = "x\u{1b}[31m\u{202e}\n";
    late.name = evil.into();
    late.thread = 77;
    late.parts[2].who = evil.into();
    late.chain = vec![evil.into()];
    late.lanes[1].spans[2].who = evil.into();
    let mut far = blames::work();
    (far.t_ns, far.latency_ns) = (i64::MAX, i64::MAX);
    far.lanes[0].spans[0].from_ns = i64::MIN;
    let mut run = clocked(vec![late, far]);
    run.header.id = evil.into();
    let read = trace(&run);
    let harmful = |text: &str| text.contains(['\u{1b}', '\u{202e}', '\n']);
    assert!(!read.tracks.values().any(|(name, _)| harmful(name)));
    assert!(!read.slices.iter().any(|(_, _, _, name, _)| harmful(name)));
    assert!(!read.notes.iter().any(|(_, words)| harmful(words)));
}

#[test]
fn late_wake_ups_of_another_tools_trace_have_tracks_by_the_names_of_threads() {
    let mut records = blames::all();
    for r in &mut records {
        "controller".clone_into(&mut r.name);
    }
    let read = read(&late_wakeups(&records, "trace.dat"));
    assert!(read.clocks.is_empty() && read.timed_by.iter().all(Option::is_none));
    let names: Vec<&str> = read.tracks.values().map(|(n, _)| n.as_str()).collect();
    for name in ["tailbound trace.dat", "latency", "cause", "CPU 0", "CPU 1"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(names.iter().any(|n| n.starts_with("controller")), "{names:?}");
    let whole = read.slices.iter().filter(|(t, .., depth)| t.ends_with("latency") && *depth == 0);
    assert_eq!(whole.count(), records.len());
    assert!(read.tracks.values().all(|(n, _)| !n.contains("latest of each second")));
}
