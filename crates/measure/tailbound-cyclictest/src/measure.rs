// SPDX-License-Identifier: MIT OR Apache-2.0
//! From words to a run, and to what cyclictest prints of it.
//!
//! Context: SETUP and COLD.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use tailbound_core::cpus::CpuSet;
use tailbound_host::{Cpus, Root, machine_lock};
use tailbound_run::{Request, RunError, SamplesTo, Session, resolve};
use tailbound_sys::new_file::{self, Existing};
use tailbound_sys::signal::Signals;
use tailbound_sys::{clock, sched};
use tailbound_tune::dma_latency;

use crate::error::CyclictestError;
use crate::json::{self, JsonThread, Surroundings};
use crate::options::{Idle, Options, Screen};
use crate::placement::{self, Placement};
use crate::screen::Viewer;
use crate::{help, histogram, run_file, words};

/// From one look to the next.
const REFRESH_MS: u32 = 100;

/// Where it prints.
pub struct Console<'a> {
    /// What cyclictest prints.
    pub out: &'a mut dyn Write,
    /// Everything else.
    pub note: &'a mut dyn FnMut(&str),
}

/// Does what cyclictest would with `arguments`, and ends with its status.
pub fn main(arguments: &[OsString], mut console: Console<'_>) -> ExitCode {
    let arguments: Vec<String> =
        arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match measured(&arguments, &mut console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            (console.note)(&format!("cyclictest: {e}"));
            ExitCode::FAILURE
        }
    }
}

/// # Errors
/// Nothing was measured, or a file that was asked for cannot be written.
fn measured(arguments: &[String], console: &mut Console<'_>) -> Result<(), CyclictestError> {
    let options = Options::of(words::parse(arguments)?)?;
    if options.help {
        // A reader that went away has seen enough.
        console.out.write_all(help::help().as_bytes()).unwrap_or_default();
        return Ok(());
    }
    let root = Root::real();
    let machine = Cpus::read(&root)?;
    let mut placement = Placement::of(&options, &machine)?;
    placement.notes.drain(..).for_each(|text| (console.note)(&text));
    if let Some(list) = &options.main_cpus {
        let cpus: CpuSet = machine.resolve(placement::plain(list, "--mainaffinity")?)?;
        let cpus: Vec<u32> = cpus.iter().collect();
        sched::set_affinity(0, &cpus).map_err(CyclictestError::MainAffinity)?;
    }
    let mut begin = of_machine(&options, &placement, &root);
    let held = idle(&options, &mut placement, &mut begin, console);
    begin.push_str(&of_threads(&options, &placement));
    let request = Request { config: placement.config.clone(), bare: true };
    let resolved = resolve(&request, &root)?;
    let session = Session {
        plan: resolved.plan,
        findings: resolved.findings,
        command: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        root: root.clone(),
        exe: std::env::current_exe().unwrap_or_default(),
        loads_optional: false,
        inventory_late: false,
        refresh_ms: REFRESH_MS,
        virtual_time: false,
        round: None,
        purpose: resolved.purpose,
        machine: Some(machine_lock::share()?),
        samples: SamplesTo::Viewer,
        begin_at_ns: None,
        actions: tailbound_run::Actions::default(),
    };
    let path = run_file::path(&options, std::env::var_os(run_file::OUT_VARIABLE));
    let output = run_file::open(path.as_deref(), &session.header().plan, console.note)?;
    let signals = Signals::block_and_open()?;
    let asking = Signals::asking_for_status()?;
    let shown = (placement.policy.shown(), placement.policy.priority);
    let mut viewer = Viewer::new(&options, placement.cpus.len(), shown, &root, console.out);
    viewer.print(&begin);
    let start_s = now_s();
    let made = tailbound_run::run(session, resolved.probe, output, &signals, &mut |view| {
        viewer.see(view, console.note);
        if asking.wait(0).is_some() {
            viewer.status(console.note);
        }
    });
    let end_s = now_s();
    drop(held);
    match made {
        Ok((run, _)) => viewer.correct(&run, console.note),
        // The figures are there all the same.
        Err(e @ (RunError::SavedElsewhere { .. } | RunError::Lost { .. })) => {
            (console.note)(&e.to_string());
        }
        Err(e) => return Err(e.into()),
    }
    viewer.end();
    // As cyclictest would have it: importers know by it what the file does not say.
    let line = || format!("cyclictest {}", arguments.join(" "));
    let around = || Surroundings::read(&root, line(), start_s, end_s);
    end(&options, &mut viewer, &placement.cpus, around)
}

