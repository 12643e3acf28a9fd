// SPDX-License-Identifier: MIT OR Apache-2.0
//! What trace-cmd packed, unpacked: never more than a limit.
//!
//! Units: bytes.
//! Source: RFC 1950 (zlib), RFC 8878 (zstd).

use std::io::Read as _;

use super::DatError;

/// The most that a frame may ask to be kept.
const WINDOW_BYTES_MAX: u64 = 1 << 25;

/// Why something packed is not unpacked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnpackError {
    #[error("unpacked it has more than the {limit} bytes that are said")]
    More { limit: usize },
    #[error("packed, in a file that says it is not")]
    NotPacked,
    #[error("it cannot be unpacked (zlib)")]
    Zlib,
    #[error("it cannot be unpacked (zstd): {reason}")]
    Zstd { reason: String },
}

/// How the sections of a file are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Packing {
    /// Not at all.
    #[default]
    None,
    Zlib,
    Zstd,
}

impl Packing {
    pub(super) fn of(name: String) -> Result<Self, DatError> {
        match name.as_str() {
            "none" | "" => Ok(Self::None),
            "zlib" => Ok(Self::Zlib),
            "zstd" => Ok(Self::Zstd),
            _ => Err(DatError::Compression(name)),
        }
    }

    /// At most `limit` bytes of what `bytes` holds; where it would be more, or `bytes` is no such
    /// packing, why.
    pub(super) fn unpack(self, bytes: &[u8], limit: usize) -> Result<Vec<u8>, UnpackError> {
        let more = UnpackError::More { limit };
        match self {
            Self::None => Err(UnpackError::NotPacked),
            Self::Zlib => miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(bytes, limit)
                .map_err(|e| match e.status {
                    miniz_oxide::inflate::TINFLStatus::HasMoreOutput => more,
                    _ => UnpackError::Zlib,
                }),
            Self::Zstd => {
                let broken =
                    |e: &dyn std::fmt::Display| UnpackError::Zstd { reason: e.to_string() };
                let reader = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(
                    bytes,
                    WINDOW_BYTES_MAX,
                );
                let reader = reader.map_err(|e| broken(&e))?;
                let mut out = Vec::new();
                reader
                    .take((limit as u64).saturating_add(1))
                    .read_to_end(&mut out)
                    .map_err(|e| broken(&e))?;
                if out.len() > limit { Err(more) } else { Ok(out) }
            }
        }
    }
}
