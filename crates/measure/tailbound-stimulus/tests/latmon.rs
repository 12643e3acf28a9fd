// SPDX-License-Identifier: MIT OR Apache-2.0
//! latmon over loopback: our client with a box that the test plays, our box with a client that it plays, and both
//! with each other over samples that are made up.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tailbound_box::stimulus::{
    SourceLimit, StimulusEnd, StimulusPlan, StimulusProgress, StimulusReaction, StimulusRecord,
    StimulusSample, StimulusShape, StimulusSink, StimulusSpacing,
};
use tailbound_box::{
    LATMON_CELLS_MAX, LatmonCounting, LatmonRequest, LatmonSecond, LatmonSpan, TimeBase,
};
use tailbound_core::{Impact, Run};
use tailbound_import::stimulus::{RunFacts, StimulusRecorder};
use tailbound_stimulus::{LatmonHost, LatmonServer, PulseSource, ServedEnd, StimulusError};

fn plan(duration_ms: i64) -> StimulusPlan {
    StimulusPlan {
        period_ns: 1_000_000,
        duration_ns: duration_ms * 1_000_000,
        channels: 1,
        shape: StimulusShape::Pulse,
        spacing: StimulusSpacing::Even,
        deadline_ns: None,
    }
}

#[derive(Default)]
struct Kept {
    progress: Vec<StimulusProgress>,
    stop: Option<Arc<AtomicBool>>,
    copies: Vec<StimulusRecord>,
}

impl StimulusSink for Kept {
    fn begin(&mut self, tick: TimeBase, channels: u8) {
        assert_eq!((tick, channels), (TimeBase::NANOSECOND, 1));
    }
    fn sample(&mut self, _: u8, _: StimulusSample) {
        panic!("latmon streams no samples");
    }
    fn progress(&mut self, now: &StimulusProgress) {
        self.progress.push(*now);
        if let Some(stop) = &self.stop {
            stop.store(true, Ordering::Relaxed);
        }
    }
    fn so_far(&mut self, record: &StimulusRecord) {
        self.copies.push(record.clone());
    }
}

fn host(at: SocketAddr) -> LatmonHost {
    LatmonHost::read(&at.to_string()).unwrap()
}

/// A box whose part the test plays.
fn played(
    play: impl FnOnce(TcpStream) + Send + 'static,
) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    (at, std::thread::spawn(move || play(listener.accept().unwrap().0)))
}

