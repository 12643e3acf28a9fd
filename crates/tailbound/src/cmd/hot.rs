// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hot`: what CPUs are busy with, by samples.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use tailbound_core::units::grouped;
use tailbound_host::{Cpus, Root};
use tailbound_record::hot::{
    Moment, SamplingEnd, SamplingRequest, SamplingStage, sample, sees_every_process,
};
use tailbound_report::hot::Hot;
use tailbound_stats::hot::{SampleSite, SampledProcess, Tally};
use tailbound_sys::signal::Signals;

use crate::cli_hot::HotArgs;
use crate::flags;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// The kernel takes no more than this by itself.
const FREQUENCY_MAX: u64 = 20_000;

/// `tailbound hot`
pub(crate) fn hot(args: &HotArgs) -> Result<ExitCode, Failure> {
    let length = flags::length(&args.duration)?;
    if args.frequency == 0 || args.frequency > FREQUENCY_MAX {
        let wrong = args.frequency;
        return Err(Failure::usage(format!("--frequency: {wrong} is not 1 to {FREQUENCY_MAX}")));
    }
    if let Some(page) = &args.html {
        input::may_write(page, Existing::replaced_if(args.force))?;
    }
    let root = Root::real();
    let pid = args.process.find(&root, args.target)?;
    let cpus = cpus(args, &root)?;
    sees_every_process(&root).map_err(|e| Failure::cannot(format!("hot: {e}")))?;
    let mut tally = Tally::default();
    let (frequency_hz, comm) = (args.frequency, args.process.comm.as_slice());
    let request = SamplingRequest { cpus: &cpus, frequency_hz, pid, comm, length };
    let taken = taken(root, &request, &mut tally)?;
    tell(args, pid, &tally, &taken)?;
    Ok(if tally.all() > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cpus(args: &HotArgs, root: &Root) -> Result<Vec<u32>, Failure> {
    let machine = Cpus::read(root).map_err(|e| Failure::cannot(format!("the CPUs: {e}")))?;
    match &args.cpus {
        None => Ok(machine.online.iter().collect()),
        Some(list) => {
            let set = machine.resolve(list).map_err(flags::refused("-c"))?;
            Ok(set.iter().collect())
        }
    }
}

fn taken(
    root: Root,
    request: &SamplingRequest<'_>,
    tally: &mut Tally,
) -> Result<SamplingEnd, Failure> {
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let shown = std::io::stderr().is_terminal();
    let stage = &mut |stage| match stage {
        _ if !shown => {}
        SamplingStage::Samples { taken, left } => {
            say::redraw(&format!("{} samples, {} s to go", grouped(taken), left.as_secs()));
        }
        SamplingStage::Names => say::redraw("reading the programs' files"),
    };
    let mut taken = sample(root, request, &signals, stage, &mut |m| add(tally, m))
        .map_err(|e| Failure::cannot(format!("hot: {e}")))?;
    if shown {
        say::redraw("");
    }
    if tally.beyond > 0 {
        let beyond = grouped(tally.beyond);
        taken.notes.push(format!("{beyond} samples are of more places than are kept"));
    }
    Ok(taken)
}

fn add(tally: &mut Tally, m: &Moment<'_>) {
    let place = SampleSite {
        function: m.function.to_owned(),
        object: m.object.to_owned(),
        kind: m.spent,
        comm: m.comm.to_owned(),
    };
    tally.add(SampledProcess { cpu: m.cpu, pid: m.pid, whose: m.whose }, place, m.n);
}

fn tell(
    args: &HotArgs,
    pid: Option<u32>,
    tally: &Tally,
    taken: &SamplingEnd,
) -> Result<(), Failure> {
    let hot = Hot {
        tally,
        source: taken.source,
        frequency_hz: args.frequency,
        seconds: taken.seconds,
        lost: taken.lost,
        pid,
        comm: &args.process.comm,
        notes: &taken.notes,
    };
    if let Some(page) = &args.html {
        input::write(page, &hot.html(), Existing::replaced_if(args.force))?;
    }
    if args.json {
        return say::answer_json(&hot.json());
    }
    let style = say::style(args.color.when);
    let mut text = hot.text(args.top, style);
    if let Some(page) = &args.html {
        text.push_str(&format!("\nPage  {}\n", page.display()));
    }
    say::answer_in(&text, style)
}
