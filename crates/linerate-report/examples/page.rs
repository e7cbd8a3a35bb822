//! Writes the report of a made-up study, for looking at: `page FILE.html [FILE.md]`.

use std::path::PathBuf;

/// The made-up study that the tests use too.
#[expect(dead_code, reason = "the tests use the other variants")]
#[path = "../tests/shown/fixture/mod.rs"]
mod fixture;

fn main() -> std::io::Result<()> {
    let study = fixture::study();
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    if let Some(path) = paths.next() {
        std::fs::write(
            path,
            linerate_report::html(&study, linerate_report::Extent::Answer),
        )?;
    }
    if let Some(path) = paths.next() {
        std::fs::write(
            path,
            linerate_report::markdown(&study, linerate_report::Extent::Answer),
        )?;
    }
    Ok(())
}
