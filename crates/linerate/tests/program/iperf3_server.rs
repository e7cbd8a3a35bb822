//! The iperf3 of the distribution against `linerate serve`: every option that its clients have, as
//! they are installed on the hosts that people measure with.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::call::Call;
use crate::common::iperf3::{
    ESTABLISHED, begun_in_time, came_back, is_refused_late, number, timers,
};
use crate::common::{Said, Server, file, folder, json, linerate, loading, skip, wait_for_workers};
use linerate_compat::iperf3::frame::encode;
use nix::sys::signal::Signal;
use serde_json::Value;

/// Returns whether there is an iperf3; says so where there is none.
fn there_is_iperf3() -> bool {
    let there = std::process::Command::new("iperf3")
        .arg("--version")
        .output()
        .is_ok();
    if !there {
        skip("there is no iperf3");
    }
    there
}

fn call(server: &Server, words: &[&str]) -> Call {
    let port = server.address.port().to_string();
    Call::of("iperf3")
        .words(&["-c", "127.0.0.1", "-p", &port])
        .words(words)
}

/// Runs a client that prints JSON and must succeed.
#[track_caller]
fn document(server: &Server, words: &[&str]) -> Value {
    let call = || call(server, words).words(&["-J"]);
    succeeded(&begun_in_time(call().start(), call), words)
}

/// Returns the document of a client that must have succeeded.
#[track_caller]
fn succeeded(said: &Said, words: &[&str]) -> Value {
    let document = json(&said.out);
    assert!(document["error"].is_null(), "{words:?}: {}", said.out);
    assert_eq!(said.code, 0, "{words:?}: {}", said.out);
    document
}

/// Runs a client for each row at once, with `common` words before its own, and `checks` what each says.
#[track_caller]
fn check_all(server: &Server, rows: &[&[&str]], common: &[&str], check: impl Fn(&[&str], &Value)) {
    let call = |row: &[&str]| call(server, &[common, row].concat()).words(&["-J"]);
    let goings: Vec<_> = rows.iter().map(|row| call(row).start()).collect();
    for (row, going) in rows.iter().zip(goings) {
        check(row, &succeeded(&begun_in_time(going, || call(row)), row));
    }
}

/// A rate at which a table of tests has room on two CPUs.
const RATE: [&str; 4] = ["-t", "1", "-b", "20M"];

/// Asserts that what the client sent is what we received, to the byte, and that it is something.
#[track_caller]
fn all_arrived(document: &Value, what: &[&str]) -> f64 {
    let sent = number(document, "/end/sum_sent/bytes");
    let received = number(document, "/end/sum_received/bytes");
    assert_eq!(sent, received, "{what:?}");
    assert!(received > 0.0, "{what:?}: nothing was sent");
    received
}

#[test]
fn tcp_to_the_server_with_every_option() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[]);
    // As fast as it goes, where that is more than one call or copy at a time.
    let fast: [&[&str]; 3] = [&[], &["-P", "4"], &["-Z"]];
    let paced: [&[&str]; 12] = [
        &["-w", "64K"],
        &["-M", "1000"],
        &["-l", "1000"],
        &["-l", "1M"],
        &["-N"],
        &["-S", "32"],
        &["-b", "50M"],
        &["-b", "50M/4", "-P", "2"],
        &["--fq-rate", "400M"],
        &["-A", "0,0"],
        &["--repeating-payload"],
        &["-T", "a title", "--extra-data", "x"],
    ];
    let check = |words: &[&str], document: &Value| {
        all_arrived(document, words);
        let streams = document["end"]["streams"].as_array().map_or(0, Vec::len);
        let asked = number(document, "/start/test_start/num_streams");
        assert_eq!(streams as f64, asked, "{words:?}");
        for stream in document["end"]["streams"].as_array().into_iter().flatten() {
            assert_eq!(
                stream["sender"]["bytes"], stream["receiver"]["bytes"],
                "{words:?}: streams are matched by their numbers"
            );
        }
    };
    for row in fast {
        check(row, &document(&server, &[row, &["-t", "1"]].concat()));
    }
    check_all(&server, &paced, &RATE, check);
}

