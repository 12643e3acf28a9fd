// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machine's owner allows, and whether a campaign keeps to it.
//!
//! Units: ns. Everything that is not known to be harmless is refused: an option of a run that this file does not
//! name, of a later version too. Without a policy file the default holds, which is the empty file.
//! Not here: how long it really takes (`child`, which ends what takes longer).

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tailbound_core::campaign::Part;
use tailbound_core::cpus::CpuSet;
use tailbound_core::limits::TEXT_BYTES_MAX;
use tailbound_core::plan::RunConfig;
use tailbound_core::units::parse_ns;
use tailbound_core::{Spec, split_loads};
use tailbound_series::campaign::{self, Options};
use tailbound_sys::{given, owner};

use crate::denial::Denial;
use crate::wire::Order;

/// Where the owner's file lies, unless another one is named.
pub const PLACE: &str = "/etc/tailbound/agent.toml";

/// Loads that need nothing but this program, write no disk, reach no network and have no real-time threads.
const HARMLESS: [&str; 9] =
    ["hackbench", "memory", "clock", "cpu", "mmap", "syscalls", "timers", "ping-pong", "tlb"];
const PROBES: [&str; 1] = ["cyclic"];
/// What a run starts that names no load; those of `tailbound run` (a test of the command line compares them).
pub const LOADS_OF_A_RUN: [&str; 2] = ["hackbench", "memory"];
const LONGEST_NS: i64 = 3_600_000_000_000;
/// What any run may say: how it measures, not what it does to the machine.
const FREE: [&str; 22] = [
    "name",
    "title",
    "operator",
    "requirement",
    "deadline",
    "early",
    "class",
    "rate",
    "confidence",
    "interval",
    "duration",
    "loops",
    "warm-up",
    "clock",
    "sleep",
    "interval-spread",
    "timer-slack",
    "paranoid",
    "until",
    "precision",
    // Of benchmarks and settings, which have rules.
    "repeat",
    "rt-cpus",
];
/// What has a rule of its own below.
const RULED: [&str; 12] = [
    "cpus",
    "policy",
    "tasks",
    "load",
    "load-cmd",
    "work",
    "probe",
    "tune",
    "raw",
    "observe",
    "blame",
    "cpu-dma-latency",
];

/// The owner's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which file says so; none: the default.
    pub file: Option<PathBuf>,
    longest_ns: i64,
    cpus: Option<CpuSet>,
    loads: Vec<String>,
    probes: Vec<String>,
    benchmarks: Vec<String>,
    tune: Vec<String>,
    commands: bool,
    tracing: bool,
    raw: bool,
    cpu_dma_latency: bool,
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    longest: Option<String>,
    cpus: Option<String>,
    loads: Option<Vec<String>>,
    probes: Option<Vec<String>>,
    benchmarks: Vec<String>,
    tune: Vec<String>,
    commands: bool,
    tracing: bool,
    raw: bool,
    cpu_dma_latency: bool,
}

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct PolicyError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, with its line where it has one.
    pub why: String,
}

/// What may be run, as the policy has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The campaign's name.
    pub name: String,
    /// Its runs.
    pub parts: Vec<String>,
    /// Measured CPUs to be named, if any.
    pub cpus: Option<String>,
    /// It may name commands, and does.
    pub commands: bool,
    /// After so long it is ended.
    pub longest_ns: i64,
}

impl Default for Policy {
    fn default() -> Self {
        let own = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect();
        Self {
            file: None,
            longest_ns: LONGEST_NS,
            cpus: None,
            loads: own(&HARMLESS),
            probes: own(&PROBES),
            benchmarks: Vec::new(),
            tune: Vec::new(),
            commands: false,
            tracing: false,
            raw: false,
            cpu_dma_latency: false,
        }
    }
}

impl Policy {
    /// The owner's file, or the default where there is none and none was named.
    ///
    /// # Errors
    /// It cannot be read, is wrong, or somebody else may change it.
    pub fn read(named: Option<&Path>) -> Result<Self, PolicyError> {
        let path = named.unwrap_or(Path::new(PLACE));
        if named.is_none() && !path.exists() {
            return Ok(Self::default());
        }
        let wrong = |why: String| PolicyError { path: path.to_owned(), why };
        owner::alone(path)
            .map_err(|e| wrong(format!("others may change it: {e}; it decides what runs here")))?;
        let text = given::text(path, TEXT_BYTES_MAX).map_err(|e| wrong(e.to_string()))?;
        Self::parse(&text, Some(path)).map_err(|e| wrong(e.to_string()))
    }

    fn parse(text: &str, path: Option<&Path>) -> Result<Self, Denial> {
        Self::of(toml::from_str(text)?, path.map(Path::to_owned))
    }

