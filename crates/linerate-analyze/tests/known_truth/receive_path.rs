//! Backlogs, one CPU of packets, PCIe links: found where they are, and only there.

use linerate_truth::lint::disagreements;

use crate::prelude::*;
use crate::{Growth, grow};

/// A measurement of one connection on a link of 100 Gbit/s.
fn measured(growth: &[Growth]) -> MadeRun {
    of_flows(1, growth)
}

/// The same of several connections.
fn of_flows(connections: u32, growth: &[Growth]) -> MadeRun {
    let mut run = begun(
        Some(100e9),
        "throughput",
        None,
        like!(stream(); connections),
    );
    run.cell(&[], &[Truth::stream(40e9)]);
    grow(&mut run.recording, TrialId(1), growth);
    run
}

/// The one finding or caution of this kind.
fn found(run: &MadeRun, id: &str) -> Option<Finding> {
    let findings = told(&run.recording).into_iter();
    let mut found: Vec<_> = findings.filter(|finding| finding.id.contains(id)).collect();
    assert!(found.len() <= 1, "{found:?}");
    found.pop()
}

fn cpu(cpu: u32, metric: Metric, amount: i64) -> Growth {
    (Subject::Cpu(cpu), metric, amount)
}

#[test]
fn drops_of_all_cpus_are_told_and_none_are_not() {
    let dropped = |at, amount| cpu(at, Metric::SoftnetDropped, amount);
    let none = measured(&[dropped(0, 0), cpu(0, Metric::SoftnetSqueezed, 9)]);
    for id in ["caution/backlog", "caution/squeezed"] {
        assert_eq!(found(&none, id), None);
    }
    let some = measured(&[dropped(0, 7), dropped(1, 5)]);
    let finding = found(&some, "caution/backlog").expect("packets were dropped");
    assert_eq!(finding.effect.value, 12.0);
    says!(finding.claim; "12 packets");
    let one = found(&measured(&[dropped(0, 1)]), "caution/backlog");
    says!(one.expect("a packet was dropped").claim; "dropped 1 packet because");
}

#[test]
fn squeezes_are_told_where_they_are_many() {
    let squeezed = |at, amount| cpu(at, Metric::SoftnetSqueezed, amount);
    let many = measured(&[squeezed(0, 300), squeezed(1, 100)]);
    let finding = found(&many, "caution/squeezed").expect("turns ended early");
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
    let of = |run: &MadeRun| found(run, ID).expect("CPU 1 is full");
    let room_is_left = measured(&soft(&[0.8, 0.1, 0.0]));
    assert_eq!(found(&room_is_left, ID), None);
    let all_work = measured(&soft(&[0.95, 0.9, 0.9]));
    assert_eq!(found(&all_work, ID), None);
    let mut growth = soft(&[0.1, 0.97, 0.0]);
    let finding = of(&measured(&growth));
    says!(finding.claim; begins "CPU 1 of server spent 97");
    says!(finding.explanation; no "fullest");

    // One flow lies on one queue whatever the hash, and more queues do not help it.
    growth.extend(packets(&[0, 1_000_000, 0, 0]));
    let finding = of(&measured(&growth));
    says!(finding.explanation; "One flow stays on one queue", no "fullest");
    assert_eq!(finding.evidence.as_slice().len(), 1);

    // Of several, the packets are told beside what chance gives for equal ones.
    let mut several = of_flows(16, &growth);
    let finding = of(&several);
    says!(finding.explanation; "took 4.00 times its share; random hashing of 16 equal flows gives up to");
    assert_eq!(finding.evidence.as_slice().len(), 2);
    // Those that other hosts have do not come here.
    let flows = &mut several.recording.flows;
    flows.retain(|flow| &*flow.host.0 != "server" || flow.flow.0 < 4);
    says!(of(&several).explanation; "random hashing of 4 equal flows");
}

/// Chapter 12 on a full link of 1 Gbit/s, four trials; what CPU 0 of the server spent in softirqs in each, and
/// how often its NAPI ran out of budget.
fn full_link(shares: [f64; 4], squeezed: [i64; 4]) -> MadeRun {
    let mut run = begun(GIGABIT, "queues", Some(12), stream());
    run.cell(&[], &vec![Truth::stream(941e6); 4]);
    for trial in 0..4 {
        let soft = (shares[trial] * 1e9) as i64;
        let growth = [
            cpu(0, Metric::CpuSoftIrq, soft),
            cpu(1, Metric::CpuSoftIrq, 0),
            cpu(0, Metric::SoftnetSqueezed, squeezed[trial]),
        ];
        grow(&mut run.recording, TrialId(trial as u32 + 1), &growth);
    }
    run
}

#[test]
fn of_several_trials_it_is_said_how_many_and_the_share_is_one_that_can_be() {
    let recording = full_link([1.02, 0.3, 0.95, 0.2], [300, 0, 20, 5]);
    let finding = found(&recording, "caution/one-cpu-of-packets").expect("CPU 0 was full twice");
    says!(finding.claim;
        begins "CPU 0 of server spent 90 % and more of its time in interrupts in 2 of 4 trials of",
        "(100 % at the most)");
    assert_eq!(finding.effect.value, 1.0);
    let finding = found(&recording, "caution/squeezed").expect("NAPI ran out of budget twice");
    says!(finding.claim; "in 2 of 4 trials of", "300 times per second at the most");
}

/// A CPU that was full beside a full link is no limiter: the chapter names one, the link.
#[test]
fn a_full_cpu_beside_a_full_link_is_not_called_the_limiter() {
    let analysis = analyze(&full_link([0.99, 0.98, 0.97, 0.3], [0; 4]).recording);
    let chapter = chapter(&analysis, "queues");
    let answer = chapter.answer.as_deref().expect("an answer");
    says!(answer; "in 3 of 4 trials", no "limiter");
    let consequence = chapter.consequence.as_deref().expect("a limiter");
    says!(consequence; begins "Limited by the link's rate");
    let about_it = |it: &String| it.starts_with(&chapter.title);
    assert!(!disagreements(&analysis).iter().any(about_it));
}

#[test]
fn a_pcie_link_is_told_where_it_is_narrower_than_the_card() {
    let with = |bps: f64| {
        let mut run = measured(&[]);
        let rate = FactValue::Number(bps, Unit::BitsPerSecond);
        run.tell("server", "link.eth0.pcie_bps", rate);
        let narrowest = text("0000:01:00.0: x8 at 8 GT/s");
        run.tell("server", "link.eth0.pcie_narrowest", narrowest);
        found(&run, "caution/pcie")
    };
    let finding = with(63e9).expect("63 Gbit/s under 100");
    let is_so = finding.explanation.contains("0000:01:00.0: x8");
    assert!(is_so, "{finding:?}");
    assert!((finding.effect.value - 0.9 * 63e9).abs() < 1.0);
    assert_eq!(with(126e9), None);
}
