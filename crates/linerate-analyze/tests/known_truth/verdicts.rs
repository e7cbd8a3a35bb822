//! What comparisons decide, and what follows from it.

use linerate_analyze::groups::Reduced;
use linerate_analyze::{analyze, open_experiments};
use linerate_model::TrialId;
use linerate_model::analysis::Analysis;
use linerate_model::experiment::{Factor, Level};
use linerate_model::finding::{Comparison, FindingKind, TrustLevel, Verdict};
use linerate_model::host::{Fact, FactValue};
use linerate_model::plan::{Repeat, Trial};
use linerate_model::reason::{Disturbance, Reason, RepeatReason};
use linerate_model::response::name;
use linerate_model::run::Validity;
use linerate_truth::noise::Noise;
use linerate_truth::score::{Length, score, score_of};
use linerate_truth::study::{Chapters, Shape, repeated, study};

use crate::builder::{MadeRun, Truth, size, stream};

fn of(shape: Shape, noise: Noise) -> Analysis {
    analyze(&study(shape, noise, Chapters::Three, 7).recording)
}

fn comparison<'a>(analysis: &'a Analysis, id: &str) -> &'a Comparison {
    let mut all = analysis.verdicts.iter();
    all.find(|comparison| comparison.id == id)
        .expect("it is compared")
}

#[test]
fn where_nothing_differs_all_is_the_same() {
    let analysis = of(Shape::Flat, Noise::Normal(0.005));
    for comparison in &analysis.verdicts {
        assert_eq!(comparison.verdict, Verdict::Same, "{comparison:?}");
    }
    let is_claim = |kind| matches!(kind, FindingKind::Effect | FindingKind::Plateau);
    assert!(
        analysis
            .findings
            .iter()
            .all(|finding| !is_claim(finding.kind))
    );
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
    let claims: Vec<&str> = findings
        .filter(|finding| finding.claim.starts_with("Delayed ACK on against off"))
        .map(|finding| finding.claim.as_str())
        .collect();
    let [claim] = claims[..] else {
        panic!("{claims:?}");
    };
    let parts: Vec<&str> = claim.split("; ").collect();
    assert_eq!(parts.len(), 2, "{claim}");
    for (part, ratio, title) in [
        (parts[0], "× 1.4", "latency"),
        (parts[1], "× 0.8", "messages"),
    ] {
        assert!(part.contains(ratio) && part.contains(title), "{part}");
    }
    let found = analysis.findings.iter().find(|it| it.claim == claim);
    let found = found.expect("it was there");
    assert!(found.evidence.as_slice().len() >= 2, "{:?}", found.evidence);
    let turns = "changes direction";
    assert!(found.explanation.contains(turns), "{}", found.explanation);
    let same = of(Shape::Effect(0.4), Noise::Normal(0.02));
    let mut claims = same.findings.iter().map(|it| it.explanation.as_str());
    assert!(claims.all(|explanation| !explanation.contains(turns)));
}

#[test]
fn what_a_chapter_sees_on_links_that_it_makes_lose_is_no_finding() {
    let is_told = |chapter: Option<u32>, loss_ppm: Option<u32>| {
        let noise = Noise::Normal(0.02);
        let mut recording = study(Shape::Effect(0.4), noise, Chapters::Latency, 7).recording;
        let plan = &mut recording.document.plan;
        for experiment in &mut plan.experiments {
            experiment.chapter = chapter;
            experiment.workload.link_loss_ppm = loss_ppm;
        }
        for trial in &mut plan.trials {
            trial.workload.link_loss_ppm = loss_ppm;
        }
        let analysis = analyze(&recording);
        let found = comparison(&analysis, "latency/effect/delayed_ack");
        assert_eq!(found.verdict, Verdict::Differs);
        let mut findings = analysis.findings.iter();
        findings.any(|finding| finding.kind == FindingKind::Effect)
    };
    assert!(is_told(Some(1), None) && is_told(None, Some(10_000)));
    assert!(!is_told(Some(1), Some(10_000)));
}

