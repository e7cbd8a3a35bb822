//! A fleet: hosts by name, how they are reached, and who puts agents there.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::id::HostName;
use crate::manner::Named;
use crate::unit::Nanos;

/// The most hosts of a fleet: an allocation of the largest clusters that Slurm runs.
pub const FLEET_HOSTS_MAX: usize = 10_000;

/// A checked `fleet.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetFile {
    /// What it is called in reports; the name of its file where it says nothing.
    pub name: Option<String>,
    /// Port of agents that name none.
    pub port: Option<u16>,
    /// File with the token that the agents know, where they run already.
    pub token_file: Option<PathBuf>,
    /// How its hosts begin at the same moment.
    pub in_step: InStep,
    /// Who puts agents there.
    pub launch: Launch,
    /// Its hosts, in the order of the file; none where a cluster chooses them.
    pub hosts: Vec<FleetHost>,
}

/// How hosts begin at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InStep {
    /// How far apart the first payloads of a trial's hosts may be; absent for a tenth of its window.
    pub skew_max: Option<Nanos>,
    /// Where the datagram goes that starts them; absent where each host begins at an instant of its clock.
    pub multicast: Option<Multicast>,
}

/// A group of hosts that hear one datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multicast {
    /// Its address and port.
    pub group: SocketAddrV4,
    /// Routers that the datagram may pass, and one more.
    pub ttl: u8,
}

impl Multicast {
    /// Returns whether a group is of one organisation (RFC 2365): what others send to theirs is not asked for.
    pub fn is_scoped(group: Ipv4Addr) -> bool {
        group.octets()[0] == 239
    }
}

/// A host of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetHost {
    /// Its name in the run.
    pub name: HostName,
    /// `HOST[:PORT]` of its agent, or what its launcher calls it.
    pub control: String,
    /// Addresses of its devices for payload, the first one first; that of its agent where there are none.
    pub data: Vec<IpAddr>,
    /// What it may be.
    pub role: Role,
    /// The groups that it belongs to: a rack, a switch, a generation.
    pub groups: Vec<String>,
}

impl FleetHost {
    /// Returns what measures of this host: itself, or each of its devices, `n1/1` and `n1/2`, with that address.
    pub fn devices(&self) -> Vec<Self> {
        if self.data.len() < 2 {
            return vec![self.clone()];
        }
        let device = |(number, address): (usize, &IpAddr)| {
            let own = [self.name.to_string(), format!("device {number}")];
            Self {
                name: format!("{}/{number}", self.name).as_str().into(),
                data: vec![*address],
                groups: self.groups.iter().cloned().chain(own).collect(),
                ..self.clone()
            }
        };
        (1..).zip(&self.data).map(device).collect()
    }
}

/// What a host of a fleet may be in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Whatever the pattern makes of it.
    #[default]
    Any,
    /// It only takes up flows.
    Server,
    /// It only opens them.
    Client,
}

impl Named for Role {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("any", Self::Any),
        ("server", Self::Server),
        ("client", Self::Client),
    ];
}

/// Who puts agents on the hosts of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Launch {
    /// They run already.
    #[default]
    Agent,
    /// OpenSSH, with its own configuration.
    Ssh(SshLaunch),
    /// Slurm, inside an allocation or by making one.
    Slurm(SlurmLaunch),
    /// Kubernetes, by `kubectl`.
    Kubernetes(KubernetesLaunch),
}

/// How OpenSSH puts agents somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SshLaunch {
    /// The user there; that of its configuration where it says none.
    pub user: Option<String>,
    /// Its configuration file; the usual one where it says none.
    pub config: Option<PathBuf>,
    /// Hosts on the way (`ssh -J`).
    pub jump: Option<String>,
    /// Further options (`ssh -o`).
    pub options: Vec<String>,
    /// The program that is copied there; this one where it says none.
    pub program: Option<PathBuf>,
    /// The directory there that it is copied to.
    pub directory: Option<String>,
}

/// How Slurm puts agents somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlurmLaunch {
    /// The partition.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// How many nodes an allocation has that is made, where no hosts are named.
    pub nodes: Option<u32>,
    /// The time limit, as `sbatch --time` takes it.
    pub time: Option<String>,
    /// Further options of an allocation that is made, as `salloc` and `sbatch` take them.
    pub options: Vec<String>,
    /// The program on the nodes, or that is copied there; this one where it says none.
    pub program: Option<PathBuf>,
    /// The directory there that it is copied to; where it says none, the program is there.
    pub directory: Option<PathBuf>,
}

impl SlurmLaunch {
    /// Returns what asks for an allocation of whole nodes, as `salloc` and `sbatch` take it.
    pub fn allocation(&self) -> Vec<String> {
        let given = [
            ("partition", &self.partition),
            ("account", &self.account),
            ("time", &self.time),
        ];
        let given = given
            .iter()
            .filter_map(|(key, value)| Some(format!("--{key}={}", value.as_deref()?)));
        let whole = ["--exclusive".to_owned()];
        whole
            .into_iter()
            .chain(given)
            .chain(self.options.iter().cloned())
            .collect()
    }
}

/// How Kubernetes puts agents somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KubernetesLaunch {
    /// The namespace.
    pub namespace: Option<String>,
    /// The image that has the program as its entry point.
    pub image: Option<String>,
    /// The context of `kubectl`.
    pub context: Option<String>,
    /// Labels of the nodes that it runs on, where no hosts are named.
    pub node_selector: std::collections::BTreeMap<String, String>,
}
