//! Datagrams that are lost on the way: of a full path, by chance, in bursts. And rates that were asked for, beside what
//! else might hold them.

use linerate_analyze::analyze;
use linerate_analyze::reduce::outcomes;
use linerate_model::datagram::Datagrams;
use linerate_model::finding::{Finding, FindingKind};
use linerate_model::limiter::Limiter;
use linerate_model::metric::Metric;
use linerate_model::response::name;
use linerate_model::sample::{Subject, TrialSample};
use linerate_model::workload::{Direction, Part, Workload};

use crate::both_ways::{going, joined};
use crate::builder::{MadeRun, Truth, stream};
use crate::streams::{MS, datagrams, grow, limiter_of, run};

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
    Truth {
        worker_share,
        ..Truth::usual()
    }
}

/// A stream of datagrams of which the receiver saw `steps`.
fn stream_of(workload: Workload, steps: &[Step], truth: Truth, at: Lost) -> MadeRun {
    let arrived: i64 = steps.iter().map(|step| step.0).sum();
    let lost: i64 = steps.iter().map(|step| step.1).sum();
    let truth = Truth {
        throughput_bps: (arrived * BYTES * 8) as f64,
        ..truth
    };
    let mut run = run(workload, &truth);
    if at != Lost::Unknown {
        let cpu = Subject::Cpu(0);
        for host in ["server", "client1"] {
            grow(&mut run, host, &cpu, Metric::SoftnetDropped, 0);
        }
    }
    crate::forget(&mut run.recording, Metric::AppBytesSent);
    let mut samples = Vec::new();
    for flow in &mut run.recording.flows {
        let counts: &[Counter] = match flow.part {
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
            let values = steps.iter().scan(0, |sum, step| {
                *sum += of(step);
                Some(*sum)
            });
            let values = std::iter::once(0).chain(values);
            samples.extend(values.zip(0..).map(|(value, step)| TrialSample {
                trial: flow.trial,
                host: flow.host.clone(),
                subject: Subject::Flow(flow.flow, flow.end),
                metric: *metric,
                at_ns: step * 1000 * MS / steps.len() as i64,
                value,
            }));
        }
        let sent = (arrived + lost) as u64;
        flow.outcome.datagrams = Some(Box::new(match flow.part {
            Part::Sender => Datagrams {
                sent,
                ..Datagrams::default()
            },
            _ => Datagrams {
                received: arrived as u64,
                highest: sent,
                announced: Some(sent),
                socket_drops: Some(match at {
                    Lost::Unread => lost as u64,
                    _ => 0,
                }),
                ..Datagrams::default()
            },
        }));
    }
    run.recording.samples.extend(samples);
    run
}

/// What limits a stream whose sender sends what was asked for, which the first of the `steps` has.
fn told_of(steps: &[Step], segments: u32, at: Lost) -> Option<(Limiter, Finding)> {
    let each = steps.first().map_or(0, |step| step.0 + step.1);
    let rate_bps = each * BYTES * 8 * steps.len() as i64;
    let mut workload = datagrams(Some(rate_bps as u64), BYTES as u64);
    workload.manner.segments = segments;
    limiter_of(&stream_of(workload, steps, working(0.2), at))
}

#[track_caller]
fn check(steps: &[Step], expected: Option<Limiter>) -> String {
    let told = told_of(steps, 1, Lost::OnTheWay);
    let (limiter, claim) = told
        .map(|(limiter, finding)| (limiter, finding.claim))
        .unzip();
    assert_eq!(limiter, expected, "{claim:?}: {steps:?}");
    claim.unwrap_or_default()
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
    let claim = check(&in_turn(1), Some(Limiter::PathRate));
    // 1448 B of payload in 1490 B of a frame.
    for words in [
        "74.1 Mbit/s of payload (76.3 Mbit/s with headers",
        "36 % of the datagrams",
    ] {
        assert!(claim.contains(words), "{claim}");
    }
    // A fortieth above the rate: the queue fills first, and once it empties at a reading.
    let near = |at: i64| match at {
        0 => (200, 0),
        1..6 => (195, 0),
        11 => (188, 12),
        _ => (195, 5),
    };
    let near: Vec<Step> = (0..20).map(near).collect();
    let claim = check(&near, Some(Limiter::PathRate));
    assert!(claim.contains("1.94 % of the datagrams"), "{claim}");
    // A machine that pauses at every reading hides that; but what is not lost at first is not lost by chance.
    let uneven = near.iter().zip(0..);
    let uneven: Vec<Step> = uneven
        .map(|(step, at)| (step.0 + 12 * (1 - at % 3), step.1))
        .collect();
    check(&uneven, None);
    // Where all is lost evenly a reader that is late does not matter: as much of what was lost is seen as of what came.
    let late = [(600, 400), (540, 360), (660, 440), (600, 400)];
    check(&late.repeat(5), Some(Limiter::PathRate));
}

