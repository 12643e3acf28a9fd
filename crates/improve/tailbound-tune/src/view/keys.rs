// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the bytes of a terminal to keys.
//!
//! A sequence may come in pieces, and the key Esc is the beginning of every sequence: what
//! stands alone when no more comes is that key. Unknown sequences are no keys.
//! Source: ECMA-48 (CSI), xterm's control sequences (cursor and function keys).

const ESC: u8 = 0x1b;
/// Longest sequence that is waited for; what is longer is none of a key.
const SEQUENCE_MAX: usize = 32;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Esc,
    Tab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C: raw terminals send it as a byte.
    Interrupt,
    /// Ctrl-U: empties a line.
    Clear,
}

/// Bytes that are not a key yet.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pending: Vec<u8>,
}

/// What the pending bytes begin with.
enum Found {
    /// A key, or nothing of interest, of so many bytes.
    Whole(Option<Key>, usize),
    /// More must come.
    Part,
}

impl Decoder {
    /// The keys that are whole with these bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Found::Whole(key, n) = first(&self.pending) {
            keys.extend(key);
            self.pending.drain(..n.min(self.pending.len()));
        }
        keys
    }

    /// No more comes: Esc was the key, and other pieces were none.
    pub(super) fn end(&mut self) -> Option<Key> {
        let pending = std::mem::take(&mut self.pending);
        (pending.first() == Some(&ESC)).then_some(Key::Esc)
    }
}

fn first(bytes: &[u8]) -> Found {
    match bytes {
        [] => Found::Part,
        [ESC] | [ESC, b'[' | b'O'] => Found::Part,
        [ESC, b'[', rest @ ..] => sequence(rest),
        // The Enter of a number pad.
        [ESC, b'O', b'M', ..] => Found::Whole(Some(Key::Enter), 3),
        [ESC, b'O', last, ..] => Found::Whole(cursor(*last), 3),
        // Esc, and then another key.
        [ESC, ..] => Found::Whole(Some(Key::Esc), 1),
        [b'\r' | b'\n', ..] => Found::Whole(Some(Key::Enter), 1),
        [b'\t', ..] => Found::Whole(Some(Key::Tab), 1),
        [0x08 | 0x7f, ..] => Found::Whole(Some(Key::Backspace), 1),
        [0x03, ..] => Found::Whole(Some(Key::Interrupt), 1),
        [0x15, ..] => Found::Whole(Some(Key::Clear), 1),
        [byte, ..] if *byte < b' ' => Found::Whole(None, 1),
        _ => letter(bytes),
    }
}

/// Behind `ESC [`: parameters, and a last byte that says which.
fn sequence(rest: &[u8]) -> Found {
    let Some(end) = rest.iter().position(|b| (0x40..=0x7e).contains(b)) else {
        let too_long = rest.len() > SEQUENCE_MAX;
        return if too_long { Found::Whole(None, rest.len() + 2) } else { Found::Part };
    };
    let (parameters, last) = rest.split_at(end);
    let number = parameters.split(|b| *b == b';').next().unwrap_or_default();
    let key = match (last.first(), number) {
        (Some(b'~'), b"1" | b"7") => Some(Key::Home),
        (Some(b'~'), b"4" | b"8") => Some(Key::End),
        (Some(b'~'), b"5") => Some(Key::PageUp),
        (Some(b'~'), b"6") => Some(Key::PageDown),
        // Back-tab: two tables are changed either way.
        (Some(b'Z'), _) => Some(Key::Tab),
        (Some(last), _) => cursor(*last),
        (None, _) => None,
    };
    Found::Whole(key, end + 3)
}

fn cursor(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

/// One letter of UTF-8; bytes that are none are passed over.
fn letter(bytes: &[u8]) -> Found {
    let most = bytes.get(..4).unwrap_or(bytes);
    let valid = match std::str::from_utf8(most) {
        Ok(text) => text,
        Err(e) if e.valid_up_to() > 0 => {
            let good = most.get(..e.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(good).unwrap_or_default()
        }
        Err(e) if e.error_len().is_none() => return Found::Part,
        Err(_) => return Found::Whole(None, 1),
    };
    match valid.chars().next() {
        Some(c) => Found::Whole((!c.is_control()).then_some(Key::Char(c)), c.len_utf8()),
        None => Found::Part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        let mut keys = decoder.push(bytes);
        keys.extend(decoder.end());
        keys
    }

    #[test]
    fn bytes_are_keys() {
        for (bytes, key) in [
            (&b"a"[..], Key::Char('a')),
            ("é".as_bytes(), Key::Char('é')),
            ("😀".as_bytes(), Key::Char('😀')),
            (b"\r", Key::Enter),
            (b"\x1b", Key::Esc),
            (b"\t", Key::Tab),
            (b"\x1b[Z", Key::Tab),
            (b"\x7f", Key::Backspace),
            (b"\x1b[A", Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[1;5C", Key::Right),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1b[6;2~", Key::PageDown),
            (b"\x1b[1~", Key::Home),
            (b"\x1bOF", Key::End),
            (b"\x03", Key::Interrupt),
            (b"\x15", Key::Clear),
        ] {
            assert_eq!(keys(bytes), [key], "{bytes:?}");
        }
        assert_eq!(keys(b"\x1bq"), [Key::Esc, Key::Char('q')]);
        for none in [&b"\x1b[15~"[..], b"\x1b[?1;2c", b"\x01", b"\xff", b"\x1b[<0;1;1M"] {
            assert_eq!(keys(none), [], "{none:?}");
        }
    }

    #[test]
    fn pieces_give_the_same_keys_as_the_whole() {
        let all = "j\u{1b}[A😀\u{1b}[5~é\u{1b}OB\r".as_bytes();
        let whole = keys(all);
        assert_eq!(whole.len(), 7);
        for cut in 0..all.len() {
            let mut decoder = Decoder::default();
            let (a, b) = all.split_at(cut);
            let mut pieces = decoder.push(a);
            pieces.extend(decoder.push(b));
            assert_eq!(pieces, whole, "cut at {cut}");
        }
    }

    #[test]
    fn whatever_comes_ends() {
        let mut state = 7_u64;
        let mut decoder = Decoder::default();
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let byte = state.to_be_bytes().first().copied().unwrap_or_default();
            decoder.push(&[byte, ESC, b'[', b'1'].map(|b| if b == b'1' { byte } else { b }));
            assert!(decoder.pending.len() < 2 * SEQUENCE_MAX);
        }
    }
}
