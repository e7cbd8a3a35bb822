//! What callers may have under way at the same time: each network of those without a token, each token, and all
//! of either together.
//!
//! 1. A trial claims what it may take before anything is opened for it, and gives it back when it is
//!    over: native, of iperf3 or of netperf, however many there are.
//! 2. One network gets half of the trials, open files and buffers and a quarter of the flows that
//!    all get. A token gets what one honest run needs, and leaves as much to others; who is trusted with
//!    everything is not counted.
//! 3. A rate is given to whoever comes first. What is left may be less than a trial could use; where
//!    next to nothing is left it is refused, since it would measure the limit's rest.
//! 4. What is received in spite of it, and sent where nothing paces it, is counted over all trials of a network,
//!    so that many short ones move no more than one long one. Whose network owes waits for it; who owes next to
//!    nothing of it goes on. Others wait only where several networks owe at the same time.
//!
//! How many runs there may be is the desk's business ([`crate::session::leases`]).

mod source;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use linerate_model::BitsPerSec;

use crate::api::RefusalCode;
use crate::sync::lock;
pub use source::{Site, Source};

/// What part of what all may have one network may have.
pub const NETWORK_PART: u32 = 4;
/// Least part of the whole rate that is worth a trial.
const RATE_PART_MIN: f64 = 0.01;
/// How far above the rate received payload may be: the kernel paces segments with their headers.
const RATE_TOLERANCE: f64 = 1.1;
/// Payload of one flow that may arrive before its rate tells: TCP paces no flow's first ten segments
/// (`tcp_update_skb_after_send` of net/ipv4/tcp_output.c), of 64 KiB each on loopback, and two are under way.
const UNPACED_BYTES: f64 = 12.0 * 64.0 * 1024.0;
/// Payload that may arrive at once, over all trials, before the rate tells: that of 43 flows on loopback, of
/// hundreds on a network, whose segments are shorter.
const BURST_BYTES: f64 = 32.0 * 1024.0 * 1024.0;
/// The same over all networks: there it counts what each moved up to its own.
const ALL_BURST_BYTES: f64 = BURST_BYTES * NETWORK_PART as f64;
/// Networks whose debts are kept apart; those of more count among all.
const DEBTORS_MAX: usize = 1024;
/// What one trial may owe of it and go on: what two flows do that keep to their rate.
const OWED_BYTES_MAX: f64 = BURST_BYTES / 16.0;

/// What part of the host's memory all without a token may take.
const MEMORY_PART: u64 = 8;
/// What part of it one token may take, and all of them together.
pub(crate) const TOKEN_MEMORY_PART: u64 = 4;
const TOKENS_MEMORY_PART: u64 = 2;
/// Bytes in which buffers are counted.
const BUFFERS_UNIT: u64 = 1 << 20;

/// Returns the rate that moved `bytes` in so many seconds over so many flows, if that is more than `most`
/// allows.
pub(crate) fn above(
    most: BitsPerSec,
    bytes: f64,
    seconds: f64,
    flows: usize,
) -> Option<BitsPerSec> {
    let allowed = most.0 / 8.0 * seconds * RATE_TOLERANCE + UNPACED_BYTES * flows as f64;
    (bytes > allowed).then(|| BitsPerSec(bytes * 8.0 / seconds))
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Trials under way, tests of iperf3 and netperf among them.
    Trials,
    /// Flows.
    Flows,
    /// Open files.
    Files,
    /// Memory of the workers' buffers, whose calls may have 64 each, of captures and of records, MiB.
    Memory,
}

/// Each kind, what it is called, and what changes its limit.
const KINDS: [(Kind, &str, &str); 4] = [
    (Kind::Trials, "trials", "--limit-runs"),
    (Kind::Flows, "flows", "--limit-flows"),
    (
        Kind::Files,
        "open files",
        "the limit on open files, LimitNOFILE= or ulimit -Hn",
    ),
    (
        Kind::Memory,
        "MiB of memory",
        "shorter messages and smaller captures take less; the limit is a part of this host's memory",
    ),
];

