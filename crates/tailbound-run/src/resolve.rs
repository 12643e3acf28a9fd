// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what was typed to a plan with nothing left open, or a clear refusal.
//!
//! Context: SETUP. Units: text in, ns out. Everything that can be wrong with words,
//! permissions or the machine is found here, before anything is started.

use std::collections::BTreeMap;

use tailbound_core::Spec;
use tailbound_core::cpus::CpuSet;
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::plan::{
    BenchmarkPlan, Clock, DURATION_MAX_NS, INTERVAL_MAX_NS, INTERVAL_MIN_NS, Means, Observe, Plan,
    RunConfig,
};
use tailbound_core::policy::Policy;
use tailbound_core::requirement::{Class, Rate, Requirement};
use tailbound_core::units::{self, format_ns_i64, parse_ns};
use tailbound_host::Root;
use tailbound_probe::{PlanOption, Prepared, ProbeError, ProbeKind, Setup, catalogue};
use tailbound_sys::clock;

use crate::error::RunError;
use crate::sleeps;

/// Most repetitions of a benchmark.
const REPEAT_MAX: u32 = 10_000;
/// Most measured threads that are not pinned: each keeps a histogram in locked memory.
const TASKS_MAX: u32 = 256;

/// Defaults of a plan, as on the command line.
pub mod defaults {
    /// `--duration`
    pub const DURATION: &str = "60s";
    /// `--warm-up`
    pub const WARM_UP: &str = "1s";
    /// `--repeat`: how many times a benchmark is run
    pub const REPEAT: u32 = 3;
    /// `--policy`, where it is allowed
    pub const POLICY_PRIORITY: u8 = 95;
    /// `--load` of a run: an idle machine says little about how late it can be.
    pub const LOADS: [&str; 2] = ["hackbench", "memory"];
}

/// What was asked for: options of the command line, else of the configuration file.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Every option, still as text.
    pub config: RunConfig,
    /// `--paranoid`
    pub paranoid: bool,
    /// A bare probe: no load unless one is named.
    pub bare: bool,
}

/// A plan and what was noticed while making it.
#[derive(Debug)]
pub struct Resolved {
    /// What to do.
    pub plan: Plan,
    /// Its probe, checked.
    pub probe: Prepared,
    /// What the reader must know: no permission for real-time priority, and the like.
    pub findings: Vec<Finding>,
    /// The loads are the default ones: where they cannot be started, that is a finding, not an
    /// error.
    pub loads_by_default: bool,
}

/// Splits `hackbench:groups=4,ipc=inet,memory` into its loads: a part that is an option or a
/// number belongs to the load before it.
#[must_use]
pub fn split_loads(text: &str) -> Vec<String> {
    let mut loads: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let option = part.find('=').is_some_and(|eq| part.find(':').is_none_or(|colon| eq < colon));
        let number = part.starts_with(|c: char| c.is_ascii_digit());
        match loads.last_mut() {
            Some(last) if option || number => {
                last.push(if last.contains(':') { ',' } else { ':' });
                last.push_str(part);
            }
            _ => loads.push(part.to_owned()),
        }
    }
    loads
}

fn usage<E: ToString>(flag: &str) -> impl FnOnce(E) -> RunError + '_ {
    move |e| RunError::Usage(format!("{flag}: {}", e.to_string()))
}

/// What a second kernel's sleep needs.
fn second_kernel(means: Means, policy: Policy, paranoid: bool) -> Result<(), RunError> {
    if !matches!(means, Means::Cobalt | Means::Evl) {
        return Ok(());
    }
    if paranoid {
        return Err(RunError::Usage(format!(
            "--paranoid cannot be given with --sleep {means}: Linux cannot filter the system calls of a second kernel"
        )));
    }
    if !matches!(policy, Policy::Fifo(_)) {
        return Err(RunError::Usage(format!(
            "--sleep {means} needs a real-time priority, for the second kernel too: --policy fifo:N"
        )));
    }
    Ok(())
}

