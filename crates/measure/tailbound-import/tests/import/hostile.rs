// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hostile and damaged bytes: no panic, bounded time; and the fuzzers' corpus replayed.
//!
//! The mutations are the same every time (xorshift, fixed seed).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tailbound_import::{Format, Options, import_with};

use crate::folder;

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut out: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.is_file())
        .filter_map(|p| Some((p.clone(), std::fs::read(p).ok()?)))
        .collect();
    out.sort();
    out
}

struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (n as u64).max(1)).unwrap_or(0)
    }
}

fn mutate(random: &mut Xorshift, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => {
                let bit = 1 << random.below(8);
                bytes.get_mut(at).into_iter().for_each(|b| *b ^= bit);
            }
            2 => {
                let end = (at + random.below(64)).min(bytes.len());
                let piece: Vec<u8> = bytes.get(at..end).unwrap_or(&[]).to_vec();
                bytes.splice(at..at, piece);
            }
            3 => {
                let end = (at + random.below(64)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let word: &[u8] = [
                    &b"18446744073709551615"[..],
                    b"-9223372036854775808",
                    b"1e308",
                    b"\0",
                    b"\xff\xfe",
                    b"nan",
                    b"\n",
                    b"{",
                    b"0.0000001",
                    b"999999999999999999999999",
                    b":",
                    b"|",
                ][random.below(12)];
                bytes.splice(at..at, word.iter().copied());
            }
            _ => {
                let end = (at + 8).min(bytes.len());
                for b in bytes.get_mut(at..end).unwrap_or(&mut []) {
                    *b = b"0123456789abcdef"[random.below(16)];
                }
            }
        }
    }
}

#[test]
fn mutated_fixtures_never_panic() {
    let mut random = Xorshift(0x7461_696c_626f_756e);
    let options = [
        Options::default(),
        Options {
            unit_ns: Some(1000),
            interval_ns: Some(1),
            duration_ns: Some(i64::MAX),
            capture: None,
        },
    ];
    let mut longest = Duration::ZERO;
    let mut read = 0u32;
    for (path, original) in files(&folder()) {
        // The same number of bytes of every file: big ones would drown the small.
        let rounds = (1_500_000 / original.len().max(1)).clamp(8, 300);
        for round in 0..rounds {
            let mut bytes = original.clone();
            mutate(&mut random, &mut bytes);
            let format = (round % 3 == 0).then(|| Format::ALL[random.below(Format::ALL.len())]);
            let began = Instant::now();
            let got = import_with(format, "mutated", &bytes, &options[round % 2]);
            longest = longest.max(began.elapsed());
            read += u32::from(got.is_ok());
            if let Ok(run) = &got
                && original.len() < 4000
            {
                is_read_back(&path, run);
            }
            if let Err(e) = got {
                let text = e.to_string();
                assert!(text.len() < 2000 && !text.contains('\0'), "{}: {text}", path.display());
            }
        }
    }
    assert!(read > 100, "mutations destroyed everything: {read} were still readable");
    assert!(longest < Duration::from_secs(600), "one import took {longest:?}");
}

/// What was read is a run file that says the same.
fn is_read_back(path: &Path, run: &tailbound_core::Run) {
    let file = tailbound_core::runfile::write_run(run, Vec::new()).unwrap_or_default();
    let back = tailbound_core::runfile::read_run(&file[..])
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(back.threads == run.threads, "{}: threads", path.display());
}

