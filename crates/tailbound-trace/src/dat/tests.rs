// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks, packing, and pieces of files. Real files: `tests/trace_files.rs`.
//!
//! Context: COLD.

use super::clock::chosen;
use super::part::Part;
use super::unpack::Packing;
use super::*;

#[test]
fn the_clock_is_the_one_in_brackets() {
    assert_eq!(chosen("local global [mono] boot\n"), "mono");
    assert_eq!(chosen("mono\n"), "mono");
    assert!(TraceClock::of("mono").is_the_timers());
    for (word, scaled, is_time) in [
        ("local", false, true),
        ("boot", false, true),
        ("counter", true, false),
        ("uptime", true, false),
        ("x86-tsc", false, false),
        ("x86-tsc", true, true),
    ] {
        let clock = TraceClock::of(word);
        assert!(!clock.is_the_timers());
        assert_eq!(clock.is_time(scaled).is_ok(), is_time, "{word}");
        assert_eq!(clock.to_string(), word);
    }
    let tsc = Tsc { mult: 3, shift: 1 };
    assert_eq!((tsc.ns(10), tsc.ns(u64::MAX)), (15, u64::MAX));
}

#[test]
fn nothing_is_unpacked_beyond_what_is_said() {
    let plain = vec![7u8; 100_000];
    let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&plain, 6);
    assert_eq!(Packing::Zlib.unpack(&zlib, 100_000), Ok(plain.clone()));
    assert!(Packing::Zlib.unpack(&zlib, 99_999).is_err_and(|e| e.contains("more than")));
    assert!(Packing::Zlib.unpack(&zlib[..9], 100_000).is_err());
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(&plain[..], level);
    assert_eq!(Packing::Zstd.unpack(&zstd, 100_000), Ok(plain));
    assert!(Packing::Zstd.unpack(&zstd, 99_999).is_err_and(|e| e.contains("more than")));
    assert!(Packing::Zstd.unpack(b"nonsense", 10).is_err());
    assert!(Packing::of("lzo".to_owned()).is_err());
}

#[test]
fn a_piece_that_is_not_there_says_where_the_file_ends() {
    let mut part = Part::new(b"ab\0\x01\0\0\0", 100, "the options");
    assert_eq!(part.text().ok().as_deref(), Some("ab"));
    assert_eq!(part.u32(), Ok(1));
    assert!(part.is_empty());
    let why = part.u8().map_err(|e| e.to_string());
    assert!(why.is_err_and(|w| w.contains("byte 107") && w.contains("the options")));
}