/// Makes the plan.
///
/// # Errors
/// [`RunError::Usage`] for impossible options, [`RunError::Cannot`] for what this machine or
/// user cannot do.
pub fn resolve(request: &Request, root: &Root) -> Result<Resolved, RunError> {
    let w = &request.config;
    let mut findings = Vec::new();
    let clock = parse_or(w.clock.as_deref(), "--clock", Clock::Monotonic)?;
    let means = parse_or(w.sleep.as_deref(), "--sleep", Means::Nanosleep)?;
    let (kind, options) = probe(request)?;
    let interval_ns = time(w.interval.as_deref().unwrap_or(kind.interval), "--interval")?;
    if !(INTERVAL_MIN_NS..=INTERVAL_MAX_NS).contains(&interval_ns) {
        return Err(RunError::Usage(format!(
            "--interval: {} is outside {} to {}: below that the loop itself would fill the CPU",
            format_ns_i64(interval_ns),
            format_ns_i64(INTERVAL_MIN_NS),
            units::format_span(INTERVAL_MAX_NS)
        )));
    }
    let warm_up_ns = time(w.warm_up.as_deref().unwrap_or(defaults::WARM_UP), "--warm-up")?;
    if !(0..=DURATION_MAX_NS).contains(&warm_up_ns) {
        return Err(RunError::Usage("--warm-up: write 0s or more".to_owned()));
    }
    let mut requirement = requirement(w, clock)?;
    let until = crate::until::until(w, &mut requirement)?;
    let longest = crate::until::longest(until.as_ref(), &requirement, w, interval_ns)?;
    let activations = match longest {
        Some(n) => n,
        None => activations(w, interval_ns)?,
    };
    let cpus = cpus(w.cpus.as_deref().unwrap_or("all"), root)?;
    let policy = match (&w.policy, kind.policy) {
        // Its own way, which is no finding.
        (None, Some(own)) => own.parse().map_err(usage("--policy"))?,
        (given, _) => policy(given.as_deref(), &mut findings)?,
    };
    second_kernel(means, policy, request.paranoid)?;
    let spread = sleeps::spread(w.interval_spread.as_deref(), means)?;
    let timer_slack_ns = sleeps::timer_slack(w.timer_slack.as_deref(), policy, &mut findings)?;
    if let (Policy::Deadline { period_ns, .. }, true) = (policy, w.cpus.is_some()) {
        return Err(RunError::Usage(format!(
            "--cpus cannot be given with --policy {policy}: the kernel refuses to pin SCHED_DEADLINE threads (one with a period of {} runs per online CPU, unpinned)",
            format_ns_i64(period_ns.cast_signed())
        )));
    }
    let loads_by_default = !request.bare && w.load.is_none() && w.load_cmd.is_none();
    let loads = loads(request, loads_by_default, &mut findings)?;
    let work = benchmarks(w)?;
    let tasks = tasks(w.tasks, policy)?;
    sleeps::one_itimer(means, tasks.map_or(cpus.len() as u64, u64::from))?;
    let cpu_dma_latency_us = w.cpu_dma_latency.as_deref().map(dma_latency).transpose()?;
    let observe = w.observe.as_deref().map(|word| observe(word, root, clock, means)).transpose()?;
    let plan = Plan {
        name: w.name.clone(),
        probe: kind.name.to_owned(),
        options,
        event: kind.event.map(str::to_owned),
        property: kind.property.map(str::to_owned),
        interval_ns,
        activations,
        warm_up_ns,
        cpus,
        policy,
        clock,
        means,
        loads,
        requirement,
        cpu_dma_latency_us,
        raw: w.raw.unwrap_or(false),
        paranoid: request.paranoid,
        observe,
        tasks,
        spread,
        timer_slack_ns,
        work,
        until,
    };
    let probe = prepare(&plan, root)?;
    Ok(Resolved { plan, probe, findings, loads_by_default })
}

