//! Opening flows of datagrams, and their settings.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_model::datagram::Datagrams;
use linerate_model::manner::{DATAGRAM_BATCH, ReceiveBy, Transport, WaitBy, datagrams_gather};
use linerate_model::setting::name;
use linerate_model::workload::{Part, Setting};

use crate::flow::opening::{self, ECHO_BYTES, HELLO_BYTES, Signal};
use crate::flow::{ConnectError, Flow, FlowConfig, Shared};
use crate::flow::{options, pace};
use crate::sys::clock::now_ns;
use crate::sys::datagram;
use crate::sys::route;
use crate::sys::socket;
use crate::sys::xdp::Frames;

/// How long the first answer may take before the question is asked again; doubled each time.
const REPEAT_MS_FIRST: u64 = 100;
/// The longest pause between two such questions.
const REPEAT_MS_MAX: u64 = 1_000;
/// The shortest answer to a greeting that is not ours, in bytes.
const FOREIGN_ANSWER_BYTES: usize = 4;

/// Returns whether the flow is one of datagrams.
pub(crate) fn is_datagram(config: &FlowConfig) -> bool {
    config.manner.transport == Transport::Udp
}

/// Opens a flow of datagrams to `peer`.
///
/// A `hello` of [`HELLO_BYTES`] that begins as ours do is brought to an agent, repeated until it
/// has confirmed the flow. Any other is sent once, and whatever comes back is taken for an answer:
/// what iperf3 does, whose server takes a second greeting for payload. Without a hello nothing is
/// exchanged.
pub(super) fn connect(
    config: FlowConfig,
    peer: SocketAddr,
    bind: Option<SocketAddr>,
    hello: &[u8],
    deadline: Duration,
) -> Result<Flow, ConnectError> {
    let end_ns = now_ns().saturating_add(deadline.as_nanos() as u64);
    let socket = datagram::open(peer).map_err(|error| ConnectError::open(error, peer))?;
    prepare(socket.as_raw_fd(), peer, &config)?;
    if let Some(address) = bind {
        socket::bind(socket.as_fd(), address)
            .map_err(|source| ConnectError::Bind { address, source })?;
    }
    socket::connect(socket.as_fd(), peer)
        .map_err(|error| ConnectError::establish(error, peer, deadline))?;
    let greeted = match (hello.first_chunk::<HELLO_BYTES>(), Signal::read(hello)) {
        (Some(hello), Some(Signal::Hello(_))) => greet(socket.as_fd(), hello, end_ns),
        _ if hello.is_empty() => Ok(()),
        _ => greet_foreign(socket.as_fd(), hello, end_ns),
    };
    greeted.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => ConnectError::Unanswered { peer, deadline },
        _ => ConnectError::establish(error, peer, deadline),
    })?;
    flow(config, socket)
}

/// Makes a flow of a connected UDP socket.
pub(super) fn adopt(config: FlowConfig, socket: OwnedFd) -> Result<Flow, ConnectError> {
    let inspect = |source| ConnectError::Inspect { source };
    let peer = socket::remote(socket.as_fd()).map_err(inspect)?;
    prepare(socket.as_raw_fd(), peer, &config)?;
    flow(config, socket)
}

fn flow(config: FlowConfig, socket: OwnedFd) -> Result<Flow, ConnectError> {
    let inspect = |source| ConnectError::Inspect { source };
    let local = socket::local(socket.as_fd()).map_err(inspect)?;
    let remote = socket::remote(socket.as_fd()).map_err(inspect)?;
    let frames = frames(&config, local, remote).map_err(|reason| ConnectError::Xdp {
        peer: remote,
        reason,
    })?;
    let settings = granted_settings(socket.as_raw_fd(), &config).map_err(inspect)?;
    let ends = (local.into(), remote.into());
    let shared = Shared {
        datagrams: Some(Arc::default()),
        frames: Mutex::new(frames),
        ..Shared::new(config, socket, ends, settings.into())
    };
    Ok(Flow { shared })
}

/// Returns the frames of a flow that sends past its socket, or why it cannot.
fn frames(
    config: &FlowConfig,
    local: SocketAddr,
    remote: SocketAddr,
) -> Result<Option<Box<Frames>>, String> {
    let manner = &config.manner;
    let (Some((_, message_bytes)), Part::Sender) = (config.traffic.stream(), config.part) else {
        return Ok(None);
    };
    if manner.wait != WaitBy::Xdp {
        return Ok(None);
    }
    let way = route::way(local.ip(), remote.ip())?;
    let tos = config.options.tos.unwrap_or(0);
    let frames = Frames::open(
        way,
        (local, remote),
        tos,
        message_bytes.0 as usize,
        manner.batch as usize,
    )?;
    Ok(Some(Box::new(frames)))
}

