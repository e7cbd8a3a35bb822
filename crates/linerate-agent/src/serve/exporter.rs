//! One page of text that is made anew for each reader: what Prometheus scrapes.
//!
//! It answers `GET /metrics` to whoever asks, as exporters do, so the address decides who that is; but not
//! to pages in a browser, which ask as the agent's do. `/` leads people there.
//! Readers are bounded as those of the agent are: in number, in the time for their headers, and in
//! how long they may leave an answer unread.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use tokio::net::TcpListener;

use super::connections::Connections;
use super::gate::gate_page;
use super::http::placed;
use super::peer::Peer;
use super::threads::{Desk, Threads, Who};
use super::{
    ServeError, accepted, listen, runtime, serve_http, set_control_options, unless_stopped,
};
use crate::access::User;
use crate::api::Refusal;
use crate::core::open_files_max;

/// What lies at `/`.
const LANDING: &str = "<!doctype html><html lang=\"en\"><title>linerate</title><h1>linerate</h1>\
    <p>Counters of this host for Prometheus: <a href=\"/metrics\">/metrics</a>\n";

/// Makes the page for a reader with this `Accept` header, with its content type, or says why there is
/// none at the moment; it may wait for another host.
pub type Page = dyn Fn(&str) -> Result<(&'static str, String), String> + Send + Sync;

/// A bound listener for readers of one page.
#[derive(Debug)]
pub struct Exporter {
    listener: std::net::TcpListener,
    names: Vec<String>,
}

impl Exporter {
    /// Binds `address`, for requests by address, as localhost or by one of `names`; port 0 lets the kernel
    /// choose.
    pub fn bind(address: SocketAddr, names: Vec<String>) -> Result<Self, ServeError> {
        let bind = |source| ServeError::Bind { address, source };
        let listener = listen(address).map_err(bind)?;
        Ok(Self { listener, names })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves `page` until `stop` is dropped or sent to.
    pub fn run(
        self,
        page: Arc<Page>,
        stop: std::sync::mpsc::Receiver<()>,
    ) -> Result<(), ServeError> {
        let landing = || async { axum::response::Html(LANDING) };
        let router = Router::new()
            .route("/", get(landing))
            .route("/metrics", get(metrics))
            .layer(from_fn_with_state(Arc::from(self.names), gate_page))
            .with_state((page, Threads::new()));
        runtime()?.block_on(unless_stopped(stop, accept_all(self.listener, router)))
    }
}

async fn accept_all(listener: std::net::TcpListener, router: Router) -> Result<(), ServeError> {
    let listener = TcpListener::from_std(listener).map_err(ServeError::Runtime)?;
    let connections = Connections::new(open_files_max());
    loop {
        let (stream, peer) = accepted(|| listener.accept()).await;
        let router = router.clone();
        set_control_options(&stream);
        // What it shows it shows to everybody.
        let from = Peer::Address(peer, User::Other);
        connections.take_in(peer, |guard| serve_http(stream, guard, from, router, None));
    }
}

async fn metrics(
    State((page, threads)): State<(Arc<Page>, Threads)>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok());
    let accept = accept.unwrap_or_default().to_owned();
    let desk = Desk {
        threads,
        of: Who::of(&peer, None),
        takes_gzip: false,
    };
    let made = async {
        let place = desk.place_of_answer().await?;
        let made = desk.run(move || Ok(page(&accept))).await?;
        Ok::<_, Refusal>((made, place))
    };
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    match made.await {
        Ok((Ok((kind, page)), place)) => placed(kind, page.into_bytes(), place),
        Ok((Err(why), _)) => (StatusCode::BAD_GATEWAY, plain, why).into_response(),
        Err(refusal) => (StatusCode::SERVICE_UNAVAILABLE, plain, refusal.error).into_response(),
    }
}
