// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people ask the lab for, and the cells it comes to: systems times loads.
//!
//! Units: MiB, s. A *system* is a kernel and what is added to its command
//! line; a *load* is what runs beside the measurement, several joined by commas.

use std::collections::BTreeMap;
use std::path::PathBuf;
use tailbound_core::order;

use serde::Deserialize;
use tailbound_core::lab::{Job, Tester, TuneJob};
use tailbound_core::plan::RunConfig;
use tailbound_core::units;

use crate::arch::Arch;
use crate::benchmarks;
use crate::cell::Cell;
use crate::elf;
use crate::error::{FileError, KernelError, LabError, OptionError};
use crate::kernel::{self, Kernel, KernelName};
use crate::machine::{Accelerator, Machine};
use crate::needs;
use crate::slices::Slice;
use crate::store::Store;
use crate::target::Target;

/// Cycles of a run where nobody says how many.
pub const CYCLES: u64 = 3000;
/// Their interval.
pub const INTERVAL: &str = "250us";
/// Virtual time costs host time: a short warm-up is enough where nothing is noisy.
const WARM_UP: &str = "100ms";
const MEMORY_MIB: u32 = 768;
/// Patience with a job beyond three times its length, in its own time.
const SLACK_S: u64 = 60;

/// A kernel and what is added to its command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Its name, as [`KernelName`] reads it; left out where a target brings its own.
    #[serde(default)]
    pub kernel: String,
    /// A target description, in the place of a kernel.
    #[serde(default)]
    pub target: Option<PathBuf>,
    /// Which of the target's testers measures; our own loop otherwise.
    #[serde(default)]
    pub tester: Option<String>,
    /// Added to the command line.
    #[serde(default)]
    pub append: String,
    /// Profile that the guest applies before it measures; none: the request's.
    #[serde(default)]
    pub tune: Option<String>,
    /// What people call it; the kernel's name and the added words otherwise.
    #[serde(default)]
    pub name: Option<String>,
}

impl System {
    fn named(&self) -> Result<KernelName, LabError> {
        self.kernel.parse().map_err(|e| {
            KernelError::Asked { name: self.kernel.clone(), source: Box::new(e) }.into()
        })
    }

    /// What people call it, and what was added where that name does not stand for it.
    fn called(&self) -> (String, String) {
        let tuned = self.tune.as_deref().filter(|t| !t.is_empty());
        let tuned = tuned.map_or_else(String::new, |t| format!(" tuned:{t}"));
        match &self.name {
            Some(name) => (name.clone(), String::new()),
            None => {
                (self.kernel.clone(), format!("{}{tuned}", self.append.trim()).trim().to_owned())
            }
        }
    }
}

/// What was asked for, by file or by flags; the words of both are the same.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Request {
    /// Kernels, each with each of `append`.
    pub kernels: Vec<String>,
    /// What is added to command lines.
    pub append: Vec<String>,
    /// Profiles that guests apply before they measure, each with each kernel; an empty one is none.
    pub tune: Vec<String>,
    /// CPUs for real-time work in the guest: for profiles.
    pub rt_cpus: Option<String>,
    /// Text of the profiles in `tune`, by name.
    #[serde(skip)]
    pub profiles: BTreeMap<String, String>,
    /// Target descriptions.
    #[serde(skip)]
    pub targets: Vec<PathBuf>,
    /// The targets' testers by name; `all` is every one and our own loop.
    #[serde(skip)]
    pub testers: Vec<String>,
    /// Systems one by one, where not every kernel has every option.
    #[serde(rename = "system")]
    pub systems: Vec<System>,
    /// Loads; each entry may be several, joined by commas.
    pub loads: Vec<String>,
    /// Architecture of the guests.
    pub arch: Option<String>,
    /// Machine model.
    pub machine: Option<String>,
    /// CPUs.
    pub smp: Option<u32>,
    /// Memory.
    pub memory_mib: Option<u32>,
    /// One instruction is 2^shift ns.
    pub shift: Option<u8>,
    /// Between two ends of slices of several CPUs, or `off`.
    pub slice: Option<String>,
    /// Seed.
    pub seed: Option<u32>,
    /// KVM instead of virtual time.
    pub kvm: bool,
    /// Programs added to the guest, at the path they have here, with their libraries.
    pub with: Vec<PathBuf>,
    /// Another program measures.
    pub tester: Option<Tester>,
    /// Everything else about the measurement.
    pub campaign: RunConfig,
    /// The guest's program.
    #[serde(skip)]
    pub guest: Option<PathBuf>,
}

