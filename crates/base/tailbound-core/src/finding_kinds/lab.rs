// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about runs of the lab.

use super::FindingKind;

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind::new("lab-guest", "The guest reported something."),
    FindingKind::new("lab-kvm", "The guest ran under KVM, not in virtual time.")
        .meaning("These latencies come from the host as much as from the guest, and do not repeat.")
        .remedy("Leave out --kvm for figures that repeat."),
    FindingKind::new("lab-threads", "QEMU's main loop could not be kept from its virtual CPU.")
        .meaning("About one run in thirty differs by some hundred instructions at some wake-ups.")
        .remedy(
            "Use Linux 5.5 or later on the host, outside of containers that forbid seccomp(2).",
        ),
    FindingKind::new("lab-smp", "The CPUs of the guest took turns in virtual time."),
];
