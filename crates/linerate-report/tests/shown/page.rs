//! The page's structure: everything present, linked, escaped, and nothing from outside.

use std::collections::BTreeSet;

use linerate_model::TrialId;
use linerate_model::analysis::{Analysis, Origin, Point, Scale};
use linerate_model::finding::{EvidenceList, FindingKind};
use linerate_model::limiter::Limiter;
use linerate_report::Extent;

use crate::fixture;

fn html(analysis: &Analysis) -> String {
    linerate_report::html(analysis, Extent::Answer)
}

/// Largest page that can still be mailed and opened on a phone without regret, in bytes.
const PAGE_BYTES_MAX: usize = 200_000;

/// Returns what stands between `before` and the next `"`, for each occurrence.
fn attributes<'a>(page: &'a str, before: &str) -> Vec<&'a str> {
    let values = page.split(before).skip(1);
    values.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn one_small_file_with_nothing_from_outside() {
    let page = html(&fixture::study());
    assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
    // The name of SVG for scripts is an address that nobody fetches.
    let own = page.replace("http://www.w3.org/2000/svg", "");
    for reference in ["http://", "https://", " src=", "@import", "<link"] {
        assert!(!own.contains(reference), "{reference}");
    }
    for target in attributes(&own, "url(") {
        assert!(target.starts_with('#'), "{target}");
    }
    for target in attributes(&own, "href=\"") {
        assert!(target.starts_with('#'), "{target}");
    }
    assert!(own.contains("default-src 'none'"));
}

/// Returns the drawing for the page of the figure called `id`.
fn drawing<'a>(page: &'a str, id: &str) -> &'a str {
    let from = page
        .find(&format!("id=\"figure-{id}-plot\""))
        .expect("the chart's box is there");
    let length = page[from..].find("</svg>").expect("a drawing ends");
    &page[from..from + length]
}

#[test]
fn every_curve_is_drawn_with_all_its_points() {
    let study = fixture::study();
    let page = html(&study);
    for figure in study.chapters.iter().flat_map(|chapter| &chapter.figures) {
        let drawing = drawing(&page, &figure.id);
        let curves: Vec<&str> = drawing.split("<g class=\"curve\"").skip(1).collect();
        assert_eq!(curves.len(), figure.curves.len(), "{}", figure.id);
        for (curve, drawn) in figure.curves.iter().zip(curves) {
            let bars = figure.x.scale == Scale::Category
                && figure.y.scale != Scale::Log
                && curve.origin != Origin::Computed;
            assert_eq!(drawn.contains("class=\"bar\""), bars, "{}", curve.name);
            let after = drawn
                .split("class=\"v ")
                .nth(1)
                .expect("a path has the points");
            let path = attributes(after, " d=\"")[0];
            let vertices = path.matches(['M', 'm', 'l', 'h', 'v']).count();
            let drawable = |point: &&Point| figure.y.scale != Scale::Log || point.y > 0.0;
            assert_eq!(
                vertices,
                curve.points.iter().filter(drawable).count(),
                "{}",
                curve.name
            );
        }
    }
}

