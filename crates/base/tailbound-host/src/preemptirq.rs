// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does this kernel tell where interrupts and preemption are disabled? What the theoretical bound would need of it.
//!
//! Source: Linux kernel/trace/Kconfig, include/trace/events/preemptirq.h.

use crate::root::{Found, Missing, Root};

/// Where its events are, if tracefs is mounted.
const EVENTS: [&str; 2] =
    ["/sys/kernel/tracing/events/preemptirq", "/sys/kernel/debug/tracing/events/preemptirq"];
/// Either of each pair brings one half of the events: interrupts, preemption.
const NEEDED: [(&str, [&str; 2]); 2] = [
    ("irq_disable and irq_enable", ["TRACE_IRQFLAGS", "IRQSOFF_TRACER"]),
    ("preempt_disable and preempt_enable", ["TRACE_PREEMPT_TOGGLE", "PREEMPT_TRACER"]),
];

fn missing(root: &Root) -> Found<Vec<String>> {
    let release = root.text("/proc/sys/kernel/osrelease")?;
    let config = root.kernel_config(release.trim())?;
    let events = config.yes("PREEMPTIRQ_TRACEPOINTS");
    let of = |(what, options): &(&str, [&str; 2])| {
        let there = events && options.iter().any(|option| config.yes(option));
        let [_, tracer] = options;
        (!there).then(|| format!("{what} (CONFIG_{tracer})"))
    };
    Ok(NEEDED.iter().filter_map(of).collect())
}

/// Why no theoretical bound can be given for the machine itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTold {
    /// It was built without.
    #[error(
        "this kernel does not tell where interrupts and preemption are disabled: it was built without {}. {IN_THE_LAB}",
        .0.join(" and ")
    )]
    BuiltWithout(Vec<String>),
    /// What it was built with is not known.
    #[error(
        "there are no events preemptirq in tracefs, and what the kernel was built with is {0}. {IN_THE_LAB}"
    )]
    Unknown(Missing),
}

const IN_THE_LAB: &str = "In the lab it can be given for a kernel: tailbound lab paths --theory";

/// Does this kernel have them? Where tracefs is not mounted, what it was built with decides.
///
/// # Errors
/// Why no theoretical bound can be given for the machine itself.
pub fn needed(root: &Root) -> Result<(), NotTold> {
    let event = |name: &str| EVENTS.iter().any(|path| root.exists(&format!("{path}/{name}")));
    if event("irq_disable") && event("preempt_disable") {
        return Ok(());
    }
    match missing(root).map_err(NotTold::Unknown)? {
        missing if missing.is_empty() => Ok(()),
        missing => Err(NotTold::BuiltWithout(missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_tracers_is_told_which() {
        let folder =
            std::env::temp_dir().join(format!("tailbound-preemptirq-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("proc/sys/kernel")).unwrap();
        std::fs::create_dir_all(folder.join("boot")).unwrap();
        std::fs::write(folder.join("proc/sys/kernel/osrelease"), "6.1.0-test\n").unwrap();
        let config = folder.join("boot/config-6.1.0-test");
        std::fs::write(&config, "CONFIG_PREEMPTIRQ_TRACEPOINTS=y\nCONFIG_IRQSOFF_TRACER=y\n")
            .unwrap();
        let said = needed(&Root::at(&folder)).unwrap_err().to_string();
        assert!(
            said.contains("CONFIG_PREEMPT_TRACER") && !said.contains("CONFIG_IRQSOFF"),
            "{said}"
        );
        std::fs::remove_file(&config).unwrap();
        let said = needed(&Root::at(&folder)).unwrap_err().to_string();
        assert!(said.contains("no events preemptirq") && said.contains("unknown"), "{said}");
        let events = folder.join("sys/kernel/tracing/events/preemptirq");
        std::fs::create_dir_all(events.join("irq_disable")).unwrap();
        assert!(needed(&Root::at(&folder)).is_err(), "one half of them");
        std::fs::create_dir_all(events.join("preempt_disable")).unwrap();
        assert_eq!(needed(&Root::at(&folder)), Ok(()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
