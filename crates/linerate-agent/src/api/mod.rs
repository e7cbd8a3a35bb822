//! What a controller may ask of an agent, as types and as a trait.
//!
//! The wire form is HTTP with JSON; `docs/reference/openapi.json` describes it and is generated
//! from these types.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_model::capture::CaptureOutcome;
use linerate_model::experiment::{Cell, Timing};
use linerate_model::host::{Availability, Program, Snapshot};
use linerate_model::manner::Manner;
use linerate_model::probe::Probes;
use linerate_model::profile::Stack;
use linerate_model::run::{Admission, Control, FlowOutcome};
use linerate_model::sample::{End, Sample};
use linerate_model::setting::Settings;
use linerate_model::socket::SocketRow;
use linerate_model::unit::{BitsPerSec, Nanos};
use linerate_model::workload::{FlowOptions, Part, Traffic};
use linerate_model::{FlowId, RunId, TrialId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tls::client::HandshakeError;
pub use crate::trigger::{Trigger, TriggerKey};

/// The HTTP client.
pub mod client;
/// Connections for requests.
pub(crate) mod connection;
/// The OpenAPI document.
pub mod openapi;
/// What can be asked, each once.
pub(crate) mod operation;
/// Which of a host's addresses answers.
pub mod reach;

/// What an agent calls itself.
pub const PROGRAM: &str = "linerate";
/// Version of the API; an agent answers requests of its own version only.
pub const API_VERSION: u32 = 3;
/// The port of `linerate serve`, shared with iperf3 by habit.
pub const PORT_DEFAULT: u16 = 5201;
/// Longest label of a run.
pub const LABEL_CHARS_MAX: usize = 200;
/// Longest time between samples that may be asked for: limits are held by the readings.
pub const SAMPLE_INTERVAL_MAX: Nanos = Nanos::from_s(10);

/// Who an agent is and whether it is busy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    /// Always `linerate`; tells an agent from another program on the port.
    pub program: String,
    /// Version of the program.
    pub version: String,
    /// Version of this API.
    pub api: u32,
    /// The host's own name.
    pub host_name: String,
    /// Whether the host is a namespace of a lab, sharing CPUs with other hosts.
    pub lab: bool,
    /// A digest of the number of its kernel's boot: hosts that tell the same one are one machine.
    #[serde(default)]
    pub boot: Option<String>,
    /// Whether this caller may observe the host; if not, why.
    pub observe_refused: Option<String>,
    /// What the agent is busy with.
    pub busy: Option<Busy>,
    /// What the agent allows without a token.
    pub limits: LimitsInfo,
}

/// What an agent that was launched tells whoever launched it: how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Always `linerate`.
    pub program: String,
    /// Version of the program.
    pub version: String,
    /// The port that it listens on.
    pub port: u16,
    /// The fingerprint of the certificate that it shows.
    pub certificate: String,
    /// What Slurm calls its host (`SLURMD_NODENAME`, srun(1)), if that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// An agent's answer to a caller that proved to know a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenProof {
    /// That the agent knows it, too: HMAC-SHA256 with the SHA-256 digest of the token as the key, over `agent` and 32
    /// bytes exported from the TLS connection for `EXPORTER-linerate-token-proof`; 64 hexadecimal digits.
    pub proof: String,
}

/// What an agent is busy with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Busy {
    /// What the run calls itself; callers without a token are not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How long it has been going on.
    pub since: Nanos,
    /// How much longer it said it would take.
    pub expected_left: Option<Nanos>,
    /// Runs that wait in the queue.
    pub waiting: u32,
}

/// Limits for callers without a token; absent means none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LimitsInfo {
    /// Flows of one trial, and of all trials of one network together.
    pub flows: Option<u32>,
    /// Length of one trial.
    pub trial: Option<Nanos>,
    /// Payload of all their trials together, both directions.
    pub rate: Option<BitsPerSec>,
    /// Runs of all of them at the same time; one network may have half.
    #[serde(default)]
    pub runs: Option<u32>,
    /// How long one run may have the host.
    #[serde(default)]
    pub run: Option<Nanos>,
}

/// Both instants of a clock exchange on the agent's CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReading {
    /// When the request was taken up.
    pub received_ns: u64,
    /// When the answer was made.
    pub sent_ns: u64,
}

