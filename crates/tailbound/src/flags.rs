// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of flags: what is wrong with one is told with the name of its flag.

use std::fmt::Display;
use std::time::Duration;

use tailbound_core::units::{format_ns_i64, parse_ns};

use crate::say::Failure;

/// What is told where the value of `flag` is refused.
pub(crate) fn refused<E: Display>(flag: &str) -> impl Fn(E) -> Failure {
    move |e| Failure::usage(format!("{flag}: {e}"))
}

/// A time in ns.
pub(crate) fn time(flag: &str, text: &str) -> Result<i64, Failure> {
    parse_ns(text).map_err(refused(flag))
}

/// A time in ns, where one is given.
pub(crate) fn given_time(flag: &str, text: Option<&String>) -> Result<Option<i64>, Failure> {
    text.map(|text| time(flag, text)).transpose()
}

/// The text of `-D` as a length of time.
pub(crate) fn length(text: &str) -> Result<Duration, Failure> {
    Ok(Duration::from_nanos(positive_time("-D", text)?.unsigned_abs()))
}

/// A time above zero, in ns.
pub(crate) fn positive_time(flag: &str, text: &str) -> Result<i64, Failure> {
    match time(flag, text)? {
        ns if ns > 0 => Ok(ns),
        _ => Err(Failure::usage(format!("{flag}: {text} is not above zero"))),
    }
}

/// A time of at least `least_ns`, in ns.
pub(crate) fn time_from(flag: &str, text: &str, least_ns: i64) -> Result<i64, Failure> {
    match time(flag, text)? {
        ns if ns >= least_ns => Ok(ns),
        _ => {
            let least = format_ns_i64(least_ns);
            Err(Failure::usage(format!("{flag}: {text} is below {least}")))
        }
    }
}
