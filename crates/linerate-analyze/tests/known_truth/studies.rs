//! Studies of a known truth: what their pages say of hosts and paths with one fault, and not without it.

use linerate_model::answer::{Ceiling, Ceilings};
use linerate_model::finding::Recommendation;
use linerate_model::lab_link::LabLink;

use crate::prelude::*;

const KIB: u64 = 1024;

fn finding<'a>(analysis: &'a Analysis, id: &str) -> Option<&'a Finding> {
    let mut findings = analysis.findings.iter();
    findings.find(|finding| finding.id == id)
}

fn thrice(truth: &Truth) -> [Truth; 3] {
    [1.0, 1.002, 1.004].map(|share| like!(truth; throughput_bps: share * truth.throughput_bps))
}

/// A connection whose window of `bytes` makes the rate at a round trip of 12 ms.
fn held_by_window(flows: f64, bytes: i64) -> Truth {
    like!(Truth::stream(flows * bytes as f64 * 8e3 / 12.0); window_bytes: bytes, rwnd_share: 0.99,
        busy_share: 1.0, rtt_ns: 12 * MS, unacked: (bytes as f64 / MSS) as i64, unsent_bytes: Some(1 << 20))
}

/// What is recommended where the kernel's own tuning is `tuned`, and fixed buffers of 64 KiB and of 1 MiB reach these
/// shares of it.
fn recommended(
    tuned: fn(f64) -> Truth,
    shares: &[(u32, [f64; 2])],
    rmem: Option<&str>,
) -> Vec<Recommendation> {
    let mut run = studied(None, "socket-buffer", Some(3), stream());
    if let Some(three) = rmem {
        run.both_tell("sysctl.net.ipv4.tcp_rmem", text(three));
    }
    for (connections, shares) in shares {
        let tuned = tuned(f64::from(*connections));
        for (level, share) in [
            (size(64 * KIB), shares[0]),
            (size(KIB * KIB), shares[1]),
            (Level::Word("auto".to_owned()), 1.0),
        ] {
            let count = (Factor::Connections, Level::Count(u64::from(*connections)));
            let bps = share * tuned.throughput_bps;
            let fixed = like!(Truth::stream(bps); rtt_ns: 13 * MS, rwnd_share: 0.0);
            let truth = if share == 1.0 { &tuned } else { &fixed };
            run.cell(&[count, (Factor::SocketBuffer, level)], &thrice(truth));
        }
    }
    analyze(&run.recording).recommendations
}

#[test]
fn the_kernels_limit_comes_before_buffers_that_each_program_sets() {
    let window = |flows| held_by_window(flows, 39_552);
    let shares = [(1, [2.0, 10.9]), (10, [1.13, 1.13])];
    let advice = recommended(window, &shares, Some("4096 32768 65536"));
    let [advice] = advice.as_slice() else {
        panic!("one thing to do: {advice:?}");
    };
    says!(advice.action;
        begins "Raise the maximum of net.ipv4.tcp_rmem on the receiver to 2 MiB; a second way is", "of 1 MiB");
    assert_eq!(advice.finding, "socket-buffer/limiter/receiver-window");
    says!(advice.predicted; begins "Throughput 10.9");
    // Where no window of the kernel's is the limit, what was measured is all that there is.
    let other = |flows: f64| Truth::stream(20e6 * flows);
    let advice = recommended(other, &shares, None);
    let [advice] = advice.as_slice() else {
        panic!("one thing to do: {advice:?}");
    };
    assert_eq!(advice.action, "Set SO_RCVBUF and SO_SNDBUF to 1 MiB.");
}

