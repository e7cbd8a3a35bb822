//! Capacity: a run whose hosts have known prices, and what is found of them.

use linerate_analyze::Draw;
use linerate_analyze::capacity::{Above, Kind, Side, Target, Work, capacity};

use crate::prelude::*;

/// What a packet, a KiB, a call and a wake-up cost here, in seconds.
const PACKET_S: f64 = 2e-6;
const KIB_S: f64 = 0.2e-6;
const CALL_S: f64 = 1e-6;
const WAKE_S: f64 = 15e-6;
/// Segments of an ACK.
const PER_ACK: f64 = 8.0;

/// What a stream to the server of `bps` in messages of `bytes` makes of its host: wake-ups, and CPUs.
fn server(bps: f64, bytes: f64) -> (f64, f64) {
    let wakes = bps / 8.0 / 16_384.0;
    let packets = bps / 8.0 / MSS * (1.0 + 1.0 / PER_ACK);
    let calls = bps / 8.0 / bytes;
    let cpus = packets * PACKET_S + bps / 8192.0 * KIB_S + calls * CALL_S + wakes * WAKE_S;
    (wakes, cpus)
}

/// Streams at four rates in messages of three sizes, with noise.
fn recording(noise: f64) -> Recording {
    recording_of(noise, 1.0)
}

/// The same, the largest messages so many times as dear.
fn recording_of(noise: f64, dear: f64) -> Recording {
    let mut draw = Draw::new(7);
    let mut run = begun(GIGABIT, "load-steps", None, stream());
    let mut wakes = Vec::new();
    for block in 1..=3 {
        for bytes in [1024_u64, 8192, 131_072] {
            for rate in [100e6, 250e6, 400e6, 600e6, 800e6] {
                let (wake, cpus) = server(rate, bytes as f64);
                let cpus = if bytes == 131_072 { dear * cpus } else { cpus };
                let truth = like!(Truth::stream(rate); cpus: cpus * (1.0 + noise * draw.normal()),
                    segments_per_ack: PER_ACK);
                let at = (Factor::Rate, Level::Rate(rate as u64));
                let cell = [(Factor::MessageBytes, size(bytes)), at];
                run.trial(&cell, block, &truth);
                wakes.push((wake, rate / 8.0 / bytes as f64));
            }
        }
    }
    let mut recording = run.recording;
    let trials: Vec<_> = recording.trials.iter().map(|record| record.trial).collect();
    for (trial, (wake, calls)) in trials.into_iter().zip(wakes) {
        let worker = Subject::Thread("worker-0".to_owned());
        let flow = Subject::Flow(FlowId(0), End::Server);
        let calls = (flow, Metric::AppCalls, calls as i64);
        let growth = [(worker, Metric::ThreadArrivals, wake as i64), calls];
        crate::grow(&mut recording, trial, &growth);
    }
    recording
}

fn target(bps: f64, direction: Direction, headroom: f64) -> Target {
    let (message_bytes, flows) = (8192, 1);
    Target {
        bps,
        message_bytes,
        flows,
        direction,
        headroom,
    }
}

#[test]
fn prices_are_found_and_a_target_beyond_is_inside_the_interval() {
    let target = target(940e6, Direction::ToServer, 0.3);
    let found = capacity(&recording(0.03), Some(&target));
    let model = &found.models[0];
    assert_eq!(model.side, Side::Receives);
    // Every fifth of fifteen cells is left out.
    assert_eq!((model.cells, model.held_out.cells), (12, 3));
    assert!(model.held_out.median.is_some_and(|error| error < 0.05));
    assert!(model.fitted_to_bps > 700e6);
    // Packets, KiB and wake-ups all follow the rate: none of them is distinguishable.
    assert!(model.alike.contains(&Kind::Packet) && model.alike.contains(&Kind::KiB));
    let answer = found.answer.expect("an answer");
    let (_, truth) = server(940e6, 8192.0);
    let (low, high) = answer.busy.low.zip(answer.busy.high).expect("an interval");
    assert!((low..=high).contains(&truth), "{low} to {high} for {truth}");
    assert!((answer.busy.value / truth - 1.0).abs() < 0.1);
    assert!((answer.cpus.value - answer.busy.value / 0.7).abs() < 1e-9);
    // A link of 1 Gbit/s carries 941 Mbit/s of payload: what is full comes first.
    let first = &answer.supplies[0];
    assert!(first.needs / first.has >= answer.supplies[1].needs / answer.supplies[1].has);
    assert_eq!(answer.extrapolates.len(), 1);
}

#[test]
fn loads_above_half_and_larger_messages_are_predicted_by_models_that_know_neither() {
    let found = capacity(&recording(0.03), None);
    // Of three sizes the rates 600 and 800 Mbit/s, of the most 800.
    let shares: Vec<f64> = found.above_half.iter().map(|it| it.share).collect();
    assert_eq!(shares.len(), 6);
    assert!(shares.iter().all(|share| *share > 0.55), "{shares:?}");
    // Their work is in proportion to their rate: of a target it is the same.
    for errors in Above::errors(&found.above_half, Side::Receives) {
        assert!(errors.median.is_some_and(|error| error < 0.1), "{errors:?}");
        assert!(errors.held.is_some_and(|held| held > 0.8), "{errors:?}");
    }

    let [gain] = found.gains.as_slice() else {
        panic!("{:?}", found.gains);
    };
    assert_eq!((gain.kind, gain.errors.cells), (Kind::Call, 5));
    let cost = |bytes: f64| server(400e6, bytes).1;
    let truth = cost(131_072.0) / cost(1024.0);
    let is_so = (gain.predicted / truth - 1.0).abs() < 0.1;
    assert!(is_so, "{gain:?} of {truth}");
    let is_so = (gain.measured / truth - 1.0).abs() < 0.1;
    assert!(is_so, "{gain:?} of {truth}");
}

#[test]
fn a_change_that_costs_something_the_model_does_not_know_is_shown_as_an_error() {
    // Large messages cost twice of what packets, bytes and calls of theirs do.
    let found = capacity(&recording_of(0.0, 2.0), None);
    let gain = &found.gains[0];
    assert!(gain.measured > 1.5 * gain.predicted, "{gain:?}");
    let is_so = gain.errors.median.is_some_and(|error| error > 0.3);
    assert!(is_so, "{gain:?}");
}

#[test]
fn rows_have_what_prices_are_computed_from() {
    let found = capacity(&recording(0.03), None);
    let model = &found.models[0];
    let of_model = |row: &&Work| row.fitted;
    assert_eq!(model.rows.iter().filter(of_model).count(), model.trials);
    assert_eq!(model.rows.len(), 45);
    let row = &model.rows[0];
    assert!((row.done[1] * 8192.0 / 100e6 - 1.0).abs() < 0.02, "{row:?}");
}

#[test]
fn there_is_no_model_of_too_few_cells_and_no_answer_of_a_way_that_was_not_measured() {
    let run = trials(GIGABIT, stream(), &vec![Truth::stream(1e8); 3]);
    let found = capacity(&run.recording, None);
    assert!(found.models.is_empty());
    // Streams each way, and exchanges.
    assert_eq!(found.missing.len(), 3);

    let target = target(1e9, Direction::FromServer, 0.0);
    assert!(capacity(&recording(0.0), Some(&target)).answer.is_none());
}
