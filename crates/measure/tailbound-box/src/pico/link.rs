// SPDX-License-Identifier: MIT OR Apache-2.0
//! One question at a time over a line that may lose and damage bytes: asked again until it is answered.
//!
//! Units: ns. A question may be answered twice where it was asked twice; all questions but `AskLoopBack` may be.

use tailbound_wire::{BoxFault, Decoder, FRAME_MAX, Frame, Message, SampleBatch};

use crate::stimulus::LinkLosses;

/// After so long without an answer a question is asked again.
pub(crate) const ANSWER_NS: i64 = 500_000_000;

/// So often it is asked before the box is silent.
const ATTEMPTS: u32 = 6;

/// What a byte of the box came to.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The answer to the question.
    Answer(Message),
    /// The box does not do what the question asks.
    Refused(BoxFault),
    /// Unasked: samples.
    Samples(SampleBatch),
    /// Unasked: the schedule slipped.
    Slipped,
}

struct Question {
    message: Message,
    asked_ns: i64,
    attempts: u32,
}

/// The line to a box.
pub(crate) struct Link {
    decoder: Decoder,
    sequence: u16,
    outgoing: Vec<u8>,
    question: Option<Question>,
    last_sequence: Option<u16>,
    repeated: u64,
    asked_again: u64,
    /// Bytes that came.
    pub(crate) bytes: u64,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            sequence: 0,
            outgoing: Vec::new(),
            question: None,
            last_sequence: None,
            repeated: 0,
            asked_again: 0,
            bytes: 0,
        }
    }

    /// Bytes for the box.
    pub(crate) fn outgoing(&self) -> &[u8] {
        &self.outgoing
    }

    /// So many of them went.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.outgoing.drain(..bytes.min(self.outgoing.len()));
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.question.is_some()
    }

    /// Asks; a question that was open is not waited for any more.
    pub(crate) fn ask(&mut self, message: Message, now_ns: i64) {
        self.write(&message);
        self.question = Some(Question { message, asked_ns: now_ns, attempts: 1 });
    }

    fn write(&mut self, message: &Message) {
        let mut frame = [0; FRAME_MAX];
        // A frame that no buffer can be too short for.
        let length = message.encode(self.sequence, &mut frame).unwrap_or(0);
        self.outgoing.extend_from_slice(frame.get(..length).unwrap_or_default());
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// When time matters next.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        self.question.as_ref().map(|q| q.asked_ns.saturating_add(ANSWER_NS))
    }

    /// Time passes: asks again. `false`: the box is silent.
    pub(crate) fn at(&mut self, now_ns: i64) -> bool {
        let Some(question) = &mut self.question else { return true };
        if now_ns.saturating_sub(question.asked_ns) < ANSWER_NS {
            return true;
        }
        if question.attempts >= ATTEMPTS {
            return false;
        }
        question.attempts += 1;
        question.asked_ns = now_ns;
        let message = question.message;
        self.asked_again += 1;
        self.write(&message);
        true
    }

    /// How often the open question was asked.
    fn attempts(&self) -> u32 {
        self.question.as_ref().map_or(0, |q| q.attempts)
    }

    /// A byte from the box.
    pub(crate) fn take(&mut self, byte: u8) -> Option<Heard> {
        self.bytes += 1;
        let Frame { kind, sequence, payload } = self.decoder.take(byte)?;
        let message = Message::decode(kind, payload).ok()?;
        if self.last_sequence.replace(sequence) == Some(sequence) {
            self.repeated += 1;
            return None;
        }
        match message {
            Message::Samples(batch) => return Some(Heard::Samples(batch)),
            Message::Fault(0, BoxFault::Slipped) => return Some(Heard::Slipped),
            _ => {}
        }
        let question = self.question.as_ref()?.message;
        if let Message::Fault(kind, fault) = message
            && kind == question.kind()
        {
            let attempts = self.attempts();
            self.question = None;
            // Of a question that was asked twice the first was followed.
            let is_done =
                attempts > 1 && question == Message::Start && fault == BoxFault::Measuring;
            return Some(if is_done {
                Heard::Answer(Message::Done(kind))
            } else {
                Heard::Refused(fault)
            });
        }
        is_answer(&question, &message).then(|| {
            self.question = None;
            Heard::Answer(message)
        })
    }

    /// What was lost on the line until now.
    pub(crate) fn losses(&self) -> LinkLosses {
        let losses = self.decoder.losses();
        LinkLosses {
            damaged: losses.damaged,
            foreign: losses.foreign,
            missing: losses.missing,
            repeated: self.repeated,
            asked_again: self.asked_again,
        }
    }
}

/// Whether this message answers the question. One that does not was to an earlier question that was asked twice.
fn is_answer(question: &Message, message: &Message) -> bool {
    match (question, message) {
        (Message::AskHello, Message::Hello(_)) => true,
        (Message::AskCounters(channel), Message::Counters(of, _)) => channel == of,
        (Message::AskCells(part), Message::Cells(cells)) => *part == cells.piece,
        (Message::AskWorst(part), Message::Worst(worst)) => {
            (part.channel, part.first) == (worst.channel, worst.first)
        }
        (Message::AskLoopBack(channel), Message::LoopBack(read)) => *channel == read.channel,
        (_, Message::Done(kind)) => *kind == question.kind(),
        _ => false,
    }
}
