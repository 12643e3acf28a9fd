// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is often tried and cannot be imported: each with what it is and what to do instead.
//!
//! Not here: files that are no text of a tool at all (`foreign`).

use crate::text;

/// A line of it, and what is said.
type Hint = (fn(&str) -> bool, &'static str);

/// What is said of lines that something else holds.
const WITHIN: &str = "lines of cyclictest or its kin within other text, such as a log in JSON or YAML: take them out so that each line begins with `T:`, and import again";

/// Ends and pieces of outputs that are read where they are whole.
const PIECES: &[Hint] = &[
    (
        |line| line.starts_with("T:") && line.contains(" C:") && line.contains("Min:"),
        "status lines of cyclictest or its kin whose ends are missing (`Max:`): the greatest latency is not in it; import the whole lines",
    ),
    (
        |line| {
            line.starts_with("Samples recorded:")
                || line.starts_with("Samples exceeding threshold:")
        },
        "the end of hwlatdetect's report without its first lines, which name duration and threshold: import all of it",
    ),
    (
        |line| line.starts_with("Maximum:") && line.ends_with("(us)"),
        "the end of oslat's output without its first lines, which name the cores: import all of it",
    ),
    (
        |line| line.starts_with("over:") || line.starts_with("count:"),
        "the end of rtla's histogram without its first lines, which name CPUs and unit: import all of it",
    ),
    (
        |line| line.starts_with("ts: ") && line.contains(", inner:"),
        "samples as `hwlatdetect --report` writes them, without threshold, duration and result: import what hwlatdetect printed",
    ),
    (
        |line| line.contains("\"rt_test_version") || line.contains("\"cmdline:\":"),
        "JSON of rt-tests behind other text or behind a stamp in each line: cut out what is from its first `{` to its last `}`, without stamps, and import that",
    ),
    (
        |line| line.starts_with("Index") && (line.contains("IRQ-0") || line.contains("CPU-0")),
        "rtla's histogram without its header (`--no-header`), which names the tool, the unit and the duration: put the lines `# RTLA timerlat histogram`, `# Time unit is microseconds (us)` and `# Duration:   0 00:01:00` before it, as they were, and import again",
    ),
    (|line| line.contains("T: ") && line.contains(" Min:") && line.contains(" Max:"), WITHIN),
    (
        |line| text::has_comma(line),
        "numbers with commas: if a comma stands for decimals, write a point; if it separates columns, import one column of latencies (`cut -d, -f2`)",
    ),
];

/// Outputs that hold no run.
const OTHERS: &[Hint] = &[
    (
        |line| line.contains("Unable to change scheduling policy"),
        "what cyclictest says where it may not have a real-time priority: it measured nothing; run it as root, or with a limit of rtprio",
    ),
    (
        |line| line.starts_with("Parent pid:"),
        "rt-migrate-test, which tries on which CPUs tasks run, and measures no latencies of wake-ups",
    ),
    (
        |line| line.starts_with("T:") && line.contains(" A:"),
        "jitterdebugger's screen: import its results.json or samples.raw instead",
    ),
    (
        |line| line.contains("Latency Distribution (HdrHistogram"),
        "the short list of percentiles of wrk2 and its kin: print the detailed spectrum (`--latency`), and import that with --unit",
    ),
    (
        |line| line.contains("Operating System Noise"),
        "rtla's `top` screen: run `rtla osnoise hist` and import that",
    ),
    (
        |line| line.contains("Hardware-related Noise"),
        "the screen of rtla hwnoise, which holds sums and the greatest alone: run `rtla osnoise hist`, or `tailbound measure hwlat`",
    ),
    (
        |line| line.starts_with("Task ") && line.contains("Max delay"),
        "the table of `perf sched latency`, with an average and a greatest delay of each task and no schedule: it holds no run that could be judged",
    ),
    (
        |line| {
            (line.contains(": count") && line.ends_with("distribution")) || is_row_of_bpftrace(line)
        },
        "a histogram of BCC or bpftrace, in buckets of powers of two without the greatest value: it holds no run that could be judged",
    ),
    (
        |line| line.contains("wait time") && line.contains("sch delay"),
        "the table of `perf sched timehist`, no list of latencies: `tailbound blame FILE` explains it",
    ),
    (
        |line| line.contains("sched_switch:") && line.contains("==>"),
        "a trace of events as text, no list of latencies: `tailbound blame FILE` explains it",
    ),
    (
        |line| line.starts_with("stress-ng-version:"),
        "stress-ng's YAML, which holds no latencies: import its standard output instead",
    ),
    (
        |line| line.starts_with("stress-ng: "),
        "stress-ng's output without its stressor `cyclic`: the other stressors print how much they did, no latencies; run `stress-ng --cyclic 1`",
    ),
    (
        |line| {
            line.starts_with("Starting PI Stress Test")
                || line.contains("Total inversion performed")
        },
        "pi_stress, which tries priority inheritance and measures no latencies; `tailbound measure pi` does",
    ),
    (
        |line| {
            line.starts_with("Running in process mode with")
                || line.starts_with("Running in threaded mode with")
        },
        "hackbench, which is a load and measures no latencies of wake-ups",
    ),
    (
        |line| line.starts_with("# tracer:"),
        "a kernel trace, not a histogram or a list of latencies: `tailbound blame FILE` explains it",
    ),
];

/// `[4, 8)   9 |@@@   |`: a bucket, its count and a bar.
fn is_row_of_bpftrace(line: &str) -> bool {
    let row = line.strip_prefix('[').and_then(|l| l.split_once([')', ']']));
    let Some((bucket, rest)) = row else { return false };
    let of_edges = bucket.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let count = rest.split_once('|').map(|(count, bar)| (count.trim(), bar.trim_end()));
    of_edges
        && count.is_some_and(|(n, bar)| {
            n.parse::<u64>().is_ok()
                && bar.ends_with('|')
                && bar.trim_matches(['@', ' ', '|']).is_empty()
        })
}

/// What a line shows that is of no format.
pub(crate) fn hint(line: &str) -> Option<&'static str> {
    OTHERS.iter().chain(PIECES).find(|(fits, _)| fits(line)).map(|(_, words)| *words)
}

/// What keeps each line of a log as a document of its own.
pub(crate) fn log_as_json(start: &str) -> Option<&'static str> {
    let first = start.lines().next()?;
    if first.contains("\"log\":") && first.contains("\"stream\":") {
        Some("a container's log as JSON: take the text out (`jq -rj .log FILE`) and import that")
    } else if first.contains("\"MESSAGE\"") {
        Some("a journal as JSON: print the messages alone (`journalctl -o cat`) and import that")
    } else {
        PIECES.iter().find(|(fits, words)| *words == WITHIN && fits(first)).map(|(_, words)| *words)
    }
}

/// What is said of text with zeros in it.
pub(crate) const ZEROS: &str = "text with bytes of zeros in it, as a serial line leaves them: take them out (`tr -d '\\000' < FILE`) and import again";

/// Lines of text, but for a byte of zeros here and there?
pub(crate) fn is_text_with_zeros(head: &[u8]) -> bool {
    let zeros = head.iter().filter(|b| **b == 0).count();
    let other = |b: &&u8| !matches!(**b, 0 | b' '..=b'~' | b'\t' | b'\r' | b'\n' | 0x1b);
    let strange = head.iter().filter(other).count();
    head.contains(&b'\n') && zeros.saturating_add(strange) <= head.len() / 20
}
