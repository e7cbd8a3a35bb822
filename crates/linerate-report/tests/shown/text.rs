//! Markdown, terminal lines and JSON of a made-up study.

use linerate_model::analysis::Analysis;
use linerate_model::finding::FindingKind;
use linerate_model::limiter::Limiter;
use linerate_report::{Extent, json, terminal, terminal_answer, terminal_page};

use crate::fixture;

/// All of it.
fn markdown(analysis: &Analysis) -> String {
    linerate_report::markdown(analysis, Extent::Full)
}

#[test]
fn markdown_of_a_study() {
    insta::assert_snapshot!(markdown(&fixture::study()));
}

#[test]
fn markdown_of_a_studys_answer() {
    let study = fixture::study();
    let text = linerate_report::markdown(&study, Extent::Answer);
    insta::assert_snapshot!(text);
    // Of what is behind a click on the page nothing is there but where it is.
    for closed in ["<details>", "## Hosts", "### Method", "## How to read this"] {
        assert!(
            markdown(&study).contains(closed) && !text.contains(closed),
            "{closed}"
        );
    }
}

#[test]
fn what_was_not_measured_to_help_says_how_to_measure_it() {
    let mut study = fixture::study();
    study.recommendations.clear();
    study.findings[1].kind = FindingKind::Limiter(Limiter::PathRate);
    let text = linerate_report::markdown(&study, Extent::Answer);
    let actions = text.split_once("## What to do\n").expect("actions").1;
    let actions = actions.split("\n## ").next().unwrap_or_default();
    let count = |words: &str| actions.matches(words).count();
    // Nothing has to be done about a full link, nor about requests that the study itself splits.
    let is_open = |kind| match kind {
        FindingKind::Limiter(limiter) => {
            !matches!(limiter, Limiter::LinkRate | Limiter::NagleDelayedAck)
        }
        _ => false,
    };
    let named = study
        .findings
        .iter()
        .filter(|one| is_open(one.kind))
        .count();
    assert!(named > 1, "{named}");
    for words in [
        "Gain: not measured\n",
        "Confirm: `linerate run HOST",
        "Cost: ",
        "Undo: ",
    ] {
        assert_eq!(count(words), named, "{words}: {actions}");
    }
}

/// A terminal of 24 lines shows it whole, with the prompt that follows.
#[test]
fn the_end_of_a_study_fits_one_screen() {
    use linerate_model::finding::TrustLevel;
    let study = fixture::study();
    let path = "linerate-study-20261120T141720Z.bundle/report.html";
    for width in [80, 100] {
        let text = terminal_answer(&study, path, width, false);
        assert!(text.lines().count() <= 23, "{text}");
        let fits = |line: &str| line.chars().count() <= width;
        assert!(text.lines().all(fits), "{text}");
        let verdict = study.answer.verdict.split(' ').next().unwrap_or_default();
        for words in [verdict, "Trust: ", "Findings", "What to do", path] {
            assert!(text.contains(words), "no {words}: {text}");
        }
        // What does not fit is a whole clause less, not half of a sentence; trust says that there is more.
        let is_cut = |line: &str| line.ends_with('…') && !line.ends_with("; …");
        assert!(!text.lines().any(is_cut), "{text}");
    }
    let mut unusable = study;
    if let Some(trust) = &mut unusable.trust {
        trust.level = TrustLevel::DoNotUse;
    }
    let text = terminal_answer(&unusable, path, 80, false);
    assert!(!text.contains("Findings") && text.contains(path), "{text}");
    // What to do about it is there.
    let caution = unusable.cautions[0]
        .claim
        .split(' ')
        .take(4)
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("Before you measure again") && text.contains(&caution),
        "{text}"
    );
    let empty = terminal_answer(&fixture::empty(), path, 80, false);
    assert!(empty.ends_with(&format!("report  {path}\n")), "{empty}");
}

#[test]
fn markdown_says_what_is_partial_and_damaged() {
    let text = markdown(&fixture::partial());
    assert!(text.contains("> **This report is partial.** Interrupted after 31 of 84 trials."));
    assert!(text.contains("**No answer: nothing valid was measured.**"));
    assert!(text.contains("- samples.parquet: the last row group is cut off"));
}

#[test]
fn markdown_leaves_out_what_numbers_not_to_be_used_would_say() {
    let study = fixture::not_to_be_used();
    let text = markdown(&study);
    assert!(text.contains("**These numbers do not describe the hosts: measure again.**"));
    assert!(!text.contains("## Findings") && !text.contains("## What limits it"));
}

#[test]
fn markdown_tables_have_a_cell_for_every_column() {
    for text in [
        markdown(&fixture::study()),
        markdown(&fixture::spoiled("a|b\nc `d` <e>")),
    ] {
        let mut columns = None;
        for line in text.lines() {
            let bars = line.replace("\\|", "").matches('|').count();
            if !line.starts_with('|') {
                columns = None;
                continue;
            }
            assert_eq!(*columns.get_or_insert(bars), bars, "{line}");
        }
    }
}

#[test]
fn markdown_carries_no_markup_from_outside() {
    let text = markdown(&fixture::spoiled("<img src=x> ![x](y) **b**"));
    // A command stands in a code span, where nothing is markup.
    let text: String = text
        .lines()
        .filter(|line| !line.contains("Confirm: `"))
        .collect();
    assert!(!text.contains("<img"));
    assert!(!text.contains("![x]"));
    assert!(!text.contains("**b**"));
}

#[test]
fn lines_fit_the_terminal() {
    for width in [40, 57, 80, 120, 300] {
        let study = fixture::study();
        let page = terminal_page(&study.summary, Some(&study.answer.verdict), width, false);
        for text in [terminal(&study, width, false), page] {
            let fits = |line: &str| line.chars().count() <= width;
            assert!(text.lines().all(fits), "{width}: {text}");
        }
    }
}

#[test]
fn colours_only_when_asked_and_nothing_else_from_outside() {
    let study = fixture::spoiled("\u{1b}]0;owned\u{7}\r\n");
    let shown = |color| {
        let answer = terminal_answer(&study, "report.html", 80, color);
        let page = terminal_page(&study.summary, Some(&study.answer.verdict), 80, color);
        terminal(&study, 80, color) + &answer + &page
    };
    let plain = shown(false);
    assert!(!plain.chars().any(|c| c.is_control() && c != '\n'));
    let coloured = shown(true);
    assert!(coloured.contains("\u{1b}[1m"));
    assert!(!coloured.contains("\u{1b}]"));
    let uncoloured = [
        "\u{1b}[0m",
        "\u{1b}[1m",
        "\u{1b}[2m",
        "\u{1b}[33m",
        "\u{1b}[36m",
    ]
    .iter()
    .fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(uncoloured, plain);
}

#[test]
fn json_is_the_analysis_with_its_format() {
    let study = fixture::study();
    let value: serde_json::Value =
        serde_json::from_str(&json(&study)).expect("the report writes JSON");
    assert_eq!(value["format"], 2);
    assert_eq!(value["title"], "Study of server");
    assert_eq!(value["findings"][1]["effect"]["value"], 940.9e6);
    assert_eq!(
        value["chapters"].as_array().map(Vec::len),
        Some(study.chapters.len())
    );
    assert_eq!(json(&study), json(&fixture::study()));
}
