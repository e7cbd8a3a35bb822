//! The HTTP client: [`Agent`] spoken to a `linerate serve` elsewhere.

use std::borrow::Cow;
use std::time::Duration;

use linerate_model::TrialId;
use linerate_model::manner::Transport;
use linerate_model::workload::Part;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::config::Config;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use super::{
    API_VERSION, AdmitRequest, Admitted, Agent, AgentError, AgentInfo, Assignment, ClockReading,
    Inventory, InventoryRequest, Observation, ObservationRequest, PollFrom, Prepared, Refusal,
    RefusalCode, StartRequest, TrialStatus,
};

/// Longest wait for a connection to an agent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for an answer; `start` may take 10 s while flows arrive, an inventory 2 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest wait for the first answer, which no agent has to think about: a program that says
/// nothing is soon told from one.
const INFO_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for an agent to take note of an end. It has nothing to think about either, and
/// one that does not answer ends by its own deadlines.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// Largest answer: an agent gives 1.5 MB of samples or flows at a time, and the settings of 20 000
/// flows that it has prepared are 16 MB.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Buffers of a connection, each way. Requests and most answers are below 4 KiB; the crate's own
/// 128 KiB would be resident for each host.
const BUFFER_BYTES: usize = 16 << 10;

/// An agent reached over HTTP.
#[derive(Debug)]
pub struct HttpAgent {
    /// `HOST:PORT`, as in URLs.
    authority: String,
    token: Option<String>,
    http: ureq::Agent,
}

impl HttpAgent {
    /// Returns a client for the agent at `authority` (`HOST:PORT`), without asking it anything.
    pub fn new(authority: &str, token: Option<&str>) -> Self {
        let http = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .no_delay(true)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(ANSWER_TIMEOUT))
            .input_buffer_size(BUFFER_BYTES)
            .output_buffer_size(BUFFER_BYTES)
            .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")))
            .build();
        let connector = DefaultConnector::default();
        Self {
            authority: authority.to_owned(),
            token: token.map(str::to_owned),
            http: ureq::Agent::with_parts(http, connector, AddressFirst::default()),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority)
    }

    fn bearer(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    fn get<T: DeserializeOwned>(&self, doing: &'static str, path: &str) -> Result<T, AgentError> {
        self.get_with(doing, path, None)
    }

    /// Asks with a parameter whose value may hold anything.
    fn get_with<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        path: &str,
        parameter: Option<(&str, &str)>,
    ) -> Result<T, AgentError> {
        let timeout = match doing {
            DOING_INFO => INFO_TIMEOUT,
            _ => ANSWER_TIMEOUT,
        };
        let request = self.http.get(self.url(path)).query_pairs(parameter);
        let mut request = request.config().timeout_global(Some(timeout)).build();
        if let Some(bearer) = self.bearer() {
            request = request.header("authorization", bearer);
        }
        self.answer(doing, request.call())
    }

    fn delete(&self, doing: &'static str, path: &str) -> Result<(), AgentError> {
        let request = self.http.delete(self.url(path));
        let mut request = request.config().timeout_global(Some(END_TIMEOUT)).build();
        if let Some(bearer) = self.bearer() {
            request = request.header("authorization", bearer);
        }
        self.answer::<serde_json::Value>(doing, request.call())
            .map(|_| ())
    }

    fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        doing: &'static str,
        path: &str,
        body: &B,
    ) -> Result<T, AgentError> {
        let mut request = self.http.post(self.url(path));
        if let Some(bearer) = self.bearer() {
            request = request.header("authorization", bearer);
        }
        let request = request.header("content-type", "application/json");
        let body = serde_json::to_vec(body).map_err(|source| AgentError::Lost {
            address: self.authority.clone(),
            doing,
            source: source.into(),
        })?;
        self.answer(doing, request.send(&body[..]))
    }

    /// Asks for what is no JSON.
    fn get_bytes(&self, doing: &'static str, path: &str) -> Result<Vec<u8>, AgentError> {
        let mut request = self.http.get(self.url(path));
        if let Some(bearer) = self.bearer() {
            request = request.header("authorization", bearer);
        }
        self.body(doing, request.call())
    }

    fn answer<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        result: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T, AgentError> {
        let body = self.body(doing, result)?;
        serde_json::from_slice(&body).map_err(|error| AgentError::NotAnAgent {
            address: self.authority.clone(),
            what: format!("its answer is not the JSON expected ({error})"),
        })
    }

    /// Returns the body of an answer that is no refusal.
    fn body(
        &self,
        doing: &'static str,
        result: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Vec<u8>, AgentError> {
        let mut response = result.map_err(|source| self.failure(doing, source))?;
        let status = response.status();
        let body = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_vec()
            .map_err(|source| self.failure(doing, source))?;
        if status.is_success() {
            return Ok(body);
        }
        let refusal =
            serde_json::from_slice::<Refusal>(&body).map_err(|_| AgentError::NotAnAgent {
                address: self.authority.clone(),
                what: format!("HTTP status {status}"),
            })?;
        Err(AgentError::Refused {
            address: self.authority.clone(),
            refusal,
        })
    }

    fn failure(&self, doing: &'static str, source: ureq::Error) -> AgentError {
        let address = self.authority.clone();
        if doing != DOING_INFO {
            return AgentError::Lost {
                address,
                doing,
                source: source.into(),
            };
        }
        let is_refused = |io: &std::io::Error| io.kind() == std::io::ErrorKind::ConnectionRefused;
        match &source {
            ureq::Error::HostNotFound
            | ureq::Error::BadUri(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                AgentError::Unreachable {
                    address,
                    source: source.into(),
                }
            }
            ureq::Error::Io(io) if is_refused(io) => AgentError::Unreachable {
                address,
                source: source.into(),
            },
            ureq::Error::Protocol(_) | ureq::Error::Http(_) => AgentError::NotAnAgent {
                address,
                what: source.to_string(),
            },
            _ => AgentError::NotAnAgent {
                address,
                what: format!("no HTTP answer ({source})"),
            },
        }
    }
}

