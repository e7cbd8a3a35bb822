//! What strangers may send to the port of an agent: first bytes, datagrams, and requests of every operation of
//! the API's document while a lease is held. No answer is an error of the agent's own, none of a datagram
//! is longer than what it answers, and afterwards the agent is as it was.
//!
//! `PROPTEST_CASES` in the environment says how many cases there are; a failure prints its seed.

#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linerate_agent::api::{LimitsInfo, openapi};
use linerate_agent::serve::Server;
use linerate_agent::{AgentConfig, Core};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_pcg::Pcg64;
use serde_json::{Value, json};

/// How long an answer may take before the caller hangs up, as strangers do.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long for what is answered at once: a busy machine has its time.
const AT_ONCE: Duration = Duration::from_secs(30);
/// How deep a value of a schema goes before only what must be there is.
const DEPTH_MAX: u32 = 6;

/// Trials of a run; an agent takes four at a time.
const TRIALS: u32 = 3;

/// Returns where the agent of all these tests is.
fn agent() -> SocketAddr {
    static AGENT: OnceLock<SocketAddr> = OnceLock::new();
    *AGENT.get_or_init(|| {
        let core = Arc::new(Core::new(AgentConfig {
            host_name: "fuzz".to_owned(),
            limits: LimitsInfo::default(),
            lab: false,
        }));
        let any = "127.0.0.1:0".parse().expect("an address");
        let server = Server::bind(any, core).expect("a port");
        let address = server.address().expect("bound");
        std::thread::spawn(move || {
            let (_stop, wait) = std::sync::mpsc::channel();
            server.run(wait)
        });
        address
    })
}

/// Few cases in the test command, as many as asked for elsewhere.
fn config(few: u32) -> ProptestConfig {
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if is_asked {
            ProptestConfig::default().cases
        } else {
            few
        },
        failure_persistence: None,
        max_shrink_iters: 100,
        ..ProptestConfig::default()
    }
}

/// Sends `bytes` on a connection of its own; returns what comes back until the end or that of `patience`.
fn say(bytes: &[u8], patience: Duration) -> Vec<u8> {
    let mut stream = TcpStream::connect(agent()).expect("the agent listens");
    stream.set_read_timeout(Some(patience)).expect("a timeout");
    // The agent may have closed already.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Asks for `path`; returns status and body, if the answer came in time.
fn ask(method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    // Who does not hear that it was admitted cannot give the host back.
    let admits = method.eq_ignore_ascii_case("POST") && path == "/v1/runs";
    let patience = if admits { AT_ONCE } else { PATIENCE };
    ask_for(patience, method, path, body)
}

/// Asks for what is answered at once.
fn answer(method: &str, path: &str, body: &str) -> (u16, Value) {
    ask_for(AT_ONCE, method, path, body).expect("an answer")
}

fn ask_for(patience: Duration, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}",
        agent()
    );
    let answer = String::from_utf8_lossy(&say(request.as_bytes(), patience)).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().expect("a status");
    Some((status, serde_json::from_str(body).unwrap_or(Value::Null)))
}

/// Holds that the agent answers, and has nothing on its hands.
fn is_well() {
    let (status, info) = answer("GET", "/v1/agent", "");
    assert_eq!(status, 200);
    assert_eq!(info["program"], "linerate");
}

/// Returns an assignment as a controller would send it, whose flows never come.
fn assignment(trial: u32) -> String {
    let assignment = json!({
        "trial": trial, "end": "server", "peer": null, "bind": null, "cookie": format!("{trial:032x}"),
        "traffic": {"kind": "stream", "direction": "to-server", "message_bytes": 1024},
        "options": {}, "flows": [{"flow": 0, "part": "receiver"}], "workers_max": null,
        "cpus": [], "sample_interval": 10_000_000, "length": 100_000_000
    });
    assignment.to_string()
}

/// Sends a datagram and holds that no answer is longer.
fn tell(datagram: &[u8]) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let patience = Some(Duration::from_millis(5));
    socket.set_read_timeout(patience).expect("a timeout");
    // Loopback carries no more in one.
    let datagram = &datagram[..datagram.len().min(60_000)];
    socket.send_to(datagram, agent()).expect("loopback");
    let mut answer = [0; 2048];
    if let Ok((length, _)) = socket.recv_from(&mut answer) {
        assert!(length <= datagram.len());
    }
}

