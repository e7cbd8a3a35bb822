//! Datagrams that are lost on the way: of a full path, by chance, in bursts. And rates that were asked for, beside what
//! else might hold them.

use crate::both_ways::{going, joined};
use crate::prelude::*;

/// Payload of a datagram.
const BYTES: i64 = 1448;

/// What a receiver saw from one reading to the next: datagrams that arrived, and that did not.
type Step = (i64, i64);
/// A counter of a flow's end, and what it grows by.
type Counter = (Metric, fn(&Step) -> i64);

/// Where datagrams are lost.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lost {
    OnTheWay,
    /// In the receive buffer.
    Unread,
    /// Nothing was read of the receiving host.
    Unknown,
}

/// Its worker ran so much of the time.
fn working(worker_share: f64) -> Truth {
    like!(Truth::usual(); worker_share)
}

/// A stream of datagrams of which the receiver saw `steps`.
fn stream_of(workload: Workload, steps: &[Step], truth: Truth, at: Lost) -> MadeRun {
    let arrived: i64 = steps.iter().map(|step| step.0).sum();
    let lost: i64 = steps.iter().map(|step| step.1).sum();
    let truth = like!(truth; throughput_bps: (arrived * BYTES * 8) as f64);
    let mut run = run(workload, &truth);
    if at != Lost::Unknown {
        for host in ["server", "client1"] {
            run.grow(host, &Subject::Cpu(0), Metric::SoftnetDropped, 0);
        }
    }
    run.forget(Metric::AppBytesSent);
    let first = run.recording.trials[0].trial;
    let flows = run
        .recording
        .flows
        .iter()
        .filter(|flow| flow.trial == first);
    let ends = flows.map(|it| (it.part, it.host.to_string(), it.flow, it.end));
    for (part, host, flow, end) in ends.collect::<Vec<_>>() {
        let counts: &[Counter] = match part {
            Part::Sender => &[
                (Metric::AppDatagramsSent, |step| step.0 + step.1),
                (Metric::AppBytesSent, |step| (step.0 + step.1) * BYTES),
            ],
            _ => &[
                (Metric::AppDatagramsReceived, |step| step.0),
                (Metric::AppDatagramsMissing, |step| step.1),
            ],
        };
        for (metric, of) in counts {
            let at = |step: usize| step as i64 * 1000 * MS / steps.len() as i64;
            let sum = |step: usize| steps[..step].iter().map(of).sum::<i64>();
            let readings = (0..=steps.len()).map(|step| (at(step), sum(step)));
            let readings: Vec<(i64, i64)> = readings.collect();
            run.put(&host, &Subject::Flow(flow, end), *metric, &readings);
        }
    }
    let unread = if at == Lost::Unread { lost } else { 0 };
    let sent = (arrived + lost) as u64;
    run.count(sent, received(arrived as u64, sent, unread as u64));
    run
}

/// A stream whose sender sends what was asked for, which the first of the `steps` has.
fn asked(steps: &[Step], segments: u32, at: Lost) -> MadeRun {
    let each = steps.first().map_or(0, |step| step.0 + step.1);
    let rate_bps = each * BYTES * 8 * steps.len() as i64;
    let workload = datagrams(Some(rate_bps as u64), BYTES as u64);
    let workload = like!(workload; manner.segments: segments);
    stream_of(workload, steps, working(0.2), at)
}

/// The same where what is lost is lost on the way.
fn on_the_way(steps: &[Step]) -> MadeRun {
    asked(steps, 1, Lost::OnTheWay)
}

/// Of 500 datagrams 320 arrive, and so many more or less in turn.
fn in_turn(differ: i64) -> Vec<Step> {
    let step = |at: i64| match at % 2 {
        0 => (320 + differ, 180 - differ),
        _ => (320 - differ, 180 + differ),
    };
    (0..20).map(step).collect()
}

#[test]
fn a_path_that_passes_a_rate_of_datagrams_loses_evenly() {
    let near = |at: i64| match at {
        0 => (200, 0),
        1..6 => (195, 0),
        11 => (188, 12),
        _ => (195, 5),
    };
    let near: Vec<Step> = (0..20).map(near).collect();
    let uneven = near.iter().zip(0..);
    let uneven = uneven.map(|(step, at)| (step.0 + 12 * (1 - at % 3), step.1));
    let uneven: Vec<Step> = uneven.collect();
    let late = [(600, 400), (540, 360), (660, 440), (600, 400)];
    worlds! {
        /// 1448 B of payload in 1490 B of a frame.
        PathRate: on_the_way(&in_turn(1)), claim "74.1 Mbit/s of payload (76.3 Mbit/s with headers",
            claim "36 % of the datagrams";
        /// A fortieth above the rate: the queue fills first, and once it empties at a reading.
        PathRate: on_the_way(&near), claim "1.94 % of the datagrams";
        /// A machine that pauses at every reading hides that; but what is not lost at first is not lost by chance.
        none: on_the_way(&uneven);
        /// Where all is lost evenly a reader that is late does not matter: as much of what was lost is seen as of what came.
        PathRate: on_the_way(&late.repeat(5));
    }
}