#[test]
fn a_full_path_each_way_comes_before_missing_cpus() {
    // As fast as it goes: what the path does not pass is lost, and others have the CPUs.
    let flood = |way, steps: &[Step]| {
        let workload = going(&datagrams(None, BYTES as u64), way);
        let truth = Truth {
            cpus: 2.0,
            worker_wait_share: 0.35,
            ..working(0.6)
        };
        stream_of(workload, steps, truth, Lost::OnTheWay)
    };
    let limiter = |steps: &[Step]| {
        let to_server = flood(Direction::ToServer, steps);
        let run = joined(to_server, flood(Direction::FromServer, steps));
        limiter_of(&run).map(|(limiter, finding)| (limiter, finding.claim))
    };
    let (found, claim) = limiter(&[(320, 9680); 20]).expect("a limiter");
    assert_eq!(found, Limiter::PathRate, "{claim}");
    assert!(
        claim.starts_with("To the server, the path is full"),
        "{claim}"
    );
    assert!(
        claim.contains("From the server, the path is full"),
        "{claim}"
    );
    // Where nothing is lost, what others have of the CPUs is what is missing.
    let (found, claim) = limiter(&[(10_000, 0); 20]).expect("a limiter");
    assert_eq!(found, Limiter::OtherPrograms, "{claim}");
}

#[test]
fn datagrams_lost_by_chance_are_of_no_full_path() {
    // 180 of 500 vary by 11 where each is lost by itself.
    let claim = check(&in_turn(11), Some(Limiter::Pacing));
    assert!(
        claim.contains("116 Mbit/s with --bitrate 116 Mbit/s; 36 % of the datagrams are lost"),
        "{claim}"
    );
    // 2 % of 200, as they were drawn.
    let drawn = [4, 3, 6, 2, 5, 4, 7, 3, 1, 5].map(|lost| (200 - lost, lost));
    // Ten readings do not tell.
    check(&drawn, None);
    let drawn = drawn.repeat(2);
    check(&drawn, Some(Limiter::Pacing));
    let (_, finding) = told_of(&drawn, 1, Lost::OnTheWay).expect("asked for");
    assert!(
        finding.explanation.contains("Check error counters"),
        "{}",
        finding.explanation
    );
    // Seven at once, now and then; an outage of a tenth, and of a third of the time.
    let bursts = [0, 7, 0, 14, 0, 0, 21, 0, 0, 7].map(|lost| (200 - lost, lost));
    check(&bursts.repeat(2), None);
    let outage = |steps: i64| -> Vec<Step> {
        let step = |at: i64| {
            if (4..4 + steps).contains(&at) {
                (0, 200)
            } else {
                (200, 0)
            }
        };
        (0..20).map(step).collect()
    };
    check(&outage(2), None);
    check(&outage(6), None);
    // Every second time one of 30: of so few even losses lie as those by chance do.
    let few: Vec<Step> = (0..20).map(|at| (30 - at % 2, at % 2)).collect();
    check(&few, None);
}

