//! Who may use the host: exclusive, queued and shared runs, and their leases.
//!
//! Rules, in this order:
//! 1. A lease that was not used for `LEASE_NS` ends; so does one whose controller hung up, once
//!    nothing was heard of it for `HUNG_UP_NS` more: a controller that lives keeps its connection
//!    for the next request, the kernel closes those of one that was killed.
//! 2. An exclusive request is admitted when nobody holds the host, and refused otherwise.
//! 3. A queued request is admitted when nobody holds the host and nobody waits before it.
//! 4. A shared request is admitted beside other shared runs; it is refused while an exclusive or
//!    queued run holds the host.

use linerate_model::run::Admission;
use linerate_model::unit::Nanos;

/// How long a lease lasts without a request of its run. A controller asks at least every second
/// while a trial runs; twenty leaves room for a controller that writes to a slow disk.
pub const LEASE_NS: u64 = 20_000_000_000;
/// How long a lease lasts without a request after the last of its connections was closed from the
/// other end. A controller that lost a connection asks again on a new one at once.
pub const HUNG_UP_NS: u64 = 2_000_000_000;
/// Silence that is told to others: a controller at work asks at least every second.
const SILENCE_NS: u64 = 3_000_000_000;
const S_NS: u64 = 1_000_000_000;
/// The most runs that hold or wait for one host.
pub const LEASES_MAX: usize = 64;

/// One run's claim on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Secret that names it.
    pub key: String,
    /// What others see.
    pub label: String,
    /// How it shares the host.
    pub admission: Admission,
    /// Whether it holds the host, or waits.
    pub admitted: bool,
    /// When it was admitted or began to wait.
    pub since_ns: u64,
    /// How long it said that it would take.
    pub expected: Option<Nanos>,
    /// Its last request.
    pub seen_ns: u64,
    /// Connections that are open and have carried a request of it.
    pub connections: u32,
    /// When the last of these was closed from the other end, unless it made a request since then.
    pub hung_up_ns: Option<u64>,
}

/// How a connection ended that had carried requests of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disconnection {
    /// The other end closed it, although it had kept it for one request after another.
    HungUp,
    /// We closed it, or it was opened for one request only, as scripts and proxies do: it says
    /// nothing of the run.
    Expected,
}

impl Lease {
    fn is_over(&self, now_ns: u64) -> bool {
        let since = |ns: u64| now_ns.saturating_sub(ns);
        let hung_up = |ns| self.connections == 0 && since(ns) > HUNG_UP_NS;
        since(self.seen_ns) > LEASE_NS || self.hung_up_ns.is_some_and(hung_up)
    }
}

/// The answer to a run that asks for the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It has the host, beside this many others.
    Admitted {
        /// Other runs that hold the host.
        shared_with: u32,
    },
    /// It waits.
    Waiting {
        /// Its place, from 1.
        place: u32,
    },
}

/// Why a run did not get the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// Another run has it.
    #[error("the host is in use by \"{label}\"{}{}; use --queue to wait or --shared to run beside it", in_words(.left), silence_in_words(.silent))]
    Busy {
        /// What the other run calls itself.
        label: String,
        /// How much longer it said it would take.
        left: Option<Nanos>,
        /// For how long nothing was heard of it, where that is longer than a controller at work is
        /// silent for.
        silent: Option<Nanos>,
    },
    /// Too many runs hold or wait for the host.
    #[error("{LEASES_MAX} runs hold or wait for this host already")]
    Full,
    /// There is no such lease.
    #[error("this run's lease has ended (its last request was more than {} s ago, or it left or hung up)", LEASE_NS / 1_000_000_000)]
    NoLease,
}

fn in_words(left: &Option<Nanos>) -> String {
    left.map_or(String::new(), |left| format!(" for about {left} more"))
}

/// Says that the run may have died, and when it then loses the host.
fn silence_in_words(silent: &Option<Nanos>) -> String {
    silent.map_or(String::new(), |silent| {
        let left = Nanos(LEASE_NS.saturating_sub(silent.0));
        format!(", which has been silent for {silent} and loses the host in {left} if it stays so")
    })
}

