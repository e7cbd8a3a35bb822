//! What holds a stream, over paths whose rate nobody told: neighbours that TCP_INFO shows alike, told
//! apart by what differs between them, and each beside a healthy counterpart.

use linerate_model::host::CPU_QUOTA_VISIBLE;
use linerate_model::sample::QdiscId;
use linerate_model::workload::Group;

use crate::prelude::*;
use crate::worlds::number;

/// What an agreement on window scaling looks like.
const SCALED: Option<&str> = Some("timestamps, SACK, window scaling");
const UNSCALED: Option<&str> = Some("timestamps, SACK");

/// Always sending over a path of 20 ms, `bps` of which is in flight for `rtt_ns`.
fn sending(bps: f64, rtt_ns: i64) -> Truth {
    Truth::sending(bps, rtt_ns, 20 * MS)
}

/// The number of the flow that a sample is of.
fn number_of(sample: &TrialSample) -> usize {
    match sample.subject {
        Subject::Flow(FlowId(flow), _) => flow as usize,
        _ => unreachable!("TCP's metrics are of flows"),
    }
}

/// A rate that was asked for.
fn asked(rate_bps: u64) -> Workload {
    like!(stream(); manner.rate_bps: Some(rate_bps))
}

/// A socket buffer that was asked for.
fn buffered(bytes: u64) -> Workload {
    like!(stream(); options.socket_buffer: Some(Bytes(bytes)))
}

fn qdisc(device: &str, id: u32) -> Subject {
    Subject::Qdisc(device.to_owned(), QdiscId(id))
}

#[test]
fn queues_are_told_from_ways_and_from_windows() {
    let shaper = sending(95e6, 100 * MS);
    let rtt_ns = (f64::from(3 << 20) * 8e9 / 95e6) as i64;
    let lossy = |elasticity: f64| {
        like!(Truth::sending(5.2e6, 22 * MS + MS / 2, 20 * MS); lost_share: 0.01,
        variation: 0.25, swings: Some((0.3, elasticity)))
    };
    let far = |rtt_ns: i64| Truth::sending(95.4e6, rtt_ns, 150 * MS);
    let window = |rtt_ns: i64| like!(far(rtt_ns); rwnd_share: 1.0, window_bytes: 2_000_000);
    worlds! {
        // A deep queue without loss is a full path.
        /// A: a shaper of 100 Mbit/s, told by nobody.
        PathRate: &shaper, "100 Mbit/s Ethernet", "80 ms", no "SO_RCVBUF", no "dropped";
        /// A rate that is no Ethernet's is told as it is.
        PathRate: sending(37e6, 100 * MS), "Mbit/s with headers";
        /// The same without a queue: nothing is known to hold it.
        none: like!(shaper; rtt_ns: 20 * MS, busy_share: 0.5);

        // A window that is full behind a queue is not the limit.
        /// B: the queue holds the whole window of 3 MiB.
        PathRate: like!(sending(95e6, rtt_ns); rwnd_share: 1.0), "100 Mbit/s Ethernet";
        /// The same window at the shortest round trip is one.
        ReceiverWindow: like!(sending(f64::from(3 << 20) * 8.0 / 0.0204, 20 * MS + MS / 2); rwnd_share: 1.0),
            "no queue on the path";

        // A few segments on a slow line are no queue of their own.
        /// 5.2 of 20 Mbit/s: one segment in a hundred is lost, and each of ten in flight takes 0.6 ms on the line.
        CongestionWindow: lossy(0.0), "which loss keeps small";
        none: lossy(0.6);

        // A fast path is not judged by ratios of round trips.
        /// As on a free pair of veth with bbr: 17 times the shortest round trip is the scheduler's.
        none: like!(sending(11e9, 170_000); congestion: Some("bbr"), pacing_bps: Some(25e9),
            min_rtt_ns: Some(10_000), delivery_bps: Some(17.6e9), lost_share: 0.01, spurious_share: 1.0, cwnd: 900,
            worker_share: 0.9);
        /// A shaper on such a path has a queue of its own.
        PathRate: like!(sending(95.6e6, 3_800_000); min_rtt_ns: Some(11_000)), "100 Mbit/s Ethernet";

        // A far path with a tenth of queue is not said to be free.
        CongestionWindow: like!(far(152 * MS); cwnd: 1359), "Next to nothing was lost";
        none: like!(far(166 * MS); cwnd: 1359);
        ReceiverWindow: window(152 * MS);
        none: window(168 * MS);

    }
}

/// A stream of each of two clients.
fn near_and_far() -> Workload {
    like!(stream(); connections: 2, clients: 2)
}

#[test]
fn clients_at_different_distances_are_no_queue() {
    let queued =
        |truth: &Truth| outcomes(&run(near_and_far(), truth).recording)[0].value(name::QUEUED);
    let idle = like!(Truth::sending(95e6, MS / 5, MS / 5); distances: vec![100.0], busy_share: 0.5, cwnd: 900);
    let full = like!(Truth::sending(95e6, 40 * MS + MS / 5, MS / 5); distances: vec![100.0]);
    assert_eq!(queued(&idle), Some(0.0));
    assert_eq!(queued(&full), Some(1.0));
    worlds! {
        /// 0.2 and 20 ms, and nothing waits anywhere.
        none: (near_and_far(), idle);
        /// A window that is full at both distances is one, by what both carry: 64 KiB in 2 and in 20 ms.
        ReceiverWindow: (near_and_far(), like!(Truth::sending(65_536.0 * 8.0 * (500.0 + 50.0), 2 * MS, 2 * MS);
            distances: vec![10.0], window_bytes: 65_536, rwnd_share: 0.98, agreed: SCALED));
        /// 40 ms wait before the path of both.
        PathRate: (near_and_far(), full), claim "(40 ms) wait";
    }
}

#[test]
fn loss_with_a_queue_and_without_are_told_apart() {
    let random = like!(sending(12.9e6, 20 * MS); lost_share: 0.003);
    let overtaken = like!(random; spurious_share: 1.0, cwnd: 200);
    let told_by_host = like!(overtaken; spurious_share: 0.0, twice: Some(12.9e6 / 8.0 / 1448.0 * 0.003),
        agreed: Some("timestamps, window scaling"));
    worlds! {
        /// C: a shallow queue that overflows.
        PathRate: like!(sending(95e6, 28 * MS); lost_share: 0.003), "overflows", "segments per trial were lost";
        /// As deep a queue that lost 3 of 80 000 segments: a bad cable does that, too.
        PathRate: like!(sending(80_000.0 * 1448.0 * 8.0, 28 * MS); lost_share: 3.0 / 80_000.0), no "overflows";
        /// D: 0.3 % are lost at the shortest round trip: 12.9 Mbit/s by Mathis.
        CongestionWindow: &random, "loss keeps small", "no queue stood for long";
        /// The same rate where as many segments were marked instead: nothing was lost, and nobody is to look for it.
        CongestionWindow: like!(sending(12.9e6, 20 * MS); marked_share: 0.003),
            "congestion marks (ECN) keep small", "marks segments before";
        /// Marks that are far too rare to explain the rate.
        none: like!(sending(1e6, 20 * MS); marked_share: 0.003, cwnd: 400);
        /// What was sent again had arrived: segments overtook each other, and nothing was lost.
        none: &overtaken;
        /// The same without SACK, where the receiver's host alone counts what came twice.
        none: &told_by_host;
        /// With it, what the host counts is of other connections.
        CongestionWindow: like!(told_by_host; agreed: SCALED, cwnd: random.cwnd), "loss keeps small";
        /// Loss that is far too rare to explain the rate.
        none: like!(sending(1e6, 20 * MS); lost_share: 0.003, cwnd: 400);
    }
}

/// 10 of 1500 segments a trial are lost, in these tenths of the window.
fn lost(loss_parts: &[f64]) -> Truth {
    let truth = sending(15e3 * 1448.0 * 8.0 / 10.0, 20 * MS);
    like!(truth; lost_share: 0.0067, loss_parts: loss_parts.to_vec())
}

/// A wire that damages some frames.
const BY_CHANCE: [f64; 10] = [1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 0.0, 3.0, 1.0, 1.0];
/// A policer takes many at once.
const AT_ONCE: [f64; 10] = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];

