// SPDX-License-Identifier: MIT OR Apache-2.0
//! Firmware that takes a CPU when it is called, and parts of the chip that share memory with the CPUs.
//!
//! Source: Documentation/core-api/real-time/{hardware,kernel-configuration}.rst, drivers/firmware/efi/efi.c,
//! drivers/tee/tee_core.c, Documentation/ABI/testing/sysfs-devices-edac, sysfs-edac-scrub.

use tailbound_core::CpuSet;
use tailbound_host::root::{Missing, empty_if_absent};

use super::{PLAIN, few};
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::outcome::{CheckOutcome, Look};

const CHECK: Check = Check { group: Group::Hardware, ..PLAIN };
/// Where calls of EFI's services wait; there only while they are on.
const EFI_QUEUE: &str = "/sys/devices/virtual/workqueue/efi_runtime/cpumask";
const TEE: &str = "/sys/class/tee";
/// `TEE_IMPL_ID_OPTEE`
const OP_TEE: i64 = 1;
const CONTROLLERS: &str = "/sys/devices/system/edac/mc";
const SCRUBBERS: &str = "/sys/bus/edac/devices";
const PCI_DRIVERS: &str = "/sys/bus/pci/drivers";
/// The place of the graphics of Intel's processors.
const INTEL_GRAPHICS: &str = "0000:00:02.0";

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "hw.efi-runtime",
        why: "a call of EFI's services (its clock, its variables) keeps a CPU for up to 10 ms or more",
        now: "echo {mask} > /sys/devices/virtual/workqueue/efi_runtime/cpumask",
        for_good: "boot with efi=noruntime",
        undo: "write the old mask back",
        source: "Documentation/core-api/real-time/hardware.rst",
        look: efi_runtime,
        ..CHECK
    },
    Check {
        id: "hw.op-tee",
        why: "a call into the secure world keeps its CPU until it returns",
        now: "bind tee-supplicant and what opens /dev/tee* to CPUs {hk}",
        source: "Documentation/core-api/real-time/hardware.rst",
        look: op_tee,
        ..CHECK
    },
    Check {
        id: "hw.memory-scrub",
        why: "memory controllers that search for errors make accesses wait",
        now: "echo 0 > each /sys/devices/system/edac/mc/mc*/sdram_scrub_rate (errors then add up)",
        for_good: "firmware settings: patrol scrub",
        undo: "write the old rate back",
        source: "Documentation/core-api/real-time/hardware.rst",
        look: memory_scrub,
        ..CHECK
    },
    Check {
        id: "hw.graphics",
        why: "graphics in the processor share its cache, memory and power",
        for_good: "boot with modprobe.blacklist=i915,xe where no screen is needed",
        source: "Documentation/core-api/real-time/hardware.rst",
        look: graphics,
        ..CHECK
    },
];

