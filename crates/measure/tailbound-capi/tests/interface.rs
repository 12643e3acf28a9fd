// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface as a C program meets it: header and library agree, bad handles and arguments are
//! refused, and what was recorded comes out whole.
#![expect(unsafe_code, reason = "calls as a C program makes them")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr;
use std::sync::{PoisonError, RwLock};

use tailbound_capi::*;
use tailbound_core::runfile::read_run;
use tailbound_core::{Context, Outcome};

const PERIOD_NS: i64 = 1_000_000;

/// Who takes every slot there is, does it alone.
static TURN: RwLock<()> = RwLock::new(());

fn config() -> tb_config {
    // SAFETY: all-zero bytes are a valid tb_config, filled right after.
    let mut config: tb_config = unsafe { std::mem::zeroed() };
    // SAFETY: a live struct of that size.
    assert_eq!(unsafe { tb_config_init(&raw mut config, size_of::<tb_config>()) }, TB_OK);
    config.period_ns = PERIOD_NS;
    config
}

fn open(config: &tb_config) -> *mut tb_recorder {
    // SAFETY: filled by `config`; its texts live as long as the caller's.
    unsafe { tb_open(config) }
}

fn last_error() -> String {
    // SAFETY: ends in a zero byte, and lives until the next failure.
    unsafe { CStr::from_ptr(tb_last_error()) }.to_string_lossy().into_owned()
}

fn project() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

fn figures(recorder: *mut tb_recorder) -> tb_figures {
    // SAFETY: all-zero bytes are valid figures, and the struct is live.
    unsafe {
        let mut f: tb_figures = std::mem::zeroed();
        assert_eq!(tb_snapshot(recorder, &raw mut f, size_of::<tb_figures>()), TB_OK);
        f
    }
}

/// 3000 cycles of 1 ms: 2 µs late, done after 52 µs; after cycle 999 three are left out.
fn record(recorder: *mut tb_recorder) {
    let mut due = 5_000_000_000i64;
    for k in 0..3000i64 {
        assert_eq!(tb_cycle_start_at(recorder, due, due + 2000), TB_OK);
        let took = if k == 999 { 3 * PERIOD_NS + 500_000 } else { 50_000 };
        assert_eq!(tb_cycle_end_at(recorder, due + 2000 + took), TB_OK);
        due += if k == 999 { 4 * PERIOD_NS } else { PERIOD_NS };
    }
    assert_eq!(tb_finish(recorder), TB_OK);
}

#[test]
fn header_and_library_name_the_same_functions_and_numbers() {
    let header = std::fs::read_to_string(project().join("include/tailbound.h")).expect("header");
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|l| l.starts_with("TB_API"))
        .filter_map(|l| l.split_once('(')?.0.rsplit([' ', '*']).next())
        .collect();
    let mut defined = BTreeSet::new();
    let mut numbers = BTreeMap::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in std::fs::read_dir(sources).expect("sources") {
        let text = std::fs::read_to_string(entry.expect("entry").path()).expect("text");
        let mut marked = false;
        for line in text.lines() {
            if let Some((_, rest)) = line.split_once("extern \"C\" fn ").filter(|_| marked) {
                defined.insert(rest.split('(').next().unwrap_or_default().to_owned());
            }
            marked = line.trim() == "#[unsafe(no_mangle)]";
            if let Some((name, value)) = line
                .strip_prefix("pub const TB_")
                .and_then(|l| Some((l.split_once(':')?.0, l.split_once("= ")?.1)))
            {
                numbers.insert(format!("TB_{name}"), value.trim_end_matches(';').to_owned());
            }
        }
    }
    let declared: BTreeSet<String> = declared.into_iter().map(str::to_owned).collect();
    assert_eq!(declared, defined);
    for (name, value) in numbers {
        let line = header.lines().find_map(|l| l.strip_prefix(&format!("#define {name} ")));
        let said =
            line.and_then(|l| l.split_whitespace().next()).map(|v| v.trim_matches(['(', ')']));
        let value = if value == "i64::MIN" { "INT64_MIN".to_owned() } else { value };
        assert_eq!(said, Some(value.as_str()), "{name}");
    }
    let version = env!("CARGO_PKG_VERSION").split('.');
    for (part, value) in ["MAJOR", "MINOR", "PATCH"].into_iter().zip(version) {
        assert!(header.contains(&format!("#define TB_VERSION_{part} {value}\n")), "{part}");
    }
}

