//! What one execution of a plan recorded.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddrV4;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::capture::TrialCapture;
use crate::datagram::Datagrams;
use crate::flag::TrialFlag;
use crate::histogram::Histogram;
use crate::host::{Availability, Snapshot};
use crate::id::{FlowId, HostName, RunId, TrialId};
use crate::lab_link::LabLink;
use crate::plan::{LeftOut, Plan};
use crate::profile::TrialProfile;
use crate::reason::Reason;
use crate::sample::End;
use crate::samples::Samples;
use crate::setting::Settings;
use crate::shortfall::{ConnectionCount, RequestCount};
use crate::unit::{BitsPerSec, Nanos};
use crate::workload::{Direction, Part};

/// The number of the bundle format that this version writes.
pub const BUNDLE_FORMAT: u32 = 3;
/// The number that a bundle has whose trials have several groups: a version that knows no groups would take the flows of
/// all for those of the first, and refuses it instead.
pub const BUNDLE_FORMAT_OF_GROUPS: u32 = 4;
/// That of a run whose trials name their hosts, which versions that know one server would take for its own; the largest that is
/// read.
pub const BUNDLE_FORMAT_OF_FLEETS: u32 = 5;

/// What a host is for in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostPart {
    /// The host under study.
    Server,
    /// A host that drives it.
    Client,
}

/// How an agent shares its host between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// No other run at the same time; refused when busy.
    Exclusive,
    /// No other run at the same time; waits its turn.
    Queued,
    /// Other runs may go on beside it; results are marked.
    Shared,
}

/// The clock of a host as the controller saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockFit {
    /// Host clock minus controller clock, both CLOCK_MONOTONIC.
    pub offset_ns: i64,
    /// Half of what the exchanges of the run leave open: the offset is right within ± this.
    pub uncertainty_ns: u64,
    /// By how many nanoseconds a second the host's clock runs faster than the controller's, at least and at most, where the
    /// run was long enough to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppb: Option<[i64; 2]>,
}

/// How a controller's requests travel to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// They do not: it is in the controller's process.
    InProcess,
    /// Within this host.
    Loopback,
    /// Encrypted, to an agent whose certificate is trusted.
    Tls,
    /// For everyone on the way to read.
    Clear,
}

/// A host of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its name in the run.
    pub name: HostName,
    /// What it is for.
    pub part: HostPart,
    /// Address and port of its agent; `in-process` for the controller's own host.
    pub agent: String,
    /// How requests travelled to it, when known. Payload always travels in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// Address that data flows use.
    pub data_address: String,
    /// Version of its agent.
    pub version: String,
    /// What serves there.
    #[serde(rename = "foreign", default)]
    pub program: HostProgram,
    /// Whether it is a namespace of this machine: CPU counters are then shared by all hosts.
    pub lab: bool,
    /// The number of its kernel's boot, when known: hosts with the same one are one machine.
    #[serde(default)]
    pub boot: Option<String>,
    /// Signalling rate of the link that data flows use, when known.
    pub link_rate: Option<BitsPerSec>,
    /// That from the host, where it is another than that towards it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_up_rate: Option<BitsPerSec>,
    /// What a lab of this run made of its link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab_link: Option<LabLink>,
    /// Frames of a million that its link loses on purpose, where it is there for trials that ask
    /// for that; they do not use other hosts, nor other trials this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_loss_ppm: Option<u32>,
    /// The groups of a fleet that it belongs to: a rack, a switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The device that data flows use, when known.
    pub link: Option<String>,
    /// Its facts at the start.
    pub snapshot: Snapshot,
    /// What can and cannot be observed on it.
    pub observers: Vec<Availability>,
    /// Its clock against the controller's.
    pub clock: ClockFit,
    /// How the agent admitted the run, and whether others went on beside it.
    pub admission: Admission,
}

impl HostRecord {
    /// Returns the signalling rate of its link on the way of payload in `direction`; for both the narrower one.
    pub fn rate_in(&self, direction: Direction) -> Option<BitsPerSec> {
        let (to, from) = (self.link_rate, self.link_up_rate.or(self.link_rate));
        match (direction, self.part) {
            (Direction::ToServer, HostPart::Server) | (Direction::FromServer, HostPart::Client) => {
                to
            }
            (Direction::ToServer, HostPart::Client) | (Direction::FromServer, HostPart::Server) => {
                from
            }
            (Direction::Both, _) => match (to, from) {
                (Some(to), Some(from)) => Some(BitsPerSec(to.0.min(from.0))),
                (to, from) => to.or(from),
            },
        }
    }

    /// Returns the MTU of the device that data flows use, when known.
    pub fn mtu_bytes(&self) -> Option<u64> {
        let link = self.link.as_deref()?;
        let mtu = self.snapshot.number(&format!("link.{link}.mtu_bytes"))?;
        (mtu >= 68.0).then_some(mtu as u64)
    }
}

