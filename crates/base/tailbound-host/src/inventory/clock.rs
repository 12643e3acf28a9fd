// SPDX-License-Identifier: MIT OR Apache-2.0
//! `clock.*`: what time is read from, how finely, and who keeps it in step.
//!
//! Source: Documentation/timers/timekeeping.rst, adjtimex(2), clock_getres(2).

use tailbound_sys::{clock, hostinfo};

use super::Sheet;
use crate::root::{Found, Missing};

const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

pub(super) fn read(sheet: &mut Sheet<'_>) {
    sheet.text("clock.source", &format!("{SOURCE}/current_clocksource"));
    let available = sheet
        .root
        .read_trimmed(&format!("{SOURCE}/available_clocksource"))
        .map(|t| t.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>());
    sheet.put("clock.available", available);
    sheet.by_cpu("clock.event_device", |root, cpu| {
        root.read_trimmed(&format!(
            "/sys/devices/system/clockevents/clockevent{cpu}/current_device"
        ))
    });
    let real = sheet.root.is_real();
    let only_real = || -> Found<()> {
        real.then_some(()).ok_or_else(|| {
            Missing::Unknown("known only from a system call on the running machine".to_owned())
        })
    };
    let unknown = |e: tailbound_sys::SysError| Missing::Unknown(e.to_string());
    let resolution =
        only_real().and_then(|()| clock::resolution_ns(clock::CLOCK_MONOTONIC).map_err(unknown));
    sheet.put("clock.resolution_ns", resolution);
    let sync = only_real().and_then(|()| hostinfo::clock_sync().map_err(unknown));
    let part = |f: fn(&hostinfo::ClockSync) -> serde_json::Value| {
        sync.as_ref().map(f).map_err(Clone::clone)
    };
    let (synchronised, frequency, tai, offset) = (
        part(|s| (!s.unsynchronised).into()),
        part(|s| s.frequency_ppm.into()),
        part(|s| s.tai_offset_s.into()),
        part(|s| s.offset_ns.into()),
    );
    sheet.put("clock.synchronised", synchronised);
    sheet.put("clock.frequency_ppm", frequency);
    sheet.put("clock.offset_ns", offset);
    sheet.put("clock.tai_offset_s", tai);
}
