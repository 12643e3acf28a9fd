// SPDX-License-Identifier: MIT OR Apache-2.0
//! The role of the box: clients such as latmus ask for pulses, and get what another source measures.
//!
//! Units: ns. The pulses are those of the source, of the period that the client asks for. Frames and cells have latmon's
//! layout and its limits: whole µs, 1,000 cells, the last with everything beyond. A client is served at a time.

use std::fmt;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tailbound_box::pico::Streaming;
use tailbound_box::stimulus::{
    StimulusPlan, StimulusProgress, StimulusReaction, StimulusRecord, StimulusSample,
    StimulusShape, StimulusSink, StimulusSpacing,
};
use tailbound_box::{LatmonCounting, LatmonRequest, RequestDecoder, RequestMessage, TimeBase};
use tailbound_core::units::grouped;
use tailbound_sys::ipc;
use tailbound_sys::signal::Signals;

use super::{LOOK, LOOK_MS};
use crate::stopped::is_stopped;
use crate::{StimulusError, Via};

/// latmon says where it is so often while it waits.
const BROADCAST: Duration = Duration::from_secs(5);
const SECOND: Duration = Duration::from_secs(1);
/// Longer than any client stays: it ends the pulses.
const NO_END_NS: i64 = 1 << 60;

/// What measures for a client.
pub trait PulseSource: Send {
    /// Measures as planned until `stop` is set, and gives each sample to the sink.
    ///
    /// # Errors
    /// [`StimulusError`].
    fn measure(
        &mut self,
        plan: &StimulusPlan,
        sink: &mut dyn StimulusSink,
        stop: &AtomicBool,
    ) -> Result<StimulusRecord, StimulusError>;
}

/// How a connection ended.
#[derive(Debug)]
pub enum ServedEnd {
    /// The client closed it.
    Closed,
    /// An ending signal, or the stop flag.
    Stopped,
    /// The connection is gone: why.
    Lost(String),
    /// The source measured nothing: why. A client sees a box that does not answer.
    Source(StimulusError),
}

/// What was served to a client.
#[derive(Debug)]
pub struct ServedConnection {
    /// Whose it was.
    pub client: SocketAddr,
    /// Requests that were met.
    pub met: u64,
    /// Requests that were refused: the last one's reason.
    pub refused: Option<String>,
    /// Answers that were timed for it.
    pub samples: u64,
    /// How it ended.
    pub end: ServedEnd,
}

impl fmt::Display for ServedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, met, samples, refused, end } = self;
        write!(f, "{client}: {met} requests were met with {} answers", grouped(*samples))?;
        if let Some(why) = refused {
            write!(f, "; one was refused: {why}")?;
        }
        match end {
            ServedEnd::Closed => f.write_str("; the client closed the connection"),
            ServedEnd::Stopped => f.write_str("; stopped"),
            ServedEnd::Lost(why) => write!(f, "; the connection is gone: {why}"),
            ServedEnd::Source(e) => write!(f, "; nothing was measured: {e}"),
        }
    }
}

/// Waits for clients.
#[derive(Debug)]
pub struct LatmonServer {
    listener: TcpListener,
    at: SocketAddr,
}

impl LatmonServer {
    /// At this address and port.
    ///
    /// # Errors
    /// The port is in use, or the address is none of this machine.
    pub fn listen(at: SocketAddr) -> Result<Self, StimulusError> {
        let refused = |e: std::io::Error| StimulusError::Unreachable {
            place: at.to_string(),
            reason: e.to_string(),
        };
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let at = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, at })
    }

    /// Where it waits.
    #[must_use]
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// Waits for a client and serves it; `None`: stopped before one came.
    ///
    /// # Errors
    /// The socket does not take connections any more.
    pub fn serve(
        &self,
        source: &mut dyn PulseSource,
        stop: &AtomicBool,
    ) -> Result<Option<ServedConnection>, StimulusError> {
        let mut said = None::<Instant>;
        while !is_stopped(stop) {
            match self.listener.accept() {
                Ok((stream, client)) => {
                    return Ok(Some(Connection::new(stream, client).served(source, stop)));
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => {
                    let place = self.at.to_string();
                    return Err(StimulusError::Unreachable { place, reason: e.to_string() });
                }
            }
            if said.is_none_or(|at| at.elapsed() >= BROADCAST) {
                said = Some(Instant::now());
                self.say_where();
            }
            ipc::wait_readable(&[self.listener.as_fd()], LOOK_MS)?;
        }
        Ok(None)
    }

    /// What latmon sends while it waits. Nobody need hear it: a client may know the address.
    fn say_where(&self) {
        let SocketAddr::V4(at) = self.at else { return };
        if at.ip().is_unspecified() || at.ip().is_loopback() {
            return;
        }
        let sent = UdpSocket::bind((*at.ip(), 0)).and_then(|socket| {
            socket.set_broadcast(true)?;
            socket.send_to(at.ip().to_string().as_bytes(), (Ipv4Addr::BROADCAST, at.port()))
        });
        drop(sent);
    }
}