#[test]
fn an_experiment_is_open_until_each_cell_has_an_interval() {
    let blocks = |latency: usize| {
        let replicates = move |name: &str| if name == "latency" { latency } else { 8 };
        let noise = Noise::Normal(0.001);
        open_experiments(&Reduced::of(
            &repeated(Shape::Flat, noise, Chapters::Three, &replicates, 7).recording,
        ))
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
        assert!(
            analysis.findings.iter().any(|finding| finding.id == id),
            "{id}"
        );
    }
}

#[test]
fn an_effect_that_turns_about_is_told_for_each_size() {
    let analysis = of(Shape::Turning(0.4), Noise::Normal(0.03));
    let found = comparison(&analysis, "small-messages/effect/nagle");
    assert_eq!(found.verdict, Verdict::Differs, "{found:?}");
    let ratios: Vec<bool> = found
        .levels
        .iter()
        .map(|(.., ratio)| ratio.value > 1.0)
        .collect();
    assert_eq!(ratios, [true, true, false, false], "{found:?}");
    let mut findings = analysis.findings.iter();
    let finding = findings.find(|finding| finding.id == "small-messages/effect/nagle");
    let finding = finding.expect("it is a finding");
    assert!(
        finding.claim.contains("60 B") && finding.claim.contains("1460 B"),
        "{}",
        finding.claim
    );
    assert!(
        finding.explanation.contains("changes direction"),
        "{}",
        finding.explanation
    );
}

#[test]
fn a_plateau_begins_where_a_loss_is_excluded() {
    let analysis = of(Shape::Knee(64.0), Noise::Normal(0.01));
    let found = comparison(&analysis, "socket-buffer/plateau/1");
    let said = |level: &str| {
        let mut levels = found.levels.iter();
        levels
            .find(|(words, ..)| words == level)
            .expect("a level")
            .1
    };
    for level in ["16 KiB", "24 KiB", "32 KiB", "48 KiB"] {
        assert_eq!(said(level), Verdict::Differs, "{level}");
    }
    for level in ["64 KiB", "128 KiB", "1 MiB"] {
        assert_eq!(said(level), Verdict::Same, "{level}");
    }
    // That small buffers lose is no fault of the host.
    assert!(
        analysis
            .findings
            .iter()
            .all(|finding| finding.kind != FindingKind::Plateau)
    );
    assert_eq!(analysis.recommendations, []);
    let mut chapters = analysis.chapters.iter();
    let chapter = chapters
        .find(|chapter| chapter.id == "socket-buffer")
        .expect("the chapter");
    let answer = chapter.answer.as_deref().unwrap_or_default();
    assert!(
        answer.contains("Buffers from 64 KiB on lose less than 5 %"),
        "{answer}"
    );
}

#[test]
fn a_host_that_tunes_badly_is_advised_with_the_measured_gain() {
    let analysis = of(Shape::TunedBadly(0.2), Noise::Normal(0.01));
    assert!(
        analysis
            .findings
            .iter()
            .any(|finding| finding.kind == FindingKind::Plateau)
    );
    let advice = analysis.recommendations.first().expect("a recommendation");
    // What was measured: no sysctl was.
    assert!(advice.action.starts_with("Set SO_RCVBUF"), "{advice:?}");
    assert!(!advice.action.contains("tcp_rmem"), "{advice:?}");
    assert!(advice.predicted.starts_with("Throughput 1.2"), "{advice:?}");
    assert!(
        !advice.cost.is_empty() && !advice.undo.is_empty(),
        "{advice:?}"
    );
    assert_eq!(
        advice.confirm,
        "linerate run HOST --experiment socket-buffer"
    );
}

