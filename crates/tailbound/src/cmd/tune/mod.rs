// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune`: one file a subcommand.

mod apply;
mod auto;
mod exec;
mod guard;
mod hands;
mod keep;
mod look;
mod plan;
mod recipe;
mod settings;
mod show;
mod status;
mod text;
mod undo;
mod view;

use std::process::ExitCode;

use crate::cli_tune::Tune;
use crate::say::Failure;

pub(crate) use guard::{guard, hold};

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
        Tune::Isolate(args) => apply::recipe(&recipe::isolate(args)?, &args.how),
        Tune::Move(args) => apply::recipe(&recipe::move_threads(args)?, &args.how),
        Tune::Irq(args) => apply::recipe(&recipe::interrupts(args)?, &args.how),
        Tune::Set(args) => apply::recipe(&recipe::set(args)?, &args.how),
        Tune::Auto(args) => auto::auto(args),
        Tune::Exec(args) => exec::exec(args),
    }
}

/// The text of a shipped profile or of a file, which is one.
#[cfg(feature = "lab")]
pub(crate) fn profile_text(name: &str) -> Result<String, Failure> {
    Ok(tailbound_tune::Recipe::of(&recipe::profile(name)?).profile)
}

/// The text of a profile of these `SETTING=VALUE`.
#[cfg(feature = "lab")]
pub(crate) fn profile_of(name: &str, settings: &[String]) -> Result<String, Failure> {
    let mut written = tailbound_tune::Written { name: name.to_owned(), ..Default::default() };
    recipe::add(&mut written, settings.iter().map(String::as_str))?;
    tailbound_tune::Profile::of(written.clone()).map_err(Failure::usage)?;
    Ok(tailbound_tune::Recipe::of(&written).profile)
}
