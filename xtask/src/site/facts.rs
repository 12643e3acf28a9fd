// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the pages are generated from: the definition of the command line, and what the catalogues say of each id.
//!
//! The program's own crates give it, compiled in only with the feature `pages`: without it the task starts itself again
//! with it, as for man pages, and reads what that wrote.

use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::{exec, root};

/// All of it.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct SiteFacts {
    pub(super) questions: Vec<VerbGroup>,
    pub(super) verbs: Vec<Verb>,
    pub(super) ids: Vec<Id>,
}

/// A question, or what verbs have in common, and their names.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct VerbGroup {
    pub(super) title: String,
    pub(super) verbs: Vec<String>,
}

/// A verb, or one below it.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Verb {
    pub(super) name: String,
    /// In a line.
    pub(super) about: String,
    /// All of it.
    pub(super) long: String,
    pub(super) usage: String,
    pub(super) options: Vec<VerbOption>,
    /// Examples, exit statuses and the like.
    pub(super) after: String,
    pub(super) verbs: Vec<Verb>,
}

/// An option, or a word in its place.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct VerbOption {
    /// `-D, --duration <TIME>`
    pub(super) written: String,
    pub(super) about: String,
    pub(super) default: String,
    pub(super) words: Vec<String>,
    /// The title that the help gives it; empty: none.
    pub(super) group: String,
}

/// A page about an id, as `tailbound_core::id_page::IdPage` writes it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Id {
    pub(super) subject: String,
    pub(super) id: String,
    pub(super) group: String,
    pub(super) about: String,
    pub(super) sections: Vec<Section>,
}

/// A part of it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) content: Content,
}

/// What stands there.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Content {
    Text(String),
    Command(String),
    Names(Vec<(String, String)>),
    See(String, String),
}

/// The facts of these sources.
pub(super) fn read(project: &Path) -> anyhow::Result<SiteFacts> {
    let file = root::target(project).join("xtask/site.json");
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    exec::with_pages(project, &["site-facts".as_ref(), file.as_ref()])?;
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

/// `cargo xtask site-facts FILE`, which [`read`] calls.
pub(crate) fn command(file: &str) -> anyhow::Result<()> {
    let facts = gathered()?;
    std::fs::write(file, serde_json::to_string_pretty(&facts)?).with_context(|| file.to_owned())
}

#[cfg(not(feature = "pages"))]
fn gathered() -> anyhow::Result<SiteFacts> {
    anyhow::bail!("compiled without the feature `pages`: use `cargo xtask site`")
}

#[cfg(feature = "pages")]
fn gathered() -> anyhow::Result<SiteFacts> {
    let questions = tailbound::questions().map(|(title, verbs)| VerbGroup {
        title: title.to_owned(),
        verbs: verbs.into_iter().map(str::to_owned).collect(),
    });
    let ids = serde_json::to_value(tailbound::site_pages())?;
    Ok(SiteFacts {
        questions: questions.collect(),
        verbs: definition::verbs(tailbound::command()),
        ids: serde_json::from_value(ids)?,
    })
}

/// From clap's definition.
#[cfg(feature = "pages")]
mod definition {
    use clap::{Arg, Command};

    use super::{Verb, VerbOption};

    pub(super) fn verbs(mut program: Command) -> Vec<Verb> {
        program.build();
        program.get_subcommands_mut().filter(|c| is_shown(c)).map(verb).collect()
    }

    /// `help` only leads to the others.
    fn is_shown(command: &Command) -> bool {
        !command.is_hide_set() && command.get_name() != "help"
    }

    fn verb(command: &mut Command) -> Verb {
        let text = |s: Option<&clap::builder::StyledStr>| s.map(ToString::to_string);
        let usage = command.render_usage().to_string();
        let shown = command.get_arguments().filter(|a| !a.is_hide_set() && a.get_id() != "help");
        let about = text(command.get_about()).unwrap_or_default();
        Verb {
            name: command.get_name().to_owned(),
            long: text(command.get_long_about()).unwrap_or_else(|| about.clone()),
            about,
            usage: usage.trim_start_matches("Usage:").trim().to_owned(),
            options: shown.map(option).collect(),
            after: text(command.get_after_long_help().or(command.get_after_help()))
                .unwrap_or_default(),
            verbs: command.get_subcommands_mut().filter(|c| is_shown(c)).map(verb).collect(),
        }
    }

    fn option(arg: &Arg) -> VerbOption {
        let values = arg.get_possible_values();
        let words = values.iter().filter(|v| !v.is_hide_set()).map(|v| match v.get_help() {
            Some(help) => format!("{}: {help}", v.get_name()),
            None => v.get_name().to_owned(),
        });
        let takes = arg.get_action().takes_values();
        let defaults = arg.get_default_values().iter().map(|v| v.to_string_lossy().into_owned());
        let about = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
        let short = arg.get_short().filter(|_| arg.get_long().is_some());
        let short = short.map_or_else(String::new, |letter| format!("-{letter}, "));
        VerbOption {
            written: format!("{short}{arg}"),
            about: about.unwrap_or_default(),
            default: if takes { defaults.collect::<Vec<_>>().join(" ") } else { String::new() },
            words: if takes { words.collect() } else { Vec::new() },
            group: arg.get_help_heading().unwrap_or_default().to_owned(),
        }
    }
}
