// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `sign` and `verify`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `sign`.
#[derive(Debug, Args)]
#[command(
    after_help = "Keys and signatures are those of minisign: either program reads what the other wrote. A run file that was \
changed after it was written is not signed.\n\nExit status: 0 signed, or the key made; 1 a file was changed; 2 usage or input error."
)]
pub(crate) struct SignArgs {
    /// Run files; each gets its signature beside it, in FILE.minisig
    #[arg(value_name = "RUN", required_unless_present = "new_key")]
    pub(crate) runs: Vec<PathBuf>,
    /// The secret key [default: ~/.minisign/minisign.key]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Make a key pair first: the secret one in the key's file, the public one in FILE.pub beside it
    #[arg(long)]
    pub(crate) new_key: bool,
    /// Make the new key without a password: anyone who has the file can sign
    #[arg(short = 'W', long, requires = "new_key")]
    pub(crate) no_password: bool,
    /// Replace an existing signature (never a key)
    #[arg(long)]
    pub(crate) force: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 the file is unchanged, and signed where a key was given; 1 it was changed, or the \
signature is missing or another's; 2 usage or input error; 5 undecided (cut off, or without digest and signature)."
)]
pub(crate) struct VerifyArgs {
    /// Run files
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// The public key: a file, or the key itself (56 characters). Then FILE.minisig must be its signature
    #[arg(short, long, value_name = "FILE|KEY")]
    pub(crate) key: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
