// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound agent`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "What the owner allows is in /etc/tailbound/agent.toml. Without that file campaigns measure beside harmless loads, for at most an hour, \
and change nothing; nothing that a server says is ever a command. The file, a service for systemd, and who can do what at worst: docs/agent.md.\n\n\
Exit status: 0 it was asked to end (Ctrl-C, SIGTERM), or with --once: there was no work, or it was refused, or is complete and handed in; 2 usage or input error; \
3 this machine cannot, somebody has it, or the server does not answer; 5 with --once: a run is not complete, or not handed in yet.\n\n\
Examples:\n  tailbound agent --server https://farm.example:8787 --token-file /etc/tailbound/agent.token --ca /etc/tailbound/farm.pem\n  \
tailbound agent --server http://127.0.0.1:8787 --token-file token --spool spool --once"
)]
pub(crate) struct AgentArgs {
    /// The server: https://NAME:PORT; plain http to this machine alone
    #[arg(long, value_name = "URL")]
    pub(crate) server: String,
    /// File with this machine's token, which others must not read
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: PathBuf,
    /// Certificates (PEM) of the authorities to believe, instead of the machine's own
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// What the owner allows [default: /etc/tailbound/agent.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Where runs are kept until the server has them [default: /var/lib/tailbound/agent for root; else ~/.local/state/tailbound/agent]
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
    /// The longest pause between two questions, when the server does not answer or somebody has the machine
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) every: String,
    /// Ask once, do what comes of it, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Allow plain http to another machine: only where something else encrypts the way
    #[arg(long)]
    pub(crate) insecure_http: bool,
    /// Print what was done as JSON when it ends
    #[arg(long)]
    pub(crate) json: bool,
}
