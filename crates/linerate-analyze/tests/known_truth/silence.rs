//! A part of the window in which nothing arrived: told where something was under way, and only there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use linerate_analyze::analyze;
use linerate_analyze::groups::Reduced;
use linerate_analyze::reduce::{self, Outcome};
use linerate_model::FlowId;
use linerate_model::finding::TrustLevel;
use linerate_model::flag::TrialFlag;
use linerate_model::manner::Transport;
use linerate_model::metric::Metric;
use linerate_model::reason::{Disturbance, RepeatReason};
use linerate_model::sample::{End, Subject, TrialSample};
use linerate_model::unit::Bytes;
use linerate_model::workload::{Traffic, Workload};

use crate::builder::{MadeRun, Truth, rr, stream};

/// Milliseconds of a window of a second.
type Span = RangeInclusive<i64>;

/// Lets what `is_held` stand still from the first reading in `span` until its end.
fn hold(run: &mut MadeRun, span: &Span, is_held: impl Fn(&TrialSample) -> bool) {
    let mut held: BTreeMap<(String, Subject, Metric), i64> = BTreeMap::new();
    change(run, |sample| {
        if is_held(sample) && span.contains(&(sample.at_ns / 1_000_000)) {
            let key = (
                sample.host.to_string(),
                sample.subject.clone(),
                sample.metric,
            );
            sample.value = *held.entry(key).or_insert(sample.value);
        }
    });
}

fn change(run: &mut MadeRun, how: impl FnMut(&mut TrialSample)) {
    let samples = std::mem::take(&mut run.recording.samples);
    let mut samples: Vec<TrialSample> = samples.iter().collect();
    samples.sort_by_key(|sample| sample.at_ns);
    samples.iter_mut().for_each(how);
    run.recording.samples = samples.into_iter().collect();
}

fn tells_of_arrivals(sample: &TrialSample) -> bool {
    matches!(
        sample.metric,
        Metric::TcpDelivered
            | Metric::TcpBytesAcked
            | Metric::TcpBytesReceived
            | Metric::AppBytesReceived
            | Metric::AppTransactions
    )
}

fn is_of(sample: &TrialSample, flows: &[u32]) -> bool {
    matches!(sample.subject, Subject::Flow(FlowId(flow), _) if flows.contains(&flow))
}

fn made(workload: &Workload, truth: &Truth) -> MadeRun {
    let mut run = MadeRun::new(1, None);
    run.experiment("one", None, workload.clone());
    run.cell(&[], std::slice::from_ref(truth));
    run
}

/// Four flows whose senders know what was delivered.
fn four() -> (Workload, Truth) {
    let workload = Workload {
        connections: 4,
        ..stream()
    };
    let truth = Truth {
        delivered_variation: Some(0.0),
        ..Truth::stream(400e6)
    };
    (workload, truth)
}

fn outcome(run: &MadeRun) -> Outcome {
    reduce::outcomes(&run.recording).remove(0)
}

fn level(run: &MadeRun) -> TrustLevel {
    analyze(&run.recording).trust.expect("a trial").level
}

/// Returns begin and length of the silence that is told, in milliseconds.
fn silent(run: &MadeRun) -> Option<(u64, u64)> {
    outcome(run).flags.iter().find_map(|flag| match flag {
        TrialFlag::Silent { from, length, .. } => Some((from.0 / 1_000_000, length.0 / 1_000_000)),
        _ => None,
    })
}

/// The silence that is told where nothing of these flows arrives within a span.
fn interrupted(flows: &[u32], span: Span) -> Option<(u64, u64)> {
    let (workload, truth) = four();
    let mut run = made(&workload, &truth);
    hold(&mut run, &span, |sample| {
        tells_of_arrivals(sample) && is_of(sample, flows)
    });
    silent(&run)
}

#[test]
fn a_path_that_goes_away_is_told_wherever_in_the_window() {
    let all = [0, 1, 2, 3];
    // Readings are 100 ms apart, and what grows between two of them may have come at any time.
    for (span, from, length) in [
        (300..=1200, 300, 699),
        (200..=950, 200, 700),
        (-200..=750, 0, 700),
    ] {
        assert_eq!(interrupted(&all, span), Some((from, length)));
    }
    assert_eq!(interrupted(&all, 500..=950), None, "two timers of TCP");
    assert_eq!(
        interrupted(&[0, 1, 2], 300..=1200),
        None,
        "one flow goes on"
    );
}

