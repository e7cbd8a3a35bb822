//! What is changed after a measurement: what it proves, what it refutes, and what it leaves open.

use linerate_analyze::proof::{Observed, Proof, Proofs, Verdict, measured};
use linerate_analyze::prove::{Next, Why, next, suspects};
use linerate_analyze::single::{Shown, proven};
use linerate_model::experiment::{Effect, Prediction};
use linerate_truth::limiters::Cause;

use crate::prelude::*;

const GROWS: Option<Effect> = Some(Effect::Grows);
const MAY_GROW: Option<Effect> = Some(Effect::MayGrow);
const STAYS: Option<Effect> = Some(Effect::Stays);

/// A stream with a buffer of 64 KiB, whose window of that size holds it at `bps`.
fn window_bound(bps: f64) -> (Workload, Truth) {
    let workload = like!(stream(); options.socket_buffer: Some(Bytes(64 << 10)));
    let rtt_ns = (65_536.0 * 8e9 / bps) as i64;
    let truth = like!(Truth::sending(bps, rtt_ns, rtt_ns); rwnd_share: 0.98, window_bytes: 65_536, unacked: 45);
    (workload, truth)
}

/// A stream that something held at 105 Mbit/s, measured once.
fn measured_run() -> MadeRun {
    let (workload, truth) = window_bound(105e6);
    let mut run = begun(GIGABIT, "run", None, workload);
    run.trial(&[], 1, &truth);
    run
}

/// Adds a change of `factor` between two levels, with the rates of its trials.
fn change(
    run: &mut MadeRun,
    (factor, levels): (Factor, [Level; 2]),
    predicted: &[(Limiter, Option<Effect>)],
    rates: [&[f64]; 2],
) {
    let plan = &run.recording.document.plan;
    let workload = plan.experiments[0].workload.clone();
    let name = format!("prove-{}", plan.experiments.len());
    run.experiment(&name, None, workload);
    let experiments = &mut run.recording.document.plan.experiments;
    let own = experiments.last_mut().expect("it was added");
    let predicted = predicted.iter().copied();
    let predicted = predicted.map(|(limiter, effect)| Prediction { limiter, effect });
    own.predicted = predicted.collect();
    for (level, rates) in levels.iter().zip(rates) {
        for (replicate, rate) in (1..).zip(rates) {
            run.trial(&[(factor, level.clone())], replicate, &Truth::stream(*rate));
        }
    }
}

fn buffers() -> (Factor, [Level; 2]) {
    let auto = Level::Word("auto".to_owned());
    (Factor::SocketBuffer, [Level::Size(Bytes(64 << 10)), auto])
}

fn flows() -> (Factor, [Level; 2]) {
    (Factor::Connections, [1, 2].map(Level::Count))
}

fn proofs(recording: &Recording) -> Proofs {
    Reduced::of(recording).proofs()
}

fn only(recording: &Recording) -> Proof {
    let proofs = proofs(recording);
    assert_eq!(proofs.all.len(), 1);
    proofs.all[0].clone()
}

fn limiter(recording: &Recording) -> Option<Limiter> {
    let measured = measured(recording);
    let single = proven(&measured, proofs(recording), Shown::RESULT_ALONE);
    single.limiter().map(|(limiter, _)| limiter)
}

const BEFORE: &[f64] = &[104e6, 105e6, 106e6, 105e6];
/// Nine times as much, and twice.
const NINEFOLD: &[f64] = &[930e6, 938e6, 940e6, 936e6];
const TWICE: &[f64] = &[210e6, 208e6, 209e6, 211e6];

const WINDOW_GROWS: (Limiter, Option<Effect>) = (Limiter::ReceiverWindow, GROWS);
const PATH_STAYS: (Limiter, Option<Effect>) = (Limiter::PathRate, STAYS);

fn words(words: [&str; 2]) -> [Level; 2] {
    words.map(|word| Level::Word(word.to_owned()))
}

