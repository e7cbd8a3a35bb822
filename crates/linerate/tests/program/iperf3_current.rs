//! The current iperf3 beside the distribution's: its clients against `linerate serve`, and
//! `linerate run --peer iperf3` against its server.
//!
//! What both releases do is tested in depth with the distribution's, in `iperf3_server.rs` and
//! `iperf3_client.rs`. Here every option is asked once, of which releases since 3.16 do many
//! otherwise: a thread for each stream, volumes that are looked at once an interval, GSO and GRO.
//! Tests of one table go on at once, each at a rate that leaves the others theirs.

use std::process::Command;

use crate::common::call::Call;
use crate::common::iperf3::{Iperf3, begun_in_time, came_back, number};
use crate::common::{Said, Server, file, folder, json, linerate, loading, skip};
use serde_json::Value;

/// What `bench/install-iperf3-current` installs.
const IPERF3: &str = "iperf3-current";
/// A rate at which a table of tests has room on two CPUs.
const RATE: [&str; 2] = ["-b", "20M"];
/// A rate of datagrams at which a socket's usual buffer holds more than half a second.
const GENTLE: [&str; 5] = ["-u", "-b", "1M", "-l", "500"];

/// Returns whether there is a current iperf3; says so where there is none.
fn there_is_one() -> bool {
    let there = Command::new(IPERF3).arg("--version").output().is_ok();
    if !there {
        skip("there is no iperf3-current; bench/install-iperf3-current installs it");
    }
    there
}

fn call(server: &Server, words: &[&str]) -> Call {
    let port = server.address.port().to_string();
    Call::of(IPERF3)
        .words(&["-c", "127.0.0.1", "-p", &port, "-J"])
        .words(words)
}

/// Returns the document of a client that must have succeeded.
#[track_caller]
fn document(said: &Said, words: &[&str]) -> Value {
    assert_eq!(said.code, 0, "{words:?}: {said:?}");
    let document = json(&said.out);
    assert!(document["error"].is_null(), "{words:?}: {}", said.out);
    document
}

/// Runs a client for each row at once, with `common` words in all of them, and `checks` what each
/// says.
#[track_caller]
fn check_all(rows: &[&[&str]], common: &[&str], check: impl Fn(&[&str], &Value)) {
    let _load = loading();
    let server = Server::start(&[]);
    let goings: Vec<_> = rows
        .iter()
        .map(|row| {
            let words = [common, *row].concat();
            let going = call(&server, &words).start();
            (words, going)
        })
        .collect();
    for (words, going) in goings {
        let said = begun_in_time(going, || call(&server, &words));
        let document = document(&said, &words);
        check(&words, &document);
    }
    server.wait_busy(false);
}

/// Returns the most by which a client's count may be behind what it has sent: the thread of each
/// stream may be inside a write when the counts are read.
fn under_way(document: &Value) -> f64 {
    let streams = document["end"]["streams"].as_array().map_or(0, Vec::len);
    number(document, "/start/test_start/blksize") * streams as f64
}

/// Asserts that everything that the client sent was received; returns how much.
#[track_caller]
fn all_arrived(document: &Value, words: &[&str]) -> f64 {
    let sent = number(document, "/end/sum_sent/bytes");
    let received = number(document, "/end/sum_received/bytes");
    let most = sent + under_way(document);
    assert!(sent > 0.0, "{words:?}: nothing was sent");
    assert!(
        (sent..=most).contains(&received),
        "{words:?}: {sent} {received}"
    );
    received
}

/// What is asked of TCP in either direction.
const TCP: [&[&str]; 19] = [
    &[],
    &["-P", "4"],
    &["-w", "64K"],
    &["-M", "1000"],
    &["-l", "1000"],
    &["-N"],
    &["-S", "32"],
    &["--dscp", "ef"],
    &["-C", "reno"],
    &["-Z"],
    &["--skip-rx-copy"],
    &["-Z", "--skip-rx-copy", "-P", "2"],
    &["-m"],
    &["-m", "-w", "64K", "-C", "reno"],
    &["-m", "--fq-rate", "20M"],
    &["--repeating-payload", "--dont-fragment"],
    &["--snd-timeout", "5000"],
    &["--fq-rate", "400M", "-A", "0,0"],
    &["-T", "a title", "--extra-data", "x", "-i", "0.1"],
];