#[test]
fn what_loses_is_told_by_how_losses_lie() {
    let four = like!(stream(); connections: 4);
    let of_four =
        |truth: Truth| like!(truth; throughput_bps: 4.0 * truth.throughput_bps, variation: 0.1);
    worlds! {
        CongestionWindow: lost(&BY_CHANCE), why "independently of each other", no "in bursts",
            no "random loss and a queue too short to be seen look like this";
        CongestionWindow: lost(&AT_ONCE), why "in bursts", no "independently of each other",
            no "random loss and a queue too short to be seen look like this";
        /// So few, or a sawtooth: neither.
        CongestionWindow: like!(lost(&[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]); lost_share: 0.0027),
            why "random loss and a queue too short to be seen look like this", no "independently of each other",
            no "in bursts";
        CongestionWindow: lost(&[1.0; 10]), why "random loss and a queue too short to be seen look like this",
            no "independently of each other", no "in bursts";
        /// Losses of several flows hide a sawtooth, but not bursts.
        CongestionWindow: (&four, of_four(lost(&BY_CHANCE))), no "independently of each other", no "in bursts",
            why "random loss and a queue too short to be seen look like this";
        CongestionWindow: (&four, of_four(lost(&AT_ONCE))), why "in bursts", no "independently of each other",
            no "random loss and a queue too short to be seen look like this";
    }
}

#[test]
fn what_to_do_about_loss_is_told_by_how_losses_lie() {
    worlds! {
        CongestionWindow: lost(&BY_CHANCE), no_next "--fq-rate";
        /// Half of 17.4 Mbit/s.
        CongestionWindow: lost(&[1.0; 10]), next "--fq-rate 8.7M";
        CongestionWindow: lost(&AT_ONCE), next "--fq-rate 8.7M";
    }
    // The summary says the same.
    for loss_parts in [BY_CHANCE, [1.0; 10], AT_ONCE] {
        let made = run(stream(), &lost(&loss_parts));
        let single = crate::as_single(&made.recording);
        assert_eq!(single.summary.next, single.next);
        assert_eq!(single.summary.limiter, Some(Limiter::CongestionWindow));
    }
}

#[test]
fn why_a_window_is_small_is_told() {
    // E: 64 KiB less one byte in 20 ms, since scaling is off.
    let truth = like!(sending(26.2e6, 20 * MS); window_bytes: 65_535, rwnd_share: 0.97);
    let mut by_fact = run(stream(), &truth);
    by_fact.both_tell("sysctl.net.ipv4.tcp_window_scaling", number(0.0));
    worlds! {
        ReceiverWindow: by_fact, why "tcp_window_scaling", why "cannot help";
        ReceiverWindow: like!(truth; agreed: UNSCALED), why "cannot help";
        /// With scaling, and a buffer that was set, the buffer is why.
        ReceiverWindow: (buffered(65_535), like!(truth; agreed: SCALED)), why "SO_RCVBUF was set";
    }
}

#[test]
fn a_window_is_held_against_the_limit_of_its_own_host() {
    // 4 MiB in each 20 ms; the two hosts' buffers may grow to 4 and to 64 MiB.
    let truth = like!(sending(f64::from(4 << 20) * 8.0 / 0.0201, 20 * MS + MS / 10); window_bytes: 4 << 20,
        rwnd_share: 0.97);
    let world = |direction, limits: &[(&str, &str)]| {
        let mut run = run(Workload::stream(direction), &truth);
        for (host, most) in limits {
            let three = text(&format!("4096 131072 {most}"));
            run.tell(host, "sysctl.net.ipv4.tcp_rmem", three);
        }
        run
    };
    let (small, large) = ("4194304", "67108864");
    let at_server = [("server", small), ("client1", large)];
    let at_client = [("server", large), ("client1", small)];
    let (to_server, from_server) = (Direction::ToServer, Direction::FromServer);
    worlds! {
        ReceiverWindow: world(to_server, &at_server), why "third value of net.ipv4.tcp_rmem, 4 MiB";
        ReceiverWindow: world(to_server, &at_client), why "below what autotuning may reach";
        ReceiverWindow: world(from_server, &at_client), why "third value of net.ipv4.tcp_rmem, 4 MiB";
        ReceiverWindow: world(from_server, &at_server), why "below what autotuning may reach";
        /// Nothing is known of the receiver.
        ReceiverWindow: world(to_server, &at_client[1..]), why "tcp_rmem was not read";
    }
}

#[test]
fn readers_that_do_not_read_are_named() {
    let behind = like!(sending(12.9e6, 40 * MS); rwnd_share: 1.0, window_bytes: 17_000, unread_bytes: 47_000);
    let stopped =
        like!(sending(40e6, 20 * MS); closed_share: 0.6, rwnd_share: 0.6, unread_bytes: 100_000);
    let busy = like!(stopped; cpus: 1.98, others_cpus: 0.95, others_kernel_cpus: 0.95, worker_share: 0.08,
        worker_wait_share: 0.4, unsent_bytes: Some(0));
    let starved = like!(busy; worker_wait_share: 0.7);
    let unread = |rwnd_share: f64| {
        let mut run = run(stream(), &like!(sending(95e6, 40 * MS); rwnd_share));
        run.keep(|sample| sample.metric != Metric::AppBytesReceived);
        run
    };
    worlds! {
        // A reader that is behind is named.
        /// F: 47 of 64 KiB wait unread; the round trip holds the reader's time.
        SlowReader: &behind, "wait unread", "faster reader";
        /// A prompt reader over the same round trips: the path.
        PathRate: like!(behind; unread_bytes: 0, window_bytes: 64_000);

        // A reader that was stopped is named by its closed window.
        SlowReader: &stopped, "read nothing for 60 %", "was stopped";
        /// From before the window on, so that nothing counts and no trial is valid; two segments were sent again.
        SlowReader: like!(sending(0.0, 20 * MS); throughput_bps: 0.0, in_vain: 4.0, closed_share: 1.0,
            rwnd_share: 1.0, unread_bytes: 100_000, invalid: Some("a flow moved nothing".to_owned())),
            "No trial of it is valid";
        /// The receiver has nothing unread: the window is a proxy's.
        not SlowReader: like!(stopped; unread_bytes: 0);
        /// Workers wait for a CPU meanwhile, but nobody as long as the reader stood.
        SlowReader: &busy, "read nothing for 60 %", "was stopped";
        /// A reader without a CPU does not read either, and is no slow one.
        OtherPrograms: &starved;
        /// Whoever else ran: it waited for a CPU, and for nothing else, however long the window was closed.
        not SlowReader: like!(starved; closed_share: 0.7, rwnd_share: 0.7, worker_wait_share: 0.85,
            others_cpus: 0.0, others_kernel_cpus: 0.0, throttled: Some(0.0));
        /// For a quarter of the time: the path has the rest.
        not SlowReader: like!(sending(95e6, 100 * MS); closed_share: 0.3, rwnd_share: 0.3,
            unread_bytes: 100_000, variation: 0.02, delivered_variation: None);

        // Where nobody read the receiver it may be a slow reader.
        /// A queue that the sender saw.
        PathRate: unread(0.0), why "the sender keeps up";
        none: unread(0.9);

    }
}

#[test]
fn a_path_that_carries_nothing_is_named_from_trials_that_may_not_be_averaged() {
    let truth = like!(sending(0.0, 20 * MS); in_vain: 8.0, invalid: Some("a flow moved nothing".to_owned()));
    worlds! {
        /// G: eight segments of 1448 B, half of them sent again.
        NothingArrives: &truth, "4 segments per trial", "3 of 3 trials", "1448 B", "MTU";
        NothingArrives: like!(truth; invalid: None);
        /// Nothing was asked to move, and nothing was sent again.
        none: like!(truth; in_vain: 0.0);
    }
    // Requests of a byte, with pauses: no larger segment was sent than those of the handshake.
    let paced = like!(rr(1); manner.requests_per_s: Some(1));
    let requests = like!(truth; latency: vec![(20 * MS as u64, 0)], timeouts: Some(4.0));
    let small = named(&run(paced, &requests), Limiter::NothingArrives);
    let text = format!("{} {}", small.explanation, small.action.unwrap_or_default());
    says!(text; no "1448 B", no "MTU", "firewall");
}

