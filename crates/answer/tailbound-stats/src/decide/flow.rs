// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decision flow: six questions in a fixed order, each answered from measurement, by the
//! user, or not at all, and where they lead.
//!
//! An unknown answer is passed over as if it were no, and stays in what would
//! change the recommendation.
//! Source: figure 5 of McKenney 2008 and the text around it.

use serde::Serialize;

/// An answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowAnswer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Neither measured nor told.
    #[default]
    Unknown,
}

/// An answer and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnswerEvidence {
    /// The answer.
    pub answer: FlowAnswer,
    /// From what: a measurement with its value, or who said so.
    pub from: String,
}

impl AnswerEvidence {
    /// An answer from `from`.
    #[must_use]
    pub fn new(answer: FlowAnswer, from: impl Into<String>) -> Self {
        Self { answer, from: from.into() }
    }
}

/// The answers to all questions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// Does only throughput matter?
    pub throughput_only: AnswerEvidence,
    /// Is utilisation forced to be high?
    pub utilisation_high: AnswerEvidence,
    /// Do all tasks wait for the last one, as at a barrier?
    pub barriers: AnswerEvidence,
    /// Is memory full?
    pub memory_full: AnswerEvidence,
    /// Does the system run as a guest?
    pub virtualised: AnswerEvidence,
    /// Do work items last hundreds of ms?
    pub long_items: AnswerEvidence,
}

/// Where the flow ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// Real fast.
    RealFast,
    /// Real fast, most likely: measure.
    ProbablyRealFast,
    /// Either may win: measure both on the whole computation.
    Both,
    /// Real time.
    RealTime,
}

impl Advice {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::RealFast => "real fast",
            Self::ProbablyRealFast => "probably real fast",
            Self::Both => "try both",
            Self::RealTime => "real time",
        }
    }
}

/// A question of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Stable name.
    pub id: &'static str,
    /// As it is asked.
    pub text: &'static str,
    /// Where yes leads.
    pub yes: Advice,
    /// Why yes leads there.
    pub because: &'static str,
}

/// The questions in their order. Barriers are asked where utilisation is high.
pub const QUESTIONS: [Question; 6] = [
    Question {
        id: "throughput-only",
        text: "Does only throughput matter?",
        yes: Advice::RealFast,
        because: "Nobody waits for a single response: what bounds latency costs throughput and gives nothing back.",
    },
    Question {
        id: "utilisation-high",
        text: "Is utilisation forced to be high?",
        yes: Advice::RealFast,
        because: "On a processor that is always busy the queue decides how long a response takes, and a slower system makes the queue longer.",
    },
    Question {
        id: "barriers",
        text: "Do all tasks wait for the last one (barriers)?",
        yes: Advice::Both,
        because: "A step lasts as long as its latest task: less jitter may be worth more than throughput.",
    },
    Question {
        id: "memory-full",
        text: "Is memory full?",
        yes: Advice::RealFast,
        because: "Real-time programs lock their memory, and what swaps or reclaims has no bound to keep.",
    },
    Question {
        id: "virtualised",
        text: "Does it run as a guest of a hypervisor?",
        yes: Advice::ProbablyRealFast,
        because: "The host takes processors away for as long as it likes: the guest's kernel cannot bound that.",
    },
    Question {
        id: "long-items",
        text: "Do work items last hundreds of milliseconds?",
        yes: Advice::RealFast,
        because: "Of so long a response the start latency is a small part, and the work itself is done sooner.",
    },
];

/// One question on the way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Which question.
    pub id: &'static str,
    /// As it is asked.
    pub question: &'static str,
    /// The answer and its source.
    pub known: AnswerEvidence,
    /// Was it come to?
    pub taken: bool,
    /// Where its answer ended the way.
    pub ends_in: Option<Advice>,
}

/// The way through the flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    /// Every question, in order.
    pub steps: Vec<Step>,
    /// Where it ended.
    pub advice: Advice,
    /// Why.
    pub because: String,
    /// Did it depend on a missing answer?
    pub certain: bool,
    /// What would change it, a sentence each.
    pub would_change: Vec<String>,
}

impl Answers {
    fn of(&self, id: &str) -> &AnswerEvidence {
        match id {
            "throughput-only" => &self.throughput_only,
            "utilisation-high" => &self.utilisation_high,
            "barriers" => &self.barriers,
            "memory-full" => &self.memory_full,
            "virtualised" => &self.virtualised,
            _ => &self.long_items,
        }
    }
}

