// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no answer: its status, and its words.

use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tailbound_store::StoreError;

use super::judge_error::JudgeError;
use super::log::log;
use super::reply::json_answer;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Problem {
    /// No valid token.
    Unknown,
    /// A valid token that may not.
    Forbidden,
    /// A name that is not this server's.
    WrongHost,
    /// There is no such thing.
    Missing(String),
    /// What was sent is wrong.
    Wrong(String),
    /// What was sent is too large.
    TooLarge(String),
    /// It took too long.
    TooSlow,
    /// Too many wait already.
    Busy,
    /// Nothing more fits on the store's disk.
    Full(String),
    /// The store cannot: database gone, disk broken.
    Store(String),
    /// The server ends.
    Ending,
    /// Ours to mend.
    Ours,
}

impl From<StoreError> for Problem {
    fn from(e: StoreError) -> Self {
        match e {
            ref e if e.io().and_then(JudgeError::of).is_some() => {
                e.io().and_then(JudgeError::of).map_or(Self::Ours, Self::from)
            }
            StoreError::NoSuchRun(_) | StoreError::Several { .. } => Self::Missing(e.to_string()),
            StoreError::Run(_) => Self::Wrong(e.to_string()),
            StoreError::TooLarge { .. } | StoreError::TooMany { .. } => {
                Self::TooLarge(e.to_string())
            }
            StoreError::Full { .. } => Self::Full(e.to_string()),
            StoreError::Cancelled => Self::Ending,
            _ => Self::Store(e.to_string()),
        }
    }
}

impl Problem {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unknown => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Self::Missing(_) => StatusCode::NOT_FOUND,
            Self::Wrong(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy | Self::Ending | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
            Self::Ours => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Unknown => {
                "a valid token is needed: `Authorization: Bearer TOKEN`, or /login in a browser"
                    .to_owned()
            }
            Self::Forbidden => "this token may not do that".to_owned(),
            Self::WrongHost => "this server does not answer under that name: see --host".to_owned(),
            Self::Missing(what) | Self::Wrong(what) | Self::TooLarge(what) => what.clone(),
            Self::TooSlow => "the request took too long".to_owned(),
            Self::Busy => "too much waits already: come again".to_owned(),
            Self::Full(_) => {
                "the server's disk is full: nothing of this was kept; come again when there is room"
                    .to_owned()
            }
            // Paths and addresses of the store are nobody's business who only reaches the server.
            Self::Store(_) => {
                "the store cannot be read or written; the server's log says why".to_owned()
            }
            Self::Ending => "the server ends: come again".to_owned(),
            Self::Ours => "an error in the server".to_owned(),
        }
    }
}

/// What a problem is called, for the page that a person gets of it.
#[derive(Clone, Debug)]
pub(super) struct ProblemWords(pub(super) String);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        if let Self::Store(why) | Self::Full(why) = &self {
            log(why);
        }
        let status = self.status();
        let mut answer = json_answer(status, &json!({"error": self.words()}));
        answer.extensions_mut().insert(ProblemWords(self.words()));
        let headers = answer.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
            }
            StatusCode::INSUFFICIENT_STORAGE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("60"));
            }
            _ => {}
        }
        answer
    }
}

impl From<&JudgeError> for Problem {
    fn from(why: &JudgeError) -> Self {
        match why {
            JudgeError::Busy => Self::Busy,
            JudgeError::Cancelled => Self::Ending,
            told => Self::TooLarge(told.to_string()),
        }
    }
}
