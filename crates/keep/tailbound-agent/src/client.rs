// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests to a server of `tailbound serve`, with one token.
//!
//! Each request ends after a bounded time, whatever the other side does. No redirect is followed and no proxy of
//! the environment is used: the token goes to the server that was named and nowhere else.
//! Source: RFC 9110 (HTTP), RFC 6750 (bearer tokens).

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tailbound_sys::{given, owner};
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::wire::{Problem, SENT_RUN_BYTES_MAX, State};

/// The machine's own list of authorities, where systems have it.
const SYSTEM_CA: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
const TOKEN_READ: &str = "without encryption the token could be read on its way: write https://, or --insecure-http where the way is encrypted by something else";
const CA_BYTES_MAX: u64 = 16 << 20;
const TOKEN_BYTES_MAX: u64 = 4096;
/// Of an answer in JSON.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// Of a run file as the server sends it.
const FILE_BYTES_MAX: u64 = 1 << 30;
const CONNECT_TIME: Duration = Duration::from_secs(20);
/// For a question and its answer, beside what the server may wait.
const ASK_TIME: Duration = Duration::from_secs(40);
/// For a run file, either way.
const FILE_TIME: Duration = Duration::from_secs(600);
/// The server closes connections that are idle for longer than its time for a request's head.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// A server, and who asks it.
pub struct Client {
    base: String,
    bearer: String,
    http: ureq::Agent,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

/// May requests with a token go to another machine unencrypted, where it can be read on its way?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainHttp {
    /// To this machine alone.
    Refused,
    /// To any.
    Allowed,
}

impl PlainHttp {
    /// As `--insecure-http` says it.
    #[must_use]
    pub fn allowed_if(insecure: bool) -> Self {
        if insecure { Self::Allowed } else { Self::Refused }
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `https://NAME:PORT`.
    pub url: String,
    /// A file with the token.
    pub token_file: PathBuf,
    /// Authorities to believe, instead of the machine's own.
    pub ca: Option<PathBuf>,
    /// Plain HTTP to another machine.
    pub plain_http: PlainHttp,
}

/// Why a request was not answered with what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// What was given is wrong.
    #[error("{what}: {why}")]
    Given {
        /// An option or a file.
        what: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// It cannot be reached, or broke off.
    #[error("{base} does not answer: {why}")]
    Unreachable {
        /// The server.
        base: String,
        /// Why.
        why: String,
    },
    /// It answered that it does not do it.
    #[error("the server says {status}: {}", problem.error)]
    Said {
        /// The status of HTTP.
        status: u16,
        /// Its words.
        problem: Problem,
    },
    /// A run file that no server takes: it is not sent.
    #[error("the run file has more than {} MiB {kind}, and a server takes no more: it is kept here; measure shorter, or in several runs", most >> 20)]
    TooLarge {
        /// Counted how.
        kind: RunBytes,
        /// How many it may have.
        most: u64,
    },
    /// What it answered is no answer.
    #[error("{base} answers with something else than `tailbound serve`: {why}")]
    Foreign {
        /// The server.
        base: String,
        /// What is wrong with it.
        why: String,
    },
}

/// How the bytes of a run file are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunBytes {
    /// As it is sent.
    Packed,
    /// As it is.
    Plain,
}

impl fmt::Display for RunBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packed => "as it is sent, packed",
            Self::Plain => "unpacked",
        })
    }
}

impl ClientError {
    /// May the same request succeed later, with nothing changed here?
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Given { .. } | Self::TooLarge { .. } => false,
            // A half answer through a bad connection, or a proxy's page while the server is away.
            Self::Unreachable { .. } | Self::Foreign { .. } => true,
            Self::Said { status, .. } => *status >= 500 || matches!(status, 401 | 403 | 408 | 429),
        }
    }

    /// What the work is, where the server says that this is why.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        match self {
            Self::Said { status: 409, problem } => problem.state,
            _ => None,
        }
    }
}

pub(crate) fn given(what: impl fmt::Display, why: impl fmt::Display) -> ClientError {
    ClientError::Given { what: what.to_string(), why: why.to_string() }
}

impl Client {
    /// Reads the token and the authorities. Asks nothing yet.
    ///
    /// # Errors
    /// What was given cannot be used.
    pub fn open(server: &Server) -> Result<Self, ClientError> {
        let base = base(&server.url, server.plain_http)?;
        let token = token(&server.token_file)?;
        let http = http(&server.url, server.ca.as_deref())?;
        Ok(Self { base, bearer: format!("Bearer {token}"), http })
    }

