// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a board does that boots an initramfs of `tailbound board initramfs`: measure, hand in, end.
//!
//! Units: s. [`BoardJob`] is a file of the initramfs.
//! Not here: who does it (`tailbound-guest`), who makes it (`tailbound-lab`).

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::lab::{Job, Later};

/// Where the initramfs has it. A program that does not hold this text cannot be the first process of a board.
pub const JOB: &str = "/tailbound-board-1.json";
/// What each line of the board on its console begins with.
pub const SAYS: &str = "tailbound board: ";
/// Where a server of `tailbound serve` takes runs.
const SERVER_PATH: &str = "/api/v1/runs";

/// How the board ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoardEnd {
    /// Off.
    #[default]
    Poweroff,
    /// From the beginning, whatever it boots then.
    Reboot,
    /// It stands still, with power.
    Halt,
}

impl BoardEnd {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Poweroff, Self::Reboot, Self::Halt];

    /// As it is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Poweroff => "poweroff",
            Self::Reboot => "reboot",
            Self::Halt => "halt",
        }
    }

    /// What the board does now.
    #[must_use]
    pub fn doing(self) -> &'static str {
        match self {
            Self::Poweroff => "powers off",
            Self::Reboot => "reboots",
            Self::Halt => "halts",
        }
    }
}

impl FromStr for BoardEnd {
    type Err = BoardWordError;
    fn from_str(text: &str) -> Result<Self, BoardWordError> {
        let known = Self::ALL.into_iter().find(|end| end.name() == text);
        known.ok_or_else(|| BoardWordError::End(text.to_owned()))
    }
}

/// A receiver of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReceiver {
    /// Its address.
    pub address: SocketAddr,
    /// With its slash.
    pub path: String,
    /// How the run is handed in.
    pub method: HttpMethod,
}

/// How a run is handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpMethod {
    /// To a server of `tailbound serve`.
    Post,
    /// As a file, to any other.
    Put,
}

impl HttpMethod {
    /// As HTTP says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// Where the run goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Destination {
    /// To the console.
    #[default]
    Serial,
    /// To a receiver; to the console where that fails.
    Http(HttpReceiver),
}

impl Destination {
    /// Does a token for it leave this machine unencrypted?
    #[must_use]
    pub fn is_other_machine(&self) -> bool {
        matches!(self, Self::Http(to) if !to.address.ip().is_loopback())
    }
}

impl FromStr for Destination {
    type Err = BoardWordError;
    fn from_str(text: &str) -> Result<Self, BoardWordError> {
        if text == "serial" {
            return Ok(Self::Serial);
        }
        let refused = |why| BoardWordError::Destination { text: text.to_owned(), why };
        let Some(rest) = text.strip_prefix("http://") else {
            return Err(refused("write serial or http://ADDRESS:PORT/PATH"));
        };
        let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let with_port = address.parse().or_else(|_| format!("{address}:80").parse());
        let address = with_port.map_err(|_| {
            refused("the host must be an address, such as 192.168.1.9: a board looks up no names")
        })?;
        let printable = path.bytes().all(|b| b.is_ascii_graphic());
        match path {
            _ if !printable => Err(refused("a path has neither spaces nor control characters")),
            "" | "/" | SERVER_PATH => Ok(Self::Http(HttpReceiver {
                address,
                path: SERVER_PATH.to_owned(),
                method: HttpMethod::Post,
            })),
            _ => Ok(Self::Http(HttpReceiver {
                address,
                path: path.to_owned(),
                method: HttpMethod::Put,
            })),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serial => f.write_str("serial"),
            Self::Http(to) => write!(f, "http://{}{}", to.address, to.path),
        }
    }
}

impl TryFrom<String> for Destination {
    type Error = BoardWordError;
    fn try_from(text: String) -> Result<Self, BoardWordError> {
        text.parse()
    }
}

impl From<Destination> for String {
    fn from(to: Destination) -> Self {
        to.to_string()
    }
}

/// How the board gets an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AddressSource {
    /// The kernel, by `ip=` on its command line.
    #[default]
    Kernel,
    /// A server in its network.
    Dhcp,
    /// This one.
    Fixed {
        /// The address.
        address: Ipv4Addr,
        /// Bits of its network.
        prefix: u8,
        /// The way to other networks.
        gateway: Option<Ipv4Addr>,
    },
}