#[test]
fn a_buffer_that_loses_with_another_count_of_connections_is_not_recommended() {
    let other = |flows: f64| Truth::stream(20e6 * flows);
    let action = |shares: [(u32, [f64; 2]); 2]| {
        let advice = recommended(other, &shares, None);
        advice.into_iter().map(|one| one.action).collect::<Vec<_>>()
    };
    // The larger gains more with one, and loses with ten.
    let small = "Set SO_RCVBUF and SO_SNDBUF to 64 KiB.";
    assert_eq!(action([(1, [2.0, 10.0]), (10, [1.2, 0.7])]), [small]);
    // Each gains with one count and loses with the other.
    assert_eq!(action([(1, [0.5, 10.0]), (10, [1.2, 0.7])]), [""; 0]);
    // One gains with one count, and changes nothing with the other.
    let large = "Set SO_RCVBUF and SO_SNDBUF to 1 MiB.";
    assert_eq!(action([(1, [0.5, 10.0]), (10, [0.8, 1.0])]), [large]);
}

/// A study whose workers wait for a CPU three times as long as they run; a quota throttles in this share of the periods.
fn waiting(throttled: f64, quota_ns: Option<i64>) -> Analysis {
    let mut run = studied(None, "latency", Some(1), rr(4));
    for bytes in [4, 100] {
        let truth = like!(Truth::transactions(100_000); worker_share: 0.19, worker_wait_share: 0.6,
            throttled: Some(throttled));
        run.alike(&[(Factor::PayloadBytes, size(bytes))], &truth);
    }
    if let Some(quota_ns) = quota_ns {
        let readings = [0, WINDOW_NS as i64].map(|at_ns| (at_ns, quota_ns));
        run.put("server", &Subject::Host, Metric::CgroupQuota, &readings);
    }
    analyze(&run.recording)
}

#[test]
fn who_waits_under_a_quota_is_not_told_to_stop_other_programs() {
    let starved = |analysis: &Analysis| {
        let cautions = analysis.cautions.iter();
        let found = cautions.filter(|found| found.id.contains("caution/starved"));
        let [found] = found.collect::<Vec<_>>()[..] else {
            panic!("one caution: {:?}", analysis.cautions);
        };
        let trust = analysis.trust.clone().expect("a judgement");
        (found.clone(), trust)
    };
    let (held, trust) = starved(&waiting(1.0, Some(200_000_000)));
    assert_eq!(held.id, "run/caution/starved/quota");
    says!(held.explanation; "Raise the quota", no "ther threads");
    assert_eq!(trust.level, TrustLevel::Limited);
    assert_eq!(trust.reasons[0], "a CPU quota held the workers back");
    says!(trust.reasons.join("; "); no "waited");
    // A group that is never throttled: others had the CPU.
    let (free, trust) = starved(&waiting(0.0, None));
    assert_eq!(free.id, "run/caution/starved");
    says!(free.explanation; "Stop other programs");
    says!(trust.reasons.join("; "); no "quota");
}

#[test]
fn a_quota_comes_first_where_numbers_are_not_to_be_used() {
    let reasons = |throttled: f64| {
        let mut run = studied(None, "latency", Some(1), rr(4));
        let truth = |ns: u64| {
            like!(Truth::transactions(ns); worker_share: 0.19, worker_wait_share: 0.6,
            throttled: Some(throttled))
        };
        run.cell(&[], &[50_000, 150_000, 400_000].map(truth));
        let trust = analyze(&run.recording).trust.expect("a judgement");
        assert_eq!(trust.level, TrustLevel::DoNotUse);
        trust.reasons
    };
    let held = reasons(1.0);
    assert_eq!(held[0], "a CPU quota held the workers back");
    assert!(held[1].starts_with("identical trials differ"), "{held:?}");
    assert!(reasons(0.0)[0].starts_with("identical trials differ"));
}

#[test]
fn memory_that_was_copied_under_a_quota_is_told_so() {
    let check = |quota_ns: Option<i64>, expected: &str| {
        let analysis = waiting(0.0, quota_ns);
        let inventory = chapter(&analysis, "inventory");
        let answer = inventory.answer.as_ref().expect("an answer");
        assert!(answer.contains(expected), "{answer}");
        let mut tables = inventory.tables.iter();
        let hosts = tables.find(|table| table.title == "Hosts").expect("hosts");
        let has = |row: &[TableCell]| format!("{row:?}").contains("under a CPU quota");
        let is_held = expected.contains("quota");
        assert_eq!((has(&hosts.rows[0]), has(&hosts.rows[1])), (is_held, false));
    };
    let held = "memory copied at 9.31 GiB/s under a CPU quota of 0.2 CPUs, ";
    check(Some(200_000_000), held);
    // One thread copies.
    let copied = "memory copied at 9.31 GiB/s, ";
    check(Some(1_500_000_000), copied);
    check(None, copied);
}