/// What serves on a host of a run; in documents the name of another program, or null.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Option<String>", into = "Option<String>")]
pub enum HostProgram {
    /// An agent, which reads its host.
    #[default]
    Agent,
    /// Another program of this name: nothing is read on its host, and what it says it counted is all
    /// there is of its end.
    Foreign(String),
}

impl HostProgram {
    /// Returns whether an agent reads the host.
    pub fn is_agent(&self) -> bool {
        matches!(self, Self::Agent)
    }
}

impl From<Option<String>> for HostProgram {
    fn from(foreign: Option<String>) -> Self {
        foreign.map_or(Self::Agent, Self::Foreign)
    }
}

impl From<HostProgram> for Option<String> {
    fn from(program: HostProgram) -> Self {
        match program {
            HostProgram::Agent => None,
            HostProgram::Foreign(name) => Some(name),
        }
    }
}

/// Returns what serves on the host under study, as far as `hosts` have one.
pub fn server_program(hosts: &[HostRecord]) -> &HostProgram {
    let server = hosts.iter().find(|host| host.part == HostPart::Server);
    server.map_or(&HostProgram::Agent, |server| &server.program)
}

/// Returns whether all `hosts` run under one kernel, as namespaces of a machine do.
pub fn share_a_kernel<'h>(hosts: impl IntoIterator<Item = &'h HostRecord>) -> bool {
    let mut boots = hosts.into_iter().map(|host| host.boot.as_ref());
    let first = boots.next().flatten();
    first.is_some() && boots.all(|boot| boot == first)
}

/// `run.json`: everything of a run but its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    /// Bundle format: [`BUNDLE_FORMAT`], [`BUNDLE_FORMAT_OF_GROUPS`] or [`BUNDLE_FORMAT_OF_FLEETS`].
    pub format: u32,
    /// The run.
    pub run: RunId,
    /// What was asked, as the command line or file name.
    pub asked: String,
    /// Version of the controller.
    pub version: String,
    /// Start of the run, UTC, RFC 3339.
    pub started_utc: String,
    /// End of the run, UTC, RFC 3339; absent while it goes on or after a crash.
    pub ended_utc: Option<String>,
    /// Whether this is a whole study, with its chapters.
    pub study: bool,
    /// Why the run ended before its plan did; absent when it is complete.
    pub cut_short: Option<String>,
    /// The plan.
    pub plan: Plan,
    /// CPUs that the server's workers were pinned to, in turn; empty when they were not.
    #[serde(default)]
    pub server_cpus: Vec<u32>,
    /// CPUs that every client's workers were pinned to, in turn; empty when they were not.
    #[serde(default)]
    pub client_cpus: Vec<u32>,
    /// Where the datagram went that started the hosts of each round; absent where each began at an instant of its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multicast: Option<SocketAddrV4>,
    /// The hosts, the server first.
    pub hosts: Vec<HostRecord>,
    /// What could not be measured, found while running.
    pub left_out: Vec<LeftOut>,
}

/// Whether a trial may be averaged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// It may.
    Valid,
    /// It may not, and why; kept and shown.
    Invalid(Reason),
}

/// The execution of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// The trial.
    pub trial: TrialId,
    /// Whether it may be averaged.
    pub validity: Validity,
    /// What to know about it although it is valid: generator saturated, shared host, ….
    pub flags: Vec<TrialFlag>,
    /// Start of its measured window after the start of the run.
    pub offset_ns: u64,
    /// Length of the measured window that all ends share.
    pub window_ns: u64,
    /// Spread of the instants at which flows began, over all hosts.
    pub start_skew_ns: Option<u64>,
    /// How well that spread is known: the largest clock uncertainty among the hosts.
    pub start_skew_uncertainty_ns: Option<u64>,
}

/// Where a host took in the packets of a flow, as its socket said at the end of the trial.
///
/// It is of the last packet that came; a device keeps a flow on one queue unless it is told otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Incoming {
    /// The CPU that brought it up to the socket (SO_INCOMING_CPU); absent where none came.
    pub cpu: Option<u32>,
    /// The kernel's number of the NAPI that took it off the device (SO_INCOMING_NAPI_ID); absent
    /// where none did, as over loopback.
    pub napi: Option<u32>,
}