    fn of(written: Written, file: Option<PathBuf>) -> Result<Self, Denial> {
        let default = Self::default();
        let longest_ns = match written.longest.as_deref() {
            None => default.longest_ns,
            Some(text) => {
                match parse_ns(text).map_err(|why| Denial::Time { key: "longest", why })? {
                    ns if ns > 0 => ns,
                    _ => return Err(Denial::Nothing(text.to_owned())),
                }
            }
        };
        let cpus = match written.cpus.as_deref() {
            None | Some("all") => None,
            Some(list) => Some(list.parse().map_err(Denial::OwnCpus)?),
        };
        let known: Vec<&str> = tailbound_load::CATALOGUE.iter().map(|k| k.name).collect();
        let strange = written.loads.iter().flatten().find(|l| !known.contains(&l.as_str()));
        if let Some(strange) = strange {
            return Err(Denial::NoLoad { name: strange.clone() });
        }
        Ok(Self {
            file,
            longest_ns,
            cpus,
            loads: written.loads.unwrap_or(default.loads),
            probes: written.probes.unwrap_or(default.probes),
            benchmarks: written.benchmarks,
            tune: written.tune,
            commands: written.commands,
            tracing: written.tracing,
            raw: written.raw,
            cpu_dma_latency: written.cpu_dma_latency,
        })
    }

    /// What of `order` may be run.
    ///
    /// # Errors
    /// Why it may not, for the operator: which run, what it wants, and what the owner would have to write.
    pub fn allows(&self, order: &Order) -> Result<Allowed, Denial> {
        if !(order.scale > 0.0 && order.scale <= 1.0) {
            return Err(Denial::Scale(order.scale));
        }
        let chosen = campaign::parse("the campaign", order.campaign.clone())?;
        let parts = campaign::wanted(&chosen, &order.parts)?;
        let options = Options { scale: order.scale, ..Options::default() };
        let mut all_ns = 0i64;
        let (mut with_cpus, mut without_cpus, mut commands) = (0, 0, false);
        for part in &parts {
            let config = options.config(&chosen.file.name, part);
            let refused = |why| Denial::Run { part: part.id.clone(), why: Box::new(why) };
            commands |= self.options(&config, part).map_err(refused)?;
            all_ns = all_ns.saturating_add(self.length_ns(&config).map_err(refused)?);
            match config.cpus.as_deref().filter(|_| order.cpus.is_none()) {
                Some(cpus) => {
                    self.cpus(cpus).map_err(refused)?;
                    with_cpus += 1;
                }
                None => without_cpus += 1,
            }
        }
        if all_ns > self.longest_ns {
            return Err(Denial::TooLong { all_ns, longest_ns: self.longest_ns });
        }
        let cpus = match (&order.cpus, &self.cpus) {
            (Some(cpus), _) => {
                self.cpus(cpus)?;
                Some(cpus.clone())
            }
            (None, Some(own)) if with_cpus == 0 => Some(own.to_string()),
            (None, Some(own)) if without_cpus > 0 => {
                return Err(Denial::NoCpus { own: own.clone() });
            }
            _ => None,
        };
        Ok(Allowed {
            name: chosen.file.name.clone(),
            parts: parts.iter().map(|p| p.id.clone()).collect(),
            cpus,
            commands,
            longest_ns: self.longest_ns,
        })
    }

    /// Is all of it allowed? Whether it names commands. `part`: what it is the configuration of.
    fn options(&self, config: &RunConfig, part: &Part) -> Result<bool, Denial> {
        // By the names of the keys, so that none can be forgotten.
        let Ok(toml::Value::Table(said)) = toml::Value::try_from(config) else {
            return Err(Denial::Options);
        };
        for key in said.keys() {
            if !FREE.contains(&key.as_str()) && !RULED.contains(&key.as_str()) {
                return Err(Denial::NoRule { key: key.clone() });
            }
        }
        let mut commands = config.load_cmd.is_some();
        if config.load.is_none() && !commands && part.has_default_load() {
            for name in LOADS_OF_A_RUN {
                listed("loads", "the load", name, &self.loads)?;
            }
        }
        for text in config.load.iter().flatten().flat_map(|l| split_loads(l)) {
            if text == "none" {
                continue;
            }
            let spec = spec("load", &text)?;
            listed("loads", "the load", &spec.name, &self.loads)?;
            commands |= tailbound_load::command_of(&spec).is_some();
        }
        for text in config.work.iter().flatten() {
            let spec = tailbound_load::benchmark(text)
                .map_err(|why| Denial::Benchmark { text: text.clone(), why })?;
            listed("benchmarks", "the benchmark", &spec.name, &self.benchmarks)?;
            commands |= tailbound_load::command_of(&spec).is_some();
        }
        if commands && !self.commands {
            return Err(Denial::Command);
        }
        if let Some(text) = &config.probe {
            let spec = spec("probe", text)?;
            listed("probes", "the probe", &spec.name, &self.probes)?;
        }
        if let Some(profile) = &config.tune {
            listed("tune", "the settings", profile, &self.tune)?;
        }
        let unpinned = config.tasks.is_some()
            || config.policy.as_deref().is_some_and(|p| p.starts_with("deadline"));
        if let Some(own) = self.cpus.as_ref().filter(|_| unpinned) {
            return Err(Denial::Unpinned { own: own.clone() });
        }
        let switches = [
            (config.observe.is_some() || config.blame.is_some(), self.tracing, "tracing"),
            (config.raw == Some(true), self.raw, "raw"),
            (config.cpu_dma_latency.is_some(), self.cpu_dma_latency, "cpu-dma-latency"),
        ];
        match switches.iter().find(|(wanted, allowed, _)| *wanted && !allowed) {
            Some((.., key)) => Err(Denial::Switch { key }),
            None => Ok(commands),
        }
    }

