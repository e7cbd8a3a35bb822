//! Agents by OpenSSH, as it is installed and configured.
//!
//! Of a host with the program there:
//!
//! 1. `ssh -G` tells what its name means, and whether other hosts are on the way.
//! 2. One session looks for the copy of the program, which is named by its digest, and becomes it. Its token comes
//!    over standard input: neither a command line nor an environment shows it.
//!
//! Of one without it two sessions more: the first looks in vain, and the second takes the copy.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use linerate_agent::api::{Announcement, PROGRAM};
use linerate_model::fleet::{FleetHost, SshLaunch};
use linerate_model::hex;
use sha2::{Digest as _, Sha256};

use super::agent::LaunchedAgent;
use super::error::{LaunchError, Unlaunched, failed};
use super::keeper::Keeper;
use super::process::{Heard, Process, last_lines};
use super::start::{START, announced, new_token};
use super::tunnel::Tunnel;

/// How long the copy may take: 20 MB at a megabit per second, and as much again.
const COPY: Duration = Duration::from_secs(320);
/// Hosts at the same time: each has a process of `ssh`, which has a CPU for 20 ms.
const AT_ONCE: usize = 64;
/// The same by way of a host that all pass: sshd refuses some of more than 10 that are not let in yet (MaxStartups).
const AT_ONCE_BY_JUMP: usize = 8;
/// Lines that a login shell may say before what it was asked.
const CHATTER_LINES_MAX: u32 = 1000;
/// Exit code of `ssh` where it did not get as far as the command.
const OF_SSH: i32 = 255;
/// The word before architecture and connection of a host.
const HOST: &str = "linerate-host";
/// What is said where there is no such copy.
const ABSENT: &str = "linerate-absent";
/// What is said once it is there.
const COPIED: &str = "linerate-copied";
/// What is always asked of `ssh`: nobody is there to answer it, and what a configuration has for people's sessions
/// is not for many at once. A master of several connections is used and never made: it would outlive this program.
const ALWAYS: &[&str] = &[
    "BatchMode=yes",
    "ControlMaster=no",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "RemoteCommand=none",
];
/// What is asked unless the fleet's file asks for something else.
const USUALLY: &[&str] = &["ConnectTimeout=15"];

/// OpenSSH, and what it puts on hosts.
pub struct Ssh {
    /// The program.
    ssh: PathBuf,
    launch: SshLaunch,
    /// The port that agents listen on; a free one where it is 0.
    port: u16,
    copied: Copied,
    start_within: Duration,
}

/// What is copied.
struct Copied {
    path: PathBuf,
    digest: String,
    /// What `uname -m` says where it runs, if its file tells.
    machine: Option<&'static str>,
}

/// What `ssh` makes of a name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Meant {
    /// The name or address that it connects to.
    host: String,
    /// Whether it gets there by another host or program.
    is_far: bool,
}

/// What a session came to.
enum Session {
    Agent(Box<Announced>),
    /// There is no such copy.
    Absent,
}

struct Announced {
    process: Process,
    token: String,
    announcement: Announcement,
    /// The address of the host that the session came in by.
    address: Option<IpAddr>,
}

impl Ssh {
    /// Returns what launches as `launch` asks for; reads the program once.
    pub fn new(launch: &SshLaunch, port: u16) -> Result<Self, LaunchError> {
        let own = || PathBuf::from("/proc/self/exe");
        let path = launch.program.clone().unwrap_or_else(own);
        Self::with(PathBuf::from("ssh"), launch, port, path, START)
    }

    fn with(
        ssh: PathBuf,
        launch: &SshLaunch,
        port: u16,
        path: PathBuf,
        start_within: Duration,
    ) -> Result<Self, LaunchError> {
        let copied = Copied::read(&path).map_err(|source| LaunchError::Program { path, source })?;
        Ok(Self {
            ssh,
            launch: launch.clone(),
            port,
            copied,
            start_within,
        })
    }

    /// Returns with how many hosts it may have to do at the same time.
    pub(super) fn at_once(&self) -> usize {
        match self.launch.jump {
            Some(_) => AT_ONCE_BY_JUMP,
            None => AT_ONCE,
        }
    }

    /// Puts an agent on a host.
    pub(super) fn launch(&self, host: &FleetHost) -> Result<LaunchedAgent, LaunchError> {
        let meant = self.meant(host)?;
        let announced = match self.session(host)? {
            Session::Agent(announced) => announced,
            Session::Absent => {
                self.copy(host)?;
                match self.session(host)? {
                    Session::Agent(announced) => announced,
                    Session::Absent => return Err(failed(Unlaunched::Ended, "the copy is gone")),
                }
            }
        };
        let Announced {
            process,
            token,
            announcement: Announcement {
                port, certificate, ..
            },
            address,
        } = *announced;
        let tunnel = if meant.is_far {
            let carrier = self.carrier(host, port);
            Some(Tunnel::open(carrier, process.log()).map_err(LaunchError::Tunnel)?)
        } else {
            None
        };
        let (to, to_port) = match &tunnel {
            Some(tunnel) => (tunnel.address.ip().to_string(), tunnel.address.port()),
            None => (meant.host, port),
        };
        Ok(LaunchedAgent {
            host: to,
            port: to_port,
            payload_port: port,
            payload: address.filter(|_| meant.is_far),
            token,
            certificate,
            keeper: Keeper::of(process),
            tunnel,
        })
    }

