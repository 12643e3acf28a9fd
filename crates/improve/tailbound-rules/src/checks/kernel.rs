// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel, its command line, and what it can tell.
//!
//! Source: Documentation/admin-guide/kernel-parameters.txt, init/main.c
//! ("Unknown kernel command line parameters"), kernel/sched/isolation.c.

use tailbound_host::root::empty_if_absent;

use super::{PLAIN, few};
use crate::check::Check;
use crate::machine::Machine;
use crate::outcome::{CheckOutcome, Look};

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "kern.preempt-model",
        why: "where the kernel is not preemptible, its own work runs to its end before a real-time thread gets the CPU",
        now: "echo full > /sys/kernel/debug/sched/preempt",
        for_good: "boot with preempt=full, or install a PREEMPT_RT kernel",
        undo: "write the word in parentheses back",
        source: "kernel-parameters.txt (preempt=)",
        look: preempt_model,
        ..PLAIN
    },
    Check {
        id: "kern.debug-options",
        why: "checking code in the kernel makes its critical sections 10 to 1000 us longer: figures taken on it are void",
        for_good: "install a kernel without these options",
        source: "kernel configuration",
        look: debug_options,
        ..PLAIN
    },
    Check {
        id: "kern.highres",
        why: "without high-resolution timers a wake-up waits for the next tick",
        for_good: "remove highres=off, or build with CONFIG_HIGH_RES_TIMERS",
        source: "Documentation/timers/highres.rst",
        look: highres,
        ..PLAIN
    },
    Check {
        id: "kern.cmdline-unknown",
        why: "the kernel ignores a parameter that it does not know, although it stands in /proc/cmdline",
        for_good: "remove it: kthread_cpus= does not exist, workqueue.cpumask= is workqueue.unbound_cpus=, noirqbalance is a service's business",
        source: "init/main.c",
        look: cmdline_unknown,
        ..PLAIN
    },
    Check {
        id: "kern.cmdline-rejected",
        why: "a parameter that is wrong in one part is dropped as a whole",
        for_good: "mend the list: nohz_full= must equal isolcpus=nohz, and one present CPU must stay outside",
        source: "kernel/sched/isolation.c",
        look: cmdline_rejected,
        ..PLAIN
    },
    Check {
        id: "kern.cmdline-harmful",
        why: "parameters that guides hand on and that cost more than they give",
        for_good: "remove them and reboot",
        source: "kernel-parameters.txt",
        look: cmdline_harmful,
        ..PLAIN
    },
    Check {
        id: "kern.cmdline-vs-boot",
        why: "what was written for the boot loader counts after a reboot, or never reached the boot entry",
        now: "update-grub (or what your boot loader has), then reboot",
        source: "Documentation/admin-guide/kernel-parameters.rst",
        look: cmdline_vs_boot,
        ..PLAIN
    },
    Check {
        id: "kern.lockdown",
        why: "a locked kernel refuses debugfs and machine registers: fair server, preemption and more can be neither seen nor set",
        for_good: "the policy of secure boot, or lockdown=",
        source: "kernel_lockdown(7)",
        look: lockdown,
        ..PLAIN
    },
    Check {
        id: "kern.tracing-left-on",
        why: "each traced event costs 0.2 to 0.5 us, each traced function about as much",
        now: "echo nop > /sys/kernel/tracing/current_tracer; echo 0 > /sys/kernel/tracing/events/enable",
        undo: "restore current_tracer and set_event",
        source: "Documentation/trace/ftrace.rst",
        look: tracing_left_on,
        ..PLAIN
    },
    Check {
        id: "kern.capabilities",
        why: "tells which diagnosis of late wake-ups this kernel allows",
        source: "Documentation/trace/{osnoise-tracer,timerlat-tracer}.rst",
        look: capabilities,
        ..PLAIN
    },
    Check {
        id: "kern.preemptirq-events",
        why: "with these events, sections with interrupts or preemption off are seen directly",
        for_good: "CONFIG_PREEMPTIRQ_TRACEPOINTS=y (it costs a little in every such section)",
        source: "Documentation/trace/events.rst",
        look: |m| there(m, "events/preemptirq/enable", "the preemptirq events are there"),
        ..PLAIN
    },
    Check {
        id: "kern.latency-tracers",
        why: "built in, they cost time in each section with interrupts or preemption off, also while they are off",
        for_good: "a kernel without CONFIG_IRQSOFF_TRACER and CONFIG_PREEMPT_TRACER",
        source: "Documentation/core-api/real-time/kernel-configuration.rst",
        look: latency_tracers,
        ..PLAIN
    },
    Check {
        id: "kern.rv-monitors",
        why: "runtime-verification monitors find page faults and unsuitable sleeps in real-time threads",
        for_good: "CONFIG_RV=y with CONFIG_RV_MON_RTAPP",
        source: "Documentation/trace/rv/monitor_rtapp.rst",
        look: |m| there(m, "rv/available_monitors", "monitors are there"),
        ..PLAIN
    },
];

