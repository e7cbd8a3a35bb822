//! What is changed after a measurement: what it proves, what it refutes, and what it leaves open.

use linerate_analyze::groups::Reduced;
use linerate_analyze::proof::{Observed, Proof, Proofs, Verdict, measured};
use linerate_analyze::prove::{Next, Why, next, suspects};
use linerate_analyze::single::{Shown, proven};
use linerate_model::analysis::Analysis;
use linerate_model::experiment::{Effect, Factor, Level, Prediction};
use linerate_model::limiter::Limiter;
use linerate_model::run::Recording;
use linerate_model::workload::Workload;
use linerate_model::{Bytes, Nanos};

use super::builder::{MadeRun, Truth, stream};

const GROWS: Option<Effect> = Some(Effect::Grows);
const MAY_GROW: Option<Effect> = Some(Effect::MayGrow);
const STAYS: Option<Effect> = Some(Effect::Stays);

/// A stream with a buffer of 64 KiB, whose window of that size holds it at `bps`.
fn window_bound(bps: f64) -> (Workload, Truth) {
    let mut workload = stream();
    workload.options.socket_buffer = Some(Bytes(64 << 10));
    let rtt_ns = (65_536.0 * 8e9 / bps) as i64;
    let truth = Truth {
        rwnd_share: 0.98,
        window_bytes: 65_536,
        unacked: 45,
        ..Truth::sending(bps, rtt_ns, rtt_ns)
    };
    (workload, truth)
}

