// SPDX-License-Identifier: MIT OR Apache-2.0
//! From options to a run on this machine: which CPUs, which policy, how long.
//!
//! Context: SETUP. Units: those of `run`'s options.

use tailbound_core::cpus::CpuSet;
use tailbound_core::plan::{RunConfig, StopRule};
use tailbound_host::Cpus;

use crate::error::CyclictestError;
use crate::options::{Idle, Options, Threads};
use crate::policy::ThreadPolicy;

/// What cyclictest does without an end: as long as a run can be.
const ENDLESS_S: u64 = 365 * 86_400;

/// A run in the words of `run`, and what is shown of it.
#[derive(Debug)]
pub(crate) struct Placement {
    pub(crate) config: RunConfig,
    /// Those of the threads.
    pub(crate) cpus: Vec<u32>,
    /// How many there were to choose from.
    pub(crate) usable: usize,
    pub(crate) policy: ThreadPolicy,
    pub(crate) notes: Vec<String>,
}

impl Placement {
    /// # Errors
    /// CPUs that are not there; more threads than CPUs; what several threads cannot have.
    pub(crate) fn of(options: &Options, machine: &Cpus) -> Result<Self, CyclictestError> {
        let mut notes = options.notes.clone();
        let usable = match &options.cpus {
            None => machine.resolve("all")?,
            Some(list) => machine.resolve(plain(list, "-a")?)?,
        };
        let threads = match options.threads {
            Threads::One => 1,
            Threads::Number(n) => n,
            Threads::PerCpu => usable.len(),
        };
        if threads > usable.len() {
            return Err(CyclictestError::Threads { threads, cpus: usable.len() });
        }
        options.of_several(threads)?;
        if threads > 1 && options.distance_us.is_none() && options.rows == 0 {
            notes.push(format!(
                "all threads have an interval of {} us: cyclictest adds 500 us for each further thread unless -d 0 or -h is given",
                options.interval_us
            ));
        }
        let cpus: Vec<u32> = usable.iter().take(threads).collect();
        let (policy, note) = ThreadPolicy::of(options.policy, options.priority, threads);
        notes.extend(note);
        let list: CpuSet = cpus.iter().copied().collect();
        let mut config = RunConfig {
            interval: Some(format!("{}us", options.interval_us)),
            cpus: Some(list.to_string()),
            policy: Some(policy.option()),
            warm_up: Some("0s".to_owned()),
            raw: Some(true),
            clock: options.realtime_clock.then(|| "realtime".to_owned()),
            sleep: options.posix_timers.then(|| "posix-timer".to_owned()),
            ..RunConfig::default()
        };
        if options.break_at > 0 {
            config.deadline = Some(format!("{}ns", options.unit.limit_ns(options.break_at)));
            config.until = Some(StopRule::Exceedance.to_string());
        }
        if let Idle::HeldAt(us) = options.idle {
            config.cpu_dma_latency = Some(format!("{us}us"));
        }
        length(options, &mut config);
        Ok(Self { config, cpus, usable: usable.len(), policy, notes })
    }
}

/// A list of CPUs as `run` takes it.
///
/// # Errors
/// One of those that only cyclictest has.
pub(crate) fn plain<'l>(list: &'l str, option: &'static str) -> Result<&'l str, CyclictestError> {
    match list.trim() {
        list if list.starts_with(['!', '+']) => Err(CyclictestError::Refused {
            option: option.to_owned(),
            why: format!(
                "`{list}` leaves CPUs out or goes beyond the process's own: name the CPUs, for example 0-2,4"
            ),
        }),
        // All that there are, as libnuma has it.
        "all" => Ok("all"),
        list => list
            .parse::<CpuSet>()
            .map(|_| list)
            .map_err(|source| CyclictestError::Cpus { option, source }),
    }
}

/// `-l` and `-D`, whichever is first.
fn length(options: &Options, config: &mut RunConfig) {
    let Options { loops, duration_s, interval_us, .. } = *options;
    let of_duration = duration_s.saturating_mul(1_000_000) / interval_us.max(1);
    match (loops, duration_s) {
        (0, 0) => config.duration = Some(format!("{ENDLESS_S}s")),
        (0, s) => config.duration = Some(format!("{s}s")),
        (n, 0) => config.loops = Some(n),
        (n, _) => config.loops = Some(n.min(of_duration).max(1)),
    }
}
