//! A test under way: its thread, and what is watched of it.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use linerate_compat::netperf::{CpuShares, OmniRequest, OmniResponse, OmniResults, flag};
use linerate_engine::now_ns;
use tokio::sync::oneshot;

use super::cpu::{HostWatch, ThreadWatch};
use super::load::{self, Counted, Ended, Load, Shared};
use super::plan::Meant;
use super::socket::Opened;
use crate::foreign::NETPERF;
use crate::foreign::guest::Claim;
use crate::limits::{Grant, above};
use crate::sync::lock;

/// CPUs that a thread can be told to run on: numbers beyond are no host's.
const CPU_NUMBERS: u32 = 1 << 16;

/// A place at the desk and what may be taken there; given back when the test's thread has ended, too.
pub(super) struct Place {
    pub(super) claim: Claim,
    pub(super) grant: Mutex<Grant>,
}

/// What of this host a client may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sees {
    /// How busy all of it is.
    Host,
    /// What its own test takes.
    OwnTest,
}

/// A test under way; it ends soon after this is dropped.
pub(super) struct Test {
    shared: Arc<Shared>,
    place: Arc<Place>,
    moved: oneshot::Receiver<(Counted, Ended, CpuShares)>,
    begin_ns: u64,
    /// What was taken for the sum of all guests.
    taken_bytes: u64,
    plan: Meant,
    opened: OmniResponse,
    names_congestion: bool,
    cpu: HostWatch,
    shares: Shares,
}

/// How busy the CPUs were, as far as it is known.
#[derive(Debug, Clone, Copy)]
enum Shares {
    /// Nobody asks.
    Unasked,
    /// What the test's thread took of them is wanted.
    OwnTest,
    /// What all took of them is wanted.
    Host,
    /// It is known.
    Read(CpuShares),
}

impl Test {
    /// Begins a test on a thread of its own: it blocks for as long as the test goes on.
    pub(super) fn begin(
        request: &OmniRequest,
        plan: Meant,
        opened: Opened,
        place: Place,
        (peer, sees): (IpAddr, Sees),
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let load = Load {
            role: plan.role,
            payload: opened.payload,
            peer,
            receive_bytes: opened.receive_bytes,
            send_bytes: opened.send_bytes,
            units: plan.units,
            interval: request.interval,
            rate: lock(&place.grant).rate(),
            shared: Arc::clone(&shared),
        };
        let place = Arc::new(place);
        let (tell, moved) = oneshot::channel();
        let (pinned, kept) = (request.cpu, Arc::clone(&place));
        let cpu = HostWatch::begin();
        let cpus = cpu.cpus();
        std::thread::Builder::new()
            .name(NETPERF.to_owned())
            .spawn(move || {
                if let Some(cpu) = pinned.filter(|cpu| *cpu < CPU_NUMBERS) {
                    // On a host that lacks it the thread runs anywhere, as netperf's does.
                    let _ = linerate_engine::pin(&[cpu as usize]);
                }
                let own = ThreadWatch::begin();
                let (counted, ended) = load::run(load);
                let own = own.shares(cpus, counted.watched_ns());
                drop(kept);
                // Nobody waits for it where the client has gone.
                let _ = tell.send((counted, ended, own));
            })?;
        let shares = match (request.has(flag::MEASURES_CPU), sees) {
            (false, _) => Shares::Unasked,
            (true, Sees::OwnTest) => Shares::OwnTest,
            (true, Sees::Host) => Shares::Host,
        };
        Ok(Self {
            shared,
            place,
            moved,
            begin_ns: now_ns(),
            taken_bytes: 0,
            plan,
            opened: opened.response,
            names_congestion: request.has(flag::NAMES_CONGESTION),
            cpu,
            shares,
        })
    }

    /// Returns what was counted, once the test is over.
    pub(super) async fn results(&mut self) -> Option<(OmniResults, Ended)> {
        let (counted, ended, own) = (&mut self.moved).await.ok()?;
        self.note_time();
        let shares = match self.shares {
            Shares::Unasked => None,
            Shares::Read(shares) => Some(shares),
            Shares::OwnTest | Shares::Host => Some(own),
        };
        // Who was stopped waited for the end that did not come.
        let pad_ns = match ended {
            Ended::Stopped => self.plan.pad.0,
            _ => 0,
        };
        let elapsed_ns = counted.watched_ns().saturating_sub(pad_ns);
        let results = OmniResults {
            cpus: self.cpu.cpus(),
            cpu: shares,
            elapsed_s: (elapsed_ns as f64 / 1e9) as f32,
            ..self.counts(counted)
        };
        Some((results, ended))
    }

    /// Returns the words of what was counted: calls and transactions are counted in 32 bits there.
    fn counts(&self, counted: Counted) -> OmniResults {
        let opened = (
            self.opened.receive_window_bytes,
            self.opened.send_window_bytes,
        );
        let windows_bytes = counted.windows_bytes.unwrap_or(opened);
        OmniResults {
            bytes_received: counted.bytes_received,
            receive_calls: counted.receive_calls as u32,
            receive_window_bytes: windows_bytes.0,
            bytes_sent: counted.bytes_sent,
            send_window_bytes: windows_bytes.1,
            send_calls: counted.send_calls as u32,
            failed_sends: counted.failed_sends as u32,
            transactions: counted.transactions as u32,
            retransmissions: counted.retransmissions.map(|sent| sent as u32),
            congestion: counted.congestion.filter(|_| self.names_congestion),
            ..OmniResults::default()
        }
    }

    /// Notes that the time of the test is over, as its client has it: how busy the host is while the last
    /// payload is waited for is no part of it.
    pub(super) fn note_time(&mut self) {
        if let Shares::Host = self.shares {
            self.shares = Shares::Read(self.cpu.shares());
        }
    }

    /// Ends the test.
    pub(super) fn stop(&self) {
        self.shared.stop();
    }

    /// Keeps the place at the desk; returns whether it still is one.
    pub(super) fn renew(&self) -> bool {
        self.place.claim.renew()
    }

    /// Notes why the test failed.
    pub(super) fn note_failure(&self, why: &str) {
        self.place.claim.note_failure(why);
    }

    /// Notes what has come since the last look; says why the test has to end, if it has.
    pub(super) fn excess(&mut self) -> Option<String> {
        let received = self.shared.bytes_received();
        let new_bytes = (received - self.taken_bytes) as f64;
        self.taken_bytes = received;
        let now = now_ns();
        let mut grant = lock(&self.place.grant);
        let owed = grant.note_moved(now, new_bytes);
        // All but datagrams are kept to the rate as they move.
        let most = grant.rate().filter(|_| self.plan.is_udp);
        let elapsed_s = now.saturating_sub(self.begin_ns) as f64 / 1e9;
        let excess = most.and_then(|most| {
            let rate = above(most, received as f64, elapsed_s, 1)?;
            Some(format!("received at {rate}, but this agent allows {most}"))
        });
        excess.or_else(|| owed.map(|owed| owed.to_string()))
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
