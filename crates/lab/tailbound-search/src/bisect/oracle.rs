// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is asked, and what can be answered.

/// What came of one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As early as the good end.
    Good,
    /// As late as the bad end.
    Bad,
    /// It cannot be told: it was not built, or did not boot.
    Skip,
}

/// Answers questions of one kind: a position in an order, or a set of changes.
pub trait Oracle<Q> {
    /// Why it stopped to answer.
    type Error;

    /// Answers all of them, in their order.
    ///
    /// # Errors
    /// It was interrupted, or something is wrong that no other question would mend.
    fn ask(&mut self, questions: &[Q]) -> Result<Vec<Answer>, Self::Error>;

    /// How many questions it answers in the time of one.
    fn at_once(&self) -> usize {
        1
    }
}
