// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a sender measured, as the record of any outside source.
//!
//! Units: ns.

use std::net::SocketAddr;

use tailbound_box::TimeBase;
use tailbound_box::stimulus::{
    LinkLosses, SenderNumbers, SourceLimit, StimulusChannel, StimulusCounters, StimulusEnd,
    StimulusOrigin, StimulusPlan, StimulusRecord, StimulusSchedule, StimulusShape,
};
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_rt::LoopEnd;
use tailbound_rt::answer::sender::{SenderPlan, SenderTally, StampPair};

use tailbound_sys::error::SysError;

use super::own_error::OwnError;
use super::samples::SampleFeed;
use super::{LinuxSender, Phase, Shared};

/// Most that CLOCK_REALTIME is slewed, of a million.
const SLEW_PPM: u64 = 500;
/// A card's clock is known to so much of a million only where its stamps are this far apart.
const RATE_SPAN_NS: i64 = 10_000_000_000;

/// A measurement that is over.
pub(super) struct SenderReport<'a> {
    pub(super) sender: &'a LinuxSender,
    pub(super) plan: &'a StimulusPlan,
    pub(super) to: SocketAddr,
    /// What its pulses are marked with.
    pub(super) sends: SenderPlan,
    pub(super) own_error: Option<OwnError>,
    /// Whether the sender's memory was locked.
    pub(super) memory: Result<(), SysError>,
}

impl SenderReport<'_> {
    pub(super) fn record(&self, phase: &Phase, samples: SampleFeed<'_>) -> StimulusRecord {
        let Phase { ended, tally, shared } = phase;
        let token = samples.first_ns();
        let (cells, streamed, worst) = samples.finish(shared);
        let extremes = shared.answered.wakeups();
        let extremes = extremes.min_ns.zip(extremes.max_ns);
        let channel = StimulusChannel {
            counters: counters(tally, shared),
            cells,
            worst,
            extremes: extremes.map(|(least, greatest)| (ticks(least), ticks(greatest))),
            streamed: Some(streamed),
            ..self.channel(token)
        };
        let elapsed_ns = match *ended {
            LoopEnd::Complete => self.plan.duration_ns,
            LoopEnd::Stopped(n) | LoopEnd::Failed(_, n) => {
                self.plan.period_ns.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX))
            }
        };
        let end = match *ended {
            LoopEnd::Complete => StimulusEnd::Whole,
            LoopEnd::Stopped(_) => StimulusEnd::Stopped,
            LoopEnd::Failed(errno, _) => {
                StimulusEnd::Lost(std::io::Error::from_raw_os_error(errno).to_string())
            }
        };
        self.of(channel, elapsed_ns, self.limits(tally, shared), end)
    }

    /// What was measured by now, while the thread sends.
    pub(super) fn so_far(
        &self,
        shared: &Shared,
        samples: &SampleFeed<'_>,
        elapsed_ns: i64,
    ) -> StimulusRecord {
        let dropped = shared.samples.dropped();
        let (counters, streamed, worst) = samples.so_far(dropped);
        let channel = StimulusChannel {
            counters,
            lost: dropped,
            worst,
            streamed: Some(streamed),
            ..self.channel(samples.first_ns())
        };
        let stamps = "How pulses and answers were stamped, and what was sent too late, is known only at the end of a measurement.";
        let limits = vec![self.own_limit(shared), SourceLimit::Stated(stamps.to_owned())];
        self.of(channel, elapsed_ns, limits, StimulusEnd::Unfinished)
    }

    fn channel(&self, token: i64) -> StimulusChannel {
        StimulusChannel {
            name: format!("datagrams to {} and their answers", self.to),
            numbers: Some(SenderNumbers {
                sender: self.sends.sender,
                first: self.sends.first_number,
                token: token.cast_unsigned(),
            }),
            ..StimulusChannel::default()
        }
    }

    fn of(
        &self,
        channel: StimulusChannel,
        elapsed_ns: i64,
        limits: Vec<SourceLimit>,
        end: StimulusEnd,
    ) -> StimulusRecord {
        StimulusRecord {
            origin: StimulusOrigin {
                tool: "linux",
                what: "a Linux machine that sends datagrams".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                place: self.to.to_string(),
            },
            tick: TimeBase::NANOSECOND,
            resolution_ticks: 1,
            schedule: StimulusSchedule {
                period_ticks: ticks(self.plan.period_ns),
                spacing: self.plan.spacing,
                shape: StimulusShape::Pulse,
                elapsed_ticks: ticks(elapsed_ns),
                planned_ticks: ticks(self.plan.duration_ns),
            },
            channels: vec![channel],
            limits,
            link: LinkLosses::default(),
            end,
        }
    }

    fn limits(&self, tally: &SenderTally, shared: &Shared) -> Vec<SourceLimit> {
        let mut limits = vec![self.own_limit(shared)];
        limits.extend(self.sentences(tally, shared).into_iter().map(SourceLimit::Stated));
        limits
    }

    fn own_limit(&self, shared: &Shared) -> SourceLimit {
        let Some(own) = self.own_error else {
            return SourceLimit::Stated(
                "The sender's own error is unknown: the kernel did not stamp datagrams that it sent to itself.".to_owned(),
            );
        };
        let greatest = shared.answered.wakeups().max_ns.unwrap_or(0).max(0).cast_unsigned();
        // What is far beyond the deadline stays so.
        let judged = self.plan.deadline_ns.map_or(greatest, |ns| greatest.min(ns.unsigned_abs()));
        let slewed_ns = judged.saturating_mul(SLEW_PPM).div_ceil(1_000_000);
        let shown = |ns: u64| format_ns_i64(i64::try_from(ns).unwrap_or(i64::MAX));
        SourceLimit::OwnError {
            less_ns: own.greatest_ns.max(0).cast_unsigned(),
            more_ns: slewed_ns,
            basis: format!(
                "{} datagrams that this machine sent to itself took {} to {}, at {}; a clock slewed by 500 ppm makes an answer of {} look {} shorter",
                grouped(own.pulses),
                format_ns_i64(own.least_ns),
                format_ns_i64(own.greatest_ns),
                self.sender.how(),
                shown(judged),
                shown(slewed_ns),
            ),
        }
    }

    fn sentences(&self, tally: &SenderTally, shared: &Shared) -> Vec<String> {
        let SenderTally { answered, by_card, .. } = *tally;
        let lateness = shared.lateness.wakeups().max_ns.unwrap_or(0);
        let mut out = vec![
            format!(
                "Of {} answered pulses {} are timed by stamps of the card and {} by the kernel's, in software.",
                grouped(answered),
                grouped(by_card),
                grouped(answered.saturating_sub(by_card)),
            ),
            "A stamp in software is the driver's: card and wire, there and back, are in each latency, and the interrupt of the answer.".to_owned(),
            format!(
                "A pulse without an answer is given up after {}.",
                format_ns_i64(self.sender.patience_at(self.plan))
            ),
            format!(
                "Pulses were sent by a thread at {}, at most {} after they were due.",
                self.sender.how(),
                format_ns_i64(lateness)
            ),
        ];
        out.extend(rate(tally));
        if let Err(e) = &self.memory {
            out.push(format!("The sender's memory was not locked: {e}."));
        }
        let counted = [
            (tally.held, "pulses of the schedule were left out, because the sender was late"),
            (
                tally.unstamped_left,
                "pulses had no stamp of leaving: their time begins before they were sent, and is longer than it was",
            ),
            (
                tally.unstamped_answer,
                "answers had no stamp: their time ends when the thread took them, and is longer than it was",
            ),
            (
                tally.clock_set,
                "pulses are timed by the thread's clock, because CLOCK_REALTIME was set meanwhile: their time is longer than it was",
            ),
            (tally.overdue, "pulses that were given up were answered after all"),
            (tally.twice, "answers came to a pulse that had one"),
            (tally.spurious, "answers belong to no pulse that is known"),
            (tally.foreign, "arrivals were no answers to this sender"),
            (
                tally.dropped,
                "arrivals were dropped by this machine, whose queue was full: answers may be among them",
            ),
        ];
        let said = counted.into_iter().filter(|(n, _)| *n > 0);
        out.extend(said.map(|(n, what)| format!("{} {what}.", grouped(n))));
        let why = std::io::Error::from_raw_os_error(tally.errno);
        let refusals = [
            (tally.refused, "pulses were refused by this machine's kernel and not sent"),
            (tally.unreachable, "times the network said that nobody listens there"),
        ];
        let said = refusals.into_iter().filter(|(n, _)| *n > 0);
        out.extend(said.map(|(n, what)| format!("{} {what}; the last time: {why}.", grouped(n))));
        out
    }
}