/// Serves one client after another until an ending signal comes, and notes what each was given.
///
/// # Errors
/// The port is refused, or the source cannot give every sample.
pub fn serve_latmon(at: SocketAddr, mut via: Via, note: fn(&str)) -> Result<(), StimulusError> {
    can_serve(&via)?;
    let _signals = Signals::block_and_open()?;
    let server = LatmonServer::listen(at)?;
    note(&format!("latmon at {}", server.at()));
    while let Some(served) = server.serve(&mut via, &AtomicBool::new(false))? {
        note(&served.to_string());
    }
    Ok(())
}

fn can_serve(via: &Via) -> Result<(), StimulusError> {
    match via {
        Via::Pico(_) | Via::Linux(_) => Ok(()),
        Via::Latmon(_) | Via::Capture(_) => Err(StimulusError::Impossible(
            "--via: a latmon for others needs every sample as it comes: use pico:PORT or linux:HOST:PORT".to_owned(),
        )),
    }
}

impl PulseSource for Via {
    fn measure(
        &mut self,
        plan: &StimulusPlan,
        sink: &mut dyn StimulusSink,
        stop: &AtomicBool,
    ) -> Result<StimulusRecord, StimulusError> {
        can_serve(self)?;
        crate::measure(self, plan, Streaming::Samples, sink, stop)
    }
}

/// What a client is told of the samples that the source gives.
struct Counted<'a> {
    counting: &'a Mutex<LatmonCounting>,
    samples: u64,
    tick: TimeBase,
}

impl StimulusSink for Counted<'_> {
    fn begin(&mut self, tick: TimeBase, _channels: u8) {
        self.tick = tick;
    }
    fn sample(&mut self, _channel: u8, sample: StimulusSample) {
        let Ok(mut counting) = self.counting.lock() else { return };
        match sample.reaction {
            StimulusReaction::Answered(ticks) | StimulusReaction::Late(ticks) => {
                let ns = self.tick.latency_ns(i64::try_from(ticks).unwrap_or(i64::MAX));
                counting.answered(ns.max(0).cast_unsigned());
                self.samples += 1;
            }
            StimulusReaction::AtLeast(_) | StimulusReaction::Unknown => counting.unanswered(),
        }
    }
    fn progress(&mut self, _: &StimulusProgress) {}
}

struct Connection {
    stream: TcpStream,
    decoder: RequestDecoder,
    waiting: Vec<RequestMessage>,
    report: ServedConnection,
}

/// What a look at the stream came to.
enum Look {
    Message(RequestMessage),
    Nothing,
    Ended(ServedEnd),
}

impl Connection {
    fn new(stream: TcpStream, client: SocketAddr) -> Self {
        let end = ServedEnd::Closed;
        let report = ServedConnection { client, met: 0, refused: None, samples: 0, end };
        Self { stream, decoder: RequestDecoder::default(), waiting: Vec::new(), report }
    }

    fn served(mut self, source: &mut dyn PulseSource, stop: &AtomicBool) -> ServedConnection {
        let ready = self.stream.set_nonblocking(false);
        let ready = ready.and_then(|()| self.stream.set_read_timeout(Some(LOOK)));
        let mut next = match ready {
            Ok(()) => Look::Nothing,
            Err(e) => Look::Ended(ServedEnd::Lost(e.to_string())),
        };
        loop {
            next = match next {
                Look::Ended(end) => {
                    self.report.end = end;
                    return self.report;
                }
                Look::Nothing if is_stopped(stop) => Look::Ended(ServedEnd::Stopped),
                Look::Nothing => self.look(),
                Look::Message(RequestMessage::Start(request)) => {
                    self.measure(request, source, stop)
                }
                Look::Message(RequestMessage::Stop) => self.send(&LatmonCounting::nothing()),
                Look::Message(RequestMessage::Refused(fault)) => {
                    self.report.refused = Some(fault.to_string());
                    self.send(&LatmonCounting::nothing())
                }
            };
        }
    }

