// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a text, numbered and of bounded length, without what mails and logs put before them.
//!
//! Not here: what the lines say.

use std::io::{self, BufRead};

/// What is longer is cut: no record of a trace has so much.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// A text, line by line.
#[derive(Debug)]
pub(super) struct TextLines<R> {
    source: R,
    raw: Vec<u8>,
    text: String,
    /// Lines that were read.
    pub(super) number: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// The last of them had no end: the text may have been cut there.
    pub(super) open_end: bool,
}

impl<R: BufRead> TextLines<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, raw: Vec::new(), text: String::new(), number: 0, bytes: 0, open_end: false }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<&str>> {
        self.raw.clear();
        let mut ended = false;
        let mut some = false;
        while !ended {
            let piece = match self.source.fill_buf() {
                Ok(piece) => piece,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if piece.is_empty() {
                break;
            }
            some = true;
            let end = piece.iter().position(|b| *b == b'\n');
            ended = end.is_some();
            let line = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
            let room = LINE_BYTES_MAX.saturating_sub(self.raw.len()).min(line.len());
            self.raw.extend_from_slice(line.get(..room).unwrap_or_default());
            let used = end.map_or(piece.len(), |at| at.saturating_add(1));
            self.bytes = self.bytes.saturating_add(u64::try_from(used).unwrap_or(u64::MAX));
            self.source.consume(used);
        }
        if !some {
            return Ok(None);
        }
        self.open_end = !ended;
        self.number = self.number.saturating_add(1);
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&self.raw));
        Ok(Some(bare(&self.text)))
    }
}

/// The line without the marks of a quoted mail, what a kernel log puts before it and what ends it.
pub(super) fn bare(line: &str) -> &str {
    let mut line = line.trim_end();
    while let Some(rest) = line.strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    line = of_syslog(line).unwrap_or(line);
    // `<6>`
    if let Some((level, rest)) = line.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && !level.is_empty()
        && level.bytes().all(|b| b.is_ascii_digit())
    {
        line = rest;
    }
    let bracketed = |line| str::strip_prefix(line, '[').and_then(|rest| rest.split_once(']'));
    let Some((stamp, mut rest)) = bracketed(line) else { return line };
    if !is_log_stamp(stamp) && !is_date(stamp) {
        return line;
    }
    if let Some((caller, behind)) = bracketed(rest)
        && is_caller(caller)
    {
        rest = behind;
    }
    rest.strip_prefix(' ').unwrap_or(rest)
}

/// `Nov 28 18:40:12 host kernel: `, as the journal and syslog have it.
fn of_syslog(line: &str) -> Option<&str> {
    let (head, rest) = line.split_once(" kernel: ")?;
    let mut words = head.split_whitespace();
    let (month, day, time) = (words.next()?, words.next()?, words.next()?);
    let plain = month.len() == 3 && month.bytes().all(|b| b.is_ascii_alphabetic());
    let day = day.len() <= 2 && day.bytes().all(|b| b.is_ascii_digit());
    (plain && day && is_time_of_day(time)).then_some(rest)
}

/// `Sat Nov 28 18:40:12 2026`, as `dmesg -T` has it.
fn is_date(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [weekday, _, _, time, year] = words[..] else { return false };
    weekday.len() == 3
        && is_time_of_day(time)
        && year.len() == 4
        && year.bytes().all(|b| b.is_ascii_digit())
}

fn is_time_of_day(text: &str) -> bool {
    let two = |t: &str| t.len() >= 2 && t.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.split(':').count() == 3 && text.split(':').all(two)
}

/// `    T1`, `C0`: the thread or CPU that wrote the line (CONFIG_PRINTK_CALLER).
fn is_caller(text: &str) -> bool {
    let number = text.trim().strip_prefix(['T', 'C']);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// `   12.345678`
fn is_log_stamp(text: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    text.trim().split_once('.').is_some_and(|(s, us)| digits(s) && us.len() == 6 && digits(us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_mails_and_logs_are_taken_off() {
        assert_eq!(bare("> > # tracer: irqsoff\r"), "# tracer: irqsoff");
        assert_eq!(bare("[   12.345678] # tracer: irqsoff"), "# tracer: irqsoff");
        for line in [
            "[   12.345678][    T1] # tracer: irqsoff",
            "<6>[   12.345678] # tracer: irqsoff",
            "[Sat Nov 28 18:40:12 2026] # tracer: irqsoff",
            "> Nov  8 18:40:12 host kernel: # tracer: irqsoff",
            "Nov 28 18:40:12 host kernel: [   12.345678] # tracer: irqsoff",
        ] {
            assert_eq!(bare(line), "# tracer: irqsoff", "{line}");
        }
        for line in ["[001] x", "[13:24:50.293856423] (+0.1) x", "<idle>-0 [001] x", "[a b c d e]"]
        {
            assert_eq!(bare(line), line);
        }
    }

    #[test]
    fn a_line_without_an_end_is_cut_to_its_bound() {
        let long = vec![b'x'; LINE_BYTES_MAX * 3];
        let mut lines = TextLines::new(&long[..]);
        assert_eq!(lines.next().unwrap().map(str::len), Some(LINE_BYTES_MAX));
        assert!(lines.open_end && lines.number == 1);
        assert_eq!(lines.next().unwrap(), None);
    }
}