/// One cell with the words people know it by.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// The system's name, or its kernel's.
    pub kernel: String,
    /// What was added to its command line, where the name does not stand for it.
    pub append: String,
    /// The load.
    pub load: String,
    /// The cell.
    pub cell: Cell,
    /// What could not be checked before the boot, and why.
    pub unchecked: Vec<String>,
}

impl Labelled {
    /// `debian:6.12 preempt=none, hackbench`
    #[must_use]
    pub fn title(&self) -> String {
        let space = if self.append.is_empty() { "" } else { " " };
        format!("{}{space}{}, {}", self.kernel, self.append, self.load)
    }

    /// The same as the stem of a file's name.
    #[must_use]
    pub fn stem(&self) -> String {
        let mut stem = String::new();
        for c in self.title().chars() {
            match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '=' | '+' => stem.push(c),
                _ if stem.ends_with('-') => {}
                _ => stem.push('-'),
            }
        }
        format!("lab-{}", stem.trim_matches('-'))
    }
}

/// What is wrong with a matrix file.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Not TOML, or not of a matrix: the line and the column are in it.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A misspelt key.
    #[error("unknown field `{name}` in `tester`: it has command, format, file")]
    TesterField {
        /// The key.
        name: String,
    },
}

/// What a guest sleeps before its job. Random numbers of the kernel hardly alter the paths that are
/// measured, so that runs of other seeds were the same to the nanosecond; where the tick stands when
/// loads and activations begin alters all that follows.
fn begin_after_ns(seed: u32) -> u64 {
    /// Longer than any tick (CONFIG_HZ=100).
    const WITHIN_NS: u64 = 20_000_000;
    /// The window times the golden ratio's part below 1: consecutive seeds fill it evenly.
    const STEP_NS: u64 = 12_360_679;
    u64::from(seed.wrapping_sub(1)).wrapping_mul(STEP_NS) % WITHIN_NS
}

