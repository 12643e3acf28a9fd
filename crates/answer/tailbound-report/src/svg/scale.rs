// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scales: from values to a share of the axis, and where the ticks go.
//!
//! Units: whatever the axis counts; [`Unit`] writes it for people.
//! Log scales tick at decades (1-2-5 when there are few of them), linear ones at 1-2-5
//! steps, times of day at steps of 60, dates at days, weeks and months.

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::utc;

pub use tailbound_core::units::trimmed;

const S_PER_DAY: i64 = 86_400;

/// An SVG coordinate: one decimal, no trailing zero, never `NaN`.
#[must_use]
pub fn number(v: f64) -> String {
    if v.is_finite() { trimmed(v, 1) } else { "0".to_owned() }
}

/// What an axis counts, which decides how a tick is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// ns of latency.
    Ns,
    /// Seconds into the run.
    Seconds,
    /// A number of things.
    Count,
    /// A share of one.
    Share,
    /// One quantity over another.
    Ratio,
    /// Seconds since 1970, as a date and a time of day.
    Utc,
}

impl Unit {
    /// The value as people read it at a tick.
    #[must_use]
    pub fn label(self, v: f64) -> String {
        match self {
            Self::Ns => ns_label(v),
            Self::Seconds => seconds_label(v),
            Self::Count => count_label(v),
            Self::Share => share_label(v),
            Self::Ratio => format!("× {}", trimmed(v, 3)),
            Self::Utc => date_label(v),
        }
    }
    /// The word the script knows this unit by.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Seconds => "s",
            Self::Count => "count",
            Self::Share => "share",
            Self::Ratio => "ratio",
            Self::Utc => "utc",
        }
    }
}

fn ns_label(v: f64) -> String {
    let (value, unit) = match v.abs() {
        a if a < 1e3 => (v, "ns"),
        a if a < 1e6 => (v / 1e3, "µs"),
        a if a < 1e9 => (v / 1e6, "ms"),
        _ => (v / 1e9, "s"),
    };
    if v == 0.0 { "0".to_owned() } else { format!("{} {unit}", trimmed(value, 2)) }
}

fn seconds_label(v: f64) -> String {
    match v {
        0.0 => "0".to_owned(),
        v if v < 120.0 => format!("{} s", trimmed(v, 2)),
        v if v < 7200.0 => format!("{} min", trimmed(v / 60.0, 1)),
        v if v < 172_800.0 => format!("{} h", trimmed(v / 3600.0, 1)),
        v => format!("{} d", trimmed(v / 86_400.0, 1)),
    }
}

/// A day where it begins, else the minute.
fn date_label(v: f64) -> String {
    let s = v.whole_i64();
    let all = utc::rfc3339(s);
    let shown = if s.rem_euclid(S_PER_DAY) == 0 { 10 } else { 16 };
    all.get(..shown).unwrap_or(&all).replace('T', " ")
}

fn count_label(v: f64) -> String {
    match v.abs() {
        a if a >= 1e9 => format!("{} G", trimmed(v / 1e9, 1)),
        a if a >= 1e6 => format!("{} M", trimmed(v / 1e6, 1)),
        a if a >= 1e4 => format!("{} k", trimmed(v / 1e3, 1)),
        _ => trimmed(v, 2),
    }
}

/// Shares above a thousandth in percent, below as "1 in N": nobody reads 0.0001 %.
fn share_label(v: f64) -> String {
    match v {
        v if v <= 0.0 => "0".to_owned(),
        v if v >= 0.000_999 => format!("{} %", trimmed(v * 100.0, 2)),
        v => format!("1 in {}", count_label(1.0 / v)),
    }
}

/// A tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// Where.
    pub value: f64,
    /// Is its value written beside it?
    pub labelled: bool,
}

/// A scale from `lo` to `hi`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    lo: f64,
    hi: f64,
    log: bool,
    unit: Unit,
}

impl Scale {
    /// A logarithmic scale; what is not positive and finite is replaced by something that is.
    #[must_use]
    pub fn log(lo: f64, hi: f64, unit: Unit) -> Self {
        let lo = if lo.is_finite() && lo > 0.0 { lo } else { 1.0 };
        let hi = if hi.is_finite() && hi > lo * 1.01 { hi } else { lo * 10.0 };
        Self { lo, hi, log: true, unit }
    }

    /// A linear scale.
    #[must_use]
    pub fn linear(lo: f64, hi: f64, unit: Unit) -> Self {
        let lo = if lo.is_finite() { lo } else { 0.0 };
        let hi = if hi.is_finite() && hi > lo { hi } else { lo + 1.0 };
        Self { lo, hi, log: false, unit }
    }

