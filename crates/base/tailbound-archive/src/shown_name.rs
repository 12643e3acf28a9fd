// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of members as text for people.

/// The most characters that a message shows of a name.
const SHOWN_MAX: usize = 80;

/// A name as a message shows it: its end, which says more than its beginning.
pub(crate) fn shown(name: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let n = name.chars().count();
    if n <= SHOWN_MAX {
        return name.chars().map(plain).collect();
    }
    let end: String = name.chars().skip(n.saturating_sub(SHOWN_MAX)).map(plain).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_shows_its_end() {
        assert_eq!(shown(&"é".repeat(300)).chars().count(), SHOWN_MAX + 1);
        assert_eq!(shown("a\nb"), "a\u{fffd}b");
    }
}
