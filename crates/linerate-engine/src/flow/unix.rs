//! Flows over Unix sockets: both ends on one host, a baseline without a network.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::flow::connect::{adopt, check, send_all};
use crate::flow::{ConnectError, Flow, FlowConfig};
use crate::sys::clock::{now_ns, sleep_until};
use crate::sys::unix;

/// How long to wait before a listener with a full backlog is asked again.
const AGAIN_NS: u64 = 1_000_000;

/// Opens a flow to the Unix socket of the abstract name `name`, and sends `hello` on it; both
/// together take at most `deadline`.
pub fn connect_unix(
    config: FlowConfig,
    name: &str,
    hello: &[u8],
    deadline: Duration,
) -> Result<Flow, ConnectError> {
    check(&config)?;
    let failed = |source| ConnectError::Unix {
        name: name.to_owned(),
        source,
    };
    let end_ns = now_ns().saturating_add(deadline.as_nanos() as u64);
    let socket = unix::open().map_err(failed)?;
    loop {
        match unix::connect(socket.as_fd(), name) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && now_ns() < end_ns => {
                sleep_until(now_ns() + AGAIN_NS);
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(ConnectError::NoSuchName {
                    name: name.to_owned(),
                });
            }
            Err(error) => return Err(failed(error)),
        }
    }
    send_all(socket.as_fd(), hello, end_ns).map_err(failed)?;
    adopt(config, socket)
}
