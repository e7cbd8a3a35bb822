//! `linerate run --peer netperf`: against our own answers to netperf's clients, and against servers that do
//! something else. What netperf's own server does was tried by hand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use linerate_compat::netperf::{
    Length, MESSAGE_BYTES, Message, OmniRequest, OmniResponse, OmniResults, OmniTransport, Request,
    Way, debug_answer, refused,
};
use serde_json::Value;

use crate::common::{Call, Server, free_port, json, linerate};

fn run(host: &str, words: &[&str]) -> Call {
    linerate(&[&["run", "--peer", "netperf", host][..], words].concat())
}

/// Returns what all flows of one end sent and received.
fn counted(document: &Value, end: &str) -> (u64, u64) {
    let flows = document["trials"][0]["flows"].as_array().expect("flows");
    let of = |key: &str| -> u64 {
        let flows = flows.iter().filter(|flow| flow["end"] == end);
        flows.map(|flow| flow[key].as_u64().expect("a count")).sum()
    };
    (of("bytes_sent"), of("bytes_received"))
}

#[test]
fn each_kind_of_traffic_is_measured_and_both_ends_count_the_same() {
    let server = Server::start(&[]);
    let exact: [&[&str]; 6] = [
        &["-b", "80M"],
        &["-P", "2", "-b", "40M"],
        &["-R", "-n", "3000001"],
        &["-n", "3M", "-w", "128K", "-N", "-C", "reno"],
        &["--rr", "-r", "10,2000", "-P", "2"],
        &["--rr", "-r", "10,2000", "--in-flight", "3"],
    ];
    let lossy: [&[&str]; 3] = [
        &["-u", "-b", "2M"],
        &["-u", "--rr", "-r", "50,60"],
        // The server's clock ends it, and what the last of them did is not waited for.
        &["--crr", "-r", "10,20"],
    ];
    let rows = exact.iter().map(|row| (row, true));
    for (row, is_exact) in rows.chain(lossy.iter().map(|row| (row, false))) {
        let has_volume = row.contains(&"-n");
        let time: &[&str] = if has_volume { &[] } else { &["-t", "0.5"] };
        let words = [row, time, &["-i", "0", "-J"]].concat();
        let said = run(&server.host(), &words).run();
        assert!(said.is_measured(), "{row:?}: {said:?}");
        let document = json(&said.out);
        let (sent, received) = counted(&document, "client");
        let (answered, came) = counted(&document, "server");
        assert!(sent + received > 0, "{row:?}: {document}");
        if is_exact {
            assert_eq!((sent, received), (came, answered), "{row:?}");
        } else {
            assert!(
                came > 0 && came <= sent && received <= answered,
                "{row:?}: {document}"
            );
        }
    }
}

#[test]
fn both_ways_are_a_test_each_and_what_comes_ends_with_the_servers_clock() {
    let server = Server::start(&[]);
    let said = run(&server.host(), &["--bidir", "-t", "0.5", "-i", "0", "-J"]).run();
    assert!(said.is_measured(), "{said:?}");
    let document = json(&said.out);
    let (sent, received) = counted(&document, "client");
    assert_eq!((received, sent), counted(&document, "server"));
    assert!(sent > 0 && received > 0);
}

#[test]
fn datagrams_are_counted_by_their_receiver_and_the_host_is_as_busy_as_it_says() {
    let server = Server::start(&[]);
    let said = run(&server.host(), &["-u", "-b", "2M", "-t", "1"]).run();
    assert!(said.is_measured(), "{said:?}");
    for words in ["received", "lost ", "in use on its host", "(method S)"] {
        assert!(said.shows(words), "{words}: {}", said.out);
    }
}

