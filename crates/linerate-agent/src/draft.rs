//! Files of ours: their owner's alone, a line for each entry, and never seen half-written.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
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
