// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sequence of system calls as text: `map.m0.64K+touch.m0+unmap.m0`. Calls are separated by `+`, the parts of a call
//! by a dot: its name, the slot that it fills, the slots that it uses, its number.
//!
//! Units: bytes (`64`, `4K`, `1M`), ns (`10us`, `500ns`). No comma, colon or equals sign is in it, so
//! that it can be the value of a load's option, and nothing that a shell would not take as it is.

use std::fmt;
use std::str::FromStr;

use super::{Amount, Call, CallFault, Calls, CallsError, Class, FORMS, Form, SLOTS, form_of};
use crate::units;

impl FromStr for Calls {
    type Err = CallsError;

    fn from_str(text: &str) -> Result<Self, CallsError> {
        let calls = text.split('+').filter(|_| !text.is_empty()).enumerate().map(|(nr, one)| {
            let wrong =
                |reason| CallsError { nr: nr.saturating_add(1), call: one.to_owned(), reason };
            parse(one).map_err(wrong)
        });
        Self::new(calls.collect::<Result<_, _>>()?)
    }
}

/// One call.
///
/// # Errors
/// No such call, or not the slots or the number that it takes: what would be right.
pub fn parse(text: &str) -> Result<Call, CallFault> {
    let mut parts = text.split('.');
    let name = parts.next().unwrap_or_default();
    let form = FORMS.iter().find(|f| f.name == name).ok_or(CallFault::NoSuchCall)?;
    let wanted = || CallFault::Form { form: shape(form) };
    let mut slots = Vec::new();
    for class in form.makes.iter().chain(form.uses) {
        slots.push(parts.next().and_then(|p| slot(*class, p)).ok_or_else(wanted)?);
    }
    let amount = match form.amount {
        None => None,
        Some(amount) => Some(parts.next().and_then(|p| read(amount, p)).ok_or_else(wanted)?),
    };
    if parts.next().is_some() {
        return Err(wanted());
    }
    Ok(Call { op: form.op, slots, amount })
}

/// `map-file.m0.f0.4K, slots 0 to 3 (the number from 4K to 64M)`: how a call is written.
fn shape(form: &Form) -> String {
    let mut text = form.name.to_owned();
    for class in form.makes.iter().chain(form.uses) {
        text += &format!(".{}0", class.letter());
    }
    let limits = form.amount.map(|a| (written(a, a.limits().0), written(a, a.limits().1)));
    if let Some((least, _)) = &limits {
        text += &format!(".{least}");
    }
    if form.makes.is_some() || !form.uses.is_empty() {
        text += &format!(", slots 0 to {}", SLOTS - 1);
    }
    if let Some((least, most)) = limits {
        text += &format!(" (the number from {least} to {most})");
    }
    text
}

fn slot(class: Class, text: &str) -> Option<u8> {
    let nr = text.strip_prefix(class.letter())?;
    let nr: u8 = if nr.len() == 1 { nr.parse().ok()? } else { return None };
    (nr < SLOTS).then_some(nr)
}

fn read(amount: Amount, text: &str) -> Option<u64> {
    let (least, most) = amount.limits();
    let n = match amount {
        Amount::Bytes(..) => {
            let (digits, unit) = match text.as_bytes().last()? {
                b'K' => (text.strip_suffix('K')?, 1 << 10),
                b'M' => (text.strip_suffix('M')?, 1 << 20),
                _ => (text, 1),
            };
            digits.parse::<u64>().ok()?.checked_mul(unit)?
        }
        Amount::Ns(..) => u64::try_from(units::parse_ns(text).ok()?).ok()?,
    };
    (least..=most).contains(&n).then_some(n)
}

fn written(amount: Amount, n: u64) -> String {
    let units: &[(u64, &str)] = match amount {
        Amount::Bytes(..) => &[(1 << 20, "M"), (1 << 10, "K"), (1, "")],
        Amount::Ns(..) => &[(1_000_000, "ms"), (1_000, "us"), (1, "ns")],
    };
    let fits = units.iter().find(|(unit, _)| n.is_multiple_of(*unit));
    let whole = fits.and_then(|(unit, name)| Some((n.checked_div(*unit)?, name)));
    whole.map_or_else(|| n.to_string(), |(n, name)| format!("{n}{name}"))
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = form_of(self.op);
        f.write_str(form.name)?;
        for (class, slot) in self.places() {
            write!(f, ".{}{slot}", class.letter())?;
        }
        match form.amount.zip(self.amount) {
            Some((amount, n)) => write!(f, ".{}", written(amount, n)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_the_same() {
        let sample = Calls::sample();
        assert_eq!(sample.to_string().parse::<Calls>(), Ok(sample));
        for text in ["map.m3.12K", "sleep.1500ns", "create.f0+map-file.m1.f0.1M", "random.255"] {
            assert_eq!(text.parse::<Calls>().map(|c| c.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let error = |text: &str| parse(text).expect_err(text).to_string();
        assert!(error("mmap.m0.4K").contains("map, map-file, touch"), "{}", error("mmap.m0.4K"));
        assert_eq!(error("map.m0"), "write map.m0.4K, slots 0 to 3 (the number from 4K to 64M)");
        assert_eq!(error("map.m4.4K"), error("map.m0"));
        assert_eq!(error("map.m0.1K"), error("map.m0"));
        assert_eq!(error("map.m0.4K.m1"), error("map.m0"));
        assert_eq!(error("copy.f0"), "write copy.f0.f0, slots 0 to 3");
        assert_eq!(error("sleep.1"), "write sleep.1us (the number from 1us to 10ms)");
        assert_eq!(
            error("map-file.m0.4K"),
            "write map-file.m0.f0.4K, slots 0 to 3 (the number from 4K to 64M)"
        );
        assert_eq!(error("yield.1"), "write yield");
    }
}