/// Asks to use the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdmitRequest {
    /// The run.
    pub run: RunId,
    /// What others see while they wait, at most 200 characters.
    pub label: String,
    /// How the host is to be shared.
    pub admission: Admission,
    /// How long the run expects to take.
    pub expected: Option<Nanos>,
    /// Whether the runs of all callers without the token are ended for it. Needs the scope `admin`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evict: bool,
}

/// The answer to [`AdmitRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Admitted {
    /// Secret that names the run in every further request. It ends 20 s after the last of them, or
    /// 2 s after the run hung up.
    pub lease: String,
    /// Place in the queue, from 1; absent once admitted.
    pub queue_place: Option<u32>,
    /// How the host is shared.
    pub admission: Admission,
    /// Other runs that go on at the moment.
    pub shared_with: u32,
}

/// The answer to a caller who takes the host back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evicted {
    /// Runs that had the host or waited for it, and have lost it.
    pub runs: usize,
}

/// What to look at beyond facts and observers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InventoryRequest {
    /// Address whose device is wanted.
    pub address: Option<String>,
    /// Whether to measure the memory's copy rate, which keeps a CPU busy for 150 ms.
    #[serde(default)]
    pub memory_copy: bool,
    /// Lease of the run that asks, if it has one: while its own trial is the only one, the agent may
    /// do what that trial feels.
    pub lease: Option<String>,
}

/// What an agent knows of its host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Inventory {
    /// Facts of the host.
    pub snapshot: Snapshot,
    /// What can and cannot be observed.
    pub observers: Vec<Availability>,
    /// The device that carries the address asked for.
    pub link: Option<String>,
}

/// What every observer of a host read at one time, for whoever watches the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// The host's own name.
    pub host_name: String,
    /// When the reading was complete, on the host's CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The values. Counters as they stand: two observations make a rate.
    pub samples: Vec<Sample>,
    /// What can and cannot be observed.
    pub observers: Vec<Availability>,
    /// The host's TCP sockets, if they were asked for.
    #[serde(default)]
    pub sockets: Option<SocketsSeen>,
    /// The programs that had CPU time so far, those with most first, if sockets were asked for.
    #[serde(default)]
    pub programs: Vec<Program>,
}

/// What to look at beyond the observers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ObservationRequest {
    /// Which TCP sockets are wanted as rows, in the language of `linerate watch --filter`; none
    /// when absent.
    pub sockets: Option<String>,
    /// Time until the caller asks again, in nanoseconds. What counts by differences, as the totals of
    /// sockets, goes on for three of them, of an hour at the most; for a minute when absent.
    pub interval_ns: Option<u64>,
}

/// TCP sockets of a host at one instant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SocketsSeen {
    /// When they were read, on the host's CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Those that were asked for, 4096 at the most.
    pub rows: Vec<SocketRow>,
    /// How many more there are.
    pub beyond: u64,
    /// Names and numbers of the processes that hold them, `nginx/812`, by the sockets' inodes; as
    /// of the last 5 s, and as far as the agent may see.
    pub owners: BTreeMap<u64, String>,
}

/// One flow of an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowAssignment {
    /// The flow.
    pub flow: FlowId,
    /// What this end does.
    pub part: Part,
}

/// One host's part in one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The trial.
    pub trial: TrialId,
    /// Whether this host connects or accepts.
    pub end: End,
    /// Where the flows connect to, `ADDRESS:PORT`, or `unix:@NAME`; only for the connecting end.
    pub peer: Option<String>,
    /// Local address to connect from; the kernel chooses when absent.
    pub bind: Option<String>,
    /// [`Prepared::instance`] of the agent at the other end; only for the connecting end.
    #[serde(default)]
    pub server: Option<String>,
    /// 32 hexadecimal digits that tell this trial's flows from others'.
    pub cookie: String,
    /// The traffic.
    pub traffic: Traffic,
    /// Options of every socket.
    pub options: FlowOptions,
    /// How the traffic is made.
    #[serde(default)]
    pub manner: Manner,
    /// The flows of this host.
    pub flows: Vec<FlowAssignment>,
    /// Further groups of the trial with flows of this host; they start with the first at one instant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<GroupAssignment>,
    /// Worker threads at the most; the number of CPUs when absent.
    pub workers_max: Option<u32>,
    /// CPUs to pin workers to, in turn; not pinned when empty.
    pub cpus: Vec<u32>,
    /// Who chose them.
    #[serde(default)]
    pub placement: Placement,
    /// Time between samples.
    pub sample_interval: Nanos,
    /// What is looked at beyond what every trial shows.
    #[serde(default, skip_serializing_if = "Probes::is_none")]
    pub probes: Probes,
    /// Where this host sees the frames of its flows, if a capture is asked for and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_at: Option<CaptureAt>,
    /// What of the host itself is changed for the trial; only in a lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// Upper bound on the trial's length, for the agent's limits.
    pub length: Nanos,
    /// What a long path may add to it, which nobody knows before the handshakes.
    #[serde(default)]
    pub warm_up_more: Nanos,
    /// What each flow may send at the most; unlimited when absent.
    #[serde(default)]
    pub flow_rate_max: Option<BitsPerSec>,
}