#[test]
fn bytes_and_blocks_instead_of_time() {
    if !there_is_iperf3() {
        return;
    }
    let server = Server::start(&[]);
    let check = |words: &[&str], expected: f64| {
        let document = document(&server, words);
        assert_eq!(all_arrived(&document, words), expected, "{words:?}");
    };
    check(&["-n", "10M"], 10_485_760.0);
    check(&["-k", "10"], 1_310_720.0);
    check(&["-n", "4M", "-P", "4", "-l", "16K"], 4_194_304.0);
    let words = ["-n", "10M", "-R"];
    let (_, came) = came_back(&document(&server, &words), "", &words);
    assert!(came >= 10_485_760.0, "{came}");
}

#[test]
fn tcp_from_the_server_with_every_option() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[]);
    let fast: [&[&str]; 3] = [&[], &["-P", "4"], &["-Z"]];
    let paced: [&[&str]; 6] = [
        &["-w", "64K"],
        &["-M", "1000"],
        &["-l", "1000"],
        &["-N"],
        &["-S", "32"],
        &["-A", "0,0"],
    ];
    let check = |words: &[&str], document: &Value| {
        came_back(document, "", words);
        // The sender knows its retransmissions and tells them.
        number(document, "/end/sum_sent/retransmits");
    };
    for row in fast {
        check(row, &document(&server, &[row, &["-t", "1", "-R"]].concat()));
    }
    check_all(&server, &paced, &[&RATE[..], &["-R"]].concat(), check);
}

#[test]
fn a_rate_that_the_server_is_asked_for_is_kept() {
    if !there_is_iperf3() {
        return;
    }
    let server = Server::start(&[]);
    let options: [&[&str]; 2] = [&["-b", "40M"], &["--fq-rate", "40M"]];
    check_all(&server, &options, &["-t", "2", "-R"], |words, document| {
        let rate = number(document, "/end/sum_received/bits_per_second");
        // What a sender emits before pacing takes hold is some 100 KiB.
        assert!((10e6..50e6).contains(&rate), "{words:?}: {rate}");
    });
}

#[test]
fn both_directions_at_once() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[]);
    for words in [
        &["--bidir", "-t", "1"][..],
        &["--bidir", "-t", "1", "-P", "2"],
    ] {
        let document = document(&server, words);
        all_arrived(&document, words);
        came_back(&document, "_bidir_reverse", words);
    }
}

/// A rate of datagrams at which a socket's usual buffer holds more than half a second (166 of them,
/// each with the kernel's own data beside it), so that a busy machine loses none.
const GENTLE: [&str; 7] = ["-u", "-b", "1M", "-l", "500", "-t", "1"];

/// Asserts that no datagram was lost and that both ends counted the same.
#[track_caller]
fn every_datagram_arrived(document: &Value, what: &[&str]) {
    all_arrived(document, what);
    assert_eq!(number(document, "/end/sum/lost_packets"), 0.0, "{what:?}");
    let (packets, bytes) = ("/end/sum/packets", "/end/sum/bytes");
    let payload = number(document, "/start/test_start/blksize");
    let of_packets = number(document, packets) * payload;
    assert_eq!(number(document, bytes), of_packets, "{what:?}");
}

#[test]
fn udp_to_the_server_with_every_option() {
    if !there_is_iperf3() {
        return;
    }
    let server = Server::start(&[]);
    let options: [&[&str]; 8] = [
        &[],
        &["-P", "3"],
        &["-w", "256K"],
        // Small ones come as often, not as fast.
        &["-l", "16", "-b", "20K"],
        &["-S", "32"],
        &["-Z"],
        &["--udp-counters-64bit"],
        &["--repeating-payload"],
    ];
    let check = |words: &[&str], document: &Value| every_datagram_arrived(document, words);
    check_all(&server, &options, &GENTLE, check);
    let volumes: [&[&str]; 2] = [&["-n", "50K"], &["-k", "100"]];
    check_all(&server, &volumes, &GENTLE[..5], check);
}