    /// Lower end.
    #[must_use]
    pub fn lo(&self) -> f64 {
        self.lo
    }
    /// Upper end.
    #[must_use]
    pub fn hi(&self) -> f64 {
        self.hi
    }
    /// Logarithmic?
    #[must_use]
    pub fn is_log(&self) -> bool {
        self.log
    }
    /// What it counts.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Where `v` lies, 0 at the lower end and 1 at the upper; what lies beyond an end is put on it.
    #[must_use]
    pub fn at(&self, v: f64) -> f64 {
        if v.is_nan() {
            return 0.0;
        }
        let share = if self.log {
            (v.max(self.lo) / self.lo).ln() / (self.hi / self.lo).ln()
        } else {
            (v - self.lo) / (self.hi - self.lo)
        };
        share.clamp(0.0, 1.0)
    }

    /// Does `v` lie on the scale?
    #[must_use]
    pub fn holds(&self, v: f64) -> bool {
        v >= self.lo && v <= self.hi
    }

    /// The ticks, at most about `labels` of them with a label.
    #[must_use]
    pub fn ticks(&self, labels: usize) -> Vec<Tick> {
        let labels = labels.max(2);
        match self.unit {
            _ if self.log => self.log_ticks(labels),
            Unit::Utc => self.dates(labels),
            _ => self.linear_ticks(labels),
        }
    }

    fn log_ticks(&self, labels: usize) -> Vec<Tick> {
        let decades = (self.hi / self.lo).log10();
        let room = labels.real();
        let digits: &[u32] = match decades {
            d if d * 9.0 <= room => &[1, 2, 3, 4, 5, 6, 7, 8, 9],
            d if d * 3.0 <= room => &[1, 2, 5],
            _ => &[1],
        };
        let every = (decades / room).ceil().max(1.0);
        let mut out = Vec::new();
        let (from, to) = (self.lo.log10().floor() as i32, self.hi.log10().ceil() as i32);
        for e in from..=to {
            for digit in 1..=9u32 {
                let value = f64::from(digit) * 10f64.powi(e);
                if value < self.lo * 0.9999 || value > self.hi * 1.0001 {
                    continue;
                }
                let decade_labelled = f64::from(e).rem_euclid(every) < 0.5;
                let labelled = digits.contains(&digit) && (digits.len() > 1 || decade_labelled);
                if labelled || every < 2.0 || digit == 1 {
                    out.push(Tick { value, labelled });
                }
            }
        }
        out
    }

    /// Places on a calendar: steps of a clock, days, weeks from Monday on, months.
    fn dates(&self, labels: usize) -> Vec<Tick> {
        const DAY: f64 = 86_400.0;
        let raw = (self.hi - self.lo) / labels.real();
        let days = [1.0, 2.0, 7.0, 14.0].map(|n| n * DAY);
        let clock = [60.0, 300.0, 900.0, 1800.0, 3600.0, 10_800.0, 21_600.0, 43_200.0];
        let tick = |value: f64| Tick { value, labelled: true };
        if let Some(step) = clock.into_iter().chain(days).find(|s| *s >= raw) {
            // 1970 began on a Thursday.
            let base = if step >= 7.0 * DAY { 4.0 * DAY } else { 0.0 };
            let first = ((self.lo - base) / step).ceil();
            let at = |n: u32| base + (first + f64::from(n)) * step;
            return (0..200).map(at).take_while(|v| *v <= self.hi).map(tick).collect();
        }
        let months = [1.0, 2.0, 3.0, 6.0, 12.0].into_iter().find(|n| n * 30.5 * DAY >= raw);
        let months = months.unwrap_or_else(|| 12.0 * (raw / 366.0 / DAY).ceil()).whole_i64();
        let began = utc::rfc3339(self.lo.whole_i64());
        let part = |from: usize, to: usize| began.get(from..to).and_then(|p| p.parse::<i64>().ok());
        let (Some(year), Some(month)) = (part(0, 4), part(5, 7)) else { return Vec::new() };
        let first = (year * 12 + month - 1).div_euclid(months);
        let at = |n: i64| {
            let month = (first + n) * months;
            let date = format!("{:04}-{:02}-01", month.div_euclid(12), month.rem_euclid(12) + 1);
            utc::from_date_time(&date, "00:00:00").map(|s| s.real())
        };
        let all = (0..200).map_while(at).take_while(|v| *v <= self.hi);
        all.filter(|v| *v >= self.lo).map(tick).collect()
    }

    fn linear_ticks(&self, labels: usize) -> Vec<Tick> {
        let raw = (self.hi - self.lo) / labels.real();
        let step = if self.unit == Unit::Seconds { time_step(raw) } else { nice_step(raw) };
        let mut out = Vec::new();
        let mut k = (self.lo / step).ceil();
        while k * step <= self.hi * (1.0 + 1e-9) && out.len() < 200 {
            out.push(Tick { value: k * step, labelled: true });
            k += 1.0;
        }
        out
    }
}

