// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli_store::StoreArg;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "On loopback whoever is on this machine may read; writing always needs a token. Pages: http://127.0.0.1:8787/; API: /api/v1/openapi.json; \
    Prometheus: /metrics. What each role can do: docs/serve.md.\n\n\
    Exit status: 0 it was asked to end (Ctrl-C, SIGTERM); 2 usage; 3 the store, the address or the certificate cannot be used."
)]
pub(crate) struct ServeArgs {
    /// Something else than serving
    #[command(subcommand)]
    pub(crate) what: Option<ServeVerb>,
    /// Address and port to listen on; port 0 is any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8787")]
    pub(crate) listen: SocketAddr,
    /// Certificate chain for HTTPS (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Name under which the server is reached, besides localhost; may be repeated [default: any, where a token is needed to read]
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// A machine's agent that is not heard of for so long has lost its work
    #[arg(long, value_name = "TIME", default_value = "5min")]
    pub(crate) lease: String,
    /// Ask for a token also to read on loopback
    #[arg(long)]
    pub(crate) closed: bool,
    /// Post each new regression to this address, as JSON (docs/serve.md); may be repeated. HTTPS, or this machine
    #[arg(long = "webhook", value_name = "URL", help_heading = "Web hooks")]
    pub(crate) webhooks: Vec<String>,
    /// A file with a secret: what is posted is signed with it (HMAC-SHA256)
    #[arg(long, value_name = "FILE", requires = "webhooks", help_heading = "Web hooks")]
    pub(crate) webhook_secret: Option<PathBuf>,
    /// Certificates of authorities to believe (PEM), instead of this machine's own
    #[arg(long, value_name = "FILE", requires = "webhooks", help_heading = "Web hooks")]
    pub(crate) webhook_ca: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Subcommands of `serve`.
#[derive(Debug, Subcommand)]
pub(crate) enum ServeVerb {
    /// Who may hand in and read
    #[command(subcommand)]
    Token(TokenVerb),
    /// What was done over the network
    Audit(AuditArgs),
}

/// Subcommands about tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Make a token; it is printed once and kept nowhere
    Add(TokenAddArgs),
    /// List tokens, without the tokens themselves
    Ls(TokenLsArgs),
    /// Revoke a token; a server that runs knows at once
    Revoke(TokenRevokeArgs),
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleWord {
    /// A machine: takes its own work, hands in runs of itself, reads nothing else
    Agent,
    /// Reads everything but the audit log, changes nothing
    Reader,
    /// Reads everything, hands out work, hands in runs of any machine
    Operator,
}

/// Arguments of `serve token add`.
#[derive(Debug, Args)]
pub(crate) struct TokenAddArgs {
    /// What people call it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What it may
    #[arg(long, value_enum)]
    pub(crate) role: RoleWord,
    /// Of an agent: the machine whose runs it hands in [default: NAME]
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Arguments of `serve token ls`.
#[derive(Debug, Args)]
pub(crate) struct TokenLsArgs {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Arguments of `serve token revoke`.
#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// Its name or identity; all valid tokens of a name are revoked
    #[arg(value_name = "NAME|ID")]
    pub(crate) which: String,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Arguments of `serve audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// So many lines, the newest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) number: u32,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}
