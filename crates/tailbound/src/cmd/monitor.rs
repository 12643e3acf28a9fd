// SPDX-License-Identifier: MIT OR Apache-2.0
//! `monitor`: the machine's own real-time threads, window after window.

use std::process::ExitCode;

use tailbound_core::Run;
use tailbound_host::Root;
use tailbound_monitor::{By, Monitor, MonitorError, MonitorOptions, ProbeError, Record};
use tailbound_report::reasons;
use tailbound_stats::Analysis;
use tailbound_sys::signal::Signals;

use crate::cli_monitor::{AUTO, MonitorArgs, Way};
use crate::cmd::{monitor_boosts as boosts, monitor_uploads as uploads};
use crate::flags;
use crate::say::{self, Failure};

/// Shorter windows would cost more than what they say is worth.
const SHORTEST_NS: i64 = 1_000_000_000;
const SHORTEST_STARVING_NS: i64 = 2_000_000_000;

/// The CPU of the probe; `auto`: one that is kept for nobody.
fn cpu(text: &str) -> Result<Option<u32>, Failure> {
    if text == AUTO {
        return Ok(None);
    }
    let cpu = text.parse().map_err(|_| {
        Failure::usage(format!("--probe: `{text}` is no CPU's number: write for example --probe 0"))
    })?;
    Ok(Some(cpu))
}

/// `tailbound monitor`
pub(crate) fn monitor(args: &MonitorArgs) -> Result<ExitCode, Failure> {
    let threshold =
        args.threshold.as_deref().map(|t| flags::time_from("--threshold", t, 1)).transpose()?;
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let record = args.record.as_ref().map(|folder| Record {
        folder: folder.clone(),
        keep: usize::try_from(args.keep).unwrap_or(usize::MAX),
        exe: exe.clone(),
    });
    if args.by == Some(Way::Instance) && record.is_some() {
        let why = "--record needs --by bpf: a program in the kernel stops it as soon as a wake-up was late";
        return Err(Failure::usage(why));
    }
    let asked = MonitorOptions {
        every_ns: flags::time_from("--every", &args.every, SHORTEST_NS)?,
        threshold_ns: threshold.map(i64::unsigned_abs),
        starving_ns: match args.starving.as_str() {
            "off" => None,
            text => Some(flags::time_from("--starving", text, SHORTEST_STARVING_NS)?),
        },
        out: args.out.clone(),
        listen: args.listen,
        length_ns: args.duration.as_deref().map(|t| flags::time_from("-D", t, 1)).transpose()?,
        record,
        probe: args.probe.as_deref().map(cpu).transpose()?,
        by: match args.by {
            None => By::Either,
            Some(Way::Bpf) => By::Bpf,
            Some(Way::Instance) => By::Instance,
        },
        exe,
    };
    let boosts = boosts::of(args)?;
    // Before any thread is made, so that no signal ends the process on the way.
    let signals = Signals::block_and_open().and_then(Signals::and_look).map_err(Failure::cannot)?;
    let (upload, outbox) = uploads::of(args)?;
    let monitor = Monitor::begin(Root::real(), asked, env!("CARGO_PKG_VERSION"), upload).map_err(
        |e| match e {
            MonitorError::Counting(_) | MonitorError::Recorder(_) => {
                Failure::cannot(format!("monitor: {e}"))
            }
            MonitorError::Probe(e @ ProbeError::Cpu(_)) => Failure::usage(format!("--probe: {e}")),
            MonitorError::Probe(e) => Failure::cannot(format!("--probe: {e}")),
            MonitorError::Out(..) => Failure::usage(format!("--out: {e}")),
            MonitorError::Listen(..) => Failure::usage(format!("--listen: {e}")),
        },
    )?;
    // The monitor has made its children, which it cannot once there are threads.
    let handing_in = uploads::begin(args, outbox)?;
    let mut written = Ok(());
    let mut print = |line: &str| {
        let done = say::answer_part(format!("{line}\n").as_bytes());
        let goes_on = done.is_ok();
        written = std::mem::replace(&mut written, Ok(())).and(done);
        goes_on
    };
    let mut note = |text: &str| say::note(&format!("tailbound: monitor: {text}"));
    let reasons = |run: &Run| reasons::sentences(&Analysis::of(run));
    let summary =
        monitor.with_boosts(boosts).with_reasons(reasons).run(&signals, &mut print, &mut note);
    say::note(&summary.text());
    uploads::end(handing_in);
    say::not_answered(written).map(|()| ExitCode::SUCCESS)
}