/// Declarations of the header in one line each: functions, structs with their fields in order, numbers without the version's.
fn declarations(header: &str) -> BTreeSet<String> {
    let mut text = String::new();
    let mut rest = header;
    while let Some((code, comment)) = rest.split_once("/*") {
        text.push_str(code);
        rest = comment.split_once("*/").map_or("", |(_, code)| code);
    }
    text.push_str(rest);
    let numbers = text.lines().filter(|l| {
        l.starts_with("#define TB_") && !l.contains("_VERSION_") && !l.contains("TB_API")
    });
    let line = |words: &str| words.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out: BTreeSet<String> = numbers.map(line).collect();
    let code: String =
        text.lines().filter(|l| !l.starts_with('#')).map(|l| l.to_owned() + "\n").collect();
    for (begin, end) in [("TB_API ", ";"), ("typedef struct ", "} ")] {
        let parts = code.split(begin).skip(1).filter_map(|part| part.split(end).next());
        out.extend(parts.map(|part| line(&format!("{begin}{part}"))));
    }
    out
}

#[test]
fn what_programs_in_c_are_compiled_against_stays() {
    let header = std::fs::read_to_string(project().join("include/tailbound.h")).expect("header");
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/promised.txt");
    tailbound_testing::promised(&list, &declarations(&header));
}

#[test]
fn whatever_is_not_an_open_recorder_is_refused() {
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    let opened = open(&config());
    assert_eq!(tb_close(opened), TB_OK);
    let foreign: *mut tb_recorder = ptr::without_provenance_mut(0x7fff_1234_5678);
    for bad in [ptr::null_mut(), opened, foreign, ptr::without_provenance_mut(usize::MAX)] {
        assert_eq!(tb_cycle_start(bad, 1), TB_ERR_HANDLE);
        assert_eq!(tb_cycle_end(bad), TB_ERR_HANDLE);
        assert_eq!(tb_cycle_start_at(bad, 1, 1), TB_ERR_HANDLE);
        assert_eq!(tb_cycle_end_at(bad, 1), TB_ERR_HANDLE);
        assert_eq!((tb_now(bad), tb_next_due(bad)), (TB_NONE, TB_NONE));
        assert_eq!((tb_finish(bad), tb_poll(bad)), (TB_ERR_HANDLE, TB_ERR_HANDLE));
        assert_eq!(tb_close(bad), TB_ERR_HANDLE);
        assert!(last_error().contains("closed"), "{}", last_error());
    }
    // The same place, used again, is another recorder.
    let again = open(&config());
    assert_ne!(again, opened);
    assert_eq!(tb_cycle_end(opened), TB_ERR_HANDLE);
    assert_eq!(tb_close(again), TB_OK);
}

#[test]
fn bad_arguments_say_what_is_wrong() {
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    type Spoil = fn(&mut tb_config);
    let cases: [(&str, Spoil); 6] = [
        ("period_ns", |c| c.period_ns = 0),
        ("clock", |c| c.clock = 77),
        ("confidence", |c| c.confidence = f64::NAN),
        ("limits of completion", |c| c.completion_late_ns = -1),
        ("policy", |c| c.policy = c"fifo:200".as_ptr()),
        ("name", |c| c.name = c"\xff".as_ptr()),
    ];
    for (word, spoil) in cases {
        let mut c = config();
        spoil(&mut c);
        assert!(open(&c).is_null(), "{word}");
        assert!(last_error().contains(word), "{word}: {}", last_error());
    }
    let mut c = config();
    c.size = 3;
    assert!(open(&c).is_null() && last_error().contains("tb_config_init"));
    // SAFETY: null is allowed.
    assert!(unsafe { tb_open(ptr::null()) }.is_null());
    let recorder = open(&config());
    // SAFETY: null is allowed.
    unsafe {
        assert_eq!(tb_snapshot(recorder, ptr::null_mut(), 8), TB_ERR_ARGUMENT);
        assert_eq!(tb_write_run(recorder, ptr::null()), TB_ERR_ARGUMENT);
        let missing = c"/nowhere/at/all/x.jsonl";
        assert_eq!(tb_write_run(recorder, missing.as_ptr()), TB_ERR_IO);
        assert!(last_error().contains("/nowhere/at/all/x.jsonl"), "{}", last_error());
        let mut value = 0.0;
        assert_eq!(tb_quantile(recorder, TB_START, 0.5, &raw mut value), TB_ERR_NO_DATA);
        assert_eq!(tb_quantile(recorder, 9, 0.5, &raw mut value), TB_ERR_ARGUMENT);
        assert_eq!(tb_config_init(ptr::null_mut(), 100), TB_ERR_ARGUMENT);
    }
    assert_eq!(tb_close(recorder), TB_OK);
}