/// One host's part in a further group of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupAssignment {
    /// The traffic.
    pub traffic: Traffic,
    /// Options of every socket.
    pub options: FlowOptions,
    /// How the traffic is made.
    #[serde(default)]
    pub manner: Manner,
    /// The flows of this host.
    pub flows: Vec<FlowAssignment>,
}

impl Assignment {
    /// Returns the flows of all its groups.
    pub fn all_flows(&self) -> impl Iterator<Item = &FlowAssignment> {
        let beside = self.beside.iter().flat_map(|group| &group.flows);
        self.flows.iter().chain(beside)
    }

    /// Returns what it has of each group, as an assignment of that group alone.
    pub fn of_groups(&self) -> Vec<Assignment> {
        let none = Assignment {
            flows: Vec::new(),
            beside: Vec::new(),
            ..self.clone()
        };
        let first = Assignment {
            flows: self.flows.clone(),
            ..none.clone()
        };
        let alone = |group: &GroupAssignment| Assignment {
            traffic: group.traffic.clone(),
            options: group.options.clone(),
            manner: group.manner.clone(),
            flows: group.flows.clone(),
            ..none.clone()
        };
        let all = std::iter::once(first).chain(self.beside.iter().map(alone));
        // A host may have flows of later groups only.
        all.filter(|group| !group.flows.is_empty()).collect()
    }
}

/// What of a host is changed for a trial: set before its flows are made, put back when it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Name of the device that carries the flows, where that is known.
    pub device: Option<String>,
    /// The level of each knob.
    pub levels: Cell,
}

/// Where a host sees the frames of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureAt {
    /// Name of the device that carries the flows.
    pub device: String,
    /// The server's port, for agents of earlier versions: later ones go by the ports that they have.
    pub port: u16,
}

/// Who chooses the CPUs of the workers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Whoever asked for the run: `cpus`, or the scheduler where those are none.
    #[default]
    AsAsked,
    /// The controller, as both ends share a machine: `cpus`, unless the agent may not run there.
    Chosen {
        /// Why those, in words.
        why: String,
    },
    /// The agent: CPUs of the NUMA node of the device of the data address, where there are others.
    NearLink,
}

/// The answer to [`Assignment`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Prepared {
    /// Settings of each flow that exists already (the connecting end's).
    pub settings: Vec<FlowSettings>,
    /// The agent's limit on this trial's payload rate, to be kept by both ends.
    pub rate_limit: Option<BitsPerSec>,
    /// 32 hexadecimal digits that the agent's process chose for itself, by which it can be told from others.
    #[serde(default)]
    pub instance: Option<String>,
    /// Name in the abstract namespace of Unix sockets that the accepting end listens on.
    #[serde(default)]
    pub socket_name: Option<String>,
    /// The longest round trip that the handshakes of the first flows measured, nanoseconds.
    #[serde(default)]
    pub round_trip_ns: Option<u64>,
    /// What of [`Assignment::warm_up_more`] the agent's limits leave.
    #[serde(default)]
    pub warm_up_more: Nanos,
}

/// Settings of one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSettings {
    /// The flow.
    pub flow: FlowId,
    /// Requested and granted.
    pub settings: Settings,
}

/// The instants of a trial on the agent's CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// Flows begin.
    pub start_ns: u64,
    /// Counting begins.
    pub measure_begin_ns: u64,
    /// Counting ends.
    pub measure_end_ns: u64,
    /// Senders stop.
    pub stop_ns: u64,
    /// How much the clocks of two hosts may differ all the same: a peer that ends so much before the stop is
    /// not early.
    #[serde(default)]
    pub skew_ns: u64,
    /// What starts it instead of the clock: all instants are then later or earlier by as much as the one that a datagram
    /// says for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
}

