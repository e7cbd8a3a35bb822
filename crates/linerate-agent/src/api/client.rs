//! The HTTP client: [`Agent`] spoken to a `linerate serve` elsewhere.

use std::borrow::Cow;
use std::io::Read as _;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_model::experiment::Timing;
use linerate_model::manner::Transport;
use linerate_model::run::Control;
use linerate_model::workload::Part;
use linerate_model::{Nanos, TrialId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::RequestBuilder;
use ureq::config::Config;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Connector, NextTimeout};

use super::connection::SmallSegments;
use super::operation::{self, Method, Operation};
use super::{
    API_VERSION, AdmitRequest, Admitted, Agent, AgentError, AgentInfo, Assignment, ClockReading,
    Inventory, InventoryRequest, Loss, NoAnswer, Observation, ObservationRequest, PollFrom,
    Prepared, Refusal, RefusalCode, StartRequest, TrialState, TrialStatus, one_line,
};
use crate::tls::Trust;
use crate::tls::client::{HANDSHAKE, HandshakeError};

/// Longest wait for a connection to an agent.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer: an agent gives 1.5 MB of samples or flows at a time, and the settings of 20 000
/// flows that it has prepared are 16 MB.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Buffers of a connection, each way. Requests and most answers are below 4 KiB; the crate's own
/// 128 KiB would be resident for each host.
const BUFFER_BYTES: usize = 16 << 10;

/// Most notes of a trial that are taken; an agent has a handful.
const NOTES_MAX: usize = 100;
/// Characters of an answer that a message repeats.
const WORDS_MAX: usize = 200;

/// What an operation that names no run is asked of.
const NO_RUN: (&str, Option<TrialId>) = ("", None);
/// The body of a request without one; any type does.
const NO_BODY: Option<&()> = None;

/// An agent reached over HTTP.
#[derive(Debug)]
pub struct HttpAgent {
    address: SocketAddr,
    /// The same as `HOST:PORT`, as in URLs.
    authority: String,
    token: Option<String>,
    http: ureq::Agent,
    control: Control,
}

impl HttpAgent {
    /// Returns a client for the agent at `address`, without asking it anything. Whoever is on the way
    /// can read along, so it is for loopback, and for networks that the caller has for itself.
    pub fn plain(address: SocketAddr, token: Option<&str>) -> Self {
        let control = if address.ip().to_canonical().is_loopback() {
            Control::Loopback
        } else {
            Control::Clear
        };
        Self::new(address, token, control, SmallSegments::default())
    }

    /// Returns a client for the agent at `address`, which was asked for as `host`, over TLS.
    pub fn over_tls(
        host: &str,
        address: SocketAddr,
        token: Option<&str>,
        trust: &Trust,
    ) -> Result<Self, AgentError> {
        let tls = trust.connector(host, address);
        let tls = tls.map_err(|error| AgentError::Untrusted {
            address: address.to_string(),
            source: Box::new(HandshakeError::Other(error)),
        })?;
        let connector = SmallSegments::default().chain(tls);
        Ok(Self::new(address, token, Control::Tls, connector))
    }

