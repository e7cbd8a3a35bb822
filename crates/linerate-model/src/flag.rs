//! What to know of a trial although it may be averaged, as types. Words are made where they are shown.

use std::fmt;

use crate::BitsPerSec;
use crate::id::HostName;
use crate::number::{agreeing, counted, percent};
use crate::reason::{Reason, Unshared};
use crate::shortfall::{Shortfall, Unread};
use crate::unit::{Nanos, Unit, significant};

/// What to know of a trial although it may be averaged.
///
/// Shares are of 1 throughout.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TrialFlag {
    /// The user ended its traffic this long after the begin of the window.
    Interrupted(Nanos),
    /// A server that is no agent gave it up.
    GivenUp {
        /// What that server said.
        why: Box<Reason>,
        /// How long after the begin of the window.
        after: Nanos,
    },
    /// Not all came that its hosts measured.
    Partial {
        /// Why.
        why: Box<Reason>,
        /// How much of the window is known.
        kept: Nanos,
        /// How long it was to be.
        of: Nanos,
    },
    /// Other runs had a host as well.
    Shared {
        /// The host.
        host: HostName,
        /// How many runs.
        runs: u32,
    },
    /// A host has something to say of its part.
    Noted {
        /// The host.
        host: HostName,
        /// What it says.
        note: Note,
    },
    /// Flows did less than was due: requests of an open loop that were not sent, connections that failed.
    FellShort {
        /// Their host.
        host: HostName,
        /// What is missing of the first flow's.
        first: Shortfall,
        /// How many more flows fell short.
        others: usize,
    },
    /// Receivers waited for the ends of streams in vain: what was sent after the window may still be on its way.
    StillUnread(Unread),
    /// Flows were not in force as one level, and something explains why.
    Unshared {
        /// In which way.
        how: Unshared,
        /// What explains it.
        because: Because,
    },
    /// The halves of the window differ.
    Unsteady {
        /// The second over the first.
        halves: f64,
        /// Time into the window from which on the rate is steady, if it is by the middle.
        steady_after_ns: Option<f64>,
    },
    /// What receive calls returned is not what arrived in the window.
    Buffered {
        /// By how much more; negative where it was less.
        beyond_bytes: f64,
        /// That over what arrived, without its sign; absent where nothing did.
        share: Option<f64>,
    },
    /// The same by more than receive buffers hold: both were not read at one time.
    ReadApart {
        /// By how much more; negative where it was less.
        beyond_bytes: f64,
        /// That over what arrived, without its sign; absent where nothing did.
        share: Option<f64>,
    },
    /// This share of what arrived in order had come before the window, and was held back by a lost segment.
    HeldBack(f64),
    /// For a part of the window nothing arrived in any flow, although something was under way.
    Silent {
        /// Time into the window at which that began.
        from: Nanos,
        /// How long it lasted.
        length: Nanos,
        /// The share of the window that this is.
        share: f64,
    },
    /// Throughput to a server of another program is what TCP acknowledged.
    Acknowledged {
        /// The program.
        program: String,
    },
    /// Readings span only this share of the window.
    Uncovered(f64),
    /// The generator's busiest worker ran all the time: this share of it.
    Saturated(f64),
    /// A worker wanted all the time, and was not given it.
    ShortOfCpu {
        /// The share in which it ran.
        ran: f64,
        /// The share in which it waited for a CPU.
        waited: f64,
    },
    /// Other programs took more of the machine than a measurement should share.
    OtherPrograms {
        /// CPUs' worth of their time.
        cpus: f64,
        /// Whether the relays of a lab are among them.
        in_lab: bool,
    },
    /// Others had more of a device that the flows use than a measurement should share.
    OtherTraffic {
        /// The device's host.
        host: HostName,
        /// The device.
        device: String,
        /// Whether of what it sent; else of what it received.
        is_sent: bool,
        /// The share of the payload that was neither the flows' nor readings of this measurement.
        share: f64,
    },
    /// Segments arrived at a host with a wrong checksum: TCP drops them, and its sender takes them for lost.
    Damaged {
        /// The host.
        host: HostName,
        /// How many, of all its traffic.
        segments: u64,
    },
    /// The hypervisor gave this share of the CPUs' time to others.
    Stolen(f64),
    /// This share of the CPUs' time is in no mode of /proc/stat.
    Unaccounted(f64),
    /// Throughput is what TCP acknowledged at the senders.
    UnreadAtReceiver {
        /// The host that receives.
        host: HostName,
    },
    /// What a bundle says, in these words.
    Told(String),
}

