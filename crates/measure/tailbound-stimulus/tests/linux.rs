// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine as the source of pulses, to a socket that answers as the test says: which pulse has which answer.
//!
//! How fast this machine is decides nothing here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tailbound_box::TimeBase;
use tailbound_box::stimulus::{
    SourceLimit, StimulusEnd, StimulusPlan, StimulusProgress, StimulusReaction, StimulusRecord,
    StimulusSample, StimulusShape, StimulusSink, StimulusSpacing,
};
use tailbound_core::Policy;
use tailbound_rt::answer::datagram::{AnswerPacket, PulsePacket};
use tailbound_stimulus::{LinuxSender, StimulusError};
use tailbound_sys::netns;

/// What is sent back for a pulse: so many answers.
type Answers = fn(u64) -> u64;

/// A machine that answers until it is dropped.
struct Answerer {
    at: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Answerer {
    /// Pulses get as many answers as `answers` says of their numbers, which count those of the warm-up too.
    fn at(address: Ipv4Addr, answers: Answers) -> Self {
        let socket = UdpSocket::bind((address, 0)).unwrap();
        let at = socket.local_addr().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                let mut bytes = [0; 100];
                let Ok((n, from)) = socket.recv_from(&mut bytes) else { continue };
                let Some(pulse) = bytes.get(..n).and_then(PulsePacket::read) else { continue };
                let n = answers(pulse.number);
                for _ in 0..n {
                    let answer = AnswerPacket { pulse, arrived_ns: 0, ran_ns: 0 };
                    socket.send_to(&answer.bytes(), from).unwrap();
                }
            }
        });
        Self { at, ends, thread: Some(thread) }
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

#[derive(Default)]
struct Kept {
    samples: Vec<StimulusSample>,
    looks: u64,
    copies: Vec<StimulusRecord>,
    /// Ends the measurement when so many came.
    enough: Option<(usize, Arc<AtomicBool>)>,
}

impl StimulusSink for Kept {
    fn begin(&mut self, tick: TimeBase, channels: u8) {
        assert_eq!((tick, channels), (TimeBase::NANOSECOND, 1));
    }
    fn sample(&mut self, channel: u8, sample: StimulusSample) {
        assert_eq!(channel, 0);
        self.samples.push(sample);
        if let Some((n, stop)) = &self.enough
            && self.samples.len() >= *n
        {
            stop.store(true, Ordering::Relaxed);
        }
    }
    fn progress(&mut self, _: &StimulusProgress) {
        self.looks += 1;
    }
    fn so_far(&mut self, record: &StimulusRecord) {
        self.copies.push(record.clone());
    }
}

fn sender(to: String) -> LinuxSender {
    // Longer than any stall of this machine: what is not answered was not sent an answer.
    LinuxSender { to, policy: Policy::Other, cpu: None, patience_ns: 3_000_000_000 }
}

fn plan(pulses: i64) -> StimulusPlan {
    StimulusPlan {
        period_ns: 2_000_000,
        duration_ns: pulses * 2_000_000,
        channels: 1,
        shape: StimulusShape::Pulse,
        spacing: StimulusSpacing::Even,
        deadline_ns: None,
    }
}

fn measured(to: String, plan: &StimulusPlan, kept: &mut Kept) -> StimulusRecord {
    let stop = kept.enough.as_ref().map(|(_, stop)| Arc::clone(stop)).unwrap_or_default();
    sender(to).measure(plan, kept, &stop).unwrap()
}

fn says(record: &StimulusRecord, words: &str) -> bool {
    record.limits.iter().any(|limit| match limit {
        SourceLimit::Stated(sentence) => sentence.contains(words),
        _ => false,
    })
}

/// Every sample came in its order, and one of ten has no answer; the first of these.
fn is_every_tenth_lost(kept: &Kept, sent: u64) -> u64 {
    assert!(kept.samples.iter().map(|s| s.number).eq(0..sent));
    let is_lost = |s: &&StimulusSample| matches!(s.reaction, StimulusReaction::AtLeast(_));
    let first = kept.samples.iter().find(is_lost).map_or(0, |s| s.number);
    assert!(first < 10);
    for sample in &kept.samples {
        assert_eq!(is_lost(&sample), sample.number % 10 == first, "{sample:?}");
    }
    first
}

#[test]
fn a_copy_on_the_way_is_a_run_of_what_was_known_by_then() {
    let answerer = Answerer::at(Ipv4Addr::LOCALHOST, |_| 1);
    let mut kept = Kept::default();
    let record = measured(answerer.at.to_string(), &plan(700), &mut kept);
    assert_eq!(record.end, StimulusEnd::Whole);
    let copy = kept.copies.first().expect("one after a second");
    assert_eq!(copy.end, StimulusEnd::Unfinished);
    let (channel, whole) = (&copy.channels[0], &record.channels[0]);
    let (c, all) = (channel.counters, whole.counters);
    assert!(0 < c.sent && c.sent <= all.sent, "{c:?}");
    assert_eq!(c.sent, c.answered + c.unanswered + c.unknown, "each has what became of it");
    assert_eq!(channel.streamed.as_ref().map(|a| a.came), Some(c.sent - channel.lost));
    assert!(copy.schedule.elapsed_ticks < record.schedule.planned_ticks);
    assert_eq!(channel.numbers, whole.numbers, "its pulses have their numbers");
    assert!(says(copy, "only at the end"), "{:?}", copy.limits);
}

