// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the reader of events: records made by hand, whole, cut off and with fields missing.

use super::*;

fn format(text: &str) -> EventFormat {
    EventFormat::parse(text).expect("a format")
}

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

#[test]
fn names_are_read_from_arrays_and_from_data_locations() {
    let old = format(&format!(
        "name: sched_migrate_task\nID: 3\n{COMMON}\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
         \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:int orig_cpu;\toffset:28;\tsize:4;\tsigned:1;\n\
         \tfield:int dest_cpu;\toffset:32;\tsize:4;\tsigned:1;\n"
    ));
    let handler = format(&format!(
        "name: irq_handler_entry\nID: 4\n{COMMON}\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
         \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n"
    ));
    let decoder = EventDecoder::new(&[old, handler]);
    assert!(decoder.lacking().is_empty());
    let mut bytes =
        vec![4, 0, Flags::HARDIRQ | Flags::IRQS_OFF, 0, 7, 0, 0, 0, 36, 0, 0, 0, 16, 0, 5, 0];
    bytes.extend(b"eth0\0");
    let entry = decoder.decode(9, 1, &bytes).expect("an interrupt");
    assert_eq!(entry.event, Event::IrqEntry { irq: 36, name: Word::new("eth0") });
    assert_eq!((entry.pid, entry.t_ns, entry.cpu), (7, 9, 1));
    assert!(entry.flags.hardirq() && entry.flags.irqs_off() && !entry.flags.in_thread());
    assert_eq!(decoder.decode(9, 1, &bytes[..18]), None, "cut off");
    assert_eq!(decoder.decode(9, 1, &[9, 0]), None, "not known");
}

#[test]
fn a_thread_that_begins_is_read_with_its_name() {
    // An array in older kernels, behind a location in 7.2.
    let array = "\tfield:char child_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t child_pid;\toffset:24;\tsize:4;\tsigned:1;\n";
    let located = "\tfield:__data_loc char[] child_comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t child_pid;\toffset:12;\tsize:4;\tsigned:1;\n";
    let head = [8, 0, 0, 0, 7, 0, 0, 0];
    let mut old = head.to_vec();
    old.extend(b"ctl\0\0\0\0\0\0\0\0\0\0\0\0\0");
    old.extend([42, 0, 0, 0]);
    let mut new = head.to_vec();
    new.extend([16, 0, 4, 0, 42, 0, 0, 0]);
    new.extend(b"ctl\0");
    for (fields, bytes) in [(array, old), (located, new)] {
        let fork = format(&format!("name: sched_process_fork\nID: 8\n{COMMON}{fields}"));
        let event = EventDecoder::new(&[fork]).decode(0, 0, &bytes).map(|e| e.event);
        assert_eq!(event, Some(Event::Fork { child: 42, comm: Word::new("ctl") }));
    }
}

#[test]
fn an_event_without_a_field_is_named_and_the_others_are_read() {
    let switch = format(&format!("name: sched_switch\nID: 5\n{COMMON}"));
    let softirq = format(&format!(
        "name: softirq_entry\nID: 6\n{COMMON}\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n"
    ));
    let decoder = EventDecoder::new(&[switch, softirq]);
    assert!(decoder.lacking()[0].contains("sched_switch"), "{:?}", decoder.lacking());
    let bytes = [6, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];
    assert_eq!(decoder.decode(0, 0, &bytes).map(|e| e.event), Some(Event::SoftirqEntry { vec: 3 }));
}

#[test]
fn arguments_of_system_calls_have_the_size_of_the_kernels_long() {
    for (size, sent) in [(4usize, 24usize), (8, 48)] {
        let call = format(&format!(
            "name: sys_enter\nID: 7\n{COMMON}\tfield:long id;\toffset:8;\tsize:{size};\tsigned:1;\n\
             \tfield:unsigned long args[6];\toffset:{};\tsize:{sent};\tsigned:0;\n",
            8 + size
        ));
        let mut bytes = vec![7, 0, 0, 0, 1, 0, 0, 0];
        for value in [230u64, 1, 2, 3, 4, 5, 6] {
            bytes.extend(&value.to_le_bytes()[..size]);
        }
        let decoder = EventDecoder::new(&[call]);
        let event = decoder.decode(0, 0, &bytes).map(|e| e.event);
        assert_eq!(event, Some(Event::SysEnter { id: 230, args: [1, 2, 3, 4] }));
    }
}

#[test]
fn every_event_that_is_wanted_is_understood() {
    assert!(WANTED.iter().all(|w| kind(w.name).is_some()));
}