    fn new(
        address: SocketAddr,
        token: Option<&str>,
        control: Control,
        connector: impl Connector,
    ) -> Self {
        let http = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .no_delay(true)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .input_buffer_size(BUFFER_BYTES)
            .output_buffer_size(BUFFER_BYTES)
            .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            address,
            authority: address.to_string(),
            token: token.map(str::to_owned),
            http: ureq::Agent::with_parts(http, connector, AddressFirst::default()),
            control,
        }
    }

    /// Asks for an operation whose answer says nothing.
    fn tell(
        &self,
        operation: &Operation,
        of: (&str, Option<TrialId>),
        body: Option<&impl Serialize>,
    ) -> Result<(), AgentError> {
        self.ask::<serde_json::Value>(operation, of, &[], body)
            .map(drop)
    }

    /// Asks for an operation of a run or trial, as far as its path names one; the answer is JSON.
    fn ask<T: DeserializeOwned>(
        &self,
        operation: &Operation,
        of: (&str, Option<TrialId>),
        query: &[(&str, String)],
        body: Option<&impl Serialize>,
    ) -> Result<T, AgentError> {
        let answer = self.call(operation, of, query, body)?;
        serde_json::from_slice(&answer).map_err(|error| self.not_an_agent(not_json(&error)))
    }

    /// Returns the body of an answer that is no refusal.
    fn call(
        &self,
        operation: &Operation,
        (lease, trial): (&str, Option<TrialId>),
        query: &[(&str, String)],
        body: Option<&impl Serialize>,
    ) -> Result<Vec<u8>, AgentError> {
        let path = operation.path_of(lease, trial);
        let scheme = match self.control {
            Control::Tls => "https",
            Control::InProcess | Control::Loopback | Control::Clear => "http",
        };
        let url = format!("{scheme}://{}{path}", self.authority);
        let result = match operation.method {
            Method::Get | Method::Delete => {
                let request = if operation.method == Method::Get {
                    self.http.get(url)
                } else {
                    self.http.delete(url)
                };
                let query = query.iter().map(|(name, value)| (*name, value));
                self.begun(operation, request.query_pairs(query)).call()
            }
            Method::Post => {
                let body = body.map_or(Ok(b"{}".to_vec()), serde_json::to_vec);
                let body = body.map_err(|source| AgentError::Lost {
                    address: self.authority.clone(),
                    doing: operation.doing,
                    how: Loss::Silent,
                    source: source.into(),
                })?;
                self.begun(operation, self.http.post(url))
                    .header("content-type", "application/json")
                    .send(&body[..])
            }
        };
        let mut response = result.map_err(|source| self.failure(operation, source))?;
        let status = response.status();
        let mut body = Vec::new();
        // What comes compressed counts as what it is: a bomb is no longer than any other answer.
        let mut limited = response.body_mut().as_reader().take(ANSWER_BYTES_MAX + 1);
        let read = limited.read_to_end(&mut body);
        let read = read.and_then(|length| {
            if length as u64 > ANSWER_BYTES_MAX {
                Err(ureq::Error::BodyExceedsLimit(ANSWER_BYTES_MAX).into_io())
            } else {
                Ok(())
            }
        });
        read.map_err(|source| self.failure(operation, ureq::Error::from(source)))?;
        if status.is_success() {
            return Ok(body);
        }
        let refusal = serde_json::from_slice::<Refusal>(&body)
            .map_err(|_| self.not_an_agent(format!("HTTP status {status}")))?;
        Err(AgentError::Refused {
            address: Some(self.authority.clone()),
            refusal: Refusal {
                error: one_line(&refusal.error),
                next: refusal.next.as_deref().map(one_line),
                code: refusal.code,
            },
        })
    }

    fn failure(&self, operation: &Operation, source: ureq::Error) -> AgentError {
        let address = self.authority.clone();
        let source = match source {
            // A layer below says so by an error of the system.
            ureq::Error::Io(io) => ureq::Error::from(io),
            ureq::Error::Other(other) => match other.downcast::<HandshakeError>() {
                Ok(failed) => return no_handshake(address, operation, failed),
                Err(other) => ureq::Error::Other(other),
            },
            source => source,
        };
        // Whatever answers the first request wrongly is another program.
        if operation.id != operation::INFO.id {
            return AgentError::Lost {
                address,
                doing: operation.doing,
                how: Loss::of(&source),
                source: in_words(operation, source),
            };
        }
        let why = match &source {
            ureq::Error::Protocol(_) | ureq::Error::Http(_) => {
                return self.not_an_agent(source.to_string());
            }
            ureq::Error::Io(error) if is_hang_up(error) => {
                return self.not_an_agent("it closes the connection".to_owned());
            }
            ureq::Error::Io(error) => NoAnswer::of(self.address, error),
            ureq::Error::Timeout(ureq::Timeout::Connect) => NoAnswer::TimedOut,
            // Who does not answer may be an agent whose host has no CPU for it.
            ureq::Error::Timeout(_) => NoAnswer::Quiet,
            ureq::Error::HostNotFound | ureq::Error::BadUri(_) | ureq::Error::ConnectionFailed => {
                NoAnswer::Other
            }
            _ => {
                let words = in_words(operation, source);
                return self.not_an_agent(format!("no HTTP answer ({words})"));
            }
        };
        AgentError::Unreachable {
            address,
            why,
            how: why.loss(),
            source: in_words(operation, source),
        }
    }

    fn not_an_agent(&self, what: String) -> AgentError {
        AgentError::NotAnAgent {
            address: self.authority.clone(),
            what,
        }
    }

    /// Returns a request with what every request has: a limit of its time, and the token.
    fn begun<B>(&self, operation: &Operation, request: RequestBuilder<B>) -> RequestBuilder<B> {
        let request = request.config().timeout_global(Some(operation.timeout));
        match &self.token {
            Some(token) => request
                .build()
                .header("authorization", format!("Bearer {token}")),
            None => request.build(),
        }
    }
}

