//! What comparisons decide, and what follows from it.

use linerate_analyze::open_experiments;
use linerate_model::finding::{Comparison, Verdict};
use linerate_model::plan::{Repeat, Trial};
use linerate_truth::noise::Noise;
use linerate_truth::score::{Length, Score, score, score_of};
use linerate_truth::study::{Chapters, Shape, repeated, study};

use crate::prelude::*;

const THREE: Chapters = Chapters::Three;

fn of(shape: Shape, noise: Noise) -> Analysis {
    analyze(&study(shape, noise, THREE, 7).recording)
}

fn comparison<'a>(analysis: &'a Analysis, id: &str) -> &'a Comparison {
    let mut all = analysis.verdicts.iter();
    let found = all.find(|comparison| comparison.id == id);
    found.expect("it is compared")
}

fn has(analysis: &Analysis, kind: FindingKind) -> bool {
    analysis.findings.iter().any(|finding| finding.kind == kind)
}

/// Experiments of which more is to be measured.
fn open(recording: &Recording) -> Vec<String> {
    open_experiments(&Reduced::of(recording))
}

/// What a chapter answers.
fn answer(analysis: &Analysis, id: &str) -> String {
    chapter(analysis, id).answer.clone().unwrap_or_default()
}

#[test]
fn where_nothing_differs_all_is_the_same() {
    let analysis = of(Shape::Flat, Noise::Normal(0.005));
    for comparison in &analysis.verdicts {
        assert_eq!(comparison.verdict, Verdict::Same, "{comparison:?}");
    }
    assert!(!has(&analysis, FindingKind::Effect) && !has(&analysis, FindingKind::Plateau));
    assert_eq!(analysis.recommendations, []);
}

#[test]
fn where_noise_hides_all_nothing_is_decided() {
    let analysis = of(Shape::Flat, Noise::Normal(0.3));
    for comparison in &analysis.verdicts {
        assert_eq!(comparison.verdict, Verdict::NotDecided, "{comparison:?}");
        assert!(comparison.more.is_some(), "{comparison:?}");
    }
    let trust = analysis.trust.expect("a study is judged");
    assert_ne!(trust.level, TrustLevel::Good, "{trust:?}");
}

#[test]
fn a_factor_is_one_finding_whatever_it_is_measured_with() {
    let analysis = of(Shape::Both(0.4), Noise::Normal(0.02));
    let findings = analysis.findings.iter();
    let begin = "Delayed ACK on against off";
    let found = findings.filter(|finding| finding.claim.starts_with(begin));
    let [found] = found.collect::<Vec<_>>()[..] else {
        panic!("{:?}", analysis.findings);
    };
    let parts: Vec<&str> = found.claim.split("; ").collect();
    assert_eq!(parts.len(), 2, "{}", found.claim);
    says!(parts[0]; "× 1.4", "latency");
    says!(parts[1]; "× 0.8", "messages");
    assert!(found.evidence.as_slice().len() >= 2, "{:?}", found.evidence);
    says!(found.explanation; "changes direction");
    for finding in of(Shape::Effect(0.4), Noise::Normal(0.02)).findings {
        says!(finding.explanation; no "changes direction");
    }
}

#[test]
fn what_a_chapter_sees_on_links_that_it_makes_lose_is_no_finding() {
    let is_told = |chapter: Option<u32>, link_loss_ppm: Option<u32>| {
        let noise = Noise::Normal(0.02);
        let mut recording = study(Shape::Effect(0.4), noise, Chapters::Latency, 7).recording;
        let plan = &mut recording.document.plan;
        for experiment in &mut plan.experiments {
            experiment.chapter = chapter;
            experiment.workload.link_loss_ppm = link_loss_ppm;
        }
        for trial in &mut plan.trials {
            trial.workload.link_loss_ppm = link_loss_ppm;
        }
        let analysis = analyze(&recording);
        let found = comparison(&analysis, "latency/effect/delayed_ack");
        assert_eq!(found.verdict, Verdict::Differs);
        has(&analysis, FindingKind::Effect)
    };
    assert!(is_told(Some(1), None) && is_told(None, Some(10_000)));
    assert!(!is_told(Some(1), Some(10_000)));
}

