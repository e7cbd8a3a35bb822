//! The hosts of a fleet: agents that run there already, or that are put there for the time of a command.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use linerate_agent::api::client::HttpAgent;
use linerate_agent::tls::Trust;
use linerate_controller::{
    HostSpec, Kubernetes, LaunchError, Launched, LaunchedAgent, Launcher, Slurm, Ssh, Unlaunched,
    allocated_nodes,
};
use linerate_model::HostName;
use linerate_model::fleet::{FleetFile, FleetHost, Launch, Role, SlurmLaunch};
use linerate_model::reason::with_causes;
use linerate_model::run::HostPart;

use crate::exit::{CmdResult, Failure};
use crate::hosts::{self, Callers, HostsAsked, Place};
use crate::shell::quoted;
use crate::{files, term};

/// The folder of a bundle with what launched agents said.
const LOGS: &str = "logs";

/// The hosts of a fleet. Agents that were launched for it go with it.
pub struct FleetHosts {
    /// Each as a host of a run, or why it cannot be one; in the fleet's order.
    pub hosts: Vec<(HostName, CmdResult<HostSpec>)>,
    /// Agents that were launched, to be taken away.
    pub launched: Option<Launched>,
}

impl FleetHosts {
    /// Finds the agents of `fleet`, or launches them. Where Slurm chooses its hosts, they are in it then.
    pub fn find(fleet: &mut FleetFile, asked: &HostsAsked) -> CmdResult<Self> {
        let Some(launcher) = launcher(fleet, asked)? else {
            let callers = hosts::callers(asked)?;
            let running = |(at, host)| running_spec(at, host, &callers, asked);
            return Ok(Self {
                hosts: each(fleet, running),
                launched: None,
            });
        };
        files::raise_limit();
        let launched = launcher.launch(&fleet.hosts);
        let launched = launched.map_err(|error| unlaunched(&error, &fleet.launch, ""))?;
        if fleet.hosts.is_empty() {
            let names = launched.hosts().iter().map(|(name, _)| name);
            fleet.hosts = names.cloned().map(node).collect();
        }
        let mut agents = launched.hosts().iter();
        let of_launched = |(at, host)| {
            let (_, agent) = agents.next().expect("each host has its outcome");
            launched_spec(at, host, (agent.as_ref(), &fleet.launch), asked)
        };
        let hosts = each(fleet, of_launched);
        Ok(Self {
            hosts,
            launched: Some(launched),
        })
    }

    /// Returns the hosts of `fleet` for a run, which needs all of them, each device of its own, and what is to be taken away
    /// after it.
    pub fn all(self, fleet: &FleetFile) -> CmdResult<(Vec<HostSpec>, Option<Launched>)> {
        let mut failed = self.hosts.iter().filter(|(_, spec)| spec.is_err());
        let others = failed.clone().skip(1).count();
        if let (Some((host, Err(failure))), 1..) = (failed.next(), others) {
            let names: Vec<&str> = failed.map(|(name, _)| &*name.0).collect();
            let text = format!("host {host}: {failure}; hosts {} neither", names.join(", "));
            return Err(Failure {
                exit: failure.exit,
                error: anyhow!(text),
                next: failure.next.clone(),
            });
        }
        let specs = self.hosts.into_iter().map(|(host, spec)| {
            spec.map_err(|failure| Failure {
                error: failure.error.context(format!("host {host}")),
                ..failure
            })
        });
        let specs: Vec<HostSpec> = specs.collect::<CmdResult<_>>()?;
        let with_devices = specs.into_iter().zip(&fleet.hosts);
        let devices = with_devices.flat_map(|(spec, host)| {
            let devices = host.devices().into_iter().enumerate();
            devices.map(move |(at, device)| HostSpec {
                // Of one host one is the server by name.
                part: if at == 0 { spec.part } else { HostPart::Client },
                ..device_spec(&spec, device)
            })
        });
        Ok((devices.collect(), self.launched))
    }
}

/// Returns the host `spec` as one of its devices.
fn device_spec(spec: &HostSpec, device: FleetHost) -> HostSpec {
    let address = device.data.first().copied();
    let with = |known: SocketAddr| SocketAddr::new(address.unwrap_or(known.ip()), known.port());
    HostSpec {
        name: device.name,
        groups: device.groups,
        data_address: spec.data_address.map(with),
        bind: spec.bind.map(with),
        ..spec.clone()
    }
}

