// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupts of the machine: how often each came on each CPU, whose they are, where they
//! may be handled.
//!
//! Units: counts since boot. Nothing is written, not even to find out whether
//! an interrupt can be moved: the mode of its `smp_affinity` tells.
//! Source: proc_interrupts(5), Documentation/core-api/irq/irq-affinity.rst,
//! Documentation/ABI/testing/sysfs-kernel-irq, kernel/irq/proc.c (mode 0444 where managed).

use std::collections::BTreeMap;

use tailbound_core::CpuSet;

use crate::root::{Found, Missing, Root};

/// `/proc/interrupts`, with what `/proc/irq` adds to each line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// Interrupts of devices, by number.
    pub lines: Vec<Interrupt>,
    /// Interrupts that have no number: timers, calls between CPUs, NMI.
    pub classes: Vec<Class>,
}

/// One numbered interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number; the kernel may give it to another device after a reboot or reload.
    pub number: u32,
    /// How often it came, by CPU.
    pub counts: BTreeMap<u32, u64>,
    /// Interrupt controller and line, as the kernel writes them.
    pub chip: String,
    /// Who handles it; several where it is shared.
    pub actions: Vec<String>,
    /// Where it may be handled.
    pub affinity: Found<CpuSet>,
    /// Where the hardware sends it.
    pub effective: Found<CpuSet>,
    /// The kernel alone decides where it goes (since Linux 6.12 its files are read-only then).
    pub managed: Found<bool>,
}

impl Interrupt {
    /// How often it came on all CPUs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |a, b| a.saturating_add(*b))
    }
}

/// A kind of interrupt without a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// `LOC`, `RES`, `CAL`, `TLB`, `NMI`, `IPI0` …
    pub name: String,
    /// The kernel's words for it.
    pub about: String,
    /// How often it came, by CPU; empty for those that count the machine as a whole.
    pub counts: BTreeMap<u32, u64>,
}

/// Reads them all.
///
/// # Errors
/// [`Missing`] where `/proc/interrupts` cannot be read.
pub fn interrupts(root: &Root) -> Found<Interrupts> {
    let mut all = table(root)?;
    for line in &mut all.lines {
        let dir = format!("/proc/irq/{}", line.number);
        line.affinity = root.cpus(&format!("{dir}/smp_affinity_list"));
        line.effective = root.cpus(&format!("{dir}/effective_affinity_list"));
        line.managed = managed(root, &dir);
        // What the kernel separates by commas where handlers share a line.
        let path = format!("/sys/kernel/irq/{}/actions", line.number);
        if let Ok(text) = root.read_trimmed(&path)
            && !text.is_empty()
        {
            line.actions = text.split(',').map(|a| a.trim().to_owned()).collect();
        }
    }
    Ok(all)
}

/// The table alone, which costs one read.
pub(crate) fn table(root: &Root) -> Found<Interrupts> {
    Ok(counts(&root.text("/proc/interrupts")?))
}

/// Does the kernel alone decide? A file nobody may write says so; one that root may write says
/// "no" only since the kernel has made the difference.
fn managed(root: &Root, dir: &str) -> Found<bool> {
    let path = format!("{dir}/smp_affinity");
    let mode =
        root.mode(&path).map_err(|_| Missing::NotApplicable(format!("there is no {path}")))?;
    let release = root.read_trimmed("/proc/sys/kernel/osrelease").unwrap_or_default();
    match (mode & 0o222, tailbound_sys::hostinfo::release(&release)) {
        (0, _) => Ok(true),
        (_, Some(version)) if version >= (6, 12) => Ok(false),
        _ => Err(Missing::Unknown(
            "before Linux 6.12 only a write tells whether the kernel manages an interrupt"
                .to_owned(),
        )),
    }
}

/// The table alone: of text that may be of any kernel.
fn counts(text: &str) -> Interrupts {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|w| w.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut all = Interrupts::default();
    for line in lines {
        let Some((name, mut rest)) = line.split_once(':') else { continue };
        let mut counts = BTreeMap::new();
        for cpu in &cpus {
            let trimmed = rest.trim_start();
            let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
            let (word, after) = trimmed.split_at(end);
            let Ok(count) = word.parse::<u64>() else { break };
            counts.insert(*cpu, count);
            rest = after;
        }
        let about = rest.split_ascii_whitespace().collect::<Vec<_>>();
        match name.trim().parse() {
            Ok(number) => all.lines.push(numbered(number, counts, &about)),
            // ERR and MIS are one number for the machine.
            Err(_) => all.classes.push(Class {
                name: name.trim().to_owned(),
                about: about.join(" "),
                counts: if counts.len() == cpus.len() { counts } else { BTreeMap::new() },
            }),
        }
    }
    all
}

