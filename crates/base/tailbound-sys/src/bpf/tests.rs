// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps and refused programs, in this kernel.

use super::*;

fn made(kind: MapKind, key: usize, value: usize, entries: u32) -> Option<Map> {
    match Map::make(kind, key, value, entries, "test") {
        Ok(map) => Some(map),
        Err(e) => {
            tailbound_testing::skip("root", e);
            None
        }
    }
}

#[test]
fn a_map_keeps_what_it_is_given() {
    let Some(map) = made(MapKind::Hash, 4, 8, 2) else { return };
    let key = 7u32.to_ne_bytes();
    assert_eq!(map.get(&key), None);
    map.set(&key, &42u64.to_ne_bytes()).unwrap();
    assert_eq!(map.get(&key), Some(42u64.to_ne_bytes().to_vec()));
    assert!(map.set(&key[..2], &[0; 8]).is_err() && map.set(&key, &[0; 4]).is_err());
    map.set(&8u32.to_ne_bytes(), &[0; 8]).unwrap();
    assert!(map.set(&9u32.to_ne_bytes(), &[0; 8]).is_err_and(|e| e.errno == libc::E2BIG));
    let mut keys = map.keys(9);
    keys.sort();
    assert_eq!(keys, [key.to_vec(), 8u32.to_ne_bytes().to_vec()]);
    assert_eq!(map.keys(1).len(), 1);
    assert!(map.remove(&key) && !map.remove(&key) && !map.remove(&key[..2]));
    assert_eq!(map.keys(9).len(), 1);
}

#[test]
fn a_ring_that_nobody_wrote_is_empty() {
    let bytes = page_size() * 4;
    let Some(map) = made(MapKind::Ring, 0, 0, u32::try_from(bytes).unwrap()) else { return };
    let mut ring = Ring::open(&map, bytes).unwrap();
    ring.read(&mut |_| panic!("a record"));
}

fn page_size() -> usize {
    crate::mapping::page_bytes()
}

#[test]
fn a_program_that_the_kernel_refuses_is_an_error_with_its_words() {
    if made(MapKind::Array, 4, 8, 1).is_none() {
        return;
    }
    // `exit` alone: nothing is returned. No event has the type 0.
    let error = Program::load(&[0x95], 0, "nothing").unwrap_err();
    assert!(error.to_string().contains("program nothing"), "{error}");
}

#[test]
fn names_are_those_that_the_kernel_takes() {
    assert_eq!(&named("sched-waking"), b"sched_waking\0\0\0\0");
    assert_eq!(&named("a_name_that_is_much_too_long"), b"a_name_that_is_\0");
}
