// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of each token that are under way, within a limit: connections are for all, and an agent may let each of its own wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::problem::Problem;

/// Of one token at a time; further ones are asked to come again.
const MOST: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnderWayRequests(Mutex<HashMap<String, usize>>);

impl UnderWayRequests {
    /// One more of this token, until it is dropped.
    pub(super) fn begin(self: &Arc<Self>, owner: String) -> Result<UnderWayRequest, Problem> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = all.entry(owner.clone()).or_insert(0);
        if *n >= MOST {
            return Err(Problem::Busy);
        }
        *n += 1;
        Ok(UnderWayRequest { all: Arc::clone(self), owner })
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct UnderWayRequest {
    all: Arc<UnderWayRequests>,
    owner: String,
}

impl Drop for UnderWayRequest {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(n) = all.get_mut(&self.owner) {
            *n -= 1;
            if *n == 0 {
                all.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_has_so_many_and_others_theirs() {
        let all = Arc::new(UnderWayRequests::default());
        let begun = |owner: &str| all.begin(owner.to_owned());
        let mut held: Vec<_> = (0..MOST).filter_map(|_| begun("a").ok()).collect();
        assert_eq!(held.len(), MOST);
        assert!(begun("a").is_err() && begun("b").is_ok());
        held.pop();
        assert!(begun("a").is_ok());
        drop(held);
        assert!(all.0.lock().is_ok_and(|all| all.is_empty()));
    }
}
