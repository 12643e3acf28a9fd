// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports that cannot be used: each says what is wrong and what to do.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use tailbound_box::stimulus::{StimulusPlan, StimulusProgress, StimulusShape, StimulusSpacing};
use tailbound_core::FailureKind;
use tailbound_import::stimulus::StimulusRecorder;
use tailbound_stimulus::{Streaming, Via, measure};
use tailbound_sys::serial::SerialPort;

use crate::pty_box::{PtyBox, Weather};
use crate::simulated_box::SimulatedBox;

fn refusal(port: &Path, period_ns: i64) -> (String, FailureKind) {
    let plan = StimulusPlan {
        period_ns,
        duration_ns: 1_000_000_000,
        channels: 1,
        shape: StimulusShape::Toggle,
        spacing: StimulusSpacing::Even,
        deadline_ns: None,
    };
    let mut recorder = StimulusRecorder::new(|_: &StimulusProgress| {});
    let via = Via::Pico(port.to_owned());
    let measured = measure(&via, &plan, Streaming::Samples, &mut recorder, &AtomicBool::new(false));
    let error = measured.expect_err("refused");
    (error.to_string(), error.kind())
}

#[test]
fn what_is_no_port_of_a_box_is_refused_with_what_to_do() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    for (port, words) in [
        (file.path(), "no serial port"),
        (Path::new("/dev/null"), "no serial port"),
        (Path::new("/nonexistent/ttyACM0"), "/dev/serial/by-id"),
    ] {
        let (told, kind) = refusal(port, 100_000);
        assert!(told.contains(words), "{told}");
        assert_eq!(kind, FailureKind::Cannot);
    }
}

#[test]
fn a_port_in_use_and_another_firmware_are_refused() {
    let mut of = SimulatedBox::new(|_, _| Some(1));
    of.firmware = [2, 7, 1];
    let Some(at) = PtyBox::new(of, Weather::default()) else { return };
    let (told, _) = refusal(&at.port, 100_000);
    assert!(told.contains("2.7.1") && told.contains("tailbound box flash"), "{told}");
    let other = SerialPort::open(&at.port, 1_000_000).expect("a port");
    let (told, _) = refusal(&at.port, 100_000);
    assert!(told.contains("another program uses this port"), "{told}");
    drop(other);
}

#[test]
fn a_period_that_the_box_cannot_do_is_wrong_usage() {
    let Some(at) = PtyBox::new(SimulatedBox::new(|_, _| Some(1)), Weather::default()) else {
        return;
    };
    let (told, kind) = refusal(&at.port, 500);
    assert!(told.contains("4000 ns"), "{told}");
    assert_eq!(kind, FailureKind::Usage);
}
