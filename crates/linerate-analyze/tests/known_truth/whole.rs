//! A whole study: chapters, headlines, partial runs.

use linerate_analyze::analyze_reduced;
use linerate_model::analysis::{Origin, Point, Position};
use linerate_model::experiment::Cell;
use linerate_model::finding::Verdict;
use linerate_model::profile::Work;
use linerate_model::reason::HostFailure;
use linerate_truth::lint::disagreements;

use crate::prelude::*;

#[test]
fn study_has_its_chapters_in_order() {
    let analysis = analyze(&study().recording);
    let chapters = analysis.chapters.iter();
    let chapters: Vec<_> = chapters.map(|it| (it.number, it.id.as_str())).collect();
    let expected = [
        (Some(0), "inventory"),
        (Some(1), "latency"),
        (Some(2), "window"),
        (Some(3), "socket-buffer"),
        (Some(9), "small-messages"),
        (Some(9), "split-request"),
        (Some(15), "findings"),
        (Some(16), "capacity"),
    ];
    assert_eq!(chapters, expected);
    says!(analysis.title; begins "Study of server");
    assert_eq!(analysis.partial, None);
    for chapter in &analysis.chapters {
        assert!(chapter.answer.is_some(), "{}", chapter.id);
    }
}

#[test]
fn study_finds_what_it_was_made_of() {
    let analysis = analyze(&study().recording);
    let has = |kind| analysis.findings.iter().any(|finding| finding.kind == kind);
    let limits = |limiter| has(FindingKind::Limiter(limiter));
    assert!(limits(Limiter::NagleDelayedAck) && has(FindingKind::Effect));
    assert_eq!(disagreements(&analysis), [""; 0]);
    // Every exchange takes a round trip, and something else has to be told.
    assert!(!limits(Limiter::RoundTrip));
    // The small buffer that limits is the experiment's doing; the chapter says where it ends.
    assert!(!limits(Limiter::ReceiverWindow));
    let answer = chapter(&analysis, "socket-buffer").answer.as_deref();
    says!(answer.unwrap_or_default(); "Buffers from 64 KiB on");
    // Nothing has to be changed about hosts as they are.
    assert_eq!(analysis.recommendations, []);
}

/// What the check of sentences is there for is found by it.
#[test]
fn sentences_that_disagree_are_found() {
    let of = |spoil: fn(&mut Analysis)| {
        let mut analysis = analyze(&study().recording);
        spoil(&mut analysis);
        disagreements(&analysis).len()
    };
    assert_eq!(of(|_| ()), 0);
    let twice: fn(&mut Analysis) = |analysis| {
        let first = analysis.findings[0].clone();
        analysis.cautions.push(first);
    };
    assert_eq!(of(twice), 1);
    assert!(of(|analysis| analysis.chapters.clear()) > 0, "limiters");
    assert!(of(|analysis| analysis.verdicts.clear()) > 0, "effects");
    let wide: fn(&mut Analysis) = |analysis| {
        let comparisons = analysis.verdicts.iter_mut();
        let levels = comparisons.flat_map(|it| &mut it.levels);
        let same = levels.filter(|(_, verdict, _)| *verdict == Verdict::Same);
        same.for_each(|(_, _, ratio)| ratio.low = Some(0.5));
    };
    assert!(of(wide) > 0, "the same within an interval that is not");
    let many: fn(&mut Analysis) = |analysis| {
        for number in 0..6 {
            let mut other = analysis.findings[0].clone();
            other.claim = format!("{number}");
            analysis.findings.push(other);
        }
    };
    assert_eq!(of(many), 1);
    let good: fn(&mut Analysis) = |analysis| {
        let mut caution = analysis.findings[0].clone();
        caution.claim = "a caution".to_owned();
        analysis.cautions.push(caution);
        let trust = analysis.trust.as_mut().expect("a judgement");
        trust.level = linerate_model::finding::TrustLevel::Good;
    };
    assert_eq!(of(good), 1);
}

#[test]
fn window_is_rate_times_round_trip() {
    let analysis = analyze(&study().recording);
    let answer = chapter(&analysis, "window").answer.as_deref();
    says!(answer.unwrap_or_default(); "69\u{202f}645 B");
}

