//! The certificates that agents showed before, as ssh's `known_hosts` has the keys of hosts.
//!
//! ```text
//! # NAME:PORT FINGERPRINT
//! db1:5201 SHA256:5f0c…
//! ```

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Fingerprint;
use crate::draft;

/// Longest file: 100 000 agents.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A file of known agents.
#[derive(Clone)]
pub struct KnownAgents {
    path: PathBuf,
    told: Arc<dyn Fn(&Met) + Send + Sync>,
}

/// An agent that was met for the first time.
#[derive(Debug, Clone)]
pub struct Met {
    /// Its name and port, as it was asked for.
    pub name: String,
    /// What it showed.
    pub fingerprint: Fingerprint,
    /// Where that was noted.
    pub path: PathBuf,
}

/// Why an agent's certificate is not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KnownError {
    /// It showed another one before.
    #[error(
        "{name} shows certificate {shown}, but line {line} of {} has {pinned} for it", path.display()
    )]
    Changed {
        /// Its name and port.
        name: String,
        /// What it shows now.
        shown: Fingerprint,
        /// What it showed before.
        pinned: Fingerprint,
        /// Where that is noted.
        path: PathBuf,
        /// On which line, from 1.
        line: usize,
    },
    /// A line says nothing that can be understood.
    #[error("line {line} of {} is not NAME:PORT SHA256:DIGITS", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The file cannot be used.
    #[error("cannot note its certificate in {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Arc<std::io::Error>,
    },
}

impl fmt::Debug for KnownAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownAgents").field(&self.path).finish()
    }
}

impl KnownAgents {
    /// Returns those of a file, which need not exist yet; `told` hears of each that is added.
    pub fn new(path: PathBuf, told: Arc<dyn Fn(&Met) + Send + Sync>) -> Self {
        Self { path, told }
    }

    /// Returns the same agents, those added being told to `told` instead.
    pub fn telling(&self, told: Arc<dyn Fn(&Met) + Send + Sync>) -> Self {
        Self::new(self.path.clone(), told)
    }

    /// Returns whether `name` showed a certificate before.
    pub fn has(&self, name: &str) -> Result<bool, KnownError> {
        match draft::read(&self.path, FILE_BYTES_MAX) {
            Ok(text) => Ok(pinned(&text, name, &self.path)?.is_some()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(KnownError::Io {
                path: self.path.clone(),
                source: Arc::new(source),
            }),
        }
    }

    /// Tells whether `name` may show this certificate; the first one that it shows is noted.
    pub(crate) fn check(&self, name: &str, shown: Fingerprint) -> Result<(), KnownError> {
        if self.is_noted(name, shown)? {
            return Ok(());
        }
        (self.told)(&Met {
            name: name.to_owned(),
            fingerprint: shown,
            path: self.path.clone(),
        });
        Ok(())
    }

    /// Returns whether it was noted before; otherwise it is now.
    fn is_noted(&self, name: &str, shown: Fingerprint) -> Result<bool, KnownError> {
        let io = |source| KnownError::Io {
            path: self.path.clone(),
            source: Arc::new(source),
        };
        // Who only reads needs no right to write.
        if let Ok(text) = draft::read(&self.path, FILE_BYTES_MAX)
            && find(&text, name, shown, &self.path)?
        {
            return Ok(true);
        }
        let mut file = open(&self.path).map_err(io)?;
        // Another process, or thread, may meet the same agent now: it waits, and finds our line.
        file.lock().map_err(io)?;
        let text = draft::read_open(&file, FILE_BYTES_MAX).map_err(io)?;
        if find(&text, name, shown, &self.path)? {
            return Ok(true);
        }
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let line = format!("{end}{name} {shown}\n");
        file.write_all(line.as_bytes()).map_err(io)?;
        Ok(false)
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent().filter(|of| !of.as_os_str().is_empty()) {
        draft::make_directory(directory)?;
    }
    let mut how = OpenOptions::new();
    how.read(true).append(true).create(true).mode(0o600);
    // A pipe without a writer would be waited for.
    let file = how.custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::other("it is not a regular file"))
    }
}

/// Looks for `name` in the text of `path`: an error where it has shown something else before.
fn find(text: &str, name: &str, shown: Fingerprint, path: &Path) -> Result<bool, KnownError> {
    match pinned(text, name, path)? {
        None => Ok(false),
        Some((_, pinned)) if pinned == shown => Ok(true),
        Some((line, pinned)) => Err(KnownError::Changed {
            name: name.to_owned(),
            shown,
            pinned,
            path: path.to_owned(),
            line,
        }),
    }
}

/// Returns what `name` showed before, and on which line of `path`, whose text this is.
fn pinned(text: &str, name: &str, path: &Path) -> Result<Option<(usize, Fingerprint)>, KnownError> {
    for (line, words) in draft::entries(text) {
        let words = words.split_once(char::is_whitespace);
        let read = words.and_then(|(of, rest)| Some((of, rest.trim().parse().ok()?)));
        let Some((of, pinned)) = read else {
            let path = path.to_owned();
            return Err(KnownError::Line { path, line });
        };
        if of == name {
            return Ok(Some((line, pinned)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustls::pki_types::CertificateDer;

    use super::*;

    fn fingerprint(of: u8) -> Fingerprint {
        Fingerprint::of(&CertificateDer::from(vec![of]))
    }

    #[test]
    fn the_first_certificate_is_noted_once_and_another_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/known_agents");
        let met = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&met);
        let told = Arc::new(move |_: &Met| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let known = KnownAgents::new(path.clone(), told);
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let known = known.clone();
                std::thread::spawn(move || known.check("db1:5201", fingerprint(1)).is_ok())
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
        assert_eq!(met.load(Ordering::Relaxed), 1);
        let line = format!("db1:5201 {}\n", fingerprint(1));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), line);

        known.check("db1:5202", fingerprint(2)).unwrap();
        let refused = known.check("db1:5202", fingerprint(3)).unwrap_err();
        let words = refused.to_string();
        for word in [
            "line 2",
            &path.display().to_string(),
            &fingerprint(2).to_string(),
            &fingerprint(3).to_string(),
        ] {
            assert!(words.contains(word), "{word}: {words}");
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn lines_that_say_nothing_are_told_and_comments_passed_over() {
        let check = |text: &str| find(text, "a:1", fingerprint(1), Path::new("known"));
        assert!(matches!(check("# all of ours\n\n"), Ok(false)));
        assert!(matches!(
            check(&format!("a:1  {}  ", fingerprint(1))),
            Ok(true)
        ));
        for bad in ["a:1", "a:1 SHA256:zz", "a:1 5f0c"] {
            let refused = check(&format!("# one\n{bad}\n"));
            assert!(
                matches!(refused, Err(KnownError::Line { line: 2, .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_last_line_without_an_end_is_not_joined() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known");
        std::fs::write(&path, format!("a:1 {}", fingerprint(1))).unwrap();
        let known = KnownAgents::new(path, Arc::new(|_: &Met| {}));
        known.check("b:1", fingerprint(2)).unwrap();
        known.check("a:1", fingerprint(1)).unwrap();
        assert!(known.check("b:1", fingerprint(1)).is_err());
    }
}
