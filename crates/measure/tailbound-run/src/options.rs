// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the options of a run say, whatever the machine: read once, or refused with the option's name.
//!
//! Context: SETUP. Units: text in, ns out.
//! Not here: what this machine and user allow ([`crate::resolve`]).

use std::collections::BTreeMap;

use tailbound_core::plan::{
    BenchmarkPlan, BlamePlan, Clock, DURATION_MAX_NS, INTERVAL_MAX_NS, INTERVAL_MIN_NS,
    IntervalSpread, Means, RunConfig, Until,
};
use tailbound_core::policy::Policy;
use tailbound_core::purpose::Purpose;
use tailbound_core::requirement::{Class, Rate, Requirement};
use tailbound_core::units::parse_ns;
use tailbound_core::{Spec, split_loads};
use tailbound_probe::{PlanOption, ProbeKind, catalogue};
use tailbound_sys::clock;

use crate::defaults;
use crate::error::RunError;
use crate::option_error::OptionError;
use crate::option_text::{parse_or, span, time, usage};
use crate::sleeps;

/// Most repetitions of a benchmark.
const REPEAT_MAX: u32 = 10_000;
/// Most measured threads that are not pinned: each keeps a histogram in locked memory.
const TASKS_MAX: u32 = 256;

/// Options, read.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) kind: &'static ProbeKind,
    /// Those of the probe.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) clock: Clock,
    pub(crate) means: Means,
    pub(crate) policy: Option<Policy>,
    pub(crate) interval_ns: i64,
    pub(crate) warm_up_ns: i64,
    pub(crate) activations: u64,
    pub(crate) requirement: Requirement,
    pub(crate) until: Option<Until>,
    pub(crate) spread: Option<IntervalSpread>,
    pub(crate) timer_slack_ns: Option<i64>,
    pub(crate) purpose: Option<Box<Purpose>>,
    pub(crate) tasks: Option<u32>,
    pub(crate) cpu_dma_latency_us: Option<i32>,
    /// Those that are named.
    pub(crate) loads: Vec<Spec>,
    pub(crate) work: Option<BenchmarkPlan>,
}

/// Refuses options that mean nothing on any machine, for runs that are made elsewhere: in a guest.
///
/// # Errors
/// [`RunError::Option`], [`RunError::Until`] with the option's name.
pub fn check_options(config: &RunConfig) -> Result<(), RunError> {
    Options::read(config).map(drop)
}

impl Options {
    /// # Errors
    /// [`RunError::Option`], [`RunError::Until`]; [`RunError::Clock`].
    pub(crate) fn read(w: &RunConfig) -> Result<Self, RunError> {
        let clock = parse_or(w.clock.as_deref(), "--clock", Clock::Monotonic)?;
        let means = parse_or(w.sleep.as_deref(), "--sleep", Means::Nanosleep)?;
        let (kind, options) = probe(w)?;
        let interval_ns = time(w.interval.as_deref().unwrap_or(kind.interval), "--interval")?;
        if !(INTERVAL_MIN_NS..=INTERVAL_MAX_NS).contains(&interval_ns) {
            return Err(OptionError::Interval { ns: interval_ns }.into());
        }
        let warm_up_ns = span(w.warm_up.as_deref().unwrap_or(defaults::WARM_UP), "--warm-up")?;
        if !(0..=DURATION_MAX_NS).contains(&warm_up_ns) {
            return Err(OptionError::WarmUp.into());
        }
        let mut requirement = requirement(w, clock)?;
        let until = crate::until::until(w, &mut requirement)?;
        let longest = crate::until::longest(until.as_ref(), &requirement, w, interval_ns)?;
        let activations = match longest {
            Some(n) => n,
            None => activations(w, interval_ns)?,
        };
        Ok(Self {
            kind,
            options,
            clock,
            means,
            policy: w.policy.as_deref().map(str::parse).transpose().map_err(usage("--policy"))?,
            interval_ns,
            warm_up_ns,
            activations,
            requirement,
            until,
            spread: sleeps::spread(w.interval_spread.as_deref(), means)?,
            timer_slack_ns: sleeps::timer_slack(w.timer_slack.as_deref())?,
            purpose: Purpose::stated(w).map_err(OptionError::from)?,
            tasks: tasks(w.tasks)?,
            cpu_dma_latency_us: w.cpu_dma_latency.as_deref().map(dma_latency).transpose()?,
            loads: loads(w)?,
            work: benchmarks(w)?,
        })
    }
}

