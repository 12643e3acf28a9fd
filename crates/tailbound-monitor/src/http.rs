// SPDX-License-Identifier: MIT OR Apache-2.0
//! One page for one reader at a time, on this machine's own address alone.
//!
//! Context: COLD, in a thread of its own. A client that is slow, says too much or nothing is left after seconds. There is no
//! encryption and no password: who wants the page elsewhere puts a server before it that has both.
//! Source: RFC 9112.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::exposition::Format;

/// Longest request.
const REQUEST_MAX: usize = 4096;
/// All that one client may take, from the first byte to the last.
const PATIENCE: Duration = Duration::from_secs(5);
/// The least that is waited for a byte.
const SHORT: Duration = Duration::from_millis(1);
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
    let run = move || {
        loop {
            match listener.accept() {
                // What becomes of one client is of no concern to the next.
                Ok((client, _)) => client_of(client, &page).unwrap_or_default(),
                Err(_) => {
                    use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns, sleep_until};
                    sleep_until(CLOCK_MONOTONIC, now_ns(CLOCK_MONOTONIC).saturating_add(PAUSE_NS));
                }
            }
        }
    };
    std::thread::Builder::new().name("metrics".into()).stack_size(STACK_BYTES).spawn(run).map(drop)
}

fn client_of(mut client: TcpStream, page: &impl Fn(Format) -> Vec<u8>) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let left = || until.saturating_duration_since(Instant::now());
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !is_whole(&request) && request.len() <= REQUEST_MAX {
        if left().is_zero() {
            return Ok(());
        }
        client.set_read_timeout(Some(left().max(SHORT)))?;
        match client.read(&mut buffer)? {
            0 => return Ok(()),
            n => request.extend(buffer.iter().take(n)),
        }
    }
    let answer = answer(&request, page);
    let mut rest = answer.as_slice();
    while !rest.is_empty() && !left().is_zero() {
        client.set_write_timeout(Some(left().max(SHORT)))?;
        let n = client.write(rest)?;
        rest = rest.get(n..).unwrap_or_default();
    }
    Ok(())
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

    #[test]
    fn a_client_that_says_nothing_does_not_keep_the_next_waiting_for_ever() {
        assert!(listen("192.0.2.1:0".parse().unwrap()).is_err());
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, |_| b"a 1\n".to_vec()).unwrap();
        let mute = TcpStream::connect(address).unwrap();
        let mut other = TcpStream::connect(address).unwrap();
        other.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        other.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("a 1\n"), "{text}");
        drop(mute);
    }
}