/// The proof of a change after which the rates are those, and what is named then.
fn proof_of(
    change_of: (Factor, [Level; 2]),
    predicted: &[(Limiter, Option<Effect>)],
    rates: [&[f64]; 2],
) -> (Proof, Option<Limiter>) {
    let mut run = measured_run();
    change(&mut run, change_of, predicted, rates);
    (only(&run.recording), limiter(&run.recording))
}

#[track_caller]
fn is(proof: &Proof, observed: Observed, verdict: Verdict) {
    assert_eq!((proof.observed, proof.verdict), (observed, verdict));
}

#[test]
fn a_window_that_is_larger_proves_that_the_window_was_it() {
    let window = Some(Limiter::ReceiverWindow);
    assert_eq!(limiter(&measured_run().recording), window);
    let (proof, named) = proof_of(buffers(), &[WINDOW_GROWS], [BEFORE, NINEFOLD]);
    is(&proof, Observed::Grew, Verdict::Proven);
    assert_eq!([proof.limiter, named], [window, window]);
    let ratio = proof.ratio.expect("both were measured");
    assert!((ratio.value - 936.0 / 105.0).abs() < 0.02, "{ratio:?}");
}

#[test]
fn a_number_that_stays_refutes_the_window() {
    let (proof, named) = proof_of(buffers(), &[WINDOW_GROWS], [BEFORE, BEFORE]);
    is(&proof, Observed::Stayed, Verdict::Refuted);
    assert_eq!(proof.refuted, [Limiter::ReceiverWindow]);
    assert_eq!(named, None);
}

#[test]
fn what_is_within_the_noise_is_not_decided() {
    let predicted = [WINDOW_GROWS, PATH_STAYS];
    // Twice as much and as much again: neither growth nor none.
    let after = [105e6, 210e6, 90e6, 150e6];
    let (proof, named) = proof_of(flows(), &predicted, [BEFORE, &after]);
    is(&proof, Observed::Open, Verdict::NotDecided);
    assert_eq!(proof.limiter, None);
    assert_eq!(named, Some(Limiter::ReceiverWindow));

    // One trial of each shows no noise, and invalid ones nothing.
    let (proof, _) = proof_of(flows(), &predicted, [&[105e6], &[210e6]]);
    assert_eq!(proof.ratio, None);
    assert_eq!(proof.verdict, Verdict::NotDecided);
}

#[test]
fn of_two_the_one_is_left_whose_prediction_happened() {
    let (window, path) = (Limiter::ReceiverWindow, Limiter::PathRate);
    let predicted = [WINDOW_GROWS, PATH_STAYS];
    let (proof, named) = proof_of(flows(), &predicted, [BEFORE, BEFORE]);
    assert_eq!(proof.verdict, Verdict::Proven);
    assert_eq!([proof.limiter, named], [Some(path), Some(path)]);
    assert_eq!(proof.refuted, [window]);

    // By half as much: the path carries more than was measured, and the window was what was waited for.
    let after = [150e6, 152e6, 151e6, 149e6];
    let (proof, _) = proof_of(flows(), &predicted, [BEFORE, &after]);
    assert_eq!(proof.limiter, Some(window));
    assert_eq!(proof.refuted, [path]);
}

#[test]
fn a_change_of_one_proves_it_whatever_others_would_do() {
    let congestion = (Factor::Congestion, words(["cubic", "bbr"]));
    let predicted = [
        (Limiter::CongestionWindow, MAY_GROW),
        (Limiter::PathRate, None),
    ];
    let (proof, _) = proof_of(congestion, &predicted, [BEFORE, NINEFOLD]);
    assert_eq!(proof.verdict, Verdict::Proven);
    assert_eq!(proof.limiter, Some(Limiter::CongestionWindow));
    assert_eq!(proof.refuted, []);

    // One buffer option is of two limiters, and more flows have more of everything.
    let both = [WINDOW_GROWS, (Limiter::SendBuffer, GROWS)];
    let of_buffers = proof_of(buffers(), &both, [BEFORE, NINEFOLD]).0;
    let of_flows = proof_of(flows(), &predicted, [BEFORE, NINEFOLD]).0;
    let verdicts = [of_buffers.verdict, of_flows.verdict];
    assert_eq!(verdicts, [Verdict::NotDecided; 2]);
}