#[test]
fn published_and_computed_curves_stand_beside_measured_ones() {
    let analysis = analyze_reduced(&Reduced::of(&study().recording), true);
    let check = |id: &str, origin, count| {
        let figure = &chapter(&analysis, id).figures[0];
        let curves = figure.curves.iter().filter(|curve| curve.origin == origin);
        assert_eq!(curves.count(), count, "{id}: {origin:?}");
    };
    check("latency", Origin::Measured, 2);
    check("latency", Origin::Published, 2);
    check("socket-buffer", Origin::Measured, 2);
    check("socket-buffer", Origin::Published, 1);
    // The wire limit of 941 Mbit/s for both; 16 KiB over 100 µs are above it.
    // Under load TCP's round trip is longer, so that 16 KiB windows stay below it.
    check("socket-buffer", Origin::Computed, 2);
    check("small-messages", Origin::Measured, 4);
    check("small-messages", Origin::Published, 2);
}

#[test]
fn other_systems_are_shown_on_request_only() {
    let analysis = analyze(&study().recording);
    let curves = analysis.chapters.iter().flat_map(|it| &it.figures);
    let mut curves = curves.flat_map(|figure| &figure.curves);
    assert!(curves.all(|curve| curve.origin != Origin::Published));
    let document = format!("{analysis:?}");
    for word in ["Sun Fire", "AlphaServer", "ublished:", "published example"] {
        assert!(!document.contains(word), "{word}");
    }
}

#[test]
fn points_say_what_limits_their_cell_in_the_first_figure() {
    let analysis = analyze(&study().recording);
    let chapter = chapter(&analysis, "split-request");
    let limiters = |at: usize| -> Vec<Limiter> {
        let curves = &chapter.figures[at].curves;
        let points = curves.iter().flat_map(|curve| &curve.points);
        points.filter_map(|point| point.limiter).collect()
    };
    assert!(limiters(0).contains(&Limiter::NagleDelayedAck));
    assert_eq!(limiters(1), []);
    let consequence = chapter.consequence.as_deref().unwrap_or_default();
    assert!(consequence.contains("TCP_NODELAY"), "{consequence}");
    assert!(!chapter.over_time.is_empty(), "the stall's trials");
}

#[test]
fn a_window_limit_is_predicted_where_it_matters() {
    let mut run = begun(GIGABIT, "socket-buffer", Some(3), stream());
    for (bytes, bps) in [(16_384, 12.9e6), (1_048_576, 800e6)] {
        let truth = like!(Truth::stream(bps); rtt_ns: 10 * MS, window_bytes: bytes as i64);
        run.cell(&[(Factor::SocketBuffer, size(bytes))], &[truth]);
    }
    let analysis = analyze(&run.recording);
    let mut curves = chapter(&analysis, "socket-buffer").figures[0].curves.iter();
    let predicted = curves.find(|curve| curve.name.starts_with("window /"));
    let points = &predicted.expect("a prediction").points;
    // 16 384 B × 8 / 10 ms.
    assert!((points[0].y - 13.107e6).abs() < 1e4, "{points:?}");
}

/// What the heads of a table's rows are.
fn texts<'a>(rows: &'a [Vec<TableCell>], column: usize) -> Vec<&'a str> {
    let cells = rows.iter().map(|row| &row[column]);
    let text = |cell: &'a TableCell| match cell {
        TableCell::Text(text) => Some(text.as_str()),
        _ => None,
    };
    cells.filter_map(text).collect()
}

#[test]
fn summary_is_short_and_whole() {
    let analysis = analyze(&study().recording);
    let rows = &analysis.summary.rows;
    assert!((8..=13).contains(&rows.len()), "{} rows", rows.len());
    let heads = texts(rows, 0);
    let is_there = |head: &&str| heads.contains(head);
    let expected = [
        "Round trip of 4 B",
        "Window needed",
        "Throughput, 1 connection",
    ];
    assert!(expected.iter().all(is_there), "{heads:?}");
}

#[test]
fn a_run_that_was_cut_short_says_so() {
    let mut recording = study().recording;
    recording.document.cut_short = Some("interrupted".to_owned());
    let last = recording.trials.pop().unwrap().trial;
    recording.flows.retain(|flow| flow.trial != last);
    let samples = recording.samples.iter();
    recording.samples = samples.filter(|sample| sample.trial != last).collect();
    let partial = analyze(&recording).partial.unwrap();
    says!(partial; "interrupted", "1 of ");
}

/// One trial of a run.
fn one_run() -> MadeRun {
    let mut run = begun(GIGABIT, "run", None, stream());
    run.cell(&[], &[Truth::stream(500e6)]);
    run
}

