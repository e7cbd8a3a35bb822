//! Receive queues: packets, connections and chance, from recordings in which each flow's queue is known.

use linerate_analyze::reduce;
use linerate_model::host::Fact;
use linerate_model::run::{FlowRecord, Incoming};

use crate::prelude::*;

const QUEUES: u32 = 4;
const REPLICATES: usize = 3;
/// Packets that each flow's queue takes in the window.
const PACKETS: i64 = 1000;
/// The NAPI of queue 0.
const NAPI: u32 = 8000;

/// Chapter 12 with 1, 4 and 16 connections; `queue_of` says where each lies, if `queues` is not 0.
fn recording(queues: u32, queue_of: impl Fn(&FlowRecord) -> u32) -> Recording {
    let mut run = begun(GIGABIT, "queues", Some(12), stream());
    for connections in [1, 4, 16] {
        let level = (Factor::Connections, Level::Count(connections));
        run.cell(&[level], &vec![Truth::stream(500e6); REPLICATES]);
    }
    let mut recording = run.recording;
    let facts = &mut recording.document.hosts[0].snapshot.facts;
    for queue in 0..queues {
        let mut add = |fact: &str, value| {
            let name = format!("queue.eth0.rx.{queue}.{fact}");
            facts.push(Fact { name, value });
        };
        let number = |number: u32| FactValue::Number(number.into(), Unit::None);
        add("napi", number(NAPI + queue));
        add("irq", number(40 + queue));
        add("cpus", FactValue::Text((queue % 2).to_string()));
        add("node", number(0));
    }
    let mut packets = std::collections::BTreeMap::new();
    let flows = recording.flows.iter_mut();
    for flow in flows.filter(|it| it.end == End::Server) {
        let of_trial = packets.entry(flow.trial);
        let of_trial = of_trial.or_insert_with(|| vec![0; queues as usize]);
        if queues > 0 {
            let queue = queue_of(flow);
            of_trial[queue as usize] += PACKETS;
            flow.outcome.incoming = Incoming {
                cpu: Some(queue % 2),
                napi: Some(NAPI + queue),
            };
        }
    }
    for (trial, packets) in packets {
        let queues = packets.iter().enumerate().map(|(queue, packets)| {
            let subject = Subject::Queue("eth0".to_owned(), QueueKind::Rx, queue as u32);
            (subject, Metric::QueueRxPackets, *packets)
        });
        let cpus = [0, 1].map(|cpu| {
            let of_cpu = packets.iter().skip(cpu).step_by(2).sum::<i64>();
            (Subject::Cpu(cpu as u32), Metric::SoftnetProcessed, of_cpu)
        });
        let growth: Vec<_> = queues.chain(cpus).collect();
        crate::grow(&mut recording, trial, &growth);
    }
    recording
}

/// The values of a response with 16 connections.
fn check(recording: &Recording, response: &str, expected: Option<f64>) {
    let outcomes = reduce::outcomes(recording);
    for outcome in &outcomes[2 * REPLICATES..] {
        let found = outcome.value(response);
        let agree = match found.zip(expected) {
            Some((found, expected)) => (found - expected).abs() < 1e-6 * expected.max(1.0),
            None => found == expected,
        };
        assert!(agree, "{response} is {found:?}, not {expected:?}");
    }
}

fn chapter_and_finding(recording: &Recording) -> (Chapter, Option<Finding>) {
    let analysis = analyze(recording);
    let chapter = analysis.chapters.into_iter().find(|it| it.id == "queues");
    let mut findings = analysis.findings.into_iter();
    let finding = findings.find(|finding| finding.id == "queues/queue-balance");
    (chapter.expect("chapter 12"), finding)
}