/// Admits a run and returns its lease.
fn admitted() -> String {
    let admission =
        json!({"run": "fuzz", "label": "fuzz", "admission": "shared", "expected": null});
    let (status, admitted) = answer("POST", "/v1/runs", &admission.to_string());
    assert_eq!(status, 200, "{admitted}");
    admitted["lease"].as_str().expect("a lease").to_owned()
}

/// Asks for a trial of a run of its own; returns status and body, if the answer came in time.
fn assigned(patience: Duration, body: &str) -> Option<(u16, Value)> {
    let lease = admitted();
    let asked = ask_for(patience, "POST", &format!("/v1/runs/{lease}/trials"), body);
    answer("DELETE", &format!("/v1/runs/{lease}"), "");
    asked
}

/// The same; returns whether it was prepared.
fn assign(body: &str) -> bool {
    let asked = assigned(PATIENCE, body);
    if let Some((status, answer)) = &asked {
        assert!(*status < 500, "{status} {answer}\n{body}");
    }
    asked.is_some_and(|(status, _)| status == 200)
}

/// What honest others send is taken: changes of something that is refused anyway would try nothing.
#[test]
fn the_corpus_is_taken_as_what_it_is() {
    for (own, (name, bytes)) in (0..).zip(corpus::files("assignments")) {
        let mut body: Value = serde_json::from_slice(&bytes).expect("JSON");
        // The one in the file is in use where a changed assignment of it is tried beside this.
        body["cookie"] = format!("{:032x}", u128::MAX - own).into();
        let said = assigned(AT_ONCE, &body.to_string());
        let status = said.as_ref().map(|(status, _)| *status);
        assert_eq!(status, Some(200), "{name}: {said:?}");
    }
    for (name, bytes) in corpus::files("first-bytes") {
        let said = say(&bytes, PATIENCE);
        if name.ends_with("request") {
            assert!(said.starts_with(b"HTTP/1.1 200"), "{name}");
        }
    }
    for (_, datagram) in corpus::files("datagrams") {
        tell(&datagram);
    }
    is_well();
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn first_bytes_of_any_kind_do_no_harm(all in vec(corpus::changed("first-bytes"), 1..4)) {
        for bytes in all {
            say(&bytes, PATIENCE);
        }
        is_well();
    }

    #[test]
    fn no_datagram_is_answered_at_greater_length(datagram in corpus::changed("datagrams")) {
        tell(&datagram);
        is_well();
    }

    #[test]
    fn assignments_that_were_changed_are_done_or_refused(body in corpus::changed("assignments")) {
        assign(&String::from_utf8_lossy(&body));
        is_well();
    }

    #[test]
    fn requests_of_the_document_are_done_or_refused(seed in any::<u64>()) {
        let mut maker = Maker {
            document: openapi::document(),
            random: Pcg64::seed_from_u64(seed),
        };
        let admission = json!({"run": "fuzz", "label": "fuzz", "admission": "shared", "expected": null});
        let (status, admitted) = answer("POST", "/v1/runs", &admission.to_string());
        prop_assert_eq!(status, 200, "{}", admitted);
        let lease = admitted["lease"].as_str().expect("a lease").to_owned();
        let mut leases = vec![lease.clone()];
        // Every operation once while the run holds the host and has trials, then as it comes.
        for trial in 0..TRIALS {
            let trials = format!("/v1/runs/{lease}/trials");
            let (status, prepared) = answer("POST", &trials, &assignment(trial));
            prop_assert_eq!(status, 200, "{}", prepared);
        }
        for (path, method) in maker.operations() {
            let (status, held) = answer("GET", &format!("/v1/runs/{lease}"), "");
            let holds = status == 200 && held["queue_place"].is_null();
            let ends_run = method == "delete" && !path.contains("/trials");
            prop_assert!(holds || ends_run, "before {} {}: {}", method, path, held);
            let (method, path, body) = maker.request_of(&path, &method, &lease);
            // An admission that takes the host back ends the run that is to hold it.
            let body = body.replace("\"evict\":true", "\"evict\":false");
            let Some((status, answer)) = ask(&method, &path, &body) else { continue };
            prop_assert!(status < 500, "{} {}: {} {}\n{}", method, path, status, answer, body);
            leases.extend(answer["lease"].as_str().map(str::to_owned));
        }
        // One of the runs asked for may have the host since the first was ended.
        for lease in leases.drain(..) {
            answer("DELETE", &format!("/v1/runs/{lease}"), "");
        }
        let (status, admitted) = answer("POST", "/v1/runs", &admission.to_string());
        prop_assert_eq!(status, 200, "{}", admitted);
        let lease = admitted["lease"].as_str().expect("a lease").to_owned();
        leases.push(lease.clone());
        for _ in 0..12 {
            let (method, path, body) = maker.request(&lease);
            let Some((status, answer)) = ask(&method, &path, &body) else { continue };
            prop_assert!(status < 500, "{} {}: {} {}\n{}", method, path, status, answer, body);
            leases.extend(answer["lease"].as_str().map(str::to_owned));
            if status >= 400 && status != 405 {
                prop_assert!(answer["error"].is_string(), "{} {}: {}", method, path, answer);
            }
        }
        for lease in leases {
            answer("DELETE", &format!("/v1/runs/{lease}"), "");
        }
        is_well();
    }
}

