//! A test under way: its thread, and what is watched of it.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use linerate_compat::netperf::{OmniRequest, OmniResults, flag};
use linerate_engine::now_ns;
use tokio::sync::oneshot;

use super::Sees;
use super::cpu::CpuWatch;
use super::load::{self, Counted, Ended, Load, Shared};
use super::plan::Plan;
use super::socket::Opened;
use crate::foreign::guest::Claim;
use crate::limits::{Grant, above};
use crate::sync::lock;

/// A place at the desk and what may be taken there; given back when the test's thread has ended, too.
pub(super) struct Place {
    pub(super) claim: Claim,
    pub(super) grant: Mutex<Grant>,
}

/// A test under way; it ends soon after this is dropped.
pub(super) struct Trial {
    shared: Arc<Shared>,
    place: Arc<Place>,
    results: oneshot::Receiver<(OmniResults, Ended)>,
    begin_ns: u64,
    /// What was taken for the sum of all guests.
    taken_bytes: u64,
    is_udp: bool,
}

/// What the results of a test depend on beside its payload.
#[derive(Debug, Clone, Copy)]
struct Account {
    plan: Plan,
    sees: Sees,
    measures_cpu: bool,
    names_congestion: bool,
}

impl Trial {
    /// Begins a test on a thread of its own: it blocks for as long as the test goes on.
    pub(super) fn begin(
        request: &OmniRequest,
        plan: Plan,
        opened: Opened,
        place: Place,
        (peer, sees): (IpAddr, Sees),
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let load = Load {
            part: plan.part,
            payload: opened.payload,
            peer,
            receive_bytes: opened.receive_bytes,
            send_bytes: opened.send_bytes,
            units: plan.units,
            interval: request.interval,
            rate: lock(&place.grant).rate(),
            shared: Arc::clone(&shared),
        };
        let account = Account {
            plan,
            sees,
            measures_cpu: request.has(flag::MEASURES_CPU),
            names_congestion: request.has(flag::NAMES_CONGESTION),
        };
        let place = Arc::new(place);
        let (tell, results) = oneshot::channel();
        let (cpu, kept) = (request.cpu, Arc::clone(&place));
        std::thread::Builder::new()
            .name("netperf".to_owned())
            .spawn(move || {
                if let Some(cpu) = cpu {
                    // A CPU that this host does not have is no CPU to run on: it runs on any.
                    let _ = linerate_engine::pin(&[cpu as usize]);
                }
                let counted = account.run(load);
                drop(kept);
                // Nobody waits for it where the client has gone.
                let _ = tell.send(counted);
            })?;
        Ok(Self {
            shared,
            place,
            results,
            begin_ns: now_ns(),
            taken_bytes: 0,
            is_udp: plan.is_udp,
        })
    }

    /// Returns what was counted, once the test is over.
    pub(super) async fn results(&mut self) -> Option<(OmniResults, Ended)> {
        (&mut self.results).await.ok()
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
        let most = grant.rate().filter(|_| self.is_udp)?;
        let elapsed_s = now.saturating_sub(self.begin_ns) as f64 / 1e9;
        let rate = above(most, received as f64, elapsed_s, 1);
        rate.map(|rate| format!("received at {rate}, but this agent allows {most}"))
            .or_else(|| owed.map(|owed| owed.to_string()))
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Account {
    /// Moves the payload and makes the results.
    fn run(self, load: Load) -> (OmniResults, Ended) {
        let mut cpu = CpuWatch::begin();
        let (counted, ended) = load::run(load);
        let watched_ns = counted.end_ns.saturating_sub(counted.begin_ns);
        // Who was stopped waited for the end that did not come.
        let pad_ns = match ended {
            Ended::Stopped => self.plan.pad.0,
            _ => 0,
        };
        let elapsed_ns = watched_ns.saturating_sub(pad_ns);
        let shares = self.measures_cpu.then(|| match self.sees {
            Sees::Host => cpu.host(watched_ns, elapsed_ns),
            Sees::OwnTest => cpu.own_test(elapsed_ns),
        });
        let results = OmniResults {
            cpus: cpu.cpus(),
            cpu: shares,
            elapsed_s: elapsed_ns as f32 / 1e9,
            congestion: counted.congestion.clone().filter(|_| self.names_congestion),
            ..results(&counted)
        };
        (results, ended)
    }
}

/// Returns the words of what was counted: calls and transactions are counted in 32 bits there.
fn results(counted: &Counted) -> OmniResults {
    OmniResults {
        bytes_received: counted.bytes_received,
        receive_calls: counted.receive_calls as u32,
        receive_window_bytes: counted.receive_window_bytes.unwrap_or(0),
        bytes_sent: counted.bytes_sent,
        send_calls: counted.send_calls as u32,
        send_window_bytes: counted.send_window_bytes.unwrap_or(0),
        failed_sends: counted.failed_sends as u32,
        transactions: counted.transactions as u32,
        retransmissions: counted.retransmissions.map(|sent| sent as u32),
        ..OmniResults::default()
    }
}
