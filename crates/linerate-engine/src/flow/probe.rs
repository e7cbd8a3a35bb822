//! Which way to send is the fastest here: a short try between two sockets of this host.
//!
//! One thread sends and drops in turn, so that nothing depends on who is woken where, and counts
//! the CPU time that it takes itself, so that other programs disturb little. On loopback the
//! kernel copies what MSG_ZEROCOPY sends, as it does on most virtual links; on a device that does
//! not, `vmsplice` spares the same copy and needs no notifications, so that nothing is lost by
//! choosing here. Between the two ends of a veth pair `vmsplice` is the fastest, too: one flow 62 Gbit/s,
//! by sendfile 57, by `send` 47; with a discarding receiver on the same CPU 87, 39, 61 (medians of 4
//! interleaved runs).

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_model::manner::{SendBy, Transport};
use linerate_model::run::ZeroCopyCount;

use crate::flow::mechanism::send_name;
use crate::sys::clock::{now_ns, thread_cpu_ns};
use crate::sys::pages::Pages;
use crate::sys::socket::{self, SO_ZEROCOPY};
use crate::sys::splice::{MemoryFile, Pipe};
use crate::sys::zerocopy;

/// How long one way is tried at a time; each has two times, the better of which counts. With four
/// ways 24 ms, and 2 ms for making pages and sockets.
const TRY_NS: u64 = 3_000_000;
const TRIES: usize = 2;
/// Payload that a plain `send` repeats: the usual message.
const SEND_BYTES: usize = 128 << 10;
/// Payload of one call.
const CALL_BYTES: usize = 1 << 20;
/// How long a connection to this very host may take.
const CONNECT_TIME: Duration = Duration::from_secs(1);
/// An algorithm that does not pace; every Linux kernel has it.
const UNPACED: &str = "reno";
/// How much faster than plain `send` another way must be to be chosen.
const GAIN_MIN: f64 = 1.05;
/// How long a choice is kept: long enough for the flows of one trial.
const KEEP_NS: u64 = 10_000_000_000;

/// What was chosen and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) by: SendBy,
    pub(super) reason: String,
}

impl Choice {
    fn copy(reason: String) -> Self {
        let by = SendBy::Copy;
        Self { by, reason }
    }
}

/// The last choice of each kind of socket, with the instant at which it was made.
static LAST: Mutex<Vec<(Transport, u64, Choice)>> = Mutex::new(Vec::new());

/// Returns the fastest way to send over `transport`; takes up to 30 ms if it was not asked within
/// the last 10 s.
pub(super) fn choice(transport: Transport) -> Choice {
    // The lock is held during the try: flows that are opened at the same time wait for the answer
    // instead of disturbing it.
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let now = now_ns();
    last.retain(|(_, at_ns, _)| now.saturating_sub(*at_ns) < KEEP_NS);
    if let Some((_, _, choice)) = last.iter().find(|(kind, _, _)| *kind == transport) {
        return choice.clone();
    }
    let choice = match rates(transport) {
        Ok(rates) => fastest(&rates),
        Err(error) => Choice::copy(format!("no probe: {error}")),
    };
    last.push((transport, now, choice.clone()));
    choice
}

/// Returns the fastest of `rates`, the first of which is that of plain `send`.
fn fastest(rates: &[(SendBy, f64)]) -> Choice {
    let plain = rates.first().map_or(1.0, |(_, rate)| rate.max(1.0));
    let others = rates.iter().skip(1).copied();
    let best = others.reduce(|a, b| if b.1 > a.1 { b } else { a });
    let Some((by, rate)) = best else {
        return Choice::copy("no other method works here".to_owned());
    };
    let ratio = rate / plain;
    let name = send_name(by);
    if ratio < GAIN_MIN {
        let reason = format!("a probe found nothing faster: {name} {ratio:.2} × send");
        return Choice::copy(reason);
    }
    Choice {
        by,
        reason: format!("the fastest of a probe: {ratio:.2} × send"),
    }
}

/// Returns the payload that each way moves in a second of CPU time; ways that fail are left out.
fn rates(transport: Transport) -> io::Result<Vec<(SendBy, f64)>> {
    let (near, far) = pair(transport)?;
    socket::set_blocking(near.as_fd(), None)?;
    socket::set_blocking(far.as_fd(), None)?;
    let pages = Pages::new(1)?;
    let mut sockets = ProbeSockets {
        file: MemoryFile::new(&pages.as_slice()[..CALL_BYTES])?,
        file_at: 0,
        pages,
        pipe: Pipe::new()?,
        room: (transport == Transport::Unix).then(|| vec![0; SEND_BYTES]),
        near: near.as_raw_fd(),
        far: far.as_raw_fd(),
    };
    let ways = [
        SendBy::Copy,
        SendBy::Vmsplice,
        SendBy::Sendfile,
        SendBy::MsgZerocopy,
    ];
    let ways = match transport {
        Transport::Tcp if socket::set(sockets.near, SO_ZEROCOPY, 1).is_ok() => &ways[..],
        _ => &ways[..3],
    };
    let mut rates: Vec<(SendBy, f64)> = ways.iter().map(|&way| (way, 0.0)).collect();
    for _ in 0..TRIES {
        for (way, best) in &mut rates {
            // A way that the kernel refuses stays at 0.
            if let Ok(rate) = sockets.rate(*way) {
                *best = best.max(rate);
            }
        }
    }
    rates.retain(|&(way, rate)| way == SendBy::Copy || rate > 0.0);
    Ok(rates)
}