    fn cpus(&self, text: &str) -> Result<(), Denial> {
        let Some(own) = &self.cpus else { return Ok(()) };
        let wanted: CpuSet =
            text.parse().map_err(|_| Denial::NoList { text: text.to_owned(), own: own.clone() })?;
        if wanted.minus(own).is_empty() && !wanted.is_empty() {
            return Ok(());
        }
        Err(Denial::OtherCpus { text: text.to_owned(), own: own.clone() })
    }

    /// About how long it measures. Of benchmarks nobody knows; what takes too long is ended.
    fn length_ns(&self, config: &RunConfig) -> Result<i64, Denial> {
        let time = |key, text: &Option<String>| {
            let ns = text.as_deref().map(parse_ns).transpose();
            ns.map_err(|why| Denial::Time { key, why })
        };
        let warm_up = time("warm-up", &config.warm_up)?.unwrap_or(0);
        let interval = time("interval", &config.interval)?;
        let loops = config.loops.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        let measured = match (loops, time("duration", &config.duration)?) {
            // The usual interval is a quarter of a millisecond at most.
            (Some(n), _) => n.saturating_mul(interval.unwrap_or(1_000_000)),
            (None, Some(ns)) => ns,
            (None, None) if config.work.is_some() => 0,
            (None, None) => {
                return Err(Denial::NoLength);
            }
        };
        Ok(measured.saturating_add(warm_up))
    }
}

fn spec(what: &'static str, text: &str) -> Result<Spec, Denial> {
    text.parse().map_err(|why| Denial::Spec { what, text: text.to_owned(), why })
}

