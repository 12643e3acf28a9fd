// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long each stage took, and how much of the CPUs: the table at the end, and `target/xtask/times.json`.
//!
//! CPU time is that of processes that were waited for; what is compiled for later stages meanwhile counts where it ends.
//! Units: seconds.
//! Source: proc_pid_stat(5), fields 16 and 17.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use serde_json::json;

/// Ticks in a second, of every Linux that people have (sysconf(3), `_SC_CLK_TCK`).
const TICKS_PER_S: u64 = 100;

/// One stage.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StageTime {
    name: String,
    wall_s: u64,
    cpu_s: u64,
}

/// All stages so far.
#[derive(Debug)]
pub(super) struct Times {
    begun: Instant,
    stages: Vec<StageTime>,
}

/// A stage that runs.
#[derive(Debug)]
pub(super) struct Beginning(Instant, u64);

impl Times {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), stages: Vec::new() }
    }

    pub(super) fn begin() -> Beginning {
        Beginning(Instant::now(), cpu_ticks())
    }

    /// How long all stages took until now, for the line with which one begins; nothing within the first minute.
    pub(super) fn so_far(&self) -> String {
        match self.begun.elapsed().as_secs() / 60 {
            0 => String::new(),
            minutes => format!(" (after {minutes} min)"),
        }
    }

    /// Notes the stage; gives how long it took, for people.
    pub(super) fn end(&mut self, name: &str, from: &Beginning) -> String {
        let wall_s = from.0.elapsed().as_secs();
        let cpu_s = cpu_ticks().saturating_sub(from.1) / TICKS_PER_S;
        self.stages.push(StageTime { name: name.to_owned(), wall_s, cpu_s });
        format!("{wall_s} s, {cpu_s} s of CPU time")
    }

    /// The table.
    pub(super) fn table(&self) -> String {
        let all_s = self.begun.elapsed().as_secs();
        let mut text = format!("==> all: {all_s} s\n    stage             s  share    CPU s\n");
        for StageTime { name, wall_s, cpu_s } in &self.stages {
            let share = wall_s * 100 / all_s.max(1);
            text.push_str(&format!("    {name:12} {wall_s:6}   {share:3}%   {cpu_s:6}\n"));
        }
        text
    }

    /// The same for programs.
    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let stages: Vec<_> = self
            .stages
            .iter()
            .map(|s| json!({"stage": s.name, "wall_s": s.wall_s, "cpu_s": s.cpu_s}))
            .collect();
        let all = json!({"wall_s": self.begun.elapsed().as_secs(), "stages": stages});
        fs::write(file, format!("{all:#}\n")).with_context(|| file.display().to_string())
    }
}

/// CPU time of all processes that this one waited for; 0 if the kernel does not say it.
fn cpu_ticks() -> u64 {
    fs::read_to_string("/proc/self/stat").ok().and_then(|stat| children_ticks(&stat)).unwrap_or(0)
}

fn children_ticks(stat: &str) -> Option<u64> {
    // A program's name may have spaces and brackets in it: the fields begin behind the last.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_read_behind_any_name() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 150 50 20 0 1 0 99";
        assert_eq!(children_ticks(stat), Some(200));
        assert_eq!(children_ticks("7 (a"), None);
    }

    #[test]
    fn the_table_has_a_line_for_each_stage() {
        let mut times = Times::new();
        times.end("tidy", &Times::begin());
        let table = times.table();
        assert!(table.lines().count() == 3 && table.contains("tidy"), "{table}");
    }
}
