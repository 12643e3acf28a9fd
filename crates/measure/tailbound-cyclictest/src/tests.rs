// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is printed of synthetic latencies: read by the importer, and by readers like those of rteval, LAVA and LTP; beside
//! the real program's output where that is installed.
//!
//! Context: COLD, tests only.

use std::fs;
use std::path::PathBuf;

use tailbound_core::Run;
use tailbound_core::plan::RunConfig;
use tailbound_host::{Cpus, Root};

use crate::error::CyclictestError;
use crate::histogram::{self, HistogramColumns};
use crate::json::{self, JsonThread, Surroundings};
use crate::options::Options;
use crate::placement::Placement;
use crate::status::{self, Columns};
use crate::tally::CyclicTally;
use crate::unit::Unit;
use crate::words;

const COLUMNS: Columns = Columns { unit: Unit::Micros, priority: 80, interval_us: 1000 };

/// Two threads, ns: the second has one latency beyond a histogram of 20 µs.
fn samples() -> [Vec<i64>; 2] {
    let thread = |from: i64| (0..500).map(|i| from + (i * 7919) % 9000).collect::<Vec<i64>>();
    let (first, mut second) = (thread(2_000), thread(3_500));
    second.push(41_999);
    [first, second]
}

fn tallies(unit: Unit, rows: usize) -> Vec<CyclicTally> {
    let of = |samples: Vec<i64>| {
        let mut tally = CyclicTally::new(rows);
        samples.iter().for_each(|ns| tally.add(unit.cut(*ns)));
        tally
    };
    samples().into_iter().map(of).collect()
}

fn lines(unit: Unit, tallies: &[CyclicTally]) -> String {
    let threads: Vec<(i32, &CyclicTally)> = (4321..).zip(tallies).collect();
    status::lines(&Columns { unit, ..COLUMNS }, &threads)
}

fn json(unit: Unit, command: &str, tallies: &[CyclicTally]) -> String {
    let around = Surroundings {
        command: command.to_owned(),
        start_s: 1_795_877_427,
        end_s: 1_795_877_428,
        system: ["sysname", "nodename", "release", "version", "machine"]
            .map(|key| (key, "\"x\"".to_owned()))
            .to_vec(),
        realtime: 1,
    };
    let threads: Vec<JsonThread<'_>> =
        tallies.iter().zip(0..).map(|(tally, cpu)| JsonThread { tally, cpu }).collect();
    json::text(&around, unit, &threads)
}