#[test]
fn the_chapter_on_buffers_does_not_deny_a_gain_or_a_fall() {
    let of = |shape| {
        let analysis = of(shape, Noise::Normal(0.01));
        let mut chapters = analysis.chapters.iter();
        let chapter = chapters.find(|chapter| chapter.id == "socket-buffer");
        let answer = chapter.and_then(|chapter| chapter.answer.clone());
        let found = comparison(&analysis, "socket-buffer/plateau/1");
        let ratio = found.effect.value;
        (answer.expect("an answer"), found.verdict, ratio)
    };
    let (answer, verdict, ratio) = of(Shape::TunedBadly(0.2));
    assert!(!answer.contains("no difference"), "{answer}");
    assert!(answer.contains(" reach 1.2"), "{answer}");
    assert_eq!(verdict, Verdict::Differs);
    assert!(ratio > 1.2, "{ratio}");
    // The largest buffers are worse again.
    let (answer, verdict, _) = of(Shape::Hump(0.3));
    assert!(!answer.contains("no difference"), "{answer}");
    assert!(answer.contains(" reach 0."), "{answer}");
    assert_eq!(verdict, Verdict::Differs);
    let (answer, verdict, _) = of(Shape::Flat);
    assert!(answer.contains("no difference"), "{answer}");
    assert_eq!(verdict, Verdict::Same);
}

#[test]
fn what_gains_with_each_count_of_connections_is_one_recommendation() {
    let made = study(
        Shape::TunedBadly(0.3),
        Noise::Normal(0.01),
        Chapters::Three,
        7,
    );
    let mut recording = made.recording;
    let analysis = analyze(&recording);
    let plateaus = analysis
        .findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Plateau);
    assert_eq!(plateaus.count(), 2);
    let [advice] = analysis.recommendations.as_slice() else {
        panic!("one size: {:?}", analysis.recommendations);
    };
    // A program does not know how many there will be.
    assert!(!advice.action.contains("connection"), "{advice:?}");
    for of in ["with 1 connection", "with 10 connections"] {
        assert!(advice.predicted.contains(of), "{advice:?}");
    }
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

#[test]
fn a_noise_of_one_level_alone_makes_no_claims() {
    // With one deviation for all levels a third of these studies had a false claim.
    for noise in [Noise::OneLevel(0.3), Noise::ByFactor(0.2)] {
        let flat = score(Shape::Flat, noise, Chapters::Three, 12, 3);
        assert!(flat.with_false_claim <= 2, "{noise:?}: {flat:?}");
        assert_eq!(flat.impossible, 0, "{noise:?}: {flat:?}");
    }
}

#[test]
fn what_has_no_noise_at_all_is_compared() {
    let flat = score(Shape::Flat, Noise::Exact, Chapters::Three, 1, 1);
    assert_eq!((flat.curves, flat.no_effect), (2, 2), "{flat:?}");
    let knee = score(Shape::Knee(64.0), Noise::Exact, Chapters::Three, 1, 1);
    assert_eq!((knee.with_false_claim, knee.too_small), (0, 0), "{knee:?}");
}

#[test]
fn effects_of_round_trips_and_cpu_time_are_found() {
    for chapters in [Chapters::RoundTrip, Chapters::Cpu] {
        let found = score(Shape::Effect(0.2), Noise::Normal(0.03), chapters, 2, 1);
        assert_eq!((found.effects, found.found), (2, 2), "{chapters:?}");
        // 5 % of 80 µs are 4 µs: the same.
        let small = score(Shape::Effect(0.05), Noise::Normal(0.01), chapters, 2, 1);
        assert_eq!(
            (small.found, small.wrong_same),
            (0, 0),
            "{chapters:?}: {small:?}"
        );
    }
}

