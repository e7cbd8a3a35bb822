//! Tokens and what they are good for: every operation, with a token of every scope.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use common::Serving;
use flate2::read::MultiGzDecoder;
use linerate_agent::access::{Access, Register, Scope, Scopes, Strangers};
use serde_json::Value;

/// What every operation takes; those that are not here take a token of any scope.
const SCOPES: [(&str, Scope); 11] = [
    ("observe", Scope::Observe),
    ("admit", Scope::Measure),
    ("renew", Scope::Measure),
    ("leave", Scope::Measure),
    ("prepare", Scope::Measure),
    ("poll", Scope::Measure),
    ("abort", Scope::Measure),
    ("start", Scope::Measure),
    ("stop", Scope::Measure),
    ("capture", Scope::Capture),
    ("evict", Scope::Admin),
];
const FOR_ALL: [&str; 4] = ["info", "openapi", "clock", "inventory"];

/// Asks without a body; returns the status and the document.
fn ask(serving: &Serving, method: &str, path: &str, token: Option<&str>) -> (u16, Value) {
    let url = format!("http://{}{path}", serving.address);
    let request = ureq::http::Request::builder().method(method).uri(url);
    let request = token.into_iter().fold(request, |request, token| {
        request.header("authorization", format!("Bearer {token}"))
    });
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .build()
        .into();
    let mut response = agent.run(request.body(()).unwrap()).unwrap();
    let status = response.status().as_u16();
    (status, response.body_mut().read_json().unwrap())
}

/// The operation that takes a proof.
const BY_PROOF: &str = "prove";

#[test]
fn every_operation_takes_its_scope_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let register = Register::of(folder.path());
    let tokens = Scope::ALL.map(|scope| {
        let scopes: Scopes = scope.name().parse().unwrap();
        (scope, register.add(scope.name(), scopes, None).unwrap())
    });
    let all = register.add("all", Scopes::ALL, None).unwrap();
    let rules = Access::new(None, Some(register), Strangers::Refused, Vec::new());
    let serving = Serving::start(|mut server| {
        server.access = rules;
        server
    });
    let (_, document) = ask(&serving, "GET", "/v1/openapi.json", Some(&all));
    let mut walked = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.replace("{lease}", "nosuch").replace("{trial}", "1");
        for (method, operation) in methods.as_object().unwrap() {
            let method = method.to_uppercase();
            let id = operation["operationId"].as_str().unwrap();
            walked.insert(id.to_owned());
            // What is shown there is no token, but that one is known.
            if id == BY_PROOF {
                for token in [None, Some(&*all)] {
                    assert_eq!(ask(&serving, &method, &path, token).0, 401, "{id}");
                }
                continue;
            }
            let needed = SCOPES.iter().find(|(of, _)| *of == id);
            assert!(needed.is_some() != FOR_ALL.contains(&id), "{id}");
            for (scope, token) in &tokens {
                let (status, answer) = ask(&serving, &method, &path, Some(token));
                let is_refused = status == 403;
                let expected = needed.is_some_and(|(_, needed)| needed != scope);
                assert_eq!(is_refused, expected, "{id} by {scope:?}: {status} {answer}");
                if is_refused {
                    let words = answer["error"].as_str().unwrap();
                    assert!(words.contains(&format!("`{}`", scope.name())), "{words}");
                }
            }
            let (status, _) = ask(&serving, &method, &path, Some(&all));
            assert!(status != 401 && status != 403, "{id}: {status}");
            let (status, answer) = ask(&serving, &method, &path, Some("made up"));
            assert_eq!(
                (status, &answer["code"]),
                (401, &"unauthorized".into()),
                "{id}"
            );
        }
    }
    assert_eq!(walked.len(), SCOPES.len() + FOR_ALL.len() + 1, "{walked:?}");
}

#[test]
fn tokens_expire_and_are_removed_while_the_agent_runs() {
    let folder = tempfile::tempdir().unwrap();
    let register = Register::of(folder.path());
    let rules = Access::new(None, Some(register.clone()), Strangers::Refused, Vec::new());
    let serving = Serving::start(|mut server| {
        server.access = rules;
        server
    });
    let status = |token: &str| ask(&serving, "GET", "/v1/clock", Some(token)).0;
    let kept = register.add("kept", Scopes::ALL, None).unwrap();
    let gone = register.add("gone", Scopes::ALL, Some(u64::MAX)).unwrap();
    let old = register.add("old", Scopes::ALL, Some(1)).unwrap();
    assert_eq!(
        [&kept, &gone, &old].map(|token| status(token)),
        [200, 200, 401]
    );
    assert!(register.remove("gone").unwrap());
    assert_eq!(
        [&kept, &gone, &old].map(|token| status(token)),
        [200, 401, 401]
    );
}

#[test]
fn who_may_only_observe_captures_nothing_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let register = Register::of(folder.path());
    let token = register
        .add("eye", "observe".parse().unwrap(), None)
        .unwrap();
    let measures = register
        .add("ci", "measure".parse().unwrap(), None)
        .unwrap();
    let rules = Access::new(None, Some(register), Strangers::Refused, Vec::new());
    let serving = Serving::start(|mut server| {
        server.access = rules;
        server
    });
    let info = |token: &str| ask(&serving, "GET", "/v1/agent", Some(token)).1;
    assert!(info(&token)["observe_refused"].is_null());
    let refused = info(&measures)["observe_refused"].to_string();
    assert!(
        refused.contains("`ci`") && refused.contains("--scope"),
        "{refused}"
    );
    let facts = |token: &str| {
        let (_, inventory) = ask(&serving, "GET", "/v1/inventory", Some(token));
        inventory["snapshot"]["facts"].as_array().unwrap().len()
    };
    assert!(facts(&token) > 0);
    assert_eq!(facts(&measures), 0);
}

#[test]
fn long_answers_are_compressed_for_those_who_take_that() {
    let serving = Serving::start(|server| server);
    let answered = |coding: &str| {
        let mut stream = TcpStream::connect(serving.address).unwrap();
        let request = format!(
            "GET /v1/inventory HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{coding}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let body = answer.split_off(end.unwrap() + 4);
        (String::from_utf8(answer).unwrap().to_lowercase(), body)
    };
    let (head, plain) = answered("");
    assert!(!head.contains("content-encoding"), "{head}");
    let (head, refused) = answered("accept-encoding: br\r\n");
    assert!(!head.contains("content-encoding") && refused.len() > plain.len() / 2);
    let (head, packed) = answered("accept-encoding: br, GZIP\r\n");
    assert!(head.contains("content-encoding: gzip"), "{head}");
    assert!(
        packed.len() < plain.len() / 2,
        "{} B of {} B",
        packed.len(),
        plain.len()
    );
    let mut text = String::new();
    MultiGzDecoder::new(&packed[..])
        .read_to_string(&mut text)
        .unwrap();
    let names = [&plain[..], text.as_bytes()].map(|text| {
        let document: Value = serde_json::from_slice(text).unwrap();
        document
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    });
    assert_eq!(names[0], names[1]);
}
