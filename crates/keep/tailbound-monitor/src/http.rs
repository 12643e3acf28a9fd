// SPDX-License-Identifier: MIT OR Apache-2.0
//! One page for a few readers at a time, on this machine's own address alone.
//!
//! Context: COLD, in a thread of its own, which waits for all clients at once: one that is slow, says too much or nothing keeps
//! nobody waiting, and is left after seconds. Where there are too many, the oldest that has not asked yet goes: whoever asks at
//! once is answered. Memory: a request of 5 KiB at most for each of 64, a page for each of 8.
//! There is no encryption and no password: who wants the page elsewhere puts a server before it that has both.
//! Source: RFC 9112.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use tailbound_sys::ipc::{Until, wait_ready};

use crate::exposition::Format;

/// Longest request.
const REQUEST_MAX: usize = 4096;
/// From the connection to the last byte of the request, however many come in between.
const HEAD_TIME: Duration = Duration::from_secs(2);
/// From the connection to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients at a time.
const CLIENTS_MAX: usize = 64;
/// Of them, those that do not take their answer at once: each has a page of its own.
const SLOW_MAX: usize = 8;
/// After an error of accept (no descriptors left): not at once again.
const PAUSE_NS: i64 = 1_000_000_000;
const STACK_BYTES: usize = 128 << 10;

/// Opens `address`, which must be one of this machine alone.
///
/// # Errors
/// It is not, or is in use.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    if !address.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not an address of this machine alone, as 127.0.0.1 or [::1]: put a server with a password before it",
        ));
    }
    TcpListener::bind(address)
}

/// Answers until the process ends.
///
/// # Errors
/// No thread can be made.
pub(crate) fn serve(
    listener: TcpListener,
    page: impl Fn(Format) -> Vec<u8> + Send + 'static,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let run = move || {
        let mut clients = Clients { all: Vec::new(), page };
        loop {
            if clients.turn(&listener).is_err() {
                use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns, sleep_until};
                sleep_until(CLOCK_MONOTONIC, now_ns(CLOCK_MONOTONIC).saturating_add(PAUSE_NS));
            }
        }
    };
    std::thread::Builder::new().name("metrics".into()).stack_size(STACK_BYTES).spawn(run).map(drop)
}

/// One that is connected.
struct Client {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    /// Once it has asked; what is left of it.
    answer: Option<Vec<u8>>,
    /// Bytes of the answer that it has.
    sent: usize,
}

