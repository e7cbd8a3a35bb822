//! First datagrams of new peers, on the same port as the listener of connections.
//!
//! A native client says hello, is challenged with a nonce, echoes it and is confirmed
//! ([`linerate_engine::opening`]). Until the echo nothing is kept of it: the nonce is computed from
//! its address. Whoever does not know the cookie of a trial that waits for flows gets no answer at
//! all, and no answer is longer than what it answers.
//!
//! What nobody waits for does not come here where the kernel takes a filter ([`linerate_engine::Sieve`]); what
//! does is looked at as if there were none.
//!
//! What is no word of ours is shown to [`Strangers`], where other protocols are taken up.

use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_engine::opening::{HELLO_BYTES, NONCE_BYTES, Signal, challenge};
use linerate_engine::{Arrival, DatagramListener};
use linerate_model::manner::Transport;
use tokio::io::Interest;
use tokio::time::{Instant, MissedTickBehavior};

use super::hello::Hello;
use crate::access::Access;
use crate::core::{CONNECT_DEADLINE, Core};

/// What is read of a first datagram: more than any greeting that is known.
const FIRST_BYTES_MAX: usize = 64;
/// First datagrams taken up in one go.
const IN_ONE_GO: usize = 64;
/// Pause after that many, so that a flood of garbage costs a tenth of a CPU at the most and honest
/// clients, who repeat themselves, still get through: 64 000 a second are looked at.
const PAUSE: Duration = Duration::from_millis(1);
/// Time between two looks at flows whose clients may not have heard that they exist; half the
/// shortest pause after which a client asks again.
const CONFIRM_AGAIN: Duration = Duration::from_millis(50);

/// Looks at a first datagram that is not ours and at who sent it; says how to welcome that peer,
/// or nothing, and then the peer gets no answer.
///
/// It is called on the listener's own thread and must not block. A peer's address may be false:
/// what is answered before it has shown that it reads the answers must not be longer than its
/// datagram, and only whom a control connection has announced should be welcome.
pub(crate) type Strangers = Arc<dyn Fn(&[u8], SocketAddr) -> Option<Welcome> + Send + Sync>;

/// How a peer of another protocol is taken up.
pub(crate) struct Welcome {
    /// What it is answered, from the socket of its own.
    pub(crate) answer: Vec<u8>,
    /// Takes over the socket: bound to the address and port that the peer wrote to, connected to
    /// the peer, not blocking, its first datagram read and answered.
    pub(crate) take: Box<dyn FnOnce(OwnedFd) + Send>,
}

/// Serves first datagrams for ever.
pub(super) async fn serve(
    listener: DatagramListener,
    mut first: FirstDatagrams,
) -> std::io::Result<()> {
    // The runtime watches a descriptor of its own; what is read is read from the listener.
    let watch = UdpSocket::from(listener.as_fd().try_clone_to_owned()?);
    let watch = tokio::net::UdpSocket::from_std(watch)?;
    // One for all turns: a pause that each began anew would never be over while datagrams come.
    let mut confirm_again = tokio::time::interval(CONFIRM_AGAIN);
    confirm_again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            ready = watch.readable() => {
                ready?;
                // A full go is likely a flood; what ends one is that there is no more.
                if watch.try_io(Interest::READABLE, || first.take_up(&listener)).is_ok() {
                    tokio::time::sleep(PAUSE).await;
                }
            }
            _ = confirm_again.tick(), if Instant::now() < first.confirm_until => {
                first.core.confirm_datagrams_again();
            }
        }
    }
}

/// Who looks at first datagrams.
pub(super) struct FirstDatagrams {
    core: Arc<Core>,
    strangers: Strangers,
    access: Arc<Access>,
    /// Keys of the nonces, 64 bits of nonce each.
    secret: [RandomState; 2],
    /// Until when a client may ask for its confirmation again.
    confirm_until: Instant,
}

impl FirstDatagrams {
    /// Returns who looks at those of callers whom `access` takes.
    pub(super) fn new(core: Arc<Core>, strangers: Strangers, access: Arc<Access>) -> Self {
        Self {
            core,
            strangers,
            access,
            secret: [RandomState::new(), RandomState::new()],
            confirm_until: Instant::now(),
        }
    }

    /// Takes up first datagrams until there are none, which is the error returned, or for one go.
    fn take_up(&mut self, listener: &DatagramListener) -> std::io::Result<()> {
        for _ in 0..IN_ONE_GO {
            let mut arrivals = vec![listener.receive(FIRST_BYTES_MAX)?];
            while let Some(arrival) = arrivals.pop() {
                arrivals.extend(self.handle(listener, &arrival));
            }
        }
        Ok(())
    }

    /// Handles one first datagram; returns those of others that were caught with it.
    fn handle(&mut self, listener: &DatagramListener, arrival: &Arrival) -> Vec<Arrival> {
        if !self.access.takes(arrival.peer.ip()) {
            return Vec::new();
        }
        match Signal::read(&arrival.bytes) {
            Some(Signal::Hello(hello)) => {
                if self.is_expected(hello) {
                    let nonce = self.nonce(hello, arrival.peer);
                    // What is lost here is asked for again.
                    let _ = listener.answer(arrival, &challenge(hello, &nonce));
                }
                Vec::new()
            }
            Some(Signal::Echo { hello, nonce }) => {
                if *nonce == self.nonce(hello, arrival.peer) && self.is_expected(hello) {
                    return self.open(listener, arrival, hello);
                }
                Vec::new()
            }
            Some(_) => Vec::new(),
            None => self.welcome(listener, arrival),
        }
    }

    fn is_expected(&self, hello: &[u8; HELLO_BYTES]) -> bool {
        Hello::decode(hello).is_some_and(|hello| self.core.expects_datagrams(hello))
    }

    /// Gives a flow its socket.
    fn open(
        &mut self,
        listener: &DatagramListener,
        arrival: &Arrival,
        hello: &[u8; HELLO_BYTES],
    ) -> Vec<Arrival> {
        let (Some(hello), Ok((socket, strays))) = (Hello::decode(hello), listener.accept(arrival))
        else {
            return Vec::new();
        };
        // Without confirmation the client asks again, and its controller reports what is missing.
        if self.core.deliver(hello, socket, Transport::Udp).is_ok() {
            self.confirm_until = Instant::now() + CONNECT_DEADLINE;
        }
        strays
    }

    fn welcome(&self, listener: &DatagramListener, arrival: &Arrival) -> Vec<Arrival> {
        let Some(welcome) = (self.strangers)(&arrival.bytes, arrival.peer) else {
            return Vec::new();
        };
        let Ok((socket, strays)) = listener.accept(arrival) else {
            return Vec::new();
        };
        let socket = UdpSocket::from(socket);
        if socket.send(&welcome.answer).is_ok() {
            (welcome.take)(socket.into());
        }
        strays
    }

    /// Returns what only a reader of datagrams to `peer` can know.
    fn nonce(&self, hello: &[u8; HELLO_BYTES], peer: SocketAddr) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        for (half, key) in nonce.chunks_exact_mut(8).zip(&self.secret) {
            half.copy_from_slice(&key.hash_one((hello, peer)).to_be_bytes());
        }
        nonce
    }
}
