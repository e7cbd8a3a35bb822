//! A stream that goes both ways: each direction is told by its own evidence.

use crate::prelude::*;

pub(crate) fn going(workload: &Workload, way: Direction) -> Workload {
    let mut workload = workload.clone();
    if let Traffic::Stream { direction, .. } = &mut workload.traffic {
        *direction = way;
    }
    workload
}

/// A trial of two flows over a path of 20 ms, one each way.
fn both(workload: &Workload, to_server: &Truth, from_server: &Truth) -> MadeRun {
    let one = |way, truth| once(None, going(workload, way), truth);
    let to_server = one(Direction::ToServer, to_server);
    joined(to_server, one(Direction::FromServer, from_server))
}

/// The flow of `run`, and that of `other` which goes from the server, at once.
pub(crate) fn joined(mut run: MadeRun, other: MadeRun) -> MadeRun {
    let mut other = other.recording;
    for flow in &mut other.flows {
        flow.outcome.flow = FlowId(1);
    }
    let samples = other.samples.iter().filter_map(|sample| {
        let Subject::Flow(_, end) = sample.subject else {
            return None;
        };
        Some(like!(sample; subject: Subject::Flow(FlowId(1), end)))
    });
    let recording = &mut run.recording;
    recording.flows.extend(other.flows);
    recording.samples.extend(samples);
    let plan = &mut recording.document.plan;
    let workloads = plan.trials.iter_mut().map(|trial| &mut trial.workload);
    let of_experiments = plan.experiments.iter_mut().map(|it| &mut it.workload);
    for workload in workloads.chain(of_experiments) {
        *workload = going(workload, Direction::Both);
        workload.connections = 2;
    }
    run
}

/// Fills its direction: what waits is on its way to the receiver.
fn filling(bps: f64) -> Truth {
    let rtt_ns = 100 * MS;
    like!(Truth::sending(bps, rtt_ns, 20 * MS);
        on_its_way_bytes: Some((bps * (rtt_ns - 10 * MS) as f64 / 8e9) as i64))
}

/// Held by losses, while its ACKs wait behind the payload that goes the other way.
fn losing(bps: f64) -> Truth {
    like!(Truth::sending(bps, 100 * MS, 20 * MS); on_its_way_bytes: Some((bps * (10 * MS) as f64 / 8e9) as i64),
        lost_share: 0.01)
}

#[test]
fn the_direction_that_is_full_is_named_and_the_other_is_not() {
    let run = both(&stream(), &filling(95.4e6), &losing(6e6));
    let next = next_of(&run);
    // The page says the same.
    assert_eq!(named(&run, Limiter::PathRate).action, Some(next));
    worlds! {
        /// What 100 Mbit/s carry as shapers count, and 1 % of loss on the way back.
        PathRate: run, begins "To the server, the path is full: 95.4 Mbit/s of payload (what 100 Mbit/s Ethernet",
            claim " What limits the 6 Mbit/s from the server is not known; its ACKs wait on their way back.",
            next "measure what goes from the server alone, with `-R`";
        /// The other way round.
        PathRate: both(&stream(), &losing(6e6), &filling(95.4e6)),
            begins "From the server, the path is full: 95.4 Mbit/s", next "to the server alone, without `--bidir`";
        /// Neither is, where both wait for ACKs.
        none: both(&stream(), &losing(5e6), &losing(6e6));
    }
}

#[test]
fn both_are_told_where_both_are_known() {
    let window = like!(Truth::sending(65_536.0 * 8.0 * 50.0, 20 * MS, 20 * MS); window_bytes: 65_536,
        rwnd_share: 0.98, agreed: Some("timestamps, SACK, window scaling"));
    worlds! {
        PathRate: both(&stream(), &filling(47.5e6), &filling(30e6)),
            begins "To the server, the path is full: 47.5 Mbit/s",
            claim ". From the server, the path is full: 30 Mbit/s", next "slowest hop";
        /// A window one way, a full path the other.
        ReceiverWindow: both(&stream(), &window, &filling(10e6)), begins "To the server, the receive window",
            claim "From the server, the path is full: 10 Mbit/s", why " From the server: ";
    }
    // One path has no sum: each piece of evidence says which way it goes.
    let run = both(&stream(), &filling(47.5e6), &filling(30e6));
    let finding = named(&run, Limiter::PathRate);
    for piece in finding.evidence.as_slice() {
        let mut ways = ["to the server: ", "from the server: "].into_iter();
        assert!(ways.any(|way| piece.what.starts_with(way)), "{piece:?}");
    }
}

#[test]
fn a_rate_that_one_direction_reaches_is_its_own() {
    let asked = like!(stream(); manner.rate_bps: Some(50_000_000));
    let paced = like!(Truth::sending(50e6, 20 * MS, 20 * MS); busy_share: 0.3);
    worlds! {
        Pacing: both(&asked, &paced, &filling(14e6)),
            begins "To the server, the requested rate is the limit: 50 Mbit/s",
            claim "From the server, the path is full: 14 Mbit/s";
    }
}
