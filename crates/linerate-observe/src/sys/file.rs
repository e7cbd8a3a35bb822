//! Kernel text files: one that is read again and again, and ones read once.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::clock::timed;

/// First size of a reading's buffer, in bytes: holds /proc/stat of some 100 CPUs.
const BUFFER_BYTES_FIRST: usize = 16 << 10;
/// Longest file that is read, in bytes: /proc/stat of 8192 CPUs is below 2 MiB.
const BUFFER_BYTES_MAX: usize = 16 << 20;
/// Longest text of a fact, in bytes: the first processors of /proc/cpuinfo are enough.
const FACT_BYTES_MAX: u64 = 64 << 10;

/// A kernel text file that stays open and is read from its begin each time.
///
/// Staying open pins what the file is about: the network namespace of a file below `net/`, and
/// the thread of a file below `task/`, so that a reused thread id is never mistaken for it.
#[derive(Debug)]
pub(crate) struct KernelFile {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
}

impl KernelFile {
    /// Opens `path`; the reason of a failure names it.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| reason(path, &error))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            buffer: Vec::new(),
        })
    }

    /// Opens `file` of the calling thread's network namespace: `thread-self` exists since Linux 3.17.
    pub(crate) fn of_network(proc_root: &Path, file: &str) -> Result<Self, String> {
        let of = |whose: &str| Self::open(&proc_root.join(whose).join("net").join(file));
        of("thread-self").or_else(|_| of("self"))
    }

    /// Makes room for the first reading of a file that is small.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.buffer.resize(bytes, 0);
    }

    /// Reads the whole file and returns it with the instant of CLOCK_MONOTONIC.
    ///
    /// One pread takes everything: a second one at a later offset would make the kernel write the
    /// text again, and the two halves would come from two instants. A full buffer therefore means
    /// a larger one and reading again, which happens in the first readings only.
    pub(crate) fn read(&mut self) -> Result<(&[u8], u64), String> {
        if self.buffer.is_empty() {
            self.buffer.resize(BUFFER_BYTES_FIRST, 0);
        }
        loop {
            let (length, at_ns) = timed(|| self.file.read_at(&mut self.buffer, 0));
            match length {
                Ok(length) if length < self.buffer.len() => {
                    return Ok((&self.buffer[..length], at_ns));
                }
                Ok(_) if self.buffer.len() >= BUFFER_BYTES_MAX => {
                    return Err(format!(
                        "{}: longer than {BUFFER_BYTES_MAX} bytes",
                        self.path.display()
                    ));
                }
                Ok(_) => self.buffer.resize(self.buffer.len() * 2, 0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reason(&self.path, &error)),
            }
        }
    }

    /// Says what is wrong with the text.
    pub(crate) fn says(&self, what: &str) -> String {
        format!("{}: {what}", self.path.display())
    }
}

/// Reads the begin of a text file once; the reason of a failure names it.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| reason(path, &error))?;
    let mut bytes = Vec::new();
    file.take(FACT_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| reason(path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a file of one value once, without the white space around it.
pub(crate) fn read_value(path: &Path) -> Result<String, String> {
    let text = read_text(path)?;
    match text.trim() {
        "" => Err(format!("{}: empty", path.display())),
        value => Ok(value.to_owned()),
    }
}

fn reason(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
