// SPDX-License-Identifier: MIT OR Apache-2.0
//! A web hook: JSON that is posted to an address somebody gave, signed where there is a secret.
//!
//! Bounded in time and in what is read of the answer. No redirect is followed: what a server of a farm says goes
//! to whom its owner named. Source: RFC 2104 (HMAC).

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use ring::hmac::{self, HMAC_SHA256};
use tailbound_core::printable;
use tailbound_sys::given;
use ureq::http::{StatusCode, Uri};

use crate::client::{self, ClientError, PlainHttp};

/// For all of it.
const TIME: Duration = Duration::from_secs(30);
const SECRET_BYTES_MAX: u64 = 4096;
const SECRET_BYTES_MIN: usize = 16;
/// Of an answer that is no success, for the log.
const WORDS_CHARS: usize = 200;
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Why a receiver did not take what was posted.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// It cannot be reached, or broke off.
    #[error(transparent)]
    Http(#[from] ureq::Error),
    /// It sends elsewhere.
    #[error("it says {0}; no redirect is followed: give the address itself")]
    Redirect(StatusCode),
    /// It does not take it.
    #[error("it says {status}{}{words}", if words.is_empty() { "" } else { " " })]
    Said {
        /// The status of HTTP.
        status: StatusCode,
        /// Its words, as far as they are shown.
        words: String,
    },
}

/// Where, and how it is signed.
pub struct Hook {
    url: String,
    secret: Option<Vec<u8>>,
    http: ureq::Agent,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hook").field("to", &self.host()).finish_non_exhaustive()
    }
}

impl Hook {
    /// Checks the address, and reads the secret and the authorities. Sends nothing yet.
    ///
    /// # Errors
    /// What was given cannot be used.
    pub fn open(url: &str, secret: Option<&Path>, ca: Option<&Path>) -> Result<Self, ClientError> {
        let like = "write https://NAME/PATH";
        let uri: Uri =
            url.parse().map_err(|e| client::given("--webhook", format!("{e}: {like}")))?;
        let host = uri.host().filter(|h| !h.is_empty());
        let host = host.ok_or_else(|| client::given("--webhook", like))?;
        let why = "without encryption it could be read on its way: write https://";
        client::scheme_checked("--webhook", host, uri.scheme_str(), PlainHttp::Refused, like, why)?;
        let secret = secret.map(read_secret).transpose()?;
        Ok(Self { url: url.to_owned(), secret, http: client::http(url, ca)? })
    }

    /// The server it goes to: the rest of the address may be a secret.
    #[must_use]
    pub fn host(&self) -> String {
        let uri = self.url.parse::<Uri>().ok();
        uri.and_then(|u| u.host().map(str::to_owned)).unwrap_or_default()
    }

    /// The address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `sha256=` and the HMAC-SHA256 of the body in hexadecimal; `None` without a secret.
    #[must_use]
    pub fn signature(&self, body: &[u8]) -> Option<String> {
        let key = hmac::Key::new(HMAC_SHA256, self.secret.as_ref()?);
        let mut words = "sha256=".to_owned();
        for byte in hmac::sign(&key, body).as_ref() {
            let _ = write!(words, "{byte:02x}");
        }
        Some(words)
    }

    /// Posts `body`; `delivery` is the same each time the same is sent.
    ///
    /// # Errors
    /// It was not taken: why.
    pub fn post(&self, delivery: &str, body: &[u8]) -> Result<(), HookError> {
        let request = self.http.post(&self.url).config().timeout_global(Some(TIME)).build();
        let mut request =
            request.content_type("application/json").header("Tailbound-Delivery", delivery);
        if let Some(signature) = self.signature(body) {
            request = request.header("Tailbound-Signature", signature);
        }
        let mut answer = request.send(body)?;
        let status = answer.status();
        // Also of a success: an answer that is cut off may be one of a program that died with it.
        let said = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        match (status.is_success(), status.is_redirection()) {
            (true, _) => said.map(|_| ()).map_err(HookError::from),
            (_, true) => Err(HookError::Redirect(status)),
            _ => {
                let said = said.unwrap_or_default();
                let words = printable::excerpt(&String::from_utf8_lossy(&said), WORDS_CHARS);
                Err(HookError::Said { status, words: words.trim_end().to_owned() })
            }
        }
    }
}

fn read_secret(path: &Path) -> Result<Vec<u8>, ClientError> {
    let shown = path.display();
    client::not_for_all(path)?;
    client::not_of_others(path)?;
    let text = given::text(path, SECRET_BYTES_MAX).map_err(|e| client::given(&shown, e))?;
    let secret = text.trim().as_bytes();
    if secret.len() < SECRET_BYTES_MIN {
        let why =
            format!("a secret has at least {SECRET_BYTES_MIN} characters: openssl rand -hex 32");
        return Err(client::given(&shown, why));
    }
    Ok(secret.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_rfc_4231() {
        // Its test case 2, whose key is shorter than what a file may have.
        let hook = Hook {
            url: "https://farm.example/".to_owned(),
            secret: Some(b"Jefe".to_vec()),
            http: ureq::Agent::new_with_defaults(),
        };
        assert_eq!(
            hook.signature(b"what do ya want for nothing?").as_deref(),
            Some("sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        );
    }

    #[test]
    fn only_addresses_that_nobody_reads_on_the_way_are_taken() {
        for url in ["http://farm.example/x", "ftp://127.0.0.1/", "farm.example", "https://"] {
            let e = Hook::open(url, None, None).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(e.starts_with("--webhook: "), "{url}: {e}");
        }
        let hook = Hook::open("http://127.0.0.1:1/a/secret?b", None, None);
        assert_eq!(
            hook.ok().map(|h| format!("{h:?}")).as_deref(),
            Some("Hook { to: \"127.0.0.1\", .. }")
        );
    }
}
