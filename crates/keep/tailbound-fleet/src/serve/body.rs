// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a client sends, taken in pieces within a budget of memory; and an answer that is held within one.
//!
//! A piece is copied into blocks of one size: what the connection read at once is larger than what came, and would be kept whole.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame, SizeHint};

use super::app::App;
use super::budget::Reservation;
use super::problem::Problem;

const BLOCK: usize = 64 << 10;

/// A body as it came. Blocks that were read are given back.
#[derive(Debug)]
pub(super) struct SentBytes {
    blocks: VecDeque<Vec<u8>>,
    /// Of the first block.
    read: usize,
    held: Reservation,
}

impl SentBytes {
    /// Its first bytes.
    pub(super) fn begin(&self) -> &[u8] {
        self.blocks.front().map_or(&[], Vec::as_slice)
    }

    /// All of it as one piece, of small bodies.
    pub(super) fn whole(self) -> Vec<u8> {
        self.blocks.into_iter().flatten().collect()
    }

    /// As if these bytes had come.
    #[cfg(test)]
    pub(super) fn of(bytes: &[u8], held: Reservation) -> Result<Self, Problem> {
        let mut it = Self { blocks: VecDeque::new(), read: 0, held };
        it.add(bytes).map(|()| it)
    }

    fn add(&mut self, mut piece: &[u8]) -> Result<(), Problem> {
        while !piece.is_empty() {
            if self.blocks.back().is_none_or(|block| block.len() == BLOCK) {
                let bytes = self.held.bytes() + BLOCK as u64;
                self.held.hold(bytes).map_err(|_| Problem::Busy)?;
                self.blocks.push_back(Vec::with_capacity(BLOCK));
            }
            let Some(block) = self.blocks.back_mut() else { break };
            let (now, rest) = piece.split_at(piece.len().min(BLOCK - block.len()));
            block.extend_from_slice(now);
            piece = rest;
        }
        Ok(())
    }
}

impl Read for SentBytes {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        while let Some(block) = self.blocks.front() {
            let rest = block.get(self.read..).unwrap_or_default();
            if rest.is_empty() {
                self.blocks.pop_front();
                self.read = 0;
                let bytes = self.held.bytes().saturating_sub(BLOCK as u64);
                // Less is always granted.
                let _ = self.held.hold(bytes);
                continue;
            }
            let n = rest.len().min(to.len());
            let (from, to) = (rest.get(..n).unwrap_or_default(), to.get_mut(..n));
            if let Some(to) = to {
                to.copy_from_slice(from);
            }
            self.read += n;
            return Ok(n);
        }
        Ok(0)
    }
}

/// Takes a body of at most `most` bytes, within the time of a request, in the name of `owner`.
pub(super) async fn taken(
    app: &App,
    owner: &str,
    mut body: Body,
    most: u64,
) -> Result<SentBytes, Problem> {
    let too_large = || {
        Problem::TooLarge(format!(
            "what is sent here has at most {most} bytes, and must come whole"
        ))
    };
    let held = app.memory.reservation(owner);
    let mut sent = SentBytes { blocks: VecDeque::new(), read: 0, held };
    let all = async {
        if body.size_hint().lower() > most {
            passed_over(&mut body, most.saturating_mul(PASSED_OVER)).await;
            return Err(too_large());
        }
        let mut bytes = 0u64;
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let Ok(frame) = frame else { return Err(too_large()) };
            if let Ok(piece) = frame.into_data() {
                bytes = bytes.saturating_add(piece.len() as u64);
                if bytes > most {
                    let left = most.saturating_mul(PASSED_OVER).saturating_sub(bytes);
                    passed_over(&mut body, left).await;
                    return Err(too_large());
                }
                sent.add(&piece)?;
            }
        }
        Ok(())
    };
    tokio::time::timeout(app.config.request_time, all).await.map_err(|_| Problem::TooSlow)??;
    Ok(sent)
}

/// So many times what is taken is read of a body that is too large.
const PASSED_OVER: u64 = 3;

/// Reads on, up to `most` bytes, and keeps nothing: a client that still sends when the connection closes never sees the answer,
/// and would come again.
async fn passed_over(body: &mut Body, most: u64) {
    let mut bytes = 0u64;
    while bytes < most {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, |piece| piece.len() as u64),
            _ => return,
        }
    }
}

/// An answer whose bytes are counted until they are sent or given up.
pub(super) struct HeldBody {
    body: Body,
    _held: Reservation,
}

impl HeldBody {
    pub(super) fn new(body: Body, held: Reservation) -> Self {
        Self { body, _held: held }
    }
}

impl hyper::body::Body for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer that is made while it is sent.
pub(super) struct PieceBody(pub(super) tokio::sync::mpsc::Receiver<std::io::Result<Bytes>>);

impl hyper::body::Body for PieceBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
