//! Datagrams that are lost at a known place: does `linerate run -u` name it, to the packet?

use crate::common::{Pair, file, folder, json, loading, measured};
use serde_json::Value;

/// The responses that say how many datagrams were lost where.
const PLACES: [&str; 8] = [
    "lost_sender_queue",
    "lost_sender_qdisc",
    "lost_sender_device",
    "lost_receiver_device",
    "lost_receiver_backlog",
    "lost_checksum",
    "lost_receive_buffer",
    "lost_not_located",
];

/// Measures with these flags, if the machine leaves the time for it; the rows of what was lost add up to
/// what was sent.
fn measure(pair: &Pair, flags: &str) -> Option<Lost> {
    let said = measured(|_| pair.run(&format!("-u -t 1 {flags}")))?;
    let document = json(&said.out);
    let response = |name: &str| document["trials"][0]["responses"][name].as_f64();
    let lost: Vec<(&str, f64)> = PLACES
        .into_iter()
        .filter_map(|place| Some((place, response(place)?)))
        .collect();
    let (sent, received) = (response("datagrams_sent"), response("datagrams_received"));
    let (sent, received) = (
        sent.unwrap_or_else(|| panic!("{document}")),
        received.unwrap_or_else(|| panic!("{document}")),
    );
    let all: f64 = lost.iter().map(|place| place.1).sum();
    assert_eq!(received + all, sent, "{lost:?}");
    Some(Lost {
        all,
        places: lost,
        document,
    })
}

/// Returns how far the protocol counter called `name` moved on `host` in the window; 0 where it is not
/// listed.
fn moved(document: &Value, host: &str, name: &str) -> f64 {
    let rows = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let hosts = rows(&document["trials"][0]["protocol_counters"]);
    let own = hosts.iter().filter(|row| row["host"] == host);
    let lines = own.flat_map(|row| rows(&row["counters"]));
    let line = lines.into_iter().find(|line| line["name"] == name);
    line.map_or(0.0, |line| line["moved"].as_f64().unwrap_or_default())
}

/// What a measurement lost.
struct Lost {
    all: f64,
    places: Vec<(&'static str, f64)>,
    document: Value,
}

impl Lost {
    fn at(&self, place: &str) -> f64 {
        let row = self.places.iter().find(|row| row.0 == place);
        row.map_or(0.0, |row| row.1)
    }

    /// Returns how far a protocol counter moved on `host` in the window.
    fn moved(&self, host: &str, name: &str) -> f64 {
        moved(&self.document, host, name)
    }

    /// Asserts that the discipline that dropped is named by device and handle, and that it counts at
    /// least nine tenths of what was lost: other packets may be in its count, and what was lost
    /// before the first reading is not.
    #[track_caller]
    fn names_a_qdisc(&self) {
        let qdisc = &self.document["trials"][0]["dropping_qdiscs"][0];
        let text = |key: &str| qdisc[key].as_str().unwrap_or_default();
        assert!(text("handle").contains(':'), "{qdisc}");
        assert!(!text("device").is_empty() && !text("host").is_empty());
        let drops = qdisc["drops"].as_f64().unwrap_or_default();
        assert!(drops >= 0.9 * self.all, "{qdisc}: {:?}", self.places);
        let name = format!("qdisc {} {}", text("device"), text("handle"));
        let findings = self.document["findings"].to_string();
        assert!(findings.contains(&name), "{findings}");
    }

