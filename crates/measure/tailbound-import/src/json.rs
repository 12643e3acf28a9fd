// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON of other tools: parsed within bounds, and values out of it by a path that stands in
//! the message when something is wrong.
//!
//! Units: as the caller says.
//! Limits: 32 MiB of text (a document takes some ten times that in memory) and serde_json's
//! own 128 levels of nesting. Source: RFC 8259.

use serde_json::{Map, Value};
use tailbound_core::order;

use tailbound_core::Distribution;
use tailbound_core::number::Real as _;

use crate::error::{Fault, excerpt};
use crate::text::scaled;

/// Longest JSON or XML document that is read.
pub const JSON_MAX: usize = 32 << 20;

pub(crate) type Object = Map<String, Value>;

/// Parses a document; a command line with an unescaped quote is named as such.
pub(crate) fn parse(bytes: &[u8]) -> Result<Object, Fault> {
    if bytes.len() > JSON_MAX {
        return Err(Fault::file(format!(
            "{} MiB of JSON; at most {} are read",
            bytes.len() >> 20,
            JSON_MAX >> 20
        )));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(o)) => Ok(o),
        Ok(_) => Err(Fault::file("the JSON document is not an object")),
        Err(e) => Err(broken(bytes, &e)),
    }
}

fn broken(bytes: &[u8], e: &serde_json::Error) -> Fault {
    let line = e.line() as u64;
    let at = bytes
        .split(|b| *b == b'\n')
        .nth(e.line().saturating_sub(1))
        .map(|l| String::from_utf8_lossy(l.get(..512).unwrap_or(l)).into_owned())
        .unwrap_or_default();
    if at.trim_start().starts_with("\"cmdline") {
        return Fault::line(
            line,
            "the command line holds a quote or a backslash that rt-tests wrote without escaping it: \
             put a backslash before each of them inside the value of `cmdline:` and import again",
        );
    }
    if e.is_eof() {
        return Fault::line(line, "the JSON ends here in the middle: the file was cut off");
    }
    if e.to_string().starts_with("trailing characters") {
        return Fault::line(
            line,
            "other text follows the JSON document: cut the file off behind its last `}`",
        );
    }
    Fault::line(line, format!("not JSON: {e}"))
}

pub(crate) fn object<'a>(o: &'a Object, key: &str, path: &str) -> Result<&'a Object, Fault> {
    match o.get(key) {
        Some(Value::Object(o)) => Ok(o),
        Some(_) => Err(Fault::path(join(path, key), "is not an object")),
        None => Err(Fault::path(join(path, key), "is missing")),
    }
}

pub(crate) fn join(path: &str, key: &str) -> String {
    let key = excerpt(key);
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

pub(crate) fn text<'a>(o: &'a Object, key: &str) -> Option<&'a str> {
    o.get(key).and_then(Value::as_str)
}

/// A count: absent is `None`, anything but a whole number from 0 to 2^64 is a fault.
pub(crate) fn count(o: &Object, key: &str, path: &str) -> Result<Option<u64>, Fault> {
    match o.get(key) {
        None => Ok(None),
        Some(v) => v.as_u64().map(Some).ok_or_else(|| {
            Fault::path(
                join(path, key),
                format!("{} is not a whole number from 0 to 2^64", excerpt(&v.to_string())),
            )
        }),
    }
}

/// A time in units of `unit_ns`: absent is `None`.
pub(crate) fn ns(o: &Object, key: &str, unit_ns: u64, path: &str) -> Result<Option<i64>, Fault> {
    match o.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(n)) => scaled(&n.to_string(), unit_ns).map(Some).ok_or_else(|| {
            Fault::path(
                join(path, key),
                format!("{} is not a time within 292 years", excerpt(&n.to_string())),
            )
        }),
        Some(v) => Err(Fault::path(
            join(path, key),
            format!("{} is not a number", excerpt(&v.to_string())),
        )),
    }
}

/// An average in units of `unit_ns`, as ns.
pub(crate) fn mean_ns(o: &Object, key: &str, unit_ns: u64) -> Option<f64> {
    o.get(key).and_then(Value::as_f64).map(|v| v * unit_ns.real()).filter(|v| v.is_finite())
}

/// A CPU number: −1 and anything no kernel has is `None`.
pub(crate) fn cpu(o: &Object, key: &str) -> Option<u32> {
    o.get(key)
        .and_then(Value::as_i64)
        .and_then(|c| u32::try_from(c).ok())
        .filter(|c| *c <= tailbound_core::cpus::MAX_CPU)
}

/// Adds a histogram object (`"12": 3`) whose keys are lower edges in units of `unit_ns`;
/// gives back the greatest key.
pub(crate) fn histogram(
    d: &mut Distribution,
    o: &Object,
    unit_ns: u64,
    path: &str,
) -> Result<Option<i64>, Fault> {
    let mut top = None;
    for key in o.keys() {
        let low = scaled(key, unit_ns).filter(|ns| *ns >= 0).ok_or_else(|| {
            Fault::path(join(path, key), "the key is not a time within 292 years")
        })?;
        let n = count(o, key, path)?.unwrap_or(0);
        d.add_many(low, n);
        top = top.max(Some(low));
    }
    Ok(top)
}

/// Threads in the order of their numbers.
pub(crate) fn numbered<'a>(
    o: &'a Object,
    path: &str,
) -> Result<Vec<(u32, &'a Object, String)>, Fault> {
    if o.len() > crate::text::THREADS_MAX {
        return Err(Fault::path(
            path,
            format!("{} threads; at most {} are read", o.len(), crate::text::THREADS_MAX),
        ));
    }
    let mut out = Vec::with_capacity(o.len());
    for key in o.keys() {
        let number = key
            .parse::<u32>()
            .map_err(|_| Fault::path(join(path, key), "the key is not a thread number"))?;
        out.push((number, object(o, key, path)?, join(path, key)));
    }
    order::by_key(&mut out, |(n, ..)| *n);
    Ok(out)
}
