// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that was watched, as a run: what `tailbound show`, `report`, `compare`, `bound` and `blame`
//! read.
//!
//! Units: ns. Each watched thread is a measured thread: its wake-up latencies at the begin
//! of cycles are context `user`, its response times context `response`, which alone are held against the
//! deadline. What watching cannot know stands in `source.lost`.

use std::collections::BTreeMap;
use tailbound_core::order;

use tailbound_core::finding::Impact;
use tailbound_core::occurrence::Occurrence;
use tailbound_core::plan::{Clock, Means};
use tailbound_core::record::{
    Clocks, End, Event, ExceedanceRecord, Facts, Header, SCHEMA, SelfCost, Source, ThreadRecord,
};
use tailbound_core::rules::{self, ViolationRecord};
use tailbound_core::units::grouped;
use tailbound_core::{
    Context, CpuSet, EndReason, Finding, Plan, Policy, Requirement, Run, ThreadEnd, utc,
};
use tailbound_record::watched::{LateWakeUp, WatchOutcome, WatchedThread};

use crate::watched_tasks::TaskModels;

/// What else is known of it.
#[derive(Clone, Debug)]
pub struct About {
    /// The command line of this program.
    pub command: Vec<String>,
    /// What was watched, for people.
    pub name: String,
    /// The machine.
    pub machine: Facts,
    /// What the clocks read when it began.
    pub began: Clocks,
    /// How long it took.
    pub measured_ns: i64,
    /// How it ended.
    pub reason: EndReason,
    /// What response times are held against.
    pub deadline_ns: Option<i64>,
    /// What recording one event costs, where it could be measured.
    pub event_ns: Option<i64>,
    /// Rules for real-time programs that were broken, where they were asked for.
    pub violations: Vec<ViolationRecord>,
}

/// Threads of which there is nothing to tell.
#[must_use]
pub fn without_cycles(watched: &WatchOutcome) -> Vec<String> {
    let mut notes = Vec::new();
    let idle: Vec<String> = watched
        .threads
        .iter()
        .filter(|t| t.cycles.cycles == 0)
        .map(|t| format!("{} {}", t.cycles.name, t.cycles.tid))
        .collect();
    if !idle.is_empty() {
        notes.push(format!("no whole cycle was seen of {}", idle.join(", ")));
    }
    if watched.threads.is_empty() {
        notes.push(match watched.others {
            0 => "no thread was there".to_owned(),
            n => format!(
                "no real-time thread was there, {n} others were: ask for them with --all or --comm NAME"
            ),
        });
    }
    notes
}

/// The run.
#[must_use]
pub fn run_of(watched: WatchOutcome, about: About, mut tasks: TaskModels) -> Run {
    let plan = plan(&watched, &about);
    let mut run = Run::new(header(plan, &about));
    run.events.push(Event {
        clocks: Some(about.began),
        ..Occurrence::WarmUpOver { note: "watching began" }.at(0)
    });
    run.findings = findings(&watched, &about);
    let mut cost = SelfCost::new();
    if let Some(ns) = about.event_ns {
        cost.insert("watch_event_ns".to_owned(), tailbound_core::number::Real::real(ns));
    }
    run.self_cost = cost;
    for thread in &watched.threads {
        tasks.jobs(thread.jobs.iter().map(|job| (thread.cycles.tid, *job)));
    }
    run.tasks = tasks.records(&watched.threads);
    let all = watched.threads.iter().map(|t| t.cycles.thread.saturating_add(1)).max().unwrap_or(0);
    for thread in watched.threads.into_iter().filter(|t| t.cycles.cycles > 0) {
        add(&mut run, thread, all, &about);
    }
    run.violations.clone_from(&about.violations);
    order::by_key(&mut run.exceedances, |e| e.t_ns);
    order::by_key(&mut run.blocks, |b| (b.second, b.thread));
    order::by_key(&mut run.seconds, |s| (s.second, s.thread));
    let lines = run.lines().count() as u64;
    run.end = Some(End { reason: about.reason, measured_ns: about.measured_ns, lines });
    tailbound_stats::judge(&mut run);
    run
}

/// `all`: the number of the first thread that is none; the seconds of a thread are of its wake-ups, so that
/// its responses have a number of their own.
fn add(run: &mut Run, thread: WatchedThread, all: u32, about: &About) {
    let WatchedThread { cycles, mut late, seconds, blocks, .. } = thread;
    order::by_key(&mut late, |l| l.activation);
    let counters = BTreeMap::from([("page_faults".to_owned(), cycles.page_faults)]);
    let ended = match about.reason {
        EndReason::Complete => ThreadEnd::Complete,
        _ => ThreadEnd::Stopped,
    };
    let mut dropped = BTreeMap::new();
    if cycles.broken > 0 {
        dropped.insert("cycles".to_owned(), cycles.broken);
    }
    let record = |thread, context, wakeup| ThreadRecord {
        thread,
        cpu: cycles.cpu,
        context,
        wakeup,
        counters: counters.clone(),
        dropped: dropped.clone(),
        ended: ended.clone(),
        ..ThreadRecord::default()
    };
    run.threads.push(record(cycles.thread, Context::User, cycles.wakeup.clone()));
    let mut response =
        record(cycles.thread.saturating_add(all), Context::Response, cycles.response.clone());
    if let Some(deadline) = about.deadline_ns {
        let requirement = Requirement { deadline_ns: Some(deadline), ..Requirement::default() };
        response.requirement = Some(Box::new(requirement));
    }
    run.threads.push(response);
    run.exceedances.extend(late.iter().map(|LateWakeUp { activation, record: r }| {
        ExceedanceRecord {
            thread: r.thread,
            activation: *activation,
            error_ns: r.latency_ns,
            t_ns: r.t_ns.saturating_add(r.latency_ns),
            missed: 0,
        }
    }));
    run.seconds.extend(seconds);
    run.blocks.extend(blocks);
    run.blames.extend(late.into_iter().map(|l| l.record));
    run.cycles.push(cycles);
}

