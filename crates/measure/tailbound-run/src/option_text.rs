// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of an option as a value, or refused with the option's name.
//!
//! Units: ns.

use tailbound_core::units::{ParseTimeError, parse_ns};

use crate::error::RunError;

/// An error of parsing, with the option.
pub(crate) fn usage<E: ToString>(flag: &str) -> impl FnOnce(E) -> RunError + '_ {
    move |e| RunError::Usage(format!("{flag}: {}", e.to_string()))
}

/// `text`, or what stands where nobody gave one.
pub(crate) fn parse_or<T: std::str::FromStr<Err: ToString>>(
    text: Option<&str>,
    flag: &str,
    or: T,
) -> Result<T, RunError> {
    text.map_or(Ok(or), |t| t.parse().map_err(usage(flag)))
}

/// A time.
pub(crate) fn time(text: &str, flag: &str) -> Result<i64, RunError> {
    parse_ns(text).map_err(usage(flag))
}

/// A time that is seconds or more: what has no unit is likely meant so.
pub(crate) fn span(text: &str, flag: &str) -> Result<i64, RunError> {
    parse_ns(text)
        .map_err(|e| match e {
            ParseTimeError::NoUnit(number) => ParseTimeError::NoUnitOfSpan(number),
            other => other,
        })
        .map_err(usage(flag))
}
