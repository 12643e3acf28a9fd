// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run on its way to the file, and what of it stays in memory.
//!
//! Per-second records stay, because the verdict needs them; what only a
//! report needs is read back from the file when the run is over.

use std::path::{Path, PathBuf};

use tailbound_core::Run;
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::occurrence::Occurrence;
use tailbound_core::record::{Clocks, Event, Header, Line};
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
        self.output.settle();
    }
    /// The measurement has begun: what is in the file is a run from now on.
    pub(crate) fn place(&mut self) {
        self.output.place();
    }
    pub(crate) fn line(&mut self, line: Line) {
        if self.begun {
            self.output.line(&line);
        }
        // What only the report needs is read back from the file when the run is over.
        let bulky = matches!(
            line,
            Line::Window(_)
                | Line::Block(_)
                | Line::Exceedance(_)
                | Line::Blame(_)
                | Line::Load(_)
                | Line::Disturbance(_)
                | Line::Raw(_)
        );
        if !(bulky && self.begun && self.output.holds()) {
            self.run.absorb(line);
        }
    }
    pub(crate) fn event(&mut self, t_ns: i64, occurrence: Occurrence<'_>) {
        self.line(Line::Event(occurrence.at(t_ns)));
    }
    /// Records that the measurement began, and what the clocks read then.
    pub(crate) fn began(&mut self, clocks: Clocks) {
        let text = "earlier activations are reported, not judged";
        let event = Event { clocks: Some(clocks), ..Occurrence::WarmUpOver { note: text }.at(0) };
        self.line(Line::Event(event));
    }
    /// Records a finding; of several with one id the last one counts.
    pub(crate) fn finding(&mut self, finding: Finding) {
        if !self.run.findings.contains(&finding) {
            self.line(Line::Finding(finding));
        }
    }
    pub(crate) fn flush(&mut self) {
        if let Some(filling) = self.output.flush() {
            self.finding(Finding::listed("disk-filling", Impact::Notice, filling));
        }
    }
    /// Writes the verdict of all that was recorded, and the digest of the file up to it: killing a
    /// benchmark later loses nothing.
    pub(crate) fn judge(&mut self) {
        tailbound_stats::judge(&mut self.run);
        if let Some(verdict) = self.run.verdict.clone() {
            self.line(Line::Verdict(verdict));
        }
        self.checkpoint();
    }
    /// Writes the digest of the file so far.
    pub(crate) fn checkpoint(&mut self) {
        if self.begun {
            self.output.checkpoint();
        }
    }
    /// There was no run: takes the file away again.
    pub(crate) fn discard(self) {
        self.output.discard();
    }
    /// Writes the last line; the whole run, bulky records included, and where its file is.
    pub(crate) fn end(mut self) -> Result<(Run, Option<PathBuf>), RunError> {
        if self.output.failed() {
            self.run.absorb(Line::Finding(Finding::listed(
                "records-elsewhere",
                Impact::Notice,
                "the run file could not be written completely",
            )));
        }
        let Some(closed) = self.output.end(&self.run)? else { return Ok((self.run, None)) };
        let back = closed
            .reader()
            .map_err(|e| e.to_string())
            .and_then(|text| read_run(text).map_err(|e| e.to_string()));
        let path = closed.path;
        let mut run = back.unwrap_or_else(|why| {
            let mut run = self.run;
            run.absorb(Line::Finding(not_read_back(&path, &why)));
            // The verdict on file knew nothing of it.
            run.verdict = None;
            run
        });
        // Works alone are judged by nobody.
        if run.header.plan.work.is_none() || !run.threads.is_empty() {
            tailbound_stats::judge(&mut run);
        }
        Ok((run, Some(path)))
    }
}

fn not_read_back(path: &Path, why: &str) -> Finding {
    Finding::listed(
        "not-read-back",
        Impact::Doubt,
        format!("the run file {} cannot be read back: {why}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_core::record::End;
    use tailbound_sys::new_file::Existing;

    const HEADER: &str = concat!(
        r#"{"type":"header","schema":"tailbound-run/1","tool":"t","id":"i","started":"s","command":[],"#,
        r#""plan":{"probe":"cyclic","interval_ns":1000000,"activations":0,"warm_up_ns":0,"cpus":"0","#,
        r#""policy":"other","clock":"monotonic","means":"nanosleep","loads":[],"requirement":{}},"machine":{}}"#
    );

    #[test]
    fn a_file_that_cannot_be_read_back_is_a_doubt() {
        let name = format!("journal-{}.tailbound.jsonl", std::process::id());
        let path = std::env::temp_dir().join(name);
        let header = read_run(HEADER.as_bytes()).unwrap_or_else(|e| panic!("{e}")).header;
        let plan = header.plan.clone();
        let output = Output::open(&path, &plan, Existing::Keep).unwrap_or_else(|e| panic!("{e}"));
        let mut journal = Journal::new(output, header);
        journal.begin();
        journal.place();
        journal.run.end = Some(End { reason: "complete".into(), measured_ns: 0, lines: 0 });
        journal.judge();
        std::fs::remove_file(&path).unwrap_or_else(|e| panic!("{e}"));
        let (run, _) = journal.end().unwrap_or_else(|e| panic!("{e}"));
        assert!(run.findings.iter().any(|f| f.id == "not-read-back" && f.impact == Impact::Doubt));
        assert!(run.verdict.is_some_and(|v| v.statements.iter().any(|s| s.contains("read back"))));
    }
}
