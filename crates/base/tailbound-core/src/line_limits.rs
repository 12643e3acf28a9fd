// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which number of which record of a run has which limit.
//!
//! Units: as the names say. Not here: the limits ([`crate::limits`]).

use crate::Run;
use crate::blame::BlameRecord;
use crate::cycle::CycleRecord;
use crate::distribution::Distribution;
use crate::disturbance::DisturbanceRecord;
use crate::limits::{
    BLAME_PARTS_MAX, BLAME_SPANS_MAX, CONTEXTS_MAX, CYCLE_CAUSES_MAX, CYCLE_JOBS_MAX, FINDINGS_MAX,
    LimitError, PATHS_LIST_MAX, PLAN_MAX, PULSES_MAX, RAW_SAMPLES_MAX, ROUNDS_MAX, SECOND_MAX,
    STACK_FRAMES_MAX, TASK_LIST_MAX, THREADS_MAX, TOTAL_MAX, beyond, count, ns,
};
use crate::paths::PathsRecord;
use crate::pulses::{AnsweredPulse, AnsweredPulses, PulseJoin, PulseSplit, SentPulses};
use crate::record::{Header, Line, SecondRecord, ThreadRecord};
use crate::rules::ViolationRecord;
use crate::sums_as_text::is_bounded;
use crate::tasks::TaskRecord;

/// Says which number of a line is beyond what a run file may hold.
///
/// # Errors
/// Its name and the limit.
pub fn check(line: &Line) -> Result<(), LimitError> {
    match line {
        Line::Header(h) => header(h),
        Line::Event(e) => ns("t_ns", [e.t_ns]),
        Line::Second(s) => second(s),
        Line::Window(w) => second_no(w.second).and_then(|()| count("n", [w.n])),
        Line::Block(b) => {
            second_no(b.second.max(b.seconds))?;
            count("n", [b.n])?;
            b.sums.as_ref().map_or(Ok(()), is_bounded)
        }
        Line::Exceedance(e) => {
            ns("error_ns", [e.error_ns])?;
            ns("t_ns", [e.t_ns])?;
            count("activation", [e.activation, e.missed])
        }
        Line::Blame(b) => blame(b),
        Line::Task(t) => task(t),
        Line::Cycle(c) => cycle(c),
        Line::Violation(v) => violation(v),
        Line::Paths(p) => paths(p),
        Line::Disturbance(d) => disturbance(d),
        Line::SentPulses(p) => sent_pulses(p),
        Line::AnsweredPulses(p) => answered_pulses(p),
        Line::PulseJoin(j) => pulse_join(j),
        Line::Load(l) => ns("t_ns", [l.t_ns, l.span_ns]).and_then(|()| count("count", [l.count])),
        Line::Benchmark(w) => {
            ns("real_ns", [w.real_ns, w.user_ns, w.sys_ns])?;
            ns("t_ns", w.intervals.iter().map(|i| i.t_ns))?;
            count("count", w.intervals.iter().map(|i| i.count).chain([w.count]))
        }
        Line::Timeline(t) => {
            let spans = t.lanes.iter().flat_map(|l| &l.spans);
            ns("to_ns", spans.flat_map(|s| [s.from_ns, s.to_ns]))
        }
        Line::Raw(r) if r.n > RAW_SAMPLES_MAX => Err(beyond("n is", RAW_SAMPLES_MAX)),
        Line::Raw(r) => count("from", [r.from]),
        Line::Thread(t) => thread(t),
        Line::Verdict(v) => count("due", [v.due, v.beyond, v.beyond_unknown]),
        Line::End(e) => ns("measured_ns", [e.measured_ns]).and_then(|()| count("lines", [e.lines])),
        Line::Figure(_) | Line::SelfCost { .. } | Line::After { .. } | Line::Finding(_) => Ok(()),
    }
}

fn disturbance(d: &DisturbanceRecord) -> Result<(), LimitError> {
    let most = d.cpus.len().max(d.above.len()).max(d.unread.len());
    if most > THREADS_MAX {
        return Err(beyond("CPUs of a disturbance", THREADS_MAX));
    }
    let cpus = d
        .cpus
        .iter()
        .flat_map(|c| [c.steal_ns, c.interrupt_ns, c.softirq_ns, c.waited_ns, c.frequency_khz]);
    let m = &d.machine;
    let pressure = [m.cpu_pressure_ns, m.io_pressure_ns, m.memory_pressure_ns, m.irq_pressure_ns];
    ns("t_ns", [d.t_ns, d.span_ns])?;
    ns("steal_ns", cpus)?;
    ns("machine", pressure.into_iter().chain([m.quota_ns, m.smis]))?;
    ns("above", d.above.iter().map(|a| a.ns))
}

