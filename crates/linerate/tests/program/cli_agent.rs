//! An agent among strangers: whatever comes in on its port, it goes on answering, and every
//! refusal is a status with a JSON body.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write};
use std::time::{Duration, Instant};

use crate::common::call::{Call, PROGRAM, on_one_line};
use crate::common::http::{ask, ask_with, connect, read, say};
use crate::common::{Server, file, folder, linerate};
use serde_json::{Value, json};

const ADMIT: &str = r#"{"run":"r","label":"a test","admission":"exclusive","expected":1000000000}"#;

/// Admits a run and returns its lease.
fn admit(server: &Server) -> String {
    let answer = ask(server.address, "POST", "/v1/runs", ADMIT);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["lease"].as_str().expect("a lease").to_owned()
}

/// Returns an assignment for the accepting end that an agent takes up.
fn assignment() -> Value {
    json!({
        "trial": 1, "end": "server", "peer": null, "bind": null,
        "cookie": "00112233445566778899aabbccddeeff",
        "traffic": {"kind": "stream", "direction": "to-server", "message_bytes": 1024},
        "options": {}, "flows": [{"flow": 0, "part": "receiver"}], "workers_max": null,
        "cpus": [], "sample_interval": 100_000_000u64, "length": 1_000_000_000u64
    })
}

