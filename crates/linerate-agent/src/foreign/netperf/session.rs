//! One control connection: its messages and its tests.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_compat::netperf::{
    MESSAGE_BYTES, Message, OmniRequest, OmniResults, Request, UNKNOWN_REQUEST, calibrated,
    debug_answer, refused,
};
use nix::errno::Errno;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::cpu::HostWatch;
use super::due::Due;
use super::load::Ended;
use super::plan::{self, Meant};
use super::refused::Refused;
use super::socket;
use super::test::Sees;
use super::test::{Place, Test};
use crate::api::connection::KEEPALIVE;
use crate::core::Core;
use crate::foreign::NETPERF;
use crate::foreign::guest::Claim;
use crate::limits::{Counts, Exceeded, Grant, Kind, Source, Whose};
use crate::log::Asker;

/// How long a client may take for its first message, and for any to arrive whole.
pub(super) const FIRST_MESSAGE: Duration = Duration::from_secs(5);
/// How long a client may do nothing between two tests.
const IDLE: Duration = Duration::from_secs(60);
/// How long it may take to take an answer.
const TAKE_DEADLINE: Duration = Duration::from_secs(10);
/// Open files of a test: where the payload comes in, and a connection.
const TEST_FILES: usize = 2;

/// One control connection.
pub(super) struct Session<'a> {
    core: &'a Arc<Core>,
    control: TcpStream,
    peer: SocketAddr,
    own: SocketAddr,
    sees: Sees,
}

/// What follows a message, if anything does.
type Answer = Result<Option<Message>, Gone>;

/// That the client has gone.
struct Gone;

impl<'a> Session<'a> {
    /// Returns a session with who is at the other end.
    pub(super) fn new(
        core: &'a Arc<Core>,
        control: TcpStream,
        peer: SocketAddr,
        sees: Sees,
    ) -> Option<Self> {
        let own = control.local_addr().ok()?;
        // Answers are one message each, for which the client waits.
        let _ = control.set_nodelay(true);
        // It says nothing while its test goes on: one that was switched off would be sent payload to its end.
        let _ = SockRef::from(&control).set_tcp_keepalive(&KEEPALIVE);
        Some(Self {
            core,
            control,
            peer,
            own,
            sees,
        })
    }

    /// Answers message after message until the client closes or says nothing for too long.
    pub(super) async fn serve(mut self, alive: &(impl Fn() + Sync)) {
        let mut patience = FIRST_MESSAGE;
        while let Some(message) = self.next(patience).await {
            patience = IDLE;
            alive();
            let said = match self.answer(&message, alive).await {
                Ok(None) => Ok(()),
                Ok(Some(answer)) => self.say(&answer).await,
                Err(gone) => Err(gone),
            };
            if said.is_err() {
                return;
            }
        }
    }

    /// Returns the next message: it may be waited for as long as `patience`, and then arrives whole.
    async fn next(&mut self, patience: Duration) -> Option<Message> {
        let mut bytes = [0; MESSAGE_BYTES];
        let begins = self.control.peek(&mut bytes[..1]);
        tokio::time::timeout(patience, begins).await.ok()?.ok()?;
        let whole = self.control.read_exact(&mut bytes);
        tokio::time::timeout(FIRST_MESSAGE, whole)
            .await
            .ok()?
            .ok()?;
        Some(Message::from_bytes(bytes))
    }

    async fn say(&mut self, message: &Message) -> Result<(), Gone> {
        let said = self.control.write_all(message.bytes());
        match tokio::time::timeout(TAKE_DEADLINE, said).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }

    async fn answer(&mut self, message: &Message, alive: &(impl Fn() + Sync)) -> Answer {
        match Request::decode(message) {
            Request::Debug => Ok(Some(debug_answer())),
            Request::Calibrate => Ok(Some(calibrated(HostWatch::begin().cpus()))),
            Request::Passphrase => Ok(None),
            Request::Unknown(_) => Ok(Some(refused(UNKNOWN_REQUEST))),
            Request::Omni(request) => match *request {
                Ok(request) => self.test(&request, alive).await,
                Err(error) => {
                    let refused = Refused::new(Errno::EINVAL, error.to_string());
                    Ok(Some(self.refuse(&refused)))
                }
            },
        }
    }

