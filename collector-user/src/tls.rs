//! How servers prove by HTTPS who they are.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

/// By the certificates that the system trusts, or those that `SSL_CERT_FILE` names.
pub(crate) fn as_the_system_trusts() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs().certs;
    let trusted: Vec<_> = found.iter().map(|it| Certificate::from_der(it).to_owned()).collect();
    TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::new_with_certs(&trusted))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}