/// The loads beside the measurement, each of them known.
fn loads(
    request: &Request,
    by_default: bool,
    findings: &mut Vec<Finding>,
) -> Result<Vec<Spec>, RunError> {
    let w = &request.config;
    let mut loads = Vec::new();
    if by_default {
        loads.extend(defaults::LOADS.map(Spec::named));
    }
    for text in w.load.iter().flatten().flat_map(|l| split_loads(l)).filter(|l| l != "none") {
        loads.push(text.parse::<Spec>().map_err(usage("--load"))?);
    }
    if let Some(line) = &w.load_cmd {
        loads.push(Spec::command(line));
    }
    if loads.is_empty() && !request.bare {
        findings.push(
            Finding::new("no-load", Impact::Notice, "nothing loaded the machine during the measurement")
                .meaning("The figures are those of an unloaded machine; under load latencies are larger, often by orders of magnitude."),
        );
    }
    for load in &loads {
        tailbound_load::check(load).map_err(usage("--load"))?;
    }
    Ok(loads)
}

/// The probe and its options; options that mean nothing to it are refused.
fn probe(request: &Request) -> Result<(&'static ProbeKind, BTreeMap<String, String>), RunError> {
    let w = &request.config;
    let spec = match &w.probe {
        Some(text) => text.parse::<Spec>().map_err(usage("--probe"))?,
        None => Spec::named(catalogue::DEFAULT.name),
    };
    let (kind, options) = catalogue::known(&spec).map_err(usage("--probe"))?;
    let given = |option: &PlanOption| match option {
        PlanOption::Sleep => w.sleep.is_some(),
        PlanOption::Tasks => w.tasks.is_some(),
        PlanOption::Observe => w.observe.is_some(),
        PlanOption::Paranoid => request.paranoid,
        PlanOption::IntervalSpread => w.interval_spread.is_some(),
        PlanOption::TimerSlack => w.timer_slack.is_some(),
    };
    let foreign = |option: &&PlanOption| given(option) && !kind.takes.contains(option);
    if let Some(option) = PlanOption::ALL.iter().find(foreign) {
        return Err(RunError::Usage(format!(
            "--{} has no meaning for the probe {}: it belongs to {}",
            option.name(),
            kind.name,
            catalogue::takers(*option).join(", ")
        )));
    }
    Ok((kind, options))
}

/// Refuses a plan whose probe cannot work here, before anything is started.
///
/// # Errors
/// [`RunError::Usage`], [`RunError::Cannot`] with the remedy.
fn prepare(plan: &Plan, root: &Root) -> Result<Prepared, RunError> {
    let exe = std::env::current_exe().unwrap_or_default();
    let setup = Setup { plan, root, exe: &exe, stop: &tailbound_sys::limits::STOP };
    tailbound_probe::prepare(&setup).map_err(|e| match e {
        ProbeError::Usage(text) => RunError::Usage(text),
        other => RunError::Cannot(format!("probe {}: {other}", plan.probe)),
    })
}

/// The benchmarks that were asked for, their amounts filled in.
///
/// # Errors
/// [`RunError::Usage`]: no such benchmark, or no number of repetitions.
pub fn benchmarks(w: &RunConfig) -> Result<Option<BenchmarkPlan>, RunError> {
    let texts: Vec<String> =
        w.work.iter().flatten().flat_map(|text| split_benchmarks(text)).collect();
    if texts.is_empty() {
        return match w.repeat {
            None => Ok(None),
            Some(_) => Err(RunError::Usage(
                "--repeat: there is no benchmark to repeat; name one with --work".to_owned(),
            )),
        };
    }
    let repeat = w.repeat.unwrap_or(defaults::REPEAT);
    if !(1..=REPEAT_MAX).contains(&repeat) {
        return Err(RunError::Usage(format!("--repeat: {repeat} is not from 1 to {REPEAT_MAX}")));
    }
    let benchmarks =
        texts.iter().map(|text| tailbound_load::benchmark(text).map_err(usage("--work")));
    let benchmarks: Vec<Spec> = benchmarks.collect::<Result<_, _>>()?;
    if let Some(twice) =
        benchmarks.iter().enumerate().find(|(i, w)| benchmarks.iter().take(*i).any(|o| o == *w))
    {
        return Err(RunError::Usage(format!(
            "--work: {} is given twice; --repeat says how many times it is run",
            twice.1
        )));
    }
    Ok(Some(BenchmarkPlan { benchmarks, repeat }))
}

