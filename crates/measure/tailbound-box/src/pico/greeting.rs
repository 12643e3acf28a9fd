// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is at the port, and why it is no box that can be measured with.

use tailbound_wire::{BoxFault, Chip, Hello, VERSION};

use crate::stimulus::LinkLosses;

/// Of the firmware that this program has and speaks with: major and minor.
pub const FIRMWARE: [u8; 2] =
    [number(env!("CARGO_PKG_VERSION_MAJOR")), number(env!("CARGO_PKG_VERSION_MINOR"))];

const fn number(digits: &str) -> u8 {
    match u8::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version of cargo's has numbers of one byte"),
    }
}

/// Why a box cannot be measured with. What to do is in the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoxRefusal {
    /// Nothing came.
    #[error(
        "nothing answers: this is no box, it does not run, or another port is meant; unplug it and plug it in again, and look with `ls /dev/serial/by-id`"
    )]
    NoAnswer,
    /// Bytes came that are not of a box.
    #[error(
        "something else than a box answers: {bytes} bytes came, and none of its frames; name another port"
    )]
    NoBox {
        /// How many came.
        bytes: u64,
    },
    /// Frames of another version came.
    #[error(
        "this box speaks another version than {VERSION}: give it the firmware of this program with `tailbound box flash`"
    )]
    OtherProtocol,
    /// The firmware is another.
    #[error(
        "the firmware of this box is {}.{}.{}, and this program goes with {}.{}: use `tailbound box flash`",
        .0[0], .0[1], .0[2], FIRMWARE[0], FIRMWARE[1]
    )]
    OtherFirmware([u8; 3]),
    /// Fewer channels than asked for.
    #[error("this box has {has} channels, and {asked} are asked for")]
    Channels {
        /// Channels of the box.
        has: u8,
        /// As many as were asked for.
        asked: u8,
    },
    /// The period is too short or too long.
    #[error("a period of {asked_ns} ns: this box does {least_ns} ns to {most_ns} ns")]
    Period {
        /// What was asked for.
        asked_ns: i64,
        /// The shortest.
        least_ns: i64,
        /// The longest.
        most_ns: i64,
    },
    /// It said no.
    #[error("the box refused {what}: {}", reason(*.fault))]
    Refused {
        /// What it was asked to do.
        what: &'static str,
        /// What it said.
        fault: BoxFault,
    },
    /// The port went away before anything was measured.
    #[error("{0}; nothing was measured")]
    Lost(String),
    /// Somebody ended it before anything was measured.
    #[error("ended before the first pulse; nothing was measured")]
    Ended,
}

/// What a fault means, for people.
pub(crate) const fn reason(fault: BoxFault) -> &'static str {
    match fault {
        BoxFault::Kind => "it does not know this message",
        BoxFault::Value => "a value is outside of what it can do",
        BoxFault::Measuring => "it measures already",
        BoxFault::NotSet => "nothing was set",
        BoxFault::Slipped => "its schedule slipped",
    }
}

/// Why nobody answered the first question.
pub(crate) fn silence(bytes: u64, losses: LinkLosses) -> BoxRefusal {
    if losses.foreign > 0 {
        BoxRefusal::OtherProtocol
    } else if bytes > 0 {
        BoxRefusal::NoBox { bytes }
    } else {
        BoxRefusal::NoAnswer
    }
}

/// Whether this program and the box understand each other.
pub(crate) fn greeted(hello: &Hello) -> Result<(), BoxRefusal> {
    let [major, minor, _] = hello.firmware;
    if [major, minor] != FIRMWARE || hello.tick_hz == 0 {
        return Err(BoxRefusal::OtherFirmware(hello.firmware));
    }
    Ok(())
}

/// What a chip is called.
pub(crate) const fn chip(chip: Chip) -> &'static str {
    match chip {
        Chip::Rp2040 => "Raspberry Pi Pico (RP2040)",
        Chip::Rp2350 => "Raspberry Pi Pico 2 (RP2350)",
    }
}