#[test]
fn a_full_path_each_way_comes_before_missing_cpus() {
    // As fast as it goes: what the path does not pass is lost, and others have the CPUs.
    let flood = |way, steps: &[Step]| {
        let workload = going(&datagrams(None, BYTES as u64), way);
        let truth = like!(working(0.6); cpus: 2.0, worker_wait_share: 0.35);
        stream_of(workload, steps, truth, Lost::OnTheWay)
    };
    let both = |steps: &[Step]| {
        let to_server = flood(Direction::ToServer, steps);
        joined(to_server, flood(Direction::FromServer, steps))
    };
    worlds! {
        PathRate: both(&[(320, 9680); 20]), begins "To the server, the path is full",
            claim "From the server, the path is full";
        /// Where nothing is lost, what others have of the CPUs is what is missing.
        OtherPrograms: both(&[(10_000, 0); 20]);
    }
}

#[test]
fn losses_of_datagrams_are_told_by_where_and_how_they_lie() {
    let drawn = [4, 3, 6, 2, 5, 4, 7, 3, 1, 5].map(|lost| (200 - lost, lost));
    let bursts = [0, 7, 0, 14, 0, 0, 21, 0, 0, 7].map(|lost| (200 - lost, lost));
    let outage = |steps: usize| {
        let mut all = [(200, 0); 20];
        all[4..4 + steps].fill((0, 200));
        on_the_way(&all)
    };
    let few: Vec<Step> = (0..20).map(|at| (30 - at % 2, at % 2)).collect();
    let evenly = |segments, at| asked(&in_turn(1), segments, at);
    let by_chance = |segments, at| asked(&in_turn(11), segments, at);
    worlds! {
        // Datagrams lost by chance are of no full path.
        /// 180 of 500 vary by 11 where each is lost by itself.
        Pacing: on_the_way(&in_turn(11)),
            claim "116 Mbit/s with --bitrate 116 Mbit/s; 36 % of the datagrams are lost";
        /// 2 % of 200, as they were drawn. Ten readings do not tell.
        none: on_the_way(&drawn);
        Pacing: on_the_way(&drawn.repeat(2)), why "Check error counters";
        /// Seven at once, now and then; an outage of a tenth, and of a third of the time.
        none: on_the_way(&bursts.repeat(2));
        none: outage(2);
        none: outage(6);
        /// Every second time one of 30: of so few even losses lie as those by chance do.
        none: on_the_way(&few);

        // Datagrams lost elsewhere or in bursts are of no full path.
        PathRate: evenly(1, Lost::OnTheWay);
        /// A host that was not read may have lost them.
        none: evenly(1, Lost::Unknown);
        /// Bursts of 32 overflow a short queue at a rate that the path carries.
        none: evenly(32, Lost::OnTheWay);
        /// They reached the receiver.
        not PathRate: evenly(1, Lost::Unread);
        /// Neither are they lost by chance.
        Pacing: by_chance(1, Lost::OnTheWay);
        none: by_chance(32, Lost::OnTheWay);
        none: by_chance(1, Lost::Unknown);
        not Pacing: by_chance(1, Lost::Unread);

    }
}

#[test]
fn a_sender_without_time_is_the_limit_where_nearly_all_arrives() {
    let full = |steps: &[Step], rate_bps: Option<u64>| {
        let workload = datagrams(rate_bps, BYTES as u64);
        let mut run = stream_of(workload, steps, working(0.99), Lost::Unread);
        // The reader rests most of the time.
        let worker = Subject::Thread("worker-0".to_owned());
        run.grow("server", &worker, Metric::ThreadRun, 200_000_000);
        run
    };
    let few = [0, 40, 0, 0, 0, 80, 40, 0, 0, 40].map(|lost| (1000 - lost, lost));
    let many = few.map(|(_, lost)| (1000 - 5 * lost, 5 * lost));
    worlds! {
        /// The receive buffer loses 2 %, in bursts.
        Generator: full(&few, None);
        /// One that paces spins, so that its time says nothing.
        none: full(&few, Some(115_840_000));
        /// A tenth of what is sent does not arrive.
        none: full(&many, None);
    }
}

#[test]
fn what_was_missed_before_the_window_is_more_than_the_rate() {
    // A window of 1 s after 200 ms of warm-up.
    let share = |share: f64, throttled_share: f64| like!(Truth::stream(share * 100e6); throttled: Some(throttled_share), worker_share: 0.3);
    let tcp = like!(stream(); manner.rate_bps: Some(100_000_000));
    worlds! {
        Pacing: (&tcp, share(1.12, 0.33)), claim "before the window";
        Pacing: (&tcp, share(1.002, 0.0)), no "before the window";
        /// A quota that keeps the rate away is the limit; a rate far above what was asked for is no one's.
        CpuQuota: (&tcp, share(0.8, 0.33));
        not Pacing: (&tcp, share(1.4, 0.0));
        /// Datagrams make up for nothing.
        not Pacing: (datagrams(Some(100_000_000), BYTES as u64), share(1.12, 0.0));
    }
}

