// SPDX-License-Identifier: MIT OR Apache-2.0
//! What agents, operators and the server say to each other about work, as JSON.
//!
//! Units: s in names that end so. Fields that a version does not know are passed over; a change of what a
//! field means is a new [`PROTOCOL`], and a side that does not speak it says so.

use std::io;

use serde::{Deserialize, Serialize};

/// The version of this protocol.
pub const PROTOCOL: u32 = 1;
/// Where an agent asks for work, and an operator hands it out.
pub const WORK: &str = "/api/v1/work";

/// Most bytes of a run file as it is sent: a server takes no more, and a client sends no more.
pub const SENT_RUN_BYTES_MAX: u64 = 48 << 20;
/// The same of what it is when unpacked.
pub const PLAIN_RUN_BYTES_MAX: u64 = 256 << 20;

/// A random number of 128 bits, for an identity or a lease.
///
/// # Errors
/// The kernel has no random bytes.
pub fn number() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// An agent asks: what it says of its machine, in the address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The version that it speaks.
    pub protocol: u32,
    /// Of the program.
    pub version: String,
    /// As uname(1) -m has it.
    pub architecture: String,
    /// As uname(1) -r has it.
    pub kernel: String,
    /// CPUs that are online, where that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Who has the machine, if somebody has: then it takes no work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// How long the answer may wait for work.
    #[serde(default)]
    pub wait_s: u32,
}

/// The answer to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Next {
    /// The version that the answer is in.
    pub protocol: u32,
    /// A piece of work, if there is one.
    #[serde(default)]
    pub work: Option<Order>,
}

/// A piece of work for a machine. It names a campaign and no command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Which: hexadecimal digits.
    pub id: String,
    /// The machine.
    pub system: String,
    /// The campaign's text.
    pub campaign: String,
    /// Which of its runs; empty: all.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Share of the campaign's lengths.
    pub scale: f64,
    /// Measured CPUs, instead of the campaign's.
    #[serde(default)]
    pub cpus: Option<String>,
}

/// An agent takes work: `POST WORK/ID/take`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Take {
    /// A number of its own: the same again is the same agent.
    pub lease: String,
}

/// It has it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LeaseGrant {
    /// Unless it is heard of for so long.
    pub lease_s: u64,
}

/// The machine's owner does not allow it: `POST WORK/ID/refuse`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// Why not.
    pub reason: String,
}

/// The agent is still there: `POST WORK/ID/renew`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Renewal {
    /// Its own.
    pub lease: String,
    /// What the run said last.
    #[serde(default)]
    pub progress: Option<String>,
    /// What is being made. Agents of before there was this do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Doing>,
}

/// A run that is being made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    /// Which run of the campaign.
    pub part: String,
    /// Which of those of this piece of work, from 1.
    pub at: u32,
    /// Of how many.
    pub of: u32,
    /// Since the first one of this piece began.
    pub elapsed_s: u64,
    /// About how long this run, and those of this piece after it, still take.
    pub left_s: u64,
}

/// A run that came of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRun {
    /// Which run of the campaign.
    pub part: String,
    /// Its identity in the store.
    pub run: String,
}

/// It is over, and handed in: `POST WORK/ID/end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The agent's own.
    pub lease: String,
    /// All runs are complete.
    pub complete: bool,
    /// If not, why.
    #[serde(default)]
    pub reason: Option<String>,
    /// What was handed in.
    pub runs: Vec<PartRun>,
}

/// An operator hands work out: `POST WORK`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandOut {
    /// Its identity, made by who hands it out: the same again is the same work.
    pub id: String,
    /// The machine.
    pub system: String,
    /// The campaign's text.
    pub campaign: String,
    /// Which of its runs; empty: all.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Share of the campaign's lengths.
    #[serde(default = "whole")]
    pub scale: f64,
    /// Measured CPUs, instead of the campaign's.
    #[serde(default)]
    pub cpus: Option<String>,
    /// Of what it is a part. Servers of before there was this pass it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
}

/// All that one `fleet run` has made on a machine: what a piece of work is a part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Which: the same for all pieces, also of the same command again.
    pub id: String,
    /// Which of its pieces, from 1.
    pub at: u32,
    /// Of how many.
    pub of: u32,
}

fn whole() -> f64 {
    1.0
}

/// What became of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nobody has taken it yet.
    Waiting,
    /// The machine has it.
    Running,
    /// All runs are complete.
    Done,
    /// They are not.
    Failed,
    /// The machine's owner does not allow it.
    Refused,
    /// The agent was not heard of for the length of its lease.
    Lost,
    /// An operator took it back.
    Cancelled,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

/// Work as the server shows it: `GET WORK/ID`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// What became of it.
    pub state: State,
    /// Why it was refused, failed or is lost.
    #[serde(default)]
    pub reason: Option<String>,
    /// What the machine said last.
    #[serde(default)]
    pub progress: Option<String>,
    /// What came of it.
    #[serde(default)]
    pub runs: Vec<PartRun>,
}

/// An agent as the server knows it: `GET /api/v1/agents`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Its machine.
    pub system: String,
    /// What it said last.
    #[serde(flatten)]
    pub said: Ask,
    /// How long ago that was.
    pub seen_s_ago: u64,
}

/// All agents that were heard of since the server began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Agents {
    /// In the order of their names.
    pub agents: Vec<AgentStatus>,
}

/// The answer to an upload.
#[derive(Clone, Debug, Deserialize)]
pub struct Added {
    /// The run's identity.
    pub run: String,
}

/// What an answer says that is no success.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Problem {
    /// In words.
    #[serde(default)]
    pub error: String,
    /// What the work is, where that is why.
    #[serde(default)]
    pub state: Option<State>,
}
