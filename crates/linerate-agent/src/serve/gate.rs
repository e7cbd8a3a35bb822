//! What is asked of every request before its route: that no page in a browser sends it.
//!
//! A browser on this host calls from loopback, whoever wrote the page. It says so by itself, and a page
//! cannot make it say otherwise:
//!
//! 1. `Host` is the name that the page used. A page that lets its own name lead to this host (DNS
//!    rebinding) is told by it: only addresses, `localhost` and the agent's own names are taken.
//! 2. `Origin` comes with whatever a page sends elsewhere, and with every body.
//! 3. `Sec-Fetch-Site` comes with every request of a current browser; what a user typed is `none`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::peer::Peer;
use crate::api::{RefusalCode, refuse};
use crate::core::{Caller, Core};
use crate::log::Asker;

/// Who sent a request, where that is a page or what came of one: every current browser has it.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Lets a request through to its route, or refuses it.
pub(super) async fn gate(
    State(core): State<Arc<Core>>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    if let Err((status, error)) = check(request.headers(), request.uri(), core.names()) {
        let asker = Asker::of(peer.ip(), None);
        core.note_refusal("for another host or by a page", asker, &error);
        let code = RefusalCode::BadRequest;
        return (status, Json(refuse(code, error))).into_response();
    }
    let response = next.run(request).await;
    if response.status().is_client_error() || response.status().is_server_error() {
        let caller = response.extensions().get::<Caller>();
        let asker = Asker::of(peer.ip(), caller.and_then(Caller::name));
        let why = response.extensions().get::<Why>();
        let why = why.map_or("", |why| &why.0);
        core.note_refusal(kind(response.status()), asker, why);
    }
    response
}

/// Why a request was refused, kept with its answer.
#[derive(Debug, Clone)]
pub(super) struct Why(pub(super) String);

/// Returns what kind of refusal a status is, for the log.
fn kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "unauthorized",
        403 => "limited",
        409 => "busy",
        410 => "gone",
        424 => "flows",
        500.. => "failed",
        _ => "malformed",
    }
}

/// Does the same for one page of text, on a host of these names.
pub(super) async fn gate_page(
    State(names): State<Arc<[String]>>,
    request: Request,
    next: Next,
) -> Response {
    match check(request.headers(), request.uri(), &names) {
        Ok(()) => next.run(request).await,
        Err((status, error)) => (status, format!("{error}\n")).into_response(),
    }
}

fn check(headers: &HeaderMap, uri: &Uri, names: &[String]) -> Result<(), (StatusCode, String)> {
    // A target with a host of its own outranks the header (RFC 9112, 3.2.2).
    let target = uri.authority().map(|authority| authority.as_str());
    // Two of them would be two opinions.
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, _) => target,
        (Some(_), Some(_)) => None,
    };
    let is_ours = host.is_some_and(|host| is_ours(host, names))
        && target.is_none_or(|target| is_ours(target, names));
    if !is_ours {
        let error = "the request is for another host: ask by address, as localhost, or by a name that was \
                     given with --name there";
        return Err((StatusCode::MISDIRECTED_REQUEST, error.to_owned()));
    }
    let site = headers.get(SEC_FETCH_SITE);
    if headers.contains_key(header::ORIGIN) || site.is_some_and(|site| site != "none") {
        let error = "requests of web pages are not taken";
        return Err((StatusCode::FORBIDDEN, error.to_owned()));
    }
    Ok(())
}

/// Returns whether `host`, with or without a port, is an address, `localhost` or one of `names`.
fn is_ours(host: &str, names: &[String]) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    if let Some((address, port)) = bracketed {
        let is_port = port.strip_prefix(':').map_or(port.is_empty(), is_number);
        // A zone, as in fe80::1%eth0, is not part of the address.
        let address = address.split('%').next().unwrap_or_default();
        return is_port
            && address
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_ipv6());
    }
    let name = match host.split_once(':') {
        Some((name, port)) if is_number(port) => name,
        Some(_) => return false,
        None => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    name.parse::<std::net::Ipv4Addr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

fn is_number(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses_and_own_names() {
        let names = ["db1".to_owned(), "db1.example.org".to_owned()];
        let ours = [
            "192.0.2.1",
            "192.0.2.1:5201",
            "[2001:db8::1]:5201",
            "[::1]",
            "[fe80::1%25eth0]:5201",
            "localhost",
            "LOCALHOST.:80",
            "db1:5201",
            "DB1.example.org",
        ];
        for host in ours {
            assert!(is_ours(host, &names), "{host}");
        }
        let others = [
            "",
            "evil.example",
            "evil.example:5201",
            "db1.evil.example",
            "localhost.evil.example",
            "192.0.2.1.evil.example",
            "192.0.2.1:evil",
            "[2001:db8::1",
            "[192.0.2.1]",
            "[::1]evil.example",
            "a:b:c",
            "db1@evil.example",
        ];
        for host in others {
            assert!(!is_ours(host, &names), "{host}");
        }
    }

    #[test]
    fn what_a_page_sends_is_refused() {
        let check = |more: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in more {
                headers.append(*name, value.parse().unwrap());
            }
            let checked = check(&headers, &Uri::from_static("/v1/agent"), &[]);
            checked.err().map_or(200, |(status, _)| status.as_u16())
        };
        let local = ("host", "127.0.0.1:5201");
        assert_eq!(check(&[local]), 200);
        assert_eq!(check(&[]), 421);
        assert_eq!(check(&[("host", "evil.example")]), 421);
        let headers = HeaderMap::from_iter([(header::HOST, "127.0.0.1".parse().unwrap())]);
        let foreign = Uri::from_static("http://evil.example/v1/agent");
        assert!(super::check(&headers, &foreign, &[]).is_err());
        assert_eq!(check(&[local, ("host", "evil.example")]), 421);
        assert_eq!(check(&[local, ("origin", "http://127.0.0.1:5201")]), 403);
        assert_eq!(check(&[local, ("origin", "null")]), 403);
        assert_eq!(check(&[local, ("sec-fetch-site", "cross-site")]), 403);
        assert_eq!(check(&[local, ("sec-fetch-site", "same-origin")]), 403);
        assert_eq!(check(&[local, ("sec-fetch-site", "none")]), 200);
    }
}
