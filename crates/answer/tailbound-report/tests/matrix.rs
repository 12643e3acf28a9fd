// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader of a matrix would lose if it broke: figures in their places, failures with
//! their reasons, axes in common, and that virtual time is called so.
//!
//! Not here: one run's report (`report.rs`).

mod common;

use common::{Shape, run};
use roxmltree::{Document, ParsingOptions};
use tailbound_core::Run;
use tailbound_core::lab::{KernelRecord, LabRecord};
use tailbound_core::verdict::Outcome;
use tailbound_report::compare::Answer;
use tailbound_report::matrix::{self, Cell, CellFailure, Labels};
use tailbound_report::{Color, Style, html, json, text};
use tailbound_stats::Analysis;
use tailbound_stats::compare::{Settings, Systems};

const KERNELS: [(&str, f64, i64); 2] =
    [("debian:6.12", 9000.0, 2_857_000), ("debian:6.12-rt", 8000.0, 0)];
const LOADS: [&str; 2] = ["hackbench", "file"];

/// A run as the lab would have made it.
fn lab_run(kernel: &str, seed: u64, median_ns: f64, stall_ns: i64) -> Run {
    let shape = Shape {
        seed,
        cpus: 1,
        seconds: 2,
        median_ns,
        tail_ns: 20_000.0,
        early: false,
        stall_ns,
        ..Shape::default()
    };
    let mut run = run(&shape);
    run.header.lab = Some(Box::new(LabRecord {
        arch: "x86_64".into(),
        shift: 1,
        accelerator: "tcg".into(),
        kernel: KernelRecord { name: kernel.into(), ..KernelRecord::default() },
        ..LabRecord::default()
    }));
    run
}

fn cell(kernel: &str, append: &str, load: &str, run: Result<Run, CellFailure>) -> Cell {
    let labels = Labels { kernel: kernel.into(), load: load.into(), append: append.into() };
    Cell { labels, file: Some(format!("{kernel}-{load}.tailbound.jsonl")), run }
}

/// Stock and RT under two loads; one cell failed.
fn cells() -> Vec<Cell> {
    let mut out = Vec::new();
    for (k, (kernel, median, stall)) in KERNELS.into_iter().enumerate() {
        for (l, load) in LOADS.into_iter().enumerate() {
            let run = if (k, l) == (1, 1) {
                Err(CellFailure { why: "kernel panic <at> 1.2 s".to_owned() })
            } else {
                Ok(lab_run(kernel, (k * 2 + l) as u64, median, stall))
            };
            out.push(cell(kernel, "", load, run));
        }
    }
    out
}

fn parse(markup: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(markup, options).expect("the markup is well-formed XML")
}

const VIRTUAL: &str =
    "virtual time: 1 executed instruction = 2 ns; path length, not caches, buses or firmware";

#[test]
fn virtual_time_is_called_so_in_every_rendering() {
    let one = lab_run("debian:6.12", 1, 9000.0, 0);
    let wide = Style { color: Color::Off, width: 200 };
    let both = [one.clone(), one.clone()];
    let names = ["a".to_owned(), "b".to_owned()];
    let given = names.clone().map(|name| (name, vec![one.clone()]));
    let compared = Answer::of(Systems::of(&given, &[]).expect("two"), Settings::default());
    let said = compared.sentences().into_iter().map(|(_, s)| s).collect::<String>();
    assert!(!said.contains("drift of the machine"), "virtual time has none: {said}");
    let several = names.clone().map(|name| (name, vec![one.clone(), one.clone()]));
    let several = Answer::of(Systems::of(&several, &[]).expect("two"), Settings::default());
    for rendering in [
        text(&Analysis::of(&one), wide),
        html(&[Analysis::of(&one)], &names),
        json(&Analysis::of(&one)).to_string(),
        compared.text(wide),
        several.text(wide),
        several.json().to_string(),
        html(&both.each_ref().map(Analysis::of), &names),
        matrix::text(&cells(), wide),
        matrix::html(&cells()),
        matrix::json(&cells()).to_string(),
    ] {
        assert!(rendering.contains(VIRTUAL), "{}", &rendering[..rendering.len().min(2000)]);
    }
    let on_a_machine = run(&Shape { seconds: 1, ..Shape::default() });
    assert!(!text(&Analysis::of(&on_a_machine), wide).contains("virtual time"));
    let mut noisy = one;
    if let Some(lab) = &mut noisy.header.lab {
        lab.accelerator = "kvm".into();
    }
    assert!(text(&Analysis::of(&noisy), wide).contains("noisy host, not virtual time"));
}