#[test]
fn an_experiment_is_open_until_each_cell_has_an_interval() {
    let blocks = |latency: usize| {
        let replicates = move |name: &str| if name == "latency" { latency } else { 8 };
        let noise = Noise::Normal(0.001);
        open(&repeated(Shape::Flat, noise, THREE, &replicates, 7).recording)
    };
    assert_eq!(blocks(2), ["latency"]);
    assert_eq!(blocks(3), [""; 0]);
}

#[test]
fn an_effect_on_all_sizes_is_one_ratio() {
    let analysis = of(Shape::Effect(0.2), Noise::Normal(0.03));
    for id in ["latency/effect/delayed_ack", "small-messages/effect/nagle"] {
        let found = comparison(&analysis, id);
        assert_eq!(found.verdict, Verdict::Differs, "{found:?}");
        let (low, high) = (found.effect.low.unwrap(), found.effect.high.unwrap());
        assert!((found.effect.value - 1.2).abs() < 0.04, "{found:?}");
        assert!(low > 1.1 && high - low < 0.1, "{found:?}");
        assert!(analysis.findings.iter().any(|it| it.id == id), "{id}");
    }
}

#[test]
fn an_effect_that_turns_about_is_told_for_each_size() {
    let analysis = of(Shape::Turning(0.4), Noise::Normal(0.03));
    let found = comparison(&analysis, "small-messages/effect/nagle");
    assert_eq!(found.verdict, Verdict::Differs, "{found:?}");
    let levels = found.levels.iter();
    let is_more: Vec<bool> = levels.map(|(.., ratio)| ratio.value > 1.0).collect();
    assert_eq!(is_more, [true, true, false, false], "{found:?}");
    let mut findings = analysis.findings.iter();
    let finding = findings.find(|finding| finding.id == "small-messages/effect/nagle");
    let finding = finding.expect("it is a finding");
    says!(finding.claim; "60 B", "1460 B");
    says!(finding.explanation; "changes direction");
}

#[test]
fn a_plateau_begins_where_a_loss_is_excluded() {
    let analysis = of(Shape::Knee(64.0), Noise::Normal(0.01));
    let found = comparison(&analysis, "socket-buffer/plateau/1");
    for (level, verdict) in [
        ("16 KiB", Verdict::Differs),
        ("24 KiB", Verdict::Differs),
        ("32 KiB", Verdict::Differs),
        ("48 KiB", Verdict::Differs),
        ("64 KiB", Verdict::Same),
        ("128 KiB", Verdict::Same),
        ("1 MiB", Verdict::Same),
    ] {
        let mut levels = found.levels.iter();
        let said = levels.find(|(words, ..)| words == level);
        assert_eq!(said.expect("a level").1, verdict, "{level}");
    }
    // That small buffers lose is no fault of the host.
    assert!(!has(&analysis, FindingKind::Plateau));
    assert_eq!(analysis.recommendations, []);
    says!(answer(&analysis, "socket-buffer"); "Buffers from 64 KiB on lose less than 5 %");
}

#[test]
fn a_host_that_tunes_badly_is_advised_with_the_measured_gain() {
    let analysis = of(Shape::TunedBadly(0.2), Noise::Normal(0.01));
    assert!(has(&analysis, FindingKind::Plateau));
    let advice = analysis.recommendations.first().expect("a recommendation");
    // What was measured: no sysctl was.
    says!(advice.action; begins "Set SO_RCVBUF", no "tcp_rmem");
    says!(advice.predicted; begins "Throughput 1.2");
    let is_so = !advice.cost.is_empty() && !advice.undo.is_empty();
    assert!(is_so, "{advice:?}");
    let again = "linerate run HOST --experiment socket-buffer";
    assert_eq!(advice.confirm, again);
}