#[test]
fn an_agent_that_is_silent_is_not_called_one_that_stopped() {
    let next = |failure: HostFailure| {
        let mut run = one_run();
        run.recording.document.cut_short = Some("a host is lost".to_owned());
        let (host, words) = ("server".into(), "it did not answer".to_owned());
        run.recording.trials[0].flags.push(TrialFlag::Partial {
            why: Box::new(Reason::Host {
                host,
                failure,
                words,
            }),
            kept: Nanos::from_ms(500),
            of: Nanos::from_ms(1000),
        });
        next_of(&run)
    };
    says!(next(HostFailure::Lost); "linerate serve");
    says!(next(HostFailure::Silent); "ping", no "linerate serve");
}

#[test]
fn a_single_run_has_its_course_over_time() {
    let analysis = analyze(&one_run().recording);
    assert_eq!(analysis.chapters.len(), 1);
    let points = &analysis.chapters[0].figures[0].curves[0].points;
    assert_eq!(points.len(), 10);
    for point in points {
        assert!((point.y - 500e6).abs() < 1e3, "{point:?}");
    }
    assert_eq!(analysis.chapters[0].trials.len(), 1);
}

#[test]
fn a_single_run_has_strips_on_the_axis_of_its_course() {
    let mut run = one_run();
    let figures = |run: &MadeRun| analyze(&run.recording).chapters.remove(0).figures;
    let own = figures(&run);
    let ids: Vec<&str> = own.iter().map(|it| it.id.as_str()).collect();
    for id in ["", "-round-trip", "-window", "-retransmits", "-cpus"] {
        let id = format!("run{id}-over-time");
        assert!(ids.contains(&&*id), "{ids:?}");
    }
    assert_eq!(ids[0], "run-over-time", "the rate is on top");
    // All at tenths of the window's second, so that they lie on one axis.
    let tenth = |point: &Point| match point.x {
        Position::Number(at_ns) => (0.0..=1e9).contains(&at_ns) && at_ns % 1e8 == 0.0,
        Position::Name(_) => false,
    };
    for figure in &own {
        assert!(figure.x.shared && figure.x == own[0].x, "{}", figure.id);
        let mut points = figure.curves.iter().flat_map(|curve| &curve.points);
        assert!(points.all(tenth), "{figure:?}");
    }
    assert_eq!(own[0].curves.len(), 1, "nothing is marked");
    // Of several trials each would need its own.
    run.cell(&[], &[Truth::stream(500e6)]);
    assert!(figures(&run).iter().all(|it| !it.x.shared));
}

#[test]
fn a_dip_is_marked_with_what_stands_out_beside_it() {
    // The rate falls to a tenth of itself in one tenth of a second, in which so many segments are retransmitted.
    let mark = |again: i64| {
        let mut run = one_run();
        run.change(|sample| {
            if sample.at_ns >= 600_000_000 {
                sample.value += match sample.metric {
                    Metric::TcpBytesReceived | Metric::AppBytesReceived => -5_625_000,
                    Metric::TcpRetrans => again,
                    _ => 0,
                };
            }
        });
        let analysis = analyze(&run.recording);
        let course = &analysis.chapters[0].figures[0];
        let [_, mark] = course.curves.as_slice() else {
            panic!("no mark: {course:?}");
        };
        let [point] = mark.points.as_slice() else {
            panic!("{mark:?}");
        };
        assert_eq!(point.x, Position::Number(6e8));
        assert!((point.y - 50e6).abs() < 1e5, "{point:?}");
        point.note.clone()
    };
    says!(mark(1000); "10\u{202f}000/s");
    says!(mark(0); no "/s");
}

#[test]
fn a_lone_experiment_has_one_figure_and_all_cells() {
    let mut run = begun(GIGABIT, "mine", None, stream());
    for mss in [536, 1000, 1448] {
        for congestion in ["cubic", "bbr"] {
            let control = (Factor::Congestion, Level::Word(congestion.to_owned()));
            let levels = [(Factor::MssBytes, size(mss)), control];
            run.cell(&levels, &[Truth::usual(), Truth::usual()]);
        }
    }
    let analysis = analyze(&run.recording);
    let chapter = &analysis.chapters[0];
    assert_eq!(chapter.figures.len(), 1);
    let curves = chapter.figures[0].curves.iter();
    assert!(curves.map(|curve| &*curve.name).eq(["bbr", "cubic"]));
    // What it compares comes before all that was read.
    let rows: Vec<usize> = chapter.tables.iter().map(|it| it.rows.len()).collect();
    assert_eq!(rows[..2], [1, 6]);
}

