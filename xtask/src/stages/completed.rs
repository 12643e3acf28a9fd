// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completions, tried in the shells that read them: a verb, an option.
//!
//! Not here: bash's, which a bare root tries with the package (`packages::debian`); how they are made (`crate::pages`).
//! Source: complete(1) of fish, zshmodules(1).

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

use super::tally::Tally;
use crate::exec;

/// For a shell that compiles the completions first, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// What is typed, and what the line has then.
const LINES: [(&str, &str); 2] =
    [("tailbound compa", "tailbound compare"), ("tailbound run --deadl", "--deadline")];
const IN_ZSH: &str = include_str!("completed.zsh");

/// With the completions of this folder.
pub(super) fn all(folder: &Path) -> Tally {
    let mut tally = Tally::default();
    let shells: [(&str, Shell); 2] = [("zsh", in_zsh), ("fish", in_fish)];
    for (shell, tried) in shells {
        let name = format!("completions in {shell}");
        if exec::exists(shell) {
            let each = |(typed, wanted): (&str, &str)| tried(folder, typed, wanted);
            tally.add(&name, LINES.into_iter().try_for_each(each));
        } else {
            tally.skip(&name, shell, &format!("there is no {shell} (Debian package {shell})"));
        }
    }
    tally
}

type Shell = fn(&Path, &str, &str) -> anyhow::Result<()>;

fn in_zsh(folder: &Path, typed: &str, wanted: &str) -> anyhow::Result<()> {
    let (script, log) = (folder.with_file_name("completed.zsh"), folder.with_file_name("zsh.log"));
    fs::write(&script, IN_ZSH)?;
    let mut zsh = exec::command("zsh");
    zsh.arg("-f").arg(script).arg(folder).args([typed, wanted]);
    let ended = exec::limited(&mut zsh, &log, LIMIT)?;
    let said = fs::read_to_string(&log)?;
    ensure!(ended.is_some_and(|status| status.success()), "`{typed}`, no `{wanted}`: {said}");
    Ok(())
}

fn in_fish(folder: &Path, typed: &str, wanted: &str) -> anyhow::Result<()> {
    let mut fish = exec::command("fish");
    // `complete -C` says the word alone.
    let wanted = wanted.rsplit(' ').next().unwrap_or(wanted);
    fish.args(["--no-config", "-c", "source $argv[1]; complete -C $argv[2]"]);
    let out = exec::output(fish.arg(folder.join("tailbound.fish")).arg(typed))?;
    let said = String::from_utf8_lossy(&out.stdout);
    let is_there = said.lines().any(|line| line.split('\t').next() == Some(wanted));
    ensure!(is_there, "`{typed}`, no `{wanted}`: {said}{}", String::from_utf8_lossy(&out.stderr));
    Ok(())
}