/// As [`split_loads`]; a command takes the rest of the line with it.
fn split_benchmarks(text: &str) -> Vec<String> {
    match text.split_once("cmd:") {
        Some((before, line)) => {
            split_loads(before).into_iter().chain([format!("cmd:{line}")]).collect()
        }
        None => split_loads(text),
    }
}

fn tasks(tasks: Option<u32>, policy: Policy) -> Result<Option<u32>, RunError> {
    let Some(n) = tasks else { return Ok(None) };
    if !(1..=TASKS_MAX).contains(&n) {
        return Err(RunError::Usage(format!("--tasks: {n} is not from 1 to {TASKS_MAX}")));
    }
    if matches!(policy, Policy::Deadline { .. }) {
        return Err(RunError::Usage(format!(
            "--tasks cannot be given with --policy {policy}: there is one such thread per online CPU"
        )));
    }
    Ok(Some(n))
}

fn observe(word: &str, root: &Root, clock: Clock, means: Means) -> Result<Observe, RunError> {
    tailbound_probe::observe::choose(word, root, clock, means).map_err(|e| {
        let text = format!("--observe: {e}");
        if e.is_usage() { RunError::Usage(text) } else { RunError::Cannot(text) }
    })
}

fn parse_or<T: std::str::FromStr<Err = String>>(
    text: Option<&str>,
    flag: &str,
    or: T,
) -> Result<T, RunError> {
    text.map_or(Ok(or), |t| t.parse().map_err(usage(flag)))
}

fn time(text: &str, flag: &str) -> Result<i64, RunError> {
    parse_ns(text).map_err(usage(flag))
}

fn activations(w: &RunConfig, interval_ns: i64) -> Result<u64, RunError> {
    let n = match (w.loops, w.duration.as_deref()) {
        (Some(_), Some(_)) => {
            return Err(RunError::Usage(
                "--loops and --duration: give one of them, the other follows from the interval"
                    .to_owned(),
            ));
        }
        (Some(loops), None) => loops,
        (None, duration) => {
            let duration_ns = time(duration.unwrap_or(defaults::DURATION), "--duration")?;
            if duration_ns < interval_ns {
                return Err(RunError::Usage(format!(
                    "--duration: {} is shorter than one interval of {}",
                    format_ns_i64(duration_ns),
                    format_ns_i64(interval_ns)
                )));
            }
            u64::try_from(duration_ns / interval_ns).unwrap_or(0)
        }
    };
    if n == 0 {
        return Err(RunError::Usage("--loops: 0 loops measure nothing".to_owned()));
    }
    let total = i128::from(n) * i128::from(interval_ns);
    if total > i128::from(DURATION_MAX_NS) {
        return Err(RunError::Usage(format!(
            "{} loops of {} are more than a year: write a smaller --loops or --duration",
            units::grouped(n),
            format_ns_i64(interval_ns)
        )));
    }
    Ok(n)
}