#[test]
fn tcp_to_the_server_with_every_option() {
    if !there_is_one() {
        return;
    }
    let common = [&RATE[..], &["-t", "1"]].concat();
    check_all(&TCP, &common, |words, document| {
        all_arrived(document, words);
        for stream in document["end"]["streams"].as_array().into_iter().flatten() {
            let of = |end: &str| stream[end]["bytes"].as_f64().unwrap_or_default();
            let block = number(document, "/start/test_start/blksize");
            let ahead = of("receiver") - of("sender");
            assert!((0.0..=block).contains(&ahead), "{words:?}: {stream}");
        }
        if words.contains(&"reno") {
            assert_eq!(document["end"]["receiver_tcp_congestion"], "reno");
        }
    });
}

#[test]
fn tcp_from_the_server_and_both_ways_with_every_option() {
    if !there_is_one() {
        return;
    }
    let common = [&RATE[..], &["-t", "1", "-R", "--rcv-timeout", "5000"]].concat();
    check_all(&TCP, &common, |words, document| {
        let (sent, _) = came_back(document, "", words);
        let streams = number(document, "/start/test_start/num_streams");
        // 20 Mbit/s are 2.5 MB/s.
        let rate = sent / streams / 2.5e6;
        assert!((0.5..1.5).contains(&rate), "{words:?}: {rate}");
        number(document, "/end/sum_sent/retransmits");
    });
    let common = [&RATE[..], &["-t", "1", "--bidir"]].concat();
    let rows: [&[&str]; 4] = [&[], &["-P", "2"], &["-Z", "--skip-rx-copy"], &["-m"]];
    check_all(&rows, &common, |words, document| {
        all_arrived(document, words);
        came_back(document, "_bidir_reverse", words);
    });
}

#[test]
fn who_asks_for_mptcp_gets_it() {
    let sysctl = std::fs::read_to_string("/proc/sys/net/mptcp/enabled");
    if sysctl.is_ok_and(|enabled| enabled.trim() != "1") || !there_is_one() {
        return;
    }
    // Handshakes whose third packet said MPTCP, too, so that neither end fell back.
    let spoken = || {
        let text = std::fs::read_to_string("/proc/net/netstat").unwrap_or_default();
        let mut lines = text.lines().filter(|line| line.starts_with("MPTcpExt:"));
        let names = lines.next()?.split_whitespace();
        let values = lines.next()?.split_whitespace();
        let mut both = names.zip(values);
        both.find(|(name, _)| *name == "MPCapableACKRX")?
            .1
            .parse::<u64>()
            .ok()
    };
    let Some(before) = spoken() else {
        return;
    };
    check_all(&[&["-m", "-P", "3"]], &["-n", "1M"], |words, document| {
        all_arrived(document, words);
    });
    let after = spoken().expect("it was there before");
    assert!(after >= before + 3, "{before} {after}");
}

#[test]
fn volumes_end_where_they_are_asked_to() {
    if !there_is_one() {
        return;
    }
    const MB: f64 = 1_048_576.0;
    let rows: [(&[&str], f64); 8] = [
        (&["-n", "10M"], 10.0 * MB),
        (&["-n", "4M", "-P", "4", "-l", "16K"], 4.0 * MB),
        (&["-k", "16", "-l", "64K"], MB),
        (&["-n", "10M", "-R"], 10.0 * MB),
        (
            &["-n", "1000003", "-P", "3", "-l", "1000", "-R"],
            1_000_003.0,
        ),
        (&["-k", "16", "-P", "3", "-l", "64K", "-R"], MB),
        (&["-n", "4M", "-R", "-m"], 4.0 * MB),
        (&["-n", "4M", "--bidir", "-P", "2"], 4.0 * MB),
    ];
    let words: Vec<&[&str]> = rows.iter().map(|row| row.0).collect();
    check_all(&words, &[], |words, document| {
        let (_, volume) = rows.iter().find(|row| row.0 == words).expect("a row");
        let range = *volume..=volume + under_way(document);
        if !words.contains(&"-R") {
            let received = all_arrived(document, words);
            assert!(range.contains(&received), "{words:?}: {received}");
        }
        // The client looks once a second, in which we could send gigabytes.
        if words.contains(&"-R") {
            let (sent, _) = came_back(document, "", words);
            assert!(range.contains(&sent), "{words:?}: {sent}");
        }
        // A client that has sent its own volume leaves, whatever has come until then.
        if words.contains(&"--bidir") {
            let sent = number(document, "/end/sum_sent_bidir_reverse/bytes");
            assert!(sent <= *range.end(), "{words:?}: {sent}");
        }
        // The workers that sent had ended long before anybody asked.
        if words.contains(&"-R") {
            let cpu = number(document, "/end/cpu_utilization_percent/remote_total");
            assert!(cpu > 0.0, "{words:?}");
        }
    });
}