fn pair(transport: Transport) -> io::Result<(OwnedFd, OwnedFd)> {
    if transport == Transport::Unix {
        let (near, far) = UnixStream::pair()?;
        return Ok((near.into(), far.into()));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let place = listener.local_addr()?;
    let near = socket::open(place, libc::IPPROTO_TCP)?;
    // Costs are compared, and an algorithm that paces (bbr) would have them measured between its timers:
    // of the same way 40 or 110 Gbit/s, by chance. Before connecting, since a socket that once paced
    // goes on. Where it is not allowed, the host's own has to do.
    let _ = socket::set_congestion(near.as_raw_fd(), UNPACED);
    socket::set_blocking(near.as_fd(), Some(CONNECT_TIME))?;
    socket::connect(near.as_fd(), place)?;
    let near = TcpStream::from(near);
    let (far, peer) = listener.accept()?;
    if peer != near.local_addr()? {
        return Err(io::Error::other("another program connected to the probe"));
    }
    Ok((near.into(), far.into()))
}

struct ProbeSockets {
    pages: Pages,
    pipe: Pipe,
    file: MemoryFile,
    file_at: usize,
    /// Room to receive into, where the kernel cannot drop.
    room: Option<Vec<u8>>,
    near: RawFd,
    far: RawFd,
}

impl ProbeSockets {
    /// Sends and drops for a while; returns bytes a second of CPU time.
    fn rate(&mut self, way: SendBy) -> io::Result<f64> {
        let (end_ns, began_ns) = (now_ns() + TRY_NS, thread_cpu_ns());
        let mut moved = 0;
        while now_ns() < end_ns {
            match self.send(way) {
                Ok(bytes) => moved += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            self.drop_all()?;
        }
        let spent_s = thread_cpu_ns().saturating_sub(began_ns).max(1) as f64 / 1e9;
        Ok(moved as f64 / spent_s)
    }

    fn send(&mut self, way: SendBy) -> io::Result<usize> {
        let payload = self.pages.as_slice();
        match way {
            SendBy::Copy | SendBy::Auto => {
                socket::send_repeated(self.near, &payload[..SEND_BYTES], CALL_BYTES)
            }
            SendBy::Vmsplice => self.pipe.send(self.near, payload, CALL_BYTES),
            SendBy::Sendfile => self.file.send(self.near, &mut self.file_at, CALL_BYTES),
            SendBy::MsgZerocopy => {
                while zerocopy::reap(self.near, &mut ZeroCopyCount::default()) {}
                zerocopy::send(self.near, &payload[..CALL_BYTES])
            }
        }
    }

    fn drop_all(&mut self) -> io::Result<()> {
        loop {
            let dropped = match &mut self.room {
                Some(room) => socket::receive(self.far, room),
                None => socket::discard(self.far, CALL_BYTES),
            };
            match dropped {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_is_chosen_if_it_is_worth_it() {
        let check = |rates: &[(SendBy, f64)], by, reason: &str| {
            let reason = reason.to_owned();
            assert_eq!(fastest(rates), Choice { by, reason });
        };
        let (send, splice) = (SendBy::Copy, SendBy::Vmsplice);
        let rates = [(send, 10.0), (splice, 20.0), (SendBy::Sendfile, 15.0)];
        check(&rates, splice, "the fastest of a probe: 2.00 × send");
        let reason = "a probe found nothing faster: vmsplice 1.04 × send";
        check(&[(send, 10.0), (splice, 10.4)], send, reason);
        check(&[(send, 10.0)], send, "no other method works here");
    }

    #[test]
    fn every_way_moves_payload_in_the_probe() {
        for transport in [Transport::Tcp, Transport::Unix] {
            let rates = rates(transport).unwrap();
            assert!(rates.len() >= 3, "{transport:?}: {rates:?}");
            assert!(
                rates.iter().all(|(_, rate)| *rate > 0.0),
                "{transport:?}: {rates:?}"
            );
            assert_eq!(choice(transport), choice(transport), "the choice is kept");
        }
    }
}
