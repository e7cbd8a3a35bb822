//! Exchanges that wait for something which more of them at a time do not take away.

use linerate_model::manner::WaitBy;

use crate::as_single;
use crate::prelude::*;

/// One trial.
fn recorded(workload: Workload, truth: &Truth) -> MadeRun {
    once(None, workload, truth)
}

/// Transactions of `connections` that always have one under way, as long as each of `trips_ns` has its part of them: CPUs
/// have time.
fn under_way(connections: u32, trips_ns: &[u64]) -> Truth {
    let mean_ns = trips_ns.iter().sum::<u64>() as f64 / trips_ns.len() as f64;
    let each = f64::from(connections) * WINDOW_NS as f64 / mean_ns / trips_ns.len() as f64;
    like!(Truth::usual(); latency: trips_ns.iter().map(|ns| (*ns, each as u64)).collect(),
        rtt_ns: mean_ns as i64, min_rtt_ns: Some(10_000), delayed_acks: Some(0.0), timeouts: Some(0.0),
        cpus: 0.1, worker_share: 0.02, worker_wait_share: 0.001)
}

fn connected(connections: u32) -> Workload {
    like!(rr(200); connections)
}

#[test]
fn exchanges_that_fill_a_path_are_told_by_a_queue_that_is_never_empty() {
    let filling = under_way(40, &[1_500_000, 1_510_000, 1_520_000]);
    let full = recorded(connected(40), &filling);
    let mut changes = recorded(connected(40), &filling);
    changes.set(Metric::AppTransactions, |it| {
        let is_late = it.at_ns > WINDOW_NS as i64 / 2;
        it.value + if is_late { 40 } else { 0 }
    });
    worlds! {
        /// 266 B of a frame as queueing disciplines count it.
        PathRate: full, claim "500/s of these exchanges (56.4 Mbit/s with headers, one way) pass it, and 40 of 40",
            next "`-P 20`: where the rate stays, the path is full";
        /// The rate is another in the second half: something else passes.
        RoundTrip: changes, claim "A queue on the path",
            next "where the rate stays, the path or the server carries no more";
    }
}

#[test]
fn what_waits_behind_a_queue_is_not_helped_by_more_at_a_time() {
    let waits = |connections: u32, trips_ns: &[u64]| {
        recorded(connected(connections), &under_way(connections, trips_ns))
    };
    let full = under_way(40, &[1_500_000]);
    let behind = |rtt_ns: i64| {
        let truth = like!(under_way(320, &[26_200_000]); rtt_ns);
        recorded(connected(320), &truth)
    };
    let one = under_way(1, &[15_000_000]);
    worlds! {
        // What waits on no full path is not taken for one.
        /// Delay that varies by itself, from next to nothing on.
        RoundTrip: waits(40, &[100_000, 800_000, 1_500_000, 2_200_000, 2_900_000]), no_next "in flight";
        /// One flow in ten goes another way, which is short.
        RoundTrip: waits(10, &[500_000, 2_000_000, 2_000_000, 2_000_000, 2_000_000]), no_next "in flight";
        /// Too few to be what waits.
        RoundTrip: waits(2, &[1_500_000]), no_next "in flight";
        RoundTrip: waits(1, &[1_500_000]), no_next "in flight";
        /// The path is long, and hardly longer under load.
        RoundTrip: recorded(connected(40), &like!(under_way(40, &[2_000_000]); min_rtt_ns: Some(1_200_000)));
        /// The queue is before a worker that has no time left, or before CPUs that tasks wait for.
        not PathRate: recorded(connected(40), &like!(full; worker_share: 0.97, cpus: 1.0));
        not PathRate: recorded(connected(40), &like!(full; pressure_share: Some(0.8)));

        // A rest behind a queue is not the application.
        /// 320 requests fill a path; of what waits TCP sends some again, and its round trip is a part of the whole.
        RoundTrip: behind(12_600_000);
        Application: behind(200_000);

        // One request behind a queue is not told to bring many.
        RoundTrip: recorded(connected(1), &one), claim "A queue on the path", next "`-P 2`";
        /// Nothing waits: more at a time use the path.
        RoundTrip: recorded(connected(1), &like!(one; min_rtt_ns: Some(14_900_000))), claim "The path",
            next "in flight: `--in-flight 8`";

    }
}