#[test]
fn udp_from_the_server_and_both_ways() {
    if !there_is_iperf3() {
        return;
    }
    let server = Server::start(&[]);
    let check = |words: &[&str], document: &Value| {
        came_back(document, "", words);
        assert_eq!(number(document, "/end/sum/lost_packets"), 0.0, "{words:?}");
    };
    let options: [&[&str]; 3] = [&["-R"], &["-R", "-P", "3"], &["-R", "--udp-counters-64bit"]];
    check_all(&server, &options, &GENTLE, check);
    check_all(&server, &[&["-R", "-n", "50K"]], &GENTLE[..5], check);
    let words = [&GENTLE[..], &["--bidir", "-P", "2"]].concat();
    let document = document(&server, &words);
    all_arrived(&document, &words);
    came_back(&document, "_bidir_reverse", &words);
    let lost = number(&document, "/end/sum_bidir_reverse/lost_packets");
    assert_eq!(lost, 0.0);
}

#[test]
fn datagrams_omitted_and_told_by_the_server() {
    if !there_is_iperf3() {
        return;
    }
    let server = Server::start(&[]);
    let common = [&GENTLE[..], &["-O", "1", "--get-server-output"]].concat();
    check_all(&server, &[&[], &["-R"]], &common, |words, document| {
        // 250 datagrams a second: two seconds would be 500.
        let packets = number(document, "/end/sum/packets");
        assert!((125.0..375.0).contains(&packets), "{words:?}: {packets}");
        let text = document["server_output_text"].as_str().unwrap_or_default();
        assert!(text.contains("(omitted)"), "{text}");
        assert!(text.contains("Lost/Total Datagrams\n"), "{text}");
    });
}

#[test]
fn datagrams_of_two_clients_at_one_address_are_told_apart() {
    if !there_is_iperf3() {
        return;
    }
    let server = Server::start(&[]);
    let others = ["-u", "-b", "500K", "-l", "250", "-t", "1", "-P", "4"];
    let other = || call(&server, &others).words(&["-J"]);
    let goings: Vec<_> = (0..3).map(|_| other().start()).collect();
    let words = [&GENTLE[..], &["-P", "3"]].concat();
    every_datagram_arrived(&document(&server, &words), &words);
    for going in goings {
        let said = begun_in_time(going, other);
        every_datagram_arrived(&succeeded(&said, &others), &others);
    }
}

