// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune plan`: what a profile comes to on this machine. Changes nothing.

use std::process::ExitCode;

use crate::cli_tune::PlanTuneArgs;
use crate::input;
use crate::say::{self, Failure};

use super::{recipe, text};

/// `tailbound tune plan`
pub(super) fn plan(args: &PlanTuneArgs) -> Result<ExitCode, Failure> {
    let plan = recipe::plan(&recipe::of(&args.recipe)?)?;
    let json = || serde_json::to_value(&plan).map_err(Failure::cannot);
    if let Some(path) = &args.out {
        let text = serde_json::to_string_pretty(&plan).map_err(Failure::cannot)?;
        input::write(path, &format!("{text}\n"), args.force)?;
    }
    if args.systemd_unit {
        say::answer(&unit(args)?)?;
    } else if args.script {
        say::answer(&plan.script())?;
    } else if args.undo_script {
        say::answer(&plan.undo_script())?;
    } else if args.json {
        say::answer_json(&json()?)?;
    } else {
        say::answer(&text::plan(&plan, args.all))?;
        if let Some(path) = &args.out {
            say::answer(&format!("\nPlan  {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A unit that does what this command plans, at each start.
fn unit(args: &PlanTuneArgs) -> Result<String, Failure> {
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let recipe = &args.recipe;
    if recipe.boot {
        return Err(Failure::usage(
            "--systemd-unit: boot parameters last by themselves: leave out --boot",
        ));
    }
    let profile = recipe.profile.as_deref().map(|name| {
        // A unit has no folder of its own: a file needs its whole path.
        let file = std::path::Path::new(name);
        let whole = file.is_file().then(|| std::path::absolute(file).ok()).flatten();
        ("--profile", whole.map_or_else(|| name.to_owned(), |p| p.display().to_string()))
    });
    let cpus = recipe.cpus.rt_cpus.as_ref().map(|c| ("--rt-cpus", c.clone()));
    let settings = recipe.set.iter().map(|s| ("--set", s.clone()));
    let without = recipe.cpus.without.iter().map(|s| ("--without", s.clone()));
    let mut command =
        vec![exe.display().to_string(), "tune".to_owned(), "apply".to_owned(), "--keep".to_owned()];
    for (flag, value) in profile.into_iter().chain(cpus).chain(settings).chain(without) {
        command.extend([flag.to_owned(), value]);
    }
    if recipe.cpus.allow_cpu0 {
        command.push("--allow-cpu0".to_owned());
    }
    let quoted = |words: &[String]| words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
    Ok(format!(
        "# Save as /etc/systemd/system/tailbound-tune.service, then: systemctl enable --now tailbound-tune\n\
         [Unit]\nDescription=Settings for real-time work\nAfter=multi-user.target\n\n\
         [Service]\nType=exec\nExecStart={}\n\n\
         [Install]\nWantedBy=multi-user.target",
        quoted(&command)
    ))
}

/// A word as systemd.service(5) reads it.
fn quoted(word: &str) -> String {
    let escaped =
        word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    if escaped.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'' || c == '\\') {
        format!("\"{escaped}\"")
    } else {
        escaped
    }
}