/// What a host has to say of its part.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Note {
    /// Its agent allows callers without a token this rate, all flows together.
    RateLimit(BitsPerSec),
    /// What its agent, or the way to it, says in these words.
    Words(String),
}

/// What explains that flows were not in force as one level.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Because {
    /// The window holds so few messages or segments for each.
    FewPieces(f64),
    /// This share of the segments was sent again.
    Losses(f64),
    /// One flow sent this share of its segments again, others less.
    FlowLosses(f64),
    /// Their round trips differ.
    RoundTrips {
        /// The shortest, in ns.
        least_ns: f64,
        /// The longest, in ns.
        most_ns: f64,
    },
    /// Those that moved anything are most of them, and share as flows do.
    OthersShare,
    /// Workers without CPU time left served them.
    Workers,
    /// Of the workers that served them one waited for a CPU for this share of the time.
    WaitedForCpu(f64),
}

/// What stands before the rate of [`Note::RateLimit`].
const RATE_LIMIT: &str = "limited by the agent to ";

impl TrialFlag {
    /// Returns what it is about in a few words, where many trials have it; its numbers are in its whole text.
    pub fn brief(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unsteady { .. } => "not steady",
            Self::Buffered { .. } => "payload in receive buffers",
            Self::Saturated(_) => "generator saturated",
            Self::ShortOfCpu { .. } => "generator short of CPU",
            Self::OtherPrograms { .. } => "other programs ran",
            Self::Unaccounted(_) => "CPU time in no mode",
            _ => return None,
        })
    }

    /// Returns whether an agent held the trial to a rate.
    pub fn is_agents_limit(&self) -> bool {
        self.agents_limit().is_some()
    }

    /// Returns the rate that an agent held the trial to, all flows together.
    pub fn agents_limit(&self) -> Option<BitsPerSec> {
        match self {
            Self::Noted {
                note: Note::RateLimit(rate),
                ..
            } => Some(*rate),
            _ => None,
        }
    }
}

/// Reads the words of a document: what begins with a host is what that host has to say, anything else stays as it is
/// told.
impl From<String> for TrialFlag {
    fn from(words: String) -> Self {
        let said = words
            .strip_prefix("host ")
            .and_then(|rest| rest.split_once(": "))
            // "host a, requests: …" is no note.
            .filter(|(host, _)| !host.contains(','));
        let Some((host, said)) = said else {
            return Self::Told(words);
        };
        let rate = said
            .strip_prefix(RATE_LIMIT)
            .and_then(|rate| rate.parse().ok());
        Self::Noted {
            host: host.into(),
            note: rate.map_or_else(|| Note::Words(said.to_owned()), Note::RateLimit),
        }
    }
}

