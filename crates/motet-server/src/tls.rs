//! TLS from PEM files.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsKeys;
use crate::error::ServerError;

/// What is needed to accept TLS connections; `None` when TLS is off.
///
/// # Errors
/// [`ServerError::Tls`] names the file and what is wrong with it.
pub fn acceptor(keys: &TlsKeys) -> Result<Option<TlsAcceptor>, ServerError> {
    if !keys.enabled {
        return Ok(None);
    }
    let chain = chain(&keys.cert_pem_file)?;
    let key = PrivateKeyDer::from_pem_file(&keys.key_pem_file)
        .map_err(|cause| ServerError::Tls(format!("{}: {cause}", keys.key_pem_file)))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| ServerError::Tls(cause.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|cause| ServerError::Tls(cause.to_string()))?;
    // WebSocket is spoken over HTTP/1.1 here.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn chain(file: &str) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let failed = |cause: String| ServerError::Tls(format!("{file}: {cause}"));
    let reader = BufReader::new(File::open(file).map_err(|cause| failed(cause.to_string()))?);
    let chain: Vec<_> = CertificateDer::pem_reader_iter(reader)
        .collect::<Result<_, _>>()
        .map_err(|cause| failed(cause.to_string()))?;
    if chain.is_empty() {
        return Err(failed("no certificate in it".to_owned()));
    }
    Ok(chain)
}