#[test]
fn algorithms_that_pace_hold_themselves_or_track_a_bottleneck() {
    let paced = |rtt_ns| like!(sending(19.3e6, rtt_ns); congestion: Some("bbr"), pacing_bps: Some(19.3e6), cwnd: 80);
    let itself = paced(20 * MS + MS / 5);
    let probing = like!(itself; rtt_ns: 23 * MS);
    // 0.1 ms, where the best of short bursts is far above the mean; the second is 20 ms away.
    let bursts = |distances: Vec<f64>| {
        let truth = like!(Truth::sending(16e9, MS / 10, MS / 10); congestion: Some("bbr"), pacing_bps: Some(40e9),
            cwnd: 4000, unacked: 800, distances);
        (near_and_far(), truth)
    };
    worlds! {
        // An algorithm that paces tracks a bottleneck or holds itself.
        /// bbr keeps the round trip behind a shaper at 1.3 of the shortest; a cap keeps it at 1.01.
        PathRate: paced(26 * MS);
        Pacing: &itself, "bbr";
        /// A policer of 50 Mbit/s drops what probing sends beyond it, and keeps no queue.
        none: like!(itself; throughput_bps: 47.5e6, pacing_bps: Some(53.3e6), lost_share: 0.079);
        /// Probing fills a queue for an eighth of the time, which damaged frames keep short: as steady, that is a line's.
        PathRate: &probing, "The queue is short against the round trip";
        none: like!(probing; variation: 0.05);

        // Bursts of one rack are not those of a far client.
        Pacing: bursts(vec![1.0]);
        none: bursts(vec![200.0]);

    }
}

#[test]
fn a_full_path_is_known_by_its_queue_or_by_its_share_of_a_link() {
    let link = |bps: f64, n: usize| trials(Some(1e9), stream(), &vec![sending(bps, 40 * MS); n]);
    let full = like!(sending(18.8e6, 50 * MS); variation: 0.43, delivered_variation: Some(0.01), lost_share: 0.003);
    let one_sided = |delivered_variation| {
        let truth = like!(sending(0.9e6, 400 * MS); delivered_variation: Some(delivered_variation));
        let mut run = once(None, stream(), &truth);
        run.keep(|sample| &*sample.host.0 == "client1");
        run
    };
    let behind =
        |rtt_ns: i64, variation: f64| like!(Truth::sending(94.25e6, rtt_ns, 59 * MS); variation);
    let grows = |elasticity: f64| like!(behind(63 * MS, 0.12); swings: Some((0.08, elasticity)));
    worlds! {
        // One run at nine tenths of a link is a full path of its own.
        PathRate: link(861e6, 1);
        PathRate: link(861e6, 3);
        LinkRate: link(925e6, 1);

        // A lost segment does not make the rate of a full path vary.
        /// 20 Mbit/s, 100 ms and a queue that overflows: behind a hole the receiver's count in order waits.
        PathRate: &full, "overflows";
        /// What is delivered varies as much, or nothing was lost: that is no full path.
        none: like!(full; delivered_variation: Some(0.35));
        none: like!(full; lost_share: 0.0);
        /// Nobody read the receiving host: ACKs that wait on their way back are told by the sender.
        PathRate: one_sided(0.02);
        none: one_sided(0.13);

        // A steady rate behind a little more delay is no clamped window.
        /// 94 Mbit/s over 59 ms, and 4.5 ms wait: others fill the way of the ACKs, and the path has just become behind.
        none: behind(63 * MS + MS / 2, 0.027);
        /// A window that a route clamps is steady at the shortest round trip, and one that grows is not steady.
        CongestionWindow: behind(59 * MS + MS / 2, 0.01),
            "still growing, from its start or after an earlier loss, or is clamped";
        CongestionWindow: behind(63 * MS, 0.12),
            "still growing, from its start or after an earlier loss, or is clamped";
        /// One that grows by 16 % is not held by it where the round trip grows by as much.
        none: grows(0.5);
        CongestionWindow: grows(0.05), "still growing";

    }
}

#[test]
fn buffers_and_writers_that_hold_a_sender_are_named() {
    let missed = like!(sending(24.8e6, 20 * MS + MS / 5); sndbuf_share: 0.19, unsent_bytes: Some(0), cwnd: 200);
    let tuned = |in_flight_bytes: f64| {
        let truth = like!(sending(in_flight_bytes * 8e9 / 20e6, 20 * MS); sndbuf_share: 0.0, cwnd: 3000,
            unsent_bytes: Some(0));
        let mut run = run(stream(), &truth);
        run.both_tell("sysctl.net.ipv4.tcp_wmem", text("4096 16384 65536"));
        run
    };
    let pauses = like!(sending(8.7e6, 20 * MS); busy_share: 0.4, unsent_bytes: Some(0), delivery_bps: Some(24e6),
        cwnd: 100);
    let small =
        like!(sending(8.0e6, 20 * MS); window_bytes: 20_480, rwnd_share: 0.08, sndbuf_share: 0.4);
    let buffer = like!(sending(50e6, 20 * MS); sndbuf_share: 0.8);
    let held = like!(Truth::sending(166e6, 140 * MS, 110 * MS); sndbuf_share: 0.6, variation: 0.1);
    worlds! {
        // A send buffer that the clock missed is named.
        /// 32 KiB were asked for, twice that is in flight, and nothing waits: the clock ran a fifth of the time.
        SendBuffer: (buffered(32_768), &missed), "32 KiB", "waited to be sent";
        /// Behind a queue the same flight is the path's.
        PathRate: (buffered(32_768), like!(missed; rtt_ns: 30 * MS));
        /// Nobody set a buffer: nothing to hold it against.
        none: &missed;
        /// Tuned up to 64 KiB, of which a half is payload: twice that and one piece more are in flight. A megabyte is
        /// another matter.
        SendBuffer: tuned(131_000.0);
        none: tuned(1e6);

        // A writer that pauses is named.
        Application: &pauses, "60 %", "nothing to send";
        /// As much idle time without a burst between: not told apart.
        none: like!(pauses; delivery_bps: Some(9e6));

        // While the send buffer is full as well, the kernel counts the time at it alone.
        ReceiverWindow: (buffered(16_384), &small), "16 KiB";
        /// A window that grew by itself is not waited for.
        not ReceiverWindow: &small;

        // What is in flight twice is a buffer's doing only while the rate stays.
        SendBuffer: &buffer;
        not SendBuffer: like!(buffer; halves: 0.3);

        // A path is not full while the send buffer holds the sender.
        /// A way of 110 ms that radio makes 30 ms longer: nothing is lost, and the flight does not vary.
        not PathRate: &held;
        PathRate: like!(held; sndbuf_share: 0.1);

    }
}

#[test]
fn drops_of_the_own_host_count_where_they_hold_the_rate() {
    let twelve = |bps: f64| like!(sending(bps, 20 * MS); qdisc_drops: 12.0);
    // 40 of 259 000 segments: at 0.1 ms cubic makes 11 Gbit/s of it.
    let drops = |bps: f64, timeouts: i64| {
        let truth =
            like!(Truth::sending(bps, MS / 10, MS / 10); qdisc_drops: 1.5e-4 * bps / 8.0 / 1448.0);
        let mut run = run(stream(), &truth);
        let flow = Subject::Flow(FlowId(0), End::Client);
        run.grow("client1", &flow, Metric::TcpTimeouts, timeouts);
        run
    };
    worlds! {
        // Drops of the own host count for tcp too.
        HostDrops: like!(sending(60e6, 20 * MS); qdisc_drops: 104.0, cwnd: 100), "packets per trial", "qdisc";
        /// Behind a full path its queue is where that path drops.
        PathRate: like!(sending(95e6, 60 * MS); qdisc_drops: 104.0);

        // A few drops among many segments are not the limit.
        /// Nothing is sent again: 12 of 1000 segments, and 12 of 1.7 million.
        HostDrops: twelve(12e6);
        not HostDrops: twelve(20e9);

        // Drops that allow far more than came do not limit.
        none: drops(3e9, 0);
        HostDrops: drops(9e9, 0);
        /// What ends in timeouts costs far more than the formula has.
        HostDrops: drops(3e9, 3);

    }
}

#[test]
fn what_a_machine_drops_counts_once_whoever_of_its_hosts_reads_it() {
    let dropped = |lab: bool| {
        let workload = like!(Workload::stream(Direction::FromServer); connections: 2, clients: 2);
        let mut run = once(Some(1e9), workload, &Truth::usual());
        for (host, last) in run.recording.document.hosts.iter_mut().zip(1..) {
            host.lab = lab;
            host.data_address = format!("10.0.0.{last}");
        }
        for client in ["client1", "client2"] {
            run.grow(client, &Subject::Cpu(0), Metric::SoftnetDropped, 100);
        }
        outcomes(&run.recording)[0].value(name::DROPPED_BACKLOG)
    };
    assert_eq!(dropped(false), Some(200.0));
    assert_eq!(dropped(true), Some(100.0));
}

