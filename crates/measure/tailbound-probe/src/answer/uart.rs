// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `answer-uart`: bytes of a serial port are answered by the same bytes.
//!
//! Context: SETUP. Units: ns, bytes, baud. Not here: the line (`tailbound_sys::answer::uart`), the engine ([`super`]).

use std::path::Path;

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::number::Real as _;
use tailbound_host::clock_id;
use tailbound_rt::answer::PulseTally;
use tailbound_sys::SysError;
use tailbound_sys::answer::uart::{FRAME_BYTES_MAX, SPEEDS, Uart, Use};

use super::Answering;
use super::findings::counted;
use crate::error::ProbeError;
use crate::figures::figure;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{ProbeOutput, Running};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "answer-uart",
    about: "answer bytes of a serial port: how late is each answer?",
    from: "the clock read after the wait for the bytes was over: the kernel stamps none",
    to: "the clock read after write(2) of the answer returned",
    replaces: &[],
    options: &[
        ProbeOption::new("port", "FILE", "", "the serial port; needed"),
        ProbeOption::new(
            "baud",
            "N",
            "115200",
            "its speed; eight bits, no parity, no flow control",
        ),
        ProbeOption::new("frame", "BYTES", "1", "bytes of a pulse and of its answer"),
        ProbeOption::new(
            "counting",
            "YES|NO",
            "no",
            "`yes`: the first byte of each pulse counts up, so that lost ones are known",
        ),
        super::BY,
    ],
    interval: "1ms",
    policy: None,
    event: Some("pulse"),
    property: None,
    hog: false,
    takes: &[],
    prepare,
};

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = setup.options();
    let speeds = SPEEDS.map(|s| s.to_string());
    let speed = options.word("baud", &speeds.each_ref().map(String::as_str))?;
    let how = Use {
        baud: SPEEDS.get(speed).copied().unwrap_or_default(),
        frame_bytes: usize::try_from(options.count("frame", 1..=FRAME_BYTES_MAX as u64)?)
            .unwrap_or(1),
        counts: options.flag("counting")?,
        whole_within_ns: setup.plan.interval_ns,
        by: super::by(setup)?,
        clock: clock_id(setup.plan.clock),
    };
    let port = options.text("port").ok_or_else(|| ProbeError::NeedsOption {
        probe: KIND.name,
        option: "port".to_owned(),
        what: "the serial port, such as /dev/ttyS0".to_owned(),
    })?;
    // Opened once: many a board is reset by that.
    Ok(Prepared::with(Uart::open(Path::new(port), how)?, begin))
}

fn begin(setup: &Setup<'_>, port: Uart) -> Result<Running, ProbeError> {
    super::begin(setup, port)
}

impl Answering for Uart {
    fn forget(&mut self) -> Result<(), SysError> {
        self.attach()
    }

    fn output(&self, _: &PulseTally) -> ProbeOutput {
        let mut output = ProbeOutput::default();
        let torn = self.torn();
        output.figures.push(figure(
            "torn",
            torn.real(),
            "1",
            "pulses whose bytes did not all come",
        ));
        output.findings.push(
            Finding::new(
                "answer-path",
                Impact::Notice,
                "timed from the thread, which runs after the wait for the bytes: the kernel stamps none",
            )
            .meaning("Before it come line, FIFO of the port, interrupt and wake-up; after the end come driver and line. Only a box outside sees all of it."),
        );
        if torn > 0 {
            output.findings.push(Finding::new(
                "pulses-torn",
                Impact::Doubt,
                format!(
                    "{} not become whole within an interval: bytes were lost",
                    counted(torn, "pulse did", "pulses did")
                ),
            ));
        }
        output
    }
}
