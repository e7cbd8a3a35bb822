//! What a trial of several groups cost: the same as were all of it one group's.

use linerate_analyze::reduce::{Together, together};
use linerate_model::workload::Group;

use crate::prelude::*;

const CONNECTIONS: u32 = 3;

/// A stream of three connections.
fn made() -> MadeRun {
    let truth = like!(Truth::stream(600e6); cpus: 0.8, others_cpus: 0.1);
    let workload = like!(stream(); connections: CONNECTIONS);
    trials(Some(10e9), workload, &[truth.clone(), truth])
}

/// The same, of which one connection is the first group's and two are another's.
fn of_two_groups() -> Recording {
    let mut recording = made().recording;
    let plan = &mut recording.document.plan;
    let trials = plan.trials.iter_mut();
    let trials = trials.map(|trial| (&mut trial.workload, &mut trial.beside));
    let experiments = plan.experiments.iter_mut();
    let experiments = experiments.map(|one| (&mut one.workload, &mut one.beside));
    for (workload, beside) in trials.chain(experiments) {
        let mut other = workload.clone();
        workload.connections = 1;
        other.connections = CONNECTIONS - 1;
        let (name, workload) = ("other".to_owned(), other);
        beside.push(Group { name, workload });
    }
    recording
}

fn all(recording: &Recording) -> Vec<Together> {
    together(recording, |_| true)
}

#[test]
fn groups_together_carry_and_cost_what_one_of_all_their_flows_does() {
    let one = outcomes(&made().recording).remove(0);
    let together = all(&of_two_groups());
    assert_eq!(together.len(), 2);
    let whole = &together[0];
    let value = |name: &str| one.value(name).expect("it was read");
    assert_eq!(whole.payload_bps, Some(value(name::THROUGHPUT)));
    for name in [name::CPU_COST, name::CPU_PER_KIB, name::CPU_OTHERS_ALL] {
        assert_eq!(whole.responses.get(name), Some(&value(name)), "{name}");
    }
    let server = &whole.hosts[0];
    assert_eq!(server.hosts, ["server"]);
    for name in [name::CPU_BUSY, name::CPU_USER, name::CPU_SYSTEM] {
        assert_eq!(server.responses.get(name), Some(&value(name)), "{name}");
    }
    assert_eq!(whole.hosts[1].hosts, ["client1"]);
    let bytes: Vec<Option<u64>> = whole.groups.iter().map(|it| it.payload_bytes).collect();
    let [Some(first), Some(other)] = bytes[..] else {
        panic!("{bytes:?}");
    };
    assert_eq!(whole.payload_bytes, Some(first + other));
    // Each flow carries a third.
    assert!(first > 0 && other.abs_diff(2 * first) <= 2, "{bytes:?}");
}

#[test]
fn a_group_that_was_not_read_leaves_no_sum() {
    let mut recording = of_two_groups();
    use Metric::{AppBytesReceived, TcpBytesAcked, TcpBytesReceived};
    let is_payload = [TcpBytesReceived, TcpBytesAcked, AppBytesReceived];
    let samples = recording.samples.iter().filter(|sample| {
        let is_last = matches!(sample.subject, Subject::Flow(flow, _) if flow.0 == 2);
        !(is_last && is_payload.contains(&sample.metric))
    });
    recording.samples = samples.collect();
    let whole = &all(&recording)[0];
    assert!(whole.groups[0].payload_bytes.is_some());
    assert_eq!((whole.payload_bytes, whole.payload_bps), (None, None));
    assert!(!whole.responses.contains_key(name::CPU_PER_KIB));
    // What the CPUs did is known all the same.
    assert!(whole.hosts[0].responses.contains_key(name::CPU_BUSY));
}

#[test]
fn a_report_has_the_cost_of_all_groups_once() {
    let tables = |recording: &Recording| {
        let chapters = linerate_analyze::analyze(recording).chapters;
        let tables = chapters.into_iter().flat_map(|chapter| chapter.tables);
        let of_all = tables.filter(|table| table.title.starts_with("All groups together"));
        of_all.collect::<Vec<_>>()
    };
    assert!(tables(&made().recording).is_empty());
    let told = tables(&of_two_groups());
    let [table] = &told[..] else {
        panic!("{told:?}");
    };
    let at = table.columns.iter().position(|head| head == "Payload");
    let TableCell::Estimate(payload) = &table.rows[0][at.expect("a column")] else {
        panic!("{table:?}");
    };
    assert!((payload.value / 600e6 - 1.0).abs() < 1e-3, "{payload:?}");
    // Where a group may not be used, nothing is said of all.
    let mut refused = of_two_groups();
    for trial in &mut refused.trials {
        trial.validity = linerate_model::run::Validity::Invalid("it was late".into());
    }
    assert!(tables(&refused).is_empty());
}
