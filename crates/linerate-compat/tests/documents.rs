//! Our documents against those that iperf3 3.12 printed.
//!
//! The recordings were made over loopback with `-J`; keys that 3.12 writes twice (one for each
//! stream) are kept once. From each recording the input of our document is read back, so that what
//! is compared is what we compute: sums, rates, percentages.

use std::collections::BTreeSet;

use linerate_compat::iperf3::json::{
    Datagrams, Document, EndStream, Interval, IntervalRow, Stream, TcpReading, Test, Total,
    TotalRow, document, end, interval, line, start,
};
use linerate_compat::iperf3::{CpuPercent, Direction, Parameters, Protocol};
use serde_json::{Value, json};

fn recorded(name: &str) -> Value {
    let path = format!(
        "{}/tests/recorded/3.12-{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).expect("as recorded")).expect("as recorded")
}

/// Returns the input that makes the recorded client's document.
fn input(document: &Document) -> Test {
    let asked = &document.start.test_start;
    let protocol = match asked.protocol.as_str() {
        "UDP" => Protocol::Udp,
        _ => Protocol::Tcp,
    };
    let both = document.end.sum_sent_bidir_reverse.is_some();
    let parameters = Parameters {
        direction: match (both, asked.reverse) {
            (true, _) => Direction::Both,
            (false, 1) => Direction::ToClient,
            _ => Direction::ToServer,
        },
        parallel: asked.num_streams,
        block_bytes: asked.blksize,
        time_s: asked.duration,
        blocks: Some(asked.blocks).filter(|&blocks| blocks > 0),
        bits_per_second: Some(asked.target_bitrate).filter(|&rate| rate > 0),
        ..Parameters::of(protocol)
    };
    let peer = document.start.connecting_to.clone();
    let cpu = document.end.cpu_utilization_percent;
    Test {
        version: document.start.version.clone(),
        system_info: document.start.system_info.clone(),
        unix_ms: document.start.timestamp.timesecs * 1000,
        peer_host: peer.host,
        peer_port: peer.port,
        cookie: document.start.cookie.clone(),
        parameters,
        interval_s: 1.0,
        mss_default: document.start.tcp_mss_default,
        sndbuf_actual: Some(document.start.sndbuf_actual),
        rcvbuf_actual: Some(document.start.rcvbuf_actual),
        streams: (0..document.start.connected.len())
            .map(|at| stream(document, at))
            .collect(),
        cpu: CpuPercent {
            total: cpu.host_total,
            user: cpu.host_user,
            system: cpu.host_system,
        },
        cpu_remote: Some(CpuPercent {
            total: cpu.remote_total,
            user: cpu.remote_user,
            system: cpu.remote_system,
        }),
        sender_congestion: document.end.sender_tcp_congestion.clone(),
        receiver_congestion: document.end.receiver_tcp_congestion.clone(),
        server_output: None,
        error: None,
    }
}

fn stream(document: &Document, at: usize) -> Stream {
    let connected = &document.start.connected[at];
    let address =
        |host: &str, port| std::net::SocketAddr::new(host.parse().expect("as recorded"), port);
    let rows = document.intervals.iter().map(|entry| &entry.streams[at]);
    let sender = document.intervals[0].streams[at].sender;
    let (sent, received) = match &document.end.streams[at] {
        EndStream::Tcp { sender, receiver } => (total(sender), total(receiver)),
        EndStream::Udp { udp } => (total(udp), total(udp)),
    };
    Stream {
        socket: connected.socket,
        local: address(&connected.local_host, connected.local_port),
        remote: address(&connected.remote_host, connected.remote_port),
        sender,
        intervals: rows.map(interval_of).collect(),
        sent: Some(sent),
        received: Some(received),
    }
}

fn interval_of(row: &IntervalRow) -> Interval {
    Interval {
        start_s: row.start,
        end_s: row.end,
        bytes: row.bytes,
        omitted: row.omitted,
        tcp: row.retransmits.map(|retransmits| TcpReading {
            retransmits,
            snd_cwnd_bytes: row.snd_cwnd.expect("as recorded"),
            snd_wnd_bytes: row.snd_wnd.expect("as recorded"),
            rtt_us: row.rtt.expect("as recorded"),
            rttvar_us: row.rttvar.expect("as recorded"),
            pmtu_bytes: row.pmtu.expect("as recorded"),
            reorder: 0,
        }),
        datagrams: row.packets.map(|packets| Datagrams {
            packets,
            lost: row.lost_packets.unwrap_or(0),
            out_of_order: 0,
            jitter_s: row.jitter_ms.unwrap_or(0.0) / 1e3,
        }),
    }
}

fn total(row: &TotalRow) -> Total {
    Total {
        seconds: row.end,
        bytes: row.bytes,
        retransmits: row.retransmits,
        datagrams: row.packets.map(|packets| Datagrams {
            packets,
            lost: row.lost_packets.expect("as recorded"),
            out_of_order: row.out_of_order.expect("as recorded"),
            jitter_s: row.jitter_ms.expect("as recorded") / 1e3,
        }),
    }
}

/// Returns every path of keys, entries of lists being one path.
fn paths(value: &Value, at: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| paths(value, &format!("{at}.{key}"), out)),
        Value::Array(list) => list.iter().for_each(|value| paths(value, at, out)),
        _ => {
            out.insert(at.to_owned());
        }
    }
}

