// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of an option as a value, or refused with the option's name.
//!
//! Units: ns.

use std::error::Error;

use tailbound_core::units::{ParseTimeError, parse_ns};

use crate::option_error::OptionError;

/// An error of parsing, with the option.
pub(crate) fn usage<E: Into<Box<dyn Error + Send + Sync>>>(
    flag: &'static str,
) -> impl FnOnce(E) -> OptionError {
    move |e| OptionError::Value { flag, why: e.into() }
}

/// `text`, or what stands where nobody gave one.
pub(crate) fn parse_or<T: std::str::FromStr<Err: Into<Box<dyn Error + Send + Sync>>>>(
    text: Option<&str>,
    flag: &'static str,
    or: T,
) -> Result<T, OptionError> {
    text.map_or(Ok(or), |t| t.parse().map_err(usage(flag)))
}

/// A time.
pub(crate) fn time(text: &str, flag: &'static str) -> Result<i64, OptionError> {
    parse_ns(text).map_err(usage(flag))
}

/// A time that is seconds or more: what has no unit is likely meant so.
pub(crate) fn span(text: &str, flag: &'static str) -> Result<i64, OptionError> {
    parse_ns(text)
        .map_err(|e| match e {
            ParseTimeError::NoUnit(number) => ParseTimeError::NoUnitOfSpan(number),
            other => other,
        })
        .map_err(usage(flag))
}