fn ticks(ns: i64) -> u64 {
    ns.max(0).cast_unsigned()
}

fn counters(tally: &SenderTally, shared: &Shared) -> StimulusCounters {
    StimulusCounters {
        sent: tally.sent,
        answered: tally.answered,
        late: Some(tally.late),
        unanswered: tally.unanswered,
        twice: Some(tally.twice),
        stray: Some(tally.spurious + tally.foreign),
        skipped: Some(tally.held + tally.refused),
        edges_lost: Some(tally.dropped),
        dropped: Some(shared.samples.dropped()),
        ..StimulusCounters::default()
    }
}

/// How fast the card's clock ran; nothing where it stamped none.
fn rate(tally: &SenderTally) -> Option<String> {
    if tally.by_card == 0 {
        return None;
    }
    let pairs = tally.first_pair.zip(tally.last_pair);
    Some(match pairs.and_then(|(first, last)| rate_ppb(first, last)) {
        Some(ppb) => format!(
            "The card's clock ran {} ppb {} than CLOCK_REALTIME.",
            grouped(ppb.unsigned_abs()),
            if ppb < 0 { "slower" } else { "faster" }
        ),
        None => "How fast the card's clock ran is unknown: its stamps are less than 10 s apart."
            .to_owned(),
    })
}

fn rate_ppb(first: StampPair, last: StampPair) -> Option<i64> {
    let kernel_ns = last.kernel_ns.checked_sub(first.kernel_ns).filter(|ns| *ns >= RATE_SPAN_NS)?;
    let card_ns = last.card_ns.checked_sub(first.card_ns)?;
    let ahead_ns = i128::from(card_ns) - i128::from(kernel_ns);
    i64::try_from(ahead_ns * 1_000_000_000 / i128::from(kernel_ns)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_cards_clock_needs_time() {
        let pair = |kernel_ns, card_ns| StampPair { kernel_ns, card_ns };
        let first = pair(5_000_000_000, 77);
        assert_eq!(rate_ppb(first, pair(14_000_000_000, 9_000_000_077)), None);
        assert_eq!(rate_ppb(first, pair(25_000_000_000, 20_000_000_077)), Some(0));
        assert_eq!(rate_ppb(first, pair(25_000_000_000, 20_000_200_077)), Some(10_000));
        assert_eq!(rate_ppb(first, pair(25_000_000_000, 19_999_900_077)), Some(-5_000));
        assert_eq!(rate(&SenderTally::default()), None);
        let last = pair(25_000_000_000, 19_999_900_077);
        let tally = SenderTally {
            by_card: 1,
            first_pair: Some(first),
            last_pair: Some(last),
            ..SenderTally::default()
        };
        assert!(rate(&tally).is_some_and(|words| words.contains("5,000 ppb slower")));
    }
}