impl fmt::Display for TrialFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(after) => {
                write!(f, "interrupted {after} after the start of the window")
            }
            Self::GivenUp { why, after } => {
                write!(f, "{why} {after} after the start of the window")
            }
            Self::Partial { why, kept, of } if kept == of => {
                write!(f, "not all hosts delivered what they measured: {why}")
            }
            Self::Partial { why, kept, of } => {
                write!(f, "{kept} of the window of {of} are known: {why}")
            }
            Self::Shared { host, runs } => {
                write!(
                    f,
                    "host {host} was shared with {}",
                    counted(*runs, "other run")
                )
            }
            Self::Noted { host, note } => write!(f, "host {host}: {note}"),
            Self::FellShort {
                host,
                first,
                others,
            } => {
                write!(f, "host {host}, {first}")?;
                match others {
                    0 => Ok(()),
                    others => write!(f, "; and of {}", counted(*others, "more flow")),
                }
            }
            Self::StillUnread(unread) => write!(
                f,
                "{unread} when the ends of these streams were no longer waited for"
            ),
            Self::Unshared { how, because } => write!(f, "{how}: {because}"),
            Self::Unsteady {
                halves,
                steady_after_ns,
            } => {
                let word = if *halves >= 1.0 { "more" } else { "less" };
                write!(
                    f,
                    "not steady: the second half of the window carried {} {word} than the first",
                    percent((halves - 1.0).abs())
                )?;
                match steady_after_ns {
                    Some(ns) => {
                        let after = Unit::Nanoseconds.display(*ns);
                        write!(f, "; steady from {after} on (MSER-5)")
                    }
                    None => Ok(()),
                }
            }
            Self::HeldBack(share) => write!(
                f,
                "{} of what is counted had come before the window, and waited for a lost segment in it",
                percent(*share)
            ),
            Self::Silent {
                from,
                length,
                share,
            } => write!(
                f,
                "from {from} into the window nothing arrived for {length} in any flow, {} of it",
                percent(*share)
            ),
            Self::Buffered {
                beyond_bytes,
                share,
            } => {
                let meaning = if *beyond_bytes > 0.0 {
                    "it was in receive buffers before the window"
                } else {
                    "it is still in receive buffers"
                };
                let difference = difference(*beyond_bytes, *share);
                write!(f, "receive calls returned {difference}: {meaning}")
            }
            Self::ReadApart {
                beyond_bytes,
                share,
            } => {
                let difference = difference(*beyond_bytes, *share);
                write!(
                    f,
                    "receive calls returned {difference}: more than receive buffers hold, so that TCP was read at \
                     another time"
                )
            }
            Self::Acknowledged { program } => write!(
                f,
                "throughput to the server is what its TCP acknowledged, because {program} does not report \
                 what it has read so far"
            ),
            Self::Uncovered(share) => write!(
                f,
                "readings span only {} of the measured window",
                percent(*share)
            ),
            Self::Saturated(share) => write!(
                f,
                "generator saturated: its busiest worker ran {} of the time",
                percent(*share)
            ),
            Self::ShortOfCpu { ran, waited } => write!(
                f,
                "generator short of CPU: a worker ran {} of the time and waited for a CPU {} of it",
                percent(*ran),
                percent(*waited)
            ),
            Self::OtherPrograms { cpus, in_lab } => {
                let own = if *in_lab {
                    ", the lab's own relays among them,"
                } else {
                    ""
                };
                let cpus = Unit::Cpus.display(*cpus);
                write!(f, "other programs{own} used {cpus} during the window")
            }
            Self::OtherTraffic {
                host,
                device,
                is_sent,
                share,
            } => {
                let word = if *is_sent { "sent" } else { "received" };
                let share = percent(*share);
                write!(
                    f,
                    "{share} of what {device} of {host} {word} was neither the flows' nor readings of this \
                     measurement"
                )
            }
            Self::Damaged { host, segments } => write!(
                f,
                "host {host}: {} arrived damaged (wrong checksum), which their senders take for lost",
                counted(*segments, "segment")
            ),
            Self::Stolen(share) => write!(
                f,
                "the hypervisor gave {} of the CPUs' time to others",
                percent(*share)
            ),
            Self::Unaccounted(share) => write!(
                f,
                "{} of the CPUs' time is in no mode of /proc/stat: not known whether it was taken or \
                 not counted",
                percent(*share)
            ),
            Self::UnreadAtReceiver { host } => write!(
                f,
                "throughput is what TCP acknowledged to the sender, because no reading of host {host} \
                 in the window arrived"
            ),
            Self::Told(words) => f.write_str(words),
        }
    }
}

/// What receive calls returned and TCP did not take in, or the other way round.
fn difference(beyond_bytes: f64, share: Option<f64>) -> String {
    let word = if beyond_bytes > 0.0 { "more" } else { "less" };
    let bytes = Unit::Bytes.display(beyond_bytes.abs());
    let share = share.map_or(String::new(), |share| format!(" ({})", percent(share)));
    format!("{bytes} {word} than arrived in the window{share}")
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateLimit(rate) => write!(f, "{RATE_LIMIT}{rate}"),
            Self::Words(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewPieces(pieces) => write!(
                f,
                "at this rate the window holds {} for each",
                agreeing(
                    &significant(*pieces),
                    "message or segment",
                    "messages or segments"
                )
            ),
            Self::Losses(share) => write!(
                f,
                "{} of the segments were retransmitted, and each flow slows down for its own losses",
                percent(*share)
            ),
            Self::FlowLosses(share) => write!(
                f,
                "one of them retransmitted {} of its segments, and each flow slows down for its own losses",
                percent(*share)
            ),
            Self::RoundTrips { least_ns, most_ns } => write!(
                f,
                "their round trips differ, from {} to {}",
                Unit::Nanoseconds.display(*least_ns),
                Unit::Nanoseconds.display(*most_ns)
            ),
            Self::OthersShare => f.write_str("what the others carried is counted"),
            Self::Workers => f.write_str("each worker shares its CPU time among its flows"),
            Self::WaitedForCpu(share) => {
                write!(
                    f,
                    "a worker waited for a CPU {} of the time",
                    percent(*share)
                )
            }
        }
    }
}

