// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes every rendering of a run made from a seed into a directory, to be looked at.
//!
//! Usage: `cargo run -p tailbound-report --example report -- DIRECTORY`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::PathBuf;

use common::Shape;
use tailbound_report::{Style, html, json, pictures, text};
use tailbound_stats::Analysis;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    std::fs::create_dir_all(&directory)?;
    let bad = common::run(&Shape::default());
    let good = common::run(&Shape {
        seed: 11,
        median_ns: 4100.0,
        tail_ns: 12_000.0,
        early: true,
        stall_ns: 0,
        ..Shape::default()
    });
    let many = common::run(&Shape { cpus: 24, per_second: 200, ..Shape::default() });
    let long = common::run(&Shape { seconds: 43_200, per_second: 10, ..Shape::default() });
    for (name, run) in [("bad", &bad), ("good", &good), ("many", &many), ("long", &long)] {
        let file = format!("{name}.tailbound.jsonl");
        std::fs::write(
            directory.join(format!("{name}.html")),
            html(&[Analysis::of(run)], &[file]),
        )?;
        std::fs::write(
            directory.join(format!("{name}.txt")),
            text(&Analysis::of(run), Style::default()),
        )?;
        std::fs::write(
            directory.join(format!("{name}.json")),
            format!("{:#}", json(&Analysis::of(run))),
        )?;
        for figure in pictures::of_run(&Analysis::of(run)) {
            std::fs::write(
                directory.join(format!("{name}-{}.svg", figure.id)),
                figure.standalone(),
            )?;
        }
    }
    let names = ["good.tailbound.jsonl".to_owned(), "bad.tailbound.jsonl".to_owned()];
    std::fs::write(
        directory.join("compare.html"),
        html(&[Analysis::of(&good), Analysis::of(&bad)], &names),
    )
}