#[test]
fn a_greeting_that_nobody_waits_for_is_not_answered() {
    let server = Server::start(&[]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    socket.connect(server.address).expect("an address");
    let wait = Some(Duration::from_millis(300));
    socket.set_read_timeout(wait).expect("a timeout can be set");
    for greeting in [&b"9876"[..], b"", b"6789", &[0; 1400]] {
        socket.send(greeting).expect("loopback takes datagrams");
    }
    let answer = socket.recv(&mut [0; 64]);
    assert!(answer.is_err(), "{answer:?}");
    assert!(server.info()["busy"].is_null());
}

#[test]
fn what_is_omitted_is_not_counted() {
    if !there_is_iperf3() {
        return;
    }
    let server = Server::start(&[]);
    let common = ["-O", "1", "-t", "1", "-b", "80M"];
    check_all(&server, &[&[], &["-R"]], &common, |words, document| {
        let sent = number(document, "/end/sum_sent/bytes");
        let received = number(document, "/end/sum_received/bytes");
        // Ten million bytes a second: two seconds would be twenty.
        for bytes in [sent, received] {
            assert!((5e6..15e6).contains(&bytes), "{words:?}: {bytes}");
        }
        assert_eq!(
            document["intervals"][0]["sum"]["omitted"],
            Value::Bool(true)
        );
    });
}

#[test]
fn congestion_control_is_chosen_at_both_ends() {
    if !there_is_iperf3() {
        return;
    }
    let path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let allowed = std::fs::read_to_string(path).unwrap_or_default();
    let server = Server::start(&[]);
    for algorithm in allowed.split_whitespace() {
        let words = ["-C", algorithm, "-t", "1", "-b", "10M"];
        let document = document(&server, &words);
        let used = &document["end"]["receiver_tcp_congestion"];
        assert_eq!(used, &Value::from(algorithm));
    }
}

#[test]
fn the_servers_own_output_is_the_text_of_iperf3() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[]);
    let check = |words: &[&str], expected: &[&str]| {
        let document = document(
            &server,
            &[words, &["--get-server-output", "-t", "1"]].concat(),
        );
        let text = document["server_output_text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{words:?}: no text in {document}"));
        for words in expected {
            assert!(text.contains(words), "no `{words}` in:\n{text}");
        }
    };
    check(
        &["-b", "10M"],
        &[
            "Accepted connection from 127.0.0.1, port ",
            "[  5] local 127.0.0.1 port ",
            "[ ID] Interval           Transfer     Bitrate\n",
            "[  5]   0.00-",
            "receiver\n",
        ],
    );
    check(&["-R"], &["Retr  Cwnd\n", "sender\n"]);
    check(
        &["--bidir", "-P", "2"],
        &[
            "[ ID][Role] ",
            "[SUM][RX-S]",
            "[SUM][TX-S]",
            "receiver\n",
            "sender\n",
        ],
    );
}

#[test]
fn clients_do_not_wait_for_each_other() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[]);
    let long = call(&server, &["-t", "4", "-b", "100M", "-J"]).start();
    wait_for_workers(&server);
    let words = ["-t", "1", "-P", "2"];
    all_arrived(&document(&server, &words), &words);
    came_back(&document(&server, &["-t", "1", "-R"]), "", &["-R"]);
    let long = json(&long.end().out);
    assert!(long["error"].is_null(), "{long}");
    all_arrived(&long, &["the long one"]);
}

#[test]
fn a_run_that_has_the_host_for_itself_keeps_iperf3_out_and_the_other_way_round() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[]);
    let host = server.host();
    let native = linerate(&["run", &host, "-t", "2", "-O", "0.1", "-b", "100M"]).start();
    wait_for_workers(&server);
    let refused = call(&server, &["-t", "1"]).run();
    assert_eq!(refused.code, 1);
    let said = refused.out + &refused.err;
    assert!(said.contains("the server is busy"), "{said}");
    // A busy machine may make its result one that is not to be trusted, which is another matter.
    let native = native.end();
    assert!(!native.err.contains("in use by"), "{}", native.err);

    let foreign = call(&server, &["-t", "3", "-b", "100M", "-J"]).start();
    wait_for_workers(&server);
    let why = ["in use by", "iperf3 client at 127.0.0.1", "--shared"];
    linerate(&["run", &host, "-t", "0.5"]).run().failed(1, &why);
    let shared = linerate(&["run", &host, "-t", "0.5", "--shared"]).run();
    // On a busy machine its numbers may be worth nothing, which has exit codes of its own; but it is
    // let in, and what is measured says that it was shared.
    assert!(!shared.err.contains("in use by"), "{}", shared.err);
    let told = shared.shows("was shared with 1 other run");
    assert!(told || shared.code == 1, "{}", shared.out);
    let document = json(&foreign.end().out);
    assert!(document["error"].is_null(), "{document}");
    all_arrived(&document, &["beside a native run"]);
}