fn blame(b: &BlameRecord) -> Result<(), LimitError> {
    let most = b.parts.len().max(b.chain.len()).max(b.lanes.len());
    if most > BLAME_PARTS_MAX {
        return Err(beyond("parts of a late wake-up", BLAME_PARTS_MAX));
    }
    if b.parts.iter().any(|p| p.stack.len() > BLAME_PARTS_MAX) {
        return Err(beyond("functions of a stack", BLAME_PARTS_MAX));
    }
    if b.lanes.iter().any(|l| l.spans.len() > BLAME_SPANS_MAX) {
        return Err(beyond("spans of one CPU", BLAME_SPANS_MAX));
    }
    ns("t_ns", [b.t_ns, b.latency_ns, b.tracing_ns])?;
    ns("from_ns", b.parts.iter().flat_map(|p| [p.from_ns, p.ns]))?;
    ns("to_ns", b.lanes.iter().flat_map(|l| &l.spans).flat_map(|s| [s.from_ns, s.to_ns]))
}

fn task(t: &TaskRecord) -> Result<(), LimitError> {
    let lists = [
        &t.distance_min_ns,
        &t.distance_max_ns,
        &t.execution_max_ns,
        &t.execution_min_ns,
        &t.suspension_max_ns,
        &t.blocked_max_ns,
        &t.latency_max_ns,
        &t.unwatched_max_ns,
    ];
    if lists.iter().map(|l| l.len()).chain([t.cpus.len()]).any(|n| n > TASK_LIST_MAX) {
        return Err(beyond("entries of a list of a task", TASK_LIST_MAX));
    }
    count("jobs", [t.jobs, t.lost, t.arrival.skipped])?;
    ns("the lists of a task", lists.iter().flat_map(|l| l.iter().copied()))?;
    let a = &t.arrival;
    ns("period_ns", a.period_ns.into_iter().chain(a.jitter_ns).chain(a.offset_ns))?;
    let seen = [&t.response, &t.suspension, &t.blocked, &t.latency, &t.section, &t.unwatched];
    ns("ns", seen.iter().flat_map(|o| [o.ns, o.t_ns]).chain([t.from_ns, t.to_ns]))
}

/// As [`check`], of every line of a run that did not come from a run file.
///
/// # Errors
/// The first of [`check`]; too many threads, contexts or findings.
pub fn check_run(run: &Run) -> Result<(), LimitError> {
    lists(run)?;
    whole(run)?;
    ns("measured_ns", [run.measured_ns()])?;
    run.lines().try_for_each(|line| check(&line))
}

/// What only the whole run tells: too many different contexts (each has tables and pictures of its
/// own), or more activations than can be added up, of this run and thousands of others.
///
/// # Errors
/// Which.
pub(crate) fn whole(run: &Run) -> Result<(), LimitError> {
    let found: std::collections::HashSet<_> = run.threads.iter().map(|t| &t.context).collect();
    if found.len() > CONTEXTS_MAX {
        return Err(beyond("contexts", CONTEXTS_MAX));
    }
    let of = |d: &Distribution| d.n.max(d.late.total().saturating_add(d.early.total()));
    let threads = run.threads.iter().map(|t| of(&t.wakeup).saturating_add(of(&t.missed)));
    let blocks = run.blocks.iter().map(|b| {
        let early = b.early.as_ref().map_or(0, |e| e.total());
        b.n.max(b.late.total().saturating_add(early))
    });
    for all in [threads.fold(0, u64::saturating_add), blocks.fold(0, u64::saturating_add)] {
        if all > TOTAL_MAX {
            return Err(beyond("activations of all threads together are", TOTAL_MAX));
        }
    }
    Ok(())
}

/// Too many threads or findings?
///
/// # Errors
/// Which.
pub(crate) fn lists(run: &Run) -> Result<(), LimitError> {
    if run.threads.len() > THREADS_MAX {
        return Err(beyond("records of threads and contexts", THREADS_MAX));
    }
    if run.tasks.len() > THREADS_MAX {
        return Err(beyond("watched threads", THREADS_MAX));
    }
    if run.findings.len() > FINDINGS_MAX {
        return Err(beyond("findings", FINDINGS_MAX));
    }
    Ok(())
}