impl Kind {
    /// Returns what it is called, and what changes its limit.
    fn words(self) -> (&'static str, &'static str) {
        let (_, name, limit) = KINDS[self as usize];
        (name, limit)
    }
}

/// A number of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts([u32; KINDS.len()]);

impl Counts {
    /// Returns what a trial of `flows` flows takes that have `files` each.
    pub fn of_trial(flows: usize, files_each: usize) -> Self {
        let flows = u32::try_from(flows).unwrap_or(u32::MAX);
        let files = flows.saturating_mul(files_each as u32);
        Self([1, flows, files, 0])
    }

    /// Returns the same with `bytes` of memory.
    pub fn with_memory(self, bytes: u64) -> Self {
        let [trials, flows, files, _] = self.0;
        Self([trials, flows, files, mebibytes(bytes)])
    }

    fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| {
            self.0[at].saturating_add(other.0[at])
        }))
    }

    fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| {
            self.0[at].saturating_sub(other.0[at])
        }))
    }
}

fn mebibytes(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(BUFFERS_UNIT)).unwrap_or(u32::MAX)
}

/// What an agent has of what others may take, and what it allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Means {
    /// Runs of all callers.
    pub runs: u32,
    /// Flows of one network.
    pub flows: u32,
    /// Open files of the process.
    pub files: u32,
    /// Memory of the host.
    pub memory_bytes: u64,
    /// Payload of all together.
    pub rate: Option<BitsPerSec>,
}

/// What may be under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Most {
    /// Of one network.
    pub network: Counts,
    /// Of all networks together.
    pub all: Counts,
    /// Of one token.
    pub token: Counts,
    /// Of all tokens together.
    pub tokens: Counts,
    /// Payload of all networks together, both directions.
    pub rate: Option<BitsPerSec>,
}

impl Most {
    /// Returns the limits that follow from those that are told.
    ///
    /// Of open files strangers get half and of memory an eighth, since the host needs the rest for itself.
    pub fn of(means: Means) -> Self {
        let (flows, files) = (means.flows, means.files / 2);
        let buffers = mebibytes(means.memory_bytes / MEMORY_PART);
        let runs = network_runs(means.runs);
        let all_flows = flows.saturating_mul(NETWORK_PART);
        // How many runs a token may have is the desk's business, and what their flows take counts here.
        let of_token = |part| {
            Counts([
                u32::MAX,
                u32::MAX,
                means.files,
                mebibytes(means.memory_bytes / part),
            ])
        };
        Self {
            token: of_token(TOKEN_MEMORY_PART),
            tokens: of_token(TOKENS_MEMORY_PART),
            network: Counts([runs, flows, files, buffers.div_ceil(2)]),
            all: Counts([means.runs, all_flows, files, buffers]),
            rate: means.rate,
        }
    }

    fn of_whom(&self, who: &Whose) -> Counts {
        match who {
            Whose::Network(_) => self.network,
            Whose::Networks => self.all,
            Whose::Token(_) => self.token,
            Whose::Tokens => self.tokens,
        }
    }
}

/// Returns how many runs of `runs` one network may have: half, so that twenty clients of iperf3 on one
/// host are served by an agent as it is started without flags.
pub fn network_runs(runs: u32) -> u32 {
    runs.div_ceil(2)
}

/// A claim that is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Exceeded {
    /// There would be too many.
    #[error("{who} may have {most} {}{}: {have} are in use, and this is {asked} more ({})", kind.words().0, who.terms(), kind.words().1)]
    Count {
        /// Whose limit it is.
        who: Whose,
        /// Of what.
        kind: Kind,
        /// The limit.
        most: u32,
        /// What is under way.
        have: u32,
        /// What was asked for.
        asked: u32,
    },
    /// Nothing is left of the rate.
    #[error(
        "callers without a token may move {most} together (--limit-rate), and running trials have all of it"
    )]
    Rate {
        /// The limit.
        most: BitsPerSec,
    },
    /// More was moved than the rate allows.
    #[error(
        "{who} moved more than the {most} that callers without a token may together (--limit-rate); what may be moved again is there in {wait_s} s"
    )]
    Debt {
        /// Who moved it.
        who: Whose,
        /// The limit.
        most: BitsPerSec,
        /// How long until it is paid.
        wait_s: u64,
    },
}

