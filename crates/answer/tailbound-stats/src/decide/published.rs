// SPDX-License-Identifier: MIT OR Apache-2.0
//! A side of the choice from published figures.
//!
//! Units: seconds, ns. Nothing is added to what was published: a latency without
//! an interval has none here.

use tailbound_core::number::Real as _;
use tailbound_core::published::{PublishedSide, Times};
use tailbound_core::units::{self, ParseTimeError};

use super::latency::{Figure, Latency, QUANTILES};
use super::sample::Sample;
use super::side::{BenchmarkCost, Side};
use crate::quantile;

/// A figure of a publication that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedFault {
    /// Not one of the figures that are compared.
    #[error("{side}: latency `{name}` is not one of {}", figures().join(", "))]
    UnknownFigure {
        /// The system.
        side: String,
        /// As written.
        name: String,
    },
    /// Not a time.
    #[error("{side}: latency {figure}: {why}")]
    Latency {
        /// The system.
        side: String,
        /// The figure.
        figure: String,
        /// What is wrong with it.
        #[source]
        why: ParseTimeError,
    },
    /// Not seconds.
    #[error("{side}: benchmark `{benchmark}`: {times}: write seconds, at least one, none negative")]
    Benchmark {
        /// The system.
        side: String,
        /// The benchmark.
        benchmark: String,
        /// Which of its times: `real`, `user`, `sys`.
        times: &'static str,
    },
}

/// The names of the figures that are compared.
fn figures() -> Vec<String> {
    let quantiles = QUANTILES.iter().map(|p| quantile::label(*p));
    let names = std::iter::once("mean".to_owned()).chain(quantiles);
    names.chain(std::iter::once("worst".to_owned())).collect()
}

/// The side that the figures of `side` describe, found in the file `source`.
///
/// # Errors
/// Which figure is none.
pub fn of_published(side: &PublishedSide, source: &str) -> Result<Side, PublishedFault> {
    let known = figures();
    if let Some(name) = side.latency.keys().find(|k| !known.contains(k)) {
        let (side, name) = (side.name.clone(), name.clone());
        return Err(PublishedFault::UnknownFigure { side, name });
    }
    let mut figures = Vec::new();
    for statistic in known {
        let Some(text) = side.latency.get(&statistic) else { continue };
        let ns = units::parse_ns(text).map_err(|why| PublishedFault::Latency {
            side: side.name.clone(),
            figure: statistic.clone(),
            why,
        })?;
        figures.push(Figure {
            statistic,
            ns: Some(ns.real()),
            low_ns: None,
            high_ns: None,
            more: None,
        });
    }
    let mut benchmarks = Vec::new();
    for w in &side.work {
        type Part = (Vec<f64>, Option<Sample>);
        let part = |times: &Times, what: &'static str| -> Result<Part, PublishedFault> {
            let (each, sample) = match times {
                Times::Each(each) => (each.clone(), Sample::of(each)),
                Times::Told { n, mean, sd } => {
                    (Vec::new(), Some(Sample { n: *n, mean: *mean, sd: *sd }))
                }
            };
            let fine = |s: &Sample| {
                s.n > 0 && s.mean.is_finite() && s.mean >= 0.0 && s.sd.is_finite() && s.sd >= 0.0
            };
            if !sample.as_ref().is_some_and(fine) || each.iter().any(|s| *s < 0.0) {
                return Err(PublishedFault::Benchmark {
                    side: side.name.clone(),
                    benchmark: w.name.clone(),
                    times: what,
                });
            }
            Ok((each, sample))
        };
        let optional = |times: &Option<Times>, what| {
            times.as_ref().map_or(Ok((Vec::new(), None)), |t| part(t, what))
        };
        let (real_s, real) = part(&w.real, "real")?;
        let (user_s, user) = optional(&w.user, "user")?;
        let (sys_s, sys) = optional(&w.sys, "sys")?;
        benchmarks.push(BenchmarkCost {
            work: w.name.clone(),
            spec: w.name.clone(),
            real_s,
            user_s,
            sys_s,
            real,
            user,
            sys,
            failed: 0,
        });
    }
    let latency = (!figures.is_empty()).then(|| Latency {
        n: side.wakeups.unwrap_or(0),
        intervals: "none: published without".to_owned(),
        figures,
        deadline: None,
    });
    Ok(Side {
        name: side.name.clone(),
        sources: vec![source.to_owned()],
        latency,
        benchmarks,
        ..Side::default()
    })
}

#[cfg(test)]
mod tests {
    use tailbound_core::published::Published;

    use super::*;
    use crate::decide::{Answers, Crossing, choose};

    const PAPER: &str = r#"
source = "Linux Symposium 2008"
[real]
name = "real time"
wakeups = 10000000
latency = { "p99.999" = "13us", worst = "20us" }
[[real.work]]
name = "kernel build"
real = { n = 3, mean = 1556.2, sd = 22.4 }
[fast]
name = "real fast"
latency = { worst = "3ms" }
[[fast.work]]
name = "kernel build"
real = { n = 3, mean = 1332.6, sd = 14.6 }
"#;

    #[test]
    fn the_paper_of_2008_goes_through() {
        let paper = Published::parse(PAPER).unwrap();
        let side = |s| of_published(s, "paper.toml").unwrap();
        let choice = choose(side(&paper.real), side(&paper.fast), Answers::default(), None);
        let work = choice.benchmarks.first().unwrap();
        let percent = work.elapsed.as_ref().unwrap().percent;
        assert!((percent - 16.78).abs() < 0.01, "{percent}");
        // The worst alone is told of both.
        assert_eq!(work.delays.len(), 1);
        let crossing = work.delays.first().map(|d| d.crossing);
        assert!(
            matches!(crossing, Some(Crossing::At { ns, low_ns: Some(low), high_ns: Some(high) })
                if (1.7e7..1.8e7).contains(&ns) && low < ns && ns < high),
            "{crossing:?}"
        );
    }

    #[test]
    fn a_figure_that_is_none_is_named() {
        let wrong = |from: &str, to: &str| {
            let paper = Published::parse(&PAPER.replace(from, to)).unwrap();
            of_published(&paper.real, "f").unwrap_err().to_string()
        };
        assert!(wrong("p99.999", "p98").contains("p98"));
        assert!(wrong("13us", "13").contains("p99.999"));
        assert!(wrong("mean = 1556.2", "mean = -1.0").contains("kernel build"));
        assert!(Published::parse("[real]\n").is_err());
    }
}