/// Has the nodes of a cluster be the hosts of `fleet`, where its file names none: those of the allocation of Slurm that
/// this process is in, or those with the labels that are asked for of Kubernetes.
pub fn name_nodes(fleet: &mut FleetFile) -> CmdResult<()> {
    let (nodes, is_enough) = match &fleet.launch {
        _ if !fleet.hosts.is_empty() => return Ok(()),
        Launch::Agent | Launch::Ssh(_) => return Ok(()),
        Launch::Slurm(slurm) => (allocated_nodes(), slurm.nodes.is_some()),
        Launch::Kubernetes(launch) => (Kubernetes::new(launch, 0).nodes().map(Some), true),
    };
    let nodes = nodes.map_err(|error| unlaunched(&error, &fleet.launch, ""))?;
    if nodes.is_none() && !is_enough {
        let error = anyhow!("the fleet file names no hosts, and this is no allocation of Slurm");
        return Err(Failure::usage(error).next(
            "say how many with `nodes` in [slurm], name them with [[host]], or run it within `salloc`",
        ));
    }
    fleet.hosts = nodes.into_iter().flatten().map(node).collect();
    Ok(())
}

/// Returns the host that a node of Slurm is of which nothing is known but its name.
fn node(name: HostName) -> FleetHost {
    FleetHost {
        control: name.to_string(),
        name,
        data: Vec::new(),
        role: Role::default(),
        groups: Vec::new(),
    }
}

