//! The lab of a study: hosts, an agent on each, and what the controller needs to reach them.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use linerate_agent::api::client::HttpAgent;
use linerate_agent::api::{Agent, PORT_DEFAULT};
use linerate_controller::HostSpec;
use linerate_lab::{Entered, Lab, LabSpec, LinkSpec};
use linerate_model::run::HostPart;
use linerate_model::{BitsPerSec, Nanos};
use linerate_plan::{Draft, Hosts};

use crate::exit::{CmdResult, Failure};
use crate::hosts::TOKEN_VARIABLE;
use crate::meant::LabLink;

/// How long the agents of a lab may take to answer.
const READY_DEADLINE: Duration = Duration::from_secs(10);
/// Time between two questions whether an agent answers.
const READY_LOOK: Duration = Duration::from_millis(20);
/// Clients of the built-in lab, for each loss that is asked for and beside them.
pub const CLIENTS: u32 = 5;
/// Delay of the links of clients that are there for a loss, one way, where none is asked for: the
/// clean ones pass a relay like the lossy ones, so that the loss is all that differs, and a round
/// trip is much longer than what the lab's CPUs add to it.
const LOSS_LINK_DELAY: Nanos = Nanos::from_ms(2);
/// Rate of these links. Both ends and the relay together fill two CPUs at 0.8 Gbit/s (measured on a
/// virtual machine), and then it is they who decide how many packets come together.
const LOSS_LINK_RATE: BitsPerSec = BitsPerSec(300e6);
/// Queues of the hosts of the built-in lab: several, so that there is something to spread.
const QUEUES: u32 = 4;

/// Congestion control of a lab where nothing else is asked for, the first that the kernel has: what
/// is told of a lab should not hang on the default of the machine that it is made on.
const CONGESTION: [&str; 2] = ["cubic", "reno"];

/// Returns `hosts`, which are those of a lab, with the congestion control that it uses.
pub fn settled(link: &LabLink, hosts: Hosts) -> CmdResult<Hosts> {
    let has = |name: &&str| hosts.congestion.iter().any(|known| known == name);
    let preferred = CONGESTION.into_iter().find(has).map(str::to_owned);
    if let Some(asked) = &link.congestion
        && !has(&asked.as_str())
    {
        let known = hosts.congestion.join(" ");
        let error = anyhow!("--lab-congestion is {asked}, but this kernel has {known}");
        return Err(Failure::usage(error));
    }
    Ok(Hosts {
        congestion_unless_asked: link.congestion.clone().or(preferred),
        ..hosts
    })
}

/// Returns the CPUs of the server and those of the clients of a lab: half of this machine each.
///
/// Left to the scheduler, both ends of a flow run on one CPU in one trial and on two in the next,
/// and a round trip takes 19 µs or 60 µs accordingly (measured on two CPUs of a virtual machine).
/// Hosts of a real network never share a CPU, so the lab's do not either where there are two.
pub fn cpus() -> (Vec<u32>, Vec<u32>) {
    let cpus = linerate_observe::cpus_allowed(Path::new("/proc"));
    if cpus.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    let (server, clients) = cpus.split_at(cpus.len() / 2);
    (server.to_vec(), clients.to_vec())
}

/// Makes the built-in lab, hands its hosts to `measure` and removes it, whatever came of that.
///
/// Entering the lab's namespaces wants a process with one thread, so this comes first in a command.
pub fn in_lab(
    link: &LabLink,
    drafts: &[Draft],
    measure: impl FnOnce(Vec<HostSpec>) -> CmdResult,
) -> CmdResult {
    let mut spec = LabSpec::study_default(CLIENTS);
    for host in &mut spec.hosts {
        host.link.loss = link.loss.unwrap_or(host.link.loss);
        host.link.delay = link.delay.unwrap_or(host.link.delay);
        host.link.queues = link.queues.unwrap_or(QUEUES);
    }
    let losses = losses_of(drafts, &mut spec, link.delay.unwrap_or(LOSS_LINK_DELAY));
    spec.check("the lab").map_err(Failure::usage)?;
    let entered = linerate_lab::enter().map_err(|error| {
        Failure::failed(error).next("run as root, or study real hosts with `linerate study HOST`")
    })?;
    let lab = LabFleet::up(&spec, losses, &entered)?;
    let result = measure(lab.specs());
    let down = lab.down();
    let outcome = result?;
    down.map(|()| outcome)
}

/// Adds the clients that the link losses of `drafts` ask for to `spec`; returns the loss that each
/// host is there for.
///
/// A loss is a client's for good and a trial chooses its clients, so nothing about the network
/// changes while trials run.
fn losses_of(drafts: &[Draft], spec: &mut LabSpec, delay: Nanos) -> Vec<Option<u32>> {
    let mut losses = vec![None; spec.hosts.len()];
    let link = LinkSpec {
        rate: Some(LOSS_LINK_RATE),
        delay,
        ..spec.hosts[0].link.clone()
    };
    for (ppm, clients) in linerate_plan::link_losses(drafts) {
        let name = if ppm == 0 { "clean" } else { "lossy" };
        for _ in 0..clients.min(CLIENTS) {
            let number = 1 + spec
                .hosts
                .iter()
                .filter(|it| it.name.starts_with(name))
                .count();
            spec.hosts.push(linerate_lab::HostSpec {
                name: format!("{name}{number}"),
                link: LinkSpec {
                    loss: f64::from(ppm) / 1e6,
                    ..link.clone()
                },
            });
            losses.push(Some(ppm));
        }
    }
    losses
}

/// A lab with an agent on every host.
pub struct LabFleet {
    lab: Lab,
    losses: Vec<Option<u32>>,
    agents: Vec<Child>,
    links: Vec<linerate_lab::LinkSpec>,
    token: String,
}

impl LabFleet {
    /// Makes the lab and starts its agents; `losses` is what each host is there for.
    fn up(spec: &LabSpec, losses: Vec<Option<u32>>, entered: &Entered) -> CmdResult<Self> {
        let lab = Lab::up(spec, entered)?;
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random numbers: {error}"))?;
        let token = linerate_model::hex::encode(&bytes);
        let links = spec.hosts.iter().map(|host| host.link.clone()).collect();
        let mut fleet = Self {
            lab,
            losses,
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

    fn agent(&self, address: IpAddr) -> HttpAgent {
        let authority = SocketAddr::new(address, PORT_DEFAULT).to_string();
        HttpAgent::new(&authority, Some(&self.token))
    }

    /// Returns the hosts for a run: the first is the server.
    fn specs(&self) -> Vec<HostSpec> {
        let links = self.links.iter().zip(&self.losses);
        let hosts = self.lab.hosts().iter().zip(links).enumerate();
        hosts
            .map(|(at, (host, (link, loss)))| {
                let part = match at {
                    0 => HostPart::Server,
                    _ => HostPart::Client,
                };
                let agent = Arc::new(self.agent(host.control_address));
                let address = SocketAddr::new(host.data_address, PORT_DEFAULT);
                HostSpec {
                    bind: (at > 0).then_some(host.data_address),
                    memory_copy: at == 0,
                    link_rate: link.rate,
                    link_loss_ppm: *loss,
                    ..HostSpec::new(host.name.clone(), part, agent, address)
                }
            })
            .collect()
    }

    /// Ends the agents and removes the lab.
    fn down(mut self) -> CmdResult<()> {
        for agent in &mut self.agents {
            // An agent that is gone already is what was wanted.
            let _ = agent.kill();
            let _ = agent.wait();
        }
        self.lab.down()?;
        Ok(())
    }
}
