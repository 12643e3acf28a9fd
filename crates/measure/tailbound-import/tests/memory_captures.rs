// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of an imported capture does not grow with it, in any format; a test program of its own, with one test, because the
//! highest mark of memory is the whole process's. The captures are made while they are read.
//!
//! Units: kB as /proc/self/status has them.

use std::io::Read;

use tailbound_core::crc32;
use tailbound_import::{CaptureOptions, EdgeRule, Format, Options, Wiring, import_from};

/// The process's highest resident size so far.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Parts one after another, each made when the one before was read.
struct Parts<F> {
    next: F,
    part: Vec<u8>,
    at: usize,
}

impl<F: FnMut() -> Option<Vec<u8>>> Read for Parts<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.part.len() {
            match (self.next)() {
                Some(part) => (self.part, self.at) = (part, 0),
                None => return Ok(0),
            }
        }
        let n = buffer.len().min(self.part.len() - self.at);
        buffer[..n].copy_from_slice(&self.part[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// A head, then what `part` makes for 0, 1, … below `n`.
fn parts(head: String, n: u64, part: impl Fn(u64) -> Vec<u8> + Send) -> impl Read + Send {
    let (mut head, mut k) = (Some(head.into_bytes()), 0);
    let next = move || {
        head.take().or_else(|| {
            k += 1;
            (k <= n).then(|| part(k - 1))
        })
    };
    Parts { next, part: Vec::new(), at: 0 }
}

/// A stored member of a zip archive.
fn member(name: &str, data: &[u8], crc: u32) -> Vec<u8> {
    let mut out = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0".to_vec();
    let size = data.len() as u32;
    for word in [crc, size, size] {
        out.extend(word.to_le_bytes());
    }
    out.extend((name.len() as u32).to_le_bytes());
    out.extend(name.bytes());
    out.extend(data);
    out
}

#[test]
fn memory_is_bounded_whatever_the_length() {
    let before = peak_kb();
    let wiring = Wiring { stimulus: "0".to_owned(), answer: "1".to_owned() };
    let capture =
        CaptureOptions { wiring, rule: EdgeRule::Toggle, sample_rate: "10MHz".parse().ok() };
    let options = Options { capture: Some(capture), ..Options::default() };
    // A pulse each 100 µs answered after 12.3 µs, as 10 kHz gives; 2 million of them.
    let pulses = 2_000_000u64;
    let vcd = parts(
        "$timescale 100 ns $end $var wire 1 ! a $end $var wire 1 \" b $end $enddefinitions $end\n#0 0! 0\"\n".to_owned(),
        pulses,
        |k| format!("#{} {}!\n#{} {}\"\n", 1000 * k + 9, (k + 1) % 2, 1000 * k + 132, (k + 1) % 2).into(),
    );
    let saleae = parts("Time [s],a,b\n0.0,0,0\n".to_owned(), pulses, |k| {
        let (s, ns) = (k / 10_000, k % 10_000 * 100_000);
        let (now, last) = ((k + 1) % 2, k % 2);
        format!("{s}.{:09},{now},{last}\n{s}.{:09},{now},{now}\n", ns + 900, ns + 13_200).into()
    });
    // Of these each part is 200 samples of 1 µs or 0.1 µs: a pulse that is answered, and the next.
    let rows: Vec<u8> = (0..200)
        .flat_map(|k| {
            if k < 12 {
                *b"1,0\n"
            } else if k < 100 {
                *b"1,1\n"
            } else if k < 112 {
                *b"0,1\n"
            } else {
                *b"0,0\n"
            }
        })
        .collect();
    let csv = parts(
        "; Channels (2/2): a, b\n; Samplerate: 1 MHz\n0,0\n".to_owned(),
        pulses / 16,
        move |_| rows.clone(),
    );
    // 400 MiB of samples.
    let chunk: Vec<u8> =
        (0..4u32 << 20).map(|k| [0b01, 0b11, 0b10, 0b00][(k >> 10) as usize % 4]).collect();
    let (text, sum) = (
        "[device 1]\ncapturefile=logic-1\nsamplerate=10 MHz\nprobe1=a\nprobe2=b\nunitsize=1\n",
        crc32::of(&chunk),
    );
    let metadata = member("metadata", text.as_bytes(), crc32::of(text.as_bytes()));
    let head = String::from_utf8(metadata);
    let session = parts(String::new(), 101, move |k| match k {
        0 => {
            head.as_ref().map(|h| h.clone().into_bytes()).unwrap_or_else(|e| e.as_bytes().to_vec())
        }
        k => member(&format!("logic-1-{k}"), &chunk, sum),
    });
    let mut sources: [(Format, Box<dyn Read + Send>, u64); 4] = [
        (Format::Vcd, Box::new(vcd), pulses),
        (Format::SaleaeCsv, Box::new(saleae), pulses),
        (Format::SigrokCsv, Box::new(csv), pulses / 8),
        (Format::SigrokSession, Box::new(session), 100 * 2048 - 1),
    ];
    for (format, source, n) in &mut sources {
        let run = import_from(Some(*format), "c", source, &options, &mut |_| true)
            .unwrap_or_else(|e| panic!("{e}"));
        let d = &run.threads[0].wakeup;
        assert!(d.n.abs_diff(*n) <= 1, "{format}: {} of {n}", d.n);
        assert!(run.threads[0].missed.n <= 1, "{format}");
        let grown = peak_kb() - before;
        assert!(before > 0 && grown < 64 << 10, "{format}: {grown} kB");
    }
}