#[test]
fn what_is_omitted_and_the_servers_own_output() {
    if !there_is_one() {
        return;
    }
    let common = ["-O", "1", "-t", "1", "--get-server-output"];
    let tcp: &[&str] = &["-b", "80M"];
    let rows = [
        tcp,
        &["-b", "80M", "-R"],
        &GENTLE,
        &["-u", "-b", "1M", "-l", "500", "-R"],
    ];
    check_all(&rows, &common, |words, document| {
        let received = number(document, "/end/sum_received/bytes");
        // Two seconds would be twice as much.
        let second = if words.contains(&"-u") { 125e3 } else { 10e6 };
        assert!(
            (0.5..1.5).contains(&(received / second)),
            "{words:?}: {received}"
        );
        let text = document["server_output_text"].as_str().unwrap_or_default();
        assert!(text.contains("(omitted)"), "{words:?}: {text}");
    });
}

#[test]
fn datagrams_with_every_option() {
    if !there_is_one() {
        return;
    }
    let rows: [&[&str]; 13] = [
        &[],
        &["-P", "3"],
        &["-R", "-P", "3"],
        &["--bidir"],
        &["-w", "256K"],
        &["--udp-counters-64bit"],
        &["--udp-counters-64bit", "-R"],
        &["--repeating-payload", "--dont-fragment", "-R"],
        &["--gsro"],
        &["--gsro", "-R"],
        &["--gsro", "--bidir", "-P", "2", "--udp-counters-64bit"],
        &["--gsro", "-l", "64", "-w", "1M"],
        &["--gsro", "-l", "64", "-R", "-b", "2M"],
    ];
    let common = [&GENTLE[..], &["-t", "1"]].concat();
    check_all(&rows, &common, |words, document| {
        if words.contains(&"-R") {
            came_back(document, "", words).0
        } else {
            all_arrived(document, words)
        };
        assert_eq!(number(document, "/end/sum/lost_packets"), 0.0, "{words:?}");
        if words.contains(&"--bidir") {
            came_back(document, "_bidir_reverse", words);
            let lost = number(document, "/end/sum_bidir_reverse/lost_packets");
            assert_eq!(lost, 0.0, "{words:?}");
        }
        if words.contains(&"64") {
            // The kernel cut them from buffers of 128 at whichever end sent.
            let packets = number(document, "/end/sum_sent/packets");
            assert!(
                packets > 0.0 && packets % 128.0 == 0.0,
                "{words:?}: {packets}"
            );
        }
    });
}

/// Keys that are only for tests, and a file with the user mario, whose password is rossi.
struct Keys {
    private: String,
    public: String,
    users: String,
    _folder: tempfile::TempDir,
}

impl Keys {
    fn new() -> Self {
        let keys = crate::common::repository().join("crates/linerate-compat/tests/keys");
        let key = |name: &str| keys.join(name).display().to_string();
        let folder = folder();
        // SHA-256 of {mario}rossi.
        let users = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";
        Self {
            private: key("only-for-tests-private.pem"),
            public: key("only-for-tests-public.pem"),
            users: file(&folder, "users.csv", users),
            _folder: folder,
        }
    }