#[test]
fn every_slot_can_be_used_and_one_more_is_refused() {
    let _turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    let mut all = Vec::new();
    loop {
        let one = open(&config());
        if one.is_null() {
            break;
        }
        all.push(one);
        assert!(all.len() <= TB_RECORDERS_MAX);
    }
    assert!(last_error().contains("close one"), "{}", last_error());
    assert_eq!(all.len(), TB_RECORDERS_MAX);
    all.into_iter().for_each(|r| assert_eq!(tb_close(r), TB_OK));
}

#[test]
fn figures_count_everything_that_fell_due() {
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    let mut c = config();
    c.start_late_ns = 100_000;
    c.completion_late_ns = 200_000;
    let recorder = open(&c);
    record(recorder);
    let f = figures(recorder);
    assert_eq!((f.activations, f.unended, f.refused, f.finished), (3003, 0, 0, 1));
    assert_eq!((f.start.n, f.start.missed, f.start.beyond), (3003, 3, 3));
    // The overrun itself, and the three it cost.
    assert_eq!((f.completion.n, f.completion.missed, f.completion.beyond), (3003, 3, 4));
    assert_eq!((f.completion.exceedances, f.completion.dropped), (1, 0));
    assert_eq!((f.start.min_ns, f.start.max_ns), (2000, 2_502_000));
    assert_eq!(f.completion.max_ns, 3_502_000);
    assert!((f.start.p50_ns - 2000.0).abs() < 2.5 && f.start.p99_999_ns.is_nan());
    assert_eq!(f.start.moments_n, 3003);
    let mean = (3000.0 * 2000.0 + 502_000.0 + 1_502_000.0 + 2_502_000.0) / 3003.0;
    assert!((f.start.mean_ns - mean).abs() < 1e-6 * mean);
    let mut value = 0.0;
    // SAFETY: a live place.
    let status = unsafe { tb_quantile(recorder, TB_COMPLETION, 0.99, &raw mut value) };
    assert!(status == TB_OK && (value - 52_000.0).abs() < 60.0, "{value}");
    assert_eq!(tb_close(recorder), TB_OK);
}

