// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune profiles` and `settings`: what there is to choose from.

use std::process::ExitCode;

use serde_json::{Value, json};
use tailbound_report::table::Table;
use tailbound_tune::settings::catalogue;
use tailbound_tune::{Profile, SHIPPED};

use crate::cli_tune::{JsonArg, ProfilesArgs};
use crate::say::{self, Failure};

/// `tailbound tune profiles`
pub(super) fn profiles(args: &ProfilesArgs) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.name {
        let (_, text) = SHIPPED.iter().find(|(n, _)| n == name).ok_or_else(|| {
            let names: Vec<&str> = SHIPPED.iter().map(|(n, _)| *n).collect();
            Failure::usage(format!("there is no profile `{name}`: {}", names.join(", ")))
        })?;
        say::answer(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let all: Vec<Profile> = SHIPPED.iter().filter_map(|(n, _)| Profile::shipped(n)).collect();
    if args.json {
        let rows: Vec<Value> = all
            .iter()
            .map(|p| json!({ "name": p.name, "about": p.about, "settings": p.settings().collect::<Vec<_>>() }))
            .collect();
        say::answer_json(&json!({ "profiles": rows }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<String> = all.iter().map(|p| format!("{:<20} {}", p.name, p.about)).collect();
    say::answer(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// `tailbound tune settings`
pub(super) fn settings(args: &JsonArg) -> Result<ExitCode, Failure> {
    if args.json {
        let rows: Vec<Value> = catalogue()
            .iter()
            .map(|s| {
                json!({
                    "name": s.name, "values": s.values.to_string(), "about": s.about,
                    "cost": s.cost, "cures": s.cures, "needs_cpus": s.needs_cpus,
                })
            })
            .collect();
        say::answer_json(&json!({ "settings": rows }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["setting", "values", "what it does"]).with_words(&[1, 2]);
    for s in catalogue() {
        table.row(vec![s.name.to_owned(), s.values.to_string(), s.about.to_owned()]);
    }
    let style = say::style("auto");
    say::answer_in(&table.text(style.width).join("\n"), style)?;
    Ok(ExitCode::SUCCESS)
}