/// Makes requests from the document of the API.
struct Maker {
    document: Value,
    random: Pcg64,
}

impl Maker {
    /// Returns method, path and body of some operation, of the run with `lease` where it is of one.
    fn request(&mut self, lease: &str) -> (String, String, String) {
        let paths = self.document["paths"].as_object().expect("paths").clone();
        // Assignments have most to say.
        let path = match self.random.random_range(0..3) {
            0 => "/v1/runs/{lease}/trials".to_owned(),
            _ => self.one(&paths.keys().cloned().collect::<Vec<_>>()),
        };
        let methods = paths[&path].as_object().expect("methods").clone();
        let method = self.one(&methods.keys().cloned().collect::<Vec<_>>());
        self.request_of(&path, &method, lease)
    }

    /// Returns path and method of every operation, in any order but that ends come last: of trials, then of runs.
    fn operations(&mut self) -> Vec<(String, String)> {
        let paths = self.document["paths"].as_object().expect("paths");
        let of = |(path, methods): (&String, &Value)| {
            let methods = methods.as_object().expect("methods").clone();
            let path = path.clone();
            methods
                .into_iter()
                .map(move |(method, _)| (path.clone(), method))
        };
        let mut operations: Vec<(String, String)> = paths.iter().flat_map(of).collect();
        let is_end = |method: &str| method == "delete";
        operations.sort_by_cached_key(|(path, method)| {
            if is_end(method) {
                (1, u32::from(!path.contains("/trials")), 0)
            } else {
                (0, 0, self.random.next_u32())
            }
        });
        operations
    }

