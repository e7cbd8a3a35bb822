//! One page of text that is made anew for each reader: what Prometheus scrapes.
//!
//! It answers `GET /metrics` to whoever asks, as exporters do, so the address decides who that is.
//! Readers are bounded as those of the agent are: in number, in the time for their headers, and in
//! how long they may leave an answer unread.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;

use super::connections::Connections;
use super::{ACCEPT_PAUSE, ServeError, listen, runtime, serve_http, unless_stopped};
use crate::api::{Refusal, RefusalCode};
use crate::core::open_files_max;

/// Makes the page, or says why there is none at the moment; it may wait for another host.
pub type Page = dyn Fn() -> Result<String, String> + Send + Sync;

/// A bound listener for readers of one page.
#[derive(Debug)]
pub struct Exporter(std::net::TcpListener);

/// What is served.
#[derive(Clone)]
struct Served {
    content_type: &'static str,
    page: Arc<Page>,
}

impl Exporter {
    /// Binds `address`; port 0 lets the kernel choose.
    pub fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let bind = |source| ServeError::Bind { address, source };
        listen(address).map(Self).map_err(bind)
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves `page` until `stop` is dropped or sent to.
    pub fn run(
        self,
        content_type: &'static str,
        page: Arc<Page>,
        stop: std::sync::mpsc::Receiver<()>,
    ) -> Result<(), ServeError> {
        let served = Served { content_type, page };
        let router = Router::new()
            .route("/metrics", get(metrics))
            .fallback(elsewhere)
            .with_state(served);
        runtime()?.block_on(unless_stopped(stop, accept_all(self.0, router)))
    }
}

async fn accept_all(listener: std::net::TcpListener, router: Router) -> Result<(), ServeError> {
    let listener = TcpListener::from_std(listener).map_err(ServeError::Runtime)?;
    let connections = Connections::new(open_files_max());
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let router = router.clone();
        connections.take_in(peer, |guard| serve_http(stream, guard, router, None));
    }
}

async fn metrics(State(served): State<Served>) -> Response {
    let page = Arc::clone(&served.page);
    let made = tokio::task::spawn_blocking(move || page()).await;
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    match made {
        Ok(Ok(page)) => ([(header::CONTENT_TYPE, served.content_type)], page).into_response(),
        Ok(Err(why)) => (StatusCode::BAD_GATEWAY, plain, why).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, plain, "it failed").into_response(),
    }
}

async fn elsewhere() -> Response {
    let refusal = Refusal {
        error: "the page is /metrics".to_owned(),
        code: RefusalCode::BadRequest,
    };
    (StatusCode::NOT_FOUND, Json(refusal)).into_response()
}
