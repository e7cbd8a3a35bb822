//! Requests and answers over HTTP: routes, limits, tokens.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::handler::Handler;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodFilter};
use axum::{Json, Router};
use linerate_engine::now_ns;
use linerate_model::{Nanos, TrialId};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::connections::ConnectionGuard;
use super::owner::Owner;
use crate::api::operation::{self, Method, Operation};
use crate::api::{
    ClockReading, InventoryRequest, ObservationRequest, PollFrom, Refusal, RefusalCode, openapi,
};
use crate::core::{Caller, Core};

/// Largest assignment: one of 20 000 flows takes about 1 MB. Only whoever holds the host may send
/// that much.
const ASSIGNMENT_BYTES_MAX: usize = 4 << 20;
/// Largest request of any other kind.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Longest time from the headers of a request to its answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
struct Peer(SocketAddr);

/// The router for one connection: notes the peer and bounds the time of each answer.
#[derive(Debug, Clone)]
pub(super) struct WithPeer {
    pub(super) router: Router,
    pub(super) guard: Arc<ConnectionGuard>,
    pub(super) owner: Option<Arc<Owner>>,
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
        request.extensions_mut().insert(Peer(self.guard.address()));
        let answer = tower_service::Service::call(&mut self.router, request);
        Box::pin(async move {
            let late = || refusal(RefusalCode::Internal, "the answer took too long");
            Ok(match tokio::time::timeout(ANSWER_DEADLINE, answer).await {
                Ok(Ok(response)) => as_refusal(response),
                Err(_) => late().into_response(),
            })
        })
    }
}

fn refusal(code: RefusalCode, error: impl Into<String>) -> Refusal {
    Refusal {
        error: error.into(),
        code,
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
    (status, Json(refusal(RefusalCode::BadRequest, error))).into_response()
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
        (status, Json(self)).into_response()
    }
}

/// Returns the routes: every operation with what answers it.
pub(super) fn router(core: Arc<Core>) -> Router {
    [
        on(&operation::INFO, agent),
        on(&operation::DOCUMENT, api_document),
        on(&operation::CLOCK, clock),
        on(&operation::INVENTORY, inventory),
        on(&operation::OBSERVE, observation),
        on(&operation::ADMIT, admit),
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
    .with_state(core)
}

fn on<T: 'static>(operation: &Operation, handler: impl Handler<T, Arc<Core>>) -> Router<Arc<Core>> {
    let method = match operation.method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Delete => MethodFilter::DELETE,
    };
    Router::new().route(operation.path, routing::on(method, handler))
}

/// Decides what the caller may do, from where it calls and what it shows.
///
/// 1. A token that is shown must be right.
/// 2. Whoever shows it is trusted.
/// 3. Callers on this host are trusted: what they could observe they can read themselves.
/// 4. All others may measure, within the limits.
fn caller(core: &Core, request: &Request) -> Result<Caller, Refusal> {
    let shown = request.headers().get(header::AUTHORIZATION);
    let shown = shown.map(|value| {
        value
            .as_bytes()
            .strip_prefix(b"Bearer ")
            .unwrap_or_default()
    });
    match (shown, &core.config().token) {
        (Some(shown), Some(token)) if same_bytes(shown, token.as_bytes()) => {
            return Ok(Caller::Trusted);
        }
        (Some(_), Some(_)) => {
            return Err(refusal(
                RefusalCode::Unauthorized,
                "the token is not this agent's",
            ));
        }
        _ => {}
    }
    let peer = request
        .extensions()
        .get::<Peer>()
        .map(|peer| peer.0.ip().to_canonical());
    if peer.is_some_and(|ip| ip.is_loopback()) {
        return Ok(Caller::Trusted);
    }
    let why = match core.config().token {
        Some(_) => "observing from another host needs the agent's token (--token-file)",
        None => "the agent was started without a token, so only its own host may observe it",
    };
    Ok(Caller::Stranger(why.to_owned()))
}

/// Compares in a time that does not depend on where the two differ.
fn same_bytes(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |diff, (l, r)| diff | (l ^ r))
            == 0
}

