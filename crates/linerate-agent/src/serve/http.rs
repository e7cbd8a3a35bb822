//! Requests and answers over HTTP: routes, limits, tokens.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::handler::Handler;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodFilter};
use axum::{Extension, Json, Router};
use flate2::Compression;
use flate2::write::GzEncoder;
use linerate_engine::now_ns;
use linerate_model::TrialId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::connections::ConnectionGuard;
use super::gate::{Why, gate};
use super::owner::Owner;
use super::peer::Peer;
use super::threads::{Desk, Place, Threads, Who};
use crate::access::proof::Channel;
use crate::access::{Access, Scope, Shown, User, now_s};
use crate::api::operation::{self, Method, Operation};
use crate::api::{
    ClockReading, Evicted, InventoryRequest, ObservationRequest, PollFrom, Refusal, RefusalCode,
    TokenProof, openapi, refuse,
};
use crate::core::{Caller, Core};
use crate::log::Asker;
use crate::tls::Fingerprint;

/// Largest assignment: one of 20 000 flows takes about 1 MB. Only whoever holds the host may send
/// that much.
const ASSIGNMENT_BYTES_MAX: usize = 4 << 20;
/// Largest request of any other kind.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Samples and flows of an answer that is written where all requests are taken up, in half a millisecond
/// at the most; longer ones are written on a thread.
const ITEMS_AT_ONCE: usize = 512;
/// Longest answer that is not compressed for those who take it compressed: it fits a few segments.
const PLAIN_BYTES_MAX: usize = 4 << 10;
/// Longest answer that may wait for its reader without a place among the long ones: what as many as there
/// are connections take together is bounded by their number.
const ANSWER_BYTES_LONG: usize = 64 << 10;
/// How long an admission waits for the end of what was ended for it: iperf3 clients are told within a
/// second, native trials end at once.
const EVICTION_WAIT: Duration = Duration::from_secs(2);
/// How often it looks.
const EVICTION_LOOK: Duration = Duration::from_millis(10);
/// Longest time from the headers of a request to its answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// The router for one connection: notes the peer and bounds the time of each answer.
#[derive(Clone)]
pub(super) struct WithPeer {
    pub(super) router: Router,
    pub(super) guard: Arc<ConnectionGuard>,
    pub(super) owner: Option<Arc<Owner>>,
    pub(super) peer: Peer,
}

impl tower_service::Service<hyper::Request<hyper::body::Incoming>> for WithPeer {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: hyper::Request<hyper::body::Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        self.guard.note_request();
        if let Some(owner) = &self.owner {
            owner.note_request(request.uri().path());
        }
        request.extensions_mut().insert(self.peer);
        let answer = tower_service::Service::call(&mut self.router, request);
        Box::pin(async move {
            let late = || refuse(RefusalCode::Internal, "the answer took too long");
            Ok(match tokio::time::timeout(ANSWER_DEADLINE, answer).await {
                Ok(Ok(response)) => as_refusal(response),
                Err(_) => late().into_response(),
            })
        })
    }
}

/// Gives the refusals that the router makes by itself, as plain text, the form of all others.
fn as_refusal(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !status.is_client_error() || kind.is_some_and(|kind| kind == "application/json") {
        return response;
    }
    let error = match status {
        StatusCode::NOT_FOUND => "no such path; see /v1/openapi.json",
        StatusCode::METHOD_NOT_ALLOWED => "the path has no such method; see /v1/openapi.json",
        _ => "a parameter of the path or query is not what it must be; see /v1/openapi.json",
    };
    let mut refused = (status, Json(refuse(RefusalCode::BadRequest, error))).into_response();
    // With 405 the methods that there are go along (RFC 9110, 15.5.6).
    if let Some(allow) = response.headers().get(header::ALLOW) {
        refused.headers_mut().insert(header::ALLOW, allow.clone());
    }
    refused
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
        let why = Why(self.error.clone());
        (status, Extension(why), Json(self)).into_response()
    }
}