#[test]
fn a_rate_that_nobody_thought_of_is_proven_where_the_number_grows_without_it() {
    let rate = || {
        (
            Factor::Rate,
            [Level::Rate(105_000_000), Level::Word("auto".to_owned())],
        )
    };
    let (proof, named) = proof_of(rate(), &[PATH_STAYS], [BEFORE, NINEFOLD]);
    is(&proof, Observed::Grew, Verdict::Proven);
    let pacing = Some(Limiter::Pacing);
    assert_eq!([proof.limiter, named], [pacing, pacing]);
    assert_eq!(proof.refuted, [Limiter::PathRate]);
    // That it stays proves nothing of a path, and another algorithm may do more than take its window away.
    let (proof, _) = proof_of(rate(), &[PATH_STAYS], [BEFORE, BEFORE]);
    is(&proof, Observed::Stayed, Verdict::NotRefuted);
    let window = [(Limiter::ReceiverWindow, STAYS)];
    let other = (Factor::Congestion, words(["cubic", "bbr"]));
    let (proof, _) = proof_of(other, &window, [BEFORE, NINEFOLD]);
    is(&proof, Observed::Grew, Verdict::Refuted);
}

#[test]
fn less_work_of_a_receiver_proves_no_cpu_where_a_program_may_pause() {
    let predicted = [(Limiter::Cpu, MAY_GROW), (Limiter::Application, None)];
    let copy = (Factor::Receive, words(["copy", "discard"]));
    let after = [205e6, 210e6, 208e6, 206e6];
    let (proof, _) = proof_of(copy, &predicted, [BEFORE, &after]);
    is(&proof, Observed::Grew, Verdict::NotDecided);
    assert_eq!(proof.refuted, []);
}

#[test]
fn a_number_that_falls_says_nothing() {
    let after = [50e6, 52e6, 51e6, 50e6];
    let (proof, _) = proof_of(flows(), &[WINDOW_GROWS, PATH_STAYS], [BEFORE, &after]);
    is(&proof, Observed::Fell, Verdict::NotDecided);
    assert_eq!(proof.refuted, []);
}

#[test]
fn what_stays_alone_and_what_all_would_raise_proves_nothing() {
    let (proof, _) = proof_of(flows(), &[PATH_STAYS], [BEFORE, BEFORE]);
    assert_eq!(proof.verdict, Verdict::NotRefuted);
    // More flows have more of everything that each flow has.
    let (proof, _) = proof_of(flows(), &[WINDOW_GROWS], [BEFORE, TWICE]);
    assert_eq!(proof.verdict, Verdict::NotRefuted);
    // Another congestion control may stop where the first did.
    let alone = [(Limiter::CongestionWindow, MAY_GROW)];
    let other = (Factor::Congestion, words(["cubic", "bbr"]));
    let (proof, _) = proof_of(other, &alone, [BEFORE, BEFORE]);
    is(&proof, Observed::Stayed, Verdict::NotDecided);
    assert_eq!(proof.refuted, []);
}

#[test]
fn what_was_measured_is_as_it_was_before_the_changes() {
    let mut run = measured_run();
    let alone = linerate_analyze::analyze(&run.recording);
    change(&mut run, buffers(), &[WINDOW_GROWS], [BEFORE, NINEFOLD]);
    let all = linerate_analyze::analyze(&run.recording);
    assert!(all.is_one_measurement);
    assert_eq!(all.trust, alone.trust);
    assert_eq!(all.summary, alone.summary);
    adds_a_chapter(&alone, &all, "prove-1");
}

