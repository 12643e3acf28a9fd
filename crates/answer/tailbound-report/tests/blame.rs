// SPDX-License-Identifier: MIT OR Apache-2.0
//! Late wake-ups that were taken apart: what a reader sees of them, and that names stay text.

#[path = "common/blames.rs"]
mod blames;
mod common;

use blames::{all, span, work};
use roxmltree::{Document, ParsingOptions};
use tailbound_core::Run;
use tailbound_core::blame::{Activity, BlameLane, BlameRecord, Cause, KernelKind, Phase};
use tailbound_report::{Color, Style, blame, html, json, table, text};
use tailbound_stats::Analysis;

const STYLE: Style = Style { color: Color::Off, width: 80 };

fn parse(markup: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(markup, options).expect("the markup is well-formed XML")
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

fn run(records: Vec<BlameRecord>) -> Run {
    let shape = common::Shape { seconds: 3, per_second: 500, ..common::Shape::default() };
    let mut run = common::run(&shape);
    run.blames = records;
    run
}

#[test]
fn golden_text() {
    golden("blame.txt", &blame::text(&all(), KernelKind::Stock, 3, STYLE));
}

/// What is the same of every answer: the headline up to the culprit, without figures, and the columns.
fn form(answer: &str) -> (String, String) {
    let (headline, rest) = answer.split_once("\n\n").unwrap_or_default();
    let figures = headline.split_once("): ").unwrap_or_default().0;
    let is_figure =
        |w: &&str| ["ns", "µs", "ms", "s"].contains(w) || w.contains(|c: char| c.is_ascii_digit());
    let words = figures.split_whitespace().filter(|w| !is_figure(w)).collect::<Vec<_>>();
    let columns = rest.lines().next().unwrap_or_default().split_whitespace();
    (words.join(" "), columns.collect::<Vec<_>>().join(" "))
}

#[test]
fn the_page_shows_an_answer_of_today() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/blame.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let example = page.split_once("tailbound blame late.jsonl --worst 1\n").expect("an example").1;
    let example = example.split_once("```").expect("its end").0;
    // On the page one culprit is in all samples.
    let one: Vec<BlameRecord> = all().into_iter().take(1).cycle().take(3).collect();
    let today = form(&blame::text(&one, KernelKind::Stock, 1, STYLE));
    assert!(today.0.starts_with("All late samples"), "{today:?}");
    assert_eq!(form(example), today);
}

#[test]
fn the_answer_comes_first_and_its_commands_are_whole() {
    let shown = blame::text(&all(), KernelKind::Stock, 1, STYLE);
    let first = shown.lines().next().unwrap_or_default();
    assert!(first.contains("that 3 late samples took"), "{shown}");
    let prove = "tailbound tune auto --set stat-interval=120 -c 1 --no-apply";
    assert!(shown.lines().any(|l| l.ends_with(prove)), "{shown}");
    assert!(shown.contains("2.31 ms late at 12.345 s on CPU 1 (thread 1)"), "{shown}");
    assert!(!shown.contains("186 µs late"), "only the worst was asked for");
    assert_eq!(blame::text(&[], KernelKind::Stock, 3, STYLE), "No late sample was analysed\n");
}

#[test]
fn every_width_holds_its_lines() {
    for width in [20, 40, 60, 80, 132] {
        for line in
            blame::text(&all(), KernelKind::Stock, 3, Style { color: Color::Off, width }).lines()
        {
            let word = line.split_whitespace().map(table::columns).max().unwrap_or(0);
            let command = line.contains(": tailbound ");
            let fits = table::columns(line) <= width.max(word + 4).max(34);
            assert!(fits || command, "{width}: {line}");
        }
    }
}

#[test]
fn reports_of_a_run_say_it_and_others_stay_as_they_are() {
    let (with, without) = (run(all()), run(Vec::new()));
    let heading = "Who made the worst samples late";
    assert!(text(&Analysis::of(&with), STYLE).contains(heading));
    assert!(!text(&Analysis::of(&without), STYLE).contains(heading));
    let page = html(&[Analysis::of(&with)], &["x".to_owned()]);
    parse(&page);
    assert!(page.contains(heading) && page.contains("data-figure=\"r0-blame-3\""));
    assert!(page.contains("<dt>culprit</dt>"), "the page explains the word");
    assert!(!html(&[Analysis::of(&without)], &["x".to_owned()]).contains(heading));
    assert!(json(&Analysis::of(&without))["blame"].is_null());
    let told = &json(&Analysis::of(&with))["blame"];
    assert_eq!((told["samples"].as_u64(), told["least_ns"].as_i64()), (Some(3), Some(186_000)));
    let first = &told["culprits"][0];
    assert_eq!((&first["cause"], &first["samples"]), (&"workqueue".into(), &2.into()));
    assert_eq!(first["who"], "kworker vmstat_update");
    assert_eq!(first["remedy"]["setting"], "stat-interval=120");
    assert_eq!(told["culprits"][1]["sureness"], "likely");
}

