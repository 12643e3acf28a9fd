// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine for nodes that Slurm gives: a whole node is asked for, and what holds it is a job.
//!
//! The job is an srun(1) of the user's own; its task is the shell that locks the machine and runs what it
//! is told (lease.rs). Further shells are steps beside it. When srun ends, however it ends, the job ends.
//! Source: srun(1), scontrol(1), sinfo(1), scancel(1) of Slurm 22.05.

use std::time::{Duration, Instant};

use super::keeper::Keeper;
use super::reservation::SlurmJob;
use super::shell::{self, ShellLauncher};
use super::shells::Shell;
use super::target::{Reach, Target};
use super::{Engine, EngineError, Facts, Lease, Load, Placed, Power, Task, lease};

const ASKING: &str = "asking Slurm";
/// srun may hear of a job's end before the job's state changes.
const STATE_LATE: Duration = Duration::from_secs(10);

pub(super) struct Slurm {
    target: Target,
    job: SlurmJob,
    /// What is done on the node, once it is held.
    shell: Shell,
}

/// One line of what `sinfo -N` prints.
struct Node {
    name: String,
    state: String,
    features: Vec<String>,
}

impl Slurm {
    pub(super) fn of(target: &Target, job: &SlurmJob) -> Self {
        let shell = Shell::of(target, ShellLauncher::here());
        Self { target: target.clone(), job: job.clone(), shell }
    }

    /// Held by this job?
    fn still_held(&self, lease: &lease::Lease) -> Result<(), EngineError> {
        let id = &lease.name;
        let shown = shown(&["job", id])
            .map_err(|e| EngineError::Lost(format!("whether job {id} still holds it: {e}")))?;
        let state = field(&shown, "JobState").unwrap_or("unknown");
        if state != "RUNNING" {
            return Err(EngineError::Lost(format!("Slurm's job {id} is {state}")));
        }
        match field(&shown, "SuspendTime") {
            None | Some("None") => Ok(()),
            Some(when) => {
                Err(EngineError::Lost(format!("Slurm's job {id} was suspended at {when}")))
            }
        }
    }

    /// How a job that has ended did.
    fn ended(id: &str) -> String {
        let begun = Instant::now();
        loop {
            let Ok(shown) = shown(&["job", id]) else {
                return format!("Slurm's job {id} has ended");
            };
            let state = field(&shown, "JobState").unwrap_or("unknown").to_owned();
            if !matches!(state.as_str(), "RUNNING" | "COMPLETING") || begun.elapsed() > STATE_LATE {
                let reason = field(&shown, "Reason").filter(|r| *r != "None");
                let reason = reason.map(|r| format!(" ({r})")).unwrap_or_default();
                return format!("Slurm's job {id} is {state}{reason}");
            }
            std::thread::park_timeout(Duration::from_millis(200));
        }
    }
}

impl Engine for Slurm {
    fn list(&self, under: Option<&Lease>) -> Result<Facts, EngineError> {
        if under.is_some() {
            return self.shell.list(under);
        }
        let nodes = nodes(&self.job)?;
        let free = |n: &&Node| n.state == "idle";
        let node = nodes.iter().find(free).or(nodes.first());
        let node = node.ok_or_else(|| EngineError::failed(ASKING, none_such(&self.job)))?;
        let shown = shown(&["node", &node.name])?;
        let known = |key: &str| field(&shown, key).unwrap_or("unknown").to_owned();
        // OS=Linux RELEASE #1 SMP …: what follows the first word.
        let kernel = shown.split(" OS=").nth(1).and_then(|os| os.split_whitespace().nth(1));
        let cpus = field(&shown, "CPUTot").and_then(|c| c.parse().ok());
        let all: Vec<String> = nodes.iter().map(|n| format!("{} {}", n.name, n.state)).collect();
        Ok(Facts {
            architecture: known("Arch"),
            kernel: kernel.unwrap_or("unknown").to_owned(),
            cpus: cpus.ok_or_else(|| EngineError::failed(ASKING, "it gives no number of CPUs"))?,
            home: String::new(),
            held: (node.state != "idle").then(|| all.join(", ")),
        })
    }

    fn reserve(&self, heard: &mut dyn FnMut(&str)) -> Result<Lease, EngineError> {
        let what = "taking the machine";
        let mut bytes = [0u8; 4];
        getrandom::fill(&mut bytes).map_err(|e| EngineError::failed(what, e))?;
        let name = format!("tailbound-{:08x}", u32::from_ne_bytes(bytes));
        let keeper = Keeper::start(
            &format!("scancel -Q --state=PENDING --jobname={name}"),
            &format!("scancel -Q --jobname={name}"),
        )?;
        let way = ShellLauncher::program(srun(&asked(&self.job, &name)));
        let mut lease =
            lease::Lease::take(way, lease::LockUse::Held, "$SLURM_JOB_ID", Some(keeper), heard)?;
        let id = lease.name.clone();
        let shared = shown(&["job", &id])?;
        if let Some(how) = field(&shared, "OverSubscribe").filter(|h| *h != "NO") {
            let why = format!(
                "Slurm's job {id} has no node of its own (OverSubscribe={how}): another partition may give one"
            );
            return Err(EngineError::Refused(why));
        }
        let step = [format!("--jobid={id}"), "--overlap".to_owned()];
        lease.way = ShellLauncher::program(srun(&step));
        Ok(Lease::Shell(lease))
    }

