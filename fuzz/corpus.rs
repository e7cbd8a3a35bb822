//! What parsers that strangers reach are tried with, and what becomes of it when bytes change.
//!
//! A folder of `corpus` for each parser, a file for each kind of input: what an honest other end says, and what
//! once did harm. Tests read every file as it is, and begin their changes with it.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

/// Longest run of bytes that one change inserts.
const INSERTED_MAX: usize = 64;

/// Returns the files for `parser` with their names; there is one at least.
pub fn files(parser: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = std::fs::read_dir(folder.join(parser)).expect("a folder of the corpus");
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.expect("a file").path())
        .map(|path| {
            let bytes = std::fs::read(&path).expect("a file");
            (path.display().to_string(), bytes)
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "nothing for {parser}");
    files
}

/// A change of bytes, at shares of their length.
#[derive(Debug, Clone)]
enum Change {
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
    /// The end is that of another file.
    Join(prop::sample::Index, prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    let byte = prop_oneof![
        any::<u8>(),
        Just(0),
        Just(0xff),
        Just(0x7f),
        Just(b'-'),
        Just(b'9')
    ];
    prop_oneof![
        4 => (at(), byte).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => (at(), vec(any::<u8>(), 1..INSERTED_MAX)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => (at(), at()).prop_map(|(from, to)| Change::Remove(from, to)),
        1 => (at(), at()).prop_map(|(from, to)| Change::Repeat(from, to)),
        1 => (at(), at()).prop_map(|(at, other)| Change::Join(at, other)),
    ]
}

/// Returns files for `parser` with up to five changes.
pub fn changed(parser: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let all: Vec<Vec<u8>> = files(parser).into_iter().map(|(_, bytes)| bytes).collect();
    let first = proptest::sample::select(all.clone());
    (first, vec(change(), 0..6)).prop_map(move |(mut bytes, changes)| {
        for change in changes {
            apply(&mut bytes, change, &all);
        }
        bytes
    })
}

fn apply(bytes: &mut Vec<u8>, change: Change, all: &[Vec<u8>]) {
    let within = |at: &prop::sample::Index| at.index(bytes.len() + 1);
    let range = |from: &prop::sample::Index, to: &prop::sample::Index| {
        let (from, to) = (within(from), within(to));
        from.min(to)..from.max(to)
    };
    match change {
        Change::Set(at, byte) => {
            let at = within(&at);
            match bytes.get_mut(at) {
                Some(old) => *old = byte,
                None => bytes.push(byte),
            }
        }
        Change::Insert(at, new) => {
            let at = within(&at);
            bytes.splice(at..at, new);
        }
        Change::Remove(from, to) => drop(bytes.drain(range(&from, &to))),
        Change::Repeat(from, to) => {
            let again = bytes[range(&from, &to)].to_vec();
            bytes.extend(again);
        }
        Change::Join(at, other) => {
            let (at, other) = (within(&at), other.get(all));
            bytes.truncate(at);
            bytes.extend(other.iter().skip(at));
        }
    }
}