fn header(h: &Header) -> Result<(), LimitError> {
    let (plan, wanted) = (&h.plan, &h.plan.requirement);
    if plan.interval_ns < 0 {
        return Err(LimitError::NegativeInterval);
    }
    ns("the plan's interval_ns", [plan.interval_ns, plan.warm_up_ns])?;
    ns("the plan's timer_slack_ns", plan.timer_slack_ns)?;
    ns("the deadline", wanted.deadline_ns.into_iter().chain(wanted.early_ns))?;
    ns("the rate's time", wanted.rate.map(|r| r.per_ns))?;
    count("the plan's activations", [plan.activations])?;
    let benchmarks = plan.work.as_ref().map_or(0, |w| w.benchmarks.len());
    let quantiles = plan.until.as_ref().map_or(0, |u| u.quantiles.len());
    if plan.loads.len().max(benchmarks).max(quantiles) > PLAN_MAX {
        return Err(beyond("the plan's loads, benchmarks or quantiles are", PLAN_MAX));
    }
    match &h.round {
        Some(r) if r.rounds.max(r.round).max(r.place) > ROUNDS_MAX => {
            Err(beyond("the round is", ROUNDS_MAX))
        }
        _ => Ok(()),
    }
}

fn second(s: &SecondRecord) -> Result<(), LimitError> {
    second_no(s.second)?;
    if s.n.max(s.missed) > SECOND_MAX {
        return Err(beyond("n or missed of one second is", SECOND_MAX));
    }
    count("argmax", [s.argmax])?;
    // Without a wake-up there are no extremes, and the recorder's first values stand there.
    ns("sum_ns", [s.sum_ns])?;
    if s.n > 0 { ns("min_ns or max_ns", [s.min_ns, s.max_ns]) } else { Ok(()) }
}

fn violation(v: &ViolationRecord) -> Result<(), LimitError> {
    if v.first.stack.frames.len().max(v.worst.stack.frames.len()) > STACK_FRAMES_MAX {
        return Err(beyond("frames of a stack", STACK_FRAMES_MAX));
    }
    count("n", [v.n])?;
    ns("t_ns", [v.first.t_ns, v.worst.t_ns])?;
    ns("cost", [v.total, v.first.cost, v.worst.cost].into_iter().filter_map(|c| c.ns))
}

fn paths(p: &PathsRecord) -> Result<(), LimitError> {
    let handed_over = p.wakeups.iter().filter_map(|w| w.handed_over.as_ref());
    let trees = p.sections.iter().map(|s| &s.tree).chain(p.wakeups.iter().map(|w| &w.tree));
    let trees = trees.chain(handed_over.map(|h| &h.tree));
    let legs = p.wakeups.iter().map(|w| w.legs.len());
    let lists = [p.cpus.len(), p.totals.len(), p.sections.len(), p.wakeups.len(), p.curve.len()];
    if lists.into_iter().chain(legs).chain(trees.clone().map(Vec::len)).any(|n| n > PATHS_LIST_MAX)
    {
        return Err(beyond("entries of a list of exact paths", PATHS_LIST_MAX));
    }
    let lines = trees.flatten();
    count("calls", lines.clone().map(|line| line.calls))?;
    ns("time in a function", lines.flat_map(|line| [line.total_ns, line.own_ns]))?;
    count("sections", p.totals.iter().map(|t| t.n).chain(p.sections.iter().map(|s| s.n)))?;
    count("samples or delayed", [p.checks.samples, p.checks.delayed, p.checks.set_late])?;
    let several = p.checks.several.unwrap_or_default();
    count("turns", [several.turns, several.out_of_turn])?;
    count("wake-ups handed over", [several.handed_over, several.unexplained])?;
    count("a share", p.cpus.iter().filter_map(|c| c.share_permille))?;
    ns("what a CPU executed", p.cpus.iter().map(|c| c.executed_ns))?;
    ns("the window", [p.window_ns, p.checks.constant_ns, p.checks.drift_ppb])?;
    ns("a total of sections", p.totals.iter().flat_map(|t| [t.sum_ns, t.longest_ns]))?;
    ns("a section", p.sections.iter().flat_map(|s| [s.mean_ns, s.longest_ns, s.at_ns]))?;
    let own = p.totals.iter().map(|t| t.own_ns).chain(p.sections.iter().map(|s| s.own_ns));
    ns("what a CPU executed of a section", own.flatten())?;
    count("activation", p.wakeups.iter().map(|w| w.activation))?;
    ns("a wake-up", p.wakeups.iter().map(|w| w.latency_ns))?;
    let legs = p.wakeups.iter().flat_map(|w| &w.legs);
    ns("a leg", legs.clone().map(|leg| leg.ns).chain(legs.filter_map(|leg| leg.own_ns)))?;
    let behind = p.wakeups.iter().filter_map(|w| w.behind.as_ref());
    let own = behind.clone().filter_map(|b| b.own_ns);
    ns("a section in the way", behind.map(|b| b.ns).chain(own))?;
    ns("a point of the curve", p.curve.iter().map(|point| point.ns))
}