impl StartRequest {
    /// Returns the same instants with the first at `start_ns`, and nothing to wait for.
    pub(crate) fn beginning_at(&self, start_ns: u64) -> Self {
        let later = |at_ns: u64| start_ns.saturating_add(at_ns.saturating_sub(self.start_ns));
        Self {
            start_ns,
            measure_begin_ns: later(self.measure_begin_ns),
            measure_end_ns: later(self.measure_end_ns),
            stop_ns: later(self.stop_ns),
            trigger: None,
            ..*self
        }
    }
}

/// How far a trial has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TrialState {
    /// Waits for flows to arrive.
    Gathering {
        /// Flows still missing.
        missing: u32,
    },
    /// All flows exist; waits for the instants.
    Ready,
    /// Traffic flows, or soon will.
    Running,
    /// Over; results are kept for 30 s.
    Finished,
    /// Ended without result.
    Failed {
        /// The reason.
        why: String,
    },
}

impl TrialState {
    /// Returns whether flows are still missing.
    pub fn is_gathering(&self) -> bool {
        matches!(self, Self::Gathering { .. })
    }

    /// Returns whether nothing more comes of the trial.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Finished | Self::Failed { .. })
    }
}

/// What is wanted of a trial's record; what lies before has arrived and may be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct PollFrom {
    /// Number of the first sample.
    #[serde(rename = "from")]
    pub sample: usize,
    /// Number of the first flow outcome.
    pub flow: usize,
    /// How long the answer may wait for the end of the trial, 1 s at the most; an agent that does not know
    /// this answers at once.
    pub wait_ns: u64,
}

/// State, new samples, and the results once finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialStatus {
    /// How far it has come.
    pub state: TrialState,
    /// When this was put together, on the agent's CLOCK_MONOTONIC; absent where no agent of ours did that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// Samples from the number asked for on, 16 384 at the most.
    pub samples: Vec<Sample>,
    /// The number to ask for next.
    pub next: usize,
    /// Flow ends of this host from the number asked for on, 1024 and 1.5 MB at the most; once finished and
    /// with all samples handed over.
    pub flows: Vec<FlowOutcome>,
    /// Whether there are more samples or flows now, to be asked for at once.
    #[serde(default)]
    pub more: bool,
    /// Where the CPUs were found inside the window, if that was asked for; with the last flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    /// What to know about the trial: observers that failed in the middle, limits that applied.
    pub notes: Vec<String>,
    /// What came of the capture, if one was asked for; with the last flows. Its file is fetched by
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureOutcome>,
}

/// Longest line of another's words that is shown or kept; ours are shorter.
const WORDS_CHARS_MAX: usize = 2000;

/// Returns `text` that came from elsewhere as one line without control characters, of which there is a screen
/// at the most: a label or a refusal must not look like lines of our own, in a message or in a log.
pub(crate) fn one_line(text: &str) -> String {
    let mut chars = text.chars();
    let shown = chars.by_ref().take(WORDS_CHARS_MAX);
    let mut line: String = shown
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

/// The body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// What was refused or failed, for a person.
    pub error: String,
    /// What kind, for a program.
    pub code: RefusalCode,
    /// What its caller can do about it, for a person; absent where that is not known, and from agents
    /// that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Returns a refusal of this kind, in these words.
pub(crate) fn refuse(code: RefusalCode, error: impl std::fmt::Display) -> Refusal {
    Refusal {
        error: error.to_string(),
        code,
        next: None,
    }
}

/// Kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The request is malformed or impossible.
    BadRequest,
    /// A token is missing or wrong.
    Unauthorized,
    /// A limit of the agent forbids it, however often it is asked for.
    Limited,
    /// Others have what it takes, or this caller has too much under way: that passes.
    Busy,
    /// No such lease or trial; it may have ended.
    Gone,
    /// Flows could not be made or did not arrive.
    Flows,
    /// The instants of a trial arrived too late; with more notice they would not.
    Late,
    /// The agent itself failed.
    Internal,
}

