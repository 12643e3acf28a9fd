// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the verbs that look at a running program are told which.

use std::path::Path;

use clap::Args;
use tailbound_host::{ProcessChoice, Root};

use crate::say::Failure;

/// Options beside the number of a process.
#[derive(Debug, Args)]
pub(crate) struct ProcessArgs {
    /// The number of a running process
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Threads of this name alone; may be given more than once. Without a PID, of the one process that has some
    #[arg(long, value_name = "NAME")]
    pub(crate) comm: Vec<String>,
}

/// What a verb that also reads files is about.
pub(crate) enum Subject<'a> {
    File(&'a Path),
    /// By its number, or by the options.
    Process(Option<u32>),
}

impl ProcessArgs {
    /// The word `typed` is a file, or the number of a process where there is no file of that name.
    pub(crate) fn subject<'a>(&self, typed: Option<&'a str>) -> Subject<'a> {
        let Some(word) = typed else { return Subject::Process(None) };
        match word.parse() {
            Ok(pid) if !Path::new(word).exists() => Subject::Process(Some(pid)),
            _ => Subject::File(Path::new(word)),
        }
    }

    /// The process that is meant, where there must be one.
    pub(crate) fn find_one(&self, root: &Root, typed: Option<u32>) -> Result<u32, Failure> {
        self.find(root, typed)?.ok_or_else(|| Failure::usage("name a process: PID, or --comm NAME"))
    }

    /// The process that is meant, which may be `typed`; `None` where nothing says one.
    pub(crate) fn find(&self, root: &Root, typed: Option<u32>) -> Result<Option<u32>, Failure> {
        let choice = ProcessChoice { pid: typed.or(self.pid), comm: &self.comm };
        choice.process(root).map_err(|e| Failure::usage(e.to_string()))
    }
}
