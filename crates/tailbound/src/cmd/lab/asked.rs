// SPDX-License-Identifier: MIT OR Apache-2.0
//! From flags to what the lab is asked.
//!
//! Context: COLD.

use tailbound_core::lab::Tester;
use tailbound_core::plan::{Campaign, LoadSpec};
use tailbound_lab::Asked;
use tailbound_probe::catalogue;

use crate::cli_lab::{GuestArgs, HostArgs, ProbeArgs};
use crate::names;
use crate::say::Failure;

/// Lays the flags over `asked`.
pub(super) fn lay(
    asked: &mut Asked,
    guest: &GuestArgs,
    probe: &ProbeArgs,
    host: &HostArgs,
) -> Result<(), Failure> {
    fn over<T: Clone>(file: &mut Option<T>, flag: Option<&T>) {
        if let Some(value) = flag {
            *file = Some(value.clone());
        }
    }
    over(&mut asked.arch, guest.arch.as_ref());
    over(&mut asked.machine, guest.machine.as_ref());
    over(&mut asked.smp, guest.smp.as_ref());
    over(&mut asked.memory_mib, guest.memory.as_ref());
    over(&mut asked.shift, guest.shift.as_ref());
    over(&mut asked.seed, guest.seed.as_ref());
    asked.kvm |= guest.kvm;
    if !guest.with.is_empty() {
        asked.with.clone_from(&guest.with);
    }
    asked.guest.clone_from(&host.guest);
    if let Some(path) = &probe.campaign {
        let at = |e: &dyn std::fmt::Display| {
            Failure::usage(format!("--campaign {}: {e}", path.display()))
        };
        let text = tailbound_sys::given::text(path, tailbound_core::limits::TEXT_BYTES_MAX)
            .map_err(|e| at(&e))?;
        asked.campaign = Campaign::parse(&text).map_err(|e| at(&e))?;
    }
    let words = &mut asked.campaign;
    if probe.cycles.is_some() {
        (words.loops, words.duration) = (None, None);
    }
    over(&mut words.loops, probe.cycles.as_ref());
    over(&mut words.interval, probe.interval.as_ref());
    over(&mut words.warm_up, probe.warm_up.as_ref());
    over(&mut words.deadline, probe.deadline.as_ref());
    over(&mut words.policy, probe.policy.as_ref());
    over(&mut words.means, probe.means.as_ref());
    over(&mut words.observe, probe.observe.as_ref());
    over(&mut words.probe, probe.probe.as_ref());
    known(words)?;
    asked.targets.clone_from(&guest.target);
    // A command has a path; a tester that a target brings has a name.
    let named = !guest.target.is_empty() && probe.tester.as_ref().is_some_and(|t| !t.contains('/'));
    if named {
        let names = probe.tester.as_deref().unwrap_or_default().split(',');
        asked.testers = names.map(str::to_owned).collect();
    } else if let Some(line) = &probe.tester {
        asked.tester = Some(Tester {
            command: line.split_ascii_whitespace().map(str::to_owned).collect(),
            format: probe.format.clone(),
            file: probe.tester_file.clone(),
            ..Tester::default()
        });
    }
    Ok(())
}

/// What else than kernel and load tells the runs of these words from those of others: `-pi`,
/// `-timerlat` (of `timerlat.toml`); nothing for the usual ones.
pub(super) fn more(asked: &Asked, probe: &ProbeArgs) -> String {
    let file = probe.campaign.as_deref().and_then(std::path::Path::file_stem);
    let file = file.map(|stem| stem.to_string_lossy().into_owned());
    let mut more = String::new();
    for word in file.iter().chain(&asked.campaign.probe).chain(&probe.observe) {
        more.push_str(&format!("-{}", names::plain(word)));
    }
    more
}

/// Refuses a probe or option that is not known before anything boots, and gives a probe of the
/// catalogue its own interval: the lab's is for the loop alone.
fn known(words: &mut Campaign) -> Result<(), Failure> {
    let Some(text) = &words.probe else { return Ok(()) };
    let spec: LoadSpec =
        text.parse().map_err(|e| Failure::usage(format!("--probe {text}: {e}")))?;
    catalogue::options(&spec).map_err(|e| Failure::usage(e.to_string()))?;
    if let Some(kind) = catalogue::kind(&spec.name) {
        words.interval.get_or_insert_with(|| kind.interval.to_owned());
    }
    Ok(())
}