fn prepare(fd: RawFd, peer: SocketAddr, config: &FlowConfig) -> Result<(), ConnectError> {
    options::apply(fd, &config.options)?;
    datagram::report_errors(fd, peer).map_err(|source| ConnectError::Inspect { source })?;
    match (config.traffic.stream(), config.part) {
        (Some((_, message_bytes)), Part::Sender) if config.manner.segments > 1 => {
            options::set(fd, datagram::UDP_SEGMENT, message_bytes.0 as i32)?;
        }
        (Some(_), Part::Receiver) if config.manner.gro => {
            options::set(fd, datagram::UDP_GRO, 1)?;
        }
        _ => {}
    }
    Ok(())
}

/// Brings a hello to an agent and shows that answers reach this end.
fn greet(socket: BorrowedFd<'_>, hello: &[u8; HELLO_BYTES], end_ns: u64) -> io::Result<()> {
    let mut question = Question {
        bytes: [0; ECHO_BYTES],
        length: HELLO_BYTES,
    };
    question.bytes[..HELLO_BYTES].copy_from_slice(hello);
    let mut pause_ms = REPEAT_MS_FIRST;
    'asking: loop {
        send(socket, &question.bytes[..question.length])?;
        let wait_end_ns = end_ns.min(now_ns() + pause_ms * 1_000_000);
        let mut room = [0; ECHO_BYTES];
        while let Some(length) = receive(socket, &mut room, wait_end_ns)? {
            match Signal::read(&room[..length.min(ECHO_BYTES)]) {
                Some(Signal::Confirmation) if room[12..16] == hello[12..16] => {
                    return Ok(());
                }
                Some(Signal::Challenge(nonce)) if question.length == HELLO_BYTES => {
                    question.bytes = opening::echo(hello, nonce);
                    question.length = ECHO_BYTES;
                    pause_ms = REPEAT_MS_FIRST;
                    continue 'asking;
                }
                // Repeated, or of somebody who guessed our port.
                _ => {}
            }
        }
        if now_ns() >= end_ns {
            return Err(io::ErrorKind::TimedOut.into());
        }
        pause_ms = (pause_ms * 2).min(REPEAT_MS_MAX);
    }
}

/// What is asked until it is answered.
struct Question {
    bytes: [u8; ECHO_BYTES],
    length: usize,
}