/// Why a request to an agent did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Nothing answers at the address.
    #[error("{}", why.at(address))]
    Unreachable {
        /// Address and port.
        address: String,
        /// How far the question came.
        why: NoAnswer,
        /// What is known of it.
        how: Loss,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Something answers that is not an agent.
    #[error(
        "{address} answers, but not as linerate does: {what}; is another program on that port?"
    )]
    NotAnAgent {
        /// Address and port.
        address: String,
        /// What came instead.
        what: String,
    },
    /// What it shows is not trusted.
    #[error("the certificate of {address} is not trusted")]
    Untrusted {
        /// Address and port.
        address: String,
        /// The cause.
        #[source]
        source: Box<HandshakeError>,
    },
    /// It does not shake hands.
    #[error(
        "{address} does not speak TLS: its linerate is older than this one, it does not take this host \
         (--allow), or another program is on that port"
    )]
    NoTls {
        /// Address and port.
        address: String,
        /// The cause.
        #[source]
        source: Box<HandshakeError>,
    },
    /// The agent speaks another version of the API.
    #[error(
        "{address} runs linerate {version} with API {api}, which is {}, this is API {API_VERSION}; \
         use the same version on both hosts", if *api < API_VERSION { "older" } else { "newer" }
    )]
    Version {
        /// Address and port.
        address: String,
        /// Its version.
        version: String,
        /// Its API version.
        api: u32,
    },
    /// The agent stopped answering.
    #[error("lost the agent at {address} while {doing}")]
    Lost {
        /// Address and port.
        address: String,
        /// What was asked of it.
        doing: &'static str,
        /// Whether it is known to be gone.
        how: Loss,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A server that is no agent did not do what was asked of it.
    #[error("the {program} server at {address} {what}")]
    Foreign {
        /// What it is.
        program: &'static str,
        /// Address and port.
        address: String,
        /// What it did instead, as the rest of the sentence.
        what: String,
        /// What kind of refusal that is, if it is one.
        code: Option<RefusalCode>,
        /// Whether it may be gone.
        gone: bool,
    },
    /// The agent refused.
    #[error("{}{}", address.as_ref().map_or(String::new(), |address| format!("{address} refused: ")), refusal.error)]
    Refused {
        /// Address and port; absent of the controller's own host.
        address: Option<String>,
        /// Its words.
        refusal: Refusal,
    },
}

/// How far a question came that was not answered, the most telling first: what a host said itself tells more
/// of it than what was said on the way, and that more than what this host would not send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoAnswer {
    /// The port takes connections and says nothing.
    Quiet,
    /// The host answers that nobody listens at the port.
    Refused,
    /// Nothing came back to the request for a connection.
    TimedOut,
    /// The last router, or this host on its own link, finds nobody at the address.
    NoHost,
    /// A route or a firewall of this host prohibits it, or a router said so.
    Prohibited,
    /// No route leads there from this host.
    NoRoute,
    /// An address of one link, without the device that leads to it.
    NoDevice,
    /// Something else, which the cause says.
    Other,
}

impl NoAnswer {
    /// Returns why no connection to `address` came to be.
    pub fn of(address: SocketAddr, error: &std::io::Error) -> Self {
        let is_of_link = match address {
            SocketAddr::V6(v6) => v6.ip().is_unicast_link_local() && v6.scope_id() == 0,
            SocketAddr::V4(_) => false,
        };
        match error.raw_os_error() {
            Some(libc::EINVAL) if is_of_link => Self::NoDevice,
            Some(libc::ECONNREFUSED) => Self::Refused,
            Some(libc::EHOSTUNREACH | libc::EHOSTDOWN) => Self::NoHost,
            Some(libc::ENETUNREACH | libc::ENETDOWN) => Self::NoRoute,
            Some(libc::EACCES | libc::EPERM) => Self::Prohibited,
            _ if error.kind() == std::io::ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Other,
        }
    }

    /// Returns what that says of an agent: a port that nobody listens on is the host's own word, all else may be
    /// the way to it.
    pub fn loss(self) -> Loss {
        match self {
            Self::Refused => Loss::Gone,
            _ => Loss::Silent,
        }
    }

    /// Returns whether the same would be said again.
    fn is_certain(self) -> bool {
        matches!(
            self,
            Self::Refused | Self::Prohibited | Self::NoRoute | Self::NoDevice
        )
    }

    /// Returns the sentence that says so of `address`.
    fn at(self, address: &str) -> String {
        match self {
            Self::Quiet => format!(
                "{address} takes connections, but the program that listens there does not answer (an agent that is very busy, \
                 or another program)"
            ),
            Self::Refused => format!(
                "no agent answers at {address} (is `linerate serve` running there, and the port open?)"
            ),
            Self::TimedOut => format!(
                "nothing answers at {address} (is that host up, and the port open on the way to it?)"
            ),
            Self::NoHost => {
                format!("{address} cannot be reached: no host was found at that address")
            }
            Self::Prohibited => {
                format!("connections to {address} are prohibited by a route or a firewall")
            }
            Self::NoRoute => format!("this host has no route to {address}"),
            Self::NoDevice => {
                format!(
                    "{address} is an address of one link, which lacks the device that leads to it"
                )
            }
            Self::Other => format!("cannot connect to {address}"),
        }
    }
}

