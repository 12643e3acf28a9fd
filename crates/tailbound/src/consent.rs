// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that a file names, before root runs them: shown, and asked for.
//!
//! What somebody typed on the command line is typed; a file may be somebody else's.
//! So `run -c FILE` and `campaign run FILE` show root every command in it and ask; `--yes` answers for
//! scripts. An ordinary user is not request: such a file can do what any script of that user can.
//! Processes that this program starts with words which were asked for get `--yes`.
//! Not here: what a file may say at all (`tailbound-core`), and what else it can make the program do
//! (docs/received-files.md).

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::sync::Mutex;

use tailbound_core::plan::RunConfig;
use tailbound_load::commands_in;
use tailbound_sys::process;

use crate::say::{self, Failure};

/// Commands that were agreed to: the variants of a series ask for the same file one by one.
static AGREED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether the commands of files were agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// With `--yes`.
    Given,
    /// Not yet: root is asked.
    Open,
}

impl Agreement {
    /// As `--yes` says it.
    pub(crate) fn given_if(yes: bool) -> Self {
        if yes { Self::Given } else { Self::Open }
    }
}

/// Asks, as root, whether the commands in `words`, which stand in `file`, may be run.
pub(crate) fn ask(file: &str, words: &[&RunConfig], agreement: Agreement) -> Result<(), Failure> {
    let commands = commands_in(words);
    if agreement == Agreement::Given || commands.is_empty() || !process::is_root() {
        return Ok(());
    }
    let mut agreed = AGREED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if commands.iter().all(|c| agreed.contains(c)) {
        return Ok(());
    }
    let shown: String = commands.iter().map(|c| format!("  {c:?}\n")).collect();
    let what = format!("{file:?} names commands, which root would run:\n{shown}");
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::usage(format!(
            "{what}Read them, then give --yes, or run as an ordinary user"
        )));
    }
    say::note(&format!("{what}Run them as root? Type `yes`:"));
    let mut answer = String::new();
    // No answer is no.
    drop(io::stdin().lock().read_line(&mut answer));
    if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Err(Failure::usage(format!("{file:?}: its commands were not agreed to")));
    }
    agreed.extend(commands);
    Ok(())
}
