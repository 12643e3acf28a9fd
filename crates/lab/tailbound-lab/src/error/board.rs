// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no initramfs for a board, or no run from it.

use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_core::board::BoardWordError;
use tailbound_core::units::ParseTimeError;
use tailbound_sys::SysError;

/// A board that was not made ready, or not heard.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    /// No such architecture.
    #[error("--arch {0}: write x86_64, aarch64, arm or riscv64")]
    Arch(String),
    /// What is to be the program is none.
    #[error("{}: no program (ELF)", .path.display())]
    NoProgram {
        /// The file.
        path: PathBuf,
    },
    /// A program or a module for another machine.
    #[error("{}: is for {found}; the board is {wanted}", .path.display())]
    OtherMachine {
        /// The file.
        path: PathBuf,
        /// What it is for.
        found: String,
        /// What the board is.
        wanted: String,
    },
    /// The program needs what a board has not.
    #[error("{}: is not static, it needs {needed}, which an initramfs has not; give a static one with --program: `make static` (this architecture), `make arm`, or the release tarball", .path.display())]
    Dynamic {
        /// The file.
        path: PathBuf,
        /// A library or the loader.
        needed: String,
    },
    /// The program cannot be the first process of a board.
    #[error("{}: cannot be the first process of a board: it is no tailbound of this version, or was built without the feature `guest`, which `make static` and `make arm` have", .path.display())]
    NoFirstProcess {
        /// The file.
        path: PathBuf,
    },
    /// An option that is about files of this machine.
    #[error(
        "{0}: not on a board, which has no files; `--config FILE` stands before `--`, the run comes back by itself"
    )]
    NotThere(String),
    /// A file of options that is none.
    #[error("{}: {source}", .path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No time.
    #[error("--limit: {source}")]
    Limit {
        /// What is wrong with it.
        source: ParseTimeError,
    },
    /// A word that a board cannot follow.
    #[error(transparent)]
    Word {
        /// Which.
        source: BoardWordError,
    },
    /// An option that is no text.
    #[error("`{0}` is not UTF-8")]
    NoText(String),
    /// A file that holds no token.
    #[error("{}: no token: one line of printable characters", .path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
    /// The token could be read on its way.
    #[error(
        "{to}: without encryption the token could be read on its way: give --insecure-http in a network of your own, or no token"
    )]
    TokenInClear {
        /// Where it would go.
        to: String,
    },
    /// A speed that no serial port has.
    #[error("--baud {0}: no speed of a serial port")]
    Baud(String),
    /// A serial port.
    #[error("{}: {source}", .path.display())]
    Port {
        /// Its device.
        path: PathBuf,
        /// What is wrong with it.
        source: SysError,
    },
    /// A log without a board's lines.
    #[error("{from}: no lines of a board{}", if *.damaged > 0 { format!(", but {damaged} damaged ones") } else { String::new() })]
    NoLines {
        /// The log.
        from: String,
        /// Lines that began as one.
        damaged: u64,
    },
}

impl BoardError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Port { .. } => FailureKind::Cannot,
            _ => FailureKind::Usage,
        }
    }
}