impl Client {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, since: Instant::now(), request: Vec::new(), answer: None, sent: 0 })
    }

    /// What is waited for, and for how long at most.
    fn waits(&self) -> (Until, Duration) {
        let (until, most) = match self.answer {
            None => (Until::Readable, HEAD_TIME),
            Some(_) => (Until::Writable, PATIENCE),
        };
        (until, most.saturating_sub(self.since.elapsed()))
    }

    /// Reads and writes as far as that goes at once; is it over?
    fn advance(&mut self, page: &impl Fn(Format) -> Vec<u8>) -> bool {
        match self.moved(page) {
            Ok(over) => over,
            // What became of one client is of no concern to the others.
            Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn moved(&mut self, page: &impl Fn(Format) -> Vec<u8>) -> io::Result<bool> {
        let mut buffer = [0; 1024];
        while self.answer.is_none() {
            match self.stream.read(&mut buffer)? {
                0 => return Ok(true),
                n => self.request.extend(buffer.iter().take(n)),
            }
            if is_whole(&self.request) || self.request.len() > REQUEST_MAX {
                self.answer = Some(answer(&std::mem::take(&mut self.request), page));
            }
        }
        loop {
            let rest = self.answer.as_deref().and_then(|all| all.get(self.sent..));
            match rest.unwrap_or_default() {
                [] => return Ok(true),
                rest => match self.stream.write(rest)? {
                    0 => return Ok(true),
                    n => self.sent += n,
                },
            }
        }
    }
}

/// All that are connected, the oldest first.
struct Clients<P> {
    all: Vec<Client>,
    page: P,
}

impl<P: Fn(Format) -> Vec<u8>> Clients<P> {
    /// Waits for the first of them to move, or for a new one.
    ///
    /// # Errors
    /// None can be taken, and there is none whose place would be free.
    fn turn(&mut self, listener: &TcpListener) -> io::Result<()> {
        let waits: Vec<(Until, Duration)> = self.all.iter().map(Client::waits).collect();
        let least = waits.iter().map(|(_, left)| *left).min();
        // Rounded up: not at once again and again in the last millisecond.
        let ms = |left: Duration| i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
        let of_clients =
            self.all.iter().zip(&waits).map(|(c, (until, _))| (c.stream.as_fd(), *until));
        let fds: Vec<(BorrowedFd<'_>, Until)> =
            std::iter::once((listener.as_fd(), Until::Readable)).chain(of_clients).collect();
        let ready = wait_ready(&fds, least.map_or(-1, ms)).map_err(io::Error::other)?;
        drop(fds);
        let mut ready = ready.into_iter();
        let comes = ready.next().unwrap_or(false);
        let page = &self.page;
        self.all.retain_mut(|client| {
            let is_over = ready.next().unwrap_or(false) && client.advance(page);
            !is_over && !client.waits().1.is_zero()
        });
        if comes { self.take(listener) } else { Ok(()) }
    }

    /// Takes those that wait to be taken.
    fn take(&mut self, listener: &TcpListener) -> io::Result<()> {
        // No more than there are places: then those that have asked meanwhile are looked at again.
        for _ in 0..CLIENTS_MAX {
            match listener.accept() {
                Ok((stream, _)) => self.add(stream),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                // It went before it was taken.
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                // No descriptors left, or no memory: here is a place.
                Err(_) if self.make_room() => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// A client more: answered at once if it has asked already.
    fn add(&mut self, stream: TcpStream) {
        let Ok(mut client) = Client::new(stream) else { return };
        if client.advance(&self.page) {
            return;
        }
        while self.all.len() >= CLIENTS_MAX && self.make_room() {}
        self.all.push(client);
        let is_slow = |c: &Client| c.answer.is_some();
        if self.all.iter().filter(|c| is_slow(c)).count() > SLOW_MAX
            && let Some(at) = self.all.iter().position(is_slow)
        {
            self.all.remove(at);
        }
    }

    /// Lets the oldest go that has not asked yet, if even now it has not; the oldest of all, where all have asked. Was there one?
    fn make_room(&mut self) -> bool {
        let at = self.all.iter().position(|c| c.answer.is_none()).unwrap_or(0);
        if self.all.is_empty() {
            return false;
        }
        let mut client = self.all.remove(at);
        if client.answer.is_none() && !client.advance(&self.page) && client.answer.is_some() {
            self.all.push(client);
        }
        true
    }
}

fn is_whole(request: &[u8]) -> bool {
    request.windows(4).any(|w| w == b"\r\n\r\n") || request.windows(2).any(|w| w == b"\n\n")
}

fn answer(request: &[u8], page: &impl Fn(Format) -> Vec<u8>) -> Vec<u8> {
    let line = request.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let mut format = Format::Text;
    let (status, body) = match (method, path) {
        _ if !is_whole(request) => ("431 Request Header Fields Too Large", Vec::new()),
        ("GET" | "HEAD", "/metrics") => {
            format = Format::accepted(&accept(request));
            ("200 OK", page(format))
        }
        ("GET" | "HEAD", _) => ("404 Not Found", b"What there is is /metrics.\n".to_vec()),
        _ => ("405 Method Not Allowed\r\nAllow: GET, HEAD", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nVary: Accept\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        format.content_type(),
        body.len()
    );
    let body = if method == "HEAD" { Vec::new() } else { body };
    [head.into_bytes(), body].concat()
}

/// The header `Accept`, of which there may be several lines.
fn accept(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    let of_line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("accept").then(|| value.trim().to_owned())
    };
    text.lines().skip(1).filter_map(of_line).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(request: &[u8]) -> String {
        String::from_utf8(answer(request, &|_| b"a 1\n".to_vec())).unwrap()
    }

    #[test]
    fn the_page_is_given_and_everything_else_refused() {
        let page = told(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\na 1\n"),
            "{page}"
        );
        assert!(page.contains("Content-Length: 4\r\n"));
        let head = told(b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"));
        let both = b"GET /metrics HTTP/1.1\r\naccept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited\r\nAccept: text/plain\r\n\r\n";
        assert!(told(both).contains("Content-Type: application/vnd.google.protobuf;"));
        for (request, status) in [
            (b"GET / HTTP/1.1\r\n\r\n".as_slice(), "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\r\n\r\n", "405"),
            (&[b'a'; REQUEST_MAX + 1], "431"),
        ] {
            assert!(told(request).starts_with(&format!("HTTP/1.1 {status}")), "{status}");
        }
    }

    fn served(page: &'static [u8]) -> SocketAddr {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, |_| page.to_vec()).unwrap();
        address
    }

    fn scraped(address: SocketAddr) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn clients_that_say_nothing_or_drip_keep_nobody_waiting() {
        assert!(listen("192.0.2.1:0".parse().unwrap()).is_err());
        let address = served(b"a 1\n");
        let connect = |n: usize| (0..n).map(|_| TcpStream::connect(address).unwrap()).collect();
        let idle: Vec<TcpStream> = connect(300);
        let mut dripping: Vec<TcpStream> = connect(50);
        for at in 0..20 {
            for client in &mut dripping {
                // Those that had to go are gone.
                let _gone = client.write(&b"GET /metrics HTTP/1.1"[at..=at]);
            }
            let begun = Instant::now();
            let text = scraped(address);
            assert!(text.ends_with("a 1\n"), "{text}");
            assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        }
        drop(idle);
    }

    #[test]
    fn no_more_are_held_than_there_are_places_and_the_newest_are_held() {
        let address = served(b"a 1\n");
        let mut all: Vec<TcpStream> =
            (0..3 * CLIENTS_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(scraped(address).ends_with("a 1\n"));
        let is_open = |client: &mut TcpStream| {
            client.set_nonblocking(true).unwrap();
            client.read(&mut [0]).is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
        };
        let open: Vec<bool> = all.iter_mut().map(is_open).collect();
        let held = open.iter().filter(|open| **open).count();
        assert!(held <= CLIENTS_MAX && held > CLIENTS_MAX / 2, "{held}");
        assert!(!open[0] && open[3 * CLIENTS_MAX - 1]);
    }

    #[test]
    fn clients_that_do_not_take_their_answer_keep_nobody_waiting() {
        static LARGE: [u8; 16 << 20] = [b'a'; 16 << 20];
        let address = served(&LARGE);
        let ask = |_| {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            client
        };
        let slow: Vec<TcpStream> = (0..2 * SLOW_MAX).map(ask).collect();
        assert!(scraped(address).len() > LARGE.len());
        drop(slow);
    }
}
