// SPDX-License-Identifier: MIT OR Apache-2.0
//! HTTPS with a certificate of one's own.
//!
//! Context: SETUP. TLS 1.2 and 1.3, rustls' own choice of suites.

use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tailbound_agent::client::{not_for_all, not_of_others};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

use super::ServeError;

fn wrong(path: &Path, reason: impl std::fmt::Display) -> ServeError {
    ServeError::Certificate { path: path.display().to_string(), reason: reason.to_string() }
}

/// What makes encrypted connections of plain ones.
///
/// # Errors
/// A file cannot be read, holds something else, or the two do not belong together.
pub(super) fn acceptor(certificates: &Path, key: &Path) -> Result<TlsAcceptor, ServeError> {
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| wrong(certificates, e))?;
    if chain.is_empty() {
        return Err(wrong(
            certificates,
            "there is no certificate in it (PEM, `BEGIN CERTIFICATE`)",
        ));
    }
    // Who can read it can speak as this server.
    not_for_all(key).and_then(|()| not_of_others(key)).map_err(ServeError::Key)?;
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(key, e))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| wrong(certificates, e))?
        .with_no_client_auth()
        .with_single_cert(chain, key_der)
        .map_err(|e| wrong(key, e))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
