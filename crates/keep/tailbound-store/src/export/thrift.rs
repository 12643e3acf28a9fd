// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thrift's compact protocol, as far as the metadata of Parquet needs it.
//!
//! Source: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

use crate::buckets::put as varint;

/// Kinds of fields and of elements of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    I32 = 5,
    Text = 8,
    Struct = 12,
}

const TRUE: u8 = 1;
const I32: u8 = 5;
const I64: u8 = 6;
const TEXT: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
/// Lists shorter than this have their length in the first byte.
const SHORT: usize = 15;

/// A struct that is written, field by field, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Compact {
    bytes: Vec<u8>,
    last: i16,
    outer: Vec<i16>,
}

fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)).cast_unsigned()
}

impl Compact {
    fn field(&mut self, number: i16, kind: u8) {
        match u8::try_from(number - self.last) {
            Ok(step @ 1..=15) => self.bytes.push(step << 4 | kind),
            _ => {
                self.bytes.push(kind);
                varint(zigzag(number.into()), &mut self.bytes);
            }
        }
        self.last = number;
    }

    pub(super) fn i32(&mut self, number: i16, n: i32) {
        self.field(number, I32);
        varint(zigzag(n.into()), &mut self.bytes);
    }

    pub(super) fn i64(&mut self, number: i16, n: i64) {
        self.field(number, I64);
        varint(zigzag(n), &mut self.bytes);
    }

    pub(super) fn yes(&mut self, number: i16) {
        self.field(number, TRUE);
    }

    pub(super) fn text(&mut self, number: i16, text: &str) {
        self.field(number, TEXT);
        self.text_element(text);
    }

    /// A field that is a struct, filled by `fill`.
    pub(super) fn within(&mut self, number: i16, fill: impl FnOnce(&mut Self)) {
        self.field(number, STRUCT);
        self.struct_element(fill);
    }

    /// A field that is a list of `n` elements, which follow.
    pub(super) fn list(&mut self, number: i16, of: Element, n: usize) {
        self.field(number, LIST);
        let kind = of as u8;
        match u8::try_from(n) {
            Ok(short) if n < SHORT => self.bytes.push(short << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(n as u64, &mut self.bytes);
            }
        }
    }

    pub(super) fn i32_element(&mut self, n: i32) {
        varint(zigzag(n.into()), &mut self.bytes);
    }

    pub(super) fn text_element(&mut self, text: &str) {
        varint(text.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn struct_element(&mut self, fill: impl FnOnce(&mut Self)) {
        self.outer.push(std::mem::take(&mut self.last));
        fill(self);
        self.bytes.push(0);
        self.last = self.outer.pop().unwrap_or_default();
    }

    /// The bytes of the whole.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_fields_are_those_of_the_specification() {
        for (n, is) in
            [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)]
        {
            assert_eq!(zigzag(n), is);
        }
        let mut bytes = Vec::new();
        varint(50_399, &mut bytes);
        assert_eq!(bytes, [0xdf, 0x89, 0x03]);
        let mut it = Compact::default();
        it.i32(1, 1);
        it.within(4, |it| it.yes(1));
        it.text(40, "é");
        it.list(41, Element::I32, 2);
        it.i32_element(0);
        it.i32_element(-1);
        let is = [0x15, 2, 0x3c, 0x11, 0, 0x08, 80, 2, 0xc3, 0xa9, 0x19, 0x25, 0, 1, 0];
        assert_eq!(it.end(), is);
    }
}
