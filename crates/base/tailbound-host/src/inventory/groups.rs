// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cgroup.*`: what this process's control groups allow it.
//!
//! Not here: how they are read (`group_limits`).

use super::Sheet;
use crate::cgroups::Process;
use crate::cpus;
use crate::group_limits::group_limits;

pub(super) fn read(sheet: &mut Sheet<'_>) {
    let root = sheet.root;
    let limits = group_limits(root, Process::Own);
    let all = || limits.as_ref().map_err(Clone::clone);
    sheet.put("cgroup.version", all().map(|l| l.version));
    sheet.put("cgroup.path", all().map(|l| l.path.clone()));
    let quota = all().and_then(|l| l.quota.as_ref().map_err(Clone::clone));
    let quota = quota.map(|q| q.as_ref().map_or_else(|| "max".into(), |q| q.share.into()));
    sheet.put::<serde_json::Value>("cgroup.cpu_quota", quota);
    let budget = all().and_then(|l| l.budget.as_ref().map_err(Clone::clone));
    sheet.put("cgroup.rt_runtime_us", budget.map(|b| b.runtime_us));
    sheet.put("cgroup.cpuset", cpus::cpuset(root).map(|c| c.to_string()));
}