#[test]
fn bytes_that_mean_nothing_are_closed() {
    let server = Server::start(&[]);
    let garbage: Vec<u8> = (0..4096u32).map(|at| (at * 131 % 251) as u8).collect();
    let hello = |rest: &[u8]| [b"LINERATE".as_slice(), rest].concat();
    let unknown_cookie = hello(&[[0, 1, 0, 0].as_slice(), &[7; 20]].concat());
    for bytes in [
        garbage.as_slice(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"G\x00\x00\x00\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"LINEFEED that is no hello, but long enough for one",
        &hello(&[0xff; 24]),
        &unknown_cookie,
    ] {
        let answer = say(server.address, bytes);
        assert!(matches!(answer.status, 0 | 400), "{answer:?}");
    }
    assert!(server.info()["busy"].is_null());
}

#[test]
fn whoever_is_slow_keeps_nobody_waiting() {
    let server = Server::start(&[]);
    let mut silent = Vec::new();
    for opening in [
        &b""[..],
        b"L",
        b"LINERATE\x00\x01",
        b"GET /v1/agent HTTP/1.1\r\nho",
    ] {
        let mut stream = connect(server.address);
        stream.write_all(opening).expect("the agent reads");
        silent.push(stream);
    }
    let began = Instant::now();
    for _ in 0..50 {
        server.info();
    }
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    // The agent hangs up on those that never say what they are.
    for stream in silent.into_iter().take(3) {
        assert_eq!(read(stream).status, 0);
    }
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn hundreds_at_once_are_served() {
    let server = Server::start(&[]);
    let address = server.address;
    let streams: Vec<_> = (0..200).map(|_| connect(address)).collect();
    server.info();
    drop(streams);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                for _ in 0..25 {
                    assert_eq!(ask(address, "GET", "/v1/clock", "").status, 200);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("every request was answered");
    }
    server.info();
}

/// Asks on a connection that stays open and reads the status line.
fn ask_on(stream: &mut std::net::TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is open");
    let mut answer = [0; 4096];
    let count = std::io::Read::read(stream, &mut answer).expect("an answer");
    let text = String::from_utf8_lossy(&answer[..count]);
    text.lines().next().unwrap_or_default().to_owned()
}

/// The kernel closes the connections of a controller that is killed; its run would otherwise hold the
/// host for 20 s. Scripts open a connection for each request, and keep their time.
#[test]
fn a_run_ends_soon_after_its_controller_hung_up() {
    let server = Server::start(&[]);
    let lease = admit(&server);
    let path = format!("/v1/runs/{lease}");
    // A connection a request: closing it ends nothing.
    for _ in 0..2 {
        assert_eq!(ask(server.address, "GET", &path, "").status, 200);
    }
    let [mut first, mut second] = [connect(server.address), connect(server.address)];
    for stream in [&mut first, &mut second] {
        for _ in 0..2 {
            let answer = ask_on(stream, &path);
            assert!(answer.contains(" 200 "), "{answer}");
        }
    }
    // One of two connections may go.
    drop(first);
    std::thread::sleep(Duration::from_secs(4));
    assert!(!server.info()["busy"].is_null());
    // So may both, for one that comes back at once.
    drop(second);
    let mut third = connect(server.address);
    for _ in 0..2 {
        let answer = ask_on(&mut third, &path);
        assert!(answer.contains(" 200 "), "{answer}");
    }
    std::thread::sleep(Duration::from_secs(4));
    assert!(!server.info()["busy"].is_null());
    let began = Instant::now();
    drop(third);
    while !server.info()["busy"].is_null() {
        assert!(began.elapsed() < Duration::from_secs(15), "it still holds");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(ask(server.address, "GET", &path, "").status, 410);
}

#[test]
fn requests_that_cannot_be_are_refused_in_json() {
    let server = Server::start(&[]);
    let lease = admit(&server);
    let check = |method: &str, path: &str, body: &str, status: u16, code: &str| {
        let answer = ask(server.address, method, path, body);
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
        assert_eq!(answer.code(), code, "{method} {path}: {answer:?}");
        let error = answer.json()["error"].as_str().map(str::len);
        assert!(error > Some(0), "{answer:?}");
    };
    let trials = format!("/v1/runs/{lease}/trials");
    for (method, path, allowed) in [
        ("PUT", "/v1/agent", "get"),
        ("PATCH", "/v1/runs", "post"),
        ("PATCH", "/v1/runs", "delete"),
        ("QUERY", "/v1/agent", "get"),
        ("TRACE", "/v1/agent", "get"),
        ("LOCK", "/v1/agent", "get"),
        ("nosuch", "/v1/runs", "post"),
    ] {
        let head = ask(server.address, method, path, "").head;
        let mut lines = head.lines();
        let allow = lines.find(|line| line.starts_with("allow:"));
        assert!(allow.is_some_and(|line| line.contains(allowed)), "{head}");
    }
    check("GET", "/", "", 404, "bad_request");
    check("GET", "/v1/nosuch", "", 404, "bad_request");
    check("GET", "/v1/runs/a/b/c/d", "", 404, "bad_request");
    check("PUT", "/v1/agent", "{}", 405, "bad_request");
    check("PATCH", "/v1/runs", "{}", 405, "bad_request");
    check("TRACE", "/v1/agent", "", 405, "bad_request");
    check("NOSUCH", "/v1/nosuch", "", 404, "bad_request");
    check("CONNECT", &server.host(), "", 501, "bad_request");
    check("POST", "/v1/runs", "", 400, "bad_request");
    check("POST", "/v1/runs", "{", 400, "bad_request");
    check("POST", "/v1/runs", "[]", 400, "bad_request");
    check("POST", "/v1/runs", r#"{"run":"r"}"#, 400, "bad_request");
    check(
        "POST",
        "/v1/runs",
        &ADMIT.replace("{", r#"{"more":1,"#),
        400,
        "bad_request",
    );
    check(
        "POST",
        "/v1/runs",
        &ADMIT.replace("a test", &"x".repeat(201)),
        400,
        "bad_request",
    );
    check("POST", "/v1/runs", ADMIT, 409, "busy");
    check("GET", "/v1/runs/nosuch", "", 410, "gone");
    check("DELETE", "/v1/runs/nosuch", "", 410, "gone");
    check(
        "POST",
        "/v1/runs/nosuch/trials",
        &assignment().to_string(),
        410,
        "gone",
    );
    check("GET", &format!("{trials}/7"), "", 410, "gone");
    check("GET", &format!("{trials}/x"), "", 400, "bad_request");
    check(
        "GET",
        &format!("{trials}/7?from=-1"),
        "",
        400,
        "bad_request",
    );
    check("DELETE", &format!("{trials}/7"), "", 410, "gone");
    check("POST", &format!("{trials}/7/stop"), "{}", 410, "gone");
    check("GET", "/v1/memory-copy?nosuch", "", 404, "bad_request");
}

#[test]
fn assignments_that_no_controller_sends_are_refused() {
    let server = Server::start(&[]);
    let lease = admit(&server);
    let trials = format!("/v1/runs/{lease}/trials");
    let check = |change: &dyn Fn(&mut Value), words: &str| {
        let mut body = assignment();
        change(&mut body);
        let answer = ask(server.address, "POST", &trials, &body.to_string());
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body.contains(words), "{words}: {answer:?}");
    };
    check(&|body| body["flows"] = json!([]), "0 flows");
    check(&|body| body["cookie"] = json!("zz"), "cookie");
    check(&|body| body["cpus"] = json!([4095]), "CPU 4095");
    check(
        &|body| body["sample_interval"] = json!(1),
        "1 ms is the least",
    );
    check(
        &|body| body["sample_interval"] = json!(u64::MAX),
        "10 s is the most",
    );
    check(
        &|body| body["length"] = json!(u64::MAX),
        "a day is the most",
    );
    check(
        &|body| body["options"] = json!({"socket_buffer": 1}),
        "socket_buffer",
    );
    check(
        &|body| body["options"] = json!({"mss_bytes": 1}),
        "mss_bytes",
    );
    check(&|body| body["end"] = json!("client"), "peer");
    check(
        &|body| {
            body["traffic"] =
                json!({"kind": "stream", "direction": "to-server", "message_bytes": 0})
        },
        "message_bytes",
    );
    check(&|body| body["nosuch"] = json!(1), "nosuch");
    let answer = ask(server.address, "POST", &trials, &assignment().to_string());
    assert_eq!(answer.status, 200, "the unchanged one is taken: {answer:?}");
    let start = |start: u64, stop: u64| {
        let body = json!({"start_ns": start, "measure_begin_ns": start + 1,
            "measure_end_ns": start + 2, "stop_ns": stop});
        ask(
            server.address,
            "POST",
            &format!("{trials}/1/start"),
            &body.to_string(),
        )
    };
    let answer = start(0, 3_600_000_000_000);
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("the instants span"), "{answer:?}");
    // The session refuses a start without flows only after it has waited for them.
    let answer = ask(server.address, "DELETE", &format!("{trials}/1"), "");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(start(0, 3).status, 410);
}

#[test]
fn a_body_without_a_type_or_too_large_is_refused() {
    let server = Server::start(&[]);
    let plain = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{ADMIT}",
        ADMIT.len()
    );
    let answer = say(server.address, plain.as_bytes());
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("application/json"), "{answer:?}");
    let head = |length: u64| {
        format!(
            "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let large = [head(5 << 20).into_bytes(), vec![b' '; 5 << 20]].concat();
    let answer = say(server.address, &large);
    assert!(matches!(answer.status, 0 | 400 | 413), "{answer:?}");
    let mut broken_off = connect(server.address);
    broken_off
        .write_all(head(1000).as_bytes())
        .expect("the agent reads");
    drop(broken_off);
    let headers = format!(
        "GET /v1/agent HTTP/1.1\r\nx: {}\r\n\r\n",
        "y".repeat(1 << 20)
    );
    let answer = say(server.address, headers.as_bytes());
    assert!(matches!(answer.status, 0 | 400 | 431), "{answer:?}");
    assert!(server.info()["busy"].is_null());
}

#[test]
fn the_document_lists_what_is_routed_and_nothing_else_is() {
    let server = Server::start(&[]);
    let document = ask(server.address, "GET", "/v1/openapi.json", "").json();
    let paths = document["paths"].as_object().expect("paths");
    let methods = ["get", "put", "post", "delete", "patch", "options"];
    let mut listed = BTreeSet::new();
    for (path, operations) in paths {
        let real = path.replace("{lease}", "nosuch").replace("{trial}", "1");
        for method in methods {
            let status = ask(server.address, &method.to_uppercase(), &real, "").status;
            let is_listed = operations.get(method).is_some();
            let is_routed = !matches!(status, 404 | 405);
            assert_eq!(is_routed, is_listed, "{method} {path}: {status}");
            if is_listed {
                listed.insert(format!("{method} {path}"));
            }
        }
    }
    assert!(listed.len() >= 12, "{listed:?}");
    for other in [
        "/",
        "/v1",
        "/v2/agent",
        "/v1/agent/",
        "/openapi.json",
        "/metrics",
    ] {
        assert_eq!(ask(server.address, "GET", other, "").status, 404, "{other}");
    }
}

#[test]
fn a_wrong_token_is_told_and_a_right_one_taken() {
    let folder = folder();
    let right = file(&folder, "right", "0123456789abcdef\n");
    let wrong = file(&folder, "wrong", "fedcba9876543210");
    let server = Server::start(&["--token-file", &right]);
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    let info = |headers: &str| ask_with(server.address, "GET", "/v1/agent", headers, "");
    let answer = info(&bearer("fedcba9876543210"));
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (401, "unauthorized")
    );
    assert_eq!(info("authorization: Basic eDp5\r\n").status, 401);
    // Routes that ask for none hear of it, too, and so does who looks for others.
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/v1/nosuch"),
        ("PUT", "/v1/agent"),
        ("QUERY", "/v1/agent"),
        ("HEAD", "/v1/clock"),
        ("GET", "/v1/runs/nosuch/trials/x"),
        ("GET", "/v1/clock"),
        ("GET", "/v1/openapi.json"),
        ("GET", "/v1/runs/nosuch"),
        ("DELETE", "/v1/runs/nosuch"),
        ("GET", "/v1/runs/nosuch/trials/1"),
        ("POST", "/v1/runs/nosuch/trials/1/stop"),
    ] {
        let wrong = bearer("fedcba9876543210");
        let answer = ask_with(server.address, method, path, &wrong, "");
        assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
    }
    // Nor is calling from this host a token where there is one.
    let answer = info("");
    assert_eq!(answer.status, 401);
    assert!(
        answer.body.contains("calling needs the agent's token"),
        "{answer:?}"
    );
    assert_eq!(
        ask(server.address, "GET", "/v1/observation", "").status,
        401
    );
    assert_eq!(ask(server.address, "DELETE", "/v1/runs", "").status, 401);
    assert_eq!(ask(server.address, "GET", "/v1/nosuch", "").status, 401);
    let connect = ask(server.address, "CONNECT", &server.host(), "");
    assert_eq!(connect.status, 401);
    let answer = info(&bearer("0123456789abcdef"));
    assert_eq!(answer.status, 200);
    assert!(answer.json()["observe_refused"].is_null());
    linerate(&["run", &server.host(), "--token-file", &wrong])
        .run()
        .failed(
            1,
            &[
                "the token is not this agent's",
                "--token-file",
                &server.host(),
            ],
        );
    let said = linerate(&["run", &server.host(), "-t", "0.3", "--token-file", &right]).run();
    assert!(said.is_measured(), "{said:?}");
    said.left_nothing();
}

/// A page lets its own name lead to this host, and its requests then come from loopback.
#[test]
fn a_page_in_a_browser_is_refused_whatever_it_asks() {
    let server = Server::start(&["--name", "db1.example.org"]);
    let say = |method: &str, path: &str, headers: &str, body: &str| {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{headers}content-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        say(server.address, request.as_bytes())
    };
    let rebound = "host: evil.example:5201\r\n";
    let sent = format!(
        "host: {}\r\norigin: http://evil.example\r\n",
        server.address
    );
    let fetched = format!("host: {}\r\nsec-fetch-site: cross-site\r\n", server.address);
    for (method, path, body) in [
        ("GET", "/v1/agent", ""),
        ("GET", "/v1/observation", ""),
        ("GET", "/v1/inventory?memory_copy=true", ""),
        ("POST", "/v1/runs", ADMIT),
        ("DELETE", "/v1/runs", ""),
        ("POST", "/v1/runs/nosuch/trials", "{}"),
        ("GET", "/v1/nosuch", ""),
    ] {
        for (headers, status) in [(rebound, 421), ("", 421), (&sent, 403), (&fetched, 403)] {
            let answer = say(method, path, headers, body);
            assert_eq!(
                answer.status, status,
                "{method} {path} {headers}: {answer:?}"
            );
            assert_eq!(answer.code(), "bad_request");
        }
    }
    assert!(server.info()["busy"].is_null());
    for own in ["localhost:80", "127.0.0.1", "[::1]:5201", "DB1.example.org"] {
        let answer = say("GET", "/v1/observation", &format!("host: {own}\r\n"), "");
        assert_eq!(answer.status, 200, "{own}: {answer:?}");
    }
}

/// The kernel says whose a connection is: no token is needed where it is root's or the agent's user's.
#[test]
fn root_and_the_agents_user_need_no_token_on_its_socket() {
    let folder = folder();
    let token = file(&folder, "token", "0123456789abcdef\n");
    let path = folder.path().join("agent.sock");
    let words = path.display().to_string();
    let server = Server::start(&["--token-file", &token, "--socket", &words]);
    let answer = ask_socket(&path, "GET /v1/observation HTTP/1.1\r\nhost: localhost\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = ask_socket(&path, "GET /v1/agent HTTP/1.1\r\nhost: evil.example\r\n");
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    // Another agent does not take it away, and this one takes it along.
    linerate(&["serve", "-B", "127.0.0.1", "-p", "0", "--socket", &words])
        .run()
        .failed(1, &["cannot listen on the Unix socket", "in use"]);
    server.stop().done();
    assert!(!path.exists());
    // One that was killed leaves its file, which the next replaces.
    let mut killed = Server::start(&["--socket", &words]);
    killed.kill();
    assert!(path.exists());
    let next = Server::start(&["--socket", &words]);
    let answer = ask_socket(&path, "GET /v1/agent HTTP/1.1\r\nhost: localhost\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    next.stop().done();
    assert!(!path.exists());
}

/// Whose lease is taken back is told so, as a failure and not as a wrong command line.
#[test]
fn who_loses_the_host_is_told_to_whom_and_what_next() {
    let _load = crate::common::loading();
    let folder = folder();
    let state = folder.path().display().to_string();
    let token = |name: &str, scope: &str| {
        let words = ["token", "--state", &state, "add", name, "--scope", scope];
        file(&folder, name, &linerate(&words).run().done().out)
    };
    let (admin, measure) = (token("ops", "measure,admin"), token("ci", "measure"));
    let server = Server::start(&["--public", "--state", &state]);
    let host = server.host();
    let mut guest = linerate(&["run", &host, "-t", "60", "-i", "0.2", "-O", "0"]).start();
    guest.wait_for("0.2–0.4");
    linerate(&["run", &host, "-t", "0.3", "--token-file", &measure])
        .run()
        .failed(1, &["in use by", "--queue", "--evict"]);
    linerate(&[
        "run",
        &host,
        "-t",
        "0.3",
        "--token-file",
        &measure,
        "--evict",
    ])
    .run()
    .failed(1, &["`ci` permits measure", "not admin"]);
    let said = linerate(&["run", &host, "-t", "0.3", "--token-file", &admin, "--evict"]).run();
    assert!(said.is_measured(), "{said:?}");
    let lost = guest.end().failed(1, &["next:"]);
    assert!(!lost.tells("why the agent stopped"), "{lost:?}");
    assert!(lost.tells("took the host back"), "{lost:?}");
    // Standard output and standard error tell it once each.
    for text in [&lost.out, &lost.err] {
        let told = on_one_line(text).matches("of the window of 1 min").count();
        assert!(told <= 1, "{lost:?}");
    }
    server.wait_busy(false);
    let log = server.stop().done().err;
    let line = |words: &[&str]| {
        let found = log
            .lines()
            .any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "{words:?} in {log}");
    };
    line(&["run from 127.0.0.1 without token", "took the host back"]);
    line(&[
        "run from 127.0.0.1 as ops",
        "1 trial",
        "ended by the client",
    ]);
}

/// Another user may not, whatever the socket's mode.
#[test]
fn other_users_are_hung_up_on() {
    if !crate::common::is_root() {
        crate::common::skip("becoming another user needs root");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("agent.sock");
    let _server = Server::start(&["--socket", &path.display().to_string()]);
    let open = |path: &std::path::Path| {
        let mode = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(path, mode).expect("it is ours");
    };
    open(folder.path());
    open(&path);
    let script = format!(
        "import os,socket\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n\
         s=socket.socket(socket.AF_UNIX); s.connect({:?})\n\
         try:\n s.send(b'GET /v1/agent HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n'); print(len(s.recv(99)))\n\
         except OSError: print(0)\n",
        path.display().to_string()
    );
    let said = crate::common::Call::of("python3")
        .words(&["-c", &script])
        .run();
    assert_eq!((said.code, said.out.trim()), (0, "0"), "{said:?}");
    let answer = ask_socket(&path, "GET /v1/agent HTTP/1.1\r\nhost: localhost\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Over loopback the kernel says whose a connection is: others have none of the rights of the agent's user.
#[test]
fn another_user_is_a_stranger_over_loopback() {
    if !crate::common::is_root() {
        crate::common::skip("becoming another user needs root");
        return;
    }
    let server = Server::start(&[]);
    let asked_by = |user: u32| {
        let script = format!(
            "import os,socket\nos.setgroups([]); os.setgid({user}); os.setuid({user})\n\
             s=socket.socket(); s.connect(('127.0.0.1', {}))\n\
             s.sendall(b'GET /v1/observation HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n')\n\
             print(s.recv(99).split()[1].decode())\n",
            server.address.port()
        );
        let said = crate::common::Call::of("python3")
            .words(&["-c", &script])
            .run();
        assert_eq!(said.code, 0, "{said:?}");
        said.out.trim().to_owned()
    };
    assert_eq!(asked_by(65_534), "401");
    assert_eq!(asked_by(0), "200");
}

/// Sends the head of a request to a Unix socket and returns the answer.
fn ask_socket(path: &std::path::Path, head: &str) -> String {
    let mut stream = std::os::unix::net::UnixStream::connect(path).expect("the agent listens");
    let request = format!("{head}connection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .expect("the agent reads");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).expect("text");
    answer
}

#[test]
fn a_busy_agent_says_by_whom_and_for_how_long() {
    let server = Server::start(&[]);
    let host = server.host();
    let mut first = linerate(&["run", &host, "-t", "20", "-b", "20M"]).start();
    first.wait_for("0.0–1.0");
    server.wait_busy(true);
    let alone = linerate(&["run", &host, "-t", "1"]).run();
    let alone = alone.failed(
        1,
        &[
            &format!("in use by \"linerate run {host}\" for about"),
            " s more",
            "--queue",
        ],
    );
    let shared = linerate(&["study", &host, "--shared", "--budget", "2m"]).run();
    let shared = shared.failed(1, &["in use by", "--queue"]);
    // The run that has it shares it with nobody.
    assert!(!alone.tells("--shared"), "{alone:?}");
    assert!(!shared.tells("--shared"), "{shared:?}");
    let mut second = linerate(&["run", &host, "-t", "0.3", "--queue"]).start();
    second.wait_for("number 1 in its queue");
    assert_eq!(server.info()["busy"]["waiting"], 1);
    let mut third = linerate(&["run", &host, "-t", "0.3", "--queue"]).start();
    third.wait_for("number 2 in its queue");
    third.signal(nix::sys::signal::Signal::SIGINT);
    third.end().failed(130, &["interrupted while waiting"]);
    first.signal(nix::sys::signal::Signal::SIGINT);
    let first = first.end();
    assert_eq!(first.code, 130, "{first:?}");
    let second = second.end();
    assert!(second.is_measured(), "{second:?}");
    assert!(second.out.contains("received"), "{second:?}");
    server.wait_busy(false);
}

#[test]
fn shared_runs_are_marked() {
    let server = Server::start(&[]);
    let host = server.host();
    let mut first = linerate(&["run", &host, "-t", "20", "-b", "20M", "--shared"]).start();
    first.wait_for("0.0–1.0");
    server.wait_busy(true);
    linerate(&["run", &host, "-t", "0.5"])
        .run()
        .failed(1, &["in use by", "--queue", "--shared"]);
    // Two at once may be too much for the machine; whatever comes of it is marked.
    let second = linerate(&["run", &host, "-t", "0.5", "--shared"]).run();
    assert!(
        second.shows("was shared with 1 other run"),
        "{}",
        second.out
    );
    first.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(first.end().code, 130);
}

#[test]
fn a_run_whose_terminal_is_gone_ends_in_order_unless_it_was_to_go_on() {
    use nix::sys::signal::Signal::SIGHUP;
    let server = Server::start(&[]);
    let host = server.host();
    let start = |program: &str, first: &[&str], time: &str| {
        let run = [PROGRAM, "run", &host, "-b", "20M", "-t", time];
        let mut going = Call::of(program).words(first).words(&run).start();
        going.wait_for("0.0–1.0");
        going.signal(SIGHUP);
        going.end()
    };
    let ended = start("env", &["--default-signal=HUP"], "20");
    assert_eq!(ended.code, 130, "{ended:?}");
    assert!(ended.out.contains("received"), "{ended:?}");
    server.wait_busy(false);
    let went_on = start("nohup", &[], "2");
    assert!(went_on.is_measured(), "{went_on:?}");
}

#[test]
fn serving_gains_no_rights_and_ends_on_request() {
    let server = Server::start(&[]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()));
    let status = status.expect("it runs");
    assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
    server.stop().done();
}

/// Root makes tokens while a confined agent runs, in a directory that others may read and that stays root's.
#[test]
fn a_confined_agent_reads_the_tokens_that_root_makes_later() {
    if !crate::common::is_root() {
        crate::common::skip("becoming another user needs root");
        return;
    }
    let _load = crate::common::loading();
    let folder = folder();
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open.clone()).expect("it is ours");
    let state = folder.path().join("state");
    std::fs::create_dir(&state).expect("a directory");
    std::fs::set_permissions(&state, open).expect("it is ours");
    let state = state.display().to_string();
    let server = Server::start(&["--state", &state, "--user", "nobody"]);
    for name in ["one", "two"] {
        let made = linerate(&["token", "--state", &state, "add", name]).run();
        let token = file(&folder, name, &made.done().out);
        let words = ["run", &server.host(), "-t", "0.2", "--token-file", &token];
        let said = linerate(&words).run();
        assert!(said.is_measured(), "{}\n{}", said.err, said.out);
    }
}

/// Captures, and everything else that an agent does over the network, go on as the user.
#[test]
fn a_confined_agent_is_another_user_and_measures_and_captures() {
    if !crate::common::is_root() {
        crate::common::skip("becoming another user needs root");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let _load = crate::common::loading();
    let folder = folder();
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path(), mode).expect("it is ours");
    };
    let state = folder.path().join("state").display().to_string();
    let token = linerate(&["token", "--state", &state, "add", "ci"]);
    let token = token.words(&["--scope", "measure,observe,capture"]);
    let token = file(&folder, "token", &token.run().done().out);
    let words = ["--state", &state, "--user", "nobody"];
    // It could not read its tokens any more.
    mode(0o700);
    linerate(&["serve", "-B", "127.0.0.1", "-p", "0"])
        .words(&words)
        .run()
        .failed(1, &["tokens", "--state"]);
    mode(0o755);
    let socket = folder.path().join("agent.sock");
    let server =
        Server::start(&[&words[..], &["--socket", &socket.display().to_string()]].concat());
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()));
    let status = status.expect("it runs");
    let line = |name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_default().trim().to_owned()
    };
    assert_eq!(line("Uid:"), ["65534"; 4].join("\t"));
    assert_eq!(
        (line("Groups:"), line("NoNewPrivs:")),
        ("65534".into(), "1".into())
    );
    assert_eq!(line("Seccomp:"), "2", "{status}");
    // CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_SYSLOG, CAP_PERFMON, CAP_BPF at the most.
    let kept = (1_u64 << 12) | (1 << 13) | (1 << 14) | (1 << 34) | (1 << 38) | (1 << 39);
    for set in ["CapPrm:", "CapEff:", "CapBnd:", "CapInh:", "CapAmb:"] {
        let held = u64::from_str_radix(&line(set), 16).expect("a number");
        assert_eq!(held & !kept, 0, "{set} {held:x}");
    }
    let out = folder.path().join("bundle").display().to_string();
    let said = linerate(&["run", &server.host(), "-t", "0.5", "--token-file", &token])
        .words(&["--capture", "--out", &out])
        .run();
    assert!(said.is_measured(), "{said:?}");
    assert!(said.err.contains("captured at server"), "{said:?}");
    // The run's hosts tell what its agent gave up, or could not.
    let run = std::fs::read_to_string(format!("{out}/run.json")).expect("a bundle");
    assert!(run.contains("user nobody, "), "{run}");
    let answer = ask_socket(
        &socket,
        "GET /v1/observation HTTP/1.1\r\nhost: localhost\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let said = server.stop().done();
    assert!(said.err.contains("confined: user nobody"), "{said:?}");
    linerate(&["serve", "-p", "0", "--user", "root"])
        .run()
        .failed(2, &["`root` is root"]);
}

#[test]
fn a_launched_agent_tells_how_it_is_reached_and_ends_with_its_launcher() {
    let home = folder();
    let mut agent = std::process::Command::new(PROGRAM)
        .args(["serve", "--launched", "--port", "0"])
        .env("XDG_STATE_HOME", home.path())
        .env("XDG_RUNTIME_DIR", home.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let token = "0123456789abcdef";
    let mut stdin = agent.stdin.take().expect("it is piped");
    writeln!(stdin, "{token}").expect("it reads its token");
    let mut line = String::new();
    let stdout = agent.stdout.take().expect("it is piped");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it announces itself");
    let told: Value = serde_json::from_str(&line).expect("a line of JSON");
    assert_eq!(told["program"], "linerate");
    let certificate = told["certificate"].as_str().expect("a fingerprint");
    assert!(certificate.starts_with("SHA256:"), "{line}");
    let port = told["port"].as_u64().expect("a port") as u16;
    let address = ([127, 0, 0, 1], port).into();
    let asked = |header: &str| ask_with(address, "GET", "/v1/agent", header, "").status;
    assert_eq!(asked(""), 401, "loopback is no proof");
    let header = format!("authorization: Bearer {token}\r\n");
    assert_eq!(asked(&header), 200);
    drop(stdin);
    assert!(agent.wait().expect("it ends").success());
    let kept = std::fs::read_dir(home.path()).expect("it is there");
    assert_eq!(kept.count(), 0, "it keeps nothing");
}