/// Returns the routes: every operation with what answers it, for those whom `access` lets.
pub(super) fn router(core: Arc<Core>, access: &Arc<Access>, threads: &Threads) -> Router {
    let known = [
        on(&operation::INFO, agent),
        on(&operation::DOCUMENT, api_document),
        on(&operation::CLOCK, clock),
        on(&operation::INVENTORY, inventory),
        on(&operation::OBSERVE, observation),
        on(&operation::ADMIT, admit),
        on(&operation::EVICT, evict),
        on(&operation::RENEW, renew),
        on(&operation::LEAVE, leave),
        on(&operation::PREPARE, prepare),
        on(&operation::POLL, poll),
        on(&operation::ABORT, abort),
        on(&operation::START, start),
        on(&operation::STOP, stop),
        on(&operation::CAPTURE, capture),
    ]
    .into_iter()
    .fold(Router::new(), Router::merge)
    .layer(DefaultBodyLimit::max(ASSIGNMENT_BYTES_MAX))
    .layer(from_fn_with_state(
        (Arc::clone(access), threads.clone()),
        identify,
    ));
    // Who it is asked by is what it finds out. Its router comes first: paths that are not there are the others'.
    Router::new()
        .route(operation::PROVE.path, routing::get(prove))
        .layer(Extension(Arc::clone(access)))
        .merge(known)
        .layer(from_fn_with_state(Arc::clone(&core), gate))
        .with_state(core)
}

/// Returns the routes for callers elsewhere that do not speak TLS: none. A code that every version of
/// the API knows lets older programs show the words.
pub(super) fn over_tls_only() -> Router {
    Router::new().fallback(|| async {
        refuse(
            RefusalCode::BadRequest,
            "this agent takes requests from other hosts over TLS only, which the caller did not speak: its \
             linerate is older, or was started with --plain: leave out --plain, use the same version on both \
             hosts, or, on a network that is yours alone, start the agent with --plain",
        )
    })
}

fn on<T: 'static>(operation: &Operation, handler: impl Handler<T, Arc<Core>>) -> Router<Arc<Core>> {
    let method = match operation.method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Delete => MethodFilter::DELETE,
    };
    let rule = from_fn_with_state(operation.scope, authorise);
    let answered = routing::on(method, handler).route_layer(rule);
    Router::new().route(operation.path, answered)
}

/// Answers a caller that knows a token, and does not know yet whether this agent does.
async fn prove(
    Extension(access): Extension<Arc<Access>>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Answer<TokenProof> {
    let shown = request.headers().get(header::AUTHORIZATION);
    let proof = shown.and_then(|value| value.as_bytes().strip_prefix(b"Proof "));
    let channel = request.extensions().get::<Channel>().copied();
    let (Some(proof), Some(channel)) = (proof, channel) else {
        let error = "a token is proved over TLS, with `Authorization: Proof`";
        return Err(refuse(RefusalCode::Unauthorized, error));
    };
    let user = match peer {
        Peer::Socket => User::Own,
        Peer::Address(_, user) => user,
    };
    let proof = access.prove(channel, proof, user, now_s())?;
    Ok(Json(TokenProof { proof }))
}

/// Finds out who asks, whatever is asked for: who may not call is not told either what there is.
async fn identify(
    State((access, threads)): State<(Arc<Access>, Threads)>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let shown = request.headers().get(header::AUTHORIZATION);
    let shown = Shown {
        token: shown.map(|value| {
            let bearer = value.as_bytes().strip_prefix(b"Bearer ");
            bearer.unwrap_or_default()
        }),
        certificate: request.extensions().get::<Fingerprint>().copied(),
    };
    let caller = match peer {
        // The kernel says whose it is.
        Peer::Socket => Caller::Trusted,
        Peer::Address(_, user) => access.caller(shown, user, now_s())?,
    };
    if request.method() == axum::http::Method::CONNECT {
        let error = "this agent is no proxy: it connects to no host for its callers";
        let refused = Json(refuse(RefusalCode::BadRequest, error));
        return Ok((StatusCode::NOT_IMPLEMENTED, refused).into_response());
    }
    let desk = Desk {
        threads,
        of: Who::of(&peer, Some(&caller)),
        takes_gzip: takes_gzip(request.headers()),
    };
    request.extensions_mut().insert(desk);
    request.extensions_mut().insert(caller.clone());
    let mut response = next.run(request).await;
    // For the log, should it be a refusal.
    response.extensions_mut().insert(caller);
    Ok(response)
}

/// Lets a request through to its operation, if that is what its caller may.
async fn authorise(
    State(scope): State<Option<Scope>>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if let Some(scope) = scope {
        caller.check(scope)?;
    }
    Ok(next.run(request).await)
}

/// Reads a JSON body.
async fn body<T: DeserializeOwned>(request: Request, bytes_max: usize) -> Result<T, Refusal> {
    parse(&bytes(request, bytes_max).await?)
}

/// Reads the bytes of a JSON body. The content type is required, so that no web page can post one unasked.
///
/// One that is declared longer than `bytes_max` is refused unread.
async fn bytes(request: Request, bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .map(|kind| kind.as_bytes());
    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
        let error = "the content type must be application/json";
        return Err(refuse(RefusalCode::BadRequest, error));
    }
    let too_long = || {
        let error = format!("the body is longer than {bytes_max} B");
        refuse(RefusalCode::BadRequest, error)
    };
    if declared_bytes(&request).is_some_and(|length| length > bytes_max as u64) {
        return Err(too_long());
    }
    // Copied together as it comes: pieces of a byte each, kept as they are, take forty times the memory.
    let mut body = request.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame =
            frame.map_err(|error| refuse(RefusalCode::BadRequest, format!("the body: {error}")))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if bytes.len() + piece.len() > bytes_max {
            return Err(too_long());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Returns how long the body of a request is, if it says so.
fn declared_bytes(request: &Request) -> Option<u64> {
    let declared = request.headers().get(header::CONTENT_LENGTH)?;
    declared.to_str().ok()?.parse().ok()
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes)
        .map_err(|error| refuse(RefusalCode::BadRequest, format!("the body: {error}")))
}

type Answer<T> = Result<Json<T>, Refusal>;

/// Returns whether a caller takes answers that are compressed by gzip (RFC 9110, 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let listed = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = listed.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"gzip"))
}