crate::reason::told_in_words!(TrialFlag);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shortfall::{ConnectionCount, RequestCount};

    /// Bundles and documents of before have these words, and who reads them may look for them.
    #[test]
    fn documents_have_the_words_and_tell_them_as_read() {
        let check = |flag: TrialFlag, words: &str| {
            let document = serde_json::to_value(&flag).expect("a text");
            assert_eq!(document, words);
            let read: TrialFlag = serde_json::from_value(document).expect("a text");
            match flag {
                TrialFlag::Noted { .. } => assert_eq!(read, flag),
                _ => assert_eq!(read, TrialFlag::Told(words.to_owned())),
            }
        };
        let host = HostName::from("server");
        check(
            TrialFlag::Interrupted(Nanos::from_ms(1500)),
            "interrupted 1.5 s after the start of the window",
        );
        let short = |others| TrialFlag::FellShort {
            host: host.clone(),
            first: Shortfall::Requests(RequestCount { due: 100, sent: 90 }),
            others,
        };
        let words = "host server, requests: 10 of 100 that were due were not sent, since responses \
                     came too slowly";
        check(short(0), words);
        check(short(2), &format!("{words}; and of 2 more flows"));
        check(
            TrialFlag::FellShort {
                host: host.clone(),
                first: Shortfall::Connections(ConnectionCount {
                    made: 7,
                    failed: 2,
                    last_failure: Some("connecting failed".to_owned()),
                }),
                others: 0,
            },
            "host server, connections: 2 failed, the last: connecting failed",
        );
        let shared = |runs| TrialFlag::Shared {
            host: host.clone(),
            runs,
        };
        check(shared(1), "host server was shared with 1 other run");
        check(shared(2), "host server was shared with 2 other runs");
        let noted = |note| TrialFlag::Noted {
            host: host.clone(),
            note,
        };
        check(
            noted(Note::RateLimit(BitsPerSec(12.34e6))),
            "host server: limited by the agent to 12.34 Mbit/s",
        );
        let words = "limited by the agent to what its owner likes".to_owned();
        check(
            noted(Note::Words(words.clone())),
            &format!("host server: {words}"),
        );
        let damaged = TrialFlag::Damaged {
            host: host.clone(),
            segments: 18,
        };
        let words = "host server: 18 segments arrived damaged (wrong checksum), which their senders take for lost";
        assert_eq!(damaged.to_string(), words);
        check(
            TrialFlag::Stolen(0.07),
            "the hypervisor gave 7 % of the CPUs' time to others",
        );
        check(
            TrialFlag::Buffered {
                beyond_bytes: -1_048_576.0,
                share: None,
            },
            "receive calls returned 1 MiB less than arrived in the window: it is still in receive buffers",
        );
        check(
            TrialFlag::Unshared {
                how: Unshared::Unfair {
                    flows: 2,
                    fairness: 0.61,
                    fairness_min: 0.8,
                },
                because: Because::RoundTrips {
                    least_ns: 1e6,
                    most_ns: 5e6,
                },
            },
            "2 flows shared unfairly (Jain's index 0.61, below 0.8): their round trips differ, from \
             1 ms to 5 ms",
        );
        check(
            TrialFlag::Unsteady {
                halves: 0.9,
                steady_after_ns: None,
            },
            "not steady: the second half of the window carried 10 % less than the first",
        );
        check(
            TrialFlag::Unsteady {
                halves: 1.12,
                steady_after_ns: Some(1.5e9),
            },
            "not steady: the second half of the window carried 12 % more than the first; steady from \
             1.5 s on (MSER-5)",
        );
    }
}