#[test]
fn drops_of_other_devices_and_of_other_times_are_not_of_these_flows() {
    let unread = || {
        let mut run = run(stream(), &sending(60e6, 20 * MS));
        run.keep(|sample| sample.metric != Metric::QdiscDrops);
        run
    };
    let drops = |device: &str, of_trial: i64, in_window: i64| {
        let mut run = unread();
        if device != "eth0" {
            let beside = qdisc("eth0", 0x8002_0000);
            run.grow("client1", &beside, Metric::QdiscDrops, 0);
        }
        let own = qdisc(device, 0x8001_0000);
        run.grow("client1", &own, Metric::QdiscDrops, in_window);
        let before = [(-199_950_000, 7 - of_trial + in_window)];
        run.put("client1", &own, Metric::QdiscDrops, &before);
        run
    };
    let mut beside = run(stream(), &like!(sending(60e6, 20 * MS); qdisc_drops: 104.0));
    beside.grow("server", &Subject::Cpu(0), Metric::SoftnetDropped, 500);
    let mut lower = unread();
    let eth1 = qdisc("eth1", 0x8001_0000);
    lower.grow("client1", &eth1, Metric::QdiscDrops, 104);
    worlds! {
        /// The discipline of the flows' device, in the window.
        HostDrops: drops("eth0", 104, 104);
        /// Packets of others that a backlog drops do not become these flows' where nothing was lost.
        HostDrops: beside, claim "104 packets per trial were dropped by the sending host's qdisc";
        /// That of another device, or while the flows began.
        not HostDrops: drops("wlan0", 104, 104);
        not HostDrops: drops("eth0", 104, 0);
        /// A device that has none hands on to others.
        HostDrops: lower;
    }
}

#[test]
fn frames_that_nobody_handles_are_not_lost_segments() {
    // 18 segments are lost in the first half of a second; the device drops 15 frames then, or after it.
    let drops = |begin_ns: i64| {
        let mut run = run(stream(), &sending(12.9e6, 20 * MS));
        let eth0 = Subject::Link("eth0".to_owned());
        run.grow("client1", &eth0, Metric::LinkTxDropped, 0);
        run.set(Metric::TcpRetrans, |it| {
            (it.at_ns / 25_000_000).clamp(0, 18)
        });
        let readings = (-2..=11).map(|tenth| tenth * 100_000_000 + 50_000);
        let counted = |at_ns: i64| (at_ns, ((at_ns - begin_ns) / 20_000_000).clamp(0, 15));
        let readings: Vec<(i64, i64)> = readings.map(counted).collect();
        run.put("server", &eth0, Metric::LinkRxDropped, &readings);
        run
    };
    let counted = |begin_ns| outcomes(&drops(begin_ns).recording)[0].value(name::DROPPED_DEVICE);
    let of_each = [100_000_000, 620_000_000, 350_000_000].map(counted);
    assert_eq!(of_each, [15.0, 0.0, 0.0].map(Some));
    worlds! {
        HostDrops: drops(100_000_000);
        /// Half of them come when nothing is lost: so may the others.
        not HostDrops: drops(620_000_000);
        not HostDrops: drops(350_000_000);
    }
}

#[test]
fn what_a_backlog_drops_is_counted_once() {
    let mut run = run(stream(), &like!(sending(60e6, 20 * MS); lost_share: 0.01));
    let eth0 = Subject::Link("eth0".to_owned());
    run.grow("client1", &eth0, Metric::LinkTxDropped, 0);
    run.grow("server", &eth0, Metric::LinkRxDropped, 130);
    run.grow("server", &Subject::Cpu(0), Metric::SoftnetDropped, 100);
    let outcome = outcomes(&run.recording).remove(0);
    assert_eq!(outcome.value(name::DROPPED_BACKLOG), Some(100.0));
    assert_eq!(outcome.value(name::DROPPED_DEVICE), Some(30.0));
    // A VLAN does not count what the card below it drops.
    run.tell("server", "link.eth0.kind", text("vlan"));
    let outcome = outcomes(&run.recording).remove(0);
    assert_eq!(outcome.value(name::DROPPED_DEVICE), None);
}

#[test]
fn what_keeps_a_window_small_beside_its_buffer_is_told() {
    let truth = like!(sending(26.2e6, 20 * MS); window_bytes: 65_535, rwnd_share: 0.97);
    let action = |run: &MadeRun| {
        named(run, Limiter::ReceiverWindow)
            .action
            .unwrap_or_default()
    };
    // SYN cookies of a server, without the timestamps that keep the scale: always, or for some connections.
    let by_cookies = |cookies: f64, timestamps: f64, opened: Option<i64>| {
        let mut run = run(stream(), &like!(truth; agreed: Some("none")));
        let mut set = |name, value| run.tell("server", name, number(value));
        set("sysctl.net.ipv4.tcp_syncookies", cookies);
        set("sysctl.net.ipv4.tcp_timestamps", timestamps);
        if let Some(count) = opened {
            // Counters begin at 7.
            let metric = Metric::NetstatSyncookiesRecv;
            run.grow("server", &Subject::Host, metric, count - 7);
        }
        action(&run).contains("tcp_syncookies")
    };
    assert!(by_cookies(2.0, 0.0, None));
    assert!(by_cookies(1.0, 0.0, Some(3)));
    assert!(!by_cookies(1.0, 0.0, Some(0)));
    assert!(!by_cookies(0.0, 0.0, None));
    assert!(!by_cookies(2.0, 1.0, None));
    // The memory of all sockets: the kernel begins to take from them at 20 000 pages of 4 KiB.
    let with_memory = |pages: i64| {
        let mut run = run(stream(), &truth);
        let limits = text("10000 20000 30000");
        run.tell("server", "sysctl.net.ipv4.tcp_mem", limits);
        let trial = run.recording.trials[0].trial;
        for at_ns in [50_000, 1_000_050_000] {
            run.recording.samples.extend([TrialSample {
                trial,
                host: "server".into(),
                subject: Subject::Host,
                metric: Metric::MemoryTcp,
                at_ns,
                value: pages * 4096,
            }]);
        }
        action(&run)
    };
    says!(with_memory(20_001); "net.ipv4.tcp_mem", no "tcp_rmem");
    says!(with_memory(9_999); no "net.ipv4.tcp_mem");
}

#[test]
fn a_shaper_of_the_receiving_host_is_no_slow_hop() {
    // 94.1 Mbit/s through a queue, all of which passes an ifb of the receiving host, or a tenth of it.
    let shaped = |bps: i64, overlimits: i64| {
        let truth = like!(sending(94.1e6, 20 * MS); min_rtt_ns: Some(2 * MS));
        let mut run = run(stream(), &truth);
        run.tell("server", "link.ifb0.kind", text("ifb"));
        run.tell("server", "link.ifb0.qdisc", text("tbf"));
        let qdisc = qdisc("ifb0", 0x8001_0000);
        run.grow("server", &qdisc, Metric::QdiscTxBytes, bps / 8);
        run.grow("server", &qdisc, Metric::QdiscOverlimits, overlimits);
        run
    };
    worlds! {
        PathRate: shaped(98_400_000, 5_000), claim "ifb0 (tbf)", action "tc -s qdisc show dev ifb0";
    }
    for (bps, overlimits) in [(9_840_000, 5_000), (98_400_000, 0)] {
        let path = named(&shaped(bps, overlimits), Limiter::PathRate);
        says!(path.claim; no "ifb0");
        says!(path.action.unwrap_or_default(); no "ifb0");
    }
}

#[test]
fn what_a_receiving_host_does_not_deliver_is_lost_in_it() {
    // 6 % of what comes is sent again: the packet filter of the receiver, or something on the way, drops it.
    let filtered = |undelivered: i64| {
        let truth = like!(sending(20e6, 20 * MS); lost_share: 0.06, beside_bps: Some(3e6));
        let mut run = run(stream(), &truth);
        let lost = outcomes(&run.recording)[0].value(name::RETRANSMITTED);
        assert_eq!(lost.map(f64::round), Some(103.0));
        let mut count = |metric, packets| run.grow("server", &Subject::Host, metric, packets);
        count(Metric::SnmpIpInReceives, 2_000 + undelivered);
        count(Metric::SnmpIpInDelivers, 2_000);
        let dropped = outcomes(&run.recording)[0].value(name::DROPPED_RECEIVER_IP);
        assert_eq!(dropped, Some(undelivered as f64));
        run
    };
    worlds! {
        HostDrops: filtered(102), action "nft list ruleset";
        not HostDrops: filtered(0);
        /// Far more than these flows lost is somebody else's.
        not HostDrops: filtered(5_000);
    }
}

