//! The lab of a study: hosts, an agent on each, and what the controller needs to reach them.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use linerate_agent::api::client::HttpAgent;
use linerate_agent::api::{Agent, PORT_DEFAULT};
use linerate_controller::HostSpec;
use linerate_lab::{Entered, Lab, LabSpec};
use linerate_model::HostName;
use linerate_model::run::HostPart;

use super::execute::Placement;
use crate::args::LabLinkArgs;
use crate::exit::{CmdResult, Failure};
use crate::hosts::TOKEN_VARIABLE;

/// How long the agents of a lab may take to answer.
const READY_DEADLINE: Duration = Duration::from_secs(10);
/// Time between two questions whether an agent answers.
const READY_LOOK: Duration = Duration::from_millis(20);
/// Clients of the built-in lab.
pub const CLIENTS: u32 = 5;

/// Returns the CPUs of the server and those of the clients of a lab: half of this machine each.
///
/// Left to the scheduler, both ends of a flow run on one CPU in one trial and on two in the next,
/// and a round trip takes 19 µs or 60 µs accordingly (measured on two CPUs of a virtual machine).
/// Hosts of a real network never share a CPU, so the lab's do not either where there are two.
pub fn placement() -> Placement {
    let cpus = linerate_observe::cpus_allowed(Path::new("/proc"));
    if cpus.len() < 2 {
        return Placement::default();
    }
    let (server, clients) = cpus.split_at(cpus.len() / 2);
    Placement {
        server: server.to_vec(),
        clients: clients.to_vec(),
    }
}

/// Makes the built-in lab, hands its hosts to `measure` and removes it, whatever came of that.
///
/// Entering the lab's namespaces wants a process with one thread, so this comes first in a command.
pub fn in_lab(link: &LabLinkArgs, measure: impl FnOnce(Vec<HostSpec>) -> CmdResult) -> CmdResult {
    let mut spec = LabSpec::study_default(CLIENTS);
    for host in &mut spec.hosts {
        host.link.loss = link.lab_loss.unwrap_or(host.link.loss);
        host.link.delay = link.lab_delay.unwrap_or(host.link.delay);
    }
    spec.check("the lab").map_err(Failure::usage)?;
    let entered = linerate_lab::enter().map_err(|error| {
        Failure::failed(error).next("run as root, or study real hosts with `linerate study HOST`")
    })?;
    let lab = LabFleet::up(&spec, &entered)?;
    let result = measure(lab.specs());
    let down = lab.down();
    let outcome = result?;
    down.map(|()| outcome)
}

/// A lab with an agent on every host.
pub struct LabFleet {
    lab: Lab,
    agents: Vec<Child>,
    links: Vec<linerate_lab::LinkSpec>,
    token: String,
}

impl LabFleet {
    /// Makes the lab and starts its agents.
    pub fn up(spec: &LabSpec, entered: &Entered) -> CmdResult<Self> {
        let lab = Lab::up(spec, entered)?;
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random numbers: {error}"))?;
        let token = linerate_model::hex::encode(&bytes);
        let links = spec.hosts.iter().map(|host| host.link.clone()).collect();
        let mut fleet = Self {
            lab,
            agents: Vec::new(),
            links,
            token,
        };
        fleet.start_agents()?;
        Ok(fleet)
    }

    fn start_agents(&mut self) -> CmdResult<()> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        for host in self.lab.hosts() {
            let mut command = self.lab.command(&host.name, &program)?;
            // A group of its own keeps Ctrl-C for the controller, which ends the trial in order.
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            let child = command
                .args(["serve", "--lab-host", "--port"])
                .arg(PORT_DEFAULT.to_string())
                .env(TOKEN_VARIABLE, &self.token)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .with_context(|| format!("cannot start the agent of lab host {}", host.name))?;
            self.agents.push(child);
        }
        let deadline = Instant::now() + READY_DEADLINE;
        for host in self.lab.hosts() {
            let agent = self.agent(host.control_address);
            while let Err(error) = agent.info() {
                if Instant::now() > deadline {
                    let context = format!("the agent of lab host {} does not answer", host.name);
                    return Err(Failure::failed(anyhow::Error::new(error).context(context)));
                }
                std::thread::sleep(READY_LOOK);
            }
        }
        Ok(())
    }

    fn agent(&self, address: std::net::IpAddr) -> HttpAgent {
        let authority = std::net::SocketAddr::new(address, PORT_DEFAULT).to_string();
        HttpAgent::new(&authority, Some(&self.token))
    }

    /// Returns the hosts for a run: the first is the server.
    pub fn specs(&self) -> Vec<HostSpec> {
        let hosts = self.lab.hosts().iter().zip(&self.links).enumerate();
        hosts
            .map(|(at, (host, link))| HostSpec {
                name: HostName::from(host.name.clone()),
                part: if at == 0 {
                    HostPart::Server
                } else {
                    HostPart::Client
                },
                agent: Arc::new(self.agent(host.control_address)),
                data_address: Some(host.data_address),
                data_port: PORT_DEFAULT,
                bind: (at > 0).then_some(host.data_address),
                memory_copy: at == 0,
                link_rate: link.rate,
            })
            .collect()
    }

    /// Ends the agents and removes the lab.
    pub fn down(mut self) -> CmdResult<()> {
        for agent in &mut self.agents {
            // An agent that is gone already is what was wanted.
            let _ = agent.kill();
            let _ = agent.wait();
        }
        self.lab.down()?;
        Ok(())
    }
}
