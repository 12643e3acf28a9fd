// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every JSON of rt-tests has in common, and the small programs whose JSON holds
//! extremes and an average only: ptsematest, svsematest, sigwaittest, pmqtest, signaltest.
//!
//! Units: µs. Layout: `"cmdline:"` and `"rt_test_version:"` (the keys end in a
//! colon), `start_time` and `end_time` in RFC 2822, `sysinfo`; then `thread.N.sender{cpu,
//! priority, samples, interval}` and `thread.N.receiver{cpu, priority, min, avg, max}`, or for
//! signaltest `thread.N{cycles, min, max, avg, cpu}`, where `cpu` is that of thread 0.
//! Source: output of rt-tests 2.4.

use tailbound_core::record::Fact;
use tailbound_core::{Context, Finding, Impact, Policy};

use crate::command::{Arguments, CYCLICTEST, not_realtime, realtime_clock};
use crate::draft::{Draft, Stated, coarse};
use crate::error::Fault;
use crate::json::{self, Object};
use crate::read::Options;
use tailbound_core::utc::from_rfc2822;

/// Takes version, times and machine out of a document; gives the command line back.
pub(crate) fn header(draft: &mut Draft, o: &Object) -> Result<String, Fault> {
    match json::count(o, "file_version", "")? {
        Some(1) => {}
        Some(v) => {
            return Err(Fault::path("file_version", format!("version {v}; only 1 is known")));
        }
        None => return Err(Fault::path("file_version", "is missing: this is no JSON of rt-tests")),
    }
    let either =
        |a: &str, b: &str| json::text(o, a).or_else(|| json::text(o, b)).map(str::to_owned);
    draft.version =
        either("rt_test_version:", "rt_test_version").map(|v| crate::error::excerpt(&v));
    draft.started_s = json::text(o, "start_time").and_then(from_rfc2822);
    sysinfo(draft, o);
    if let Some(code) = o.get("return_code").and_then(serde_json::Value::as_i64).filter(|c| *c != 0)
    {
        draft.doubt(
            "source-failed",
            format!("{} ended with status {code}.", draft.tool),
            "The run did not go as planned.",
            "Look at the tool's messages and measure again.",
        );
    }
    Ok(either("cmdline:", "cmdline").unwrap_or_default())
}

/// The machine, as far as these tools tell.
pub(crate) fn sysinfo(draft: &mut Draft, o: &Object) {
    let Some(serde_json::Value::Object(s)) = o.get("sysinfo") else { return };
    for (fact, key) in [
        ("kernel.name", "sysname"),
        ("host.name", "nodename"),
        ("kernel.release", "release"),
        ("kernel.version", "version"),
        ("machine.arch", "machine"),
    ] {
        draft.fact(fact, json::text(s, key));
    }
    if let Some(rt) = s.get("realtime").and_then(serde_json::Value::as_u64) {
        draft.machine.insert("kernel.realtime".to_owned(), Fact::of(rt != 0));
    }
}

/// Brings the duration asked for and the time from start to end together.
pub(crate) fn elapsed(draft: &mut Draft, o: &Object) {
    let end = json::text(o, "end_time").and_then(from_rfc2822);
    let Some(took) = draft
        .started_s
        .zip(end)
        .and_then(|(a, b)| b.checked_sub(a)?.checked_mul(1_000_000_000))
        .filter(|ns| *ns >= 0)
    else {
        return;
    };
    match draft.duration_ns {
        Some(asked) if took.saturating_add(2_000_000_000) < asked => {
            draft.lose("The run was stopped before the time that its command line asks for.");
            draft.duration_ns = Some(took);
        }
        None if took > 0 => {
            draft.duration_ns = Some(took);
            draft.lose("How long the run took is known to a second only, from its start and end.");
        }
        _ => {}
    }
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let o = json::parse(bytes)?;
    let mut draft = Draft::new("rt-tests", "json v1, extremes only");
    let line = header(&mut draft, &o)?;
    draft.command = line.split_whitespace().map(str::to_owned).collect();
    if let Some(program) = draft.command.first().and_then(|c| c.rsplit('/').next()) {
        draft.tool = crate::error::excerpt(program);
    }
    let words = Arguments::new(&draft.command, &CYCLICTEST);
    draft.duration_ns = words.span_ns("D").filter(|d| *d > 0);
    elapsed(&mut draft, &o);
    draft.clock = Some(tailbound_core::plan::Clock::Monotonic);
    if draft.tool != "signaltest" {
        wrapping_clock(&mut draft);
    }
    let threads = json::object(&o, "thread", "")?;
    for (number, t, path) in json::numbered(threads, "thread")? {
        thread(&mut draft, number, t, &path)?;
    }
    if draft.policy.is_none() {
        let p =
            words.number("p").and_then(|p| u8::try_from(p).ok()).filter(|p| (1..=99).contains(p));
        draft.policy = Some(p.map_or(Policy::Other, Policy::Fifo));
    }
    not_realtime(&mut draft);
    draft.cut_values(1000);
    options.apply(&mut draft);
    hand_over(&mut draft);
    Ok(draft)
}

