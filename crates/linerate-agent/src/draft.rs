//! Files of ours: their owner's alone, a line for each entry, and never seen half-written.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use linerate_model::hex;

/// Writes `text` to a draft beside `path`, which `place` then puts where it belongs; no draft stays. Whoever
/// owns the directory may put something else under the draft's name meanwhile, so `place` has the file, too.
pub(crate) fn keep(
    path: &Path,
    text: &str,
    place: impl FnOnce(&Path, &File) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = [0; 8];
    getrandom::fill(&mut name).map_err(|error| io::Error::other(error.to_string()))?;
    let draft = path.with_extension(hex::encode(&name));
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all().map(|()| file)
        });
    let kept = written.and_then(|file| place(&draft, &file));
    let _ = std::fs::remove_file(&draft);
    kept
}

/// Opens a file to read: a pipe or a device in its place, which may never end, is refused.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        // A pipe without a writer would be waited for.
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(refused("it is not a regular file".to_owned()))
    }
}

/// Reads a file of at most so many bytes.
pub(crate) fn read(path: &Path, bytes_max: u64) -> io::Result<String> {
    read_open(&open_file(path)?, bytes_max)
}

/// Reads what is left of an open file, of at most so many bytes.
pub(crate) fn read_open(file: &File, bytes_max: u64) -> io::Result<String> {
    let text = String::from_utf8(read_bytes(file, bytes_max)?);
    text.map_err(|_| refused("it is not text in UTF-8".to_owned()))
}

/// Reads the same, whatever it is.
pub(crate) fn read_bytes(file: &File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(refused(format!("it is longer than {bytes_max} B")));
    }
    Ok(bytes)
}

/// Reads a file that is its owner's alone.
pub(crate) fn read_private(path: &Path, bytes_max: u64) -> io::Result<String> {
    let file = open_file(path)?;
    let mode = file.metadata()?.mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.display();
        return Err(refused(format!(
            "others than its owner may read or write it (mode {mode:03o}): chmod 600 {path}"
        )));
    }
    read_open(&file, bytes_max)
}

/// Reads a file with a secret that was given by name: nobody else may write it, nor read it unless a directory above
/// it lets nobody else in.
pub fn read_secret(path: &Path, bytes_max: u64) -> io::Result<String> {
    let file = open_file(path)?;
    let mode = file.metadata()?.mode() & 0o777;
    if mode & 0o022 != 0 || mode & 0o044 != 0 && !is_out_of_reach(path)? {
        let path = path.display();
        return Err(refused(format!(
            "others than its owner may read or write it (mode {mode:03o}): chmod 600 {path}"
        )));
    }
    read_open(&file, bytes_max)
}

/// Returns whether a directory above `path` lets its owner in alone.
fn is_out_of_reach(path: &Path) -> io::Result<bool> {
    let path = path.canonicalize()?;
    for directory in path.ancestors().skip(1) {
        if directory.metadata()?.mode() & 0o011 == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses a directory in which others than its owner may put files.
pub(crate) fn check_directory(path: &Path) -> io::Result<()> {
    let mode = path.metadata()?.mode() & 0o7777;
    if mode & 0o022 == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(refused(format!(
        "others than its owner may change what is in {path} (mode {mode:03o}): chmod 700 {path}"
    )))
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Makes a directory that is its owner's alone, where it is missing.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut make = std::fs::DirBuilder::new();
    make.recursive(true).mode(0o700).create(path)
}

/// Returns the lines that say something, with their numbers: neither empty nor comments.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim);
    let said = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    (1..).zip(lines).filter(said)
}
