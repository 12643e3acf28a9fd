// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of `--json`, file_version 1: keys, their order and their colons are those of cyclictest.
//!
//! Source: output of rt-tests 2.4.

use std::fmt::Write as _;

use serde_json::Value;
use tailbound_core::utc;
use tailbound_host::Root;

use crate::tally::CyclicTally;
use crate::unit::Unit;

/// One thread, and the CPU that it was pinned to.
pub(crate) struct JsonThread<'a> {
    pub(crate) tally: &'a CyclicTally,
    pub(crate) cpu: u32,
}

/// What stands around the threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Surroundings {
    pub(crate) command: String,
    pub(crate) start_s: i64,
    pub(crate) end_s: i64,
    /// sysname, nodename, release, version, machine.
    pub(crate) system: Vec<(&'static str, String)>,
    pub(crate) realtime: u8,
}

impl Surroundings {
    /// Of the machine under `root`.
    pub(crate) fn read(root: &Root, command: String, start_s: i64, end_s: i64) -> Self {
        let text = |path: &str| match root.text(path) {
            Ok(text) => text.trim().to_owned(),
            Err(_) => "unknown".to_owned(),
        };
        let system = vec![
            ("sysname", text("/proc/sys/kernel/ostype")),
            ("nodename", text("/proc/sys/kernel/hostname")),
            ("release", text("/proc/sys/kernel/osrelease")),
            ("version", text("/proc/sys/kernel/version")),
            ("machine", std::env::consts::ARCH.to_owned()),
        ];
        let realtime = u8::from(text("/sys/kernel/realtime") == "1");
        Self { command, start_s, end_s, system, realtime }
    }
}

/// The whole file.
pub(crate) fn text(around: &Surroundings, unit: Unit, threads: &[JsonThread<'_>]) -> String {
    let mut out = String::from("{\n  \"file_version\": 1,\n");
    let version = concat!("tailbound ", env!("CARGO_PKG_VERSION"));
    for (key, value) in [
        ("cmdline:", around.command.as_str()),
        ("rt_test_version:", version),
        ("start_time", &date(around.start_s)),
        ("end_time", &date(around.end_s)),
    ] {
        let _ = writeln!(out, "  \"{key}\": {},", Value::from(value));
    }
    out.push_str("  \"return_code\": 0,\n  \"sysinfo\": {\n");
    for (key, value) in &around.system {
        let _ = writeln!(out, "    \"{key}\": {},", Value::from(value.as_str()));
    }
    let _ = writeln!(out, "    \"realtime\": {}\n  }},", around.realtime);
    let _ = writeln!(out, "  \"num_threads\": {},", threads.len());
    let _ = writeln!(out, "  \"resolution_in_ns\": {},", u8::from(unit == Unit::Nanos));
    out.push_str("  \"thread\": {\n");
    for (number, thread) in threads.iter().enumerate() {
        let end = if number.saturating_add(1) == threads.len() { "" } else { "," };
        let _ = write!(out, "    \"{number}\": {{\n{}    }}{end}\n", of_thread(thread));
    }
    out.push_str("  }\n}\n");
    out
}

fn of_thread(JsonThread { tally, cpu }: &JsonThread<'_>) -> String {
    let rows = tally.rows.iter().enumerate().filter(|(_, count)| **count > 0);
    let rows: Vec<String> =
        rows.map(|(row, count)| format!("        \"{row}\": {count}")).collect();
    let histogram = match rows.is_empty() {
        true => String::new(),
        false => format!("\n{}\n", rows.join(",\n")),
    };
    format!(
        "      \"histogram\": {{{histogram}      }},\n      \"cycles\": {},\n      \"min\": {},\n      \"max\": {},\n      \"avg\": {:.2},\n      \"cpu\": {cpu},\n      \"node\": -1\n",
        tally.cycles,
        tally.least,
        tally.greatest,
        tally.mean()
    )
}

/// `Sat, 28 Nov 2026 14:50:27 +0000`
fn date(s: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = utc::rfc3339(s);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let day = usize::try_from(s.div_euclid(86_400).rem_euclid(7)).ok();
    let day = day.and_then(|day| DAYS.get(day)).copied().unwrap_or_default();
    let month = part(5, 7).parse::<usize>().ok().and_then(|month| month.checked_sub(1));
    let month = month.and_then(|month| MONTHS.get(month)).copied().unwrap_or_default();
    format!("{day}, {} {month} {} {} +0000", part(8, 10), part(0, 4), part(11, 19))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_back_as_it_was() {
        assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(date(1_795_877_427), "Sat, 28 Nov 2026 14:50:27 +0000");
        assert_eq!(utc::from_rfc2822(&date(1_795_877_427)), Some(1_795_877_427));
    }
}
