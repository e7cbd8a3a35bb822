//! Tells the program what it is: version, commit and target, which `linerate --version` prints.

use std::process::Command;

/// Where this package lies in the repository: another one around it has other commits.
const OWN: &str = "crates/linerate/";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    // A development build knows no commit: each one would link the program and its tests anew.
    let is_release = variable("PROFILE") == "release";
    let commit = is_release.then(commit).flatten();
    let commit = commit.map_or(String::new(), |commit| format!("{commit}, "));
    let version = variable("CARGO_PKG_VERSION");
    let target = variable("TARGET");
    println!("cargo::rustc-env=LINERATE_VERSION={version} ({commit}{target})");
}

/// Returns the commit in short; nothing where there is no git, or no repository of ours.
fn commit() -> Option<String> {
    let folder = git(&["rev-parse", "--show-prefix"])?;
    if folder != OWN {
        return None;
    }
    // Each commit and each switch of branches adds a line to this log.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short", "HEAD"])
}

fn git(words: &[&str]) -> Option<String> {
    let said = Command::new("git").args(words).output().ok()?;
    let words = String::from_utf8(said.stdout).ok()?;
    said.status.success().then(|| words.trim().to_owned())
}