#[test]
fn the_chapter_on_buffers_does_not_deny_a_gain_or_a_fall() {
    let of = |shape| {
        let analysis = of(shape, Noise::Normal(0.01));
        let found = comparison(&analysis, "socket-buffer/plateau/1");
        let answer = answer(&analysis, "socket-buffer");
        (answer, found.verdict, found.effect.value)
    };
    let (answer, verdict, ratio) = of(Shape::TunedBadly(0.2));
    says!(answer; no "no difference", " reach 1.2");
    assert_eq!(verdict, Verdict::Differs);
    assert!(ratio > 1.2, "{ratio}");
    // The largest buffers are worse again.
    let (answer, verdict, _) = of(Shape::Hump(0.3));
    says!(answer; no "no difference", " reach 0.");
    assert_eq!(verdict, Verdict::Differs);
    let (answer, verdict, _) = of(Shape::Flat);
    says!(answer; "no difference");
    assert_eq!(verdict, Verdict::Same);
}

#[test]
fn what_gains_with_each_count_of_connections_is_one_recommendation() {
    let noise = Noise::Normal(0.01);
    let mut recording = study(Shape::TunedBadly(0.3), noise, THREE, 7).recording;
    let analysis = analyze(&recording);
    let findings = analysis.findings.iter();
    let plateaus = findings.filter(|finding| finding.kind == FindingKind::Plateau);
    assert_eq!(plateaus.count(), 2);
    let [advice] = analysis.recommendations.as_slice() else {
        panic!("one size: {:?}", analysis.recommendations);
    };
    // A program does not know how many there will be.
    says!(advice.action; no "connection");
    says!(advice.predicted; "with 1 connection", "with 10 connections");
    // Where the host as it is has no number with ten, it may do better than any of them.
    let is_of_host = |trial: &&Trial| {
        trial.experiment == "socket-buffer"
            && trial.workload.connections == 10
            && trial.workload.options.socket_buffer.is_none()
    };
    let trials = recording.document.plan.trials.iter().filter(is_of_host);
    let trials: Vec<TrialId> = trials.map(|trial| trial.id).collect();
    assert!(!trials.is_empty());
    for record in &mut recording.trials {
        if trials.contains(&record.trial) {
            record.validity = Validity::Invalid(Reason::NoExchange);
        }
    }
    assert_eq!(analyze(&recording).recommendations, []);
}

/// Scores of so many studies with normal noise.
fn scored(shape: Shape, noise: f64, studies: u32) -> Score {
    score(shape, Noise::Normal(noise), THREE, studies, 1)
}

#[test]
fn a_noise_of_one_level_alone_makes_no_claims() {
    // With one deviation for all levels a third of these studies had a false claim.
    for noise in [Noise::OneLevel(0.3), Noise::ByFactor(0.2)] {
        let flat = score(Shape::Flat, noise, THREE, 12, 3);
        assert!(flat.with_false_claim <= 2, "{noise:?}: {flat:?}");
        assert_eq!(flat.impossible, 0, "{noise:?}: {flat:?}");
    }
}

#[test]
fn what_has_no_noise_at_all_is_compared() {
    let flat = score(Shape::Flat, Noise::Exact, THREE, 1, 1);
    assert_eq!((flat.curves, flat.no_effect), (2, 2), "{flat:?}");
    let knee = score(Shape::Knee(64.0), Noise::Exact, THREE, 1, 1);
    assert_eq!((knee.with_false_claim, knee.too_small), (0, 0), "{knee:?}");
}

#[test]
fn effects_of_round_trips_and_cpu_time_are_found() {
    for chapters in [Chapters::RoundTrip, Chapters::Cpu] {
        let found = score(Shape::Effect(0.2), Noise::Normal(0.03), chapters, 2, 1);
        assert_eq!((found.effects, found.found), (2, 2), "{chapters:?}");
        // 5 % of 80 µs are 4 µs: the same.
        let small = score(Shape::Effect(0.05), Noise::Normal(0.01), chapters, 2, 1);
        let told = (small.found, small.wrong_same);
        assert_eq!(told, (0, 0), "{chapters:?}: {small:?}");
    }
}

#[test]
fn truths_are_scored() {
    // `bench truth` does this at length; here that wires are joined and that scores discriminate.
    let flat = scored(Shape::Flat, 0.03, 3);
    assert_eq!((flat.studies, flat.effects, flat.curves), (3, 0, 6));
    assert_eq!((flat.with_false_claim, flat.recommendations), (0, 0));
    assert!(flat.covered * 100 > flat.cells * 80, "{flat:?}");
    let twenty = scored(Shape::Effect(0.2), 0.03, 3);
    assert_eq!((twenty.effects, twenty.found), (6, 6));
}

