use std::fs;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::client_async;

use crate::process::{OPEN, Server, run};

#[tokio::test]
async fn a_websocket_over_tls_connects() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    fs::write(&certificate, own.cert.pem()).expect("written");
    fs::write(&key, own.signing_key.serialize_pem()).expect("written");
    let config = format!(
        "{OPEN}\n[http_server.tls]\nenabled = true\ncert_pem_file = {certificate:?}\nkey_pem_file = {key:?}\n"
    );
    let server = Server::start(&config);

    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address).await.expect("connected");
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(Arc::new(client)).connect(name, stream).await.expect("TLS");
    client_async("wss://localhost/connection/websocket", stream).await.expect("a WebSocket");
}

#[test]
fn a_key_that_is_none_is_told_with_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, pem) = (folder.path().join("motet.toml"), folder.path().join("no.pem"));
    fs::write(&pem, "nothing").expect("written");
    let config = format!(
        "[http_server.tls]\nenabled = true\ncert_pem_file = {pem:?}\nkey_pem_file = {pem:?}\n"
    );
    fs::write(&file, config).expect("written");
    let output = run(&["serve", "--config", file.to_str().expect("text")]);
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && text.contains("TLS_INVALID"), "{text}");
    assert!(text.contains("no.pem"), "{text}");
}
