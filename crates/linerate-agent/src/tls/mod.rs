//! TLS 1.3 on control connections: who the agent is, and how its callers know it again.
//!
//! An agent shows a certificate of its own making unless it is given one. Its callers pin the
//! certificate when they first meet it (`known`), as ssh does with host keys, or ask an authority.
//! Data connections are measured, not protected: they stay in the clear.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use linerate_model::hex;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};

use crate::draft;

/// Connecting to an agent, and judging what it shows.
pub mod client;
/// A certificate and its key: read, or made and kept.
pub mod identity;
/// The certificates that agents showed before.
pub mod known;
/// Meeting an agent that is not known yet.
pub mod meeting;
/// Taking up callers.
pub(crate) mod server;

pub use client::Trust;
pub use identity::Identity;
pub use known::KnownAgents;

/// The SHA-256 digest of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// What a fingerprint begins with.
const DIGEST: &str = "SHA256:";

impl Fingerprint {
    /// Returns the fingerprint of a certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{DIGEST}{}", hex::encode(&self.0))
    }
}

impl FromStr for Fingerprint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix(DIGEST).ok_or(())?;
        hex::decode(digits).map(Self).ok_or(())
    }
}

/// Why a file of certificates or keys is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// It cannot be read or written.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// It holds something else.
    #[error("{} holds no {what}", path.display())]
    Missing {
        /// What was looked for.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// Others may read the key in it.
    #[error("others than its owner may read the key in {} (mode {mode:03o})", path.display())]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// What it holds cannot be used.
    #[error("{} is of no use", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rustls::Error,
    },
    /// The parts do not fit each other.
    #[error("cannot set up TLS")]
    SetUp(#[source] rustls::Error),
    /// No key could be made.
    #[error("cannot make a certificate")]
    Make(#[source] rcgen::Error),
}

/// Reads the certificates of authorities.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, TlsFileError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store.add(certificate).map_err(unusable(path))?;
    }
    Ok(store)
}

/// Says that what a file holds cannot be used.
fn unusable(path: &Path) -> impl Fn(rustls::Error) -> TlsFileError {
    move |source| TlsFileError::Unusable {
        path: path.to_owned(),
        source,
    }
}

/// Says that a file, or the directory of it, cannot be used for `doing`.
fn cannot(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> TlsFileError {
    move |source| TlsFileError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

/// Longest file: of a few hundred authorities there are 300 KB.
const FILE_BYTES_MAX: u64 = 8 << 20;

fn read(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    let file = draft::open_file(path);
    let text = file.and_then(|file| draft::read_bytes(&file, FILE_BYTES_MAX));
    text.map_err(cannot("read", path))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(TlsFileError::Missing {
            what: "certificate in PEM",
            path: path.to_owned(),
        }),
    }
}

/// The cryptography: `ring`, which wants a C compiler and nothing else.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_they_are_shown() {
        let fingerprint = Fingerprint::of(&CertificateDer::from(vec![1, 2, 3]));
        let text = fingerprint.to_string();
        assert_eq!(
            text,
            "SHA256:039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81"
        );
        assert_eq!(text.parse(), Ok(fingerprint));
        for bad in ["", "SHA256:", "039058c6", "SHA1:00", &text[..70]] {
            assert_eq!(bad.parse::<Fingerprint>(), Err(()), "{bad}");
        }
    }
}
