//! The network of a set-up while it is up, and what runs in it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::setup::{Net, Role};

/// Addresses behind a router that was made by hand: the client's network, and the server's.
const CLIENT_SIDE: &str = "10.91.1";
const SERVER_SIDE: &str = "10.91.2";
/// Where control groups of CPU time are.
const CGROUPS: &str = "/sys/fs/cgroup/cpu";

/// A network that is up. It is taken down when it is dropped.
pub struct Place<'p> {
    linerate: &'p Path,
    net: &'p Net,
    name: String,
    children: Vec<Child>,
    group: Option<PathBuf>,
}

impl<'p> Place<'p> {
    /// Makes the network `net`; `scratch` has room for files.
    pub fn up(linerate: &'p Path, net: &'p Net, scratch: &Path) -> anyhow::Result<Self> {
        let name = format!("co{}", std::process::id());
        let place = Self {
            linerate,
            net,
            name,
            children: Vec::new(),
            group: None,
        };
        match net {
            Net::Lab { server, client } => {
                let mut text = format!("name = \"{}\"\n", place.name);
                for (host, link) in [("server", server), ("client", client), ("other", client)] {
                    let link = link.trim_end_matches(", ");
                    text += &format!("[[host]]\nname = \"{host}\"\nlink = {{ {link} }}\n");
                }
                let file = scratch.join("lab.toml");
                fs::write(&file, text)?;
                run(Command::new(linerate)
                    .args(["lab", "up", "--file"])
                    .arg(&file))?;
            }
            Net::Router { tbf } => place.lay_router(tbf.as_deref())?,
        }
        Ok(place)
    }

    fn lay_router(&self, tbf: Option<&str>) -> anyhow::Result<()> {
        let name = |part| format!("{}{part}", self.name);
        let [client, server, router] = ["c", "s", "r"].map(name);
        let mut script = String::new();
        for space in [&client, &server, &router] {
            script += &format!("ip netns add {space} && ip -n {space} link set lo up &&\n");
        }
        for (space, side, device) in [(&client, CLIENT_SIDE, "r0"), (&server, SERVER_SIDE, "r1")] {
            script += &format!(
                "ip link add v0 netns {space} type veth peer name {device} netns {router} &&
                 ip -n {space} addr add {side}.2/24 dev v0 && ip -n {router} addr add {side}.1/24 dev {device} &&
                 ip -n {space} link set v0 up && ip -n {router} link set {device} up &&
                 ip -n {space} route add default via {side}.1 &&\n"
            );
        }
        script += &format!("nsenter --net=/run/netns/{router} sysctl -qw net.ipv4.ip_forward=1");
        if let Some(tbf) = tbf {
            script += &format!(" &&\nip netns exec {router} tc qdisc add dev r1 root tbf {tbf}");
        }
        run(Command::new("sh").args(["-c", &script]))
    }

    /// Returns the address of `host`.
    pub fn address(&self, host: Role) -> String {
        match (self.net, host) {
            (Net::Lab { .. }, Role::Server) => "10.77.0.1".to_owned(),
            (Net::Lab { .. }, Role::Other) => "10.77.0.3".to_owned(),
            (Net::Lab { .. }, _) => "10.77.0.2".to_owned(),
            (Net::Router { .. }, Role::Server) => format!("{SERVER_SIDE}.2"),
            (Net::Router { .. }, Role::Router) => format!("{SERVER_SIDE}.1"),
            (Net::Router { .. }, _) => format!("{CLIENT_SIDE}.2"),
        }
    }

    /// Returns a shell command in `host`, which knows its own address and where linerate is.
    pub fn command(&self, host: Role, script: &str) -> Command {
        let mut command = match self.net {
            Net::Lab { .. } => {
                let mut command = Command::new(self.linerate);
                let host = match host {
                    Role::Server => "server",
                    Role::Other => "other",
                    Role::Client | Role::Router => "client",
                };
                command.args(["lab", "exec", &self.name, host, "--"]);
                command
            }
            Net::Router { .. } => {
                let part = match host {
                    Role::Server => "s",
                    Role::Router => "r",
                    Role::Client | Role::Other => "c",
                };
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{}{part}", self.name));
                command.arg("--");
                command
            }
        };
        let programs = self.linerate.parent().unwrap_or(Path::new("/"));
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(["sh", "-c", script])
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("ADDRESS", self.address(host))
            .stdin(Stdio::null());
        command
    }

    /// Runs a shell command in `host`, to its end, and returns what it prints.
    pub fn run(&self, host: Role, script: &str) -> anyhow::Result<String> {
        let output = self.command(host, script).output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{script}`: {}", told.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts a shell command in `host`, which goes on until the network is taken down; where `word` is given, returns once a
    /// line of what it prints to either output has it.
    pub fn start(&mut self, host: Role, script: &str, word: Option<&str>) -> anyhow::Result<()> {
        let mut command = self.command(host, &format!("exec 2>&1; {script}"));
        command.process_group(0).stderr(Stdio::null());
        command.stdout(match word {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        });
        let mut child = command.spawn()?;
        let output = child.stdout.take();
        self.children.push(child);
        let Some((output, word)) = output.zip(word) else {
            return Ok(());
        };
        let mut lines = BufReader::new(output).lines();
        let mut told = String::new();
        loop {
            let line = lines
                .next()
                .with_context(|| format!("`{script}` ended: {told}"))??;
            if line.contains(word) {
                break;
            }
            told = line;
        }
        // Whoever writes into a pipe that nobody reads is stopped.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(())
    }

    /// Makes a control group that has `percent` of a CPU, and returns the file that processes join it by.
    pub fn quota(&mut self, percent: u32) -> anyhow::Result<PathBuf> {
        let group = Path::new(CGROUPS).join(&self.name);
        fs::create_dir(&group).with_context(|| format!("cannot make {}", group.display()))?;
        self.group = Some(group.clone());
        fs::write(group.join("cpu.cfs_quota_us"), (1000 * percent).to_string())?;
        Ok(group.join("cgroup.procs"))
    }

    /// Returns in how many periods the control group was throttled.
    pub fn throttled(&self) -> Option<u64> {
        let text = fs::read_to_string(self.group.as_ref()?.join("cpu.stat")).ok()?;
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix("nr_throttled ")?.parse().ok())
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}", told.trim());
    Ok(())
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        for child in &mut self.children {
            let group = Pid::from_raw(child.id() as i32);
            // What was stopped does not end before it goes on.
            let _ = killpg(group, Signal::SIGKILL);
            let _ = child.wait();
        }
        match self.net {
            Net::Lab { .. } => {
                let mut down = Command::new(self.linerate);
                let _ = down.args(["lab", "down", &self.name]).output();
            }
            Net::Router { .. } => {
                for part in ["c", "s", "r"] {
                    let space = format!("{}{part}", self.name);
                    // What was started by what was started is in the namespace still.
                    let pids = Command::new("ip").args(["netns", "pids", &space]).output();
                    let pids = pids.map(|output| output.stdout).unwrap_or_default();
                    for pid in String::from_utf8_lossy(&pids).lines() {
                        if let Ok(pid) = pid.parse() {
                            let _ = nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
                        }
                    }
                    let _ = Command::new("ip").args(["netns", "del", &space]).output();
                }
            }
        }
        if let Some(group) = &self.group {
            // It is empty a moment after its processes were killed.
            for _ in 0..50 {
                if fs::remove_dir(group).is_ok() {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let _ = writeln!(std::io::stderr(), "bench: {} stays", group.display());
        }
    }
}