fn asked(stream: &mut TcpStream) -> [u8; 8] {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

fn second(samples: u32, overruns: u32) -> LatmonSecond {
    let sum_ns = u64::from(samples) * 20_000;
    LatmonSecond { sum_ns, min_ns: 20_000, max_ns: 20_000, overruns, samples }
}

fn cells(of: &[(usize, u32)]) -> Vec<u8> {
    let mut cells = vec![0u32; LATMON_CELLS_MAX as usize];
    of.iter().for_each(|(cell, n)| cells[*cell] = *n);
    cells.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// Its limits forbid "met"; a deadline is judged by each sample that is later.
fn never_met(record: &StimulusRecord) -> Run {
    let facts = RunFacts { deadline_ns: Some(1_000), ..RunFacts::default() };
    let run = StimulusRecorder::new(|_| {}).finish(record, &facts).unwrap();
    for id in ["source-gives-up", "source-waits"] {
        let finding = run.findings.iter().find(|f| f.id == id).unwrap();
        assert_eq!(finding.impact, Impact::Doubt, "{id}");
    }
    assert!(record.limits.contains(&SourceLimit::GivesUp { after_ticks: 1_000_000 }));
    assert!(record.limits.contains(&SourceLimit::WaitsForAnswer));
    run
}

#[test]
fn a_box_is_asked_and_its_frames_and_cells_are_the_record() {
    let (at, there) = played(|mut stream| {
        // 1000 µs, 1000 cells.
        assert_eq!(asked(&mut stream), [0, 0, 3, 0xe8, 0, 0, 3, 0xe8]);
        stream.write_all(&second(1000, 0).bytes()).unwrap();
        stream.write_all(&second(990, 10).bytes()).unwrap();
        assert_eq!(asked(&mut stream), LatmonRequest::STOP);
        stream.write_all(&second(5, 0).bytes()).unwrap();
        stream.write_all(&LatmonCounting::nothing()).unwrap();
        stream.write_all(&cells(&[(20, 1995)])).unwrap();
    });
    let mut kept = Kept::default();
    let record = host(at).measure(&plan(300), &mut kept, &AtomicBool::new(false)).unwrap();
    there.join().unwrap();
    assert_eq!(record.end, StimulusEnd::Whole);
    let run = never_met(&record);
    let due = run.threads.first().unwrap().due();
    assert_eq!((due.n, due.beyond(19_000).0, due.beyond(22_000)), (2005, 2005, (10, 0)));
    let channel = record.channels.first().unwrap();
    assert_eq!((channel.counters.answered, channel.counters.unanswered), (1995, 10));
    assert_eq!(channel.extremes, Some((20_000, 20_000)));
    assert_eq!(kept.progress.last().unwrap().counters.answered, 1995);
}

#[test]
fn a_kill_leaves_the_frames_that_came_a_while_before() {
    let (at, there) = played(|mut stream| {
        asked(&mut stream);
        stream.write_all(&second(1000, 0).bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1_200))).unwrap();
        assert!(stream.read(&mut [0; 8]).is_err(), "nothing is asked meanwhile");
        stream.write_all(&second(990, 10).bytes()).unwrap();
    });
    let mut kept = Kept::default();
    let record = host(at).measure(&plan(60_000), &mut kept, &AtomicBool::new(false)).unwrap();
    there.join().unwrap();
    assert!(matches!(record.end, StimulusEnd::Lost(_)), "{:?}", record.end);
    let [copy] = kept.copies.as_slice() else { panic!("one copy: {}", kept.copies.len()) };
    assert_eq!(copy.end, StimulusEnd::Unfinished);
    let run = never_met(copy);
    let thread = run.threads.first().unwrap();
    assert_eq!((thread.wakeup.n, thread.missed.n), (1990, 10));
}

#[test]
fn a_box_that_goes_away_leaves_what_it_said() {
    let (at, there) = played(|mut stream| {
        asked(&mut stream);
        stream.write_all(&second(1000, 3).bytes()).unwrap();
        stream.write_all(&second(1000, 0).bytes()[..10]).unwrap();
    });
    let record = host(at).measure(&plan(60_000), &mut Kept::default(), &AtomicBool::new(false));
    there.join().unwrap();
    let record = record.unwrap();
    assert!(
        matches!(&record.end, StimulusEnd::Lost(why) if why.contains("closed")),
        "{:?}",
        record.end
    );
    never_met(&record);
    let channel = record.channels.first().unwrap();
    assert_eq!(
        (channel.counters.answered, channel.lost, channel.counters.unanswered),
        (1000, 0, 3)
    );
}

#[test]
fn a_stop_asks_for_the_histogram() {
    let (at, there) = played(|mut stream| {
        asked(&mut stream);
        stream.write_all(&second(1000, 0).bytes()).unwrap();
        assert_eq!(asked(&mut stream), LatmonRequest::STOP);
        stream.write_all(&LatmonCounting::nothing()).unwrap();
        stream.write_all(&cells(&[(20, 1000)])).unwrap();
    });
    let stop = Arc::new(AtomicBool::new(false));
    let mut kept = Kept { stop: Some(Arc::clone(&stop)), ..Kept::default() };
    let record = host(at).measure(&plan(600_000), &mut kept, &stop).unwrap();
    there.join().unwrap();
    assert_eq!(record.end, StimulusEnd::Stopped);
    assert_eq!(record.channels.first().unwrap().counters.answered, 1000);
}

