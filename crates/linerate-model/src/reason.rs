//! Why a trial may not be averaged, or is done once more: what happened, as types. Words are made where
//! they are shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{FlowId, HostName, TrialId};
use crate::metric::Metric;
use crate::number::{counted, percent};
use crate::sample::Subject;
use crate::shortfall::Unread;
use crate::unit::{BitsPerSec, Nanos, Unit, significant};
use crate::workload::{Direction, Setting};

/// Why a trial may not be averaged.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Reason {
    /// The user ended it before it had begun to count, or one of several trials.
    Interrupted,
    /// A host did not do its part.
    Host {
        /// The host.
        host: HostName,
        /// In which way.
        failure: HostFailure,
        /// What it, or the way to it, said.
        words: String,
    },
    /// Flows that were connected did not reach the server's trial.
    FlowsMissing {
        /// The server.
        host: HostName,
        /// How many.
        missing: u32,
    },
    /// A host did not hand in its results in time.
    Overdue {
        /// The host.
        host: HostName,
        /// How long after the end of its traffic they were waited for.
        waited: Nanos,
    },
    /// A host granted less than the level that the cell stands for.
    Capped {
        /// The host.
        host: HostName,
        /// What was asked for, granted, and by what it was capped.
        setting: Box<Setting>,
    },
    /// Flows ended before the drain phase did.
    EndedEarly {
        /// How many ends.
        ends: usize,
        /// Of how many.
        of: usize,
        /// The first of them.
        flow: FlowId,
        /// Its host.
        host: HostName,
        /// What its end was told.
        words: String,
    },
    /// Receivers did not read what was sent, and it cannot be on its way any more.
    Unread(Unread),
    /// A host has no reading at an edge of the window.
    NoReading {
        /// The host.
        host: HostName,
        /// The edge.
        edge: Edge,
    },
    /// A host read an edge of the window more than a tenth of it late.
    ReadLate {
        /// The host.
        host: HostName,
        /// The edge.
        edge: Edge,
        /// How late.
        late: Nanos,
    },
    /// The run has no server.
    NoServer,
    /// A server that is no agent gave it up, as it says in these words.
    ServerGaveUp(String),
    /// Its payload cannot have crossed the links.
    Beyond {
        /// How much it was.
        rate: BitsPerSec,
        /// What the links carry.
        ceiling: Ceiling,
    },
    /// What a host says that it counted cannot be.
    Impossible {
        /// The host.
        host: HostName,
        /// In which way.
        how: Impossible,
    },
    /// Flows of several hosts that were to begin at the same moment did not, however their clocks are read.
    Skewed {
        /// The least time that lies between the first that had sent something and the last.
        least: Nanos,
        /// What was allowed.
        most: Nanos,
    },
    /// A host's clock was set, or ran away, while it went on.
    ClockSet {
        /// The host.
        host: HostName,
        /// By how much.
        by: Nanos,
    },
    /// Its flows were not in force as one level.
    Unshared(Unshared),
    /// Of exchanges, none ended within the window.
    NoExchange,
    /// It was done once more, and that trial stands for it.
    Superseded {
        /// Why.
        why: Box<RepeatReason>,
        /// The other.
        by: TrialId,
    },
    /// What a bundle says, in these words.
    Told(String),
}

/// Why a trial is done once more; in documents its words.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RepeatReason {
    /// It may not be averaged.
    Invalid(Reason),
    /// It is valid, but something disturbed it.
    Disturbed(Disturbance),
    /// What a bundle says, in these words.
    Told(String),
}

/// What disturbed a valid trial.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Disturbance {
    /// Its rate still rose: the second half of the window over the first.
    Rising(f64),
    /// This share of the CPUs' time, beyond what is usual, is in none of their modes.
    Unaccounted(f64),
    /// Other programs had so many CPUs beyond what they usually have.
    Others(f64),
    /// The hypervisor took this share of the CPUs' time, beyond what is usual.
    Stolen(f64),
    /// Nothing arrived for this share of the window.
    Silent(f64),
}

