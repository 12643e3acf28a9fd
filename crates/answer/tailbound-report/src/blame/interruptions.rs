// SPDX-License-Identifier: MIT OR Apache-2.0
//! What took time from chosen CPUs, and who sent them interrupts.
//!
//! Units: ns. JSON, schema `tailbound-interruptions/1` (members are added, never renamed
//! or removed): `schema`, `cpus` (a list of `cpu`, `span_ns`, `idle_ns`, `unknown_ns`, `taken`: a list of
//! `kind`, `who`, `count`, `ns`, `ns_max`), `senders` (a list of `who`, `callsite`, `callback`, `count`), `events`.

use serde_json::{Value, json};
use tailbound_core::blame::{Activity, Interrupted, OnCpu, TimeTotals};
use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::units::{format_ns_i64, grouped};

use super::look;
use super::rows;
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// Most rows of a CPU, and most senders.
const ROWS_MAX: usize = 15;
const SCHEMA: &str = "tailbound-interruptions/1";

type Row<'a> = (&'a (Activity, String), &'a TimeTotals);

/// Most time first.
fn sorted(on: &OnCpu) -> Vec<Row<'_>> {
    let mut all: Vec<Row<'_>> = on.taken.iter().collect();
    order::by_key(&mut all, |(name, t)| (std::cmp::Reverse(t.ns), *name));
    all
}