/// Returns what `spec` makes of each host and its place.
fn each<'a>(
    fleet: &'a FleetFile,
    spec: impl FnMut((usize, &'a FleetHost)) -> CmdResult<HostSpec>,
) -> Vec<(HostName, CmdResult<HostSpec>)> {
    let names = fleet.hosts.iter().map(|host| host.name.clone());
    let specs = fleet.hosts.iter().enumerate().map(spec);
    names.zip(specs).collect()
}

/// Takes launched agents away; what they said goes into the folder of a bundle, where there is one.
pub fn take_away(launched: Option<Launched>, bundle: Option<&Path>) -> CmdResult<()> {
    let Some(launched) = launched else {
        return Ok(());
    };
    let logs = launched.take_away();
    for log in logs.iter().filter(|log| log.is_early) {
        term::note(&format!(
            "the agent of {} was gone before it was taken away: {}",
            log.host,
            log.last()
        ));
    }
    let Some(folder) = bundle.filter(|bundle| bundle.is_dir()) else {
        return Ok(());
    };
    let folder = folder.join(LOGS);
    let cannot = || format!("cannot write what agents said to {}", folder.display());
    std::fs::create_dir_all(&folder).with_context(cannot)?;
    for log in logs.iter().filter(|log| !log.text.is_empty()) {
        let file = folder.join(format!("{}.log", log.host));
        std::fs::write(file, &log.text).with_context(cannot)?;
    }
    Ok(())
}

/// Returns who puts agents on the hosts of `fleet`, unless they run there.
fn launcher(fleet: &FleetFile, asked: &HostsAsked) -> CmdResult<Option<Launcher>> {
    match &fleet.launch {
        Launch::Agent => Ok(None),
        Launch::Ssh(launch) => {
            let ssh = Ssh::new(launch, asked.port);
            let ssh = ssh.map_err(|error| unlaunched(&error, &fleet.launch, ""))?;
            Ok(Some(Launcher::Ssh(ssh)))
        }
        Launch::Slurm(launch) => {
            let slurm = Slurm::new(launch, asked.port);
            let slurm = slurm.map_err(|error| unlaunched(&error, &fleet.launch, ""))?;
            Ok(Some(Launcher::Slurm(slurm)))
        }
        Launch::Kubernetes(launch) => {
            let kubernetes = Kubernetes::new(launch, asked.port);
            Ok(Some(Launcher::Kubernetes(kubernetes)))
        }
    }
}

/// Returns a host whose agent runs there.
fn running_spec(
    at: usize,
    host: &FleetHost,
    callers: &Callers,
    asked: &HostsAsked,
) -> CmdResult<HostSpec> {
    let (agent, control) = hosts::reached(callers, &host.control, asked)?;
    let spec = spec(at, host, agent, (control.ip(), control.port()));
    Ok(HostSpec {
        control_ip: Some(control.ip()),
        ..spec
    })
}

/// Returns a host whose agent was launched: it has a token and a certificate of its own.
fn launched_spec(
    at: usize,
    host: &FleetHost,
    (agent, by): (Result<&LaunchedAgent, &LaunchError>, &Launch),
    asked: &HostsAsked,
) -> CmdResult<HostSpec> {
    let agent = agent.map_err(|error| unlaunched(error, by, &host.control))?;
    let place = Place::of(&agent.host, agent.port, asked.family)?;
    let (control, _) = place.reached(None).map_err(hosts::agent_failure)?;
    let shown = agent.certificate.parse().map_err(|()| {
        let error = anyhow!("the agent that was launched there announces no certificate");
        Failure::failed(error).next("use a `program` of this version")
    })?;
    let trust = Trust::fingerprints(vec![shown], None);
    let http = HttpAgent::over_tls(&agent.host, control, Some(&agent.token), &trust);
    let own = (!agent.is_tunnelled()).then(|| control.ip());
    let first = host.data.first().copied();
    let data = first.or(own).or(agent.payload).ok_or_else(|| {
        let error = anyhow!("it is reached by others, and the address of its payload is not known");
        Failure::failed(error).next("name it with `data` in the fleet file")
    })?;
    let http = http.map_err(hosts::agent_failure)?;
    let spec = spec(at, host, http, (data, agent.payload_port));
    Ok(HostSpec {
        control_ip: own,
        ..spec
    })
}

/// Returns a host for a run: the first is its server by name only, since trials name their own.
fn spec(at: usize, host: &FleetHost, agent: HttpAgent, (ip, port): (IpAddr, u16)) -> HostSpec {
    let part = if at == 0 {
        HostPart::Server
    } else {
        HostPart::Client
    };
    let data = host.data.first().copied();
    let payload = SocketAddr::new(data.unwrap_or(ip), port);
    HostSpec {
        bind: data.map(|ip| (ip, 0).into()),
        groups: host.groups.clone(),
        ..HostSpec::new(host.name.clone(), part, Arc::new(agent), payload)
    }
}

/// Returns the failure to put an agent on a host that its launcher calls `control`, with what to do.
fn unlaunched(error: &LaunchError, by: &Launch, control: &str) -> Failure {
    let next = match by {
        Launch::Slurm(slurm) => next_of_slurm(error, slurm),
        Launch::Kubernetes(_) => next_of_kubernetes(error),
        Launch::Agent | Launch::Ssh(_) => next_of_ssh(error, control),
    };
    Failure::failed(anyhow!(with_causes(error))).maybe(next)
}

fn next_of_slurm(error: &LaunchError, slurm: &SlurmLaunch) -> Option<String> {
    Some(match error {
        LaunchError::Program { .. } => "name a file with `program` in [slurm]".to_owned(),
        LaunchError::Start { .. } => {
            "run it on a host with Slurm's commands, where `sinfo` answers".to_owned()
        }
        LaunchError::Tunnel(_) | LaunchError::Token(_) => return None,
        LaunchError::Failed { why, .. } => match why {
            Unlaunched::Refused => {
                "hold [slurm] and the hosts of the fleet file against what `sinfo -N -l` lists".to_owned()
            }
            Unlaunched::Busy => {
                "see with `sinfo -N -l` which nodes are down or at work; `linerate fleet sbatch` waits for them"
                    .to_owned()
            }
            Unlaunched::Absent if slurm.directory.is_some() => {
                "name a `directory` in [slurm] that each node has for itself, with room for the program".to_owned()
            }
            Unlaunched::Absent => "have the program where all nodes see it: `program` in [slurm] names that place, \
                                   and `directory` one to copy it to"
                .to_owned(),
            _ => "look what `srun` says of a small program on that node: `srun --nodelist=NODE uname -m`"
                .to_owned(),
        },
    })
}

fn next_of_kubernetes(error: &LaunchError) -> Option<String> {
    let next = match error {
        LaunchError::Start { .. } => "install kubectl on this host",
        LaunchError::Failed { why, .. } => match why {
            Unlaunched::Refused => {
                "have `kubectl auth can-i create pods` answer yes: `context` and `namespace` in [kubernetes] say where"
            }
            Unlaunched::Absent => "name an `image` in [kubernetes] that its node can fetch",
            _ => "look what `kubectl get events` says of that node's pod",
        },
        LaunchError::Program { .. } | LaunchError::Tunnel(_) | LaunchError::Token(_) => {
            return None;
        }
    };
    Some(next.to_owned())
}

fn next_of_ssh(error: &LaunchError, control: &str) -> Option<String> {
    let by_hand = format!("ssh {}", quoted(control));
    Some(match error {
        LaunchError::Program { .. } => "name a file with `program` in [ssh]".to_owned(),
        LaunchError::Start { .. } => "install OpenSSH's client on this host".to_owned(),
        LaunchError::Tunnel(_) | LaunchError::Token(_) => return None,
        LaunchError::Failed { why, .. } => match why {
            Unlaunched::Unreachable => format!(
                "check the name, that the host is up, and that `{by_hand}` reaches it; `control` names it otherwise, \
                 and `jump` in [ssh] a host on the way"
            ),
            Unlaunched::Denied => format!(
                "have `{by_hand} true` work without a password: a key of that user's authorized_keys in an agent \
                 or a file; `user` in [ssh] names another user"
            ),
            Unlaunched::HostKey => format!(
                "connect once by hand with `{by_hand}`, and compare the key that it shows with the host's own: \
                 `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` there"
            ),
            Unlaunched::Architecture { there, .. } => format!(
                "name a program for {there} with `program` in [ssh], or start `linerate serve` there by hand and \
                 use `launch = \"agent\"`"
            ),
            Unlaunched::Space => "make room there, or name another `directory` in [ssh]".to_owned(),
            Unlaunched::Late(_) => format!("look whether `{by_hand} true` comes to an end"),
            _ => format!(
                "look what `{by_hand} uname -m` says; where programs may not be run from its home, name another \
                 `directory` in [ssh]"
            ),
        },
    })
}
