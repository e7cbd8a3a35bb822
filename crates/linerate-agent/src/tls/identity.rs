//! A certificate and its key: read, or made and kept.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::draft;

use super::{Fingerprint, TlsFileError, cannot, certificates, provider, read, unusable};

/// The file in the state directory that holds both, certificate first.
const FILE: &str = "agent.pem";
/// Columns of a line of PEM.
const PEM_COLUMNS: usize = 64;

/// Who this process is, to its peers.
#[derive(Debug)]
pub struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
        }
    }
}

impl Identity {
    /// Reads a certificate, with those that vouch for it after it, and its key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsFileError> {
        let mode = key
            .metadata()
            .map_err(cannot("read", key))?
            .permissions()
            .mode()
            & 0o777;
        if mode & 0o077 != 0 {
            let path = key.to_owned();
            return Err(TlsFileError::Readable { path, mode });
        }
        let chain = certificates(certificate)?;
        let text = read(key)?;
        let missing = |_| TlsFileError::Missing {
            what: "private key in PEM",
            path: key.to_owned(),
        };
        let identity = Self {
            chain,
            key: PrivateKeyDer::from_pem_slice(&text).map_err(missing)?,
        };
        identity.check().map_err(unusable(key))?;
        Ok(identity)
    }

    /// Returns the identity kept in `directory`, which is made at the first start for `host_name`.
    pub fn kept_in(directory: &Path, host_name: &str) -> Result<Self, TlsFileError> {
        let path = directory.join(FILE);
        if !path.exists() {
            make(directory, &path, host_name)?;
        }
        draft::check_directory(directory).map_err(cannot("trust", directory))?;
        Self::read(&path, &path)
    }

    /// Returns the fingerprint of the certificate kept in `directory`, if there is one.
    pub fn kept_fingerprint(directory: &Path) -> Option<Fingerprint> {
        let chain = certificates(&directory.join(FILE)).ok()?;
        chain.first().map(Fingerprint::of)
    }

    /// Returns an identity for `host_name` that is kept nowhere: where only this host calls, by an address that says
    /// nothing of who answers, nobody would know it again.
    pub fn passing(host_name: &str) -> Result<Self, TlsFileError> {
        let key = KeyPair::generate().map_err(TlsFileError::Make)?;
        let certificate = certificate(host_name, &key).map_err(TlsFileError::Make)?;
        let key = PrivateKeyDer::try_from(key.serialize_der());
        let general = |why: &str| TlsFileError::SetUp(rustls::Error::General(why.to_owned()));
        Ok(Self {
            chain: vec![certificate.der().clone()],
            key: key.map_err(general)?,
        })
    }

    /// Returns the fingerprint of the certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        // Never empty: so it was read.
        self.chain
            .first()
            .map_or(Fingerprint([0; 32]), Fingerprint::of)
    }

    /// Tells whether key and certificate are a pair.
    fn check(&self) -> Result<(), rustls::Error> {
        let key = self.key.clone_key();
        rustls::sign::CertifiedKey::from_der(self.chain.clone(), key, &provider()).map(drop)
    }
}

/// Makes a key and a certificate that it signs itself. Of several who do so at once, the first one's
/// file stays and is everyone's.
fn make(directory: &Path, path: &Path, host_name: &str) -> Result<(), TlsFileError> {
    let text = self_signed(host_name).map_err(TlsFileError::Make)?;
    draft::make_directory(directory).map_err(cannot("make the directory of", path))?;
    let kept = draft::keep(path, &text, |draft, _| std::fs::hard_link(draft, path));
    match kept {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        result => result.map_err(cannot("write", path)),
    }
}

/// Returns certificate and key in PEM. Callers pin the certificate, so its dates and names bind
/// nobody; the name is for whoever reads it.
fn self_signed(host_name: &str) -> Result<String, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = certificate(host_name, &key)?;
    Ok(pem("CERTIFICATE", certificate.der()) + &pem("PRIVATE KEY", &key.serialize_der()))
}

fn certificate(host_name: &str, key: &KeyPair) -> Result<rcgen::Certificate, rcgen::Error> {
    let mut parameters = CertificateParams::new([])?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters
        .distinguished_name
        .push(DnType::CommonName, format!("linerate at {host_name}"));
    parameters.self_signed(key)
}

fn pem(label: &str, bytes: &[u8]) -> String {
    let digits = STANDARD.encode(bytes);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in digits.as_bytes().chunks(PEM_COLUMNS) {
        text.extend(line.iter().map(|digit| char::from(*digit)));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_made_once_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("state/linerate");
        let makers: Vec<_> = (0..4)
            .map(|_| {
                let directory = directory.clone();
                std::thread::spawn(move || Identity::kept_in(&directory, "a host").unwrap())
            })
            .collect();
        let all: Vec<_> = makers
            .into_iter()
            .map(|maker| maker.join().unwrap().fingerprint())
            .collect();
        let kept = Identity::kept_in(&directory, "a host")
            .unwrap()
            .fingerprint();
        assert!(all.iter().all(|one| *one == kept), "{all:?}");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory.join(FILE)), 0o600);
        assert_eq!(mode(&directory), 0o700);
        let files: Vec<_> = std::fs::read_dir(&directory).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        Identity::kept_in(folder.path(), "a host").unwrap();
        let path = folder.path().join(FILE);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let refused = Identity::kept_in(folder.path(), "a host").unwrap_err();
        assert!(
            matches!(refused, TlsFileError::Readable { mode: 0o640, .. }),
            "{refused}"
        );
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let directory = folder.path().join(name);
            Identity::kept_in(&directory, name).unwrap();
            directory.join(FILE)
        };
        let (one, other) = (file("one"), file("other"));
        Identity::read(&one, &one).unwrap();
        let refused = Identity::read(&one, &other).unwrap_err();
        assert!(
            matches!(refused, TlsFileError::Unusable { .. }),
            "{refused}"
        );
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        let alone = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&empty, alone).unwrap();
        let refused = Identity::read(&one, &empty).unwrap_err();
        assert!(refused.to_string().contains("no private key"), "{refused}");
    }
}
