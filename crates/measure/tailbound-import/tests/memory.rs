// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of a streamed import does not grow with the file, nor that of a file which is refused; a test program of its own, with
//! one test, because the highest mark of memory is the whole process's.
//!
//! Units: kB as /proc/self/status has them.

use std::io::Read;

use tailbound_import::{Format, ImportSource, Options, import_from, import_of};

/// The process's highest resident size so far.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// The same bytes again and again, without an end.
struct Repeated(Vec<u8>, usize);

impl Repeated {
    fn of(bytes: &[u8]) -> Self {
        Self(bytes.repeat((64 << 10) / bytes.len()), 0)
    }
}

impl Read for Repeated {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = buffer.len().min(self.0.len() - self.1);
        buffer[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
        self.1 = (self.1 + n) % self.0.len();
        Ok(n)
    }
}

#[test]
fn memory_is_bounded_whatever_the_length() {
    let before = peak_kb();
    let options = Options { interval_ns: Some(100_000), ..Options::default() };
    let mut source = Repeated::of(b"\x11\x11\0\0\x12\x11\0\0").take(128 << 20);
    let run = import_from(Some(Format::RawU32), "f", &mut source, &options, &mut |_| true);
    assert!(run.is_ok_and(|r| r.threads[0].wakeup.n == 32 << 20 && r.seconds.len() == 3356));
    let grown = peak_kb() - before;
    assert!(before > 0 && grown < 48 << 10, "{grown} kB for 128 MiB");
    // Two GiB of what is of no format: refused under every name that a format has.
    let files: [&[u8]; 6] = [b"\0", b"\xff", b"x", b"some line\n", b"{\"a\":1,\n", b"<rteval>\n"];
    let options = Options { unit_ns: Some(1), ..options };
    for bytes in files {
        for format in Format::ALL {
            let mut source = Repeated::of(bytes).take(2 << 30);
            let got = import_from(Some(*format), "f", &mut source, &options, &mut |_| true);
            let read = (2 << 30) - source.limit();
            assert!(got.is_err(), "{format}: {}", bytes.escape_ascii());
            assert!(read < 40 << 20, "{format}: {}: {read} bytes", bytes.escape_ascii());
        }
    }
    let grown = peak_kb() - before;
    assert!(grown < 64 << 10, "{grown} kB for what is refused");
    // One of the right kind, and known to be too long, is not read.
    let mut source = Repeated::of(b"       0:       1:      45\n").take(2 << 30);
    let format = Some(Format::CyclictestVerbose);
    let known = ImportSource { bytes: &mut source, length: Some(2 << 30) };
    let got = import_of(format, "f", known, &options, &mut |_| true);
    assert!(got.is_err_and(|e| e.to_string().contains("longer than 1024 MiB")));
    assert!(source.limit() > (2 << 30) - (1 << 20));
}