#[test]
fn datagrams_lost_elsewhere_or_in_bursts_are_of_no_full_path() {
    let limiter = |segments, at| told_of(&in_turn(1), segments, at).map(|it| it.0);
    assert_eq!(limiter(1, Lost::OnTheWay), Some(Limiter::PathRate));
    // A host that was not read may have lost them.
    assert_eq!(limiter(1, Lost::Unknown), None);
    // Bursts of 32 overflow a short queue at a rate that the path carries.
    assert_eq!(limiter(32, Lost::OnTheWay), None);
    // They reached the receiver.
    assert_ne!(limiter(1, Lost::Unread), Some(Limiter::PathRate));
    // Neither are they lost by chance.
    let limiter = |segments, at| told_of(&in_turn(11), segments, at).map(|it| it.0);
    assert_eq!(limiter(1, Lost::OnTheWay), Some(Limiter::Pacing));
    assert_eq!(limiter(32, Lost::OnTheWay), None);
    assert_eq!(limiter(1, Lost::Unknown), None);
    assert_ne!(limiter(1, Lost::Unread), Some(Limiter::Pacing));
}

#[test]
fn a_sender_without_time_is_the_limit_where_nearly_all_arrives() {
    let limiter = |steps: &[Step], rate_bps: Option<u64>| {
        let workload = datagrams(rate_bps, BYTES as u64);
        let run = stream_of(workload, steps, working(0.99), Lost::Unread);
        let mut run = run;
        // The reader rests most of the time.
        let worker = Subject::Thread("worker-0".to_owned());
        grow(&mut run, "server", &worker, Metric::ThreadRun, 200_000_000);
        let analysis = analyze(&run.recording);
        let mut told = analysis.findings.iter().chain(&analysis.cautions);
        told.find_map(|finding| match finding.kind {
            FindingKind::Limiter(limiter) => Some(limiter),
            _ => None,
        })
    };
    // The receive buffer loses 2 %, in bursts.
    let few = [0, 40, 0, 0, 0, 80, 40, 0, 0, 40].map(|lost| (1000 - lost, lost));
    assert_eq!(limiter(&few, None), Some(Limiter::Generator));
    // One that paces spins, so that its time says nothing.
    assert_eq!(limiter(&few, Some(115_840_000)), None);
    // A tenth of what is sent does not arrive.
    let many = few.map(|(_, lost)| (1000 - 5 * lost, 5 * lost));
    assert_eq!(limiter(&many, None), None);
}

#[test]
fn what_was_missed_before_the_window_is_more_than_the_rate() {
    // A window of 1 s after 200 ms of warm-up.
    let told = |workload: Workload, share: f64, throttled_share: f64| {
        let truth = Truth {
            throttled: Some(throttled_share),
            worker_share: 0.3,
            ..Truth::stream(share * 100e6)
        };
        let found = limiter_of(&run(workload, &truth));
        found.map(|(limiter, finding)| (limiter, finding.claim))
    };
    let mut tcp = stream();
    tcp.manner.rate_bps = Some(100_000_000);
    let (limiter, claim) = told(tcp.clone(), 1.12, 0.33).expect("asked for");
    assert_eq!(limiter, Limiter::Pacing, "{claim}");
    assert!(claim.contains("before the window"), "{claim}");
    let (limiter, claim) = told(tcp.clone(), 1.002, 0.0).expect("asked for");
    assert_eq!(limiter, Limiter::Pacing, "{claim}");
    assert!(!claim.contains("before the window"), "{claim}");
    // A quota that keeps the rate away is the limit; a rate far above what was asked for is no one's.
    let limiter = told(tcp.clone(), 0.8, 0.33).map(|found| found.0);
    assert_eq!(limiter, Some(Limiter::CpuQuota));
    assert_ne!(told(tcp, 1.4, 0.0).map(|it| it.0), Some(Limiter::Pacing));
    // Datagrams make up for nothing.
    let udp = datagrams(Some(100_000_000), BYTES as u64);
    assert_ne!(told(udp, 1.12, 0.0).map(|it| it.0), Some(Limiter::Pacing));
}