    /// Asks what a name means.
    fn meant(&self, host: &FleetHost) -> Result<Meant, LaunchError> {
        let mut command = self.command();
        command.arg("-G").arg("--").arg(&host.control);
        let mut asked = self.start(&mut command, Stdio::null())?;
        let until = Instant::now() + self.start_within;
        let mut meant = Meant::default();
        loop {
            match asked.hear(until) {
                Heard::Line(line) => meant.take(&line),
                Heard::Late => return Err(failed(Unlaunched::Late(self.start_within), "")),
                Heard::Over => break,
            }
        }
        match asked.end(until) {
            Some(0) if !meant.host.is_empty() => Ok(meant),
            code => Err(why(code, &asked.said())),
        }
    }

    /// Has the copy that is there become an agent.
    fn session(&self, host: &FleetHost) -> Result<Session, LaunchError> {
        let token = new_token()?;
        let mut command = self.remote(host, &start_script(&self.copied.digest, self.port));
        let mut process = self.start(&mut command, Stdio::piped())?;
        process.tell(&format!("{token}\n"));
        let until = Instant::now() + self.start_within;
        let mut machine = None;
        let mut address = None;
        for _ in 0..CHATTER_LINES_MAX {
            let line = match process.hear(until) {
                Heard::Line(line) => line,
                Heard::Late => {
                    let said = last_lines(&process.said());
                    return Err(failed(Unlaunched::Late(self.start_within), &said));
                }
                Heard::Over => break,
            };
            if let Some(words) = line.strip_prefix(HOST) {
                let mut words = words.split_whitespace().map(str::to_owned);
                machine = words.next();
                // CLIENT PORT SERVER PORT, as sshd tells it.
                address = words.nth(2).and_then(|server| server.parse().ok());
            } else if line == ABSENT {
                process.end(until);
                self.check_machine(machine.as_deref())?;
                return Ok(Session::Absent);
            } else if let Some(announcement) = announced(&line) {
                return Ok(Session::Agent(Box::new(Announced {
                    process,
                    token,
                    announcement,
                    address,
                })));
            }
        }
        let code = process.end(until);
        if code != Some(OF_SSH) {
            self.check_machine(machine.as_deref())?;
        }
        Err(why(code, &process.said()))
    }

    /// Refuses a host of another architecture than the program's.
    fn check_machine(&self, there: Option<&str>) -> Result<(), LaunchError> {
        match (there, self.copied.machine) {
            (Some(there), Some(ours)) if there != ours => Err(failed(
                Unlaunched::Architecture {
                    there: there.to_owned(),
                    ours: ours.to_owned(),
                },
                "",
            )),
            _ => Ok(()),
        }
    }

    /// Copies the program there.
    fn copy(&self, host: &FleetHost) -> Result<(), LaunchError> {
        let program = self.copied.open().map_err(|source| LaunchError::Program {
            path: self.copied.path.clone(),
            source,
        })?;
        let mut command = self.remote(host, &copy_script(&self.copied.digest));
        let mut process = self.start(&mut command, Stdio::from(program))?;
        let until = Instant::now() + COPY;
        loop {
            match process.hear(until) {
                Heard::Line(line) if line == COPIED => {
                    process.end(until);
                    return Ok(());
                }
                Heard::Line(_) => {}
                Heard::Late => return Err(failed(Unlaunched::Late(COPY), "")),
                Heard::Over => break,
            }
        }
        let code = process.end(until);
        Err(why(code, &process.said()))
    }

    /// Returns what makes the command of a connection to a port of a host that is reached by others.
    fn carrier(&self, host: &FleetHost, port: u16) -> impl Fn() -> Command + Send + use<> {
        let mut words: Vec<std::ffi::OsString> =
            self.command().get_args().map(ToOwned::to_owned).collect();
        words.extend(["-W", &format!("127.0.0.1:{port}"), "--", &host.control].map(Into::into));
        let ssh = self.ssh.clone();
        move || {
            let mut command = Command::new(&ssh);
            command.args(&words);
            command
        }
    }

    /// Returns the command that has a host's shell run a script, with the directory of copies as its argument.
    fn remote(&self, host: &FleetHost, script: &str) -> Command {
        let directory = self.launch.directory.as_deref().unwrap_or_default();
        let mut command = self.command();
        command.arg("--").arg(&host.control);
        // Whatever the login shell is, it takes words in quotes.
        command.arg(format!(
            "exec sh -c {} {PROGRAM} {}",
            quoted(script),
            quoted(directory)
        ));
        command
    }

