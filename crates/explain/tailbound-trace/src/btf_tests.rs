// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the reader of kernel types: one made by hand, this kernel's own, and both cut off and spoilt.

use super::*;

const NAMES: &[u8] = b"\0int\0task\0pid\0comm\0char\0flags\0btf_trace_x\0inner\0";

fn at(name: &str) -> u32 {
    let text = format!("\0{name}\0");
    let place = NAMES.windows(text.len()).position(|w| w == text.as_bytes()).unwrap();
    u32::try_from(place + 1).unwrap()
}

/// `struct task { int flags:3; struct { int pid; }; char comm[16]; struct inner { int pid; } inner; }`
/// and a tracepoint `x(struct task *, int)`.
fn made(order: ByteOrder) -> Vec<u8> {
    let info = |kind: u32, members: u32, flag: u32| flag << 31 | kind << 24 | members;
    let mut words = Vec::new();
    let mut add = |w: &[u32]| words.extend_from_slice(w);
    add(&[at("int"), info(INT, 0, 0), 4, 32]); // 1
    add(&[at("char"), info(INT, 0, 0), 1, 8]); // 2
    add(&[0, info(ARRAY, 0, 0), 0, 2, 1, 16]); // 3
    add(&[0, info(STRUCT, 1, 0), 4, at("pid"), 1, 0]); // 4
    add(&[at("inner"), info(STRUCT, 1, 0), 8, at("pid"), 1, 32]); // 5
    add(&[at("task"), info(STRUCT, 4, 1), 40]); // 6
    add(&[at("flags"), 1, 3 << 24, 0, 4, 32, at("comm"), 3, 64, at("inner"), 5, 192]);
    add(&[0, info(PTR, 0, 0), 6]); // 7
    add(&[0, info(PTR, 0, 0), 0]); // 8: void *
    add(&[0, info(FUNC_PROTO, 3, 0), 0, 0, 8, 0, 7, 0, 1]); // 9
    add(&[0, info(PTR, 0, 0), 9]); // 10
    add(&[at("btf_trace_x"), info(TYPEDEF, 0, 0), 10]); // 11
    let types = u32::try_from(words.len() * 4).unwrap();
    let names = u32::try_from(NAMES.len()).unwrap();
    let big = order == ByteOrder::BigEndian;
    let order = |w: u32| if big { w.to_be_bytes() } else { w.to_le_bytes() };
    let mut out = if big { MAGIC.to_be_bytes() } else { MAGIC.to_le_bytes() }.to_vec();
    out.extend([1, 0]);
    [24, 0, types, types, names].iter().for_each(|w| out.extend(order(*w)));
    words.iter().for_each(|w| out.extend(order(*w)));
    out.extend(NAMES);
    out
}

#[test]
fn fields_are_found_through_nameless_structures_and_steps() {
    for order in [ByteOrder::LittleEndian, ByteOrder::BigEndian] {
        let bytes = made(order);
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.len(), 11);
        assert_eq!(btf.field("task", &["pid"]), Ok(Field { offset: 4, size: 4 }));
        assert_eq!(btf.field("task", &["comm"]), Ok(Field { offset: 8, size: 16 }));
        assert_eq!(btf.field("task", &["inner", "pid"]), Ok(Field { offset: 28, size: 4 }));
        let point = btf.tracepoint("x").unwrap();
        assert_eq!((point.id, point.pointers), (11, vec![true, false]));
    }
}

#[test]
fn what_is_not_there_is_named_and_bits_have_no_address() {
    let bytes = made(ByteOrder::LittleEndian);
    let btf = Btf::parse(&bytes).unwrap();
    let error = btf.field("task", &["pi_blocked_on"]).unwrap_err().to_string();
    assert_eq!(error, "this kernel has no struct task, field pi_blocked_on");
    assert!(btf.field("task", &["flags"]).is_err());
    assert!(btf.field("nothing", &["pid"]).is_err());
    assert!(btf.tracepoint("sched_switch").is_err());
    assert!(btf.tracepoint("").is_err());
}

#[test]
fn what_is_cut_off_or_spoilt_is_an_error_and_no_panic() {
    let bytes = made(ByteOrder::LittleEndian);
    for length in 0..bytes.len() {
        assert!(Btf::parse(bytes.get(..length).unwrap()).is_err(), "{length}");
    }
    assert_eq!(Btf::parse(b"\x7fELF").unwrap_err(), BtfError::Foreign);
    for place in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut spoilt = bytes.clone();
            *spoilt.get_mut(place).unwrap() = value;
            if let Ok(btf) = Btf::parse(&spoilt) {
                let _ = btf.field("task", &["pid"]);
                let _ = btf.field("task", &["inner", "pid"]);
                let _ = btf.tracepoint("x");
            }
        }
    }
}

#[test]
fn a_type_that_is_made_from_itself_has_an_end() {
    let mut bytes = made(ByteOrder::LittleEndian);
    // The typedef points to itself.
    let last = 24 + (bytes.len() - 24 - NAMES.len()) - 4;
    bytes.get_mut(last..last + 4).unwrap().copy_from_slice(&11u32.to_le_bytes());
    let btf = Btf::parse(&bytes).unwrap();
    assert!(btf.tracepoint("x").is_err());
}

#[test]
fn this_kernels_own_description_is_read() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
        return tailbound_testing::skip("btf", "no /sys/kernel/btf/vmlinux");
    };
    let btf = Btf::parse(&bytes).unwrap();
    assert!(btf.len() > 1000);
    assert_eq!(btf.field("task_struct", &["comm"]).unwrap().size, 16);
    assert_eq!(btf.field("task_struct", &["pid"]).unwrap().size, 4);
    assert_eq!(btf.field("list_head", &["prev"]), Ok(Field { offset: 8, size: 8 }));
    let switch = btf.tracepoint("sched_switch").unwrap();
    assert_eq!(switch.pointers.get(..3), Some(&[false, true, true][..]));
    for length in (0..bytes.len()).step_by(bytes.len() / 64) {
        assert!(Btf::parse(bytes.get(..length).unwrap()).is_err(), "{length}");
    }
}
