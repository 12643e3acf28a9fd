// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who hands over to whom: each sender with its receivers, and the CPUs they sit on.
//!
//! Context: SETUP. Units: ns.

use super::options::Arrangement;
use crate::error::ProbeError;
use crate::kind::Setup;
use crate::place::{Places, Where};

/// One sender and its receivers.
pub(super) struct Group {
    /// Its place in the phase of the interval.
    pub(super) phase_ns: i64,
    pub(super) sender: u32,
    /// CPUs of the receivers.
    pub(super) receivers: Vec<u32>,
}

/// The groups of an arrangement on this machine: one, or one a measured CPU.
///
/// # Errors
/// No CPU to measure on, or no such place beside one.
pub(super) fn groups(
    setup: &Setup<'_>,
    arrangement: &Arrangement,
) -> Result<Vec<Group>, ProbeError> {
    let cpus = setup.cpus();
    let places = Places::look(setup.root, setup.plan);
    let Some(&first) = cpus.first() else {
        return Err(ProbeError::NoCpu);
    };
    if arrangement.is_one_group() {
        let on = if arrangement.place == Where::Same { vec![first] } else { cpus };
        let n = arrangement.receiving() as usize;
        let receivers = on.iter().copied().cycle().take(n).collect();
        let sender = places.second(first, arrangement.place)?;
        return Ok(vec![Group { phase_ns: 0, sender, receivers }]);
    }
    let n = i64::try_from(cpus.len()).unwrap_or(1).max(1);
    let pair = |(cpu, i): (&u32, i64)| {
        Ok(Group {
            phase_ns: setup.plan.interval_ns / n * i,
            sender: places.second(*cpu, arrangement.place)?,
            receivers: vec![*cpu],
        })
    };
    cpus.iter().zip(0..).map(pair).collect()
}
