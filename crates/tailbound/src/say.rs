// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is printed and where: answers to standard output, everything else to standard
//! error; failures with cause, place and remedy.
//!
//! A reader that went away (`| head`) is not an error. All text goes out through
//! here, and here what files, folders and other programs brought loses its control characters
//! (`tailbound_core::printable`); of escape sequences only our own colours pass, where they are wanted.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use tailbound_core::progress_writer::ProgressWriter;
use tailbound_core::{FailureKind, TerminalSize, printable};
use tailbound_report::site::TerminalLinks;
use tailbound_report::{Color, Style};

use crate::cli_color::ColorChoice;

/// Why there is no answer, and who can mend it, from which the exit status is made.
#[derive(Debug)]
pub struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, text: impl Display) -> Self {
        Self { kind, text: text.to_string() }
    }
    /// Wrong words or files.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self::new(FailureKind::Usage, text)
    }
    /// This machine or user cannot.
    pub(crate) fn cannot(text: impl Display) -> Self {
        Self::new(FailureKind::Cannot, text)
    }
    /// A signal, or an end too soon, came before there was an answer.
    pub(crate) fn cut_off(text: impl Display) -> Self {
        Self::new(FailureKind::CutOff, text)
    }
    /// Ours to mend, as the message above says.
    pub(crate) fn bug() -> Self {
        Self::bug_of("please report the message above with the command line")
    }
    /// Ours to mend.
    pub(crate) fn bug_of(what: impl Display) -> Self {
        Self::new(FailureKind::Bug, format!("this is a bug of tailbound: {what}"))
    }
    /// Prints it and gives the status.
    pub(crate) fn report(self) -> ExitCode {
        note(&format!("tailbound: {}", printable::without_error_numbers(&self.text)));
        ExitCode::from(self.kind.exit_status())
    }
}

/// Errors of libraries that know who can mend them.
macro_rules! from_library {
    ($($error:ty),+) => {$(
        impl From<$error> for $crate::say::Failure {
            fn from(e: $error) -> Self {
                Self::new(e.kind(), e)
            }
        }
    )+};
}
pub(crate) use from_library;
from_library!(
    tailbound_run::ActionError,
    tailbound_run::RunError,
    tailbound_series::SeriesError,
    tailbound_stimulus::StimulusError
);

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Prints an answer.
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    print(&printable::text(text))
}

/// Prints an answer that was made in `style`.
pub(crate) fn answer_in(text: &str, style: Style) -> Result<(), Failure> {
    match style.color {
        Color::On => print(&tailbound_report::own_colors(text, links())),
        Color::Off => answer(text),
    }
}

/// A terminal of today passes over links that it does not show; the kernel's and `dumb` are older.
fn links() -> TerminalLinks {
    let term = std::env::var("TERM").unwrap_or_default();
    if io::stdout().is_terminal() && !["", "dumb", "linux"].contains(&term.as_str()) {
        TerminalLinks::Known
    } else {
        TerminalLinks::Unknown
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    answer_bytes(&[text.as_bytes(), end.as_bytes()].concat())
}

/// Writes an answer that is no text, as it is.
pub(crate) fn answer_bytes(bytes: &[u8]) -> Result<(), Failure> {
    not_answered(answer_part(bytes))
}

/// Writes a part of an answer that goes on as long as somebody reads it.
pub(crate) fn answer_part(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// What an answer that ended so is: whoever reads no further wants no more.
pub(crate) fn not_answered(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::cannot(format!("standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Prints a JSON answer.
pub(crate) fn answer_json(value: &serde_json::Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    print(&printable::json(text))
}

/// The form that an answer is wanted in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// For programs.
    Json,
    /// For people.
    Text(Style),
}

impl Form {
    /// As `--json` and `--color` ask for it.
    pub(crate) fn of(json: bool, color: ColorChoice) -> Self {
        if json { Self::Json } else { Self::Text(style(color)) }
    }

    /// Is it for programs?
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Json)
    }

    /// Prints the answer in this form.
    pub(crate) fn answer(
        self,
        json: impl FnOnce() -> serde_json::Value,
        text: impl FnOnce(Style) -> String,
    ) -> Result<(), Failure> {
        match self {
            Self::Json => answer_json(&json()),
            Self::Text(style) => answer_in(&text(style), style),
        }
    }
}

/// Prints progress, not results; a closed standard error is ignored.
pub(crate) fn note(text: &str) {
    drop(writeln!(io::stderr().lock(), "{}", printable::text(text)));
}

/// Draws a line of progress over the last one, as far as the terminal is wide; an empty one takes it away.
pub(crate) fn redraw(text: &str) {
    let mut out = io::stderr().lock();
    let width =
        tailbound_sys::terminal::size(&out).map_or(80, |window| usize::from(window.columns));
    let line: String = printable::line(text).chars().take(width.saturating_sub(1)).collect();
    drop(write!(out, "\r\x1b[K{line}").and_then(|()| out.flush()));
}

/// Progress of a library's work on standard error; `quiet`: none.
pub(crate) fn progress(quiet: bool) -> Option<ProgressWriter> {
    (!quiet).then(writer)
}

/// Standard error, for lines of progress.
pub(crate) fn writer() -> ProgressWriter {
    let redraw = io::stderr().is_terminal().then_some(redraw as fn(&str));
    ProgressWriter { note, redraw }
}

/// Is colour wanted on standard output?
fn color(when: ColorChoice) -> Color {
    Color::on_if(match when {
        ColorChoice::Auto => io::stdout().is_terminal() && colors_may_be(),
        ColorChoice::Always => true,
        ColorChoice::Never => false,
    })
}

/// Does the environment leave it to us?
pub(crate) fn colors_may_be() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Columns of an answer: those that COLUMNS gives, else those of the terminal, else 80.
fn width() -> usize {
    let given = std::env::var("COLUMNS").ok().and_then(|text| TerminalSize::columns_of(&text));
    given
        .or_else(|| Some(tailbound_sys::terminal::size(&io::stdout())?.columns.into()))
        .unwrap_or(80)
}

/// How an answer is rendered for standard output.
pub(crate) fn style(when: ColorChoice) -> Style {
    Style { color: color(when), width: width() }
}
