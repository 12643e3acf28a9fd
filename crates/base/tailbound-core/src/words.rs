// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of a fixed vocabulary in files that a later version may have written.
//!
//! `open_words` makes an enum of such words: what this version knows has a
//! variant, and what it does not know is kept as it stands in `Unknown`, is shown and written
//! back unchanged. So a new word never makes a file unreadable, and every `match` has to say
//! what it does with one. What a user types is parsed by `FromStr` instead, and refused.
//! Not here: the words themselves.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest unknown word kept whole.
pub const WORD_MAX: usize = 30;

/// A short text of its own, so that what holds it stays `Copy` and small. What is longer than
/// [`WORD_MAX`] bytes ends in `…`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word {
    bytes: [u8; WORD_MAX],
    len: u8,
}

impl Word {
    /// Keeps `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        const CUT: &str = "…";
        let mut word = Self { bytes: [0; WORD_MAX], len: 0 };
        if text.len() <= WORD_MAX {
            word.push(text);
        } else {
            let mut end = WORD_MAX.saturating_sub(CUT.len());
            while !text.is_char_boundary(end) {
                end = end.saturating_sub(1);
            }
            word.push(text.get(..end).unwrap_or_default());
            word.push(CUT);
        }
        word
    }

    fn push(&mut self, text: &str) {
        let at = usize::from(self.len);
        let end = at.saturating_add(text.len());
        if let Some(room) = self.bytes.get_mut(at..end) {
            room.copy_from_slice(text.as_bytes());
            self.len = u8::try_from(end).unwrap_or(self.len);
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Word;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Word, E> {
                Ok(Word::new(text))
            }
        }
        from.deserialize_str(Text)
    }
}

/// A word that is not one of a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is not one of {}{}", .known.join(", "), did_you_mean(.typed, .known.iter().copied()))]
pub struct UnknownWord {
    /// What was written.
    pub typed: String,
    /// The list.
    pub known: Vec<&'static str>,
}

/// ` (did you mean `hackbench`?)` where one of `names` is near what was typed, else nothing: for every
/// message that refuses a name.
#[must_use]
pub fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, names).map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// The name with the fewest slips of the finger (one for three letters, at least one), or the one
/// that begins or ends like it; of equals the first.
fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed: Vec<char> = typed.to_lowercase().chars().take(WORD_MAX + 2).collect();
    let most = (typed.len() / 3).max(1);
    let part = typed.len() >= 3;
    names
        .into_iter()
        .filter_map(|name| {
            let letters: Vec<char> = name.to_lowercase().chars().collect();
            let slips = slips(&typed, &letters);
            let within = part && (letters.starts_with(&typed) || letters.ends_with(&typed));
            (slips <= most || within).then_some((slips, name))
        })
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, name)| name)
}

#[cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "places within words, of a few hundred letters"
    )
)]
/// Letters to change, add, leave out or swap with the next one.
fn slips(a: &[char], b: &[char]) -> usize {
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let of = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let mut least =
                (of(&last, j) + usize::from(x != y)).min(of(&last, j + 1) + 1).min(of(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                least = least.min(of(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

/// An enum of words as they stand in files: see the module.
macro_rules! open_words {
    ($(#[$doc:meta])* $name:ident { $($(#[$($vdoc:tt)+])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$($vdoc)+])* $variant,)+
            /// A word that this version does not know, as it stands.
            Unknown($crate::words::Word),
        }
        impl $name {
            /// Every word that this version knows, in order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
            /// What this one says, as above it in the source; nothing of one that this version does not know.
            #[must_use]
            pub fn about(&self) -> &'static str {
                match self {
                    $(Self::$variant => const {
                        concat!($($crate::words::doc_text!($($vdoc)+)),*).trim_ascii()
                    },)+
                    Self::Unknown(_) => "",
                }
            }
            /// The word as it stands in a file: one of ours, or kept as unknown.
            #[must_use]
            pub fn of(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    _ => Self::Unknown($crate::words::Word::new(word)),
                }
            }
            /// The word.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Unknown(word) => word.as_str(),
                }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = <$crate::words::Word as serde::Deserialize>::deserialize(from)?;
                Ok(Self::of(word.as_str()))
            }
        }
    };
}
pub(crate) use open_words;

/// The text of a documentation comment, nothing of any other attribute.
macro_rules! doc_text {
    (doc = $text:literal) => {
        $text
    };
    ($($other:tt)+) => {
        ""
    };
}
pub(crate) use doc_text;

/// Words that people type too: there, what is not known is refused.
macro_rules! typed_words {
    ($($name:ident),+) => {$(
        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;
            fn from_str(text: &str) -> Result<Self, $crate::words::UnknownWord> {
                match Self::of(text) {
                    Self::Unknown(_) => Err($crate::words::UnknownWord {
                        typed: text.to_owned(),
                        known: Self::WORDS.to_vec(),
                    }),
                    known => Ok(known),
                }
            }
        }
    )+};
}
pub(crate) use typed_words;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndReason;

    #[test]
    fn known_words_have_a_variant_and_others_are_kept() {
        for text in EndReason::WORDS {
            let kept = EndReason::of(text);
            assert!(!matches!(kept, EndReason::Unknown(_)), "{text}");
            assert_eq!(serde_json::to_value(kept).ok(), Some((*text).into()));
        }
        let later: EndReason =
            serde_json::from_str("\"from-later\"").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(later, EndReason::Unknown(Word::new("from-later")));
        assert_eq!(serde_json::to_string(&later).ok().as_deref(), Some("\"from-later\""));
        assert!(serde_json::from_str::<EndReason>("7").is_err());
        assert_eq!(crate::Impact::Notice.about(), "Worth knowing; the figures stand.");
        assert_eq!(later.about(), "");
    }

    #[test]
    fn a_slip_of_the_finger_is_told_from_another_word() {
        const LOADS: [&str; 5] = ["hackbench", "memory", "disk", "stress-ng", "mmap"];
        for (typed, name) in [
            ("hackbnech", "hackbench"),
            ("hack", "hackbench"),
            ("Memroy", "memory"),
            ("stressng", "stress-ng"),
            ("dsik", "disk"),
            ("bench", "hackbench"),
        ] {
            assert_eq!(nearest(typed, LOADS), Some(name), "{typed}");
        }
        for typed in ["", "x", "nothing", "compile", &"a".repeat(9000)] {
            assert_eq!(nearest(typed, LOADS), None, "{typed}");
        }
        assert_eq!(did_you_mean("mmpa", LOADS), " (did you mean `mmap`?)");
        assert_eq!(did_you_mean("nothing", LOADS), "");
    }

    #[test]
    fn what_is_too_long_is_seen_to_be_cut() {
        let whole = "a".repeat(WORD_MAX);
        assert_eq!(Word::new(&whole).as_str(), whole);
        for long in ["a".repeat(WORD_MAX + 1), "µ".repeat(WORD_MAX)] {
            let word = Word::new(&long);
            assert!(word.as_str().ends_with('…') && word.as_str().len() > WORD_MAX - 5, "{word}");
        }
    }
}