/// What became of one end of a flow: made by the engine, handed over by the agent, kept in a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowOutcome {
    /// The flow.
    pub flow: FlowId,
    /// Which end.
    pub end: End,
    /// What it did.
    pub part: Part,
    /// Local address and port.
    pub local: String,
    /// Remote address and port.
    pub remote: String,
    /// The CPU that its worker last ran on.
    pub cpu: Option<u32>,
    /// Where this host took in its packets; agents before this was read tell nothing.
    #[serde(default)]
    pub incoming: Incoming,
    /// When the first payload moved, of a sender when its first call with payload began: on this host's CLOCK_MONOTONIC,
    /// and relative to the begin of the window in a record.
    pub first_payload_ns: Option<i64>,
    /// Payload that this end sent in all phases.
    pub bytes_sent: u64,
    /// Payload that this end received in all phases.
    pub bytes_received: u64,
    /// For how long an end that is no agent's says that it counted those bytes; agents count by readings.
    #[serde(default)]
    pub counted_ns: Option<u64>,
    /// For a receiver, the longest wait between two receive calls inside the window; for a requester,
    /// the longest transaction that touches it. In a recording it is a sample.
    pub stall_max_ns: Option<u64>,
    /// Settings as requested, granted and effective; buffers in usable bytes, half of what the
    /// kernel says. `tcpi_snd_wnd` and `tcpi_rcv_wnd` are the largest windows seen in samples.
    pub settings: Settings,
    /// Latency of the transactions that ended inside the window, for a requester. With more than 64
    /// requesters in a trial those of one worker share a record, and it is given with the first of them.
    pub latency: Option<Histogram>,
    /// How late the requests of an open loop went that were sent inside the window, from the instant at
    /// which each was due and might go; records are shared as those of the latency. Agents before this
    /// was recorded tell nothing.
    #[serde(default)]
    pub lateness: Option<Histogram>,
    /// What became of its datagrams, if it has any; apart, since of thousands of flows most have
    /// none.
    #[serde(default)]
    pub datagrams: Option<Box<Datagrams>>,
    /// Requests of its open loop, if it is one.
    #[serde(default)]
    pub requests: Option<RequestCount>,
    /// Connections that it made one after another, if that is what it does; apart, since most do not.
    #[serde(default)]
    pub connections: Option<Box<ConnectionCount>>,
    /// Its calls with MSG_ZEROCOPY, if it makes them. Agents before this was recorded tell nothing.
    #[serde(default)]
    pub zero_copy: Option<ZeroCopyCount>,
    /// Why the flow ended before the drain phase did, if so.
    pub ended_early: Option<String>,
}

/// What the kernel has said about send calls with MSG_ZEROCOPY.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZeroCopyCount {
    /// Calls whose pages it no longer reads.
    pub done: u64,
    /// Those among them whose payload it copied after all.
    pub copied: u64,
}

impl ZeroCopyCount {
    /// Returns the share of calls that the kernel copied, 0 to 1; of a few calls none may be known to be done.
    pub fn copied_share(self) -> Option<f64> {
        (self.done > 0).then(|| self.copied as f64 / self.done as f64)
    }
}

/// One end of one flow in one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRecord {
    /// The trial.
    pub trial: TrialId,
    /// The host of this end.
    pub host: HostName,
    /// What became of it.
    pub outcome: FlowOutcome,
}

impl Deref for FlowRecord {
    type Target = FlowOutcome;

    fn deref(&self) -> &FlowOutcome {
        &self.outcome
    }
}

/// Something that happened in a run, as its bundle keeps it; what was measured lies beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Time after the start of the run.
    pub at_ns: u64,
    /// The trial it belongs to, if any.
    pub trial: Option<TrialId>,
    /// The host it is about, if any.
    pub host: Option<HostName>,
    /// What happened.
    #[serde(flatten)]
    pub what: EventKind,
}

/// What happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// Its hosts were gathered, and its plan was complete.
    RunBegan,
    /// A trial began.
    TrialBegan(Progress),
    /// A trial was over.
    TrialEnded {
        /// Why it may not be averaged, if so.
        invalid: Option<Reason>,
    },
    /// A host went away, and the run waits for it.
    HostLost {
        /// For how long at the most.
        #[serde(rename = "wait_ns")]
        wait: Nanos,
    },
    /// The plan changed: trials are repeated, experiments go on or are decided.
    PlanChanged,
    /// The run was over.
    RunEnded {
        /// Why before its plan was, if so.
        cut_short: Option<String>,
    },
    /// Anything, in words: what bundles were told before events had a type.
    Told {
        /// One sentence.
        text: String,
    },
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunBegan => f.write_str("the run began"),
            Self::TrialBegan(Progress { over, of, .. }) => {
                write!(f, "trial {} of {of} began", over + 1)
            }
            Self::TrialEnded { invalid: None } => f.write_str("the trial ended"),
            Self::TrialEnded { invalid: Some(why) } => write!(f, "invalid: {why}"),
            Self::HostLost { wait } => {
                write!(f, "the host is lost; the run waits up to {wait} for it")
            }
            Self::PlanChanged => f.write_str("the plan changed"),
            Self::RunEnded { cut_short: None } => f.write_str("the run ended"),
            Self::RunEnded {
                cut_short: Some(why),
            } => write!(f, "the run ended early: {why}"),
            Self::Told { text } => f.write_str(text),
        }
    }
}