impl FromStr for AddressSource {
    type Err = BoardWordError;
    fn from_str(text: &str) -> Result<Self, BoardWordError> {
        let fixed = || {
            let (own, gateway) = match text.split_once(',') {
                Some((own, gateway)) => (own, Some(gateway.parse().ok()?)),
                None => (text, None),
            };
            let (address, prefix) = own.split_once('/')?;
            let (address, prefix) = (address.parse().ok()?, prefix.parse().ok()?);
            (1..=32).contains(&prefix).then_some(Self::Fixed { address, prefix, gateway })
        };
        match text {
            "kernel" => Ok(Self::Kernel),
            "dhcp" => Ok(Self::Dhcp),
            _ => fixed().ok_or_else(|| BoardWordError::Address(text.to_owned())),
        }
    }
}

impl fmt::Display for AddressSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel => f.write_str("kernel"),
            Self::Dhcp => f.write_str("dhcp"),
            Self::Fixed { address, prefix, gateway } => {
                write!(f, "{address}/{prefix}")?;
                gateway.map_or(Ok(()), |gateway| write!(f, ",{gateway}"))
            }
        }
    }
}

impl TryFrom<String> for AddressSource {
    type Error = BoardWordError;
    fn try_from(text: String) -> Result<Self, BoardWordError> {
        text.parse()
    }
}

impl From<AddressSource> for String {
    fn from(source: AddressSource) -> Self {
        source.to_string()
    }
}

/// A word that a board cannot follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardWordError {
    /// No end.
    #[error("`{0}` is no end of a board: write poweroff, reboot or halt")]
    End(String),
    /// No destination.
    #[error("`{text}`: {why}")]
    Destination {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No address.
    #[error(
        "`{0}` gives no address: write kernel, dhcp, or ADDRESS/BITS[,GATEWAY] such as 192.168.1.20/24,192.168.1.1"
    )]
    Address(String),
}

/// What the board does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardJob {
    /// The measurement.
    pub job: Job,
    /// Where the run goes.
    pub send: Destination,
    /// For a server of `tailbound serve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How it gets an address, where it needs one.
    pub address: AddressSource,
    /// How it ends.
    pub then: BoardEnd,
    /// Fields of a later version: a job that has one is not done.
    #[serde(flatten)]
    pub later: Later,
}

impl BoardJob {
    /// Names of the fields that this version does not know.
    #[must_use]
    pub fn unknown_fields(&self) -> Vec<String> {
        self.later.keys().cloned().chain(self.job.unknown_fields()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_and_addresses_are_read_as_they_are_written() {
        for text in ["serial", "http://10.0.2.2:8787/a/run.jsonl", "http://[fe80::1]:80/x"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
        let Ok(Destination::Http(to)) = "http://192.168.1.9:8787".parse() else { unreachable!() };
        assert_eq!((to.path.as_str(), to.method), (SERVER_PATH, HttpMethod::Post));
        let Ok(Destination::Http(to)) = "http://192.168.1.9/x".parse() else { unreachable!() };
        assert_eq!((to.address.port(), to.method), (80, HttpMethod::Put));
        for text in ["https://1.2.3.4/", "http://board.example/", "http://1.2.3.4/a b", "usb"] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
        for text in ["kernel", "dhcp", "10.0.2.15/24", "10.0.2.15/24,10.0.2.2"] {
            assert_eq!(text.parse::<AddressSource>().unwrap().to_string(), text);
        }
        for text in ["10.0.2.15", "10.0.2.15/33", "10.0.2.15/0", "10.0.2.15/24,x", ""] {
            assert!(text.parse::<AddressSource>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_job_comes_back_and_a_later_one_is_known() {
        let job = BoardJob { token: Some("t".to_owned()), ..BoardJob::default() };
        let text = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<BoardJob>(&text).unwrap(), job);
        let later = text.replacen('{', "{\"tomorrow\":1,", 1);
        let later: BoardJob = serde_json::from_str(&later).unwrap();
        assert_eq!(later.unknown_fields(), ["tomorrow"]);
    }
}