#[test]
fn a_message_to_either_side_of_the_middle_is_no_change() {
    let is_unsteady = |workload: Workload| {
        let mut run = run(workload, &sending(10e6, 20 * MS));
        // Messages of 128 KiB: five in the first half of a second, four in the other.
        run.change(|sample| {
            if let Metric::TcpBytesReceived | Metric::AppBytesReceived = sample.metric {
                let messages = (9.5 * sample.at_ns.max(0) as f64 / 1e9 + 0.4).floor();
                sample.value = messages as i64 * 131_072;
            }
        });
        let outcome = outcomes(&run.recording).remove(0);
        assert_eq!(outcome.value(name::HALVES), Some(0.8));
        let mut flags = outcome.flags.iter();
        flags.any(|flag| matches!(flag, TrialFlag::Unsteady { .. }))
    };
    assert!(!is_unsteady(asked(10_000_000)));
    assert!(is_unsteady(stream()));
}

#[test]
fn queues_that_are_not_in_use_are_none() {
    let mut run = run(stream(), &sending(60e6, 20 * MS));
    for queue in 0..64 {
        let subject = Subject::Queue("eth0".to_owned(), QueueKind::Rx, queue);
        let packets = if queue < 8 { 1000 } else { 0 };
        run.grow("server", &subject, Metric::QueueRxPackets, packets);
    }
    let of = |run: &MadeRun| {
        let outcome = outcomes(&run.recording).remove(0);
        [name::RX_QUEUES, name::RX_QUEUE_IMBALANCE].map(|name| outcome.value(name))
    };
    assert_eq!(of(&run), [Some(64.0), Some(8.0)]);
    run.tell("server", "link.eth0.rx_queues", number(8.0));
    assert_eq!(of(&run), [Some(8.0), Some(1.0)]);
}

#[test]
fn what_short_queues_drop_and_what_had_arrived_is_no_damage() {
    // 80 Mbit/s, 25 ms and room for 100 kB: four flows under reno meet a queue four readings of ten.
    let lossy = |short: bool| {
        let truth = like!(sending(17.8e6, 20 * MS + MS / 2); lost_share: 0.00118, variation: 0.06);
        let mut run = once(None, stream(), &truth);
        run.set(Metric::TcpRtt, |it| {
            let meets = short && it.at_ns / 100_000_000 % 5 < 2;
            if meets { 25 * MS } else { it.value }
        });
        run
    };
    // 0.3 % are lost of eight flows at the shortest round trip. Lost by chance, each flow varies for itself; where they
    // share a path that drops what is more, the sum does not.
    let flows = |connections: u32, variation: f64| {
        let truth = sending(12.9e6 * f64::from(connections), 20 * MS);
        let truth = like!(truth; lost_share: 0.003, variation, cwnd: 22);
        (like!(stream(); connections), truth)
    };
    worlds! {
        // What a short queue drops is no damage.
        CongestionWindow: lossy(false);
        none: lossy(true);

        // Needless retransmissions are no loss.
        /// All of a small window is in flight, and what was sent again had arrived.
        CongestionWindow: like!(sending(6.0 * 1448.0 * 8.0 / 0.0202, 20 * MS); lost_share: 0.05,
            spurious_share: 1.0, cwnd: 6), "needless retransmissions", "Next to nothing was lost", no "still growing";

        // Flows that share a short queue are not held by losses of the way.
        CongestionWindow: flows(8, 0.08);
        none: flows(8, 0.015);
        /// A flow alone that loses less than it needs to vary: the formula holds.
        CongestionWindow: flows(1, 0.015);

    }
}

#[test]
fn a_rate_that_was_asked_for_is_the_limit_where_it_is_reached() {
    let beside = |workload: Workload| {
        let mut run = run(workload, &sending(10e6, 20 * MS));
        for experiment in &mut run.recording.document.plan.experiments {
            experiment.beside.push(Group {
                name: "bulk".to_owned(),
                workload: stream(),
            });
        }
        run
    };
    let by_kernel = like!(stream(); options.pacing_bps: Some(100_000_000));
    let paced = like!(sending(97e6, 20 * MS); busy_share: 0.5);
    let lossy = like!(paced; lost_share: 0.001);
    worlds! {
        // What each group asked for holds it, whatever the others take.
        Pacing: beside(asked(10_000_000));
        /// What path and hosts have left for it is no limit of theirs.
        none: beside(stream());

        // A rate is not the limit where the path does not carry it.
        /// 1448 of 1514 B are 95.6 % of what the kernel paces.
        Pacing: (&by_kernel, sending(92e6, 20 * MS));
        PathRate: (&by_kernel, sending(92e6, 60 * MS));
        Pacing: (&by_kernel, sending(95.6e6, 60 * MS));

        // A rate just below what was asked for is the lines.
        /// 95 Mbit/s over a line that carries 94.1, with a queue and without.
        PathRate: (asked(95_000_000), sending(94.14e6, 60 * MS));
        Pacing: (asked(95_000_000), sending(94.14e6, 20 * MS));
        Pacing: (asked(94_000_000), sending(93.98e6, 60 * MS));
        /// 0.6 % less at no Ethernet's rate, behind a queue; of 100 segments it is one at an edge of the window.
        PathRate: (asked(50_000_000), sending(49.7e6, 60 * MS));
        Pacing: (asked(50_000_000), sending(49.7e6, 20 * MS));
        Pacing: (asked(1_160_000), sending(1.153e6, 60 * MS));

        // A rate that falls short for another reason is not what was asked for.
        Pacing: (asked(100_000_000), &paced), "requested rate";
        not Pacing: (asked(100_000_000), &lossy);
        not Pacing: (asked(100_000_000), like!(paced; worker_share: 0.99));
        /// A few of many are not why.
        Pacing: (asked(5_000_000_000), like!(paced; throughput_bps: 0.97 * 5e9, lost_share: 4e-5,
            window_bytes: 1 << 30)), "requested rate";
        /// Whole, nothing of that matters.
        Pacing: (asked(100_000_000), like!(lossy; throughput_bps: 100e6));

    }
}

#[test]
fn several_limiters_share_the_time() {
    let both =
        like!(sending(26.2e6, 20 * MS); window_bytes: 65_536, rwnd_share: 0.6, sndbuf_share: 0.3);
    let path = sending(95e6, 100 * MS);
    let idle = like!(sending(95e6, 20 * MS); busy_share: 0.3);
    worlds! {
        /// Both buffers were set, and each holds for a part of it.
        ReceiverWindow: (buffered(65_536), &both), "It held 70 % of the time, the send buffer 30 %";
        /// Trials that do not agree make no verdict.
        none: trials(None, stream(), &[path.clone(), idle.clone(), idle, path]);
    }
    let finding = named(&run(buffered(65_536), &both), Limiter::ReceiverWindow);
    let of_causes = finding.evidence.as_slice().iter();
    let shares: f64 = of_causes
        .filter(|piece| piece.what.starts_with("share of the time whose cause is"))
        .map(|piece| piece.estimate.value)
        .sum();
    assert!((shares - 1.0).abs() < 0.01, "{shares}");
}

#[test]
fn flows_of_one_client_over_ways_of_unlike_length_meet_no_queue() {
    let of = |rtt_ns: [i64; 2], min_rtt_ns: [i64; 2]| {
        let mut run = run(like!(stream(); connections: 2), &sending(95e6, 20 * MS));
        run.set(Metric::TcpRtt, |it| rtt_ns[number_of(it)]);
        run.set(Metric::TcpMinRtt, |it| min_rtt_ns[number_of(it)]);
        outcomes(&run.recording)[0].value(name::QUEUED)
    };
    // Ways of 10 and of 14 ms, both empty.
    assert_eq!(of([10 * MS, 14 * MS], [10 * MS, 14 * MS]), Some(0.0));
    // A queue of both, which the second never saw empty.
    assert_eq!(of([20 * MS, 20 * MS], [10 * MS, 18 * MS]), Some(1.0));
    // A queue on one of the ways.
    assert_eq!(of([10 * MS, 28 * MS], [10 * MS, 14 * MS]), Some(0.5));
}

