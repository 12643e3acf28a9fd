// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every event that is used, as kernels from 5.10 to 7.2 describe it: a record made by the
//! description is decoded to what went in.
//!
//! The descriptions are the kernels' own: `data/formats/README.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tailbound_trace::event::{Event, FaultMode, WANTED};
use tailbound_trace::{EventDecoder, EventFormat, PageLayout};

/// Kernel, and the events that it does not have.
const KERNELS: [(&str, &[&str]); 5] = [
    (
        "5.10",
        &[
            "thermal_apic_entry",
            "thermal_apic_exit",
            "ipi_send_cpu",
            "ipi_send_cpumask",
            "ipi_entry",
            "ipi_exit",
            "csd_function_entry",
            "csd_function_exit",
            "contention_begin",
            "contention_end",
        ],
    ),
    (
        "6.1-rt",
        &[
            "ipi_send_cpu",
            "ipi_send_cpumask",
            "ipi_entry",
            "ipi_exit",
            "csd_function_entry",
            "csd_function_exit",
        ],
    ),
    ("6.12-rt", &[]),
    ("6.18", &["ipi_entry", "ipi_exit"]),
    ("7.2", &["ipi_entry", "ipi_exit"]),
];

/// The descriptions of one kernel, by their places.
fn texts(kernel: &str) -> BTreeMap<String, String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("tests/data/formats").join(format!("linux-{kernel}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut out = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(next) => next.clone_into(&mut name),
            None => {
                let text: &mut String = out.entry(name.clone()).or_default();
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    out
}

/// The number that a field of this name gets.
fn number(name: &str) -> i64 {
    match name {
        "prev_pid" | "common_pid" => 11,
        "next_pid" => 12,
        "prev_state" => 1,
        "pid" => 13,
        "prio" | "prev_prio" | "oldprio" => 14,
        "next_prio" | "newprio" => 15,
        "target_cpu" | "orig_cpu" | "cpu" | "cpu_id" => 2,
        "dest_cpu" => 3,
        "vec" => 7,
        "irq" => 36,
        "state" => 4,
        "flags" => 1,
        "id" => 230,
        "ret" => -4,
        "common_flags" | "common_preempt_count" | "common_type" => 0,
        _ => 0x1234_5678,
    }
}

/// A record as the description lays it out.
fn record(text: &str, id: u16) -> Vec<u8> {
    let mut bytes = vec![0u8; 256];
    let mut behind = 128usize;
    for line in text.lines().filter_map(|l| l.trim().strip_prefix("field:")) {
        let part = |key: &str| {
            let (_, rest) = line.split_once(key)?;
            rest.split(';').next()?.parse::<usize>().ok()
        };
        let (offset, size) = (part("offset:").expect("an offset"), part("size:").expect("a size"));
        let declared = line.split(';').next().unwrap_or_default();
        let name = declared.rsplit([' ', '*']).next().unwrap_or_default();
        let name = name.split('[').next().unwrap_or_default();
        let value = match name {
            "common_type" => i64::from(id),
            _ => number(name),
        };
        if declared.contains("__data_loc") {
            let data: Vec<u8> = match name {
                "cpumask" => 0b110u64.to_le_bytes().to_vec(),
                _ => b"a-name\0\0".to_vec(),
            };
            bytes[behind..behind + data.len()].copy_from_slice(&data);
            let place = u32::try_from(behind | data.len() << 16).expect("small");
            bytes[offset..offset + 4].copy_from_slice(&place.to_le_bytes());
            behind += data.len();
        } else if size == 48 {
            for i in 0..6u64 {
                let at = offset + 8 * usize::try_from(i).expect("small");
                bytes[at..at + 8].copy_from_slice(&(i + 1).to_le_bytes());
            }
        } else if size > 8 {
            bytes[offset..offset + 6].copy_from_slice(b"a-name");
        } else {
            bytes[offset..offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    bytes
}

/// What must come out.
fn is_right(name: &str, event: &Event) -> bool {
    const N: u64 = 0x1234_5678;
    match (name, *event) {
        (
            "sched_switch",
            Event::Switch { prev, prev_prio, prev_state, prev_comm, next, next_prio, next_comm },
        ) => {
            (prev, prev_prio, prev_state, next, next_prio) == (11, 14, 1, 12, 15)
                && prev_comm.as_str() == "a-name"
                && next_comm.as_str() == "a-name"
        }
        ("sched_waking", Event::Waking { pid, prio, cpu, comm }) => {
            (pid, prio, cpu, comm.as_str()) == (13, 14, 2, "a-name")
        }
        ("sched_wakeup" | "sched_wakeup_new", e) => e == Event::Wakeup { pid: 13, cpu: 2 },
        ("sched_migrate_task", e) => e == Event::Migrate { pid: 13, from: 2, to: 3 },
        ("sched_pi_setprio", e) => e == Event::Prio { pid: 13, old: 14, new: 15 },
        ("hrtimer_start", e) => {
            e == Event::TimerStart {
                timer: N,
                function: N,
                due_ns: N.cast_signed(),
                latest_ns: N.cast_signed(),
            }
        }
        ("hrtimer_expire_entry", e) => {
            e == Event::TimerExpire { timer: N, function: N, now_ns: N.cast_signed() }
        }
        ("hrtimer_expire_exit", e) => e == Event::TimerExit { timer: N },
        ("irq_handler_entry", Event::IrqEntry { irq, name }) => {
            (irq, name.as_str()) == (36, "a-name")
        }
        ("irq_handler_exit", e) => e == Event::IrqExit { irq: 36 },
        ("softirq_entry", e) => e == Event::SoftirqEntry { vec: 7 },
        ("softirq_exit", e) => e == Event::SoftirqExit { vec: 7 },
        ("ipi_send_cpu", e) => e == Event::IpiSend { cpu: 2, callsite: N, callback: N },
        ("ipi_send_cpumask", e) => {
            e == Event::IpiSendMany { cpus: 0b110, callsite: N, callback: N }
        }
        ("csd_function_entry", e) => e == Event::CallEntry { function: N },
        ("csd_function_exit", e) => e == Event::CallExit,
        ("nmi_handler", e) => e == Event::Nmi { handler: N, ns: N.cast_signed() },
        ("workqueue_execute_start", e) => e == Event::WorkStart { function: N },
        ("workqueue_execute_end", e) => e == Event::WorkEnd,
        ("contention_begin", e) => e == Event::LockWait { lock: N, flags: 1 },
        ("contention_end", e) => e == Event::LockGot { lock: N },
        ("page_fault_user", e) => e == Event::PageFault { mode: FaultMode::User, address: N },
        ("page_fault_kernel", e) => e == Event::PageFault { mode: FaultMode::Kernel, address: N },
        ("cpu_idle", e) => e == Event::Idle { state: Some(4) },
        ("cpu_frequency", e) => e == Event::Frequency { cpu: 2, khz: 4 },
        ("console", e) => e == Event::Console,
        ("sys_enter", e) => e == Event::SysEnter { id: 230, args: [1, 2, 3, 4] },
        ("sys_exit", e) => e == Event::SysExit { id: 230, ret: -4 },
        (name, Event::VectorEntry(_)) => name.ends_with("_entry"),
        (name, Event::VectorExit(_)) => name.ends_with("_exit"),
        _ => false,
    }
}

#[test]
fn records_of_every_kernel_are_decoded() {
    for (kernel, absent) in KERNELS {
        let texts = texts(kernel);
        let page = PageLayout::parse(&texts["header_page"]).expect("the kernel's own");
        assert_eq!(page.size, 4096, "{kernel}");
        let of = |w: &&str| texts.iter().find(|(place, _)| place.rsplit('/').next() == Some(*w));
        for wanted in WANTED {
            let there = texts.contains_key(&format!("{}/{}", wanted.system, wanted.name));
            assert_eq!(there, !absent.contains(&wanted.name), "{kernel}: {}", wanted.name);
        }
        let names = WANTED.iter().map(|w| w.name);
        let names: Vec<&str> = names
            .chain(["sched_wakeup_new", "page_fault_kernel", "sys_enter", "sys_exit"])
            .filter(|n| !absent.contains(n))
            .collect();
        let formats: Vec<EventFormat> = names
            .iter()
            .map(|n| EventFormat::parse(of(n).expect("it is there").1).expect("the kernel's own"))
            .collect();
        let decoder = EventDecoder::new(&formats);
        assert!(decoder.lacking().is_empty(), "{kernel}: {:?}", decoder.lacking());
        for (name, format) in names.iter().zip(&formats) {
            let bytes = record(of(name).expect("it is there").1, format.id);
            let entry = decoder.decode(1, 0, &bytes).unwrap_or_else(|| panic!("{kernel}: {name}"));
            assert_eq!(entry.pid, 11, "{kernel}: {name}");
            assert!(is_right(name, &entry.event), "{kernel}: {name}: {:?}", entry.event);
        }
    }
}
