//! Running a program in a host of a named lab.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitStatus};
use std::{env, io};

use super::registry::{Registry, RegistryError};
use super::state::State;
use crate::sys::guest::{EndsWith, Guest, place};
use crate::sys::init::NAMESPACES;
use crate::sys::process;

/// The shell of a user who has none.
const SHELL: &str = "/bin/sh";

/// Why a program could not be run in a host.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// The labs could not be found or read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The lab is not up any more.
    #[error("lab `{name}` has crashed")]
    Crashed {
        /// The lab.
        name: String,
    },
    /// There is no such host.
    #[error("lab `{name}` has no host `{host}`, but {known}")]
    NoHost {
        /// The lab.
        name: String,
        /// The host asked for.
        host: String,
        /// The hosts there are.
        known: String,
    },
    /// The program could not be started.
    #[error("cannot run `{program}` in host `{host}`")]
    Start {
        /// The program.
        program: String,
        /// The host.
        host: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

impl Registry {
    /// Returns a command that will run `program` in a host of lab `name`.
    ///
    /// As [`Lab::command`](crate::Lab::command), but the program also ends with the thread that
    /// started it, because the lab does not end with this process.
    pub fn command(
        &self,
        name: &str,
        host: &str,
        program: impl AsRef<OsStr>,
    ) -> Result<Command, VisitError> {
        let state = self.find(name)?;
        let guest = guest_of(&state, host)?;
        let mut command = Command::new(program);
        place(&mut command, guest);
        Ok(command)
    }

    /// Runs a program in a host of lab `name` and returns how it ended; without words the user's shell.
    /// Input, output and working directory are the caller's; Ctrl-C, SIGTERM and SIGHUP go to the program.
    pub fn exec(
        &self,
        name: &str,
        host: &str,
        words: &[OsString],
    ) -> Result<ExitStatus, VisitError> {
        let shell = || env::var_os("SHELL").filter(|shell| !shell.is_empty());
        let (program, arguments) = match words.split_first() {
            Some((program, arguments)) => (program.clone(), arguments),
            None => (shell().unwrap_or_else(|| SHELL.into()), words),
        };
        let mut command = self.command(name, host, &program)?;
        let failed = |source| VisitError::Start {
            program: program.to_string_lossy().into_owned(),
            host: host.to_owned(),
            source,
        };
        process::run_handing_on(command.args(arguments)).map_err(failed)
    }
}

fn guest_of(state: &State, host: &str) -> Result<Guest, VisitError> {
    let name = || state.spec.name.clone();
    let found = state.hosts.iter().find(|candidate| candidate.name == host);
    let found = found.ok_or_else(|| {
        let names: Vec<&str> = state.hosts.iter().map(|host| host.name.as_str()).collect();
        VisitError::NoHost {
            name: name(),
            host: host.to_owned(),
            known: names.join(", "),
        }
    })?;
    // Without its holder a host is ending, if it has not ended.
    let init = found
        .init
        .open()
        .filter(|_| state.is_up())
        .ok_or_else(|| VisitError::Crashed { name: name() })?;
    let user = if state.in_user_namespace {
        libc::CLONE_NEWUSER
    } else {
        0
    };
    Ok(Guest {
        host: init,
        namespaces: NAMESPACES | user,
        ends_with_caller: EndsWith::Caller,
    })
}
