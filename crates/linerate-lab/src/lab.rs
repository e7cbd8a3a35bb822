//! A lab that is up.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::Command;

use crate::enter::Entered;
use crate::error::{LabError, at_step};
use crate::keeper::{Keeper, Kept};
use crate::network::{self, Network};
use crate::relay::{Relay, RelayCount};
use crate::spec::LabSpec;
use crate::sys::guest::{EndsWith, Guest, place};
use crate::sys::init::NAMESPACES;
use crate::sys::namespace::{network_of, run_in_network};

/// Hosts, switch and links; taken down when dropped, and by the kernel when this process ends.
#[derive(Debug)]
pub struct Lab {
    // Fields drop in this order: cables first, then the hosts.
    network: Network,
    keeper: Keeper,
    hosts: Vec<LabHost>,
    degraded: Vec<String>,
}

/// A host of a lab that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabHost {
    /// The host's name.
    pub name: String,
    /// Its address on the measured network.
    pub data_address: IpAddr,
    /// Its IPv6 address there, if the machine has IPv6.
    pub data_address_v6: IpAddr,
    /// Its address on the control network, which this process shares.
    pub control_address: IpAddr,
    /// The id of its first process, as this process sees it.
    pub init_pid: u32,
}

impl Lab {
    /// Makes the hosts, the switch and the links of `spec`.
    ///
    /// A process holds one lab at a time.
    pub fn up(spec: &LabSpec, _entered: &Entered) -> Result<Self, LabError> {
        spec.check(&spec.name)?;
        let names = spec.hosts.iter().map(|host| host.name.clone()).collect();
        let keeper = Keeper::start(names)?;
        let network = Network::lay(&spec.hosts, &keeper.inits)?;
        let hosts = keeper.inits.iter().zip(1u8..).map(described).collect();
        let mut degraded = network.degraded.clone();
        if !keeper.has_names {
            degraded.push("hosts do not know each other by name: /etc/hosts of a host cannot be replaced; use addresses".to_owned());
        }
        Ok(Self {
            network,
            keeper,
            hosts,
            degraded,
        })
    }

    /// Returns the hosts in the order of the spec.
    pub fn hosts(&self) -> &[LabHost] {
        &self.hosts
    }

    /// Returns this process's address on the control network.
    pub fn controller_address(&self) -> IpAddr {
        network::controller_address()
    }

    /// Returns what this kernel refused and the lab does without, for the report.
    pub fn degraded(&self) -> &[String] {
        &self.degraded
    }

    /// Returns what became of the frames on links with a relay.
    pub fn relay_counts(&self) -> Vec<RelayCount> {
        let relays = self.network.relays.iter();
        relays.map(Relay::count).collect()
    }

    /// Returns a command that will run `program` in `host`.
    ///
    /// The child's id is that of an escort outside the host, which hands signals on and ends as
    /// the program ends; `kill` and `wait` mean the program. The program ends with its host, so
    /// with this lab. The working directory and the file system are the caller's, but for
    /// `/proc` and `/etc/hosts`, which are the host's own where the kernel allows it.
    pub fn command(&self, host: &str, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        let kept = self.find(host)?;
        let process = kept.init.process.as_fd().try_clone_to_owned();
        let guest = Guest {
            host: process.map_err(LabError::Keeper)?,
            namespaces: NAMESPACES,
            ends_with_caller: EndsWith::Host,
        };
        let mut command = Command::new(program);
        place(&mut command, guest);
        Ok(command)
    }

    /// Runs `work` in the network of `host`, on a thread of its own; all else of it is the caller's.
    pub fn in_network<T: Send>(
        &self,
        host: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, LabError> {
        let entering = || at_step(format!("enter the network of host `{host}`"));
        let network = network_of(self.find(host)?.init.pid).map_err(entering())?;
        run_in_network(network.as_fd(), work).map_err(entering())
    }

    /// Ends every program, host and link of the lab and waits until they are gone.
    pub fn down(mut self) -> Result<(), LabError> {
        self.network.remove()?;
        self.keeper.stop()
    }

    fn find(&self, host: &str) -> Result<&Kept, LabError> {
        let mut inits = self.keeper.inits.iter();
        inits
            .find(|kept| kept.host == host)
            .ok_or_else(|| LabError::NoHost {
                host: host.to_owned(),
                known: names(&self.hosts),
            })
    }
}

fn described((kept, number): (&Kept, u8)) -> LabHost {
    LabHost {
        name: kept.host.clone(),
        data_address: network::data_address(number),
        data_address_v6: network::data_address_v6(number),
        control_address: network::control_address(number),
        init_pid: kept.init.pid,
    }
}

fn names(hosts: &[LabHost]) -> String {
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    names.join(", ")
}
