// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read of a box and in which order: counters often, cells and the worst now and then.

use std::collections::VecDeque;

use tailbound_wire::{CELLS, CELLS_MAX, ListPart, Message, Shelf, WORST, WORST_MAX};

/// One thing to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoxQuery {
    /// The counters of a channel.
    Counters(u8),
    /// A page of cells.
    Cells(ListPart),
    /// A page of the worst.
    Worst(ListPart),
    /// All pages of a channel were read.
    Commit(u8),
}

impl BoxQuery {
    /// The question that it takes.
    pub(crate) const fn question(self) -> Option<Message> {
        Some(match self {
            Self::Counters(channel) => Message::AskCounters(channel),
            Self::Cells(part) => Message::AskCells(part),
            Self::Worst(part) => Message::AskWorst(part),
            Self::Commit(_) => return None,
        })
    }
}

/// The counters of all channels.
pub(crate) fn counters(channels: u8, into: &mut VecDeque<BoxQuery>) {
    into.extend((0..channels).map(BoxQuery::Counters));
}

/// Everything else of a channel with so many unanswered pulses.
pub(crate) fn pages(channel: u8, unanswered: u64, into: &mut VecDeque<BoxQuery>) {
    let at_least = (unanswered > 0).then_some(Shelf::AtLeast);
    for shelf in [Shelf::Answered].into_iter().chain(at_least) {
        into.extend(
            firsts(CELLS, CELLS_MAX)
                .map(|first| BoxQuery::Cells(ListPart { channel, shelf, first })),
        );
    }
    into.extend(
        firsts(WORST, WORST_MAX)
            .map(|first| BoxQuery::Worst(ListPart { channel, shelf: Shelf::Answered, first })),
    );
    into.push_back(BoxQuery::Commit(channel));
}

fn firsts(all: usize, page: usize) -> impl Iterator<Item = u16> {
    (0..all).step_by(page).filter_map(|first| u16::try_from(first).ok())
}
