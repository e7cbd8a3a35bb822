//! Files that nobody sees half-written, and that are their owner's alone.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
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
