// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where good ends and bad begins, from the two ends and their controls.
//!
//! Units: ns. A control is an end again with a change that means nothing. What it moves is what moving
//! code and time about does by itself: the noise floor. A difference within it says nothing, so that the search is
//! refused where the ends are no further apart.

/// What was measured of both ends, the end itself first, then its controls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The good end.
    pub good_ns: Vec<i64>,
    /// The bad end.
    pub bad_ns: Vec<i64>,
}

/// The limit that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Later than this is bad.
    pub limit_ns: i64,
    /// The noise floor: the most that a control differed from its end; none without controls.
    pub floor_ns: Option<i64>,
    /// The latest of the good end and its controls.
    pub good_ns: i64,
    /// The earliest of the bad end and its controls.
    pub bad_ns: i64,
}

/// Why there is nothing to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndsError {
    /// An end has no figure.
    #[error("an end was not measured")]
    NotMeasured,
    /// The ends are too near.
    #[error(
        "the bad end ({bad_ns} ns) is not later than the good end ({good_ns} ns) by more than the noise floor ({floor_ns} ns, what an option that means nothing changes): there is no culprit to search for in this measure"
    )]
    NotWorse {
        /// The latest of the good side.
        good_ns: i64,
        /// The earliest of the bad side.
        bad_ns: i64,
        /// The floor.
        floor_ns: i64,
    },
    /// The good end is bad by the limit that was given.
    #[error("the good end is later ({good_ns} ns) than the limit ({limit_ns} ns): it is not good")]
    GoodIsBad {
        /// Of the good end.
        good_ns: i64,
        /// The limit.
        limit_ns: i64,
    },
    /// The bad end is good by the limit that was given.
    #[error("the bad end ({bad_ns} ns) is within the limit ({limit_ns} ns): it is not bad")]
    BadIsGood {
        /// Of the bad end.
        bad_ns: i64,
        /// The limit.
        limit_ns: i64,
    },
}

fn spread(all: &[i64]) -> i64 {
    let first = all.first().copied().unwrap_or_default();
    all.iter().map(|v| v.saturating_sub(first).saturating_abs()).max().unwrap_or(0)
}

impl Ends {
    /// The limit: the one that is asked for, else in the middle between the two ends.
    ///
    /// # Errors
    /// The ends are not what they are called.
    pub fn limit(&self, asked: Option<i64>) -> Result<Limit, EndsError> {
        let good_ns = *self.good_ns.iter().max().ok_or(EndsError::NotMeasured)?;
        let bad_ns = *self.bad_ns.iter().min().ok_or(EndsError::NotMeasured)?;
        let controlled = self.good_ns.len() + self.bad_ns.len() > 2;
        let floor = spread(&self.good_ns).max(spread(&self.bad_ns));
        let floor_ns = controlled.then_some(floor);
        if let Some(limit_ns) = asked {
            if good_ns > limit_ns {
                return Err(EndsError::GoodIsBad { good_ns, limit_ns });
            }
            if bad_ns <= limit_ns {
                return Err(EndsError::BadIsGood { bad_ns, limit_ns });
            }
            return Ok(Limit { limit_ns, floor_ns, good_ns, bad_ns });
        }
        if bad_ns.saturating_sub(good_ns) <= floor {
            return Err(EndsError::NotWorse { good_ns, bad_ns, floor_ns: floor });
        }
        let limit_ns = good_ns + (bad_ns - good_ns) / 2;
        Ok(Limit { limit_ns, floor_ns, good_ns, bad_ns })
    }
}

impl Limit {
    /// Is this value bad?
    #[must_use]
    pub fn is_bad(&self, value_ns: i64) -> bool {
        value_ns > self.limit_ns
    }

    /// Is it so near to the limit that a change without meaning could move it over?
    #[must_use]
    pub fn is_near(&self, value_ns: i64) -> bool {
        let away = value_ns.saturating_sub(self.limit_ns).saturating_abs();
        self.floor_ns.is_some_and(|floor| away <= floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(good: &[i64], bad: &[i64]) -> Ends {
        Ends { good_ns: good.to_vec(), bad_ns: bad.to_vec() }
    }

    #[test]
    fn the_limit_lies_between_the_ends_and_the_floor_is_what_controls_moved() {
        let limit = ends(&[100, 110], &[300, 290]).limit(None).unwrap();
        assert_eq!((limit.limit_ns, limit.floor_ns), (200, Some(10)));
        assert!(limit.is_bad(201) && !limit.is_bad(200));
        assert!(limit.is_near(205) && !limit.is_near(211));
        assert_eq!(ends(&[100], &[300]).limit(None).unwrap().floor_ns, None);
    }

    #[test]
    fn ends_that_are_not_what_they_are_called_are_refused() {
        for (good, bad) in
            [(vec![100, 130], vec![150, 155]), (vec![100], vec![100]), (vec![9], vec![4])]
        {
            let refused = ends(&good, &bad).limit(None).unwrap_err();
            assert!(matches!(refused, EndsError::NotWorse { .. }), "{refused}");
            assert!(refused.to_string().contains("noise floor"));
        }
        assert_eq!(ends(&[], &[1]).limit(None), Err(EndsError::NotMeasured));
    }

    #[test]
    fn a_limit_that_is_given_is_held_against_both_ends() {
        assert_eq!(ends(&[100], &[300]).limit(Some(150)).unwrap().limit_ns, 150);
        let e = ends(&[100], &[300]).limit(Some(90)).unwrap_err();
        assert!(matches!(e, EndsError::GoodIsBad { .. }));
        let e = ends(&[100], &[300]).limit(Some(300)).unwrap_err();
        assert!(matches!(e, EndsError::BadIsGood { .. }));
    }
}
