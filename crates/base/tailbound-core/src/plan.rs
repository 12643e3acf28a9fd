// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run is to do, resolved: every default filled in, nothing left to the machine.
//!
//! Units: ns. A campaign file (TOML) uses the words of the command line;
//! [`RunConfig`] is what was typed, [`Plan`] what it came to.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::lab::TuneJob;
use crate::policy::Policy;
use crate::requirement::Requirement;
use crate::spec::Spec;
use crate::units::{format_span, spaced};
use crate::words::{UnknownWord, open_words, typed_words};

/// Shortest interval accepted: below it the loop itself would fill the CPU.
pub const INTERVAL_MIN_NS: i64 = 10_000;
/// Longest interval accepted.
pub const INTERVAL_MAX_NS: i64 = 3_600_000_000_000;
/// Longest schedule accepted: one year.
pub const DURATION_MAX_NS: i64 = 31_536_000_000_000_000;

open_words! {
    /// The clock of the schedule; clock_gettime(2).
    Clock {
        /// CLOCK_MONOTONIC: slewed, never stepped, stops in suspend.
        Monotonic = "monotonic",
        /// CLOCK_TAI.
        Tai = "tai",
        /// CLOCK_BOOTTIME: goes on in suspend.
        Boottime = "boottime",
        /// CLOCK_REALTIME: may be stepped.
        Realtime = "realtime",
    }
}

open_words! {
    /// How a measured thread sleeps.
    Means {
        /// clock_nanosleep(2) with TIMER_ABSTIME.
        Nanosleep = "nanosleep",
        /// clock_nanosleep(2) for the time that is left: adds a clock read and a race before the sleep.
        NanosleepRelative = "nanosleep-relative",
        /// A periodic timerfd(2) and read(2).
        Timerfd = "timerfd",
        /// A periodic timer_create(2) timer and sigwaitinfo(2).
        PosixTimer = "posix-timer",
        /// setitimer(2) for the time that is left, and sigwaitinfo(2): one thread per process.
        Itimer = "itimer",
        /// nanosleep(2) itself for the time that is left: on CLOCK_MONOTONIC, whatever the schedule's.
        NanosleepPlain = "nanosleep-plain",
        /// usleep(3) for the time that is left, in whole µs.
        Usleep = "usleep",
        /// ppoll(2) of no descriptor for the time that is left.
        Poll = "poll",
        /// select(2) of no descriptor for the time that is left, in whole µs.
        Select = "select",
        /// epoll_pwait2(2) of no descriptor for the time that is left; Linux 5.11.
        Epoll = "epoll",
        /// The sleep of Xenomai 3's Cobalt core, to an absolute time; docs/dual-kernels.md.
        Cobalt = "cobalt",
        /// The sleep of Xenomai 4's EVL core, to an absolute time; docs/dual-kernels.md.
        Evl = "evl",
        /// An imported run of a tool that reads the clock all the time: it never sleeps, and has no schedule.
        Polling = "polling",
        /// An imported run whose file does not tell.
        NotTold = "unknown",
    }
}

open_words! {
    /// What of the kernel watches beside the measured threads; docs/observe.md.
    Observe {
        /// The timerlat tracer: a timer and a kernel thread of its own on each measured CPU.
        Timerlat = "timerlat",
        /// The osnoise tracer: a busy kernel thread that notices what takes its time away.
        Osnoise = "osnoise",
        /// The hwlat tracer: gaps while interrupts are off, alone, before the measurement.
        Hwlat = "hwlat",
        /// Tracepoints of timers and the scheduler: the way of our own threads' wake-ups.
        Tracepoints = "tracepoints",
    }
}

open_words! {
    /// When a run may end before its longest time; docs/duration.md.
    StopRule {
        /// At the first exceedance, or when the planned time shows the rate.
        Demonstrated = "demonstrated",
        /// When a limit that may be looked at all the time shows the rate.
        Anytime = "anytime",
        /// When the chosen quantiles are known well enough.
        Precision = "precision",
        /// At the first wake-up later than the deadline.
        Exceedance = "exceedance",
    }
}

