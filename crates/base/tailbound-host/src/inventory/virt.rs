// SPDX-License-Identifier: MIT OR Apache-2.0
//! `virt.*`: is this a guest, a container, and does the hypervisor tell what it takes?
//!
//! "None" is said only where something proves it: on x86 the hypervisor flag
//! of the CPU, for containers the number of the initial PID namespace.
//! Source: Documentation/virt/kvm/x86/cpuid.rst, Documentation/ABI/stable/sysfs-hypervisor-xen,
//! include/linux/proc_ns.h (PROC_PID_INIT_INO).

use tailbound_core::record::{Fact, Facts};

use super::{Sheet, machine};
use crate::procstat;
use crate::root::{Found, Missing, Root};

/// DMI vendor or product (beginning of) to hypervisor.
const DMI_NAMES: &[(&str, &str)] = &[
    ("QEMU", "qemu"),
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "virtualbox"),
    ("VirtualBox", "virtualbox"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Virtual Machine", "microsoft"),
    ("Apple Virtualization", "apple"),
    ("Firecracker", "firecracker"),
];

pub(super) fn read(sheet: &mut Sheet<'_>) {
    let kind = kind(sheet.root);
    let steal = steal(sheet.root, &kind);
    sheet.put("virt.kind", kind);
    sheet.put("virt.container", container(sheet.root));
    sheet.put("virt.steal", steal);
    sheet.number("virt.guest_halt_poll_ns", "/sys/module/haltpoll/parameters/guest_halt_poll_ns");
}

/// The hypervisor's name, `unnamed` where only its presence is known, `none` on bare metal.
fn kind(root: &Root) -> Found<String> {
    if let Ok(kind) = root.read_trimmed("/sys/hypervisor/type") {
        return Ok(kind);
    }
    for file in ["product_name", "sys_vendor", "board_vendor", "bios_vendor"] {
        let text = root.read_trimmed(&format!("{}/{file}", machine::DMI)).unwrap_or_default();
        // Amazon's and Google's bare-metal machines carry their names as well.
        let metal = root
            .read_trimmed(&format!("{}/product_name", machine::DMI))
            .is_ok_and(|p| p.contains(".metal"));
        let known = DMI_NAMES.iter().find(|(name, _)| text.starts_with(name));
        if let (Some((_, kind)), false) = (known, metal) {
            return Ok((*kind).to_owned());
        }
    }
    if let Ok(compatible) = root.read_trimmed("/proc/device-tree/hypervisor/compatible") {
        return Ok(compatible.split('\0').next().unwrap_or("unnamed").to_owned());
    }
    if root.exists("/proc/device-tree/fw-cfg@9020000") {
        return Ok("qemu".to_owned());
    }
    let info = root.text("/proc/cpuinfo")?;
    let flags = info.lines().find(|l| l.starts_with("flags"));
    match flags {
        Some(line) if line.split_ascii_whitespace().any(|w| w == "hypervisor") => {
            Ok(by_clock(root))
        }
        Some(_) => Ok("none".to_owned()),
        None => Err(Missing::Unknown(
            "no sign of a hypervisor, but this architecture has no flag that would rule one out"
                .to_owned(),
        )),
    }
}

/// Which hypervisor, by the clock it offers.
fn by_clock(root: &Root) -> String {
    let clocks = root
        .read_trimmed("/sys/devices/system/clocksource/clocksource0/available_clocksource")
        .unwrap_or_default();
    [("kvm-clock", "kvm"), ("hyperv", "microsoft"), ("xen", "xen")]
        .into_iter()
        .find(|(clock, _)| clocks.contains(clock))
        .map_or("unnamed", |(_, kind)| kind)
        .to_owned()
}

fn container(root: &Root) -> Found<String> {
    const INITIAL: &str = "pid:[4026531836]";
    let namespace = root.link("/proc/self/ns/pid");
    let initial = namespace.as_ref().is_ok_and(|link| link == INITIAL);
    // With process 1 being the machine's own and our mounts its mounts, a marker file is only
    // a left-over of the image the machine was made of.
    let mounts = |of: &str| root.link(&format!("/proc/{of}/ns/mnt")).ok();
    if initial && mounts("self").is_some_and(|own| Some(own) == mounts("1")) {
        return Ok("none".to_owned());
    }
    if let Ok(kind) = root.read_trimmed("/run/systemd/container") {
        return Ok(kind);
    }
    if let Ok(environ) = root.read_trimmed("/proc/1/environ")
        && let Some(kind) = environ.split('\0').find_map(|v| v.strip_prefix("container="))
    {
        return Ok(kind.to_owned());
    }
    for (path, kind) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if root.exists(path) {
            return Ok(kind.to_owned());
        }
    }
    match namespace {
        Ok(_) if initial => Ok("none".to_owned()),
        Ok(_) => Ok("unnamed".to_owned()),
        Err(e) => Err(e.as_unknown()),
    }
}

/// Does the hypervisor report stolen time? Only what was stolen proves it.
fn steal(root: &Root, kind: &Found<String>) -> Found<bool> {
    let is_guest = !matches!(kind, Ok(k) if k == "none");
    let ticks = procstat::read(root)?;
    let stolen = ticks.values().any(|t| t.steal.is_some_and(|s| s > 0));
    match (stolen, is_guest) {
        (true, _) => Ok(true),
        (false, false) => Err(Missing::NotApplicable("this is no guest".to_owned())),
        (false, true) => Err(Missing::Unknown(
            "none since boot: either nothing was stolen or the hypervisor does not report it"
                .to_owned(),
        )),
    }
}

/// Is a hypervisor beneath, by the facts of an inventory?
#[must_use]
pub fn is_virtual_machine(facts: &Facts) -> Option<bool> {
    facts.get("virt.kind").and_then(Fact::as_str).map(|kind| kind != "none")
}

/// The facts of the machine that a file of trace-cmd is from, by its `uname`: known where it is this machine.
#[must_use]
pub fn machine_of(uname: Option<&str>) -> Option<Facts> {
    let root = Root::real();
    let word = |path: &str| root.text(path).ok().map(|t| t.trim().to_owned());
    let (name, release) = (word("/proc/sys/kernel/hostname")?, word("/proc/sys/kernel/osrelease")?);
    let this = format!("Linux {name} {release} {}", std::env::consts::ARCH);
    (uname == Some(this.as_str())).then(|| super::inventory(&root))
}