/// Whether nothing but one chapter is there beyond what was `alone`.
#[track_caller]
fn adds_a_chapter(alone: &Analysis, all: &Analysis, chapter: &str) {
    let claims = |of: &Analysis| -> Vec<String> {
        let findings = of.findings.iter();
        findings.map(|it| it.claim.clone()).collect()
    };
    let chapters = |of: &Analysis| -> Vec<String> {
        let chapters = of.chapters.iter();
        chapters.map(|it| it.id.clone()).collect()
    };
    assert_eq!(claims(all), claims(alone));
    let expected = [chapters(alone), vec![chapter.to_owned()]].concat();
    assert_eq!(chapters(all), expected);
}

#[test]
fn of_a_study_one_connection_is_changed_and_its_own_numbers_stay() {
    let (workload, truth) = window_bound(105e6);
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("several", None, like!(workload; connections: 8));
    run.cell(&[], &[Truth::stream(800e6)]);
    run.experiment("one", None, workload);
    run.cell(&[], &[truth]);
    let alone = linerate_analyze::analyze(&run.recording);
    let reduced = Reduced::of(&run.recording);
    let suspects = suspects(&reduced).expect("one connection was measured");
    let Next::Change(asked) = next(&reduced, &suspects, Nanos::from_s(20)) else {
        panic!("a buffer that was set can be left to the kernel");
    };
    let (factor, levels) = buffers();
    assert_eq!(asked.experiment.factors, [(factor, levels.to_vec())]);
    assert_eq!(asked.experiment.workload.connections, 1);

    // A change that refutes what limits one connection takes nothing from what the study says.
    change(&mut run, buffers(), &[WINDOW_GROWS], [BEFORE, BEFORE]);
    assert_eq!(only(&run.recording).verdict, Verdict::Refuted);
    let all = linerate_analyze::analyze(&run.recording);
    assert_eq!(all.trust, alone.trust);
    assert_eq!(all.answer, alone.answer);
    adds_a_chapter(&alone, &all, "prove-2");
}

#[test]
fn where_nothing_is_suspected_the_rate_that_was_asked_for_is() {
    // ACKs that wait on their way back are no limiter's.
    let asked = |rate_bps: Option<u64>| {
        let mut recording = Cause::SlowAcks.recordings(1, 1).remove(0);
        let plan = &mut recording.document.plan;
        plan.experiments[0].workload.manner.rate_bps = rate_bps;
        plan.trials[0].workload.manner.rate_bps = rate_bps;
        let reduced = Reduced::of(&recording);
        let suspects = suspects(&reduced).expect("it was measured");
        next(&reduced, &suspects, Nanos::from_s(60))
    };
    assert_eq!(asked(None), Next::Nothing(Why::NoSuspect));
    let Next::Change(change) = asked(Some(20_000_000_000)) else {
        panic!("the rate can be left out");
    };
    assert_eq!(change.experiment.factors[0].0, Factor::Rate);
    assert_eq!(change.changed.manner.rate_bps, None);
}

#[test]
fn the_change_that_is_made_raises_what_is_named() {
    let budget = Nanos::from_s(20);
    let run = measured_run();
    let suspects = suspects(&Reduced::of(&run.recording)).expect("it was measured");
    let Next::Change(asked) = next(&Reduced::of(&run.recording), &suspects, budget) else {
        panic!("a buffer that was set can be left to the kernel");
    };
    assert_eq!(
        asked.experiment.factors,
        [(buffers().0, buffers().1.to_vec())]
    );
    assert_eq!(asked.changed.options.socket_buffer, None);
    let first = asked.experiment.predicted[0];
    // How far the buffers of these hosts grow by themselves is not known.
    let of = (first.limiter, first.effect);
    assert_eq!(of, (Limiter::ReceiverWindow, MAY_GROW));

    let no_time = next(&Reduced::of(&run.recording), &suspects, Nanos::from_s(1));
    assert_eq!(no_time, Next::Nothing(Why::NoTime));

    // Once it is proven, nothing is changed any more.
    let mut run = measured_run();
    change(&mut run, buffers(), &[WINDOW_GROWS], [BEFORE, NINEFOLD]);
    let decided = next(&Reduced::of(&run.recording), &suspects, Nanos::from_s(600));
    assert_eq!(decided, Next::Nothing(Why::Decided));
}