#[test]
fn cpus_are_not_busier_than_there_are() {
    let busy = |cpus: f64| {
        let run = once(None, stream(), &like!(Truth::stream(100e6); cpus));
        let outcome = outcomes(&run.recording).remove(0);
        let value = |name| outcome.value(name).expect("the CPUs were read");
        [name::CPU_BUSY, name::CPU_USER, name::CPU_SYSTEM].map(value)
    };
    // Of two CPUs, half in user mode.
    let [all, user, system] = busy(2.1);
    assert!((all - 2.0).abs() < 1e-9 && all <= 2.0, "{all}");
    assert!((user - 1.0).abs() < 1e-3 && (system - 1.0).abs() < 1e-3);
    let [all, user, _] = busy(1.6);
    assert!((all - 1.6).abs() < 1e-3 && (user - 0.8).abs() < 1e-3);
}

#[test]
fn rates_and_losses_of_datagrams_say_what_they_are_of() {
    let workload = like!(stream(); manner.transport: Transport::Udp);
    let mut run = studied(None, "udp-packet-rate", Some(11), workload);
    for bytes in [64, 1448] {
        let levels = [(Factor::MessageBytes, size(bytes))];
        run.cell(&levels, &[(); 3].map(|()| Truth::stream(100e6)));
    }
    crate::numbers::count_datagrams(&mut run);
    let analysis = analyze(&run.recording);
    let udp = chapter(&analysis, "udp-packet-rate");
    says!(udp.tables[0].title; "per second of the measured window", "before and after the window too");
    says!(answer_of(&analysis, "udp-packet-rate"); "before and after the measured window too");
}

/// A study of a path that carries 100 Mbit/s with a queue before it, of messages with these payloads of a segment.
fn of_path(payloads: &[f64], rate: Option<f64>) -> Analysis {
    let mut run = studied(rate, "latency", Some(1), rr(4));
    run.alike(&[], &Truth::transactions(20_000_000));
    run.experiment("packet-rate", Some(10), stream());
    let experiments = &mut run.recording.document.plan.experiments;
    experiments[1].response = name::DATA_SEGMENTS.to_owned();
    for payload_bytes in payloads {
        let truth = like!(Truth::sending(100e6, 60 * MS, 20 * MS); payload_bytes: *payload_bytes);
        let bytes = payload_bytes.round() as u64;
        run.cell(&[(Factor::MessageBytes, size(bytes))], &thrice(&truth));
    }
    analyze(&run.recording)
}

const PATH: &str = "packet-rate/limiter/path-rate";
const TRIP: &str = "latency/limiter/round-trip";

#[test]
fn full_segments_of_the_packet_rate_show_the_host_as_it_is() {
    let full = of_path(&[100.0, MSS], None);
    let path = finding(&full, PATH).expect("the path is full");
    // The flood of small segments is no cell of the host as it is: that of the latency is.
    says!(path.explanation; "Limited by the path's rate: 1 of 2 cells (packet-rate)");
    says!(answer_of(&full, "window"); "for 100 Mbit/s over");
    // What has nothing to mend gives way to it.
    assert_eq!(finding(&full, TRIP), None);

    let flood = of_path(&[100.0, 536.0], None);
    assert_eq!(finding(&flood, PATH), None);
    says!(answer_of(&flood, "window"); "is not known");
    assert!(finding(&flood, TRIP).is_some());
}