impl Exceeded {
    /// Returns the kind of refusal that it is: the same claim may be granted once others are over, unless it
    /// is more than there may be at all.
    pub(crate) fn code(&self) -> RefusalCode {
        match self {
            Self::Count { most, asked, .. } if asked > most => RefusalCode::Limited,
            Self::Count { .. } | Self::Rate { .. } | Self::Debt { .. } => RefusalCode::Busy,
        }
    }

    /// Returns whether the end of another trial may change it at once.
    pub(crate) fn ends_with_others(&self) -> bool {
        self.code() == RefusalCode::Busy && !matches!(self, Self::Debt { .. })
    }

    /// Returns what a caller can do about it.
    pub(crate) fn next(&self) -> String {
        let less = match self.code() {
            RefusalCode::Limited => "ask for less",
            _ => "try again later",
        };
        match self {
            Self::Count {
                who: Whose::Token(_) | Whose::Tokens,
                ..
            } => less.to_owned(),
            _ => format!(
                "give a token of that agent with --token-file, which may have more, or {less}"
            ),
        }
    }
}

/// Whose limit it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Whose {
    /// One network's, of callers without a token.
    Network(Source),
    /// That of all of these.
    Networks,
    /// A token's, by its name.
    Token(String),
    /// That of all tokens.
    Tokens,
}

impl Whose {
    /// Returns those that it is one of.
    fn all(&self) -> Self {
        match self {
            Whose::Network(_) | Whose::Networks => Whose::Networks,
            Whose::Token(_) | Whose::Tokens => Whose::Tokens,
        }
    }

    /// Returns on what terms they may, as part of a sentence.
    pub(crate) fn terms(&self) -> &'static str {
        match self {
            Whose::Network(_) | Whose::Networks => " without a token",
            Whose::Token(_) | Whose::Tokens => "",
        }
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whose::Network(network) => write!(f, "{network}"),
            Whose::Networks => f.write_str("all callers together"),
            Whose::Token(name) => write!(f, "the token `{name}`"),
            Whose::Tokens => f.write_str("all tokens together"),
        }
    }
}

/// What is under way.
#[derive(Debug, Default)]
struct Held {
    /// Of each, and of all of its kind together; nothing where that is nothing.
    of: HashMap<Whose, Counts>,
    rate_bps: f64,
    /// Of each network.
    debts: HashMap<Whose, Debt>,
    /// Of all, where each counts up to its own burst.
    debt: Debt,
    /// Trials that have ended and are about to give back what they took.
    ending: u32,
}

/// Payload moved beyond what a rate allowed so far, and when that was reckoned.
#[derive(Debug, Clone, Copy, Default)]
struct Debt {
    bytes: f64,
    at_ns: u64,
}

impl Debt {
    /// Lets it shrink as time passes.
    fn reckon(&mut self, now_ns: u64, most: BitsPerSec) {
        let passed_s = now_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        self.at_ns = self.at_ns.max(now_ns);
        self.bytes = (self.bytes - passed_s * most.0 / 8.0 * RATE_TOLERANCE).max(0.0);
    }

    /// Returns how long until no more of it is left than `burst_bytes`, where that is any time.
    fn wait_s(self, most: BitsPerSec, burst_bytes: f64) -> Option<u64> {
        let over_bits = (self.bytes - burst_bytes) * 8.0;
        let wait_s = (over_bits / most.0 / RATE_TOLERANCE).ceil() as u64;
        (over_bits > 0.0).then_some(wait_s)
    }
}

/// What all who are counted have under way.
#[derive(Debug, Clone, Default)]
pub struct Totals(Arc<Mutex<Held>>);

