// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers to the questions of the flow: from a person, else from what was measured.
//!
//! Units: percent.

use super::flow::{AnswerEvidence, Answers, FlowAnswer, Step, walk};
use super::measured;
use super::sides::Sides;

/// What a person said before anything was asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct GivenAnswers {
    /// Does only throughput matter?
    pub throughput_only: Option<FlowAnswer>,
    /// Do all tasks wait for the last one?
    pub barriers: Option<FlowAnswer>,
    /// Is memory full?
    pub memory_full: Option<FlowAnswer>,
    /// Does the system run as a guest?
    pub virtualised: Option<FlowAnswer>,
    /// How busy the application keeps the machine.
    pub utilisation_percent: Option<f64>,
}

impl GivenAnswers {
    /// With what the runs of `sides` tell.
    #[must_use]
    pub fn with(&self, sides: &Sides) -> Answers {
        let run = sides.runs.first();
        let given = |word: Option<FlowAnswer>, or: AnswerEvidence| {
            word.map_or(or, |answer| AnswerEvidence::new(answer, "as given"))
        };
        let of_run = |measured: fn(&tailbound_core::Run) -> AnswerEvidence| {
            run.map_or_else(AnswerEvidence::default, measured)
        };
        let throughput = sides.deadline.as_ref().map_or_else(AnswerEvidence::default, |d| {
            AnswerEvidence::new(FlowAnswer::No, format!("a deadline of {d} is required"))
        });
        Answers {
            throughput_only: given(self.throughput_only, throughput),
            utilisation_high: match self.utilisation_percent {
                Some(percent) => utilisation(percent),
                None => of_run(measured::utilisation_high),
            },
            barriers: given(self.barriers, AnswerEvidence::default()),
            memory_full: given(self.memory_full, of_run(measured::memory_full)),
            virtualised: given(self.virtualised, of_run(measured::virtualised)),
            long_items: AnswerEvidence::default(),
        }
    }
}

fn utilisation(percent: f64) -> AnswerEvidence {
    let high = if percent >= measured::HIGH_PERCENT { FlowAnswer::Yes } else { FlowAnswer::No };
    AnswerEvidence::new(high, format!("{percent} %, as given"))
}

impl Answers {
    /// The first question on the way that has no answer and is none of `asked`.
    #[must_use]
    pub fn open(&self, asked: &[&str]) -> Option<Step> {
        let is_open =
            |s: &Step| s.taken && s.known.answer == FlowAnswer::Unknown && !asked.contains(&s.id);
        walk(self).steps.into_iter().find(is_open)
    }

    /// A person answered the question called `id`.
    pub fn answer(&mut self, id: &str, answer: FlowAnswer) {
        let known = AnswerEvidence::new(answer, "as answered");
        match id {
            "throughput-only" => self.throughput_only = known,
            "utilisation-high" => self.utilisation_high = known,
            "barriers" => self.barriers = known,
            "memory-full" => self.memory_full = known,
            "virtualised" => self.virtualised = known,
            _ => self.long_items = known,
        }
    }
}
