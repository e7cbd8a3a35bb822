//! Where the two ends of a run are: over loopback or between two hosts of a lab, pinned or not.
//!
//! Loopback with a congestion control other than the host's is the loopback of a lab's host, so
//! that nothing outside the lab is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde::Serialize;

use crate::name_of;
use crate::side::Side;
use crate::workload::{Contest, Placement};

/// CPUs of server and client where they are pinned.
const PINNED: (usize, usize) = (0, 1);

/// Where the ends are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Environment {
    /// Over loopback, the kernel places both ends.
    Loopback,
    /// Over loopback, server on CPU 0, client on CPU 1.
    LoopbackPinned,
    /// Between two hosts of a lab, the kernel places both ends.
    Lab,
    /// Between two hosts of a lab, server on CPU 0, client on CPU 1.
    LabPinned,
}

impl Environment {
    /// Returns its name on the command line.
    pub fn name(self) -> String {
        name_of(&self)
    }

    /// Returns the CPUs of server and client for a workload, if they are pinned.
    pub fn cpus(self, workload: Contest) -> Option<(usize, usize)> {
        match workload.placement() {
            Placement::OneCpu => Some((PINNED.0, PINNED.0)),
            Placement::TwoCpus => Some(PINNED),
            Placement::Host => None,
            Placement::Environment => match self {
                Self::LoopbackPinned | Self::LabPinned => Some(PINNED),
                Self::Loopback | Self::Lab => None,
            },
        }
    }

    /// Whether a workload is worth running here: some are the same in every environment.
    pub fn takes(self, workload: Contest) -> bool {
        match workload.placement() {
            Placement::Environment => true,
            Placement::OneCpu | Placement::TwoCpus => matches!(self, Self::Loopback | Self::Lab),
            Placement::Host => self == Self::Loopback,
        }
    }

    /// Whether the ends are in two hosts.
    pub fn in_lab(self) -> bool {
        matches!(self, Self::Lab | Self::LabPinned)
    }
}

/// A lab of two hosts that this program made; it goes with it.
#[derive(Debug)]
pub struct Lab {
    linerate: PathBuf,
    name: String,
}

impl Lab {
    /// Makes the lab, with a congestion control algorithm of its own unless it is the host's.
    pub fn up(linerate: &Path, scratch: &Path, congestion: Option<&str>) -> anyhow::Result<Self> {
        let name = format!("bench{}", std::process::id());
        let file = scratch.join("lab.toml");
        // Links without a rate: as fast as the machine can.
        let text = format!(
            "name = \"{name}\"\n[[host]]\nname = \"server\"\n[[host]]\nname = \"client\"\n"
        );
        fs::write(&file, text)?;
        let lab = Self {
            linerate: linerate.to_owned(),
            name,
        };
        let mut up = Command::new(linerate);
        up.args(["lab", "up", "--file"]).arg(&file);
        check(
            up.output().context("cannot run linerate")?,
            "linerate lab up",
        )?;
        for host in ["server", "client"] {
            let Some(algorithm) = congestion else {
                continue;
            };
            let knob = format!("echo {algorithm} > /proc/sys/net/ipv4/tcp_congestion_control");
            let mut exec = Command::new(linerate);
            exec.args(["lab", "exec", &lab.name, host, "sh", "-c", &knob]);
            let what = format!(
                "{algorithm} in a lab's host (the kernel allows only some there; try reno, or --congestion host)"
            );
            check(exec.output()?, &what)?;
        }
        Ok(lab)
    }

    fn exec(&self, host: &str) -> Vec<String> {
        let program = self.linerate.display().to_string();
        let words = [program.as_str(), "lab", "exec", &self.name, host];
        words.map(str::to_owned).to_vec()
    }
}

fn check(output: std::process::Output, what: &str) -> anyhow::Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{what} failed: {}", said.trim());
    Ok(())
}

impl Drop for Lab {
    fn drop(&mut self) {
        let mut down = Command::new(&self.linerate);
        down.args(["lab", "down", &self.name]);
        // Said by the command itself; there is nothing else to do about it here.
        let _ = down.output();
    }
}

/// Returns the address at which the client finds the server.
pub fn server_address(environment: Environment) -> &'static str {
    if environment.in_lab() {
        "10.77.0.1"
    } else {
        "127.0.0.1"
    }
}

/// Returns the command that runs `command` as one end.
pub fn place(
    lab: Option<&Lab>,
    host: &str,
    side: &Side,
    cpu: Option<usize>,
    began: &Path,
    command: &[String],
) -> anyhow::Result<Command> {
    let own = std::env::current_exe()?;
    let mut words = vec!["launch".to_owned()];
    words.extend(side.launch_arguments());
    let last = |words: &mut Vec<String>| {
        words.extend(["--began".to_owned(), began.display().to_string()]);
        if let Some(cpu) = cpu {
            words.extend(["--cpu".to_owned(), cpu.to_string()]);
        }
        words.push("--".to_owned());
    };
    if let Some(lab) = lab {
        words.push("--".to_owned());
        words.extend(lab.exec(host));
        words.extend([own.display().to_string(), "launch".to_owned()]);
    }
    last(&mut words);
    words.extend(command.iter().cloned());
    let mut whole = Command::new(own);
    whole.args(words);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workloads_placement_comes_before_the_environments() {
        let check = |environment: Environment, workload, expected| {
            assert_eq!(environment.cpus(workload), expected, "{environment:?}");
        };
        check(Environment::Lab, Contest::Tcp1, None);
        check(Environment::LabPinned, Contest::Tcp1, Some((0, 1)));
        check(Environment::Loopback, Contest::Rr1, Some((0, 0)));
        check(Environment::Loopback, Contest::Rr1Spin, Some((0, 1)));
        check(Environment::LoopbackPinned, Contest::Startup, None);
    }

    #[test]
    fn nothing_is_measured_twice_in_the_same_place() {
        let environments = <Environment as clap::ValueEnum>::value_variants();
        let times = |workload| {
            let taking = environments.iter().filter(|one| one.takes(workload));
            taking.count()
        };
        assert_eq!(times(Contest::Tcp1), 4);
        assert_eq!(times(Contest::Rr1), 2);
        assert_eq!(times(Contest::Memory1), 1);
    }
}