#[test]
fn what_may_gain_is_not_the_same() {
    // Buffers that gain 11 % lose nothing, which was taken for "the same".
    let tuned = Shape::TunedBadly(0.1);
    let gained = scored(tuned, 0.03, 8);
    assert_eq!((gained.curves, gained.wrong_same), (16, 0), "{gained:?}");
    assert_eq!(gained.undecided, 0, "all lose nothing: {gained:?}");
    let analysis = of(tuned, Noise::Normal(0.03));
    let found = comparison(&analysis, "socket-buffer/plateau/1");
    assert_ne!(found.verdict, Verdict::Same, "{found:?}");
    let is_open = found.verdict == Verdict::NotDecided;
    assert_eq!(found.more.is_some(), is_open, "{found:?}");
}

#[test]
fn an_effect_that_turns_about_with_another_factor_is_not_the_same() {
    for share in [0.12, 0.15] {
        let crossed = Shape::Crossed(share);
        let short = scored(crossed, 0.02, 8);
        assert_eq!(short.wrong_same, 0, "{share}: {short:?}");
        let length = Length::UntilDecided(8);
        let long = score_of(crossed, Noise::Normal(0.02), THREE, length, (4, 1));
        assert_eq!(long.wrong_same, 0, "{share}: {long:?}");
        assert!(short.effects > 0 && long.effects > 0, "{short:?} {long:?}");
    }
}

/// An experiment without trials.
fn of_stream(name: &str) -> MadeRun {
    begun(GIGABIT, name, None, stream())
}

/// The same on hosts that use cubic.
fn of_cubic() -> MadeRun {
    let mut run = of_stream("control");
    run.both_tell("sysctl.net.ipv4.tcp_congestion_control", text("cubic"));
    run
}

fn control(name: &str) -> (Factor, Level) {
    (Factor::Congestion, Level::Word(name.to_owned()))
}

/// Adds a trial of each block.
fn blocks(run: &mut MadeRun, levels: &[(Factor, Level)], n: u32, truth: impl Fn(u32) -> Truth) {
    run.cell(levels, &(0..n).map(truth).collect::<Vec<_>>());
}

#[test]
fn only_what_is_better_is_recommended() {
    // Against cubic, which the hosts use, bbr has three tenths more of everything.
    let advice = |response: &str| {
        let mut run = of_cubic();
        let experiments = &mut run.recording.document.plan.experiments;
        experiments[0].response = response.to_owned();
        for bytes in [1000, 10_000] {
            for (name, more) in [("cubic", 1.0), ("bbr", 1.3)] {
                let levels = [(Factor::MessageBytes, size(bytes)), control(name)];
                blocks(&mut run, &levels, 4, |block| {
                    let bps = 500e6 * more * (1.0 + 0.002 * f64::from(block % 3));
                    let rtt_ns = (100_000.0 * more) as i64;
                    like!(Truth::stream(bps); segments_per_ack: 2.0 * more, rtt_ns)
                });
            }
        }
        let analysis = analyze(&run.recording);
        let effect = analysis.verdicts.iter().find(|it| !it.is_plateau);
        let effect = effect.expect("the control is compared");
        assert_eq!(effect.verdict, Verdict::Differs, "{response}: {effect:?}");
        analysis.recommendations
    };
    says!(advice(name::THROUGHPUT)[0].action; begins "Use bbr");
    // More segments of an ACK are neither better nor worse, and longer round trips are worse.
    for response in [name::SEGMENTS_PER_ACK, name::TCP_RTT] {
        assert_eq!(advice(response), [], "{response}");
    }
}