    fn put(&self, lease: &Lease, facts: &Facts, load: &Load<'_>) -> Result<Placed, EngineError> {
        self.shell.put(lease, facts, load)
    }

    fn run(
        &self,
        lease: &mut Lease,
        task: &Task<'_>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<i32, EngineError> {
        let made = self.shell.run(lease, task, heard);
        let Lease::Shell(lease) = lease else { return made };
        match made {
            Err(EngineError::Lost(last)) => {
                Err(EngineError::Lost(format!("{}; {last}", Self::ended(&lease.name))))
            }
            // A run that was told to end with its job may have said how it ended.
            Ok(status) => self.still_held(lease).map(|()| status),
            Err(e) => Err(e),
        }
    }

    fn get(&self, lease: &Lease, placed: &Placed, load: &Load<'_>) -> Result<(), EngineError> {
        self.shell.get(lease, placed, load)
    }

    fn power(&self, _: Power, _: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        let what = "control of the machine's power";
        Err(EngineError::Cannot { engine: self.target.reach.engine(), what })
    }
}

/// Words of an srun for one task on one node, whose input and output are ours.
fn srun(more: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    // Inside of a job it would take a part of that.
    if std::env::var_os("SLURM_JOB_ID").is_some() {
        words.push("env".to_owned());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("SLURM_") && name != "SLURM_CONF" {
                words.extend(["-u".to_owned(), name]);
            }
        }
    }
    for word in ["srun", "--nodes=1", "--ntasks=1", "--chdir=/"] {
        words.push(word.to_owned());
    }
    words.extend(more.iter().cloned());
    words
}

/// What a target asks srun for: its own options first, so that none takes back what a measurement needs.
fn asked(job: &SlurmJob, name: &str) -> Vec<String> {
    let mut words = job.options.clone();
    let mut add = |key: &str, value: &Option<String>| {
        words.extend(value.as_ref().map(|v| format!("--{key}={v}")));
    };
    add("partition", &job.partition);
    add("nodelist", &job.node);
    add("time", &job.time_limit);
    add("immediate", &job.wait_s.map(|s| s.to_string()));
    add("constraint", &(!job.features.is_empty()).then(|| job.features.join("&")));
    words.extend(["--exclusive".to_owned(), "--mem=0".to_owned(), format!("--job-name={name}")]);
    words
}

/// The nodes that a target may get.
fn nodes(job: &SlurmJob) -> Result<Vec<Node>, EngineError> {
    let mut words = vec!["sinfo".to_owned(), "--Node".to_owned(), "--noheader".to_owned()];
    words.push("--format=%N|%T|%f".to_owned());
    words.extend(job.partition.as_ref().map(|p| format!("--partition={p}")));
    words.extend(job.node.as_ref().map(|n| format!("--nodes={n}")));
    let mut found: Vec<Node> = Vec::new();
    for line in shell::tell(&words, ASKING)?.lines() {
        let mut columns = line.trim().split('|').map(str::to_owned);
        let (Some(name), Some(state), Some(features)) =
            (columns.next(), columns.next(), columns.next())
        else {
            return Err(EngineError::failed(ASKING, format!("sinfo says `{line}`")));
        };
        let features: Vec<String> = features.split(',').map(str::to_owned).collect();
        // A node of several partitions comes once for each.
        if !found.iter().any(|n| n.name == name) {
            found.push(Node { name, state, features });
        }
    }
    found.retain(|n| job.features.iter().all(|f| n.features.contains(f)));
    Ok(found)
}

fn none_such(job: &SlurmJob) -> String {
    let mut said = "sinfo lists no node".to_owned();
    for (word, value) in [("called", &job.node), ("in the partition", &job.partition)] {
        said.extend(value.as_ref().map(|v| format!(" {word} {v}")));
    }
    if !job.features.is_empty() {
        said.push_str(&format!(" with the features {}", job.features.join(", ")));
    }
    said
}

/// A target for each node that `target` may get, or itself where it asks for one only.
pub(super) fn spread(target: &Target) -> Result<Vec<Target>, EngineError> {
    let Reach::Slurm(job) = &target.reach else { return Ok(vec![target.clone()]) };
    if !job.every_node {
        return Ok(vec![target.clone()]);
    }
    let nodes = nodes(job)?;
    if nodes.is_empty() {
        return Err(EngineError::failed(ASKING, none_such(job)));
    }
    let one = |node: Node| {
        let mut one = target.clone();
        one.name = format!("{}-{}", target.name, node.name);
        one.tags.push(target.name.clone());
        one.reach =
            Reach::Slurm(SlurmJob { node: Some(node.name), every_node: false, ..job.clone() });
        one
    };
    Ok(nodes.into_iter().map(one).collect())
}

/// What scontrol(1) shows, on one line.
fn shown(what: &[&str]) -> Result<String, EngineError> {
    let words: Vec<String> =
        ["scontrol", "--oneliner", "show"].iter().chain(what).map(|w| (*w).to_owned()).collect();
    shell::tell(&words, ASKING)
}

/// The first `KEY=VALUE` of what it shows.
fn field<'a>(shown: &'a str, key: &str) -> Option<&'a str> {
    shown.split_whitespace().find_map(|w| w.split_once('=').filter(|(k, _)| *k == key)).map(|w| w.1)
}
