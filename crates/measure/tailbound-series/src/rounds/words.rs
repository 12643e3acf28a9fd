// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants as people write them, and how far a series is.

use std::time::Duration;

use tailbound_core::units::format_span;

use super::description::is_name;
use super::make::Next;
use super::series::{Series, Variant};

/// A text that is no variant, or variants that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariantError {
    /// It has no name.
    #[error(
        "variant `{0}`: write 'NAME: FLAGS', for example 'plain:' or 'quiet: --cpu-dma-latency 0'"
    )]
    Nameless(String),
    /// Its name cannot stand in the name of a file.
    #[error(
        "variant `{0}`: a name is up to 40 of a-z, A-Z, 0-9, `_`, `+`, `.`, `-`, and begins with a letter or digit"
    )]
    Name(String),
    /// Its words cannot be told apart.
    #[error("variant `{0}`: a quote is not closed, or the last word ends in a backslash")]
    Quote(String),
    /// There is nothing to compare.
    #[error(
        "--rounds compares two or more variants: add them after `--`, for example -- 'plain:' 'quiet: --cpu-dma-latency 0'"
    )]
    Few,
    /// Two have one name.
    #[error("two variants are called `{0}`")]
    Twice(String),
}

/// The name and the words of a variant, from `NAME: FLAGS`.
///
/// # Errors
/// [`VariantError`].
pub fn named_words(text: &str) -> Result<(String, Vec<String>), VariantError> {
    let (name, words) =
        text.split_once(':').ok_or_else(|| VariantError::Nameless(text.to_owned()))?;
    let name = name.trim().to_owned();
    if !is_name(&name) {
        return Err(VariantError::Name(text.to_owned()));
    }
    match shlex::split(words) {
        Some(words) => Ok((name, words)),
        None => Err(VariantError::Quote(name)),
    }
}

/// Can they be told apart, and are there two?
///
/// # Errors
/// [`VariantError::Few`], [`VariantError::Twice`].
pub fn comparable(variants: &[Variant]) -> Result<(), VariantError> {
    if variants.len() < 2 {
        return Err(VariantError::Few);
    }
    for (i, v) in variants.iter().enumerate() {
        if variants.iter().skip(i + 1).any(|w| w.name == v.name) {
            return Err(VariantError::Twice(v.name.clone()));
        }
    }
    Ok(())
}

impl Series {
    /// What is made, how long that takes about, and where; `there` of the runs are there already.
    #[must_use]
    pub fn text(&self, there: usize, expected_ns: i64) -> String {
        let kept = if there > 0 {
            format!(", {there} of the runs are there already")
        } else {
            String::new()
        };
        format!(
            "{} rounds of {} variants in random order (seed {}){kept}: about {}; {}",
            self.rounds,
            self.variants.len(),
            self.seed,
            format_span(expected_ns),
            self.folder.display()
        )
    }
}

impl Next<'_> {
    /// The run, and the time over and to go.
    #[must_use]
    pub fn text(&self) -> String {
        let span =
            |d: Duration| format_span(i64::try_from(d.as_secs()).unwrap_or(0) * 1_000_000_000);
        format!(
            "round {} of {}, {}: {} elapsed, {} left",
            self.round + 1,
            self.rounds,
            self.variant,
            span(self.elapsed),
            span(self.left)
        )
    }
}
