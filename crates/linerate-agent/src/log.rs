//! What the agent tells those who run it: a line for each run, and how many requests it refused.
//!
//! Whoever may call can make runs end and requests be refused as often as it likes, so both are bounded:
//! runs to so many a minute, of which the further ones are counted, and refusals to one line a minute.

use std::collections::BTreeMap;
use std::fmt;

use linerate_model::Nanos;
use linerate_model::number::counted;
use serde::Serialize;

use crate::session::leases::{Ending, Lease};

/// Time over which is counted.
const MINUTE_NS: u64 = 60_000_000_000;
/// Runs told of in that time.
const RUNS_MAX: u32 = 60;

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
        /// Runs that ended and were not told of one by one.
        runs_untold: u64,
        /// Over how long, in seconds.
        seconds: f64,
    },
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
            ended: ending.to_string(),
        }
    }
}

impl fmt::Display for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogEntry::Run(run) => run.fmt(f),
            LogEntry::Refused {
                requests,
                runs_untold,
                seconds,
            } => {
                let all: u64 = requests.values().sum();
                write!(f, "refused {} in {seconds:.0} s", counted(all, "request"))?;
                for (at, (kind, count)) in requests.iter().enumerate() {
                    let lead = if at == 0 { ": " } else { ", " };
                    write!(f, "{lead}{count} {kind}")?;
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
        let seconds = Nanos((self.seconds * 1e3).round() as u64 * 1_000_000);
        write!(f, "; {seconds}, {}", self.ended)
    }
}

/// What has been told lately, and what is still to be.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Since when is counted.
    since_ns: u64,
    /// Runs told of since then.
    runs: u32,
    runs_untold: u64,
    refused: BTreeMap<&'static str, u64>,
}

impl Ledger {
    /// Takes up the end of a run; returns what to tell of it.
    pub(crate) fn handle_run(
        &mut self,
        now_ns: u64,
        lease: &Lease,
        ending: Ending,
    ) -> Option<LogEntry> {
        if self.runs == RUNS_MAX {
            self.runs_untold += 1;
            return None;
        }
        self.runs += 1;
        Some(LogEntry::Run(RunEntry::of(now_ns, lease, ending)))
    }

    /// Counts a refusal.
    pub(crate) fn handle_refusal(&mut self, kind: &'static str) {
        *self.refused.entry(kind).or_default() += 1;
    }

    /// Returns what is to be told now; to be called about once a second.
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<LogEntry> {
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        if passed_ns < MINUTE_NS {
            return None;
        }
        let told = std::mem::take(self);
        self.since_ns = now_ns;
        if told.refused.is_empty() && told.runs_untold == 0 {
            return None;
        }
        let requests = told.refused.into_iter();
        Some(LogEntry::Refused {
            requests: requests
                .map(|(kind, count)| (kind.to_owned(), count))
                .collect(),
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
        for kind in ["busy", "limited", "busy"] {
            ledger.handle_refusal(kind);
        }
        assert_eq!(ledger.poll(159 * S), None);
        let told = ledger.poll(160 * S).unwrap().to_string();
        let words = "refused 3 requests in 60 s: 2 busy, 1 limited; 40 more runs ended";
        assert_eq!(told, words);
        assert_eq!(ledger.poll(220 * S), None);
        assert!(ledger.handle_run(221 * S, &lease, Ending::Left).is_some());
    }
}