/// Says what these programs measure.
pub(crate) fn hand_over(draft: &mut Draft) {
    draft.event = Some("hand-over");
    draft.note(
        Finding::new(
            "source-other-quantity",
            Impact::Notice,
            format!(
                "{} measures hand-overs from one thread to another, not timer wake-ups",
                draft.tool
            ),
        )
        .meaning("The figures are not comparable with wake-up latencies.")
        .remedy("Compare with runs of the same program."),
    );
}

/// Says what the clock of all of them but signaltest does to the figures.
pub(crate) fn wrapping_clock(draft: &mut Draft) {
    realtime_clock(draft);
    draft.lose("Only the part below a second of each time is compared: a latency of a second or more wraps.");
}

/// Says what signaltest writes wrongly.
pub(crate) fn signaltests_pause(draft: &mut Draft) {
    draft.lose("signaltest's first thread pauses every 16 rounds, and only its own figures leave the pause out.");
}

fn thread(draft: &mut Draft, number: u32, t: &Object, path: &str) -> Result<(), Fault> {
    let pair = t.contains_key("receiver");
    let (values, values_path) = if pair {
        (json::object(t, "receiver", path)?, json::join(path, "receiver"))
    } else {
        (t, path.to_owned())
    };
    let n = if pair {
        let sender = json::object(t, "sender", path)?;
        let at = json::join(path, "sender");
        if let Some(us) = json::ns(sender, "interval", 1000, &at)?.filter(|i| *i > 0) {
            draft.interval_ns.get_or_insert(us);
        }
        json::count(sender, "samples", &at)?
    } else {
        json::count(t, "cycles", path)?
    };
    let n = n.ok_or_else(|| Fault::path(path, "the number of samples is missing"))?;
    let min_ns = json::ns(values, "min", 1000, &values_path)?;
    let stated = Stated {
        n: Some(n),
        min_ns,
        max_ns: json::ns(values, "max", 1000, &values_path)?,
        mean_ns: json::mean_ns(values, "avg", 1000),
        resolution_ns: 1000,
        beyond_ns: min_ns,
    };
    if stated.max_ns.is_none() {
        return Err(Fault::path(json::join(&values_path, "max"), "is missing"));
    }
    let priority = values.get("priority").and_then(serde_json::Value::as_u64);
    if let Some(p) = priority.and_then(|p| u8::try_from(p).ok()).filter(|p| (1..=99).contains(p)) {
        draft.policy.get_or_insert(Policy::Fifo(p));
    }
    if let Some(late) = json::count(values, "timeoutcount", &values_path)?.filter(|c| *c > 0) {
        draft
            .lose(format!("Thread {number} had {late} timeouts, which are not among the samples."));
    }
    let cpu = if pair { json::cpu(values, "cpu") } else { None };
    if !pair {
        draft.lose(
            "signaltest writes the CPU of thread 0 for every thread: the CPUs are not imported.",
        );
        signaltests_pause(draft);
    }
    let d = draft.settle(&format!("Thread {number}"), coarse(), stated);
    draft.thread(number, cpu, Context::User, d)
}
