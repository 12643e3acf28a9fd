// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the words of `--until` and `--precision` to a rule, and to the longest time it needs.
//!
//! Units: ns; rates per second.
//! Not here: the rule at work (`tailbound_stats::stopping`).

use tailbound_core::Requirement;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::plan::{DURATION_MAX_NS, RunConfig, StopRule, Until};
use tailbound_core::requirement::Class;
use tailbound_stats::stopping::PRECISE_FIRST_S;
use tailbound_stats::{anytime, rates};

use crate::error::RunError;
use crate::option_text::span;
use crate::until_error::UntilError;

/// What `--precision` is when it is not given.
const PRECISION: &str = "5%:p50,p99,p99.9";
/// Longest time of a run until its quantiles are precise, when none is given.
const PRECISE_AT_LAST_NS: i64 = 12 * 3_600_000_000_000;
/// No run ends by it before this.
const PRECISE_FIRST_NS: i64 = PRECISE_FIRST_S.cast_signed() * 1_000_000_000;
/// Exceedances that the longest time of `anytime` forgives, when none is given.
const FORGIVEN: u64 = 3;

/// The rule, if one was asked for. A rate to be demonstrated is judged as class safe, unless a
/// class was given.
pub(crate) fn until(
    w: &RunConfig,
    requirement: &mut Requirement,
) -> Result<Option<Until>, UntilError> {
    let Some(word) = w.until.as_deref() else {
        return match &w.precision {
            Some(_) => Err(UntilError::NoRule),
            None => Ok(None),
        };
    };
    let rule: StopRule = word.parse().map_err(UntilError::Rule)?;
    if rule == StopRule::Precision {
        let (precision, quantiles) = precision(w.precision.as_deref().unwrap_or(PRECISION))?;
        return Ok(Some(Until { rule, precision: Some(precision), quantiles }));
    }
    if w.precision.is_some() {
        return Err(UntilError::OtherRule { rule });
    }
    if rule == StopRule::Exceedance {
        if requirement.deadline_ns.is_none() {
            return Err(UntilError::NoDeadline);
        }
        return Ok(Some(Until { rule, precision: None, quantiles: Vec::new() }));
    }
    if requirement.deadline_ns.is_none() || requirement.rate.is_none() {
        return Err(UntilError::NoRate { rule });
    }
    if w.class.is_none() {
        requirement.class = Class::Safe;
    }
    Ok(Some(Until { rule, precision: None, quantiles: Vec::new() }))
}

/// `5%` or `5%:p50,p99`.
fn precision(text: &str) -> Result<(f64, Vec<f64>), UntilError> {
    let wrong = || UntilError::Precision { text: text.to_owned() };
    let standard = PRECISION.split_once(':').map_or("", |p| p.1);
    let (share, quantiles) = text.split_once(':').unwrap_or((text, standard));
    let hundredths: f64 =
        share.trim().strip_suffix('%').and_then(|s| s.trim().parse().ok()).ok_or_else(wrong)?;
    if !(0.01..100.0).contains(&hundredths) {
        return Err(wrong());
    }
    let one = |q: &str| {
        let p = q.trim().strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
        p.filter(|p| *p > 0.0 && *p < 100.0).map(|p| p / 100.0)
    };
    let quantiles: Option<Vec<f64>> = quantiles.split(',').map(one).collect();
    Ok((hundredths / 100.0, quantiles.filter(|q| !q.is_empty()).ok_or_else(wrong)?))
}