    /// Returns the words of a server, of either program, and `padding`.
    fn of_server<'a>(&'a self, padding: &[&'a str]) -> Vec<&'a str> {
        let words = [
            "--rsa-private-key-path",
            &self.private,
            "--authorized-users-path",
            &self.users,
        ];
        [&words, padding].concat()
    }

    /// Returns the words of a client, of either program, and `padding`.
    fn of_client<'a>(&'a self, padding: &[&'a str]) -> Vec<&'a str> {
        let words = ["--username", "mario", "--rsa-public-key-path", &self.public];
        [&words, padding].concat()
    }
}

#[test]
fn passwords_are_asked_for() {
    if !there_is_one() {
        return;
    }
    let keys = Keys::new();
    // OAEP: clients since 3.17 know no other padding.
    let server = Server::start(&keys.of_server(&[]));
    let enter = |words: &[&str], password: &str| {
        let call = || {
            let call = call(&server, &["-n", "1M"]).words(words);
            call.with("IPERF3_PASSWORD", password)
        };
        begun_in_time(call().start(), call)
    };
    let words = keys.of_client(&[]);
    all_arrived(&document(&enter(&words, "rossi"), &words), &words);
    for refused in [enter(&words, "verdi"), enter(&[], "rossi")] {
        let document = json(&refused.out);
        let error = document["error"].as_str().unwrap_or_default();
        assert!(error.contains("authorization failed"), "{document}");
    }
}

/// Starts the current iperf3 as a server with more words.
fn start(words: &[&str]) -> Iperf3 {
    Iperf3::start(IPERF3, words).expect("it is there")
}

fn run(server: &Iperf3, words: &[&str]) -> Call {
    let host = server.host();
    linerate(&["run", "--peer", "iperf3", &host, "-i", "0", "-J"]).words(words)
}

#[test]
fn a_server_of_its_own_does_what_it_is_asked() {
    if !there_is_one() {
        return;
    }
    let _load = loading();
    let rows: [&[&str]; 22] = [
        &["-b", "40M"],
        &["-b", "20M", "-P", "3"],
        &["-b", "20M", "-P", "2", "-R", "-l", "64K"],
        &["-b", "20M", "--bidir"],
        &["-b", "40M", "-w", "128K", "-M", "1200", "-N", "-S", "16"],
        &["-b", "40M", "-C", "reno", "-R"],
        &["-b", "40M", "-Z"],
        &["-b", "40M", "-Z", "-R"],
        &["-b", "40M", "--rx", "discard"],
        &["-b", "40M", "--rx", "discard", "-R"],
        &["-b", "40M", "-m"],
        &["-b", "40M", "-m", "-R"],
        &["-b", "40M", "-O", "1"],
        &["-n", "5M"],
        &["-n", "5M", "-R"],
        &["-k", "40", "-P", "2"],
        &["-u", "-b", "4M"],
        &["-u", "-b", "4M", "-R"],
        &["-u", "-b", "4M", "--bidir", "-P", "2"],
        &["-u", "-b", "4M", "-l", "64", "--gso", "128", "-w", "1M"],
        &[
            "-u", "-b", "4M", "-l", "64", "--gso", "128", "--gro", "-w", "1M", "-R",
        ],
        &["-u", "-b", "4M", "--gro"],
    ];
    for some in rows.chunks(6) {
        let goings: Vec<_> = some
            .iter()
            .map(|row| {
                let server = start(&[]);
                let volume = row.contains(&"-n") || row.contains(&"-k");
                let time: &[&str] = if volume { &[] } else { &["-t", "0.5"] };
                let going = run(&server, row).words(time).start();
                (row, server, going)
            })
            .collect();
        for (row, _server, going) in goings {
            let said = going.end();
            assert!(said.is_measured(), "{row:?}: {said:?}");
            as_much_came_as_went(row, &json(&said.out));
        }
    }
}

/// Asserts that each flow's receiver counted what its sender sent, but for what was under way.
#[track_caller]
fn as_much_came_as_went(row: &[&str], document: &Value) {
    let flows = document["trials"][0]["flows"].as_array();
    let flows = flows.unwrap_or_else(|| panic!("{row:?}: no flows in {document}"));
    let of = |flow: &Value, key: &str| flow[key].as_u64().expect("a count");
    for sender in flows.iter().filter(|flow| flow["part"] == "sender") {
        let mut ends = flows.iter().filter(|flow| flow["flow"] == sender["flow"]);
        let receiver = ends.find(|flow| flow["part"] == "receiver");
        let sent = of(sender, "bytes_sent");
        let received = of(receiver.expect("a receiver"), "bytes_received");
        // What is omitted is a second of one and a half, and only the sender's end has it.
        let least = if row.contains(&"-O") { 0.2 } else { 0.7 };
        let share = received as f64 / sent as f64;
        assert!((least..1.3).contains(&share), "{row:?}: {sent} {received}");
        if row.contains(&"128") && row.contains(&"-R") {
            // Our receiver counts what came of buffers of 128 datagrams of 64 B.
            assert_eq!(sent % (128 * 64), 0, "{row:?}: {sent}");
        }
    }
}

#[test]
fn its_server_lets_in_who_knows_the_password() {
    if !there_is_one() {
        return;
    }
    let keys = Keys::new();
    for padding in [&[][..], &["--use-pkcs1-padding"]] {
        // A server each: 3.22 reads a stream that it has closed at the end of a test, and may give that error as
        // the reason when it refuses the next client.
        let enter = |password: &str| {
            let server = start(&keys.of_server(padding));
            run(&server, &["-n", "1M"])
                .words(&keys.of_client(padding))
                .with("IPERF3_PASSWORD", password)
                .run()
        };
        let said = enter("rossi");
        assert!(said.is_measured(), "{said:?}");
        let said = enter("verdi");
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("authentication failed"), "{said:?}");
    }
}
