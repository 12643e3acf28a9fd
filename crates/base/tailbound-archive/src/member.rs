// SPDX-License-Identifier: MIT OR Apache-2.0
//! One member of an archive, as its reader hands it on.
//!
//! Units: bytes.

use std::io::Read;

use crate::error::ArchiveError;
use crate::watch::Watch;

/// What a member is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A plain file. Its permissions for owner, group and others, without special bits.
    File {
        /// Nine bits.
        mode: u32,
    },
    /// A folder.
    Folder,
    /// A symbolic link that stays within the archive, and where it points.
    SymbolicLink(String),
    /// A further name of a file that came before, below the archive's root.
    HardLink(String),
    /// A symbolic link that leads out: nothing is made for it.
    LinkOutside(String),
}

/// A member: its name below the root of the archive, and what it is.
pub struct Member<'a> {
    /// Parts joined by `/`: neither absolute nor with `..`, never empty.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    pub(crate) content: &'a mut dyn Read,
    pub(crate) bytes: u64,
    pub(crate) watch: &'a Watch,
}

impl std::fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("name", &self.name).field("kind", &self.kind).finish()
    }
}

impl Member<'_> {
    /// Hands the content of a file on, piece by piece.
    ///
    /// # Errors
    /// The archive ends within it; it took too long; a signal; what `to` says.
    pub fn each(
        &mut self,
        to: &mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let mut buffer = vec![0; 64 << 10];
        let mut left = self.bytes;
        while left > 0 {
            self.watch.check()?;
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let room = buffer.get_mut(..most).unwrap_or_default();
            let n = match self.content.read(room) {
                Ok(0) => {
                    return Err(ArchiveError::Damaged(format!("it ends within {}", self.name)));
                }
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(ArchiveError::damaged(&e)),
            };
            to(buffer.get(..n).unwrap_or_default())?;
            left = left.saturating_sub(n as u64);
        }
        Ok(())
    }

    /// The whole content, in memory: at most [`crate::Limits::member_bytes`].
    ///
    /// # Errors
    /// As [`Self::each`].
    pub fn content(&mut self) -> Result<Vec<u8>, ArchiveError> {
        let mut all = Vec::new();
        self.each(&mut |piece| {
            all.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(all)
    }
}