/// The summary, the histogram, the break, and the file of `--json`.
fn end(
    options: &Options,
    viewer: &mut Viewer<'_>,
    cpus: &[u32],
    around: impl FnOnce() -> Surroundings,
) -> Result<(), CyclictestError> {
    if let Some(path) = &options.json {
        let threads = viewer.tallies().into_iter().zip(cpus);
        let threads: Vec<_> = threads.map(|(tally, cpu)| JsonThread { tally, cpu: *cpu }).collect();
        let text = json::text(&around(), options.unit, &threads);
        // The second is a link, which no file replaces.
        match [Path::new("-"), Path::new("/dev/stdout")].contains(&path.as_path()) {
            true => viewer.print(&text),
            false => written(path, &text)?,
        }
    }
    if options.quiet && options.rows == 0 {
        let lines = viewer.lines();
        viewer.print(&lines);
    }
    if options.rows > 0 {
        let text = histogram::text(&viewer.tallies(), options.columns);
        match &options.histfile {
            Some(path) => written(path, &text)?,
            None => viewer.print(&text),
        }
    }
    if options.break_at > 0 {
        let tids = viewer.tids();
        let mut text: String = String::from("# Thread Ids:");
        tids.iter().for_each(|tid| text.push_str(&format!(" {tid:05}")));
        text.push('\n');
        if let Some(first) = viewer.broken {
            let tid = tids.get(first.thread).copied().unwrap_or(0);
            let _ = write!(text, "# Break thread: {tid}\n# Break value: {}\n", first.latency);
        }
        viewer.print(&text);
    }
    Ok(())
}

/// What `-v` prints of the machine.
fn of_machine(options: &Options, placement: &Placement, root: &Root) -> String {
    if options.screen() != Screen::Latencies {
        return String::new();
    }
    let count = |file: &str| {
        let cpus = root.cpus(&format!("/sys/devices/system/cpu/{file}"));
        cpus.map_or_else(|_| "unknown".to_owned(), |cpus| cpus.len().to_string())
    };
    let mut text = format!("Max CPUs = {}\nOnline CPUs = {}\n", count("present"), count("online"));
    if options.cpus.is_some() {
        let _ = writeln!(text, "Using {} cpus.", placement.usable);
    }
    text
}

/// What `-v` prints of the threads before the first latency.
fn of_threads(options: &Options, placement: &Placement) -> String {
    let mut text = String::new();
    if options.screen() != Screen::Latencies {
        return text;
    }
    for (thread, cpu) in placement.cpus.iter().enumerate() {
        if options.cpus.is_some() {
            let _ = writeln!(text, "Thread {thread} using cpu {cpu}.");
        }
        let _ = writeln!(text, "Thread {thread} Interval: {}", options.interval_us);
    }
    text
}

/// Holds /dev/cpu_dma_latency where that is possible, as cyclictest does before all else.
fn idle(
    options: &Options,
    placement: &mut Placement,
    begin: &mut String,
    console: &mut Console<'_>,
) -> Option<dma_latency::DmaLatency> {
    let Idle::HeldAt(us) = options.idle else { return None };
    match dma_latency::hold(us) {
        Ok(held) => {
            let _ = writeln!(begin, "# /dev/cpu_dma_latency set to {us}us");
            Some(held)
        }
        Err(e) => {
            (console.note)(&format!("WARN: /dev/cpu_dma_latency is not set: {e}"));
            placement.config.cpu_dma_latency = None;
            None
        }
    }
}

fn written(path: &Path, text: &str) -> Result<(), CyclictestError> {
    new_file::write(path, Existing::Replace, text.as_bytes())
        .map_err(|source| CyclictestError::Unwritable { path: path.to_owned(), source })
}

fn now_s() -> i64 {
    clock::now_ns(clock::CLOCK_REALTIME).div_euclid(1_000_000_000)
}