    /// Asserts that the most was lost at `place` and that a finding says so in these words.
    #[track_caller]
    fn is_mostly_at(&self, place: &str, words: &str) {
        assert!(self.all > 0.0, "{}", self.document);
        let most = self.places.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        assert_eq!(most.map(|row| row.0), Some(place), "{:?}", self.places);
        let findings = self.document["findings"].to_string();
        assert!(findings.contains(words), "{findings}");
    }
}

/// A slow line, and hosts whose own queues hold less than a socket's buffer: 0.2 s of it.
const SHORT_QUEUE: &[&str] = &["--rate", "5mbit", "--host-queue", "128K"];

#[test]
fn a_queue_that_is_full_is_the_senders() {
    let Some(pair) = Pair::up(SHORT_QUEUE) else {
        return;
    };
    let Some(lost) = measure(&pair, "-b 50M") else {
        return;
    };
    let words = "the sender's qdisc (qdisc ";
    lost.is_mostly_at("lost_sender_queue", words);
    lost.names_a_qdisc();
}

/// A buffer above the bucket's burst is cut into its datagrams, and when some of these find room the
/// sender is told that it went (tbf_segment in net/sched/sch_tbf.c): only the discipline's own count
/// knows of the others.
#[test]
fn what_a_queue_took_and_dropped_is_its_own() {
    let Some(pair) = Pair::up(SHORT_QUEUE) else {
        return;
    };
    let Some(lost) = measure(&pair, "-b 50M --gso 40") else {
        return;
    };
    let words = "the sending host's qdiscs, which had taken them (qdisc ";
    lost.is_mostly_at("lost_sender_qdisc", words);
    lost.names_a_qdisc();
    let elsewhere = lost.all - lost.at("lost_sender_queue") - lost.at("lost_sender_qdisc");
    // Other hosts' packets are in the discipline's count, and ours before the first reading are not.
    assert!(elsewhere <= 0.05 * lost.all, "{:?}", lost.places);
}

#[test]
fn a_buffer_that_is_full_is_the_receivers() {
    let _load = loading();
    let folder = folder();
    // Without its token an agent shows nothing of its host.
    let token = file(&folder, "token", "0123456789abcdef");
    let Some(pair) = Pair::up_serving(&[], &["--token-file", &token]) else {
        return;
    };
    let flags = format!("-b 0 -w 2304 --batch 32 --token-file {token}");
    let Some(lost) = measure(&pair, &flags) else {
        return;
    };
    lost.is_mostly_at("lost_receive_buffer", "the receiving socket's buffer");
    // The kernel's own counter says so too, and on the receiving host only.
    let (server, client) = (
        lost.moved("server", "Udp.RcvbufErrors"),
        lost.moved("client1", "Udp.RcvbufErrors"),
    );
    assert!(
        server > 0.0,
        "{}",
        lost.document["trials"][0]["protocol_counters"]
    );
    assert_eq!(client, 0.0);
    assert!(lost.moved("server", "Udp.InErrors") >= server);
}

/// Segments that the link loses are sent again, and the sender's kernel counts them by name.
#[test]
fn segments_sent_again_are_counted_by_the_senders_kernel() {
    let folder = folder();
    let token = file(&folder, "token", "0123456789abcdef");
    let serve = ["--token-file", &token];
    let Some(pair) = Pair::up_serving(&["--loss", "0.02", "--rate", "100mbit"], &serve) else {
        return;
    };
    let flags = format!("-t 1 --token-file {token}");
    let Some(said) = measured(|_| pair.run(&flags)) else {
        return;
    };
    let document = json(&said.out);
    let again = moved(&document, "client1", "Tcp.RetransSegs");
    assert!(again > 0.0, "{document}");
    // The server sends no payload, but its part of the control connection crosses the link too.
    assert!(moved(&document, "server", "Tcp.RetransSegs") < again);
    // What the flow itself counted in the same window; the edges are read one after the other.
    let own = document["trials"][0]["responses"]["retransmitted_segments"].as_f64();
    let own = own.expect("the flow's own count");
    assert!(
        (again - own).abs() <= 10.0 + own / 10.0,
        "{again} and {own}"
    );
    // Those that tell of trouble come first.
    let lines = &document["trials"][0]["protocol_counters"][1]["counters"];
    assert_eq!(lines[0]["trouble"], true, "{lines}");
}

/// What the link between the hosts loses, neither of them counts.
#[test]
fn what_the_link_loses_is_not_located() {
    let Some(pair) = Pair::up(&["--loss", "0.05"]) else {
        return;
    };
    let Some(lost) = measure(&pair, "-b 5M") else {
        return;
    };
    assert!(lost.at("lost_not_located") > 0.0, "{:?}", lost.places);
    assert_eq!(lost.at("lost_sender_queue"), 0.0, "{:?}", lost.places);
}

/// Frames go past sockets and queues, and are counted all the same: by their sender, by the device of
/// the receiver, and by the receiver. The second run finds the queue that the first has left.
#[test]
fn frames_past_the_sockets_are_counted_alike_at_both_ends() {
    let _load = loading();
    let folder = folder();
    let token = file(&folder, "token", "0123456789abcdef");
    let Some(pair) = Pair::up_serving(&[], &["--token-file", &token]) else {
        return;
    };
    for way in ["", " -R"] {
        let flags = format!("-l 64 -b 10M --io xdp -w 4M --token-file {token}{way}");
        let Some(lost) = measure(&pair, &flags) else {
            return;
        };
        let told = lost.document.to_string();
        assert!(told.contains("AF_XDP in copy mode"), "{told}");
    }
    let refused = pair.run(&format!("-u -t 1 -l 1473 --io xdp --token-file {token}"));
    refused.run().failed(2, &["1501 B would not fit"]);
}

/// Who has no token may take such frames and not ask for them.
#[test]
fn strangers_get_no_frames_past_the_sockets() {
    let _load = loading();
    let Some(pair) = Pair::up(&[]) else {
        return;
    };
    let _counted = measure(&pair, "-l 64 -b 10M --io xdp");
    let refused = pair.run("-u -t 1 -l 64 --io xdp -R");
    refused.run().failed(2, &["needs the agent's token"]);
}
