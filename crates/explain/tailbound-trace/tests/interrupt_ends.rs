// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts whose ends were not recorded: what follows them is not charged to them as sure. With their ends it is known.
//!
//! Files of trace-cmd, made here from a kernel's descriptions (`data/formats/README.md`), and texts.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use tailbound_core::blame::{BlameRecord, Cause, Sureness};
use tailbound_trace::blame::{BlameSelection, Ground, RecordedBlame, WatchFilter};
use tailbound_trace::dat::{Described, Head, TraceFile};
use tailbound_trace::text::{self, TextRequest};

const ALL: BlameSelection = BlameSelection { realtime: true, above_ns: 0, most: 20 };
/// Nothing below the kernel takes time.
const METAL: Ground = Ground {
    virtual_machine: Some(false),
    firmware: Some(false),
    event_ns: 0,
    lost: false,
    virtual_time: false,
};
const PAGE_BYTES: usize = 4096;
const BEGIN_NS: u64 = 1_000_000_000;
/// Interrupts disabled; in an interrupt; another thread wanted.
const OFF: u8 = 0x01;
const HARD: u8 = 0x08 | OFF;
const RESCHED: u8 = 0x04;

const SCHED: [&str; 2] = ["sched/sched_switch", "sched/sched_waking"];
const IRQS: [&str; 2] = ["irq/irq_handler_entry", "irq/irq_handler_exit"];
const VECTORS: [&str; 4] = [
    "irq_vectors/local_timer_entry",
    "irq_vectors/local_timer_exit",
    "irq_vectors/reschedule_entry",
    "irq_vectors/reschedule_exit",
];

/// The kernel's text of `place`.
fn described(place: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/formats");
    let text = fs::read_to_string(path.join("linux-6.12-rt.txt")).expect("the descriptions");
    let mut lines = text.lines().skip_while(|l| *l != format!("# {place}"));
    lines.next().expect("a kernel has it");
    lines.take_while(|l| !l.starts_with("# ")).flat_map(|l| [l, "\n"]).collect()
}