/// Goes through the questions.
#[must_use]
pub fn walk(answers: &Answers) -> Path {
    let mut steps: Vec<Step> = Vec::new();
    let mut end: Option<(Advice, &'static str)> = None;
    let mut would_change = Vec::new();
    let mut certain = true;
    let high = answers.utilisation_high.answer == FlowAnswer::Yes;
    for q in &QUESTIONS {
        let known = answers.of(q.id).clone();
        // Barriers are the exception of high utilisation, and nothing else.
        let relevant = q.id != "barriers" || high;
        let taken = end.is_none() && relevant;
        let mut ends_in = None;
        if taken {
            ends_in = match (q.id, known.answer) {
                ("utilisation-high", FlowAnswer::Yes) => None,
                ("barriers", FlowAnswer::No | FlowAnswer::Unknown) => Some(Advice::RealFast),
                (_, FlowAnswer::Yes) => Some(q.yes),
                _ => None,
            };
            if known.answer == FlowAnswer::Unknown {
                certain = false;
                would_change.push(format!("{} Not answered; if yes: {}.", q.text, q.yes.words()));
            }
        }
        if let Some(advice) = ends_in {
            let because = if q.id == "barriers" && advice == Advice::RealFast {
                QUESTIONS.iter().find(|q| q.id == "utilisation-high").map_or("", |q| q.because)
            } else {
                q.because
            };
            end = Some((advice, because));
            would_change.push(turned(q, known.answer));
        }
        steps.push(Step { id: q.id, question: q.text, known, taken, ends_in });
    }
    let (advice, because) = end.unwrap_or((
        Advice::RealTime,
        "No answer speaks against it: responses are short enough that their start decides, and nothing keeps the real-time system from bounding it. Measure it under one's own load.",
    ));
    would_change.retain(|w| !w.is_empty());
    Path { steps, advice, because: because.to_owned(), certain, would_change }
}

/// What the answer that ended the way would have to be instead.
fn turned(q: &Question, answer: FlowAnswer) -> String {
    match (q.id, answer) {
        ("barriers", FlowAnswer::Unknown) => String::new(),
        ("barriers", FlowAnswer::No) => {
            "Were the tasks waiting for each other at barriers: try both.".to_owned()
        }
        _ => format!("{} Were the answer no, the questions after it would decide.", q.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(edit: impl FnOnce(&mut Answers)) -> Path {
        let no = AnswerEvidence::new(FlowAnswer::No, "test");
        let mut answers = Answers {
            throughput_only: no.clone(),
            utilisation_high: no.clone(),
            barriers: no.clone(),
            memory_full: no.clone(),
            virtualised: no.clone(),
            long_items: no,
        };
        edit(&mut answers);
        walk(&answers)
    }

    #[test]
    fn every_end_of_the_figure_is_reached() {
        let yes = || AnswerEvidence::new(FlowAnswer::Yes, "test");
        assert_eq!(path_of(|_| ()).advice, Advice::RealTime);
        assert!(path_of(|_| ()).certain);
        assert_eq!(path_of(|a| a.throughput_only = yes()).advice, Advice::RealFast);
        assert_eq!(path_of(|a| a.utilisation_high = yes()).advice, Advice::RealFast);
        let both = path_of(|a| (a.utilisation_high, a.barriers) = (yes(), yes()));
        assert_eq!(both.advice, Advice::Both);
        assert_eq!(
            path_of(|a| a.barriers = yes()).advice,
            Advice::RealTime,
            "only with utilisation"
        );
        assert_eq!(path_of(|a| a.memory_full = yes()).advice, Advice::RealFast);
        assert_eq!(path_of(|a| a.virtualised = yes()).advice, Advice::ProbablyRealFast);
        assert_eq!(path_of(|a| a.long_items = yes()).advice, Advice::RealFast);
    }

    #[test]
    fn what_nobody_said_stays_in_the_recommendation() {
        let path = path_of(|a| a.memory_full = AnswerEvidence::default());
        assert_eq!((path.advice, path.certain), (Advice::RealTime, false));
        assert!(path.would_change.iter().any(|w| w.contains("memory") && w.contains("real fast")));
        let path = walk(&Answers::default());
        assert_eq!(path.would_change.len(), 5, "{:?}", path.would_change);
    }
}
