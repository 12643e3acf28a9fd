// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uploads: `POST /api/v1/runs`, a run file, plain or packed with gzip or Zstandard.
//!
//! Bounded in bytes as sent, in bytes as unpacked, in what is kept in memory and in time, while it streams (`judges`). Read and judged
//! whole before it is answered; what is answered is on disk.

use std::cell::RefCell;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tailbound_store::{Act, Added, Cancellation, Incoming, StoreError, system_name};

use super::app::App;
use super::body::{self, SentBytes};
use super::budget::Reservation;
use super::counters::count;
use super::judge_error::JudgeError;
use super::judges::{CancelGuard, JudgeLimits, JudgeWatch};
use super::problem::Problem;
use super::reply::json_answer;
use super::tokens;
use super::who::{Who, allowed};

/// First bytes of a frame of Zstandard (RFC 8878) and of gzip (RFC 1952).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// A frame that wants a larger window (log2) is refused: it would take that much memory. What RFC 8878 recommends to take.
const WINDOW_LOG_MAX: u32 = 23;
/// Of what is unpacked, at a time.
const PIECE: usize = 32 << 10;

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
        app.searcher.came_in();
    }
    let (status, word) = match added {
        Added::New => (StatusCode::CREATED, "new"),
        Added::Already => (StatusCode::OK, "already"),
    };
    Ok(json_answer(status, &json!({"run": id, "system": system, "added": word})))
}

/// Is it a name that a machine can have?
pub(super) fn system_checked(name: &str) -> Result<(), Problem> {
    if tokens::is_name(name) {
        return Ok(());
    }
    Err(Problem::Wrong(format!("system: a name has {}", tokens::NAME_RULE)))
}

async fn taken(
    app: &Arc<App>,
    who: &Who,
    said: Said,
    body: Body,
) -> Result<(String, Added, String), Problem> {
    // An agent's name is its token's; what the others may does not depend on the name.
    let named = said.system.clone().or_else(|| who.machine().map(str::to_owned));
    allowed(app, who, Act::HandIn(named.as_deref().unwrap_or_default()))?;
    said.system.as_deref().map_or(Ok(()), system_checked)?;
    let owner = who.owner();
    let sent = body::taken(app, &owner, body, app.config.upload_bytes_max).await?;
    let time = app.config.request_time;
    // Until it is written: one token has so many under way.
    let _turn = app.judges.of_token(&owner, time).await?;
    let (incoming, held) = judged(app, owner, sent).await?;
    let id = incoming.packed.id.clone();
    let system = named.clone().unwrap_or_else(|| system_name(&incoming.run));
    let added = app.writer.add(incoming, named, who.name(), who.way(), held).await?;
    Ok((id, added, system))
}

/// Unpacks and judges what was sent, while its client waits.
async fn judged(
    app: &Arc<App>,
    owner: String,
    sent: SentBytes,
) -> Result<(Incoming, Reservation), Problem> {
    let time = app.config.request_time;
    let place = app.judges.small(time).await?;
    let cancel = Cancellation::default();
    let _ends = CancelGuard(cancel.clone());
    let held = app.memory.reservation(&owner);
    let plain_bytes_max = app.config.plain_bytes_max;
    let limits = JudgeLimits { cancel, plain_bytes_max, patience: time };
    let mut watch = JudgeWatch::new(Arc::clone(&app.judges), owner, place, held, limits);
    let read = tokio::task::spawn_blocking(move || {
        let incoming = incoming(sent, &mut watch)?;
        let held = watch.over(incoming.packed.zstd.len() as u64);
        Ok((incoming, held))
    });
    read.await.map_err(|_| Problem::Ours)?
}

/// What was sent, watched as it is read: much of it may unpack to nothing.
struct WatchedBytes<'a> {
    sent: SentBytes,
    watch: &'a RefCell<&'a mut JudgeWatch>,
}

impl Read for WatchedBytes<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.watch.borrow_mut().again()?;
        self.sent.read(to)
    }
}

fn incoming(sent: SentBytes, watch: &mut JudgeWatch) -> Result<Incoming, Problem> {
    let watch = &RefCell::new(watch);
    let read = |source: &mut dyn Read| {
        let source = BufReader::with_capacity(PIECE, source);
        Incoming::read_watched(source, |now| watch.borrow_mut().at(now))
    };
    let (is_zstd, is_gzip) = (sent.begin().starts_with(&ZSTD), sent.begin().starts_with(&GZIP));
    let mut sent = WatchedBytes { sent, watch };
    let read = if is_zstd {
        zstd::stream::read::Decoder::new(sent)
            .and_then(|mut it| it.window_log_max(WINDOW_LOG_MAX).map(|()| it))
            .map_err(StoreError::from)
            .and_then(|mut it| read(&mut it))
    } else if is_gzip {
        let sent = BufReader::with_capacity(PIECE, sent);
        read(&mut flate2::bufread::MultiGzDecoder::new(sent))
    } else {
        read(&mut sent)
    };
    // Reading from memory fails by what was sent alone.
    read.map_err(|e| match (e.io().and_then(JudgeError::of), e.io()) {
        (Some(why), _) => Problem::from(why),
        (None, Some(e)) => Problem::Wrong(format!("it cannot be unpacked: {e}")),
        (None, None) => Problem::from(e),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use super::*;
    use crate::serve::budget::MemoryBudget;
    use crate::serve::judges::Judges;

    /// What becomes of `sent` when nobody waits for it.
    fn abandoned(sent: &[u8]) -> Option<Problem> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?;
        let (judges, memory) = (Judges::new(1), MemoryBudget::new(1 << 30, 1 << 30));
        let place = runtime.block_on(judges.small(Duration::from_secs(1))).ok()?;
        let cancel = Cancellation::default();
        cancel.cancel();
        let limits =
            JudgeLimits { cancel, plain_bytes_max: 1 << 30, patience: Duration::from_secs(1) };
        let held = memory.reservation("a");
        let mut watch = JudgeWatch::new(judges, "a".to_owned(), place, held, limits);
        let sent = SentBytes::of(sent, memory.reservation("a")).ok()?;
        incoming(sent, &mut watch).err()
    }

    #[test]
    fn what_unpacks_to_nothing_is_given_up_with_its_request() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let _ = gzip.write_all(&[]);
        let zstd = zstd::encode_all(&[][..], 3).unwrap_or_default();
        for nothing in [gzip.finish().unwrap_or_default(), zstd, b"\n".to_vec()] {
            let told = abandoned(&nothing.repeat(10_000));
            assert!(matches!(told, Some(Problem::Ending)), "{told:?}");
        }
    }
}