#[test]
fn connections_that_are_dealt_in_turn_lie_evenly() {
    let recording = recording(QUEUES, |flow| flow.flow.0 % QUEUES);
    check(&recording, "rx_queues", Some(4.0));
    check(&recording, "rx_queue_packets_per_s", Some(16_000.0));
    check(&recording, "rx_queue_most_packets_per_s", Some(4000.0));
    check(&recording, "rx_queue_imbalance", Some(1.0));
    check(&recording, "rx_queue_flows_imbalance", Some(1.0));
    check(&recording, "cpu_packets_imbalance", Some(1.0));
    check(&recording, "cpu_most_packets_per_s", Some(8000.0));
    let (chapter, finding) = chapter_and_finding(&recording);
    assert_eq!(finding, None, "no less even than chance lays them");
    let ids = chapter.figures.iter().map(|figure| &*figure.id);
    assert!(ids.eq(["queues-packets", "queues-chance", "queues-cpu-packets"]));
    // The question first, by the trials with several connections.
    let answer = chapter.answer.expect("an answer");
    let (verdict, rest) = answer.split_once(". ").expect("several sentences");
    assert!(verdict.ends_with("0 of 6 trials"), "{answer}");
    assert!(rest.contains("took 1.00 times its share"), "{answer}");
}

#[test]
fn connections_that_all_lie_on_one_queue_are_worse_than_chance() {
    let recording = recording(QUEUES, |_| 2);
    check(&recording, "rx_queue_imbalance", Some(4.0));
    check(&recording, "rx_queue_flows_imbalance", Some(4.0));
    check(&recording, "cpu_packets_imbalance", Some(2.0));
    let (chapter, finding) = chapter_and_finding(&recording);
    let finding = finding.expect("worse than chance");
    assert_eq!(finding.kind, FindingKind::Effect);
    says!(finding.claim; "in 6 of 6 trials");
    assert_eq!(finding.effect.value, 4.0);
    let answer = chapter.answer.as_deref().expect("an answer");
    assert!(answer.starts_with(&finding.claim), "{answer}");
    assert_eq!(answer.matches(&finding.claim).count(), 1, "{answer}");
    // Imbalance and bound of 16 and of 4 connections.
    assert_eq!(finding.evidence.as_slice().len(), 4);
    let mut tables = chapter.tables.iter();
    let map = tables.find(|it| it.title.starts_with("Receive queues"));
    let map = map.expect("the map of queues");
    let text = |text: &str| TableCell::Text(text.to_owned());
    assert_eq!(map.rows.len(), 4);
    let row = &map.rows[2];
    assert_eq!(row[0], text("rx 2"));
    let is_so = matches!(row[1], TableCell::Number(16.0, Unit::Count));
    assert!(is_so, "{row:?}");
    let of = [3, 5, 6].map(|column| &row[column]);
    assert_eq!(of, ["42", "0", "0"].map(text).each_ref());
}

#[test]
fn where_sockets_do_not_tell_packets_are_judged() {
    let mut recording = recording(QUEUES, |_| 0);
    for flow in &mut recording.flows {
        flow.outcome.incoming = Incoming::default();
    }
    check(&recording, "rx_queue_imbalance", Some(4.0));
    check(&recording, "rx_queue_flows_imbalance", None);
    let (_, finding) = chapter_and_finding(&recording);
    let finding = finding.expect("judged");
    says!(finding.claim; begins "RSS spreads the packets less evenly");
}

#[test]
fn one_queue_has_nothing_to_balance_and_none_says_why() {
    let one = recording(1, |_| 0);
    check(&one, "rx_queues", Some(1.0));
    check(&one, "rx_queue_imbalance", None);
    let (chapter, finding) = chapter_and_finding(&one);
    assert_eq!(finding, None);
    let answer = chapter.answer.expect("an answer");
    says!(answer; "eth0 of server has one receive queue");
    let none = recording(0, |_| 0);
    check(&none, "rx_queues", None);
    let (chapter, finding) = chapter_and_finding(&none);
    assert_eq!(finding, None);
    let answer = chapter.answer.expect("an answer");
    says!(answer; begins "There are no counters of packets by receive queue");
}
