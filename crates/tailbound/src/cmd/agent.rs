// SPDX-License-Identifier: MIT OR Apache-2.0
//! `agent`: a machine that asks a server for work.
//!
//! Not here: what it does (`tailbound_agent`).

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tailbound_agent::agent::{self, AgentError, Settings, Summary};
use tailbound_agent::client::{ClientError, PlainHttp, Server};
use tailbound_sys::signal::Signals;
use tailbound_sys::{owner, process};

use crate::cli_agent::AgentArgs;
use crate::flags;
use crate::say::{self, Failure};

/// Root's place for what services keep.
const OF_ROOT: &str = "/var/lib/tailbound/agent";
const OF_USER: &str = ".local/state/tailbound/agent";

impl From<AgentError> for Failure {
    fn from(e: AgentError) -> Self {
        match e {
            AgentError::Client(ClientError::Given { .. }) | AgentError::Policy(_) => Self::usage(e),
            _ => Self::cannot(e),
        }
    }
}

/// `tailbound agent`
pub(crate) fn agent(args: &AgentArgs) -> Result<ExitCode, Failure> {
    let every = flags::time("--every", &args.every)?;
    if every < 1_000_000_000 {
        return Err(Failure::usage(format!("--every: {} is below 1 s", args.every)));
    }
    let settings = Settings {
        server: Server {
            url: args.server.clone(),
            token_file: args.token_file.clone(),
            ca: args.ca.clone(),
            plain_http: PlainHttp::allowed_if(args.insecure_http),
        },
        policy: args.policy.clone(),
        spool: args.spool.clone().map_or_else(spool, Ok)?,
        every: Duration::from_nanos(every.unsigned_abs()),
        once: args.once,
        program: std::env::current_exe().map_err(Failure::cannot)?,
    };
    // Before any thread is made, so that no signal ends the process on the way.
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let did = agent::run(&settings, &signals, &mut |line| say::note(&format!("agent: {line}")))?;
    if args.json {
        say::answer_json(&json!({
            "done": did.done, "not_complete": did.not_complete, "refused": did.refused, "left": did.left,
        }))?;
    }
    Ok(ExitCode::from(if args.once { status(did) } else { 0 }))
}

fn status(did: Summary) -> u8 {
    if did.not_complete > 0 || did.left > 0 { 5 } else { 0 }
}

fn spool() -> Result<PathBuf, Failure> {
    if process::is_root() {
        return Ok(PathBuf::from(OF_ROOT));
    }
    let home = owner::home().ok_or_else(|| Failure::usage("there is no HOME: give --spool DIR"))?;
    Ok(home.join(OF_USER))
}
