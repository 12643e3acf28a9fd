// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader would lose if a rendering broke: marks of single counts, figures, warnings,
//! well-formed markup, harmless text, size.
//!
//! Not here: a browser's opinion (`browser.rs`).

mod common;

use std::collections::BTreeSet;

use common::{Shape, run};
use roxmltree::{Document, Node, ParsingOptions};
use tailbound_core::plan::Means;
use tailbound_core::progress::{Phase, Progress, ThreadProgress};
use tailbound_core::purpose::Purpose;
use tailbound_core::record::{End, Fact, LoadRecord, Source};
use tailbound_core::{Distribution, Finding, Histogram, Impact, Requirement, Run};
use tailbound_report::{Color, Style, compare, html, json, live, pictures, text};
use tailbound_stats::Analysis;
use tailbound_stats::compare::{Settings, Systems};

/// The comparison of runs, each a system of its own.
fn compared(runs: Vec<Run>, names: &[&str]) -> compare::Answer {
    let given: Vec<(String, Vec<Run>)> =
        names.iter().map(|n| (*n).to_owned()).zip(runs.into_iter().map(|r| vec![r])).collect();
    compare::Answer::of(Systems::of(&given, &[]).expect("two systems"), Settings::default())
}

fn small(seconds: u64) -> Run {
    run(&Shape { seconds, per_second: 500, ..Shape::default() })
}

fn parse(markup: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(markup, options).expect("the markup is well-formed XML")
}

fn page(run: &Run) -> String {
    html(&[Analysis::of(run)], &["x.tailbound.jsonl".to_owned()])
}

/// Numbers of path data that follow `M`, in pairs.
fn moves(d: &str) -> Vec<(f64, f64)> {
    d.split('M')
        .filter_map(|part| {
            let end = part.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(part.len());
            let (x, y) = part.get(..end)?.split_once(' ')?;
            Some((x.parse().ok()?, y.parse().ok()?))
        })
        .collect()
}

fn classes<'a>(doc: &'a Document<'a>, class: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    doc.descendants().filter(move |n| {
        n.attribute("class").is_some_and(|c| c.split_whitespace().any(|word| word == class))
    })
}

#[test]
fn a_single_count_far_out_leaves_a_mark_above_the_floor() {
    let mut run = small(2);
    run.threads.truncate(1);
    // One value three decades beyond all others, and a lone bin before the last one.
    run.threads[0].wakeup.add(300_000_000);
    run.threads[0].wakeup.add(40_000_000);
    let figure = pictures::late(&pictures::threads(&run), Some(100_000)).expect("there is data");
    let svg = figure.standalone();
    let doc = parse(&svg);
    let floor: f64 = 280.0;
    let dots: Vec<(f64, f64)> =
        classes(&doc, "dots").flat_map(|n| moves(n.attribute("d").unwrap_or(""))).collect();
    for share in [(40_000_000f64, "lone"), (300_000_000.0, "latest")] {
        let near = dots.iter().any(|(x, y)| {
            let lo = doc.root_element().attribute("data-x").unwrap_or("").to_owned();
            let words: Vec<&str> = lo.split(' ').collect();
            let (lo, hi): (f64, f64) =
                (words[1].parse().unwrap_or(0.0), words[2].parse().unwrap_or(0.0));
            let at = (share.0 / lo).ln() / (hi / lo).ln() * (720.0 - 62.0 - 14.0);
            (x - at).abs() < 8.0 && *y < floor - 5.0
        });
        assert!(near, "no dot for the {} value: {dots:?}", share.1);
    }
    // The steps rise there too, for those who print without dots.
    let steps: String = classes(&doc, "s").filter_map(|n| n.attribute("d")).collect();
    assert!(steps.matches('V').count() > 10, "{steps}");
}

#[test]
fn pictures_are_whole_documents_without_nonsense() {
    let shapes = [
        Shape { seconds: 3, ..Shape::default() },
        Shape { seconds: 3, cpus: 40, per_second: 100, ..Shape::default() },
        Shape { seconds: 1, per_second: 1, cpus: 1, ..Shape::default() },
        Shape { seconds: 3, early: true, ..Shape::default() },
    ];
    for shape in shapes {
        let early = shape.early;
        let run = run(&shape);
        let figures = pictures::of_run(&Analysis::of(&run));
        for id in ["histogram", "survival", "maxima", "loads"] {
            assert!(figures.iter().any(|f| f.id == id), "{id} is missing");
        }
        assert_eq!(figures.iter().any(|f| f.id == "early"), early);
        for f in &figures {
            let svg = f.standalone();
            for nonsense in ["NaN", "inf", "-0 ", "None"] {
                assert!(!svg.contains(nonsense), "{}: {nonsense}", f.id);
            }
            parse(&svg);
            parse(&f.narrow);
            assert!(!f.table.rows.is_empty(), "{} has no numbers", f.id);
        }
    }
}

