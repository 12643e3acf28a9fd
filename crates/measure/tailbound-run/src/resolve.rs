// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what was typed to a plan with nothing left open, or a clear refusal.
//!
//! Context: SETUP. Units: text in, ns out. Everything that can be wrong with words,
//! permissions or the machine is found here, before anything is started.

use std::io;
use std::path::{Path, PathBuf};

use tailbound_core::cpus::CpuSet;
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::plan::{BlamePlan, Clock, Means, Observe, Plan, RunConfig};
use tailbound_core::policy::Policy;
use tailbound_core::purpose::Purpose;
use tailbound_core::{FailureKind, Spec};
use tailbound_host::{CpusError, RealtimeRight, Root};
use tailbound_probe::{Prepared, Setup};

use crate::defaults;
use crate::error::RunError;
use crate::option_error::OptionError;
use crate::option_text::usage;
use crate::options::{self, Options};
use crate::{no_load, sleeps};

/// What was asked for: options of the command line, else of the configuration file.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Every option, still as text.
    pub config: RunConfig,
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
    /// What persons stated about it.
    pub purpose: Option<Box<Purpose>>,
    /// The path of this program.
    pub exe: io::Result<PathBuf>,
}

/// What a second kernel's sleep needs.
fn second_kernel(w: &RunConfig, means: Means, policy: Policy) -> Result<(), OptionError> {
    if !matches!(means, Means::Cobalt | Means::Evl) {
        return Ok(());
    }
    if w.paranoid == Some(true) {
        return Err(OptionError::SecondKernelFilter { means });
    }
    if !matches!(policy, Policy::Fifo(_)) {
        return Err(OptionError::SecondKernelPolicy { means });
    }
    Ok(())
}

/// Makes the plan.
///
/// # Errors
/// [`RunError`]: impossible options, or what this machine or user cannot do.
pub fn resolve(request: &Request, root: &Root) -> Result<Resolved, RunError> {
    let w = &request.config;
    let mut findings = Vec::new();
    let read = Options::read(w)?;
    let (kind, means, clock) = (read.kind, read.means, read.clock);
    let cpus = cpus(w.cpus.as_deref().unwrap_or("all"), root)?;
    let policy = match (read.policy, kind.policy) {
        // Its own way, which is no finding.
        (None, Some(own)) => own.parse().map_err(usage("--policy"))?,
        (given, _) => policy(given, root, &mut findings)?,
    };
    let paranoid = w.paranoid.unwrap_or(false);
    second_kernel(w, means, policy)?;
    if read.timer_slack_ns.is_some() && policy.is_realtime() {
        findings.push(sleeps::unused_slack(policy));
    }
    if let (Policy::Deadline { period_ns, .. }, true) = (policy, w.cpus.is_some()) {
        let period_ns = period_ns.cast_signed();
        return Err(OptionError::PinnedDeadline { policy, period_ns }.into());
    }
    let loads_by_default = !request.bare && w.load.is_none() && w.load_cmd.is_none();
    let loads = match loads_by_default {
        true => defaults::LOADS.map(Spec::named).to_vec(),
        false => read.loads,
    };
    if loads.is_empty() && !request.bare {
        findings.push(no_load::not_started());
    }
    let tasks = unpinned(read.tasks, policy)?;
    sleeps::one_itimer(means, tasks.map_or(cpus.len() as u64, u64::from))?;
    let observe = w.observe.as_deref().map(|word| observe(word, root, clock, means)).transpose()?;
    let blame = blame(w, root)?;
    let tune = crate::tuned::wanted(w, &cpus.to_string())?;
    if let Some(job) = &tune {
        crate::tuned::plan(job, root)?;
    }
    let plan = Plan {
        name: w.name.clone(),
        probe: kind.name.to_owned(),
        options: read.options,
        event: kind.event.map(str::to_owned),
        property: kind.property.map(str::to_owned),
        interval_ns: read.interval_ns,
        activations: read.activations,
        warm_up_ns: read.warm_up_ns,
        cpus,
        policy,
        clock,
        means,
        loads,
        requirement: read.requirement,
        cpu_dma_latency_us: read.cpu_dma_latency_us,
        raw: w.raw.unwrap_or(false),
        paranoid,
        observe,
        blame,
        tasks,
        spread: read.spread,
        timer_slack_ns: read.timer_slack_ns,
        work: read.work,
        until: read.until,
        tune,
    };
    let exe = std::env::current_exe();
    let probe = prepare(&plan, root, exe.as_deref().unwrap_or(Path::new("")))?;
    Ok(Resolved { plan, probe, findings, loads_by_default, purpose: read.purpose, exe })
}

