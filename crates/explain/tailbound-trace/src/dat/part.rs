// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stretch of a file in memory, taken piece by piece.
//!
//! Units: bytes. Nothing is taken that is not there.

use super::DatError;

/// Most bytes of a text that ends in a zero.
const TEXT_MAX: usize = 4096;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the first of `bytes` lies in the file.
    from: u64,
    within: &'static str,
}

impl<'a> Part<'a> {
    pub(crate) fn new(bytes: &'a [u8], from: u64, within: &'static str) -> Self {
        Self { bytes, at: 0, from, within }
    }

    /// What comes is this.
    pub(crate) fn within(&mut self, what: &'static str) {
        self.within = what;
    }

    /// Where the next byte lies in the file.
    pub(crate) fn place(&self) -> u64 {
        self.from.saturating_add(self.at as u64)
    }

    pub(crate) fn wrong(&self, reason: impl Into<String>) -> DatError {
        DatError::Wrong { at: self.place(), within: self.within, reason: reason.into() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn ends(&self) -> DatError {
        DatError::Ends {
            at: self.from.saturating_add(self.bytes.len() as u64),
            within: self.within,
        }
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Result<&'a [u8], DatError> {
        let end = self.at.checked_add(n).ok_or_else(|| self.ends())?;
        let out = self.bytes.get(self.at..end).ok_or_else(|| self.ends())?;
        self.at = end;
        Ok(out)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], DatError> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| self.ends())
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DatError> {
        self.number::<1>().map(|[b]| b)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, DatError> {
        self.number().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, DatError> {
        self.number().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DatError> {
        self.number().map(u64::from_le_bytes)
    }

    /// A text that ends in a zero.
    pub(crate) fn text(&mut self) -> Result<String, DatError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let rest = rest.get(..TEXT_MAX.min(rest.len())).unwrap_or_default();
        let Some(n) = rest.iter().position(|b| *b == 0) else {
            return Err(if rest.len() == TEXT_MAX {
                self.wrong(format!("a text of more than {TEXT_MAX} bytes"))
            } else {
                self.ends()
            });
        };
        let text = self.bytes(n)?;
        self.bytes(1)?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// `length` bytes of text.
    pub(crate) fn long_text(&mut self, length: u64) -> Result<std::borrow::Cow<'a, str>, DatError> {
        let length = usize::try_from(length).map_err(|_| self.ends())?;
        Ok(String::from_utf8_lossy(self.bytes(length)?))
    }

    /// A word that has to be there.
    pub(crate) fn expect(&mut self, word: &'static str) -> Result<(), DatError> {
        let before = self.clone();
        if self.bytes(word.len())? == word.as_bytes() && self.u8()? == 0 {
            return Ok(());
        }
        Err(before.wrong(format!("`{word}` was expected")))
    }
}

/// The text up to the first zero.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).trim().to_owned()
}
