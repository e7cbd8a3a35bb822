//! Why a flow could not be opened: a variant for each step and cause that calls for its own answer.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_model::id::FlowId;
use linerate_model::setting::name;

use crate::flow::options::Refused;

/// Why a flow could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The configuration contradicts itself.
    #[error("cannot use the configuration of flow {}: {reason}", flow.0)]
    Config {
        /// The flow.
        flow: FlowId,
        /// What does not fit.
        reason: String,
    },
    /// This process has as many open files as it may have.
    #[error(
        "cannot open a socket to {peer}: this process may open no more files (RLIMIT_NOFILE, `ulimit -n`)"
    )]
    FileLimit {
        /// The other end.
        peer: SocketAddr,
    },
    /// No socket could be made.
    #[error("cannot open a socket to {peer}")]
    Socket {
        /// The other end.
        peer: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The congestion control algorithm is not there, or not allowed to this user.
    #[error(
        "cannot use the congestion control algorithm `{algorithm}` \
         (net.ipv4.tcp_available_congestion_control lists those of this host, \
         net.ipv4.tcp_allowed_congestion_control those for unprivileged users)"
    )]
    Congestion {
        /// The algorithm asked for.
        algorithm: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The kernel refused an option.
    #[error("cannot set {name} to {value}")]
    Option {
        /// The option, by the kernel's name.
        name: &'static str,
        /// The value asked for.
        value: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The local address cannot be used.
    #[error("cannot bind to {address}")]
    Bind {
        /// The local address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Nothing listens there.
    #[error("cannot connect to {peer}: refused, nothing listens on that port")]
    Refused {
        /// The other end.
        peer: SocketAddr,
    },
    /// No answer came within the deadline.
    #[error("cannot connect to {peer}: no answer within {} ms", deadline.as_millis())]
    TimedOut {
        /// The other end.
        peer: SocketAddr,
        /// How long was waited.
        deadline: Duration,
    },
    /// No datagram came back within the deadline.
    #[error(
        "no datagram came back from {peer} within {} ms: UDP may be blocked on the way",
        deadline.as_millis()
    )]
    Unanswered {
        /// The other end.
        peer: SocketAddr,
        /// How long was waited.
        deadline: Duration,
    },
    /// There is no way to that host or network.
    #[error("cannot connect to {peer}: unreachable")]
    Unreachable {
        /// The other end.
        peer: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Connecting failed in another way.
    #[error("cannot connect to {peer}")]
    Connect {
        /// The other end.
        peer: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Whoever listens there does not say which agent it is.
    #[error("cannot learn which agent listens at {peer}")]
    Unidentified {
        /// The other end.
        peer: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The first bytes, which name the flow, could not be sent.
    #[error("cannot send the first bytes to {peer}")]
    Hello {
        /// The other end.
        peer: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// No Unix socket of that name listens.
    #[error(
        "cannot connect to unix:@{name}: nothing of that name listens here; over Unix sockets both ends must be on one host, and in one network namespace"
    )]
    NoSuchName {
        /// The abstract name.
        name: String,
    },
    /// A Unix socket could not be connected.
    #[error("cannot connect to unix:@{name}")]
    Unix {
        /// The abstract name.
        name: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Frames cannot be sent past the socket.
    #[error("cannot send to {peer} by AF_XDP (xdp): {reason}")]
    Xdp {
        /// The other end.
        peer: SocketAddr,
        /// What stands against it, and what it needs.
        reason: String,
    },
    /// The constant payload could not be made.
    #[error("cannot make the payload that is sent without a copy")]
    Content {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The connected socket could not be asked for its addresses or options.
    #[error("cannot read the addresses and options of a connection")]
    Inspect {
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl ConnectError {
    /// Returns whether the same settings would fail here again: this host cannot, whatever the network
    /// does. Where memory was short they may work the next time.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Config { .. } | Self::Congestion { .. } | Self::Xdp { .. } => true,
            Self::Socket { source, .. } | Self::Option { source, .. } => !is_shortage(source),
            Self::Bind { source, .. } => source.kind() == io::ErrorKind::AddrNotAvailable,
            _ => false,
        }
    }

    /// Returns what a failure to make a socket means.
    pub(super) fn open(source: io::Error, peer: SocketAddr) -> Self {
        match source.raw_os_error() {
            Some(libc::EMFILE) => ConnectError::FileLimit { peer },
            _ => ConnectError::Socket { peer, source },
        }
    }

    /// Returns what a failure to reach `peer` means.
    pub(super) fn establish(source: io::Error, peer: SocketAddr, deadline: Duration) -> Self {
        match source.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::Refused { peer },
            io::ErrorKind::TimedOut => ConnectError::TimedOut { peer, deadline },
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                ConnectError::Unreachable { peer, source }
            }
            _ => ConnectError::Connect { peer, source },
        }
    }
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

impl From<Refused> for ConnectError {
    fn from(refused: Refused) -> Self {
        let Refused {
            name,
            value,
            source,
        } = refused;
        if name == name::TCP_CONGESTION {
            return ConnectError::Congestion {
                algorithm: value,
                source,
            };
        }
        ConnectError::Option {
            name,
            value,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_of_the_network_are_told_apart() {
        let peer: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let error = |code| {
            ConnectError::establish(
                io::Error::from_raw_os_error(code),
                peer,
                Duration::from_secs(1),
            )
        };
        for code in [libc::EHOSTUNREACH, libc::ENETUNREACH] {
            let error = error(code);
            assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
        }
        assert!(matches!(
            error(libc::ETIMEDOUT),
            ConnectError::TimedOut { .. }
        ));
        assert!(matches!(error(libc::EPERM), ConnectError::Connect { .. }));
        let full = ConnectError::open(io::Error::from_raw_os_error(libc::EMFILE), peer);
        assert!(matches!(full, ConnectError::FileLimit { .. }), "{full}");
    }

    #[test]
    fn what_the_network_does_may_pass_and_what_this_host_cannot_lasts() {
        let peer: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let check = |error: ConnectError, is_lasting| {
            assert_eq!(error.is_lasting(), is_lasting, "{error}");
        };
        let os = io::Error::from_raw_os_error;
        for code in [libc::ECONNREFUSED, libc::ETIMEDOUT, libc::EHOSTUNREACH] {
            let deadline = Duration::from_secs(5);
            check(ConnectError::establish(os(code), peer, deadline), false);
        }
        for (code, is_lasting) in [
            (libc::EMFILE, false),
            (libc::ENOBUFS, false),
            (libc::EPROTONOSUPPORT, true),
        ] {
            check(ConnectError::open(os(code), peer), is_lasting);
        }
        for (code, is_lasting) in [(libc::EADDRINUSE, false), (libc::EADDRNOTAVAIL, true)] {
            let (address, source) = (peer, os(code));
            check(ConnectError::Bind { address, source }, is_lasting);
        }
        let refused = Refused {
            name: name::TCP_CONGESTION,
            value: "none".to_owned(),
            source: os(libc::ENOENT),
        };
        check(refused.into(), true);
    }
}
