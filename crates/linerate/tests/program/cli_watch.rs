//! `linerate watch` as its users meet it: once, as a stream, of another host, on a terminal, and
//! scraped by Prometheus.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::http::{ask, ask_with};
use crate::common::{Call, NamedLab, Server, file, folder, free_port, json, linerate, skip};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Longest that Prometheus may take to have scraped twice.
const SCRAPED: Duration = Duration::from_secs(60);

#[test]
fn every_page_is_printed_once() {
    let said = linerate(&["watch", "--once", "-i", "100ms"]).run();
    assert_eq!(said.code, 0, "{said:?}");
    let pages = [
        "Host ",
        "Overview",
        "CPU time by mode",
        "softirq",
        "Links",
        "lo ",
    ];
    for words in pages {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
    let one = linerate(&["watch", "--once", "--page", "links", "-i", "100ms"]).run();
    assert!(
        one.out.contains("lo ") && !one.out.contains("Overview"),
        "{one:?}"
    );
    let widest = said.out.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "a pipe has 80 columns: {said:?}");
}

#[test]
fn a_stream_gives_counters_and_their_rates() {
    let server = Server::start(&[]);
    let host = server.host();
    let said = linerate(&["watch", &host, "--json-stream", "-c", "2", "-i", "200ms"]).run();
    assert_eq!(said.code, 0, "{said:?}");
    let lines: Vec<Value> = said.out.lines().map(json).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str()).collect();
    let expected = ["start", "interval", "interval", "end"].map(Some);
    assert_eq!(events, expected);
    let schema = json(&linerate(&["schema", "watch"]).run().done().out);
    let kinds = schema["oneOf"].as_array().expect("a kind each");
    for line in &lines {
        let mut kinds = kinds.iter();
        let own = kinds.find(|kind| kind["properties"]["event"]["const"] == line["event"]);
        let own = own.expect("it is in the schema");
        let data = &own["properties"]["data"];
        let data = match data["$ref"].as_str() {
            Some(at) => schema
                .pointer(at.trim_start_matches('#'))
                .expect("it is there"),
            None => data,
        };
        let known = data["properties"].as_object().expect("keys");
        let told = line["data"].as_object().expect("keys");
        assert!(known.keys().eq(told.keys()), "{known:?} {told:?}");
    }
    let last = &lines[2]["data"];
    let metrics = last["metrics"].as_array().expect("metrics");
    let segments = metrics
        .iter()
        .find(|line| line["metric"] == "snmp_tcp_in_segs");
    let segments = segments.expect("the host has TCP");
    // The watcher's own questions are segments: at least two of them each way.
    assert!(segments["per_second"].as_f64() > Some(0.0), "{segments}");
    assert!(segments["since_start"].as_i64() >= Some(2), "{segments}");
    let cpus = last["cpus"].as_array().expect("cpus");
    assert!(!cpus.is_empty(), "{last}");
    for cpu in cpus {
        let modes = cpu["modes"].as_object().expect("modes");
        let sum: f64 = modes.values().filter_map(Value::as_f64).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{cpu}");
    }
}

#[test]
fn being_told_to_end_is_no_failure() {
    let mut going = linerate(&["watch", "--json-stream", "-i", "50ms"]).start();
    going.wait_for("\"interval\"");
    going.signal(Signal::SIGINT);
    let said = going.end();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.trim_end().ends_with('}'), "{said:?}");
}

#[test]
fn what_cannot_be_is_said() {
    linerate(&["watch"])
        .run()
        .failed(2, &["needs a terminal", "--once"]);
    linerate(&["watch", "--once", "-i", "1ms"])
        .run()
        .failed(2, &["20 ms", "interval"]);
    let nobody = format!("127.0.0.1:{}", free_port());
    linerate(&["watch", &nobody, "--once"])
        .run()
        .failed(1, &["no agent answers", "linerate serve"]);
    let server = Server::start(&[]);
    linerate(&["watch", "--prometheus", &server.host()])
        .run()
        .failed(1, &["cannot listen", "--prometheus"]);
}

#[test]
fn strangers_do_not_watch_and_the_token_lets_them() {
    let Some(lab) = NamedLab::up(&[]) else {
        return;
    };
    let folder = folder();
    let token = file(&folder, "token", "0123456789abcdef");
    let mut agent = lab
        .exec("server", &["serve", "--token-file", &token])
        .start();
    agent.wait_for("serving on");
    let server = lab.address("server");
    let watch = |words: &[&str]| {
        let all = [&["watch", &server, "--once", "-i", "50ms"], words].concat();
        lab.exec("client1", &all).run()
    };
    watch(&[]).failed(1, &["needs the agent's token", "--token-file"]);
    let said = watch(&["--token-file", &token]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("CPU time by mode"), "{said:?}");
    agent.signal(Signal::SIGTERM);
    agent.end();
}

