//! Clients of netperf: each test of one is a run of its own, shared with others.
//!
//! A control connection carries one test after another; for each a socket of its own is opened, to which the
//! client brings the payload. netperf's clients hold no token, so the limits for strangers are theirs, wherever
//! they call from. What keeps the server from being of use against others:
//!
//! 1. Payload is taken from the address of the control connection only, and sent there only. An address that
//!    finished a handshake of TCP is not forged.
//! 2. Datagrams go to a port from which one came. A test in which the server alone sends datagrams is refused.
//! 3. A response is as long as the client asks for, so a small request may have a large one: to the same address.

/// How busy the CPUs were.
mod cpu;
/// What is due while a test goes on.
mod due;
/// The payload of one test, by calls that block.
mod load;
/// What is asked for as what is done, and what is refused.
mod plan;
/// What is refused, and how that is said.
mod refused;
/// One control connection: its messages and its tests.
mod session;
/// The socket to which a client brings its payload.
mod socket;
/// A test under way: its thread, and what is watched of it.
mod test;

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_compat::netperf::{MESSAGE_BYTES, refused};
use nix::errno::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::access::{Access, Scope, Shown, now_s};
use crate::core::Core;
use crate::log::Asker;
use crate::serve::local::user_of;
use session::Session;
use test::Sees;

/// What the log says of clients that were not let in.
const NOT_PUBLIC: &str = "by netperf, whose clients have no token (`serve --public` lets them in)";

/// Where netperf's clients come in.
pub(crate) struct Door {
    core: Arc<Core>,
    access: Arc<Access>,
}

impl Door {
    /// Returns a door that is open to those who may measure without a token, since netperf has none to show.
    pub(crate) fn new(core: Arc<Core>, access: Arc<Access>) -> Self {
        Self { core, access }
    }

    /// Takes up a control connection until its end. A test says through `alive` that it goes on.
    pub(crate) async fn take_up(
        &self,
        mut stream: TcpStream,
        peer: SocketAddr,
        alive: impl Fn() + Send + Sync,
    ) {
        let user = user_of(&stream, peer);
        if !self.access.is_open_to(user) {
            self.note_refusal(peer, "unauthorized", NOT_PUBLIC);
            return say_no(&mut stream).await;
        }
        let caller = self.access.caller(Shown::default(), user, now_s());
        let sees = match caller {
            Ok(caller) if caller.may(Scope::Observe) => Sees::Host,
            _ => Sees::OwnTest,
        };
        if let Some(session) = Session::new(&self.core, stream, peer, sees) {
            session.serve(&alive).await;
        }
    }

    fn note_refusal(&self, peer: SocketAddr, kind: &'static str, why: &str) {
        self.core
            .note_refusal(kind, Asker::of(peer.ip(), None), why);
    }
}

/// Answers whatever a client asks first with the error of those who may not.
async fn say_no(stream: &mut TcpStream) {
    let mut asked = [0; MESSAGE_BYTES];
    let no = refused(Errno::EACCES as u32);
    let said = async {
        // A connection that is closed with bytes unread is reset, and the reset may overtake the answer.
        stream.read_exact(&mut asked).await?;
        stream.write_all(no.bytes()).await?;
        stream.shutdown().await
    };
    // Whoever has gone has been told nothing, and does not care.
    let _ = tokio::time::timeout(session::FIRST_MESSAGE, said).await;
}

#[cfg(test)]
mod tests {
    use linerate_compat::netperf::{
        Length, Message, OmniRequest, OmniResponse, OmniTransport, Way,
    };
    use tokio::net::TcpListener;

    use super::*;
    use crate::AgentConfig;
    use crate::access::Strangers;
    use crate::api::LimitsInfo;

    /// Returns the error that a client at `peer` gets for the first test it asks for.
    async fn told(strangers: Strangers, peer: &str) -> Option<u32> {
        let core = Arc::new(Core::new(AgentConfig {
            host_name: "test".to_owned(),
            limits: LimitsInfo::default(),
            lab: false,
        }));
        let access = Arc::new(Access::new(None, None, strangers, Vec::new()));
        let door = Door::new(core, access);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = async {
            let mut control = TcpStream::connect(address).await.unwrap();
            let asked = OmniRequest::of(OmniTransport::Tcp, Way::In, Length::Seconds(1)).encode();
            control.write_all(asked.bytes()).await.unwrap();
            let mut answer = [0; MESSAGE_BYTES];
            control.read_exact(&mut answer).await.unwrap();
            OmniResponse::decode(&Message::from_bytes(answer)).err()
        };
        let server = async {
            let (stream, _) = listener.accept().await.unwrap();
            door.take_up(stream, peer.parse().unwrap(), || ()).await;
        };
        tokio::join!(client, server).0
    }

    #[tokio::test]
    async fn strangers_are_refused_unless_everyone_may_measure() {
        let far = "192.0.2.1:9";
        let refused = Some(Errno::EACCES as u32);
        assert_eq!(told(Strangers::Refused, far).await, refused);
        assert_eq!(told(Strangers::Measure, far).await, None);
        assert_eq!(told(Strangers::Refused, "[2001:db8::1]:9").await, refused);
    }
}
