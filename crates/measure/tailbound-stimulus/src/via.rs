// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which source is measured with: `--via KIND:WHERE`.

use std::path::PathBuf;
use std::str::FromStr;

/// A source and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// The box, at a serial port.
    Pico(PathBuf),
    /// A capture of a logic analyser.
    Capture(PathBuf),
}

impl Via {
    /// Every kind as it is written, with what it is.
    pub const KINDS: [(&'static str, &'static str); 2] = [
        ("pico:PORT", "the box on a Raspberry Pi Pico"),
        ("capture:FILE", "a capture of a logic analyser"),
    ];
}

/// Text that names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is no source; there are {}", listed())]
pub struct UnknownVia {
    /// What was written.
    pub typed: String,
}

fn listed() -> String {
    let kinds = Via::KINDS.map(|(form, what)| format!("{form} ({what})"));
    kinds.join(", ")
}

impl FromStr for Via {
    type Err = UnknownVia;
    fn from_str(text: &str) -> Result<Self, UnknownVia> {
        match text.split_once(':') {
            Some(("pico", port)) if !port.is_empty() => Ok(Self::Pico(port.into())),
            Some(("capture", file)) if !file.is_empty() => Ok(Self::Capture(file.into())),
            _ => Err(UnknownVia { typed: text.to_owned() }),
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
        for text in ["", "pico", "pico:", "/dev/ttyACM0", "scope:1"] {
            let told = text.parse::<Via>().expect_err(text).to_string();
            assert!(told.contains("pico:PORT") && told.contains("capture:FILE"), "{told}");
        }
    }
}