typed_words!(Clock, Observe, StopRule);

impl Means {
    /// What a person can ask for: not what only an imported run can have.
    pub fn asked() -> impl Iterator<Item = &'static str> {
        let imported = |w: &&&str| matches!(Self::of(w), Self::Polling | Self::NotTold);
        Self::WORDS.iter().filter(move |w| !imported(w)).copied()
    }
}

impl FromStr for Means {
    type Err = UnknownWord;
    /// One of [`Means::asked`].
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match Self::of(text) {
            Self::Unknown(_) | Self::Polling | Self::NotTold => {
                Err(UnknownWord { typed: text.to_owned(), known: Self::asked().collect() })
            }
            known => Ok(known),
        }
    }
}

/// When a run may end before its longest time, with everything the rule needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// The rule.
    pub rule: StopRule,
    /// Half-width wanted, as a share of the quantile (rule `precision`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Probabilities of the quantiles (rule `precision`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<f64>,
}

/// What was asked for, by file: every word is optional and means what the flag of the same name means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunConfig {
    /// A name for people.
    pub name: Option<String>,
    /// `--deadline`
    pub deadline: Option<String>,
    /// `--early`
    pub early: Option<String>,
    /// `--class`
    pub class: Option<String>,
    /// `--rate`
    pub rate: Option<String>,
    /// `--confidence`
    pub confidence: Option<f64>,
    /// `--interval`
    pub interval: Option<String>,
    /// `--duration`
    pub duration: Option<String>,
    /// `--loops`
    pub loops: Option<u64>,
    /// `--warm-up`
    pub warm_up: Option<String>,
    /// `--cpus`
    pub cpus: Option<String>,
    /// `--policy`
    pub policy: Option<String>,
    /// `--clock`
    pub clock: Option<String>,
    /// `--sleep`
    #[serde(alias = "means")]
    pub sleep: Option<String>,
    /// `--interval-spread`
    pub interval_spread: Option<String>,
    /// `--timer-slack`
    pub timer_slack: Option<String>,
    /// `--load`, one entry per load
    pub load: Option<Vec<String>>,
    /// `--load-cmd`
    pub load_cmd: Option<String>,
    /// `--cpu-dma-latency`
    pub cpu_dma_latency: Option<String>,
    /// `--raw`
    pub raw: Option<bool>,
    /// `--paranoid`
    pub paranoid: Option<bool>,
    /// `--observe`
    pub observe: Option<String>,
    /// `--blame`: `auto`, or the latency above which wake-ups are taken apart; `,if-possible` may
    /// follow: without root or tracing the run is made all the same
    pub blame: Option<String>,
    /// `--probe`: a name and options, as `signal:between=processes`
    pub probe: Option<String>,
    /// `--tasks`
    pub tasks: Option<u32>,
    /// `--work`, one entry per benchmark
    pub work: Option<Vec<String>>,
    /// `--repeat`
    pub repeat: Option<u32>,
    /// `--until`
    pub until: Option<String>,
    /// `--precision`
    pub precision: Option<String>,
    /// `--tune`: a profile for the time of the run
    pub tune: Option<String>,
    /// `--rt-cpus`, for the profile
    pub rt_cpus: Option<String>,
    /// `--title`
    pub title: Option<String>,
    /// `--operator`
    pub operator: Option<String>,
    /// `--requirement`
    pub requirement: Option<String>,
}