/// Time grows with the size and not with its square: ten times the bytes, far below a hundred
/// times the time, with a wide margin for noise.
#[test]
fn big_and_hostile_files_are_refused_or_read_in_time() {
    let began = Instant::now();
    let threads =
        (0..3000).map(|i| format!("\"{i}\":{{\"cycles\":1}}")).collect::<Vec<_>>().join(",");
    let many_columns = format!("# Histogram\n000001 {}\n", "1 ".repeat(100_000));
    let status: String =
        (0..5000).map(|i| format!("T:{i} (1) P:1 I:1 C:1 Min:1 Act:    1 Avg:1 Max:1\n")).collect();
    let rows: String = (0..400_000).map(|i| format!("{i:06} 000001\t000002\n")).collect();
    let verbose: String = (0..400_000).map(|i| format!("       0:{i:8}:      45\n")).collect();
    let cases: [(Vec<u8>, Option<&str>); 15] = [
        (format!("{{\"file_version\":1,\"cmdline:\":\"cyclictest\",\"thread\":{{{threads}}}}}").into(), Some("3000 threads")),
        (many_columns.into(), Some("columns")),
        (status.into(), Some("1024 threads")),
        (format!("# Histogram\n{rows}# Min Latencies: 00001 00001\n# Avg Latencies: 1 1\n# Max Latencies: 9 9\n# Histogram Overflows: 0 0\n").into(), None),
        (verbose.into(), None),
        (vec![b'x'; 100 << 20], Some("no format")),
        ([&b"# Histogram\n"[..], &vec![b'1'; 100 << 20], b"\n"].concat(), Some("longer than 16 MiB")),
        ([b"{\"file_version\": 1, \"cmdline:\": \"cyclictest\", \"x\": ".to_vec(), vec![b'['; 1 << 20]].concat(), Some("recursion")),
        ([b"<rteval>".to_vec(), b"<a>".repeat(1 << 20)].concat(), Some("not XML")),
        ([b"<rteval>".to_vec(), b"<a>/>".repeat(1 << 20), b"</a>".repeat(1 << 20), b"</rteval>".to_vec()].concat(), Some("")),
        (b"<!DOCTYPE r [<!ENTITY a \"b\">]><rteval/>".to_vec(), Some("not XML")),
        (vec![0; 28 << 10], None),
        (b"# us\n".iter().copied().chain(b"1e308\n".iter().copied()).collect(), Some("292 years")),
        (b"{\"file_version\":1,\"cmdline:\":\"cyclictest\",\"resolution_in_ns\":0,\"thread\":{\"0\":{\"cycles\":18446744073709551615,\"histogram\":{\"1\":18446744073709551615,\"2\":18446744073709551615}}}}".to_vec(), None),
        (b"T: 0 (1) P:1 I:9223372036854775807 C:18446744073709551615 Min:-9223372036854775808 Act:1 Avg:1 Max:9223372036854775807\n".to_vec(), None),
    ];
    for (i, (bytes, words)) in cases.iter().enumerate() {
        let got = import_with(None, "hostile", bytes, &Options::default());
        match (got, words) {
            (Err(e), Some(words)) => assert!(e.to_string().contains(words), "case {i}: {e}"),
            (Ok(_), Some(words)) => panic!("case {i} was read, not refused with `{words}`"),
            (_, None) => {}
        }
    }
    assert!(began.elapsed() < Duration::from_secs(1800), "{:?}", began.elapsed());
}

/// What the fuzzers found worth keeping, through the same doors.
#[test]
fn the_fuzzers_corpus_is_replayed() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus");
    let mut replayed = 0;
    for folder in std::fs::read_dir(&corpus).unwrap_or_else(|e| panic!("{}: {e}", corpus.display()))
    {
        let Ok(folder) = folder else { continue };
        let target = folder.file_name().to_string_lossy().into_owned();
        // Not an import: `tailbound-trace` replays them.
        if target == "trace_dat" {
            continue;
        }
        for (path, bytes) in files(&folder.path()) {
            replay(&target, &bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            replayed += 1;
        }
    }
    assert!(replayed > 40, "{replayed} corpus files");
}

fn replay(target: &str, bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    match target {
        "import_any" => drop(import_with(None, "corpus", bytes, &Options::default())),
        "core_runfile" => drop(tailbound_core::runfile::read_run(bytes)),
        "core_units" => drop(tailbound_core::units::parse_ns(&text)),
        "core_cpuset" => drop(text.parse::<tailbound_core::CpuSet>()),
        "core_policy" => drop(text.parse::<tailbound_core::Policy>()),
        "core_campaign" => drop(tailbound_core::plan::RunConfig::parse(&text)),
        other => {
            let name = other.strip_prefix("import_").unwrap_or(other).replace('_', "-");
            let format: Format =
                name.parse().map_err(|e: tailbound_import::UnknownFormat| e.to_string())?;
            drop(import_with(Some(format), "corpus", bytes, &Options::default()));
        }
    }
    Ok(())
}
