// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run files that are small and mean harm: refused or read in bounded memory; and the limits are
//! those of the page. A test program of its own: the highest mark of memory is the whole process's.
//!
//! Units: bytes; kB as /proc/self/status has them.

use std::fmt::Write as _;

use tailbound_core::runfile::read_run;
use tailbound_core::{limits, line_limits};

const HEADER: &str = concat!(
    r#"{"type":"header","schema":"tailbound-run/1","tool":"t","id":"i","started":"s","command":[],"#,
    r#""plan":{"probe":"cyclic","interval_ns":1000000,"activations":9,"warm_up_ns":0,"cpus":"0","#,
    r#""policy":"other","clock":"monotonic","means":"nanosleep","loads":[],"requirement":{}},"machine":{}}"#,
    "\n"
);

/// The process's highest resident size so far.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn threads(count: u32, late: &str, other: bool) -> String {
    let mut file = HEADER.to_owned();
    let empty =
        r#"{"n":0,"min_ns":null,"max_ns":null,"late":{"precision":10,"index":[],"count":[]}}"#;
    for t in 0..count {
        // Lines of other programs have their type elsewhere, and are taken at once.
        let (first, last) =
            if other { ("", r#","type":"thread""#) } else { (r#""type":"thread","#, "") };
        let line = format!(
            r#"{{{first}"thread":{t},"cpu":0,"context":"user","wakeup":{{"n":2,"min_ns":0,"max_ns":9,"late":{late}}},"missed":{empty}{last}}}"#
        );
        let _ = writeln!(file, "{line}");
    }
    file
}

fn refused(file: &str, words: &str) {
    let got = read_run(file.as_bytes()).map(drop).map_err(|e| e.to_string());
    assert!(got.as_ref().is_err_and(|e| e.contains(words)), "{words}: {got:?}");
}

#[test]
fn small_files_take_little_memory_and_too_many_records_are_refused() {
    let before = peak_kb();
    let far = r#"{"precision":16,"index":[0,1245183],"count":[1,1]}"#;
    let file = threads(1000, far, false);
    assert!(file.len() < 300_000);
    let run = read_run(file.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    let (_, due) = run.total("user");
    assert_eq!(due.n, 2000);
    drop((run, due));
    let most = u32::try_from(limits::THREADS_MAX).unwrap_or(u32::MAX);
    let far = r#"{"precision":10,"index":[25599],"count":[1]}"#;
    for other in [false, true] {
        refused(&threads(most + 1, far, other), "threads and contexts");
    }
    let mut findings = HEADER.to_owned();
    for i in 0..60_000 {
        let _ =
            writeln!(findings, r#"{{"type":"finding","id":"{i}","impact":"notice","title":""}}"#);
    }
    refused(&findings, "line 4098: findings");
    refused(&format!("{HEADER}{}", " ".repeat(limits::LINE_BYTES_MAX + 1)), "longer than 8 MiB");
    let cpus = format!(r#""cpus":"{}""#, "0-8191,".repeat(100_000));
    refused(&HEADER.replace(r#""cpus":"0""#, &cpus), "again and again");
    let grown = peak_kb().saturating_sub(before);
    assert!(before > 0 && grown < 128 << 10, "{grown} kB for small files");
}

#[test]
fn numbers_beyond_the_limits_are_refused_with_their_place() {
    let second = r#"{"type":"second","thread":0,"second":1,"n":2,"max_ns":3,"argmax":4,"min_ns":0,"sum_ns":5,"missed":6}"#;
    for (from, to) in [
        (r#""second":1"#, format!(r#""second":{}"#, u64::MAX)),
        (r#""n":2"#, format!(r#""n":{}"#, limits::SECOND_MAX + 1)),
        (r#""max_ns":3"#, format!(r#""max_ns":{}"#, i64::MAX)),
        (r#""argmax":4"#, format!(r#""argmax":{}"#, limits::COUNT_MAX + 1)),
        (r#""min_ns":0"#, format!(r#""min_ns":{}"#, i64::MIN)),
        (r#""missed":6"#, format!(r#""missed":{}"#, u64::MAX)),
    ] {
        let line = second.replace(from, &to);
        assert_ne!(line, second);
        refused(&format!("{HEADER}{line}\n"), "line 2: ");
        refused(&format!("{HEADER}{line}\n"), "docs/run-file.md, Limits");
    }
    let half = limits::COUNT_MAX / 2 + 1;
    let sum = format!(r#"{{"precision":10,"index":[1,2],"count":[{half},{half}]}}"#);
    refused(&threads(1, &sum, false), "counts together");
    let block = format!(
        r#"{{"type":"block","thread":0,"second":0,"seconds":1,"n":{},"late":{{"precision":7,"index":[],"count":[]}}}}"#,
        limits::COUNT_MAX
    );
    refused(&format!("{HEADER}{}", format!("{block}\n").repeat(17)), "together");
    // The greatest that is allowed is read.
    let most = second.replace(r#""second":1"#, &format!(r#""second":{}"#, limits::SECOND_MAX));
    let run = read_run(format!("{HEADER}{most}\n").as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    assert!(run.measured_ns() > 1 << 60);
}

#[test]
fn strings_of_strangers_are_quoted_without_what_a_terminal_obeys() {
    let evil =
        r#"{"type":"finding","id":"a","impact":"\u001b[2J\u0007\u009b2J\n\u202e","title":""}"#;
    let error =
        read_run(format!("{HEADER}{evil}\n").as_bytes()).map(drop).map_err(|e| e.to_string());
    // Either it is refused in one plain line, or it is kept as data.
    if let Err(text) = error {
        assert!(
            !text.contains(tailbound_core::printable::is_harmful) && !text.contains('\n'),
            "{text:?}"
        );
    }
}

#[test]
fn the_page_names_the_limits() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/run-file.md"));
    let page = page.unwrap_or_default();
    let held: [(&str, u64); 23] = [
        ("LINE_BYTES_MAX", limits::LINE_BYTES_MAX as u64),
        ("COUNT_MAX", limits::COUNT_MAX),
        ("TOTAL_MAX", limits::TOTAL_MAX),
        ("SECOND_MAX", limits::SECOND_MAX),
        ("NS_MAX", limits::NS_MAX.unsigned_abs()),
        ("THREADS_MAX", limits::THREADS_MAX as u64),
        ("CONTEXTS_MAX", limits::CONTEXTS_MAX as u64),
        ("FINDINGS_MAX", limits::FINDINGS_MAX as u64),
        ("PLAN_MAX", limits::PLAN_MAX as u64),
        ("ROUNDS_MAX", u64::from(limits::ROUNDS_MAX)),
        ("BLAME_PARTS_MAX", limits::BLAME_PARTS_MAX as u64),
        ("CYCLE_CAUSES_MAX", limits::CYCLE_CAUSES_MAX as u64),
        ("CYCLE_JOBS_MAX", limits::CYCLE_JOBS_MAX as u64),
        ("STACK_FRAMES_MAX", limits::STACK_FRAMES_MAX as u64),
        ("BLAME_SPANS_MAX", limits::BLAME_SPANS_MAX as u64),
        ("TASK_LIST_MAX", limits::TASK_LIST_MAX as u64),
        ("PATHS_LIST_MAX", limits::PATHS_LIST_MAX as u64),
        ("PULSES_MAX", limits::PULSES_MAX as u64),
        ("RAW_SAMPLES_MAX", limits::RAW_SAMPLES_MAX),
        ("TEXT_BYTES_MAX", limits::TEXT_BYTES_MAX),
        ("RESULT_BYTES_MAX", limits::RESULT_BYTES_MAX),
        ("CONSOLE_BYTES_MAX", limits::CONSOLE_BYTES_MAX),
        ("OBJECT_BYTES_MAX", limits::OBJECT_BYTES_MAX),
    ];
    for (name, value) in held {
        assert!(page.contains(&format!("| `{name}` | {value} |")), "{name} is {value}");
    }
    let source = include_str!("../src/limits.rs");
    assert_eq!(source.matches("\npub const ").count(), held.len(), "a limit without its row");
}

#[test]
fn dates_and_lengths_that_no_clock_shows_are_none() {
    use tailbound_core::utc::from_rfc2822;
    assert_eq!(from_rfc2822("Sat, 21 Nov 2026 18:58:56 +0100"), Some(1_795_283_936));
    for zone in [i64::MIN, i64::MAX, 1460, -1460] {
        assert_eq!(from_rfc2822(&format!("Sat, 21 Nov 2026 18:58:56 {zone}")), None, "{zone}");
    }
    // A run that says more than a run file may hold is none, before anybody writes it.
    let mut run = read_run(HEADER.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(line_limits::check_run(&run), Ok(()));
    let reason = tailbound_core::EndReason::Interrupted;
    run.end = Some(tailbound_core::record::End { reason, measured_ns: i64::MAX, lines: 1 });
    let said = line_limits::check_run(&run).map_err(|e| e.to_string());
    assert!(said.is_err_and(|e| e.contains("measured_ns is beyond")));
}
