// SPDX-License-Identifier: MIT OR Apache-2.0
//! `kernel.*`: release, preemption, command line, configuration, watchdogs, tracing, load.
//!
//! Source: Documentation/admin-guide/{kernel-parameters,sysctl/kernel}.txt,
//! Documentation/trace/ftrace.rst, Documentation/accounting/psi.rst.

use serde_json::{Map, Value};

use super::Sheet;
use crate::root::{Found, Missing, chosen};

/// Options of a kernel for finding bugs: each makes critical sections longer.
pub(crate) const DEBUG_OPTIONS: &[&str] = &[
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_KMEMLEAK",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_MUTEXES",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "DEBUG_PREEMPT",
    "DEBUG_RT_MUTEXES",
    "DEBUG_SPINLOCK",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "LOCKDEP",
    "LOCK_STAT",
    "PROVE_LOCKING",
    "PROVE_RCU",
    "SLUB_DEBUG_ON",
    "TRACE_IRQFLAGS",
];

pub(super) fn read(sheet: &mut Sheet<'_>) {
    sheet.text("kernel.release", "/proc/sys/kernel/osrelease");
    sheet.text("kernel.version", "/proc/sys/kernel/version");
    sheet.text("kernel.command_line", "/proc/cmdline");
    let preempt = preempt(sheet);
    sheet.put("kernel.preempt", preempt);
    let lockdown = sheet.root.mounted("/sys/kernel/security", "lockdown");
    sheet.put("kernel.lockdown", lockdown.map(|t| chosen(&t).unwrap_or(&t).to_owned()));
    let mitigations = mitigations(sheet);
    sheet.put("kernel.mitigations", mitigations);
    sheet.number("kernel.taint", "/proc/sys/kernel/tainted");
    config(sheet);
    sheet.number("kernel.nmi_watchdog", "/proc/sys/kernel/nmi_watchdog");
    sheet.number("kernel.soft_watchdog", "/proc/sys/kernel/soft_watchdog");
    sheet.text("kernel.watchdog_cpus", "/proc/sys/kernel/watchdog_cpumask");
    sheet.text("kernel.irq_default_affinity", "/proc/irq/default_smp_affinity");
    let threaded = sheet.command_line().and_then(|words| {
        if words.iter().any(|w| w == "threadirqs") {
            return Ok(true);
        }
        preempt_rt(sheet).ok_or_else(|| {
            Missing::Unknown("the kernel does not say whether it is PREEMPT_RT".to_owned())
        })
    });
    sheet.put("kernel.irq_threads", threaded);
    tracing(sheet);
    load(sheet);
}

/// Is this a PREEMPT_RT kernel? `None`: it does not say.
fn preempt_rt(sheet: &Sheet<'_>) -> Option<bool> {
    let version = sheet.root.read_trimmed("/proc/sys/kernel/version").ok()?;
    let realtime = sheet.root.read_trimmed("/sys/kernel/realtime").is_ok_and(|t| t == "1");
    Some(realtime || version.split(' ').any(|w| w == "PREEMPT_RT" || w == "PREEMPT-RT"))
}

