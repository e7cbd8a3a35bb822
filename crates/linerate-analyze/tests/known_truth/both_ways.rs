//! A stream that goes both ways: each direction is told by its own evidence.

use linerate_analyze::analyze;
use linerate_model::FlowId;
use linerate_model::finding::{Finding, FindingKind};
use linerate_model::limiter::Limiter;
use linerate_model::manner::Manner;
use linerate_model::sample::{Subject, TrialSample};
use linerate_model::workload::{Direction, Traffic, Workload};

use crate::builder::{MadeRun, Truth, stream};

const MS: i64 = 1_000_000;

pub(crate) fn going(workload: &Workload, way: Direction) -> Workload {
    let mut workload = workload.clone();
    if let Traffic::Stream { direction, .. } = &mut workload.traffic {
        *direction = way;
    }
    workload
}

/// A trial of two flows over a path of 20 ms, one each way.
fn both(workload: &Workload, to_server: &Truth, from_server: &Truth) -> MadeRun {
    let one = |way, truth: &Truth| {
        let mut run = MadeRun::new(1, None);
        run.experiment("one", None, going(workload, way));
        run.cell(&[], std::slice::from_ref(truth));
        run
    };
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
        Some(TrialSample {
            subject: Subject::Flow(FlowId(1), end),
            ..sample
        })
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

/// The limiter that is named, what is said of it and what to do next.
#[track_caller]
fn named(run: &MadeRun) -> (Limiter, Finding, String) {
    let analysis = analyze(&run.recording);
    let limiters = analysis.findings.into_iter();
    let mut named = limiters.filter_map(|finding| match finding.kind {
        FindingKind::Limiter(limiter) => Some((limiter, finding)),
        _ => None,
    });
    let (limiter, finding) = named.next().expect("a limiter");
    let next = crate::as_single(&run.recording).next;
    let next = next.expect("something to do");
    (limiter, finding, next)
}

/// Fills its direction: what waits is on its way to the receiver.
fn filling(bps: f64) -> Truth {
    let rtt_ns = 100 * MS;
    Truth {
        on_its_way_bytes: Some((bps * (rtt_ns - 10 * MS) as f64 / 8e9) as i64),
        ..Truth::sending(bps, rtt_ns, 20 * MS)
    }
}

/// Held by losses, while its ACKs wait behind the payload that goes the other way.
fn losing(bps: f64) -> Truth {
    Truth {
        on_its_way_bytes: Some((bps * (10 * MS) as f64 / 8e9) as i64),
        lost_share: 0.01,
        ..Truth::sending(bps, 100 * MS, 20 * MS)
    }
}

#[test]
fn the_direction_that_is_full_is_named_and_the_other_is_not() {
    // What 100 Mbit/s carry as shapers count, and 1 % of loss on the way back.
    let run = both(&stream(), &filling(95.4e6), &losing(6e6));
    let (limiter, finding, next) = named(&run);
    assert_eq!(limiter, Limiter::PathRate, "{}", finding.claim);
    let claim = &finding.claim;
    assert!(
        claim.starts_with(
            "To the server, the path is full: 95.4 Mbit/s of payload (what 100 Mbit/s Ethernet"
        ),
        "{claim}"
    );
    assert!(
        claim.ends_with(
            " What limits the 6 Mbit/s from the server is not known; its ACKs wait on their way back."
        ),
        "{claim}"
    );
    assert!(
        next.starts_with("measure what goes from the server alone, with `-R`"),
        "{next}"
    );
    assert_eq!(
        finding.action.as_deref(),
        Some(next.as_str()),
        "the page says the same"
    );
    // The other way round.
    let run = both(&stream(), &losing(6e6), &filling(95.4e6));
    let (limiter, finding, next) = named(&run);
    assert_eq!(limiter, Limiter::PathRate, "{}", finding.claim);
    assert!(
        finding
            .claim
            .starts_with("From the server, the path is full: 95.4 Mbit/s"),
        "{}",
        finding.claim
    );
    assert!(
        next.contains("to the server alone, without `--bidir`"),
        "{next}"
    );
    // Neither is, where both wait for ACKs.
    let run = both(&stream(), &losing(5e6), &losing(6e6));
    let analysis = analyze(&run.recording);
    let named = analysis
        .findings
        .iter()
        .find(|it| matches!(it.kind, FindingKind::Limiter(_)));
    assert_eq!(named.map(|it| it.claim.as_str()), None);
}

#[test]
fn both_are_told_where_both_are_known() {
    let run = both(&stream(), &filling(47.5e6), &filling(30e6));
    let (limiter, finding, next) = named(&run);
    assert_eq!(limiter, Limiter::PathRate);
    let claim = &finding.claim;
    assert!(
        claim.starts_with("To the server, the path is full: 47.5 Mbit/s"),
        "{claim}"
    );
    assert!(
        claim.contains(". From the server, the path is full: 30 Mbit/s"),
        "{claim}"
    );
    assert!(next.contains("slowest hop"), "{next}");
    // One path has no sum: each piece of evidence says which way it goes.
    let ways = ["to the server: ", "from the server: "];
    let evidence = finding.evidence.as_slice();
    let is_directed = |what: &str| ways.iter().any(|way| what.starts_with(way));
    assert!(
        evidence.iter().all(|piece| is_directed(&piece.what)),
        "{evidence:?}"
    );
    // A window one way, a full path the other.
    let window = Truth {
        window_bytes: 65_536,
        rwnd_share: 0.98,
        agreed: Some("timestamps, SACK, window scaling"),
        ..Truth::sending(65_536.0 * 8.0 * 50.0, 20 * MS, 20 * MS)
    };
    let (limiter, finding, _) = named(&both(&stream(), &window, &filling(10e6)));
    assert_eq!(limiter, Limiter::ReceiverWindow, "{}", finding.claim);
    assert!(
        finding
            .claim
            .starts_with("To the server, the receive window"),
        "{}",
        finding.claim
    );
    assert!(
        finding
            .claim
            .contains("From the server, the path is full: 10 Mbit/s"),
        "{}",
        finding.claim
    );
    assert!(
        finding.explanation.contains(" From the server: "),
        "{}",
        finding.explanation
    );
}

#[test]
fn a_rate_that_one_direction_reaches_is_its_own() {
    let asked = Workload {
        manner: Manner {
            rate_bps: Some(50_000_000),
            ..stream().manner
        },
        ..stream()
    };
    let paced = Truth {
        busy_share: 0.3,
        ..Truth::sending(50e6, 20 * MS, 20 * MS)
    };
    let run = both(&asked, &paced, &filling(14e6));
    let (limiter, finding, _) = named(&run);
    assert_eq!(limiter, Limiter::Pacing, "{}", finding.claim);
    assert!(
        finding
            .claim
            .starts_with("To the server, the requested rate is the limit: 50 Mbit/s"),
        "{}",
        finding.claim
    );
    assert!(
        finding
            .claim
            .contains("From the server, the path is full: 14 Mbit/s"),
        "{}",
        finding.claim
    );
}