#[test]
fn error_bars_stand_only_where_there_is_an_interval() {
    let page = html(&fixture::study());
    // Two measured curves with five intervals each; the limit and the published one have none.
    let drawing = drawing(&page, "buffer-throughput");
    let intervals = attributes(drawing, "class=\"interval\" d=\"");
    let strokes = intervals.iter().map(|path| path.matches('V').count());
    assert_eq!(strokes.collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn everything_in_the_analysis_is_on_the_page() {
    let study = fixture::study();
    let page = html(&study);
    assert_eq!(
        page.matches("<section class=\"chapter\" id=\"chapter-")
            .count(),
        study.chapters.len()
    );
    let figures: Vec<_> = study
        .chapters
        .iter()
        .flat_map(|chapter| chapter.figures.iter().chain(&chapter.over_time))
        .collect();
    for figure in &figures {
        assert!(page.contains(&format!("<figure id=\"figure-{}\"", figure.id)));
        assert!(page.contains(&format!("id=\"figure-{}-plot\"", figure.id)));
    }
    assert_eq!(page.matches("<figure ").count(), figures.len());
    for finding in &study.findings {
        assert!(page.contains(&escaped(&finding.claim)), "{}", finding.claim);
        assert_eq!(
            page.matches(&escaped(&finding.explanation)).count(),
            1,
            "{}",
            finding.claim
        );
    }
    for recommendation in &study.recommendations {
        assert!(page.contains(&escaped(&recommendation.confirm)));
    }
    for table in study.chapters.iter().flat_map(|chapter| &chapter.tables) {
        assert!(page.contains(&format!("<caption>{}</caption>", escaped(&table.title))));
    }
    for trial in study.chapters.iter().flat_map(|chapter| &chapter.trials) {
        assert!(page.contains(&format!("id=\"trial-{}\"", trial.trial.0)));
    }
    assert!(page.contains("invalid: client1 stopped answering after 1.2 s"));
    for host in &study.hosts {
        assert!(
            page.contains(&format!(">{}<", host.name)) || page.contains(&format!("{},", host.name))
        );
    }
    for item in &study.left_out {
        assert!(page.contains(&escaped(&item.why)));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn check_links(analysis: &Analysis) {
    let page = html(analysis);
    let mut ids = BTreeSet::new();
    for id in attributes(&page, " id=\"") {
        assert!(ids.insert(id), "id {id} stands twice");
        let safe = |c: char| c.is_ascii_alphanumeric() || c == '-';
        assert!(id.chars().all(safe), "{id}");
    }
    for target in attributes(&page, "href=\"#") {
        assert!(ids.contains(target), "nothing is called {target}");
    }
    for rest in page.split("url(#").skip(1) {
        let name = rest.split(')').next().unwrap_or_default();
        assert!(ids.contains(name), "no marker or hatch called {name}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    check_links(&fixture::study());
    check_links(&fixture::partial());
    check_links(&fixture::empty());
    check_links(&fixture::spoiled("x\" id=\"y"));
}

#[test]
fn the_same_identifier_twice_is_told_apart() {
    let mut study = fixture::study();
    study.findings[1].id = study.findings[0].id.clone();
    study.chapters[1].id = study.chapters[2].id.clone();
    study.chapters[1].figures[1].id = study.chapters[1].figures[0].id.clone();
    study.chapters[3].trials[0].trial = study.chapters[1].trials[0].trial;
    check_links(&study);
}

#[test]
fn headings_descend_one_step_at_a_time() {
    for analysis in [fixture::study(), fixture::partial(), fixture::empty()] {
        let page = html(&analysis);
        let levels: Vec<u32> = page
            .split("<h")
            .skip(1)
            .filter_map(|rest| rest.chars().next()?.to_digit(10))
            .collect();
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1);
        assert_eq!(levels[0], 1);
        assert!(
            levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
            "{levels:?}"
        );
    }
}

#[test]
fn words_from_outside_stay_words() {
    let count = |page: &str, what: &str| page.matches(what).count();
    let clean = html(&fixture::study());
    let script = html(&fixture::spoiled(
        "<script>alert(1)</script><img src=x onerror=alert(2)>",
    ));
    for tag in ["<script", "</script", "<img"] {
        assert_eq!(count(&script, tag), count(&clean, tag), "{tag}");
    }
    let attribute = html(&fixture::spoiled("\" onclick=\"alert(3)"));
    assert_eq!(count(&attribute, "\" onclick=\""), 0);
    let comment = html(&fixture::spoiled("<!--<script>"));
    assert_eq!(count(&comment, "<!--"), 0);
}

#[test]
fn the_same_analysis_gives_the_same_bytes() {
    assert_eq!(html(&fixture::study()), html(&fixture::study()));
}

#[test]
fn a_partial_study_says_so_first() {
    let page = html(&fixture::partial());
    let banner = page
        .find("Interrupted after 31 of 84 trials.")
        .expect("the reason is given");
    assert!(banner < page.find("class=\"verdict").expect("there is a verdict"));
    assert!(page.contains("No answer: nothing valid was measured."));
    assert!(page.contains("samples.parquet: the last row group is cut off"));
}

#[test]
fn a_run_without_a_trial_is_a_small_page() {
    let page = html(&fixture::empty());
    assert!(
        page.len() < 100_000,
        "{} bytes: charts are not needed",
        page.len()
    );
    assert!(page.contains("Interrupted before the first trial ended."));
    assert!(page.contains("Nothing was measured."));
    // What is not known is not shown.
    for absent in [
        "class=\"tiles",
        "What limits it",
        "<h2>Findings",
        "What to do",
    ] {
        assert!(!page.contains(absent), "{absent}");
    }
}

#[test]
fn only_evidence_of_trials_has_a_column_for_them() {
    let page_of_evidence = |trials: &[TrialId]| {
        let mut study = fixture::study();
        study.findings.truncate(1);
        let mut pieces = study.findings[0].evidence.as_slice().to_vec();
        for piece in &mut pieces {
            piece.trials = trials.to_vec();
        }
        let first = pieces.remove(0);
        study.findings[0].evidence = EvidenceList::new(first, pieces);
        html(&study)
    };
    let columns = |trials: &[TrialId]| page_of_evidence(trials).matches("<th>Trials<").count();
    assert_eq!(columns(&[TrialId(1)]), columns(&[]) + 1);
}

#[test]
fn every_action_of_page_one_has_gain_cost_undo_and_command() {
    let mut some = fixture::study();
    some.recommendations.truncate(1);
    some.recommendations[0].cost.clear();
    let mut none = fixture::study();
    none.recommendations.clear();
    // Of a full link, and of requests that the study itself splits, nothing has to be done.
    let has_action = |page: &str| {
        let section = page.split("<h2>What to do</h2>").nth(1);
        let section = section.expect("page one says what to do");
        section
            .split("<h2>")
            .next()
            .is_some_and(|own| own.contains("set TCP_NODELAY"))
    };
    assert!(!has_action(&html(&none)));
    let mut one_at_a_time = none.clone();
    one_at_a_time.findings[0].kind = FindingKind::Limiter(Limiter::RoundTrip);
    assert!(!has_action(&html(&one_at_a_time)));
    let mut own = none.clone();
    own.findings[0].chapter = None;
    assert!(has_action(&html(&own)));
    none.findings[2].kind = FindingKind::Limiter(Limiter::PathRate);
    for study in [fixture::study(), some, none] {
        let page = html(&study);
        let answer = page.split("<main>").next().unwrap_or_default();
        let actions: Vec<&str> = answer.split("<li class=\"action\">").skip(1).collect();
        assert!((1..=3).contains(&actions.len()), "{}", actions.len());
        for action in actions {
            let action = action.split("</li>").next().unwrap_or_default();
            for part in ["Gain", "Cost", "Undo"] {
                let value = action.split(&format!("<dt>{part}</dt><dd>")).nth(1);
                assert!(
                    value.is_some_and(|value| !value.starts_with('<')),
                    "{part}: {action}"
                );
            }
            assert_eq!(action.matches("<code>linerate run").count(), 1, "{action}");
        }
        check_links(&study);
    }
}

#[test]
fn numbers_that_are_not_to_be_used_have_no_findings() {
    let study = fixture::not_to_be_used();
    let page = html(&study);
    assert!(page.contains("These numbers do not describe the hosts: measure again."));
    assert!(page.contains("Trust: do not use."));
    // What to do instead is on page one.
    let (_, before) = page
        .split_once("Before you measure again")
        .expect("what to do");
    let caution = escaped(&study.cautions[0].claim);
    assert!(
        before.find(&caution) < before.find("id=\"contents\""),
        "{caution}"
    );
    for finding in &study.findings {
        assert!(
            !page.contains(&escaped(&finding.claim)),
            "{}",
            finding.claim
        );
    }
    for recommendation in &study.recommendations {
        assert!(!page.contains(&escaped(&recommendation.action)));
    }
    // An answer would be a conclusion, too; what the hosts are like is none of these numbers.
    for chapter in &study.chapters {
        let answer = chapter.answer.as_ref().expect("an answer");
        let is_measured = !chapter.trials.is_empty();
        assert_eq!(page.contains(&escaped(answer)), !is_measured, "{answer}");
    }
    assert!(page.contains("No answer: these numbers are not to be used."));
    assert!(!page.contains("What limits it") && !page.contains("class=\"piece"));
    check_links(&study);
}

#[test]
fn chapters_and_figures_are_numbered_without_gaps() {
    let page = html(&fixture::study());
    let numbers = |before: &str, after: char| -> Vec<usize> {
        let found = page.split(before).skip(1);
        let number = |rest: &str| rest.split(after).next()?.parse().ok();
        found.filter_map(number).collect()
    };
    assert_eq!(numbers("<span class=\"ordinal\">", '<'), [1, 2, 3, 4, 5, 6]);
    let figures = numbers("-title\">Figure ", '.');
    assert_eq!(figures, (1..=figures.len()).collect::<Vec<_>>());
    assert!(figures.len() > 4);
}

#[test]
fn all_is_open_where_paper_has_to_hold_all() {
    let study = fixture::study();
    let (shut, full) = (html(&study), linerate_report::html(&study, Extent::Full));
    let folds = shut.matches("<details").count();
    assert!(folds > 10, "{folds}");
    assert_eq!(shut.matches("<details open").count(), 0);
    assert_eq!(full.matches("<details open").count(), folds);
}

#[test]
fn what_limits_is_named_in_words_beside_each_bar() {
    let study = fixture::study();
    let page = html(&study);
    let bars: Vec<&str> = page.split("<span class=\"track").skip(1).collect();
    assert_eq!(bars.len(), study.answer.bars.len());
    for (bar, drawn) in study.answer.bars.iter().zip(bars) {
        let title = bar.limiter.map_or("not known", |limiter| limiter.title());
        let row = drawn.split("</li>").next().unwrap_or_default();
        assert!(row.contains(&title[1..]), "{title}: {row}");
        assert_eq!(row.contains("lower bound"), bar.is_lower_bound());
        assert_eq!(row.contains("class=\"fill\""), bar.ceiling.is_some());
    }
}

/// Where nothing is recommended the page says so, by what was measured; a next step stands in its place.
#[test]
fn a_page_without_actions_says_why_there_are_none() {
    let mut study = fixture::study();
    study.recommendations.clear();
    study.findings.clear();
    let mut next = study.clone();
    next.next = Some("measure longer".to_owned());
    let own = |study: &Analysis| {
        let page = html(study);
        let section = page.split("<h2>What to do</h2>").nth(1);
        let section = section.and_then(|rest| rest.split("</section>").next());
        section.expect("page one says what to do").to_owned()
    };
    for bar in &mut study.answer.bars {
        bar.limiter = None;
    }
    let mut full = study.clone();
    full.answer.bars[0].limiter = Some(Limiter::LinkRate);
    let mut not_varied = study.clone();
    not_varied.verdicts.clear();
    study.verdicts = fixture::study().verdicts;
    let said: BTreeSet<String> = [&study, &full, &not_varied].map(own).into_iter().collect();
    let reasons = if study.verdicts.is_empty() { 2 } else { 3 };
    assert_eq!(said.len(), reasons, "{said:?}");
    for section in &said {
        assert!(
            section.contains("<p>") && !section.contains("<ol>"),
            "{section}"
        );
    }
    assert!(own(&next).contains("class=\"next\""), "{}", own(&next));
    assert!(!said.contains(&own(&next)));
}

/// Figures on one axis of time have their plots at one place, the axis once, and one table.
#[test]
fn figures_on_one_axis_lie_below_each_other() {
    let mut study = fixture::study();
    let course = study.chapters.iter().flat_map(|chapter| &chapter.over_time);
    let course = course.clone().next().expect("a course over time").clone();
    let strip = |id: &str, scale: f64| {
        let mut strip = course.clone();
        strip.id = id.to_owned();
        strip.x.shared = true;
        strip.y.label = id.to_owned();
        strip.curves.truncate(1);
        strip.curves[0].name.clear();
        for point in &mut strip.curves[0].points {
            point.y *= scale;
        }
        strip
    };
    let mut chapter = study.chapters[0].clone();
    // Labels of other widths, and a point more at one end.
    let mut short = strip("strip-b", 1e-3);
    short.curves[0].points.pop();
    chapter.figures = vec![strip("strip-a", 1.0), short];
    chapter.tables.clear();
    study.chapters = vec![chapter];
    let page = html(&study);
    let drawings = ["strip-a", "strip-b"].map(|id| drawing(&page, id).to_owned());
    let axis = |drawing: &String| {
        let axes = attributes(drawing, "data-axes=\"")[0];
        axes.split("],[").next().unwrap_or_default().to_owned()
    };
    assert_eq!(axis(&drawings[0]), axis(&drawings[1]));
    let labels = drawings.map(|drawing| drawing.matches("text class=\"middle\"").count());
    assert!(labels[0] == 0 && labels[1] > 0, "{labels:?}");
    assert_eq!(page.matches("<table class=\"points\">").count(), 1);
    assert!(
        page.contains("strip-a<") || page.contains("Strip-a<"),
        "a column each"
    );
}
