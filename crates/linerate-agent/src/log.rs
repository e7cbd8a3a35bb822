//! What the agent tells those who run it: a line for each run and for whoever begins to observe the host, and
//! what it refused to whom.
//!
//! Whoever may call can make runs end and requests be refused as often as it likes, so both are bounded:
//! lines to so many a minute, of which the further ones are counted, and refusals to one line a minute, with so
//! many callers in it.

/// Entries on their way to whoever keeps the log.
mod queue;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;

use linerate_model::Nanos;
use linerate_model::number::counted;
use serde::Serialize;

use crate::api::one_line;
use crate::limits::Source;
pub(crate) use crate::log::queue::Queue;
use crate::session::leases::{Ending, Lease};

/// Time over which is counted.
const MINUTE_NS: u64 = 60_000_000_000;
/// Runs, and callers who begin to observe, told of in that time.
const RUNS_MAX: u32 = 60;
/// Callers who were refused something, told of in that time.
const REFUSED_MAX: usize = 16;
/// Callers who observe that are kept in mind.
const OBSERVERS_MAX: usize = 64;
/// Characters of a reason: it may repeat what a caller sent.
const WHY_CHARS_MAX: usize = 160;

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LogEntry {
    /// A run is over.
    Run(RunEntry),
    /// What was refused, and what was not told, since the last such entry.
    Refused {
        /// Requests refused, by what kind of refusal.
        requests: BTreeMap<String, u64>,
        /// To whom, of the first so many.
        callers: Vec<RefusedCaller>,
        /// Runs that ended and were not told of one by one.
        runs_untold: u64,
        /// Over how long, in seconds.
        seconds: f64,
    },
    /// Somebody observes the host who did not lately.
    Observing(Asker),
    /// Entries that found no room while nobody took what was told.
    Dropped {
        /// How many.
        entries: u64,
    },
}

/// Who asked for something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Asker {
    /// Where it came from.
    pub from: String,
    /// The name of the token that it showed, or the fingerprint of its certificate.
    pub who: Option<String>,
}

impl Asker {
    /// Returns the one from an address, with the name of its token if it showed one.
    pub(crate) fn of(from: IpAddr, who: Option<&str>) -> Self {
        Self {
            from: Source::of(from).to_string(),
            who: who.map(str::to_owned),
        }
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.from)?;
        match &self.who {
            Some(who) => write!(f, " as {who}"),
            None => Ok(()),
        }
    }
}

/// A caller to whom requests of one kind were refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RefusedCaller {
    /// Who it was.
    #[serde(flatten)]
    pub asker: Asker,
    /// What kind of refusal it was.
    pub kind: String,
    /// How often.
    pub requests: u64,
    /// Why the first was refused.
    pub why: String,
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEntry {
    /// Where it came from.
    pub from: String,
    /// The name of the token that it showed, or the fingerprint of its certificate.
    pub who: Option<String>,
    /// What it called itself.
    pub label: String,
    /// Whether it came with the token, or from this host to an agent without one.
    pub trusted: bool,
    /// How long it had the host, or waited for it where it never did, in seconds.
    pub seconds: f64,
    /// Whether it ever had the host.
    pub admitted: bool,
    /// Trials whose traffic began.
    pub trials: u32,
    /// Those of them that failed.
    pub failed: u32,
    /// What the last was.
    pub traffic: String,
    /// Why the last that failed did.
    pub why: Option<String>,
    /// Trials whose frames it captured here.
    pub captures: u32,
    /// Trials in which it profiled this host.
    pub profiles: u32,
    /// How it ended.
    pub ended: String,
}

impl RunEntry {
    fn of(now_ns: u64, lease: &Lease, ending: Ending) -> Self {
        let (asked, account) = (&lease.asked, &lease.account);
        Self {
            from: asked
                .from
                .map_or("this process".to_owned(), |from| from.to_string()),
            who: asked.token.clone(),
            label: asked.label.clone(),
            trusted: asked.guest.is_none(),
            seconds: now_ns.saturating_sub(lease.since_ns) as f64 / 1e9,
            admitted: lease.admitted,
            trials: account.trials,
            failed: account.failed,
            traffic: account.what.clone(),
            why: account.why.clone(),
            captures: account.captures,
            profiles: account.profiles,
            ended: ending.to_string(),
        }
    }
}

