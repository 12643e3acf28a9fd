// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables as JSON: figures as they are, `null` for what is not known, with the reason beside it.
//!
//! Layout: `docs/tune-show.md`.

use serde_json::{Map, Value, json};

use super::choice::Which;
use super::look::MachineView;
use super::rows::{ClassRow, Handler, InterruptRow, MachineFact, ThreadRow};
use super::sums::{per_second, total};

/// The form of this JSON.
const FORM: &str = "tailbound-machine/1";

/// The tables.
#[must_use]
pub fn json(shown: &MachineView, which: Which) -> Value {
    let look = &shown.look;
    let mut out = Map::new();
    let mut set = |key: &str, value: Value| drop(out.insert(key.to_owned(), value));
    set("form", json!(FORM));
    set("over_ns", json!(shown.over_ns));
    set("cpus", json!({"online": look.online, "isolated": look.isolated}));
    if which.threads() {
        set("threads", look.threads.iter().map(thread).collect());
    }
    if which.interrupts() {
        set("interrupts", look.interrupts.iter().map(interrupt).collect());
        set("classes", look.classes.iter().map(class).collect());
    }
    set("missing", json!(look.missing));
    Value::Object(out)
}

/// Sets `key` to what is known, or to null, and `KEY_unknown` to the reason.
fn known<T: serde::Serialize>(out: &mut Value, key: &str, what: &MachineFact<T>) {
    match what {
        Ok(value) => out[key] = json!(value),
        Err(why) => {
            out[key] = Value::Null;
            out[format!("{key}_unknown")] = json!(why.reason);
        }
    }
}

fn thread(t: &ThreadRow) -> Value {
    let mut out = json!({
        "pid": t.pid,
        "tid": t.id.tid,
        "start_ticks": t.id.start_ticks,
        "name": t.name,
        "process": t.process,
        "kernel": t.kernel,
        "fixed": t.fixed,
        "policy": t.policy,
        "priority": t.policy.priority(),
        "nice": t.nice,
        "last_cpu": t.last_cpu,
        "voluntary_per_second": t.rate.map(|r| r.voluntary),
        "involuntary_per_second": t.rate.map(|r| r.involuntary),
    });
    known(&mut out, "affinity", &t.affinity);
    known(&mut out, "voluntary", &t.switches.clone().map(|s| s.voluntary));
    known(&mut out, "involuntary", &t.switches.clone().map(|s| s.involuntary));
    out
}

fn handler(h: &Handler) -> Value {
    let mut out = json!({
        "tid": h.id.tid,
        "start_ticks": h.id.start_ticks,
        "name": h.name,
        "policy": h.policy,
        "priority": h.policy.priority(),
    });
    known(&mut out, "affinity", &h.affinity);
    out
}

fn interrupt(i: &InterruptRow) -> Value {
    let mut out = json!({
        "number": i.number,
        "chip": i.chip,
        "users": i.users,
        "count": total(&i.counts),
        "count_by_cpu": i.counts,
        "per_second": i.rates.as_ref().map(per_second),
        "per_second_by_cpu": i.rates,
        "threads": i.handlers.iter().map(handler).collect::<Vec<_>>(),
    });
    known(&mut out, "affinity", &i.affinity);
    known(&mut out, "effective", &i.effective);
    known(&mut out, "managed", &i.managed);
    out
}

fn class(c: &ClassRow) -> Value {
    json!({
        "name": c.name,
        "about": c.about,
        "count": total(&c.counts),
        "count_by_cpu": c.counts,
        "per_second": c.rates.as_ref().map(per_second),
        "per_second_by_cpu": c.rates,
    })
}

#[cfg(test)]
mod tests {
    use tailbound_core::Policy;

    use super::super::look::Look;
    use super::super::look::tests::{interrupt, thread};
    use super::super::rows::UnknownFact;
    use super::*;

    #[test]
    fn what_is_unknown_is_null_with_its_reason() {
        let shown = Look {
            threads: vec![ThreadRow {
                affinity: Err(UnknownFact { reason: "refused".to_owned() }),
                ..thread(40, "irq/4-ttyS0", Policy::Fifo(50))
            }],
            interrupts: vec![interrupt(4, &["ttyS0"])],
            ..Look::default()
        }
        .with_handlers()
        .totals();
        let all = json(&shown, Which::Both);
        let thread = &all["threads"][0];
        assert_eq!(
            (&thread["affinity"], &thread["affinity_unknown"]),
            (&Value::Null, &json!("refused"))
        );
        assert_eq!((&thread["policy"], &thread["voluntary"]), (&json!("fifo:50"), &json!(10)));
        let line = &all["interrupts"][0];
        assert_eq!((&line["count"], &line["count_by_cpu"]["1"]), (&json!(12), &json!(7)));
        assert_eq!(line["threads"][0]["tid"], 40);
        assert_eq!((&line["effective"], &line["per_second"]), (&json!("1"), &Value::Null));
        assert_eq!(json(&shown, Which::Threads).get("interrupts"), None);
    }
}
