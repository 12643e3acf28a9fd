// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real files of trace-cmd, whole, cut off and damaged: the events are those that trace-cmd itself
//! prints, and nothing that a file holds makes the reader panic or take memory by a number it read.
//!
//! Where the files came from: `data/trace-cmd/README.md`.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use tailbound_trace::EventDecoder;
use tailbound_trace::blame::{BlameSelection, BlameSummary, DueTimes, Follow, Ground, WatchFilter};
use tailbound_trace::dat::{
    self, DatError, Info, MergeItem, Processors, ReadEnd, TraceClock, TraceFile,
};
use tailbound_trace::event::Entry;

const FILES: [&str; 4] = [
    "linux-6.1-rt-v7-zstd",
    "linux-6.12-rt-v6-two",
    "linux-6.12-rt-v7-two",
    "linux-6.12-rt-v7-zlib",
];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/trace-cmd").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(path(&format!("{name}.dat"))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Everything of a file: its description, its events, and what the analysis makes of them.
fn read(bytes: Vec<u8>) -> Result<(Info, Vec<Entry>, ReadEnd, BlameSummary), DatError> {
    let mut file = TraceFile::open(Cursor::new(bytes))?;
    let (symbols, comms) = file.take_names();
    let info = file.info().clone();
    let decoder = EventDecoder::new(&info.formats);
    let wanted = BlameSelection { realtime: false, above_ns: 0, most: 20 };
    let mut follow = Follow::new(WatchFilter::All, Arc::new(symbols), Ground::default(), wanted);
    comms.iter().for_each(|(pid, comm)| follow.name_thread(*pid, comm));
    if !info.clock.is_the_timers() {
        follow.due_times(DueTimes::CarriedOver);
    }
    let mut entries = Vec::new();
    let end = file.read(&decoder, &mut |seen| {
        match seen {
            MergeItem::Entry(e) => {
                entries.push(*e);
                follow.entry(e);
            }
            MergeItem::Lost(t_ns) => follow.lost(t_ns),
            MergeItem::Bytes(_) => {}
        }
        true
    })?;
    Ok((info, entries, end, follow.finish()))
}