/// How far a run had come when a trial began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Trials that were over.
    pub over: usize,
    /// Trials there were.
    pub of: usize,
    /// What the rest would take, from what trials took so far, where that is known.
    #[serde(rename = "left_ns")]
    pub left: Option<Nanos>,
}

/// What one trial left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialEvidence {
    /// Whether it may be averaged, and its window.
    pub record: TrialRecord,
    /// Its flows, both ends.
    pub flows: Vec<FlowRecord>,
    /// Its samples.
    pub samples: Samples,
    /// Where the CPUs of its hosts were found, if that was asked for.
    pub profiles: Vec<TrialProfile>,
    /// What its hosts captured, and the files; empty if that was not asked for.
    pub captures: Vec<(TrialCapture, Vec<u8>)>,
}

/// A whole run as read from its bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// `run.json`.
    pub document: RunDocument,
    /// `trials.parquet`, in the order of execution.
    pub trials: Vec<TrialRecord>,
    /// `flows.parquet`.
    pub flows: Vec<FlowRecord>,
    /// `samples.parquet`, sorted by trial, host, subject, metric, time.
    pub samples: Samples,
    /// `stacks.parquet`, sorted by trial and host; empty where no profile was asked for.
    pub profiles: Vec<TrialProfile>,
    /// `captures.parquet`, sorted by trial and host; empty where no capture was asked for. The frames
    /// stay in their files.
    pub captures: Vec<TrialCapture>,
    /// `events.ndjson`.
    pub events: Vec<Event>,
    /// What was damaged or missing in the bundle; empty when it is whole.
    pub damage: Vec<String>,
}

impl Validity {
    /// Returns why the trial may not be averaged, if so.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Validity::Valid => None,
            Validity::Invalid(reason) => Some(reason),
        }
    }
}

impl RunDocument {
    /// Returns that of a plan of which nothing has been executed, on hosts that are not known.
    pub fn of_plan(plan: Plan) -> Self {
        Self {
            format: BUNDLE_FORMAT,
            run: RunId(String::new()),
            asked: String::new(),
            version: String::new(),
            started_utc: String::new(),
            ended_utc: None,
            study: false,
            cut_short: None,
            plan,
            server_cpus: Vec::new(),
            client_cpus: Vec::new(),
            multicast: None,
            hosts: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Returns the host under study.
    pub fn server(&self) -> Option<&HostRecord> {
        self.hosts.iter().find(|host| host.part == HostPart::Server)
    }

    /// Returns the host called `name`.
    pub fn host(&self, name: &HostName) -> Option<&HostRecord> {
        self.hosts.iter().find(|host| host.name == *name)
    }

    /// Returns the hosts that a trial is between, by their parts in it: those that it names, or all of the run.
    pub fn hosts_of(&self, trial: TrialId) -> Cow<'_, [HostRecord]> {
        let named = self.plan.trial(trial).map_or(&[][..], |trial| &trial.hosts);
        if named.is_empty() {
            return Cow::Borrowed(&self.hosts);
        }
        let parts = std::iter::once(HostPart::Server).chain(std::iter::repeat(HostPart::Client));
        let hosts = named.iter().zip(parts).filter_map(|(name, part)| {
            let known = self.host(name)?.clone();
            Some(HostRecord { part, ..known })
        });
        Cow::Owned(hosts.collect())
    }
}

impl Recording {
    /// Returns that of a run of which nothing has been recorded.
    pub fn empty(document: RunDocument) -> Self {
        Self {
            document,
            trials: Vec::new(),
            flows: Vec::new(),
            samples: Samples::default(),
            profiles: Vec::new(),
            captures: Vec::new(),
            events: Vec::new(),
            damage: Vec::new(),
        }
    }

    /// Returns what became of a trial.
    pub fn record(&self, trial: TrialId) -> Option<&TrialRecord> {
        self.trials.iter().find(|record| record.trial == trial)
    }

    /// Returns what became of the ends of a trial's flows.
    pub fn flows_of(&self, trial: TrialId) -> impl Iterator<Item = &FlowRecord> {
        self.flows.iter().filter(move |flow| flow.trial == trial)
    }
}

impl TrialRecord {
    /// Returns whether the trial may be averaged.
    pub fn is_valid(&self) -> bool {
        self.validity == Validity::Valid
    }

    /// Returns the measured window's length.
    pub fn window(&self) -> Nanos {
        Nanos(self.window_ns)
    }
}
