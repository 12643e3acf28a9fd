// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often something can still happen that was seen k times, or never: limits of a rate
//! with a confidence, how long a run must be, and the sentences that say so.
//!
//! Units: rates per second of schedule, times in seconds unless named `_ns`.
//! The unit is the block of one second: a second counts once however many exceedances it
//! holds, because exceedances come in clusters. Independence is needed only between seconds;
//! the rule of three on single activations was measured to hold 51-58 % of the time instead
//! of 95 % where they cluster. The sampling rate does not help: a clean run of length T shows
//! one per T/3, at 1 kHz as at 10 kHz.
//! Not here: bounds beyond the greatest value seen.
//! Source: Garwood 1936 (Poisson limits by chi-square); Hanley and Lippman-Hand 1983 (rule of
//! three).

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::units::{format_ns, format_span, grouped};

use crate::chi::gamma_quantile;

/// What every statement about rates assumes, for the reader of the report.
pub const ASSUMPTION: &str = "Rates count seconds of the schedule: they hold if the future is \
    like this run and one second does not depend on the next; what did not happen during the \
    run is not covered.";

/// Length of a block.
pub const BLOCK_NS: i64 = 1_000_000_000;

/// Upper limit of a rate of which `events` were seen in `exposure`.
///
/// chi-square quantile of 2(k+1) degrees of freedom over twice the exposure; in the unit of
/// `exposure` to the power -1. Infinite without exposure.
#[must_use]
pub fn rate_upper(events: u64, exposure: f64, confidence: f64) -> f64 {
    if exposure > 0.0 {
        gamma_quantile(events.real() + 1.0, confidence) / exposure
    } else {
        f64::INFINITY
    }
}

/// Lower limit of a rate of which `events` were seen in `exposure`; 0 if none was.
#[must_use]
pub fn rate_lower(events: u64, exposure: f64, confidence: f64) -> f64 {
    if events == 0 || exposure <= 0.0 {
        return 0.0;
    }
    gamma_quantile(events.real(), 1.0 - confidence) / exposure
}

/// Upper limit of a probability of which no event was seen in `trials` independent trials:
/// 1 - (1-confidence)^(1/n), about 3/n at 95 %.
#[must_use]
pub fn rule_of_three(trials: u64, confidence: f64) -> f64 {
    if trials == 0 {
        return 1.0;
    }
    -((-confidence).ln_1p() / trials.real()).exp_m1()
}

/// Independent trials without an event that show a probability of at most `p`.
#[must_use]
pub fn trials_needed(p: f64, confidence: f64) -> f64 {
    (-confidence).ln_1p() / (-p).ln_1p()
}

/// Exposure that shows a rate of at most `rate` if `events` are seen in it.
#[must_use]
pub fn exposure_needed(events: u64, rate: f64, confidence: f64) -> f64 {
    if rate > 0.0 { gamma_quantile(events.real() + 1.0, confidence) / rate } else { f64::INFINITY }
}

