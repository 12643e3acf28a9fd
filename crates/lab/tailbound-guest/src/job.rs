// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the guest's job comes from.
//!
//! Context: SETUP. With `tailbound.job=fw_cfg` the guest is stopped at one instant of its
//! time, the same each time, and reads its job when its host lets it go on: so that
//! everything up to there can be a snapshot, and a run from it is the run without it.
//! Otherwise the job is a file of the initramfs.
//! The instant is the end of a watchdog's time, in the middle of a long sleep. A processor
//! that executes cannot be stopped that exactly: QEMU's threads race for who is told first.
//! Source: QEMU docs/specs/fw_cfg.txt (selector 0x19 is the directory; numbers in it are
//! big-endian).

use std::fs;

use tailbound_core::lab::Job;
use tailbound_sys::{boot, ipc};

use crate::error::GuestError;
use crate::system::System;

/// Name of the job among the host's fw_cfg files.
const NAME: &str = "opt/tailbound/job";
/// Twice the watchdog's two seconds.
const ASLEEP_MS: i32 = 4000;
/// The word that makes it another time, beyond those two seconds: where each slice of what is left costs.
const ASLEEP: &str = "tailbound.asleep_ms";
const DIRECTORY: u16 = 0x19;
/// size (4), selector (2), reserved (2), name (56).
const ENTRY_BYTES: usize = 64;
const ENTRIES_MAX: u32 = 4096;

/// Takes it.
pub(crate) fn take(system: &System) -> Result<Job, GuestError> {
    let text = match system.word("tailbound.job").as_deref() {
        Some("fw_cfg") => {
            boot::allow_ports(boot::WATCHDOG_PORT, 1)?;
            boot::allow_ports(boot::FW_CFG_PORT, 2)?;
            let asked = system.word(ASLEEP).and_then(|text| text.parse().ok());
            crate::say("ready");
            boot::start_watchdog();
            ipc::wait_readable(&[], asked.unwrap_or(ASLEEP_MS))?;
            from_host()?
        }
        _ => {
            crate::say("ready");
            fs::read("/job.json").map_err(GuestError::file("/job.json"))?
        }
    };
    let job: Job = serde_json::from_slice(&text)?;
    match job.unknown_fields().first() {
        Some(name) => Err(GuestError::UnknownField(name.clone())),
        None => Ok(job),
    }
}

fn from_host() -> Result<Vec<u8>, GuestError> {
    let count = number(&boot::fw_cfg(DIRECTORY, 4));
    if count > ENTRIES_MAX {
        return Err(GuestError::NoDevice);
    }
    let entries: Vec<Vec<u8>> = (0..count).map(|_| boot::fw_cfg_more(ENTRY_BYTES)).collect();
    for entry in entries {
        let name = entry.get(8..).unwrap_or_default().split(|&b| b == 0).next();
        if name == Some(NAME.as_bytes()) {
            let size = number(entry.get(..4).unwrap_or_default());
            let selector = number(entry.get(4..6).unwrap_or_default());
            let selector = u16::try_from(selector)?;
            return Ok(boot::fw_cfg(selector, usize::try_from(size)?));
        }
    }
    Err(GuestError::NoJob(NAME))
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b))
}
