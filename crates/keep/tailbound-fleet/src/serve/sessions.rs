// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sessions of browsers: a cookie that stands for a token, until it is twelve hours old or the server ends.
//!
//! A session holds the hash of its token, which is looked up again with every request: a token that was revoked
//! ends its sessions at once.

use std::collections::HashMap;
use std::sync::Mutex;

use super::tokens;

/// Its name; the prefix binds it to this host.
pub(super) const COOKIE: &str = "tailbound_session";
/// How long one lasts.
const LASTS_S: i64 = 12 * 3600;
/// Most at a time: the oldest one ends.
const MOST: usize = 4096;

/// All of them: hash of the cookie, hash of the token, until when.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: Mutex<HashMap<String, (String, i64)>>,
}

impl Sessions {
    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<String, (String, i64)>> {
        self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Begins one; the value of its cookie.
    pub(super) fn begin(&self, token_sha256: String, now_s: i64) -> std::io::Result<String> {
        let cookie = tokens::random(32)?;
        let mut all = self.all();
        all.retain(|_, (_, until)| *until > now_s);
        if all.len() >= MOST
            && let Some(oldest) = all.iter().min_by_key(|(_, it)| it.1).map(|(k, _)| k.clone())
        {
            all.remove(&oldest);
        }
        all.insert(tokens::hashed(&cookie), (token_sha256, now_s + LASTS_S));
        Ok(cookie)
    }

    /// The hash of the token that a cookie stands for.
    pub(super) fn token(&self, cookie: &str, now_s: i64) -> Option<String> {
        let all = self.all();
        let (token, until) = all.get(&tokens::hashed(cookie))?;
        (*until > now_s).then(|| token.clone())
    }

    /// Ends one.
    pub(super) fn end(&self, cookie: &str) {
        self.all().remove(&tokens::hashed(cookie));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_time_and_by_its_owner() {
        let all = Sessions::default();
        let cookie = all.begin("hash".to_owned(), 1000).unwrap_or_default();
        assert_eq!(all.token(&cookie, 1001), Some("hash".to_owned()));
        assert_eq!(all.token(&cookie, 1000 + LASTS_S), None);
        assert_eq!(all.token("", 1001), None);
        all.end(&cookie);
        assert_eq!(all.token(&cookie, 1001), None);
    }
}