impl fmt::Display for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogEntry::Run(run) => run.fmt(f),
            LogEntry::Observing(asker) => write!(f, "observed from {asker}"),
            LogEntry::Dropped { entries } => {
                let entries = counted(*entries, "entry");
                write!(
                    f,
                    "the log lost {entries}, which its reader did not take in time"
                )
            }
            LogEntry::Refused {
                requests,
                callers,
                runs_untold,
                seconds,
            } => {
                let all: u64 = requests.values().sum();
                write!(f, "refused {} in {seconds:.0} s", counted(all, "request"))?;
                for (at, (kind, count)) in requests.iter().enumerate() {
                    let lead = if at == 0 { ": " } else { ", " };
                    write!(f, "{lead}{count} {kind}")?;
                }
                for caller in callers {
                    let RefusedCaller {
                        asker,
                        kind,
                        requests,
                        why,
                    } = caller;
                    write!(f, "; {requests} of {asker}, {kind}: {why}")?;
                }
                match runs_untold {
                    0 => Ok(()),
                    more => write!(f, "; {} ended", counted(*more, "more run")),
                }
            }
        }
    }
}

impl fmt::Display for RunEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run from {}", self.from)?;
        match (&self.who, self.trusted) {
            (Some(who), _) => write!(f, " as {who}")?,
            (None, true) => {}
            (None, false) => f.write_str(" without token")?,
        }
        write!(f, " \"{}\": ", self.label)?;
        match (self.trials, self.admitted) {
            (0, true) => f.write_str("no trial")?,
            (0, false) => f.write_str("never had the host")?,
            (1, _) => write!(f, "1 trial ({})", self.traffic)?,
            (trials, _) => {
                let trials = counted(trials, "trial");
                write!(f, "{trials} (the last {})", self.traffic)?;
            }
        }
        match (self.failed, &self.why) {
            (0, _) => {}
            (failed, Some(why)) => write!(f, ", {failed} failed: {why}")?,
            (failed, None) => write!(f, ", {failed} failed")?,
        }
        for (count, what) in [(self.captures, "captured"), (self.profiles, "profiled")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        let seconds = Nanos((self.seconds * 1e3).round() as u64 * 1_000_000);
        write!(f, "; {seconds}, {}", self.ended)
    }
}

/// What has been told lately, and what is still to be.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Since when is counted.
    since_ns: u64,
    counted: Counted,
    /// Who observes, and when that was seen last.
    observers: HashMap<Asker, u64>,
}

/// What is told once a minute.
#[derive(Debug, Default)]
struct Counted {
    /// Runs and observers told of.
    told: u32,
    runs_untold: u64,
    refused: BTreeMap<&'static str, u64>,
    callers: Vec<RefusedCaller>,
}

impl Ledger {
    /// Takes up the end of a run; returns what to tell of it.
    pub(crate) fn handle_run(
        &mut self,
        now_ns: u64,
        lease: &Lease,
        ending: Ending,
    ) -> Option<LogEntry> {
        if self.counted.told == RUNS_MAX {
            self.counted.runs_untold += 1;
            return None;
        }
        self.counted.told += 1;
        Some(LogEntry::Run(RunEntry::of(now_ns, lease, ending)))
    }

    /// Counts a refusal of this kind, of `asker`, for this reason.
    pub(crate) fn handle_refusal(&mut self, kind: &'static str, asker: Asker, why: &str) {
        let counted = &mut self.counted;
        *counted.refused.entry(kind).or_default() += 1;
        let mut callers = counted.callers.iter_mut();
        let known = callers.find(|caller| caller.asker == asker && caller.kind == kind);
        if let Some(known) = known {
            known.requests += 1;
        } else if counted.callers.len() < REFUSED_MAX {
            let why: String = why.chars().take(WHY_CHARS_MAX).collect();
            counted.callers.push(RefusedCaller {
                asker,
                kind: kind.to_owned(),
                requests: 1,
                why: one_line(&why),
            });
        }
    }

    /// Takes up an observation of the host; returns what to tell of it.
    pub(crate) fn handle_observation(&mut self, now_ns: u64, asker: Asker) -> Option<LogEntry> {
        if let Some(seen_ns) = self.observers.get_mut(&asker) {
            *seen_ns = now_ns;
            return None;
        }
        if self.counted.told == RUNS_MAX || self.observers.len() == OBSERVERS_MAX {
            return None;
        }
        self.counted.told += 1;
        self.observers.insert(asker.clone(), now_ns);
        Some(LogEntry::Observing(asker))
    }