/// The first request to an agent; whatever answers it wrongly is another program.
const DOING_INFO: &str = "asking who it is";

/// Finds addresses: those that are written as such at once, names as the system does.
///
/// Asking the system takes a thread for each request, even for an address, so that it can be given
/// up in time: 0.2 ms, twice what the request itself takes on a near host.
#[derive(Debug, Default)]
struct AddressFirst(DefaultResolver);

impl Resolver for AddressFirst {
    fn resolve(
        &self,
        uri: &ureq::http::Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let authority = uri.authority().map(|authority| authority.as_str());
        match authority.and_then(|authority| authority.parse().ok()) {
            Some(address) => {
                let mut found = self.empty();
                found.push(address);
                Ok(found)
            }
            None => self.0.resolve(uri, config, timeout),
        }
    }
}

impl Agent for HttpAgent {
    fn address(&self) -> String {
        self.authority.clone()
    }

    fn info(&self) -> Result<AgentInfo, AgentError> {
        let info: AgentInfo = self.get(DOING_INFO, "/v1/agent")?;
        if info.program != super::PROGRAM {
            return Err(AgentError::NotAnAgent {
                address: self.authority.clone(),
                what: format!("it calls itself `{}`", info.program),
            });
        }
        if info.api != API_VERSION {
            return Err(AgentError::Version {
                address: self.authority.clone(),
                version: info.version,
                api: info.api,
            });
        }
        Ok(info)
    }

    fn clock(&self) -> Result<ClockReading, AgentError> {
        self.get("reading its clock", "/v1/clock")
    }

    fn inventory(&self, request: &InventoryRequest) -> Result<Inventory, AgentError> {
        // Addresses and leases need no escaping in a query.
        let address = request.address.iter().map(|of| format!("address={of}&"));
        let lease = request.lease.iter().map(|of| format!("lease={of}&"));
        let query: String = address.chain(lease).collect();
        let memory_copy = request.memory_copy;
        self.get(
            "taking its inventory",
            &format!("/v1/inventory?{query}memory_copy={memory_copy}"),
        )
    }

    fn observe(&self, request: &ObservationRequest) -> Result<Observation, AgentError> {
        let query = request.sockets.as_deref().map(|filter| ("sockets", filter));
        self.get_with("observing", "/v1/observation", query)
    }

    fn admit(&self, request: &AdmitRequest) -> Result<Admitted, AgentError> {
        self.post("asking for admission", "/v1/runs", request)
    }

    fn renew(&self, lease: &str) -> Result<Admitted, AgentError> {
        self.get("keeping the lease", &format!("/v1/runs/{lease}"))
    }

    fn leave(&self, lease: &str) -> Result<(), AgentError> {
        self.delete("leaving", &format!("/v1/runs/{lease}"))
    }

    fn prepare(&self, lease: &str, assignment: &Assignment) -> Result<Prepared, AgentError> {
        self.post(
            "preparing a trial",
            &format!("/v1/runs/{lease}/trials"),
            &*on_the_wire(assignment),
        )
    }

    fn start(&self, lease: &str, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        let path = format!("/v1/runs/{lease}/trials/{}/start", trial.0);
        self.post::<_, serde_json::Value>("starting a trial", &path, at)
            .map(|_| ())
    }

    fn poll(&self, lease: &str, trial: TrialId, from: PollFrom) -> Result<TrialStatus, AgentError> {
        let PollFrom { sample, flow } = from;
        let query = format!("from={sample}&flow={flow}");
        self.get(
            "following a trial",
            &format!("/v1/runs/{lease}/trials/{}?{query}", trial.0),
        )
    }

