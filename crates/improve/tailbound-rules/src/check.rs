// SPDX-License-Identifier: MIT OR Apache-2.0
//! One check: what it is about, when it applies, how it looks, what mends it.
//!
//! In the texts of fixes `{rt}` and `{hk}` stand for the CPUs for real-time work and
//! for everything else, `{mask}` for the latter as the kernel's mask of 32 bits.

use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Look};

/// What a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Kernel, its command line and capabilities.
    Kernel,
    /// CPUs that are kept for real-time work.
    Isolation,
    /// Interrupts.
    Interrupts,
    /// Scheduler.
    Scheduler,
    /// RCU, watchdogs, machine checks.
    Background,
    /// Memory.
    Memory,
    /// Frequencies and idle states.
    Power,
    /// Clocks.
    Clocks,
    /// Hardware and firmware.
    Hardware,
    /// Guests and hosts.
    Virtual,
    /// Network and disks.
    Devices,
    /// The program that is to be in time.
    Application,
}

impl Group {
    /// As it is printed.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Kernel => "Kernel",
            Self::Isolation => "CPU isolation",
            Self::Interrupts => "Interrupts",
            Self::Scheduler => "Scheduler",
            Self::Background => "RCU, watchdogs, machine checks",
            Self::Memory => "Memory",
            Self::Power => "Power",
            Self::Clocks => "Clocks",
            Self::Hardware => "Hardware and firmware",
            Self::Virtual => "Virtual machines",
            Self::Devices => "Network and disks",
            Self::Application => "Application",
        }
    }
}

/// One check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name, `group.thing`.
    pub id: &'static str,
    /// What it belongs to.
    pub group: Group,
    /// Why it matters, one line.
    pub why: &'static str,
    /// What mends it until the next boot; empty where nothing does.
    pub now: &'static str,
    /// What mends it for good; empty where nothing does.
    pub for_good: &'static str,
    /// What takes the fix back; empty where there is nothing to take back.
    pub undo: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// What it needs.
    pub needs: &'static [Need],
    /// How it looks.
    pub(crate) look: fn(&Machine) -> Look,
}

impl Check {
    /// Makes the check.
    #[must_use]
    pub fn seen(&self, machine: &Machine) -> CheckOutcome {
        for need in self.needs {
            if let Some(why) = machine.lacks(*need) {
                return why;
            }
        }
        (self.look)(machine).unwrap_or_else(|e| e)
    }
}
