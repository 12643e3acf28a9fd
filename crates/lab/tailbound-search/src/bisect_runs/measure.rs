// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figure of a run that a search is about.
//!
//! Units: ns.

use std::str::FromStr;

use tailbound_core::Run;
use tailbound_core::paths::{PathsRecord, SectionKind};
use tailbound_stats::quantile;

use crate::error::SearchError;

/// Which.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measure {
    /// The latest of all due activations.
    Max,
    /// A quantile of them, from 0 to 1.
    Quantile(f64),
    /// The longest section that is not preemptible.
    Section,
}

/// Why a run has no such figure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum NoFigure {
    #[error("nothing was measured")]
    Nothing,
    #[error(
        "{} needs {} activations: give more with --loops",
        quantile::label(*quantile),
        quantile::needed(*quantile)
    )]
    TooFew { quantile: f64 },
    #[error("sections are no figure of a run alone")]
    NotAlone,
    #[error("no section was seen")]
    NoSection,
}

impl FromStr for Measure {
    type Err = SearchError;

    fn from_str(text: &str) -> Result<Self, SearchError> {
        let percent = |p: &str| p.parse().ok().filter(|p| (0.0..100.0).contains(p) && *p > 0.0);
        match text {
            "max" => Ok(Self::Max),
            "section" => Ok(Self::Section),
            _ => match text.strip_prefix('p').and_then(percent) {
                Some(p) => Ok(Self::Quantile(p / 100.0)),
                None => Err(SearchError::Measure { text: text.to_owned() }),
            },
        }
    }
}

impl Measure {
    /// As a reader knows it.
    pub(super) fn title(self) -> String {
        match self {
            Self::Max => "latest".to_owned(),
            Self::Quantile(p) => quantile::label(p),
            Self::Section => "longest section".to_owned(),
        }
    }

    /// The figure of a run; why there is none.
    pub(super) fn of_run(self, run: &Run) -> Result<i64, NoFigure> {
        let context = run.judged_context().ok_or(NoFigure::Nothing)?;
        let (_, due) = run.total(context);
        match self {
            Self::Max => due.max_ns.ok_or(NoFigure::Nothing),
            Self::Quantile(p) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a latency that was measured in whole ns"
                )]
                let whole = |ns: f64| ns.round() as i64;
                let found = quantile::quantile(&due, p).ns().map(whole);
                found.ok_or(NoFigure::TooFew { quantile: p })
            }
            Self::Section => Err(NoFigure::NotAlone),
        }
    }

    /// The longest section of a run that was looked at.
    pub(super) fn of_paths(record: &PathsRecord) -> Result<i64, NoFigure> {
        let longest = record.totals.iter().find(|t| t.kind == SectionKind::NotPreemptible);
        longest.map(|t| t.longest_ns).ok_or(NoFigure::NoSection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_anything_else_says_what_there_is() {
        assert_eq!("max".parse::<Measure>().unwrap(), Measure::Max);
        assert_eq!("section".parse::<Measure>().unwrap(), Measure::Section);
        assert_eq!("p99.9".parse::<Measure>().unwrap().title(), "p99.9");
        for wrong in ["p0", "p100", "pnan", "mean", "p", "p-5"] {
            let e = wrong.parse::<Measure>().unwrap_err();
            assert!(
                e.to_string().contains("p99.999") && e.kind() == tailbound_core::FailureKind::Usage,
                "{wrong}: {e}"
            );
        }
    }
}