/// The runs that hold or wait for the host, in order of arrival.
#[derive(Debug, Default)]
pub struct Leases {
    leases: Vec<Lease>,
    /// Runs that have had the host and are over.
    ended: u64,
}

impl Leases {
    /// Takes up a request for the host at `now_ns`, under a fresh secret `key`.
    pub fn handle_request(
        &mut self,
        now_ns: u64,
        key: String,
        label: String,
        admission: Admission,
        expected: Option<Nanos>,
    ) -> Result<Standing, LeaseError> {
        if self.leases.len() >= LEASES_MAX {
            return Err(LeaseError::Full);
        }
        let admitted = self.admissible(admission, self.leases.len());
        if !admitted && admission != Admission::Queued {
            return Err(self.busy(now_ns));
        }
        self.leases.push(Lease {
            key,
            label,
            admission,
            admitted,
            since_ns: now_ns,
            expected,
            seen_ns: now_ns,
            connections: 0,
            hung_up_ns: None,
        });
        Ok(self.standing(self.leases.len() - 1))
    }

    /// Notes a sign of life of the run with `key` and returns its present standing.
    pub fn handle_seen(&mut self, now_ns: u64, key: &str) -> Result<Standing, LeaseError> {
        let at = self.position(key).ok_or(LeaseError::NoLease)?;
        self.leases[at].seen_ns = now_ns;
        self.leases[at].hung_up_ns = None;
        if !self.leases[at].admitted && self.admissible(self.leases[at].admission, at) {
            self.leases[at].admitted = true;
            self.leases[at].since_ns = now_ns;
        }
        Ok(self.standing(at))
    }

    /// Notes that a connection carries requests of the run with `key`; returns whether there is one.
    pub fn handle_connection(&mut self, key: &str) -> bool {
        let at = self.position(key);
        if let Some(at) = at {
            self.leases[at].connections += 1;
        }
        at.is_some()
    }

    /// Notes the end of a connection that [`Leases::handle_connection`] was told of.
    pub fn handle_disconnection(&mut self, now_ns: u64, key: &str, ending: Disconnection) {
        let Some(at) = self.position(key) else {
            return;
        };
        let lease = &mut self.leases[at];
        lease.connections = lease.connections.saturating_sub(1);
        if lease.connections == 0 && ending == Disconnection::HungUp {
            lease.hung_up_ns = Some(now_ns);
        }
    }

    /// Ends the lease with `key`; returns whether there was one.
    pub fn handle_leave(&mut self, key: &str) -> bool {
        let Some(at) = self.position(key) else {
            return false;
        };
        self.ended += u64::from(self.leases.remove(at).admitted);
        true
    }

    /// Returns how many runs have had the host and are over, and how many hold it or wait for it.
    pub fn runs(&self) -> (u64, usize) {
        (self.ended, self.leases.len())
    }

    /// Ends the leases that nobody used for [`LEASE_NS`], or for [`HUNG_UP_NS`] after their
    /// controller hung up, and returns them.
    pub fn poll_expired(&mut self, now_ns: u64) -> Vec<Lease> {
        let (expired, kept): (Vec<Lease>, Vec<Lease>) = std::mem::take(&mut self.leases)
            .into_iter()
            .partition(|lease| lease.is_over(now_ns));
        self.leases = kept;
        let admitted = expired.iter().filter(|lease| lease.admitted);
        self.ended += admitted.count() as u64;
        expired
    }

    /// Returns the run that holds the host longest, and the number of those that wait.
    pub fn holder(&self) -> Option<(&Lease, u32)> {
        let waiting = self.leases.iter().filter(|lease| !lease.admitted).count() as u32;
        self.leases
            .iter()
            .find(|lease| lease.admitted)
            .map(|lease| (lease, waiting))
    }

    /// Returns how the run with `key` shares the host.
    pub fn admission(&self, key: &str) -> Option<Admission> {
        self.position(key).map(|at| self.leases[at].admission)
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.leases.iter().position(|lease| lease.key == key)
    }