#[test]
fn what_turns_about_with_a_factor_beside_the_first_is_no_advice() {
    // bbr has nine tenths of cubic's rate where ACKs are delayed and twice as much where not, at all sizes.
    let told = |delayed: f64, prompt: f64| {
        let mut run = of_cubic();
        for bytes in [1000, 10_000, 100_000] {
            for (delayed_ack, more) in [(true, delayed), (false, prompt)] {
                for (name, more) in [("cubic", 1.0), ("bbr", more)] {
                    let delayed_ack = (Factor::DelayedAck, Level::Switch(delayed_ack));
                    let of_size = (Factor::MessageBytes, size(bytes));
                    let levels = [of_size, delayed_ack, control(name)];
                    blocks(&mut run, &levels, 4, |block| {
                        let noise = 1.0 + 0.01 * f64::from((7 * block + bytes as u32) % 3);
                        Truth::stream(300e6 * more * noise)
                    });
                }
            }
        }
        let analysis = analyze(&run.recording);
        let mut all = analysis.findings.iter();
        let found = all.find(|one| one.id.contains("effect/congestion"));
        (found.expect("it differs").clone(), analysis.recommendations)
    };
    let (turning, advice) = told(0.9, 2.0);
    says!(turning.claim; "on average, and × 0.9");
    says!(turning.explanation; "changes direction");
    assert_eq!(advice, []);
    let (steady, advice) = told(1.9, 2.0);
    says!(steady.claim; no "on average");
    says!(steady.explanation; no "changes direction");
    says!(advice[0].action; begins "Use bbr");
}

#[test]
fn too_few_pairs_decide_nothing_and_leave_an_experiment_open() {
    let made = |n: u32| {
        let mut run = of_stream("nagle");
        for (nagle, bps) in [(true, 200e6), (false, 400e6)] {
            blocks(
                &mut run,
                &[(Factor::Nagle, Level::Switch(nagle))],
                n,
                |block| Truth::stream(bps * (1.0 + 0.01 * f64::from(block % 3))),
            );
        }
        let analysis = analyze(&run.recording);
        let found = comparison(&analysis, "nagle/effect/nagle").clone();
        let answer = analysis.chapters[0].answer.clone().unwrap_or_default();
        (open(&run.recording), found, answer)
    };
    let (open, found, answer) = made(3);
    assert_eq!(open, ["nagle"]);
    assert_eq!((found.verdict, found.more), (Verdict::NotDecided, Some(2)));
    says!(answer; no " against ");
    assert!((found.effect.value - 0.5).abs() < 1e-6 && found.effect.n == 3);
    assert_eq!(found.effect.low, None);
    let (open, found, answer) = made(12);
    assert_eq!(open, [""; 0]);
    assert_eq!(found.verdict, Verdict::Differs);
    // Which was the question comes before the range.
    let sentences: Vec<&str> = answer.split(". ").collect();
    let at = |words: &str| sentences.iter().position(|it| it.contains(words));
    let at = [at("on against off"), at(" to ")];
    assert_eq!(at, [Some(0), Some(1)], "{answer}");
}

#[test]
fn what_was_done_once_more_at_the_end_is_no_pair_of_its_block() {
    // Nothing differs, but the rate rises from block to block, and trials with Nagle on were done again after all.
    let found = |again: bool| {
        let mut run = of_stream("drift");
        for bytes in [100, 1000, 10_000] {
            for on in [false, true] {
                let nagle = (Factor::Nagle, Level::Switch(on));
                let levels = [(Factor::MessageBytes, size(bytes)), nagle];
                blocks(&mut run, &levels, 6, |block| {
                    let at = if on && again { 5 } else { block };
                    let noise = 0.004 * f64::from((block + u32::from(on)) % 3);
                    Truth::stream(500e6 * (1.0 + 0.06 * f64::from(at) + noise))
                });
                if on && again {
                    let last = run.recording.trials.iter().rev().take(6);
                    let repeats = last.map(|record| Repeat {
                        trial: record.trial,
                        of: TrialId(record.trial.0 + 1000),
                        why: RepeatReason::Disturbed(Disturbance::Unaccounted(0.1)),
                    });
                    run.recording.document.plan.repeats.extend(repeats);
                }
            }
        }
        let analysis = analyze(&run.recording);
        let mut effects = analysis.verdicts.iter();
        effects.find(|it| !it.is_plateau).map(|it| it.verdict)
    };
    assert_eq!(found(false), Some(Verdict::Same), "of the same blocks");
    // Nothing is left to compare.
    assert_eq!(found(true), None);
}