#[test]
fn truths_are_scored() {
    // `bench truth` does this at length; here that wires are joined and that scores discriminate.
    let flat = score(Shape::Flat, Noise::Normal(0.03), Chapters::Three, 3, 1);
    assert_eq!((flat.studies, flat.effects, flat.curves), (3, 0, 6));
    assert_eq!((flat.with_false_claim, flat.recommendations), (0, 0));
    assert!(flat.covered * 100 > flat.cells * 80, "{flat:?}");
    let twenty = score(
        Shape::Effect(0.2),
        Noise::Normal(0.03),
        Chapters::Three,
        3,
        1,
    );
    assert_eq!((twenty.effects, twenty.found), (6, 6));
}

#[test]
fn what_may_gain_is_not_the_same() {
    // Buffers that gain 11 % lose nothing, which was taken for "the same".
    let tuned = Shape::TunedBadly(0.1);
    let gained = score(tuned, Noise::Normal(0.03), Chapters::Three, 8, 1);
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
        let short = score(crossed, Noise::Normal(0.02), Chapters::Three, 8, 1);
        assert_eq!(short.wrong_same, 0, "{share}: {short:?}");
        let length = Length::UntilDecided(8);
        let long = score_of(
            crossed,
            Noise::Normal(0.02),
            Chapters::Three,
            length,
            (4, 1),
        );
        assert_eq!(long.wrong_same, 0, "{share}: {long:?}");
        assert!(short.effects > 0 && long.effects > 0, "{short:?} {long:?}");
    }
}

/// An experiment on hosts that use cubic, without trials.
fn of_cubic() -> MadeRun {
    let mut run = MadeRun::new(1, Some(1e9));
    for host in &mut run.recording.document.hosts {
        host.snapshot.facts.push(Fact {
            name: "sysctl.net.ipv4.tcp_congestion_control".to_owned(),
            value: FactValue::Text("cubic".to_owned()),
        });
    }
    run.experiment("control", None, stream());
    run
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
                let truth = |replicate: u32| Truth {
                    segments_per_ack: 2.0 * more,
                    rtt_ns: (100_000.0 * more) as i64,
                    ..Truth::stream(500e6 * more * (1.0 + 0.002 * f64::from(replicate % 3)))
                };
                let levels = [
                    (Factor::MessageBytes, size(bytes)),
                    (Factor::Congestion, Level::Word(name.to_owned())),
                ];
                run.cell(&levels, &(0..4).map(truth).collect::<Vec<_>>());
            }
        }
        let analysis = analyze(&run.recording);
        let effect = analysis.verdicts.iter().find(|it| !it.is_plateau);
        let effect = effect.expect("the control is compared");
        assert_eq!(effect.verdict, Verdict::Differs, "{response}: {effect:?}");
        analysis.recommendations
    };
    let gained = advice(name::THROUGHPUT);
    assert!(gained[0].action.starts_with("Use bbr"), "{gained:?}");
    // More segments of an ACK are neither better nor worse, and longer round trips are worse.
    for response in [name::SEGMENTS_PER_ACK, name::TCP_RTT] {
        assert_eq!(advice(response), [], "{response}");
    }
}

