// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at something that goes on, ten times a second, until its time is over or a signal comes.
//!
//! Units: ns, ms where the name says so.
//! Not here: how progress is shown ([`LookProgress`]).

use std::time::{Duration, Instant};

use tailbound_sys::SysError;
use tailbound_sys::signal::Signals;

/// From one look to the next.
const LOOK_MS: i32 = 100;

/// What a wait for the next look came to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// It is time for a look.
    Look,
    /// The time is over.
    Over,
    /// A signal came.
    Signal {
        /// Which.
        number: i32,
        /// The terminal sent it, to everyone there.
        by_terminal: bool,
    },
}

/// Who hears how far it is, after every look.
pub trait LookProgress {
    /// So much is over and, where there is an end, so much left; `line` makes the words, where they are wanted.
    fn look(&mut self, over: Duration, left: Option<Duration>, line: &mut dyn FnMut() -> String);
}

/// See the module.
#[derive(Debug)]
pub struct Looks {
    began: Instant,
    length: Option<Duration>,
    signals: Signals,
}

impl Looks {
    /// For `length`; without one until a signal. To be made before what is looked at begins, so that no
    /// signal ends this process on the way.
    ///
    /// # Errors
    /// When signals cannot be waited for.
    pub fn begin(length: Option<Duration>) -> Result<Self, SysError> {
        Ok(Self { began: Instant::now(), length, signals: Signals::block_and_open()? })
    }

    /// The time begins now.
    pub fn start(&mut self) {
        self.began = Instant::now();
    }

    /// Waits for the next look; `false` once the time is over or a signal came.
    pub fn wait(&mut self) -> bool {
        matches!(self.next(), Next::Look)
    }

    /// The same, for those who go on after a signal.
    pub(crate) fn next(&mut self) -> Next {
        let left = self.left();
        if left.is_some_and(|l| l.is_zero()) {
            return Next::Over;
        }
        let ms = left
            .map_or(LOOK_MS, |l| i32::try_from(l.as_millis()).unwrap_or(LOOK_MS).clamp(1, LOOK_MS));
        match self.signals.wait_whence(ms) {
            Some((number, by_terminal)) => Next::Signal { number, by_terminal },
            None => Next::Look,
        }
    }

    /// Somebody said how long.
    pub(crate) fn is_limited(&self) -> bool {
        self.length.is_some()
    }

    /// Says how far it is.
    pub fn tell(&self, progress: &mut dyn LookProgress, line: &mut dyn FnMut() -> String) {
        progress.look(self.began.elapsed(), self.left(), line);
    }

    fn left(&self) -> Option<Duration> {
        self.length.map(|l| l.saturating_sub(self.began.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Heard(Vec<(Option<Duration>, String)>);

    impl LookProgress for Heard {
        fn look(&mut self, _: Duration, left: Option<Duration>, line: &mut dyn FnMut() -> String) {
            self.0.push((left, line()));
        }
    }

    #[test]
    fn a_time_that_is_over_ends_the_looks() {
        let mut looks = Looks::begin(Some(Duration::ZERO)).expect("signals");
        looks.start();
        assert!(looks.is_limited() && !looks.wait());
        assert!(matches!(looks.next(), Next::Over));
        let mut heard = Heard(Vec::new());
        looks.tell(&mut heard, &mut || "1 event".to_owned());
        assert_eq!(heard.0, [(Some(Duration::ZERO), "1 event".to_owned())]);
    }
}