/// An experiment whose response is how many segments were lost.
fn of_loss() -> MadeRun {
    let mut run = of_stream("loss");
    let experiments = &mut run.recording.document.plan.experiments;
    experiments[0].response = "retransmitted_segments".to_owned();
    run
}

/// Returns the verdict on `name`, and its ratio, of cubic and bbr whose trials lose these shares of their segments.
fn of_losses(cubic: [f64; 8], bbr: [f64; 8]) -> Option<(Verdict, f64)> {
    let mut run = of_loss();
    for (name, shares) in [("bbr", bbr), ("cubic", cubic)] {
        let truth = |lost_share| like!(Truth::stream(500e6); lost_share);
        run.cell(&[control(name)], &shares.map(truth));
    }
    let analysis = analyze(&run.recording);
    let found = analysis.verdicts.first()?;
    Some((found.verdict, found.effect.value))
}

#[test]
fn trials_that_lost_nothing_count_as_much_as_those_that_did() {
    let some = [0.01, 0.011, 0.012, 0.0105, 0.0115, 0.011, 0.0108, 0.0112];
    let (verdict, ratio) = of_losses(some, some).expect("a comparison");
    assert!(verdict == Verdict::Same && (ratio - 1.0).abs() < 1e-9);
    // One of them lost nothing in half of the trials, and as much in the others.
    let half = [0.0, 0.011, 0.0, 0.0105, 0.0, 0.011, 0.0, 0.0112];
    let (verdict, ratio) = of_losses(some, half).expect("a comparison");
    assert!(verdict != Verdict::Same, "{verdict:?} {ratio}");
    let is_half = ratio > 0.4 && ratio < 0.6 || ratio > 1.7 && ratio < 2.3;
    assert!(is_half, "{ratio}");
    // Over nothing there is no ratio.
    assert_eq!(of_losses(some, [0.0; 8]), None);
}

#[test]
fn a_link_on_which_nothing_is_lost_leaves_the_verdict_to_the_others() {
    let mut run = of_loss();
    for (ppm, factor) in [(0, 0.0), (10_000, 1.0)] {
        for (name, share) in [("bbr", 0.04), ("cubic", 0.01)] {
            let levels = [(Factor::LinkLoss, Level::Ppm(ppm)), control(name)];
            blocks(&mut run, &levels, 12, |block| {
                let lost_share = factor * share * (1.0 + 0.01 * f64::from(block % 3));
                like!(Truth::stream(500e6); lost_share)
            });
        }
    }
    let analysis = analyze(&run.recording);
    let mut found = analysis.verdicts.iter();
    let found = found.find(|it| it.id.contains("congestion"));
    let found = found.map(|it| (it.verdict, it.effect.n));
    assert_eq!(found, Some((Verdict::Differs, 12)));
}

#[test]
fn a_plateau_whose_begin_is_unknown_is_open_though_a_smaller_buffer_loses() {
    let made = |middle_bps: f64, noise: f64| {
        let mut run = of_stream("buffers");
        for (level, bps) in [
            (size(16 << 10), 200e6),
            (size(64 << 10), middle_bps),
            (size(256 << 10), 800e6),
            (size(1 << 20), 800e6),
            (Level::Word("auto".to_owned()), 800e6),
        ] {
            let at = run.recording.trials.len() / 3;
            let wobble = |block: usize| 1.0 + noise * ((block + at) % 3) as f64 - noise;
            let truth = |block| Truth::stream(bps * wobble(block));
            run.cell(&[(Factor::SocketBuffer, level)], &[0, 1, 2].map(truth));
        }
        run.recording
    };
    // A loss of 5 % matters; whether there is one of 3 % or of 7 % has to be found out.
    let unknown = made(776e6, 0.02);
    let analysis = analyze(&unknown);
    let found = comparison(&analysis, "buffers/plateau/1");
    assert_eq!(found.verdict, Verdict::Differs, "{found:?}");
    assert_eq!(open(&unknown), ["buffers"], "{found:?}");
    assert_eq!(open(&made(400e6, 0.002)), [""; 0]);
}
