// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands for the whole run: `virtual-machine`, `kernel-debug-options`,
//! `tracing-active`, `idle-states`. Notices: the figures describe such a machine.
//!
//! Source: Documentation/trace/ftrace.rst, admin-guide/pm/cpuidle.rst.

use tailbound_core::record::{Fact, Facts};
use tailbound_core::{Finding, Impact};

use super::{Disturbance, Look};
use crate::inventory::{cpu_dma_latency, idle_states};

/// Idle states that take longer to leave than this are worth a word.
const EXIT_MAX_US: u64 = 10;

/// Found at the start.
pub(crate) struct Standing {
    findings: Vec<Finding>,
    watched: Vec<(&'static str, Fact)>,
}

impl Standing {
    pub(crate) fn begin(first: &Look, facts: &Facts) -> Self {
        let unread = Fact::Unknown("the fact was not read".to_owned());
        let fact = |name: &str| facts.get(name).unwrap_or(&unread);
        let known = |fact: &Fact| match fact {
            Fact::Value(_) => Fact::of("watched"),
            other => other.clone(),
        };
        let findings = [
            virtual_machine(fact("virt.kind")),
            debug_options(fact("kernel.debug_options")),
            tracing(facts),
            deep_idle(first),
        ];
        Self {
            findings: findings.into_iter().flatten().collect(),
            watched: vec![
                ("virtual-machine", known(fact("virt.kind"))),
                ("kernel-debug-options", known(fact("kernel.debug_options"))),
                ("tracing-active", known(fact("kernel.tracer"))),
            ],
        }
    }
}

fn virtual_machine(kind: &Fact) -> Option<Finding> {
    let kind = kind.as_str().filter(|k| *k != "none")?;
    Some(Finding::listed(
        "virtual-machine",
        Impact::Notice,
        format!("this is a virtual machine ({kind})"),
    ))
}

fn debug_options(options: &Fact) -> Option<Finding> {
    let Fact::Value(serde_json::Value::Array(list)) = options else { return None };
    let names: Vec<&str> = list.iter().filter_map(serde_json::Value::as_str).collect();
    (!names.is_empty()).then(|| {
        Finding::listed(
            "kernel-debug-options",
            Impact::Notice,
            format!("the kernel is built with debug options: {}", names.join(", ")),
        )
    })
}

fn tracing(facts: &Facts) -> Option<Finding> {
    let text = |name: &str| facts.get(name).and_then(Fact::as_str);
    let on = !matches!(
        facts.get("kernel.tracing_on"),
        Some(Fact::Value(serde_json::Value::Bool(false)))
    );
    let mut words = Vec::new();
    if let Some(tracer) = text("kernel.tracer").filter(|t| *t != "nop" && on) {
        words.push(format!("tracer {tracer}"));
    }
    if let Some(events) = text("kernel.trace_events").filter(|t| *t != "none" && on) {
        words.push(format!("{events} events"));
    }
    if let Some(Fact::Value(v)) = facts.get("kernel.kprobes")
        && v.as_u64().unwrap_or(0) > 0
    {
        words.push(format!("{v} kprobes"));
    }
    if let Some(Fact::Value(serde_json::Value::Array(list))) = facts.get("kernel.trace_instances")
        && !list.is_empty()
    {
        words.push(format!("{} further trace instances", list.len()));
    }
    (!words.is_empty()).then(|| {
        Finding::listed(
            "tracing-active",
            Impact::Notice,
            format!("the kernel is being traced: {}", words.join(", ")),
        )
    })
}

fn deep_idle(look: &Look) -> Option<Finding> {
    // Where the limit cannot be read a state may be entered: the finding says "may".
    let limit = cpu_dma_latency(&look.root).ok().and_then(|us| u64::try_from(us).ok());
    let mut deepest: Option<(u64, String, u32)> = None;
    for cpu in look.cpus.iter() {
        for state in idle_states(&look.root, cpu).unwrap_or_default() {
            let allowed = !state.disabled && limit.is_none_or(|l| state.latency_us <= l);
            if allowed && state.latency_us > deepest.as_ref().map_or(EXIT_MAX_US, |d| d.0) {
                deepest = Some((state.latency_us, state.name, cpu));
            }
        }
    }
    let (latency_us, name, cpu) = deepest?;
    Some(Finding::listed(
        "idle-states",
        Impact::Notice,
        format!(
            "CPU {cpu} may enter the idle state {name}, whose exit latency is {latency_us} us according to the driver"
        ),
    ))
}

impl Disturbance for Standing {
    fn look(&mut self, _look: &Look) -> Vec<Finding> {
        self.findings.clone()
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        self.watched.clone()
    }
}
