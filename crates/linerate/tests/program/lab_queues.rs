//! Receive queues of a lab's hosts: packets by queue, each flow mapped to its queue, none stopped.

use std::collections::BTreeSet;

use crate::common::{NamedLab, file, folder, json, loading, measured, skip};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Queues of each host.
const QUEUES: u64 = 4;
/// Flows of the test: all on one of four queues by chance once in 4^15 runs.
const FLOWS: usize = 16;

fn response(document: &Value, name: &str) -> Option<f64> {
    document["trials"][0]["responses"][name].as_f64()
}

#[test]
fn flows_are_mapped_to_the_queues_that_took_their_packets() {
    let _load = loading();
    let Some(lab) = NamedLab::up(&["--rate", "1gbit", "--queues", "4"]) else {
        return;
    };
    // Only whoever shows a token learns of a host's devices.
    let folder = folder();
    let token = file(&folder, "token", "0123456789abcdef0123456789abcdef\n");
    let serve = ["serve", "--token-file", token.as_str()];
    let mut agent = lab.exec_first("server", &serve).start();
    agent.wait_for("serving on");
    let server = lab.address("server");
    let flows = FLOWS.to_string();
    let run = || {
        let words = ["run", &server, "-J", "-t", "2", "-P", &flows, "-C", "reno"];
        let call = |_| {
            let call = lab.exec_first("client1", &words);
            call.words(&["--token-file", &token])
        };
        measured(call).map(|said| json(&said.out))
    };
    // A queue that was full once must go on, so that the second run is as good as the first.
    let both = run().zip(run());
    agent.signal(Signal::SIGTERM);
    agent.end();
    let Some((first, document)) = both else {
        return;
    };
    assert_eq!(
        first["trials"][0]["invalid"],
        Value::Null,
        "{}",
        first["trials"][0]["flags"]
    );
    if response(&document, "rx_queues") == Some(1.0) {
        skip("this kernel lets nobody here number the queues of veth");
        return;
    }
    assert_eq!(response(&document, "rx_queues"), Some(QUEUES as f64));
    let packets = response(&document, "rx_queue_packets_per_s").expect("counted by queue");
    let fullest = response(&document, "rx_queue_most_packets_per_s").expect("counted by queue");
    let imbalance = response(&document, "rx_queue_imbalance").expect("several queues");
    // The index is the fullest over the mean, whatever the load was.
    assert!(
        (imbalance - fullest * QUEUES as f64 / packets).abs() < 1e-6,
        "{imbalance}"
    );
    assert!(
        imbalance < QUEUES as f64 * 0.999,
        "all packets on one queue"
    );
    let segments = response(&document, "data_segments_per_s").expect("TCP tells");
    // What TCP sent came by the queues: none is lost between them, few are anybody else's.
    assert!(
        packets > 0.7 * segments,
        "{packets} packets of {segments} segments"
    );
    let flows = document["trials"][0]["flows"].as_array().expect("flows");
    let at_server = flows.iter().filter(|flow| flow["end"] == "server");
    let queues: Vec<String> = at_server
        .map(|flow| {
            assert!(flow["incoming"]["cpu"].is_u64(), "{flow}");
            // veth has no interrupt.
            assert!(flow["incoming"]["irq"].is_null(), "{flow}");
            let queue = flow["incoming"]["queue"].as_str();
            queue.expect("the queue of its NAPI").to_owned()
        })
        .collect();
    assert_eq!(queues.len(), FLOWS);
    let known: BTreeSet<String> = (0..QUEUES).map(|at| format!("eth0 rx {at}")).collect();
    let used: BTreeSet<String> = queues.iter().cloned().collect();
    assert!(used.len() > 1 && used.is_subset(&known), "{used:?}");
    // What the analysis counts is what the flows say.
    let count = |queue: &String| queues.iter().filter(|other| *other == queue).count();
    let most = used.iter().map(count).max().unwrap_or(0);
    let expected = (most as u64 * QUEUES) as f64 / FLOWS as f64;
    assert_eq!(
        response(&document, "rx_queue_flows_imbalance"),
        Some(expected)
    );
    assert!(response(&document, "rx_queue_imbalance_by_chance_most") > Some(1.0));
}
