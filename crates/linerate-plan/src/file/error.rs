//! Why an experiment file cannot be used.

use linerate_model::experiment::LevelError;

/// The number of the format of experiment files.
pub(super) const FORMAT: u32 = 1;

/// Why an experiment file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is not TOML, or has a key or value that the format does not know.
    #[error("cannot read {origin}, line {line} (`{text}`): {message}")]
    Syntax {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
        /// What is wrong, with the keys or words that are allowed.
        message: String,
    },
    /// A value is of the right kind but cannot be.
    #[error("cannot read {origin}, line {line}: `{key}` is {value}, but must be {allowed}")]
    Value {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The key, with its section.
        key: String,
        /// The value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// The levels together make no workload.
    #[error("cannot read {origin}: the cell {cell} cannot be measured")]
    Cell {
        /// The file.
        origin: String,
        /// The cell in words.
        cell: String,
        /// What is wrong with it.
        #[source]
        cause: Box<LevelError>,
    },
    /// A newer version of the program wrote or needs the file.
    #[error("cannot read {origin}: it has format {found}, and this version reads format {FORMAT}")]
    Format {
        /// The file.
        origin: String,
        /// Its number.
        found: u32,
    },
}