/// Whether EFI's services may be called.
enum EfiServices {
    On,
    /// What switched them off.
    Off(&'static str),
}

fn efi_services(m: &Machine) -> Result<EfiServices, CheckOutcome> {
    let mut said = None;
    for word in m.words()? {
        match word.split_once('=') {
            None if word == "noefi" => said = Some(EfiServices::Off("noefi")),
            Some(("efi", list)) => {
                for one in list.split(',') {
                    match one {
                        "noruntime" => said = Some(EfiServices::Off("efi=noruntime")),
                        "runtime" => said = Some(EfiServices::On),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    if let Some(said) = said {
        return Ok(said);
    }
    Ok(match m.config("EFI_DISABLE_RUNTIME")?.as_deref() {
        Some("y") => EfiServices::Off("CONFIG_EFI_DISABLE_RUNTIME=y"),
        // Before the option came, in 5.18, kernels with PREEMPT_RT had them off.
        _ if m.is_rt() && ((5, 15)..(5, 18)).contains(&m.release) => EfiServices::Off("PREEMPT_RT"),
        _ => EfiServices::On,
    })
}

fn efi_runtime(m: &Machine) -> Look {
    m.root.list("/sys/firmware/efi")?;
    let mask = empty_if_absent(m.root.read_trimmed(EFI_QUEUE))?;
    if mask.is_empty() {
        return Ok(match efi_services(m)? {
            EfiServices::Off(why) => CheckOutcome::ok(format!("off: {why}")),
            EfiServices::On => CheckOutcome::warn("they are on, and may run on any CPU"),
        });
    }
    let cpus = CpuSet::of_mask(&mask)
        .ok_or_else(|| CheckOutcome::unknown(format!("{EFI_QUEUE} reads `{mask}`")))?;
    Ok(if m.rt.is_empty() || !m.rt_in(&cpus).is_empty() {
        CheckOutcome::warn(format!("they are on, and may run on CPUs {cpus}"))
    } else {
        CheckOutcome::ok(format!("on, but kept to CPUs {cpus}"))
    })
}

fn op_tee(m: &Machine) -> Look {
    let mut found = Vec::new();
    for name in m.root.list(TEE)?.into_iter().filter(|name| !name.starts_with("teepriv")) {
        let which = m.root.parsed::<i64>(&format!("{TEE}/{name}/implementation_id"));
        if which.map_err(Missing::as_unknown)? == OP_TEE {
            found.push(format!("/dev/{name}"));
        }
    }
    Ok(if found.is_empty() {
        CheckOutcome::ok("no OP-TEE")
    } else {
        CheckOutcome::warn(format!("OP-TEE answers: {}", few(&found, 4)))
    })
}

fn memory_scrub(m: &Machine) -> Look {
    let controllers = empty_if_absent(m.root.list(CONTROLLERS))?;
    let scrubbers = empty_if_absent(m.root.list(SCRUBBERS))?;
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for name in controllers.into_iter().filter(|name| name.starts_with("mc")) {
        // Only drivers that can tell have the file.
        let rate = m.root.read_trimmed(&format!("{CONTROLLERS}/{name}/sdram_scrub_rate"));
        match empty_if_absent(rate)?.as_str() {
            "" => {}
            "0" => off.push(name),
            rate => on.push(format!("{name} at {rate} bytes/s")),
        }
    }
    for device in scrubbers {
        let parts = empty_if_absent(m.root.list(&format!("{SCRUBBERS}/{device}")))?;
        for part in parts.into_iter().filter(|part| part.starts_with("scrub")) {
            let path = format!("{SCRUBBERS}/{device}/{part}/enable_background");
            match empty_if_absent(m.root.read_trimmed(&path))?.as_str() {
                "" => {}
                "0" => off.push(format!("{device} {part}")),
                _ => on.push(format!("{device} {part}")),
            }
        }
    }
    Ok(match (on.is_empty(), off.is_empty()) {
        (false, _) => CheckOutcome::warn(few(&on, 4)),
        (true, false) => CheckOutcome::ok(format!("off: {}", few(&off, 4))),
        (true, true) => CheckOutcome::unknown("no driver (EDAC) tells; firmware may do it"),
    })
}

fn graphics(m: &Machine) -> Look {
    let drivers = m.root.list(PCI_DRIVERS)?;
    for driver in ["i915", "xe"] {
        let devices = empty_if_absent(m.root.list(&format!("{PCI_DRIVERS}/{driver}")))?;
        if devices.iter().any(|name| name == INTEL_GRAPHICS) {
            return Ok(CheckOutcome::warn(format!("driver {driver} at {INTEL_GRAPHICS}")));
        }
    }
    let is_device = |name: &String| name.split(':').count() == 3;
    let amd = drivers.iter().any(|driver| driver == "amdgpu")
        && m.root.list(&format!("{PCI_DRIVERS}/amdgpu"))?.iter().any(is_device);
    Ok(if amd {
        CheckOutcome::unknown("amdgpu does not tell whether its graphics are in the processor")
    } else {
        CheckOutcome::ok("no driver of Intel's or AMD's graphics has any")
    })
}
