//! Backlogs, one CPU of packets, PCIe links: found where they are, and only there.

use linerate_model::TrialId;
use linerate_model::finding::Finding;
use linerate_model::host::{Fact, FactValue};
use linerate_model::metric::Metric;
use linerate_model::run::Recording;
use linerate_model::sample::{QueueKind, Subject};
use linerate_model::unit::Unit;
use linerate_model::workload::Workload;

use crate::builder::{MadeRun, Truth, stream};
use crate::{Growth, grow, told};
use linerate_analyze::analyze;
use linerate_truth::lint::disagreements;

/// A measurement of one connection on a link of 100 Gbit/s.
fn recording(growth: &[Growth]) -> Recording {
    of_flows(1, growth)
}

/// The same of several connections.
fn of_flows(connections: u32, growth: &[Growth]) -> Recording {
    let mut run = MadeRun::new(1, Some(100e9));
    let workload = Workload {
        connections,
        ..stream()
    };
    run.experiment("throughput", None, workload);
    run.cell(&[], &[Truth::stream(40e9)]);
    let mut recording = run.recording;
    grow(&mut recording, TrialId(1), growth);
    recording
}

fn found(recording: &Recording, id: &str) -> Option<Finding> {
    let findings = told(recording);
    let found = findings
        .into_iter()
        .filter(|finding| finding.id.contains(id));
    let found: Vec<_> = found.collect();
    assert!(found.len() <= 1, "{found:?}");
    found.into_iter().next()
}

fn cpu(cpu: u32, metric: Metric, amount: i64) -> Growth {
    (Subject::Cpu(cpu), metric, amount)
}

#[test]
fn drops_of_all_cpus_are_told_and_none_are_not() {
    let none = [
        cpu(0, Metric::SoftnetDropped, 0),
        cpu(0, Metric::SoftnetSqueezed, 9),
    ];
    for id in ["caution/backlog", "caution/squeezed"] {
        assert_eq!(found(&recording(&none), id), None);
    }
    let some = [
        cpu(0, Metric::SoftnetDropped, 7),
        cpu(1, Metric::SoftnetDropped, 5),
    ];
    let finding = found(&recording(&some), "caution/backlog").expect("packets were dropped");
    assert_eq!(finding.effect.value, 12.0);
    assert!(finding.claim.contains("12 packets"), "{}", finding.claim);
    let one = found(
        &recording(&[cpu(0, Metric::SoftnetDropped, 1)]),
        "caution/backlog",
    );
    let one = one.expect("a packet was dropped").claim;
    assert!(one.contains("dropped 1 packet because"), "{one}");
}

#[test]
fn squeezes_are_told_where_they_are_many() {
    let many = [
        cpu(0, Metric::SoftnetSqueezed, 300),
        cpu(1, Metric::SoftnetSqueezed, 100),
    ];
    let finding = found(&recording(&many), "caution/squeezed").expect("turns ended early");
    assert!((finding.effect.value - 400.0).abs() < 1e-6, "{finding:?}");
}

/// Shares of the window in softirqs, by CPU.
fn soft(shares: &[f64]) -> Vec<Growth> {
    let of = |(at, share): (usize, &f64)| cpu(at as u32, Metric::CpuSoftIrq, (share * 1e9) as i64);
    shares.iter().enumerate().map(of).collect()
}

fn packets(queues: &[i64]) -> impl Iterator<Item = Growth> {
    queues.iter().enumerate().map(|(at, packets)| {
        let subject = Subject::Queue("eth0".to_owned(), QueueKind::Rx, at as u32);
        (subject, Metric::QueueRxPackets, *packets)
    })
}

#[test]
fn one_cpu_that_takes_all_packets_is_told_with_its_queues() {
    const ID: &str = "caution/one-cpu-of-packets";
    assert_eq!(
        found(&recording(&soft(&[0.8, 0.1, 0.0])), ID),
        None,
        "room is left"
    );
    assert_eq!(
        found(&recording(&soft(&[0.95, 0.9, 0.9])), ID),
        None,
        "all work"
    );
    let mut growth = soft(&[0.1, 0.97, 0.0]);
    let finding = found(&recording(&growth), ID).expect("CPU 1 is full");
    assert!(
        finding.claim.starts_with("CPU 1 of server spent 97"),
        "{}",
        finding.claim
    );
    assert!(
        !finding.explanation.contains("fullest"),
        "{}",
        finding.explanation
    );

    // One flow lies on one queue whatever the hash, and more queues do not help it.
    growth.extend(packets(&[0, 1_000_000, 0, 0]));
    let finding = found(&recording(&growth), ID).expect("CPU 1 is full");
    let explanation = &finding.explanation;
    assert!(
        explanation.contains("One flow stays on one queue") && !explanation.contains("fullest"),
        "{explanation}"
    );
    assert_eq!(finding.evidence.as_slice().len(), 1);

    // Of several, the packets are told beside what chance gives for equal ones.
    let mut several = of_flows(16, &growth);
    let finding = found(&several, ID).expect("CPU 1 is full");
    let explanation = &finding.explanation;
    assert!(
        explanation
            .contains("took 4.00 times its share; random hashing of 16 equal flows gives up to"),
        "{explanation}"
    );
    assert_eq!(finding.evidence.as_slice().len(), 2);
    // Those that other hosts have do not come here.
    several
        .flows
        .retain(|flow| flow.host.to_string() != "server" || flow.flow.0 < 4);
    let finding = found(&several, ID).expect("CPU 1 is full");
    let explanation = &finding.explanation;
    assert!(
        explanation.contains("random hashing of 4 equal flows"),
        "{explanation}"
    );
}