fn senders(found: &Interrupted) -> Vec<(&tailbound_core::blame::Sender, u64)> {
    let mut all: Vec<_> = found.senders.iter().map(|(s, n)| (s, *n)).collect();
    order::by_key(&mut all, |(s, n)| (std::cmp::Reverse(*n), *s));
    all
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

fn share(part: u64, whole: u64) -> String {
    match part {
        0 => "0 %".to_owned(),
        _ if whole == 0 => "-".to_owned(),
        _ => {
            let percent = part.real() / whole.real() * 100.0;
            if percent < 0.01 { "< 0.01 %".to_owned() } else { format!("{percent:.2} %") }
        }
    }
}

/// For a terminal; ends in a newline.
#[must_use]
pub fn interruptions(found: &Interrupted, style: Style) -> String {
    let mut page = Page::new(style);
    for (cpu, on) in &found.cpus {
        let rows = sorted(on);
        page.heading(&headline(*cpu, on));
        if rows.is_empty() {
            continue;
        }
        let mut table = Table::new(&["count", "a second", "mean", "longest", "time", "what"]);
        table = table.with_words(&[5]);
        for (name, t) in rows.iter().take(ROWS_MAX) {
            table.row(cells(name, t, on.span_ns));
        }
        let lines = rows::hanging(&table, page.width());
        page.raw(lines, Ink::Plain);
        more(&mut page, rows.len());
    }
    let senders = senders(found);
    if !senders.is_empty() {
        page.heading("Interrupts that other CPUs sent to them");
        let mut table =
            Table::new(&["count", "a second", "who, where and what for"]).with_words(&[2]);
        let span_ns = found.cpus.values().map(|c| c.span_ns).max().unwrap_or(0);
        for (s, n) in senders.iter().take(ROWS_MAX) {
            let callsite =
                if s.callsite.is_empty() { String::new() } else { format!(" in {}", s.callsite) };
            let what = if s.callback.is_empty() {
                String::new()
            } else {
                format!(", to run {}", s.callback)
            };
            table.row(vec![grouped(*n), rate(*n, span_ns), format!("{}{callsite}{what}", s.who)]);
        }
        let lines = rows::hanging(&table, page.width());
        page.raw(lines, Ink::Plain);
        more(&mut page, senders.len());
    }
    page.finish()
}

/// `CPU 3: idle 97.21 % of 10.0 s; 1,200 times something else ran`
fn headline(cpu: u32, on: &OnCpu) -> String {
    if on.span_ns == 0 {
        return format!("CPU {cpu}: no event was recorded, so nothing ran that has events");
    }
    let times = on.taken.values().map(|t| t.count).fold(0, u64::saturating_add);
    let unknown = match on.unknown_ns {
        0 => String::new(),
        ns => format!("; of {} nothing is known, events were lost", format_ns_i64(signed(ns))),
    };
    format!(
        "CPU {cpu}: idle {} of {}; {} times something ran{unknown}",
        share(on.idle_ns, on.span_ns),
        format_ns_i64(signed(on.span_ns)),
        grouped(times)
    )
}

fn cells(name: &(Activity, String), t: &TimeTotals, span_ns: u64) -> Vec<String> {
    let mean = t.ns.checked_div(t.count).unwrap_or(0);
    vec![
        grouped(t.count),
        rate(t.count, span_ns),
        format_ns_i64(signed(mean)),
        format_ns_i64(signed(t.ns_max)),
        share(t.ns, span_ns),
        look::named(&name.0, &name.1),
    ]
}

fn rate(count: u64, span_ns: u64) -> String {
    format!("{:.1}", count.real() / (span_ns.real() / 1e9).max(1e-9))
}

fn more(page: &mut Page, rows: usize) {
    let more = rows.saturating_sub(ROWS_MAX);
    if more > 0 {
        page.text(&format!("and {more} more, see --json"), "  ", Ink::Dim);
    }
}

/// For scripts.
#[must_use]
pub fn interruptions_json(found: &Interrupted) -> Value {
    let taken = |on: &OnCpu| -> Vec<Value> {
        let one = |(name, t): Row<'_>| json!({"kind": name.0, "who": name.1, "count": t.count, "ns": t.ns, "ns_max": t.ns_max});
        sorted(on).into_iter().map(one).collect()
    };
    let cpu = |(cpu, on): (&u32, &OnCpu)| {
        json!({
            "cpu": cpu,
            "span_ns": on.span_ns,
            "idle_ns": on.idle_ns,
            "unknown_ns": on.unknown_ns,
            "taken": taken(on),
        })
    };
    let sender = |(s, n): (&tailbound_core::blame::Sender, u64)| json!({"who": s.who, "callsite": s.callsite, "callback": s.callback, "count": n});
    json!({
        "schema": SCHEMA,
        "cpus": found.cpus.iter().map(cpu).collect::<Vec<_>>(),
        "senders": senders(found).into_iter().map(sender).collect::<Vec<_>>(),
        "events": found.events,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tailbound_core::blame::Sender;

    use super::*;

    #[test]
    fn who_took_most_stands_first_and_a_silent_cpu_is_not_called_idle() {
        let taken = BTreeMap::from([
            (
                (Activity::Interrupt, "36 eth0".to_owned()),
                TimeTotals { count: 2, ns: 600, ns_max: 500 },
            ),
            (
                (Activity::Thread, "work".to_owned()),
                TimeTotals { count: 1, ns: 2_300, ns_max: 2_300 },
            ),
        ]);
        let on = OnCpu { span_ns: 1_000_000_000, idle_ns: 999_997_100, unknown_ns: 0, taken };
        let sender = Sender {
            who: "python3".to_owned(),
            callsite: "smp_call_function_many_cond".to_owned(),
            callback: "flush_tlb_func".to_owned(),
        };
        let found = Interrupted {
            cpus: BTreeMap::from([(1, on), (2, OnCpu::default())]),
            senders: BTreeMap::from([(sender, 12)]),
            events: 9,
        };
        let text = interruptions(&found, Style::default());
        let (work, eth) = (text.find("work"), text.find("36 eth0"));
        assert!(work < eth && work.is_some(), "{text}");
        assert!(text.contains("CPU 2: no event was recorded"), "{text}");
        assert!(text.contains("python3 in smp_call_function_many_cond, to run"), "{text}");
        let value = interruptions_json(&found);
        assert_eq!(value["cpus"][0]["taken"][0]["ns"], 2_300);
        assert_eq!(value["senders"][0]["count"], 12);
    }
}
