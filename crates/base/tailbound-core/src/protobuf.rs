// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protobuf encoding, as far as a writer needs it: numbers, texts, messages within messages.
//!
//! Source: protobuf.dev, "Encoding".

/// A number follows, seven bits a byte.
const VARINT: u64 = 0;
/// Eight bytes follow, the lowest first.
const DOUBLE: u64 = 1;
/// A length follows, and so many bytes.
const BYTES: u64 = 2;

/// A message under construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, mut v: u64) {
        while v > 0x7f {
            self.0.push(v.to_le_bytes()[0] | 0x80);
            v >>= 7;
        }
        self.0.push(v.to_le_bytes()[0]);
    }

    /// With `field` of a type without sign, or of an enumeration.
    #[must_use]
    pub fn uint(mut self, field: u64, v: u64) -> Self {
        self.number(field << 3 | VARINT);
        self.number(v);
        self
    }

    /// With `field` of the type `int64`: negative numbers take ten bytes.
    #[must_use]
    pub fn int(self, field: u64, v: i64) -> Self {
        self.uint(field, u64::from_le_bytes(v.to_le_bytes()))
    }

    /// With `field` of the type `sint32` or `sint64`: small numbers of both signs are short.
    #[must_use]
    pub fn sint(self, field: u64, v: i64) -> Self {
        self.uint(field, (v << 1 ^ v >> 63).cast_unsigned())
    }

    /// With `field` of the type `double`.
    #[must_use]
    pub fn double(mut self, field: u64, v: f64) -> Self {
        self.number(field << 3 | DOUBLE);
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.number(field << 3 | BYTES);
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// With `field` of the type `string`.
    #[must_use]
    pub fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// With `field`, a message.
    #[must_use]
    pub fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// With `message` behind its length, and no field: the next of a stream of messages.
    #[must_use]
    pub fn delimited(mut self, message: &Self) -> Self {
        self.number(message.0.len() as u64);
        self.0.extend_from_slice(&message.0);
        self
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_are_encoded_as_there() {
        assert_eq!(Message::default().uint(1, 150).finish(), [0x08, 0x96, 0x01]);
        let text = Message::default().text(2, "testing").finish();
        assert_eq!(text, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let within = Message::default().message(3, &Message::default().uint(1, 150)).finish();
        assert_eq!(within, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let zigzag = Message::default().sint(1, -2).sint(2, 2).finish();
        assert_eq!(zigzag, [0x08, 0x03, 0x10, 0x04]);
        let double = Message::default().double(1, 1.0).finish();
        assert_eq!(double, [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        let one = Message::default().uint(1, 150);
        assert_eq!(Message::default().delimited(&one).finish(), [0x03, 0x08, 0x96, 0x01]);
        let negative = Message::default().int(1, -2).finish();
        let ones = [0xff; 8];
        assert_eq!(negative, [&[0x08, 0xfe][..], &ones, &[0x01]].concat());
    }
}
