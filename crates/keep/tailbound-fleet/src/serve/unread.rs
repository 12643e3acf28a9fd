// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream whose writes give up when the other side takes nothing for a while.
//!
//! The kernel's own limit (TCP_USER_TIMEOUT) was not enough: a client that went on sending was once still connected after a minute. It is
//! looked at when a probe of the closed window is due, which packets of the client may put off (as the source reads; not proved).
//! Source: Linux net/ipv4/tcp_input.c (`tcp_ack_probe`), tcp_timer.c (`tcp_probe_timer`).

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// See the module.
pub(super) struct Unread<S> {
    stream: S,
    time: Duration,
    /// Since a write waits.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S: Unpin> Unread<S> {
    /// Each write may wait for so long.
    pub(super) fn new(stream: S, time: Duration) -> Self {
        Self { stream, time, waits: None }
    }

    fn limited<T>(&mut self, cx: &mut Context<'_>, made: Poll<Result<T>>) -> Poll<Result<T>> {
        if made.is_ready() {
            self.waits = None;
            return made;
        }
        let time = self.time;
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        waits.as_mut().poll(cx).map(|()| Err(Error::from(ErrorKind::TimedOut)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unread<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unread<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let made = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.limited(cx, made)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let made = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.limited(cx, made)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Nothing is kept here, and a flush that is always done must not end the waiting of a write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
