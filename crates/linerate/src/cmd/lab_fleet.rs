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
use linerate_lab::network::DATA_DEVICE;
use linerate_lab::spec::carried_bytes;
use linerate_lab::{Entered, Lab, LabSpec, RelayCount};
use linerate_model::experiment::{Factor, Level};
use linerate_model::number::counted;
use linerate_model::run::HostPart;
use linerate_plan::{Hosts, LabKnobs};

use crate::exit::{CmdResult, Failure};
use crate::hosts::TOKEN_VARIABLE;
use crate::meant::LabAsked;
use crate::term;

/// How long the agents of a lab may take to answer.
const READY_DEADLINE: Duration = Duration::from_secs(10);
/// Time between two questions whether an agent answers.
const READY_LOOK: Duration = Duration::from_millis(20);
/// Congestion control of a lab where nothing else is asked for, the first that the kernel has: what
/// is told of a lab should not hang on the default of the machine that it is made on.
const CONGESTION: [&str; 2] = ["cubic", "reno"];

/// Returns `hosts`, which are those of a lab, with the congestion control that it uses and the round trip that its
/// delays make: no packet has crossed its links yet.
pub fn settled(lab: &LabAsked, hosts: Hosts) -> CmdResult<Hosts> {
    let has = |name: &&str| hosts.congestion.iter().any(|known| known == name);
    let preferred = CONGESTION.into_iter().find(has).map(str::to_owned);
    if let Some(asked) = &lab.congestion
        && !has(&asked.as_str())
    {
        let known = hosts.congestion.join(" ");
        let error = anyhow!("--lab-congestion is {asked}, but this kernel has {known}");
        return Err(Failure::usage(error));
    }
    let farthest = lab.spec.hosts.split_first().and_then(|(server, clients)| {
        // Those that are there for a loss lose, and are not far.
        let plain = clients.iter().zip(lab.losses_ppm.iter().skip(1));
        let plain = plain.filter(|(_, loss)| loss.is_none());
        plain
            .map(|(client, _)| LabSpec::round_trip(server, client))
            .max()
    });
    let plain = lab.spec.hosts.iter().zip(&lab.losses_ppm);
    let plain = plain.filter(|(_, loss)| loss.is_none());
    let rates: Option<Vec<u64>> = plain
        .map(|(host, _)| Some(host.link.rate?.0 as u64))
        .collect();
    Ok(Hosts {
        congestion_unless_asked: lab.congestion.clone().or(preferred),
        knobs: Some(LabKnobs {
            mtu_bytes_max: carried_bytes(&lab.spec.hosts),
            refused: hosts.knobs.map_or_else(Vec::new, |knobs| knobs.refused),
        }),
        link_bps: rates.and_then(|rates| rates.into_iter().min()),
        round_trip: hosts.round_trip.max(farthest.unwrap_or_default()),
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

/// Makes the built-in lab, hands its hosts to `measure`, with those of the `levels` that they do not take, and removes
/// it, whatever came of that.
///
/// Entering the lab's namespaces wants a process with one thread, so this comes first in a command.
pub fn in_lab(
    asked: &LabAsked,
    levels: Vec<(Factor, Level)>,
    measure: impl FnOnce(Vec<HostSpec>, Refused) -> CmdResult,
) -> CmdResult {
    asked.spec.check("the lab").map_err(Failure::usage)?;
    let entered = linerate_lab::enter().map_err(|error| {
        Failure::failed(error).next("run as root, or study real hosts with `linerate study HOST`")
    })?;
    let lab = LabFleet::up(&asked.spec, &entered)?;
    let refused = lab.refused(levels)?;
    let result = measure(lab.specs(asked), refused);
    for dropped in lab.lab.relay_counts().iter().filter_map(dropped) {
        term::note(&dropped);
    }
    let down = lab.down();
    let exit = result?;
    down.map(|()| exit)
}

/// Tells what a link of the lab lost although nobody asked it to.
fn dropped(link: &RelayCount) -> Option<String> {
    let all = (link.dropped + link.forwarded + link.lost).saturating_sub(link.duplicated);
    (link.dropped > 0).then(|| {
        format!(
            "the lab's link of {} could not hold {} of {}: its relay was too slow, and what was \
             measured has more loss than the lab was asked for",
            link.host,
            link.dropped,
            counted(all, "frame"),
        )
    })
}

/// Levels of knobs that hosts do not take, with the reasons.
pub type Refused = Vec<(Factor, Level, String)>;

/// A lab with an agent on every host.
pub struct LabFleet {
    lab: Lab,
    agents: Vec<Child>,
    token: String,
}

impl LabFleet {
    /// Makes the lab and starts its agents.
    fn up(spec: &LabSpec, entered: &Entered) -> CmdResult<Self> {
        let lab = Lab::up(spec, entered)?;
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random numbers: {error}"))?;
        let token = linerate_model::hex::encode(&bytes);
        let mut fleet = Self {
            lab,
            agents: Vec::new(),
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
        // The control network is in namespaces of our own: nobody else is on the way.
        HttpAgent::plain(SocketAddr::new(address, PORT_DEFAULT), Some(&self.token))
    }

    /// Returns those of `levels` that some host does not take, with the first reason.
    fn refused(&self, levels: Vec<(Factor, Level)>) -> CmdResult<Refused> {
        let mut refused = Refused::new();
        for (factor, level) in levels {
            for host in self.lab.hosts() {
                let tried = || linerate_agent::try_out(DATA_DEVICE, factor, &level);
                if let Err(why) = self.lab.in_network(&host.name, tried)? {
                    refused.push((factor, level, why));
                    break;
                }
            }
        }
        Ok(refused)
    }

    /// Returns the hosts for a run: the first is the server.
    fn specs(&self, asked: &LabAsked) -> Vec<HostSpec> {
        let asked = asked.spec.hosts.iter().zip(&asked.losses_ppm);
        let hosts = self.lab.hosts().iter().zip(asked).enumerate();
        hosts
            .map(|(at, (host, (asked, loss)))| {
                let part = match at {
                    0 => HostPart::Server,
                    _ => HostPart::Client,
                };
                let agent = Arc::new(self.agent(host.control_address));
                let address = SocketAddr::new(host.data_address, PORT_DEFAULT);
                HostSpec {
                    bind: (at > 0).then_some((host.data_address, 0).into()),
                    memory_copy: at == 0,
                    link_rate: asked.link.rate,
                    link_up_rate: asked.link.up.rate.filter(|up| Some(*up) != asked.link.rate),
                    lab_link: Some(asked.link.told()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_link_lost_unasked_is_told() {
        let count = |dropped| RelayCount {
            host: "far".to_owned(),
            forwarded: 90,
            lost: 7,
            duplicated: 0,
            reordered: 0,
            dropped,
        };
        assert_eq!(dropped(&count(0)), None, "what was asked for is no fault");
        let told = dropped(&count(3)).expect("three frames are missing");
        assert!(
            told.contains("link of far could not hold 3 of 100 frames"),
            "{told}"
        );
    }
}
