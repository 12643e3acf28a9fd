// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boards with a kernel of their own: an initramfs that measures and ends, and its runs from the log of a console.
//!
//! No deterministic lab and no QEMU: a board's time is real. Verbs and options are defined here, so that one table is help,
//! man page and parser.
//! Not here: the board's first process (`tailbound-guest`), the lines on the console (`tailbound_core::frames`).

mod initramfs;
mod options;
mod program;
mod receive;

use std::path::PathBuf;

use tailbound_core::plan::RunConfig;
use tailbound_sys::new_file::Existing;

use crate::error::LabError;

pub use self::options::{BoardOption, BoardVerb, BoardWords, Form, VERBS};
pub use self::receive::{HandedRun, handed};

/// What a verb did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardAnswer {
    /// For people.
    pub text: String,
    /// The exit status.
    pub status: u8,
}

/// Reads the words of `tailbound run` into what they ask for, and refuses what it does not know.
pub type ReadRun<'a> = dyn Fn(&[std::ffi::OsString]) -> Result<RunConfig, LabError> + 'a;

/// Does what `verb` says; `note` gets what is to be said meanwhile.
///
/// # Errors
/// Words that are not possible, files that cannot be read or written, a log without a board's lines.
pub fn act(
    verb: &BoardVerb,
    words: &BoardWords,
    run: &ReadRun<'_>,
    note: &dyn Fn(&str),
) -> Result<BoardAnswer, LabError> {
    match verb.name {
        options::RECEIVE => receive::receive(words, note),
        _ => initramfs::make(words, run),
    }
}

/// Where the result goes, and whether it may replace a file.
fn output(words: &BoardWords) -> (Option<PathBuf>, Existing) {
    (words.path("out"), Existing::replaced_if(words.is_given("force")))
}
