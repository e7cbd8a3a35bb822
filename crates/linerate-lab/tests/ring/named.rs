//! Labs with names: up, visited, listed, crashed, cleaned.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use linerate_lab::named::{self, HolderCommand, Registry, UpError, VisitError};
use linerate_lab::{HostSpec, LabSpec, LinkSpec};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

/// The word that makes this program a holder.
pub const HOLD: &str = "hold-a-lab";

/// The body of the hidden subcommand.
pub fn hold() -> ExitCode {
    match named::hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn holder() -> HolderCommand {
    HolderCommand {
        program: std::env::current_exe().expect("this program has a path"),
        arguments: vec![OsString::from(HOLD)],
    }
}

fn spec() -> LabSpec {
    let hosts = ["server", "client1"].map(|name| HostSpec {
        name: name.to_owned(),
        link: LinkSpec::default(),
    });
    LabSpec {
        name: "ring".to_owned(),
        hosts: hosts.to_vec(),
    }
}

fn words(text: &str) -> Vec<OsString> {
    ["sh", "-c", text].map(OsString::from).to_vec()
}

/// Up, twice refused, listed, visited, down.
pub fn life() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let registry = Registry::at(place.path().join("lab")).expect("made");
    let state = registry.up(&spec(), &holder()).expect("the lab comes up");
    assert!(state.is_up());
    let again = registry.up(&spec(), &holder());
    assert!(matches!(again, Err(UpError::Exists { .. })), "{again:?}");
    assert_eq!(registry.list().expect("readable").0, vec![state.clone()]);

    let exec = |host, text| registry.exec("ring", host, &words(text));
    let status = exec("client1", "test $(cat /proc/sys/kernel/hostname) = client1");
    assert!(status.expect("a shell starts").success());
    let status = exec("client1", "grep -q '^10.77.0.1 server$' /etc/hosts");
    assert!(
        status.expect("a shell starts").success(),
        "hosts know names"
    );
    let status = exec("client1", "exit 7").expect("a shell starts");
    assert_eq!(status.code(), Some(7));
    let status = exec("client1", "kill -KILL $$").expect("a shell starts");
    assert_eq!(status.signal(), Some(9));
    let other = exec("client2", "true").expect_err("there is no client2");
    assert!(other.to_string().contains("server, client1"), "{other}");

    registry.down("ring").expect("the lab goes down");
    assert!(!state.is_up());
    assert!(state.hosts.iter().all(|host| !host.init.is_alive()));
    assert!(registry.list().expect("readable").0.is_empty());
    let gone = exec("client1", "true").expect_err("the lab is down");
    assert!(matches!(gone, VisitError::Registry(_)), "{gone}");
}

/// A holder killed without notice leaves a directory, which the next `up` and `down_all` remove.
pub fn crash() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let registry = Registry::at(place.path().join("lab")).expect("made");
    let crash = || {
        let state = registry.up(&spec(), &holder()).expect("the lab comes up");
        let holder = nix::unistd::Pid::from_raw(state.holder.pid as i32);
        nix::sys::signal::kill(holder, nix::sys::signal::Signal::SIGKILL).expect("our holder");
        waitpid(holder, None).expect("our child");
        state
    };
    let state = crash();
    assert!(!registry.find("ring").expect("still listed").is_up());
    let visit = registry.exec("ring", "server", &words("true"));
    // The hosts may be ending at this moment; once they are gone, the lab is known to be crashed.
    if let Err(error) = visit {
        let known = matches!(error, VisitError::Crashed { .. } | VisitError::Start { .. });
        assert!(known, "{error}");
    }
    let second = crash();
    assert_ne!(state.holder, second.holder);
    assert!(state.hosts.iter().all(|host| !host.init.is_alive()));
    assert_eq!(registry.down_all().expect("cleaned"), ["ring"]);
    assert!(second.hosts.iter().all(|host| !host.init.is_alive()));
    assert!(registry.list().expect("readable").0.is_empty());
    assert!(registry.down_all().expect("nothing to do").is_empty());
}

/// A holder whose state is gone takes its lab down by itself, and leaves alone what is there instead.
pub fn lost() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let registry = Registry::at(place.path().join("lab")).expect("made");
    let state = registry.up(&spec(), &holder()).expect("the lab comes up");
    let directory = registry.root().join("ring");
    std::fs::remove_dir_all(&directory).expect("our own directory");
    std::fs::create_dir(&directory).expect("our own directory");
    std::fs::write(directory.join("state.json"), "another's").expect("our own directory");
    let holder = nix::unistd::Pid::from_raw(state.holder.pid as i32);
    let deadline = Instant::now() + Duration::from_secs(30);
    let ended = loop {
        match waitpid(holder, Some(WaitPidFlag::WNOHANG)).expect("our child") {
            WaitStatus::StillAlive if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            status => break status,
        }
    };
    if ended == WaitStatus::StillAlive {
        nix::sys::signal::kill(holder, nix::sys::signal::Signal::SIGKILL).expect("our holder");
    }
    assert_eq!(ended, WaitStatus::Exited(holder, 0));
    assert!(state.hosts.iter().all(|host| !host.init.is_alive()));
    let left = std::fs::read_to_string(directory.join("state.json"));
    assert_eq!(left.expect("left alone"), "another's");
}