fn imported(text: &str) -> Run {
    let options = tailbound_import::Options { unit_ns: Some(1000), ..Default::default() };
    let run = tailbound_import::import_with(None, "f", text.as_bytes(), &options);
    run.unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Count and extremes of each thread are those that went in.
fn has_the_figures(run: &Run) {
    assert_eq!(run.threads.len(), 2);
    for (thread, samples) in run.threads.iter().zip(samples()) {
        let us = |ns: Option<&i64>| ns.map(|ns| ns / 1000);
        let wakeup = &thread.wakeup;
        assert_eq!(wakeup.n, samples.len() as u64);
        assert_eq!(wakeup.max_ns.map(|ns| ns / 1000), us(samples.iter().max()));
        assert_eq!(wakeup.min_ns.map(|ns| ns / 1000), us(samples.iter().min()));
    }
    let against = ["source-abridged", "source-inconsistent", "source-cut-off"];
    let doubts: Vec<_> = run.findings.iter().filter(|f| against.contains(&&*f.id)).collect();
    assert!(doubts.is_empty(), "{doubts:?}");
}

#[test]
fn our_importer_reads_every_form_back() {
    let tallies = tallies(Unit::Micros, 20);
    let summary = format!("# /dev/cpu_dma_latency set to 0us\n{}", lines(Unit::Micros, &tallies));
    has_the_figures(&imported(&summary));
    let two: Vec<&CyclicTally> = tallies.iter().collect();
    for columns in [HistogramColumns::Threads, HistogramColumns::ThreadsAndAll] {
        let run = imported(&histogram::text(&two, columns));
        has_the_figures(&run);
        assert_eq!(run.threads[0].wakeup.unbinned, 0);
    }
    let command = "cyclictest -S -p 80 -h 20 --json=a.json -l 500";
    let run = imported(&json(Unit::Micros, command, &tallies));
    has_the_figures(&run);
    assert_eq!(run.header.plan.policy.priority(), 80, "the command line tells");
    let frame = |up: &str, loadavg: &str| {
        let lines = lines(Unit::Micros, &tallies);
        format!("{up}{}", status::frame("fifo", loadavg, &lines))
    };
    let screen =
        frame("", "0.1 0.2 0.3 1/100 4321\n") + &frame(&status::up(2), "0.1 0.2 0.3 1/9 7");
    has_the_figures(&imported(&screen));
}

#[test]
fn lines_are_those_of_cyclictest_to_the_blank() {
    let mut tally = CyclicTally::new(0);
    [33, 26, 25].iter().for_each(|us| tally.add(*us));
    assert_eq!(
        status::line(&COLUMNS, 0, 1234, &tally),
        "T: 0 ( 1234) P:80 I:1000 C:      3 Min:     25 Act:   25 Avg:   28 Max:      33\n"
    );
    let nanos = Columns { unit: Unit::Nanos, ..COLUMNS };
    assert_eq!(
        status::line(&nanos, 0, 12814, &tally),
        "T: 0 (12814) P:80 I:1000 C:      3 Min:     25 Act:      25 Avg:      28 Max:      33\n"
    );
    assert_eq!(
        status::line(&COLUMNS, 1, 0, &CyclicTally::new(0)),
        "T: 1 (    0) P:80 I:1000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n"
    );
    let mut two = [CyclicTally::new(2), CyclicTally::new(2)];
    [0, 1, 1, 7].iter().for_each(|us| two[0].add(*us));
    [5, 6, 7].iter().for_each(|us| two[1].add(*us));
    let text = histogram::text(&[&two[0], &two[1]], HistogramColumns::ThreadsAndAll);
    let expected = "# Histogram\n000000 000001\t000000\t000001\n000001 000002\t000000\t000002\n\
        # Total: 000000003 000000000 000000003\n# Min Latencies: 00000 00005\n# Avg Latencies: 00002 00006\n\
        # Max Latencies: 00007 00007 00007\n# Histogram Overflows: 00001 00003 00004\n\
        # Histogram Overflow at cycle number:\n# Thread 0: 00003\n# Thread 1: 00000 00001 # 00001 others\n\n";
    assert_eq!(text, expected);
}

/// As rteval reads `-h`: rows that are no comment, the first field is the latency, then one for each CPU.
#[test]
fn a_reader_like_that_of_rteval_finds_every_sample() {
    let tallies = tallies(Unit::Micros, 20);
    let text = histogram::text(&tallies.iter().collect::<Vec<_>>(), HistogramColumns::Threads);
    let mut counts = [0u64; 2];
    let mut greatest = Vec::new();
    for line in text.lines() {
        if let Some(values) = line.strip_prefix("# Max Latencies: ") {
            greatest = values.split_whitespace().map(|v| v.parse::<u64>().unwrap()).collect();
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let fields: Vec<u64> = line.split_whitespace().map(|f| f.parse().unwrap()).collect();
        assert_eq!(fields.len(), 3, "{line}");
        counts.iter_mut().zip(&fields[1..]).for_each(|(sum, n)| *sum += n);
    }
    assert_eq!((counts, greatest), ([500, 500], vec![10, 41]));
}

/// As LAVA's test definitions read a log: from the last ESC on, lines that begin with `T:`, parted at blanks and colons.
#[test]
fn a_reader_like_that_of_lava_finds_the_last_frame() {
    let early = lines(Unit::Micros, &[CyclicTally::new(0), CyclicTally::new(0)]);
    let last = lines(Unit::Micros, &tallies(Unit::Micros, 0));
    let log = status::frame("fifo", "1 2 3", &early)
        + &status::up(2)
        + &status::frame("fifo", "1 2 3", &last);
    let tail = log.rsplit('\x1b').next().unwrap();
    let mut read = Vec::new();
    for line in tail.lines().filter(|l| l.starts_with("T:")) {
        let words = line.split([' ', ':']).filter(|w| !w.is_empty());
        let words: Vec<String> = words.map(str::to_lowercase).collect();
        let of = |key: &str| words[words.iter().position(|w| w == key).unwrap() + 1].clone();
        read.push([of("t"), of("min"), of("max")].join(" "));
    }
    assert_eq!(read, ["0 2 10", "1 3 41"]);
}

/// As scripts of LTP and others do: the number behind `Max:` at the end of the last line.
#[test]
fn the_last_number_of_the_summary_is_the_maximum() {
    let text = lines(Unit::Micros, &tallies(Unit::Micros, 0));
    let (_, max) = text.trim_end().rsplit_once("Max:").unwrap();
    assert_eq!(max.trim().parse(), Ok(41));
}

fn placed(line: &str) -> Result<RunConfig, CyclictestError> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let options = Options::of(words::parse(&words)?)?;
    Ok(Placement::of(&options, &four_cpus())?.config)
}

/// A machine of four CPUs.
fn four_cpus() -> Cpus {
    let folder = std::env::temp_dir().join(format!("tailbound-cyclictest-{}", std::process::id()));
    let cpus = folder.join("sys/devices/system/cpu");
    let proc = folder.join("proc/self");
    fs::create_dir_all(&cpus).and_then(|()| fs::create_dir_all(&proc)).unwrap();
    for file in ["online", "present"] {
        fs::write(cpus.join(file), "0-3\n").unwrap();
    }
    fs::write(proc.join("status"), "Cpus_allowed_list:\t0-3\n").unwrap();
    Cpus::read(&Root::at(folder)).unwrap()
}

#[test]
fn options_become_those_of_a_run() {
    let config = |line: &str| placed(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    let text = |line: &str| {
        let c = config(line);
        let parts = [c.cpus, c.policy, c.interval, c.duration, c.deadline, c.until, c.sleep];
        let loops = c.loops.map(|n| n.to_string());
        let parts = parts.into_iter().chain([c.cpu_dma_latency, loops]).flatten();
        parts.collect::<Vec<_>>().join(" ")
    };
    for (theirs, ours) in [
        ("-q -D 1m", "0 other 1000us 60s 0us"),
        ("-Smp99 -D 1h -d0", "0-3 fifo:99 1000us 3600s 0us"),
        ("-t 2 -a 2-3 -p 80 -i200 -l 5 -d 0", "2-3 fifo:80 200us 0us 5"),
        ("-a 1,3 --policy=rr -p 5 -D 2 --laptop", "1 rr:5 1000us 2s"),
        ("-p80 -b 100 -D1", "0 fifo:80 1000us 1s 100999ns exceedance 0us"),
        ("-p80 -N -b 5000 -D1 -x", "0 fifo:80 1000us 1s 5000ns exceedance posix-timer 0us"),
        ("-p 1 -D 1 -l 5000 --latency=20", "0 fifo:1 1000us 20us 1000"),
        ("--policy fifo -t3 -D1 -h 9", "0-2 fifo:4 1000us 1s 0us"),
        // As rteval has it.
        ("-i100 -qmu -h3500 -p95 -t4 -a0-3 --default-system", "0-3 fifo:95 100us 31536000s"),
        // As LAVA's test definitions have it.
        ("-p 98 -i 1000 -t 1 -a 0 -D 1m -m", "0 fifo:98 1000us 60s 0us"),
    ] {
        assert_eq!(text(theirs), ours, "{theirs}");
    }
    assert_eq!(config("-D1 -c 1").clock.as_deref(), Some("realtime"));
    assert_eq!(config("-D1").warm_up.as_deref(), Some("0s"), "cyclictest has none");
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    for (line, named) in [
        ("-z", "-z"),
        ("-i", "-i needs"),
        ("-i 200us", "-i: `200us`"),
        ("-p 100", "-p: `100`"),
        ("-D soon", "-D: `soon`"),
        ("-c 2", "-c: `2`"),
        ("--policy deadline", "--policy: `deadline`"),
        ("-o 5", "-o is not possible"),
        ("-t 5", "-t 5"),
        ("-a !2", "-a is not possible"),
        ("-a 7", "7"),
        ("-S -p80 -d 500", "-d is not possible"),
        ("-S -p80 --priospread", "--priospread"),
    ] {
        let error = placed(line).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains(named), "{line}: `{error}` lacks `{named}`");
    }
    for option in crate::option::OPTIONS {
        let refused = option.treatment == crate::option::Treatment::Refused;
        let value = if option.takes == crate::option::Takes::Nothing { "" } else { "=1" };
        let error = placed(&format!("--{}{value}", option.long)).err().map(|e| e.to_string());
        assert!(!refused || error.is_some_and(|e| e.contains("is not possible")), "{option:?}");
    }
}

/// Digits as one `0` and blanks as one: what is left is the layout.
fn layout(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let c = match c {
            c if c.is_ascii_digit() => '0',
            ' ' | '\t' => ' ',
            c => c,
        };
        // A number of the kernel's is padded within its brackets.
        let padding = c == ' ' && out.ends_with('(');
        if !(padding || matches!(c, '0' | ' ') && out.ends_with(c)) {
            out.push(c);
        }
    }
    out
}

