//! What README and guide show as printed is printed so by this program, of bundles that `docs/record`
//! recorded (docs/recorded); and what a study's report weighs, on the screen and on paper.
//!
//! A block is told by a comment before it:
//!
//! ```text
//! <!-- recorded: report docs/recorded/udp.bundle --replay | received, lost -->
//! ```
//!
//! Behind the bar stand the first words of the lines that are shown, each with the lines that go on from it,
//! or `first N` for as many lines; what is left out is `…`. Lines of the block that begin with `$ ` are kept.
//!
//! `LINERATE_REGENERATE=1 cargo test -p linerate --test documents recorded` writes the blocks.

use std::path::PathBuf;
use std::process::Command;

use crate::reference::{hold, pages_of_users, read};
use crate::{output, root};

const MARK: &str = "<!-- recorded: ";

#[test]
fn console_blocks_are_what_is_printed() {
    let mut count = 0;
    for page in pages_of_users() {
        let text = read(&page);
        let mut parts = text.split(MARK);
        let mut expected = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            count += 1;
            expected += MARK;
            expected += &renewed(&page, part);
        }
        hold(&page, &expected, "recorded");
    }
    assert!(count >= 5, "{count} blocks");
}

/// Returns a part of a page, from behind the mark on, with its block as it is printed now.
fn renewed(page: &str, part: &str) -> String {
    let (what, rest) = part.split_once(" -->\n").expect("a comment ends");
    let (fence, rest) = rest.split_once('\n').expect("a block follows");
    assert!(fence.starts_with("```"), "{page}: {what}: {fence}");
    let (block, rest) = rest.split_once("```\n").expect("a block ends");
    let (command, shown) = match what.split_once(" | ") {
        Some((command, shown)) => (command, Some(shown)),
        None => (what, None),
    };
    let typed: String = block
        .lines()
        .take_while(|line| line.starts_with("$ "))
        .map(|line| format!("{line}\n"))
        .collect();
    check_typed(page, command, &typed);
    let printed = lines_of(&printed(command), shown);
    format!("{what} -->\n{fence}\n{typed}{printed}```\n{rest}")
}

/// Runs a command at the root of the repository.
fn printed(command: &str) -> String {
    let root = root();
    let words: Vec<String> = command
        .split_whitespace()
        .map(|word| {
            if word.starts_with("docs/") {
                root.join(word).display().to_string()
            } else {
                word.to_owned()
            }
        })
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    output(&words)
}

/// Returns the lines that a page shows of what was printed.
fn lines_of(printed: &str, shown: Option<&str>) -> String {
    let Some(shown) = shown else {
        return printed.to_owned();
    };
    let first = shown
        .strip_prefix("first ")
        .map(|count| count.parse::<usize>().expect("a number of lines"));
    let keys: Vec<&str> = shown.split(", ").collect();
    let (mut out, mut is_shown, mut found) = (String::new(), false, 0);
    for (at, line) in printed.lines().enumerate() {
        let begins = !line.starts_with("   ");
        let was_shown = is_shown;
        is_shown = match first {
            Some(first) => at < first,
            None if begins => keys
                .iter()
                .any(|key| line.starts_with(&format!("{key} ")) || line == *key),
            None => is_shown,
        };
        found += usize::from(is_shown && begins);
        match is_shown {
            true => out += &format!("{}\n", line.trim_end()),
            false if was_shown || at == 0 => out += "…\n",
            false => {}
        }
    }
    assert!(
        first.is_some() || found >= keys.len(),
        "{shown}: {found} of {} in\n{printed}",
        keys.len()
    );
    out
}

/// What a block says was typed is what the bundle was recorded with, but for names of hosts and files.
fn check_typed(page: &str, command: &str, typed: &str) {
    let mut words = command.split_whitespace();
    let bundle = words
        .find(|word| word.ends_with(".bundle"))
        .map(|bundle| read(&format!("{bundle}/run.json")));
    let Some(bundle) = bundle else { return };
    let bundle: serde_json::Value = serde_json::from_str(&bundle).expect("a bundle");
    let asked = bundle["asked"].as_str().unwrap_or_default();
    let asked: Vec<&str> = asked.split_whitespace().collect();
    for word in typed.split_whitespace() {
        let is_name = word == "$" || word.chars().all(|letter| letter.is_ascii_uppercase());
        assert!(
            is_name || asked.contains(&word),
            "{page}: {word} of {typed} is not in {asked:?}"
        );
    }
}

/// The study of the README.
fn study() -> PathBuf {
    root().join("docs/recorded/study.bundle")
}

fn rendered(words: &[&str]) -> String {
    let study = study().display().to_string();
    let words: Vec<&str> = ["report", &study, "--out", "-"]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    output(&words)
}

#[test]
fn a_study_as_markdown_is_short_and_its_page_is_light() {
    let short = rendered(&["--format", "markdown"]);
    let full = rendered(&["--format", "markdown", "--full"]);
    assert!(short.len() < 40_000, "{} bytes", short.len());
    assert!(full.len() > 2 * short.len(), "{} bytes", full.len());
    let page = rendered(&["--format", "html"]);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn the_page_of_a_run_is_light_with_captures_and_with_a_profile() {
    for run in ["loss", "profile", "udp", "window"] {
        let bundle = root().join(format!("docs/recorded/{run}.bundle"));
        let words = ["report", &bundle.display().to_string(), "--out", "-"];
        let page = output(&words);
        assert!(page.len() < 200_000, "{run}: {} bytes", page.len());
    }
}

#[test]
fn a_study_prints_on_fifteen_sheets_of_either_size_and_its_answer_on_the_first() {
    let page = rendered(&["--format", "html"]);
    let alone = "<style>main, footer { display: none }</style></head>";
    let answer = page.replacen("</head>", alone, 1);
    for sheet in ["A4", "letter"] {
        let Some(sheets) = sheets(&page, sheet) else {
            return;
        };
        assert!((2..=15).contains(&sheets), "{sheets} of {sheet}");
        assert_eq!(self::sheets(&answer, sheet), Some(1), "{sheet}");
    }
}

/// Counts the sheets on which a browser prints a page; nothing where there is no browser.
#[expect(
    clippy::print_stdout,
    reason = "a skipped test is counted by its printed line"
)]
fn sheets(page: &str, sheet: &str) -> Option<usize> {
    let folder = tempfile::tempdir().expect("the temporary directory can be written");
    let (html, pdf) = (
        folder.path().join("report.html"),
        folder.path().join("report.pdf"),
    );
    let size = format!("<style>@page {{ size: {sheet} }}</style></head>");
    std::fs::write(&html, page.replacen("</head>", &size, 1)).expect("a page is written");
    let profile = folder.path().join("profile");
    let printed = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--disable-background-networking"])
        .arg("--no-pdf-header-footer")
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", html.display()))
        .output();
    if printed.is_err() {
        let is_ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!is_ci, "CI needs chromium");
        println!("skipped: no chromium");
        return None;
    }
    let pdf = std::fs::read(pdf).expect("the browser prints");
    let count = |words: &str| {
        let all = pdf.windows(words.len());
        all.filter(|bytes| *bytes == words.as_bytes()).count()
    };
    let sheets = count("/Type /Page\n");
    // In points, as the browser writes them: what was asked for is what is counted.
    let size = match sheet {
        "A4" => "/MediaBox [0 0 594.9",
        _ => "/MediaBox [0 0 612 792]",
    };
    assert_eq!(count(size), sheets, "{sheet}");
    Some(sheets)
}