#[test]
fn what_turns_about_with_a_factor_beside_the_first_is_no_advice() {
    // bbr has nine tenths of cubic's rate where ACKs are delayed and twice as much where not, at all sizes.
    let analysis = |delayed: f64, prompt: f64| {
        let mut run = of_cubic();
        for bytes in [1000, 10_000, 100_000] {
            for (delayed_ack, more) in [(true, delayed), (false, prompt)] {
                for (name, more) in [("cubic", 1.0), ("bbr", more)] {
                    let noise =
                        |replicate: u32| 1.0 + 0.01 * f64::from((7 * replicate + bytes as u32) % 3);
                    let truth = |replicate| Truth::stream(300e6 * more * noise(replicate));
                    let levels = [
                        (Factor::MessageBytes, size(bytes)),
                        (Factor::DelayedAck, Level::Switch(delayed_ack)),
                        (Factor::Congestion, Level::Word(name.to_owned())),
                    ];
                    run.cell(&levels, &(0..4).map(truth).collect::<Vec<_>>());
                }
            }
        }
        analyze(&run.recording)
    };
    let finding = |analysis: &Analysis| {
        let mut all = analysis.findings.iter();
        let found = all.find(|one| one.id.contains("effect/congestion"));
        found.map(|one| (one.claim.clone(), one.explanation.clone()))
    };
    let turning = analysis(0.9, 2.0);
    let (claim, explanation) = finding(&turning).expect("it differs");
    assert!(claim.contains("on average, and × 0.9"), "{claim}");
    assert!(explanation.contains("changes direction"), "{explanation}");
    assert_eq!(turning.recommendations, []);
    let steady = analysis(1.9, 2.0);
    let (claim, explanation) = finding(&steady).expect("it differs");
    assert!(!claim.contains("on average"), "{claim}");
    assert!(!explanation.contains("changes direction"), "{explanation}");
    assert!(steady.recommendations[0].action.starts_with("Use bbr"));
}

fn answer(analysis: &Analysis) -> &str {
    analysis.chapters[0].answer.as_deref().unwrap_or_default()
}

#[test]
fn too_few_pairs_decide_nothing_and_leave_an_experiment_open() {
    let made = |blocks: u32| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("nagle", None, stream());
        for (nagle, bps) in [(true, 200e6), (false, 400e6)] {
            let noise = |replicate: u32| 1.0 + 0.01 * f64::from(replicate % 3);
            let truth = |replicate| Truth::stream(bps * noise(replicate));
            let truths: Vec<Truth> = (0..blocks).map(truth).collect();
            run.cell(&[(Factor::Nagle, Level::Switch(nagle))], &truths);
        }
        run.recording
    };
    let three = made(3);
    assert_eq!(open_experiments(&Reduced::of(&three)), ["nagle"]);
    let analysis = analyze(&three);
    let found = comparison(&analysis, "nagle/effect/nagle");
    assert_eq!((found.verdict, found.more), (Verdict::NotDecided, Some(2)));
    assert!(!answer(&analysis).contains(" against "));
    assert!((found.effect.value - 0.5).abs() < 1e-6 && found.effect.n == 3);
    assert_eq!(found.effect.low, None);
    let twelve = made(12);
    assert_eq!(open_experiments(&Reduced::of(&twelve)), [""; 0]);
    let analysis = analyze(&twelve);
    let found = comparison(&analysis, "nagle/effect/nagle");
    assert_eq!(found.verdict, Verdict::Differs);
    // Which was the question comes before the range.
    let sentences: Vec<&str> = answer(&analysis).split(". ").collect();
    let at = |word: &str| {
        sentences
            .iter()
            .position(|sentence| sentence.contains(word))
    };
    assert_eq!(
        [at("on against off"), at(" to ")],
        [Some(0), Some(1)],
        "{sentences:?}"
    );
}

