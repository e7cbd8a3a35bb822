//! From `HOST[:PORT]` to the address that answers.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};

use anyhow::{Context, anyhow};
use linerate_agent::api::AgentError;
use linerate_agent::api::reach::{Reached, reach};

use super::{Family, HostsAsked};
use crate::exit::{CmdResult, Failure};

/// A host as it was typed, with all its addresses that may be used.
pub struct Place {
    /// Its name, or its address as it was typed.
    pub host: String,
    addresses: Vec<SocketAddr>,
}

impl Place {
    /// Finds the addresses of `HOST[:PORT]`, of the family asked for or of the address to connect from.
    pub fn find(text: &str, asked: &HostsAsked) -> CmdResult<Self> {
        let of_bind = asked.bind.map(|bind| match bind.ip().to_canonical() {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        });
        Self::of(text, asked.port, asked.family.or(of_bind))
    }

    /// Finds those of `HOST[:PORT]` of `family`.
    pub fn of(text: &str, port: u16, family: Option<Family>) -> CmdResult<Self> {
        let (host, port) = split_port(text, port)?;
        let found = (host.as_str(), port).to_socket_addrs();
        let found = found
            .with_context(|| format!("cannot find the address of {host}"))
            .map_err(|error| Failure::failed(error).next("check the name, or give an address"))?;
        let (family, is_wanted): (_, fn(&SocketAddr) -> bool) = match family {
            Some(Family::V4) => ("IPv4 ", SocketAddr::is_ipv4),
            Some(Family::V6) => ("IPv6 ", SocketAddr::is_ipv6),
            None => ("", |_| true),
        };
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in found.filter(is_wanted) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(Failure::failed(anyhow!("{host} has no {family}address")));
        }
        Ok(Self { host, addresses })
    }

    /// Returns the first address.
    pub fn first(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Returns the address that answers, where there are several to choose from, and the connection that was made to
    /// find out; says which one it is.
    pub fn reached(
        &self,
        bind: Option<SocketAddr>,
    ) -> Result<(SocketAddr, Option<TcpStream>), AgentError> {
        if let [address] = self.addresses[..] {
            return Ok((address, None));
        }
        let reached = reach(&self.addresses, bind)?;
        // Those of this host are one place.
        let is_here = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
        if !self.addresses.iter().all(is_here) {
            crate::term::note(&self.said_of(&reached));
        }
        Ok((reached.address, Some(reached.stream)))
    }

    fn said_of(&self, reached: &Reached) -> String {
        let failed = reached.failed.iter();
        let failed: String = failed
            .map(|(address, error)| format!("; {}: {error}", address.ip()))
            .collect();
        format!(
            "{} has {} addresses: {} is used{failed}",
            self.host,
            self.addresses.len(),
            reached.address.ip()
        )
    }
}

/// Splits `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT` into host and port; an address of one link has its
/// device behind a `%`.
fn split_port(text: &str, port_default: u16) -> CmdResult<(String, u16)> {
    let bad = || Failure::usage(anyhow!("`{text}` is not HOST or HOST:PORT"));
    let is_address = |text: &str| {
        let address = text.split_once('%').map_or(text, |(address, _)| address);
        address.parse::<IpAddr>().is_ok()
    };
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']').ok_or_else(bad)? {
            (host, "") => (host, None),
            (host, port) => (host, Some(port.strip_prefix(':').ok_or_else(bad)?)),
        },
        None if is_address(text) => (text, None),
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map_or(Ok(port_default), |port| port.parse().map_err(|_| bad()))?;
    if host.is_empty() || port == 0 {
        return Err(bad());
    }
    Ok((host.to_owned(), port))
}

/// Returns the address that the kernel would send from; connecting a UDP socket sends nothing.
pub fn source_address(peer: SocketAddr) -> Option<IpAddr> {
    let any = if peer.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Returns the devices of this host that lead elsewhere, in words.
pub fn devices() -> String {
    let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name != "lo").take(8).collect();
    names.sort();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_split_off() {
        let check = |text: &str, host: &str, port: u16| {
            let got = split_port(text, 5201).unwrap();
            assert_eq!((got.0.as_str(), got.1), (host, port), "{text}");
        };
        check("db1", "db1", 5201);
        check("db1:7000", "db1", 7000);
        check("10.0.0.1", "10.0.0.1", 5201);
        check("10.0.0.1:80", "10.0.0.1", 80);
        check("fe80::1", "fe80::1", 5201);
        check("[fe80::1]:80", "fe80::1", 80);
        check("[fe80::1]", "fe80::1", 5201);
        check("fe80::1%eth0", "fe80::1%eth0", 5201);
        check("[fe80::1%eth0]:80", "fe80::1%eth0", 80);
        for bad in [
            "db1:",
            "db1:x",
            ":80",
            "db1:70000",
            "db1:0",
            "[::1",
            "[::1]80",
            "[]",
        ] {
            assert!(split_port(bad, 5201).is_err(), "{bad}");
        }
    }
}