#[test]
fn the_events_are_those_that_trace_cmd_prints() {
    for name in FILES {
        let (info, entries, end, found) =
            read(bytes(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(info.clock, TraceClock::Mono, "{name}");
        assert_eq!((info.cpus, info.notes.len()), (Some(2), 0), "{name}: {:?}", info.notes);
        assert!(info.uname.is_some_and(|u| u.contains("-rt-amd64")), "{name}");
        assert_eq!((end.damaged, end.notes.len()), (0, 0), "{name}: {:?}", end.notes);
        let text = fs::read_to_string(path(&format!("{name}.txt"))).expect("the text beside it");
        let used: Vec<&str> = info.formats.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(text.lines().count() as u64, end.records, "{name}");
        let mut printed: Vec<(u64, u32)> = text
            .lines()
            .map(|l| l.split(' ').collect::<Vec<_>>())
            .filter(|w| used.contains(&w[2]))
            .map(|w| {
                let ns = w[1].replace('.', "").parse().expect("a time");
                (ns, w[0].parse().expect("a CPU"))
            })
            .collect();
        printed.sort_unstable();
        let mut ours: Vec<(u64, u32)> = entries.iter().map(|e| (e.t_ns, e.cpu)).collect();
        assert!(ours.is_sorted_by_key(|(t, _)| *t), "{name}: in the order of time");
        ours.sort_unstable();
        assert!(
            !ours.is_empty() && ours == printed,
            "{name}: {} and {}",
            ours.len(),
            printed.len()
        );
        assert!(found.threads.values().any(|t| t.wakeups.n > 0), "{name}");
        assert!(
            found
                .records
                .iter()
                .all(|r| { r.parts.iter().map(|p| p.ns).sum::<i64>() == r.latency_ns })
        );
    }
}

#[test]
fn functions_and_names_are_read() {
    let file = bytes("linux-6.1-rt-v7-zstd");
    let mut file = TraceFile::open(Cursor::new(file)).expect("a real file");
    let (symbols, comms) = file.take_names();
    assert!(!symbols.is_empty() && comms.iter().any(|(_, comm)| comm == "cyclictest"));
    let (.., found) = read(bytes("linux-6.1-rt-v7-zstd")).expect("a real file");
    let tester = found.threads.values().find(|t| t.comm == "cyclictest" && t.is_realtime());
    assert!(tester.is_some_and(|t| t.wakeups.n > 10));
    let timed = found.records.iter().any(|r| {
        r.name == "cyclictest"
            && r.parts.iter().any(|p| p.phase == tailbound_core::blame::Phase::Timer)
    });
    assert!(timed, "its timers were due on the trace's clock");
}

#[test]
fn both_buffers_of_a_file_are_one_trace() {
    for name in ["linux-6.12-rt-v6-two", "linux-6.12-rt-v7-two"] {
        let (info, entries, ..) = read(bytes(name)).expect("a real file");
        assert_eq!(info.buffers, ["", "timers"], "{name}");
        let kinds = |is: fn(&Entry) -> bool| entries.iter().filter(|e| is(e)).count();
        use tailbound_trace::event::Event;
        assert!(kinds(|e| matches!(e.event, Event::Switch { .. })) > 10, "of the first buffer");
        assert!(kinds(|e| matches!(e.event, Event::TimerExpire { .. })) > 10, "of the second");
    }
}

#[test]
fn a_file_cut_off_anywhere_gives_what_it_holds_and_says_so() {
    for (name, step) in [("linux-6.1-rt-v7-zstd", 7), ("linux-6.12-rt-v6-two", 29)] {
        let whole = bytes(name);
        let (_, all, ..) = read(whole.clone()).expect("a real file");
        let mut partly = 0;
        for end in (0..whole.len()).step_by(step) {
            match read(whole[..end].to_vec()) {
                Err(e) => {
                    let text = e.to_string();
                    let says = matches!(e, DatError::Foreign | DatError::NoBuffer)
                        || text.contains("byte");
                    assert!(says, "{name} at {end}: {text}");
                }
                Ok((info, entries, read_end, _)) => {
                    assert!(entries.len() <= all.len());
                    let said = !info.notes.is_empty() || read_end.damaged > 0;
                    assert!(said || entries.len() == all.len(), "{name} at {end}: {info:?}");
                    partly += usize::from(said);
                }
            }
        }
        // In version 7 the place of the events stands behind them.
        assert!(partly > 100 || name.contains("v7"), "{name}: {partly}");
    }
}

#[test]
fn damage_anywhere_is_an_answer_and_no_panic() {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap_or(0)
    };
    let (mut read_all, mut refused) = (0, 0);
    for name in FILES {
        let whole = bytes(name);
        for _ in 0..250 {
            let mut damaged = whole.clone();
            for _ in 0..=next(8) {
                let at = next(damaged.len());
                match next(4) {
                    0 => damaged[at] = [0, 0xff, 0x7f, 0x80][next(4)],
                    1 => damaged[at] ^= 1 << next(8),
                    2 => {
                        let end = (at + 8).min(damaged.len());
                        damaged[at..end].fill([0, 0xff][next(2)]);
                    }
                    _ => {
                        let from = next(damaged.len());
                        let n = next(64).min(damaged.len() - at.max(from));
                        damaged.copy_within(from..from + n, at);
                    }
                }
            }
            match read(damaged) {
                Ok(_) => read_all += 1,
                Err(e) => {
                    refused += 1;
                    assert!(e.to_string().lines().count() == 1, "{e}");
                }
            }
        }
    }
    assert!(read_all > 100 && refused > 20, "{read_all} read, {refused} refused");
}

/// `bytes` with the number at `at` replaced.
/// What the fuzzer found worth keeping, through the same door.
#[test]
fn the_fuzzers_corpus_is_replayed() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/trace_dat");
    let mut replayed = 0;
    for file in std::fs::read_dir(&corpus).unwrap().flatten() {
        drop(read(std::fs::read(file.path()).unwrap()));
        replayed += 1;
    }
    assert!(replayed >= 2, "{replayed} corpus files");
}

