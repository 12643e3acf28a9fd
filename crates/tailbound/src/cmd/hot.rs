// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hot`: what CPUs are busy with, by samples.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tailbound_core::units::{grouped, parse_ns};
use tailbound_host::{Cpus, Root};
use tailbound_record::hot::{Moment, Sampler, sees_every_process};
use tailbound_report::hot::Hot;
use tailbound_stats::hot::{Kind, SampleSite, Tally};
use tailbound_sys::perf::Source;
use tailbound_sys::signal::Signals;
use tailbound_trace::samples::Spent;

use crate::cli_hot::HotArgs;
use crate::input;
use crate::say::{self, Failure};

/// From one look at the samples to the next.
const LOOK_MS: i32 = 50;
/// Looks from one word about the progress to the next.
const SAY_EVERY: u32 = 20;
/// The kernel takes no more than this by itself.
const FREQUENCY_MAX: u64 = 20_000;

/// `tailbound hot`
pub(crate) fn hot(args: &HotArgs) -> Result<ExitCode, Failure> {
    let text = &args.duration;
    let ns = parse_ns(text).map_err(|e| Failure::usage(format!("-D: {e}")))?;
    if ns <= 0 {
        return Err(Failure::usage(format!("-D: {text} is not above zero")));
    }
    if args.frequency == 0 || args.frequency > FREQUENCY_MAX {
        let wrong = args.frequency;
        return Err(Failure::usage(format!("--frequency: {wrong} is not 1 to {FREQUENCY_MAX}")));
    }
    if let Some(page) = &args.html {
        input::may_write(page, args.force)?;
    }
    let root = Root::real();
    if let Some(pid) = args.pid.filter(|pid| !root.exists(&format!("/proc/{pid}"))) {
        return Err(Failure::usage(format!("--pid: there is no process {pid}")));
    }
    sees_every_process(&root).map_err(|e| Failure::cannot(format!("hot: {e}")))?;
    let cpus = cpus(args, &root)?;
    let pid = args.pid.and_then(|p| i32::try_from(p).ok());
    let mut tally = Tally::new(pid);
    let taken = sample(args, root, &cpus, ns, &mut tally)?;
    tell(args, &tally, &taken)?;
    Ok(if tally.all() > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cpus(args: &HotArgs, root: &Root) -> Result<Vec<u32>, Failure> {
    let machine = Cpus::read(root).map_err(|e| Failure::cannot(format!("the CPUs: {e}")))?;
    match &args.cpus {
        None => Ok(machine.online.iter().collect()),
        Some(list) => {
            let set = machine.resolve(list).map_err(|e| Failure::usage(format!("-c: {e}")))?;
            Ok(set.iter().collect())
        }
    }
}

/// How the samples were taken.
struct Taken {
    source: &'static str,
    seconds: f64,
    lost: u64,
    notes: Vec<String>,
}

fn sample(
    args: &HotArgs,
    root: Root,
    cpus: &[u32],
    ns: i64,
    tally: &mut Tally,
) -> Result<Taken, Failure> {
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let process = args.pid.map(|pid| format!("/proc/{pid}"));
    let there = root.clone();
    let cannot = |e| Failure::cannot(format!("hot: {e}"));
    let mut sampler = Sampler::begin(root, cpus, args.frequency).map_err(cannot)?;
    let mut notes = sampler.take_notes();
    let shown = std::io::stderr().is_terminal();
    sampler.run(true).map_err(cannot)?;
    let begin = Instant::now();
    let length = Duration::from_nanos(ns.unsigned_abs());
    for look in 1u32.. {
        let left = length.saturating_sub(begin.elapsed());
        let wait = i32::try_from(left.as_millis()).unwrap_or(LOOK_MS).min(LOOK_MS);
        if left.is_zero() || signals.wait(wait.max(1)).is_some() {
            break;
        }
        sampler.poll(&mut |m| add(tally, m));
        if process.as_ref().is_some_and(|p| !there.exists(p)) {
            notes.push("the process ended".to_owned());
            break;
        }
        if shown && look.is_multiple_of(SAY_EVERY) {
            let (n, s) = (grouped(sampler.taken()), left.as_secs());
            say::redraw(&format!("{n} samples, {s} s to go"));
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    drop(sampler.run(false));
    sampler.poll(&mut |m| add(tally, m));
    if shown {
        say::redraw("reading the programs' files");
    }
    sampler.finish(&mut |m| add(tally, m));
    if shown {
        say::redraw("");
    }
    notes.append(&mut sampler.take_notes());
    if tally.beyond > 0 {
        notes.push(format!("{} samples are of more places than are kept", grouped(tally.beyond)));
    }
    let source = match sampler.source() {
        Source::Cycles => "cycles",
        Source::Clock => "cpu-clock",
    };
    Ok(Taken { source, seconds, lost: sampler.lost(), notes })
}

fn add(tally: &mut Tally, m: &Moment<'_>) {
    let kind = match m.spent {
        Spent::Idle => Kind::Idle,
        Spent::User => Kind::User,
        Spent::Kernel => Kind::Kernel,
        Spent::Softirq => Kind::Softirq,
        Spent::Interrupt => Kind::Interrupt,
        Spent::Other => Kind::Other,
    };
    let place = SampleSite {
        function: m.function.to_owned(),
        object: m.object.to_owned(),
        kind,
        comm: m.comm.to_owned(),
    };
    tally.add(m.cpu, m.pid, place, m.n);
}

fn tell(args: &HotArgs, tally: &Tally, taken: &Taken) -> Result<(), Failure> {
    let hot = Hot {
        tally,
        source: taken.source,
        frequency_hz: args.frequency,
        seconds: taken.seconds,
        lost: taken.lost,
        pid: args.pid,
        notes: &taken.notes,
    };
    if let Some(page) = &args.html {
        input::write(page, &hot.html(), args.force)?;
    }
    if args.json {
        return say::answer_json(&hot.json());
    }
    let style = say::style(&args.color.when);
    let mut text = hot.text(args.top, style);
    if let Some(page) = &args.html {
        text.push_str(&format!("\nPage  {}\n", page.display()));
    }
    say::answer_in(&text, style)
}
