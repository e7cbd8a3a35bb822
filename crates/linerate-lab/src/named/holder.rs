//! The process that owns a named lab.
//!
//! [`Registry::up`] starts it detached and hands it one JSON line with the spec on its input; it
//! answers with one JSON line on its output, ready or why not, closes both and stays until
//! SIGTERM or SIGINT, or until the state that it wrote is gone: nobody could name the lab again.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_model::reason::with_causes;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::{Deserialize, Serialize};

use super::end::{DownError, end};
use super::registry::{Registry, RegistryError, Written, unusable};
use super::state::{FORMAT, ProcessKey, State, StateHost};
use crate::enter::enter;
use crate::error::LabError;
use crate::lab::Lab;
use crate::spec::{LabSpec, SpecError};
use crate::sys::process;

/// Most bytes of a message between starter and holder.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;
/// How long a holder may take to make its lab: 64 hosts need about 2 s on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How often a holder looks whether its lab can still be found: one `stat`.
const LOOK: Duration = Duration::from_secs(2);

/// How this program is run so that it calls [`hold`]: its hidden subcommand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderCommand {
    /// The program, usually `std::env::current_exe()`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// Why a named lab could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// The spec is outside its limits.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The labs could not be found or read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// What a crashed lab of this name left could not be removed.
    #[error("cannot clean up after a crashed lab")]
    Clean(#[source] DownError),
    /// The name is taken.
    #[error(
        "cannot bring up lab `{name}`: it is up already (process {pid}); remove it first or choose another \
         name"
    )]
    Exists {
        /// The name.
        name: String,
        /// Its holder.
        pid: u32,
    },
    /// The holder could not be started or spoken to.
    #[error("cannot start the process that holds lab `{name}`")]
    Start {
        /// The lab.
        name: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The holder could not make the lab.
    #[error("cannot bring up lab `{name}`: {reason}")]
    Refused {
        /// The lab.
        name: String,
        /// What the holder said, causes included.
        reason: String,
    },
}

