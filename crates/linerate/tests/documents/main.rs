//! Documents, words and the shape of the code, held against the program: in a test binary of their own, so that a sentence
//! that changes does not link anew what runs labs and servers.

mod architecture;
mod flags;
mod recorded;
mod reference;
mod words;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the program to its end.
fn linerate<S: AsRef<OsStr>>(words: &[S]) -> Output {
    // Where calls keep what outlives them.
    const KEPT: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/kept");
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command
        .args(words)
        .env("NO_COLOR", "1")
        .env_remove("LINERATE_TOKEN")
        .env("XDG_STATE_HOME", KEPT)
        .env("XDG_CONFIG_HOME", KEPT);
    command.output().expect("the program can be started")
}

/// Runs the program, which is to succeed, and returns what it prints.
#[track_caller]
fn output<S: AsRef<OsStr>>(words: &[S]) -> String {
    let said = linerate(words);
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{}: {error}", said.status);
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// Returns the folder of this repository.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors()
        .nth(2)
        .expect("the crate lies two folders below the workspace")
        .to_owned()
}