fn with(bytes: &[u8], at: usize, number: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at..at + number.len()].copy_from_slice(number);
    out
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|w| w == what).expect("it is in the file")
}

#[test]
fn numbers_that_lie_are_refused_by_name() {
    let six = bytes("linux-6.12-rt-v6-two");
    let table = find(&six, b"flyrecord\0") + 10;
    let options = find(&six, b"options  \0");
    let why = |bytes: Vec<u8>| read(bytes).map(drop).map_err(|e| e.to_string()).unwrap_err();
    // 2^32 - 1 CPUs; a size of 2^64 - 1; the pages of one CPU over those of another.
    assert!(why(with(&six, options - 4, &[0xff; 4])).contains("CPUs, and no kernel has more"));
    let cut = read(with(&six, table + 24, &[0xff; 8])).map(|(info, ..)| info.notes);
    assert!(
        cut.is_ok_and(|n| n[0].contains("cut off"))
            || why(with(&six, table + 24, &[0xff; 8])).contains("lie over")
    );
    let first = six[table..table + 8].to_vec();
    assert!(why(with(&six, table + 16, &first)).contains("lie over those of CPU"));
    // Descriptions that claim more than there is.
    let page = find(&six, b"header_page\0") + 12;
    assert!(why(with(&six, page, &[0xff; 8])).contains("it ends at byte"));
    assert!(why(with(&six, find(&six, b"flyrecord\0"), b"latency  \0")).contains("latency tracer"));
    assert!(why(with(&six, 10, b"9")).contains("version 9"));
    assert!(why(with(&six, 12, &[1])).contains("big-endian"));
    assert!(why(b"\x17\x08Dtracing".to_vec()).contains("it ends at byte 10"));
    assert_eq!(read(b"ELF".to_vec()).map(drop), Err(DatError::Foreign));
    // A clock that is no time.
    let mut numbered = six.clone();
    let (said, counter) = (b"counter uptime perf [mono]", b"[counter] uptime perf mono");
    numbered = with(&numbered, find(&numbered, said), counter);
    let own = b"\x06\0\0\0\0\0\0\0[mono]";
    while let Some(at) = numbered.windows(own.len()).position(|w| w == own) {
        numbered = with(&numbered, at, &[0; 14]);
    }
    assert!(why(numbered).contains("`counter`, numbers the events"));

    let seven = bytes("linux-6.1-rt-v7-zstd");
    let at = find(&seven, b"zstd\0");
    assert!(why(with(&seven, at, b"lzma")).contains("`lzma` is not known"));
    let first = find(&seven, b"1.5.4\0") + 6;
    let begin = u64::from_le_bytes(seven[first..first + 8].try_into().expect("eight"));
    assert!(why(with(&seven, first, &[0; 8])).contains("no buffer of events"));
    assert!(why(with(&seven, first, &[0xff; 8])).contains("it ends at byte"));
    // The chain of options leads back to its begin.
    let begin_at = usize::try_from(begin).expect("small");
    let length = u64::from_le_bytes(seven[begin_at + 8..begin_at + 16].try_into().expect("eight"));
    let done = begin_at + 16 + usize::try_from(length).expect("small") - 8;
    assert!(why(with(&seven, done, &begin.to_le_bytes())).contains("lead back"));
    // A packed section that says it is small.
    let header = first + 8;
    assert!(why(with(&seven, header + 20, &[16, 0, 0, 0])).contains("unpacked it has more"));
}

#[test]
fn what_a_trace_lacks_is_named_with_what_is_lost() {
    let all: Vec<&str> = tailbound_trace::event::WANTED.iter().map(|w| w.name).collect();
    assert!(dat::lacking(&all, Processors::X86).is_empty());
    let lacks = dat::lacking(&["sched_switch", "sched_waking"], Processors::Other);
    assert!(lacks.iter().any(|l| l.lost.contains("lateness counts from the wake-up")));
    assert!(lacks.iter().all(|l| l.events != "irq_vectors"), "only x86 has them");
    assert!(dat::lacking(&[], Processors::X86).iter().any(|l| l.events == "irq_vectors"));
}