impl Request {
    /// Reads a matrix file.
    ///
    /// # Errors
    /// The TOML error with its line and column.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        let asked: Self = toml::from_str(text)?;
        // A run file's record of a tester keeps fields of later versions; here it is a typing error.
        match asked.tester.as_ref().and_then(|t| t.later.keys().next()) {
            Some(name) => Err(RequestError::TesterField { name: name.clone() }),
            None => Ok(asked),
        }
    }

    /// The architecture.
    ///
    /// # Errors
    /// An unknown word.
    pub fn arch(&self) -> Result<Arch, LabError> {
        self.arch
            .as_deref()
            .map_or(Ok(Arch::X86_64), |text| text.parse().map_err(|e| OptionError::Arch(e).into()))
    }

    /// May there be several CPUs to be run in short slices?
    #[must_use]
    pub fn wants_slices(&self) -> bool {
        let several = self.smp.unwrap_or(1) > 1 && self.slice.as_deref() != Some("off");
        several && !self.kvm && self.arch().is_ok_and(|arch| arch == Arch::X86_64)
    }

    /// All systems: those one by one, then every kernel with every added line.
    #[must_use]
    pub fn all_systems(&self) -> Vec<System> {
        let none = [String::new()];
        let appends = or_none(&self.append, &none);
        let tunes = or_none(&self.tune, &none);
        let crossed = self.kernels.iter().flat_map(|kernel| {
            appends.iter().flat_map(move |append| {
                tunes.iter().map(move |tune| System {
                    kernel: kernel.clone(),
                    append: append.clone(),
                    tune: Some(tune.clone()).filter(|t| !t.is_empty()),
                    ..System::default()
                })
            })
        });
        self.systems.iter().cloned().chain(crossed).collect()
    }

    /// The names of all profiles that systems ask for.
    #[must_use]
    pub fn tunes(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.all_systems().into_iter().filter_map(|s| s.tune).collect();
        order::by(&mut names, Ord::cmp);
        names.dedup();
        names
    }

    /// What a guest is to apply.
    fn tune_job(&self, name: Option<&str>) -> Result<Option<TuneJob>, LabError> {
        let Some(name) = name.filter(|n| !n.is_empty()) else { return Ok(None) };
        let profile = self
            .profiles
            .get(name)
            .ok_or_else(|| OptionError::NoProfile { name: name.to_owned() })?;
        Ok(Some(TuneJob {
            name: name.to_owned(),
            profile: profile.clone(),
            rt_cpus: self.rt_cpus.clone().unwrap_or_default(),
            ..TuneJob::default()
        }))
    }

    /// Those of the targets: each with its testers that were asked for.
    fn targets(&self, systems: &[System]) -> Result<Vec<(System, Target)>, LabError> {
        let mut all = Vec::new();
        let none = [String::new()];
        let appends = or_none(&self.append, &none);
        for path in &self.targets {
            let target = Target::read(path)?;
            let mut testers: Vec<Option<String>> = Vec::new();
            for word in &self.testers {
                match word.as_str() {
                    "all" => {
                        testers.push(None);
                        testers.extend(target.testers.keys().cloned().map(Some));
                    }
                    "own" => testers.push(None),
                    name => testers.push(target.tester(name).map(|_| Some(name.to_owned()))?),
                }
            }
            if testers.is_empty() {
                testers.push(None);
            }
            for append in appends {
                for tester in &testers {
                    let system = System {
                        tester: tester.clone(),
                        target: Some(path.clone()),
                        append: append.clone(),
                        ..System::default()
                    };
                    all.push((system, target.clone()));
                }
            }
        }
        for system in systems {
            if let Some(path) = &system.target {
                all.push((system.clone(), Target::read(path)?));
            }
        }
        Ok(all)
    }

    /// What a target of the user's own comes to, without a load.
    fn on_target(
        &self,
        system: &System,
        target: &Target,
        obtain: &mut dyn FnMut(&KernelName, Arch) -> Result<Kernel, LabError>,
    ) -> Result<Labelled, LabError> {
        let mut kernel = obtain(&target.kernel, target.arch)?;
        if let Some(config) = &target.config {
            kernel.config = Some(config.clone());
        }
        let unchecked = target.checks(&kernel.image, kernel.config.as_deref())?;
        let machine =
            Machine::choose(target.arch, self.machine.as_deref(), Accelerator::kvm_if(self.kvm))?;
        let append = format!("{} {}", target.append, system.append);
        let tester = system.tester.as_deref().map(|t| target.tester(t).cloned()).transpose()?;
        let mut cell = self.cell(&kernel, &machine, &append)?;
        cell.files.extend(target.files.clone());
        cell.modules.clone_from(&target.modules);
        cell.job.settings.clone_from(&target.settings);
        if tester.is_none() {
            cell.job.arguments.clone_from(&target.arguments);
        }
        cell.job.tester = tester;
        let own = || {
            let tester = system.tester.as_deref().map_or(String::new(), |t| format!(" {t}"));
            format!("{}{tester}", target.name)
        };
        Ok(Labelled {
            kernel: system.name.clone().unwrap_or_else(own),
            append: system.append.clone(),
            load: String::new(),
            cell,
            unchecked,
        })
    }

    /// The kernels that it takes, with their architectures.
    ///
    /// # Errors
    /// A name that is none, a target description that cannot be read.
    pub fn names(&self) -> Result<Vec<(KernelName, Arch)>, LabError> {
        let arch = self.arch()?;
        let systems = self.all_systems();
        let targets = self.targets(&systems)?;
        let mut all: Vec<_> =
            targets.into_iter().map(|(_, target)| (target.kernel, target.arch)).collect();
        for system in systems.iter().filter(|s| s.target.is_none()) {
            all.push((system.named()?, arch));
        }
        order::by_key(&mut all, |(name, arch)| (name.to_string(), *arch));
        all.dedup();
        Ok(all)
    }

    /// Every cell as it will be called, with a stand-in for each kernel that is not in the store:
    /// whatever else is wrong comes out before anything is fetched. None for targets, whose checks
    /// need the kernel itself.
    ///
    /// # Errors
    /// As [`Self::cells`].
    pub fn draft(&self, store: &Store) -> Result<Vec<Labelled>, LabError> {
        let with_target = |s: &System| s.target.is_some();
        if !self.targets.is_empty() || self.systems.iter().any(with_target) {
            return Ok(Vec::new());
        }
        self.cells(&mut |name, arch| match name {
            KernelName::Debian(debian) if !kernel::is_in_store(store, debian, arch)? => {
                Ok(needs::stand_in(name, arch))
            }
            _ => kernel::obtain(name, arch, store, &mut |_| {}),
        })
    }

    /// Every cell: loads outside, systems inside, so that neighbours boot different snapshots.
    /// `obtain` finds a kernel by its name.
    ///
    /// # Errors
    /// Options that are not possible.
    pub fn cells(
        &self,
        obtain: &mut dyn FnMut(&KernelName, Arch) -> Result<Kernel, LabError>,
    ) -> Result<Vec<Labelled>, LabError> {
        let arch = self.arch()?;
        let machine =
            Machine::choose(arch, self.machine.as_deref(), Accelerator::kvm_if(self.kvm))?;
        let systems = self.all_systems();
        let targets = self.targets(&systems)?;
        let systems: Vec<System> =
            systems.into_iter().filter(|system| system.target.is_none()).collect();
        if systems.is_empty() && targets.is_empty() {
            return Err(OptionError::NoKernel.into());
        }
        let mut kernels: BTreeMap<String, Kernel> = BTreeMap::new();
        for system in &systems {
            if !kernels.contains_key(&system.kernel) {
                kernels.insert(system.kernel.clone(), obtain(&system.named()?, arch)?);
            }
        }
        let mut bases = Vec::new();
        for (system, target) in &targets {
            bases.push(self.on_target(system, target, obtain)?);
        }
        for system in &systems {
            let Some(kernel) = kernels.get(&system.kernel) else { continue };
            let mut cell = self.cell(kernel, &machine, &system.append)?;
            cell.job.tester.clone_from(&self.tester);
            cell.job.tune = self.tune_job(system.tune.as_deref())?;
            let (kernel, append) = system.called();
            let (load, unchecked) = (String::new(), Vec::new());
            bases.push(Labelled { kernel, append, load, cell, unchecked });
        }
        let default = ["hackbench".to_owned()];
        let loads = if self.loads.is_empty() { &default[..] } else { &self.loads };
        let mut cells = Vec::new();
        for load in loads {
            for base in &bases {
                let mut labelled = Labelled { load: load.clone(), ..base.clone() };
                labelled.cell.job = self.job(load, &base.cell.job)?;
                cells.push(labelled);
            }
        }
        Ok(cells)
    }

    /// Everything but the job, which is another with each load.
    fn cell(&self, kernel: &Kernel, machine: &Machine, append: &str) -> Result<Cell, LabError> {
        let mut files = BTreeMap::new();
        for program in &self.with {
            let path = std::path::absolute(program).map_err(|e| LabError::file(program, e))?;
            let there = path.to_str().ok_or_else(|| OptionError::With { path: path.clone() })?;
            files.extend(elf::libraries(&path, kernel.arch, &[])?);
            files.insert(there.to_owned(), path);
        }
        let cell = Cell {
            kernel: kernel.clone(),
            machine: machine.clone(),
            smp: self.smp.unwrap_or(1),
            memory_mib: self.memory_mib.unwrap_or(MEMORY_MIB),
            shift: self.shift.unwrap_or(0),
            slice: self.slice.as_deref().map_or(Ok(Slice::Usual), str::parse)?,
            seed: self.seed.unwrap_or(1),
            kvm: self.kvm,
            append: append.trim().to_owned(),
            files,
            modules: Vec::new(),
            guest: self.guest.clone(),
            job: Job::default(),
        };
        cell.check().map(|()| cell)
    }

    /// The words of a run that must know that nobody can take its CPU.
    fn in_virtual_time(&self, campaign: &RunConfig, base: &Job) -> Vec<String> {
        let mut arguments = base.arguments.clone();
        if campaign.blame.is_some() && !self.kvm {
            arguments.push("--virtual-time".to_owned());
        }
        arguments
    }

    /// The job under `load`; tester, settings and arguments are those of `base`.
    fn job(&self, load: &str, base: &Job) -> Result<Job, LabError> {
        let loads: Vec<String> = vec![load.to_owned()];
        let mut campaign = self.campaign.clone();
        campaign.interval.get_or_insert_with(|| INTERVAL.to_owned());
        campaign.warm_up.get_or_insert_with(|| WARM_UP.to_owned());
        if campaign.loops.is_none() && campaign.duration.is_none() {
            campaign.loops = Some(CYCLES);
        }
        campaign.load = Some(loads.clone());
        if let Some(asked) = &campaign.work {
            campaign.work = Some(benchmarks::in_guest(asked, &self.with)?);
        }
        let arguments = match &base.tester {
            Some(_) if load != "none" => loads,
            Some(_) => base.arguments.clone(),
            None => self.in_virtual_time(&campaign, base),
        };
        Ok(Job {
            campaign: toml::to_string(&campaign).map_err(FileError::Options)?,
            arguments,
            begin_after_ns: begin_after_ns(self.seed.unwrap_or(1)),
            limit_s: limit_s(&campaign)?,
            ..base.clone()
        })
    }
}