#[test]
fn the_page_says_everything_and_fetches_nothing() {
    let run = small(5);
    let page = page(&run);
    let doc = parse(&page);
    for words in [
        "not met",
        "Not met: ",
        "Latency histogram",
        "Over time",
        "All figures",
        "needs ",
        "per due activation",
        "Moving windows",
        "Real-time throttling is on",
        "Write -1 to",
        "Load achieved",
        "Overhead of the measurement",
        "Warm-up, not judged",
        "incomplete data",
        "Glossary",
        "The machine",
        "permission denied reading MSR",
        "not applicable: no cpufreq driver",
        "Changed during the run",
        "The plan",
        "Repeat this run",
        "tailbound measure --deadline 100us",
        "x.tailbound.jsonl",
        "The numbers",
    ] {
        let found = doc.descendants().filter_map(|n| n.text()).any(|t| t.contains(words));
        assert!(found, "the page does not say `{words}`");
    }
    assert!(!page.contains("approximate)"), "no P² column without estimates");
    for fetch in ["http:", "https:", "//cdn", "@import", "url(", " src=", "<link", "<iframe"] {
        assert!(!page.contains(fetch), "the page contains `{fetch}`");
    }
    assert!(page.contains("default-src 'none'") || page.contains("default-src &#39;none&#39;"));
    assert!(page.contains("width=device-width"));
    let scripts: Vec<&str> = doc
        .descendants()
        .filter(|n| n.attribute("type") == Some("application/json"))
        .filter_map(|n| n.text())
        .collect();
    assert_eq!(scripts.len(), 2);
    for s in scripts {
        serde_json::from_str::<serde_json::Value>(s).expect("embedded JSON parses");
    }
}

#[test]
fn text_of_a_run_cannot_become_markup_or_move_the_cursor() {
    let evil = "</script><img src=x onerror=alert(1)>\u{1b}[2J\"'&";
    let mut run = small(2);
    run.header.command = vec![evil.to_owned()];
    run.header.machine.insert(evil.to_owned(), Fact::of(evil));
    run.findings[0].title = evil.to_owned();
    run.findings[0].remedy = evil.to_owned();
    run.loads[0].name = evil.to_owned();
    run.threads[0].context = evil.into();
    if let Some(v) = &mut run.verdict {
        v.sentence = evil.to_owned();
    }
    let page = html(&[Analysis::of(&run), Analysis::of(&run)], &[evil.to_owned(), "b".to_owned()]);
    let doc = parse(&page);
    assert!(!page.contains("<img") && !page.contains('\u{1b}'));
    assert_eq!(doc.descendants().filter(|n| n.has_tag_name("script")).count(), 3);
    let plain = text(&Analysis::of(&run), Style { color: Color::Off, width: 80 });
    assert!(!plain.contains('\u{1b}'));
    assert!(
        !compared(vec![run.clone(), run], &[evil, "b"]).text(Style::default()).contains('\u{1b}')
    );
}

#[test]
fn missing_data_is_reported_and_never_good() {
    let mut run = small(2);
    (run.threads, run.seconds, run.windows, run.loads) = (vec![], vec![], vec![], vec![]);
    (run.verdict, run.end) = (None, None);
    run.self_cost.clear();
    run.after.clear();
    run.header.machine.clear();
    let page = page(&run);
    parse(&page);
    for words in
        ["undecided", "cut off", "Unknown: the loads left no record", "Unknown: not measured"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains(">met<"));
    let plain = text(&Analysis::of(&run), Style::default());
    assert!(plain.starts_with("Undecided: ") && plain.contains("cut off"), "{plain}");
    assert_eq!(json(&Analysis::of(&run))["verdict"]["exit_status"], 5);
    assert!(html(&[], &[]).contains("nothing to report"));
}

