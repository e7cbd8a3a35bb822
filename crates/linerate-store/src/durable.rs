//! Files that are either old or new, never half.
//!
//! The new content goes to a neighbour with the suffix `.tmp`, is forced to the disk, and takes
//! the name over. The name survives a crash once [`sync_directory`] has returned; until then the
//! old file may come back, still whole.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What was being done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Making a directory.
    MakeDirectory,
    /// Listing a directory.
    List,
    /// Creating a file.
    Create,
    /// Opening a file.
    Open,
    /// Reading from a file.
    Read,
    /// Writing into a file.
    Write,
    /// Forcing content to the disk.
    Sync,
    /// Giving a file its final name.
    Rename,
    /// Removing a file or directory.
    Remove,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::MakeDirectory => "make the directory",
            Step::List => "list",
            Step::Create => "create",
            Step::Open => "open",
            Step::Read => "read",
            Step::Write => "write",
            Step::Sync => "force to the disk",
            Step::Rename => "rename into place",
            Step::Remove => "remove",
        })
    }
}

/// A step on a file or directory that the system refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} {path}")]
pub struct FileError {
    /// What was being done.
    pub step: Step,
    /// To what.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub cause: io::Error,
}

/// Returns a function that turns the system's error in `step` on `path` into a [`FileError`].
pub(crate) fn failed(step: Step, path: &Path) -> impl FnOnce(io::Error) -> FileError + '_ {
    move |cause| FileError {
        step,
        path: path.to_owned(),
        cause,
    }
}

/// Replaces `path` with what `fill` writes; on failure the old file, if any, is untouched.
pub(crate) fn replace<E: From<FileError>>(
    path: &Path,
    fill: impl FnOnce(&mut File, &Path) -> Result<(), E>,
) -> Result<(), E> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let result = fill_and_rename(path, &temporary, fill);
    if result.is_err() {
        // The first error is the one to tell; what remains is ignored by the reader.
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn fill_and_rename<E: From<FileError>>(
    path: &Path,
    temporary: &Path,
    fill: impl FnOnce(&mut File, &Path) -> Result<(), E>,
) -> Result<(), E> {
    // A link of that name, which may lie in a bundle of somebody else, would lead elsewhere.
    let _ = fs::remove_file(temporary);
    let mut file = File::create_new(temporary).map_err(failed(Step::Create, temporary))?;
    fill(&mut file, temporary)?;
    file.sync_all().map_err(failed(Step::Sync, temporary))?;
    drop(file);
    fs::rename(temporary, path).map_err(failed(Step::Rename, path))?;
    Ok(())
}

/// Replaces the file `name` in `directory` with `bytes`, name and all; returns its path.
pub(crate) fn replace_with(
    directory: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<PathBuf, FileError> {
    let path = directory.join(name);
    replace(&path, |file, temporary| {
        io::Write::write_all(file, bytes).map_err(failed(Step::Write, temporary))
    })?;
    sync_directory(directory)?;
    Ok(path)
}

/// Opens a file to read it. What is none, as a pipe or a device that stands there in its place, would be
/// waited for, or never end.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// Reads a whole file of at most `bytes_max`.
pub(crate) fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        Err(io::Error::other(format!("it is larger than {bytes_max} B")))
    } else {
        Ok(bytes)
    }
}

/// Forces the names in `directory` to the disk.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), FileError> {
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(failed(Step::Sync, directory))
}
