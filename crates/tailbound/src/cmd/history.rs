// SPDX-License-Identifier: MIT OR Apache-2.0
//! `history`: a series of runs over time, and where it changed.

use std::process::ExitCode;

use tailbound_core::share;
use tailbound_report::history;
use tailbound_stats::change::Settings;

use crate::cli_history::HistoryArgs;
use crate::flags;
use crate::input::{self, Existing};
use crate::say::{self, Failure, Form};

/// Lines of a run that a series does not look at. Exceedances are not among them: of a file that
/// was cut off, the worst case may be known from them alone.
const UNUSED: [&str; 4] = ["window", "block", "raw", "load"];

/// `tailbound history`
pub(crate) fn history(args: &HistoryArgs) -> Result<ExitCode, Failure> {
    let margin = share::parse(&args.margin).map_err(flags::refused("--margin"))?;
    let paths = input::files(&args.runs)?;
    let runs = input::runs_without(&paths, &UNUSED)?;
    let names: Vec<String> = paths.iter().map(|p| input::name(p)).collect();
    let settings = Settings { margin, seed: args.seed, ..Settings::default() };
    let groups = history::groups(&runs, &names, settings);
    if let Some(out) = &args.out {
        input::write(out, &history::html(&groups), Existing::replaced_if(args.force))?;
    }
    if args.svg {
        let figure = groups.first().and_then(history::figure);
        let figure = figure
            .ok_or_else(|| Failure::usage("--svg: no run has enough activations for a quantile"))?;
        say::answer(&figure.standalone())?;
    } else {
        let form = Form::of(args.json, args.color.when);
        form.answer(|| history::json(&groups), |style| history::text(&groups, style))?;
    }
    let regressed = groups.iter().any(|g| g.history.regressed());
    Ok(ExitCode::from(u8::from(regressed)))
}
