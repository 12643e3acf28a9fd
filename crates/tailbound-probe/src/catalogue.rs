// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every probe beside `cyclic`, by name.
//!
//! Context: SETUP. The words of the command line, its help, the man pages and the table of
//! `docs/probes.md` come from here.

use std::collections::BTreeMap;

use tailbound_core::Spec;
use tailbound_core::words::did_you_mean;

use crate::arm::{self, ProbeError};
use crate::kind::{ProbeKind, Setup};
use crate::thread_group::Running;

/// The probe that needs no catalogue: it is what `measure cyclic` and `run` do.
pub const CYCLIC: &str = "cyclic";

/// Every other probe.
pub static CATALOGUE: &[&ProbeKind] = &[
    // Hand-overs.
    &crate::handover::signal::KIND,
    &crate::handover::futex::KIND,
    &crate::handover::pi_futex::KIND,
    &crate::handover::condvar::KIND,
    &crate::handover::semaphore::KIND,
    &crate::handover::sysv_semaphore::KIND,
    &crate::handover::mqueue::KIND,
    &crate::handover::pipe::KIND,
    &crate::handover::socket::KIND,
    &crate::handover::eventfd::KIND,
    &crate::handover::epoll::KIND,
    &crate::handover::io_uring::KIND,
    &crate::handover::barrier::KIND,
    // Scheduling.
    &crate::scheduling::football::KIND,
    &crate::scheduling::pi::KIND,
    &crate::scheduling::process::KIND,
    &crate::scheduling::step::KIND,
    &crate::scheduling::preempt::KIND,
    &crate::scheduling::wake::KIND,
    &crate::scheduling::migrate::KIND,
    // Noise.
    &crate::noise::busy::KIND,
    &crate::noise::hwlat::KIND,
    &crate::noise::queue::KIND,
    &crate::noise::nmi::KIND,
    // Clocks.
    &crate::clocks::KIND,
    // Work in periods.
    &crate::periodic::deadline::KIND,
    &crate::periodic::fixed::KIND,
    &crate::periodic::load::KIND,
];

/// The probe of this name; `None` for `cyclic` and for what is no probe.
#[must_use]
pub fn kind(name: &str) -> Option<&'static ProbeKind> {
    CATALOGUE.iter().find(|k| k.name == name).copied()
}

/// The options of a probe with its defaults filled in.
///
/// # Errors
/// [`ProbeError::Usage`]: no such probe, no such option.
pub fn options(spec: &Spec) -> Result<BTreeMap<String, String>, ProbeError> {
    let known = match kind(&spec.name) {
        Some(kind) => kind.options,
        None if spec.name == CYCLIC => &[],
        None => {
            let all: Vec<&str> =
                std::iter::once(CYCLIC).chain(CATALOGUE.iter().map(|k| k.name)).collect();
            return Err(ProbeError::Usage(format!(
                "no probe is called `{}`{}; choose {}",
                spec.name,
                did_you_mean(&spec.name, all.iter().copied()),
                all.join(", ")
            )));
        }
    };
    let mut all: BTreeMap<String, String> =
        known.iter().map(|o| (o.name.to_owned(), o.default.to_owned())).collect();
    for (name, value) in &spec.options {
        if !known.iter().any(|o| o.name == name) {
            let shown: Vec<&str> = known.iter().filter(|o| !o.hidden).map(|o| o.name).collect();
            let has = if shown.is_empty() { "it has none".to_owned() } else { shown.join(", ") };
            return Err(ProbeError::Usage(format!(
                "probe {} has no option `{name}`{}: {has}",
                spec.name,
                did_you_mean(name, shown)
            )));
        }
        all.insert(name.clone(), value.clone());
    }
    all.retain(|_, value| !value.is_empty());
    Ok(all)
}

/// Refuses what cannot work, before anything starts.
///
/// # Errors
/// [`ProbeError::Usage`], [`ProbeError::Cannot`].
pub fn check(setup: &Setup<'_>) -> Result<(), ProbeError> {
    kind(&setup.plan.probe).map_or(Ok(()), |k| (k.check)(setup))
}

/// Starts the plan's probe.
///
/// # Errors
/// [`ProbeError`]; nothing is left running then.
pub fn begin(setup: &Setup<'_>) -> Result<Running, ProbeError> {
    match kind(&setup.plan.probe) {
        Some(kind) => (kind.begin)(setup),
        None => arm::arm(setup.plan, &arm::slots(setup.plan), setup.stop)?.release(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_are_distinct_and_reported() {
        for (i, kind) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE.iter().skip(i + 1).all(|k| k.name != kind.name), "{}", kind.name);
            assert!(!kind.from.is_empty() && !kind.to.is_empty(), "{}", kind.name);
            for (j, option) in kind.options.iter().enumerate() {
                assert!(kind.options.iter().skip(j + 1).all(|o| o.name != option.name));
                assert!(!option.about.is_empty(), "{} {}", kind.name, option.name);
            }
        }
    }

    #[test]
    fn what_is_no_probe_or_option_is_refused_by_name() {
        let refused = |text: &str| {
            let spec = text.parse().unwrap_or_else(|e: tailbound_core::SpecError| panic!("{e}"));
            options(&spec).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert!(refused("nosuch").contains("no probe is called `nosuch`"));
        assert!(refused("cyclic:x=1").contains("no option `x`"));
    }
}