    fn capture_part(
        &self,
        lease: &str,
        trial: TrialId,
        part: usize,
    ) -> Result<Vec<u8>, AgentError> {
        let path = format!("/v1/runs/{lease}/trials/{}/capture?part={part}", trial.0);
        self.get_bytes("fetching a capture", &path)
    }

    fn stop(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        let path = format!("/v1/runs/{lease}/trials/{}/stop", trial.0);
        self.post::<_, serde_json::Value>("stopping a trial", &path, &serde_json::json!({}))
            .map(|_| ())
    }

    fn abort(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.delete(
            "ending a trial",
            &format!("/v1/runs/{lease}/trials/{}", trial.0),
        )
    }
}

/// Returns an assignment as every agent of this version of the API takes it, the first one included.
///
/// Agents refuse fields that they do not know, since what they passed over would not be measured. A
/// field that came later is therefore left out unless it asks for something. Who chose the size of a
/// batch asks for something of an end that sends a stream, which then joins messages on fast paths
/// only; elsewhere it only explains, and the end in the controller's own process has the words.
fn on_the_wire(assignment: &Assignment) -> Cow<'_, Assignment> {
    let manner = &assignment.manner;
    let mut parts = assignment.flows.iter().map(|flow| flow.part);
    let asks = manner.transport != Transport::Udp && parts.any(|part| part == Part::Sender);
    if !manner.batch_is_chosen || asks {
        return Cow::Borrowed(assignment);
    }
    let mut plain = assignment.clone();
    plain.manner.batch_is_chosen = false;
    Cow::Owned(plain)
}

impl RefusalCode {
    /// Returns the HTTP status that carries this kind of refusal.
    pub fn status(self) -> u16 {
        match self {
            RefusalCode::BadRequest => 400,
            RefusalCode::Unauthorized => 401,
            RefusalCode::Limited => 403,
            RefusalCode::Busy => 409,
            RefusalCode::Gone => 410,
            RefusalCode::Flows | RefusalCode::Late => 424,
            RefusalCode::Internal => 500,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::manner::Manner;
    use linerate_model::sample::End;
    use linerate_model::workload::{Direction, FlowOptions, Traffic};
    use linerate_model::{Bytes, FlowId, Nanos};

    use super::*;
    use crate::api::FlowAssignment;

    /// Names that agents of this version of the API have not known from the beginning.
    const LATER: &[&str] = &[
        "batch_is_chosen",
        "receive_low_water",
        "probes",
        "capture_at",
    ];

    fn assignment(manner: Manner) -> Assignment {
        Assignment {
            trial: TrialId(1),
            end: End::Server,
            peer: None,
            bind: None,
            cookie: "00".repeat(16),
            traffic: Traffic::Stream {
                direction: Direction::ToServer,
                message_bytes: Bytes(64),
            },
            options: FlowOptions::default(),
            manner,
            flows: Vec::new(),
            workers_max: None,
            cpus: Vec::new(),
            placement: Default::default(),
            probes: Default::default(),
            capture_at: None,
            sample_interval: Nanos::from_ms(100),
            length: Nanos::from_s(1),
            warm_up_more: Nanos(0),
            flow_rate_max: None,
            greeting: None,
            timing: None,
        }
    }

    #[test]
    fn an_older_agent_sees_no_field_that_it_does_not_know_unless_it_asks_for_something() {
        let sent = |manner: Manner| {
            let assignment = assignment(manner);
            serde_json::to_string(&*on_the_wire(&assignment)).expect("plain values")
        };
        let chosen = Manner {
            batch: 64,
            batch_is_chosen: true,
            ..Manner::default()
        };
        for manner in [Manner::default(), chosen.clone()] {
            let batch = format!("\"batch\":{}", manner.batch);
            let text = sent(manner);
            assert!(text.contains(&batch), "{text}");
            for name in LATER {
                assert!(!text.contains(name), "{name} in {text}");
            }
        }
        let asks = |part, transport| {
            let mut assignment = assignment(Manner {
                transport,
                ..chosen.clone()
            });
            assignment.flows.push(FlowAssignment {
                flow: FlowId(0),
                part,
                port: None,
            });
            on_the_wire(&assignment).manner.batch_is_chosen
        };
        assert!(asks(Part::Sender, Transport::Tcp));
        assert!(!asks(Part::Receiver, Transport::Tcp));
        assert!(!asks(Part::Sender, Transport::Udp));
        let asked = sent(Manner {
            receive_low_water: Some(Bytes(4096)),
            ..Manner::default()
        });
        assert!(asked.contains("\"receive_low_water\":4096"), "{asked}");
    }
}
