// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many questions to the store are answered at the same time, by what they cost.
//!
//! Who asks and what work there is never waits for pages, and no page waits for whole run files.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;

/// What a question costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderClass {
    /// A few rows, or something that is written.
    Quick,
    /// The tables of a page.
    Page,
    /// Whole run files, or many histograms.
    Large,
}

/// Places of each class.
pub(super) struct Readers {
    quick: Arc<Semaphore>,
    page: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(cores: usize) -> Self {
        Self {
            quick: Arc::new(Semaphore::new(4)),
            page: Arc::new(Semaphore::new(cores.max(2))),
            large: Arc::new(Semaphore::new(1)),
        }
    }

    /// A place, within the time of a request.
    pub(super) async fn place(
        &self,
        class: ReaderClass,
        time: Duration,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let of = match class {
            ReaderClass::Quick => &self.quick,
            ReaderClass::Page => &self.page,
            ReaderClass::Large => &self.large,
        };
        let place = tokio::time::timeout(time, Arc::clone(of).acquire_owned()).await;
        place.map_err(|_| Problem::Busy)?.map_err(|_| Problem::Ending)
    }
}
