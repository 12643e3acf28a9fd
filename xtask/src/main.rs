// SPDX-License-Identifier: MIT OR Apache-2.0
//! Development tasks: `cargo xtask TASK`.
//!
//! Not here: anything a user of the tool needs; it works without this.
// An example of a line of the run file is one long `json!`.
#![recursion_limit = "256"]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program talks to a terminal")]

mod bare;
mod coverage;
mod cross;
mod elf;
mod exec;
mod firmware;
mod link_probe;
mod pages;
mod release;
mod root;
mod schema;
mod site;
mod stages;
mod tidy;

use std::process::ExitCode;

use anyhow::{Context as _, bail};

const HELP: &str = "\
Development tasks.

  cargo xtask tidy                 the rules no compiler checks
  cargo xtask test [STAGE[:PART]...]
                                   all tests, or some stages; --list names them, --list lab its
                                   checks; lab:theory runs those with this word in their name
  cargo xtask bare [--suite S] [--user U] [--command C]
                                   make demo and make test where there is nothing but Rust (root; long)
  cargo xtask build [--trial] NAME...
                                   static programs into dist/: static, machine, board, arm64, arm32, riscv64;
                                   --trial: as the tests try them, less optimised, below target/
  cargo xtask release [--programs FOLDER] [--out FOLDER]
                                   tarballs, packages, container, sums and their signature into dist/
  cargo xtask firmware             the box: firmware/*.uf2 for both chips
  cargo xtask link-probe           what the measuring loop can reach besides its two system calls
  cargo xtask coverage [--repetitions N] [--json] [--write]
                                   how often the worst-case bound holds; --write: into docs/results/bound.md
  cargo xtask schema FILE...       run files against docs/run-file.schema.json
  cargo xtask man [DIR]            man pages, one a command, into dist/man
  cargo xtask completions [DIR]    bash, zsh and fish completions into dist/completions
  cargo xtask site [DIR]           documentation as pages for a browser, with search, into dist/site
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["tidy"] => tidy::command(),
        ["test", rest @ ..] => stages::command(rest),
        ["build", names @ ..] if !names.is_empty() => cross::command(names),
        ["coverage", rest @ ..] => coverage::command(rest),
        ["release", rest @ ..] => release::command(rest),
        ["firmware"] => firmware::command(),
        ["bare", rest @ ..] => bare::command(rest),
        ["link-probe"] => link_probe::command(),
        ["schema", files @ ..] if !files.is_empty() => schema::command(files),
        ["man", rest @ ..] => pages::command(pages::Kind::Man, rest),
        ["site", rest @ ..] => site::command(rest),
        ["site-facts", file] => site::facts::command(file),
        ["completions", rest @ ..] => pages::command(pages::Kind::Completions, rest),
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(())
        }
        other => usage(other),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage(words: &[&str]) -> anyhow::Result<()> {
    let first = words.first().context("no chore named")?;
    bail!("`{first}` is not a chore, or lacks its arguments\n\n{HELP}");
}
