// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections: accepted, encrypted, limited in number and time.
//!
//! A client that sends its request a byte at a time holds one of a bounded number of connections for a bounded
//! time, and nobody else waits for it: handshakes are in tasks of their own. One that does not read its answer is let go
//! (`unread`); what the kernel still has for it then is given up by the kernel. Source: tcp(7), TCP_USER_TIMEOUT.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tailbound_sys::process::raise_open_files;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::unread::Unread;

/// Connections at a time; further ones wait in the kernel's queue.
const MOST: usize = 1024;
/// Descriptors for what is no connection: the store's files, the thread's own.
const OTHER_FILES: u64 = 128;
/// For a handshake, and for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// After a refused accept: file descriptors come back only when others end.
const AGAIN: Duration = Duration::from_millis(100);
/// What is under way when the server ends may take so long.
const LAST: Duration = Duration::from_secs(6);
/// Of a request or of its body, in memory at a time.
const READ_BYTES: usize = 64 << 10;

/// Serves until `stop` is done, and what is under way then to its end. A client that takes nothing of its answer for
/// `unread_time` is let go.
///
/// # Errors
/// The kernel does not know such a time.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    routes: Router,
    unread_time: Duration,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    // Every connection has it of the listener.
    socket2::SockRef::from(&listener).set_tcp_user_timeout(Some(unread_time))?;
    let room = Arc::new(Semaphore::new(places()));
    let graceful = GracefulShutdown::new();
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(64)
        .max_buf_size(READ_BYTES);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = one(&listener, &room) => accepted,
        };
        let Ok((stream, place)) = accepted else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        let stream = Unread::new(stream, unread_time);
        let service = TowerToHyperService::new(routes.clone());
        let (http, tls, watcher) = (http.clone(), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            // How a connection ends is the client's business: it hears of errors in the answers.
            match tls {
                None => {
                    let _ =
                        watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
                }
                Some(tls) => {
                    if let Ok(Ok(stream)) =
                        tokio::time::timeout(HEAD_TIME, tls.accept(stream)).await
                    {
                        let _ = watcher
                            .watch(http.serve_connection(TokioIo::new(stream), service))
                            .await;
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST, graceful.shutdown()).await;
    Ok(())
}

/// Places for connections: so many that the store can open its files beside them.
fn places() -> usize {
    // A kernel that does not tell has the usual limit.
    let files = raise_open_files().unwrap_or(1024);
    usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(MOST).clamp(1, MOST)
}

/// A connection, when there is room for it.
async fn one(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(room).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, place))
}
