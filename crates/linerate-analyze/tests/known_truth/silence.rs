//! A part of the window in which nothing arrived: told where something was under way, and only there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use linerate_analyze::reduce::{self, Outcome};

use crate::prelude::*;
use crate::worlds::{self};

/// Milliseconds of a window of a second.
type Span = RangeInclusive<i64>;

/// Lets what `is_held` stand still from the first reading in `span` until its end.
fn hold(run: &mut MadeRun, span: &Span, is_held: impl Fn(&TrialSample) -> bool) {
    let mut held: BTreeMap<(String, Subject, Metric), i64> = BTreeMap::new();
    change(run, |sample| {
        if is_held(sample) && span.contains(&(sample.at_ns / 1_000_000)) {
            let host = sample.host.to_string();
            let key = (host, sample.subject.clone(), sample.metric);
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

/// Four flows whose senders know what was delivered.
fn four() -> MadeRun {
    let truth = like!(Truth::stream(400e6); delivered_variation: Some(0.0));
    once(None, like!(stream(); connections: 4), &truth)
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
    let mut run = four();
    hold(&mut run, &span, |sample| {
        tells_of_arrivals(sample) && is_of(sample, flows)
    });
    silent(&run)
}

#[test]
fn a_path_that_goes_away_is_told_wherever_in_the_window() {
    let all = [0, 1, 2, 3];
    // Readings are 100 ms apart, and what grows between two of them may have come at any time.
    assert_eq!(interrupted(&all, 300..=1200), Some((300, 699)));
    assert_eq!(interrupted(&all, 200..=950), Some((200, 700)));
    assert_eq!(interrupted(&all, -200..=750), Some((0, 700)));
    assert_eq!(interrupted(&all, 500..=950), None, "two timers of TCP");
    // One flow goes on.
    assert_eq!(interrupted(&[0, 1, 2], 300..=1200), None);
}

#[test]
fn the_trial_is_done_again_and_one_measurement_is_trusted_less() {
    let mut run = four();
    assert_eq!(level(&run), TrustLevel::Good);
    hold(&mut run, &(300..=1200), tells_of_arrivals);
    assert!(outcome(&run).is_valid());
    assert_eq!(level(&run), TrustLevel::Limited);
    let spoilt = linerate_analyze::spoilt(&Reduced::of(&run.recording));
    let why = spoilt.first().map(|one| &one.why);
    let Some(RepeatReason::Disturbed(Disturbance::Silent(share))) = why else {
        panic!("{why:?}");
    };
    assert!((0.6..0.8).contains(share), "{why:?}");
}

#[test]
fn who_has_nothing_to_send_or_may_not_is_no_silent_path() {
    let inside = |sample: &TrialSample| sample.at_ns > 300 * MS;
    type Change<'a> = &'a dyn Fn(&mut TrialSample);
    let others: [(&str, Metric, Change<'_>); 4] = [
        // Bursts, think times, low rates.
        ("all is acknowledged", Metric::TcpUnacked, &|sample| {
            sample.value = if inside(sample) { 0 } else { sample.value };
        }),
        ("a reader that stops", Metric::TcpSndWnd, &|sample| {
            sample.value = if inside(sample) { 500 } else { sample.value };
        }),
        (
            "a slow line, or a full queue before it",
            Metric::TcpRtt,
            &|sample| {
                sample.value = 300 * MS;
            },
        ),
        (
            "the other end is read, too",
            Metric::AppBytesReceived,
            &|sample| {
                sample.value = sample.at_ns + 1_000_000_000;
            },
        ),
    ];
    for (what, metric, how) in others {
        let mut run = four();
        hold(&mut run, &(300..=1200), tells_of_arrivals);
        assert!(silent(&run).is_some());
        change(&mut run, |sample| {
            if sample.metric == metric {
                how(sample);
            }
        });
        assert_eq!(silent(&run), None, "{what}");
    }
}

#[test]
fn requests_that_wait_between_them_are_not_silent() {
    let mut run = once(None, rr(100), &Truth::transactions(1_000_000));
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
fn lost(per_s: i64, span: Span, by_socket: bool, comes_later: bool) -> Option<(u64, u64)> {
    let truth = Truth::stream(per_s as f64 * 8.0 * 1000.0);
    let mut run = once(None, worlds::datagrams(None, 1000), &truth);
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
        let dropped = if by_socket { gone(at_ms) } else { 0 };
        let counts = match (end, sample.metric) {
            (End::Client, Metric::AppBytesSent) => vec![(Metric::AppDatagramsSent, sent)],
            (End::Server, Metric::AppBytesReceived) => vec![
                (Metric::AppDatagramsReceived, sent - lost),
                (Metric::AppSocketDrops, dropped),
            ],
            _ => continue,
        };
        let subject = Subject::Flow(flow, end);
        let counts = counts.into_iter();
        more.extend(
            counts.map(|(metric, value)| like!(sample; subject: subject.clone(), metric, value)),
        );
    }
    run.recording.samples.extend(more);
    silent(&run)
}

#[test]
fn datagrams_that_were_sent_and_did_not_come_are_silence_where_the_path_lost_them() {
    assert_eq!(lost(1000, 300..=1200, false, false), Some((300, 699)));
    assert_eq!(lost(1000, 100..=800, false, false), Some((100, 700)));
    // The reader's buffer.
    assert_eq!(lost(1000, 300..=1200, true, false), None);
    assert_eq!(lost(1000, 100..=800, false, true), None, "read later");
    assert_eq!(lost(10, 300..=1200, false, false), None, "a few a second");
}
