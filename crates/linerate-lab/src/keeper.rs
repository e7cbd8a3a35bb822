//! The thread that makes a lab's hosts and with which they end.
//!
//! A host's first process is killed when the *thread* that made it ends, so the hosts are made
//! on a thread that does nothing else and lives as long as the lab.

use std::ffi::CString;
use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, process};

use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};

use crate::enter::advice_for_this_machine;
use crate::error::LabError;
use crate::network::names;
use crate::sys::init::{self, Init, NO_NAMES, Told};
use crate::sys::process as pidfd;

/// How long a host may take to end after SIGKILL; the kernel needs a few ms.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How long hosts may take to be ready: each makes a few mounts.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// The hosts' first processes and the thread that made them.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// The first processes, in the order of the hosts asked for.
    pub(crate) inits: Vec<Kept>,
    /// Whether every host knows the names of all.
    pub(crate) has_names: bool,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One host's first process.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Name of the host.
    pub host: String,
    /// The process.
    pub init: Init,
}

impl Keeper {
    /// Makes a first process for each of `hosts`.
    pub(crate) fn start(hosts: Vec<String>) -> Result<Self, LabError> {
        let (stop, stopped) = channel();
        let (report, reported) = channel();
        let thread = std::thread::Builder::new()
            .name("lab-keeper".to_owned())
            .spawn(move || keep(&hosts, &report, &stopped))
            .map_err(LabError::Keeper)?;
        let mut keeper = Self {
            inits: Vec::new(),
            has_names: false,
            stop: Some(stop),
            thread: Some(thread),
        };
        let ended = || LabError::Keeper(io::ErrorKind::BrokenPipe.into());
        (keeper.inits, keeper.has_names) = reported.recv().map_err(|_| ended())??;
        Ok(keeper)
    }

    /// Ends all hosts with every program in them, and waits until they are gone.
    pub(crate) fn stop(&mut self) -> Result<(), LabError> {
        for kept in &self.inits {
            // Fails only if it ended before.
            let _sent = pidfd::signal(kept.init.process.as_fd(), libc::SIGKILL);
        }
        for kept in self.inits.drain(..) {
            end(&kept)?;
        }
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Nobody is left to tell; the hosts end with the thread in any case.
        let _stopped = self.stop();
    }
}

fn end(kept: &Kept) -> Result<(), LabError> {
    let ended = pidfd::wait_readable(kept.init.process.as_fd(), END_LIMIT);
    if !ended.map_err(LabError::Keeper)? {
        return Err(LabError::StillThere {
            host: kept.host.clone(),
            waited_ms: END_LIMIT.as_millis(),
        });
    }
    // Fails only if the process was reaped before, as it is where SIGCHLD is ignored.
    let _reaped = pidfd::reap(&kept.init.process);
    Ok(())
}

/// The thread: make the hosts, report, stay until told to stop.
fn keep(hosts: &[String], report: &Sender<Result<Made, LabError>>, stopped: &Receiver<()>) {
    let made = make(hosts);
    let kept = made.is_ok();
    if report.send(made).is_ok() && kept {
        // Returns when the sender is dropped; nothing is ever sent.
        let _stop = stopped.recv();
    }
}

/// The first processes, and whether every host knows the names of all.
type Made = (Vec<Kept>, bool);

fn make(hosts: &[String]) -> Result<Made, LabError> {
    // The new processes inherit the mask and so never run a handler of this program.
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)
        .map_err(|errno| LabError::Keeper(errno.into()))?;
    let maker = pidfd::open(process::id()).map_err(LabError::Keeper)?;
    let hosts_file = CString::new(names(hosts)).map_err(|error| LabError::Keeper(error.into()))?;
    let (hear, ready) = io::pipe().map_err(LabError::Keeper)?;
    let made: Result<Vec<Kept>, LabError> = hosts
        .iter()
        .map(|host| {
            let failed = |source| LabError::Host {
                host: host.clone(),
                advice: advice_for_this_machine(),
                source,
            };
            let name = CString::new(host.as_str()).map_err(|error| failed(error.into()))?;
            let told = Told {
                name: &name,
                hosts: &hosts_file,
                maker: maker.as_fd(),
                ready: ready.as_fd(),
            };
            Ok(Kept {
                host: host.clone(),
                init: init::spawn(told).map_err(failed)?,
            })
        })
        .collect();
    drop(ready);
    let made = made?;
    let said = until_ready(hear).map_err(LabError::Keeper)?;
    Ok((made, !said.contains(&NO_NAMES)))
}

/// Waits until every host is ready, which closes its end of the pipe, and returns what they said.
fn until_ready(mut hear: PipeReader) -> io::Result<Vec<u8>> {
    let begin = Instant::now();
    let mut said = Vec::new();
    let mut word = [0; 64];
    loop {
        let left = READY_LIMIT.saturating_sub(begin.elapsed());
        if !pidfd::wait_readable(hear.as_fd(), left)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match hear.read(&mut word)? {
            0 => return Ok(said),
            count => said.extend_from_slice(&word[..count]),
        }
    }
}
