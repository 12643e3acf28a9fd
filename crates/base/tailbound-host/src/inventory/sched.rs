// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sched.*`: what the scheduler may do to a real-time thread.
//!
//! Units: as in the names. Source: Documentation/scheduler/sched-rt-group.rst,
//! sched-deadline.rst (deferred fair server), Documentation/admin-guide/sysctl/kernel.rst.

use serde_json::json;

use super::Sheet;
use crate::root::{Found, Missing, Root};

/// The release that brought the deferred fair server, and took RT throttling away from
/// kernels without RT_GROUP_SCHED.
pub(crate) const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

pub(super) fn read(sheet: &mut Sheet<'_>) {
    sheet.number("sched.rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us");
    sheet.number("sched.rt_period_us", "/proc/sys/kernel/sched_rt_period_us");
    let throttling = throttling(sheet);
    sheet.put("sched.rt_throttling", throttling);
    // Where debugfs cannot be read, an older kernel still has none for certain.
    let none_yet = sheet.version().is_some_and(|v| v < FAIR_SERVER_SINCE);
    for name in ["fair_server", "ext_server"] {
        sheet.by_cpu(&format!("sched.{name}"), |root, cpu| match server(root, name, cpu) {
            Ok((runtime_ns, period_ns)) => {
                Ok(json!({"runtime_ns": runtime_ns, "period_ns": period_ns}))
            }
            Err(Missing::Unknown(_)) if none_yet => {
                Err(Missing::NotApplicable("Linux before 6.12 has no such server".to_owned()))
            }
            Err(why) => Err(why),
        });
    }
    sheet.text("sched.ext_state", "/sys/kernel/sched_ext/state");
    sheet.number("sched.timer_migration", "/proc/sys/kernel/timer_migration");
    sheet.number("sched.autogroup", "/proc/sys/kernel/sched_autogroup_enabled");
    sheet.number("sched.numa_balancing", "/proc/sys/kernel/numa_balancing");
    sheet.text("sched.workqueue_cpus", "/sys/devices/virtual/workqueue/cpumask");
    sheet.number("sched.rcu_normal", "/sys/kernel/rcu_normal");
    sheet.number("sched.rcu_expedited", "/sys/kernel/rcu_expedited");
}

/// Runtime and period of a CPU's deadline server, in ns.
pub(crate) fn server(root: &Root, name: &str, cpu: u32) -> Found<(u64, u64)> {
    let read = |what: &str| -> Found<u64> {
        let path = format!("sched/{name}/cpu{cpu}/{what}");
        root.debugfs(&path)?
            .parse()
            .map_err(|_| Missing::Unknown(format!("{path} is not a number")))
    };
    Ok((read("runtime")?, read("period")?))
}

/// `off`, or what share of a second real-time threads may have. Since Linux 6.12 the code
/// is there with RT_GROUP_SCHED only.
fn throttling(sheet: &Sheet<'_>) -> Found<String> {
    let runtime: i64 = sheet.root.parsed("/proc/sys/kernel/sched_rt_runtime_us")?;
    let period: i64 = sheet.root.parsed("/proc/sys/kernel/sched_rt_period_us")?;
    let modern = sheet.version().is_some_and(|v| v >= FAIR_SERVER_SINCE);
    let grouped = sheet.config.as_ref().map(|c| c.yes("RT_GROUP_SCHED"));
    match (modern, grouped) {
        (true, Ok(false)) => Err(Missing::NotApplicable(
            "Linux 6.12 and later have no RT throttling without RT_GROUP_SCHED".to_owned(),
        )),
        (true, Err(why)) if runtime >= 0 && runtime < period => Err(Missing::Unknown(format!(
            "whether this kernel has RT_GROUP_SCHED and with it RT throttling: {}",
            why.reason()
        ))),
        _ if runtime < 0 || runtime >= period => Ok("off".to_owned()),
        _ => Ok(format!("{runtime} of {period} us")),
    }
}