/// `auto`, or a latency; `,if-possible` may follow.
///
/// # Errors
/// No such time.
pub(crate) fn blame(text: &str) -> Result<BlamePlan, OptionError> {
    let (limit, optional) = match text.strip_suffix(",if-possible") {
        Some(limit) => (limit, true),
        None => (text, false),
    };
    let above_ns = match limit {
        "auto" => None,
        time => Some(parse_ns(time).map_err(usage("--blame"))?),
    };
    Ok(BlamePlan { above_ns, optional })
}

/// The probe and its options; options that mean nothing to it are refused.
fn probe(w: &RunConfig) -> Result<(&'static ProbeKind, BTreeMap<String, String>), OptionError> {
    let spec = match &w.probe {
        Some(text) => text.parse::<Spec>().map_err(usage("--probe"))?,
        None => Spec::named(catalogue::DEFAULT.name),
    };
    let (kind, options) = catalogue::known(&spec).map_err(usage("--probe"))?;
    let given = |option: &PlanOption| match option {
        PlanOption::Sleep => w.sleep.is_some(),
        PlanOption::Tasks => w.tasks.is_some(),
        PlanOption::Observe => w.observe.is_some(),
        PlanOption::Paranoid => w.paranoid == Some(true),
        PlanOption::IntervalSpread => w.interval_spread.is_some(),
        PlanOption::TimerSlack => w.timer_slack.is_some(),
    };
    let foreign = |option: &&PlanOption| given(option) && !kind.takes.contains(option);
    if let Some(option) = PlanOption::ALL.iter().find(foreign) {
        let (option, takers) = (option.name(), catalogue::takers(*option));
        return Err(OptionError::OtherProbe { option, probe: kind.name, takers });
    }
    Ok((kind, options))
}

/// The loads that are named, each of them known.
fn loads(w: &RunConfig) -> Result<Vec<Spec>, OptionError> {
    let mut loads = Vec::new();
    for written in w.load.iter().flatten() {
        let texts = named(written, split_loads(written), "--load", ", or `none`")?;
        for text in texts.iter().filter(|l| *l != "none") {
            loads.push(text.parse::<Spec>().map_err(usage("--load"))?);
        }
    }
    if let Some(line) = w.load_cmd.as_deref() {
        let load = Spec::command(line);
        tailbound_load::check(&load).map_err(usage("--load-cmd"))?;
        loads.push(load);
    }
    for load in &loads {
        tailbound_load::check(load).map_err(usage("--load"))?;
    }
    Ok(loads)
}

/// The benchmarks that were asked for, their amounts filled in.
///
/// # Errors
/// No such benchmark, or no number of repetitions.
fn benchmarks(w: &RunConfig) -> Result<Option<BenchmarkPlan>, OptionError> {
    let mut texts = Vec::new();
    for written in w.work.iter().flatten() {
        texts.extend(named(written, split_benchmarks(written), "--work", "")?);
    }
    if texts.is_empty() {
        return match w.repeat {
            None => Ok(None),
            Some(_) => Err(OptionError::NothingToRepeat),
        };
    }
    let repeat = w.repeat.unwrap_or(defaults::REPEAT);
    if !(1..=REPEAT_MAX).contains(&repeat) {
        return Err(OptionError::Number { flag: "--repeat", value: repeat, max: REPEAT_MAX });
    }
    let benchmarks =
        texts.iter().map(|text| tailbound_load::benchmark(text).map_err(usage("--work")));
    let benchmarks: Vec<Spec> = benchmarks.collect::<Result<_, _>>()?;
    if let Some(twice) =
        benchmarks.iter().enumerate().find(|(i, w)| benchmarks.iter().take(*i).any(|o| o == *w))
    {
        return Err(OptionError::BenchmarkTwice { benchmark: twice.1.clone() });
    }
    Ok(Some(BenchmarkPlan { benchmarks, repeat }))
}

