// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network and disks.
//!
//! Source: Documentation/networking/{scaling,napi,timestamping}.rst, ethtool(8),
//! Documentation/ABI/stable/sysfs-block.

use tailbound_core::cpus::CpuSet;
use tailbound_host::root::empty_if_absent;

use super::{PLAIN, few, number};
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

const CHECK: Check = Check { group: Group::Devices, ..PLAIN };
const NET: &str = "/sys/class/net";

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "net.rps-xps",
        why: "packets are steered to CPUs in software, real-time ones among them",
        now: "tailbound tune set packet-steering=housekeeping --rt-cpus {rt}",
        undo: "tailbound tune undo",
        source: "scaling.rst",
        needs: &[Need::RtCpus],
        look: steering,
        ..CHECK
    },
    Check {
        id: "net.coalesce",
        why: "packets wait for others, up to rx-usecs",
        now: "tailbound tune set coalescing=off",
        undo: "tailbound tune undo",
        source: "ethtool(8)",
        look: |_| Ok(CheckOutcome::unknown("ethtool -c DEVICE shows it")),
        ..CHECK
    },
    Check {
        id: "net.threaded-napi",
        why: "packets are handled by whoever runs, unless threads do it that have priorities",
        now: "tailbound tune set threaded-napi=on",
        undo: "tailbound tune undo",
        source: "napi.rst",
        look: napi,
        ..CHECK
    },
    Check {
        id: "net.busy-poll",
        why: "without it each packet costs an interrupt and a wake-up",
        now: "tailbound tune set busy-poll=50us",
        undo: "tailbound tune undo",
        source: "Documentation/admin-guide/sysctl/net.rst",
        needs: &[Need::Polling],
        look: |m| number(m, "/proc/sys/net/core/busy_poll", |n| n > 0, Level::Warn),
        ..CHECK
    },
    Check {
        id: "net.timestamp-key",
        why: "the first user of packet timestamps changes the kernel's code, which interrupts all CPUs",
        now: "start the program that uses them (ptp4l) before the real-time work",
        source: "timestamping.rst",
        needs: &[Need::RtCpus],
        look: |m| {
            Ok(if m.running(&["ptp4l", "timemaster"])?.is_empty() {
                CheckOutcome::unknown("whether a socket holds it is not shown anywhere")
            } else {
                CheckOutcome::ok("ptp4l runs: it is on already")
            })
        },
        ..CHECK
    },
    Check {
        id: "blk.rq-affinity",
        why: "the end of a disk request is handled on a CPU near the one that asked",
        now: "tailbound tune set disk-completion=same-cpu",
        undo: "tailbound tune undo",
        source: "sysfs-block",
        needs: &[Need::RtCpus],
        look: rq_affinity,
        ..CHECK
    },
];

fn steering(m: &Machine) -> Look {
    let mut inside = Vec::new();
    for device in m.root.list(NET)? {
        for queue in empty_if_absent(m.root.list(&format!("{NET}/{device}/queues")))? {
            for file in ["rps_cpus", "xps_cpus"] {
                let Ok(text) =
                    m.root.read_trimmed(&format!("{NET}/{device}/queues/{queue}/{file}"))
                else {
                    continue;
                };
                if CpuSet::of_mask(&text).is_some_and(|cpus| !m.rt_in(&cpus).is_empty()) {
                    inside.push(format!("{device} {queue}"));
                }
            }
        }
    }
    Ok(if inside.is_empty() {
        CheckOutcome::ok("no queue names real-time CPUs")
    } else {
        CheckOutcome::bad(format!("they name real-time CPUs: {}", few(&inside, 3)))
    })
}

fn napi(m: &Machine) -> Look {
    let mut off = Vec::new();
    let mut any = false;
    for device in m.root.list(NET)? {
        if device == "lo" {
            continue;
        }
        let Ok(n) = m.number(&format!("{NET}/{device}/threaded")) else { continue };
        any = true;
        if n == 0 {
            off.push(device);
        }
    }
    Ok(match (any, off.is_empty()) {
        (false, _) => CheckOutcome::not_applicable("no network device can"),
        (true, true) => CheckOutcome::ok("on"),
        (true, false) => CheckOutcome::warn(format!("off: {}", few(&off, 3))),
    })
}

fn rq_affinity(m: &Machine) -> Look {
    let mut others = Vec::new();
    let mut any = false;
    for disk in m.root.list("/sys/block")? {
        if disk.starts_with("loop") || disk.starts_with("ram") {
            continue;
        }
        let Ok(n) = m.number(&format!("/sys/block/{disk}/queue/rq_affinity")) else { continue };
        any = true;
        if n != 2 {
            others.push(format!("{disk} ({n})"));
        }
    }
    Ok(match (any, others.is_empty()) {
        (false, _) => CheckOutcome::not_applicable("no disk says where requests end"),
        (true, true) => CheckOutcome::ok("on the CPU that asked"),
        (true, false) => CheckOutcome::warn(few(&others, 3)),
    })
}
