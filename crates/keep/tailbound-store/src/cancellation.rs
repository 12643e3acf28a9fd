// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks that work be given up: whoever wanted it has gone.
//!
//! Work that goes on looks at it; work that waits for somebody else says what wakes it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is done once, when it is given up.
pub(crate) type OnCancel = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Shared {
    is_cancelled: AtomicBool,
    then: Mutex<Option<OnCancel>>,
}

/// See the module.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Shared>);

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation").field(&self.is_cancelled()).finish()
    }
}

impl Cancellation {
    /// Gives it up.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Was it given up?
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::SeqCst)
    }

    /// Does this when it is given up, at once where it was; in the place of what was to be done. It must not wait for anything.
    pub(crate) fn then(&self, what: Option<OnCancel>) {
        *self.0.then.lock().unwrap_or_else(PoisonError::into_inner) = what;
        if self.is_cancelled() {
            self.wake();
        }
    }

    fn wake(&self) {
        let then = self.0.then.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(then) = then {
            then();
        }
    }
}
