// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uploads: `POST /api/v1/runs`, a run file, plain or packed with gzip or Zstandard.
//!
//! Bounded in bytes as sent, in bytes as unpacked, in memory of the unpacker and in time. Read and judged whole before
//! it is answered; what is answered is on disk.

use std::io::{BufReader, Read};
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tailbound_store::{Act, Added, Incoming, StoreError, system_name};

use super::app::App;
use super::counters::count;
use super::page::{Problem, json_answer};
use super::who::{Who, allowed};

/// First bytes of a frame of Zstandard (RFC 8878) and of gzip (RFC 1952).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// A frame that wants a larger window (log2) is refused: it would take that much memory.
const WINDOW_LOG_MAX: u32 = 26;
/// Longest name of a system.
const NAME_CHARS_MAX: usize = 120;

/// What is said of a run beside its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Said {
    /// The machine; an agent has its own.
    system: Option<String>,
}

/// Takes a run.
pub(super) async fn run(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Query(said): Query<Said>,
    body: Body,
) -> Result<Response, Problem> {
    let taken = taken(&app, &who, said, body).await;
    match &taken {
        Ok((_, Added::New, _)) => count(&app.counters.added),
        Ok((_, Added::Already, _)) => count(&app.counters.again),
        Err(_) => count(&app.counters.refused),
    }
    let (id, added, system) = taken?;
    if added == Added::New {
        app.teller.came_in(&system);
    }
    let (status, word) = match added {
        Added::New => (StatusCode::CREATED, "new"),
        Added::Already => (StatusCode::OK, "already"),
    };
    Ok(json_answer(status, &json!({"run": id, "system": system, "added": word})))
}

/// Is it a name that a machine can have?
pub(super) fn system_checked(name: &str) -> Result<(), Problem> {
    let long = name.chars().count() > NAME_CHARS_MAX;
    if name.trim().is_empty() || long || name.chars().any(char::is_control) {
        return Err(Problem::Wrong(format!(
            "system: a name has 1 to {NAME_CHARS_MAX} printable characters"
        )));
    }
    Ok(())
}

async fn taken(
    app: &Arc<App>,
    who: &Who,
    said: Said,
    body: Body,
) -> Result<(String, Added, String), Problem> {
    // An agent's name is its token's; what the others may does not depend on the name.
    let named = said.system.or_else(|| who.machine().map(str::to_owned));
    allowed(app, who, Act::HandIn(named.as_deref().unwrap_or_default()))?;
    named.as_deref().map_or(Ok(()), system_checked)?;
    let most = app.config.upload_bytes_max;
    let bytes = tokio::time::timeout(app.config.request_time, axum::body::to_bytes(body, most));
    let bytes = bytes.await.map_err(|_| Problem::TooSlow)?.map_err(|_| {
        Problem::TooLarge(format!("an upload has at most {most} bytes, and must come whole"))
    })?;
    let judging = app.judges.acquire().await.map_err(|_| Problem::Ending)?;
    let plain_bytes_max = app.config.plain_bytes_max;
    let read = tokio::task::spawn_blocking(move || incoming(&bytes, plain_bytes_max)).await;
    drop(judging);
    let incoming = read.map_err(|_| Problem::Ours)??;
    let id = incoming.packed.id.clone();
    let system = named.clone().unwrap_or_else(|| system_name(&incoming.run));
    let added = app.writer.add(incoming, named, who.name(), who.way()).await?;
    Ok((id, added, system))
}

/// A reader that tells when more comes than it may.
struct Bounded<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let n = self.source.read(to)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| {
            std::io::Error::new(
                std::io::ErrorKind::FileTooLarge,
                "the run file is too large when unpacked",
            )
        })?;
        Ok(n)
    }
}

fn incoming(bytes: &Bytes, plain_bytes_max: u64) -> Result<Incoming, Problem> {
    let bounded = |source: &mut dyn Read| {
        let source = Bounded { source, left: plain_bytes_max };
        Incoming::read(BufReader::new(source))
    };
    let read = if bytes.starts_with(&ZSTD) {
        zstd::stream::read::Decoder::with_buffer(bytes.as_ref())
            .and_then(|mut it| it.window_log_max(WINDOW_LOG_MAX).map(|()| it))
            .map_err(StoreError::from)
            .and_then(|mut it| bounded(&mut it))
    } else if bytes.starts_with(&GZIP) {
        bounded(&mut flate2::read::MultiGzDecoder::new(bytes.as_ref()))
    } else {
        bounded(&mut bytes.as_ref())
    };
    // Reading from memory fails by what was sent alone.
    read.map_err(|e| match e {
        StoreError::Io(e) if e.kind() == std::io::ErrorKind::FileTooLarge => {
            Problem::TooLarge(e.to_string())
        }
        StoreError::Io(e) => Problem::Wrong(format!("it cannot be unpacked: {e}")),
        e => Problem::from(e),
    })
}