/// What one record holds.
struct Record {
    after_ns: u64,
    place: &'static str,
    pid: i32,
    flags: u8,
    fields: Vec<(&'static str, i64)>,
}

/// The bytes of a record, by its description.
fn encoded(r: &Record) -> Vec<u8> {
    let text = described(r.place);
    let number = |line: &str, key: &str| -> Option<usize> {
        let rest = line.split(key).nth(1)?;
        rest.split(';').next()?.trim().parse().ok()
    };
    let id = text.lines().find_map(|l| l.strip_prefix("ID: ")).expect("an ID");
    let id: i64 = id.parse().expect("a number");
    let common = [
        ("common_type", id),
        ("common_flags", i64::from(r.flags)),
        ("common_pid", i64::from(r.pid)),
    ];
    let mut out = Vec::new();
    for line in text.lines().filter(|l| l.contains("field:")) {
        let at = number(line, "offset:").expect("a place");
        let size = number(line, "size:").expect("a size");
        out.resize(out.len().max(at + size), 0);
        let named = |(name, _): &&(&str, i64)| line.contains(&format!(" {name};"));
        if let Some((_, value)) = common.iter().chain(&r.fields).find(named) {
            out[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A page with these records.
fn page(records: &[Record]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut last_ns = 0;
    for r in records {
        let bytes = encoded(r);
        let words = u32::try_from(bytes.len() / 4).expect("small");
        let delta = u32::try_from(r.after_ns - last_ns).expect("small");
        last_ns = r.after_ns;
        data.extend((delta << 5 | words).to_le_bytes());
        data.extend(bytes);
    }
    let mut page = BEGIN_NS.to_le_bytes().to_vec();
    page.extend((data.len() as u64).to_le_bytes());
    page.extend(data);
    page.resize(PAGE_BYTES, 0);
    page
}

/// A wake-up by an interrupt in the time of thread 50, which has the CPU for 899 µs more. `between` lie around the waking.
fn woken(between: [Option<&'static str>; 2]) -> Vec<Record> {
    let switch = |after_ns, pid, flags, prev: (i64, i64, i64), next: (i64, i64)| Record {
        after_ns,
        place: SCHED[0],
        pid,
        flags,
        fields: vec![
            ("prev_pid", prev.0),
            ("prev_prio", prev.1),
            ("prev_state", prev.2),
            ("next_pid", next.0),
            ("next_prio", next.1),
        ],
    };
    let [begin, end] = between;
    let interrupt = |after_ns, place: Option<&'static str>, flags| {
        place.map(|place| Record { after_ns, place, pid: 50, flags, fields: Vec::new() })
    };
    let waking = Record {
        after_ns: 1_001_000,
        place: SCHED[1],
        pid: 50,
        flags: HARD,
        fields: vec![("pid", 900), ("prio", 19), ("target_cpu", 0)],
    };
    let mut all = vec![switch(0, 900, OFF, (900, 19, 1), (50, 120))];
    all.extend(interrupt(1_000_000, begin, HARD));
    all.push(waking);
    all.extend(interrupt(1_003_000, end, HARD | RESCHED));
    all.push(switch(1_900_000, 50, OFF | RESCHED, (50, 120, 0), (900, 19)));
    all.push(switch(2_000_000, 900, OFF, (900, 19, 1), (50, 120)));
    all
}

/// What a file with these descriptions and records tells.
fn told(places: &[&'static str], records: &[Record]) -> RecordedBlame {
    let formats = places.iter().map(|p| (p.split('/').next().unwrap_or(p), described(p)));
    let texts = Described {
        page: described("header_page"),
        record: "# compressed entry header\n".to_owned(),
        formats: formats.collect(),
        clock: "mono".to_owned(),
        uname: "Linux box 6.12 x86_64".to_owned(),
        recorder: "trace-cmd".to_owned(),
        function_bytes: 0,
        threads: String::new(),
    };
    let mut head = Head::new(&texts, 2, PAGE_BYTES as u32).expect("short descriptions");
    head.place(0, head.bytes().len() as u64, PAGE_BYTES as u64);
    let file: Vec<u8> = head.bytes().iter().copied().chain(page(records)).collect();
    let file = TraceFile::open(Cursor::new(file)).expect("a whole file");
    let watched = WatchFilter::Realtime;
    RecordedBlame::of(file, watched, ALL, METAL, &mut |_| true).expect("its wake-ups")
}

fn one(told: &RecordedBlame) -> &BlameRecord {
    let [record] = &told.found.records[..] else { panic!("{:?}", told.found.records) };
    assert_eq!(record.latency_ns, 899_000);
    record
}

/// How long interrupts took, and how sure that is.
fn interrupts(record: &BlameRecord) -> Vec<(i64, Sureness)> {
    let is = |cause| matches!(cause, Cause::Interrupt | Cause::TimerInterrupt | Cause::Ipi);
    record.parts.iter().filter(|p| is(p.cause)).map(|p| (p.ns, p.sureness)).collect()
}

#[test]
fn a_recording_without_ends_charges_the_thread_behind_the_interrupt_and_is_not_sure() {
    let begins: [(&[&'static str], Option<&'static str>); 4] = [
        (&[], None),
        (&IRQS[..1], Some(IRQS[0])),
        (&VECTORS[..1], Some(VECTORS[0])),
        // The ends of other interrupts than this one.
        (&IRQS, None),
    ];
    for (more, begin) in begins {
        let records = woken([begin, None]);
        let told = told(&[&SCHED, more].concat(), &records);
        let record = one(&told);
        assert_eq!(record.culprit(), (Cause::NotPreemptible, "thread 50"), "{more:?}: {record:?}");
        assert_eq!(
            record.sureness(Cause::NotPreemptible, "thread 50"),
            Sureness::Likely,
            "{more:?}"
        );
        assert_eq!(interrupts(record), [], "{more:?}");
        let notes = told.notes.join("; ");
        assert!(notes.contains("ends of interrupts are not in the trace"), "{more:?}: {notes}");
        assert_eq!(told.found.events, records.len() as u64, "no record more than there are");
    }
}

#[test]
fn with_the_ends_it_is_known_what_the_interrupt_took() {
    for [begin, end] in [[IRQS[0], IRQS[1]], [VECTORS[0], VECTORS[1]]] {
        let told = told(&[&SCHED[..], &IRQS, &VECTORS].concat(), &woken([Some(begin), Some(end)]));
        let record = one(&told);
        assert_eq!(record.culprit(), (Cause::NotPreemptible, "thread 50"), "{record:?}");
        assert_eq!(record.share_ns(Cause::NotPreemptible, "thread 50"), 897_000);
        assert!(record.parts.iter().all(|p| p.sureness == Sureness::Sure), "{record:?}");
        let notes = told.notes.join("; ");
        assert!(!notes.contains("ends of interrupts"), "{notes}");
    }
}

#[test]
fn ends_that_are_described_and_were_not_recorded_make_interrupts_unsure() {
    let told = told(&[&SCHED[..], &IRQS, &VECTORS].concat(), &woken([None, None]));
    let all = interrupts(one(&told));
    assert!(all.iter().all(|(_, sureness)| *sureness != Sureness::Sure), "{all:?}");
    assert!(told.notes.iter().any(|n| n.contains("describes the ends of interrupts and has none")));
}

#[test]
fn a_text_that_has_the_ends_is_sure_of_them() {
    let text = |end: &str| {
        let lines = format!(
            "# tracer: nop\n\
             ctl-900 [002] d..2. 1.000000: sched_switch: prev_comm=ctl prev_pid=900 prev_prio=19 prev_state=S ==> next_comm=cc1 next_pid=50 next_prio=120\n\
             cc1-50 [002] d.h1. 1.000101: irq_handler_entry: irq=36 name=eth0\n\
             cc1-50 [002] d.h2. 1.000102: sched_waking: comm=ctl pid=900 prio=19 target_cpu=002\n\
             {end}\
             cc1-50 [002] dN.2. 1.001002: sched_switch: prev_comm=cc1 prev_pid=50 prev_prio=120 prev_state=R ==> next_comm=ctl next_pid=900 next_prio=19\n\
             ctl-900 [002] d..2. 1.001100: sched_switch: prev_comm=ctl prev_pid=900 prev_prio=19 prev_state=S ==> next_comm=cc1 next_pid=50 next_prio=120\n"
        );
        let request = TextRequest { watched: WatchFilter::Realtime, wanted: ALL, ground: METAL };
        let format = text::recognized(lines.as_bytes()).expect("a trace");
        let told = text::read(format, lines.as_bytes(), request, &mut |_| true).expect("events");
        let [record] = &told.records[..] else { panic!("{:?}", told.records) };
        assert_eq!(record.culprit(), (Cause::NotPreemptible, "cc1-50"), "{record:?}");
        let noted = told.notes.iter().any(|n| n.contains("ends of interrupts"));
        (record.sureness(Cause::NotPreemptible, "cc1-50"), noted)
    };
    let end = "cc1-50 [002] dNh2. 1.000104: irq_handler_exit: irq=36 ret=handled\n";
    assert_eq!(text(end), (Sureness::Sure, false));
    assert_eq!(text(""), (Sureness::Likely, true));
}
