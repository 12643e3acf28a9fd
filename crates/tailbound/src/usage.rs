// SPDX-License-Identifier: MIT OR Apache-2.0
//! Usage errors: the tip says where an option is, instead of how to pass it as a value, and what options of
//! cyclictest are here.

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use tailbound_cyclictest::advice;

/// Verbs that are named; more would be no help.
const VERBS_MAX: usize = 4;

/// `error` with a tip that helps. `command` makes the whole command line, built: that takes longer than all else of a
/// `--version`, which comes here too.
pub(crate) fn with_tip(mut error: Error, command: fn() -> Command) -> Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    // "to pass '--pid' as a value, use '-- --pid'": nobody who typed an option meant that.
    error.remove(ContextKind::Suggested);
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return error };
    if error.get(ContextKind::SuggestedArg).is_some() {
        return error;
    }
    let verbs = verbs_with(&command(), word);
    if !verbs.is_empty() && verbs.len() <= VERBS_MAX {
        let tip = format!("{word} is an option of {}", verbs.join(", "));
        let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// The help for someone whose words were refused with `error`, where they are those of cyclictest.
pub(crate) fn of_cyclictest(words: &[String], error: &Error) -> Option<String> {
    let (verb, rest) = words.split_first()?;
    // An option that is not ours, or without the value that ours needs; words of neither are told elsewhere.
    let habit = verb == "run"
        && matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidValue);
    if habit { advice(rest) } else { None }
}

/// The verbs that have this long option, as they are typed.
fn verbs_with(command: &Command, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Some(long) = word.strip_prefix("--").and_then(|w| w.split('=').next()) else {
        return found;
    };
    for verb in command.get_subcommands().filter(|v| !v.is_hide_set()) {
        let has =
            |c: &Command| c.get_arguments().any(|a| a.get_long() == Some(long) && !a.is_hide_set());
        if has(verb) || verb.get_subcommands().any(has) {
            found.push(format!("`tailbound {}`", verb.get_name()));
        }
    }
    found
}
