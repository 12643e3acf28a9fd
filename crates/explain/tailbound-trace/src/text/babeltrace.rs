// SPDX-License-Identifier: MIT OR Apache-2.0
//! What babeltrace prints of a trace of LTTng: `[13:24:50.293856423] (+0.000001) HOST sched_waking: { cpu_id = 1 }, { comm = "x", tid = 7, … }`.
//!
//! Units: ns since midnight. The line is put into the kernel's words: `tid` is its `pid`, a priority counts
//! from that of ordinary threads, an event has its subsystem's name in front. The thread that has a CPU is that of the last switch.
//! Source: babeltrace2-sink.text.pretty(7); the events of lttng-modules.

use super::record::{number, scaled};

/// What LTTng takes from each priority (MAX_RT_PRIO).
const PRIORITY: i32 = 100;
/// Names of subsystems before those of events.
const SYSTEMS: [&str; 4] = ["timer_", "irq_", "x86_irq_vectors_", "power_"];

/// A line, put into the kernel's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BabeltraceLine {
    pub(super) t_ns: u64,
    pub(super) cpu: u32,
    /// The name of the event.
    pub(super) event: String,
    /// Its fields as the kernel prints them.
    pub(super) fields: String,
}

/// The record that `line` is.
pub(super) fn parsed(line: &str) -> Option<BabeltraceLine> {
    let (clock, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let t_ns = time(clock)?;
    let rest = rest.trim_start().strip_prefix("(+")?.split_once(')')?.1;
    let (head, fields) = rest.split_once(": {")?;
    let name = head.split_whitespace().next_back()?;
    let fields = values(fields);
    let get = |key: &str| fields.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
    let cpu = number(get("cpu_id")?)?;
    let event = kernels_name(name).to_owned();
    let mut out = String::new();
    for (key, value) in &fields {
        let (key, value) = match key.as_str() {
            "cpu_id" if event != "cpu_frequency" => continue,
            k if k.ends_with("prio") => {
                (k.to_owned(), number::<i32>(value)?.checked_add(PRIORITY)?.to_string())
            }
            "prev_state" => {
                (key.clone(), if number::<i64>(value)? == 0 { "R" } else { "S" }.to_owned())
            }
            k => (k.strip_suffix("tid").map_or(k.to_owned(), |k| format!("{k}pid")), value.clone()),
        };
        let arrow = if key == "next_comm" { "==> " } else { "" };
        out.push_str(&format!("{arrow}{key}={value} "));
    }
    Some(BabeltraceLine { t_ns, cpu, event, fields: out.trim_end().to_owned() })
}

fn kernels_name(name: &str) -> &str {
    match name {
        "irq_handler_entry" | "irq_handler_exit" => name,
        _ => {
            let longest =
                SYSTEMS.iter().filter_map(|s| name.strip_prefix(s)).min_by_key(|n| n.len());
            longest.unwrap_or(name)
        }
    }
}

/// `13:24:50.293856423`, or seconds alone.
fn time(clock: &str) -> Option<u64> {
    let mut parts = clock.trim().rsplit(' ').next()?.rsplit(':');
    let (seconds, fraction) = parts.next()?.split_once('.')?;
    let mut ns = scaled(seconds, fraction, 9)?;
    for unit in [60_000_000_000u64, 3_600_000_000_000] {
        if let Some(part) = parts.next() {
            ns = ns.checked_add(number::<u64>(part)?.checked_mul(unit)?)?;
        }
    }
    parts.next().is_none().then_some(ns)
}

/// The fields `key = value` of all braces, in their order.
fn values(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once(" = ") {
        let key = key.trim_matches([' ', '{', '}', ',']).to_owned();
        // An enumeration: `( "TASK_RUNNING" : container = 0 )`.
        let named = after.strip_prefix('(').and_then(|t| t.split_once(')'));
        let (value, next) = match (after.strip_prefix('"'), named) {
            (Some(quoted), _) => quoted.split_once('"').unwrap_or((quoted, "")),
            (_, Some((inner, next))) => (inner.rsplit("= ").next().unwrap_or("").trim(), next),
            (None, None) => {
                let end = after.find([',', ' ']).unwrap_or(after.len());
                (after.get(..end).unwrap_or(""), after.get(end..).unwrap_or(""))
            }
        };
        if !key.is_empty() && out.len() < 64 {
            out.push((key, value.to_owned()));
        }
        rest = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_put_into_the_kernels_words() {
        let line = "[13:24:50.293856423] (+0.000001234) host sched_switch: { cpu_id = 3 }, { prev_comm = \"Web, = x\", \
                    prev_tid = 12, prev_prio = 20, prev_state = ( \"TASK_RUNNING\" : container = 0 ), next_comm = \"ctl\", \
                    next_tid = 7, next_prio = -81 }";
        assert_eq!(
            parsed(&line.replace("( \"TASK_RUNNING\" : container = 0 )", "0")),
            parsed(line)
        );
        let got = parsed(line).unwrap();
        assert_eq!((got.cpu, got.event.as_str()), (3, "sched_switch"));
        assert_eq!(got.t_ns, (13 * 3600 + 24 * 60 + 50) * 1_000_000_000 + 293_856_423);
        assert_eq!(
            got.fields,
            "prev_comm=Web, = x prev_pid=12 prev_prio=120 prev_state=R ==> next_comm=ctl next_pid=7 next_prio=19"
        );
        let line = "[5.000000001] (+?.?????????) timer_hrtimer_expire_entry: { cpu_id = 0 }, { hrtimer = 0xFF, now = 5, function = 0xFF }";
        assert_eq!(parsed(line).unwrap().event, "hrtimer_expire_entry");
        assert_eq!(parsed("[5.0] (+1) x: { cpu_id = }"), None);
    }
}