/// A JSON document as it is sent.
struct Written {
    bytes: Vec<u8>,
    is_gzip: bool,
}

impl Written {
    /// Writes `answer`, compressed if it is long and the caller takes that: samples are the same words over and over,
    /// and the link that carries them may be the one that is measured.
    fn of(answer: &impl Serialize, takes_gzip: bool) -> Result<Self, Refusal> {
        let failed = |error: std::io::Error| refuse(RefusalCode::Internal, error);
        let text = serde_json::to_vec(answer).map_err(|error| failed(error.into()))?;
        let is_gzip = takes_gzip && text.len() > PLAIN_BYTES_MAX;
        let bytes = if is_gzip {
            gzip(&text).map_err(failed)?
        } else {
            text
        };
        Ok(Self { bytes, is_gzip })
    }

    /// Returns the answer; `sent` makes one of bytes of a kind.
    fn answer(self, sent: impl FnOnce(&'static str, Vec<u8>) -> Response) -> Response {
        let mut response = sent("application/json", self.bytes);
        if self.is_gzip {
            let coding = HeaderValue::from_static("gzip");
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_ENCODING, coding);
        }
        response
    }
}

fn gzip(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text)?;
    encoder.finish()
}

/// Answers with what `make` gives, which takes time to make and may be long.
async fn answer_long<T: Serialize + Send + 'static>(
    desk: &Desk,
    make: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<Response, Refusal> {
    let place = desk.place_of_answer().await?;
    let takes_gzip = desk.takes_gzip;
    let written = desk.run(move || Written::of(&make()?, takes_gzip)).await?;
    Ok(written.answer(|kind, bytes| placed(kind, bytes, place)))
}

/// Bytes of an answer, and the place that they have while they are there.
struct Placed {
    bytes: Vec<u8>,
    _place: Place<Who>,
}

impl AsRef<[u8]> for Placed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns an answer that gives its place back once it was sent, if it is so long that it needs one.
pub(super) fn placed(kind: &'static str, bytes: Vec<u8>, place: Place<Who>) -> Response {
    let bytes = if bytes.len() > ANSWER_BYTES_LONG {
        Bytes::from_owner(Placed {
            bytes,
            _place: place,
        })
    } else {
        bytes.into()
    };
    of_kind(kind, bytes)
}

fn of_kind(kind: &'static str, bytes: impl Into<Bytes>) -> Response {
    ([(header::CONTENT_TYPE, kind)], bytes.into()).into_response()
}

/// An empty JSON object, for answers that carry nothing.
fn nothing() -> serde_json::Value {
    serde_json::json!({})
}

async fn agent(
    State(core): State<Arc<Core>>,
    Extension(caller): Extension<Caller>,
) -> Answer<crate::api::AgentInfo> {
    Ok(Json(core.info(&caller)))
}

/// Answers with the API's document, which is made once: it takes milliseconds, and anyone may ask
/// for it thousands of times.
async fn api_document() -> Response {
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| openapi::document().to_string().into());
    of_kind("application/json", document.clone())
}

async fn clock() -> Json<ClockReading> {
    let received_ns = now_ns();
    Json(ClockReading {
        received_ns,
        sent_ns: now_ns(),
    })
}