/// Refuses a plan whose probe cannot work here, before anything is started.
///
/// # Errors
/// [`RunError::ProbeOption`], [`RunError::Probe`] with the remedy.
fn prepare(plan: &Plan, root: &Root, exe: &Path) -> Result<Prepared, RunError> {
    let setup = Setup { plan, root, exe, stop: &tailbound_sys::limits::STOP, begin_at_ns: None };
    tailbound_probe::prepare(&setup).map_err(Box::new).map_err(|source| match source.kind() {
        FailureKind::Usage => RunError::ProbeOption(source),
        _ => RunError::Probe { probe: plan.probe.clone(), source },
    })
}

fn unpinned(tasks: Option<u32>, policy: Policy) -> Result<Option<u32>, OptionError> {
    match policy {
        Policy::Deadline { .. } if tasks.is_some() => Err(OptionError::DeadlineTasks { policy }),
        _ => Ok(tasks),
    }
}

fn observe(word: &str, root: &Root, clock: Clock, means: Means) -> Result<Observe, RunError> {
    tailbound_record::observe::choose(word, root, clock, means).map_err(RunError::Observe)
}

/// Which late wake-ups are to be taken apart, where this machine and user allow it.
fn blame(w: &RunConfig, root: &Root) -> Result<Option<BlamePlan>, RunError> {
    let Some(text) = &w.blame else { return Ok(None) };
    let plan = options::blame(text)?;
    if w.observe.is_some() {
        return match plan.optional {
            true => Ok(None),
            false => Err(OptionError::BlameAndObserve.into()),
        };
    }
    match tailbound_record::blame::possible(root) {
        Ok(()) => Ok(Some(plan)),
        Err(_) if plan.optional => Ok(None),
        Err(e) => Err(RunError::Blame(e)),
    }
}

fn cpus(text: &str, root: &Root) -> Result<CpuSet, RunError> {
    tailbound_host::cpus::resolved(root, text).map_err(|e| match e {
        CpusError::Unreadable(_) => RunError::Machine(e),
        e => usage("--cpus")(e).into(),
    })
}

/// The policy asked for, which must be allowed; or FIFO as high as allowed; or what is left.
fn policy(
    given: Option<Policy>,
    root: &Root,
    findings: &mut Vec<Finding>,
) -> Result<Policy, RunError> {
    if let Some(policy) = given {
        tailbound_probe::allowed(policy).map_err(|source| {
            if !source.is_permission() || !matches!(policy, Policy::Fifo(_) | Policy::Rr(_)) {
                return RunError::Policy { policy, source };
            }
            let right = RealtimeRight::refused(root);
            RunError::NoRight { policy, cause: right.cause(), remedy: right.remedy() }
        })?;
        if !policy.is_realtime() {
            findings.push(Finding::listed(
                "not-realtime-chosen",
                Impact::Notice,
                format!("measured as {policy}, as requested"),
            ));
        }
        return Ok(policy);
    }
    let wanted = defaults::POLICY_PRIORITY;
    let limit = tailbound_sys::limits::realtime_priority().unwrap_or(0);
    let lower = u8::try_from(limit).unwrap_or(99).min(wanted);
    for policy in [wanted, lower].into_iter().filter(|p| *p > 0).map(Policy::Fifo) {
        if tailbound_probe::allowed(policy).is_ok() {
            return Ok(policy);
        }
    }
    let why = RealtimeRight::refused(root);
    findings.push(tailbound_host::not_realtime(Policy::Fifo(wanted), Policy::Other, &why));
    Ok(Policy::Other)
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
    fn invalid_options_are_refused_with_the_flag_and_a_remedy() {
        type Edit = fn(&mut RunConfig);
        let cases: [(Edit, &str); 15] = [
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
            (|c| c.operator = Some("a\nb".into()), "--operator"),
            (|c| c.duration = Some("100us".into()), "shorter than one interval"),
        ];
        for (edit, hint) in cases {
            match resolve(&request(edit), &Root::real()) {
                Err(e) if e.kind() == FailureKind::Usage => {
                    assert!(e.to_string().contains(hint), "{e} lacks {hint}");
                }
                other => panic!("{hint}: {other:?}"),
            }
        }
    }

    #[test]
    fn slack_that_the_kernel_does_not_use_is_reported() {
        let root = Root::real();
        let ordinary = request(|c| c.timer_slack = Some("5us".into()));
        let found = resolve(&ordinary, &root).map(|r| r.findings).expect("a plan");
        assert!(found.iter().all(|f| f.id != "timer-slack-unused"));
        let urgent = request(|c| {
            (c.timer_slack, c.policy) = (Some("5us".into()), Some("fifo:1".into()));
        });
        match resolve(&urgent, &root) {
            Ok(r) => assert!(r.findings.iter().any(|f| f.id == "timer-slack-unused")),
            Err(e) if e.kind() == FailureKind::Cannot => tailbound_testing::skip("rt", e),
            Err(e) => panic!("{e}"),
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
