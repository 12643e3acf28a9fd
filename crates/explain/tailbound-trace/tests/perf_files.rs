// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of perf: the answer is that of perf's own text of them, whatever is damaged. Their origin: `data/perf/README.md`.

use std::io::Cursor;
use std::path::Path;

use tailbound_core::blame::{BlameRecord, Cause};
use tailbound_trace::blame::{BlameSelection, BlameSummary, Ground, PerfBlame, WatchFilter};
use tailbound_trace::perf::{PerfError, PerfFile, is_perf_file};
use tailbound_trace::text::{self, TextRequest, recognized};

const ALL: BlameSelection = BlameSelection { realtime: true, above_ns: 0, most: 1000 };

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/perf").join(name);
    std::fs::read(path).unwrap()
}

fn told(bytes: Vec<u8>) -> Result<PerfBlame, PerfError> {
    let file = PerfFile::open(Cursor::new(bytes))?;
    PerfBlame::of(file, WatchFilter::Realtime, ALL, Ground::default(), &mut |_| true)
}

fn text(name: &str) -> BlameSummary {
    let bytes = bytes(name);
    let format = recognized(&bytes).unwrap();
    let request =
        TextRequest { watched: WatchFilter::Realtime, wanted: ALL, ground: Ground::default() };
    let told = text::read(format, &bytes[..], request, &mut |_| true).unwrap();
    BlameSummary { records: told.records, ..told.found.unwrap() }
}

/// What is the same whoever read the events.
#[derive(Debug, PartialEq, Eq)]
struct SampleWords<'a> {
    cpu: Option<u32>,
    name: &'a str,
    culprit: (Cause, &'a str),
}

fn told_of(record: &BlameRecord) -> SampleWords<'_> {
    SampleWords { cpu: record.cpu, name: &record.name, culprit: record.culprit() }
}

fn by_time(records: &[BlameRecord]) -> Vec<&BlameRecord> {
    let mut all: Vec<_> = records.iter().collect();
    all.sort_by_key(|r| r.t_ns);
    all
}

#[test]
fn a_recording_and_perfs_text_of_it_give_the_same_answer() {
    // The text does not say that its clock is that of the timers, nor the state of the CPU at a record: of the first wake-up,
    // before which there is no timer, it knows less.
    for (name, skip, within_ns) in [("linux-6.18-mono", 1, 1_500), ("linux-6.18-wakeup", 0, 0)] {
        let file = told(bytes(&format!("{name}.data"))).unwrap();
        let text = text(&format!("{name}.txt"));
        let (mine, theirs) = (by_time(&file.found.records), by_time(&text.records));
        assert!(mine.len() > 5 && mine.len() == theirs.len(), "{name}");
        for (mine, theirs) in mine.into_iter().zip(theirs).skip(skip) {
            assert_eq!(told_of(mine), told_of(theirs), "{name}");
            let apart = (mine.latency_ns - theirs.latency_ns).abs();
            assert!(apart <= within_ns, "{name}: {} {}", mine.latency_ns, theirs.latency_ns);
        }
        let threads = |found: &BlameSummary| -> Vec<(i32, String, i32, u64)> {
            let all = found.threads.iter();
            all.map(|(pid, t)| (*pid, t.comm.clone(), t.prio, t.wakeups.n)).collect()
        };
        assert_eq!(threads(&file.found), threads(&text), "{name}");
    }
}

#[test]
fn the_file_tells_its_clock_and_where_it_is_from() {
    let told = |name: &str| told(bytes(name)).unwrap();
    let mono = told("linux-6.18-mono.data");
    let origin = "A file of perf (6.1.187), Linux box 6.18.44 x86_64; clock: mono.";
    assert_eq!(mono.origin(), origin);
    let noted = |word: &str| mono.notes.iter().any(|n| n.contains(word));
    assert!(!noted("clock") && !noted("ends of interrupts"), "{:?}", mono.notes);
    let other = told("linux-6.18-wakeup.data");
    let says = |word: &str| other.notes.iter().any(|n| n.contains(word));
    assert!(says("sched_wakeup and no sched_waking") && says("perf record -a -k mono"));
}

/// `bytes` with a number of 8 bytes at `at`.
fn with(mut bytes: Vec<u8>, at: usize, word: u64) -> Vec<u8> {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    bytes
}

fn error(bytes: Vec<u8>) -> PerfError {
    told(bytes).map(|told| told.origin()).unwrap_err()
}

#[test]
fn files_of_other_kinds_are_refused_by_name() {
    let whole = || bytes("linux-6.18-wakeup.data");
    assert_eq!(error(b"PERFILE1".to_vec()), PerfError::Foreign);
    assert_eq!(error([b"2ELIFREP", &whole()[8..]].concat()), PerfError::BigEndian);
    let pipe = error(with(whole(), 8, 16));
    assert!(pipe.to_string().contains("`perf script -i FILE > FILE.txt`"), "{pipe}");
    assert_eq!(pipe, PerfError::Pipe);
    assert_eq!(error(with(whole(), 48, 0)), PerfError::Unfinished);
    // The bit of the feature, and the kind of the first record.
    let features = u64::from_le_bytes(whole()[72..80].try_into().unwrap());
    assert_eq!(error(with(whole(), 72, features | 1 << 27)), PerfError::Compressed);
    let data = usize::try_from(u64::from_le_bytes(whole()[40..48].try_into().unwrap())).unwrap();
    let head = u64::from_le_bytes(whole()[data..data + 8].try_into().unwrap());
    assert_eq!(error(with(whole(), data, head & !0xffff_ffff | 81)), PerfError::Compressed);
    assert_eq!(error(with(whole(), 72, features & !2)), PerfError::NoTracepoints);
    // Samples without a CPU.
    let sample_type = u64::from_le_bytes(whole()[128..136].try_into().unwrap());
    let without = error(with(whole(), 128, sample_type & !(1 << 7)));
    assert!(without.to_string().contains("no CPU (--sample-cpu)"), "{without}");
}

#[test]
fn what_is_cut_or_changed_is_an_error_or_a_shorter_answer() {
    let whole = bytes("linux-6.18-wakeup.data");
    let data = u64::from_le_bytes(whole[40..48].try_into().unwrap());
    let records = u64::from_le_bytes(whole[48..56].try_into().unwrap());
    for end in (0..whole.len()).step_by(97) {
        let cut = told(whole[..end].to_vec()).map(|told| told.origin());
        assert!(cut.is_err() || end as u64 > data + records, "{end}");
    }
    for at in 0..whole.len() - 8 {
        if at > 200 && at % 53 != 0 {
            continue;
        }
        for word in [0, u64::MAX, 0x7fff_ffff_ffff_fff8] {
            if let Ok(told) = told(with(whole.clone(), at, word)) {
                for r in &told.found.records {
                    assert_eq!(r.parts.iter().map(|p| p.ns).sum::<i64>(), r.latency_ns, "{at}");
                }
            }
        }
    }
    assert!(is_perf_file(&whole));
}