#[test]
fn the_generator_hides_no_plain_round_trip() {
    let of = |truth: Truth| {
        let mut run = studied(GIGABIT, "latency", Some(1), rr(4));
        run.alike(&[], &Truth::transactions(100_000));
        run.experiment("queues", Some(12), stream());
        run.alike(&[], &truth);
        analyze(&run.recording)
    };
    let generator = of(like!(Truth::stream(500e6); worker_share: 0.99));
    let is_generator = |found: &Finding| found.kind == FindingKind::Limiter(Limiter::Generator);
    assert!(generator.cautions.iter().any(is_generator));
    let trip = finding(&generator, TRIP).expect("nothing else is there to be told");
    says!(trip.explanation; "Limited by the round trip: 1 of 2 cells (latency)");
    let link = of(Truth::stream(941e6));
    assert_eq!(finding(&link, TRIP), None);
    assert!(finding(&link, "queues/limiter/link-rate").is_some());
}

/// What limits 16 connections that the receiver's window holds behind a longer round trip, beside 64 that fill a path of
/// 287 Mbit/s.
fn beside_a_full_path(bps: f64, variation: f64, rtt_ns: i64) -> Option<Limiter> {
    let mut run = studied(None, "queues", Some(12), stream());
    let held = like!(Truth::sending(bps, rtt_ns, 12 * MS); window_bytes: 39_552, rwnd_share: 0.99, variation,
        min_rtt_ns: Some(12 * MS));
    let full = like!(Truth::sending(287e6, 30 * MS, 12 * MS); lost_share: 0.01);
    for (connections, truth) in [(16, held), (64, full)] {
        run.alike(&[(Factor::Connections, Level::Count(connections))], &truth);
    }
    let analysis = analyze(&run.recording);
    let mut bars = analysis.answer.bars.iter();
    let bar = bars.find(|bar| bar.workload.contains("16"));
    bar.expect("the cell has a bar").limiter
}

#[test]
fn a_rate_that_another_cell_shows_to_be_the_paths_is_the_paths() {
    let same = beside_a_full_path(286.9e6, 0.01, 18 * MS);
    assert_eq!(same, Some(Limiter::PathRate));
    // Another rate, or one that varies: a longer way makes such round trips as well.
    assert_eq!(beside_a_full_path(270e6, 0.01, 18 * MS), None);
    assert_eq!(beside_a_full_path(286.9e6, 0.1, 18 * MS), None);
}

/// The ceiling of an exchange whose response is of `bytes`.
fn ceiling_of(bytes: u64, connections: u32, rtt_ns: i64, rate: Option<f64>) -> Option<Ceiling> {
    let workload = like!(rr(1);
        traffic: Traffic::Rr { request_bytes: Bytes(100), response_bytes: Bytes(bytes), request_writes: 1, },
        connections);
    let truth = like!(Truth::transactions(1_000_000); min_rtt_ns: Some(rtt_ns));
    let run = once(rate, workload, &truth);
    analyze(&run.recording).answer.bars[0].ceiling.clone()
}

#[test]
fn a_short_round_trip_is_no_ceiling_of_long_messages() {
    // 32 / 6 µs of 20 kB were 853 Gbit/s.
    assert_eq!(ceiling_of(20_000, 32, 6_000, None), None);
    let link = ceiling_of(20_000, 32, 6_000, Some(1e9)).expect("the link's rate is known");
    assert_eq!(link.what, Ceilings::Wire);
    // 941.5 Mbit/s of payload.
    assert!((5880.0..5890.0).contains(&link.value), "{link:?}");
    // Messages of a segment, and longer ones over a path that is long.
    for (bytes, rtt_ns, expected) in [(1000, 6_000, 5_333_333.0), (20_000, 10 * MS, 3200.0)] {
        let found = ceiling_of(bytes, 32, rtt_ns, None).expect("the round trip bounds it");
        let found = (found.what, found.value.round());
        assert_eq!(found, (Ceilings::RoundTrip, expected));
    }
}

