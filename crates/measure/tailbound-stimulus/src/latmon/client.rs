// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures with a latmon box: asks it for pulses, takes a frame a second and the histogram at the end.
//!
//! Units: ns, µs where latmon has them. The machine that answers the pulses is that at the box's pins.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tailbound_box::stimulus::{
    StimulusCounters, StimulusEnd, StimulusPlan, StimulusProgress, StimulusRecord, StimulusSink,
    StimulusSpacing,
};
use tailbound_box::{
    LATMON_CELLS_MAX, LATMON_PORT, LatmonClient, LatmonRequest, LatmonSpan, RequestFault, TimeBase,
};

use super::LOOK;
use crate::StimulusError;
use crate::copy_pace::CopyPace;
use crate::stopped::is_stopped;

const CONNECT: Duration = Duration::from_secs(5);
/// A box sends its address every 5 s while it waits for a client.
const BROADCAST: Duration = Duration::from_secs(15);
/// For a pulse that is not answered, and a sleep that ends with a tick.
const EACH_PULSE_US: u64 = 2_000;
const GRACE: Duration = Duration::from_secs(5);

/// A box and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatmonHost {
    /// A host or an address; `broadcast`: the box that says where it is.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl LatmonHost {
    /// `HOST`, `HOST:PORT`, `broadcast`, `broadcast:PORT`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // An address of IPv6 has colons of its own.
            Some((host, port)) if !host.contains(':') || host.starts_with('[') => {
                (host, port.parse().ok().filter(|port| *port != 0)?)
            }
            _ => (text, LATMON_PORT),
        };
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port })
    }

    /// Measures as planned, until an ending signal is pending or `stop` is set.
    ///
    /// # Errors
    /// The box cannot be reached, is none, or cannot do what is planned. What ends a measurement that had begun is in the
    /// record.
    pub fn measure(
        &self,
        plan: &StimulusPlan,
        sink: &mut dyn StimulusSink,
        stop: &AtomicBool,
    ) -> Result<StimulusRecord, StimulusError> {
        let request = request(plan)?;
        let at = self.found(stop)?;
        let unreachable = |e: &std::io::Error| StimulusError::Unreachable {
            place: at.to_string(),
            reason: format!("{e}: is latmon running there, and has it no other client?"),
        };
        let mut stream = TcpStream::connect_timeout(&at, CONNECT).map_err(|e| unreachable(&e))?;
        stream.set_read_timeout(Some(LOOK)).map_err(|e| unreachable(&e))?;
        stream.write_all(&request.bytes()).map_err(|e| unreachable(&e))?;
        sink.begin(TimeBase::NANOSECOND, 1);
        let mut session = Session::new(stream, request, plan, at.to_string());
        let end = session.run(sink, stop);
        let span = session.span();
        let client = session.client;
        let nothing = client.record().samples() == 0;
        let end = match end {
            Ended::Foreign(reason) if nothing => {
                return Err(StimulusError::Foreign { place: at.to_string(), reason });
            }
            Ended::Foreign(reason) => StimulusEnd::Lost(reason),
            Ended::As(end) => end,
        };
        Ok(client.into_record().stimulus(&at.to_string(), span, end))
    }

    fn found(&self, stop: &AtomicBool) -> Result<SocketAddr, StimulusError> {
        if self.host == "broadcast" {
            return self.heard(stop);
        }
        let unreachable = |reason| StimulusError::Unreachable { place: self.host.clone(), reason };
        let mut all = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|e| unreachable(format!("{e}: write the host or the address of the box")))?;
        all.next().ok_or_else(|| unreachable("this host has no address".to_owned()))
    }

    /// The box that says where it is.
    fn heard(&self, stop: &AtomicBool) -> Result<SocketAddr, StimulusError> {
        let unreachable = |reason| StimulusError::Unreachable {
            place: format!("UDP port {}", self.port),
            reason,
        };
        let refused = |e: std::io::Error| unreachable(e.to_string());
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, self.port)).map_err(refused)?;
        socket.set_read_timeout(Some(LOOK)).map_err(refused)?;
        let end = Instant::now() + BROADCAST;
        while Instant::now() < end {
            if is_stopped(stop) {
                return Err(StimulusError::Ended);
            }
            let mut text = [0; 64];
            let Ok((n, from)) = socket.recv_from(&mut text) else { continue };
            // It sends its address in words; where those are none, the datagram has come from it all the same.
            let text = text.get(..n).and_then(|text| std::str::from_utf8(text).ok());
            let said = text.and_then(|text| text.trim_end_matches('\0').parse::<IpAddr>().ok());
            return Ok((said.unwrap_or_else(|| from.ip()), self.port).into());
        }
        Err(unreachable("no box said where it is: give its address".to_owned()))
    }
}

/// What latmon can do of a plan.
fn request(plan: &StimulusPlan) -> Result<LatmonRequest, StimulusError> {
    let impossible = |reason: String| StimulusError::Impossible(format!("latmon: {reason}"));
    if plan.spacing != StimulusSpacing::Even {
        return Err(impossible(
            "random intervals: it pauses for one and the same time after each answer".to_owned(),
        ));
    }
    if plan.channels != 1 {
        return Err(impossible("more than one channel: it has one".to_owned()));
    }
    if plan.period_ns % 1000 != 0 {
        return Err(impossible("an interval with a part of a µs: it counts whole ones".to_owned()));
    }
    let period_us = u32::try_from(plan.period_ns / 1000).unwrap_or(u32::MAX);
    LatmonRequest::new(period_us, LATMON_CELLS_MAX)
        .map_err(|fault: RequestFault| impossible(fault.to_string()))
}

