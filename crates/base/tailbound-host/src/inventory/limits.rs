// SPDX-License-Identifier: MIT OR Apache-2.0
//! `limits.*`: what this process may ask for.
//!
//! Units: as in the names; `unlimited` is a word.
//! Source: getrlimit(2), capabilities(7).

use serde_json::Value;

use super::Sheet;
use crate::capabilities::Capabilities;
use crate::cgroups::Process;
use crate::root::Missing;

/// Capabilities that decide what can be measured and how.
const CAPABILITIES: &[(u32, &str)] = &[
    (14, "ipc_lock"),
    (19, "sys_ptrace"),
    (21, "sys_admin"),
    (23, "sys_nice"),
    (24, "sys_resource"),
    (34, "syslog"),
    (38, "perfmon"),
];

pub(super) fn read(sheet: &mut Sheet<'_>) {
    let text = sheet.root.text("/proc/self/limits");
    for (name, label) in [
        ("limits.rtprio", "Max realtime priority"),
        ("limits.memlock_bytes", "Max locked memory"),
        ("limits.rttime_us", "Max realtime timeout"),
        ("limits.nice", "Max nice priority"),
    ] {
        let soft = text.as_ref().map_err(Clone::clone).and_then(|t| {
            t.lines()
                .find_map(|l| l.strip_prefix(label))
                .and_then(|l| l.split_ascii_whitespace().next())
                .map(|w| w.parse::<i64>().map_or_else(|_| Value::from(w), Value::from))
                .ok_or_else(|| Missing::Unknown(format!("/proc/self/limits has no `{label}`")))
        });
        sheet.put(name, soft);
    }
    let capabilities = Capabilities::of(sheet.root, Process::Own).map(|own| {
        let names = CAPABILITIES.iter().filter(|(bit, _)| own.has_bit(*bit));
        names.map(|(_, name)| Value::from(*name)).collect::<Vec<_>>()
    });
    sheet.put("limits.capabilities", capabilities);
}
