// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bad way between agent and server: cuts, doubles, delays, reorders, drips.
//!
//! Context: tests. HTTP without TLS, a connection for each request, so that faults meet requests and not bytes of TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is done to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server gets so many bytes of it, then the connection ends.
    CutRequest(usize),
    /// The server gets it, the agent gets so many bytes of the answer.
    CutAnswer(usize),
    /// The server gets it twice; the agent gets the second answer.
    Twice,
    /// The agent's connection ends; the server gets it after the request that comes next: two change places.
    Late,
    /// The answer comes a byte at a time.
    Drip,
    /// The request comes to the server a byte at a time: the agent is slow.
    DripRequest,
    /// Request and answer take their time.
    Delay,
    /// A gateway answers with a page of its own.
    Gateway,
}

/// Much longer than the way of any network, much shorter than either side's patience.
const DELAY: Duration = Duration::from_secs(2);

/// Which request it meets first, by how that begins.
type Planned = (&'static str, Fault);

#[derive(Default)]
struct State {
    planned: Vec<Planned>,
    late: Option<Vec<u8>>,
    met: Vec<Planned>,
}

/// The way. It ends with the test's process.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    /// To the server at `to`.
    pub(crate) fn begin(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A connection that breaks is what this is for.
                std::thread::spawn(move || drop(one(stream, to, &state)));
            }
        });
        Self { port, state }
    }

    /// Plans a fault; one that is planned already comes first.
    pub(crate) fn plan(&self, planned: Planned) {
        self.state.lock().unwrap().planned.push(planned);
    }

    /// Faults that met a request.
    pub(crate) fn met(&self) -> Vec<Planned> {
        self.state.lock().unwrap().met.clone()
    }
}

fn one(mut agent: TcpStream, to: u16, state: &Mutex<State>) -> io::Result<()> {
    let request = request(&mut agent)?;
    let (fault, late) = {
        let mut state = state.lock().unwrap();
        let at = state.planned.iter().position(|p| request.starts_with(p.0.as_bytes()));
        let fault = at.map(|at| state.planned.remove(at));
        state.met.extend(fault);
        (fault.map(|(_, fault)| fault), if fault.is_none() { state.late.take() } else { None })
    };
    match fault {
        None => {
            let answer = asked(to, &request)?;
            if let Some(late) = late {
                asked(to, &late)?;
            }
            agent.write_all(&answer)?;
        }
        Some(Fault::CutRequest(n)) => {
            let mut server = TcpStream::connect(("127.0.0.1", to))?;
            server.write_all(&request[..n.min(request.len() - 1)])?;
            server.shutdown(Shutdown::Both)?;
        }
        Some(Fault::CutAnswer(n)) => {
            let answer = asked(to, &request)?;
            agent.write_all(&answer[..n.min(answer.len() - 1)])?;
        }
        Some(Fault::Twice) => {
            asked(to, &request)?;
            agent.write_all(&asked(to, &request)?)?;
        }
        Some(Fault::Late) => state.lock().unwrap().late = Some(request),
        Some(Fault::Drip) => {
            for byte in asked(to, &request)? {
                agent.write_all(&[byte])?;
                std::thread::sleep(Duration::from_micros(500));
            }
        }
        Some(Fault::DripRequest) => {
            let mut server = TcpStream::connect(("127.0.0.1", to))?;
            server.set_nodelay(true)?;
            for byte in &request {
                server.write_all(&[*byte])?;
                std::thread::sleep(Duration::from_micros(200));
            }
            let mut answer = Vec::new();
            server.read_to_end(&mut answer)?;
            agent.write_all(&answer)?;
        }
        Some(Fault::Delay) => {
            std::thread::sleep(DELAY);
            let answer = asked(to, &request)?;
            std::thread::sleep(DELAY);
            agent.write_all(&answer)?;
        }
        Some(Fault::Gateway) => agent.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>",
        )?,
    }
    Ok(())
}

/// A whole request; the connection ends after its answer.
fn request(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (mut all, mut piece) = (Vec::new(), [0u8; 4096]);
    loop {
        let n = from.read(&mut piece)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        all.extend(&piece[..n]);
        let Some(end) = all.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|r| r.lines().next());
        let length: usize = length.and_then(|l| l.trim().parse().ok()).unwrap_or(0);
        if all.len() >= end + 4 + length {
            let mut whole = all[..end].to_vec();
            whole.extend(b"\r\nConnection: close");
            whole.extend(&all[end..]);
            return Ok(whole);
        }
    }
}

fn asked(to: u16, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(("127.0.0.1", to))?;
    server.write_all(request)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    Ok(answer)
}