/// `IO-APIC   4-edge      ttyS0, other`: the controller may be several words, so the handlers are
/// what stands behind the word that ends in the kind of trigger.
fn numbered(number: u32, counts: BTreeMap<u32, u64>, about: &[&str]) -> Interrupt {
    const TRIGGERS: &[&str] = &["edge", "level", "fasteoi", "Edge", "Level"];
    let trigger = about.iter().position(|w| TRIGGERS.iter().any(|t| w.ends_with(t)));
    let at = trigger.map_or(about.len().min(2), |at| at.saturating_add(1));
    let (chip, actions) = about.split_at_checked(at).unwrap_or((about, &[]));
    let actions = actions.join(" ");
    Interrupt {
        number,
        counts,
        chip: chip.join(" "),
        actions: actions.split(", ").filter(|a| !a.is_empty()).map(str::to_owned).collect(),
        affinity: Err(Missing::Unknown("not read".to_owned())),
        effective: Err(Missing::Unknown("not read".to_owned())),
        managed: Err(Missing::Unknown("not read".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const X86: &str = "           CPU0       CPU1       \n 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n 36:          0    3625457 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n 44: 5 6 IO-APIC 16-fasteoi ehci_hcd:usb1, i801 smbus\nNMI:          0          2   Non-maskable interrupts\nERR:          0\n";
    const ARM: &str = "           CPU0       CPU2\n 11:     100        200     GICv3  27 Level     arch_timer\nIPI0:      8          9       Rescheduling interrupts\nErr:          0\n";

    #[test]
    fn reads_tables_of_two_architectures() {
        let x86 = counts(X86);
        let of = |i: &Interrupt| (i.number, i.total(), i.actions.join("|"));
        assert_eq!(
            x86.lines.iter().map(of).collect::<Vec<_>>(),
            [
                (24, 1, "ACPI:Ged".to_owned()),
                (36, 3_625_457, "virtio1-req.0".to_owned()),
                (44, 11, "ehci_hcd:usb1|i801 smbus".to_owned()),
            ]
        );
        let nmi = x86.classes.first().map(|c| (c.name.as_str(), c.counts.get(&1).copied()));
        assert_eq!(nmi, Some(("NMI", Some(2))));
        assert_eq!(x86.classes.last().map(|c| c.counts.len()), Some(0));
        let arm = counts(ARM);
        assert_eq!(arm.lines.first().map(of), Some((11, 300, "arch_timer".to_owned())));
        assert_eq!(arm.lines.first().and_then(|l| l.counts.get(&2).copied()), Some(200));
        assert_eq!(arm.classes.first().map(|c| c.about.as_str()), Some("Rescheduling interrupts"));
        for text in [X86, ARM] {
            for cut in 0..text.len() {
                let _ = counts(text.get(..cut).unwrap_or_default());
            }
        }
    }

    #[test]
    fn a_file_that_nobody_may_write_is_a_managed_interrupt() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        for (number, mode) in [("24", 0o644), ("36", 0o444)] {
            let irq = dir.path().join("proc/irq").join(number);
            fs::create_dir_all(&irq)?;
            fs::write(irq.join("smp_affinity_list"), "0-1\n")?;
            fs::write(irq.join("smp_affinity"), "3\n")?;
            fs::set_permissions(irq.join("smp_affinity"), fs::Permissions::from_mode(mode))?;
        }
        fs::write(dir.path().join("proc/interrupts"), X86)?;
        fs::create_dir_all(dir.path().join("proc/sys/kernel"))?;
        let managed = |release: &str| -> std::io::Result<Vec<Option<bool>>> {
            fs::write(dir.path().join("proc/sys/kernel/osrelease"), release)?;
            let all = interrupts(&Root::at(dir.path())).unwrap_or_default();
            Ok(all.lines.iter().map(|l| l.managed.clone().ok()).collect())
        };
        assert_eq!(managed("6.12.1")?, [Some(false), Some(true), None]);
        assert_eq!(managed("5.10.0-x")?, [None, Some(true), None]);
        Ok(())
    }
}
