// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no answer, by who can mend it: what an exit status is made from.
//!
//! Not here: the exit status of an answer (`verdict`).

/// Who can mend a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The person who typed it: wrong words, or files that are not what they should be.
    Usage,
    /// Not this user on this machine.
    Cannot,
    /// The authors.
    Bug,
    /// Nobody has to: a signal, or an end too soon, came before there was an answer.
    CutOff,
}

impl FailureKind {
    /// The exit status for scripts.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Cannot => 3,
            Self::Bug => 4,
            Self::CutOff => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    #[test]
    fn exit_statuses_keep_their_meaning() {
        let answers =
            [Outcome::Measured, Outcome::Met, Outcome::NotMet, Outcome::Unfit, Outcome::Undecided];
        assert_eq!(answers.map(|a| a.exit_status()), [0, 0, 1, 3, 5]);
        let failures =
            [FailureKind::Usage, FailureKind::Cannot, FailureKind::Bug, FailureKind::CutOff];
        assert_eq!(failures.map(FailureKind::exit_status), [2, 3, 4, 5]);
    }
}
