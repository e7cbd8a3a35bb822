//! Which of a host's addresses answers.
//!
//! 1. Families take turns, the resolver's first choice first (RFC 8305, section 4).
//! 2. The next address is tried 250 ms after the one before, or at once where that one failed; those under way go on
//!    (section 5). The first connection that comes to be decides.
//! 3. Where none comes to be, what is said is about the address that a host answered at, if one did.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::client::CONNECT_TIMEOUT;
use super::{AgentError, Loss, NoAnswer};

/// How long an address has before the next one is tried beside it (RFC 8305, section 8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 16;

/// An address of a host at which a connection was made.
#[derive(Debug)]
pub struct Reached {
    /// The address.
    pub address: SocketAddr,
    /// The connection.
    pub stream: TcpStream,
    /// The addresses that failed before it did not, with the reasons.
    pub failed: Vec<(SocketAddr, io::Error)>,
}

/// Connects to the first of `addresses` that answers, from `bind` if that is given.
pub fn reach(addresses: &[SocketAddr], bind: Option<SocketAddr>) -> Result<Reached, AgentError> {
    let mut waiting = interleaved(addresses).into_iter().take(ADDRESSES_MAX);
    let (said, heard) = channel();
    let mut failed: Vec<(SocketAddr, io::Error)> = Vec::new();
    let mut under_way = 0;
    let mut is_last = false;
    loop {
        match waiting.next() {
            Some(address) => {
                let said = said.clone();
                let attempt = std::thread::Builder::new().name("reach".to_owned());
                let attempt = attempt.spawn(move || {
                    // Nobody listens any more once another address was quicker.
                    let _ = said.send((address, connect(address, bind, CONNECT_TIMEOUT)));
                });
                match attempt {
                    Ok(_) => under_way += 1,
                    Err(error) => failed.push((address, error)),
                }
            }
            None => is_last = true,
        }
        if is_last && under_way == 0 {
            return Err(nobody(failed));
        }
        let wait = if is_last {
            2 * CONNECT_TIMEOUT
        } else {
            ATTEMPT_DELAY
        };
        match heard.recv_timeout(wait) {
            Ok((address, Ok(stream))) => {
                return Ok(Reached {
                    address,
                    stream,
                    failed,
                });
            }
            Ok((address, Err(error))) => {
                under_way -= 1;
                failed.push((address, error));
            }
            Err(RecvTimeoutError::Timeout) if !is_last => {}
            // Each attempt has a deadline, which all of them are past.
            Err(_) => return Err(nobody(failed)),
        }
    }
}

/// Returns the same addresses, the families in turn.
fn interleaved(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_first = |address: &&SocketAddr| {
        (addresses.first()).is_some_and(|first| first.is_ipv4() == address.is_ipv4())
    };
    let (first, second): (Vec<&SocketAddr>, Vec<&SocketAddr>) =
        addresses.iter().partition(is_first);
    let mut turns = Vec::new();
    for at in 0..first.len().max(second.len()) {
        turns.extend([first.get(at), second.get(at)].into_iter().flatten());
    }
    turns.into_iter().copied().copied().collect()
}

/// Connects to `address`, from `bind` if that is given.
pub(crate) fn connect(
    address: SocketAddr,
    bind: Option<SocketAddr>,
    timeout: Duration,
) -> io::Result<TcpStream> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if let Some(bind) = bind {
        // Where it is an address of IPv4 with a device, the device is the flows' business.
        let bind = match bind.ip().to_canonical() {
            ip @ IpAddr::V4(_) => SocketAddr::new(ip, 0),
            IpAddr::V6(_) => bind,
        };
        socket.bind(&bind.into())?;
    }
    socket.connect_timeout(&address.into(), timeout)?;
    Ok(socket.into())
}

/// Returns what it means that none of these addresses answers.
fn nobody(failed: Vec<(SocketAddr, io::Error)>) -> AgentError {
    let telling = |(address, error): &(SocketAddr, io::Error)| NoAnswer::of(*address, error);
    let most = failed.iter().min_by_key(|one| telling(one));
    let Some((address, error)) = most else {
        return AgentError::Unreachable {
            address: "a host without an address".to_owned(),
            why: NoAnswer::Other,
            how: Loss::Silent,
            source: "there is nothing to connect to".into(),
        };
    };
    let why = NoAnswer::of(*address, error);
    let others = failed.iter().filter(|(other, _)| other != address);
    let others: String = others
        .map(|(other, error)| format!("; {other}: {error}"))
        .collect();
    AgentError::Unreachable {
        address: address.to_string(),
        why,
        how: why.loss(),
        source: format!("{error}{others}").into(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn families_take_turns_from_the_first_on() {
        let check = |given: &[&str], expected: &[&str]| {
            let addresses = |text: &[&str]| -> Vec<SocketAddr> {
                let at = |host: &&str| SocketAddr::new(host.parse().expect("an address"), 1);
                text.iter().map(at).collect()
            };
            assert_eq!(interleaved(&addresses(given)), addresses(expected));
        };
        check(&[], &[]);
        check(&["::1"], &["::1"]);
        check(
            &["::1", "::2", "::3", "192.0.2.1", "192.0.2.2"],
            &["::1", "192.0.2.1", "::2", "192.0.2.2", "::3"],
        );
        check(
            &["192.0.2.1", "::1", "192.0.2.2"],
            &["192.0.2.1", "::1", "192.0.2.2"],
        );
    }

    /// Returns an address of loopback at which nobody listens.
    fn nobody_at(ip: &str) -> SocketAddr {
        let listener = TcpListener::bind((ip, 0)).expect("loopback");
        listener.local_addr().expect("it is bound")
    }

    #[test]
    fn the_first_address_that_answers_is_used() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let there = listener.local_addr().expect("it is bound");
        let gone = nobody_at("127.0.0.1");
        let reached = reach(&[gone, there], None).expect("one listens");
        assert_eq!(reached.address, there);
        assert_eq!(reached.stream.peer_addr().ok(), Some(there));
        let failed: Vec<SocketAddr> = reached.failed.iter().map(|(address, _)| *address).collect();
        assert_eq!(failed, [gone]);
    }

    #[test]
    fn what_is_said_is_about_the_address_of_a_host_that_answered() {
        let gone = nobody_at("127.0.0.1");
        // An address of a link without its device: the kernel refuses it at once.
        let scopeless = "[fe80::1]:9".parse().expect("an address");
        let check = |addresses: &[SocketAddr], named: SocketAddr, kind| match reach(addresses, None)
            .map(|reached| reached.address)
        {
            Err(AgentError::Unreachable { address, why, .. }) => {
                assert_eq!((address, why), (named.to_string(), kind));
            }
            other => panic!("{other:?}"),
        };
        check(&[gone], gone, NoAnswer::Refused);
        check(&[scopeless], scopeless, NoAnswer::NoDevice);
        check(&[scopeless, gone], gone, NoAnswer::Refused);
    }
}
