//! Kernel text files: one that is read again and again, and ones read once.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::clock::timed;

/// First size of a reading's buffer, in bytes: holds /proc/stat of some 100 CPUs.
const BUFFER_BYTES_FIRST: usize = 16 << 10;
/// What is shorter than this is not cut by the size of a page, in bytes: half of the smallest.
const SHORT_BYTES: usize = 2 << 10;
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
    /// The last reading had all of it at once.
    is_one_piece: bool,
}

impl KernelFile {
    /// Opens `path`; the reason of a failure names it.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| reason(path, &error))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            buffer: Vec::new(),
            is_one_piece: false,
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
    pub(crate) fn read(&mut self) -> Result<(&[u8], u64), String> {
        let (length, at_ns) = timed(|| self.fill());
        let length = length.map_err(|error| reason(&self.path, &error))?;
        Ok((&self.buffer[..length], at_ns))
    }

    /// Fills the buffer from the file's begin to its end, and returns how many bytes that are.
    ///
    /// A file of one record (/proc/stat, /proc/net/snmp) is handed out whole. One with a record for each
    /// line (/proc/interrupts, /proc/net/softnet_stat) comes in pieces of a page at the most, whatever there
    /// is room for, so that only nothing means the end (seq_read_iter in fs/seq_file.c; going on where the
    /// last piece ended writes no text again). That costs 0.7 µs more, a third of the smallest file, so a
    /// short text that was all of it the last time is all of it again.
    fn fill(&mut self) -> io::Result<usize> {
        if self.buffer.is_empty() {
            self.buffer.resize(BUFFER_BYTES_FIRST, 0);
        }
        let (mut length, mut pieces) = (0, 0);
        loop {
            if length == self.buffer.len() {
                if length >= BUFFER_BYTES_MAX {
                    let why = format!("longer than {BUFFER_BYTES_MAX} bytes");
                    return Err(io::Error::other(why));
                }
                self.buffer.resize(length * 2, 0);
            }
            let room = &mut self.buffer[length..];
            match self.file.read_at(room, length as u64) {
                Ok(0) => {
                    self.is_one_piece = pieces == 1;
                    return Ok(length);
                }
                Ok(piece) => (length, pieces) = (length + piece, pieces + 1),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.is_one_piece && length < SHORT_BYTES {
                return Ok(length);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_many_records_is_read_to_its_end() {
        // Every symbol of the kernel is a record; those without a right to them have the address 0.
        let mut file = KernelFile::open(Path::new("/proc/kallsyms")).expect("symbols");
        file.reserve(1 << 10);
        for _ in 0..2 {
            let whole = std::fs::read("/proc/kallsyms").expect("symbols");
            let (text, _) = file.read().expect("a text");
            // Not the same: programs of BPF come and go.
            let lengths = format!("{} of {} bytes", text.len(), whole.len());
            assert!(
                whole.len() > 1 << 16 && text.len() > whole.len() / 2,
                "{lengths}"
            );
            assert!(text.ends_with(b"\n"), "{lengths}");
        }
    }

    #[test]
    fn a_short_file_that_grows_is_read_to_its_end() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        let mut file = KernelFile::open(path.path()).expect("the file");
        for length in [0, 100, 200, 2047, 2048, 100_000, 5, 0] {
            std::fs::write(path.path(), vec![b'x'; length]).expect("written");
            let (text, _) = file.read().expect("a text");
            assert_eq!(text.len(), length);
        }
    }
}
