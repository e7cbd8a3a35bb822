//! Who may use the host: exclusive, queued and shared runs, and their leases.
//!
//! Rules, in this order:
//! 1. A lease that was not used for `LEASE_NS` ends; so does one whose controller hung up, once
//!    nothing was heard of it for `HUNG_UP_NS` more: a controller that lives keeps its connection
//!    for the next request, the kernel closes those of one that was killed.
//!    A guest's lease, which is one of a caller without the token, ends as well when it has had the host
//!    for `IDLE_NS` without traffic, and when it has had it for as long as a guest may; that of a token
//!    when it has had the host for `TOKEN_IDLE_NS` without traffic. Every lease ends when a caller of scope
//!    admin takes the host back.
//! 2. An exclusive request is admitted when nobody holds the host or waits for it, and refused otherwise.
//! 3. A queued request is admitted when nobody holds the host and nobody waits before it.
//! 4. A shared request is admitted beside other shared runs; it is refused while an exclusive or
//!    queued run holds the host.

use std::collections::VecDeque;

use linerate_model::run::Admission;
use linerate_model::unit::Nanos;

use crate::limits::{Source, Whose, network_runs};

/// How long a lease lasts without a request of its run. A controller asks at least every second
/// while a trial runs; twenty leaves room for a controller that writes to a slow disk.
pub const LEASE_NS: u64 = 20_000_000_000;
/// How long a lease lasts without a request after the last of its connections was closed from the
/// other end. A controller that lost a connection asks again on a new one at once.
pub const HUNG_UP_NS: u64 = 2_000_000_000;
/// How long a guest may have the host between two trials: a run that lost a host waits 10 s for it.
pub const IDLE_NS: u64 = 30_000_000_000;
/// How long a token may: other hosts of its run may be in the longest trial that there is.
pub const TOKEN_IDLE_NS: u64 = 86_400_000_000_000;
/// Leases of which is known how they ended, for controllers that come back.
const ENDED_KEPT: usize = 64;
/// Silence that is told to others: a controller at work asks at least every second.
const SILENCE_NS: u64 = 3_000_000_000;
const S_NS: u64 = 1_000_000_000;
/// The most runs that hold or wait for one host.
pub const LEASES_MAX: usize = 64;
/// The most of them that may be guests', so that places are left for those who hold the token.
pub const GUESTS_MAX: u32 = 48;
/// The most of them that one token may have, so that others have places.
pub const TOKEN_RUNS_MAX: usize = LEASES_MAX / 2;

/// A request for the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// The fresh secret that is to name the lease.
    pub key: String,
    /// What others see.
    pub label: String,
    /// How it shares the host.
    pub admission: Admission,
    /// How long it says that it takes.
    pub expected: Option<Nanos>,
    /// Where it comes from, if that is not this process.
    pub from: Option<Source>,
    /// Whether it comes without the token, and may do what guests may.
    pub guest: Option<GuestTerms>,
    /// The name of the token that it shows, if it has one.
    pub token: Option<String>,
}

/// What guests may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestTerms {
    /// Runs of all of them; one network may have half.
    pub runs: u32,
    /// How long one may have the host.
    pub length: Option<Nanos>,
}

/// What a run has done so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// Trials whose traffic began.
    pub trials: u32,
    /// Those of them that failed.
    pub failed: u32,
    /// What the last was, in words.
    pub what: String,
    /// Why the last that failed did.
    pub why: Option<String>,
    /// Trials whose frames are captured here.
    pub captures: u32,
    /// Trials in which this host is profiled.
    pub profiles: u32,
}