#[test]
fn the_trial_is_done_again_and_one_measurement_is_trusted_less() {
    let (workload, truth) = four();
    let mut run = made(&workload, &truth);
    assert_eq!(level(&run), TrustLevel::Good);
    hold(&mut run, &(300..=1200), tells_of_arrivals);
    assert!(outcome(&run).is_valid());
    assert_eq!(level(&run), TrustLevel::Limited);
    let spoilt = linerate_analyze::spoilt(&Reduced::of(&run.recording));
    let why = spoilt.first().map(|one| &one.why);
    assert!(
        matches!(why, Some(RepeatReason::Disturbed(Disturbance::Silent(share))) if (0.6..0.8).contains(share)),
        "{why:?}"
    );
}

#[test]
fn who_has_nothing_to_send_or_may_not_is_no_silent_path() {
    let check = |what: &str, how: &dyn Fn(&mut TrialSample)| {
        let (workload, truth) = four();
        let mut run = made(&workload, &truth);
        hold(&mut run, &(300..=1200), tells_of_arrivals);
        assert!(silent(&run).is_some());
        change(&mut run, how);
        assert_eq!(silent(&run), None, "{what}");
    };
    let inside = |sample: &TrialSample| sample.at_ns > 300_000_000;
    check(
        "all is acknowledged: bursts, think times, low rates",
        &|sample| {
            if sample.metric == Metric::TcpUnacked && inside(sample) {
                sample.value = 0;
            }
        },
    );
    check("a reader that stops", &|sample| {
        if sample.metric == Metric::TcpSndWnd && inside(sample) {
            sample.value = 500;
        }
    });
    check("a slow line, or a full queue before it", &|sample| {
        if sample.metric == Metric::TcpRtt {
            sample.value = 300_000_000;
        }
    });
    check("the other end is read, too", &|sample| {
        if sample.metric == Metric::AppBytesReceived {
            sample.value = sample.at_ns + 1_000_000_000;
        }
    });
}

#[test]
fn requests_that_wait_between_them_are_not_silent() {
    let workload = rr(100);
    let truth = Truth::transactions(1_000_000);
    let mut run = made(&workload, &truth);
    hold(&mut run, &(300..=1200), tells_of_arrivals);
    assert!(silent(&run).is_some());
    change(&mut run, |sample| {
        if sample.metric == Metric::TcpUnacked {
            sample.value = 0;
        }
    });
    assert_eq!(silent(&run), None);
}

/// Datagrams: `per_s` are sent, all arrive but within a span; of those that do not a part is left to the socket's
/// buffer, or comes after it.
fn datagrams(
    per_s: i64,
    span: Span,
    dropped_by_socket: bool,
    comes_later: bool,
) -> Option<(u64, u64)> {
    let mut workload = stream();
    workload.manner.transport = Transport::Udp;
    if let Traffic::Stream { message_bytes, .. } = &mut workload.traffic {
        *message_bytes = Bytes(1000);
    }
    let mut run = made(&workload, &Truth::stream(per_s as f64 * 8.0 * 1000.0));
    let mut more = Vec::new();
    let gone = |at_ms: i64| (at_ms.clamp(*span.start(), *span.end()) - span.start()) * per_s / 1000;
    for sample in run.recording.samples.iter() {
        let Subject::Flow(flow, end) = sample.subject else {
            continue;
        };
        let at_ms = sample.at_ns / 1_000_000;
        let sent = (at_ms + 1000) * per_s / 1000;
        let is_back = comes_later && at_ms > *span.end();
        let lost = if is_back { 0 } else { gone(at_ms) };
        let counts = match (end, sample.metric) {
            (End::Client, Metric::AppBytesSent) => vec![(Metric::AppDatagramsSent, sent)],
            (End::Server, Metric::AppBytesReceived) => vec![
                (Metric::AppDatagramsReceived, sent - lost),
                (
                    Metric::AppSocketDrops,
                    if dropped_by_socket { gone(at_ms) } else { 0 },
                ),
            ],
            _ => continue,
        };
        more.extend(counts.into_iter().map(|(metric, value)| TrialSample {
            subject: Subject::Flow(flow, end),
            metric,
            value,
            ..sample.clone()
        }));
    }
    run.recording.samples.extend(more);
    silent(&run)
}

#[test]
fn datagrams_that_were_sent_and_did_not_come_are_silence_where_the_path_lost_them() {
    assert_eq!(datagrams(1000, 300..=1200, false, false), Some((300, 699)));
    assert_eq!(datagrams(1000, 100..=800, false, false), Some((100, 700)));
    assert_eq!(
        datagrams(1000, 300..=1200, true, false),
        None,
        "the reader's buffer"
    );
    assert_eq!(datagrams(1000, 100..=800, false, true), None, "read later");
    assert_eq!(
        datagrams(10, 300..=1200, false, false),
        None,
        "a few a second"
    );
}