/// `rt`, `full`, `lazy`, `voluntary` or `none`.
fn preempt(sheet: &Sheet<'_>) -> Found<String> {
    let version = sheet.root.read_trimmed("/proc/sys/kernel/version")?;
    if preempt_rt(sheet) == Some(true) {
        return Ok("rt".to_owned());
    }
    let has = |word: &str| version.split(' ').any(|w| w.trim_matches(['(', ')']) == word);
    if has("PREEMPT") {
        return Ok("full".to_owned());
    }
    if has("PREEMPT_LAZY") {
        return Ok("lazy".to_owned());
    }
    let configured = || {
        let config = sheet.config.as_ref().ok()?;
        [
            ("PREEMPT", "full"),
            ("PREEMPT_LAZY", "lazy"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT_NONE", "none"),
        ]
        .into_iter()
        .find(|(option, _)| config.yes(option))
        .map(|(_, word)| word.to_owned())
    };
    if !has("PREEMPT_DYNAMIC") {
        return configured().ok_or_else(|| {
            Missing::Unknown(
                "none or voluntary: the kernel's version does not show which".to_owned(),
            )
        });
    }
    let now = sheet.root.debugfs("sched/preempt");
    if let Some(word) = now.as_ref().ok().and_then(|t| chosen(t)) {
        return Ok(word.to_owned());
    }
    // Without debugfs: the command line decides at boot, else the configured default. Either
    // could have been changed through debugfs since, which would leave no other trace.
    let command_line = sheet.command_line()?;
    let word =
        command_line.iter().rev().find_map(|w| w.strip_prefix("preempt=").map(str::to_owned));
    word.or_else(configured).ok_or_else(|| {
        Missing::Unknown(format!(
            "chosen at boot, and neither debugfs ({}) nor preempt= nor the configuration shows it",
            now.unwrap_or_else(|e| e.reason().to_owned())
        ))
    })
}

fn mitigations(sheet: &Sheet<'_>) -> Found<Value> {
    const DIR: &str = "/sys/devices/system/cpu/vulnerabilities";
    let mut object = Map::new();
    for name in sheet.root.list(DIR)? {
        let text = sheet.root.read_trimmed(&format!("{DIR}/{name}"));
        object.insert(name, text.unwrap_or_else(|e| e.to_string()).into());
    }
    Ok(object.into())
}

fn config(sheet: &mut Sheet<'_>) {
    let config = sheet.config.clone();
    let option = |name: &str| config.as_ref().map(|c| c.yes(name)).map_err(Clone::clone);
    let (highres, nohz_full, rt_group) =
        (option("HIGH_RES_TIMERS"), option("NO_HZ_FULL"), option("RT_GROUP_SCHED"));
    sheet.put("kernel.high_res_timers", highres);
    sheet.put("kernel.no_hz_full", nohz_full);
    sheet.put("kernel.rt_group_sched", rt_group);
    let hz = config.as_ref().map_err(Clone::clone).and_then(|c| {
        c.value("HZ")
            .and_then(|v| v.parse::<i64>().ok())
            .ok_or_else(|| Missing::Unknown("the configuration has no HZ".to_owned()))
    });
    sheet.put("kernel.hz", hz);
    let debug = config.as_ref().map_err(Clone::clone).map(|c| {
        DEBUG_OPTIONS.iter().filter(|o| c.yes(o)).map(|o| Value::from(*o)).collect::<Vec<_>>()
    });
    sheet.put("kernel.debug_options", debug);
    let source = config.as_ref().map(|c| c.source.clone()).map_err(Clone::clone);
    sheet.put("kernel.config_source", source);
    sheet.put("kernel.config_fingerprint", config.map(|c| c.fingerprint()));
}

fn tracing(sheet: &mut Sheet<'_>) {
    let root = sheet.root;
    sheet.put("kernel.tracer", root.tracefs("current_tracer"));
    sheet.put("kernel.tracing_on", root.tracefs("tracing_on").map(|t| t == "1"));
    // 0: none, 1: all, X: some.
    let events = root.tracefs("events/enable").map(|t| match t.as_str() {
        "0" => "none".to_owned(),
        "1" => "all".to_owned(),
        "X" => "some".to_owned(),
        other => other.to_owned(),
    });
    sheet.put("kernel.trace_events", events);
    let probes = root.tracefs("kprobe_events").map(|t| t.lines().count());
    sheet.put("kernel.kprobes", probes);
    let instances = root.tracefs("tracing_on").and_then(|_| {
        root.list("/sys/kernel/tracing/instances")
            .or_else(|_| root.list("/sys/kernel/debug/tracing/instances"))
    });
    // Our own says something of this run, not of the machine.
    let own = format!("{}{}-", crate::tracefs::NAME_PREFIX, std::process::id());
    let others = |names: Vec<String>| -> Vec<String> {
        names.into_iter().filter(|n| !n.starts_with(&own)).collect()
    };
    sheet.put("kernel.trace_instances", instances.map(others));
}

fn load(sheet: &mut Sheet<'_>) {
    let loads = sheet.root.read_trimmed("/proc/loadavg").map(|t| {
        t.split(' ')
            .take(3)
            .filter_map(|w| w.parse::<f64>().ok())
            .map(Value::from)
            .collect::<Vec<_>>()
    });
    sheet.put("kernel.loadavg", loads);
    let uptime = sheet.root.read_trimmed("/proc/uptime").and_then(|t| {
        t.split(' ')
            .next()
            .and_then(|w| w.parse::<f64>().ok())
            .ok_or_else(|| Missing::Unknown("/proc/uptime is not a number".to_owned()))
    });
    sheet.put("kernel.uptime_s", uptime);
    for what in ["cpu", "memory", "io"] {
        let text = sheet.root.read_trimmed(&format!("/proc/pressure/{what}"));
        let share = text.and_then(|t| {
            t.split_ascii_whitespace()
                .find_map(|w| w.strip_prefix("avg10=")?.parse::<f64>().ok())
                .ok_or_else(|| Missing::Unknown(format!("/proc/pressure/{what} has no avg10")))
        });
        sheet.put(&format!("kernel.pressure_{what}"), share);
    }
}