#[test]
fn what_was_done_once_more_at_the_end_is_no_pair_of_its_block() {
    // Nothing differs, but the rate rises from block to block, and trials with Nagle on were done again after all.
    let found = |again: bool| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("drift", None, stream());
        for bytes in [100, 1000, 10_000] {
            for on in [false, true] {
                let levels = [
                    (Factor::MessageBytes, size(bytes)),
                    (Factor::Nagle, Level::Switch(on)),
                ];
                let noise = |block: u32| 0.004 * f64::from((block + u32::from(on)) % 3);
                let truth = |block: u32| {
                    let at = if on && again { 5 } else { block };
                    Truth::stream(500e6 * (1.0 + 0.06 * f64::from(at) + noise(block)))
                };
                run.cell(&levels, &(0..6).map(truth).collect::<Vec<_>>());
                if on && again {
                    let trials = run.recording.trials.iter().rev().take(6);
                    let repeats = trials.map(|record| Repeat {
                        trial: record.trial,
                        of: TrialId(record.trial.0 + 1000),
                        why: RepeatReason::Disturbed(Disturbance::Unaccounted(0.1)),
                    });
                    run.recording
                        .document
                        .plan
                        .repeats
                        .extend(repeats.collect::<Vec<_>>());
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

/// Returns the verdict on `name`, and its ratio, of cubic and bbr whose trials lose these shares of their segments.
fn of_losses(cubic: [f64; 8], bbr: [f64; 8]) -> Option<(Verdict, f64)> {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("loss", None, stream());
    for (name, shares) in [("bbr", bbr), ("cubic", cubic)] {
        let truth = |lost_share| Truth {
            lost_share,
            ..Truth::stream(500e6)
        };
        let level = Level::Word(name.to_owned());
        run.cell(&[(Factor::Congestion, level)], &shares.map(truth));
    }
    run.recording.document.plan.experiments[0].response = "retransmitted_segments".to_owned();
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
    assert!(
        ratio > 0.4 && ratio < 0.6 || ratio > 1.7 && ratio < 2.3,
        "{ratio}"
    );
    // Over nothing there is no ratio.
    assert_eq!(of_losses(some, [0.0; 8]), None);
}

#[test]
fn a_link_on_which_nothing_is_lost_leaves_the_verdict_to_the_others() {
    let mut run = MadeRun::new(1, Some(1e9));
    run.experiment("loss", None, stream());
    for (ppm, factor) in [(0, 0.0), (10_000, 1.0)] {
        for (name, share) in [("bbr", 0.04), ("cubic", 0.01)] {
            let truth = |block: u32| Truth {
                lost_share: factor * share * (1.0 + 0.01 * f64::from(block % 3)),
                ..Truth::stream(500e6)
            };
            let levels = [
                (Factor::LinkLoss, Level::Ppm(ppm)),
                (Factor::Congestion, Level::Word(name.to_owned())),
            ];
            run.cell(&levels, &(0..12).map(truth).collect::<Vec<_>>());
        }
    }
    run.recording.document.plan.experiments[0].response = "retransmitted_segments".to_owned();
    let analysis = analyze(&run.recording);
    let mut found = analysis.verdicts.iter();
    let found = found
        .find(|it| it.id.contains("congestion"))
        .expect("a comparison");
    assert_eq!(
        (found.verdict, found.effect.n),
        (Verdict::Differs, 12),
        "{found:?}"
    );
}

#[test]
fn a_plateau_whose_begin_is_unknown_is_open_though_a_smaller_buffer_loses() {
    let made = |middle_bps: f64, noise: f64| {
        let mut run = MadeRun::new(1, Some(1e9));
        run.experiment("buffers", None, stream());
        let mut truths = |level: Level, bps: f64| {
            let at = run.recording.trials.len() / 3;
            let wobble = |block: usize| 1.0 + noise * ((block + at) % 3) as f64 - noise;
            let truth = |block| Truth::stream(bps * wobble(block));
            run.cell(&[(Factor::SocketBuffer, level)], &[0, 1, 2].map(truth));
        };
        truths(size(16 << 10), 200e6);
        truths(size(64 << 10), middle_bps);
        truths(size(256 << 10), 800e6);
        truths(size(1 << 20), 800e6);
        truths(Level::Word("auto".to_owned()), 800e6);
        run.recording
    };
    // A loss of 5 % matters; whether there is one of 3 % or of 7 % has to be found out.
    let unknown = made(776e6, 0.02);
    let analysis = analyze(&unknown);
    let found = comparison(&analysis, "buffers/plateau/1");
    assert_eq!(found.verdict, Verdict::Differs, "{found:?}");
    assert_eq!(
        open_experiments(&Reduced::of(&unknown)),
        ["buffers"],
        "{found:?}"
    );
    let known = made(400e6, 0.002);
    assert_eq!(open_experiments(&Reduced::of(&known)), [""; 0]);
}
