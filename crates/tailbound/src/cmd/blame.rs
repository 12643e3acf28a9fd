// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blame`: who made wake-ups late, of a run, of a trace that another tool recorded, or of a
//! process that runs.

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::blame::{BlameRecord, KernelKind};
use tailbound_files::read::{self, StartedFile};
use tailbound_files::trace::{self, TraceOrRun};
use tailbound_host::Root;
use tailbound_record::follow_session::{FollowEnd, FollowRequest, follow};
use tailbound_record::looks::Looks;
use tailbound_record::progress_line::ProgressLine;
use tailbound_report::blame::{
    self as words, BlameAnswer, FollowedThreads, ThreadPriority, ThreadRow,
};
use tailbound_trace::blame::{BlameSelection, BlameSummary};

use super::blame_answer::{LateWakeups, above_ns};
use super::blame_trace;
use crate::cli_blame::BlameArgs;
use crate::cli_process::Subject;
use crate::flags;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// Most records of a trace that are kept.
const KEEP_MAX: usize = 10_000;

/// `tailbound blame`
pub(crate) fn blame(args: &BlameArgs) -> Result<ExitCode, Failure> {
    if args.keep == 0 || args.keep > KEEP_MAX {
        return Err(Failure::usage(format!("--keep: {} is not 1 to {KEEP_MAX}", args.keep)));
    }
    for page in args.html.iter().chain(&args.perfetto) {
        input::may_write(page, Existing::replaced_if(args.force))?;
    }
    let answer = match args.process.subject(args.target.as_deref()) {
        Subject::Process(typed) => process(args, typed)?,
        Subject::File(_) if args.duration.is_some() => {
            return Err(Failure::usage("-D: only with a process"));
        }
        Subject::File(path) => match trace::open(path)? {
            TraceOrRun::Trace(trace) => blame_trace::answer(args, path, trace)?,
            TraceOrRun::Run(file) => run_file(args, path, file)?,
        },
    };
    tell(args, &answer)?;
    Ok(ExitCode::SUCCESS)
}

fn run_file(args: &BlameArgs, path: &Path, file: StartedFile) -> Result<LateWakeups, Failure> {
    let above = above_ns(args)?;
    let skip = ["raw", "window", "second", "block"];
    let run = read::run_of(path, file, &skip, &mut input::reading(None))?;
    if run.blames.is_empty() {
        let Some(plan) = run.header.plan.blame else {
            return Err(Failure::usage(format!(
                "{}: the run was made without --blame, so nothing is known about its causes; measure again with `tailbound run --blame`",
                path.display()
            )));
        };
        let notes = vec![words::none_taken_apart(&run, plan.above_ns)];
        return Ok(LateWakeups { name: input::name(path), notes, ..LateWakeups::default() });
    }
    let wanted = |r: &BlameRecord| {
        r.latency_ns > above
            && (args.process.comm.is_empty() || args.process.comm.contains(&r.name))
    };
    let notes = words::findings_of(&run);
    let kernel = KernelKind::of_facts(&run.header.machine);
    let records = run.blames.into_iter().filter(wanted).collect();
    Ok(LateWakeups { name: input::name(path), records, kernel, notes, ..LateWakeups::default() })
}

fn process(args: &BlameArgs, typed: Option<u32>) -> Result<LateWakeups, Failure> {
    let length = flags::length(args.duration.as_deref().unwrap_or("10s"))?;
    let root = Root::real();
    let pid = args.process.find_one(&root, typed)?;
    let above_ns = above_ns(args)?;
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let looks = Looks::begin(Some(length)).map_err(Failure::cannot)?;
    let realtime = !args.all && args.process.comm.is_empty();
    let machine = tailbound_host::inventory(&root);
    let request = FollowRequest {
        pid,
        comm: args.process.comm.clone(),
        wanted: BlameSelection { realtime, above_ns, most: args.keep },
        plain: args.plain,
        virtual_machine: tailbound_host::is_virtual_machine(&machine),
    };
    let mut line = ProgressLine::new(say::progress(false));
    let ended = follow(root, &exe, request, looks, &mut line);
    drop(line);
    let FollowEnd { mut found, notes: told } =
        ended.map_err(|e| Failure::cannot(format!("blame {pid}: {e}")))?;
    let mut notes = vec![format!(
        "only the way from each wake-up to the CPU is judged here: what delays this program within its cycles (locks, system \
         calls, its own work) is told by `tailbound watch {pid}`"
    )];
    notes.extend(told);
    let records = std::mem::take(&mut found.records);
    let (name, kernel) = (format!("process {pid}"), KernelKind::of_facts(&machine));
    Ok(LateWakeups { name, records, kernel, found: Some(found), notes, ..LateWakeups::default() })
}

/// For the report.
fn followed(found: &BlameSummary) -> FollowedThreads<'_> {
    let rows = found.threads.iter().map(|(pid, t)| ThreadRow {
        pid: *pid,
        comm: &t.comm,
        priority: ThreadPriority::of_kernel(t.prio),
        cpu: (!t.moved).then_some(t.cpu),
        wakeups: &t.wakeups,
    });
    let span = found.span_ns.map_or(0, |(from, to)| to.saturating_sub(from));
    FollowedThreads {
        rows: rows.collect(),
        events: found.events,
        late: found.late,
        span_ns: i64::try_from(span).unwrap_or(i64::MAX),
        ordinary: found.ordinary,
    }
}

fn tell(args: &BlameArgs, answer: &LateWakeups) -> Result<(), Failure> {
    let existing = Existing::replaced_if(args.force);
    if let Some(page) = &args.html {
        input::write(page, &words::html(&answer.records, answer.kernel, &answer.name), existing)?;
    }
    if let Some(file) = &args.perfetto {
        let bytes = tailbound_report::export::late_wakeups(&answer.records, &answer.name);
        input::write_bytes(file, &bytes, existing)?;
    }
    let told = BlameAnswer {
        records: &answer.records,
        kernel: answer.kernel,
        followed: answer.found.as_ref().map(followed),
        origin: answer.origin.as_deref(),
        trace: answer.trace.as_ref(),
        notes: &answer.notes,
    };
    if args.json {
        return say::answer_json(&told.json());
    }
    let style = say::style(args.color.when);
    let mut text = told.text(args.worst, style);
    if let Some(page) = &args.html {
        text.push_str(&format!("\nPage  {}\n", page.display()));
    }
    if let Some(file) = &args.perfetto {
        text.push_str(&format!("\nTrace for ui.perfetto.dev  {}\n", file.display()));
    }
    say::answer_in(&text, style)
}