    fn look(&mut self) -> Look {
        if !self.waiting.is_empty() {
            return Look::Message(self.waiting.remove(0));
        }
        let mut bytes = [0; 256];
        match self.stream.read(&mut bytes) {
            Ok(0) => match self.decoder.end() {
                Ok(()) => Look::Ended(ServedEnd::Closed),
                Err(fault) => {
                    // Its own half may still be open: it is answered as a stop.
                    self.report.refused = Some(fault.to_string());
                    drop(self.stream.write_all(&LatmonCounting::nothing()));
                    Look::Ended(ServedEnd::Closed)
                }
            },
            Ok(n) => {
                let waiting = &mut self.waiting;
                let bytes = bytes.get(..n).unwrap_or_default();
                self.decoder.push(bytes, &mut |message| waiting.push(message));
                Look::Nothing
            }
            Err(e) => match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    Look::Nothing
                }
                _ => Look::Ended(ServedEnd::Lost(e.to_string())),
            },
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Look {
        match self.stream.write_all(bytes) {
            Ok(()) => Look::Nothing,
            Err(e) => Look::Ended(ServedEnd::Lost(e.to_string())),
        }
    }

    /// Until the client asks for something else: any request ends the pulses, as with latmon.
    fn measure(
        &mut self,
        request: LatmonRequest,
        source: &mut dyn PulseSource,
        stop: &AtomicBool,
    ) -> Look {
        let counting = Mutex::new(LatmonCounting::new(request));
        let ends = AtomicBool::new(false);
        let plan = plan(request);
        let mut sink = Counted { counting: &counting, samples: 0, tick: TimeBase::NANOSECOND };
        let (next, measured) = std::thread::scope(|scope| {
            let measuring = scope.spawn(|| source.measure(&plan, &mut sink, &ends));
            let next = self.frames(&counting, stop, &|| measuring.is_finished());
            ends.store(true, Ordering::Relaxed);
            (next, measuring.join())
        });
        self.report.samples += sink.samples;
        let next = match (next, measured) {
            (Look::Ended(end), _) => Look::Ended(end),
            (_, Ok(Err(e))) => return Look::Ended(ServedEnd::Source(e)),
            (next, _) => next,
        };
        self.report.met += 1;
        let Ok(counting) = counting.into_inner() else { return next };
        if let Look::Message(RequestMessage::Start(_)) = next {
            // As with latmon, the pulses begin anew, and what was counted is gone.
            return next;
        }
        match self.send(&counting.trailer()) {
            Look::Ended(end) => Look::Ended(end),
            _ => match next {
                // The request that ended the pulses has its answer.
                Look::Message(RequestMessage::Stop) => Look::Nothing,
                Look::Message(RequestMessage::Refused(fault)) => {
                    self.report.refused = Some(fault.to_string());
                    Look::Nothing
                }
                next => next,
            },
        }
    }

    /// Sends a frame a second until something else comes.
    fn frames(
        &mut self,
        counting: &Mutex<LatmonCounting>,
        stop: &AtomicBool,
        is_over: &dyn Fn() -> bool,
    ) -> Look {
        let mut last = Instant::now();
        loop {
            if is_stopped(stop) {
                return Look::Ended(ServedEnd::Stopped);
            }
            match self.look() {
                Look::Nothing => {}
                next => return next,
            }
            if is_over() {
                return Look::Nothing;
            }
            if last.elapsed() < SECOND {
                continue;
            }
            last = Instant::now();
            let second = counting.lock().ok().and_then(|mut counting| counting.take_second());
            if let Some(second) = second
                && let Look::Ended(end) = self.send(&second.bytes())
            {
                return Look::Ended(end);
            }
        }
    }
}

fn plan(request: LatmonRequest) -> StimulusPlan {
    StimulusPlan {
        period_ns: i64::from(request.period_us()) * 1000,
        duration_ns: NO_END_NS,
        channels: 1,
        shape: StimulusShape::Pulse,
        spacing: StimulusSpacing::Even,
        deadline_ns: None,
    }
}