    /// Returns whether a run with this admission may hold the host, given the ones before `at`.
    fn admissible(&self, admission: Admission, at: usize) -> bool {
        match admission {
            Admission::Exclusive => !self.leases.iter().any(|lease| lease.admitted),
            Admission::Queued => {
                !self.leases.iter().any(|lease| lease.admitted)
                    && !self.leases[..at].iter().any(|lease| !lease.admitted)
            }
            Admission::Shared => self
                .leases
                .iter()
                .all(|lease| !lease.admitted || lease.admission == Admission::Shared),
        }
    }

    fn standing(&self, at: usize) -> Standing {
        if self.leases[at].admitted {
            let holding = self.leases.iter().filter(|lease| lease.admitted).count() as u32;
            return Standing::Admitted {
                shared_with: holding - 1,
            };
        }
        let before = self.leases[..at]
            .iter()
            .filter(|lease| !lease.admitted)
            .count() as u32;
        Standing::Waiting { place: before + 1 }
    }

    fn busy(&self, now_ns: u64) -> LeaseError {
        match self.holder() {
            Some((holder, _)) => LeaseError::Busy {
                label: holder.label.clone(),
                left: expected_left(holder, now_ns),
                silent: Some(Nanos(now_ns.saturating_sub(holder.seen_ns) / S_NS * S_NS))
                    .filter(|silent| silent.0 >= SILENCE_NS),
            },
            None => LeaseError::Full,
        }
    }
}

