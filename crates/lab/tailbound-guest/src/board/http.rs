// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands a run in by one request of HTTP: POST to a server of `tailbound serve`, PUT to any other receiver.
//!
//! Without encryption, for a network of one's own. Each request ends after a bounded time.
//! Not here: HTTPS and the protocol of agents (`tailbound-agent`), which a board that is off after one run does not speak.
//! Source: RFC 9112.

use std::io::{self, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use tailbound_core::board::HttpReceiver;
use tailbound_core::printable;

use super::patience::Patience;
use crate::error::GuestError;

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Without a byte for that long the other side is gone.
const SILENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(5);
const TRIES: u32 = 6;
/// For one try.
const TRY_S: u64 = 900;
const ANSWER_BYTES_MAX: usize = 16 << 10;
const SAID_CHARS_MAX: usize = 200;

/// What the receiver answered.
struct Answer {
    status: u16,
    said: String,
}

/// Hands it in; the answer's status, in words.
pub(super) fn hand_in(
    to: &HttpReceiver,
    token: Option<&str>,
    run: &[u8],
    patience: &Patience,
) -> Result<String, GuestError> {
    let mut left = TRIES;
    loop {
        left -= 1;
        patience.allow(TRY_S);
        match asked(to, token, run) {
            Ok(Answer { status, said }) if (200..300).contains(&status) => {
                return Ok(if said.is_empty() {
                    status.to_string()
                } else {
                    format!("{status} {said}")
                });
            }
            // It may be up in a moment.
            Ok(Answer { status, .. }) if status >= 500 && left > 0 => {}
            Ok(Answer { status, said }) => return Err(GuestError::NotTaken { status, said }),
            Err(why) if left == 0 => {
                return Err(GuestError::File { path: to.address.to_string(), why });
            }
            Err(_) => {}
        }
        std::thread::park_timeout(PAUSE);
    }
}

fn asked(to: &HttpReceiver, token: Option<&str>, run: &[u8]) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&to.address, CONNECT_TIME)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut head = format!(
        "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tailbound/{}\r\nConnection: close\r\n\
         Content-Type: application/x-ndjson\r\nContent-Length: {}\r\n",
        to.method.name(),
        to.path,
        to.address,
        env!("CARGO_PKG_VERSION"),
        run.len()
    );
    if let Some(token) = token {
        head.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    head.push_str("\r\n");
    // A receiver that refuses may answer before it has everything.
    let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(run));
    let mut bytes = Vec::new();
    let read = read_answer(&mut stream, &mut bytes);
    match answer(&bytes) {
        Some(answer) => Ok(answer),
        None => {
            sent?;
            read?;
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it answers with something else than HTTP",
            ))
        }
    }
}

/// Reads until the other side closes, or the answer has the length it says: not everything between lets a close through.
fn read_answer(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut part = [0; 1 << 10];
    while !is_whole(bytes) && bytes.len() < ANSWER_BYTES_MAX {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(part.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Has it as many bytes as its head says? Without a word of that only the close tells.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let (head, body) = bytes.split_at(end + 4);
    let head = String::from_utf8_lossy(head);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    length.is_some_and(|length| body.len() >= length)
}

fn answer(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut words = head.lines().next()?.split(' ');
    if !words.next()?.starts_with("HTTP/1.") {
        return None;
    }
    let status = words.next()?.parse().ok()?;
    let said: String = printable::line(body.trim()).chars().take(SAID_CHARS_MAX).collect();
    Some(Answer { status, said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_few_words() {
        let read =
            answer(b"HTTP/1.1 401 Unauthorized\r\nX: y\r\n\r\n{\"error\":\"no \x1b[1mtoken\"}")
                .unwrap();
        assert_eq!(read.status, 401);
        assert!(read.said.contains("token") && !read.said.contains('\x1b'), "{}", read.said);
        for none in [&b""[..], b"SSH-2.0-x\r\n", b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"] {
            assert!(answer(none).is_none());
        }
    }

    #[test]
    fn an_answer_is_read_to_its_length_or_to_the_close() {
        let text =
            b"HTTP/1.1 201 Created\r\ncontent-LENGTH: 5\r\n\r\ntaken, and what comes no more";
        // A byte at a time: the sixth of the body would be asked for.
        let mut bytes = Vec::new();
        read_answer(&mut OneByOne(text), &mut bytes).unwrap();
        assert!(bytes.ends_with(b"\r\n\r\ntaken"), "{}", bytes.escape_ascii());
        for closed in [&b"HTTP/1.1 201 Created\r\n\r\ntaken"[..], b"SSH-2.0-x\r\n", b""] {
            let mut bytes = Vec::new();
            read_answer(&mut OneByOne(closed), &mut bytes).unwrap();
            assert_eq!(bytes, closed);
        }
        let mut bytes = Vec::new();
        read_answer(&mut io::repeat(b'x'), &mut bytes).unwrap();
        assert_eq!(bytes.len(), ANSWER_BYTES_MAX);
    }

    struct OneByOne(&'static [u8]);

    impl Read for OneByOne {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            to[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }
}