impl Totals {
    /// Returns whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        lock(&self.0).of.is_empty()
    }

    /// Returns whether trials that have ended are about to give back what they took.
    pub fn is_ending(&self) -> bool {
        lock(&self.0).ending > 0
    }

    /// Claims `counts` for a trial of `who`, and of the rate, where theirs is limited, what is left or
    /// `rate_asked` if that is less.
    pub fn claim(
        &self,
        now_ns: u64,
        who: Whose,
        counts: Counts,
        rate_asked: Option<BitsPerSec>,
        most: &Most,
    ) -> Result<Grant, Exceeded> {
        let mut held = lock(&self.0);
        for who in [who.clone(), who.all()] {
            let (have, most) = (held.have(&who), most.of_whom(&who));
            let sum = have.plus(counts);
            let over = (0..KINDS.len()).find(|&at| counts.0[at] > 0 && sum.0[at] > most.0[at]);
            if let Some(at) = over {
                return Err(Exceeded::Count {
                    who,
                    kind: KINDS[at].0,
                    most: most.0[at],
                    have: have.0[at],
                    asked: counts.0[at],
                });
            }
        }
        let rate_max = most.rate.filter(|_| who.all() == Whose::Networks);
        let rate = match rate_max {
            None => None,
            Some(most) => Some(held.rate(now_ns, &who, most, rate_asked)?),
        };
        held.change(&who, |have| have.plus(counts));
        held.rate_bps += rate.map_or(0.0, |rate| rate.0);
        Ok(Grant {
            totals: self.clone(),
            who,
            counts,
            rate,
            own: Debt {
                bytes: 0.0,
                at_ns: now_ns,
            },
            most: rate_max,
            is_ending: false,
        })
    }
}

impl Held {
    fn have(&self, who: &Whose) -> Counts {
        self.of.get(who).copied().unwrap_or_default()
    }

    /// Changes what `who` has, and what all of its kind have.
    fn change(&mut self, who: &Whose, change: impl Fn(Counts) -> Counts) {
        for who in [who.clone(), who.all()] {
            match change(self.have(&who)) {
                none if none == Counts::default() => drop(self.of.remove(&who)),
                some => drop(self.of.insert(who, some)),
            }
        }
    }

    fn rate(
        &mut self,
        now_ns: u64,
        who: &Whose,
        most: BitsPerSec,
        asked: Option<BitsPerSec>,
    ) -> Result<BitsPerSec, Exceeded> {
        self.debt.reckon(now_ns, most);
        self.debts.retain(|_, debt| {
            debt.reckon(now_ns, most);
            debt.bytes > 0.0
        });
        self.owes(who, most).map_or(Ok(()), Err)?;
        let left = most.0 - self.rate_bps;
        let wanted = asked.map_or(left, |asked| asked.0.min(left));
        if left < most.0 * RATE_PART_MIN {
            Err(Exceeded::Rate { most })
        } else {
            Ok(BitsPerSec(wanted))
        }
    }

    /// Returns whose debt `who` waits for, if it does: its own, or that of all.
    fn owes(&self, who: &Whose, most: BitsPerSec) -> Option<Exceeded> {
        let own = self.debts.get(who).copied().unwrap_or_default();
        let own = own
            .wait_s(most, BURST_BYTES)
            .map(|wait_s| (who.clone(), wait_s));
        let all = self.debt.wait_s(most, ALL_BURST_BYTES);
        let all = all.map(|wait_s| (who.all(), wait_s));
        let (who, wait_s) = own
            .into_iter()
            .chain(all)
            .max_by_key(|(_, wait_s)| *wait_s)?;
        Some(Exceeded::Debt { who, most, wait_s })
    }

    /// Notes payload that `who` moved.
    fn note_moved(&mut self, now_ns: u64, who: &Whose, most: BitsPerSec, bytes: f64) {
        self.debt.reckon(now_ns, most);
        if self.debts.len() == DEBTORS_MAX && !self.debts.contains_key(who) {
            self.debt.bytes += bytes;
            return;
        }
        let own = self.debts.entry(who.clone()).or_default();
        own.reckon(now_ns, most);
        self.debt.bytes += bytes.min((BURST_BYTES - own.bytes).max(0.0));
        own.bytes += bytes;
    }
}