/// What is known of an agent that did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing listens at its address.
    Gone,
    /// No answer came, or not all of it: the agent, or the way to it, may be slow for a while.
    Silent,
}

impl AgentError {
    /// Returns what is known of the agent, if it did not answer.
    pub fn loss(&self) -> Option<Loss> {
        match self {
            AgentError::Unreachable { how, .. } | AgentError::Lost { how, .. } => Some(*how),
            AgentError::Foreign { gone: true, .. } => Some(Loss::Gone),
            _ => None,
        }
    }

    /// Returns whether nothing came back to the first question, or a handshake broke off, as they do where
    /// the way loses packets: asked again, an agent may answer.
    pub(crate) fn is_silence(&self) -> bool {
        match self {
            AgentError::Unreachable { why, .. } => !why.is_certain(),
            AgentError::NoTls { source, .. } => source.broke_off(),
            _ => false,
        }
    }

    /// Returns the failure, of which the same became again when it was asked once more.
    pub(crate) fn twice(mut self) -> Self {
        if let AgentError::Unreachable { source, .. } = &mut self {
            *source = format!("{source}, twice").into();
        }
        self
    }

    /// Returns the kind of refusal, if the agent answered with one.
    pub fn refusal(&self) -> Option<RefusalCode> {
        match self {
            AgentError::Refused { refusal, .. } => Some(refusal.code),
            AgentError::Foreign { code, .. } => *code,
            _ => None,
        }
    }
}

/// One host's part in a run: the seam between controller and agents.
///
/// Every call blocks until answered, refused or out of time. Instants are on the agent's clock.
pub trait Agent: Send + Sync {
    /// Returns where the agent is, for messages.
    fn address(&self) -> String;
    /// Returns how requests travel to it.
    fn control(&self) -> Control;
    /// Returns who it is and whether it is busy.
    fn info(&self) -> Result<AgentInfo, AgentError>;
    /// Returns both instants of a clock exchange.
    fn clock(&self) -> Result<ClockReading, AgentError>;
    /// Returns facts and observers of the host, and what else `request` wants.
    fn inventory(&self, request: &InventoryRequest) -> Result<Inventory, AgentError>;
    /// Returns what every observer of the host reads now, or read a moment ago for another watcher.
    fn observe(&self, request: &ObservationRequest) -> Result<Observation, AgentError>;
    /// Asks to use the host, or for the place in the queue when `lease` is already held.
    fn admit(&self, request: &AdmitRequest) -> Result<Admitted, AgentError>;
    /// Keeps the lease alive and returns the present admission.
    fn renew(&self, lease: &str) -> Result<Admitted, AgentError>;
    /// Gives the host back.
    fn leave(&self, lease: &str) -> Result<(), AgentError>;
    /// Makes or expects the flows of a trial. Its phases are for servers of other programs, which must be
    /// told before the instants are known; agents hear no more than the assignment.
    fn prepare(
        &self,
        lease: &str,
        assignment: &Assignment,
        timing: &Timing,
    ) -> Result<Prepared, AgentError>;
    /// Sets the instants; waits until every flow exists.
    fn start(&self, lease: &str, trial: TrialId, at: &StartRequest) -> Result<(), AgentError>;
    /// Returns the state, and what there is to hand over from `from` on.
    fn poll(&self, lease: &str, trial: TrialId, from: PollFrom) -> Result<TrialStatus, AgentError>;
    /// Returns part `part`, from 0, of the file that a finished trial captured; nothing behind the
    /// last part. Those before it have arrived and may be forgotten.
    fn capture_part(&self, lease: &str, trial: TrialId, part: usize)
    -> Result<Vec<u8>, AgentError>;
    /// Ends the traffic of a running trial now and keeps what was measured; it then finishes.
    fn stop(&self, lease: &str, trial: TrialId) -> Result<(), AgentError>;
    /// Ends a trial before its time.
    fn abort(&self, lease: &str, trial: TrialId) -> Result<(), AgentError>;
}
