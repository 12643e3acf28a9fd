// SPDX-License-Identifier: MIT OR Apache-2.0
//! The example files for CI servers, systemd and containers: the commands in them, and their form.
//!
//! Commands are run by the stage `commands`, like those of the pages. A form is looked at
//! with the format's own program where this machine has it.
//! Not here: running a pipeline.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::tally::Tally;
use crate::exec;

const FOLDER: &str = "docs/examples/ci";

/// What stands before a command in one of these files.
const BEFORE: &[&str] = &["- ", ">- ", "exec ", "ExecStart=", "ExecStopPost=", "/usr/local/bin/"];

/// The files, with their names from the project's folder.
pub(super) fn files(project: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let folder = project.join(FOLDER);
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        paths.push(entry?.path());
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok((path.strip_prefix(project).unwrap_or(&path).display().to_string(), text))
    };
    paths.into_iter().map(read).collect()
}

/// Every command of ours in such a file: its line, and the command in one line. A line goes on after a
/// backslash, and where the next one begins with an option (a folded block of YAML).
pub(super) fn commands(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        match lines.last_mut() {
            Some((_, last)) if last.ends_with('\\') => {
                last.pop();
                last.push_str(line);
            }
            Some((_, last)) if line.starts_with("--") => last.push_str(&format!(" {line}")),
            _ => lines.push((number, line.to_owned())),
        }
    }
    lines.into_iter().filter_map(|(number, line)| Some((number, command(&line)?))).collect()
}

/// The folders that such a file makes in `lines`.
pub(super) fn folders(text: &str, lines: Range<usize>) -> Vec<String> {
    let text: Vec<&str> = text.lines().skip(lines.start).take(lines.len()).collect();
    let name = |line: &&str| {
        let name = line.split("mkdir ").nth(1)?;
        let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    text.iter().filter_map(name).collect()
}

/// The command of ours in a line.
fn command(line: &str) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    line.split("&&").find_map(|part| {
        let mut rest = part.trim();
        while let Some(after) = BEFORE.iter().find_map(|b| rest.strip_prefix(b)) {
            rest = after.trim_start();
        }
        rest.starts_with("tailbound ")
            .then(|| rest.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}

/// Their form, by the programs of their formats.
pub(super) fn form(project: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    for (name, _) in files(project)? {
        let path = project.join(&name);
        if name.ends_with(".yml") {
            let looks = "import sys, yaml; d = yaml.safe_load(open(sys.argv[1])); \
                         sys.exit(0 if isinstance(d, dict) and ('jobs' in d or 'stages' in d) else 1)";
            let has = |code: &str| {
                let mut python = exec::command("python3");
                exec::output(python.args(["-c", code]).arg(&path))
            };
            match has("import yaml") {
                Ok(o) if o.status.success() => tally.add(&name, has(looks).and_then(accepted)),
                _ => tally.leave_out(&name, "python3 has no module yaml"),
            }
        } else if name.ends_with(".service") || name.ends_with(".timer") {
            let mut verify = exec::command("systemd-analyze");
            match exec::output(verify.arg("verify").arg("--man=no").arg(&path)) {
                // A program that is not installed here is no mistake of the unit.
                Ok(o) if String::from_utf8_lossy(&o.stderr).contains("is not executable") => {
                    tally.pass(&name);
                }
                Ok(o) => tally.add(&name, accepted(o)),
                Err(_) => tally.leave_out(&name, "there is no systemd-analyze"),
            }
        }
    }
    Ok(())
}

fn accepted(out: std::process::Output) -> anyhow::Result<()> {
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_every_kind_of_file() {
        let text = "# tailbound run: a comment\n    - mkdir results\n    - >-\n      tailbound run -q\n      --out a\n\
                    x: tailbound, a name\n  exec tailbound lab run \\\n     --out b\n\n\
                    ExecStart=/usr/local/bin/tailbound show c\n    RUN x && tailbound lab ls \\\n    && rm x\n";
        assert_eq!(folders(text, 0..4), ["results"]);
        assert!(folders(text, 2..9).is_empty());
        let all: Vec<String> = commands(text).into_iter().map(|(_, c)| c).collect();
        assert_eq!(
            all,
            [
                "tailbound run -q --out a",
                "tailbound lab run --out b",
                "tailbound show c",
                "tailbound lab ls"
            ]
        );
    }
}