fn sent_pulses(p: &SentPulses) -> Result<(), LimitError> {
    let first = p.datagrams.as_ref().map_or(0, |d| d.first);
    count("pulses", [p.n, p.edges.unwrap_or(0), first])
}

fn answered_pulses(p: &AnsweredPulses) -> Result<(), LimitError> {
    if p.kept.len() > PULSES_MAX {
        return Err(beyond("pulses that are kept", PULSES_MAX));
    }
    count("edges", [p.edges.unwrap_or(0), p.unseen])?;
    let of = |a: &AnsweredPulse| [a.t_ns, a.start_ns.unwrap_or(0), a.work_ns, a.error_ns];
    ns("the time of an answer", p.kept.iter().flat_map(of).chain(p.others_at_most_ns))
}

fn pulse_join(j: &PulseJoin) -> Result<(), LimitError> {
    if j.splits.len().max(j.not_joined.len()) > PULSES_MAX {
        return Err(beyond("pulses that are joined", PULSES_MAX));
    }
    count("pulses", j.not_joined.iter().map(|n| n.n).chain([j.worst]))?;
    let of = |s: &PulseSplit| [s.t_ns, s.outside_ns, s.start_ns, s.work_ns, s.rest_ns, s.error_ns];
    ns("a part of a pulse", j.splits.iter().flat_map(of))
}

fn cycle(c: &CycleRecord) -> Result<(), LimitError> {
    if c.causes.len().max(c.worst.len()) > CYCLE_CAUSES_MAX {
        return Err(beyond("causes or longest cycles of a thread", CYCLE_CAUSES_MAX));
    }
    if c.jobs.len() > CYCLE_JOBS_MAX {
        return Err(beyond("cycles in figures of a thread", CYCLE_JOBS_MAX));
    }
    c.worst.iter().try_for_each(blame)?;
    [&c.wakeup, &c.execution, &c.blocked, &c.response].into_iter().try_for_each(distribution)?;
    count(
        "cycles",
        [c.cycles, c.broken, c.lossy, c.overruns, c.misses, c.page_faults, c.jobs_left_out],
    )?;
    let pace = [c.pace.period_ns, c.pace.jitter_ns, c.pace.least_ns, c.deadline_ns];
    ns("period_ns or deadline_ns", pace.into_iter().flatten())?;
    ns("total_ns", c.causes.iter().flat_map(|x| [x.total_ns, x.worst_ns]))?;
    ns("total_ns", c.late_reasons.iter().flat_map(|x| [x.total_ns, x.worst_ns]))?;
    ns("causes_left_out_ns", [c.causes_left_out_ns])?;
    ns("jobs", c.jobs.iter().flat_map(|j| <[i64; 5]>::from(*j)))
}

fn distribution(d: &Distribution) -> Result<(), LimitError> {
    count("n", [d.n, d.over_range, d.unbinned])?;
    ns("min_ns or max_ns", d.min_ns.into_iter().chain(d.max_ns).chain(d.unbinned_from_ns))?;
    ns("quantiles", d.quantiles.values())?;
    if !d.quantiles.is_sound() {
        return Err(LimitError::Quantiles);
    }
    ns("resolution_ns", [i64::try_from(d.resolution_ns).unwrap_or(i64::MAX)])?;
    d.sums.as_ref().map_or(Ok(()), is_bounded)
}

fn thread(t: &ThreadRecord) -> Result<(), LimitError> {
    distribution(&t.wakeup)?;
    distribution(&t.missed)?;
    if let Some(w) = &t.warm_up {
        count("the warm-up's n", [w.n, w.missed])?;
        ns("the warm-up's max_ns", w.max_ns)?;
    }
    // Counters and losses are shown and, of one thread, never added up.
    Ok(())
}

fn second_no(second: u64) -> Result<(), LimitError> {
    if second > SECOND_MAX { Err(beyond("the second is", SECOND_MAX)) } else { Ok(()) }
}