/// Reads a JSON body. The content type is required, so that no web page can post one unasked.
///
/// One that is declared longer than `bytes_max` is refused unread.
async fn body<T: DeserializeOwned>(request: Request, bytes_max: usize) -> Result<T, Refusal> {
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .map(|kind| kind.as_bytes());
    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
        let error = "the content type must be application/json";
        return Err(refusal(RefusalCode::BadRequest, error));
    }
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > bytes_max as u64) {
        let error = format!("the body is longer than {bytes_max} B");
        return Err(refusal(RefusalCode::BadRequest, error));
    }
    let bytes = axum::body::to_bytes(request.into_body(), bytes_max)
        .await
        .map_err(|error| refusal(RefusalCode::BadRequest, format!("the body: {error}")))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| refusal(RefusalCode::BadRequest, format!("the body: {error}")))
}

/// Runs what may wait for the kernel or a peer on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<Json<T>, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map(Json),
        Err(_) => Err(refusal(
            RefusalCode::Internal,
            "the agent failed; its log may say why",
        )),
    }
}

type Answer<T> = Result<Json<T>, Refusal>;

/// An empty JSON object, for answers that carry nothing.
fn nothing() -> serde_json::Value {
    serde_json::json!({})
}

async fn agent(State(core): State<Arc<Core>>, request: Request) -> Answer<crate::api::AgentInfo> {
    let caller = caller(&core, &request)?;
    Ok(Json(core.info(&caller)))
}

/// Answers with the API's document, which is made once: it takes milliseconds, and anyone may ask
/// for it thousands of times.
async fn api_document() -> Response {
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| openapi::document().to_string().into());
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, document.clone()).into_response()
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
    request: Request,
) -> Answer<crate::api::Inventory> {
    let caller = caller(&core, &request)?;
    blocking(move || Ok(core.inventory(&caller, &wanted))).await
}

async fn observation(
    State(core): State<Arc<Core>>,
    Query(wanted): Query<ObservationRequest>,
    request: Request,
) -> Answer<crate::api::Observation> {
    let caller = caller(&core, &request)?;
    blocking(move || core.observe(&caller, &wanted)).await
}

async fn admit(State(core): State<Arc<Core>>, request: Request) -> Answer<crate::api::Admitted> {
    caller(&core, &request)?;
    let asked = body(request, BODY_BYTES_MAX).await?;
    core.admit(&asked).map(Json)
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
    request: Request,
) -> Answer<crate::api::Prepared> {
    let caller = caller(&core, &request)?;
    core.renew(&lease)?;
    let assignment: crate::api::Assignment = body(request, ASSIGNMENT_BYTES_MAX).await?;
    blocking(move || core.prepare(&caller, &lease, assignment)).await
}

async fn start(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
    request: Request,
) -> Answer<serde_json::Value> {
    let at: crate::api::StartRequest = body(request, BODY_BYTES_MAX).await?;
    blocking(move || core.start(&lease, TrialId(trial), &at).map(|()| nothing())).await
}

async fn stop(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
) -> Answer<serde_json::Value> {
    core.stop(&lease, TrialId(trial)).map(|()| Json(nothing()))
}

#[derive(Deserialize)]
struct PollQuery {
    #[serde(default)]
    from: usize,
    #[serde(default)]
    flow: usize,
    #[serde(default)]
    wait_ns: u64,
}

async fn poll(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
    Query(query): Query<PollQuery>,
) -> Answer<crate::api::TrialStatus> {
    let from = PollFrom {
        sample: query.from,
        flow: query.flow,
        wait: Nanos(query.wait_ns),
    };
    let answer = move || core.poll_trial(&lease, TrialId(trial), from);
    match from.wait.0 {
        0 => answer().map(Json),
        _ => blocking(answer).await,
    }
}

#[derive(Deserialize)]
struct CaptureQuery {
    #[serde(default)]
    part: usize,
}

/// Answers with bytes of a file: whoever may ask is one who may observe the host, as the trial was
/// asked to capture by the same.
async fn capture(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
    Query(query): Query<CaptureQuery>,
    request: Request,
) -> Result<Response, Refusal> {
    if let Caller::Stranger(why) = caller(&core, &request)? {
        return Err(refusal(RefusalCode::Unauthorized, why));
    }
    let part = core.capture_part(&lease, TrialId(trial), query.part)?;
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, part).into_response())
}

async fn abort(
    State(core): State<Arc<Core>>,
    Path((lease, trial)): Path<(String, u32)>,
) -> Answer<serde_json::Value> {
    core.abort(&lease, TrialId(trial)).map(|()| Json(nothing()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_compared_whole() {
        assert!(same_bytes(b"secret", b"secret"));
        for wrong in [&b"secreT"[..], b"secre", b"", b"secretsecret"] {
            assert!(!same_bytes(wrong, b"secret"));
        }
    }
}