/// Chapter 12 on a full link of 1 Gbit/s, four trials; what CPU 0 of the server spent in softirqs in each, and
/// how often its NAPI ran out of budget.
fn full_link(shares: [f64; 4], squeezed: [i64; 4]) -> Recording {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("queues", Some(12), stream());
    run.cell(&[], &vec![Truth::stream(941e6); 4]);
    let mut recording = run.recording;
    for trial in 0..4 {
        let soft = (shares[trial] * 1e9) as i64;
        let growth = [
            cpu(0, Metric::CpuSoftIrq, soft),
            cpu(1, Metric::CpuSoftIrq, 0),
            cpu(0, Metric::SoftnetSqueezed, squeezed[trial]),
        ];
        grow(&mut recording, TrialId(trial as u32 + 1), &growth);
    }
    recording
}

#[test]
fn of_several_trials_it_is_said_how_many_and_the_share_is_one_that_can_be() {
    let recording = full_link([1.02, 0.3, 0.95, 0.2], [300, 0, 20, 5]);
    let finding = found(&recording, "caution/one-cpu-of-packets").expect("CPU 0 was full twice");
    assert!(
        finding.claim.starts_with(
            "CPU 0 of server spent 90 % and more of its time in interrupts in 2 of 4 trials of"
        ) && finding.claim.contains("(100 % at the most)"),
        "{}",
        finding.claim
    );
    assert_eq!(finding.effect.value, 1.0);
    let finding = found(&recording, "caution/squeezed").expect("NAPI ran out of budget twice");
    assert!(
        finding.claim.contains("in 2 of 4 trials of")
            && finding.claim.contains("300 times per second at the most"),
        "{}",
        finding.claim
    );
}

/// A CPU that was full beside a full link is no limiter: the chapter names one, the link.
#[test]
fn a_full_cpu_beside_a_full_link_is_not_called_the_limiter() {
    let analysis = analyze(&full_link([0.99, 0.98, 0.97, 0.3], [0; 4]));
    let chapter = analysis.chapters.iter().find(|it| it.id == "queues");
    let chapter = chapter.expect("chapter 12");
    let answer = chapter.answer.as_deref().expect("an answer");
    assert!(answer.contains("in 3 of 4 trials"), "{answer}");
    assert!(!answer.contains("limiter"), "{answer}");
    let consequence = chapter.consequence.as_deref().expect("a limiter");
    assert!(
        consequence.starts_with("Limited by the link's rate"),
        "{consequence}"
    );
    let about_it = |it: &String| it.starts_with(&chapter.title);
    assert!(!disagreements(&analysis).iter().any(about_it));
}

#[test]
fn a_pcie_link_is_told_where_it_is_narrower_than_the_card() {
    let with = |bps: f64| {
        let mut recording = recording(&[]);
        let facts = [
            (
                "link.eth0.pcie_bps",
                FactValue::Number(bps, Unit::BitsPerSecond),
            ),
            (
                "link.eth0.pcie_narrowest",
                FactValue::Text("0000:01:00.0: x8 at 8 GT/s".to_owned()),
            ),
        ];
        let hosts = &mut recording.document.hosts;
        let server = hosts.iter_mut().find(|host| &*host.name.0 == "server");
        let facts = facts.map(|(name, value)| Fact {
            name: name.to_owned(),
            value,
        });
        server.expect("a server").snapshot.facts.extend(facts);
        found(&recording, "caution/pcie")
    };
    let finding = with(63e9).expect("63 Gbit/s under 100");
    assert!(
        finding.explanation.contains("0000:01:00.0: x8"),
        "{finding:?}"
    );
    assert!((finding.effect.value - 0.9 * 63e9).abs() < 1.0);
    assert_eq!(with(126e9), None);
}