#[test]
fn values_that_are_all_the_same_have_no_interval() {
    let mut run = begun(GIGABIT, "mine", None, stream());
    for (mss, rates) in [(536, [490e6, 500e6, 510e6]), (1448, [300e6; 3])] {
        run.cell(&[(Factor::MssBytes, size(mss))], &rates.map(Truth::stream));
    }
    let analysis = analyze(&run.recording);
    let points = &analysis.chapters[0].figures[0].curves[0].points;
    let has_interval: Vec<bool> = points.iter().map(|it| it.low.is_some()).collect();
    assert_eq!(has_interval, [true, false]);
}

#[test]
fn invalid_trials_are_shown_and_not_averaged() {
    let bad = like!(Truth::stream(1e6); invalid: Some("client1 vanished".to_owned()));
    let good = Truth::stream(500e6);
    let run = trials(GIGABIT, stream(), &[good.clone(), good, bad]);
    let analysis = analyze(&run.recording);
    let lines = &analysis.chapters[0].trials;
    assert_eq!(lines[2].invalid.as_deref(), Some("client1 vanished"));
    assert_eq!(lines[2].response, None);
    let TableCell::Estimate(estimate) = &analysis.summary.rows[0][1] else {
        panic!("the summary has the throughput");
    };
    let is_right = (estimate.value - 500e6).abs() < 1e3 && estimate.n == 2;
    assert!(is_right, "{estimate:?}");
}

/// Two rates say what a size costs only where the same thing limits them.
#[test]
fn packet_rates_are_compared_where_the_same_limits_them() {
    let answer = |payload_bytes: f64, share: f64| {
        let small = like!(Truth::usual(); throughput_bps: share * 1e9 * payload_bytes / (payload_bytes + 90.0),
            payload_bytes);
        let mut run = begun(GIGABIT, "packet-rate", Some(10), stream());
        run.alike(&[(Factor::MessageBytes, size(1))], &small);
        run.alike(&[(Factor::MessageBytes, size(1448))], &Truth::stream(941e6));
        chapter_answer(&run.recording, "packet-rate").expect("an answer")
    };
    says!(answer(1.2, 0.5); "of 1.2 B payload", "of 1448 B, limited by the link's rate", no "of the rate");
    says!(answer(100.0, 1.0); "of the rate", no "limited");
}

#[test]
fn packet_rate_and_shares_stand_beside_the_published_ones() {
    let mut run = begun(GIGABIT, "packet-rate", Some(10), stream());
    for (bytes, user, copy) in [(100, 90, 10), (1448, 60, 140)] {
        let truth = like!(Truth::usual(); throughput_bps: 8.0 * 50_000.0 * bytes as f64,
            payload_bytes: bytes as f64);
        let levels = [(Factor::MessageBytes, size(bytes))];
        run.cell(&levels, &[truth.clone(), truth]);
        // What the client's CPUs did, of 1000 looks in the window of each trial.
        let works = [
            (Work::User, user),
            (Work::Copy, copy),
            (Work::Transport, 1000 - user - copy),
            (Work::Idle, 5000),
        ];
        let trials: Vec<_> = run.recording.trials.iter().rev().take(2).cloned().collect();
        for trial in trials {
            for (work, looks) in works {
                let readings = [(0, 3), (WINDOW_NS as i64, 3 + looks)];
                let (trial, metric) = (trial.trial, work.metric());
                read(
                    &mut run.recording,
                    trial,
                    "client1",
                    &Subject::Host,
                    metric,
                    &readings,
                );
            }
        }
    }
    let analysis = analyze_reduced(&Reduced::of(&run.recording), true);
    let chapter = chapter(&analysis, "packet-rate");
    let ids: Vec<&str> = chapter.figures.iter().map(|figure| &*figure.id).collect();
    assert_eq!(ids, ["packet-rate-segments", "packet-rate-shares"]);
    let percent = |row: usize, column: &str| {
        let table = &chapter.tables[0];
        let at = table.columns.iter().position(|name| name == column);
        match &table.rows[row][at.expect("the column exists")] {
            TableCell::Estimate(estimate) => estimate.value,
            TableCell::Number(value, _) => *value,
            other => panic!("{other:?}"),
        }
    };
    for (row, user, copy, published) in [(0, 9.0, 1.0, (9.0, 1.0)), (1, 6.0, 14.0, (6.0, 7.0))] {
        assert!((percent(row, "User mode, sending") - user).abs() < 1e-9);
        assert!((percent(row, "Copying, sending") - copy).abs() < 1e-9);
        assert_eq!(percent(row, "User mode, published"), published.0);
        assert_eq!(percent(row, "Copying, published"), published.1);
    }
    says!(chapter.answer.as_deref().unwrap_or_default(); "copying takes 14 % at");
}