fn preempt_model(m: &Machine) -> Look {
    if m.is_rt() {
        return Ok(CheckOutcome::ok("PREEMPT_RT"));
    }
    let model = m.word("kernel.preempt")?;
    let good = ["full", "lazy"].iter().any(|w| model.contains(w)) || model == "preempt";
    Ok(if good {
        CheckOutcome::ok(model)
    } else {
        CheckOutcome::bad(format!("preemption model: {model}"))
    })
}

fn debug_options(m: &Machine) -> Look {
    let value = m.fact("kernel.debug_options")?;
    let names: Vec<String> = value
        .as_array()
        .map(|a| a.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
        .or_else(|| {
            value.as_str().filter(|t| !t.is_empty() && *t != "none").map(|t| vec![t.to_owned()])
        })
        .unwrap_or_default();
    Ok(if names.is_empty() {
        CheckOutcome::ok("none of the options that check at run time")
    } else {
        CheckOutcome::bad(format!("built with {}", few(&names, 6)))
    })
}

fn highres(m: &Machine) -> Look {
    if m.parameter("highres")?.as_deref() == Some("off") {
        return Ok(CheckOutcome::bad("highres=off is on the command line"));
    }
    match m.config("HIGH_RES_TIMERS")?.as_deref() {
        Some("y") => Ok(CheckOutcome::ok("CONFIG_HIGH_RES_TIMERS=y")),
        _ => Ok(CheckOutcome::bad("CONFIG_HIGH_RES_TIMERS is not set")),
    }
}

fn cmdline_unknown(m: &Machine) -> Look {
    const INVENTED: &[&str] =
        &["kthread_cpus", "workqueue.cpumask", "noirqbalance", "rcu_nocb_cpus"];
    let invented: Vec<String> = m
        .words()?
        .into_iter()
        .filter(|w| INVENTED.contains(&w.split('=').next().unwrap_or_default()))
        .collect();
    if !invented.is_empty() {
        return Ok(CheckOutcome::bad(format!("no kernel knows {}", few(&invented, 4))));
    }
    match m.said(&["Unknown kernel command line parameters"])? {
        Some(line) => Ok(CheckOutcome::warn(line.to_owned())),
        None => Ok(CheckOutcome::ok("the kernel named none")),
    }
}

fn cmdline_rejected(m: &Machine) -> Look {
    let words = &[
        "isolcpus: Invalid flag",
        "isolcpus: Skipped unknown flag",
        "Housekeeping: ",
        "nohz unsupported",
    ];
    match m.said(words)? {
        Some(line) => Ok(CheckOutcome::bad(line.to_owned())),
        None => Ok(CheckOutcome::ok("the kernel rejected none")),
    }
}

fn cmdline_harmful(m: &Machine) -> Look {
    const HARMFUL: &[(&str, &str)] = &[
        ("irqpoll", "every handler is called at every tick"),
        ("irqfixup", "handlers of others are searched at each unhandled interrupt"),
        ("noapic", "all interrupts go to one CPU"),
        ("nolapic", "no timer of its own for each CPU"),
    ];
    const VALUES: &[(&str, &str, &str)] = &[
        ("nohz", "off", "every CPU ticks, idle ones too"),
        ("clocksource", "hpet", "reading the time costs a microsecond and a bus access"),
        ("clocksource", "acpi_pm", "reading the time costs a microsecond and a bus access"),
        ("tsc", "unstable", "the time is read from a slow device"),
        ("isolcpus", "", "an empty list isolates nothing"),
    ];
    let mut found: Vec<String> = Vec::new();
    for (name, why) in HARMFUL {
        if m.parameter(name)?.is_some() {
            found.push(format!("{name}: {why}"));
        }
    }
    for (name, value, why) in VALUES {
        if m.parameter(name)?.as_deref() == Some(value) {
            found.push(format!("{name}={value}: {why}"));
        }
    }
    if m.parameter("idle")?.as_deref() == Some("poll") && m.hypervisor().is_some() {
        found.push("idle=poll: a guest that never gives its CPU back".to_owned());
    }
    Ok(if found.is_empty() {
        CheckOutcome::ok("none of them")
    } else {
        CheckOutcome::bad(few(&found, 4))
    })
}

fn cmdline_vs_boot(m: &Machine) -> Look {
    let path = "/etc/default/grub.d/50-tailbound.cfg";
    let text = m.text(path)?;
    let line = text.lines().find_map(|l| l.strip_prefix("GRUB_CMDLINE_LINUX=")).unwrap_or_default();
    let now = m.words()?;
    let missing: Vec<String> = line
        .trim_matches('"')
        .split_ascii_whitespace()
        .filter(|w| !w.starts_with('$') && !now.iter().any(|n| n == w))
        .map(str::to_owned)
        .collect();
    Ok(if missing.is_empty() {
        CheckOutcome::ok(format!("{path} is in force"))
    } else {
        CheckOutcome::reboot(format!(
            "{path} has {}, and the running kernel does not",
            missing.join(" ")
        ))
    })
}

fn lockdown(m: &Machine) -> Look {
    let state = m.word("kernel.lockdown")?;
    Ok(if state == "none" {
        CheckOutcome::ok("not locked down")
    } else {
        CheckOutcome::warn(format!("lockdown: {state}"))
    })
}

fn tracing_left_on(m: &Machine) -> Look {
    let tracer = m.root.tracefs("current_tracer")?;
    let events = empty_if_absent(m.root.tracefs("set_event"))?;
    let n = events.lines().filter(|l| !l.trim().is_empty()).count();
    let kprobes = empty_if_absent(m.root.tracefs("kprobe_events"))?;
    let instances = empty_if_absent(m.root.list("/sys/kernel/tracing/instances"))?;
    let instances: Vec<String> =
        instances.into_iter().filter(|i| !i.starts_with("tailbound-")).collect();
    let mut found = Vec::new();
    if tracer != "nop" {
        found.push(format!("the tracer {tracer} is on"));
    }
    if n > 0 {
        found.push(format!("{n} events are on"));
    }
    if !kprobes.is_empty() {
        found.push(format!("{} kprobes are set", kprobes.lines().count()));
    }
    if !instances.is_empty() {
        found.push(format!("instances of others: {}", few(&instances, 3)));
    }
    Ok(if found.is_empty() {
        CheckOutcome::ok("nothing is traced")
    } else {
        CheckOutcome::bad(found.join("; "))
    })
}

fn latency_tracers(m: &Machine) -> Look {
    const TRACERS: [(&str, &str); 2] =
        [("IRQSOFF_TRACER", "irqsoff"), ("PREEMPT_TRACER", "preemptoff")];
    // Where the configuration is not kept, the kernel's own list tells.
    let listed = m.root.tracefs("available_tracers");
    let mut found = Vec::new();
    for (option, tracer) in TRACERS {
        let built_in = match (m.config(option), &listed) {
            (Ok(value), _) => value.as_deref() == Some("y"),
            (Err(_), Ok(all)) => all.split_ascii_whitespace().any(|t| t == tracer),
            (Err(why), Err(_)) => return Err(why),
        };
        if built_in {
            found.push(format!("CONFIG_{option}"));
        }
    }
    Ok(if found.is_empty() {
        CheckOutcome::ok("not built in")
    } else {
        CheckOutcome::warn(format!("built with {}", found.join(", ")))
    })
}

fn capabilities(m: &Machine) -> Look {
    let tracers = m.root.tracefs("available_tracers")?;
    let has = |t: &str| tracers.split_ascii_whitespace().any(|w| w == t);
    let mut list = Vec::new();
    for tracer in ["timerlat", "osnoise", "hwlat", "irqsoff", "wakeup_rt", "function_graph"] {
        if has(tracer) {
            list.push(tracer.to_owned());
        }
    }
    if m.root.exists("/sys/kernel/btf/vmlinux") {
        list.push("BPF with BTF".to_owned());
    }
    list.push("tracepoints".to_owned());
    Ok(CheckOutcome::ok(list.join(", ")))
}

fn there(m: &Machine, path: &str, found: &str) -> Look {
    m.root.tracefs(path)?;
    Ok(CheckOutcome::ok(found))
}
