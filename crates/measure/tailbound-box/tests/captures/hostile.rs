// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of a stranger: an error or edges, never a panic, and never more memory than they have bytes.

use proptest::prelude::*;
use tailbound_box::CaptureFormat;

use crate::formats::all;
use crate::support::{self, Member, read, read_in, wiring};

const FORMATS: [CaptureFormat; 4] = [
    CaptureFormat::Vcd,
    CaptureFormat::SigrokSession,
    CaptureFormat::SigrokCsv,
    CaptureFormat::SaleaeCsv,
];

#[test]
fn every_single_byte_may_be_wrong() {
    for (format, bytes) in all() {
        for at in 0..bytes.len().min(1500) {
            for flip in [0x01, 0x20, 0x80, 0xff] {
                let mut other = bytes.clone();
                other[at] ^= flip;
                drop(read(format, &other));
            }
        }
    }
}

#[test]
fn absurd_numbers_are_refused() {
    let vcd = |scale: &str, body: &str| {
        format!(
            "$timescale {scale} $end $var wire 1 ! D0 $end $var wire 1 \" D1 $end $enddefinitions $end\n{body}\n"
        )
    };
    for body in ["#99999999999999999999 1!", "#-1 1!", "# 1!", "#1e9"] {
        assert!(read(CaptureFormat::Vcd, vcd("1 s", body).as_bytes()).is_err(), "{body}");
    }
    let last = format!("#0 0! 0\" #1 1! #{} 1\"", i64::MAX);
    let got = read(CaptureFormat::Vcd, vcd("100 s", &last).as_bytes()).expect("it can be read");
    assert_eq!(got.base.latency_ns(i64::MAX), i64::MAX, "a time beyond all is the greatest");
    let scales = ["0 ns", "1", "ns", "10 h", "99999999999999999999 s"];
    assert!(scales.iter().all(|s| read(CaptureFormat::Vcd, vcd(s, "#0").as_bytes()).is_err()));
    let seconds = |t: &str| format!("Time [s],D0,D1\n{t},0,0\n");
    for time in ["1e5", "", "inf", "99999999999", "1.2.3", "--1", "0x10"] {
        assert!(read(CaptureFormat::SaleaeCsv, seconds(time).as_bytes()).is_err(), "{time}");
    }
    for (from, to) in [
        ("unitsize=1", "unitsize=999999999"),
        ("unitsize=1", "unitsize=0"),
        ("1 MHz", "0 Hz"),
        ("probe2=", "probe99999="),
        ("probe2=", "probe0="),
    ] {
        let text = support::metadata("1 MHz", 1).replace(from, to);
        let bytes = support::zip(&[
            Member::new("metadata", text.as_bytes()),
            Member::new("logic-1-1", &[0, 1]),
        ]);
        assert!(read(CaptureFormat::SigrokSession, &bytes).is_err(), "{to}");
    }
}

#[test]
fn a_chunk_that_unpacks_to_very_much_is_read_piece_by_piece() {
    // 64 MiB in 64 KiB, an edge at each sample of one part.
    let mut data = vec![0u8; 64 << 20];
    data[1000..200_000].iter_mut().step_by(2).for_each(|s| *s = 1);
    let text = support::metadata("1 MHz", 1);
    let bytes =
        support::zip(&[Member::new("metadata", text.as_bytes()), Member::new("logic-1-1", &data)]);
    assert!(bytes.len() < 1 << 20);
    let mut capture =
        tailbound_box::Capture::new(CaptureFormat::SigrokSession, Some(wiring("D0", "D1")), None);
    let (mut at, mut most, mut n) = (0, 0, 0);
    loop {
        let mut out = Vec::new();
        let used = capture.decode(&bytes[at..], &mut out).unwrap();
        at += used;
        most = most.max(out.len());
        n += out.len();
        if out.len() < 1 << 15 {
            break;
        }
    }
    assert_eq!((at, n), (bytes.len(), 199_000));
    assert!(most < 1 << 17, "{most} edges at once");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..400), size in 1usize..64) {
        prop_assert!(CaptureFormat::of(&bytes).is_none_or(|f| FORMATS.contains(&f)));
        for format in FORMATS {
            drop(read_in(format, Some(wiring("0", "1")), None, &bytes, size));
        }
    }

    #[test]
    fn any_words_end(
        words in proptest::collection::vec(proptest::sample::select(WORDS.to_vec()), 0..60),
        size in 1usize..64,
    ) {
        let text = words.concat();
        for format in FORMATS {
            drop(read_in(format, Some(wiring("0", "1")), None, text.as_bytes(), size));
        }
    }
}

const WORDS: [&str; 28] = [
    "$timescale 1 ns $end ",
    "$var wire 1 ! 0 $end ",
    "$var wire 1 \" 1 $end ",
    "$enddefinitions $end\n",
    "$dumpvars ",
    "$end ",
    "$comment ",
    "#",
    "#5 ",
    "1! ",
    "0\" ",
    "x! ",
    "b101 ! ",
    "r1 \" ",
    "; Samplerate: 1 MHz\n",
    "; Channels (2/2): 0, 1\n",
    "; Channels (1/1)",
    "Time [s],0,1\n",
    "nanoseconds,logic,logic\n",
    "logic,logic\n",
    "0,1\n",
    "1,0\n",
    "5,0,1\n",
    "\"",
    "\n",
    ",",
    "-",
    "\u{feff}",
];