#[test]
fn what_a_server_of_netperf_cannot_do_is_refused_before_it_is_asked() {
    let next = "run `linerate serve` there and leave out --peer";
    let check = |flags: &str, said: &[&str]| {
        let words: Vec<&str> = flags.split_whitespace().collect();
        run("127.0.0.1:1", &words).run().failed(2, said);
    };
    check("-u -R", &["netperf sends datagrams only in answer", next]);
    check("-R -b 1M", &["netperf keeps no rate", next]);
    check("--crr -t 0", &["by its own clock only", "with -t"]);
    check("-u -O 1", &["netperf counts all datagrams"]);
    check("--idle", &["netperf knows no connections", next]);
    check("--loaded", &["a server of netperf knows no groups"]);
    check("--evict", &["netperf's servers know nothing of it"]);
    check("--get-server-output", &["is for servers of iperf3"]);
    check("--format iperf3", &["is of servers of iperf3"]);
    check(
        "--experiment idle",
        &["nothing of the experiment idle", "--peer netperf", next],
    );
}

#[test]
fn nothing_listens() {
    let host = format!("127.0.0.1:{}", free_port());
    let said = [
        "the netperf server at",
        "refused",
        "start `netserver` there",
    ];
    run(&host, &[]).run().failed(1, &said);
}

/// Returns what is said when a message comes.
type Answer = fn() -> Vec<Message>;

/// Serves each control connection by `answers`, one for each message that comes, and then closes it.
fn scripted(answers: Vec<Answer>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    // It goes with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = answers.clone();
            std::thread::spawn(move || serve(stream, &answers));
        }
    });
    address
}

fn serve(mut stream: TcpStream, answers: &[Answer]) {
    for answer in answers {
        let mut asked = [0; MESSAGE_BYTES];
        if stream.read_exact(&mut asked).is_err() {
            return;
        }
        for message in answer() {
            let _ = stream.write_all(message.bytes());
        }
    }
}

/// Says where the payload goes: to a port at which someone listens who takes it, until the test is over.
fn set_up() -> Message {
    let payload = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let port = payload.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        let (mut stream, _) = payload.accept().expect("a client");
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    at_port(port)
}

fn at_port(port: u16) -> Message {
    let response = OmniResponse {
        port,
        ..OmniResponse::default()
    };
    response.encode()
}

#[test]
fn a_server_that_does_something_else_is_named_with_what_it_did() {
    let check = |answers: Vec<Answer>, said: &[&str]| {
        let host = scripted(answers).to_string();
        run(&host, &["-t", "2"]).run().failed(1, said);
    };
    // What is no answer at all.
    let yes: Answer = || vec![debug_answer()];
    let question: Answer = || vec![Request::calibrate()];
    check(vec![question], &["answers as no netperf server does"]);
    check(vec![yes, question], &["answers as no netperf server does"]);
    check(
        vec![yes, || vec![refused(13)]],
        &["answers with an error: Permission denied"],
    );
    check(
        vec![yes, || vec![at_port(0)]],
        &["names no port for the payload"],
    );
    // A port at which nobody listens.
    check(
        vec![yes, || vec![at_port(free_port())]],
        &["refused", "127.0.0.1:"],
    );
    // It goes as soon as the payload may come.
    check(
        vec![yes, || vec![set_up()]],
        &["closed the control connection"],
    );
    // More than there was.
    let liar: Answer = || {
        let counts = OmniResults {
            bytes_received: u64::MAX,
            receive_calls: u32::MAX,
            ..OmniResults::default()
        };
        vec![set_up(), counts.encode()]
    };
    let host = scripted(vec![yes, liar]).to_string();
    let said = run(&host, &["-t", "2"]).run();
    said.failed(3, &["18446744073709551615 bytes", "sent"]);
    let another: Answer =
        || vec![OmniRequest::of(OmniTransport::Tcp, Way::In, Length::Open).encode()];
    check(vec![another], &["answers as no netperf server does"]);
}

#[test]
fn a_server_that_dies_in_the_middle_leaves_what_was_measured_and_a_failure() {
    let mut server = Server::start(&[]);
    let mut going = run(&server.host(), &["-t", "20", "-i", "0.2"]).start();
    going.wait_for("0.2–0.4");
    server.kill();
    let said = going.end();
    said.failed(
        1,
        &["closed the control connection", "the netperf server at"],
    );
}

#[test]
fn a_server_of_netperf_is_recognised() {
    let host = scripted(vec![|| vec![debug_answer()]]).to_string();
    let said = "this looks like netperf: `linerate run HOST --peer netperf`";
    linerate(&["run", &host, "-t", "1"])
        .run()
        .failed(1, &[said]);
}