impl RunConfig {
    /// Reads a campaign file's text.
    ///
    /// # Errors
    /// The TOML error with its line and column.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The words as a campaign file's text.
    ///
    /// # Errors
    /// What cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// These words with every one that `other` gives laid over them. A length given in `other` replaces
    /// ours, whichever of the two words it uses; so does the load `none`.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        // Taken apart by name: a field that is added and not merged does not compile.
        let Self {
            name,
            deadline,
            early,
            class,
            rate,
            confidence,
            interval,
            duration,
            loops,
            warm_up,
            cpus,
            policy,
            clock,
            sleep,
            interval_spread,
            timer_slack,
            load,
            load_cmd,
            cpu_dma_latency,
            raw,
            paranoid,
            observe,
            blame,
            probe,
            tasks,
            work,
            repeat,
            until,
            precision,
            tune,
            rt_cpus,
            title,
            operator,
            requirement,
        } = other.clone();
        let given = loops.is_some() || duration.is_some();
        let no_load = load.as_ref().is_some_and(|l| l.iter().all(|l| l.trim() == "none"));
        let length = if given { Self::default() } else { self.clone() };
        Self {
            name: name.or_else(|| self.name.clone()),
            deadline: deadline.or_else(|| self.deadline.clone()),
            early: early.or_else(|| self.early.clone()),
            class: class.or_else(|| self.class.clone()),
            rate: rate.or_else(|| self.rate.clone()),
            confidence: confidence.or(self.confidence),
            interval: interval.or_else(|| self.interval.clone()),
            duration: duration.or(length.duration),
            loops: loops.or(length.loops),
            warm_up: warm_up.or_else(|| self.warm_up.clone()),
            cpus: cpus.or_else(|| self.cpus.clone()),
            policy: policy.or_else(|| self.policy.clone()),
            clock: clock.or_else(|| self.clock.clone()),
            sleep: sleep.or_else(|| self.sleep.clone()),
            interval_spread: interval_spread.or_else(|| self.interval_spread.clone()),
            timer_slack: timer_slack.or_else(|| self.timer_slack.clone()),
            load: load.or_else(|| self.load.clone()),
            load_cmd: load_cmd.or_else(|| self.load_cmd.clone().filter(|_| !no_load)),
            cpu_dma_latency: cpu_dma_latency.or_else(|| self.cpu_dma_latency.clone()),
            raw: raw.or(self.raw),
            paranoid: paranoid.or(self.paranoid),
            observe: observe.or_else(|| self.observe.clone()),
            blame: blame.or_else(|| self.blame.clone()),
            probe: probe.or_else(|| self.probe.clone()),
            tasks: tasks.or(self.tasks),
            work: work.or_else(|| self.work.clone()),
            repeat: repeat.or(self.repeat),
            until: until.or_else(|| self.until.clone()),
            precision: precision.or_else(|| self.precision.clone()),
            tune: tune.or_else(|| self.tune.clone()),
            rt_cpus: rt_cpus.or_else(|| self.rt_cpus.clone()),
            title: title.or_else(|| self.title.clone()),
            operator: operator.or_else(|| self.operator.clone()),
            requirement: requirement.or_else(|| self.requirement.clone()),
        }
    }
}

/// Which late wake-ups are taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlamePlan {
    /// Those above this latency; without it the worst of each minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_ns: Option<i64>,
    /// Where tracing is not possible the run is made all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// Activation k falls due `k * interval` after the first *and* up to `share` of an interval later,
/// drawn from `seed`: the schedule stays absolute, every due time is known, and the mean interval
/// is the nominal one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalSpread {
    /// Share of an interval, more than 0 and at most [`SPREAD_MAX`].
    pub share: f64,
    /// Where the random numbers begin.
    pub seed: u64,
}

/// Widest spread: consecutive activations must stay apart.
pub const SPREAD_MAX: f64 = 0.9;

/// Why a text is no [`IntervalSpread`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpreadError {
    /// The seed.
    #[error("the seed `{0}` is not a whole number")]
    Seed(String),
    /// No percentage.
    #[error("`{0}` is no share: write for example 50%, or 50%:7 with a seed")]
    Share(String),
    /// None, or too much.
    #[error("write more than 0% and at most {}%", SPREAD_MAX * 100.0)]
    Range,
}

