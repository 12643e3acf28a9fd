// SPDX-License-Identifier: MIT OR Apache-2.0
//! `store`: many runs, kept and asked.

mod backup;
mod export;
pub(super) mod place;
mod regressions;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;
use tailbound_core::progress_writer::ProgressWriter;
use tailbound_core::utc;
use tailbound_report::table::Table;
use tailbound_store::{
    Age, FilesAdded, FilesToAdd, Incoming, Listed, QueryRows, StoreError, arrived, short,
};

use self::place::{filter, made, now, now_s, opened};
use crate::cli_store::{
    StoreAddArgs, StoreGetArgs, StoreLsArgs, StoreNoteArgs, StorePruneArgs, StoreQueryArgs,
    StoreRebuildArgs, StoreVerb,
};
use crate::flags;
use crate::input::{self, Existing};
use crate::say::{self, Failure, from_library};

/// From one word about the progress to the next.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);
const NS_PER_S: i64 = 1_000_000_000;

from_library!(StoreError);

/// `tailbound store`
pub(crate) fn store(what: &StoreVerb) -> Result<ExitCode, Failure> {
    match what {
        StoreVerb::Add(args) => add(args),
        StoreVerb::Ls(args) => ls(args),
        StoreVerb::Get(args) => get(args),
        StoreVerb::Query(args) => query(args),
        StoreVerb::Note(args) => note(args),
        StoreVerb::Prune(args) => prune(args),
        StoreVerb::Rebuild(args) => rebuild(args),
        StoreVerb::Export(args) => export::export(args),
        StoreVerb::Regressions(args) => regressions::regressions(args),
        StoreVerb::Backup(args) => backup::backup(args),
        StoreVerb::Restore(args) => backup::restore(args),
    }
}

/// Says where it is, at most every two seconds.
struct Progress(Option<ProgressWriter>, Instant);

impl Progress {
    fn new(writer: Option<ProgressWriter>) -> Self {
        Self(writer, Instant::now())
    }

    fn at(&mut self, text: impl FnOnce() -> String) {
        if let Some(writer) = self.0.filter(|_| self.1.elapsed() > PROGRESS_EVERY) {
            self.1 = Instant::now();
            (writer.note)(&text());
        }
    }
}

fn add(args: &StoreAddArgs) -> Result<ExitCode, Failure> {
    let said = args.at.as_deref().map(|text| arrived(text, now_s())).transpose();
    let at = said.map_err(flags::refused("--at"))?.unwrap_or_else(now);
    let paths = input::files(&args.runs)?;
    let mut store = made(&args.store)?;
    let mut progress = Progress::new(say::progress(false));
    let mut read = |path: &Path| Ok::<_, Failure>(Incoming::read(input::plain(path)?)?);
    let files = FilesToAdd { paths: &paths, system: args.system.as_deref(), arrived: &at };
    let added = FilesAdded::to(&mut store, &files, &mut read, &mut |done| {
        progress.at(|| format!("{done} of {} files", paths.len()));
    })?;
    let place = store.place().to_string();
    if args.json {
        say::answer_json(&added.json(&place))?;
    } else {
        say::answer(&added.text(&place))?;
        for (file, reason) in &added.refused {
            say::note(&format!("not added: {file}: {reason}"));
        }
    }
    Ok(ExitCode::from(if added.refused.is_empty() { 0 } else { 2 }))
}