/// Compares numbers of `ours` with `theirs`, key by key, where they are computed alike.
fn same(ours: &Value, theirs: &Value, at: &str) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in theirs {
                let path = format!("{at}.{key}");
                // 3.12 takes these from clocks that do not go into the document; and it gives the
                // receiver's entries of both directions the other end's duration.
                let clock = ["seconds", "bits_per_second", "end", "lost_percent"];
                let udp = at.contains("udp") || at.contains("sum_") || at.ends_with("sum");
                if clock.contains(&key.as_str()) || (udp && key == "jitter_ms") {
                    continue;
                }
                same(ours.get(key).unwrap_or(&Value::Null), value, &path);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{at}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                same(ours, theirs, at);
            }
        }
        (Value::Number(ours), Value::Number(theirs)) => {
            let (ours, theirs) = (
                ours.as_f64().expect("as recorded"),
                theirs.as_f64().expect("as recorded"),
            );
            let close = (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0);
            // A reading of 3.12 that the recording does not have.
            let unread = at.contains("_snd_") || at.contains("_rtt");
            assert!(close || unread, "{at}: {ours} {theirs}");
        }
        _ => assert_eq!(ours, theirs, "{at}"),
    }
}

#[test]
fn documents_have_every_key_and_number_that_3_12_writes() {
    for name in [
        "tcp-reverse-2",
        "tcp-both",
        "udp-both-2",
        "udp-2",
        "tcp-blocks",
    ] {
        let mut theirs = recorded(name);
        theirs
            .as_object_mut()
            .expect("as recorded")
            .remove("server_output_json");
        let read: Document = serde_json::from_value(theirs.clone()).expect("as recorded");
        let ours = serde_json::to_value(document(&input(&read))).expect("as recorded");
        let (mut have, mut want) = (BTreeSet::new(), BTreeSet::new());
        paths(&ours, "", &mut have);
        paths(&theirs, "", &mut want);
        let missing: Vec<_> = want.difference(&have).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
        same(&ours, &theirs, name);
    }
}

#[test]
fn rates_follow_from_bytes_and_time() {
    let read: Document = serde_json::from_value(recorded("tcp-reverse-2")).expect("as recorded");
    let ours = document(&input(&read));
    let sent = ours.end.sum_sent.expect("as recorded");
    assert_eq!(sent.bytes, 1_310_720_000);
    assert!((sent.bits_per_second - 10_099_193_182.55).abs() < 1.0);
    let sum = &ours.intervals[0].sum;
    assert!((sum.bits_per_second - 10_407_286_546.6).abs() < 1.0);
}

