// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which source is measured with: `--via KIND:WHERE`.

use std::path::PathBuf;
use std::str::FromStr;

use crate::linux::SenderTextError;
use crate::{LatmonHost, LinuxSender};

/// A source and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// The box, at a serial port.
    Pico(PathBuf),
    /// A latency box of Zephyr.
    Latmon(LatmonHost),
    /// This machine, which sends datagrams to one that answers them.
    Linux(LinuxSender),
    /// A capture of a logic analyser.
    Capture(PathBuf),
}

impl Via {
    /// Every kind as it is written, with what it is.
    pub const KINDS: [(&'static str, &'static str); 4] = [
        ("pico:PORT", "the box on a Raspberry Pi Pico"),
        ("latmon:HOST[:PORT]", "a latency box of Zephyr, or latmon:broadcast"),
        (
            "linux:HOST:PORT[,policy=fifo:90][,cpu=3][,patience=1s]",
            "datagrams from this machine to a `box answer --udp`",
        ),
        ("capture:FILE", "a capture of a logic analyser"),
    ];
}

/// Text that names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownVia {
    /// No such kind, or nothing after it.
    #[error("`{typed}` is no source; there are {}", listed())]
    Kind {
        /// What was written.
        typed: String,
    },
    /// No host of latmon.
    #[error("`{typed}`: write latmon:HOST or latmon:HOST:PORT")]
    Latmon {
        /// What was written.
        typed: String,
    },
    /// No sender.
    #[error("`{typed}`: {source}")]
    Sender {
        /// What was written.
        typed: String,
        /// What is wrong with it.
        source: SenderTextError,
    },
}

fn listed() -> String {
    let kinds = Via::KINDS.map(|(form, what)| format!("{form} ({what})"));
    kinds.join(", ")
}

impl FromStr for Via {
    type Err = UnknownVia;
    fn from_str(text: &str) -> Result<Self, UnknownVia> {
        let typed = text.to_owned();
        match text.split_once(':') {
            Some(("pico", port)) if !port.is_empty() => Ok(Self::Pico(port.into())),
            Some(("latmon", host)) => {
                LatmonHost::read(host).map(Self::Latmon).ok_or(UnknownVia::Latmon { typed })
            }
            Some(("linux", to)) => LinuxSender::read(to)
                .map(Self::Linux)
                .map_err(|source| UnknownVia::Sender { typed, source }),
            Some(("capture", file)) if !file.is_empty() => Ok(Self::Capture(file.into())),
            _ => Err(UnknownVia::Kind { typed }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_source_is_told_those_that_there_are() {
        assert_eq!("pico:/dev/ttyACM0".parse(), Ok(Via::Pico("/dev/ttyACM0".into())));
        assert_eq!("capture:a:b.vcd".parse(), Ok(Via::Capture("a:b.vcd".into())));
        let latmon = LatmonHost { host: "box.lan".to_owned(), port: 2306 };
        assert_eq!("latmon:box.lan".parse(), Ok(Via::Latmon(latmon)));
        let linux = LinuxSender {
            to: "10.0.0.7:2307".to_owned(),
            policy: tailbound_core::Policy::Fifo(90),
            cpu: Some(3),
            patience_ns: 20_000_000,
        };
        let typed = "linux:10.0.0.7:2307,patience=20ms,cpu=3,policy=fifo:90";
        assert_eq!(typed.parse(), Ok(Via::Linux(linux)));
        for (text, words) in [
            ("linux:", "HOST:PORT"),
            ("linux:host", "HOST:PORT"),
            ("linux:host:2307,fast", "policy="),
            ("linux:host:2307,policy=quick", "scheduling policy"),
            ("linux:host:2307,cpu=x", "number of a CPU"),
            ("linux:host:2307,patience=soon", "soon"),
            ("latmon:", "latmon:HOST"),
        ] {
            let told = text.parse::<Via>().expect_err(text).to_string();
            assert!(told.contains(words) && told.contains(text), "{told}");
        }
        for text in ["", "pico", "pico:", "/dev/ttyACM0", "scope:1"] {
            let told = text.parse::<Via>().expect_err(text).to_string();
            assert!(told.contains("pico:PORT") && told.contains("capture:FILE"), "{told}");
        }
    }
}
