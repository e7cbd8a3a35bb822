//! Agents by Slurm, as it is installed: one `srun` for all nodes, a task each.
//!
//! 1. Without an allocation `salloc` makes one of whole nodes for it, and gives it back when `srun` ends. One that
//!    `srun` makes itself would have a CPU of each node for the task, and no more.
//! 2. The token goes to all tasks over standard input, whose end takes them away. What comes back begins with the
//!    number of its task (`--label`); which node that is the agent announces.
//! 3. A task that ends keeps no other from going on, and neither does a node that fails.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use linerate_agent::api::Announcement;
use linerate_model::HostName;
use linerate_model::fleet::{FleetHost, SlurmLaunch};

use super::agent::{Agents, LaunchedAgent};
use super::error::{LaunchError, Unlaunched, failed};
use super::keeper::Keeper;
use super::process::{Heard, Process, last_lines};
use super::start::{START, announced, new_token};
use super::tasks::{ended_tasks, labelled, said_of};

/// How long to wait for nodes: somebody looks on. What `linerate fleet sbatch` submits waits for as long as it takes.
const QUEUE: Duration = Duration::from_secs(300);
/// Time between looks for tasks that ended, while no agent announces itself.
const TASKS_LOOK: Duration = Duration::from_millis(200);
/// The variable that says which allocation a process is in, and that with its nodes (srun(1)).
const JOB: &str = "SLURM_JOB_ID";
const NODES: &str = "SLURM_JOB_NODELIST";
/// What Slurm's commands say where nothing is wrong.
const USUAL: &[&str] = &[
    "Pending job allocation",
    "queued and waiting for resources",
    "Granted job allocation",
    "Relinquishing job allocation",
    "lacks support for cpu binding",
];
/// What is asked of `salloc` and of `srun`: a task on each node, which goes on whatever becomes of the others.
const EACH: &[&str] = &["--job-name=linerate", "--ntasks-per-node=1", "--no-kill"];
/// What is asked of `srun` alone: a task may use all that its node's part of the allocation has, beside whatever runs
/// there.
const STEP: &[&str] = &[
    "--overlap",
    "--label",
    "--input=all",
    "--kill-on-bad-exit=0",
    "--wait=0",
    "--cpu-bind=none",
    "--mpi=none",
    "--chdir=/",
];

/// Slurm, and what it puts on nodes.
pub struct Slurm {
    salloc: PathBuf,
    srun: PathBuf,
    launch: SlurmLaunch,
    /// The port that agents listen on; a free one where it is 0.
    port: u16,
    program: PathBuf,
    nodes: Nodes,
    /// How long nodes may keep it waiting, and then its agents.
    queue: Duration,
    start_within: Duration,
}

/// Whose nodes agents run on.
enum Nodes {
    /// Those of the allocation that this process is in.
    Allocated,
    /// Those of an allocation that is made.
    Asked,
}

impl Slurm {
    /// Returns what launches as `launch` asks for.
    pub fn new(launch: &SlurmLaunch, port: u16) -> Result<Self, LaunchError> {
        let own = std::env::current_exe;
        let path = launch.program.clone().map_or_else(own, Ok);
        let program = path.and_then(std::path::absolute);
        let program = program.map_err(|source| LaunchError::Program {
            path: launch.program.clone().unwrap_or_default(),
            source,
        })?;
        let nodes = match std::env::var_os(JOB) {
            Some(_) => Nodes::Allocated,
            None => Nodes::Asked,
        };
        Ok(Self {
            salloc: PathBuf::from("salloc"),
            srun: PathBuf::from("srun"),
            launch: launch.clone(),
            port,
            program,
            nodes,
            queue: QUEUE,
            start_within: START,
        })
    }

    /// Puts an agent on each of `hosts`, or on nodes that Slurm chooses. Where none has one it is an error of all.
    pub(super) fn launch(&self, hosts: &[FleetHost]) -> Result<Agents, LaunchError> {
        let tasks = match hosts {
            [] => self.launch.nodes.unwrap_or(1),
            hosts => u32::try_from(hosts.len()).unwrap_or(u32::MAX),
        };
        let token = new_token()?;
        let mut command = self.command(hosts, tasks)?;
        let process = Process::start(&mut command, Stdio::piped(), tasks as usize);
        let mut process = process.map_err(|source| LaunchError::Start {
            program: command.get_program().into(),
            source,
        })?;
        process.tell(&format!("{token}\n"));
        let (agents, is_late) = self.hear(&process, tasks);
        if agents.is_empty() {
            process.end(Instant::now());
        }
        let all_said = process.said();
        let said = said_without(&all_said, &agents);
        let why_not = |node: &str| match said_of(&all_said, node) {
            Some(said) => why(&said),
            None if is_late => failed(Unlaunched::Late(self.start_within), &last_lines(&said)),
            None => why(&said),
        };
        if agents.is_empty() {
            return Err(why_not(""));
        }
        let process = Arc::new(Mutex::new(process));
        let agent = |task: u32, host: String, announcement: &Announcement| LaunchedAgent {
            host,
            port: announcement.port,
            payload_port: announcement.port,
            payload: None,
            token: token.clone(),
            certificate: announcement.certificate.clone(),
            keeper: Keeper::task(&process, task),
            tunnel: None,
        };
        if hosts.is_empty() {
            let chosen = |task: u32| {
                let announcement = agents.get(&task);
                let node = announcement.and_then(|announcement| announcement.node.clone());
                let node = node.unwrap_or_else(|| format!("task-{task}"));
                let agent =
                    announcement.map(|announcement| agent(task, node.clone(), announcement));
                (HostName::from(&*node), agent.ok_or_else(|| why_not(&node)))
            };
            return Ok((0..tasks).map(chosen).collect());
        }
        let on_nodes: HashMap<&str, (u32, &Announcement)> = agents
            .iter()
            .filter_map(|(task, announcement)| {
                Some((announcement.node.as_deref()?, (*task, announcement)))
            })
            .collect();
        let named = |host: &FleetHost| {
            let found = on_nodes.get(&*host.name.0);
            let agent =
                found.map(|(task, announcement)| agent(*task, host.control.clone(), announcement));
            (
                host.name.clone(),
                agent.ok_or_else(|| why_not(&host.name.0)),
            )
        };
        Ok(hosts.iter().map(named).collect())
    }

