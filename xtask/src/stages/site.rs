// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stage `site`: the documentation as pages for a browser holds together.
//!
//! Not here: that every command of a page works (the stage `commands`), that reports link to pages there are
//! (`crates/tailbound/tests/site.rs`).

use std::fs;
use std::path::Path;

use super::tally::Tally;
use crate::{root, site};

/// Most faults that are named.
const NAMED: usize = 20;

/// `cargo xtask test site`.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let Some(tool) = site::tool::find(project) else {
        tally.skip("site", "site", site::tool::MISSING);
        return Ok(tally);
    };
    let folder = root::target(project).join("site");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let made = match site::make(project, &tool, &folder) {
        Ok(made) => made,
        Err(e) => {
            tally.fail("site", format!("{e:#}"));
            return Ok(tally);
        }
    };
    tally.pass("site");
    if made.wrong.is_empty() {
        tally.pass("pages, links, anchors and what is loaded");
    } else {
        let named: Vec<&str> = made.wrong.iter().take(NAMED).map(String::as_str).collect();
        let why = format!("{} faults:\n{}", made.wrong.len(), named.join("\n"));
        tally.fail("pages, links, anchors and what is loaded", why);
    }
    tally.add("search", has_search(&made.folder));
    match site::phone::browser() {
        Some(browser) => tally.add("every page fits a phone", fits(browser, project, &folder)),
        None => tally.skip("every page fits a phone", "chromium", "there is no Chromium"),
    }
    Ok(tally)
}

/// Nothing is wider than 390 pixels but what scrolls within itself.
fn fits(browser: &str, project: &Path, folder: &Path) -> anyhow::Result<()> {
    let scratch = root::target(project).join("xtask/phone");
    match site::phone::wider(browser, folder, &scratch)?.as_slice() {
        [] => Ok(()),
        wide => anyhow::bail!("wider than 390 pixels: {}", wide.join(", ")),
    }
}

/// mdBook without its feature `search` makes a site as well.
fn has_search(folder: &Path) -> anyhow::Result<()> {
    let is_index = |name: &str| name.starts_with("searchindex") && name.ends_with(".js");
    for entry in fs::read_dir(folder)? {
        if is_index(&entry?.file_name().to_string_lossy()) {
            return Ok(());
        }
    }
    anyhow::bail!("there is no index to search: mdBook was compiled without `--features search`")
}