    /// The server, as it was given.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Asks for `path`; the server may wait for `wait` before it answers.
    ///
    /// # Errors
    /// No answer, or another one.
    pub fn get<T: DeserializeOwned>(&self, path: &str, wait: Duration) -> Result<T, ClientError> {
        self.ask(path, &[], wait)
    }

    /// As [`Self::get`], with the fields of `query` in the address.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        wait: Duration,
    ) -> Result<T, ClientError> {
        let request = self.http.get(format!("{}{path}", self.base));
        let request = request.query_pairs(query.iter().map(|(k, v)| (*k, v.as_str())));
        let request = request.config().timeout_global(Some(ASK_TIME + wait)).build();
        let answer = request.header("Authorization", &self.bearer).call();
        self.read(&self.whole(answer, ANSWER_BYTES_MAX)?)
    }

    /// Says `what` to `path`.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(what).map_err(|e| given(path, e))?;
        self.sent(path, "application/json", &body, ASK_TIME)
    }

    /// Hands in a run file, packed with gzip.
    ///
    /// # Errors
    /// As [`Self::get`]; no server takes so many bytes.
    pub fn hand_in<T: DeserializeOwned>(&self, packed: &[u8]) -> Result<T, ClientError> {
        takeable(packed.len() as u64)?;
        self.sent("/api/v1/runs", "application/gzip", packed, FILE_TIME)
    }

    fn sent<T: DeserializeOwned>(
        &self,
        path: &str,
        kind: &str,
        body: &[u8],
        time: Duration,
    ) -> Result<T, ClientError> {
        let request = self.http.post(format!("{}{path}", self.base));
        let request = request.config().timeout_global(Some(time)).build();
        let request = request.header("Authorization", &self.bearer).content_type(kind);
        self.read(&self.whole(request.send(body), ANSWER_BYTES_MAX)?)
    }

    /// A run file, byte for byte.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn file(&self, run: &str) -> Result<Vec<u8>, ClientError> {
        let request = self.http.get(format!("{}/api/v1/runs/{run}/file", self.base));
        let request = request.config().timeout_global(Some(FILE_TIME)).build();
        let answer = request.header("Authorization", &self.bearer).call();
        self.whole(answer, FILE_BYTES_MAX)
    }

    /// The whole body of an answer that is a success.
    fn whole(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        most: u64,
    ) -> Result<Vec<u8>, ClientError> {
        let unreachable = |e: ureq::Error| ClientError::Unreachable {
            base: self.base.clone(),
            why: e.to_string(),
        };
        let mut answer = answer.map_err(unreachable)?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(most).read_to_vec();
        let body = body.map_err(unreachable)?;
        if status.is_success() {
            return Ok(body);
        }
        let problem = serde_json::from_slice(&body).unwrap_or_else(|_| Problem {
            error: status.canonical_reason().unwrap_or("no words").to_owned(),
            state: None,
        });
        Err(ClientError::Said { status: status.as_u16(), problem })
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(body)
            .map_err(|e| ClientError::Foreign { base: self.base.clone(), why: e.to_string() })
    }
}

/// Does a server take a run file of so many bytes, as it is sent?
pub(crate) fn takeable(packed_bytes: u64) -> Result<(), ClientError> {
    match packed_bytes {
        0..=SENT_RUN_BYTES_MAX => Ok(()),
        _ => Err(ClientError::TooLarge { kind: RunBytes::Packed, most: SENT_RUN_BYTES_MAX }),
    }
}

/// A client of HTTP and HTTPS: no redirects, no proxies, the authorities of `ca` or the machine's own.
pub(crate) fn http(url: &str, ca: Option<&Path>) -> Result<ureq::Agent, ClientError> {
    let roots = match (ca, url.starts_with("https:")) {
        (Some(ca), _) => {
            // Whoever may change it could have the token sent to a server of his.
            not_of_others(ca)?;
            authorities(ca)?
        }
        (None, true) => {
            let there = SYSTEM_CA.iter().map(Path::new).find(|p| p.exists());
            authorities(there.ok_or_else(|| {
                let why = "this machine has no list of authorities: give a file with the certificate that the server's is signed by";
                given(url, why)
            })?)?
        }
        (None, false) => Vec::new(),
    };
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Ok(ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .user_agent(concat!("tailbound/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(CONNECT_TIME))
        .max_idle_age(IDLE_TIME)
        .build()
        .new_agent())
}

/// The server's address without a slash at its end, if it may be used.
fn base(url: &str, plain: PlainHttp) -> Result<String, ClientError> {
    let like = "write https://NAME or https://NAME:PORT";
    let uri: Uri = url.parse().map_err(|e| given(url, format!("{e}: {like}")))?;
    let Some(host) = uri.host().filter(|h| !h.is_empty()) else {
        return Err(given(url, format!("no name of a server: {like}")));
    };
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(given(url, format!("a server has no path here: {like}")));
    }
    if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
        return Err(given(url, "a token belongs into --token-file, not into the address"));
    }
    scheme_checked(url, host, uri.scheme_str(), plain, like, TOKEN_READ)?;
    Ok(url.trim_end_matches('/').to_owned())
}

