// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests, and hosts of guests.
//!
//! Source: Documentation/virt/{guest-halt-polling,kvm/halt-polling}.rst,
//! Documentation/admin-guide/kernel-parameters.txt (kvm.).

use super::PLAIN;
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

const CHECK: Check = Check { group: Group::Virtual, ..PLAIN };

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "virt.steal",
        why: "the host took the CPU, milliseconds at a time: only the host can end that. Which latency was stolen is not known: the guest's own kernel code and disabled interrupts look the same",
        for_good: "on the host: pin the virtual CPUs, profile virtual-host",
        source: "proc_stat(5)",
        needs: &[Need::Guest],
        look: steal,
        ..CHECK
    },
    Check {
        id: "virt.guest-poll",
        why: "each idle moment of a guest ends in its host, which may have given the CPU away",
        now: "tailbound tune set idle-governor=haltpoll",
        for_good: "boot with cpuidle_haltpoll.force=1",
        undo: "tailbound tune undo",
        source: "guest-halt-polling.rst",
        needs: &[Need::Guest],
        look: |m| {
            let governor = m.word("power.idle_governor")?;
            Ok(CheckOutcome::ok_if(
                governor == "haltpoll",
                Level::Warn,
                format!("idle governor {governor}"),
            ))
        },
        ..CHECK
    },
    Check {
        id: "virt.kvm-host",
        why: "a host of real-time guests must not interrupt all their CPUs for its own upkeep",
        for_good: "options kvm kvmclock_periodic_sync=N nx_huge_pages=never halt_poll_ns=0 in /etc/modprobe.d",
        source: "kernel-parameters.txt (kvm.)",
        look: kvm_host,
        ..CHECK
    },
    Check {
        id: "virt.kvm-pit",
        why: "a kernel thread for each guest plays its old timer, on any CPU",
        now: "tailbound tune set kernel-threads=housekeeping --rt-cpus {rt}",
        for_good: "guests without it: -machine pit=off",
        undo: "tailbound tune undo",
        source: "arch/x86/kvm/i8254.c",
        needs: &[Need::RtCpus],
        look: kvm_pit,
        ..CHECK
    },
];

fn steal(m: &Machine) -> Look {
    if let Some(sample) = &m.sample {
        let n = sample.stolen()?;
        return Ok(CheckOutcome::ok_if(
            n == 0,
            Level::Bad,
            format!("{n} ticks were taken in {:.0} s", sample.seconds),
        ));
    }
    let state = m.word("virt.steal")?;
    let ticks = tailbound_host::procstat::read(&m.root)?;
    let n: u64 = ticks.values().filter_map(|t| t.steal).fold(0, u64::saturating_add);
    Ok(if n == 0 {
        CheckOutcome::unknown(format!(
            "none since boot ({state}); whether the host tells is not known"
        ))
    } else {
        CheckOutcome::bad(format!("{n} ticks (of 10 ms) were taken since boot"))
    })
}

fn kvm_host(m: &Machine) -> Look {
    const BASE: &str = "/sys/module/kvm/parameters";
    if !m.root.exists(BASE) {
        return Ok(CheckOutcome::not_applicable("KVM is not loaded"));
    }
    let mut found = Vec::new();
    if m.text(&format!("{BASE}/kvmclock_periodic_sync")).is_ok_and(|t| t == "Y") {
        found.push("kvmclock_periodic_sync=Y");
    }
    if m.text(&format!("{BASE}/nx_huge_pages")).is_ok_and(|t| t == "Y") {
        found.push("nx_huge_pages=Y");
    }
    if m.number(&format!("{BASE}/halt_poll_ns")).is_ok_and(|n| n > 0) {
        found.push("halt_poll_ns > 0");
    }
    Ok(if found.is_empty() {
        CheckOutcome::ok("set for real-time guests")
    } else {
        CheckOutcome::warn(found.join(", "))
    })
}

fn kvm_pit(m: &Machine) -> Look {
    let threads = m.threads()?.iter().filter(|t| t.kernel && t.name.starts_with("kvm-pit/"));
    let (mut any, mut inside) = (false, Vec::new());
    for thread in threads {
        any = true;
        let allowed = thread.allowed.as_ref().map_err(|e| CheckOutcome::from(e.clone()))?;
        if !m.rt_in(allowed).is_empty() {
            inside.push(thread.name.clone());
        }
    }
    Ok(match (any, inside.is_empty()) {
        (false, _) => CheckOutcome::not_applicable("no guest has one"),
        (true, true) => CheckOutcome::ok("they run elsewhere"),
        (true, false) => {
            CheckOutcome::bad(format!("on real-time CPUs: {}", super::few(&inside, 3)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `blame` names disabled interrupts or the hypervisor where it cannot tell them apart; this check knows no more.
    #[test]
    fn stolen_time_does_not_clear_the_guest() {
        let steal = CHECKS.iter().find(|c| c.id == "virt.steal").expect("the check");
        assert!(!steal.why.contains("nothing in the guest"), "{}", steal.why);
        for cause in ["only the host", "kernel code", "disabled interrupts", "not known"] {
            assert!(steal.why.contains(cause), "{cause}: {}", steal.why);
        }
    }
}