/// The output of the real program; none where it is not installed or may not run.
#[expect(clippy::disallowed_methods, reason = "a child of the test, waited for at once")]
fn real(words: &[&str]) -> Option<String> {
    match std::process::Command::new("cyclictest").args(words).output() {
        Ok(out) if out.status.success() => Some(String::from_utf8_lossy(&out.stdout).into_owned()),
        Ok(out) => {
            tailbound_testing::skip("rt", String::from_utf8_lossy(&out.stderr));
            None
        }
        Err(e) => {
            tailbound_testing::skip("cyclictest", format!("cyclictest cannot be started: {e}"));
            None
        }
    }
}

#[test]
fn side_by_side_with_the_real_program_the_layout_is_the_same() {
    let file: PathBuf =
        std::env::temp_dir().join(format!("tailbound-cyclictest-{}.json", std::process::id()));
    let json_option = format!("--json={}", file.display());
    let Some(theirs) = real(&["-q", "-p", "80", "-l", "3", &json_option]) else { return };
    let mut tally = CyclicTally::new(0);
    tally.add(9);
    let ours = status::lines(&COLUMNS, &[(4321, &tally)]);
    let summary: String = theirs.lines().filter(|l| l.starts_with("T:")).collect();
    assert_eq!(layout(&summary), layout(ours.trim_end()));

    let keys = |text: &str| {
        let key = |line: &str| line.split_once("\": ").map(|(key, _)| key.to_owned());
        text.lines().filter_map(key).collect::<Vec<_>>()
    };
    let theirs = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(keys(&json(Unit::Micros, "cyclictest", &[tally])), keys(&theirs));

    let Some(theirs) = real(&["-q", "-p", "80", "-l", "3", "-h", "1"]) else { return };
    let mut tally = CyclicTally::new(1);
    [9, 9, 9].iter().for_each(|us| tally.add(*us));
    let ours = histogram::text(&[&tally], HistogramColumns::Threads);
    let theirs = theirs.split_once("# Histogram\n").unwrap().1;
    assert_eq!(layout(&format!("# Histogram\n{theirs}")), layout(&ours));
}