    /// Returns method, path and body of an operation of the run with `lease`.
    fn request_of(&mut self, path: &str, method: &str, lease: &str) -> (String, String, String) {
        let operation = self.document["paths"][path][method].clone();
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let body = match schema {
            Value::Null => String::new(),
            schema => {
                let mut body = self.value("", schema, 0);
                self.tie(path, &mut body);
                body.to_string()
            }
        };
        let trial = self.random.random_range(0..TRIALS).to_string();
        let mut url = path.replace("{lease}", lease).replace("{trial}", &trial);
        let parameters = operation["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let query = parameters.iter().filter(|one| one["in"] == "query");
        for (at, parameter) in query.enumerate() {
            let name = parameter["name"].as_str().unwrap_or_default();
            let value = self.value(name, &parameter["schema"], 0);
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let plain = text.chars().filter(char::is_ascii_alphanumeric);
            let mark = if at == 0 { '?' } else { '&' };
            url.push_str(&format!("{mark}{name}={}", plain.collect::<String>()));
        }
        (method.to_uppercase(), url, body)
    }

    /// Makes some requests such as a controller would: only these get far.
    fn tie(&mut self, path: &str, body: &mut Value) {
        if !body.is_object() || self.random.random_bool(0.3) {
            return;
        }
        if path.ends_with("/trials") {
            body["trial"] = self.random.random_range(0..TRIALS).into();
            body["cookie"] = format!("{:032x}", u128::from(self.random.next_u64())).into();
            body["length"] = json!(100_000_000);
            body["sample_interval"] = json!(10_000_000);
        }
        if path.ends_with("/start") {
            let (_, clock) = ask("GET", "/v1/clock", "").unwrap_or_default();
            let now_ns = clock["sent_ns"].as_u64().unwrap_or(0);
            for (name, after_ms) in [
                ("start_ns", 1),
                ("measure_begin_ns", 2),
                ("measure_end_ns", 22),
                ("stop_ns", 22),
            ] {
                body[name] = (now_ns + after_ms * 1_000_000).into();
            }
        }
    }

    /// Returns a value that `schema` allows, nearly always; traffic goes to this host alone.
    fn value(&mut self, name: &str, schema: &Value, depth: u32) -> Value {
        if self.random.random_bool(0.01) {
            return self.odd();
        }
        let own = match name {
            "peer" => vec![
                agent().to_string(),
                "127.0.0.1:1".into(),
                "unix:@nosuch".into(),
                "x".into(),
            ],
            "bind" | "address" => vec!["127.0.0.1".into(), "::1".into(), "nonsense:".into()],
            "device" => vec!["lo".into(), "nosuch0".into(), "../../lo".into()],
            _ => Vec::new(),
        };
        if !own.is_empty() {
            return self.one(&own).into();
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.trim_start_matches('#');
            let schema = self.document.pointer(pointer).cloned().unwrap_or_default();
            return self.value(name, &schema, depth + 1);
        }
        for kind in ["oneOf", "anyOf"] {
            if let Some(several) = schema[kind].as_array() {
                let which = if depth > DEPTH_MAX {
                    several.len() - 1
                } else {
                    self.random.random_range(0..several.len())
                };
                return self.value(name, &several[which], depth + 1);
            }
        }
        if !schema["const"].is_null() {
            return schema["const"].clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return self.one(values);
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.clone(),
            kind => vec![kind.clone()],
        };
        let kind = self.one(&kinds);
        match kind.as_str().unwrap_or_default() {
            "object" => self.object(schema, depth),
            "array" => {
                let most = if depth > DEPTH_MAX { 0 } else { 3 };
                let count = self.random.random_range(0..=most);
                (0..count)
                    .map(|_| self.value("", &schema["items"], depth + 1))
                    .collect()
            }
            "integer" => self.integer(schema),
            "number" => self.random.random_range(0.0..1e9).into(),
            "boolean" => self.random.random_bool(0.5).into(),
            "string" => self
                .one(&["", "a", "cubic", "0", "\u{1b}[2J", "ä"].map(String::from))
                .into(),
            _ => Value::Null,
        }
    }

    fn object(&mut self, schema: &Value, depth: u32) -> Value {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let share = if depth > DEPTH_MAX { 0.0 } else { 0.3 };
        let mut object = serde_json::Map::new();
        for (name, schema) in &properties {
            let is_required = required.iter().any(|one| one == name);
            if is_required || self.random.random_bool(share) {
                object.insert(name.clone(), self.value(name, schema, depth + 1));
            }
        }
        object.into()
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let least = schema["minimum"].as_f64().unwrap_or(0.0).max(0.0) as u64;
        let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
        let small = least
            .saturating_add(self.random.random_range(0..20))
            .min(most);
        let bits = self.random.random_range(0..63);
        let any = (self.random.next_u64() >> bits).clamp(least, most);
        self.one(&[small, small, small, any, least, most]).into()
    }

    fn odd(&mut self) -> Value {
        let deep = (0..200).fold(Value::Null, |inner, _| vec![inner].into());
        self.one(&[
            Value::Null,
            json!(-1),
            json!(1e300),
            json!("x".repeat(5000)),
            json!({}),
            deep,
        ])
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())].clone()
    }
}
