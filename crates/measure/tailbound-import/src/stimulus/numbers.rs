// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which numbers the longest pulses of a source have for who answers them.

use tailbound_box::stimulus::{StimulusChannel, StimulusEnd, StimulusRecord, StimulusShape};
use tailbound_core::pulses::{DatagramNumbers, SentPulses};

/// Of each channel whose pulses are known one by one, where the source was read to its end.
pub(super) fn of(record: &StimulusRecord) -> Vec<SentPulses> {
    if !matches!(record.end, StimulusEnd::Whole | StimulusEnd::Stopped) {
        return Vec::new();
    }
    let known = record.channels.iter().filter(|channel| !channel.worst.is_empty());
    known.map(|channel| sent(channel, record.schedule.shape)).collect()
}

fn sent(channel: &StimulusChannel, shape: StimulusShape) -> SentPulses {
    let n = channel.counters.sent;
    let datagrams = channel.numbers.map(|numbers| DatagramNumbers {
        sender: format!("{:016x}", numbers.sender),
        first: numbers.first,
        token: numbers.token,
    });
    // The line rests low: where the last pulse went up, an edge down follows when the source stops.
    let back = match shape {
        StimulusShape::Toggle => n % 2,
        StimulusShape::Pulse => 0,
    };
    let edges = datagrams.is_none().then(|| n.saturating_add(back));
    SentPulses { thread: channel.number.into(), n, edges, datagrams }
}
