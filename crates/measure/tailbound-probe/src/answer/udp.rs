// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `answer-udp`: datagrams are answered to their sender.
//!
//! Context: SETUP. Units: ns. Not here: the line (`tailbound_sys::answer::udp`), the engine ([`super`]).
//! Only pulses are answered, by as many bytes: nobody gains by sending in another's name.

use std::net::{IpAddr, SocketAddr};

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_host::clock_id;
use tailbound_rt::answer::PulseTally;
use tailbound_sys::SysError;
use tailbound_sys::answer::By;
use tailbound_sys::answer::udp::Udp;

use super::Answering;
use crate::error::ProbeError;
use crate::figures::figure;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::thread_group::{ProbeOutput, Running};

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "answer-udp",
    about: "answer datagrams from outside: how late is each answer?",
    from: "the kernel's stamp of the datagram, in software (SO_TIMESTAMPING)",
    to: "the clock read after sendto(2) of the answer returned",
    replaces: &[],
    options: &[
        ProbeOption::new(
            "address",
            "ADDRESS:PORT",
            "",
            "where the pulses arrive; needed. `0.0.0.0:PORT` is every network of this machine",
        ),
        ProbeOption::new("sender", "ADDRESS", "", "answer this sender alone"),
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

#[derive(Clone, Copy, Debug)]
struct Options {
    at: SocketAddr,
    only: Option<IpAddr>,
    by: By,
}

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = setup.options();
    let by = super::by(setup)?;
    let only = options.text("sender").map(|text| {
        text.parse::<IpAddr>()
            .map_err(|_| options.wrong("sender", "write an address, such as 192.168.1.9"))
    });
    let only = only.transpose()?;
    let at = options.text("address").ok_or_else(|| ProbeError::NeedsOption {
        probe: KIND.name,
        option: "address".to_owned(),
        what: "where the pulses arrive, such as 192.168.1.7:2307".to_owned(),
    })?;
    let at = at.parse().map_err(|_| {
        options.wrong("address", "write an address and a port: 192.168.1.7:2307, [::1]:2307")
    })?;
    let options = Options { at, only, by };
    // Tried, and closed again: what comes while loads are started belongs to no run.
    options.open(setup)?;
    Ok(Prepared::with(options, begin))
}

impl Options {
    fn open(&self, setup: &Setup<'_>) -> Result<Udp, ProbeError> {
        Ok(Udp::open(self.at, self.only, self.by, clock_id(setup.plan.clock))?)
    }
}

fn begin(setup: &Setup<'_>, options: Options) -> Result<Running, ProbeError> {
    super::begin(setup, options.open(setup)?)
}

impl Answering for Udp {
    fn forget(&mut self) -> Result<(), SysError> {
        // Its queue began with the run.
        self.attach()
    }

    fn output(&self, tally: &PulseTally) -> ProbeOutput {
        let mut output = ProbeOutput::default();
        output.figures.extend([
            figure("stamp-error", tally.error_ns_max.real(), "ns", "most that a stamp is wrong by: CLOCK_REALTIME read between two readings of the run's clock"),
            figure("senders", tally.senders.real(), "1", "senders whose sequences were followed"),
        ]);
        let card = match self.hardware_stamps() {
            0 => "the card stamped none".to_owned(),
            n => format!(
                "the card stamped {} by its own clock, which is not used: nothing compares it with this machine's clock at a known error",
                grouped(n)
            ),
        };
        let error = format_ns_i64(tally.error_ns_max);
        output.findings.push(
            Finding::new(
                "answer-path",
                Impact::Notice,
                format!("timed from the kernel's stamp of the datagram, in software, known to {error}; {card}"),
            )
            .meaning("Before the stamp come wire, card and the interrupt up to the driver; after the end come the answer's way through card and wire."),
        );
        if tally.unstamped > 0 {
            output.findings.push(Finding::listed(
                "pulses-unstamped",
                Impact::Doubt,
                format!(
                    "{} of the pulses had no stamp: their time begins when the thread ran",
                    grouped(tally.unstamped)
                ),
            ));
        }
        output
    }
}