#[test]
fn what_an_imported_source_lost_is_in_every_rendering() {
    let mut run = small(2);
    run.threads.truncate(1);
    let w = &mut run.threads[0].wakeup;
    (w.n, w.unbinned, w.unbinned_from_ns) = (w.n + 2161, 2161, Some(30_000));
    (w.resolution_ns, w.sums) = (1000, None);
    for rendering in [
        page(&run),
        text(&Analysis::of(&run), Style::default()),
        json(&Analysis::of(&run)).to_string(),
    ] {
        assert!(rendering.contains("2,161") || rendering.contains("2161"));
    }
}

#[test]
fn a_second_without_any_wake_up_is_reported() {
    let mut run = small(4);
    (run.seconds[1].n, run.seconds[1].missed) = (0, 500);
    let figure = pictures::maxima(&Analysis::of(&run)).expect("there are seconds");
    assert!(figure.caption.contains("1 seconds of a thread had no wake-up"), "{}", figure.caption);
    assert!(!figure.wide.contains("NaN"));
}

#[test]
fn half_a_day_stays_small_and_keeps_its_worst_second() {
    let shape = Shape { seconds: 43_200, per_second: 10, stall_ns: 0, ..Shape::default() };
    let mut run = run(&shape);
    for s in &mut run.seconds {
        s.max_ns =
            if (s.thread, s.second) == (1, 31_416) { 7_654_321 } else { s.max_ns.min(90_000) };
    }
    let page = page(&run);
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    assert!(page.contains("7.65 ms"), "the worst second is gone");
    let figure = pictures::maxima(&Analysis::of(&run)).expect("there are seconds");
    assert!(
        figure.series.to_string().contains("7654320")
            || figure.series.to_string().contains("7654321")
    );
}