/// The most events that `exposure` may hold and still show a rate of at most `rate`;
/// `None`: not even a clean run of that length shows it.
#[must_use]
pub fn events_allowed(exposure: f64, rate: f64, confidence: f64) -> Option<u64> {
    let shows = |events: u64| rate_upper(events, exposure, confidence) <= rate;
    if !shows(0) {
        return None;
    }
    // The limit is above the count itself, so the expected number bounds the search.
    let (mut good, mut bad) = (0u64, (exposure * rate).ceil().whole_u64() + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if shows(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}

/// A confidence as people write it: `95 %`, `99.9 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    let short = text.trim_end_matches('0').trim_end_matches('.');
    format!("{} %", if short.is_empty() { "0" } else { short })
}

/// A length of time that is not exceeded: rounded down to what is printed.
#[must_use]
pub fn at_least(seconds: f64) -> String {
    if !seconds.is_finite() || seconds <= 0.0 {
        return "unknown".to_owned();
    }
    span(if seconds >= 10.0 { seconds.floor() } else { (seconds * 100.0).floor() / 100.0 })
}

/// A length of time that suffices: rounded up to what is printed.
#[must_use]
pub fn at_most(seconds: f64) -> String {
    // format_span shows the two greatest units and cuts the rest off.
    let unit = match seconds {
        s if s < 120.0 => 1.0,
        s if s < 3600.0 => 1.0,
        s if s < 86_400.0 => 60.0,
        _ => 3600.0,
    };
    span((seconds / unit).ceil() * unit)
}

fn span(seconds: f64) -> String {
    let ns = seconds * 1e9;
    if !(0.0..9.2e18).contains(&ns) {
        return "292 years".to_owned();
    }
    if seconds < 1.0 {
        return format_ns(ns);
    }
    let ns = ns.round().whole_i64();
    format_span(ns)
}

/// What `hits` of `seconds` one-second blocks show, as a sentence without its full stop:
/// `at 95 % confidence, wake-ups later than 100 µs are rarer than one per 20 s`, or a share of the seconds
/// where they may be common.
///
/// `what` names the event (`wake-ups later than 100 µs`). `None` if the run has no whole
/// second, or so many hits that blocks of one second cannot tell the rate.
#[must_use]
pub fn sentence(what: &str, hits: u64, seconds: u64, confidence: f64) -> Option<String> {
    let upper = rate_upper(hits, seconds.real(), confidence);
    if seconds == 0 || !upper.is_finite() || upper > 1.0 && hits > 0 {
        return None;
    }
    let (level, period) = (percent(confidence), at_least(1.0 / upper));
    Some(if hits == 0 {
        format!("at {level} confidence, {what} are rarer than one per {period}")
    } else if upper > COMMON {
        // A rate of one per second or two says little to a reader; a share of the seconds does.
        let share = (upper * 100.0).ceil();
        format!("at most {share:.0} % of seconds contain {what} ({level} confidence)")
    } else {
        format!("at {level} confidence, seconds with {what} are rarer than one per {period}")
    })
}

/// What `hits` of `seconds` one-second blocks show, zero, few or many, as a sentence a person
/// can act on; `None` only if the run has no whole second.
///
/// Zero and few: how rare it is at least, as [`sentence`]. Where seconds with `what` are common,
/// also how rare it is at most; where many were seen and none was without, that seconds cannot tell.
#[must_use]
pub fn frequency(what: &str, hits: u64, seconds: u64, confidence: f64) -> Option<String> {
    if seconds == 0 {
        return None;
    }
    let (level, of) = (percent(confidence), grouped(seconds));
    let exposure = seconds.real();
    let upper = rate_upper(hits, exposure, confidence);
    if hits == 0 {
        if upper > COMMON {
            let (a, are) = if seconds == 1 { ("second", "is") } else { ("seconds", "are") };
            return Some(format!(
                "no {what} in {of} {a}, which {are} too few to say how rare they are"
            ));
        }
        return sentence(what, 0, seconds, confidence)
            .map(|s| format!("{s} (none in {of} seconds)"));
    }
    if hits >= seconds && rate_lower(hits, exposure, confidence) >= RARE {
        return Some(format!(
            "every second of {of} had {what}: how often they come can only be stated as a share \
             of all activations"
        ));
    }
    let seen = format!("{} of {of} seconds had one", grouped(hits));
    if upper > COMMON {
        let lower = rate_lower(hits, exposure, confidence);
        if lower < RARE {
            return Some(format!(
                "{} of {of} seconds had {what}: the run is too short to bound their rate from above; at \
                 {level} confidence at least one per {}",
                grouped(hits),
                at_most(1.0 / lower)
            ));
        }
        return Some(format!(
            "seconds with {what} are common: {seen}; at {level} confidence at least one per {}",
            at_most(1.0 / lower)
        ));
    }
    Some(format!(
        "at {level} confidence, seconds with {what} are rarer than one per {} ({seen})",
        at_least(1.0 / upper)
    ))
}

/// Seconds with an exceedance may be common if their rate can be above this (per second).
const COMMON: f64 = 0.1;

/// They are not known to be, if it can be below this.
const RARE: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want, "{got} is not {want}");
    }

    #[test]
    fn clean_trials_as_published() {
        for (p, want) in [
            (1e-5, [299_572.0, 460_515.0, 1_151_287.0]),
            (1e-6, [2_995_731.0, 4_605_168.0, 11_512_920.0]),
        ] {
            for (confidence, want) in [0.95, 0.99, 0.99999].into_iter().zip(want) {
                assert!((trials_needed(p, confidence) - want).abs() <= 1.0, "{p} {confidence}");
            }
        }
        near(trials_needed(1e-9, 0.95), 3.0e9, 2e-3);
        near(rule_of_three(10_000_000, 0.95), 2.995_732e-7, 1e-6);
        near(rate_upper(0, 10_000_000.0, 0.95), 2.995_732_27e-7, 1e-8);
        assert!(rule_of_three(1000, 0.95) < rate_upper(0, 1000.0, 0.95), "the safe side");
    }

    #[test]
    fn five_nines_from_ten_million() {
        for (confidence, misses) in [(0.95, 83), (0.99, 76), (0.99999, 59)] {
            assert_eq!(events_allowed(1e7, 1e-5, confidence), Some(misses), "{confidence}");
        }
        assert_eq!(events_allowed(500_000.0, 1e-5, 0.95), Some(1));
        assert_eq!(events_allowed(500_000.0, 1e-5, 0.99), Some(0));
        assert_eq!(events_allowed(500_000.0, 1e-5, 0.99999), None);
    }

    #[test]
    fn clean_runs_show_one_per_third_of_their_length() {
        let hours = |length_h: f64| 1.0 / rate_upper(0, length_h, 0.95);
        near(hours(100e6 / 5000.0 / 3600.0), 1.85, 3e-3);
        near(hours(12.0), 4.0, 2e-3);
        near(hours(7.0 * 24.0), 56.0, 3e-3);
        near(hours(30.0 * 24.0), 240.0, 3e-3);
        near(exposure_needed(0, 1.0 / 86_400.0, 0.95), 86_400.0 * 20f64.ln(), 1e-12);
    }

    #[test]
    fn limits_enclose_the_count() {
        for k in [1u64, 2, 17, 400, 1_000_000] {
            let (low, high) = (rate_lower(k, 1.0, 0.95), rate_upper(k, 1.0, 0.95));
            assert!(low < k.real() && (k.real()) < high, "{low} {k} {high}");
        }
        assert_eq!(rate_lower(0, 10.0, 0.95), 0.0);
        // Poisson limits of 10 events, one-sided 95 %: 5.425 and 16.962.
        near(rate_lower(10, 1.0, 0.95), 5.425_405_7, 1e-7);
        near(rate_upper(10, 1.0, 0.95), 16.962_219, 1e-7);
    }

    #[test]
    fn every_count_has_a_sentence() {
        let said =
            |hits| frequency("wake-ups later than 1 ms", hits, 3600, 0.95).unwrap_or_default();
        assert!(
            said(0).ends_with("are rarer than one per 20 min 1 s (none in 3,600 seconds)"),
            "{}",
            said(0)
        );
        assert!(
            said(3).contains("rarer than one per 7 min") && said(3).contains("3 of 3,600"),
            "{}",
            said(3)
        );
        assert!(
            said(1800).contains("are common") && said(1800).contains("at least one per 3 s"),
            "{}",
            said(1800)
        );
        let short = frequency("x", 1, 5, 0.95).unwrap_or_default();
        assert!(short.starts_with("1 of 5 seconds had x: the run is too short"), "{short}");
        let none = frequency("x", 0, 5, 0.95).unwrap_or_default();
        assert_eq!(none, "no x in 5 seconds, which are too few to say how rare they are");
        assert!(said(3600).starts_with("every second of 3,600 had"), "{}", said(3600));
        assert_eq!(frequency("x", 0, 0, 0.95), None);
    }

    #[test]
    fn sentences_round_to_the_safe_side() {
        assert_eq!(
            sentence("wake-ups later than 100 µs", 0, 60, 0.95).as_deref(),
            Some("at 95 % confidence, wake-ups later than 100 µs are rarer than one per 20 s")
        );
        let some = sentence("wake-ups later than 100 µs", 5, 600, 0.999).unwrap_or_default();
        assert!(some.starts_with("at 99.9 % confidence, seconds with wake-ups"), "{some}");
        let often = sentence("x", 5, 60, 0.999).unwrap_or_default();
        assert_eq!(often, "at most 28 % of seconds contain x (99.9 % confidence)");
        assert_eq!(sentence("x", 60, 60, 0.95), None, "every second was hit");
        assert_eq!(sentence("x", 0, 0, 0.95), None);
        assert_eq!(at_most(119.2), "2 min");
        assert_eq!(at_most(7201.0), "2 h 1 min");
        assert_eq!(at_least(0.667), "660 ms");
    }
}
