// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a store is: a file of SQLite, or a server of PostgreSQL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// A file of SQLite, with its log and its index beside it while it is open.
    File(PathBuf),
    /// A server of PostgreSQL, by a connection URI or `key=value` words as libpq takes them.
    Server(String),
}

/// How a URI of PostgreSQL begins.
const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];

/// Why a text is no place of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Nothing.
    #[error("a store is a file, or postgresql://HOST/DATABASE")]
    Empty,
    /// A URI of something else.
    #[error("`{0}` is no store: a file, or postgresql://HOST/DATABASE")]
    Scheme(String),
    /// Nobody says where a user keeps one.
    #[error("there is no $HOME to keep one in: say where")]
    NoHome,
}

impl StoreLocation {
    /// As `given`, else as TAILBOUND_STORE says, else where root or this user keeps one.
    ///
    /// # Errors
    /// [`LocationError`].
    pub fn chosen(given: Option<&str>) -> Result<Self, LocationError> {
        let named = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let said = || std::env::var("TAILBOUND_STORE").ok().filter(|v| !v.is_empty());
        if let Some(text) = given.map(str::to_owned).or_else(said) {
            return text.parse();
        }
        let of_user = || named("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        let folder = if tailbound_sys::process::is_root() {
            Some(PathBuf::from("/var/lib"))
        } else {
            named("XDG_STATE_HOME").map(PathBuf::from).or_else(of_user)
        };
        let folder = folder.ok_or(LocationError::NoHome)?;
        Ok(Self::File(folder.join("tailbound/store.sqlite")))
    }
}

impl FromStr for StoreLocation {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        if text.is_empty() {
            return Err(LocationError::Empty);
        }
        if SCHEMES.iter().any(|s| text.starts_with(s)) {
            return Ok(Self::Server(text.to_owned()));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(LocationError::Scheme(scheme.to_owned()));
        }
        Ok(Self::File(PathBuf::from(text.strip_prefix("sqlite:").unwrap_or(text))))
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The URI as it may be shown: without user, password and parameters.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgresql", ""));
    let rest = rest.split('?').next().unwrap_or_default();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, behind)| behind);
    format!("{scheme}://{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_show_no_password() {
        let read = |text: &str| text.parse::<StoreLocation>();
        assert_eq!(read("runs.sqlite"), Ok(StoreLocation::File("runs.sqlite".into())));
        assert_eq!(read("sqlite:a/b"), Ok(StoreLocation::File("a/b".into())));
        let server = read("postgresql://me:se:cr@et@db/tailbound?password=x");
        assert_eq!(
            server.map(|p| format!("{p} {p:?}")),
            Ok("postgresql://db/tailbound postgresql://db/tailbound".into())
        );
        assert!(read("mysql://x").is_err_and(|e| e.to_string().contains("mysql")));
        assert!(read("").is_err());
    }
}
