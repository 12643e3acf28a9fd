// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every probe, by name.
//!
//! Context: SETUP. The words of the command line, its help, the man pages and the table of
//! `docs/probes.md` come from here.

use std::collections::BTreeMap;

use tailbound_core::Spec;
use tailbound_core::words::did_you_mean;

use crate::error::ProbeError;
use crate::kind::{PlanOption, Prepared, ProbeKind, Setup};

/// The probe of a run that names none.
pub static DEFAULT: &ProbeKind = &crate::cyclic::KIND;

/// Every probe.
pub static CATALOGUE: &[&ProbeKind] = &[
    // Timer wake-ups.
    &crate::cyclic::KIND,
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
    // Pulses from outside.
    &crate::answer::gpio::KIND,
    &crate::answer::udp::KIND,
    &crate::answer::uart::KIND,
];

/// The probe of this name.
///
/// # Errors
/// [`ProbeError::UnknownProbe`].
pub fn kind(name: &str) -> Result<&'static ProbeKind, ProbeError> {
    let names = || CATALOGUE.iter().map(|k| k.name);
    CATALOGUE.iter().find(|k| k.name == name).copied().ok_or_else(|| ProbeError::UnknownProbe {
        name: name.to_owned(),
        near: did_you_mean(name, names()),
        names: names().collect(),
    })
}

/// Names of the probes that an option of a plan means something to.
#[must_use]
pub fn takers(option: PlanOption) -> Vec<&'static str> {
    CATALOGUE.iter().filter(|k| k.takes.contains(&option)).map(|k| k.name).collect()
}

/// The probe of a spec, and its options with their defaults filled in.
///
/// # Errors
/// [`ProbeError::UnknownProbe`], [`ProbeError::UnknownOption`].
pub fn known(spec: &Spec) -> Result<(&'static ProbeKind, BTreeMap<String, String>), ProbeError> {
    let kind = kind(&spec.name)?;
    let known = kind.options;
    let mut all: BTreeMap<String, String> =
        known.iter().map(|o| (o.name.to_owned(), o.default.to_owned())).collect();
    for (name, value) in &spec.options {
        if !known.iter().any(|o| o.name == name) {
            let options: Vec<&str> = known.iter().filter(|o| !o.hidden).map(|o| o.name).collect();
            return Err(ProbeError::UnknownOption {
                probe: spec.name.clone(),
                option: name.clone(),
                near: did_you_mean(name, options.iter().copied()),
                options,
            });
        }
        all.insert(name.clone(), value.clone());
    }
    all.retain(|_, value| !value.is_empty());
    Ok((kind, all))
}

/// Reads the options of the plan's probe and refuses what cannot work, before anything starts.
///
/// # Errors
/// [`ProbeError`].
pub fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    (kind(&setup.plan.probe)?.prepare)(setup)
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
            known(&spec).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert!(refused("nosuch").contains("no probe is called `nosuch`"));
        assert!(refused("cyclic:x=1").contains("no option `x`"));
    }
}