#[test]
fn what_damages_segments_is_looked_for_elsewhere_than_loss() {
    let damaged = |damaged: i64| {
        let truth = like!(Truth::sending(12.9e6, 20 * MS, 20 * MS); lost_share: 0.003, cwnd: 22);
        let mut run = run(stream(), &truth);
        let counter = Subject::Counter("Tcp.InCsumErrors".to_owned());
        run.grow("server", &counter, Metric::ProtocolCounter, damaged);
        run
    };
    worlds! {
        /// 12.9 Mbit/s in 20 ms with 0.3 % lost: what loss allows. Three segments are lost in the window.
        CongestionWindow: damaged(3), claim "3 segments per trial arrived with a wrong checksum",
            action "find what damages segments";
        CongestionWindow: damaged(0), claim "loss keeps small", action "--fq-rate";
        CongestionWindow: damaged(1), claim "loss keeps small", action "--fq-rate";
    }
}

/// Lost datagrams of each place, as far as any are.
fn lost_at(run: &MadeRun) -> Vec<(&'static str, f64)> {
    let outcome = outcomes(&run.recording).remove(0);
    let places = [
        name::LOST_RECEIVER_QDISC,
        name::LOST_REASSEMBLY,
        name::LOST_RECEIVER_IP,
        name::LOST_NOT_LOCATED,
    ];
    let lost = |place| Some((place, outcome.value(place)?));
    let lost = places.into_iter().filter_map(lost);
    lost.filter(|(_, count)| *count > 0.0).collect()
}

/// 3000 datagrams of which none arrives, with what hosts counted meanwhile.
fn none_arrives(counted: &[(&str, Metric, i64)]) -> MadeRun {
    let steps: Vec<Step> = (0..30).map(|_| (0, 100)).collect();
    let workload = datagrams(Some(34_752_000), BYTES as u64);
    let mut run = stream_of(workload, &steps, Truth::usual(), Lost::OnTheWay);
    for (host, metric, amount) in counted {
        run.grow(host, &Subject::Host, *metric, *amount);
    }
    run
}

#[test]
fn what_the_receiving_host_drops_is_not_lost_on_the_way() {
    const CAME: Metric = Metric::SnmpIpInReceives;
    const DELIVERED: Metric = Metric::SnmpIpInDelivers;
    // Its packet filter: they came to IP, and were not delivered.
    let filtered = none_arrives(&[("server", CAME, 3_100), ("server", DELIVERED, 100)]);
    assert_eq!(lost_at(&filtered), [(name::LOST_RECEIVER_IP, 3_000.0)]);
    // Its memory for fragments, of which each datagram has six; one in 3000 came without its last.
    let fragments = none_arrives(&[
        ("client1", Metric::SnmpIpFragOks, 3_000),
        ("client1", Metric::SnmpIpFragCreates, 18_000),
        ("server", CAME, 18_100),
        ("server", DELIVERED, 100),
        ("server", Metric::SnmpIpReasmReqds, 18_000),
        ("server", Metric::SnmpIpReasmOks, 0),
        ("server", Metric::SnmpIpReasmFails, 17_995),
        ("server", Metric::SnmpIpReasmTimeout, 1),
    ]);
    let (reassembly, elsewhere) = (name::LOST_REASSEMBLY, name::LOST_NOT_LOCATED);
    assert_eq!(
        lost_at(&fragments),
        [(reassembly, 2_999.0), (elsewhere, 1.0)]
    );
    let nothing = none_arrives(&[("server", CAME, 100), ("server", DELIVERED, 100)]);
    assert_eq!(lost_at(&nothing), [(elsewhere, 3_000.0)]);
    worlds! {
        NothingArrives: filtered, action "nft list ruleset";
        NothingArrives: fragments, action "-l 1400";
        /// Nothing came.
        NothingArrives: nothing;
    }
    // A router's packets are passed on, and those of IPv6 that connection tracking joins are nobody's loss.
    let passed_on = ("server", Metric::SnmpIpForwarded, 3_000);
    let forwarded = none_arrives(&[
        ("server", CAME, 3_100),
        ("server", DELIVERED, 100),
        passed_on,
    ]);
    assert_eq!(lost_at(&forwarded), [(elsewhere, 3_000.0)]);
}

#[test]
fn small_datagrams_may_meet_a_limit_of_packets() {
    let of = |bytes: u64| {
        let workload = like!(datagrams(Some(100_000_000), bytes); manner.segments: 1);
        stream_of(workload, &in_turn(0), working(0.2), Lost::OnTheWay)
    };
    worlds! {
        PathRate: of(64), claim "datagrams per second", action "-l 1400";
    }
    let large = named(&of(1400), Limiter::PathRate);
    says!(large.claim; no "datagrams per second");
    says!(large.action.unwrap_or_default(); no "-l 1400");
}