#[test]
fn loss_and_doubles_are_told_by_number() {
    let answerer = Answerer::at(Ipv4Addr::LOCALHOST, |number| match number % 10 {
        3 => 0,
        5 => 3,
        _ => 1,
    });
    let mut kept = Kept::default();
    let record = measured(answerer.at.to_string(), &plan(500), &mut kept);
    assert_eq!(record.end, StimulusEnd::Whole);
    let [channel] = record.channels.as_slice() else { panic!("one channel") };
    let c = channel.counters;
    // What this machine was late for is left out, and has no number.
    assert_eq!(c.sent + c.skipped.unwrap(), 500);
    let first = is_every_tenth_lost(&kept, c.sent);
    let of = |digit: u64| (0..c.sent).filter(|n| (n + 10 - first) % 10 == digit).count() as u64;
    assert_eq!((c.unanswered, c.answered), (of(0), c.sent - of(0)));
    let doubled = of(2);
    assert_eq!((c.twice, c.stray), (Some(2 * doubled), Some(0)));
    assert_eq!((channel.lost, channel.cells.answered.len()), (0, 0), "the sink had them all");
    let known = |s: &StimulusSample| s.reaction.ticks().unwrap();
    assert_eq!(channel.worst.first().map(known), kept.samples.iter().map(known).max());
    assert!(channel.worst.is_sorted_by_key(|s| std::cmp::Reverse(known(s))));
    assert!(says(&record, &format!("{} answers came to a pulse that had one.", 2 * doubled)));
    assert!(says(&record, "by the kernel's, in software"));
}

#[test]
fn the_senders_own_error_is_measured_and_stated() {
    let answerer = Answerer::at(Ipv4Addr::LOCALHOST, |_| 1);
    let mut kept = Kept::default();
    let record = measured(answerer.at.to_string(), &plan(20), &mut kept);
    let own = record.limits.iter().find_map(|limit| match limit {
        SourceLimit::OwnError { less_ns, basis, .. } => Some((*less_ns, basis)),
        _ => None,
    });
    match own {
        Some((less_ns, basis)) => {
            assert!(less_ns > 0 && basis.contains("that this machine sent to itself"), "{basis}");
        }
        None => assert!(says(&record, "own error is unknown")),
    }
}

#[test]
fn it_can_be_stopped_and_what_was_measured_is_kept() {
    let answerer = Answerer::at(Ipv4Addr::LOCALHOST, |_| 1);
    let enough = Some((30, Arc::new(AtomicBool::new(false))));
    let mut kept = Kept { enough, ..Kept::default() };
    let record = measured(answerer.at.to_string(), &plan(1_000_000), &mut kept);
    assert_eq!(record.end, StimulusEnd::Stopped);
    let counters = record.channels.first().unwrap().counters;
    assert!(counters.sent >= 30 && counters.sent < 1_000_000);
    assert_eq!(counters.answered, counters.sent);
    assert_eq!(kept.samples.len() as u64, counters.sent);
}

#[test]
fn nobody_there_is_no_answer_and_no_end() {
    let gone = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let mut kept = Kept::default();
    let record = measured(gone.to_string(), &plan(20), &mut kept);
    assert_eq!(record.end, StimulusEnd::Whole);
    let c = record.channels.first().unwrap().counters;
    assert_eq!((c.answered, c.unanswered), (0, c.sent));
    assert!(says(&record, "the network said that nobody listens there"));
}

#[test]
fn another_machine_is_measured() {
    let done = std::thread::spawn(|| {
        let ends = [Ipv4Addr::new(10, 7, 1, 1), Ipv4Addr::new(10, 7, 1, 2)];
        let pair = match netns::veth_pair(ends) {
            Ok(pair) => pair,
            Err(e) => return tailbound_testing::skip("root", e),
        };
        netns::enter(pair.namespaces[0].as_fd()).unwrap();
        let answerer = Answerer::at(Ipv4Addr::UNSPECIFIED, |number| u64::from(number % 10 != 3));
        netns::enter(pair.namespaces[1].as_fd()).unwrap();
        let mut kept = Kept::default();
        let random = StimulusPlan { spacing: StimulusSpacing::Random(5), ..plan(300) };
        let to = format!("10.7.1.1:{}", answerer.at.port());
        let record = measured(to, &random, &mut kept);
        let c = record.channels.first().unwrap().counters;
        is_every_tenth_lost(&kept, c.sent);
        assert_eq!((c.unanswered + c.answered, c.twice, c.stray), (c.sent, Some(0), Some(0)));
    });
    done.join().unwrap();
}

#[test]
fn what_cannot_be_sent_is_refused_before_anything_is() {
    let mut kept = Kept::default();
    let stop = AtomicBool::new(false);
    let here = "127.0.0.1:9".to_owned();
    let short = StimulusPlan { period_ns: 1_000, ..plan(10) };
    let two = StimulusPlan { channels: 2, ..plan(10) };
    let patient = StimulusPlan { deadline_ns: Some(4_000_000_000), ..plan(10) };
    for (to, plan, words) in [
        (&here, short, "less than 20us"),
        (&here, two, "one"),
        (&here, patient, "shorter than the deadline"),
        (&here, plan(0), "shorter than one interval"),
        (&"127.0.0.1".to_owned(), plan(10), "its port"),
    ] {
        let refused = sender(to.clone()).measure(&plan, &mut kept, &stop);
        let error: StimulusError = refused.expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!((kept.samples.len(), kept.looks), (0, 0));
}