/// Returns how much longer the run said that it would take, if it is not overdue.
pub fn expected_left(lease: &Lease, now_ns: u64) -> Option<Nanos> {
    let end = lease.since_ns + lease.expected?.0;
    (end > now_ns).then(|| Nanos(end - now_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn ask(
        leases: &mut Leases,
        now: u64,
        key: &str,
        admission: Admission,
    ) -> Result<Standing, LeaseError> {
        leases.handle_request(
            now,
            key.into(),
            format!("run {key}"),
            admission,
            Some(Nanos(30 * S)),
        )
    }

    #[test]
    fn exclusive_runs_keep_others_out_and_say_for_how_long() {
        let mut leases = Leases::default();
        assert_eq!(
            ask(&mut leases, 0, "a", Admission::Exclusive),
            Ok(Standing::Admitted { shared_with: 0 })
        );
        for admission in [Admission::Exclusive, Admission::Shared] {
            assert_eq!(
                ask(&mut leases, 10 * S, "b", admission),
                Err(LeaseError::Busy {
                    label: "run a".into(),
                    left: Some(Nanos(20 * S)),
                    silent: Some(Nanos(10 * S)),
                })
            );
        }
        let said = ask(&mut leases, 15 * S + 1, "b", Admission::Shared).unwrap_err();
        let words = "silent for 15 s and loses the host in 5 s";
        assert!(said.to_string().contains(words), "{said}");
        leases.handle_seen(16 * S, "a").unwrap();
        let said = ask(&mut leases, 18 * S, "b", Admission::Shared).unwrap_err();
        assert!(!said.to_string().contains("silent"), "{said}");
        assert_eq!(leases.runs(), (0, 1));
        assert!(leases.handle_leave("a"));
        assert_eq!(leases.runs(), (1, 0));
        assert_eq!(
            ask(&mut leases, 10 * S, "b", Admission::Exclusive),
            Ok(Standing::Admitted { shared_with: 0 })
        );
    }

    #[test]
    fn the_queue_moves_in_order() {
        let mut leases = Leases::default();
        ask(&mut leases, 0, "a", Admission::Exclusive).unwrap();
        assert_eq!(
            ask(&mut leases, 0, "b", Admission::Queued),
            Ok(Standing::Waiting { place: 1 })
        );
        assert_eq!(
            ask(&mut leases, 0, "c", Admission::Queued),
            Ok(Standing::Waiting { place: 2 })
        );
        leases.handle_leave("a");
        assert_eq!(
            leases.handle_seen(S, "c"),
            Ok(Standing::Waiting { place: 2 })
        );
        assert_eq!(
            leases.handle_seen(S, "b"),
            Ok(Standing::Admitted { shared_with: 0 })
        );
        assert_eq!(
            leases.handle_seen(S, "c"),
            Ok(Standing::Waiting { place: 1 })
        );
    }

    #[test]
    fn shared_runs_know_of_each_other() {
        let mut leases = Leases::default();
        ask(&mut leases, 0, "a", Admission::Shared).unwrap();
        assert_eq!(
            ask(&mut leases, 0, "b", Admission::Shared),
            Ok(Standing::Admitted { shared_with: 1 })
        );
        assert_eq!(
            leases.handle_seen(0, "a"),
            Ok(Standing::Admitted { shared_with: 1 })
        );
        assert!(matches!(
            ask(&mut leases, 0, "c", Admission::Exclusive),
            Err(LeaseError::Busy { .. })
        ));
    }

    #[test]
    fn a_silent_run_loses_its_lease() {
        let mut leases = Leases::default();
        ask(&mut leases, 0, "a", Admission::Exclusive).unwrap();
        assert!(leases.poll_expired(LEASE_NS).is_empty());
        assert_eq!(
            leases.handle_seen(LEASE_NS, "a"),
            Ok(Standing::Admitted { shared_with: 0 })
        );
        assert!(leases.poll_expired(2 * LEASE_NS).is_empty());
        assert_eq!(leases.poll_expired(2 * LEASE_NS + 1)[0].key, "a");
        assert_eq!(
            leases.handle_seen(2 * LEASE_NS + 1, "a"),
            Err(LeaseError::NoLease)
        );
    }

    #[test]
    fn a_run_that_hung_up_loses_its_lease_soon() {
        let mut leases = Leases::default();
        ask(&mut leases, 0, "a", Admission::Exclusive).unwrap();
        // Two connections; the end of one says nothing.
        assert!(leases.handle_connection("a") && leases.handle_connection("a"));
        leases.handle_disconnection(S, "a", Disconnection::HungUp);
        assert!(leases.poll_expired(10 * S).is_empty());
        // Nor does the end of the last if it comes back within 2 s, on a new connection or by one
        // request.
        leases.handle_disconnection(10 * S, "a", Disconnection::HungUp);
        assert!(leases.poll_expired(12 * S).is_empty());
        assert!(leases.handle_connection("a"));
        leases.handle_seen(12 * S, "a").unwrap();
        assert!(leases.poll_expired(20 * S).is_empty());
        leases.handle_disconnection(20 * S, "a", Disconnection::HungUp);
        leases.handle_seen(21 * S, "a").unwrap();
        assert!(leases.poll_expired(30 * S).is_empty());
        // A connection that we closed, or that was for one request, leaves the run its time.
        assert!(leases.handle_connection("a"));
        leases.handle_disconnection(30 * S, "a", Disconnection::Expected);
        leases.handle_seen(31 * S, "a").unwrap();
        assert!(leases.poll_expired(40 * S).is_empty());
        // What was noted of another run, or of one that left, touches nobody.
        assert!(!leases.handle_connection("b"));
        leases.handle_disconnection(40 * S, "b", Disconnection::HungUp);
        assert!(leases.handle_connection("a"));
        leases.handle_seen(40 * S, "a").unwrap();
        leases.handle_disconnection(40 * S, "a", Disconnection::HungUp);
        assert!(leases.poll_expired(42 * S).is_empty());
        assert_eq!(leases.poll_expired(42 * S + 1)[0].key, "a");
        ask(&mut leases, 43 * S, "b", Admission::Exclusive).unwrap();
    }

    #[test]
    fn leases_are_bounded() {
        let mut leases = Leases::default();
        for at in 0..LEASES_MAX {
            ask(&mut leases, 0, &at.to_string(), Admission::Queued).unwrap();
        }
        assert_eq!(
            ask(&mut leases, 0, "x", Admission::Queued),
            Err(LeaseError::Full)
        );
    }
}