/// Returns what a handshake that failed means.
fn no_handshake(address: String, operation: &Operation, source: Box<HandshakeError>) -> AgentError {
    match *source {
        // It did shake hands before, when it was asked who it is.
        HandshakeError::NoTls(_) if operation.id != operation::INFO.id => AgentError::Lost {
            address,
            doing: operation.doing,
            how: Loss::Silent,
            source,
        },
        HandshakeError::NoTls(_) => AgentError::NoTls { address, source },
        _ => AgentError::Untrusted { address, source },
    }
}

/// Returns whether the other end ended a connection that it had taken.
fn is_hang_up(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
    )
}

/// Returns why an answer cannot be read. The error may repeat what it found, however long that is.
fn not_json(error: &serde_json::Error) -> String {
    let mut words = error.to_string();
    if let Some((end, _)) = words.char_indices().nth(WORDS_MAX) {
        words.truncate(end);
        words.push('…');
    }
    format!("its answer is not the JSON expected ({words})")
}

impl Loss {
    /// A port that nobody listens on is the kernel's own word; all else may be the way to the agent.
    fn of(source: &ureq::Error) -> Self {
        match source {
            ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => Self::Gone,
            _ => Self::Silent,
        }
    }
}

/// Returns the cause of a failure; where time was up, who waited for what, and how long.
fn in_words(
    operation: &Operation,
    source: ureq::Error,
) -> Box<dyn std::error::Error + Send + Sync> {
    let waited = |what, long: Duration| {
        let long = Nanos(long.as_nanos() as u64);
        format!("this host waited {long} for {what}").into()
    };
    match source {
        ureq::Error::Timeout(ureq::Timeout::Connect) => waited("a connection", CONNECT_TIMEOUT),
        ureq::Error::Timeout(ureq::Timeout::Resolve) => {
            waited("the address of that name", operation.timeout)
        }
        ureq::Error::Timeout(HANDSHAKE) => {
            waited("an answer to the handshake of TLS", CONNECT_TIMEOUT)
        }
        ureq::Error::Timeout(_) => waited("the answer", operation.timeout),
        // Whose error it is says the sentence before.
        ureq::Error::Io(error) => error.into(),
        other => other.into(),
    }
}

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

    fn control(&self) -> Control {
        self.control
    }

    fn info(&self) -> Result<AgentInfo, AgentError> {
        let ask = || self.ask::<AgentInfo>(&operation::INFO, NO_RUN, &[], NO_BODY);
        let info = match ask() {
            // A path that loses one packet in twenty takes longer than that for one connection in two
            // hundred: after a lost SYN the kernel waits 3 s before it sends the first bytes again
            // (TCP_TIMEOUT_FALLBACK). Another connection is as good as the first.
            Err(error) if error.is_silence() => ask().map_err(|_| error.twice()),
            answered => answered,
        }?;
        if info.program != super::PROGRAM {
            return Err(self.not_an_agent(format!("it calls itself `{}`", info.program)));
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
        self.ask(&operation::CLOCK, NO_RUN, &[], NO_BODY)
    }

    fn inventory(&self, request: &InventoryRequest) -> Result<Inventory, AgentError> {
        let mut query = vec![("memory_copy", request.memory_copy.to_string())];
        query.extend(request.address.clone().map(|of| ("address", of)));
        query.extend(request.lease.clone().map(|of| ("lease", of)));
        self.ask(&operation::INVENTORY, NO_RUN, &query, NO_BODY)
    }

    fn observe(&self, request: &ObservationRequest) -> Result<Observation, AgentError> {
        let mut query = Vec::new();
        query.extend(request.sockets.clone().map(|of| ("sockets", of)));
        query.extend(
            request
                .interval_ns
                .map(|of| ("interval_ns", of.to_string())),
        );
        self.ask(&operation::OBSERVE, NO_RUN, &query, NO_BODY)
    }

    fn admit(&self, request: &AdmitRequest) -> Result<Admitted, AgentError> {
        self.ask(&operation::ADMIT, NO_RUN, &[], Some(request))
    }

    fn renew(&self, lease: &str) -> Result<Admitted, AgentError> {
        self.ask(&operation::RENEW, (lease, None), &[], NO_BODY)
    }

    fn leave(&self, lease: &str) -> Result<(), AgentError> {
        self.tell(&operation::LEAVE, (lease, None), NO_BODY)
    }

    fn prepare(
        &self,
        lease: &str,
        assignment: &Assignment,
        _timing: &Timing,
    ) -> Result<Prepared, AgentError> {
        let body = on_the_wire(assignment);
        let prepared = self.ask(&operation::PREPARE, (lease, None), &[], Some(&*body));
        prepared.map_err(|error| without_groups(assignment, error))
    }

    fn start(&self, lease: &str, trial: TrialId, at: &StartRequest) -> Result<(), AgentError> {
        self.tell(&operation::START, (lease, Some(trial)), Some(at))
    }

    fn poll(&self, lease: &str, trial: TrialId, from: PollFrom) -> Result<TrialStatus, AgentError> {
        let query = [
            ("from", from.sample.to_string()),
            ("flow", from.flow.to_string()),
            ("wait_ns", from.wait_ns.to_string()),
        ];
        let asked = if from.wait_ns > 0 { 3 } else { 2 };
        let of = (lease, Some(trial));
        let status: TrialStatus = self.ask(&operation::POLL, of, &query[..asked], NO_BODY)?;
        Ok(in_bounds(status))
    }

    fn capture_part(
        &self,
        lease: &str,
        trial: TrialId,
        part: usize,
    ) -> Result<Vec<u8>, AgentError> {
        let query = [("part", part.to_string())];
        self.call(&operation::CAPTURE, (lease, Some(trial)), &query, NO_BODY)
    }

    fn stop(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.tell(&operation::STOP, (lease, Some(trial)), NO_BODY)
    }

    fn abort(&self, lease: &str, trial: TrialId) -> Result<(), AgentError> {
        self.tell(&operation::ABORT, (lease, Some(trial)), NO_BODY)
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

/// Returns why a trial of several groups was refused: an agent that does not know them names the field that has them.
fn without_groups(assignment: &Assignment, mut error: AgentError) -> AgentError {
    if let AgentError::Refused { refusal, .. } = &mut error
        && !assignment.beside.is_empty()
        && refusal.error.contains("unknown field")
    {
        refusal.error = "its linerate is older than groups, and a trial has several here: use the same version \
                         on both hosts, or measure one group at a time"
            .to_owned();
    }
    error
}

/// Returns the same with as many words as are for a person to read.
fn in_bounds(mut status: TrialStatus) -> TrialStatus {
    if let TrialState::Failed { why } = &mut status.state {
        *why = one_line(why);
    }
    status.notes.truncate(NOTES_MAX);
    let ended = status.flows.iter_mut().map(|flow| &mut flow.ended_early);
    for words in status.notes.iter_mut().chain(ended.flatten()) {
        *words = one_line(words);
    }
    status
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

    /// Returns what comes of an agent's answer, which it was asked for by this host.
    fn answered<T>(
        answer: impl AsRef<[u8]> + Send + 'static,
        ask: impl FnOnce(&HttpAgent) -> T,
    ) -> T {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let agent = HttpAgent::plain(listener.local_addr().unwrap(), None);
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let count = std::io::Read::read(&mut stream, &mut [0; 4096]).unwrap();
            assert!(count > 0);
            // Who has read enough hangs up.
            let _ = std::io::Write::write_all(&mut stream, answer.as_ref());
        });
        let said = ask(&agent);
        answering.join().unwrap();
        said
    }

    #[test]
    fn a_compressed_answer_is_no_longer_than_any_other() {
        let answer = |text: &[u8]| {
            let level = flate2::Compression::fast();
            let mut body = Vec::new();
            flate2::read::GzEncoder::new(text, level)
                .read_to_end(&mut body)
                .unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            [head.into_bytes(), body].concat()
        };
        let reading = br#"{"received_ns":7,"sent_ns":8}"#;
        let clock = answered(answer(reading), HttpAgent::clock).unwrap();
        assert_eq!(clock.received_ns, 7);
        let spaces = vec![b' '; ANSWER_BYTES_MAX as usize + 1];
        let refused = answered(answer(&spaces), HttpAgent::clock).unwrap_err();
        let causes = std::iter::successors(Some(&refused as &dyn std::error::Error), |error| {
            error.source()
        });
        let words: Vec<String> = causes.map(ToString::to_string).collect();
        assert!(words.concat().contains("67108864"), "{words:?}");
    }

    #[test]
    fn an_agent_says_what_to_do_about_a_refusal_unless_it_is_older() {
        let next = |body: &'static str| {
            let answer = format!(
                "HTTP/1.1 409 Conflict\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            match answered(answer, HttpAgent::info).unwrap_err() {
                AgentError::Refused { refusal, .. } => refusal.next,
                other => panic!("{other}"),
            }
        };
        assert_eq!(next(r#"{"error":"in use","code":"busy"}"#), None);
        let said = next(r#"{"error":"in use","code":"busy","next":"wait\nfor it"}"#);
        assert!(said.is_some_and(|said| said.starts_with("wait") && !said.contains('\n')));
    }

    #[test]
    fn an_agent_has_a_screen_for_its_words_at_the_most() {
        let answer = |status: &str, body: String| {
            let length = body.len();
            format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            )
        };
        let long = "ä\\n".repeat(1_000_000);
        let body = format!(r#"{{"error":"{long}","code":"busy"}}"#);
        let refused = answered(answer("409 Conflict", body), HttpAgent::info);
        let words = refused.unwrap_err().to_string();
        assert!((1000..3000).contains(&words.chars().count()), "{words}");
        let notes = vec![format!(r#""{long}""#); 5].join(",");
        let few = ["\"x\""; 1000].join(",");
        let state = format!(r#"{{"state":"failed","why":"{long}"}}"#);
        let body = format!(
            r#"{{"state":{state},"samples":[],"next":0,"flows":[],"more":false,"stacks":[],"notes":[{notes},{few}]}}"#
        );
        let poll = |agent: &HttpAgent| agent.poll("x", TrialId(1), PollFrom::default());
        let status = answered(answer("200 OK", body), poll).unwrap();
        assert_eq!(status.notes.len(), NOTES_MAX);
        let TrialState::Failed { why } = status.state else {
            panic!("{:?}", status.state);
        };
        for words in status.notes.iter().chain([&why]) {
            assert!(words.chars().count() <= 2001 && !words.contains('\n'));
        }
    }

    /// Names that agents of this version of the API have not known from the beginning.
    const LATER: &[&str] = &[
        "batch_is_chosen",
        "receive_low_water",
        "probes",
        "capture_at",
        "beside",
    ];

    fn assignment(manner: Manner) -> Assignment {
        Assignment {
            trial: TrialId(1),
            end: End::Server,
            peer: None,
            bind: None,
            server: None,
            cookie: "00".repeat(16),
            traffic: Traffic::Stream {
                direction: Direction::ToServer,
                message_bytes: Bytes(64),
            },
            options: FlowOptions::default(),
            manner,
            flows: Vec::new(),
            beside: Vec::new(),
            workers_max: None,
            cpus: Vec::new(),
            placement: Default::default(),
            probes: Default::default(),
            capture_at: None,
            changes: None,
            sample_interval: Nanos::from_ms(100),
            length: Nanos::from_s(1),
            warm_up_more: Nanos(0),
            flow_rate_max: None,
        }
    }

    #[test]
    fn an_older_agent_that_refuses_groups_is_told_by_its_age() {
        /// What an agent before groups knows of an assignment.
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Older {
            #[serde(rename = "trial")]
            _trial: TrialId,
        }
        let mut asked = assignment(Manner::default());
        asked.beside.push(crate::api::GroupAssignment {
            traffic: asked.traffic.clone(),
            options: FlowOptions::default(),
            manner: Manner::default(),
            flows: Vec::new(),
        });
        let sent = serde_json::json!({ "trial": asked.trial, "beside": asked.beside });
        let error = serde_json::from_value::<Older>(sent).expect_err("it knows no groups");
        let refused = |error: String| AgentError::Refused {
            address: None,
            refusal: crate::api::refuse(RefusalCode::BadRequest, error),
        };
        let told = without_groups(&asked, refused(error.to_string())).to_string();
        assert!(
            told.contains("groups") && told.contains("same version"),
            "{told}"
        );
        let other = without_groups(&asked, refused("another".to_owned()));
        assert_eq!(other.to_string(), "another");
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