    /// Notes a refusal; returns what says it.
    fn refuse(&self, refused: &Refused) -> Message {
        let asker = Asker::of(self.peer.ip(), None);
        self.core.note_refusal(refused.kind, asker, &refused.reason);
        refused.message()
    }

    /// Carries out a test to its results.
    async fn test(&mut self, request: &OmniRequest, alive: &(impl Fn() + Sync)) -> Answer {
        let (plan, mut test, response) = match self.begin(request) {
            Ok(begun) => begun,
            Err(refused) => return Ok(Some(self.refuse(&refused))),
        };
        self.say(&response).await?;
        match self.watch(plan, &mut test, alive).await? {
            Ok(results) => Ok(Some(results.encode())),
            Err(failed) => {
                test.note_failure(&failed.reason);
                Ok(Some(failed.message()))
            }
        }
    }

    /// Begins a test, if there is a place for it; returns it with what its client is told.
    fn begin(&self, request: &OmniRequest) -> Result<(Meant, Test, Message), Refused> {
        let peer = self.peer.ip().to_canonical();
        let limits = &self.core.config().limits;
        let plan = plan::plan(request, peer, limits)?;
        let grant = self.claim(request, &plan)?;
        let opened = socket::open(request, &plan, self.own).map_err(|error| failed(&error))?;
        let claim = Claim::new(self.core, NETPERF, self.peer)
            .ok_or_else(|| Refused::busy("a netperf client while the host was in use"))?;
        let transport = if plan.is_udp { "UDP" } else { "TCP" };
        claim.note_traffic(transport, 1);
        let grant = Mutex::new(grant);
        let place = Place { claim, grant };
        let response = opened.response.encode();
        let test = Test::begin(request, plan, opened, place, (peer, self.sees))
            .map_err(|error| failed(&error))?;
        Ok((plan, test, response))
    }

    /// Claims what a test takes of what all callers without the token may.
    fn claim(&self, request: &OmniRequest, plan: &Meant) -> Result<Grant, Refused> {
        let buffers = socket::buffers_bytes(request, plan);
        let counts = Counts::of_trial(1, TEST_FILES).with_memory(buffers);
        let network = Whose::Network(Source::of(self.peer.ip()));
        let grant = self.core.claim_of(network, counts, None);
        grant.map_err(|exceeded| match exceeded {
            Exceeded::Count {
                kind: Kind::Trials, ..
            } => Refused::busy(exceeded.to_string()),
            _ => Refused::new(Errno::EDQUOT, exceeded.to_string()),
        })
    }

    /// Watches a test to its end; returns what was counted, or why the test failed.
    async fn watch(
        &mut self,
        plan: Meant,
        test: &mut Test,
        alive: &(impl Fn() + Sync),
    ) -> Result<Result<OmniResults, Refused>, Gone> {
        let mut due = Due::new(plan);
        let (results, ended) = loop {
            let mut byte = [0];
            tokio::select! {
                // A test that has ended is told of before the end of who waits for it.
                biased;
                results = test.results() => break results.ok_or(Gone)?,
                // Nothing is said while a test goes on: it is the end of who says it.
                _ = self.control.peek(&mut byte) => {
                    test.stop();
                    // Its thread ends within a moment, and then the place is free.
                    test.results().await;
                    return Err(Gone);
                }
                () = tokio::time::sleep(due.wait()) => due.poll(test, alive),
            }
        };
        // What came after the last look counts, too.
        test.excess();
        Ok(match (due.failed, ended) {
            (Some(failed), _) => Err(failed),
            (None, Ended::Whole | Ended::Stopped) => Ok(results),
            (None, Ended::NobodyCame) => {
                let reason = "the client did not bring its payload";
                Err(Refused::new(Errno::ETIMEDOUT, reason))
            }
            (None, Ended::Failed(error)) => Err(self::failed(&error)),
        })
    }
}

/// Returns what the client is told where the system refused something.
fn failed(error: &io::Error) -> Refused {
    let number = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
    Refused::new(number, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_system_is_told_by_its_number() {
        let told = |error| failed(&error).error;
        assert_eq!(told(io::Error::from_raw_os_error(98)), Errno::EADDRINUSE);
        assert_eq!(told(io::ErrorKind::Other.into()), Errno::EIO);
    }
}
