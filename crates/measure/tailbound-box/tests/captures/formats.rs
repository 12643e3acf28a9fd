// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each format gives the edges that were written into it, however it is cut into pieces; and sigrok's own program, where it is installed.

use crate::support::{self, Member, Read, read, read_in, wiring};
use tailbound_box::{
    CaptureFormat, CapturePlace, EdgeRule, Ending, Pairing, PulseOutcome, RateOrigin,
};

/// The latencies of a capture in ns, by rising edges.
fn latencies(read: &Read) -> Vec<i64> {
    let (mut pairing, mut told) = (Pairing::new(EdgeRule::Rising), Vec::new());
    let mut tell = |o: PulseOutcome| {
        if let PulseOutcome::Answered(a) = o {
            told.push(read.base.latency_ns(a.latency));
        }
    };
    read.edges.iter().for_each(|e| pairing.edge(*e, &mut tell));
    pairing.end(read.summary.end_tick, &mut tell);
    told
}

const DELAYS: [usize; 6] = [13, 7, 0, 59, 7, 22];

/// The same samples in each format, of 1 MHz.
pub(crate) fn all() -> [(CaptureFormat, Vec<u8>); 4] {
    let samples = support::samples(200, 30, &DELAYS);
    [
        (CaptureFormat::Vcd, support::vcd("10 ns", 100, &samples).into_bytes()),
        (CaptureFormat::SigrokSession, support::session("1 MHz", &samples, 333)),
        (CaptureFormat::SigrokCsv, support::sigrok_csv("1 MHz", &samples).into_bytes()),
        (CaptureFormat::SaleaeCsv, support::saleae_csv(1000, &samples).into_bytes()),
    ]
}

#[test]
fn planted_delays_are_found_in_every_format() {
    let planted: Vec<i64> = DELAYS.iter().map(|d| *d as i64 * 1000).collect();
    for (format, bytes) in all() {
        assert_eq!(CaptureFormat::of(&bytes), Some(format));
        let got = read(format, &bytes).unwrap_or_else(|e| panic!("{format:?}: {e}"));
        assert_eq!(latencies(&got), planted, "{format:?}");
        assert_eq!(got.summary.ending, Ending::Whole, "{format:?}");
        let stated = matches!(format, CaptureFormat::SigrokSession | CaptureFormat::SigrokCsv);
        assert_eq!(got.summary.rate == RateOrigin::Stated, stated, "{format:?}");
        if stated {
            assert_eq!(got.summary.resolution_ns, 1000);
        } else {
            assert!(got.summary.resolution_ns >= 1000, "never finer than it was: {format:?}");
        }
        let given = Some("1MHz".parse().unwrap());
        let given = read_in(format, Some(wiring("D0", "D1")), given, &bytes, 1 << 20).unwrap();
        assert_eq!((given.summary.resolution_ns, given.summary.rate), (1000, RateOrigin::Stated));
    }
}

#[test]
fn pieces_of_any_size_give_the_same() {
    for (format, bytes) in all() {
        let whole = read(format, &bytes).unwrap();
        for size in [1, 2, 7, 31, 1000] {
            let cut = read_in(format, Some(wiring("0", "1")), None, &bytes, size).unwrap();
            assert_eq!(cut, whole, "{format:?} in pieces of {size}");
        }
    }
}

#[test]
fn a_capture_that_was_cut_off_is_a_shorter_one_and_says_so() {
    for (format, bytes) in all() {
        let whole = read(format, &bytes).unwrap();
        let mut said = 0;
        for cut in (1..bytes.len()).step_by(7) {
            // Within the header there is nothing to tell.
            let Ok(got) = read(format, &bytes[..cut]) else { continue };
            assert!(whole.edges.starts_with(&got.edges), "{format:?} at {cut}");
            assert!(got.summary.end_tick <= whole.summary.end_tick);
            said += u32::from(matches!(got.summary.ending, Ending::Cut(_)));
            if format == CaptureFormat::SigrokSession && got.edges.len() < whole.edges.len() {
                assert!(matches!(got.summary.ending, Ending::Cut(_)), "at {cut}");
            }
        }
        assert!(said > 3, "{format:?}: {said}");
    }
}