#[test]
fn a_run_file_holds_both_latencies_and_the_graver_verdict() {
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    let name = CString::new("balance").expect("no zero");
    let mut c = config();
    c.name = name.as_ptr();
    c.policy = c"fifo:80".as_ptr();
    c.start_late_ns = 100_000_000;
    c.completion_late_ns = 200_000;
    let recorder = open(&c);
    record(recorder);
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("run.tailbound.jsonl");
    let to = CString::new(path.to_str().expect("text")).expect("no zero");
    // SAFETY: ends in a zero byte.
    unsafe {
        assert_eq!(tb_write_run(recorder, to.as_ptr()), TB_OK, "{}", last_error());
    }
    let run = read_run(std::io::BufReader::new(std::fs::File::open(&path).expect("file")));
    let run = run.expect("a run");
    assert_eq!(run.contexts(), [Context::Start, Context::Completion]);
    assert_eq!(run.total("start").1.n, 3003);
    assert_eq!(run.header.plan.requirement.deadline_ns, Some(200_000));
    assert_eq!(run.header.plan.policy.to_string(), "fifo:80");
    assert!(run.header.machine.contains_key("kernel.release"));
    let due: u64 = run.seconds.iter().filter(|s| s.thread == 0).map(|s| s.n + s.missed).sum();
    assert_eq!(due, 3003);
    let in_blocks: u64 = run.blocks.iter().map(|b| b.n).sum();
    assert_eq!(in_blocks, 3003, "stretches of the completion");
    assert_eq!(run.exceedances.len(), 1);
    let verdict = run.verdict.expect("verdict");
    assert_eq!((verdict.outcome, verdict.beyond), (Outcome::NotMet, 4));
    assert!(verdict.sentence.starts_with("Not met: completion: "), "{}", verdict.sentence);
    assert!(verdict.statements.iter().any(|s| s.starts_with("Met: start: ")));
    assert_eq!(
        run.end.map(|e| (e.reason, e.measured_ns)),
        Some(("complete".into(), 3_003_000_000))
    );
    assert_eq!(std::fs::read_dir(dir.path()).expect("dir").count(), 1, "nothing left beside it");
    let mut needed = 0;
    // SAFETY: live places of those sizes; null is allowed.
    unsafe {
        assert_eq!(tb_json(recorder, ptr::null_mut(), 0, &raw mut needed), TB_ERR_SIZE);
        let mut buffer = vec![0u8; needed];
        let status = tb_json(recorder, buffer.as_mut_ptr().cast(), needed, ptr::null_mut());
        assert_eq!((status, buffer.pop()), (TB_OK, Some(0)));
        let json = String::from_utf8(buffer).expect("UTF-8");
        assert!(json.contains("\"schema\":\"tailbound-library/1\""), "{json}");
    }
    assert_eq!(tb_close(recorder), TB_OK);
}

#[test]
fn a_loop_without_ends_has_starts_only_and_says_so() {
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    let recorder = open(&config());
    for k in 1..=20 {
        assert_eq!(tb_cycle_start_at(recorder, k * PERIOD_NS, k * PERIOD_NS + 10), TB_OK);
    }
    let f = figures(recorder);
    assert_eq!((f.start.n, f.completion.n, f.unended, f.finished), (20, 0, 19, 0));
    assert_eq!((f.completion.max_ns, f.completion.mean_ns.is_nan()), (TB_NONE, true));
    assert_eq!(tb_close(recorder), TB_OK);
}

#[test]
fn numbers_of_ones_own() {
    // SAFETY: live structs; all-zero bytes are valid for both.
    unsafe {
        let (mut a, mut b) = (std::mem::zeroed(), std::mem::zeroed());
        assert_eq!((tb_moments_init(&raw mut a), tb_moments_init(&raw mut b)), (TB_OK, TB_OK));
        assert!(tb_moments_mean(&raw const a).is_nan());
        for x in [2.0, 4.0, 4.0, 4.0] {
            assert_eq!(tb_moments_add(&raw mut a, x), TB_OK);
        }
        for x in [5.0, 5.0, 7.0, 9.0] {
            assert_eq!(tb_moments_add(&raw mut b, x), TB_OK);
        }
        assert_eq!(tb_moments_add(&raw mut a, f64::NAN), TB_ERR_ARGUMENT);
        assert_eq!(tb_moments_merge(&raw mut a, &raw const b), TB_OK);
        assert!((tb_moments_mean(&raw const a) - 5.0).abs() < 1e-12);
        assert!((tb_moments_sd(&raw const a) - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!((tb_moments_skewness(&raw const a) - 0.65625).abs() < 1e-12);
        assert!((tb_moments_kurtosis(&raw const a) - (2.78125 - 3.0)).abs() < 1e-12);
        assert_eq!(tb_moments_add(ptr::null_mut(), 1.0), TB_ERR_ARGUMENT);
        let mut p2 = std::mem::zeroed();
        assert_eq!(tb_p2_init(&raw mut p2, 1.5), TB_ERR_ARGUMENT);
        assert_eq!(tb_p2_init(&raw mut p2, 0.5), TB_OK);
        // The example of the paper.
        for x in [
            0.02, 0.15, 0.74, 3.39, 0.83, 22.37, 10.15, 15.43, 38.62, 15.92, 34.60, 10.28, 1.47,
            0.40, 0.05, 11.39, 0.27, 0.42, 0.09, 11.37,
        ] {
            assert_eq!(tb_p2_add(&raw mut p2, x), TB_OK);
        }
        assert!((tb_p2_value(&raw const p2) - 4.440_634_353_260_338).abs() < 1e-12);
    }
}
