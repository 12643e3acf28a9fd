// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers into and out of a payload, little-endian.

use crate::frame::PAYLOAD_MAX;

/// A payload that is being written. What does not fit is left out, and `is_whole` tells it.
#[derive(Debug)]
pub(crate) struct PayloadWriter {
    bytes: [u8; PAYLOAD_MAX],
    length: usize,
    is_whole: bool,
}

impl PayloadWriter {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; PAYLOAD_MAX], length: 0, is_whole: true }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.is_whole = false,
        }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// The payload; none if not all of it fits.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.bytes.get(..self.length).filter(|_| self.is_whole)
    }
}

/// A payload that is being read.
#[derive(Debug)]
pub(crate) struct PayloadReader<'a>(&'a [u8]);

impl<'a> PayloadReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