/// What no payload in one direction can exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// That rate.
    pub payload: BitsPerSec,
    /// The direction.
    pub direction: Direction,
    /// The signalling rate of the link in it.
    pub link: BitsPerSec,
    /// Its frames, where its MTU is known.
    pub frames: Option<Frames>,
}

/// In which way a count cannot be.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Impossible {
    /// A counter that only grows fell, or is below zero.
    Fell {
        /// The counter.
        metric: Metric,
        /// What it is of.
        subject: Subject,
    },
    /// More arrived than the other end sent in all phases.
    Unsent {
        /// The flow.
        flow: FlowId,
        /// What is counted.
        what: Moved,
        /// How much of it arrived.
        arrived: u64,
        /// The host of the other end.
        sender: HostName,
        /// How much that says that it sent.
        sent: u64,
    },
    /// A thread or a CPU was busy so many times as long as it was there.
    Beyond {
        /// The thread or the CPU.
        subject: Subject,
        /// How many times.
        times: f64,
    },
}

/// What a flow moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Moved {
    /// Payload.
    Bytes,
    /// Datagrams, each once.
    Datagrams,
    /// Responses.
    Responses,
}

/// The largest frames of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frames {
    /// The MTU of the way.
    pub mtu_bytes: u64,
    /// Payload of a frame.
    pub payload_bytes: u64,
}

/// In which way flows were not in force as one level.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Unshared {
    /// Some of them transferred nothing.
    Idle {
        /// How many.
        idle: usize,
        /// Of how many.
        of: usize,
    },
    /// Their shares differ.
    Unfair {
        /// How many flows.
        flows: usize,
        /// Jain's index of their shares.
        fairness: f64,
        /// The least that still counts as shared.
        fairness_min: f64,
    },
}

/// In which way a host did not do its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HostFailure {
    /// Nothing answers where it was.
    Lost,
    /// It answers, and has no such run or trial any more: it was taken back, or begun anew.
    Gone,
    /// It did not answer in time: it, or the way to it, may be slow for a while.
    Silent,
    /// It refuses what was asked of it, and will do so again.
    Refused,
    /// It got its instants when the window had begun; with more notice it would not have.
    Late,
    /// Its flows could not be made, or did not arrive: the path may have lost a SYN too many, or be dead.
    Unconnected,
    /// It tried and failed.
    Failed,
}

/// An edge of the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Edge {
    /// Where counting begins.
    Begin,
    /// Where it ends.
    End,
}

impl Reason {
    /// Returns the way in which a host failed, if that is the reason.
    pub fn host_failure(&self) -> Option<HostFailure> {
        match self {
            Self::Host { failure, .. } => Some(*failure),
            _ => None,
        }
    }

    /// Returns the host that it is about, if it is about one.
    pub fn host(&self) -> Option<&HostName> {
        match self {
            Self::Host { host, .. } => Some(host),
            _ => None,
        }
    }

    /// Returns the host that may be gone, if that is the reason.
    pub fn lost_host(&self) -> Option<&HostName> {
        match self {
            Self::Host {
                host,
                failure: HostFailure::Lost | HostFailure::Gone | HostFailure::Silent,
                ..
            } => Some(host),
            _ => None,
        }
    }

    /// Returns whether the trial would fail for it again.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Host { failure, .. } => *failure == HostFailure::Refused,
            Self::Capped { .. } => true,
            _ => false,
        }
    }
}