async fn inventory(
    State(core): State<Arc<Core>>,
    Query(wanted): Query<InventoryRequest>,
    Extension(caller): Extension<Caller>,
    Extension(desk): Extension<Desk>,
) -> Result<Response, Refusal> {
    answer_long(&desk, move || Ok(core.inventory(&caller, &wanted))).await
}

async fn observation(
    State(core): State<Arc<Core>>,
    Query(wanted): Query<ObservationRequest>,
    Extension(caller): Extension<Caller>,
    Extension(peer): Extension<Peer>,
    Extension(desk): Extension<Desk>,
) -> Result<Response, Refusal> {
    core.note_observation(Asker::of(peer.ip(), caller.name()));
    answer_long(&desk, move || core.observe(&caller, &wanted)).await
}

async fn admit(
    State(core): State<Arc<Core>>,
    Extension(caller): Extension<Caller>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Answer<crate::api::Admitted> {
    let asked: crate::api::AdmitRequest = body(request, BODY_BYTES_MAX).await?;
    let admitted = core.admit(&caller, Some(peer.ip()), &asked)?;
    // What was ended for it goes on for a moment, which its first trial would measure.
    let end = Instant::now() + EVICTION_WAIT;
    while asked.evict && core.has_trials_under_way() && Instant::now() < end {
        tokio::time::sleep(EVICTION_LOOK).await;
    }
    Ok(Json(admitted))
}

async fn evict(
    State(core): State<Arc<Core>>,
    Extension(caller): Extension<Caller>,
) -> Answer<Evicted> {
    let runs = core.evict(&caller)?;
    Ok(Json(Evicted { runs }))
}

async fn renew(
    State(core): State<Arc<Core>>,
    Path(lease): Path<String>,
) -> Answer<crate::api::Admitted> {
    core.renew(&lease).map(Json)
}

async fn leave(
    State(core): State<Arc<Core>>,
    Path(lease): Path<String>,
) -> Answer<serde_json::Value> {
    core.leave(&lease).map(|()| Json(nothing()))
}

async fn prepare(
    State(core): State<Arc<Core>>,
    Path(lease): Path<String>,
    Extension(caller): Extension<Caller>,
    Extension(desk): Extension<Desk>,
    request: Request,
) -> Result<Response, Refusal> {
    core.renew(&lease)?;
    // Of large ones there are so many at a time, however many connections there are.
    let is_small = declared_bytes(&request).is_some_and(|length| length <= BODY_BYTES_MAX as u64);
    let place = if is_small {
        None
    } else {
        Some(desk.place_of_body().await?)
    };
    let assignment = bytes(request, ASSIGNMENT_BYTES_MAX).await?;
    // Reading one of 4 MiB takes tens of milliseconds, which others would wait here.
    let prepared = move || {
        let parsed = parse(&assignment)?;
        drop((assignment, place));
        core.prepare(&caller, &lease, parsed)
    };
    answer_long(&desk, prepared).await
}

async fn start(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
    request: Request,
) -> Answer<serde_json::Value> {
    let at: crate::api::StartRequest = body(request, BODY_BYTES_MAX).await?;
    core.start_when_there(&lease, TrialId(trial), &at).await?;
    Ok(Json(nothing()))
}

async fn stop(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
) -> Answer<serde_json::Value> {
    core.stop(&lease, TrialId(trial)).map(|()| Json(nothing()))
}

async fn poll(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
    Query(from): Query<PollFrom>,
    Extension(desk): Extension<Desk>,
) -> Result<Response, Refusal> {
    let status = core.poll_when_over(&lease, TrialId(trial), from).await?;
    let items = status.samples.len() + status.flows.len() + status.stacks.len();
    if items <= ITEMS_AT_ONCE {
        let written = Written::of(&status, desk.takes_gzip)?;
        return Ok(written.answer(of_kind));
    }
    // What waits for a place takes no memory: it is looked at again once it has one.
    drop(status);
    let from = PollFrom { wait_ns: 0, ..from };
    answer_long(&desk, move || core.poll_trial(&lease, TrialId(trial), from)).await
}

#[derive(Deserialize)]
struct CaptureQuery {
    #[serde(default)]
    part: usize,
}

/// Answers with bytes of a file.
async fn capture(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
    Query(query): Query<CaptureQuery>,
    Extension(desk): Extension<Desk>,
) -> Result<Response, Refusal> {
    let place = desk.place_of_answer().await?;
    let part = core.capture_part(&lease, TrialId(trial), query.part)?;
    Ok(placed("application/octet-stream", part, place))
}

async fn abort(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
) -> Answer<serde_json::Value> {
    core.abort(&lease, TrialId(trial)).map(|()| Json(nothing()))
}