/// Encrypted, or to this machine alone.
pub(crate) fn scheme_checked(
    url: &str,
    host: &str,
    scheme: Option<&str>,
    plain: PlainHttp,
    like: &str,
    why: &str,
) -> Result<(), ClientError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_local = bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match scheme {
        Some("https") => Ok(()),
        Some("http") if is_local || plain == PlainHttp::Allowed => Ok(()),
        Some("http") => Err(given(url, why)),
        _ => Err(given(url, like)),
    }
}

/// A secret that everybody on this machine can read is none.
///
/// # Errors
/// Everybody can; it cannot be looked at.
pub fn not_for_all(path: &Path) -> Result<(), ClientError> {
    let shown = path.display();
    let mode = std::fs::metadata(path).map_err(|e| given(&shown, e))?.permissions().mode();
    if mode & 0o004 != 0 {
        return Err(given(&shown, "everybody on this machine can read it: chmod 600"));
    }
    Ok(())
}

/// Who may change a token or a list of authorities decides as whom this machine speaks, and to whom.
///
/// # Errors
/// Who else may.
pub fn not_of_others(path: &Path) -> Result<(), ClientError> {
    owner::believed(path).map_err(|e| {
        given(path.display(), format!("others may change it: {e}; give it to your user alone"))
    })
}

fn token(path: &Path) -> Result<String, ClientError> {
    let shown = path.display();
    not_for_all(path)?;
    not_of_others(path)?;
    let text = given::text(path, TOKEN_BYTES_MAX).map_err(|e| given(&shown, e))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(given(
            &shown,
            "no token: `tailbound serve token add` prints one, a single word",
        ));
    }
    Ok(token.to_owned())
}

fn authorities(path: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let shown = path.display();
    let bytes = given::read(path, CA_BYTES_MAX).map_err(|e| given(&shown, e))?;
    let mut all = Vec::new();
    for item in parse_pem(&bytes) {
        if let PemItem::Certificate(it) = item.map_err(|e| given(&shown, e))? {
            all.push(it);
        }
    }
    if all.is_empty() {
        return Err(given(&shown, "there is no certificate in it (PEM, `BEGIN CERTIFICATE`)"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_over_plain_http_to_this_machine_alone() {
        for url in ["https://farm.example", "https://farm.example:8787/", "http://127.0.0.1:1"] {
            assert_eq!(
                base(url, PlainHttp::Refused).ok().as_deref(),
                Some(url.trim_end_matches('/')),
                "{url}"
            );
        }
        for url in ["http://[::1]:80", "http://LOCALHOST"] {
            assert!(base(url, PlainHttp::Refused).is_ok(), "{url}");
        }
        for url in [
            "http://farm.example",
            "http://127.0.0.1.example",
            "ftp://farm.example",
            "farm.example",
            "https://",
            "https://user@farm.example",
            "https://farm.example/path",
            "https://farm.example/?a=b",
        ] {
            assert!(base(url, PlainHttp::Refused).is_err(), "{url}");
        }
        assert!(base("http://farm.example", PlainHttp::Allowed).is_ok());
    }

    #[test]
    fn a_token_or_an_authority_that_others_may_change_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("token");
        let mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        std::fs::write(&path, "word\n").unwrap();
        mode(0o600);
        assert_eq!(token(&path).unwrap(), "word");
        mode(0o602);
        let of_token = token(&path).unwrap_err().to_string();
        let of_authority = http("https://farm.example", Some(&path)).err().map(|e| e.to_string());
        for why in [of_token, of_authority.unwrap_or_default()] {
            assert!(why.contains("others may change it"), "{why}");
        }
    }
}