fn plan(watched: &WatchOutcome, about: &About) -> Plan {
    let first = watched.threads.iter().find(|t| t.cycles.cycles > 0).map(|t| &t.cycles);
    let cycles = watched.threads.iter().map(|t| t.cycles.cycles).max().unwrap_or(0);
    Plan {
        name: Some(about.name.clone()),
        probe: "watch".to_owned(),
        options: BTreeMap::new(),
        event: Some("cycle".to_owned()),
        property: None,
        interval_ns: first.and_then(|c| c.pace.period_ns).unwrap_or(0),
        activations: cycles,
        warm_up_ns: 0,
        cpus: watched.threads.iter().filter_map(|t| t.cycles.cpu).collect::<CpuSet>(),
        policy: first.map_or(Policy::Other, |c| c.policy),
        clock: Clock::Monotonic,
        means: Means::NotTold,
        loads: Vec::new(),
        requirement: Requirement::default(),
        cpu_dma_latency_us: None,
        raw: false,
        paranoid: false,
        observe: None,
        blame: Some(tailbound_core::plan::BlamePlan { above_ns: None, optional: false }),
        tasks: None,
        spread: None,
        timer_slack_ns: None,
        tune: None,
        work: None,
        until: None,
    }
}

fn header(plan: Plan, about: &About) -> Header {
    let started = utc::from_ns(about.began.realtime_ns);
    let compact: String = started.chars().filter(char::is_ascii_alphanumeric).collect();
    let fraction = about.began.realtime_ns.rem_euclid(1_000_000_000);
    let tool = format!("tailbound {}", env!("CARGO_PKG_VERSION"));
    Header {
        schema: SCHEMA.to_owned(),
        tool: tool.clone(),
        id: format!("{compact}-{fraction:08x}-{}", std::process::id()),
        started,
        command: about.command.clone(),
        plan,
        machine: about.machine.clone(),
        source: Some(Source {
            tool,
            format: "watched threads of another program".to_owned(),
            file: about.name.clone(),
            lost: vec![
                "A wake-up latency ends when the CPU goes over to the thread: the way back to user mode is in its cycle.".to_owned(),
                "The plan's interval and policy are those of the first thread; each has its own in its line `cycle`.".to_owned(),
                "What else ran on the machine is not known: no load was started by the tool.".to_owned(),
            ],
        }),
        lab: None,
        round: None,
        purpose: None,
    }
}

fn findings(watched: &WatchOutcome, about: &About) -> Vec<Finding> {
    let mut out = watched.recorded.findings.clone();
    let cost = about.event_ns.map_or_else(
        || "what one event costs could not be measured".to_owned(),
        |ns| format!("one event costs about {}", tailbound_core::units::format_ns_i64(ns)),
    );
    out.push(
        Finding::listed(
            "watched",
            Impact::Notice,
            format!("the kernel's events of scheduler, timers, interrupts, locks and the threads' system calls were recorded; {cost}"),
        ),
    );
    if watched.recorded.lost > 0 {
        out.push(
            Finding::new(
                "trace-lost",
                Impact::Doubt,
                format!(
                    "{} trace events were overwritten before they were read",
                    grouped(watched.recorded.lost)
                ),
            )
            .meaning(
                "Cycles whose begin or end is not sure are not counted; they may be the longest.",
            )
            .remedy("Watch while less else runs, or fewer threads (--comm)."),
        );
    }
    if !about.violations.is_empty() {
        out.push(Finding::listed(
            "rules-broken",
            Impact::Violation,
            rules::sentence(&about.violations),
        ));
    }
    let unsure = |t: &&WatchedThread| t.cycles.broken > 0;
    let broken: u64 = watched.threads.iter().filter(unsure).map(|t| t.cycles.broken).sum();
    if broken > 0 && watched.recorded.lost == 0 {
        out.push(Finding::listed(
            "cycles-broken",
            Impact::Doubt,
            match broken {
                1 => "1 cycle is not counted: events of its begin or end are missing".to_owned(),
                n => format!(
                    "{} cycles are not counted: events of their begin or end are missing",
                    grouped(n)
                ),
            },
        ));
    }
    out
}
