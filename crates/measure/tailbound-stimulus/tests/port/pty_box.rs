// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated box at a pseudo-terminal: its time is the host's, its pulses and answers are computed.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tailbound_sys::ipc::{self, Until};
use tailbound_sys::terminal;

use crate::simulated_box::{DamagedLine, SimulatedBox, TICK_HZ};

/// What happens to the line.
#[derive(Clone, Copy, Default)]
pub(crate) struct Weather {
    /// One of so many bytes is lost and one is flipped; 0: none.
    pub(crate) bad_of: u64,
    /// The cable is pulled so long after the first pulse.
    pub(crate) pulled_after: Option<Duration>,
}

/// The box and its port.
pub(crate) struct PtyBox {
    pub(crate) port: PathBuf,
    end: Arc<AtomicBool>,
    terminal: Option<OwnedFd>,
    thread: Option<JoinHandle<SimulatedBox>>,
}

impl PtyBox {
    /// None where this machine has no pseudo-terminals.
    pub(crate) fn new(of: SimulatedBox, weather: Weather) -> Option<Self> {
        let Ok((person, terminal)) = terminal::pair(terminal::WindowSize::USUAL) else {
            tailbound_testing::skip("pseudo-terminal", "none to be had");
            return None;
        };
        let name = format!("/proc/self/fd/{}", terminal.as_raw_fd());
        let port = std::fs::read_link(name).expect("its name");
        let end = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&end);
        let thread = std::thread::spawn(move || serve(of, person, weather, &seen));
        Some(Self { port, end, terminal: Some(terminal), thread: Some(thread) })
    }

    /// The box as it is at the end.
    pub(crate) fn into_box(mut self) -> SimulatedBox {
        self.finish().expect("it ran")
    }

    fn finish(&mut self) -> Option<SimulatedBox> {
        self.end.store(true, Ordering::Relaxed);
        // A write that waits for a reader ends with the last one.
        drop(self.terminal.take());
        self.thread.take()?.join().ok()
    }
}

impl Drop for PtyBox {
    fn drop(&mut self) {
        drop(self.finish());
    }
}

fn serve(mut of: SimulatedBox, line: OwnedFd, weather: Weather, end: &AtomicBool) -> SimulatedBox {
    let begun = Instant::now();
    let mut damage = DamagedLine { state: weather.bad_of ^ 5, bad_of: weather.bad_of };
    let mut pending: Vec<u8> = Vec::new();
    let mut first_pulse = None;
    let mut bytes = [0; 4_096];
    while !end.load(Ordering::Relaxed) {
        let ready = ipc::wait_readable(&[line.as_fd()], 1).expect("a wait");
        // What is asked now is answered as of now.
        let ticks = begun.elapsed().as_nanos() * u128::from(TICK_HZ) / 1_000_000_000;
        of.advance(u64::try_from(ticks).expect("small"));
        if ready == [true] {
            // Until somebody opens it, and after the last one, the line reads an error.
            let n = ipc::read(line.as_fd(), &mut bytes).unwrap_or(0);
            of.hear(&damage.pass(&bytes[..n]));
        }
        if of.is_measuring() && first_pulse.is_none() {
            first_pulse = Some(Instant::now());
        }
        if let (Some(first), Some(after)) = (first_pulse, weather.pulled_after)
            && first.elapsed() >= after
        {
            return of;
        }
        if pending.is_empty() {
            pending = damage.pass(&of.outgoing());
        }
        write(line.as_fd(), &mut pending);
    }
    of
}

/// Writes as much as there is room for.
fn write(line: BorrowedFd<'_>, pending: &mut Vec<u8>) {
    while !pending.is_empty() {
        let room = ipc::wait_ready(&[(line, Until::Writable)], 0).expect("a wait");
        if room != [true] {
            return;
        }
        let piece = pending.get(..200).unwrap_or(pending);
        let Ok(n) = ipc::write(line, piece) else { return };
        pending.drain(..n);
    }
}