/// How long a measurement may take until its first process gives up: three times its length, and some time.
pub(crate) fn limit_s(campaign: &RunConfig) -> Result<u64, LabError> {
    let time = |option, text: &Option<String>| {
        let Some(text) = text else { return Ok(0) };
        units::parse_ns(text).map_err(|source| OptionError::Time { option, source })
    };
    let interval = time("--interval", &campaign.interval)?;
    let cycles = i64::try_from(campaign.loops.unwrap_or(0)).unwrap_or(i64::MAX);
    let length = time("--duration", &campaign.duration)?
        .max(interval.saturating_mul(cycles))
        .saturating_add(time("--warm-up", &campaign.warm_up)?);
    let length_s = u64::try_from(length / 1_000_000_000).unwrap_or(0);
    let limit_s = length_s.saturating_mul(3).saturating_add(SLACK_S);
    Ok(limit_s.saturating_add(benchmarks::limit_s(campaign)))
}

/// What is crossed with everything else; where nothing was asked for, `none` of it.
fn or_none<'a>(asked: &'a [String], none: &'a [String]) -> &'a [String] {
    if asked.is_empty() { none } else { asked }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_gets_each_of_the_added_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("target.toml");
        std::fs::write(&path, "name = \"mine\"\nkernel = \"build:x\"\n").unwrap();
        let append = vec!["isolcpus=1".to_owned(), String::new()];
        let asked = Request { targets: vec![path], append, ..Request::default() };
        let targets = asked.targets(&[]).unwrap();
        let appends: Vec<&str> = targets.iter().map(|(s, _)| s.append.as_str()).collect();
        assert_eq!(appends, ["isolcpus=1", ""]);
    }

    #[test]
    fn a_matrix_file_says_where_it_is_wrong_and_crosses_what_it_holds() {
        let text = "kernels = [\"debian:6.12\", \"debian:6.12-rt\"]\nappend = [\"\", \"threadirqs\"]\n\
                    loads = [\"none\", \"hackbench\"]\nsmp = 1\n[campaign]\nloops = 10\n\
                    [[system]]\nkernel = \"build:x\"\nname = \"mine\"\n";
        let asked = Request::parse(text).unwrap();
        let labels: Vec<String> = asked
            .all_systems()
            .iter()
            .map(System::called)
            .map(|(kernel, append)| format!("{kernel} {append}").trim_end().to_owned())
            .collect();
        assert_eq!(
            labels,
            [
                "mine",
                "debian:6.12",
                "debian:6.12 threadirqs",
                "debian:6.12-rt",
                "debian:6.12-rt threadirqs"
            ]
        );
        let wrong = Request::parse("kernels = []\nlaods = []\n").unwrap_err().to_string();
        let tester =
            Request::parse("[tester]\ncommand = []\nfromat = \"x\"\n").unwrap_err().to_string();
        assert!(tester.contains("`fromat`"), "{tester}");
        assert!(wrong.contains("line 2") && wrong.contains("laods"), "{wrong}");
    }

    #[test]
    fn a_job_has_time_for_what_it_does() {
        let mut asked = Request::default();
        asked.campaign.loops = Some(4000);
        asked.campaign.interval = Some("1ms".to_owned());
        let job = asked.job("hackbench", &Job::default()).unwrap();
        assert_eq!(job.limit_s, 4 * 3 + SLACK_S);
        let campaign = RunConfig::parse(&job.campaign).unwrap();
        assert_eq!(campaign.load, Some(vec!["hackbench".to_owned()]));
        asked.campaign.interval = Some("1".to_owned());
        assert!(asked.job("none", &Job::default()).is_err());
    }
}