/// One run's claim on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What it asked for.
    pub asked: Asking,
    /// What it has done.
    pub account: Account,
    /// Trials under way.
    pub under_way: u32,
    /// Since when it has had none.
    pub idle_since_ns: u64,
    /// Whether it holds the host, or waits.
    pub admitted: bool,
    /// When it was admitted or began to wait.
    pub since_ns: u64,
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
    /// Returns why it is over, if it is.
    fn ending(&self, now_ns: u64) -> Option<Ending> {
        let since = |ns: u64| now_ns.saturating_sub(ns);
        let hung_up = |ns| self.connections == 0 && since(ns) > HUNG_UP_NS;
        if since(self.seen_ns) > LEASE_NS {
            return Some(Ending::Silent);
        }
        if self.hung_up_ns.is_some_and(hung_up) {
            return Some(Ending::HungUp);
        }
        let (guest, token) = (self.asked.guest, &self.asked.token);
        let idle_ns = match (guest, token) {
            (Some(_), _) => IDLE_NS,
            (None, Some(_)) => TOKEN_IDLE_NS,
            (None, None) => return None,
        };
        let most = guest.and_then(|guest| guest.length);
        match most.filter(|most| since(self.since_ns) > most.0) {
            _ if !self.admitted => None,
            Some(most) => Some(Ending::TooLong(most)),
            None => (self.under_way == 0 && since(self.idle_since_ns) > idle_ns)
                .then_some(Ending::Idle(Nanos(idle_ns))),
        }
    }
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// The run gave it back.
    #[error("ended by the client")]
    Left,
    /// Nothing was heard of it.
    #[error("its last request was more than {} s before", LEASE_NS / S_NS)]
    Silent,
    /// Its controller closed its connections.
    #[error("it closed the connection")]
    HungUp,
    /// It had the host without traffic.
    #[error("it had no trial for {0}, the longest time that it may")]
    Idle(Nanos),
    /// It had the host for as long as it may.
    #[error("it had the host for {0}, the longest time without a token (--limit-run)")]
    TooLong(Nanos),
    /// A caller of scope admin wanted the host.
    #[error("a caller of scope admin took the host back")]
    Evicted,
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
    #[error("the host is in use by {}{}{}", named(.label), in_words(.left), silence_in_words(.silent))]
    Busy {
        /// What the other run calls itself, which guests are not told: it has the address that its client typed.
        label: Option<String>,
        /// How much longer it said it would take.
        left: Option<Nanos>,
        /// For how long nothing was heard of it, where that is longer than a controller at work is
        /// silent for.
        silent: Option<Nanos>,
        /// What would have the host all the same.
        open_to: OpenTo,
    },
    /// Too many runs hold or wait for the host.
    #[error("{LEASES_MAX} runs hold or wait for this host already")]
    Full,
    /// Too many runs of guests do.
    #[error(
        "{who} may have {most} runs here at a time without a token, and has them (--limit-runs)"
    )]
    Guests {
        /// Who has too many.
        who: Whose,
        /// The limit.
        most: u32,
    },
    /// Too many runs of one token do.
    #[error("the token `{0}` may have {TOKEN_RUNS_MAX} runs here at a time, and has them")]
    Token(String),
    /// There is no such lease.
    #[error("this run's lease has ended{}", .0.map_or(String::new(), |ending| format!(": {ending}")))]
    NoLease(Option<Ending>),
}

/// What a host in use is open to beyond what was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTo {
    /// A shared request, since none but such hold the host.
    pub shared: bool,
}

impl LeaseError {
    /// Returns what its caller can do about it, in the flags of `linerate run`; only what would not be
    /// refused in turn.
    pub fn next(&self) -> Option<String> {
        match self {
            Self::Busy { open_to, .. } => {
                let shared = if open_to.shared {
                    ", or run at the same time with --shared"
                } else {
                    ""
                };
                Some(format!(
                    "wait for it with --queue{shared}, or try again later; with a token of scope admin, \
                     --evict ends that run"
                ))
            }
            Self::Full => Some("try again when some of them have ended".to_owned()),
            Self::Guests { .. } => Some(
                "give a token of that agent with --token-file, which may have more, or try again when one of \
                 these runs has ended"
                    .to_owned(),
            ),
            Self::Token(_) => Some("try again when one of these runs has ended".to_owned()),
            Self::NoLease(_) => None,
        }
    }
}

fn named(label: &Option<String>) -> String {
    label
        .as_ref()
        .map_or("another run".to_owned(), |label| format!("\"{label}\""))
}

fn in_words(left: &Option<Nanos>) -> String {
    left.map_or(String::new(), |left| {
        let left_s = left.0.div_ceil(1_000_000_000);
        format!(" for about {left_s} s more")
    })
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
    /// How the last of them ended.
    endings: VecDeque<(String, Ending)>,
}

