// SPDX-License-Identifier: MIT OR Apache-2.0
//! `monitor --upload`: brings the monitor's run files and the agent's outbox together.
//!
//! Not here: the run files (`tailbound-monitor`), folder and server (`tailbound-agent`). A build without the
//! agent has no client, and no such option.

#[cfg(feature = "agent")]
pub(super) use with::{begin, end, of};
#[cfg(not(feature = "agent"))]
pub(super) use without::{begin, end, of};

#[cfg(feature = "agent")]
mod with {
    use std::time::Duration;

    use tailbound_agent::client::{ClientError, PlainHttp, Server};
    use tailbound_agent::monitor_outbox::MonitorOutbox;
    use tailbound_agent::outbox::{HandIn, Outbox};
    use tailbound_core::units::grouped;
    use tailbound_monitor::Upload;

    use crate::cli_monitor::MonitorArgs;
    use crate::flags;
    use crate::say::{self, Failure};

    /// At the end there is time for one file or two, not for a server that does not answer.
    const LAST: Duration = Duration::from_secs(5);
    const SHORTEST_NS: i64 = 1_000_000_000;

    /// What the monitor is told, and the outbox.
    pub(in crate::cmd) fn of(
        args: &MonitorArgs,
    ) -> Result<(Option<Upload>, Option<Outbox>), Failure> {
        if args.upload.is_none() {
            return Ok((None, None));
        }
        let every_ns = flags::time_from("--upload-every", &args.upload_every, SHORTEST_NS)?;
        let spool = args.spool.display();
        let outbox = Outbox::open(&args.spool, u64::from(args.spool_max) << 20)
            .map_err(|e| Failure::cannot(format!("--spool {spool}: {e}")))?;
        let command = std::env::args().collect();
        let own = Box::new(MonitorOutbox { outbox: outbox.clone(), note: say::note });
        Ok((Some(Upload { every_ns, command, outbox: own }), Some(outbox)))
    }

    /// Begins to hand in.
    pub(in crate::cmd) fn begin(
        args: &MonitorArgs,
        outbox: Option<Outbox>,
    ) -> Result<Option<HandIn>, Failure> {
        let (Some(outbox), Some(url), Some(token_file)) = (outbox, &args.upload, &args.token_file)
        else {
            return Ok(None);
        };
        let server = Server {
            url: url.clone(),
            token_file: token_file.clone(),
            ca: args.ca.clone(),
            plain_http: PlainHttp::allowed_if(args.insecure_http),
        };
        let note = |text: &str| say::note(&format!("tailbound: monitor: upload: {text}"));
        HandIn::begin(outbox, server, note).map(Some).map_err(|e| match e {
            ClientError::Given { .. } => Failure::usage(format!("--upload: {e}")),
            e => Failure::cannot(e),
        })
    }

    /// Lets it hand in what came last.
    pub(in crate::cmd) fn end(handing_in: Option<HandIn>) {
        let Some(standing) = handing_in.map(|h| h.end(LAST)) else { return };
        say::note(&format!(
            "{} run files handed in, {} wait in the spool, {} of the oldest had to go",
            grouped(standing.sent),
            grouped(standing.waiting),
            grouped(standing.dropped)
        ));
    }
}

#[cfg(not(feature = "agent"))]
mod without {
    use tailbound_monitor::Upload;

    use crate::cli_monitor::MonitorArgs;
    use crate::say::Failure;

    /// Nothing.
    pub(in crate::cmd) fn of(_: &MonitorArgs) -> Result<(Option<Upload>, ()), Failure> {
        Ok((None, ()))
    }
    /// Nothing.
    pub(in crate::cmd) fn begin(_: &MonitorArgs, (): ()) -> Result<(), Failure> {
        Ok(())
    }
    /// Nothing.
    pub(in crate::cmd) fn end((): ()) {}
}
