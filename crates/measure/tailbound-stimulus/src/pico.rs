// SPDX-License-Identifier: MIT OR Apache-2.0
//! The box at a serial port: bytes of the port to the session of the box, and back.
//!
//! Units: ns of CLOCK_MONOTONIC. A port that carries samples is read every [`PAUSE_NS`], so that a frame of USB is not a
//! wake-up of its own: the kernel keeps what comes meanwhile.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use tailbound_box::pico::{BoxCheck, BoxCheckReport, BoxRefusal, BoxSession, Streaming};
use tailbound_box::stimulus::{StimulusPlan, StimulusRecord, StimulusSink};
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns};
use tailbound_sys::error::SysError;
use tailbound_sys::serial::{SerialPort, Wanted};
use tailbound_sys::signal;

use crate::copy_pace::CopyPace;
use crate::error::StimulusError;
use crate::stopped::is_stopped;

/// Of the UART; over USB there is no speed.
const BAUD: u32 = 1_000_000;
/// Signals are looked for so often.
const LOOK_NS: i64 = 100_000_000;
/// From one reading of samples to the next.
const PAUSE_NS: i64 = 4_000_000;
/// Bytes of one read.
const READ: usize = 4_096;

/// Measures with the box at `port`, until an ending signal is pending or `stop` is set.
pub(crate) fn measure(
    port: &Path,
    plan: &StimulusPlan,
    streaming: Streaming,
    sink: &mut dyn StimulusSink,
    stop: &AtomicBool,
) -> Result<StimulusRecord, StimulusError> {
    let place = port.display().to_string();
    let mut line = open(port)?;
    let mut session = BoxSession::begin(place.clone(), plan.clone(), streaming, now());
    let mut bytes = [0; READ];
    let mut copies = CopyPace::begin(now());
    while !session.is_over() {
        if copies.is_due(now())
            && let Some(record) = session.so_far(now())
        {
            sink.so_far(&record);
            copies.taken(now());
        }
        if is_stopped(stop) {
            session.stop(now());
        }
        match turn(&mut line, session.outgoing(), session.due_ns(), &mut bytes) {
            Ok((sent, came)) => {
                session.sent(sent);
                session.take(came, now(), sink);
                let is_much = came.len() >= READ / 32;
                session.at(now(), sink);
                if is_much && session.is_measuring() {
                    line.wait(Wanted::Nothing, PAUSE_NS)?;
                }
            }
            Err(e) => session.lost(&gone(&e), now()),
        }
    }
    session.finish().map_err(|refusal| refused(place, refusal))
}

/// Checks the box at `port` until an ending signal is pending; its clock is compared for `duration_ns`.
///
/// # Errors
/// There is no box that can be used, or the check came to no end.
pub(crate) fn check(
    port: &Path,
    channels: u8,
    duration_ns: i64,
) -> Result<BoxCheckReport, StimulusError> {
    let place = port.display().to_string();
    let mut line = open(port)?;
    let mut check = BoxCheck::begin(channels, duration_ns, now());
    let mut bytes = [0; READ];
    while !check.is_over() {
        if signal::pending().is_some() {
            check.end(BoxRefusal::Ended);
        }
        match turn(&mut line, check.outgoing(), check.due_ns(), &mut bytes) {
            Ok((sent, came)) => {
                check.sent(sent);
                check.take(came, now());
                check.at(now());
            }
            Err(e) => check.end(BoxRefusal::Lost(gone(&e))),
        }
    }
    check.finish().map_err(|refusal| refused(place, refusal))
}

/// Writes what there is room for, waits, reads what came.
fn turn<'a>(
    line: &mut SerialPort,
    outgoing: &[u8],
    due_ns: i64,
    into: &'a mut [u8],
) -> Result<(usize, &'a [u8]), SysError> {
    let sent = if outgoing.is_empty() { 0 } else { line.write(outgoing)? };
    let wanted = if sent < outgoing.len() { Wanted::BytesOrRoom } else { Wanted::Bytes };
    line.wait(wanted, due_ns.saturating_sub(now()).min(LOOK_NS))?;
    Ok((sent, line.read(into)?))
}

fn now() -> i64 {
    now_ns(CLOCK_MONOTONIC)
}

fn refused(place: String, refusal: BoxRefusal) -> StimulusError {
    match refusal {
        BoxRefusal::Channels { .. } | BoxRefusal::Period { .. } => {
            StimulusError::Impossible(refusal.to_string())
        }
        BoxRefusal::Ended => StimulusError::Ended,
        other => StimulusError::Foreign { place, reason: other.to_string() },
    }
}

/// Why a port that was open is gone.
fn gone(e: &SysError) -> String {
    format!("the port is gone ({e}): the cable was pulled, or the box lost its supply")
}

fn open(port: &Path) -> Result<SerialPort, StimulusError> {
    let place = port.display().to_string();
    let opened = SerialPort::open(port, BAUD);
    opened.map_err(|e| {
        let reason = match e.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "no permission; join the group of the port (`sudo usermod -aG dialout $USER`) and log in again".to_owned()
            }
            std::io::ErrorKind::ResourceBusy => {
                format!("another program uses this port; end it (`fuser {place}` names it)")
            }
            std::io::ErrorKind::NotFound => {
                "there is no such port; `ls /dev/serial/by-id` lists those of USB, and without any the box is not plugged in or has no firmware (`tailbound box flash`)".to_owned()
            }
            _ => format!("it is no serial port of {BAUD} baud: {e}"),
        };
        StimulusError::Unreachable { place, reason }
    })
}
