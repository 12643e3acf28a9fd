// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cgroup.*`: what this process's control groups allow it.
//!
//! Context: COLD. Source: Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst,
//! scheduler/sched-rt-group.rst.

use super::Sheet;
use crate::cgroups::{self, Groups};
use crate::cpus;
use crate::root::{Found, Missing, Root};

pub(super) fn read(sheet: &mut Sheet<'_>) {
    let root = sheet.root;
    let cpu = cgroups::own(root, "cpu");
    sheet.put("cgroup.version", cpu.as_ref().map(|g| g.version).map_err(Clone::clone));
    sheet.put("cgroup.path", cpu.as_ref().map(|g| g.path.clone()).map_err(Clone::clone));
    let quota = cpu.as_ref().map_err(Clone::clone).and_then(|g| quota(root, g));
    sheet.put("cgroup.cpu_quota", quota);
    let rt = cpu.and_then(|g| match (g.version, g.dirs.first()) {
        (1, Some(dir)) => root.parsed::<i64>(&format!("{dir}/cpu.rt_runtime_us")),
        _ => Err(Missing::NotApplicable("cgroup v2 has no real-time budget".to_owned())),
    });
    sheet.put("cgroup.rt_runtime_us", rt);
    sheet.put("cgroup.cpuset", cpus::cpuset(root).map(|c| c.to_string()));
}

/// The tightest quota from here to the root, as `share of one CPU`: 0.5, 2; or `max`.
fn quota(root: &Root, groups: &Groups) -> Found<serde_json::Value> {
    let mut tightest: Option<f64> = None;
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
                {
                    tightest = Some(tightest.map_or(q / p, |t| t.min(q / p)));
                }
            }
            // The root group has no such file.
            Err(Missing::NotApplicable(_)) => {}
            Err(unknown @ Missing::Unknown(_)) => return Err(unknown),
        }
    }
    match (tightest, seen) {
        (Some(share), _) => Ok(share.into()),
        (None, true) => Ok("max".into()),
        (None, false) => Err(Missing::NotApplicable("no CPU quota can be set here".to_owned())),
    }
}