impl Leases {
    /// Takes up a request for the host at `now_ns`.
    pub fn handle_request(&mut self, now_ns: u64, asking: Asking) -> Result<Standing, LeaseError> {
        let admitted = self.check(now_ns, &asking)?;
        self.leases.push(Lease {
            asked: asking,
            account: Account::default(),
            under_way: 0,
            idle_since_ns: now_ns,
            admitted,
            since_ns: now_ns,
            seen_ns: now_ns,
            connections: 0,
            hung_up_ns: None,
        });
        Ok(self.standing(self.leases.len() - 1))
    }

    /// Returns whether a request would have the host at `now_ns`, or wait for it; refuses it otherwise.
    pub fn check(&self, now_ns: u64, asking: &Asking) -> Result<bool, LeaseError> {
        if self.leases.len() >= LEASES_MAX {
            return Err(LeaseError::Full);
        }
        let admitted = self.admissible(asking.admission, self.leases.len());
        if !admitted && asking.admission != Admission::Queued {
            return Err(self.busy(now_ns, asking));
        }
        if let Some(terms) = asking.guest {
            self.check_guest(asking.from, terms)?;
        }
        if let Some(token) = &asking.token {
            let is_its = |lease: &&Lease| lease.asked.token.as_ref() == Some(token);
            if self.leases.iter().filter(is_its).count() >= TOKEN_RUNS_MAX {
                return Err(LeaseError::Token(token.clone()));
            }
        }
        Ok(admitted)
    }

    /// Refuses one run of guests more than there may be.
    fn check_guest(&self, from: Option<Source>, terms: GuestTerms) -> Result<(), LeaseError> {
        let is_guest = |lease: &&Lease| lease.asked.guest.is_some();
        let guests = || self.leases.iter().filter(is_guest);
        let own = guests().filter(|lease| lease.asked.from == from).count();
        let runs = terms.runs.min(GUESTS_MAX);
        let network = from.map_or(Whose::Networks, Whose::Network);
        for (have, most, who) in [
            (own, network_runs(runs), network),
            (guests().count(), runs, Whose::Networks),
        ] {
            if have >= most as usize {
                return Err(LeaseError::Guests { who, most });
            }
        }
        Ok(())
    }

    /// Notes that the traffic of a trial of the run with `key` began, in words.
    pub fn handle_trial(&mut self, key: &str, what: String) {
        if let Some(lease) = self.find_mut(key) {
            lease.under_way += 1;
            lease.account.trials += 1;
            lease.account.what = what;
        }
    }

    /// Notes what a trial of the run with `key` looks at beyond what every trial shows.
    pub fn handle_probes(&mut self, key: &str, captures: bool, profiles: bool) {
        if let Some(lease) = self.find_mut(key) {
            lease.account.captures += u32::from(captures);
            lease.account.profiles += u32::from(profiles);
        }
    }

    /// Notes that it is over, and why where it failed.
    pub fn handle_trial_over(&mut self, now_ns: u64, key: &str, failed: Option<String>) {
        if let Some(lease) = self.find_mut(key) {
            lease.under_way = lease.under_way.saturating_sub(1);
            lease.idle_since_ns = now_ns;
            lease.account.failed += u32::from(failed.is_some());
            lease.account.why = failed.or(lease.account.why.take());
        }
    }

    /// Ends all leases and returns them.
    pub fn handle_eviction(&mut self) -> Vec<Lease> {
        let ended = self.end(|_| Some(Ending::Evicted));
        ended.into_iter().map(|(lease, _)| lease).collect()
    }

    /// Notes a sign of life of the run with `key` and returns its present standing.
    pub fn handle_seen(&mut self, now_ns: u64, key: &str) -> Result<Standing, LeaseError> {
        let at = self.position(key).ok_or_else(|| self.no_lease(key))?;
        let may_have_it = self.admissible(self.leases[at].asked.admission, at);
        let lease = &mut self.leases[at];
        lease.seen_ns = now_ns;
        lease.hung_up_ns = None;
        if !lease.admitted && may_have_it {
            lease.admitted = true;
            lease.since_ns = now_ns;
            lease.idle_since_ns = now_ns;
        }
        Ok(self.standing(at))
    }

    /// Notes that a connection carries requests of the run with `key`; returns whether there is one.
    pub fn handle_connection(&mut self, key: &str) -> bool {
        let lease = self.find_mut(key);
        lease.map(|lease| lease.connections += 1).is_some()
    }