/// Why reading ended.
enum Ended {
    As(StimulusEnd),
    /// What came is nothing that latmon says.
    Foreign(String),
}

/// What one look at the stream came to.
enum Look {
    Bytes,
    Nothing,
    Ended(Ended),
}

struct Session {
    stream: TcpStream,
    client: LatmonClient,
    began: Instant,
    /// When something came.
    last: Instant,
    planned: Duration,
    /// Longest time between two frames of a box that works.
    silence: Duration,
    told: usize,
    place: String,
    copies: CopyPace,
}

impl Session {
    fn new(stream: TcpStream, request: LatmonRequest, plan: &StimulusPlan, place: String) -> Self {
        let each_us = u64::from(request.period_us()) + EACH_PULSE_US;
        let frame_us = u64::from(request.frame_samples()).saturating_mul(each_us);
        // The first one it keeps to itself.
        let silence = Duration::from_micros(frame_us.saturating_mul(2)) + GRACE;
        let began = Instant::now();
        Self {
            stream,
            client: LatmonClient::new(request),
            began,
            last: began,
            planned: Duration::from_nanos(plan.duration_ns.max(0).cast_unsigned()),
            silence,
            told: 0,
            place,
            copies: CopyPace::begin(0),
        }
    }

    /// Until something came last.
    fn span(&self) -> LatmonSpan {
        let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        LatmonSpan {
            elapsed_ns: ns(self.last.saturating_duration_since(self.began)),
            planned_ns: ns(self.planned),
        }
    }

    fn run(&mut self, sink: &mut dyn StimulusSink, stop: &AtomicBool) -> Ended {
        let mut end = StimulusEnd::Whole;
        loop {
            if is_stopped(stop) {
                end = StimulusEnd::Stopped;
                break;
            }
            if self.began.elapsed() >= self.planned {
                break;
            }
            if self.last.elapsed() >= self.silence {
                // It may have given up: more than half of its pulses had no answer.
                end = StimulusEnd::Silent;
                break;
            }
            if let Look::Ended(ended) = self.look(sink) {
                return ended;
            }
            if self.client.record().has_ended() {
                end = StimulusEnd::Refused("latmon ended before it was asked to".to_owned());
                break;
            }
        }
        self.finish(sink, end)
    }

    /// Asks for the end, and waits for the histogram.
    fn finish(&mut self, sink: &mut dyn StimulusSink, end: StimulusEnd) -> Ended {
        if let Err(e) = self.stream.write_all(&LatmonRequest::STOP) {
            return Ended::As(StimulusEnd::Lost(e.to_string()));
        }
        // It stops with a frame that is whole.
        let mut since = Instant::now();
        while !self.client.is_complete() {
            match self.look(sink) {
                Look::Bytes => since = Instant::now(),
                Look::Nothing if since.elapsed() >= self.silence => {
                    return Ended::As(StimulusEnd::Silent);
                }
                Look::Nothing => {}
                Look::Ended(ended) => return ended,
            }
        }
        Ended::As(end)
    }

    fn look(&mut self, sink: &mut dyn StimulusSink) -> Look {
        let mut bytes = [0; 4096];
        let n = match self.stream.read(&mut bytes) {
            Ok(0) => {
                let closed = "latmon closed the connection".to_owned();
                return Look::Ended(Ended::As(StimulusEnd::Lost(closed)));
            }
            Ok(n) => n,
            Err(e) => match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    return Look::Nothing;
                }
                _ => return Look::Ended(Ended::As(StimulusEnd::Lost(e.to_string()))),
            },
        };
        self.last = Instant::now();
        if let Err(fault) = self.client.push(bytes.get(..n).unwrap_or_default()) {
            return Look::Ended(Ended::Foreign(fault.to_string()));
        }
        self.tell(sink);
        Look::Bytes
    }

    fn tell(&mut self, sink: &mut dyn StimulusSink) {
        let record = self.client.record();
        if record.seconds().len() == self.told {
            return;
        }
        self.told = record.seconds().len();
        let answered = record.samples();
        let elapsed_ns = i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        if self.copies.is_due(elapsed_ns) && answered > 0 {
            self.copies.taken(elapsed_ns);
            sink.so_far(&record.stimulus(&self.place, self.span(), StimulusEnd::Unfinished));
        }
        sink.progress(&StimulusProgress {
            elapsed_ns,
            counters: StimulusCounters {
                sent: answered + record.overruns(),
                answered,
                unanswered: record.overruns(),
                ..StimulusCounters::default()
            },
            worst_ns: record.extremes_ns().map(|(_, greatest)| i64::from(greatest)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_have_a_port() {
        let of = |text: &str| LatmonHost::read(text).map(|h| (h.host, h.port));
        for (text, host, port) in [
            ("box.lan", "box.lan", 2306),
            ("10.0.0.9:77", "10.0.0.9", 77),
            ("broadcast", "broadcast", 2306),
            ("fe80::1", "fe80::1", 2306),
            ("[fe80::1]:77", "fe80::1", 77),
        ] {
            assert_eq!(of(text), Some((host.to_owned(), port)), "{text}");
        }
        for text in ["", ":77", "box:", "box:0", "box:70000", "box:x"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