/// Returns the answer of the chapter called `id`.
fn chapter_answer(recording: &Recording, id: &str) -> Option<String> {
    let analysis = analyze(recording);
    let mut chapters = analysis.chapters.into_iter();
    chapters.find(|chapter| chapter.id == id)?.answer
}

/// Returns `recording` without the trials whose cells `is_left`.
fn without(mut recording: Recording, is_left: impl Fn(&Cell) -> bool) -> Recording {
    let trials = &recording.document.plan.trials;
    let left = trials.iter().filter(|trial| is_left(&trial.cell));
    let left: Vec<TrialId> = left.map(|trial| trial.id).collect();
    assert!(!left.is_empty());
    recording.trials.retain(|one| !left.contains(&one.trial));
    recording.flows.retain(|flow| !left.contains(&flow.trial));
    let samples = recording.samples.iter();
    let samples = samples.filter(|sample| !left.contains(&sample.trial));
    recording.samples = samples.collect();
    recording
}

#[test]
fn a_link_with_losses_is_no_link_without() {
    let mut run = begun(GIGABIT, "acknowledgements", Some(6), stream());
    for (ppm, segments_per_ack) in [(0, 2.1), (1000, 2.0), (10_000, 1.6)] {
        let truth = like!(Truth::stream(500e6); segments_per_ack, lost_share: f64::from(ppm) / 1e6);
        let levels = [(Factor::LinkLoss, Level::Ppm(ppm))];
        run.alike(&levels, &truth);
    }
    let answer = |recording: &Recording| chapter_answer(recording, "acknowledgements");
    says!(answer(&run.recording).expect("an answer"); "on the link without loss");
    let is_clean = |cell: &Cell| cell.get(&Factor::LinkLoss) == Some(&Level::Ppm(0));
    let lossy = answer(&without(run.recording, is_clean));
    says!(lossy.unwrap_or_default(); no "without loss");
}

#[test]
fn one_sentence_is_of_one_message_size() {
    let says = |recording: &Recording| chapter_answer(recording, "small-messages");
    let whole = says(&study().recording).expect("an answer");
    let plan = study().recording.document.plan;
    let trials = plan.trials.iter();
    let trials = trials.filter(|trial| trial.experiment == "small-messages");
    let sizes = trials.filter_map(|trial| trial.cell.get(&Factor::MessageBytes));
    let smallest = sizes.min().expect("sizes");
    let begin = format!("Messages of {smallest} ");
    let is_so = whole.starts_with(&format!("{begin}reach"));
    assert!(is_so, "{whole} {smallest}");
    let is_left = |cell: &Cell| {
        cell.get(&Factor::MessageBytes) == Some(smallest)
            && cell.get(&Factor::Nagle) == Some(&Level::Switch(false))
    };
    let part = says(&without(study().recording, is_left)).expect("an answer");
    assert!(!part.contains(&begin), "{part}");
}

#[test]
fn an_invalid_trial_does_not_take_the_others_limiter() {
    let made = |invalid: usize| {
        let mut run = begun(GIGABIT, "one", None, stream());
        let truths = [0, 1, 2].map(|_| Truth::stream(941e6));
        run.cell(&[(Factor::Nagle, Level::Switch(true))], &truths);
        run.cell(&[(Factor::Nagle, Level::Switch(false))], &truths);
        for record in run.recording.trials.iter_mut().take(invalid) {
            record.validity = Validity::Invalid("it was lost".to_owned().into());
        }
        texts(&analyze(&run.recording).summary.rows, 2).join(" | ")
    };
    says!(made(1); "; 1 of 3 trials invalid: it was lost");
    says!(made(3); "it was lost", no "trials invalid");
}

#[test]
fn the_table_of_verdicts_says_at_which_level_they_hold() {
    let analysis = analyze(&study().recording);
    let mut tables = analysis.chapters.iter().flat_map(|chapter| &chapter.tables);
    let table = tables.find(|table| table.title.starts_with("Every comparison"));
    let rows = &table.expect("comparisons").rows;
    let is_of = |row: &&Vec<TableCell>| row[0] == TableCell::Text("socket-buffer".to_owned());
    let TableCell::Text(verdict) = &rows.iter().find(is_of).expect("a curve")[2] else {
        panic!("a verdict is words");
    };
    says!(verdict; begins "differs: 16 KiB");
}
