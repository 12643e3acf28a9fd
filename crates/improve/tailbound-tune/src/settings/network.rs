// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets: where they are handled, and how soon.
//!
//! Units: µs. Source: Documentation/networking/{scaling,napi}.rst,
//! Documentation/admin-guide/sysctl/net.rst, ethtool(8).

use tailbound_core::CpuSet;

use super::{Draft, Effect, Omission, OnRefusal, Setting, Value, Values, isolation};
use crate::coalescing;
use crate::codec::Codec;
use crate::target::Target;

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: "packet-steering",
        about: "Packets are not steered to real-time CPUs (RPS, XPS)",
        cures: &["net.rps-xps"],
        cost: "other CPUs handle them",
        values: Values::Words(&[("housekeeping", "housekeeping")]),
        needs_cpus: true,
        effect: Effect::Function(steering),
    },
    Setting {
        name: "busy-poll",
        about: "poll(2) asks the network device itself for this time, instead of waiting for its interrupt",
        cures: &["net.busy-poll"],
        cost: "a CPU that asks is busy",
        values: Values::Microseconds(0, 1000),
        needs_cpus: false,
        effect: Effect::Files(&[
            ("/proc/sys/net/core/busy_poll", Codec::Number),
            ("/proc/sys/net/core/busy_read", Codec::Number),
        ]),
    },
    Setting {
        name: "coalescing",
        about: "How long network devices wait for further packets before they interrupt; off: not at all",
        cures: &["net.coalesce"],
        cost: "an interrupt for every packet",
        values: Values::OffOrMicroseconds(0, 1000),
        needs_cpus: false,
        effect: Effect::Function(coalesced),
    },
    Setting {
        name: "threaded-napi",
        about: "Packets are handled by threads, which have priorities and CPUs",
        cures: &["net.threaded-napi"],
        cost: "one more switch for each burst of packets",
        values: Values::Words(&[("on", "1"), ("off", "0")]),
        needs_cpus: false,
        effect: Effect::Each("/sys/class/net", "/sys/class/net/{}/threaded", Codec::Number),
    },
];

fn steering(draft: &mut Draft<'_>, _: &Value) {
    const BASE: &str = "/sys/class/net";
    for device in draft.facts.root.list(BASE).unwrap_or_default() {
        let queues = format!("{BASE}/{device}/queues");
        for queue in draft.facts.root.list(&queues).unwrap_or_default() {
            for file in ["rps_cpus", "xps_cpus"] {
                let path = format!("{queues}/{queue}/{file}");
                // A queue that no CPU feeds (xps_cpus without XPS) refuses to be read.
                if draft.facts.root.read_trimmed(&path).is_ok() && steers(draft, &path) {
                    isolation::mask(draft, &path, Codec::Mask);
                }
            }
        }
    }
}

/// Devices of hardware only: a bridge, a tunnel or one end of a veth pair interrupts nobody, and
/// its driver may know the call for another purpose (tun: packets in a batch).
fn coalesced(draft: &mut Draft<'_>, value: &Value) {
    const BASE: &str = "/sys/class/net";
    let Ok(rx_us) = value.0.parse() else { return };
    let root = draft.facts.root.clone();
    for device in root.list(BASE).unwrap_or_default() {
        // A tree of files may lack the link of a device that has hardware.
        if root.is_real() && !root.exists(&format!("{BASE}/{device}/device")) {
            draft
                .leave_out(format!("{device} has no hardware that interrupts"), Omission::Harmless);
            continue;
        }
        match coalescing::read(&root, &device) {
            Ok(now) => {
                let new = coalescing::text(coalescing::with_wait(now, rx_us));
                // What values a driver takes it says only when they are set.
                draft.change(Target::Coalescing { device }, Some(new), OnRefusal::Skip);
            }
            // Hardware that cannot: whoever asked for this is told.
            Err(why) => draft.leave_out(why.reason().to_owned(), Omission::Wanting),
        }
    }
}

/// An empty mask is "off", and stays so.
fn steers(draft: &mut Draft<'_>, path: &str) -> bool {
    let state = draft.read(&Target::setting(path, Codec::Mask)).flatten().unwrap_or_default();
    state.parse::<CpuSet>().is_ok_and(|cpus| !cpus.is_empty())
}