#[test]
fn losses_of_one_instant_explain_no_rate() {
    let mut large = connected(1);
    if let Traffic::Rr { request_bytes, .. } = &mut large.traffic {
        *request_bytes = Bytes(1 << 20);
    }
    // 13 messages in a second, and one segment in a thousand is lost: seven in all.
    let lost = |parts: [f64; 11]| {
        let truth = like!(under_way(1, &[76_900_000]); min_rtt_ns: Some(20 * MS), rtt_ns: 20_400_000,
            lost_share: 0.001, loss_parts: parts.to_vec());
        recorded(large.clone(), &truth)
    };
    worlds! {
        RoundTrip: lost([1.0; 11]), begins "Carrying messages of this size", claim "over a path that loses segments";
        RoundTrip: lost([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            begins "Carrying messages of this size", no "over a path that loses segments";
    }
}

#[test]
fn what_nagle_holds_is_let_go_by_its_option() {
    let several = |nagle: Option<bool>, bytes: u64, mean_ns: u64| {
        let workload = like!(rr(bytes); manner.in_flight: 8, options.nagle: nagle);
        let truth = like!(under_way(8, &[mean_ns]); rtt_ns: 12_100_000, min_rtt_ns: Some(12 * MS));
        recorded(workload, &truth)
    };
    let held = like!(under_way(1, &[16_500_000]); rtt_ns: 8_200_000, min_rtt_ns: Some(8 * MS));
    worlds! {
        // Nagle holds small messages of which several are under way.
        RoundTrip: several(None, 300, 36_500_000), next "`-N`",
            claim "three times TCP's shortest, twice for what Nagle's algorithm holds";
        /// With it off one round trip is enough, and more at a time help.
        RoundTrip: several(Some(false), 300, 12_300_000), claim "12 ms of path (TCP's shortest)",
            next "`--in-flight 64`";
        /// Off, of full segments, or where it is not three, something else waits.
        none: several(Some(false), 300, 36_500_000);
        none: several(None, 3000, 36_500_000);
        none: several(None, 300, 29_000_000);

        // A piece that nagle holds is let go by its option.
        RoundTrip: recorded(written_in(connected(1), 4), &held), claim "once for what Nagle", next "`-N`";

    }
}

#[test]
fn a_worker_that_spins_for_one_request_is_not_saturated() {
    let spins = |connections: u32| {
        let truth = like!(under_way(connections, &[7000]); rtt_ns: 5000, min_rtt_ns: Some(4000), worker_share: 0.99,
            cpus: 1.0);
        recorded(
            like!(connected(connections); manner.wait: WaitBy::Spin),
            &truth,
        )
    };
    worlds! {
        RoundTrip: spins(1), claim "a mean round trip of 7 µs is 4 µs in both kernels (TCP's shortest)";
    }
    let is_flagged = |run: &MadeRun| !as_single(&run.recording).trials[0].flags.is_empty();
    assert!(!is_flagged(&spins(1)));
    // Of many it may be what limits them.
    assert!(is_flagged(&spins(64)));
}

#[test]
fn datagrams_take_the_path_that_the_control_connection_sees() {
    let exchanged = |exchange_ns: u64, control: Control| {
        let workload = like!(connected(1); manner.transport: Transport::Udp);
        let mut run = recorded(workload, &under_way(1, &[20_500_000]));
        for host in &mut run.recording.document.hosts {
            match host.part {
                HostPart::Server => host.clock.uncertainty_ns = exchange_ns / 2,
                HostPart::Client => host.control = Some(control),
            }
        }
        run.keep(|sample| !sample.metric.name().starts_with("tcp_"));
        run
    };
    worlds! {
        RoundTrip: exchanged(20_100_000, Control::InProcess), claim "The path limits the rate to 48/s";
        /// The host is near, or who controls is somewhere else.
        RoundTrip: exchanged(100_000, Control::InProcess), claim "that none of this explains";
        RoundTrip: exchanged(20_100_000, Control::Tls), claim "that none of this explains";
    }
}