/// A stream that something held at 105 Mbit/s, measured once.
fn measured_run() -> MadeRun {
    let (workload, truth) = window_bound(105e6);
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("run", None, workload);
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
    own.predicted = predicted
        .iter()
        .map(|&(limiter, effect)| Prediction { limiter, effect })
        .collect();
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

#[test]
fn a_window_that_is_larger_proves_that_the_window_was_it() {
    let mut run = measured_run();
    assert_eq!(limiter(&run.recording), Some(Limiter::ReceiverWindow));
    let predicted = [(Limiter::ReceiverWindow, GROWS)];
    let after = [930e6, 938e6, 940e6, 936e6];
    change(&mut run, buffers(), &predicted, [BEFORE, &after]);
    let proof = only(&run.recording);
    assert_eq!(proof.observed, Observed::Grew);
    assert_eq!(proof.verdict, Verdict::Proven);
    assert_eq!(proof.limiter, Some(Limiter::ReceiverWindow));
    let ratio = proof.ratio.expect("both were measured");
    assert!((ratio.value - 936.0 / 105.0).abs() < 0.02, "{ratio:?}");
    assert_eq!(limiter(&run.recording), Some(Limiter::ReceiverWindow));
}

#[test]
fn a_number_that_stays_refutes_the_window() {
    let mut run = measured_run();
    let predicted = [(Limiter::ReceiverWindow, GROWS)];
    change(&mut run, buffers(), &predicted, [BEFORE, BEFORE]);
    let proof = only(&run.recording);
    assert_eq!(proof.observed, Observed::Stayed);
    assert_eq!(proof.verdict, Verdict::Refuted);
    assert_eq!(proof.refuted, [Limiter::ReceiverWindow]);
    assert_eq!(limiter(&run.recording), None);
}

#[test]
fn what_is_within_the_noise_is_not_decided() {
    let mut run = measured_run();
    let predicted = [(Limiter::ReceiverWindow, GROWS), (Limiter::PathRate, STAYS)];
    // Twice as much and as much again: neither growth nor none.
    let after = [105e6, 210e6, 90e6, 150e6];
    change(&mut run, flows(), &predicted, [BEFORE, &after]);
    let proof = only(&run.recording);
    assert_eq!(proof.observed, Observed::Open);
    assert_eq!(proof.verdict, Verdict::NotDecided);
    assert_eq!(proof.limiter, None);
    assert_eq!(limiter(&run.recording), Some(Limiter::ReceiverWindow));

    // One trial of each shows no noise, and invalid ones nothing.
    let mut run = measured_run();
    change(&mut run, flows(), &predicted, [&[105e6], &[210e6]]);
    let proof = only(&run.recording);
    assert_eq!(proof.ratio, None);
    assert_eq!(proof.verdict, Verdict::NotDecided);
}

#[test]
fn of_two_the_one_is_left_whose_prediction_happened() {
    let predicted = [(Limiter::ReceiverWindow, GROWS), (Limiter::PathRate, STAYS)];
    let mut run = measured_run();
    change(&mut run, flows(), &predicted, [BEFORE, BEFORE]);
    let proof = only(&run.recording);
    assert_eq!(proof.verdict, Verdict::Proven);
    assert_eq!(proof.limiter, Some(Limiter::PathRate));
    assert_eq!(proof.refuted, [Limiter::ReceiverWindow]);
    assert_eq!(limiter(&run.recording), Some(Limiter::PathRate));

    // By half as much: the path carries more than was measured, and the window was what was waited for.
    let mut run = measured_run();
    let after = [150e6, 152e6, 151e6, 149e6];
    change(&mut run, flows(), &predicted, [BEFORE, &after]);
    let proof = only(&run.recording);
    assert_eq!(proof.limiter, Some(Limiter::ReceiverWindow));
    assert_eq!(proof.refuted, [Limiter::PathRate]);
}

#[test]
fn a_change_of_one_proves_it_whatever_others_would_do() {
    let levels = ["cubic", "bbr"].map(|word| Level::Word(word.to_owned()));
    let congestion = (Factor::Congestion, levels);
    let predicted = [
        (Limiter::CongestionWindow, MAY_GROW),
        (Limiter::PathRate, None),
    ];
    let after = [930e6, 938e6, 940e6, 936e6];
    let mut run = measured_run();
    change(&mut run, congestion, &predicted, [BEFORE, &after]);
    let proof = only(&run.recording);
    assert_eq!(proof.verdict, Verdict::Proven);
    assert_eq!(proof.limiter, Some(Limiter::CongestionWindow));
    assert!(proof.refuted.is_empty());

    // One buffer option is of two limiters, and more flows have more of everything.
    let both = [
        (Limiter::ReceiverWindow, GROWS),
        (Limiter::SendBuffer, GROWS),
    ];
    let mut run = measured_run();
    change(&mut run, buffers(), &both, [BEFORE, &after]);
    assert_eq!(only(&run.recording).verdict, Verdict::NotDecided);
    let mut run = measured_run();
    change(&mut run, flows(), &predicted, [BEFORE, &after]);
    assert_eq!(only(&run.recording).verdict, Verdict::NotDecided);
}

#[test]
fn less_work_of_a_receiver_proves_no_cpu_where_a_program_may_pause() {
    let predicted = [(Limiter::Cpu, MAY_GROW), (Limiter::Application, None)];
    let copy = ["copy", "discard"].map(|word| Level::Word(word.to_owned()));
    let mut run = measured_run();
    let after = [205e6, 210e6, 208e6, 206e6];
    change(
        &mut run,
        (Factor::Receive, copy),
        &predicted,
        [BEFORE, &after],
    );
    let proof = only(&run.recording);
    assert_eq!(proof.observed, Observed::Grew);
    assert_eq!(proof.verdict, Verdict::NotDecided);
    assert_eq!(proof.refuted, []);
}

#[test]
fn a_number_that_falls_says_nothing() {
    let mut run = measured_run();
    let predicted = [(Limiter::ReceiverWindow, GROWS), (Limiter::PathRate, STAYS)];
    let after = [50e6, 52e6, 51e6, 50e6];
    change(&mut run, flows(), &predicted, [BEFORE, &after]);
    let proof = only(&run.recording);
    assert_eq!(proof.observed, Observed::Fell);
    assert_eq!(proof.verdict, Verdict::NotDecided);
    assert!(proof.refuted.is_empty());
}

#[test]
fn what_stays_alone_and_what_all_would_raise_proves_nothing() {
    let mut run = measured_run();
    let alone = [(Limiter::PathRate, STAYS)];
    change(&mut run, flows(), &alone, [BEFORE, BEFORE]);
    assert_eq!(only(&run.recording).verdict, Verdict::NotRefuted);

    // More flows have more of everything that each flow has.
    let mut run = measured_run();
    let alone = [(Limiter::ReceiverWindow, GROWS)];
    let after = [210e6, 208e6, 209e6, 211e6];
    change(&mut run, flows(), &alone, [BEFORE, &after]);
    assert_eq!(only(&run.recording).verdict, Verdict::NotRefuted);

    // Another congestion control may stop where the first did.
    let mut run = measured_run();
    let alone = [(Limiter::CongestionWindow, MAY_GROW)];
    let levels = ["cubic", "bbr"].map(|word| Level::Word(word.to_owned()));
    let other = (Factor::Congestion, levels);
    change(&mut run, other, &alone, [BEFORE, BEFORE]);
    let proof = only(&run.recording);
    assert_eq!(proof.observed, Observed::Stayed);
    assert_eq!(proof.verdict, Verdict::NotDecided);
    assert!(proof.refuted.is_empty());
}

#[test]
fn what_was_measured_is_as_it_was_before_the_changes() {
    let mut run = measured_run();
    let alone = linerate_analyze::analyze(&run.recording);
    let predicted = [(Limiter::ReceiverWindow, GROWS)];
    let after = [930e6, 938e6, 940e6, 936e6];
    change(&mut run, buffers(), &predicted, [BEFORE, &after]);
    let all = linerate_analyze::analyze(&run.recording);
    assert!(all.is_one_measurement);
    assert_eq!(all.trust, alone.trust);
    assert_eq!(all.summary, alone.summary);
    adds_a_chapter(&alone, &all, "prove-1");
}

/// Whether nothing but one chapter is there beyond what was `alone`.
#[track_caller]
fn adds_a_chapter(alone: &Analysis, all: &Analysis, chapter: &str) {
    let claims =
        |of: &Analysis| -> Vec<String> { of.findings.iter().map(|it| it.claim.clone()).collect() };
    assert_eq!(claims(all), claims(alone));
    let chapters =
        |of: &Analysis| -> Vec<String> { of.chapters.iter().map(|it| it.id.clone()).collect() };
    let mut expected = chapters(alone);
    expected.push(chapter.to_owned());
    assert_eq!(chapters(all), expected);
}

#[test]
fn of_a_study_one_connection_is_changed_and_its_own_numbers_stay() {
    let (workload, truth) = window_bound(105e6);
    let mut run = MadeRun::new(1, Some(1e9));
    let several = Workload {
        connections: 8,
        ..workload.clone()
    };
    run.experiment("several", None, several);
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
    let predicted = [(Limiter::ReceiverWindow, GROWS)];
    change(&mut run, buffers(), &predicted, [BEFORE, BEFORE]);
    assert_eq!(only(&run.recording).verdict, Verdict::Refuted);
    let all = linerate_analyze::analyze(&run.recording);
    assert_eq!(all.trust, alone.trust);
    assert_eq!(all.answer, alone.answer);
    adds_a_chapter(&alone, &all, "prove-2");
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
    assert_eq!(
        (first.limiter, first.effect),
        (Limiter::ReceiverWindow, MAY_GROW)
    );

    let no_time = next(&Reduced::of(&run.recording), &suspects, Nanos::from_s(1));
    assert_eq!(no_time, Next::Nothing(Why::NoTime));

    // Once it is proven, nothing is changed any more.
    let mut run = measured_run();
    let predicted = [(Limiter::ReceiverWindow, GROWS)];
    let after = [930e6, 938e6, 940e6, 936e6];
    change(&mut run, buffers(), &predicted, [BEFORE, &after]);
    let decided = next(&Reduced::of(&run.recording), &suspects, Nanos::from_s(600));
    assert_eq!(decided, Next::Nothing(Why::Decided));
}