/// The names in one value of an option that takes a list of them; a value without any is refused.
fn named(
    written: &str,
    names: Vec<String>,
    flag: &'static str,
    or: &'static str,
) -> Result<Vec<String>, OptionError> {
    if names.is_empty() {
        return Err(OptionError::NoNames { flag, written: written.to_owned(), or });
    }
    Ok(names)
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

fn tasks(tasks: Option<u32>) -> Result<Option<u32>, OptionError> {
    let Some(n) = tasks else { return Ok(None) };
    if !(1..=TASKS_MAX).contains(&n) {
        return Err(OptionError::Number { flag: "--tasks", value: n, max: TASKS_MAX });
    }
    Ok(Some(n))
}

fn activations(w: &RunConfig, interval_ns: i64) -> Result<u64, OptionError> {
    let n = match (w.loops, w.duration.as_deref()) {
        (Some(_), Some(_)) => return Err(OptionError::LoopsAndDuration),
        (Some(loops), None) => loops,
        (None, duration) => {
            let duration_ns = span(duration.unwrap_or(defaults::DURATION), "--duration")?;
            if duration_ns < interval_ns {
                return Err(OptionError::ShorterThanInterval { duration_ns, interval_ns });
            }
            u64::try_from(duration_ns / interval_ns).unwrap_or(0)
        }
    };
    if n == 0 {
        return Err(OptionError::NoLoops);
    }
    let total = i128::from(n) * i128::from(interval_ns);
    if total > i128::from(DURATION_MAX_NS) {
        return Err(OptionError::TooLong { loops: n, interval_ns });
    }
    Ok(n)
}

fn requirement(w: &RunConfig, clock: Clock) -> Result<Requirement, RunError> {
    let resolution = clock::resolution_ns(tailbound_host::clock_id(clock))
        .map_err(|source| RunError::Clock { clock, source })?;
    let limit = |text: Option<&str>, flag: &'static str| -> Result<Option<i64>, OptionError> {
        let Some(ns) = text.map(|t| time(t, flag)).transpose()? else { return Ok(None) };
        if ns <= 0 {
            return Err(OptionError::NotPositive { flag });
        }
        // A clock read costs tens of ns: a deadline below that says nothing about the machine.
        let floor_ns = resolution.max(100);
        if ns < floor_ns {
            return Err(OptionError::BelowResolution { flag, ns, clock, floor_ns });
        }
        Ok(Some(ns))
    };
    let class = parse_or(w.class.as_deref(), "--class", Class::Hard)?;
    let rate = w.rate.as_deref().map(|t| t.parse::<Rate>().map_err(usage("--rate"))).transpose()?;
    let confidence = w.confidence.unwrap_or(0.95);
    if !(0.5..1.0).contains(&confidence) {
        return Err(OptionError::Confidence { confidence }.into());
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
        return Err(OptionError::NoDeadline.into());
    }
    if class == Class::Safe && rate.is_none() {
        return Err(OptionError::NoRate.into());
    }
    Ok(requirement)
}

fn dma_latency(text: &str) -> Result<i32, OptionError> {
    // The kernel's unit is µs, and its users write `0`: a bare 0 is no mistake.
    let ns = if text.trim() == "0" { 0 } else { time(text, "--cpu-dma-latency")? };
    let us = i32::try_from(ns / 1000).ok().filter(|us| *us >= 0 && ns % 1000 == 0);
    us.ok_or(OptionError::DmaLatency)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_split_where_people_mean_it() {
        assert_eq!(split_loads("hackbench,memory"), ["hackbench", "memory"]);
        assert_eq!(
            split_loads("hackbench:groups=4,ipc=inet,memory:cpus=0,2,clock"),
            ["hackbench:groups=4,ipc=inet", "memory:cpus=0,2", "clock"]
        );
        assert_eq!(
            split_loads("cmd:line=awk -F, , a=1 f, memory,"),
            ["cmd:line=awk -F, , a=1 f", "memory"]
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
}