impl FromStr for IntervalSpread {
    type Err = SpreadError;
    /// `50%`, or `50%:7` with a seed.
    fn from_str(text: &str) -> Result<Self, SpreadError> {
        let (share, seed) = text.split_once(':').unwrap_or((text, "1"));
        let seed = seed.parse().map_err(|_| SpreadError::Seed(seed.to_owned()))?;
        let percent = share.strip_suffix('%').and_then(|p| p.trim().parse::<f64>().ok());
        let share = percent.ok_or_else(|| SpreadError::Share(share.to_owned()))? / 100.0;
        if share > 0.0 && share <= SPREAD_MAX {
            return Ok(Self { share, seed });
        }
        Err(SpreadError::Range)
    }
}

/// Benchmarks whose cost is measured after the latencies: docs/decide.md.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchmarkPlan {
    /// The benchmarks, in the order in which each repetition goes through them.
    #[serde(rename = "works", alias = "benchmarks")]
    pub benchmarks: Vec<Spec>,
    /// How many times each is done.
    pub repeat: u32,
}

/// What a run is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// A name for people, from the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The probe: `cyclic`, or the tool an imported run was made with.
    pub probe: String,
    /// Its options, defaults filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// What its due events are, in the singular: `hand-over`, `trial`; otherwise `activation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// What it tries the kernel for, as a clause: a violation fails the run, with or without
    /// a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// From one activation to the next.
    pub interval_ns: i64,
    /// Due activations of each thread.
    pub activations: u64,
    /// Discarded before the measurement begins.
    pub warm_up_ns: i64,
    /// Measured CPUs; empty when threads are not pinned (SCHED_DEADLINE).
    pub cpus: CpuSet,
    /// Policy of the measured threads.
    pub policy: Policy,
    /// The clock of the schedule.
    pub clock: Clock,
    /// How the threads sleep.
    pub means: Means,
    /// Loads beside it.
    pub loads: Vec<Spec>,
    /// What is required.
    pub requirement: Requirement,
    /// Written to /dev/cpu_dma_latency for the time of the run, in µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_dma_latency_us: Option<i32>,
    /// Keep every sample.
    #[serde(default)]
    pub raw: bool,
    /// Hot threads under a seccomp allow-list.
    #[serde(default)]
    pub paranoid: bool,
    /// The kernel's own tracing beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observe: Option<Observe>,
    /// Late wake-ups are taken apart, from the kernel's tracing beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<BlamePlan>,
    /// N unpinned threads, all due together, instead of one per CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u32>,
    /// Intervals drawn at random around the nominal one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<IntervalSpread>,
    /// Timer slack of the measured threads, where the plan sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_slack_ns: Option<i64>,
    /// Benchmarks measured afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<BenchmarkPlan>,
    /// May end before its time; `activations` are then the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Settings that are applied before anything is measured, and undone after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tune: Option<TuneJob>,
}