#[test]
fn json_has_the_documented_members() {
    let run = small(3);
    let v = json(&Analysis::of(&run));
    for member in [
        "schema",
        "run",
        "verdict",
        "threads",
        "totals",
        "findings",
        "loads",
        "windows",
        "plan",
        "machine",
        "after",
        "self_cost_ns",
        "events",
        "lost",
    ] {
        assert!(v.get(member).is_some(), "{member}");
    }
    assert_eq!(v["schema"], "tailbound-report/1");
    assert_eq!(v["verdict"]["outcome"], "not-met");
    assert_eq!(v["verdict"]["exit_status"], 1);
    let (wakeup, due) =
        (v["totals"][0]["wakeup"]["n"].as_u64(), v["totals"][0]["due"]["n"].as_u64());
    assert_eq!(due.zip(wakeup).map(|(d, w)| d - w), v["totals"][0]["missed"].as_u64());
    assert!(v["totals"][0]["missed"].as_u64() > Some(0));
    assert_eq!(v["findings"][0]["impact"], "doubt", "gravest first");
    let c = compared(vec![run.clone(), run], &["a", "b"]).json();
    assert_eq!(c["verdicts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn systems_that_are_refused_for_one_reason_have_one_sentence() {
    let answer = compared(vec![small(2); 4], &["a", "b", "c", "d"]);
    let page = tailbound_report::html::comparison(&answer);
    let page = page.split("<script").next().unwrap_or_default().to_owned();
    let plain = answer.text(Style { width: 4000, ..Style::default() });
    for told in [page, plain] {
        assert_eq!(told.matches("No statement about the difference of").count(), 1, "{told}");
        assert!(told.contains("of each of b, c and d from a is possible: "), "{told}");
    }
    // Scripts have one for each.
    let all = answer.json();
    let all = all["differences"].as_array().expect("differences");
    let words = |i: usize| all[i]["sentence"].as_str().expect("a sentence");
    assert!(words(0).contains("of b from a ") && words(2).contains("of d from a "), "{all:?}");
}

#[test]
fn a_run_of_one_second_has_its_maximum_drawn() {
    let all = tailbound_report::pictures::of_run(&Analysis::of(&small(1)));
    let maxima = all.iter().find(|f| f.id == "maxima").expect("maxima");
    for svg in [&maxima.wide, &maxima.narrow] {
        let doc = Document::parse(svg).expect("an svg");
        let paths = doc.descendants().filter(|n| n.has_tag_name("path"));
        let paths = paths.filter_map(|n| Some((n.attribute("class")?, n.attribute("d")?)));
        let (lines, others): (Vec<_>, Vec<_>) = paths.partition(|(c, _)| c.starts_with("s "));
        // Those of the legend are strokes.
        let points = lines.iter().filter(|(_, d)| !d.contains('h'));
        assert_eq!(points.clone().count(), 2, "{svg}");
        for (_, at) in points {
            let dot = format!("{at}h0.01");
            assert!(others.iter().any(|(_, d)| *d == dot), "nothing is at {at}: {svg}");
        }
    }
}

/// The stall is within the first ten seconds, which a bound would leave out as further warm-up.
#[test]
fn the_return_levels_of_a_run_that_is_not_met_show_what_was_late() {
    let run = small(12);
    let statement = tailbound_stats::bound::of_run(&run);
    let figure = pictures::returns(&statement).expect("there are seconds");
    let tops: Vec<f64> = figure.series[0]["points"]
        .as_array()
        .expect("points")
        .iter()
        .filter_map(|p| p[1].as_f64())
        .collect();
    assert_eq!(tops.len(), 12, "a dot for each second: {tops:?}");
    assert!(tops.iter().any(|v| *v > 4_000_000.0), "the stall is not shown: {tops:?}");
    let late = tops.iter().filter(|v| **v > 100_000.0).count();
    let counted = format!("In {late} of 12 seconds of the run ");
    assert!(figure.caption.contains(&counted), "{counted}: {}", figure.caption);
    assert!(figure.wide.contains("latest seen 4.31 ms") && figure.wide.contains("deadline 100 µs"));
    // A latest wake-up that no dot has is named, and its line is within the picture.
    let mut beyond = statement;
    beyond.observed_max_ns = Some(60_000_000);
    let figure = pictures::returns(&beyond).expect("there are seconds");
    assert!(figure.wide.contains("latest seen 60.0 ms"), "{}", figure.wide);
    assert!(figure.caption.contains("60.0 ms, is no dot"), "{}", figure.caption);
}

/// As a run file has it: windows that missed activations have no maximum of their own.
#[test]
fn the_maximum_of_windows_covers_those_that_missed_activations() {
    let mut run = small(12);
    let stalled = |run: &Run, thread: u32, second: u64, length: u64| {
        let missed = |s: &&tailbound_core::record::SecondRecord| s.thread == thread && s.missed > 0;
        run.seconds.iter().filter(missed).any(|s| s.second <= second && s.second + length > second)
    };
    let mut windows = run.windows.clone();
    windows.retain(|w| w.thread == 1);
    for w in &mut windows {
        w.values.insert("p99".to_owned(), 9_000.0);
        if stalled(&run, 1, w.second, u64::from(w.window_s)) {
            w.values.remove("max");
            w.values.insert("p99".to_owned(), 4_330_000.0);
        }
    }
    run.windows = windows;
    let table = pictures::window_table(&run);
    let at = |name: &str| table.head.iter().position(|h| h == name).expect("a column");
    assert!(!table.rows.is_empty());
    for row in &table.rows {
        let (max, p99) = (&row[at("max, worst")], &row[at("p99, worst")]);
        assert_eq!((max.as_str(), p99.as_str()), ("4.31 ms", "4.31 ms"), "{row:?}");
    }
    assert!(page(&run).contains("no recorded maximum"));
}

/// The texts of a page's element of class `why`, one after another.
fn limits_of(run: &Run) -> String {
    let page = page(run);
    let doc = parse(&page);
    let why = classes(&doc, "why").next().expect("what limits the figures");
    let half = why.first_element_child().expect("its first half");
    half.descendants()
        .filter(|n| n.is_text())
        .filter_map(|n| n.text())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn what_limits_the_figures_names_all_that_the_run_file_holds() {
    let mut run = small(5);
    run.findings = vec![
        Finding::new("steal-time", Impact::Notice, "the hypervisor took 110 ms"),
        Finding::new("source-note", Impact::Notice, "worth knowing"),
    ];
    run.threads[0].dropped = [("exceedances".to_owned(), 17)].into_iter().collect();
    run.loads[0].count = 0;
    run.after.insert("power.limit".to_owned(), Fact::of("on"));
    let shown = limits_of(&run);
    for words in [
        "the hypervisor took 110 ms",
        "2 of 5,000 due activations were missed",
        "Load hackbench stood still",
        "17 records of `exceedances`",
        "power.governor changed during the run: not applicable: no cpufreq driver is loaded \u{2192} performance",
        "power.limit changed during the run: value before: not recorded \u{2192} on",
        "One more notice is among the findings",
    ] {
        assert!(shown.contains(words), "`{words}` is not in: {shown}");
    }
    assert!(!shown.contains("Nothing"), "{shown}");
    // A run without any of them says so.
    let mut good = common::run(&Shape { seconds: 5, stall_ns: 0, ..Shape::default() });
    (good.findings, good.after) = (vec![], good.header.machine.clone());
    assert!(
        limits_of(&good).contains("Nothing that was looked for was found"),
        "{}",
        limits_of(&good)
    );
    // Facts of the moment always differ, and the guard is our own.
    good.after.insert("limits.rttime_us".to_owned(), Fact::of(500_000));
    good.after.insert("kernel.loadavg".to_owned(), Fact::of(17));
    assert!(limits_of(&good).contains("Nothing that was looked for"), "{}", limits_of(&good));
}

#[test]
fn what_changed_during_the_run_has_its_value_before() {
    let mut run = small(2);
    run.after.insert("power.limit".to_owned(), Fact::of("on"));
    run.after.insert("watch.steal-time".to_owned(), Fact::of("watched"));
    let page = page(&run);
    let doc = parse(&page);
    let rows: Vec<Vec<&str>> = doc
        .descendants()
        .filter(|n| n.has_tag_name("tr"))
        .map(|row| row.children().filter_map(|cell| cell.text()).collect())
        .collect();
    let row = |cells: &[&str]| rows.iter().any(|r| r.as_slice() == cells);
    assert!(row(&["fact", "before", "after"]), "{rows:?}");
    assert!(
        row(&["power.governor", "not applicable: no cpufreq driver is loaded", "performance"]),
        "{rows:?}"
    );
    assert!(row(&["power.limit", "value before: not recorded", "on"]), "{rows:?}");
    assert!(!rows.iter().any(|r| r.first() == Some(&"watch.steal-time")), "{rows:?}");
}

#[test]
fn the_head_says_who_measured_what_when_and_for_which_requirement() {
    let mut run = small(2);
    run.header.plan.name = None;
    let head = |run: &Run| -> Vec<String> {
        let page = page(run);
        let doc = parse(&page);
        let head = classes(&doc, "head").next().expect("a head");
        let rows = head.children().map(|row| {
            row.descendants()
                .filter_map(|n| n.text())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
                .join("|")
        });
        rows.collect()
    };
    let shown = head(&run).join("\n");
    for words in [
        "Title|not stated",
        "2026-01-01T12:00:00Z (UTC)",
        "6.12.0-rt-amd64",
        "Measured by|not stated",
        "Requirement|not stated",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(json(&Analysis::of(&run))["run"]["purpose"].is_null());
    run.header.purpose = Some(Box::new(Purpose {
        title: Some("Axis controller <3>".into()),
        operator: Some("A. Nother\u{1b}[2J".into()),
        requirement: Some("REQ-17".into()),
    }));
    let shown = head(&run).join("\n");
    for words in ["Axis controller <3>", "A. Nother\u{fffd}[2J", "REQ-17"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let whole = page(&run);
    let heading = whole.find("Tailbound report: Axis controller &lt;3&gt;");
    assert!(heading < whole.find("class=\"verdict"), "the title stands above the verdict");
    assert_eq!(json(&Analysis::of(&run))["run"]["purpose"]["requirement"], "REQ-17");
    let plain = text(&Analysis::of(&run), Style { color: Color::Off, width: 200 });
    assert!(
        plain.contains("started: 2026-01-01T12:00:00Z (UTC); title: Axis controller <3>"),
        "{plain}"
    );
    assert!(plain.contains("requirement: REQ-17") && !plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn a_busy_machine_is_not_reported_as_unloaded() {
    let mut run = small(2);
    (run.loads, run.header.plan.loads) = (vec![], vec![]);
    run.header.machine.insert("kernel.pressure_cpu".to_owned(), Fact::of(99.0));
    run.after.insert("kernel.pressure_cpu".to_owned(), Fact::of(98.0));
    // As an earlier version said before the run.
    let earlier = Finding::new("no-load", Impact::Notice, "nothing loaded the machine");
    run.findings.push(earlier);
    let words =
        "other work loaded the machine: CPU pressure was 99 % before the run and 98 % at its end";
    assert!(limits_of(&run).contains(words), "{}", limits_of(&run));
    assert!(!limits_of(&run).contains("nothing loaded"), "{}", limits_of(&run));
    assert_eq!(page(&run).matches(words).count(), 2, "also where the loads are");
    run.header.machine.insert("kernel.pressure_cpu".to_owned(), Fact::of(0.0));
    run.after.insert("kernel.pressure_cpu".to_owned(), Fact::of(0.5));
    assert!(!page(&run).contains("other work loaded"));
}

/// The snapshot of the golden frames.
fn snapshot() -> Progress {
    let (mut histogram, mut recent) = (Histogram::new(10), Histogram::new(10));
    for (v, c) in
        [(2_000, 40), (3_000, 900), (5_000, 9000), (8_000, 2000), (20_000, 12), (63_100, 1)]
    {
        histogram.add(v, c);
    }
    recent.add(3_000, 40);
    recent.add(5_000, 800);
    let thread = |cpu, max| ThreadProgress {
        tid: Some(4321),
        context: "user".into(),
        cpu: Some(cpu),
        n: 12_000,
        min_ns: Some(1_640),
        mean_ns: Some(6_530.0),
        p99_ns: Some(13_200.0),
        p99_10s_ns: None,
        max_ns: Some(max),
        last_ns: Some(5_900),
        missed: 0,
    };
    Progress {
        phase: Phase::Measuring,
        elapsed_ns: 12_300_000_000,
        total_ns: 60_000_000_000,
        deadline_ns: Some(100_000),
        threads: vec![thread(0, 20_100), thread(1, 63_100)],
        histogram,
        recent,
        loads: vec![("hackbench".into(), 412_000.4, "messages".into())],
        statement: None,
        notes: vec!["CPU 1 shares its core with CPU 0".into()],
    }
}

/// Compares with a golden file; `TAILBOUND_BLESS=1` writes it instead.
fn golden(name: &str, found: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("TAILBOUND_BLESS").is_some() {
        std::fs::write(&path, found).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{name} differs; TAILBOUND_BLESS=1 accepts this:\n{found}");
}

#[test]
fn golden_texts() {
    golden("report.txt", &text(&Analysis::of(&small(5)), Style { color: Color::Off, width: 80 }));
    golden("live-80x24.txt", &live::frame(&snapshot(), 80, 24, Color::Off));
    golden("live-40x12.txt", &live::frame(&snapshot(), 40, 12, Color::Off));
    golden("live-line.txt", &live::plain_line(&snapshot(), &mut BTreeSet::new()));
    let good =
        run(&Shape { seed: 11, seconds: 5, stall_ns: 0, tail_ns: 9_000.0, ..Shape::default() });
    let both = compared(vec![good, small(5)], &["good", "bad"]);
    golden("compare.txt", &both.text(Style::default()));
}

#[test]
fn the_live_view_fits_every_terminal() {
    let mut s = snapshot();
    for i in 0..64u32 {
        s.threads.push(ThreadProgress {
            cpu: Some(i + 2),
            max_ns: Some(i64::from(i) * 10_000_000),
            ..ThreadProgress::default()
        });
    }
    s.notes = vec!["x".repeat(300), "日本語".repeat(40), "three".into()];
    let empty = Progress {
        phase: Phase::WarmUp,
        elapsed_ns: 0,
        total_ns: 0,
        threads: vec![],
        histogram: Histogram::new(10),
        recent: Histogram::new(10),
        loads: vec![("l".into(), f64::NAN, "u".into())],
        statement: None,
        notes: vec![],
        deadline_ns: None,
    };
    for (width, height) in [(80, 24), (60, 15), (40, 10), (20, 5), (200, 60), (1, 1)] {
        for shown in [&s, &empty] {
            for color in [Color::Off, Color::On] {
                let frame = live::frame(shown, width, height, color);
                assert!(frame.lines().count() <= height, "{width}x{height}\n{frame}");
                for line in frame.lines() {
                    let plain = without_colour(line);
                    assert!(tailbound_report::table::columns(&plain) <= width, "{width}: {plain}");
                }
            }
        }
    }
    let frame = live::frame(&s, 80, 24, Color::Off);
    assert!(
        frame.contains("CPU 65") && frame.contains("more"),
        "the worst is shown, the rest counted:\n{frame}"
    );
    assert!(!live::plain_line(&s, &mut BTreeSet::new()).contains('\n'));
}

fn without_colour(line: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in line.chars() {
        match (inside, c) {
            (false, '\u{1b}') => inside = true,
            (true, 'm') => inside = false,
            (false, c) => out.push(c),
            (true, _) => {}
        }
    }
    out
}

#[test]
fn colour_changes_nothing_but_colour() {
    let run = small(3);
    let plain = text(&Analysis::of(&run), Style { color: Color::Off, width: 80 });
    let colour = text(&Analysis::of(&run), Style { color: Color::On, width: 80 });
    let stripped: Vec<String> = colour.lines().map(without_colour).collect();
    assert_eq!(stripped, plain.lines().collect::<Vec<_>>());
    for width in [20, 40, 80, 132] {
        for line in text(&Analysis::of(&run), Style { color: Color::Off, width }).lines() {
            let long_word = line.split_whitespace().map(|w| w.chars().count()).max().unwrap_or(0);
            // A command to be copied is one line, however long.
            let fits = ["Repeat: ", "Next: "].iter().any(|w| line.starts_with(w))
                || line.chars().count() <= width.max(long_word + 4).max(32);
            assert!(fits, "{width}: {line}");
        }
    }
}

#[test]
fn an_imported_run_never_says_every_0_ns_for_0_s() {
    let mut imported = small(3);
    imported.header.source = Some(Source {
        tool: "cyclictest".into(),
        format: "histogram text".into(),
        file: "x.txt".into(),
        lost: vec![],
    });
    imported.header.plan.interval_ns = 0;
    imported.header.plan.means = Means::NotTold;
    imported.header.command.clear();
    imported.seconds.clear();
    imported.blocks.clear();
    imported.verdict = None;
    imported.end =
        Some(End { reason: tailbound_core::EndReason::Complete, measured_ns: 0, lines: 9 });
    let shown = text(&Analysis::of(&imported), Style { color: Color::Off, width: 120 });
    assert!(shown.contains("interval unknown, duration unknown"), "{shown}");
    assert!(shown.contains("way of sleeping unknown"), "{shown}");
    assert!(shown.contains("Repeat: unknown: the run file has no command line"), "{shown}");
    let markup = page(&imported);
    for wrong in ["every 0 ns", "for 0 s", ">0 ns</td>", "in 0 s"] {
        assert!(!shown.contains(wrong) && !markup.contains(wrong), "{wrong}");
    }
    assert!(json(&Analysis::of(&imported))["run"]["measured_ns"].is_null());
    let plan = compare::differences(&[&imported.header, &small(3).header]);
    let interval = plan.differing.iter().find(|d| d.what == "plan: interval_ns");
    assert_eq!(interval.map(|d| d.values[0].as_str()), Some("unknown: not in the file"));
    imported.header.plan.means = Means::Polling;
    let shown = text(&Analysis::of(&imported), Style { color: Color::Off, width: 120 });
    assert!(shown.contains("no interval") && shown.contains("polling, no sleep"), "{shown}");
    assert!(!shown.contains("on clock"), "{shown}");
}

#[test]
fn the_line_of_a_load_does_not_break_where_the_supervisor_came_late() {
    let mut late = small(10);
    let one = |t_ms: i64, span_ms: i64, count: u64| LoadRecord {
        load: 0,
        name: "memory".into(),
        t_ns: t_ms * 1_000_000,
        span_ns: span_ms * 1_000_000,
        count,
        unit: "accesses".into(),
    };
    // A second each, then nobody looked for 4.2 s, then again a second each; 100 a second throughout.
    late.loads = vec![one(999, 999, 100), one(2001, 1002, 100), one(6200, 4199, 420)];
    late.loads.extend([one(7200, 1000, 100), one(8200, 1000, 100), one(9200, 1000, 100)]);
    let figure = pictures::loads(&late).expect("there are records");
    let points = figure.series[0]["points"].as_array().map_or(0, Vec::len);
    assert_eq!(points, 10, "a rate for every second: {}", figure.series);
    let doc = parse(&figure.wide);
    let lines: Vec<_> = doc
        .descendants()
        .filter(|n| n.has_tag_name("path"))
        .filter_map(|n| n.attribute("d"))
        .filter(|d| d.matches('L').count() > 5 || d.matches('H').count() > 5)
        .collect();
    assert!(lines.iter().all(|d| d.matches('M').count() == 1), "{lines:?}");
}

#[test]
fn a_note_stands_in_one_line_of_a_log() {
    let (mut said, mut s) = (BTreeSet::new(), snapshot());
    let note = "CPU 1 shares its core with CPU 0";
    assert!(live::plain_line(&s, &mut said).contains(note));
    s.notes.push("a second note".into());
    let line = live::plain_line(&s, &mut said);
    assert!(!line.contains(note) && line.contains("note: a second note"), "{line}");
    assert!(!live::plain_line(&s, &mut said).contains("note:"));
}

#[test]
fn a_median_in_the_lowest_step_is_below_it_and_not_0() {
    let mut coarse = small(2);
    coarse.threads.truncate(1);
    let mut d = Distribution { resolution_ns: 1000, ..Distribution::default() };
    d.add_many(0, 9_000);
    d.add_many(3_000, 1_000);
    (d.sums, d.min_ns, d.max_ns) = (None, Some(20), Some(3_400));
    coarse.threads[0].wakeup = d;
    coarse.threads[0].missed = Distribution::default();
    let shown = text(&Analysis::of(&coarse), Style { color: Color::Off, width: 120 });
    let row = shown.lines().find(|l| l.contains("3.40 µs")).unwrap_or_default();
    assert!(row.contains("20 ns") && row.contains("< 1.00 µs"), "{shown}");
    assert!(page(&coarse).contains("&lt; 1.00 µs"));
    let told = json(&Analysis::of(&coarse))["threads"][0].to_string();
    let below = r#""kind":"below","low_ns":20.0,"ns":1000"#;
    assert!(told.contains(below), "{told}");
}

#[test]
fn a_stopped_run_has_no_bound_but_the_reason() {
    let mut stopped = small(40);
    let whole = text(&Analysis::of(&stopped), Style::default());
    assert!(whole.contains("confidence"), "{whole}");
    let title = "the measurement itself was stopped once";
    stopped.findings.push(Finding::new("stopped", Impact::Unfit, title));
    let analysis = Analysis::of(&stopped);
    let section = |text: &str, from: &str, to: &str| {
        let rest = text.split_once(from).map(|(_, rest)| rest).unwrap_or_default().to_owned();
        rest.split_once(to).map_or(rest.clone(), |(section, _)| section.to_owned())
    };
    let plain = text(&analysis, Style { width: 400, ..Style::default() });
    let plain = section(&plain, "Bound on the latency", "\n\n");
    let page = section(&page(&stopped), "<h2>Bound on the latency</h2>", "<h2>");
    for bound in [plain, page] {
        assert!(bound.contains("Neither rate nor bound is given.") && bound.contains(title));
        for figure in ["confidence", "seconds", "blocks", "svg", "Clusters", "<li>"] {
            assert!(!bound.contains(figure), "{figure}: {bound}");
        }
    }
    assert!(json(&analysis)["bound"]["free"].as_array().is_some_and(Vec::is_empty));
}

#[test]
fn the_sentence_about_a_property_has_the_figures_of_the_table() {
    let mut run = small(2);
    run.findings.clear();
    let plan = &mut run.header.plan;
    (plan.event, plan.requirement) = (Some("inversion".to_owned()), Requirement::default());
    plan.property = Some("nobody was kept waiting".to_owned());
    let mut wait = run.threads.clone();
    for (t, missed) in run.threads.iter_mut().zip([3u64, 1]) {
        t.missed = Distribution::default();
        t.missed.add_many(30_000_000, missed);
    }
    for t in &mut wait {
        (t.thread, t.context, t.missed) = (t.thread + 9, "wait".into(), Distribution::default());
        t.wakeup.add(50_000_000);
    }
    run.threads.extend(wait);
    run.verdict = None;
    tailbound_stats::judge(&mut run);
    let analysis = Analysis::of(&run);
    let table = tailbound_report::figures::compact(&analysis);
    let row = table.rows.iter().find(|r| r[0] == "all, user measured").expect("the judged row");
    let column = |name: &str| {
        let at = table.head.iter().position(|h| h == name).expect("a column");
        row[at].clone()
    };
    let sentence = &run.verdict.as_ref().expect("judged").sentence;
    let (n, max) = (column("n"), column("max"));
    assert!(sentence.contains(&format!("in {n} inversions on ")), "{n}: {sentence}");
    assert!(sentence.contains(&format!("the latest (`user`) was {max}")), "{max}: {sentence}");
    assert!(sentence.contains("; 4 inversions were missed"), "{sentence}");
}
