// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board's console, read while the board is held: into a file for each run, and its last lines for who asks why one failed.
//!
//! A thread reads; nothing is ever written to the board. What ends the connection does not end the run: it is
//! noted, and tried again. Units: seconds since the file began before each line.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tailbound_core::printable;
use tailbound_sys::new_file;

use super::EngineError;
use super::shell;
use super::telnet::Telnet;

const CONNECT_MOST: Duration = Duration::from_secs(10);
/// How soon the thread notices that it is to end.
const LOOK: Duration = Duration::from_millis(250);
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// A file of this size is put aside, for one file more: the last half of this or more is kept, never more than twice of it.
const FILE_BYTES_MAX: u64 = 512 << 10;
/// Of a board that prints no line breaks.
const LINE_BYTES_MAX: usize = 4096;
/// What is kept for an error, and how much of a line.
const LAST_LINES: usize = 20;
const LINE_CHARS: usize = 300;

/// Where a console is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) host: String,
    pub(super) port: u16,
    /// With commands of telnet between the bytes.
    pub(super) telnet: bool,
    /// The host through which alone it is reached, by ssh.
    pub(super) proxy: Option<String>,
    /// Of ssh, instead of the user's own configuration.
    pub(super) config: Option<PathBuf>,
}

/// A console that is read until this is dropped.
#[derive(Debug)]
pub(super) struct Console {
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Kept>,
    line: Vec<u8>,
    last: VecDeque<String>,
    over: bool,
    /// Why nothing can be read now.
    why: Option<String>,
    /// That was said, and nothing came since.
    noted: bool,
}

/// The file of a run.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    file: File,
    bytes: u64,
    begun: Instant,
}