fn requirement(w: &RunConfig, clock: Clock) -> Result<Requirement, RunError> {
    let resolution = clock::resolution_ns(tailbound_probe::clock_id(clock))
        .map_err(|e| RunError::Cannot(format!("--clock {clock}: {e}")))?;
    let limit = |text: Option<&str>, flag: &str| -> Result<Option<i64>, RunError> {
        let Some(ns) = text.map(|t| time(t, flag)).transpose()? else { return Ok(None) };
        if ns <= 0 {
            return Err(RunError::Usage(format!("{flag}: must be more than 0")));
        }
        // A clock read costs tens of ns: a deadline below that says nothing about the machine.
        let floor = resolution.max(100);
        if ns < floor {
            return Err(RunError::Usage(format!(
                "{flag}: {} is below the resolution of the {clock} clock here ({})",
                format_ns_i64(ns),
                format_ns_i64(floor)
            )));
        }
        Ok(Some(ns))
    };
    let class = parse_or(w.class.as_deref(), "--class", Class::Hard)?;
    let rate = w.rate.as_deref().map(|t| t.parse::<Rate>().map_err(usage("--rate"))).transpose()?;
    let confidence = w.confidence.unwrap_or(0.95);
    if !(0.5..1.0).contains(&confidence) {
        return Err(RunError::Usage(format!(
            "--confidence: {confidence} is not between 0.5 and 1, for example 0.95"
        )));
    }
    let requirement = Requirement {
        deadline_ns: limit(w.deadline.as_deref(), "--deadline")?,
        early_ns: limit(w.early.as_deref(), "--early")?,
        class,
        rate,
        confidence,
    };
    let asks_more = w.class.is_some() || rate.is_some() || requirement.early_ns.is_some();
    if requirement.deadline_ns.is_none() && asks_more {
        return Err(RunError::Usage(
            "--class, --rate and --early belong to a deadline: add for example --deadline 100us"
                .to_owned(),
        ));
    }
    if class == Class::Safe && rate.is_none() {
        return Err(RunError::Usage(
            "--class safe needs the rate to be demonstrated: add for example --rate 1/24h"
                .to_owned(),
        ));
    }
    Ok(requirement)
}

fn cpus(text: &str, root: &Root) -> Result<CpuSet, RunError> {
    let machine =
        tailbound_host::Cpus::read(root).map_err(|e| RunError::Cannot(format!("--cpus: {e}")))?;
    machine.resolve(text).map_err(|e| RunError::Usage(format!("--cpus: {e}")))
}

/// The policy asked for, which must be allowed; or FIFO as high as allowed; or what is left.
fn policy(text: Option<&str>, findings: &mut Vec<Finding>) -> Result<Policy, RunError> {
    if let Some(text) = text {
        let policy: Policy = text.parse().map_err(usage("--policy"))?;
        tailbound_probe::allowed(policy)
            .map_err(|e| RunError::Cannot(format!("--policy {policy}: {e}")))?;
        if !policy.is_realtime() {
            findings.push(
                Finding::new("not-realtime-chosen", Impact::Notice, format!("measured as {policy}, as requested"))
                    .meaning("An ordinary thread competes with every other one: the figures describe fair scheduling and timer slack, not what a real-time thread would see."),
            );
        }
        return Ok(policy);
    }
    let wanted = defaults::POLICY_PRIORITY;
    let limit = tailbound_sys::limits::realtime_priority().unwrap_or(0);
    let lower = u8::try_from(limit).unwrap_or(99).min(wanted);
    let mut refused = None;
    for policy in [wanted, lower].into_iter().filter(|p| *p > 0).map(Policy::Fifo) {
        match tailbound_probe::allowed(policy) {
            Ok(()) => return Ok(policy),
            Err(e) => refused = Some(e),
        }
    }
    let why = refused.map_or("this user may not".to_owned(), |e| e.to_string());
    findings.push(tailbound_host::not_realtime(Policy::Fifo(wanted), Policy::Other, &why));
    Ok(Policy::Other)
}