/// Greets a server of another kind, and waits for whatever it answers.
fn greet_foreign(socket: BorrowedFd<'_>, greeting: &[u8], end_ns: u64) -> io::Result<()> {
    send(socket, greeting)?;
    let mut room = [0; FOREIGN_ANSWER_BYTES];
    loop {
        if !wait(socket, end_ns)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match datagram::take(socket.as_raw_fd(), &mut room, true) {
            // Payload has overtaken the answer: it is left for the receiver to count.
            Ok(length) if length > FOREIGN_ANSWER_BYTES => return Ok(()),
            Ok(length) => {
                datagram::take(socket.as_raw_fd(), &mut room, false)?;
                if length == FOREIGN_ANSWER_BYTES {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the length of a datagram that came until `end_ns`, its beginning in `room`.
fn receive(socket: BorrowedFd<'_>, room: &mut [u8], end_ns: u64) -> io::Result<Option<usize>> {
    while wait(socket, end_ns)? {
        match datagram::take(socket.as_raw_fd(), room, false) {
            Ok(length) => return Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Waits until the socket is readable; false once it is `end_ns`, whatever has come: a peer that goes on
/// sending would be listened to for ever.
fn wait(fd: BorrowedFd<'_>, end_ns: u64) -> io::Result<bool> {
    loop {
        let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()));
        if left.is_zero() {
            return Ok(false);
        }
        match socket::wait_readable(fd, left) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    match socket::send(socket.as_raw_fd(), bytes) {
        Ok(_) => Ok(()),
        // Dropped by a full queue of this host: as good as lost on the way, and repeated.
        Err(error) if is_passing(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns whether a send call failed for a reason that another one need not meet: a full queue of
/// this host, or news of an earlier datagram.
fn is_passing(error: &io::Error) -> bool {
    is_news(error)
        || matches!(
            error.raw_os_error(),
            Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR)
        )
}

/// Returns whether a call brought news from the network that do not end the flow. They are about an
/// earlier datagram: the kernel has not looked at the one that the call was to send.
pub(crate) fn is_news(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EMSGSIZE | libc::EPROTO)
    )
}

/// Returns what one end of a flow of datagrams has counted so far, with what its socket says.
pub(crate) fn counts(flow: &Shared) -> Option<Datagrams> {
    let counters = flow.datagrams.as_ref()?;
    Some(counters.read(datagram::drops(flow.fd()).map(u64::from)))
}

impl Flow {
    /// Confirms the flow again if its peer asks for that; returns whether it did.
    ///
    /// A confirmation may be lost; the client then repeats its echo, which now comes to the flow's
    /// own socket. To be called from time to time until the flow is launched.
    pub fn confirm_again(&self, hello: &[u8; HELLO_BYTES]) -> io::Result<bool> {
        let fd = self.shared.fd();
        let mut asked = false;
        let mut room = [0; ECHO_BYTES];
        while datagram::take(fd, &mut room, true).is_ok_and(|length| length == ECHO_BYTES)
            && matches!(Signal::read(&room), Some(Signal::Echo { hello: of, .. }) if of == hello)
        {
            datagram::take(fd, &mut room, false)?;
            asked = true;
        }
        if asked {
            self.confirm(hello)?;
        }
        Ok(asked)
    }

    /// Tells the client that its flow exists.
    pub fn confirm(&self, hello: &[u8; HELLO_BYTES]) -> io::Result<()> {
        send(self.shared.socket(), &opening::confirmation(hello))
    }
}

/// Why datagrams go in batches that nobody asked for: see
/// [`linerate_model::workload::Workload::datagram_batch`].
const CHOSEN_BATCH: &str = "chosen for several flows of small datagrams without a rate";
/// Why they are received in batches: see [`datagrams_gather`].
const CHOSEN_GATHERING: &str = "chosen for small datagrams without a rate";
/// The same with AF_XDP.
const CHOSEN_FRAMES: &str = "chosen without a rate";

/// Returns every setting of a flow of datagrams as requested and granted.
pub(super) fn granted_settings(fd: RawFd, config: &FlowConfig) -> io::Result<Vec<Setting>> {
    let mut all = options::buffers(fd, &config.options)?;
    let (name, mechanism) = mechanism(config);
    let manner = &config.manner;
    let is_gathered = config.part == Part::Receiver && receive_batch(config) > manner.batch;
    let why = match (manner.batch_is_chosen, manner.wait) {
        (false, _) => is_gathered.then(|| CHOSEN_GATHERING.to_owned()),
        (true, WaitBy::Xdp) => Some(CHOSEN_FRAMES.to_owned()),
        (true, _) => Some(CHOSEN_BATCH.to_owned()),
    };
    all.push(Setting::granted(name, None, Some(mechanism)).because(why));
    all.extend(pace::set(fd, config).1);
    all.extend(options::type_of_service(fd, &config.options));
    Ok(all)
}

/// Returns how many datagrams a receive call of a flow takes at the most.
pub(crate) fn receive_batch(config: &FlowConfig) -> u32 {
    let manner = &config.manner;
    let gather = datagrams_gather(&config.traffic, &config.options, manner);
    if gather && manner.batch <= 1 {
        DATAGRAM_BATCH
    } else {
        manner.batch
    }
}

/// Returns by which calls the end moves datagrams, as a setting's name and value.
fn mechanism(config: &FlowConfig) -> (&'static str, String) {
    let manner = &config.manner;
    match config.part {
        Part::Sender | Part::Requester => {
            let call = match manner.batch {
                batch if manner.wait == WaitBy::Xdp => {
                    format!("AF_XDP in copy mode, frames per call: {batch}")
                }
                0 | 1 => "send".to_owned(),
                batch => format!("sendmmsg of {batch}"),
            };
            let buffers = match manner.segments {
                0 | 1 => String::new(),
                segments => format!(", UDP_SEGMENT of {segments}"),
            };
            (name::SEND, call + &buffers)
        }
        Part::Receiver | Part::Responder => {
            let call = match (receive_batch(config), manner.gro) {
                (0 | 1, false) => "recv".to_owned(),
                (0 | 1, true) => "recvmsg".to_owned(),
                (batch, _) => format!("recvmmsg of {batch}"),
            };
            let put_together = if manner.gro { ", UDP_GRO" } else { "" };
            let discard = match manner.receive {
                ReceiveBy::Copy => "",
                ReceiveBy::Discard => ", first bytes only",
            };
            (name::RECEIVE, call + put_together + discard)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    /// A peer that never stops sending has always sent more when the time is up.
    #[test]
    fn what_has_come_when_the_time_is_up_is_not_waited_for() {
        let (near, far) = (
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
        );
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        let check = |greeted: io::Result<()>| {
            assert_eq!(greeted.unwrap_err().kind(), io::ErrorKind::TimedOut);
            near.recv(&mut [0; 64]).unwrap();
        };
        for _ in 0..10 {
            far.send(b"x").unwrap();
        }
        check(greet(near.as_fd(), &[0; HELLO_BYTES], now_ns()));
        check(greet_foreign(near.as_fd(), b"9876", now_ns()));
    }
}