#[test]
fn what_the_cpus_lack_is_told_by_who_has_it() {
    // Two workers of ours for each of two CPUs.
    let full = |cpus: f64, others_cpus: f64, ran: f64| {
        let truth =
            like!(sending(130e9, 100_000); cpus, worker_share: ran, worker_wait_share: 0.99 - ran);
        let mut run = run(stream(), &truth);
        let rest = cpus - others_cpus - ran;
        run.spend("client1", &worker(1), Metric::ThreadRun, rest);
        hiding_quota(run)
    };
    // Of two CPUs' 1.1 counted ones half is user time and half the kernel's; our threads ran 0.95 by the scheduler's clock.
    let in_user_mode = |user_cpus: f64| {
        let truth = like!(sending(40e9, 60_000); cpus: 1.1, worker_share: 0.55, worker_wait_share: 0.44,
            unsent_bytes: Some(1 << 20));
        let mut run = run(stream(), &truth);
        for (at, ran) in [(0, 0.55), (1, 0.4)] {
            let user = user_cpus * ran / 0.95;
            let mut add = |metric, cpus| run.spend("client1", &worker(at), metric, cpus);
            add(Metric::ThreadUser, user);
            add(Metric::ThreadSystem, ran - user);
            if at == 1 {
                add(Metric::ThreadRun, ran);
            }
        }
        run
    };
    // Both hosts' CPUs are full; of the server's another program has 0.67, of the client's our own threads all user time.
    let own = |own_cpus: f64| {
        let truth = like!(Truth::usual(); cpus: 1.99, others_cpus: 0.67, worker_share: 0.77, worker_wait_share: 0.23);
        let mut run = run(stream(), &truth);
        run.spend("client1", &worker(1), Metric::ThreadUser, own_cpus);
        run
    };
    let softirqs = |share: f64| {
        let mut run = run(stream(), &sending(95e6, 40 * MS));
        for (cpu, share) in (0..).zip([0.1, 0.2, 0.1, share]) {
            run.spend("server", &Subject::Cpu(cpu), Metric::CpuSoftIrq, share);
        }
        run
    };
    let taken = like!(sending(300e6, 60 * MS); cpus: 0.7, stolen_share: 0.62, worker_share: 0.28,
        worker_wait_share: 0.05, unread_bytes: 2 << 20, rwnd_share: 0.9, variation: 0.3);
    worlds! {
        // Cpus full of our own work need no sight of a quota.
        Cpu: full(1.99, 0.02, 0.49);
        /// A program of others among it, a CPU that has time left, or a worker that gets a fifth of what it waits: there
        /// may be a quota.
        not Cpu: full(1.99, 0.5, 0.49);
        not Cpu: full(1.7, 0.0, 0.49);
        not Cpu: full(1.99, 0.02, 0.16);

        // Kernel time that ticks lost is no user time of others.
        OtherPrograms: in_user_mode(0.02);
        /// User time that is our in_user_mode is no other program's.
        not OtherPrograms: in_user_mode(0.5);

        // Other programs are those of the host whose worker waits.
        OtherPrograms: own(0.0);
        Cpu: own(0.67);

        // Packets that wait for a CPU wait before no path.
        PathRate: softirqs(0.5);
        none: softirqs(0.99);

        // What the hypervisor took is told whatever workers ran.
        /// Their time has nothing of what was taken from them.
        Cpu: &taken, "the hypervisor took 62 %";
        /// One that the window holds is not short of CPU time.
        ReceiverWindow: like!(Truth::sending(35e6, 60 * MS, 60 * MS); unread_bytes: 0, window_bytes: 256 << 10,
            variation: 0.01, cpus: 0.7, stolen_share: 0.62, worker_share: 0.05, worker_wait_share: 0.05,
            rwnd_share: 0.98);
        /// A full path beside it holds the rate steady.
        PathRate: like!(taken; unread_bytes: 0, rwnd_share: 0.0, variation: 0.02), "wait before it";

    }
}

#[test]
fn a_path_that_carries_little_is_none_that_carries_nothing() {
    let slow = |throughput_bps: f64| {
        like!(sending(throughput_bps, 20 * MS); payload_bytes: 8948.0, lost_share: 0.3,
        timeouts: Some(3.0))
    };
    let lost = |on_its_way_bytes| {
        like!(sending(0.0, 20 * MS); in_vain: 8.0, unacked: 100, on_its_way_bytes,
        invalid: Some("a flow moved nothing".to_owned()))
    };
    worlds! {
        // A slow path is none that carries nothing.
        /// 64 kbit/s that carried four full segments in the window beside its retransmissions.
        not NothingArrives: like!(sending(1448.0 * 8.0, 2000 * MS); in_vain: 8.0);

        // A slow rate that was asked for arrives.
        not NothingArrives: (asked(64_000), slow(60_000.0));
        NothingArrives: (asked(64_000), like!(slow(0.0); in_vain: 8.0));

        // What the receiver has, and the sender does not know of, went through the path: ACKs are lost.
        NothingArrives: lost(Some(144_800));
        none: lost(Some(0));

    }
}

#[test]
fn windows_are_told_by_who_keeps_them_small() {
    let window = |offered_bytes| like!(sending(26e6, 20 * MS); window_bytes: 65_536, rwnd_share: 0.98, offered_bytes);
    let full = like!(window(Some(300_000)); window_bytes: 65_535);
    let small = like!(sending(31e6, 20 * MS); rwnd_share: 0.99, window_bytes: 80_000);
    let tunes = |tunes: f64| {
        let mut run = run(stream(), &small);
        run.both_tell("sysctl.net.ipv4.tcp_moderate_rcvbuf", number(tunes));
        run
    };
    let large = like!(sending(1.3e9, 20 * MS); rwnd_share: 0.99, window_bytes: 3_400_000);
    let up_to = |most: u32| {
        let mut run = run(stream(), &large);
        let three = text(&format!("4096 131072 {most}"));
        run.both_tell("sysctl.net.ipv4.tcp_rmem", three);
        run
    };
    worlds! {
        // A window of something between is not the receivers.
        ReceiverWindow: window(Some(3_400_000)), "not the receiver's own", "proxy";
        ReceiverWindow: window(Some(65_536)), no "proxy";
        /// A field of 16 bits that is full says nothing of who has it: a receiver that does not scale offers no more.
        ReceiverWindow: like!(full; agreed: SCALED), "65 535 B", "ip route", no "not the receiver's own";
        ReceiverWindow: like!(full; agreed: UNSCALED), "did not negotiate window scaling";

        // A kernel that was told not to tune leaves the window as it begins.
        ReceiverWindow: tunes(0.0), why "tcp_moderate_rcvbuf", next "tcp_moderate_rcvbuf";
        ReceiverWindow: tunes(1.0), no "tcp_moderate_rcvbuf", no_next "tcp_moderate_rcvbuf";

        // A window that is larger than what `-w 4M` gives is not made larger by it.
        ReceiverWindow: up_to(6 << 20), next "third value", no_next "4M";
        ReceiverWindow: up_to(64 << 20), next "for longer", no_next "4M";

    }
}