/// Returns an error's text with those of its causes.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begin => "start",
            Self::End => "end",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Host { host, words, .. } => write!(f, "host {host}: {words}"),
            Self::FlowsMissing { host, missing } => {
                write!(
                    f,
                    "host {host}: {} did not arrive",
                    counted(*missing, "flow")
                )
            }
            Self::Overdue { host, waited } => write!(
                f,
                "host {host} did not deliver its results within {waited} after the end of its traffic"
            ),
            Self::Capped { host, setting } => {
                let or_unknown = |text: &Option<String>| text.clone().unwrap_or("?".to_owned());
                // Granted as requested, it was lost on the way to the end.
                let (got, how) = if setting.granted == setting.requested {
                    (&setting.effective, "in force")
                } else {
                    (&setting.granted, "granted")
                };
                write!(
                    f,
                    "{} of {} was requested, {} {how} on {host}: clamped by {}",
                    setting.name,
                    or_unknown(&setting.requested),
                    or_unknown(got),
                    or_unknown(&setting.capped_by),
                )
            }
            Self::EndedEarly {
                ends,
                of,
                flow,
                host,
                words,
            } => write!(
                f,
                "{ends} of {of} flow ends ended early, flow {} on {host} because {words}",
                flow.0
            ),
            Self::Unread(unread) => write!(
                f,
                "{unread}, and are not on their way: the receiver's count is wrong"
            ),
            Self::NoReading { host, edge } => {
                write!(f, "host {host} has no reading at the {edge} of the window")
            }
            Self::ReadLate { host, edge, late } => write!(
                f,
                "host {host} read the {edge} of the window {late} late, more than a tenth of it"
            ),
            Self::NoServer => f.write_str("the run has no server"),
            Self::ServerGaveUp(words) | Self::Told(words) => f.write_str(words),
            Self::Beyond { rate, ceiling } => {
                let rate = Unit::BitsPerSecond.display(rate.0);
                write!(f, "refused: {rate} of payload cannot cross {ceiling}")
            }
            Self::Impossible { host, how } => {
                write!(f, "refused: host {host} counted what cannot be: {how}")
            }
            Self::Unshared(how) => how.fmt(f),
            Self::Skewed { least, most } => write!(
                f,
                "its flows began at least {least} apart, more than {most}"
            ),
            Self::ClockSet { host, by } => {
                write!(
                    f,
                    "the clock of {host} was set by {by}, or ran away, during it"
                )
            }
            Self::NoExchange => f.write_str("not one transaction ended within the window"),
            Self::Superseded { why, by } => write!(f, "{why}; trial {} replaces it", by.0),
        }
    }
}

impl fmt::Display for RepeatReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => why.fmt(f),
            Self::Disturbed(by) => by.fmt(f),
            Self::Told(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rising(halves) => write!(
                f,
                "its rate still rose: by {} from the first half to the second",
                percent(halves - 1.0)
            ),
            Self::Unaccounted(share) => write!(
                f,
                "{} more of the CPUs' time than usual is in none of their modes",
                percent(*share)
            ),
            Self::Others(cpus) => write!(
                f,
                "other programs had {} more than usual",
                Unit::Cpus.display(*cpus)
            ),
            Self::Stolen(share) => write!(
                f,
                "the hypervisor took {} more of the CPUs' time than usual",
                percent(*share)
            ),
            Self::Silent(share) => {
                write!(f, "nothing arrived for {} of the window", percent(*share))
            }
        }
    }
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let link = match self.direction {
            Direction::FromServer => "the link from the server",
            Direction::ToServer | Direction::Both => "the link to the server",
        };
        let rate = |rate: BitsPerSec| Unit::BitsPerSecond.display(rate.0);
        write!(f, "{link} of {}", rate(self.link))?;
        if let Some(Frames {
            mtu_bytes,
            payload_bytes,
        }) = self.frames
        {
            write!(
                f,
                " with an MTU of {mtu_bytes} B and frames of {payload_bytes} B of payload"
            )?;
        }
        write!(f, ", which carries at most {}", rate(self.payload))
    }
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fell { metric, subject } => {
                write!(f, "{} of {subject}, which only grows, fell", metric.name())
            }
            Self::Unsent {
                flow,
                what,
                arrived,
                sender,
                sent,
            } => write!(
                f,
                "{arrived} {what} of flow {} arrived, but {sender} sent {sent} in all",
                flow.0
            ),
            Self::Beyond { subject, times } => {
                write!(f, "{subject} was busy {} of the time", percent(*times))
            }
        }
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Datagrams => "different datagrams",
            Self::Responses => "responses",
        })
    }
}