    /// Hears what tasks announce until all have or have ended; returns what they did, by their numbers, and whether
    /// that took too long.
    fn hear(&self, process: &Process, tasks: u32) -> (BTreeMap<u32, Announcement>, bool) {
        let mut agents = BTreeMap::new();
        let mut until = Instant::now() + self.queue + self.start_within;
        while agents.len() < tasks as usize {
            match process.hear(until.min(Instant::now() + TASKS_LOOK)) {
                Heard::Line(line) => {
                    let Some((task, announcement)) =
                        labelled(&line).and_then(|(task, text)| Some((task, announced(text)?)))
                    else {
                        continue;
                    };
                    if agents.is_empty() {
                        until = Instant::now() + self.start_within;
                    }
                    agents.insert(task, announcement);
                }
                Heard::Late if Instant::now() >= until => return (agents, true),
                Heard::Late => {
                    if agents.len() + ended_tasks(&process.said()).len() >= tasks as usize {
                        break;
                    }
                }
                Heard::Over => break,
            }
        }
        (agents, false)
    }

    fn command(&self, hosts: &[FleetHost], tasks: u32) -> Result<Command, LaunchError> {
        let mut on = vec![format!("--nodes={tasks}")];
        if !hosts.is_empty() {
            let names: Vec<&str> = hosts.iter().map(|host| &*host.name.0).collect();
            on.push(format!("--nodelist={}", names.join(",")));
        }
        let mut command = match self.nodes {
            Nodes::Allocated => Command::new(&self.srun),
            Nodes::Asked => {
                let mut command = Command::new(&self.salloc);
                command.arg(format!("--immediate={}", self.queue.as_secs()));
                command.args(self.launch.allocation());
                command.args(EACH).args(&on).arg(&self.srun);
                command
            }
        };
        command.args(EACH).args(STEP).args(&on);
        command.arg(format!("--ntasks={tasks}"));
        if let Some(directory) = &self.launch.directory {
            // Its name is its own: a copy that runs is not replaced.
            let copy = directory.join(format!("linerate-{}", &new_token()?[..16]));
            command.arg(format!("--bcast={}", copy.display()));
        }
        command.arg(&self.program).args(["serve", "--launched"]);
        if self.launch.directory.is_some() {
            command.arg("--copied");
        }
        command.arg(format!("--port={}", self.port));
        Ok(command)
    }
}

/// Returns the nodes of the allocation that this process is in, if it is in one.
pub fn allocated_nodes() -> Result<Option<Vec<HostName>>, LaunchError> {
    match (std::env::var(JOB), std::env::var(NODES)) {
        (Ok(_), Ok(list)) => nodes_of(Path::new("scontrol"), &list).map(Some),
        _ => Ok(None),
    }
}

/// Returns the nodes of a list as Slurm writes it, which `scontrol` takes apart.
fn nodes_of(scontrol: &Path, list: &str) -> Result<Vec<HostName>, LaunchError> {
    let asked = Command::new(scontrol)
        .args(["show", "hostnames", list])
        .stdin(Stdio::null())
        .output();
    let asked = asked.map_err(|source| LaunchError::Start {
        program: scontrol.to_owned(),
        source,
    })?;
    if !asked.status.success() {
        let said = String::from_utf8_lossy(&asked.stderr);
        return Err(failed(Unlaunched::Refused, &last_lines(&said)));
    }
    let names = String::from_utf8_lossy(&asked.stdout);
    Ok(names.lines().map(HostName::from).collect())
}

/// Returns what was said by `srun` and by tasks that are no agents.
fn said_without(said: &str, agents: &BTreeMap<u32, Announcement>) -> String {
    let told = said.lines().filter_map(|line| match labelled(line) {
        Some((task, _)) if agents.contains_key(&task) => None,
        Some((_, text)) => Some(text),
        None if USUAL.iter().any(|usual| line.contains(usual)) => None,
        None => Some(line),
    });
    told.flat_map(|line| [line, "\n"]).collect()
}

/// Returns why there is no agent, by what was said.
fn why(said: &str) -> LaunchError {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let why = if has(&["execve()", "REQUEST_FILE_BCAST"]) {
        Unlaunched::Absent
    } else if has(&["nodes are busy", "Connection timed out"]) {
        Unlaunched::Busy
    } else if has(&[
        "Unable to allocate",
        "Unable to create step",
        "allocate failed",
    ]) {
        Unlaunched::Refused
    } else {
        Unlaunched::Ended
    };
    failed(why, &last_lines(said))
}

#[cfg(test)]
mod tests;
