//! Markdown, terminal lines and JSON of a made-up study.

use linerate_report::{json, markdown, terminal};

/// Made-up analyses.
mod fixture;

#[test]
fn markdown_of_a_study() {
    insta::assert_snapshot!(markdown(&fixture::study()));
}

#[test]
fn terminal_lines_of_a_study() {
    insta::assert_snapshot!(terminal(&fixture::study(), 92, false));
}

#[test]
fn terminal_lines_of_a_run_without_a_trial() {
    insta::assert_snapshot!(terminal(&fixture::empty(), 80, false));
}

#[test]
fn markdown_says_what_is_partial_and_damaged() {
    let text = markdown(&fixture::partial());
    assert!(text.contains("> **This report is partial.** Interrupted after 31 of 84 trials."));
    assert!(text.contains("**No answer: nothing valid was measured.**"));
    assert!(text.contains("- samples.parquet: the last row group is cut off"));
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
        for line in terminal(&study, width, false).lines() {
            // A command is never broken, so that it can be copied.
            let is_command = line.starts_with("    confirm");
            assert!(
                is_command || line.chars().count() <= width,
                "{width}: {line}"
            );
        }
    }
}

#[test]
fn colours_only_when_asked_and_nothing_else_from_outside() {
    let study = fixture::spoiled("\u{1b}]0;owned\u{7}\r\n");
    let plain = terminal(&study, 80, false);
    assert!(!plain.chars().any(|c| c.is_control() && c != '\n'));
    let coloured = terminal(&study, 80, true);
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