#[test]
fn what_damages_segments_is_looked_for_elsewhere_than_loss() {
    // 12.9 Mbit/s in 20 ms with 0.3 % lost: what loss allows.
    let told = |damaged: i64| {
        let truth = Truth {
            lost_share: 0.003,
            cwnd: 22,
            ..Truth::sending(12.9e6, 20 * MS, 20 * MS)
        };
        let mut run = run(stream(), &truth);
        let counter = Subject::Counter("Tcp.InCsumErrors".to_owned());
        grow(
            &mut run,
            "server",
            &counter,
            Metric::ProtocolCounter,
            damaged,
        );
        let (limiter, finding) = limiter_of(&run).expect("loss limits");
        assert_eq!(limiter, Limiter::CongestionWindow, "{}", finding.claim);
        finding
    };
    // Three segments are lost in the window.
    let damaged = told(3);
    assert!(
        damaged
            .claim
            .contains("3 segments per trial arrived with a wrong checksum"),
        "{}",
        damaged.claim
    );
    let action = damaged.action.unwrap_or_default();
    assert!(action.contains("find what damages segments"), "{action}");
    for few in [0, 1] {
        let lost = told(few);
        assert!(lost.claim.contains("loss keeps small"), "{}", lost.claim);
        let action = lost.action.unwrap_or_default();
        assert!(action.contains("--fq-rate"), "{action}");
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
        grow(&mut run, host, &Subject::Host, *metric, *amount);
    }
    run
}

#[test]
fn what_the_receiving_host_drops_is_not_lost_on_the_way() {
    let check = |counted: &[(&str, Metric, i64)], expected: &[(&str, f64)], words: &str| {
        let run = none_arrives(counted);
        assert_eq!(lost_at(&run), expected);
        let (limiter, finding) = limiter_of(&run).expect("nothing arrives");
        assert_eq!(limiter, Limiter::NothingArrives, "{}", finding.claim);
        let action = finding.action.unwrap_or_default();
        assert!(action.contains(words), "{action}");
    };
    // Its packet filter: they came to IP, and were not delivered.
    check(
        &[
            ("server", Metric::SnmpIpInReceives, 3_100),
            ("server", Metric::SnmpIpInDelivers, 100),
        ],
        &[(name::LOST_RECEIVER_IP, 3_000.0)],
        "nft list ruleset",
    );
    // Its memory for fragments, of which each datagram has six; one in 3000 came without its last.
    check(
        &[
            ("client1", Metric::SnmpIpFragOks, 3_000),
            ("client1", Metric::SnmpIpFragCreates, 18_000),
            ("server", Metric::SnmpIpInReceives, 18_100),
            ("server", Metric::SnmpIpInDelivers, 100),
            ("server", Metric::SnmpIpReasmReqds, 18_000),
            ("server", Metric::SnmpIpReasmOks, 0),
            ("server", Metric::SnmpIpReasmFails, 17_995),
            ("server", Metric::SnmpIpReasmTimeout, 1),
        ],
        &[
            (name::LOST_REASSEMBLY, 2_999.0),
            (name::LOST_NOT_LOCATED, 1.0),
        ],
        "-l 1400",
    );
    // Nothing came.
    check(
        &[
            ("server", Metric::SnmpIpInReceives, 100),
            ("server", Metric::SnmpIpInDelivers, 100),
        ],
        &[(name::LOST_NOT_LOCATED, 3_000.0)],
        "",
    );
    // A router's packets are passed on, and those of IPv6 that connection tracking joins are nobody's loss.
    let forwarded = none_arrives(&[
        ("server", Metric::SnmpIpInReceives, 3_100),
        ("server", Metric::SnmpIpInDelivers, 100),
        ("server", Metric::SnmpIpForwarded, 3_000),
    ]);
    assert_eq!(lost_at(&forwarded), [(name::LOST_NOT_LOCATED, 3_000.0)]);
}

#[test]
fn small_datagrams_may_meet_a_limit_of_packets() {
    let told = |bytes: u64| {
        let mut workload = datagrams(Some(100_000_000), bytes);
        workload.manner.segments = 1;
        let run = stream_of(workload, &in_turn(0), working(0.2), Lost::OnTheWay);
        let (limiter, finding) = limiter_of(&run).expect("a full path");
        assert_eq!(limiter, Limiter::PathRate, "{}", finding.claim);
        (finding.claim, finding.action.unwrap_or_default())
    };
    let (claim, action) = told(64);
    assert!(claim.contains("datagrams per second"), "{claim}");
    assert!(action.contains("-l 1400"), "{action}");
    let (claim, action) = told(1400);
    assert!(!claim.contains("datagrams per second"), "{claim}");
    assert!(!action.contains("-l 1400"), "{action}");
}