    /// Notes the end of a connection that [`Leases::handle_connection`] was told of.
    pub fn handle_disconnection(&mut self, now_ns: u64, key: &str, ending: Disconnection) {
        let Some(lease) = self.find_mut(key) else {
            return;
        };
        lease.connections = lease.connections.saturating_sub(1);
        if lease.connections == 0 && ending == Disconnection::HungUp {
            lease.hung_up_ns = Some(now_ns);
        }
    }

    /// Ends the lease with `key`, if there is one, and returns it.
    pub fn handle_leave(&mut self, key: &str) -> Result<Lease, LeaseError> {
        let left = self
            .end(|lease| (lease.asked.key == key).then_some(Ending::Left))
            .into_iter()
            .next();
        left.map(|(lease, _)| lease)
            .ok_or_else(|| self.no_lease(key))
    }

    /// Returns the error for a lease that is not there.
    pub fn no_lease(&self, key: &str) -> LeaseError {
        let mut endings = self.endings.iter().rev();
        LeaseError::NoLease(endings.find(|(ended, _)| ended == key).map(|(_, how)| *how))
    }

    /// Ends the leases that `ending` says are over, and returns them.
    fn end(&mut self, ending: impl Fn(&Lease) -> Option<Ending>) -> Vec<(Lease, Ending)> {
        let mut ended = Vec::new();
        self.leases.retain(|lease| {
            let how = ending(lease);
            ended.extend(how.map(|how| (lease.clone(), how)));
            how.is_none()
        });
        let admitted = ended.iter().filter(|(lease, _)| lease.admitted);
        self.ended += admitted.count() as u64;
        for (lease, how) in &ended {
            if self.endings.len() == ENDED_KEPT {
                self.endings.pop_front();
            }
            self.endings.push_back((lease.asked.key.clone(), *how));
        }
        ended
    }

    /// Returns how many runs have had the host and are over, and how many hold it or wait for it.
    pub fn runs(&self) -> (u64, usize) {
        (self.ended, self.leases.len())
    }

    /// Ends the leases whose time is over and returns them, with what ended them.
    pub fn poll_expired(&mut self, now_ns: u64) -> Vec<(Lease, Ending)> {
        self.end(|lease| lease.ending(now_ns))
    }

    /// Returns the run that holds the host longest, and the number of those that wait.
    pub fn holder(&self) -> Option<(&Lease, u32)> {
        let waiting = self.leases.iter().filter(|lease| !lease.admitted).count() as u32;
        let holder = self.leases.iter().find(|lease| lease.admitted);
        holder.map(|lease| (lease, waiting))
    }

