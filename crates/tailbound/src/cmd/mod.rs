// SPDX-License-Identifier: MIT OR Apache-2.0
//! One file a verb.

#[cfg(feature = "agent")]
mod agent;
mod benchmark;
#[cfg(feature = "lab")]
mod bisect;
mod blame;
mod blame_answer;
mod blame_trace;
#[cfg(feature = "lab")]
pub(crate) mod board;
mod bound;
mod bound_here;
mod bound_theory;
mod box_answer;
mod box_run;
mod campaign;
mod capture;
mod check;
mod compare;
pub(crate) mod cyclictest;
mod decide;
mod export;
#[cfg(feature = "server")]
mod fleet;
mod history;
mod hot;
#[cfg(feature = "lab")]
mod hunt;
mod import;
mod interruptions;
#[cfg(feature = "lab")]
mod lab;
mod latency_bound;
mod load;
mod monitor;
mod monitor_boosts;
mod monitor_uploads;
mod peer;
mod plan;
mod report;
mod rounds;
mod run;
#[cfg(feature = "server")]
mod serve;
pub(crate) mod session;
mod show;
mod sign;
#[cfg(feature = "server")]
mod store;
mod sweep;
mod tasks;
mod tune;
mod watch;
#[cfg(not(feature = "lab"))]
mod without_lab;

use std::process::ExitCode;

use crate::cli::{Cli, Command, Measure};
use crate::cli_box::BoxVerb;
use crate::cli_check::CheckVerb;
#[cfg(feature = "server")]
use crate::cli_server::{ServerCli, ServerCommand};
use crate::say::Failure;
use crate::sibling;

/// Runs the verb that was typed.
pub(crate) fn dispatch(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Measure(what) => match what {
            Measure::Probe(words) => run::probe(&words),
            Measure::Sweep(args) => sweep::measure(&args),
            Measure::Benchmark(args) => benchmark::measure(&args),
        },
        Command::Cyclictest(args) => cyclictest::cyclictest(args.words),
        Command::Load(args) => load::load(&args),
        Command::LoadWorker(args) => {
            Ok(tailbound_load::worker_main(&args.spec, tailbound_load::STATUS_FD))
        }
        Command::Check(args) => match &args.verb {
            Some(CheckVerb::Capture(args)) => capture::capture(args),
            None => check::check(&args),
        },
        Command::Capture(args) => capture::capture(&args),
        Command::TuneGuard { number, ms } => tune::guard(number, ms),
        Command::TuneHolder { us, note } => tune::hold(us, &note),
        Command::TraceGuard { instance } => {
            let root = tailbound_host::Root::real();
            let (input, output) = (std::io::stdin(), std::io::stdout());
            Ok(tailbound_host::tracefs::guard_main(&root, &instance, input, output).into())
        }
        Command::ActionGuard { limit_ms, words } => {
            Ok(tailbound_run::action_guard_main(limit_ms, &words))
        }
        Command::Peer { role, descriptors, words } => peer::peer(&role, descriptors, &words),
        Command::Report(args) => report::report(&args),
        Command::Show(args) => show::show(&args),
        Command::Blame(args) => blame::blame(&args),
        Command::Interruptions(args) => interruptions::interruptions(&args),
        Command::Tasks(args) => tasks::tasks(&args),
        Command::Watch(args) => watch::watch(&args),
        Command::Monitor(args) => monitor::monitor(&args),
        Command::Hot(args) => hot::hot(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Decide(args) => decide::decide(&args),
        Command::Import(args) => import::import(&args),
        Command::Export(args) => export::export(&args),
        Command::Sign(args) => sign::sign(&args),
        Command::Verify(args) => sign::verify(&args),
        Command::History(args) => history::history(&args),
        #[cfg(feature = "agent")]
        Command::Agent(args) => agent::agent(&args),
        Command::Serve(_) => Err(sibling::become_server("serve")),
        Command::Store(_) => Err(sibling::become_server("store")),
        Command::Fleet(_) => Err(sibling::become_server("fleet")),
        Command::Bound(args) => bound::bound(&args),
        Command::Plan(args) => plan::plan(&args),
        Command::Box(BoxVerb::Answer(args)) => box_answer::answer(&args),
        Command::Box(BoxVerb::Run(args)) => box_run::run(&args),
        Command::Box(BoxVerb::Join(args)) => box_run::join(&args),
        Command::Box(BoxVerb::Check(args)) => box_run::check(&args),
        Command::Box(BoxVerb::Flash(args)) => box_run::flash(&args),
        Command::Box(BoxVerb::Latmon(args)) => box_run::latmon(&args),
        #[cfg(feature = "lab")]
        Command::Board(what) => board::board(&what),
        #[cfg(feature = "lab")]
        Command::Hunt(args) => hunt::hunt(&args),
        #[cfg(feature = "lab")]
        Command::Lab(lab) => lab::lab(&lab),
        #[cfg(feature = "lab")]
        Command::Bisect(what) => bisect::bisect(&what),
        #[cfg(not(feature = "lab"))]
        Command::Lab(_) => Err(without_lab::told("lab, board")),
        Command::Tune(what) => tune::tune(&what),
        Command::Campaign(what) => campaign::campaign(&what),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            let mut command = crate::completions::command();
            clap_complete::generate(shell, &mut command, "tailbound", &mut text);
            crate::say::answer(&String::from_utf8_lossy(&text))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs the verb that was handed on to `tailbound-server`.
#[cfg(feature = "server")]
pub(crate) fn dispatch_server(cli: ServerCli) -> Result<ExitCode, Failure> {
    match cli.command {
        ServerCommand::Serve(args) => serve::serve(&args),
        ServerCommand::Store(what) => store::store(&what),
        ServerCommand::Fleet(what) => fleet::fleet(&what),
    }
}