fn ls(args: &StoreLsArgs) -> Result<ExitCode, Failure> {
    let mut store = opened(&args.store)?;
    let list = store.list(&filter(&args.chosen, args.number))?;
    if args.json {
        say::answer_json(&json!({"schema": "tailbound-store-ls/1", "runs": list}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&Listed::HEADS).with_words(&Listed::WORDS);
    list.iter().for_each(|run| table.row(run.cells()));
    let style = say::style(args.color.when);
    let mut text = table.text(style.width).join("\n");
    let all = store.count()?;
    if (list.len() as u64) < all {
        text.push_str(&format!(
            "\n{} of {all} runs: -n, --since and --system choose others.",
            list.len()
        ));
    }
    say::answer_in(&text, style)?;
    Ok(ExitCode::SUCCESS)
}

fn get(args: &StoreGetArgs) -> Result<ExitCode, Failure> {
    let mut store = opened(&args.store)?;
    let id = store.identify(&args.run)?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.tailbound.jsonl", short(&id))));
    input::may_write(&out, Existing::replaced_if(args.force))?;
    if args.json && out.as_os_str() == "-" {
        return Err(Failure::usage(
            "--json: standard output is the run file's: choose another name for -o",
        ));
    }
    let bytes = store.file(&id)?;
    if out.as_os_str() == "-" {
        say::answer_bytes(&bytes)?;
    } else {
        input::write_bytes(&out, &bytes, Existing::replaced_if(args.force))?;
        let shown = out.display().to_string();
        if args.json {
            say::answer_json(
                &json!({"schema": "tailbound-store-get/1", "run": id, "file": shown, "bytes": bytes.len()}),
            )?;
        } else {
            say::answer(&shown)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn query(args: &StoreQueryArgs) -> Result<ExitCode, Failure> {
    let ns = flags::time("--timeout", &args.timeout)?;
    let seconds = u32::try_from((ns + NS_PER_S - 1) / NS_PER_S).unwrap_or(u32::MAX).max(1);
    let sql = if args.sql == "-" {
        String::from_utf8_lossy(&input::bytes("-".as_ref())?).into_owned()
    } else {
        args.sql.clone()
    };
    let mut store = opened(&args.store)?;
    let rows = QueryRows::of(&mut store, &sql, seconds)?;
    if args.json {
        say::answer_json(&rows.json())?;
    } else if args.csv {
        say::answer_bytes(rows.csv().as_bytes())?;
    } else {
        let heads: Vec<&str> = rows.names.iter().map(String::as_str).collect();
        let mut table = Table::new(&heads).with_words(&rows.words());
        rows.cells().for_each(|cells| table.row(cells));
        let style = say::style(args.color.when);
        say::answer_in(&table.text(style.width).join("\n"), style)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn note(args: &StoreNoteArgs) -> Result<ExitCode, Failure> {
    let author = args.author.clone().or_else(|| std::env::var("USER").ok()).unwrap_or_default();
    let mut store = opened(&args.store)?;
    let id = store.identify(&args.run)?;
    let at = now();
    store.note(&id, &at, &author, &args.text)?;
    if args.json {
        say::answer_json(
            &json!({"schema": "tailbound-store-note/1", "run": id, "at": at, "author": author, "message": args.text}),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn prune(args: &StorePruneArgs) -> Result<ExitCode, Failure> {
    let age: Age = args.older_than.parse().map_err(flags::refused("--older-than"))?;
    let before = utc::rfc3339(now_s().saturating_sub(age.s));
    let mut store = opened(&args.store)?;
    let all = store.count()?;
    let go = store.may_go(&before)?;
    if args.yes {
        store.delete(&go)?;
    }
    if args.json {
        say::answer_json(
            &json!({"schema": "tailbound-store-prune/1", "before": before, "runs": all, "go": go, "deleted": args.yes}),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let done = if args.yes { "were deleted" } else { "would be deleted: --yes does it" };
    say::answer(&format!("{} of {all} runs, all begun before {before}, {done}.", go.len()))?;
    Ok(ExitCode::SUCCESS)
}

fn rebuild(args: &StoreRebuildArgs) -> Result<ExitCode, Failure> {
    let mut store = opened(&args.store)?;
    let mut progress = Progress::new(say::progress(args.quiet));
    let done = store.rebuild(&mut |done, of| progress.at(|| format!("{done} of {of} runs")))?;
    if args.json {
        say::answer_json(&json!({"schema": "tailbound-store-rebuild/1", "runs": done}))?;
    } else {
        say::answer(&format!("The tables were made again from {done} run files."))?;
    }
    Ok(ExitCode::SUCCESS)
}