    /// Returns what is to be told now; to be called about once a second.
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<LogEntry> {
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        if passed_ns < MINUTE_NS {
            return None;
        }
        self.observers
            .retain(|_, seen_ns| now_ns.saturating_sub(*seen_ns) < MINUTE_NS);
        let told = std::mem::take(&mut self.counted);
        self.since_ns = now_ns;
        if told.refused.is_empty() && told.runs_untold == 0 {
            return None;
        }
        let requests = told.refused.into_iter();
        Some(LogEntry::Refused {
            requests: requests
                .map(|(kind, count)| (kind.to_owned(), count))
                .collect(),
            callers: told.callers,
            runs_untold: told.runs_untold,
            // The first entry counts from when the agent began, whatever the clock said then.
            seconds: passed_ns.min(MINUTE_NS * 2) as f64 / 1e9,
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::run::Admission;

    use super::*;
    use crate::limits::Source;
    use crate::session::leases::{Asking, GuestTerms, Leases};

    const S: u64 = 1_000_000_000;

    /// Returns a guest's run that failed once and left after 2.5 s.
    fn ended() -> Lease {
        let length = None;
        let runs = 48;
        ended_of(Some(GuestTerms { runs, length }), None)
    }

    fn ended_of(guest: Option<GuestTerms>, token: Option<String>) -> Lease {
        let mut leases = Leases::default();
        let asking = Asking {
            key: "key".to_owned(),
            label: "a run".to_owned(),
            admission: Admission::Exclusive,
            expected: None,
            from: Some(Source::of([192, 0, 2, 7].into())),
            guest,
            token,
        };
        leases.handle_request(S, asking).unwrap();
        leases.handle_trial("key", "rr, tcp, flows 1".to_owned());
        leases.handle_trial_over(2 * S, "key", Some("too fast".to_owned()));
        leases.handle_leave("key").unwrap()
    }

    #[test]
    fn a_run_is_told_in_a_line() {
        let mut ledger = Ledger::default();
        let told = ledger
            .handle_run(3 * S + S / 2, &ended(), Ending::Left)
            .unwrap();
        assert_eq!(
            told.to_string(),
            "run from 192.0.2.7 without token \"a run\": 1 trial (rr, tcp, flows 1), 1 failed: too \
             fast; 2.5 s, ended by the client"
        );
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!(
            (&json["event"], &json["seconds"]),
            (&"run".into(), &2.5.into())
        );
        assert_eq!(json["why"], "too fast");
        assert!(json["who"].is_null());
        let lease = ended_of(None, Some("ci".to_owned()));
        let told = ledger.handle_run(3 * S, &lease, Ending::Left).unwrap();
        let words = told.to_string();
        assert!(
            words.starts_with("run from 192.0.2.7 as ci \"a run\""),
            "{words}"
        );
        assert_eq!(serde_json::to_value(&told).unwrap()["who"], "ci");
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.poll(100 * S), None);
        let lease = ended();
        let told = (0..100).filter_map(|_| ledger.handle_run(100 * S, &lease, Ending::Left));
        assert_eq!(told.count(), 60);
        let caller = |last, who| Asker::of([192, 0, 2, last].into(), who);
        for (kind, last) in [("busy", 7), ("limited", 7), ("busy", 7)] {
            ledger.handle_refusal(kind, caller(last, Some("ci")), "it is\nin use");
        }
        assert_eq!(ledger.poll(159 * S), None);
        let told = serde_json::to_value(ledger.poll(160 * S).unwrap()).unwrap();
        assert_eq!(
            told["requests"],
            serde_json::json!({"busy": 2, "limited": 1})
        );
        assert_eq!(told["runs_untold"], 40);
        let first = &told["callers"][0];
        assert_eq!(
            (&first["from"], &first["who"]),
            (&"192.0.2.7".into(), &"ci".into())
        );
        assert_eq!(
            (&first["kind"], &first["requests"]),
            (&"busy".into(), &2.into())
        );
        assert!(!first["why"].as_str().unwrap().contains('\n'), "{first}");
        assert_eq!(ledger.poll(220 * S), None);
        // However many there are, and whatever they send: one line of bounded length.
        for number in 0..100_000_u32 {
            let from = std::net::Ipv4Addr::from_bits(number).into();
            ledger.handle_refusal("unauthorized", Asker::of(from, None), &"x".repeat(10_000));
        }
        let told = ledger.poll(280 * S).unwrap();
        assert!(told.to_string().len() < 8000, "{told}");
        let told = serde_json::to_value(told).unwrap();
        assert_eq!(told["requests"]["unauthorized"], 100_000);
        assert_eq!(told["callers"].as_array().map(Vec::len), Some(REFUSED_MAX));
        assert!(ledger.handle_run(221 * S, &lease, Ending::Left).is_some());
    }

    #[test]
    fn who_observes_is_told_once_as_long_as_it_goes_on() {
        let mut ledger = Ledger::default();
        let caller = |last| Asker::of([192, 0, 2, last].into(), Some("ci"));
        assert!(ledger.handle_observation(100 * S, caller(1)).is_some());
        for second in 101..400 {
            assert_eq!(ledger.handle_observation(second * S, caller(1)), None);
            ledger.poll(second * S);
        }
        assert!(ledger.handle_observation(400 * S, caller(2)).is_some());
        ledger.poll(470 * S);
        assert!(ledger.handle_observation(471 * S, caller(1)).is_some());
        let told = (0..10_000_u32).filter_map(|number| {
            let from = std::net::Ipv4Addr::from_bits(number).into();
            ledger.handle_observation(472 * S, Asker::of(from, None))
        });
        assert!(told.count() < RUNS_MAX as usize);
    }
}
