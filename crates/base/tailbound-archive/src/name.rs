// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of members as parts of a path that stays inside.
//!
//! Not here: names as text for people (`shown_name`).
//!
//! Units: bytes.

use crate::error::ArchiveError;

/// Longest name; PATH_MAX of Linux, which counts its NUL.
pub(crate) const NAME_BYTES_MAX: u64 = 4095;
/// Longest part between two slashes; NAME_MAX of Linux.
const PART_BYTES_MAX: u64 = 255;

/// The parts of a name below the archive's root; none for the root itself.
///
/// # Errors
/// It is absolute, has `..`, no text, or parts that are too long.
pub(crate) fn parts(name: &[u8]) -> Result<Vec<&str>, ArchiveError> {
    let long = |bytes: usize, most: u64| ArchiveError::Name {
        name: String::from_utf8_lossy(name).into_owned(),
        bytes: bytes as u64,
        most,
    };
    if name.len() as u64 > NAME_BYTES_MAX {
        return Err(long(name.len(), NAME_BYTES_MAX));
    }
    let Ok(text) = std::str::from_utf8(name) else {
        let text = String::from_utf8_lossy(name).into_owned();
        return Err(ArchiveError::Kind { kind: "a name that is no text (UTF-8)", name: text });
    };
    if text.starts_with('/') || text.contains('\0') {
        return Err(ArchiveError::Outside(text.to_owned()));
    }
    let mut parts = Vec::new();
    for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            return Err(ArchiveError::Outside(text.to_owned()));
        }
        if part.len() as u64 > PART_BYTES_MAX {
            return Err(long(part.len(), PART_BYTES_MAX));
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Does a symbolic link in a folder `depth` below the root stay inside? Its way up comes first: from there on every
/// part goes down, through links that stay inside too.
pub(crate) fn stays_inside(target: &str, depth: usize) -> bool {
    if target.is_empty() || target.starts_with('/') || target.contains('\0') {
        return false;
    }
    let mut parts = target.split('/').filter(|p| !p.is_empty() && *p != ".").peekable();
    let mut up = 0usize;
    while parts.next_if_eq(&"..").is_some() {
        up = up.saturating_add(1);
    }
    up <= depth && parts.all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        let of = |name: &str| parts(name.as_bytes()).ok().map(|p| p.join("/"));
        assert_eq!(of("./a//b/").as_deref(), Some("a/b"));
        assert_eq!(of("./").as_deref(), Some(""));
        for name in ["/a", "..", "a/../b", "a/..", "a\0b"] {
            assert!(matches!(parts(name.as_bytes()), Err(ArchiveError::Outside(_))), "{name}");
        }
        assert!(matches!(parts(b"\xff"), Err(ArchiveError::Kind { .. })));
        assert!(parts("x".repeat(255).as_bytes()).is_ok());
        assert!(matches!(parts("x".repeat(256).as_bytes()), Err(ArchiveError::Name { .. })));
        assert!(matches!(parts("x/".repeat(2048).as_bytes()), Err(ArchiveError::Name { .. })));
    }

    #[test]
    fn links_stay_inside() {
        for (target, depth) in [("b", 0), ("../b", 1), ("../../b/c", 2), ("./b", 0), ("..", 1)] {
            assert!(stays_inside(target, depth), "{target} {depth}");
        }
        // `b/../../c` would be inside only if `b` were no link.
        for (target, depth) in
            [("..", 0), ("../b", 0), ("b/..", 3), ("b/../c", 3), ("/b", 9), ("", 9), ("../../b", 1)]
        {
            assert!(!stays_inside(target, depth), "{target} {depth}");
        }
    }
}