#[test]
fn datagrams_that_are_not_read_or_not_sent_are_told_by_who_has_the_time() {
    let read_by = |arrived: u64, unread: u64, asked_bps: Option<u64>, reader: Option<f64>| {
        // A sender spins through gaps of up to 50 µs. All CPUs are busy where what is asked for is sent whole.
        let cpus = if asked_bps == Some(192_000_000) {
            1.99
        } else {
            0.5
        };
        let truth = Truth::stream(300e6 * arrived as f64 / 100_000.0);
        let truth = like!(truth; worker_share: 0.99, cpus);
        let mut run = run(datagrams(asked_bps, 1448), &truth);
        if let Some(share) = reader {
            run.spend("server", &worker(0), Metric::ThreadRun, share);
        }
        run.count(100_000, received(arrived, 100_000, unread));
        run
    };
    let sent = |arrived, unread, asked_bps| read_by(arrived, unread, asked_bps, None);
    // 150 of 200 Mbit/s are sent, and all arrive: the sender waits for its socket buffer, which the qdisc empties.
    let waiting = |backlog: i64, asked_bps: u64, worker_share: f64| {
        let truth = like!(Truth::stream(150e6); worker_share);
        let mut run = run(datagrams(Some(asked_bps), 1448), &truth);
        run.forget(Metric::AppBytesSent);
        run.count(13_000, received(13_000, 13_000, 0));
        const STEPS: [i64; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        let readings = |by, first| STEPS.map(|step| (step * 100 * MS, first + step * by));
        let flow = Subject::Flow(FlowId(0), End::Client);
        let own = qdisc("eth0", 0x8001_0000);
        let (sent, waits) = (readings(1_875_000, 0), readings(0, backlog));
        run.put("client1", &flow, Metric::AppBytesSent, &sent);
        run.put("client1", &own, Metric::QdiscBacklogBytes, &waits);
        run
    };
    // A sender that spins sends all of 60 Mbit/s, and a fifth of it is read.
    let read = |unread: u64, waited: f64, cpus: f64| {
        let truth = like!(Truth::stream(60e6); worker_share: 0.49, worker_wait_share: 0.5, throttled: Some(0.0), cpus,
            others_cpus: cpus / 2.0, others_kernel_cpus: cpus / 2.0);
        let mut run = run(datagrams(Some(60_000_000), 1448), &truth);
        for (metric, share) in [(Metric::ThreadRun, 0.008), (Metric::ThreadWait, waited)] {
            run.spend("server", &worker(0), metric, share);
        }
        run.count(100_000, received(100_000 - unread, 100_000, unread));
        run
    };
    worlds! {
        // Where the path loses datagrams neither generator nor request is the limit.
        /// A small receive buffer overflows while its reader is idle: neither end's program is behind.
        none: read_by(64_000, 36_000, None, Some(0.2));
        Generator: read_by(64_000, 36_000, None, Some(0.97));
        /// A third is lost on the way: the path carries no more.
        none: sent(64_000, 0, Some(300_000_000));
        none: sent(64_000, 0, Some(192_000_000));
        /// All arrive; what does not is left by our own reader, of which nothing is known.
        Generator: sent(100_000, 0, None);
        none: sent(64_000, 36_000, None);
        /// Loss on the way of 4 % of what was asked for, and of none.
        none: sent(96_000, 0, Some(300_000_000));
        Pacing: sent(99_900, 0, Some(300_000_000));

        // Datagrams that wait in the own qdisc are not sent.
        PathRate: waiting(96_000, 200_000_000, 0.06);
        /// A datagram on its way out is no queue; what was asked for was sent; the sender has no time.
        none: waiting(1_500, 200_000_000, 0.06);
        Pacing: waiting(96_000, 150_000_000, 0.06);
        not PathRate: waiting(96_000, 200_000_000, 0.98);

        // Datagrams lost while their reader waits for a CPU are others doing.
        OtherPrograms: read(80_000, 0.5, 1.5), claim "ran 0.8 % of the time and waited for a CPU 50 %",
            next "stop the other programs";
        /// A small buffer whose reader has a CPU, a reader that waits for no other program, or one whose buffer holds all.
        not OtherPrograms: read(80_000, 0.05, 1.5), no_next "other programs";
        not OtherPrograms: read(80_000, 0.5, 0.1), no_next "other programs";
        not OtherPrograms: read(0, 0.5, 1.5), no_next "other programs";

    }
}

#[test]
fn round_trips_that_are_longer_are_not_always_a_queues() {
    let rerouted = like!(Truth::sending(45.2e6, 14_200_000, 10_200_000); rwnd_share: 0.999, window_bytes: 80_000);
    let line = Truth::sending(94.1e6, 14_200_000, 10_200_000);
    let alone = |delayed_acks| like!(Truth::sending(5e6, 40 * MS, 2 * MS); cwnd: 3, delayed_acks);
    // 12 Mbit/s and 162 ms where 22 ms are the shortest: 243 kB are in flight.
    let flight =
        |on_its_way_bytes| like!(Truth::sending(12e6, 162 * MS, 22 * MS); on_its_way_bytes);
    // A way of 25 ms that takes up to 30 ms longer as it likes, and one segment in a thousand is lost.
    let path = |swings| like!(Truth::sending(18.9e6, 46 * MS, 25 * MS); swings, variation: 0.15);
    let short = like!(Truth::sending(147.5e6, 750_000, 9_000); swings: Some((0.3, 0.05)), variation: 0.01,
        lost_share: 0.03);
    worlds! {
        // A round trip that a window or an ack makes longer is no full path.
        /// A path of 10 ms that became one of 14 ms; the window of 80 kB holds the sender.
        not PathRate: &rerouted;
        /// The same with a window that has room: a queue.
        PathRate: like!(rerouted; rwnd_share: 0.0, window_bytes: 3 << 20);
        /// What Ethernet carries is a full path, whoever holds the sender; a queue of twice the way, too.
        PathRate: like!(line; rwnd_share: 0.999, window_bytes: 160_000), "looks the same";
        /// Two segments on a slow line: each takes 2.5 ms of it.
        not PathRate: Truth::sending(900_000.0, 26_200_000, 20_600_000);
        /// One segment at a time, whose ACK waits for the timer.
        not PathRate: alone(Some(300.0));
        PathRate: alone(Some(0.0));

        // ACKs that wait on their way back are no full path.
        /// Next to nothing of it is on its way to the receiver, or half of what a long way holds when it is empty.
        none: flight(Some(21_000));
        none: like!(Truth::sending(10e6, 200 * MS, 100 * MS); on_its_way_bytes: Some(62_500));
        /// Most of it is; or nobody knows.
        PathRate: flight(Some(220_000)), "140 ms";
        PathRate: flight(None), "140 ms";

        // A round trip that does not go with the flight is no queues.
        none: path(Some((0.18, 0.02)));
        /// Nor one that grows by more than what is in flight: the way became longer, and the rate fell.
        none: path(Some((0.18, 1.4)));
        /// Behind a queue of its own, others in it or not, round trips go with what is in flight.
        PathRate: path(Some((0.18, 1.0))), "wait before it";
        PathRate: path(Some((0.18, 0.4))), "wait before it";
        /// A flight that hardly varies shows neither.
        PathRate: path(Some((0.05, 0.0))), "wait before it";
        PathRate: path(None), "wait before it";
        /// Nor is a rate as steady as a line's that of a way that takes as long as it likes: a queue of ten packets.
        PathRate: &short, "wait before it";
        none: like!(short; variation: 0.15);

    }
}

/// A worker that waits for a CPU beside two CPUs' worth of other programs.
fn beside_programs(bps: f64, rtt_ns: i64, worker_share: f64, worker_wait_share: f64) -> Truth {
    like!(sending(bps, rtt_ns); cpus: 1.98, others_cpus: 0.95, others_kernel_cpus: 0.95, worker_share,
        worker_wait_share, unsent_bytes: Some(0), variation: 0.3)
}

#[test]
fn quotas_and_other_programs_are_told_apart() {
    // It runs 0.9 % of the time and waits for a CPU 32 % of it.
    let rests = |waited, rtt_ns| beside_programs(10e6, rtt_ns, 0.009, waited);
    let held = beside_programs(1e9, 21 * MS, 0.19, 0.76);
    let hidden = || hiding_quota(run(stream(), &held));
    let queued =
        like!(sending(95e6, 100 * MS); throttled: Some(0.15), unsent_bytes: Some(2_000_000));
    let short = like!(queued; throttled: Some(1.0), unsent_bytes: Some(400_000), rtt_ns: 23 * MS);
    // 80 % of a CPU went to another program, half of the time; nobody can see whether there is a quota.
    let beside = |others_cpus: f64| {
        let truth = like!(Truth::stream(3e9); cpus: 0.6 + others_cpus, worker_share: 0.6, worker_wait_share: 0.38,
            variation: 0.6);
        hiding_quota(run(stream(), &truth))
    };
    worlds! {
        // A worker that rests is not missed behind a long queue.
        none: rests(0.32, 135 * MS);
        /// Without the queue, or where it waits nearly all the time, others have what it needs.
        OtherPrograms: rests(0.32, 21 * MS);
        OtherPrograms: rests(0.86, 135 * MS);

        // Where a quota would not be seen nobody is said to have the CPUs.
        /// A worker that a quota of a fifth of a CPU holds, beside others that are busy.
        OtherPrograms: &held;
        not OtherPrograms: hidden();
        not Cpu: hidden();
        not CpuQuota: hidden();

        // A quota that nobody misses is none.
        /// A tenth of the periods is throttled, each for half of it: 2 MB last for 170 ms.
        PathRate: &queued, "100 Mbit/s";
        /// The sender had nothing left while it was stopped, in which time the queue ran dry.
        CpuQuota: like!(queued; unsent_bytes: Some(0), rtt_ns: 23 * MS, variation: 0.4), "throttled in 10 %";
        CpuQuota: like!(queued; variation: 0.4), "throttled in 10 %";
        /// Where all periods were, it ran dry in each, between readings that are as far apart.
        CpuQuota: &short, "throttled in";
        /// The second half carried seven times as much: there was none any more, and no periods were counted.
        not CpuQuota: like!(short; halves: 7.0);
        PathRate: like!(queued; throttled: Some(1.0)), "100 Mbit/s";

        // Workers that others made wait at times are under no quota.
        CpuQuota: beside(0.0);
        not CpuQuota: beside(0.6);

    }
}

/// A run on hosts where a CPU quota would not be seen.
fn hiding_quota(mut run: MadeRun) -> MadeRun {
    run.both_tell(CPU_QUOTA_VISIBLE, number(0.0));
    run
}

/// Two workers of the client, whose CPUs spend these shares in the kernel, in softirqs and idle; the first was seen on
/// these CPUs.
fn on_cpus(truth: &Truth, shares: [(f64, Option<f64>, f64); 2], on: [i64; 3]) -> MadeRun {
    let mut run = run(stream(), truth);
    run.keep(|sample| !matches!(sample.subject, Subject::Cpu(_)));
    for (number, (system, softirq, idle)) in (0..).zip(shares) {
        let mut add = |metric, share| run.spend("client1", &Subject::Cpu(number), metric, share);
        add(Metric::CpuUser, 0.0);
        add(Metric::CpuSystem, system);
        if let Some(share) = softirq {
            add(Metric::CpuSoftIrq, share);
        }
        add(Metric::CpuIdle, idle);
    }
    run.grow("client1", &worker(1), Metric::ThreadRun, 490_000_000);
    let seen = [0, 1, 2].map(|at: i64| (50_000 + at * 500 * MS, on[at as usize]));
    run.put("client1", &worker(0), Metric::ThreadCpu, &seen);
    run
}

#[test]
fn workers_that_find_their_cpu_full_are_told_from_those_under_a_quota() {
    let on = |ran: f64, waited: f64, softirq: f64, idle: f64, on: [i64; 3]| {
        let truth = like!(sending(20e9, 100_000); worker_share: ran, worker_wait_share: waited, variation: 0.1);
        let first = (1.0 - softirq - idle, Some(softirq), idle);
        on_cpus(&truth, [first, (0.4, Some(0.1), 0.5)], on)
    };
    let there = [0, 0, 0];
    // Both ends had half of a CPU each, of two.
    let half = |on: [i64; 3], cpus: [f64; 2], throttled: Option<f64>| {
        let truth = like!(sending(74e9, 100_000); worker_share: 0.49, worker_wait_share: 0.5, throttled, variation: 0.1);
        on_cpus(&truth, cpus.map(|busy| (busy, None, 1.0 - busy)), on)
    };
    let (on_one, full) = ([0, 0, 0], [0.99, 0.02]);
    worlds! {
        // A CPU that a worker has and softirqs, beside one that has time left.
        Cpu: on(0.858, 0.07, 0.25, 0.02, there);
        Cpu: on(0.871, 0.1, 0.25, 0.02, there);
        /// Where it waits for softirqs and never rests, none of what its CPU has left is its own.
        Cpu: on(0.9, 0.06, 0.3, 0.09, there);
        Generator: on(0.97, 0.01, 0.3, 0.01, there);
        Generator: on(0.9, 0.06, 0.0, 0.09, there);
        /// Time left, or nobody knows on which CPU.
        not Cpu: on(0.8, 0.1, 0.25, 0.1, there);
        not Cpu: on(0.871, 0.05, 0.25, 0.02, [0, 1, 0]);
        /// One that waits for long and finds its CPU full is held by no quota.
        Cpu: on(0.55, 0.4, 0.2, 0.01, there);

        // Workers that share one CPU beside an idle one are on too few.
        Cpu: half(on_one, full, Some(0.0)), next "CPUs of its own";
        Cpu: half(on_one, full, None), next "CPUs of its own";
        /// They were half both: the scheduler was free, and so it is where the CPU that they are half has time left.
        not Cpu: half([0, 1, 0], full, Some(0.0)), no_next "CPUs of its own";
        not Cpu: half(on_one, [0.6, 0.5], Some(0.0)), no_next "CPUs of its own";
        /// A quota leaves the CPU idle that its workers are half.
        CpuQuota: half(on_one, [0.5, 0.02], None);

    }
}

/// Both where the numbers stand: the line of a measurement and the report.
#[test]
fn retransmissions_of_what_had_arrived_are_told_as_reordering() {
    let told = |lost_share: f64, spurious_share: f64| {
        let truth = like!(sending(100e6, 20 * MS); lost_share, spurious_share);
        let run = run(stream(), &truth);
        let told = crate::as_single(&run.recording).trials[0].needless();
        let summary = format!("{:?}", analyze(&run.recording).summary);
        let said = told.as_deref().map(|words| summary.contains(words));
        assert_ne!(said, Some(false), "{summary}");
        assert_eq!(summary.contains("had arrived"), told.is_some(), "{summary}");
        told.unwrap_or_default()
    };
    says!(told(0.01, 1.0); "all", "nothing lost");
    says!(told(0.01, 0.9); " % of them", no "nothing");
    assert_eq!(told(0.01, 0.3), "");
    assert_eq!(told(0.0, 0.0), "");
}

#[test]
fn a_late_reader_holds_nobody_while_the_window_is_open() {
    let late = like!(Truth::sending(60e6, 12 * MS, 3 * MS); variation: 0.28, cpus: 1.9, others_cpus: 0.9,
        others_kernel_cpus: 0.4, worker_share: 0.04, worker_wait_share: 0.4, unread_bytes: 20_000);
    let mut foreign = run(stream(), &late);
    use Metric::{TcpNotSent, TcpRwndLimited, TcpSndMss};
    foreign.keep(|it| !matches!(it.metric, TcpNotSent | TcpSndMss | TcpRwndLimited));
    worlds! {
        /// A radio's rate, and a reader that waits for CPUs that others have: 20 kB lie unread of 60 Mbit/s.
        not OtherPrograms: &late;
        OtherPrograms: like!(late; rwnd_share: 0.3);
        /// Where another program sends, the reader alone is known.
        not OtherPrograms: foreign;
    }
}

#[test]
fn a_queue_before_another_device_is_none_of_these_flows() {
    // A way that takes longer as it likes, beside a gateway's other device whose queue is full.
    let jitter = like!(Truth::sending(18.9e6, 46 * MS, 25 * MS); variation: 0.15, swings: Some((0.18, 0.02)));
    let queued = |device: &str, bytes: i64| {
        let mut run = run(stream(), &jitter);
        for (subject, bytes) in [
            (qdisc("eth0", 0x8002_0000), 0),
            (qdisc(device, 0x8001_0000), bytes),
        ] {
            let readings = [50_000, 500_050_000, 1_000_050_000].map(|at_ns| (at_ns, bytes));
            run.put("client1", &subject, Metric::QdiscBacklogBytes, &readings);
        }
        run
    };
    worlds! {
        none: queued("wlan0", 200_000);
        /// A few bytes before the own device are not what makes the round trip longer either.
        none: queued("eth0", 400);
        PathRate: queued("eth0", 45_000);
    }
}

#[test]
fn of_several_flows_what_waits_is_beyond_their_own_shortest_round_trips() {
    // One of 20 ms that waits for 2, and one of 80 that waits for 30.
    let truth = like!(Truth::sending(95e6, 22 * MS, 20 * MS); min_rtt_ns: Some(20 * MS));
    let mut two = run(like!(stream(); connections: 2), &truth);
    two.set(Metric::TcpRtt, |it| [it.value, 110 * MS][number_of(it)]);
    two.set(Metric::TcpMinRtt, |it| [it.value, 80 * MS][number_of(it)]);
    worlds! {
        /// 16 ms on average, not 46.
        PathRate: two, claim "at least 190\u{202f}000 B (16 ms)";
    }
}

#[test]
fn datagrams_of_which_none_arrives_are_told() {
    let sent = |arrived: u64, bytes: u64, stray: i64| {
        let truth = Truth::stream(arrived as f64 * 8.0 * bytes as f64);
        let mut run = run(datagrams(Some(10_000_000), bytes), &truth);
        run.grow("server", &Subject::Cpu(0), Metric::SoftnetDropped, stray);
        run.count(1000, received(arrived, arrived, 0));
        run
    };
    worlds! {
        NothingArrives: sent(0, 4000, 0), why "fragments";
        /// Beside one stray drop.
        NothingArrives: sent(0, 1400, 1), no "fragments";
        NothingArrives: sent(0, 1400, 900);
        /// One that arrives is something else.
        not NothingArrives: sent(500, 1400, 0);
    }
    // Dropped at the host, that is no firewall's or path's.
    let why = |stray| named(&sent(0, 1400, stray), Limiter::NothingArrives).explanation;
    assert_ne!(why(900), why(1));
}
