//! The connections that requests to an agent travel on.
//!
//! Both ends send segments of at most [`SEGMENT_BYTES_MAX`], which the handshake tells the agent. Where a
//! tunnel or a wrong MTU swallows full-size packets and nobody tells the sender (RFC 2923, section 2.1),
//! measured data stands still or takes another way, but what is said about it arrives.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Error, Timeout};

/// Largest segment: what IPv6 carries everywhere (RFC 8200, section 5: 1280 B) without the headers of
/// IPv6, TCP and its timestamps. QUIC's first packets have 1200 B for the same reason.
const SEGMENT_BYTES_MAX: u32 = 1208;

/// How the kernel asks whether the other end is still there while nothing else is said. Firewalls and translators on the
/// way forget connections that are idle, some within 15 s, and a host that was switched off says nothing. So often that
/// a path on which nine in ten are lost ends one connection in twenty.
pub(crate) const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(5))
    .with_interval(Duration::from_secs(1))
    .with_retries(30);

/// Connects with small segments.
#[derive(Debug, Default)]
pub(super) struct SmallSegments(());

impl<In: Transport> Connector<In> for SmallSegments {
    type Out = Either<In, Connection>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        if let Some(chained) = chained {
            return Ok(Some(Either::A(chained)));
        }
        let addresses = details.addrs.len().max(1) as u32;
        let each = details.timeout.not_zero().map(|all| *all / addresses);
        let mut failed = Error::HostNotFound;
        for address in &details.addrs {
            match connect(*address, each) {
                Ok(stream) => {
                    stream.set_nodelay(details.config.no_delay())?;
                    let (input, output) = (
                        details.config.input_buffer_size(),
                        details.config.output_buffer_size(),
                    );
                    return Ok(Some(Either::B(Connection {
                        stream,
                        buffers: LazyBuffers::new(input, output),
                    })));
                }
                Err(error) => failed = in_time(error, Timeout::Connect),
            }
        }
        Err(failed)
    }
}

fn connect(address: SocketAddr, timeout: Option<Duration>) -> io::Result<TcpStream> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Where the kernel does not take it, segments are as large as the path's devices say.
    let _ = socket.set_tcp_mss(SEGMENT_BYTES_MAX);
    let _ = socket.set_tcp_keepalive(&KEEPALIVE);
    match timeout {
        Some(timeout) => socket.connect_timeout(&address.into(), timeout)?,
        None => socket.connect(&address.into())?,
    }
    Ok(socket.into())
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    buffers: LazyBuffers,
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let left = timeout.not_zero().map(|left| *left);
        self.stream.set_write_timeout(left)?;
        let written = self.stream.write_all(&self.buffers.output()[..amount]);
        written.map_err(|error| in_time(error, timeout.reason))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let left = timeout.not_zero().map(|left| *left);
        self.stream.set_read_timeout(left)?;
        let input = self.buffers.input_append_buf();
        let read = loop {
            match self.stream.read(input) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let read = read.map_err(|error| in_time(error, timeout.reason))?;
        self.buffers.input_appended(read);
        Ok(read > 0)
    }

    fn is_open(&mut self) -> bool {
        // A word that nobody asked for would be taken for the next answer.
        let quiet = |stream: &TcpStream| {
            stream.set_nonblocking(true)?;
            let peeked = stream.peek(&mut [0]);
            stream.set_nonblocking(false)?;
            peeked
        };
        quiet(&self.stream).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Returns the error of a call that had so long.
fn in_time(error: io::Error, reason: Timeout) -> Error {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Error::Timeout(reason),
        _ => Error::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn both_ends_send_segments_that_pass_every_path() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback");
        let address = listener.local_addr().expect("bound");
        let near = connect(address, Some(Duration::from_secs(5))).expect("it listens");
        let (far, _) = listener.accept().expect("a connection");
        for end in [near, far] {
            let most = socket2::SockRef::from(&end).tcp_mss().expect("a number");
            assert!(most <= SEGMENT_BYTES_MAX, "{most} B");
        }
    }

    /// A firewall on the way forgets a connection on which nothing is said while a trial goes on.
    #[test]
    fn an_idle_connection_is_kept_alive() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback");
        let address = listener.local_addr().expect("bound");
        let near = connect(address, Some(Duration::from_secs(5))).expect("it listens");
        let near = socket2::SockRef::from(&near);
        assert!(near.keepalive().expect("a socket says so"));
        let [time, interval] = [near.tcp_keepalive_time(), near.tcp_keepalive_interval()];
        assert_eq!(time.expect("a time"), Duration::from_secs(5));
        assert_eq!(interval.expect("a time"), Duration::from_secs(1));
    }
}
