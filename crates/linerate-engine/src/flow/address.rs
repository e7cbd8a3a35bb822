//! Where an end of a flow is.

use std::fmt;
use std::net::SocketAddr;

/// Where an end of a flow is: an address and port, or a name of this host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// Over IP.
    Ip(SocketAddr),
    /// A Unix socket: its name in the abstract namespace, empty for an end that has none.
    Unix(String),
}

impl Address {
    /// Returns the address and port, if the end has one.
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Address::Ip(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Ip(address)
    }
}

/// `ADDRESS:PORT`; `unix:@NAME`, or `unix` for an end without a name.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(address) => address.fmt(f),
            Address::Unix(name) if name.is_empty() => f.write_str("unix"),
            Address::Unix(name) => write!(f, "unix:@{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_text() {
        let check = |address: Address, text: &str| assert_eq!(address.to_string(), text);
        check(Address::Ip("[::1]:5201".parse().unwrap()), "[::1]:5201");
        check(Address::Unix("a-b".to_owned()), "unix:@a-b");
        check(Address::Unix(String::new()), "unix");
    }
}