    /// Returns the run with `key`.
    pub fn find(&self, key: &str) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.asked.key == key)
    }

    fn find_mut(&mut self, key: &str) -> Option<&mut Lease> {
        self.leases.iter_mut().find(|lease| lease.asked.key == key)
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.leases.iter().position(|lease| lease.asked.key == key)
    }

    /// Returns whether a run with this admission may hold the host, given the ones before `at`.
    fn admissible(&self, admission: Admission, at: usize) -> bool {
        match admission {
            // A queued run asks at times; whoever comes between must not pass it.
            Admission::Exclusive | Admission::Queued => {
                !self.leases.iter().any(|lease| lease.admitted)
                    && !self.leases[..at].iter().any(|lease| !lease.admitted)
            }
            Admission::Shared => self
                .leases
                .iter()
                .all(|lease| !lease.admitted || lease.asked.admission == Admission::Shared),
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

    fn busy(&self, now_ns: u64, asking: &Asking) -> LeaseError {
        // Who waits is about to have the host where nobody has it.
        let holder = self.leases.iter().find(|lease| lease.admitted);
        match holder.or(self.leases.first()) {
            Some(holder) => LeaseError::Busy {
                label: (asking.guest.is_none()).then(|| holder.asked.label.clone()),
                left: expected_left(holder, now_ns),
                silent: Some(Nanos(now_ns.saturating_sub(holder.seen_ns) / S_NS * S_NS))
                    .filter(|silent| silent.0 >= SILENCE_NS),
                open_to: OpenTo {
                    shared: asking.admission != Admission::Shared
                        && self.admissible(Admission::Shared, self.leases.len()),
                },
            },
            None => LeaseError::Full,
        }
    }
}

/// Returns how much longer the run said that it would take, if it is not overdue.
pub fn expected_left(lease: &Lease, now_ns: u64) -> Option<Nanos> {
    let end = lease.since_ns.saturating_add(lease.asked.expected?.0);
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
        leases.handle_request(now, asking(key, admission))
    }

    fn asking(key: &str, admission: Admission) -> Asking {
        Asking {
            key: key.into(),
            label: format!("run {key}"),
            admission,
            expected: Some(Nanos(30 * S)),
            from: None,
            guest: None,
            token: None,
        }
    }

    /// Returns a guest's request from 192.0.2.`last`.
    fn guest(key: &str, last: u8, admission: Admission) -> Asking {
        Asking {
            from: Some(Source::of([192, 0, 2, last].into())),
            guest: Some(GuestTerms {
                runs: 4,
                length: Some(Nanos(100 * S)),
            }),
            ..asking(key, admission)
        }
    }

    #[test]
    fn guests_have_so_many_runs_and_others_the_rest() {
        let mut leases = Leases::default();
        let mut ask = |key: &str, last| {
            let asked = leases.handle_request(0, guest(key, last, Admission::Shared));
            asked.map(drop).map_err(|error| error.to_string())
        };
        for key in ["a", "b"] {
            assert_eq!(ask(key, 1), Ok(()));
        }
        let told = ask("c", 1).unwrap_err();
        let words =
            "192.0.2.1 may have 2 runs here at a time without a token, and has them (--limit-runs)";
        assert_eq!(told, words);
        assert_eq!((ask("d", 2), ask("e", 3)), (Ok(()), Ok(())));
        let told = ask("f", 4).unwrap_err();
        assert!(
            told.starts_with("all callers together may have 4 runs"),
            "{told}"
        );
        let ours = leases.handle_request(0, asking("g", Admission::Shared));
        assert!(ours.is_ok());
        // An admin takes the host back from all of them, whatever they hold.
        let gone = leases.handle_eviction();
        assert_eq!(gone.len(), 5);
        assert_eq!(leases.runs(), (5, 0));
        for key in ["a", "g"] {
            let told = leases.handle_seen(0, key);
            assert_eq!(told, Err(LeaseError::NoLease(Some(Ending::Evicted))));
        }
    }

    #[test]
    fn a_token_leaves_places_to_others_and_does_not_hold_the_host_for_ever() {
        let mut leases = Leases::default();
        let of_token = |key: &str, token: &str| Asking {
            token: Some(token.to_owned()),
            ..asking(key, Admission::Shared)
        };
        for at in 0..TOKEN_RUNS_MAX {
            leases
                .handle_request(0, of_token(&at.to_string(), "ci"))
                .unwrap();
        }
        let refused = leases.handle_request(0, of_token("x", "ci"));
        assert_eq!(refused, Err(LeaseError::Token("ci".to_owned())));
        assert!(leases.handle_request(0, of_token("y", "other")).is_ok());
        assert!(
            leases
                .handle_request(0, guest("z", 1, Admission::Shared))
                .is_ok()
        );
        leases.handle_eviction();
        let mut now_ns = 0;
        leases.handle_request(now_ns, of_token("a", "ci")).unwrap();
        while leases.handle_seen(now_ns, "a").is_ok() {
            now_ns += LEASE_NS;
            for (lease, how) in leases.poll_expired(now_ns) {
                assert_eq!(
                    (lease.asked.key.as_str(), how),
                    ("a", Ending::Idle(Nanos(TOKEN_IDLE_NS)))
                );
            }
            assert!(now_ns < 2 * TOKEN_IDLE_NS, "it holds the host for ever");
        }
        assert!(now_ns > TOKEN_IDLE_NS);
    }

    #[test]
    fn a_guest_without_traffic_loses_the_host_and_so_does_one_that_stays() {
        let mut leases = Leases::default();
        leases
            .handle_request(0, guest("a", 1, Admission::Exclusive))
            .unwrap();
        let see = |leases: &mut Leases, s: u64| {
            let _ = leases.handle_seen(s * S, "a");
            leases.poll_expired(s * S).first().map(|(_, how)| *how)
        };
        assert_eq!((see(&mut leases, 15), see(&mut leases, 30)), (None, None));
        leases.handle_trial("a", "stream".into());
        assert_eq!((see(&mut leases, 45), see(&mut leases, 60)), (None, None));
        leases.handle_trial_over(61 * S, "a", None);
        assert_eq!((see(&mut leases, 75), see(&mut leases, 91)), (None, None));
        assert_eq!(see(&mut leases, 92), Some(Ending::Idle(Nanos(IDLE_NS))));
        let told = leases.handle_seen(92 * S, "a").unwrap_err().to_string();
        assert!(told.contains("it had no trial for 30 s"), "{told}");
        leases
            .handle_request(0, guest("a", 1, Admission::Exclusive))
            .unwrap();
        leases.handle_trial("a", "stream".into());
        assert_eq!((see(&mut leases, 15), see(&mut leases, 100)), (None, None));
        assert_eq!(see(&mut leases, 101), Some(Ending::TooLong(Nanos(100 * S))));
        // Who holds the token stays.
        leases
            .handle_request(0, asking("b", Admission::Exclusive))
            .unwrap();
        leases.handle_seen(3600 * S, "b").unwrap();
        assert!(leases.poll_expired(3600 * S).is_empty());
    }

    #[test]
    fn what_a_run_expects_may_be_anything() {
        let mut leases = Leases::default();
        let endless = Asking {
            expected: Some(Nanos(u64::MAX)),
            ..asking("a", Admission::Exclusive)
        };
        leases.handle_request(5 * S, endless).unwrap();
        let (lease, _) = leases.holder().unwrap();
        assert_eq!(expected_left(lease, 6 * S), Some(Nanos(u64::MAX - 6 * S)));
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
                    label: Some("run a".into()),
                    left: Some(Nanos(20 * S)),
                    silent: Some(Nanos(10 * S)),
                    open_to: OpenTo { shared: false },
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
        assert!(leases.handle_leave("a").is_ok());
        assert_eq!(leases.runs(), (1, 0));
        assert_eq!(
            ask(&mut leases, 10 * S, "b", Admission::Exclusive),
            Ok(Standing::Admitted { shared_with: 0 })
        );
    }

    #[test]
    fn a_refusal_names_only_what_would_be_admitted() {
        use Admission::{Exclusive, Queued, Shared};
        let next = |holder: Asking, asked| {
            let mut leases = Leases::default();
            leases.handle_request(0, holder).unwrap();
            let refused = ask(&mut leases, 0, "b", asked).unwrap_err();
            refused.next().unwrap()
        };
        for (held, asked, shared) in [
            (Exclusive, Exclusive, false),
            (Exclusive, Shared, false),
            (Queued, Exclusive, false),
            (Shared, Exclusive, true),
        ] {
            let told = next(asking("a", held), asked);
            assert!(told.contains("--queue"), "{told}");
            assert_eq!(told.contains("--shared"), shared, "{told}");
            assert!(told.contains("--evict"), "{told}");
        }
        // Where a limit refuses, waiting in the queue is refused as well.
        let mut leases = Leases::default();
        for key in ["a", "b"] {
            leases.handle_request(0, guest(key, 1, Shared)).unwrap();
        }
        let full = LeaseError::Full.next().unwrap();
        for admission in [Queued, Shared] {
            let refused = leases.handle_request(0, guest("c", 1, admission));
            let told = refused.unwrap_err().next().unwrap();
            assert!(told.contains("--token-file"), "{told}");
            for words in [&told, &full] {
                assert!(
                    !words.contains("--queue") && !words.contains("--shared"),
                    "{words}"
                );
            }
        }
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
        leases.handle_leave("a").unwrap();
        assert!(matches!(
            ask(&mut leases, 0, "d", Admission::Exclusive),
            Err(LeaseError::Busy { label: Some(label), .. }) if label == "run b"
        ));
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
        assert_eq!(leases.poll_expired(2 * LEASE_NS + 1)[0].0.asked.key, "a");
        assert_eq!(
            leases.handle_seen(2 * LEASE_NS + 1, "a"),
            Err(LeaseError::NoLease(Some(Ending::Silent)))
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
        assert_eq!(leases.poll_expired(42 * S + 1)[0].0.asked.key, "a");
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