#[test]
fn archives_are_read_however_their_members_are_packed() {
    let samples = support::samples(200, 30, &DELAYS);
    let planted: Vec<i64> = DELAYS.iter().map(|d| *d as i64 * 1000).collect();
    let text = support::metadata("1 MHz", 2);
    let wide: Vec<u8> = samples.iter().flat_map(|s| [*s, 0x55]).collect();
    // A chunk may end within a sample.
    let (first, second) = wide.split_at(777);
    for (deflated, behind) in [(true, false), (false, false), (true, true)] {
        let of = |name, data| Member { deflated, behind, ..Member::new(name, data) };
        let bytes = support::zip(&[
            of("version", b"2"),
            of("metadata", text.as_bytes()),
            of("logic-1-1", first),
            of("analog-1-3-1", b"not looked at"),
            of("logic-1-2", second),
        ]);
        for size in [1, 1 << 20] {
            let lines = Some(wiring("D0", "D1"));
            let got = read_in(CaptureFormat::SigrokSession, lines, None, &bytes, size)
                .unwrap_or_else(|e| panic!("{deflated} {behind}: {e}"));
            assert_eq!(latencies(&got), planted, "{deflated} {behind}");
            assert_eq!(got.summary.ending, Ending::Whole);
        }
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let samples = support::samples(200, 30, &DELAYS);
    let vcd = support::vcd("1 us", 1, &samples);
    let csv = support::sigrok_csv("1 MHz", &samples);
    let text = support::metadata("1 MHz", 1);
    let archive = |names: [&str; 3]| {
        let data = |name: &str| if name == "metadata" { text.as_bytes() } else { &samples };
        support::zip(&names.map(|name| Member::new(name, data(name))))
    };
    let mut damaged = support::session("1 MHz", &samples, 300);
    let at = damaged.len() / 2;
    damaged[at] ^= 0x10;
    let line = |n| CapturePlace::Line(n);
    let cases: [(CaptureFormat, Vec<u8>, Option<CapturePlace>, &str); 14] = [
        (
            CaptureFormat::Vcd,
            vcd.replace("$timescale 1 us $end\n", "").into(),
            None,
            "no $timescale",
        ),
        (CaptureFormat::Vcd, vcd.replace("1 us", "2 us").into(), Some(line(2)), "1, 10 or 100"),
        (
            CaptureFormat::Vcd,
            vcd.replace("wire 1 ! D0", "wire 4 ! D0").into(),
            None,
            "a vector of 4 bits",
        ),
        (CaptureFormat::Vcd, vcd.replace("wire 1 ! D0", "real 1 ! D0").into(), None, "analog"),
        (CaptureFormat::Vcd, vcd.replace("\" D1", "! D1").into(), None, "two names of one signal"),
        (CaptureFormat::Vcd, format!("{vcd}#5\n").into(), None, "time goes back"),
        (CaptureFormat::Vcd, format!("{vcd}?!\n").into(), None, "neither a time nor a change"),
        (
            CaptureFormat::SigrokCsv,
            csv.replace("; Samplerate: 1 MHz\n", "").into(),
            Some(line(4)),
            "--sample-rate",
        ),
        (CaptureFormat::SigrokCsv, format!("{csv}0.31,1\n").into(), None, "analog"),
        (CaptureFormat::SigrokCsv, format!("{csv}0\n").into(), None, "columns"),
        (
            CaptureFormat::SaleaeCsv,
            b"Time [s],D0,D1\n2026-01-02T03:04:05.000000Z,0,0\n".to_vec(),
            Some(line(2)),
            "ISO 8601",
        ),
        (
            CaptureFormat::SigrokSession,
            archive(["version", "logic-1-1", "metadata"]),
            None,
            "before its `metadata`",
        ),
        (
            CaptureFormat::SigrokSession,
            archive(["metadata", "logic-1-1", "logic-1-3"]),
            None,
            "chunk 2",
        ),
        (CaptureFormat::SigrokSession, damaged, None, "damaged"),
    ];
    for (format, bytes, place, words) in cases {
        let told = read(format, &bytes).expect_err(words);
        assert!(told.reason.contains(words), "{words}: {}", told.reason);
        assert!(place.is_none_or(|place| place == told.place), "{words}: {:?}", told.place);
    }
    for (format, bytes) in all() {
        let lines = |a: &str, b: &str| read_in(format, Some(wiring(a, b)), None, &bytes, 64);
        let told = lines("D0", "D9").expect_err("no D9").reason;
        assert!(told.contains("D0`, 1 ") && told.contains("D1`"), "{told}");
        let told = read_in(format, None, None, &bytes, 64).expect_err("no wiring").reason;
        assert!(told.contains("--stimulus CHANNEL"), "{told}");
    }
}

#[test]
fn unknown_states_are_counted_and_the_first_level_is_no_edge() {
    let text = "$timescale 1 ns $end $var wire 1 a D0 $end $var wire 1 b D1 $end $enddefinitions $end\n$dumpvars xa zb $end\n#5 1a 0b\n#9 xb #12 1b #14 xb #15 1b #20 0a $comment 1a 0b $end #25 za\n#30\n";
    let got = read(CaptureFormat::Vcd, text.as_bytes()).unwrap();
    assert_eq!(got.edges.iter().map(|e| e.tick).collect::<Vec<_>>(), [12, 20]);
    assert_eq!((got.summary.unknown_states, got.summary.end_tick), (3, 30));
}

#[test]
fn sigroks_column_of_times_is_a_number_of_samples() {
    // As sigrok-cli 0.7.2 writes a capture of 3 MHz: each sample counts 333 ns, 1‰ too little.
    let text = "; CSV generated by libsigrok 0.5.2\n; Channels (2/2): D0, D1\n; Samplerate: 3 MHz\nnanoseconds,logic,logic\n333,0,0\n333333,1,0\n666333,1,1\n";
    let got = read(CaptureFormat::SigrokCsv, text.as_bytes()).unwrap();
    assert_eq!(got.edges.iter().map(|e| e.tick).collect::<Vec<_>>(), [1000, 2000]);
    assert_eq!(latencies(&got), [333_334], "1000 samples, rounded up");
    let labels = text.replace("nanoseconds,logic,logic\n", "Time,D0,D1\n");
    let none = text.replace("nanoseconds,logic,logic\n", "");
    for other in [labels, none] {
        assert_eq!(read(CaptureFormat::SigrokCsv, other.as_bytes()).unwrap().edges, got.edges);
    }
    for (text, words) in [
        (text.replace("666333", "666334"), "no multiple"),
        (text.replace("\n333,", "\n0,"), "begins with 0"),
    ] {
        let told = read(CaptureFormat::SigrokCsv, text.as_bytes()).expect_err(words).reason;
        assert!(told.contains(words), "{told}");
    }
}

/// A program that sigrok brings; tests do without it where it is not installed.
#[expect(clippy::disallowed_methods, reason = "another program's own files, where it is installed")]
fn sigrok(arguments: &[&str]) -> bool {
    let status = std::process::Command::new("sigrok-cli").args(arguments).output();
    status.is_ok_and(|out| out.status.success())
}

#[test]
fn what_sigrok_itself_writes_is_read_alike() {
    let folder = std::env::temp_dir().join(format!("tailbound-box-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let samples = support::samples(1000, 100, &DELAYS);
    std::fs::write(path("raw"), &samples).unwrap();
    let (raw, own) = (path("raw"), path("own.sr"));
    let made = sigrok(&["-i", &raw, "-I", "binary:numchannels=12:samplerate=24000000", "-o", &own]);
    let wide: Vec<u8> = samples.iter().flat_map(|s| [*s, 0]).collect();
    std::fs::write(path("raw"), wide).unwrap();
    let made = made
        && sigrok(&["-i", &raw, "-I", "binary:numchannels=12:samplerate=24000000", "-o", &own]);
    if made {
        let planted: Vec<i64> =
            DELAYS.iter().map(|d| (*d as u64 * 125).div_ceil(3) as i64).collect();
        let mut seen = 0;
        for (name, format, options) in [
            ("own.sr", CaptureFormat::SigrokSession, None),
            ("a.vcd", CaptureFormat::Vcd, Some("vcd")),
            ("a.csv", CaptureFormat::SigrokCsv, Some("csv")),
            ("b.csv", CaptureFormat::SigrokCsv, Some("csv:time=true:dedup=true")),
            ("c.csv", CaptureFormat::SigrokCsv, Some("csv:time=true:label=channel")),
        ] {
            let file = path(name);
            if let Some(options) = options {
                assert!(sigrok(&["-i", &own, "-O", options, "-o", &file]), "{options}");
            }
            let bytes = std::fs::read(&file).unwrap();
            assert_eq!(CaptureFormat::of(&bytes), Some(format), "{name}");
            let got = read_in(format, Some(wiring("0", "1")), None, &bytes, 4096)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let found = latencies(&got);
            let near = found.iter().zip(&planted).all(|(a, b)| a.abs_diff(*b) <= 1);
            assert!(near && found.len() == planted.len(), "{name}: {found:?} {planted:?}");
            assert_eq!(
                (got.summary.resolution_ns, got.summary.ending),
                (42, Ending::Whole),
                "{name}"
            );
            seen += 1;
        }
        assert_eq!(seen, 5);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
