// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process's control groups allow it of the CPU: the tightest quota, and the budget of real-time threads.
//!
//! Units: µs, shares of one CPU. Source: Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst,
//! scheduler/sched-rt-group.rst.

use crate::cgroups::{self, Groups, Process};
use crate::root::{Found, Missing, Root};

/// A CPU quota.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// Shares of one CPU: 0.5, 2.
    pub share: f64,
    /// What lifts it: a command of the shell.
    pub lift: String,
}

/// The budget of real-time threads of a group of version 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Its file.
    pub file: String,
    /// CPU time in each period.
    pub runtime_us: i64,
}

/// What the groups of one process allow it.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupLimits {
    /// 1 or 2.
    pub version: u8,
    /// The innermost group, as the kernel names it.
    pub path: String,
    /// The tightest quota from the innermost group to the root; `None` where none is set.
    pub quota: Found<Option<Quota>>,
    /// Of the innermost group.
    pub budget: Found<Budget>,
}

/// Reads those of the groups that `process` is in.
///
/// # Errors
/// Not applicable where the kernel has no CPU controller; unknown where the groups cannot be seen.
pub fn group_limits(root: &Root, process: Process) -> Found<GroupLimits> {
    let groups = cgroups::of(root, process, "cpu")?;
    let budget = match (groups.version, groups.dirs.first()) {
        (1, Some(dir)) => {
            let file = format!("{dir}/cpu.rt_runtime_us");
            root.parsed(&file).map(|runtime_us| Budget { file, runtime_us })
        }
        _ => Err(Missing::NotApplicable("cgroup v2 has no real-time budget".to_owned())),
    };
    Ok(GroupLimits {
        version: groups.version,
        quota: quota(root, &groups),
        budget,
        path: groups.path,
    })
}

/// The tightest from here to the root.
fn quota(root: &Root, groups: &Groups) -> Found<Option<Quota>> {
    let mut tightest: Option<Quota> = None;
    let mut seen = false;
    for dir in &groups.dirs {
        let pair = if groups.version == 2 {
            root.read_trimmed(&format!("{dir}/cpu.max")).map(|t| {
                let mut words = t.split(' ').map(str::to_owned);
                (words.next().unwrap_or_default(), words.next().unwrap_or_default())
            })
        } else {
            root.read_trimmed(&format!("{dir}/cpu.cfs_quota_us"))
                .and_then(|q| Ok((q, root.read_trimmed(&format!("{dir}/cpu.cfs_period_us"))?)))
        };
        match pair {
            Ok((quota, period)) => {
                seen = true;
                // `max` and -1 are no limit.
                if let (Ok(q), Ok(p)) = (quota.parse::<f64>(), period.parse::<f64>())
                    && q > 0.0
                    && p > 0.0
                    && tightest.as_ref().is_none_or(|t| q / p < t.share)
                {
                    tightest = Some(Quota { share: q / p, lift: groups.lift(dir) });
                }
            }
            // The root group has no such file.
            Err(Missing::NotApplicable(_)) => {}
            Err(unknown @ Missing::Unknown(_)) => return Err(unknown),
        }
    }
    if seen {
        return Ok(tightest);
    }
    Err(Missing::NotApplicable("no CPU quota can be set here".to_owned()))
}
