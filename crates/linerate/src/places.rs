//! Where the program keeps what outlives a call: the agent's key and tokens, and the agents that
//! were met before.

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::exit::{CmdResult, Failure};
use crate::shell::quoted_path;

/// The program's own folder in those of the user and of the system.
const OWN: &str = "linerate";
/// Where daemons keep their state (file-hierarchy(7)).
const SYSTEM_STATE: &str = "/var/lib";
/// The file of known agents.
const KNOWN_AGENTS: &str = "known_agents";

/// Returns the directory of the agent's state: `asked`, or the first of those that are usual which
/// is there or can be made: `$XDG_STATE_HOME/linerate`, of root /var/lib/linerate, `~/.local/state/linerate`.
pub fn state(asked: Option<&Path>) -> CmdResult<PathBuf> {
    if let Some(asked) = asked {
        return Ok(asked.to_owned());
    }
    let system = nix::unistd::geteuid()
        .is_root()
        .then(|| SYSTEM_STATE.into());
    let usual = [variable("XDG_STATE_HOME"), system, home(".local/state")];
    let usual: Vec<PathBuf> = usual
        .into_iter()
        .flatten()
        .map(|base| base.join(OWN))
        .collect();
    let can_be = |path: &&PathBuf| private_directory(path).is_ok();
    usual.iter().find(can_be).cloned().ok_or_else(|| {
        let error = anyhow!("no directory for the agent's key and tokens can be made");
        Failure::failed(error).next("name one with --state")
    })
}

/// Returns the flag that names this directory of state again, as it is typed after a command; nothing where
/// none was asked for.
pub fn state_words(asked: Option<&Path>) -> String {
    asked.map_or(String::new(), |path| {
        format!(" --state {}", quoted_path(path))
    })
}

/// Returns the file of known agents: `asked`, or `$XDG_CONFIG_HOME/linerate/known_agents`, or the
/// same in `~/.config`.
pub fn known_agents(asked: Option<&Path>) -> CmdResult<PathBuf> {
    if let Some(asked) = asked {
        return Ok(asked.to_owned());
    }
    let base = variable("XDG_CONFIG_HOME").or_else(|| home(".config"));
    let base = base.ok_or_else(|| {
        let error = anyhow!("neither HOME nor XDG_CONFIG_HOME says where known agents are noted");
        Failure::usage(error).next("name the file with --known-agents")
    })?;
    Ok(base.join(OWN).join(KNOWN_AGENTS))
}

fn private_directory(path: &Path) -> std::io::Result<()> {
    let mut make = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
    make.recursive(true).create(path)?;
    Ok(nix::unistd::access(path, nix::unistd::AccessFlags::W_OK)?)
}

/// Returns the absolute path in a variable; others are to be ignored (XDG Base Directory).
fn variable(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name)?);
    path.is_absolute().then_some(path)
}

fn home(below: &str) -> Option<PathBuf> {
    Some(variable("HOME")?.join(below))
}