/// Activations of the longest time of a run with a rule; `None`: as without one.
pub(crate) fn longest(
    until: Option<&Until>,
    requirement: &Requirement,
    w: &RunConfig,
    interval_ns: i64,
) -> Result<Option<u64>, RunError> {
    let Some(until) = until.filter(|u| u.rule != StopRule::Exceedance) else { return Ok(None) };
    let given = w.duration.is_some() || w.loops.is_some();
    let given_ns = match (&w.duration, w.loops) {
        (Some(text), _) => Some(span(text, "--duration")?),
        (None, Some(loops)) => {
            Some(i64::try_from(loops).unwrap_or(i64::MAX).saturating_mul(interval_ns))
        }
        (None, None) => None,
    };
    let Some(rate) = requirement.rate.filter(|_| until.rule != StopRule::Precision) else {
        if let Some(given_ns) = given_ns.filter(|ns| *ns < PRECISE_FIRST_NS) {
            let first_ns = PRECISE_FIRST_NS;
            return Err(UntilError::TooShortToBePrecise { given_ns, first_ns }.into());
        }
        return Ok((!given).then(|| count(PRECISE_AT_LAST_NS, interval_ns)));
    };
    let per_s = f64::from(rate.count) / (rate.per_ns.real() / 1e9);
    let planned_s = rates::exposure_needed(0, per_s, requirement.confidence);
    let (least_s, longest_s) = match until.rule {
        StopRule::Demonstrated => (planned_s, planned_s),
        _ => {
            let needed =
                |hits| anytime::time_needed(hits, per_s, planned_s, requirement.confidence);
            (needed(0), needed(FORGIVEN))
        }
    };
    if longest_s.ceil() * 1e9 > DURATION_MAX_NS.real() {
        return Err(UntilError::TooRare { rule: until.rule, rate }.into());
    }
    let ns = |s: f64| s.ceil().whole_i64() * 1_000_000_000;
    match given_ns {
        // The bound is a whole second above: a run of exactly the printed length is let pass.
        Some(given_ns) if given_ns < ns(least_s) - 1_000_000_000 => {
            let least_ns = ns(least_s);
            Err(UntilError::TooShortToShow { rule: until.rule, rate, given_ns, least_ns }.into())
        }
        Some(_) => Ok(None),
        None => Ok(Some(count(ns(longest_s), interval_ns))),
    }
}

fn count(ns: i64, interval_ns: i64) -> u64 {
    u64::try_from(ns / interval_ns.max(1)).unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use tailbound_core::units::format_span;

    use super::*;

    fn request(until: &str, edit: impl FnOnce(&mut RunConfig)) -> RunConfig {
        let mut words = RunConfig { until: Some(until.to_owned()), ..RunConfig::default() };
        edit(&mut words);
        words
    }

    fn required() -> Requirement {
        Requirement {
            deadline_ns: Some(100_000),
            rate: "1/1h".parse().ok(),
            ..Requirement::default()
        }
    }

    #[test]
    fn the_planned_time_is_the_longest() {
        let (w, mut r) = (request("demonstrated", |_| ()), required());
        let rule = until(&w, &mut r).expect("a rule");
        assert_eq!(r.class, Class::Safe, "what is to be shown is judged as such");
        let n = longest(rule.as_ref(), &r, &w, 1_000_000).expect("a length");
        assert_eq!(n, Some(10_785_000), "3600 s × ln 20, whole seconds");
        let w = request("demonstrated", |w| w.duration = Some("1h".to_owned()));
        let short = longest(rule.as_ref(), &r, &w, 1_000_000).expect_err("too short");
        assert!(
            short.to_string().contains("a run without exceedances takes 2 h 59 min"),
            "{short}"
        );
    }

    #[test]
    fn what_cannot_be_precise_in_time_is_refused() {
        let rule =
            until(&request("precision", |_| ()), &mut Requirement::default()).expect("a rule");
        let length = |w: &RunConfig| longest(rule.as_ref(), &Requirement::default(), w, 1_000_000);
        let short = request("precision", |w| w.duration = Some("25s".to_owned()));
        let why = length(&short).expect_err("too short").to_string();
        assert!(
            why.contains("25 s are too short") && why.contains(&format_span(PRECISE_FIRST_NS)),
            "{why}"
        );
        let short = request("precision", |w| w.loops = Some(79_999));
        assert!(length(&short).is_err());
        let long = request("precision", |w| w.duration = Some("80s".to_owned()));
        assert_eq!(length(&long).ok(), Some(None));
    }

    #[test]
    fn words_without_meaning_are_refused() {
        for (words, hint) in [
            (request("demonstrated", |_| ()), "--rate"),
            (request("tomorrow", |_| ()), "tomorrow"),
            (request("precision", |w| w.precision = Some("5".to_owned())), "--precision"),
            (request("precision", |w| w.precision = Some("5%:x".to_owned())), "--precision"),
        ] {
            let wrong = until(&words, &mut Requirement::default()).expect_err("refused");
            assert!(wrong.to_string().contains(hint), "{wrong}");
        }
        let (share, quantiles) = precision("2%:p50,p99.9").expect("two quantiles");
        assert!((share - 0.02).abs() < 1e-12 && quantiles.len() == 2);
    }
}