fn dma_latency(text: &str) -> Result<i32, RunError> {
    // The kernel's unit is µs, and its users write `0`: a bare 0 is no mistake.
    let ns = if text.trim() == "0" { 0 } else { time(text, "--cpu-dma-latency")? };
    i32::try_from(ns / 1000).ok().filter(|us| *us >= 0 && ns % 1000 == 0).ok_or_else(|| {
        RunError::Usage(
            "--cpu-dma-latency: write whole microseconds from 0, for example `0` or `50us`"
                .to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(edit: impl FnOnce(&mut RunConfig)) -> Request {
        let mut config = RunConfig { policy: Some("other".to_owned()), ..RunConfig::default() };
        edit(&mut config);
        Request { config, ..Request::default() }
    }

    #[test]
    fn loads_split_where_people_mean_it() {
        assert_eq!(split_loads("hackbench,memory"), ["hackbench", "memory"]);
        assert_eq!(
            split_loads("hackbench:groups=4,ipc=inet,memory:cpus=0,2,clock"),
            ["hackbench:groups=4,ipc=inet", "memory:cpus=0,2", "clock"]
        );
    }

    #[test]
    fn benchmarks_are_named_once_and_a_command_keeps_its_commas() {
        let benchmarks = |list: &[&str], repeat| {
            let list = list.iter().map(|t| (*t).to_owned()).collect();
            super::benchmarks(&RunConfig { work: Some(list), repeat, ..RunConfig::default() })
                .map(|w| w.map(|w| (w.benchmarks.len(), w.repeat)))
                .map_err(|e| e.to_string())
        };
        assert_eq!(
            benchmarks(&["arithmetic,messages:groups=1,fds=2", "cmd:true a,b"], None),
            Ok(Some((3, 3)))
        );
        assert_eq!(benchmarks(&[], None), Ok(None));
        assert!(benchmarks(&[], Some(2)).is_err_and(|e| e.contains("--work")));
        assert!(benchmarks(&["arithmetic,arithmetic"], None).is_err_and(|e| e.contains("twice")));
        assert!(benchmarks(&["arithmetic"], Some(0)).is_err_and(|e| e.contains("--repeat")));
        assert!(benchmarks(&["arithmetics"], None).is_err_and(|e| e.contains("choose arithmetic")));
    }

    #[test]
    fn invalid_options_are_refused_with_the_flag_and_a_remedy() {
        type Edit = fn(&mut RunConfig);
        let cases: [(Edit, &str); 14] = [
            (|c| c.interval = Some("0s".into()), "--interval"),
            (|c| c.interval = Some("1us".into()), "--interval"),
            (|c| c.interval = Some("1".into()), "has no unit"),
            (|c| c.loops = Some(1_000_000_000_000), "more than a year"),
            (|c| c.loops = Some(0), "--loops"),
            (|c| c.cpus = Some("999".into()), "999"),
            (|c| c.cpus = Some("x".into()), "--cpus"),
            (|c| c.deadline = Some("1ns".into()), "--deadline"),
            (|c| c.deadline = Some("0us".into()), "--deadline"),
            (|c| c.class = Some("hard".into()), "--deadline"),
            (|c| c.load = Some(vec!["nosuch".into()]), "nosuch"),
            (|c| c.policy = Some("fifo:100".into()), "--policy"),
            (|c| c.clock = Some("sundial".into()), "sundial"),
            (|c| c.duration = Some("100us".into()), "shorter than one interval"),
        ];
        for (edit, hint) in cases {
            match resolve(&request(edit), &Root::real()) {
                Err(RunError::Usage(text)) => assert!(text.contains(hint), "{text} lacks {hint}"),
                other => panic!("{hint}: {other:?}"),
            }
        }
    }

    #[test]
    fn defaults_are_a_valid_measurement() {
        let plan = resolve(&Request::default(), &Root::real()).map(|r| r.plan).expect("defaults");
        assert_eq!((plan.interval_ns, plan.activations), (1_000_000, 60_000));
        assert!(!plan.cpus.is_empty());
        assert_eq!(plan.cpu_dma_latency_us, None, "nothing is changed on the system");
        assert!(!plan.loads.is_empty(), "an idle machine is no measurement of how late it can be");
        let bare = Request { bare: true, ..Request::default() };
        let plan = resolve(&bare, &Root::real()).map(|r| r.plan).expect("defaults");
        assert!(plan.loads.is_empty());
    }
}