impl Console {
    /// Begins to read.
    pub(super) fn open(port: Port) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let its = Arc::clone(&state);
        let thread = Some(thread::spawn(move || read(&port, &its)));
        Self { state, thread }
    }

    /// What comes from now on is of the run whose console is kept at `path`.
    pub(super) fn record(&self, path: &Path) -> Result<(), EngineError> {
        let file = Kept::begin(path).map_err(|e| EngineError::file(path, e))?;
        let mut state = locked(&self.state);
        state.last.clear();
        state.line.clear();
        state.file = Some(file);
        Ok(())
    }

    /// What comes from now on is of no run.
    pub(super) fn pause(&self) {
        let mut state = locked(&self.state);
        state.end_line();
        state.file = None;
    }

    /// Its last lines, fit to be shown.
    pub(super) fn last(&self) -> Vec<String> {
        let state = locked(&self.state);
        let begun = Some(state.line.as_slice()).filter(|l| !l.is_empty()).map(shown);
        state.last.iter().cloned().chain(begun.filter(|l| !l.is_empty())).collect()
    }

    /// Why nothing can be read, if so.
    pub(super) fn why_not(&self) -> Option<String> {
        locked(&self.state).why.clone()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        locked(&self.state).over = true;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            drop(thread.join());
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One line as it may be shown on a terminal.
fn shown(line: &[u8]) -> String {
    printable::excerpt(String::from_utf8_lossy(line).trim(), LINE_CHARS)
}

impl Kept {
    fn begin(path: &Path) -> io::Result<Self> {
        // Of an attempt of before.
        new_file::remove(&Self::before(path))?;
        let file = new_file::begin_log(path)?;
        Ok(Self { path: path.to_owned(), file, bytes: 0, begun: Instant::now() })
    }

    /// The file that is put aside when there is too much.
    fn before(path: &Path) -> PathBuf {
        path.with_extension("before.txt")
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let since = self.begun.elapsed();
        let stamp = format!("{}.{:03} ", since.as_secs(), since.subsec_millis());
        let line = [stamp.as_bytes(), line, b"\n"].concat();
        if self.bytes + line.len() as u64 > FILE_BYTES_MAX {
            new_file::rename(&self.path, &Self::before(&self.path))?;
            self.file = new_file::begin_log(&self.path)?;
            self.bytes = 0;
        }
        self.file.write_all(&line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

impl State {
    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                b'\r' | 0 => {}
                byte => self.line.push(byte),
            }
            if self.line.len() >= LINE_BYTES_MAX {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return;
        }
        // A full disk ends the file, not the run.
        if self.file.as_mut().is_some_and(|f| f.write(&line).is_err()) {
            self.file = None;
        }
        let text = shown(&line);
        if !text.is_empty() {
            self.last.push_back(text);
        }
        if self.last.len() > LAST_LINES {
            self.last.pop_front();
        }
    }

    /// Something about the reading itself.
    fn note(&mut self, text: &str) {
        self.end_line();
        self.take(format!("[tailbound: {text}]\n").as_bytes());
    }
}

/// The thread.
fn read(port: &Port, state: &Mutex<State>) {
    loop {
        let why = match Link::to(port) {
            Ok(mut link) => {
                locked(state).why = None;
                match drain(&mut link, port, state) {
                    Ok(()) => return,
                    Err(e) => e.to_string(),
                }
            }
            Err(e) => e.to_string(),
        };
        let mut now = locked(state);
        // Once, however often it is tried.
        if !now.noted {
            now.note(&format!("the console's connection: {why}; tried again"));
            now.noted = true;
        }
        now.why = Some(why);
        drop(now);
        let again = Instant::now() + AGAIN_AFTER;
        while Instant::now() < again {
            if locked(state).over {
                return;
            }
            thread::park_timeout(LOOK);
        }
    }
}

/// Reads until it is over, which is no error.
fn drain(link: &mut Link, port: &Port, state: &Mutex<State>) -> io::Result<()> {
    let mut filter = Telnet::default();
    let mut piece = [0u8; 4096];
    loop {
        if locked(state).over {
            return Ok(());
        }
        let n = match link.stream.read(&mut piece) {
            Ok(0) => return Err(io::Error::other(link.why_closed())),
            Ok(n) => n,
            Err(e) if may_pass(e.kind()) => continue,
            Err(e) => return Err(e),
        };
        let read = piece.get(..n).unwrap_or_default();
        locked(state).noted = false;
        if port.telnet {
            let (mut bytes, mut answer) = (Vec::new(), Vec::new());
            filter.take(read, &mut bytes, &mut answer);
            if !answer.is_empty() {
                link.stream.write_all(&answer)?;
            }
            locked(state).take(&bytes);
        } else {
            locked(state).take(read);
        }
    }
}

fn may_pass(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(kind, Interrupted | TimedOut | WouldBlock)
}

/// A connection to a console.
struct Link {
    stream: Box<dyn Stream>,
    /// What carries it through another host.
    ssh: Option<Child>,
}

trait Stream: Read + Write {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

impl Link {
    fn to(port: &Port) -> io::Result<Self> {
        let Some(proxy) = &port.proxy else {
            let stream = connected(&port.host, port.port)?;
            stream.set_read_timeout(Some(LOOK))?;
            return Ok(Self { stream: Box::new(stream), ssh: None });
        };
        let (ours, its) = UnixStream::pair()?;
        ours.set_read_timeout(Some(LOOK))?;
        let mut words = vec!["ssh".to_owned()];
        if let Some(config) = &port.config {
            words.extend(["-F".to_owned(), config.display().to_string()]);
        }
        words.extend(["-o".to_owned(), "BatchMode=yes".to_owned(), "-W".to_owned()]);
        words.extend([format!("{}:{}", port.host, port.port), "--".to_owned(), proxy.clone()]);
        let also = Stdio::from(OwnedFd::from(its.try_clone()?));
        let ssh = shell::started(&words)
            .stdin(OwnedFd::from(its))
            .stdout(also)
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self { stream: Box::new(ours), ssh: Some(ssh) })
    }

    /// What ssh said where it carried the connection.
    fn why_closed(&mut self) -> String {
        let ended = |mut ssh: Child| ssh.kill().and_then(|()| ssh.wait_with_output()).ok();
        let said = self.ssh.take().and_then(ended);
        let said = said.map(|o| String::from_utf8_lossy(&o.stderr).into_owned());
        let last = said.as_deref().and_then(|s| s.trim().lines().last());
        printable::excerpt(last.unwrap_or("it was closed"), LINE_CHARS)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(ssh) = &mut self.ssh {
            drop(ssh.kill());
            drop(ssh.wait());
        }
    }
}

fn connected(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::other(format!("{host} has no address"));
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_MOST) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_kept_of_a_console_is_its_end_and_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("short.console.txt");
        let mut state =
            State { file: Some(Kept::begin(&path).expect("a file")), ..State::default() };
        for at in 0..40_000 {
            state.take(format!("[ {at:9}.0 ] a line of the kernel\r\n").as_bytes());
        }
        state.take(&[b'x'; 10_000]);
        state.take(b"\nKernel panic \x1b[31mnot syncing\n");
        let size = |p: &Path| fs::metadata(p).expect("it is there").len();
        let before = Kept::before(&path);
        assert!(before.ends_with("short.console.before.txt"), "{}", before.display());
        assert!(size(&path) <= FILE_BYTES_MAX && size(&before) <= FILE_BYTES_MAX);
        let text =
            fs::read_to_string(&before).expect("text") + &fs::read_to_string(&path).expect("text");
        assert!(text.contains(" 39999.0 ]") && text.ends_with("\x1b[31mnot syncing\n"));
        assert_eq!(state.last.len(), LAST_LINES);
        let last = state.last.back().expect("a line");
        assert!(last.starts_with("Kernel panic") && !last.contains('\x1b'), "{last}");
    }
}