    /// Returns `ssh` with what was asked for. Of options that come twice it takes the first.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.ssh);
        command.arg("-T");
        let asked = self.launch.options.iter().map(String::as_str);
        let all = ALWAYS.iter().copied().chain(asked);
        for option in all.chain(USUALLY.iter().copied()) {
            command.arg("-o").arg(option);
        }
        if let Some(config) = &self.launch.config {
            command.arg("-F").arg(config);
        }
        if let Some(user) = &self.launch.user {
            command.arg("-l").arg(user);
        }
        if let Some(jump) = &self.launch.jump {
            command.arg("-J").arg(jump);
        }
        command
    }

    fn start(&self, command: &mut Command, stdin: Stdio) -> Result<Process, LaunchError> {
        Process::start(command, stdin, 1).map_err(|source| LaunchError::Start {
            program: self.ssh.clone(),
            source,
        })
    }
}

impl Copied {
    fn read(path: &Path) -> std::io::Result<Self> {
        let mut file = File::open(path)?;
        let mut hash = Sha256::new();
        let mut piece = vec![0; 1 << 20];
        let mut machine = None;
        let mut is_first = true;
        loop {
            let length = match file.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if std::mem::take(&mut is_first) {
                machine = machine_of(&piece[..length]);
            }
            hash.update(&piece[..length]);
        }
        Ok(Self {
            path: path.to_owned(),
            digest: hex::encode(&hash.finalize()),
            machine,
        })
    }

    fn open(&self) -> std::io::Result<File> {
        File::open(&self.path)
    }
}

impl Meant {
    /// Takes over a line of `ssh -G`: a key in small letters, and its value.
    fn take(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("hostname", host)) => self.host = host.trim().to_owned(),
            Some(("proxyjump" | "proxycommand", by)) => self.is_far |= by.trim() != "none",
            _ => {}
        }
    }
}

/// Returns what `uname -m` says where an ELF file is for (`e_machine`, elf(5)), of those that Linux servers have.
fn machine_of(file: &[u8]) -> Option<&'static str> {
    let little = file.get(..4)? == b"\x7fELF" && file.get(5) == Some(&1);
    let machine = u16::from_le_bytes([*file.get(18)?, *file.get(19)?]);
    match machine {
        21 if little => Some("ppc64le"),
        62 if little => Some("x86_64"),
        183 if little => Some("aarch64"),
        243 if little => Some("riscv64"),
        _ => None,
    }
}

/// Returns the script that becomes the agent, or says that the program is not there. `$1` is the directory of copies.
fn start_script(digest: &str, port: u16) -> String {
    format!(
        "{COMMON}echo \"{HOST} $(uname -m) $SSH_CONNECTION\"; \
         f=\"$d/linerate-{digest}\"; \
         if [ -x \"$f\" ] && [ \"$(sha256sum < \"$f\" | cut -c1-64)\" = {digest} ]; then \
         exec \"$f\" serve --launched --port {port}; fi; \
         echo {ABSENT}"
    )
}

/// Returns the script that takes the program from its standard input. What is not whole is removed.
fn copy_script(digest: &str) -> String {
    format!(
        "{COMMON}umask 077; mkdir -p \"$d\" || exit 1; \
         f=\"$d/linerate-{digest}\"; t=\"$f.$$\"; trap \"rm -f \\\"\\$t\\\"\" EXIT; \
         cat > \"$t\" || exit 1; \
         if [ \"$(sha256sum < \"$t\" | cut -c1-64)\" != {digest} ]; then \
         echo \"the copy differs from the program\" >&2; exit 1; fi; \
         chmod 700 \"$t\" && mv -f \"$t\" \"$f\" && echo {COPIED}"
    )
}

/// What both scripts begin with: messages are in English, and `$d` is the directory of copies.
const COMMON: &str =
    "LC_ALL=C; export LC_ALL; d=\"${1:-${XDG_CACHE_HOME:-$HOME/.cache}/linerate}\"; ";

/// Returns a word as a login shell takes it: within quotes only the quote is special.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns why a session ended, by its exit code and what was said on standard error. OpenSSH says it in English.
fn why(code: Option<i32>, said: &str) -> LaunchError {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let is_of_ssh = code == Some(OF_SSH);
    let why = if has(&["No space left on device", "Disk quota exceeded"]) {
        Unlaunched::Space
    } else if is_of_ssh && has(&["Host key verification failed", "host key is known"]) {
        Unlaunched::HostKey
    } else if is_of_ssh && has(&["Permission denied", "Too many authentication failures"]) {
        Unlaunched::Denied
    } else if is_of_ssh
        && has(&[
            "Could not resolve",
            "Connection refused",
            "timed out",
            "No route to host",
            "Network is unreachable",
            "Connection closed",
            "Connection reset",
        ])
    {
        Unlaunched::Unreachable
    } else {
        Unlaunched::Ended
    };
    failed(why, &last_lines(said))
}

#[cfg(test)]
mod tests;
