//! Certificates, made for one server.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Whether a server that speaks TLS asks its clients for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// It does not.
    NotAsked,
    /// It refuses those without.
    Required,
}

/// PEM files in a server's folder: an authority of the server's own, and what it has signed.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    folder: PathBuf,
}

impl TlsFiles {
    /// The certificate of the authority that a client has to trust.
    pub fn ca(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// The server's certificate, for `localhost` and 127.0.0.1.
    pub fn server_certificate(&self) -> PathBuf {
        self.folder.join("server.pem")
    }

    /// The server's key.
    pub fn server_key(&self) -> PathBuf {
        self.folder.join("server.key")
    }

    /// A client's certificate.
    pub fn client_certificate(&self) -> PathBuf {
        self.folder.join("client.pem")
    }

    /// The client's key.
    pub fn client_key(&self) -> PathBuf {
        self.folder.join("client.key")
    }

    /// Makes them all.
    #[track_caller]
    pub(super) fn make(folder: &Path) -> Self {
        let files = Self { folder: folder.to_owned() };
        let authority = authority();
        fs::write(files.ca(), authority.pem()).expect("the certificate can be written");
        let server = (files.server_certificate(), files.server_key());
        let client = (files.client_certificate(), files.client_key());
        issue(&authority, &["localhost", "127.0.0.1"], &server.0, &server.1);
        issue(&authority, &["client.test"], &client.0, &client.1);
        files
    }
}

#[track_caller]
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "An authority of a test");
    let key = KeyPair::generate().expect("a key can be made");
    CertifiedIssuer::self_signed(params, key).expect("an authority can be made")
}

#[track_caller]
fn issue(authority: &CertifiedIssuer<'_, KeyPair>, names: &[&str], certificate: &Path, key: &Path) {
    let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names.clone()).expect("the names are names");
    params.distinguished_name.push(DnType::CommonName, names[0].clone());
    let pair = KeyPair::generate().expect("a key can be made");
    let signed = params.signed_by(&pair, authority).expect("a certificate can be signed");
    fs::write(certificate, signed.pem()).expect("the certificate can be written");
    fs::write(key, pair.serialize_pem()).expect("the key can be written");
}