#[test]
fn what_the_path_was_found_to_carry_bounds_exchanges() {
    let mut run = studied(None, "latency", Some(1), rr(1460));
    let trip = like!(Truth::transactions(400_000); min_rtt_ns: Some(20_000));
    run.alike(&[], &trip);
    run.experiment("streams", None, stream());
    run.cell(&[], &thrice(&Truth::sending(31.6e6, 12 * MS, 20_000)));
    let answer = analyze(&run.recording).answer;
    let mut bars = answer.bars.iter();
    let exchange = bars.find(|bar| bar.experiment == "latency");
    let ceiling = exchange.and_then(|bar| bar.ceiling.clone());
    let ceiling = ceiling.expect("the path's rate is known");
    assert_eq!(ceiling.what, Ceilings::Path);
    // 31.66 Mbit/s in requests of 1460 B.
    assert!((2700.0..2720.0).contains(&ceiling.value), "{ceiling:?}");
}

#[test]
fn a_window_of_less_than_a_segment_is_none_to_set() {
    let of = |shortest_ns: i64| {
        let mut run = studied(None, "streams", None, stream());
        run.cell(&[], &thrice(&Truth::sending(31.6e6, 20 * MS, shortest_ns)));
        let analysis = analyze(&run.recording);
        let mut tiles = analysis.answer.tiles.iter();
        let has_tile = tiles.any(|tile| tile.what == "Window needed");
        (has_tile, answer_of(&analysis, "window"))
    };
    // 31.6 Mbit/s × 60 µs are 237 B, × 5 ms 20 kB.
    let (has_tile, answer) = of(60_000);
    assert!(!has_tile);
    says!(answer; "less than a segment");
    let (has_tile, answer) = of(5 * MS);
    assert!(has_tile);
    says!(answer; no "segment");
}

/// Two clients behind access lines and one beside the server: a row for each kind of link, with what a packet that
/// crosses it may wait.
#[test]
fn the_inventory_has_the_links_of_a_lab() {
    let mut run = MadeRun::new(3, Some(1e9));
    run.recording.document.study = true;
    let plain = LabLink {
        delay: Nanos(0),
        up_delay: Nanos(0),
        jitter: Nanos(0),
        loss: 0.0,
        reorder: 0.0,
        duplicate: 0.0,
        queue: Some(Bytes(2_500_000)),
        up_queue: None,
    };
    let line = like!(plain; delay: Nanos::from_ms(10), up_delay: Nanos::from_ms(30), jitter: Nanos::from_ms(5),
        queue: Some(Bytes(750_000)), up_queue: Some(Bytes(187_500)));
    for (at, host) in run.recording.document.hosts.iter_mut().enumerate() {
        let is_line = at >= 2;
        host.lab_link = Some(if is_line { &line } else { &plain }.clone());
        if is_line {
            host.link_rate = Some(BitsPerSec(20e6));
            host.link_up_rate = Some(BitsPerSec(5e6));
        }
    }
    let analysis = analyze(&run.recording);
    let tables = &chapter(&analysis, "inventory").tables;
    let links = tables.iter().find(|it| it.title == "Links of the lab");
    let rows = &links.expect("a lab has links").rows;
    let hosts: Vec<&TableCell> = rows.iter().map(|row| &row[0]).collect();
    let names = ["server", "client1", "client2 and client3"].map(TableCell::from);
    assert!(hosts.into_iter().eq(&names), "{rows:?}");
    let bps = |bps| TableCell::Number(bps, Unit::BitsPerSecond);
    let ms = |ms: f64| TableCell::Number(ms * 1e6, Unit::Nanoseconds);
    let expected = [bps(20e6), bps(5e6), ms(40.0), ms(300.0), ms(300.0), ms(5.0)];
    assert_eq!(rows[2][1..], expected);
    assert_eq!(rows[1][1..5], [bps(1e9), bps(1e9), ms(0.0), ms(20.0)]);
    let told = &analysis.hosts[2].facts;
    let full = ("lab_link.up_full_queue".to_owned(), "300 ms".to_owned());
    assert!(told.contains(&full), "{told:?}");
}