fn listed(
    key: &'static str,
    what: &'static str,
    name: &str,
    allowed: &[String],
) -> Result<(), Denial> {
    if allowed.iter().any(|a| a == name) {
        return Ok(());
    }
    Err(Denial::NotListed { what, name: name.to_owned(), key, allowed: allowed.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A campaign of one run with these options.
    pub(crate) fn campaign(options: &str) -> String {
        format!(
            "name = \"short\"\n[text]\ntitle = \"t\"\nauthors = [\"n\"]\nyear = 2026\nmachine = \"any\"\nabout = \"a\"\n\
             [[system]]\nid = \"any\"\nname = \"any\"\nkind = \"stock\"\n\
             [[step]]\nid = \"one\"\ntitle = \"t\"\ntold = \"t\"\nours = \"the same\"\n[step.run]\n{options}\n"
        )
    }

    fn order(options: &str) -> Order {
        Order {
            id: "0f".to_owned(),
            system: "press".to_owned(),
            campaign: campaign(options),
            parts: Vec::new(),
            scale: 1.0,
            cpus: None,
        }
    }

    fn policy(text: &str) -> Policy {
        Policy::parse(text, None).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn said(policy: &Policy, options: &str) -> String {
        policy.allows(&order(options)).map_or_else(|e| e.to_string(), |a| format!("{a:?}"))
    }

    #[test]
    fn without_a_file_a_campaign_measures_beside_harmless_loads_and_nothing_else() {
        let default = Policy::default();
        assert_eq!(default, policy(""));
        for fine in [
            "loops = 100\ninterval = \"1ms\"",
            "duration = \"1min\"\nload = [\"hackbench:groups=4,ipc=inet,memory\"]\npolicy = \"fifo:90\"",
            "duration = \"59min\"\nload = [\"none\"]\nuntil = \"exceedance\"\ndeadline = \"1ms\"",
        ] {
            assert!(default.allows(&order(fine)).is_ok(), "{fine}: {}", said(&default, fine));
        }
        for (options, told) in [
            ("duration = \"1s\"\nload = [\"cmd:line=touch /x\"]", "one: the load `cmd`"),
            ("duration = \"1s\"\nload = [\"hackbench,cmd:line=touch /x\"]", "`cmd`"),
            ("duration = \"1s\"\nload-cmd = \"touch /x\"", "`commands`"),
            ("duration = \"1s\"\nload = [\"disk\"]", "`disk`"),
            ("duration = \"1s\"\nload = [\"culprit\"]", "`culprit`"),
            ("duration = \"1s\"\nwork = [\"messages\"]", "`benchmarks` none"),
            ("duration = \"1s\"\ntune = \"cyclic\"\nrt-cpus = \"1\"", "`tune` none"),
            ("duration = \"1s\"\nobserve = \"timerlat\"", "`tracing`"),
            ("duration = \"1s\"\nblame = \"auto\"", "`tracing`"),
            ("duration = \"1s\"\nraw = true", "`raw`"),
            ("duration = \"1s\"\ncpu-dma-latency = \"0\"", "`cpu-dma-latency`"),
            ("duration = \"1s\"\nprobe = \"hwlat\"", "`hwlat`"),
            ("duration = \"61min\"", "`longest`"),
            ("loops = 9223372036854775807", "`longest`"),
            ("policy = \"fifo:90\"", "`duration`"),
            ("duration = \"soon\"", "duration"),
        ] {
            let why = default.allows(&order(options)).err().map(|e| e.to_string());
            assert!(why.as_deref().is_some_and(|w| w.contains(told)), "{options}: {why:?}");
        }
    }

    #[test]
    fn every_option_of_a_run_has_a_rule() {
        // A new option of runs must be judged here before an agent runs it.
        let schema = serde_json::to_value(RunConfig::default()).unwrap_or_else(|e| panic!("{e}"));
        for key in schema.as_object().into_iter().flat_map(|o| o.keys()) {
            let key = key.as_str();
            assert!(FREE.contains(&key) || RULED.contains(&key), "`{key}` has no rule");
        }
    }

    #[test]
    fn what_the_owner_writes_is_allowed_and_no_more() {
        let some = policy("loads = [\"cmd\"]\ncommands = true\nlongest = \"10s\"\ncpus = \"2-3\"");
        let allowed = some.allows(&order("duration = \"9s\"\nload = [\"cmd:line=true\"]"));
        let allowed = allowed.unwrap_or_else(|e| panic!("{e}"));
        assert!(allowed.commands && allowed.cpus.as_deref() == Some("2-3"), "{allowed:?}");
        let idle = "load = [\"none\"]\n";
        for (options, told) in [
            (format!("{idle}duration = \"11s\""), "`longest` 10"),
            (format!("{idle}duration = \"9s\"\nwarm-up = \"2s\""), "`longest` 10"),
            // Without a word about loads a run has its usual ones.
            ("duration = \"1s\"".to_owned(), "`hackbench`"),
            ("duration = \"1s\"\nload = [\"memory\"]".to_owned(), "`memory`"),
            (format!("{idle}duration = \"1s\"\ncpus = \"1-2\""), "`cpus` 2-3"),
            (format!("{idle}duration = \"1s\"\ncpus = \"all\""), "`cpus` 2-3"),
            (format!("{idle}duration = \"1s\"\ntasks = 2"), "any CPU"),
            (format!("{idle}duration = \"1s\"\npolicy = \"deadline\""), "any CPU"),
        ] {
            let options = options.as_str();
            let why = some.allows(&order(options)).err().map(|e| e.to_string());
            assert!(why.as_deref().is_some_and(|w| w.contains(told)), "{options}: {why:?}");
        }
        let idle = "load = [\"none\"]\nduration = \"1s\"";
        let other = Order { cpus: Some("0".to_owned()), ..order(idle) };
        assert!(some.allows(&other).is_err());
        let of_scale = Order { scale: 0.5, ..order(idle) };
        assert!(some.allows(&of_scale).is_ok());
        for scale in [0.0, 1.5, f64::NAN] {
            assert!(some.allows(&Order { scale, ..order(idle) }).is_err());
        }
        for (text, told) in [
            ("load = [\"cpu\"]", "load"),
            ("loads = [\"cppu\"]", "cppu"),
            ("longest = \"long\"", "longest"),
            ("longest = \"0s\"", "longest"),
            ("cpus = \"x\"", "cpus"),
        ] {
            let why = Policy::parse(text, None).err().map(|e| e.to_string());
            assert!(why.as_deref().is_some_and(|w| w.contains(told)), "{text}: {why:?}");
        }
    }
}