#[test]
fn json_has_the_records_as_the_run_file_has_them() {
    let told = blame::json(&all(), KernelKind::Stock);
    assert_eq!(told["schema"], blame::SCHEMA);
    let records: Vec<BlameRecord> =
        serde_json::from_value(told["records"].clone()).expect("they are read back");
    assert_eq!(records, all());
}

#[test]
fn a_picture_has_lanes_marks_and_parts() {
    let figure = blame::picture(&work(), 0);
    for svg in [&figure.wide, &figure.narrow] {
        let doc = parse(svg);
        let titles: Vec<&str> = doc
            .descendants()
            .filter(|n| n.has_tag_name("title"))
            .filter_map(|n| n.text())
            .collect();
        let has = |words: &str| titles.iter().any(|t| t.contains(words));
        assert!(has("CPU 1: interrupt: nvme0q1 from 1.76 ms for 41.0 µs"), "{titles:?}");
        assert!(has("timer, 60.0 µs: interrupts disabled in cc1-812"), "{titles:?}");
        let texts: Vec<&str> =
            doc.descendants().filter(|n| n.has_tag_name("text")).filter_map(|n| n.text()).collect();
        for word in ["CPU 0", "CPU 1", "parts", "due", "end", "time since the due time"] {
            assert!(texts.contains(&word), "{word}: {texts:?}");
        }
    }
    assert!(figure.standalone().contains("xmlns"));
}

#[test]
fn hostile_names_stay_text() {
    let evil = "x\"]]><script>alert(1)</script>\u{1b}[31m\u{202e}\n";
    let mut late = work();
    late.name = evil.to_owned();
    late.parts[2].who = evil.to_owned();
    late.parts[2].cause = Cause::of("<b>");
    late.parts[0].phase = Phase::of("<i>");
    late.chain = vec![evil.to_owned()];
    late.lanes[1].spans[2].who = evil.to_owned();
    late.lanes[1].spans[2].activity = Activity::of("<u>");
    let harmful = |text: &str| text.contains(['\u{1b}', '\u{202e}']);
    let shown = blame::text(&[late.clone()], KernelKind::Stock, 3, STYLE);
    assert!(!harmful(&shown), "{shown:?}");
    let page = blame::html(&[late.clone()], KernelKind::Stock, evil);
    let doc = parse(&page);
    assert_eq!(doc.descendants().filter(|n| n.has_tag_name("script")).count(), 3, "the page's own");
    assert!(!doc.descendants().any(|n| n.has_tag_name("b") || n.has_tag_name("u")));
    assert!(!harmful(&page));
    parse(&html(&[Analysis::of(&run(vec![late]))], &["x".to_owned()]));
}

#[test]
fn the_largest_record_makes_a_small_picture() {
    let mut late = work();
    late.lanes = (0..200)
        .map(|cpu| BlameLane {
            cpu,
            spans: (0..4096)
                .map(|i| span(i * 500, i * 500 + 400, Activity::Interrupt, "eth0"))
                .collect(),
        })
        .collect();
    let figure = blame::picture(&late, 0);
    assert!(figure.wide.len() < 2_000_000, "{} bytes", figure.wide.len());
    assert!(figure.caption.contains("192 more CPUs"), "{}", figure.caption);
    assert!(figure.table.rows.len() <= 200);
    let shown = blame::text(&[late], KernelKind::Stock, 1, STYLE);
    assert!(shown.lines().count() < 60, "{shown}");
}

#[test]
fn times_at_the_ends_of_their_range_are_drawn() {
    let far = i64::MAX;
    let mut late = work();
    late.latency_ns = far;
    late.parts[0].from_ns = -far;
    late.parts[1].ns = far;
    late.lanes[0].spans[0] = span(-far, far, Activity::Idle, "");
    let mut none = work();
    (none.parts, none.latency_ns) = (Vec::new(), -5);
    for record in [late, none] {
        parse(&blame::picture(&record, 99).wide);
        assert!(!blame::text(&[record], KernelKind::Stock, 1, STYLE).is_empty());
    }
}