#[test]
fn limits_hold_for_clients_of_iperf3() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[
        "--limit-flows",
        "2",
        "--limit-time",
        "2s",
        "--limit-rate",
        "100M",
    ]);
    let refused = |words: &[&str]| {
        let said = call(&server, words).run();
        assert_eq!(said.code, 1, "{words:?}: {}", said.out);
        let said = said.out + &said.err;
        assert!(said.contains("iperf3: error"), "{words:?}: {said}");
    };
    refused(&["-P", "3", "-t", "1"]);
    refused(&["-t", "3"]);
    refused(&["-t", "1", "-b", "101M"]);
    // It did not say for how long, and is ended after two seconds.
    refused(&["-n", "1T", "-b", "50M"]);
    let words = ["-t", "1", "-b", "40M", "-P", "2"];
    all_arrived(&document(&server, &words), &words);
    let sent = document(&server, &["-t", "1", "-R"]);
    let rate = number(&sent, "/end/sum_received/bits_per_second");
    assert!(
        rate < 130e6,
        "a server that sends keeps to the limit: {rate}"
    );
    // It did not say how fast, and is read at the limit's pace.
    let taken = document(&server, &["-t", "2"]);
    let rate = number(&taken, "/end/sum_received/bits_per_second");
    assert!(rate < 200e6, "a sender that is not asked to pace: {rate}");
    server.wait_busy(false);
}

#[test]
fn passwords_are_asked_for() {
    if !there_is_iperf3() {
        return;
    }
    let keys = crate::common::repository().join("crates/linerate-compat/tests/keys");
    let key = |name: &str| keys.join(name).display().to_string();
    let folder = folder();
    // SHA-256 of {mario}rossi.
    let users = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";
    let users = file(&folder, "users.csv", users);
    let private = key("only-for-tests-private.pem");
    let mut words = vec![
        "--rsa-private-key-path",
        &private,
        "--authorized-users-path",
        &users,
    ];
    // The client decides the padding; releases up to 3.16 know only this one.
    if old_padding() {
        words.push("--use-pkcs1-padding");
    }
    let server = Server::start(&words);
    let public = key("only-for-tests-public.pem");
    let enter = |password: &str| {
        let words = ["-t", "1", "-b", "10M", "-J", "--username", "mario"];
        let call = || {
            call(&server, &words)
                .words(&["--rsa-public-key-path", &public])
                .with("IPERF3_PASSWORD", password)
        };
        begun_in_time(call().start(), call)
    };
    let refused = |said: Said| {
        let document = json(&said.out);
        let error = document["error"].as_str().unwrap_or_default();
        assert!(error.contains("authorization failed"), "{document}");
    };
    let said = enter("rossi");
    all_arrived(&json(&said.out), &["mario"]);
    refused(enter("verdi"));
    refused(call(&server, &["-t", "1", "-J"]).run());
}

/// Returns whether the installed iperf3 is older than 3.17.
fn old_padding() -> bool {
    let said = Call::of("iperf3").words(&["--version"]).run().out;
    let minor = said.split_whitespace().nth(1).and_then(|version| {
        let mut parts = version.trim_end_matches('+').split('.');
        parts.nth(1)?.parse::<u32>().ok()
    });
    minor.unwrap_or_else(|| panic!("no version in: {said}")) < 17
}

#[test]
fn keys_and_users_that_are_none_are_named() {
    let folder = folder();
    let nothing = file(&folder, "nothing", "nothing\n");
    let words = [
        "serve",
        "-B",
        "127.0.0.1",
        "-p",
        "0",
        "--rsa-private-key-path",
        &nothing,
    ];
    linerate(&words)
        .run()
        .failed(2, &["--authorized-users-path"]);
    linerate(&words)
        .words(&["--authorized-users-path", &nothing])
        .run()
        .failed(1, &[&nothing, "no RSA private key in PEM"]);
}

#[test]
fn whoever_goes_away_leaves_the_server_free() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[]);
    for (words, signal) in [
        (&["-t", "20"][..], Signal::SIGINT),
        (&["-t", "20", "-R"], Signal::SIGINT),
        (&["-t", "20", "-P", "4"], Signal::SIGKILL),
        (&["-t", "20", "--bidir"], Signal::SIGKILL),
    ] {
        let going = call(&server, words).start();
        wait_for_workers(&server);
        going.signal(signal);
        going.end();
        server.wait_busy(false);
    }
    let words = ["-t", "1", "-b", "10M"];
    all_arrived(&document(&server, &words), &words);
}