#[test]
fn what_is_no_latmon_is_said_to_be_none() {
    let (at, there) = played(|mut stream| {
        asked(&mut stream);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        drop(stream.read(&mut [0]));
    });
    let measured = host(at).measure(&plan(60_000), &mut Kept::default(), &AtomicBool::new(false));
    let error = measured.unwrap_err();
    assert!(matches!(error, StimulusError::Foreign { .. }), "{error}");
    there.join().unwrap();
    // The same after frames that are sound ends the measurement, and what came is kept.
    let (at, there) = played(|mut stream| {
        asked(&mut stream);
        stream.write_all(&second(7, 0).bytes()).unwrap();
        stream.write_all(&[0x55; 24]).unwrap();
        drop(stream.read(&mut [0]));
    });
    let record = host(at).measure(&plan(60_000), &mut Kept::default(), &AtomicBool::new(false));
    there.join().unwrap();
    let record = record.unwrap();
    assert!(
        matches!(&record.end, StimulusEnd::Lost(why) if why.contains("frame 2")),
        "{:?}",
        record.end
    );
    assert_eq!(record.channels.first().unwrap().counters.answered, 7);
}

#[test]
fn what_latmon_cannot_do_is_refused_before_it_is_asked() {
    let random = StimulusPlan { spacing: StimulusSpacing::Random(1), ..plan(10) };
    let long = StimulusPlan { period_ns: 2_000_000_000, ..plan(10) };
    let part = StimulusPlan { period_ns: 1_500, ..plan(10) };
    let two = StimulusPlan { channels: 2, ..plan(10) };
    let nowhere = LatmonHost { host: "127.0.0.1".to_owned(), port: 9 };
    for (plan, words) in
        [(random, "random"), (long, "2000000 µs"), (part, "whole ones"), (two, "channel")]
    {
        let refused = nowhere.measure(&plan, &mut Kept::default(), &AtomicBool::new(false));
        let error = refused.unwrap_err();
        assert!(matches!(error, StimulusError::Impossible(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// A source that gives these latencies once, in ticks of 10 ns, and then waits for its end.
struct MadeUp {
    ticks: Vec<Option<u64>>,
    given: mpsc::Sender<StimulusPlan>,
}

impl PulseSource for MadeUp {
    fn measure(
        &mut self,
        plan: &StimulusPlan,
        sink: &mut dyn StimulusSink,
        stop: &AtomicBool,
    ) -> Result<StimulusRecord, StimulusError> {
        sink.begin(TimeBase::of_hz(100_000_000).unwrap(), 1);
        for (number, ticks) in (0..).zip(&self.ticks) {
            let reaction = match ticks {
                Some(ticks) => StimulusReaction::Answered(*ticks),
                None => StimulusReaction::AtLeast(500_000),
            };
            sink.sample(0, StimulusSample { number, sent_ticks: number, reaction });
        }
        self.given.send(plan.clone()).unwrap();
        while !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let request = LatmonRequest::new(1, 0).unwrap();
        let empty = tailbound_box::LatmonClient::new(request).into_record();
        let span = LatmonSpan { elapsed_ns: 0, planned_ns: 0 };
        Ok(empty.stimulus("nowhere", span, StimulusEnd::Stopped))
    }
}

/// A box with such a source, for one client; what it reports, and when its source has given everything.
fn served(
    ticks: Vec<Option<u64>>,
) -> (
    SocketAddr,
    mpsc::Receiver<StimulusPlan>,
    std::thread::JoinHandle<tailbound_stimulus::ServedConnection>,
) {
    let server = LatmonServer::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let at = server.at();
    let (given, all) = mpsc::channel();
    let served = std::thread::spawn(move || {
        let mut source = MadeUp { ticks, given };
        server.serve(&mut source, &AtomicBool::new(false)).unwrap().unwrap()
    });
    (at, all, served)
}

#[test]
fn both_roles_over_the_network() {
    // 5 µs, 12.34 µs, 5 ms, one without an answer.
    let (at, all, served) = served(vec![Some(500), Some(1_234), Some(500_000), None]);
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let watch = std::thread::spawn(move || {
        let plan = all.recv().unwrap();
        told.store(true, Ordering::Relaxed);
        plan
    });
    let record = host(at).measure(&plan(600_000), &mut Kept::default(), &stop).unwrap();
    let asked = watch.join().unwrap();
    assert_eq!((asked.period_ns, asked.channels), (1_000_000, 1));
    assert_eq!(record.end, StimulusEnd::Stopped);
    let channel = record.channels.first().unwrap();
    // An answer later than the period: its cells cannot be used by whoever does not know who counted them.
    assert_eq!((channel.counters.answered, channel.cells.answered.len()), (3, 1));
    assert_eq!(channel.extremes, Some((5_000, 5_000_000)));
    // The latest is known, and a deadline before it is not met; of quantiles nothing is known.
    let run = never_met(&record);
    let wakeup = &run.threads.first().unwrap().wakeup;
    assert_eq!((wakeup.max_ns, wakeup.n, wakeup.unbinned), (Some(5_000_000), 3, 3));
    let report = served.join().unwrap();
    assert!(matches!(report.end, ServedEnd::Closed), "{:?}", report.end);
    assert_eq!((report.met, report.samples, report.refused), (1, 3, None));
}

#[test]
fn a_client_gets_frames_cells_and_an_answer_to_what_is_refused() {
    let (at, all, served) = served(vec![Some(500), Some(150), None]);
    let mut client = TcpStream::connect(at).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let read = |client: &mut TcpStream, n: usize| {
        let mut bytes = vec![0; n];
        client.read_exact(&mut bytes).unwrap();
        bytes
    };
    // 2000 µs, 4 cells, in two pieces; then 1,001 cells, which is refused and ends it.
    client.write_all(&[0, 0, 7]).unwrap();
    client.write_all(&[0xd0, 0, 0, 0, 4]).unwrap();
    assert_eq!(all.recv().unwrap().period_ns, 2_000_000);
    client.write_all(&[0, 0, 7, 0xd0, 0, 0, 3, 0xe9]).unwrap();
    let frame = read(&mut client, 24);
    let by_hand = [
        0, 0, 0, 0, 0, 0, 0x19, 0x64, // 6,500 ns
        0, 0, 0x05, 0xdc, 0, 0, 0x13, 0x88, // 1,500 and 5,000 ns
        0, 0, 0, 1, 0, 0, 0, 2,
    ];
    assert_eq!(frame, by_hand);
    assert_eq!(read(&mut client, 24), [0; 24]);
    // 1.5 µs, and 5 µs in the last cell.
    assert_eq!(read(&mut client, 16), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    // A stop of nothing.
    client.write_all(&LatmonRequest::STOP).unwrap();
    assert_eq!(read(&mut client, 24), [0; 24]);
    // A request that is cut.
    client.write_all(&[0, 0]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&mut client, 24), [0; 24]);
    let report = served.join().unwrap();
    assert_eq!(report.refused.as_deref(), Some("the request ends after 2 of 8 bytes"));
    assert_eq!((report.met, report.samples), (1, 2));
}

#[test]
fn a_port_in_use_is_refused_and_a_box_that_nobody_asks_can_be_stopped() {
    let server = LatmonServer::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let error = LatmonServer::listen(server.at()).map(drop).unwrap_err().to_string();
    assert!(error.contains(&server.at().to_string()) && error.contains("in use"), "{error}");
    let (given, _) = mpsc::channel();
    let mut source = MadeUp { ticks: Vec::new(), given };
    assert!(server.serve(&mut source, &AtomicBool::new(true)).unwrap().is_none());
}

#[test]
fn a_box_that_says_where_it_is_is_found() {
    let (at, there) = played(|mut stream| {
        asked(&mut stream);
        assert_eq!(asked(&mut stream), LatmonRequest::STOP);
        stream.write_all(&LatmonCounting::nothing()).unwrap();
        stream.write_all(&cells(&[])).unwrap();
    });
    let found = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&found);
    let saying = std::thread::spawn(move || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        while !told.load(Ordering::Relaxed) {
            // Nobody may listen yet.
            drop(socket.send_to(b"127.0.0.1", (Ipv4Addr::LOCALHOST, at.port())));
            std::thread::yield_now();
        }
    });
    let host = LatmonHost { host: "broadcast".to_owned(), port: at.port() };
    let record = host.measure(&plan(1), &mut Kept::default(), &AtomicBool::new(false));
    found.store(true, Ordering::Relaxed);
    saying.join().unwrap();
    there.join().unwrap();
    let record = record.unwrap();
    assert_eq!((record.origin.place, record.end), (at.to_string(), StimulusEnd::Whole));
}