/// Returns a UDP test in both directions with the streams of a server, as one was recorded.
fn udp_server() -> Test {
    let datagrams = |packets, jitter_ms: f64| {
        Some(Datagrams {
            packets,
            lost: 0,
            out_of_order: 0,
            jitter_s: jitter_ms / 1e3,
        })
    };
    let stream = |socket, port, sender, packets, jitter_ms| {
        let row = |start_s, end_s, packets| Interval {
            start_s,
            end_s,
            bytes: 32768 * packets,
            omitted: false,
            tcp: None,
            datagrams: datagrams(packets, jitter_ms),
        };
        let total = Total {
            seconds: 1.0407,
            bytes: 32768 * packets,
            retransmits: None,
            datagrams: datagrams(packets, jitter_ms),
        };
        Stream {
            socket,
            local: "127.0.0.1:38531".parse().expect("as recorded"),
            remote: format!("127.0.0.1:{port}").parse().expect("as recorded"),
            sender,
            intervals: vec![row(0.0, 1.0001, 4), row(1.0001, 1.0407, packets - 4)],
            sent: sender.then_some(total),
            received: (!sender).then_some(total),
        }
    };
    Test {
        version: String::new(),
        system_info: String::new(),
        unix_ms: 0,
        peer_host: "127.0.0.1".into(),
        peer_port: 50452,
        cookie: String::new(),
        parameters: Parameters {
            direction: Direction::Both,
            parallel: 2,
            ..Parameters::of(Protocol::Udp)
        },
        interval_s: 1.0,
        mss_default: None,
        sndbuf_actual: None,
        rcvbuf_actual: None,
        streams: vec![
            stream(5, 50135, false, 4, 0.009),
            stream(6, 60228, false, 4, 0.002),
            stream(9, 44790, true, 5, 0.0),
            stream(11, 41173, true, 5, 0.0),
        ],
        cpu: CpuPercent::default(),
        cpu_remote: None,
        sender_congestion: None,
        receiver_congestion: None,
        server_output: None,
        error: None,
    }
}

fn text(test: &Test) -> String {
    let peer = "127.0.0.1:50452".parse().expect("as recorded");
    linerate_compat::iperf3::json::text(peer, &test.parameters, &test.streams)
}

/// Recorded from a server of 3.12; `1.00-1.04` of 40.6 ms.
const UDP_SERVER: &str = "\
Accepted connection from 127.0.0.1, port 50452
[  5] local 127.0.0.1 port 38531 connected to 127.0.0.1 port 50135
[  6] local 127.0.0.1 port 38531 connected to 127.0.0.1 port 60228
[  9] local 127.0.0.1 port 38531 connected to 127.0.0.1 port 44790
[ 11] local 127.0.0.1 port 38531 connected to 127.0.0.1 port 41173
[ ID][Role] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5][RX-S]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.009 ms  0/4 (0%)  
[  6][RX-S]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.002 ms  0/4 (0%)  
[SUM][RX-S]   0.00-1.00   sec   256 KBytes  2.10 Mbits/sec  0.005 ms  0/8 (0%)  
[  9][TX-S]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec            4  
[ 11][TX-S]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec            4  
[SUM][TX-S]   0.00-1.00   sec   256 KBytes  2.10 Mbits/sec            8  
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5][RX-S]   1.00-1.04   sec  0.00 Bytes  0.00 bits/sec  0.009 ms  0/0 (0%)  
[  6][RX-S]   1.00-1.04   sec  0.00 Bytes  0.00 bits/sec  0.002 ms  0/0 (0%)  
[SUM][RX-S]   1.00-1.04   sec  0.00 Bytes  0.00 bits/sec  0.005 ms  0/0 (0%)  
[  9][TX-S]   1.00-1.04   sec  32.0 KBytes  6.46 Mbits/sec            1  
[ 11][TX-S]   1.00-1.04   sec  32.0 KBytes  6.46 Mbits/sec            1  
[SUM][TX-S]   1.00-1.04   sec  64.0 KBytes  12.9 Mbits/sec            2  
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID][Role] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5][RX-S]   0.00-1.04   sec   128 KBytes  1.01 Mbits/sec  0.009 ms  0/4 (0%)  receiver
[  6][RX-S]   0.00-1.04   sec   128 KBytes  1.01 Mbits/sec  0.002 ms  0/4 (0%)  receiver
[SUM][RX-S]   0.00-1.04   sec   256 KBytes  2.02 Mbits/sec  0.005 ms  0/8 (0%)  receiver
[  9][TX-S]   0.00-1.04   sec   160 KBytes  1.26 Mbits/sec  0.000 ms  0/5 (0%)  sender
[ 11][TX-S]   0.00-1.04   sec   160 KBytes  1.26 Mbits/sec  0.000 ms  0/5 (0%)  sender
[SUM][TX-S]   0.00-1.04   sec   320 KBytes  2.52 Mbits/sec  0.000 ms  0/10 (0%)  sender
";

#[test]
fn the_text_of_a_udp_server_is_that_of_3_12() {
    similar(&text(&udp_server()), UDP_SERVER);
}

