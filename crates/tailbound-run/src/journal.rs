// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run on its way to the file, and what of it stays in memory.
//!
//! Context: COLD. Per-second records stay, because the verdict needs them; what only a
//! report needs is read back from the file when the run is over.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use tailbound_core::finding::Finding;
use tailbound_core::record::{Event, Header, Line, Run};
use tailbound_core::runfile::read_run;

use crate::error::RunError;
use crate::output::Output;

/// The run in memory and on its way to the file.
pub(crate) struct Journal {
    output: Output,
    pub(crate) run: Run,
    begun: bool,
}

impl Journal {
    pub(crate) fn new(output: Output, header: Header) -> Self {
        Self { output, run: Run::new(header), begun: false }
    }
    /// Writes the header, then whatever came before it.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
        let lines: Vec<Line> = self.run.lines().collect();
        lines.iter().for_each(|l| self.output.line(l));
        self.output.flush();
    }
    pub(crate) fn line(&mut self, line: Line) {
        if self.begun {
            self.output.line(&line);
        }
        // What only the report needs is read back from the file when the run is over.
        let bulky = matches!(
            line,
            Line::Window(_) | Line::Block(_) | Line::Exceedance(_) | Line::Load(_) | Line::Raw(_)
        );
        if !(bulky && self.begun && self.output.holds()) {
            self.run.absorb(line);
        }
    }
    pub(crate) fn event(&mut self, t_ns: i64, event: &str, text: &str) {
        self.line(Line::Event(Event { t_ns, event: event.to_owned(), text: text.to_owned() }));
    }
    /// Records a finding; of several with one id the last one counts.
    pub(crate) fn finding(&mut self, finding: Finding) {
        if !self.run.findings.contains(&finding) {
            self.line(Line::Finding(finding));
        }
    }
    pub(crate) fn flush(&mut self) {
        self.output.flush();
    }
    /// There was no run: takes the file away again.
    pub(crate) fn discard(self) {
        self.output.discard();
    }
    /// Writes the last line; the whole run, bulky records included, and where its file is.
    pub(crate) fn end(self) -> Result<(Run, Option<PathBuf>), RunError> {
        let path = self.output.end(&self.run)?;
        let whole =
            path.as_ref().and_then(|p| File::open(p).ok()).map(|f| read_run(BufReader::new(f)));
        Ok((whole.and_then(Result::ok).unwrap_or(self.run), path))
    }
}