/// A client that vanished says so no more than one whose test goes on; the kernel asks it.
#[test]
fn a_client_that_says_nothing_is_asked_whether_it_is_there() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[]);
    let going = call(&server, &["-t", "20", "-u", "-R", "-b", "1M"]).start();
    wait_for_workers(&server);
    // What the control connection sent is acknowledged at once: then no other timer runs.
    let deadline = Instant::now() + Duration::from_secs(15);
    let kept = || timers(server.address.port(), ESTABLISHED);
    while kept() != ["02"] {
        assert!(Instant::now() < deadline, "{:?}", kept());
        sleep(Duration::from_millis(20));
    }
    going.signal(Signal::SIGKILL);
    going.end();
    server.wait_busy(false);
}

#[test]
fn a_server_that_ends_tells_its_clients() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let server = Server::start(&[]);
    let going = call(&server, &["-t", "20"]).start();
    wait_for_workers(&server);
    assert_eq!(server.stop().code, 0);
    let said = going.end();
    let said = said.out + &said.err;
    assert!(said.contains("the server has terminated"), "{said}");
}

/// Sends `bytes` to the server and returns what it says until it closes.
fn say(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).expect("the server listens");
    let wait = Some(Duration::from_secs(20));
    stream.set_read_timeout(wait).expect("a timeout can be set");
    stream.write_all(bytes).expect("the server takes bytes");
    let mut answer = Vec::new();
    // A reset ends what is said, too.
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn garbage_is_answered_or_closed_and_harms_nobody() {
    let server = Server::start(&[]);
    assert_eq!(say(&server, b"0123456789"), b"", "no cookie begins so");
    assert_eq!(say(&server, &[b'a'; 37]), b"", "a cookie that does not end");
    let refused = [0xFE, 0, 0, 0, 114, 0, 0, 0, 0];
    // A cookie is taken for that of a stream until its test has gone, so each has its own.
    let mut cookies = ('a'..='z').map(|letter| format!("{letter:b>36}\0"));
    let mut check = |after: &[u8], expected: &[u8]| {
        let cookie = cookies.next().expect("there are enough");
        let answer = say(&server, &[cookie.as_bytes(), after].concat());
        assert_eq!(answer, [&[9], expected].concat(), "{after:?}");
    };
    check(b"GET / HTTP/1.1\r\n\r\n", &refused);
    check(&[0, 0, 0x20, 1], &refused);
    check(
        &[0, 0, 0, 2, b'{', b'}', 7],
        &[10, 0xFE, 0, 0, 0, 110, 0, 0, 0, 0],
    );
    check(&[0, 0, 0, 2, b'[', b']'], &refused);
    // Many that say a cookie and no more: each has ten seconds, and none is in another's way.
    let began = Instant::now();
    let silent: Vec<TcpStream> = (0..40)
        .map(|at| {
            let mut stream = TcpStream::connect(server.address).expect("the server listens");
            let own = format!("{at:a>36}\0");
            stream
                .write_all(own.as_bytes())
                .expect("the server takes bytes");
            stream
        })
        .collect();
    // Nor do they keep out a run that wants the host for itself.
    assert!(server.info()["busy"].is_null());
    if there_is_iperf3() {
        let words = ["-n", "1M"];
        all_arrived(&document(&server, &words), &words);
        assert!(began.elapsed() < Duration::from_secs(9), "it had to wait");
    }
    drop(silent);
    server.wait_busy(false);
}

/// A cookie of a client.
const COOKIE: &[u8] = b"bbbbbbbbccccccccddddddddeeeeeeeeffff\0";

fn connected(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).expect("the server listens");
    let wait = Some(Duration::from_secs(10));
    stream.set_read_timeout(wait).expect("a timeout can be set");
    stream
}

#[track_caller]
fn hears(control: &mut TcpStream, states: &[u8]) {
    let mut heard = vec![0; states.len()];
    control.read_exact(&mut heard).expect("the server speaks");
    assert_eq!(heard, states);
}