#[test]
fn a_cell_that_did_not_meet_its_requirement_says_so() {
    let mut cells = cells();
    let verdict = cells[0].run.as_mut().expect("measured").verdict.as_mut().expect("judged");
    verdict.outcome = Outcome::NotMet;
    verdict.sentence = "Not met: the offence ran 10 times.".into();
    let words = "debian:6.12 under hackbench: Not met: the offence ran 10 times.";
    let plain = matrix::text(&cells, Style { color: Color::Off, width: 200 });
    assert!(plain.contains(words), "{plain}");
    assert!(matrix::html(&cells).contains(words), "the page does not say it");
}

#[test]
fn every_place_has_its_figures_or_says_why_not() {
    let cells = cells();
    let plain = matrix::text(&cells, Style { color: Color::Off, width: 200 });
    for words in [
        "3 of 4 cells measured",
        "debian:6.12-rt",
        "2.86 ms",
        "hackbench, per due activation",
        "median",
        "debian:6.12-rt under file: failed: kernel panic <at> 1.2 s",
        "(1 of 2 loads)",
    ] {
        assert!(plain.contains(words), "`{words}` is missing:\n{plain}");
    }
    for row in plain.lines().filter(|l| l.starts_with("debian:")) {
        assert!(row.split_whitespace().count() > 2, "an empty place: {row}");
    }
    let page = matrix::html(&cells);
    let doc = parse(&page);
    let text: Vec<&str> = doc.descendants().filter_map(|n| n.text()).collect();
    for words in ["2.86 ms", "kernel panic <at> 1.2 s", "hackbench", "Every cell"] {
        assert!(text.iter().any(|t| t.contains(words)), "`{words}` is missing");
    }
    for fetch in ["http:", "https:", "url(", " src=", "<link", "NaN"] {
        assert!(!page.contains(fetch), "the page contains `{fetch}`");
    }
    let value = matrix::json(&cells);
    assert_eq!(value["schema"], matrix::SCHEMA);
    assert_eq!(value["cells"].as_array().map(Vec::len), Some(4));
    assert_eq!(value["cells"][0]["totals"][0]["due"]["max_ns"], 2_857_000);
    assert_eq!(value["cells"][3]["failure"], "kernel panic <at> 1.2 s");
    assert!(value["cells"][3].get("totals").is_none());
}

#[test]
fn pictures_of_all_loads_have_one_scale_and_kernels_keep_their_colour() {
    let page = matrix::html(&cells());
    let doc = parse(&page);
    let wide = |key: &str| {
        let figure = doc.descendants().find(|n| n.attribute("data-figure") == Some(key));
        let svg = figure.and_then(|f| f.descendants().find(|n| n.has_tag_name("svg")));
        svg.unwrap_or_else(|| panic!("no figure {key}"))
    };
    for kind in ["histogram", "survival"] {
        let (a, b) = (wide(&format!("l0-{kind}")), wide(&format!("l1-{kind}")));
        for axis in ["data-x", "data-y"] {
            assert_eq!(a.attribute(axis), b.attribute(axis), "{kind} {axis}");
        }
        let classes = |n: roxmltree::Node<'_, '_>| -> Vec<String> {
            let class = |n: roxmltree::Node<'_, '_>| n.attribute("class").map(str::to_owned);
            n.descendants().filter_map(class).filter(|c| c.starts_with("s c")).collect()
        };
        assert!(classes(a).contains(&"s c1".to_owned()) && classes(b).contains(&"s c0".to_owned()));
        assert!(!classes(b).contains(&"s c1".to_owned()), "the failed cell has no line");
    }
}