/// Returns the value of an instant query, once there is one.
fn query(prometheus: u16, expression: &str) -> f64 {
    let address = format!("127.0.0.1:{prometheus}")
        .parse()
        .expect("an address");
    let path = format!("/api/v1/query?query={expression}");
    let deadline = Instant::now() + SCRAPED;
    loop {
        if std::net::TcpStream::connect(address).is_ok() {
            let answer = ask(address, "GET", &path, "");
            let value = serde_json::from_str::<Value>(&answer.body).unwrap_or_default();
            let value = &value["data"]["result"][0]["value"][1];
            if let Some(value) = value.as_str().and_then(|text| text.parse().ok()) {
                return value;
            }
        }
        assert!(Instant::now() < deadline, "no answer to {expression}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn prometheus_scrapes_what_is_watched() {
    if !Path::new("/usr/bin/prometheus").exists() {
        return skip("prometheus is not installed");
    }
    let (exporter, port) = (free_port(), free_port());
    let address = format!("127.0.0.1:{exporter}");
    let mut watch = linerate(&["watch", "--prometheus", &address]).start();
    watch.wait_for("/metrics");
    let folder = folder();
    let config = format!(
        "scrape_configs:\n- job_name: linerate\n  scrape_interval: 500ms\n  \
         scrape_timeout: 500ms\n  static_configs:\n  - targets: ['{address}']\n"
    );
    let config = file(&folder, "prometheus.yml", &config);
    let data = folder.path().join("data");
    let flags = [
        format!("--config.file={config}"),
        format!("--storage.tsdb.path={}", data.display()),
        format!("--web.listen-address=127.0.0.1:{port}"),
    ];
    let prometheus = Call::of("/usr/bin/prometheus").words(&flags).start();
    assert_eq!(query(port, "max_over_time(up[1m])"), 1.0);
    let idle = query(port, "linerate_cpu_idle_seconds_total%7Bcpu=%220%22%7D");
    assert!(idle > 0.0, "{idle}");
    assert!(query(port, "linerate_link_rx_bytes_total%7Blink=%22lo%22%7D") > 0.0);
    // It knows the unit and type, so the text was OpenMetrics to it and not only numbers.
    let target = format!("127.0.0.1:{port}").parse().expect("an address");
    let meta = ask(
        target,
        "GET",
        "/api/v1/metadata?metric=linerate_cpu_idle_seconds",
        "",
    )
    .json();
    let meta = &meta["data"]["linerate_cpu_idle_seconds"][0];
    assert_eq!(
        (&meta["type"], &meta["unit"]),
        (&"counter".into(), &"seconds".into())
    );
    prometheus.signal(Signal::SIGTERM);
    prometheus.end();
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.end().code, 0);
}

/// As at an agent's port: a page reads what its own name leads to.
#[test]
fn a_page_in_a_browser_reads_no_metrics() {
    let exporter = format!("127.0.0.1:{}", free_port());
    let address = exporter.parse().expect("an address");
    let words = [
        "watch",
        "--prometheus",
        &exporter,
        "--name",
        "db1.example.org",
    ];
    let mut watch = linerate(&words).start();
    watch.wait_for("/metrics");
    let status = |path: &str, headers: &str| {
        let request = format!("GET {path} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
        crate::common::http::say(address, request.as_bytes()).status
    };
    for path in ["/", "/metrics", "/nosuch"] {
        assert_eq!(status(path, "host: evil.example:9100\r\n"), 421, "{path}");
        assert_eq!(status(path, ""), 421, "{path}");
        let other = format!("host: {exporter}\r\norigin: http://evil.example\r\n");
        assert_eq!(status(path, &other), 403, "{path}");
    }
    for own in [&exporter, "localhost:9100", "DB1.example.org:9100"] {
        assert_eq!(
            status("/metrics", &format!("host: {own}\r\n")),
            200,
            "{own}"
        );
    }
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.end().code, 0);
}

#[test]
fn metrics_have_no_fault_and_people_find_them() {
    let exporter = format!("127.0.0.1:{}", free_port());
    let address = exporter.parse().expect("an address");
    let mut watch = linerate(&["watch", "--prometheus", &exporter]).start();
    watch.wait_for("/metrics");
    let landing = ask(address, "GET", "/", "");
    assert_eq!(landing.status, 200, "{landing:?}");
    assert!(landing.body.contains("href=\"/metrics\""), "{landing:?}");
    assert_eq!(ask(address, "GET", "/nosuch", "").status, 404);
    let plain = ask(address, "GET", "/metrics", "");
    let version = env!("CARGO_PKG_VERSION");
    let build = format!("linerate_build_info{{version=\"{version}\"}} 1");
    assert!(plain.body.lines().any(|line| line == build), "{plain:?}");
    assert!(!plain.body.contains("# EOF"), "{plain:?}");
    let open = "accept: application/openmetrics-text;version=1.0.0\r\n";
    let open = ask_with(address, "GET", "/metrics", open, "");
    assert!(open.body.ends_with("# EOF\n"), "{open:?}");
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.end().code, 0);
    if !Path::new("/usr/bin/promtool").exists() {
        return skip("promtool is not installed");
    }
    let folder = folder();
    let page = file(&folder, "metrics", &plain.body);
    let check = "exec /usr/bin/promtool check metrics < \"$0\"";
    let said = Call::of("sh").words(&["-c", check, &page]).run();
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
}