/// Compares line by line, so that a failure shows the line.
#[track_caller]
fn similar(ours: &str, theirs: &str) {
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

#[test]
fn the_text_of_a_tcp_server_is_that_of_3_12() {
    let mut test = udp_server();
    let tcp = |retransmits, snd_cwnd_bytes| TcpReading {
        retransmits,
        snd_cwnd_bytes,
        ..TcpReading::default()
    };
    let row = |start_s, end_s, bytes, omitted, tcp| Interval {
        start_s,
        end_s,
        bytes,
        omitted,
        tcp,
        datagrams: None,
    };
    test.parameters = Parameters::of(Protocol::Tcp);
    test.streams.truncate(1);
    test.streams[0].intervals = vec![
        row(0.0, 1.0, 1_228_800, true, None),
        row(0.0, 1.0, 1_228_800, false, None),
        row(2.0, 2.0388, 40_960, false, None),
    ];
    test.streams[0].received = Some(Total {
        seconds: 2.038889,
        bytes: 2_539_520,
        ..Total::default()
    });
    similar(
        &text(&test),
        "\
Accepted connection from 127.0.0.1, port 50452
[  5] local 127.0.0.1 port 38531 connected to 127.0.0.1 port 50135
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  1.17 MBytes  9.83 Mbits/sec                  (omitted)
[  5]   0.00-1.00   sec  1.17 MBytes  9.83 Mbits/sec                  
[  5]   2.00-2.04   sec  40.0 KBytes  8.45 Mbits/sec                  
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-2.04   sec  2.42 MBytes  9.96 Mbits/sec                  receiver
",
    );
    test.parameters.direction = Direction::ToClient;
    test.parameters.parallel = 2;
    let stream = Stream {
        sender: true,
        intervals: vec![row(0.0, 1.0, 645_922_816, false, Some(tcp(1, 3_009_413)))],
        sent: Some(Total {
            seconds: 1.038277,
            bytes: 668_467_200,
            retransmits: Some(1),
            datagrams: None,
        }),
        received: None,
        ..test.streams[0].clone()
    };
    test.streams = vec![
        stream.clone(),
        Stream {
            socket: 8,
            ..stream
        },
    ];
    similar(
        &text(&test),
        "\
Accepted connection from 127.0.0.1, port 50452
[  5] local 127.0.0.1 port 38531 connected to 127.0.0.1 port 50135
[  8] local 127.0.0.1 port 38531 connected to 127.0.0.1 port 50135
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   616 MBytes  5.17 Gbits/sec    1   2.87 MBytes       
[  8]   0.00-1.00   sec   616 MBytes  5.17 Gbits/sec    1   2.87 MBytes       
[SUM]   0.00-1.00   sec  1.20 GBytes  10.3 Gbits/sec    2             
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-1.04   sec   638 MBytes  5.15 Gbits/sec    1             sender
[  8]   0.00-1.04   sec   638 MBytes  5.15 Gbits/sec    1             sender
[SUM]   0.00-1.04   sec  1.25 GBytes  10.3 Gbits/sec    2             sender
",
    );
}

#[test]
fn lines_of_the_stream_are_events() {
    let test = udp_server();
    let check = |line: String, event: &str, key: &str| {
        assert!(!line.contains('\n'));
        let value: Value = serde_json::from_str(&line).expect("as recorded");
        assert_eq!(value["event"], json!(event));
        assert!(!value["data"][key].is_null(), "{event}: {line}");
    };
    check(line("start", &start(&test)), "start", "test_start");
    check(
        line("interval", &interval(&test, 1)),
        "interval",
        "sum_bidir_reverse",
    );
    check(line("end", &end(&test)), "end", "sum_received");
    let value: Value = serde_json::from_str(&line("error", &"no route")).expect("as recorded");
    assert_eq!(value, json!({"event": "error", "data": "no route"}));
}

#[test]
fn a_failed_test_without_streams_is_a_document() {
    let mut test = udp_server();
    test.streams.clear();
    test.error = Some("the server is busy".into());
    let ours = serde_json::to_value(document(&test)).expect("as recorded");
    assert_eq!(ours["error"], json!("the server is busy"));
    assert_eq!(ours["intervals"], json!([]));
    assert_eq!(ours["end"]["streams"], json!([]));
    assert!(text(&test).starts_with("Accepted connection"));
}