/// Why a holder ended otherwise than asked to.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// It was not started by [`Registry::up`].
    #[error("cannot read what lab to hold: this subcommand is for `lab up` alone")]
    Request(#[source] io::Error),
    /// The lab could not be made or taken down.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The state could not be written.
    #[error("cannot write the state of the lab")]
    State(#[source] io::Error),
    /// The signals to wait for could not be set.
    #[error("cannot wait for a signal")]
    Signal(#[source] io::Error),
}

#[derive(Serialize, Deserialize)]
struct Request {
    root: PathBuf,
    spec: LabSpec,
}

#[derive(Serialize, Deserialize)]
enum Answer {
    Ready(Box<State>),
    Refused(String),
}

impl Registry {
    /// Brings up the lab of `spec` and leaves it up; `holder` is how this program calls [`hold`].
    pub fn up(&self, spec: &LabSpec, holder: &HolderCommand) -> Result<State, UpError> {
        spec.check(&spec.name)?;
        let _lock = self.lock()?;
        self.claim(&spec.name)?;
        let started = self.start(spec, holder);
        if started.is_err() {
            // The first error is the one to tell.
            let _removed = self.remove(&spec.name);
        }
        started
    }

    /// Makes the lab's directory; removes what a crashed lab of that name left before.
    fn claim(&self, name: &str) -> Result<(), UpError> {
        let path = self.directory(name)?;
        if let Some(state) = self.read(name)? {
            if state.is_up() {
                return Err(UpError::Exists {
                    name: name.to_owned(),
                    pid: state.holder.pid,
                });
            }
            end(name, &state).map_err(UpError::Clean)?;
        }
        self.remove(name).map_err(UpError::Clean)?;
        Ok(fs::create_dir(&path).map_err(unusable(&path))?)
    }

    fn start(&self, spec: &LabSpec, holder: &HolderCommand) -> Result<State, UpError> {
        let name = || spec.name.clone();
        let failed = |source| UpError::Start {
            name: name(),
            source,
        };
        let mut child = spawn(holder).map_err(failed)?;
        let request = Request {
            root: self.root().to_owned(),
            spec: spec.clone(),
        };
        let answer = converse(&mut child, &request);
        let reason = match answer {
            Ok(Answer::Ready(state)) => return Ok(*state),
            Ok(Answer::Refused(reason)) => reason,
            Err(error) => format!("its holder process ended without a message ({error})"),
        };
        // It is ending; a zombie would stay until this process ends.
        let _killed = child.kill();
        child.wait().map_err(failed)?;
        Err(UpError::Refused {
            name: name(),
            reason,
        })
    }
}

/// Owns one lab until SIGTERM or SIGINT, or until nobody can find it: the body of the hidden subcommand.
///
/// Call it first thing in `main`, while the process has one thread.
pub fn hold() -> Result<(), HoldError> {
    process::close_inherited();
    let request = read_request().map_err(HoldError::Request)?;
    let signals = block_signals().map_err(HoldError::Signal)?;
    let (lab, registry, written) = match make(&request) {
        Ok(made) => made,
        Err(error) => {
            // Whoever waits for the answer tells the user; if nobody does, the exit code stays.
            let _told = answer(&Answer::Refused(with_causes(&error)));
            return Err(error);
        }
    };
    // A runtime directory goes with its user's last session, and `down` in one of the lab's own hosts,
    // where processes have other ids, removes the state alone.
    let is_asked = loop {
        if process::wait_readable(signals.as_fd(), LOOK).map_err(HoldError::Signal)? {
            break true;
        }
        if !written.is_there() {
            break false;
        }
    };
    lab.down()?;
    if is_asked {
        // What stays is removed by the one who sent the signal, or by the next `up`.
        let _removed = registry.remove(&request.spec.name);
    }
    Ok(())
}

fn make(request: &Request) -> Result<(Lab, Registry, Written), HoldError> {
    let registry = Registry::at(request.root.clone())
        .map_err(|error| HoldError::State(io::Error::other(error)))?;
    let entered = enter()?;
    let lab = Lab::up(&request.spec, &entered)?;
    let state = describe(request, &lab, entered.in_user_namespace()).map_err(HoldError::State)?;
    let written = registry.write(&state).map_err(HoldError::State)?;
    answer(&Answer::Ready(Box::new(state))).map_err(HoldError::State)?;
    let_go().map_err(HoldError::State)?;
    Ok((lab, registry, written))
}

fn describe(request: &Request, lab: &Lab, in_user_namespace: bool) -> io::Result<State> {
    let hosts = lab.hosts().iter().map(|host| {
        Ok(StateHost {
            name: host.name.clone(),
            init: ProcessKey::of(host.init_pid)?,
            data_address: host.data_address,
            control_address: host.control_address,
        })
    });
    Ok(State {
        format: FORMAT,
        spec: request.spec.clone(),
        holder: ProcessKey::of(std::process::id())?,
        hosts: hosts.collect::<io::Result<_>>()?,
        in_user_namespace,
        degraded: lab.degraded().to_vec(),
    })
}

fn spawn(holder: &HolderCommand) -> io::Result<Child> {
    let mut command = Command::new(&holder.program);
    command
        .args(&holder.arguments)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    process::detach(&mut command);
    command.spawn()
}

fn converse(child: &mut Child, request: &Request) -> io::Result<Answer> {
    let mut input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    serde_json::to_writer(&mut input, request)?;
    input.write_all(b"\n")?;
    drop(input);
    if !process::wait_readable(output.as_fd(), START_LIMIT)? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut line = String::new();
    BufReader::new(output.take(MESSAGE_BYTES_MAX)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn read_request() -> io::Result<Request> {
    let mut line = String::new();
    let input = io::stdin().lock().take(MESSAGE_BYTES_MAX);
    BufReader::new(input).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn answer(answer: &Answer) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, answer)?;
    output.write_all(b"\n")?;
    output.flush()
}

/// Lets go of the starter's pipes, so that it is not kept waiting for their end.
fn let_go() -> io::Result<()> {
    let null = fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    Ok(())
}

/// Blocks the signals that end a holder, before any other thread exists, and returns what hears them.
fn block_signals() -> io::Result<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.thread_block()?;
    Ok(SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?)
}