impl fmt::Display for Unshared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle { idle: 1, of: 1 } => f.write_str("the flow transferred nothing"),
            Self::Idle { idle, of } => write!(f, "{idle} of {of} flows transferred nothing"),
            Self::Unfair {
                flows,
                fairness,
                fairness_min,
            } => write!(
                f,
                "{flows} flows shared unfairly (Jain's index {}, below {})",
                significant(*fairness),
                significant(*fairness_min),
            ),
        }
    }
}

/// As a document has them: their words.
macro_rules! told_in_words {
    ($($type:ident)*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    )*};
}
pub(crate) use told_in_words;

told_in_words!(Reason RepeatReason);

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        Self::Told(words.to_owned())
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Self {
        Self::Told(words)
    }
}

impl From<String> for RepeatReason {
    fn from(words: String) -> Self {
        Self::Told(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bundles and documents of before have these words, and who reads them may look for them.
    #[test]
    fn documents_have_the_words_and_tell_them_as_read() {
        let check = |reason: Reason, words: &str| {
            let document = serde_json::to_value(&reason).expect("a text");
            assert_eq!(document, words);
            let read: Reason = serde_json::from_value(document).expect("a text");
            assert_eq!(read, Reason::Told(words.to_owned()));
        };
        let beyond = |direction, frames| Reason::Beyond {
            rate: BitsPerSec(2e9),
            ceiling: Ceiling {
                payload: BitsPerSec(0.94e9),
                direction,
                link: BitsPerSec(1e9),
                frames,
            },
        };
        let frames = Frames {
            mtu_bytes: 1500,
            payload_bytes: 1448,
        };
        check(
            beyond(Direction::ToServer, Some(frames)),
            "refused: 2 Gbit/s of payload cannot cross the link to the server of 1 Gbit/s with an MTU \
             of 1500 B and frames of 1448 B of payload, which carries at most 940 Mbit/s",
        );
        check(
            beyond(Direction::FromServer, None),
            "refused: 2 Gbit/s of payload cannot cross the link from the server of 1 Gbit/s, which \
             carries at most 940 Mbit/s",
        );
        let superseded = |why| Reason::Superseded {
            why: Box::new(RepeatReason::Disturbed(why)),
            by: TrialId(7),
        };
        check(
            superseded(Disturbance::Rising(1.25)),
            "its rate still rose: by 25 % from the first half to the second; trial 7 replaces it",
        );
        check(
            superseded(Disturbance::Unaccounted(0.07)),
            "7 % more of the CPUs' time than usual is in none of their modes; trial 7 replaces it",
        );
        check(
            superseded(Disturbance::Others(0.7)),
            "other programs had 0.7 CPUs more than usual; trial 7 replaces it",
        );
        check(
            superseded(Disturbance::Stolen(0.07)),
            "the hypervisor took 7 % more of the CPUs' time than usual; trial 7 replaces it",
        );
        let capped = |granted: &str, effective: Option<&str>| Reason::Capped {
            host: HostName::from("client1"),
            setting: Box::new(Setting {
                effective: effective.map(str::to_owned),
                capped_by: Some("congctl of the route".to_owned()),
                ..Setting::granted(
                    "TCP_CONGESTION",
                    Some("bbr".to_owned()),
                    Some(granted.to_owned()),
                )
            }),
        };
        check(
            capped("cubic", None),
            "TCP_CONGESTION of bbr was requested, cubic granted on client1: clamped by congctl of the route",
        );
        check(
            capped("bbr", Some("cubic")),
            "TCP_CONGESTION of bbr was requested, cubic in force on client1: clamped by congctl of the route",
        );
        check(
            Reason::Unshared(Unshared::Idle { idle: 1, of: 4 }),
            "1 of 4 flows transferred nothing",
        );
        check(
            Reason::NoExchange,
            "not one transaction ended within the window",
        );
    }
}
