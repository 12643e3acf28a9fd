// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab cache`: what the lab's folder holds, whether it is sound, and removing from it.

use std::process::ExitCode;

use serde_json::json;
use tailbound_lab::Store;
use tailbound_lab::cache::{self, Item, Limits};

use crate::cli_lab::LabCacheArgs;
use crate::say::{self, Failure};

/// `tailbound lab cache`: 0 sound, 1 something is damaged.
pub(super) fn cache(args: &LabCacheArgs) -> Result<ExitCode, Failure> {
    let store = Store::of_user()?;
    let limits = limits(args)?;
    let removed = match (args.clear, args.prune) {
        (true, _) => cache::prune(&store, Limits { bytes: 0, ..limits }, true)?,
        (_, true) => cache::prune(&store, limits, true)?,
        _ => Vec::new(),
    };
    let items = cache::items(&store)?;
    let damaged = if args.verify { cache::damaged(&store)? } else { Vec::new() };
    if args.json {
        let damaged: Vec<_> =
            damaged.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
        say::answer_json(&json!({
            "folder": store.folder(), "items": items, "removed": removed,
            "damaged": args.verify.then_some(&damaged),
            "limit_bytes": limits.bytes, "limit_age_s": limits.age.as_secs(),
        }))?;
        return Ok(ExitCode::from(u8::from(!damaged.is_empty())));
    }
    let mut text = String::new();
    for item in &items {
        text.push_str(&line(item));
    }
    text.push_str(&format!("{:>9}  in {}\n", size(sum(&items)), store.folder().display()));
    if !removed.is_empty() {
        text.push_str(&format!("{:>9}  removed: {}\n", size(sum(&removed)), names(&removed)));
    }
    for (path, why) in &damaged {
        text.push_str(&format!("damaged: {}: {why}\n", path.display()));
    }
    if !damaged.is_empty() {
        text.push_str("What is damaged is removed and made again when it is used; a build is to be built again.\n");
    } else if args.verify {
        text.push_str("Everything that has a hash is what it was.\n");
    }
    say::answer(&text)?;
    Ok(ExitCode::from(u8::from(!damaged.is_empty())))
}

fn limits(args: &LabCacheArgs) -> Result<Limits, Failure> {
    let mut limits = Limits::of_environment()?;
    let wrong = |flag: &str, e: String| Failure::usage(format!("{flag}: {e}"));
    if let Some(text) = &args.max_size {
        limits.bytes = cache::parse_bytes(text).map_err(|e| wrong("--max-size", e))?;
    }
    if let Some(text) = &args.max_age {
        limits.age = cache::parse_age(text).map_err(|e| wrong("--max-age", e))?;
    }
    Ok(limits)
}

fn line(item: &Item) -> String {
    let days = item.unused_s / (24 * 3600);
    let unused = if days == 0 { String::new() } else { format!(", unused for {days} days") };
    format!("{:>9}  {}/{}{unused}\n", size(item.bytes), item.kind, short(&item.name))
}

fn names(items: &[Item]) -> String {
    let all: Vec<String> = items.iter().map(|i| format!("{}/{}", i.kind, short(&i.name))).collect();
    all.join(", ")
}

/// A hash by its beginning.
fn short(name: &str) -> &str {
    let hash = name.len() >= 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
    if hash { name.get(..12).unwrap_or(name) } else { name }
}

fn sum(items: &[Item]) -> u64 {
    items.iter().map(|i| i.bytes).sum()
}

fn size(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}
