// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documentation as pages for a browser, with search: `cargo xtask site`.
//!
//! `docs` is copied and its links are made the site's; pages about verbs and ids are generated from the program's own
//! definitions (`facts`); mdBook makes HTML of it (`tool`); what it made is checked (`check`). Nothing is fetched, and
//! nothing that was made fetches. The landing page and the order of the chapters are in `packaging/book`.

mod address;
mod book;
mod chapters;
mod check;
pub(crate) mod facts;
mod ids;
mod manual;
mod markdown;
mod pages;
pub(crate) mod phone;
pub(crate) mod tool;
mod verbs;

use std::path::{Path, PathBuf};

use anyhow::bail;

pub(crate) use address::address;

use crate::root;

/// The site as it was made.
#[derive(Debug)]
pub(crate) struct BuiltSite {
    /// The folder of the site.
    pub(crate) folder: PathBuf,
    /// Its pages, as the source names them: `install.md`.
    pub(crate) pages: Vec<String>,
    /// What is wrong with it, a line each.
    pub(crate) wrong: Vec<String>,
}

/// `cargo xtask site [DIR]`.
pub(crate) fn command(words: &[&str]) -> anyhow::Result<()> {
    let project = root::project()?;
    let folder = match words {
        [] => project.join("dist/site"),
        [dir] => std::path::absolute(dir)?,
        _ => bail!("one directory at most"),
    };
    let Some(tool) = tool::find(&project) else { bail!("{}", tool::MISSING) };
    let made = make(&project, &tool, &folder)?;
    for line in &made.wrong {
        eprintln!("{line}");
    }
    if !made.wrong.is_empty() {
        bail!("{} faults in {}", made.wrong.len(), folder.display());
    }
    println!("{}: {} pages", folder.join("index.html").display(), made.pages.len());
    Ok(())
}

/// Makes the site and looks at it.
pub(crate) fn make(project: &Path, tool: &Path, folder: &Path) -> anyhow::Result<BuiltSite> {
    let facts = facts::read(project)?;
    let source = root::target(project).join("xtask/site");
    let pages = book::write(project, &facts, &source)?;
    tool::run(tool, &source, folder)?;
    let wrong = check::all(folder, &pages)?;
    Ok(BuiltSite { folder: folder.to_path_buf(), pages, wrong })
}
