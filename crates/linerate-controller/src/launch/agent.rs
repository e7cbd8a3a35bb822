//! An agent that was put on a host, and how it is reached.

use std::net::IpAddr;

use linerate_model::HostName;

use super::error::LaunchError;
use super::keeper::Keeper;
use super::tunnel::Tunnel;

/// Hosts, each with its agent or why it has none.
pub(super) type Agents = Vec<(HostName, Result<LaunchedAgent, LaunchError>)>;

/// An agent that was put on a host.
pub struct LaunchedAgent {
    /// `HOST` of its requests: a name, or an address of this host that leads there.
    pub host: String,
    /// The port of its requests.
    pub port: u16,
    /// The port of its payload.
    pub payload_port: u16,
    /// The address of its payload, where its requests go another way.
    pub payload: Option<IpAddr>,
    /// What it is shown.
    pub token: String,
    /// The fingerprint of the certificate that it shows.
    pub certificate: String,
    /// What keeps it there.
    pub(super) keeper: Keeper,
    /// What carries its requests.
    pub(super) tunnel: Option<Tunnel>,
}

impl LaunchedAgent {
    /// Returns whether its requests go another way than its payload.
    pub fn is_tunnelled(&self) -> bool {
        self.tunnel.is_some()
    }
}
