// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server: takes run files over HTTP, keeps them in a store, and shows them.
//!
//! Pages and the JSON API give the same answers, from `tailbound-store`. What is answered to an upload is on
//! disk. Source: RFC 9110 (HTTP), RFC 6750 (bearer tokens). Not here: words of the command line.

mod agents;
mod answers;
mod api;
mod app;
mod boards;
mod body;
mod budget;
mod campaigns;
mod clock;
mod connections;
mod counters;
mod frame;
mod hosts;
mod judge_error;
mod judges;
mod known;
mod listing;
mod log;
mod login;
mod metrics;
mod morning;
mod overview;
mod page;
mod pictures;
mod problem;
mod readers;
mod records;
mod regressions;
mod remarks;
mod reply;
mod routes;
mod runs;
mod runs_page;
mod searcher;
mod sessions;
mod system;
mod tell;
mod tls;
pub mod tokens;
mod under_way;
mod unread;
mod upload;
mod who;
mod work;
mod work_page;
mod writer;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tailbound_agent::hook::Hook;
use tailbound_agent::wire::{PLAIN_RUN_BYTES_MAX, SENT_RUN_BYTES_MAX};
use tailbound_store::{StoreError, StoreLocation};
use tokio::net::TcpListener;

pub use clock::Clock;

/// How the server is to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the runs are kept.
    pub store: StoreLocation,
    /// Address and port; port 0: any that is free.
    pub listen: SocketAddr,
    /// Certificate chain and private key, PEM; `None`: plain HTTP.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whoever reaches it may read, without a token.
    pub open: bool,
    /// Names under which it is reached, besides those of loopback; empty: any, where a token is asked for.
    pub hosts: Vec<String>,
    /// Most bytes of an upload as it is sent.
    pub upload_bytes_max: u64,
    /// Most bytes of it when unpacked.
    pub plain_bytes_max: u64,
    /// How long a request may take, and how long its answer may stay unread.
    pub request_time: Duration,
    /// An agent that is not heard of for so long has lost its work.
    pub lease: Duration,
    /// Who is told of new regressions.
    pub webhooks: Vec<Arc<Hook>>,
}

impl Config {
    /// The usual limits.
    #[must_use]
    pub fn new(store: StoreLocation, listen: SocketAddr) -> Self {
        Self {
            store,
            listen,
            tls: None,
            open: listen.ip().is_loopback(),
            hosts: Vec::new(),
            upload_bytes_max: SENT_RUN_BYTES_MAX,
            plain_bytes_max: PLAIN_RUN_BYTES_MAX,
            request_time: Duration::from_secs(60),
            lease: Duration::from_secs(300),
            webhooks: Vec::new(),
        }
    }
}

/// Why it cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The address.
    #[error("{listen}: {reason}")]
    Listen {
        /// Which.
        listen: SocketAddr,
        /// Why not.
        reason: std::io::Error,
    },
    /// Certificate or key.
    #[error("{path}: {reason}")]
    Certificate {
        /// Which file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A key that is not the server's alone.
    #[error("{0}")]
    Key(tailbound_agent::client::ClientError),
    /// Without encryption a token could be read on its way.
    #[error(
        "{0} is reached from other machines, where tokens could be read on their way: give --cert and --key, or listen on 127.0.0.1; behind a proxy or a tunnel with --closed, as it would otherwise show everything to whoever reaches that"
    )]
    Plain(SocketAddr),
    /// Something of the operating system.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// What goes on when all connections were ended may take so long.
const LEFT_BEHIND: Duration = Duration::from_secs(2);

/// Serves until `stop` is done. `ready` is given the address once it listens.
///
/// # Errors
/// It cannot begin.
pub fn serve(
    config: Config,
    clock: Clock,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    if config.tls.is_none() && !config.listen.ip().is_loopback() {
        return Err(ServeError::Plain(config.listen));
    }
    let tls = config.tls.as_ref().map(|(cert, key)| tls::acceptor(cert, key)).transpose()?;
    let app = Arc::new(app::App::open(config.clone(), clock)?);
    // The client of PostgreSQL says farewell in a runtime of its own, which cannot be within ours: connections outlive it.
    let connections = Arc::clone(&app);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async move {
        let listener = TcpListener::bind(config.listen)
            .await
            .map_err(|reason| ServeError::Listen { listen: config.listen, reason })?;
        ready(listener.local_addr()?);
        // The first who looks at the farm does not wait until all of it is read.
        let first = Arc::clone(&app);
        tokio::spawn(
            async move { boards::all(&first, boards::usual(&first).shown).await.map(drop) },
        );
        let routes = routes::all(Arc::clone(&app));
        let stop = async move {
            stop.await;
            app.ending.send_replace(true);
        };
        connections::serve(listener, tls, routes, config.request_time, stop).await?;
        Ok(())
    });
    // What still works on a question has heard that nobody waits for it; it is not waited for.
    runtime.shutdown_timeout(LEFT_BEHIND);
    drop(connections);
    served
}

/// Done when the process is asked to end: SIGINT or SIGTERM.
pub async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