#[test]
fn options_of_a_kernel_are_dashes_of_its_colour() {
    let run = || Ok(lab_run("x", 1, 9000.0, 0));
    let mut cells = Vec::new();
    for kernel in ["debian:6.1", "debian:6.12"] {
        for append in ["", "preempt=none"] {
            cells.push(cell(kernel, append, "fork", run()));
        }
    }
    let page = matrix::html(&cells);
    for line in [
        "s c0\" d=",
        "s c0\" stroke-dasharray=",
        "s c1\" d=",
        "s c1\" stroke-dasharray=",
        "debian:6.12 preempt=none",
    ] {
        assert!(page.contains(line), "{line}");
    }
}

#[test]
fn options_of_all_kernels_are_told_once() {
    let one = |kernel, id| cell(kernel, "isolcpus=1", "none", Ok(lab_run(kernel, id, 9000.0, 0)));
    let cells = [one("debian:6.1", 1), one("debian:6.12", 2)];
    let text = matrix::text(&cells, Style { color: Color::Off, width: 1000 });
    assert!(text.contains("all kernels with isolcpus=1"), "{text}");
    for said in [text, matrix::html(&cells)] {
        assert!(!said.contains("6.12 isolcpus=1"), "{said}");
    }
    let text = matrix::text(&cells[..1], Style { color: Color::Off, width: 1000 });
    assert!(text.contains("debian:6.1 isolcpus=1"), "{text}");
}

#[test]
fn what_must_not_be_compared_is_reported() {
    let wide = Style { color: Color::Off, width: 1000 };
    let mut cells = cells();
    let said = |cells: &[Cell], words: &str| {
        let text = matrix::text(cells, wide);
        assert!(text.contains(words), "`{words}` is missing:\n{text}");
    };
    cells.push(cells[0].clone());
    said(&cells, "Cells with the same labels as an earlier one: 1");
    if let Ok(run) = &mut cells[1].run {
        run.header.lab = None;
        run.header.plan.interval_ns = 123_000;
    }
    said(&cells, "Some cells are in virtual and some in real time");
    said(&cells, "do not share one plan");
    if let Ok(run) = &mut cells[2].run
        && let Some(lab) = &mut run.header.lab
    {
        lab.seed = 7;
    }
    said(&cells, "The cells differ in seed");
    cells.truncate(3);
    said(&cells, "debian:6.12-rt under file: not run");
}

#[test]
fn no_cells_and_hostile_labels_are_harmless() {
    assert!(matrix::html(&[]).contains("nothing to show"));
    assert!(matrix::text(&[], Style::default()).contains("nothing to show"));
    let evil = "</script><img src=x>\u{1b}[2J\"'&";
    let one = |run| vec![cell(evil, evil, evil, run)];
    let mut empty = lab_run("x", 1, 9000.0, 0);
    empty.threads.clear();
    for cells in [
        one(Ok(lab_run("x", 1, 9000.0, 0))),
        one(Err(CellFailure { why: evil.into() })),
        one(Ok(empty)),
    ] {
        let page = matrix::html(&cells);
        parse(&page);
        assert!(!page.contains("<img") && !page.contains('\u{1b}'));
        assert!(!matrix::text(&cells, Style::default()).contains('\u{1b}'));
    }
}

#[test]
fn one_picture_of_all_kernels_stands_by_itself() {
    for kind in ["histogram", "survival"] {
        let svg = matrix::svg(&cells(), kind).unwrap();
        assert!(svg.starts_with("<?xml") && svg.contains("<style"), "{kind}: {svg:.200}");
        for kernel in matrix::json(&cells())["kernels"].as_array().unwrap() {
            let name = kernel["kernel"].as_str().unwrap();
            assert!(svg.contains(name), "{kind}: no {name}");
        }
    }
    assert_eq!(matrix::svg(&cells(), "pie"), None);
    assert_eq!(matrix::svg(&[], "survival"), None);
}