/// What one trial may take, until it is dropped.
#[derive(Debug)]
pub struct Grant {
    totals: Totals,
    who: Whose,
    counts: Counts,
    rate: Option<BitsPerSec>,
    /// What it moved beyond its own.
    own: Debt,
    most: Option<BitsPerSec>,
    is_ending: bool,
}

impl Grant {
    /// Returns what its flows together may move, if that is limited.
    pub fn rate(&self) -> Option<BitsPerSec> {
        self.rate
    }

    /// Notes that its trial has ended: it is given back as soon as the flows have.
    pub(crate) fn note_ending(&mut self) {
        lock(&self.totals.0).ending += u32::from(!self.is_ending);
        self.is_ending = true;
    }

    /// Notes payload that moved since the last note; says why the trial has to end, if its network moved more
    /// than the rate allows, or all together did, and this one has part in it.
    pub fn note_moved(&mut self, now_ns: u64, bytes: f64) -> Option<Exceeded> {
        let (most, rate) = (self.most?, self.rate?);
        let mut held = lock(&self.totals.0);
        held.note_moved(now_ns, &self.who, most, bytes);
        self.own.reckon(now_ns, rate);
        self.own.bytes += bytes;
        let owes = held.owes(&self.who, most)?;
        (self.own.bytes > OWED_BYTES_MAX).then_some(owes)
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let mut held = lock(&self.totals.0);
        held.ending -= u32::from(self.is_ending);
        held.rate_bps = (held.rate_bps - self.rate.map_or(0.0, |rate| rate.0)).max(0.0);
        held.change(&self.who, |have| have.minus(self.counts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn network(last: u8) -> Whose {
        Whose::Network(Source::of([192, 0, 2, last].into()))
    }

    const MEANS: Means = Means {
        runs: 8,
        flows: 100,
        files: 10_000,
        memory_bytes: 4 << 30,
        rate: None,
    };

    fn most(rate: Option<f64>) -> Most {
        Most::of(Means {
            rate: rate.map(BitsPerSec),
            ..MEANS
        })
    }

    #[test]
    fn one_network_has_its_part_and_all_have_theirs() {
        let totals = Totals::default();
        let most = most(None);
        let claim = |last, flows| {
            let counts = Counts::of_trial(flows, 1);
            totals.claim(0, network(last), counts, None, &most)
        };
        let first = claim(1, 60).unwrap();
        let words = claim(1, 41).unwrap_err().to_string();
        let expected = "192.0.2.1 may have 100 flows without a token: 60 are in use, and this is 41 \
                        more (--limit-flows)";
        assert_eq!(words, expected);
        let others: Vec<Grant> = (2..5).map(|last| claim(last, 100).unwrap()).collect();
        let words = claim(5, 41).unwrap_err().to_string();
        assert!(
            words.starts_with("all callers together may have 400 flows"),
            "{words}"
        );
        drop(others);
        let words = claim(1, 1).map(|grant| grant.counts).unwrap();
        assert_eq!(words, Counts([1, 1, 1, 0]));
        drop(first);
        assert!(claim(1, 100).is_ok());
        assert!(lock(&totals.0).of.is_empty());
    }

    #[test]
    fn what_others_have_passes_and_what_nobody_may_have_does_not() {
        let totals = Totals::default();
        let claim = |flows, rate| {
            let counts = Counts::of_trial(flows, 1);
            totals.claim(0, network(1), counts, None, &most(rate))
        };
        let code = |claimed: Result<Grant, Exceeded>| claimed.unwrap_err().code();
        assert_eq!(code(claim(101, None)), RefusalCode::Limited);
        let mut held = claim(60, Some(8e6)).unwrap();
        assert_eq!(code(claim(60, None)), RefusalCode::Busy);
        assert_eq!(code(claim(101, None)), RefusalCode::Limited);
        assert_eq!(code(claim(1, Some(8e6))), RefusalCode::Busy);
        let owes = held.note_moved(0, 100e6).unwrap();
        assert_eq!(owes.code(), RefusalCode::Busy);
    }

    #[test]
    fn buffers_of_all_take_an_eighth_of_the_memory() {
        let totals = Totals::default();
        let most = most(None);
        let claim = |last, bytes| {
            let counts = Counts::of_trial(1, 1).with_memory(bytes);
            totals.claim(0, network(last), counts, None, &most)
        };
        let words = claim(1, (256 << 20) + 1).unwrap_err().to_string();
        assert!(
            words.starts_with("192.0.2.1 may have 256 MiB of memory without a token: 0"),
            "{words}"
        );
        let held = [claim(1, 256 << 20), claim(2, 255 << 20), claim(3, 1)];
        assert!(held.iter().all(Result::is_ok));
        let words = claim(4, 1).unwrap_err().to_string();
        assert!(words.starts_with("all callers together may have 512 MiB"));
    }

    #[test]
    fn a_token_has_totals_of_its_own_and_leaves_something_to_others() {
        let totals = Totals::default();
        let most = most(Some(1e6));
        let claim = |name: &str, flows, bytes| {
            let counts = Counts::of_trial(flows, 2).with_memory(bytes);
            totals.claim(0, Whose::Token(name.to_owned()), counts, None, &most)
        };
        let exceeded = |claimed: Result<Grant, Exceeded>| match claimed.unwrap_err() {
            Exceeded::Count {
                kind, who, most, ..
            } => (kind, who, most),
            other => panic!("{other}"),
        };
        let one = || Whose::Token("ci".to_owned());
        // A quarter of 4 GiB each, half of it together.
        assert_eq!(
            exceeded(claim("ci", 1, (1 << 30) + 1)),
            (Kind::Memory, one(), 1024)
        );
        let held: Vec<Grant> = (0..16)
            .map(|_| claim("ci", 100, 64 << 20).unwrap())
            .collect();
        assert_eq!(held[0].rate(), None, "the rate is strangers'");
        assert_eq!(exceeded(claim("ci", 1, 1)), (Kind::Memory, one(), 1024));
        let other = claim("other", 1, 1 << 30).unwrap();
        assert_eq!(
            exceeded(claim("third", 1, 1)),
            (Kind::Memory, Whose::Tokens, 2048)
        );
        // Whoever has no token has what is theirs.
        let counts = Counts::of_trial(1, 1).with_memory(1 << 20);
        let stranger = totals.claim(0, network(1), counts, None, &most).unwrap();
        drop((held, other, stranger));
        assert!(totals.is_idle());
    }

    #[test]
    fn trials_are_counted_whatever_they_are() {
        let totals = Totals::default();
        let most = most(None);
        let one = || totals.claim(0, network(1), Counts::of_trial(1, 1), None, &most);
        let held: Vec<Grant> = (0..4).map(|_| one().unwrap()).collect();
        let words = one().unwrap_err().to_string();
        assert!(
            words.contains("4 trials") && words.contains("--limit-runs"),
            "{words}"
        );
        drop(held);
    }

    #[test]
    fn a_rate_is_shared_by_all_and_given_once() {
        let totals = Totals::default();
        let most = most(Some(10e6));
        let claim = |last, asked: Option<f64>| {
            let counts = Counts::of_trial(1, 1);
            totals.claim(0, network(last), counts, asked.map(BitsPerSec), &most)
        };
        let small = claim(1, Some(2e6)).unwrap();
        assert_eq!(small.rate(), Some(BitsPerSec(2e6)));
        let rest = claim(2, None).unwrap();
        assert_eq!(rest.rate(), Some(BitsPerSec(8e6)));
        let words = claim(3, Some(1e3)).unwrap_err().to_string();
        assert!(
            words.contains("10 Mbit/s") && words.contains("--limit-rate"),
            "{words}"
        );
        drop(rest);
        assert_eq!(claim(3, Some(100e6)).unwrap().rate(), Some(BitsPerSec(8e6)));
        drop(small);
        assert_eq!(claim(3, None).unwrap().rate(), Some(BitsPerSec(10e6)));
    }

    #[test]
    fn many_short_trials_receive_no_more_than_a_long_one() {
        let totals = Totals::default();
        let most = most(Some(8e6));
        let claim = |now_ns| {
            let counts = Counts::of_trial(1, 1);
            totals.claim(now_ns, network(1), counts, None, &most)
        };
        // 4 MB a trial: eight of them are the burst, and the ninth is one too many.
        let mut trials = 0;
        loop {
            let Ok(mut grant) = claim(0) else { break };
            let exceeded = grant.note_moved(0, 4e6);
            trials += 1;
            assert_eq!(exceeded.is_some(), trials == 9, "{trials}: {exceeded:?}");
        }
        assert_eq!(trials, 9);
        let words = claim(S).unwrap_err().to_string();
        assert!(
            words.contains("8 Mbit/s") && words.contains("in 2 s"),
            "{words}"
        );
        assert!(claim(4 * S).is_ok());
    }

    #[test]
    fn who_keeps_to_its_rate_is_not_ended_for_what_another_sent() {
        let totals = Totals::default();
        let most = most(Some(8e6));
        let claim = |last, rate| {
            let counts = Counts::of_trial(1, 1);
            totals.claim(0, network(last), counts, Some(BitsPerSec(rate)), &most)
        };
        let (mut keeps, mut does_not) = (claim(1, 6e6).unwrap(), claim(2, 2e6).unwrap());
        // The first segments of a flow on loopback, then 6 Mbit/s; the other one sends 100 MB at once.
        assert_eq!(keeps.note_moved(0, UNPACED_BYTES), None);
        assert!(does_not.note_moved(0, 100e6).is_some());
        for second in 1..60 {
            assert_eq!(keeps.note_moved(second * S, 750e3), None, "{second}");
        }
        drop((keeps, does_not));
        let claim = |last| {
            let counts = Counts::of_trial(1, 1);
            totals.claim(60 * S, network(last), counts, None, &most)
        };
        // Who did not waits for its own; nobody else does.
        let waits = claim(2).unwrap_err();
        assert!(matches!(waits, Exceeded::Debt { who, .. } if who == network(2)));
        assert!(claim(3).is_ok() && claim(1).is_ok());
    }

    #[test]
    fn several_networks_together_move_no_more_than_so_many_bursts() {
        let totals = Totals::default();
        let most = most(Some(8e6));
        let claim = |last| {
            let counts = Counts::of_trial(1, 1);
            totals.claim(0, network(last), counts, Some(BitsPerSec(1e5)), &most)
        };
        for last in 0..NETWORK_PART as u8 {
            let mut grant = claim(last).unwrap();
            grant.note_moved(0, 1e12);
        }
        let mut more = claim(100).unwrap();
        assert!(more.note_moved(0, 3e6).is_some());
        let waits = claim(101).unwrap_err();
        let Exceeded::Debt { who, wait_s, .. } = waits else {
            panic!("{waits}");
        };
        // However much each of them moved, all others wait for their bursts at the most.
        assert_eq!(who, Whose::Networks);
        assert!(wait_s <= 4, "{wait_s}");
    }

    #[test]
    fn debtors_are_bounded() {
        let totals = Totals::default();
        let most = most(Some(1e3));
        for number in 0..2 * DEBTORS_MAX as u32 {
            let who = Whose::Network(Source::of(std::net::Ipv4Addr::from_bits(number).into()));
            let counts = Counts::of_trial(1, 1);
            if let Ok(mut grant) = totals.claim(0, who, counts, None, &most) {
                grant.note_moved(0, 1e3);
            }
        }
        assert!(lock(&totals.0).debts.len() <= DEBTORS_MAX);
    }
}
