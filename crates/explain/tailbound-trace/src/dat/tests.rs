// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks, packing, and pieces of files. Real files: `tests/trace_files.rs`.

use super::clock::chosen;
use super::part::Part;
use super::unpack::Packing;
use super::*;

#[test]
fn the_clock_is_the_one_in_brackets() {
    assert_eq!(chosen("local global [mono] boot\n"), "mono");
    assert_eq!(chosen("mono\n"), "mono");
    assert!(TraceClock::of("mono").is_the_timers());
    let tsc = Tsc { mult: 3, shift: 1 };
    for (word, scale, is_time) in [
        ("local", None, true),
        ("boot", None, true),
        ("counter", Some(&tsc), false),
        ("uptime", Some(&tsc), false),
        ("x86-tsc", None, false),
        ("x86-tsc", Some(&tsc), true),
    ] {
        let clock = TraceClock::of(word);
        assert!(!clock.is_the_timers());
        assert_eq!(clock.is_time(scale).is_ok(), is_time, "{word}");
        assert_eq!(clock.to_string(), word);
    }
    assert_eq!((tsc.ns(10), tsc.ns(u64::MAX)), (15, u64::MAX));
}

#[test]
fn nothing_is_unpacked_beyond_what_is_said() {
    let plain = vec![7u8; 100_000];
    let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&plain, 6);
    assert_eq!(Packing::Zlib.unpack(&zlib, 100_000), Ok(plain.clone()));
    assert!(
        Packing::Zlib.unpack(&zlib, 99_999).is_err_and(|e| e.to_string().contains("more than"))
    );
    assert!(Packing::Zlib.unpack(&zlib[..9], 100_000).is_err());
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(&plain[..], level);
    assert_eq!(Packing::Zstd.unpack(&zstd, 100_000), Ok(plain));
    assert!(
        Packing::Zstd.unpack(&zstd, 99_999).is_err_and(|e| e.to_string().contains("more than"))
    );
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

/// A description of two events, whose records have twelve bytes.
fn described() -> Described {
    let page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    let format = |name: &str, id: u16| {
        format!(
            "name: {name}\nID: {id}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
        )
    };
    Described {
        page: page.to_owned(),
        record: "# compressed entry header\n".to_owned(),
        formats: vec![("sched", format("sched_switch", 7)), ("irq", format("irq_handler_exit", 8))],
        clock: "mono".to_owned(),
        uname: "Linux box 6.1 x86_64".to_owned(),
        recorder: "tailbound".to_owned(),
        function_bytes: 60,
        threads: "11 worker\n".to_owned(),
    }
}

/// A page with one record of so many words, three being a whole one.
fn page(t_ns: u64, words: u32) -> Vec<u8> {
    let mut page = vec![0u8; 4096];
    let record = [
        &words.to_le_bytes()[..],
        &8u16.to_le_bytes(),
        &[0; 2],
        &11u32.to_le_bytes(),
        &36u32.to_le_bytes(),
    ]
    .concat();
    page[..8].copy_from_slice(&t_ns.to_le_bytes());
    page[8..16].copy_from_slice(&u64::from(4 + words * 4).to_le_bytes());
    page[16..32].copy_from_slice(&record);
    page
}

#[test]
fn what_is_written_is_read_again() {
    let mut head = Head::new(&described(), 3, 4096).unwrap();
    // The last has no room.
    head.name_functions(&Symbols::parse("ff00 T far\n10 T a\n20 T b\n"));
    head.name_functions(&Symbols::parse("20 T b\n10 T a\nff00 T far\n"));
    let at = head.bytes().len();
    assert_eq!(at % 4096, 0);
    // CPU 1 was offline; one beyond the last is nobody's.
    for (cpu, place) in [(0, at), (2, at + 4096), (3, at)] {
        head.place(cpu, place as u64, 4096);
    }
    let mut file = head.bytes().to_vec();
    for t_ns in [2_000u64, 1_000] {
        file.extend(page(t_ns, 3));
    }
    let trace = TraceFile::open(std::io::Cursor::new(file)).unwrap();
    let info = trace.info().clone();
    assert!(info.clock.is_the_timers() && info.notes.is_empty(), "{:?}", info.notes);
    assert_eq!((info.cpus, info.bytes, info.formats.len()), (Some(3), 8192, 2));
    assert_eq!(info.uname.as_deref(), Some("Linux box 6.1 x86_64"));
    let names = [0x11, 0x2f].map(|at| info.symbols.name(at).map(str::to_owned));
    assert_eq!(names, [Some("a".to_owned()), Some("b".to_owned())]);
    let decoder = EventDecoder::new(&info.formats);
    let mut seen = Vec::new();
    trace
        .read(&decoder, &mut |s| {
            if let MergeItem::Entry(e) = s {
                seen.push((e.t_ns, e.cpu, e.pid, e.event));
            }
            true
        })
        .unwrap();
    let exit = crate::event::Event::IrqExit { irq: 36 };
    assert_eq!(seen, [(1_000, 2, 11, exit), (2_000, 0, 11, exit)]);
}

#[test]
fn times_that_go_back_and_records_that_do_not_fit_are_told_and_are_holes() {
    let read = |pages: &[(u64, u32)]| {
        let mut head = Head::new(&described(), 1, 4096).unwrap();
        head.place(0, head.bytes().len() as u64, 4096 * pages.len() as u64);
        let pages = pages.iter().flat_map(|(t_ns, words)| page(*t_ns, *words));
        let file: Vec<u8> = head.bytes().iter().copied().chain(pages).collect();
        let trace = TraceFile::open(std::io::Cursor::new(file)).unwrap();
        let decoder = EventDecoder::new(&trace.info().formats);
        let (mut times, mut holes) = (Vec::new(), Vec::new());
        let end = trace.read(&decoder, &mut |s| {
            match s {
                MergeItem::Entry(e) => times.push(e.t_ns),
                MergeItem::Lost(t_ns) => holes.push(t_ns),
                MergeItem::Bytes(_) => {}
            }
            true
        });
        let end = end.unwrap();
        (times, holes, end.damaged, end.notes.join("; "))
    };
    let whole = read(&[(1_000, 3), (1_000, 3), (2_000, 3)]);
    assert_eq!(whole, (vec![1_000, 1_000, 2_000], Vec::new(), 0, String::new()));
    let (times, holes, damaged, notes) = read(&[(2_000, 3), (1_000, 3), (3_000, 3)]);
    assert_eq!((times, holes, damaged), (vec![2_000, 3_000], vec![3_000], 1));
    assert!(notes.contains("times that go back"), "{notes}");
    let (times, holes, damaged, notes) = read(&[(1_000, 3), (2_000, 2), (3_000, 3)]);
    assert_eq!((times, holes, damaged), (vec![1_000, 3_000], vec![3_000], 1));
    assert!(notes.contains("its description does not fit"), "{notes}");
}