fn says(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).expect("the server takes bytes");
}

/// A client numbers its streams as it connects them, and their directions follow from that; the cookie of
/// the first may be lost, and come behind that of the second.
#[test]
fn streams_are_numbered_by_their_connections() {
    let server = Server::start(&[]);
    let mut control = connected(&server);
    says(&mut control, COOKIE);
    hears(&mut control, &[9]);
    // What is omitted is time in which a busy server may begin.
    let parameters =
        r#"{"tcp":true,"bidirectional":true,"omit":5,"time":1,"parallel":1,"len":1000}"#;
    says(&mut control, &encode(parameters.as_bytes()));
    hears(&mut control, &[10]);
    let (mut to_server, mut to_client) = (connected(&server), connected(&server));
    says(&mut to_client, COOKIE);
    sleep(Duration::from_millis(100));
    says(&mut to_server, COOKIE);
    hears(&mut control, &[1, 2]);
    let mut room = [0; 1000];
    to_client.read_exact(&mut room).expect("the server sends");
    let moment = Some(Duration::from_millis(100));
    to_server
        .set_read_timeout(moment)
        .expect("a timeout can be set");
    let silence = to_server.read(&mut room).expect_err("nothing comes back");
    assert_eq!(silence.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn what_comes_late_is_counted() {
    const BLOCK: [u8; 1000] = [0; 1000];
    // As a segment that is lost once and sent again after its timeout, and late.
    const LATE: Duration = Duration::from_millis(500);
    let server = Server::start(&[]);
    let open = || {
        let mut stream = connected(&server);
        says(&mut stream, COOKIE);
        stream
    };
    let mut control = open();
    hears(&mut control, &[9]);
    let parameters = r#"{"tcp":true,"omit":0,"num":2000,"parallel":1,"len":1000}"#;
    says(&mut control, &encode(parameters.as_bytes()));
    hears(&mut control, &[10]);
    let mut stream = open();
    hears(&mut control, &[1, 2]);
    says(&mut stream, &BLOCK);
    says(&mut control, &[4]);
    hears(&mut control, &[13]);
    let results = r#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,
        "sender_has_retransmits":1,"streams":[{"id":1,"bytes":2000,"retransmits":1,"jitter":0,
        "errors":0,"packets":0,"start_time":0,"end_time":1}]}"#;
    says(&mut control, &encode(results.as_bytes()));
    sleep(LATE);
    says(&mut stream, &BLOCK);
    let mut length = [0; 4];
    control.read_exact(&mut length).expect("the server answers");
    let mut theirs = vec![0; u32::from_be_bytes(length) as usize];
    control.read_exact(&mut theirs).expect("the server answers");
    let theirs = json(&String::from_utf8_lossy(&theirs));
    assert_eq!(theirs["streams"][0]["bytes"], 2000, "{theirs}");
}

#[test]
fn a_server_for_one_run_ends_after_it() {
    if !there_is_iperf3() {
        return;
    }
    let _load = loading();
    let folder = crate::common::folder();
    let pid_file = folder.path().join("pid");
    let flags = ["-1", "--pidfile", &pid_file.display().to_string()];
    let words = ["-t", "1", "-b", "10M"];
    // A test that a busy host refuses to begin late is its one run, too.
    for attempt in 1.. {
        let server = Server::start(&flags);
        let pid = std::fs::read_to_string(&pid_file).expect("it is written");
        assert_eq!(pid.trim(), server.id().to_string());
        let said = call(&server, &words).words(&["-J"]).run();
        let ended = server.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(!pid_file.exists());
        if attempt == 5 || !is_refused_late(&said) {
            all_arrived(&succeeded(&said, &words), &words);
            return;
        }
    }
}

#[test]
fn a_server_for_one_run_does_not_wait_for_ever() {
    let server = Server::start(&["--one-off", "--idle-timeout", "1"]);
    let said = server.end();
    assert_eq!(said.code, 0, "{said:?}");
}