impl Plan {
    /// The probe with its options: `signal between=processes`.
    #[must_use]
    pub fn probe_words(&self) -> String {
        let options = self.options.iter().map(|(k, v)| format!(" {k}={v}"));
        std::iter::once(self.probe.clone()).chain(options).collect()
    }
    /// What comes late, in the singular: of a schedule of sleeps, a wake-up.
    #[must_use]
    pub fn late_word(&self) -> &str {
        self.event.as_deref().unwrap_or("wake-up")
    }
    /// What is due, in the singular.
    #[must_use]
    pub fn event_word(&self) -> &str {
        self.event.as_deref().unwrap_or("activation")
    }
    /// From one activation to the next; `None` where a file of another tool does not tell, or where
    /// the tool keeps no schedule.
    #[must_use]
    pub fn interval(&self) -> Option<i64> {
        (self.interval_ns > 0).then_some(self.interval_ns)
    }
    /// The interval for people: `1 ms`, or why there is none.
    #[must_use]
    pub fn interval_words(&self) -> String {
        match (self.interval(), self.means) {
            (Some(ns), _) => spaced(ns),
            (None, Means::Polling) => "not applicable: it polls".to_owned(),
            (None, _) => "unknown: not in the file".to_owned(),
        }
    }
    /// The interval within a sentence: `every 1 ms`, or that there is none.
    #[must_use]
    pub fn every(&self) -> String {
        match (self.interval(), self.means) {
            (Some(ns), _) => format!("every {}", spaced(ns)),
            (None, Means::Polling) => "no interval".to_owned(),
            (None, _) => "interval unknown".to_owned(),
        }
    }
    /// The way of sleeping for people.
    #[must_use]
    pub fn means_words(&self) -> String {
        match self.means {
            Means::Polling => "polling, no sleep".to_owned(),
            Means::NotTold => "way of sleeping unknown".to_owned(),
            known => known.to_string(),
        }
    }
    /// Length of the planned schedule for people: `60 s`, or that it is unknown.
    #[must_use]
    pub fn duration_words(&self) -> String {
        match self.duration_ns() {
            ..=0 => "unknown: not in the file".to_owned(),
            ns => format_span(ns),
        }
    }
    /// Length of the measured schedule.
    #[must_use]
    pub fn duration_ns(&self) -> i64 {
        self.interval_ns.saturating_mul(i64::try_from(self.activations).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_says_where_it_is_wrong() {
        let ok = RunConfig::parse("deadline = \"100us\"\nload = [\"hackbench\"]\n");
        assert_eq!(ok.map(|c| c.deadline), Ok(Some("100us".to_owned())));
        let wrong =
            RunConfig::parse("deadline = \"100us\"\nintreval = \"1ms\"\n").unwrap_err().to_string();
        assert!(wrong.contains("line 2") && wrong.contains("intreval"), "{wrong}");
    }

    #[test]
    fn every_word_arrives_whatever_its_value() {
        // Numbers that no TOML can hold: they once took all other words with them.
        let all: RunConfig = serde_json::from_value(serde_json::json!({
            "name": "n", "deadline": "1us", "early": "e", "class": "c", "rate": "r",
            "confidence": f64::MAX, "interval": "i", "duration": "2s", "loops": u64::MAX,
            "warm-up": "w", "cpus": "0", "policy": "p", "clock": "c", "sleep": "s",
            "interval-spread": "s", "timer-slack": "t", "load": ["none"], "load-cmd": "l",
            "cpu-dma-latency": "c", "raw": true, "paranoid": true, "observe": "o", "blame": "b",
            "probe": "p", "tasks": u32::MAX, "work": ["w"], "repeat": u32::MAX, "until": "u",
            "precision": "p", "tune": "t", "rt-cpus": "1", "title": "t",
            "operator": "o", "requirement": "r"
        }))
        .expect("all words");
        let keys = |config: &RunConfig| {
            let json = serde_json::to_value(config).expect("JSON");
            json.as_object().expect("words").values().filter(|v| !v.is_null()).count()
        };
        assert_eq!(keys(&all), 34, "a word is missing in this test");
        let none = RunConfig::default();
        assert_eq!(
            (none.over(&all), all.over(&none), all.over(&all)),
            (all.clone(), all.clone(), all.clone())
        );
        let loops = RunConfig { loops: Some(1 << 63), ..none.clone() };
        let laid = all.over(&loops);
        assert_eq!(
            (laid.loops, &laid.duration, &laid.deadline),
            (Some(1 << 63), &None, &all.deadline)
        );
        let duration = RunConfig { duration: Some("3s".into()), ..none };
        let laid = all.over(&duration);
        assert_eq!((laid.loops, laid.duration), (None, duration.duration));
    }
}