/// The next of 1, 2, 5 times a power of ten.
fn nice_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.max(1e-12).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|s| s * power >= raw * 0.999);
    step.unwrap_or(10.0) * power
}

/// The next step that a clock would use.
fn time_step(raw: f64) -> f64 {
    const STEPS: [f64; 18] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
        10_800.0, 21_600.0, 43_200.0, 86_400.0,
    ];
    if raw < 1.0 {
        return nice_step(raw);
    }
    STEPS.into_iter().find(|s| *s >= raw).unwrap_or_else(|| nice_step(raw / 86_400.0) * 86_400.0)
}

/// The next 1, 2 or 5 times a power of ten that is at most `v`.
#[must_use]
pub fn round_down_125(v: f64) -> f64 {
    let Some(steps) = steps_125(v) else { return 1.0 };
    let [least, ..] = steps;
    steps.into_iter().rev().find(|s| *s <= v || is_close(*s, v)).unwrap_or(least)
}

/// The next 1, 2 or 5 times a power of ten that is at least `v`.
#[must_use]
pub fn round_up_125(v: f64) -> f64 {
    let Some(steps) = steps_125(v) else { return 1.0 };
    let [least, ..] = steps;
    steps.into_iter().find(|s| *s >= v || is_close(*s, v)).unwrap_or(least)
}

/// 1, 2, 5 and 10 times the power of ten that is not above `v`; `None` where there is none.
fn steps_125(v: f64) -> Option<[f64; 4]> {
    let power = (v.is_finite() && v > 0.0).then(|| 10f64.powf(v.log10().floor()))?;
    Some([1.0, 2.0, 5.0, 10.0].map(|s| s * power))
}

fn is_close(step: f64, v: f64) -> bool {
    (step / v - 1.0).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(s: &Scale, n: usize) -> Vec<String> {
        s.ticks(n).iter().filter(|t| t.labelled).map(|t| s.unit().label(t.value)).collect()
    }

    #[test]
    fn ticks_are_what_people_expect() {
        assert_eq!(labels(&Scale::log(1e3, 1e6, Unit::Ns), 6), ["1 µs", "10 µs", "100 µs", "1 ms"]);
        assert_eq!(
            labels(&Scale::log(2e4, 2e5, Unit::Ns), 6),
            ["20 µs", "50 µs", "100 µs", "200 µs"]
        );
        assert_eq!(
            labels(&Scale::linear(0.0, 60.0, Unit::Seconds), 6),
            ["0", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s"]
        );
        assert_eq!(
            labels(&Scale::linear(0.0, 43_200.0, Unit::Seconds), 6)[1],
            "120 min".replace("120 min", "2 h")
        );
        assert_eq!(
            labels(&Scale::log(1e-6, 1.0, Unit::Share), 8).first().map(String::as_str),
            Some("1 in 1 M")
        );
    }

    #[test]
    fn dates_are_those_of_a_calendar() {
        let from = |date: &str| utc::from_date_time(date, "00:00:00").unwrap_or(0).real();
        let of = |lo: f64, hi: f64| labels(&Scale::linear(lo, hi, Unit::Utc), 6);
        let year = of(from("2025-12-10"), from("2026-12-10"));
        let months =
            ["2026-01-01", "2026-03-01", "2026-05-01", "2026-07-01", "2026-09-01", "2026-11-01"];
        assert_eq!(year, months);
        let month = of(from("2026-11-01"), from("2026-12-01"));
        assert_eq!(month, ["2026-11-02", "2026-11-09", "2026-11-16", "2026-11-23", "2026-11-30"]);
        let day = of(from("2026-11-25"), from("2026-11-26"));
        assert_eq!(
            day.get(..2),
            Some(["2026-11-25".to_owned(), "2026-11-25 06:00".to_owned()].as_slice())
        );
        assert!(of(0.0, 1e11).len() < 20);
        assert!(of(-1e17, 1e17).len() < 300);
    }

    #[test]
    fn nonsense_gives_a_usable_scale() {
        for s in [
            Scale::log(f64::NAN, f64::INFINITY, Unit::Ns),
            Scale::log(0.0, -1.0, Unit::Ns),
            Scale::linear(f64::NAN, f64::NAN, Unit::Count),
            Scale::linear(5.0, 5.0, Unit::Count),
        ] {
            assert!(s.hi() > s.lo());
            for v in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
                assert!((0.0..=1.0).contains(&s.at(v)), "{s:?} {v}");
            }
            assert!(s.ticks(5).len() < 300);
        }
    }

    #[test]
    fn rounding_outwards() {
        assert!((round_down_125(2.3e4) - 2e4).abs() < 1e-6);
        assert!((round_up_125(2.3e4) - 5e4).abs() < 1e-6);
        assert!((round_up_125(1e5) - 1e5).abs() < 1e-6);
    }
}
