// SPDX-License-Identifier: MIT OR Apache-2.0
//! Certificates of the test's own: one that signs itself, for this machine, with its key.
//!
//! Context: tests. ECDSA on P-256, by the library that the server has anyway.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, Error, KeyIdMethod, PublicKeyData, SignatureAlgorithm, SigningKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

struct Key {
    pair: EcdsaKeyPair,
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let signature = self.pair.sign(&SystemRandom::new(), message);
        signature.map(|s| s.as_ref().to_vec()).map_err(|_| Error::RemoteKeyError)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|l| std::str::from_utf8(l).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Writes a certificate for this machine, and its key.
pub(crate) fn write(certificate: &Path, key: &Path) {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let pair =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut wanted = CertificateParams::new(names).unwrap();
    wanted.serial_number = Some(vec![1].into());
    wanted.key_identifier_method = KeyIdMethod::PreSpecified(vec![1; 20]);
    let made = wanted.self_signed(&Key { pair }).unwrap();
    std::fs::write(certificate, pem("CERTIFICATE", made.der())).unwrap();
    std::fs::write(key, pem("PRIVATE KEY", pkcs8.as_ref())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(key, mode).unwrap();
}
