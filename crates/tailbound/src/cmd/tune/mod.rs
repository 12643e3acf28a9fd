// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune`: one file a subcommand.

mod apply;
mod auto;
mod exec;
mod plan;
pub(super) mod recipes;
mod settings;
mod show;
mod status;
mod undo;

use std::path::Path;
use std::process::ExitCode;

use tailbound_tune::{Recipe, TuneError, holder, typed};

use crate::cli_tune::Tune;
use crate::say::{Failure, from_library};

from_library!(TuneError);

/// `tailbound tune`
pub(crate) fn tune(what: &Tune) -> Result<ExitCode, Failure> {
    match what {
        Tune::Show(args) => show::show(args),
        Tune::Profiles(args) => settings::profiles(args),
        Tune::Settings(args) => settings::settings(args),
        Tune::Plan(args) => plan::plan(args),
        Tune::Apply(args) => apply::apply(args),
        Tune::Confirm(args) => apply::confirm(args),
        Tune::Undo(args) => undo::undo(args),
        Tune::Status(args) => status::status(args),
        Tune::Verify(args) => status::verify(args),
        Tune::History(args) => status::history(args),
        Tune::Isolate(args) => {
            let by = typed::Isolation::without_partition_if(args.no_partition);
            let recipe = typed::isolated(&args.cpus, by);
            apply::recipe(&Recipe { allow_cpu0: args.allow_cpu0, ..recipe }, &args.how)
        }
        Tune::Move(args) => apply::recipe(&typed::moved(&args.threads, &args.cpus), &args.how),
        Tune::Irq(args) => {
            let (cpus, policy) = (args.cpus.as_deref(), args.policy.as_deref());
            apply::recipe(&typed::interrupts(&args.interrupts, cpus, policy), &args.how)
        }
        Tune::Set(args) => {
            let recipe = match &args.policy {
                Some(policy) => typed::with_policy(&args.what, policy),
                None => typed::settings(&args.what, &args.cpus.words())?,
            };
            apply::recipe(&recipe, &args.how)
        }
        Tune::Auto(args) => auto::auto(args),
        Tune::Exec(args) => exec::exec(args),
    }
}

/// `tailbound tune-guard NUMBER MILLISECONDS`
pub(crate) fn guard(number: u32, ms: u64) -> Result<ExitCode, Failure> {
    tailbound_tune::guard(number, ms)?;
    Ok(ExitCode::SUCCESS)
}

/// `tailbound tune-holder MICROSECONDS NOTE`
pub(crate) fn hold(us: i32, note: &Path) -> Result<ExitCode, Failure> {
    holder::hold(us, note).map_err(Failure::cannot)?;
    Ok(ExitCode::SUCCESS)
}
