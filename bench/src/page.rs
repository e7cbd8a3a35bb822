//! `docs/performance.md`, rendered from `docs/performance.json`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use crate::kept::{Kept, Results};
use crate::run::WINDOW;
use crate::table;

/// Where the results are, seen from the root of the repository.
pub const RESULTS: &str = "docs/performance.json";

/// `bench page`.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// The results; the page is written beside them
    #[arg(default_value = RESULTS)]
    results: PathBuf,
}

const HEAD: &str = "# Performance

Against other programs, and against bare loops of our own that do nothing but the system calls (*probe*). This page
is rendered from [performance.json](performance.json) by `cargo run -p bench -- page`; a test holds it against
that. Why the numbers are what they are: [notes](performance-notes.md).

`bench/install`, `cargo build --release --workspace` and `cargo run -p bench --release -- --publish` measure it anew:
every round runs each row once, the first of a round changes from round to round, runs during which other
programs used more than a share of the machine are thrown away, and ratios are of the medians of the same rounds. CPU
time is that of each end's cgroup over the busiest stretch of the run that is as long as PERCENT % of what is
measured, for the run's mean rate. Compare within a table: the machine is faster on some days than on others.
";

/// Renders the page beside the results.
pub fn page(args: &PageArgs) -> anyhow::Result<()> {
    write(&args.results, &Results::read(&args.results)?)
}

/// Writes the page of `results`, which are at `path`.
pub fn write(path: &Path, results: &Results) -> anyhow::Result<()> {
    let page = path.with_extension("md");
    fs::write(&page, markdown(results)).with_context(|| format!("cannot write {}", page.display()))
}

/// Returns the page.
pub fn markdown(results: &Results) -> String {
    let mut text = HEAD.replace("PERCENT", &format!("{:.0}", 100.0 * WINDOW));
    targets(&mut text, results);
    for (at, set) in results.sets.iter().enumerate() {
        let environments = environments(&set.comparisons).join(", ");
        let _ = write!(
            text,
            "\n## {}. {environments}, {}\n\n{}\n\n",
            at + 1,
            set.date,
            set.conditions.trim_end()
        );
        for comparison in &set.comparisons {
            text.push_str(&table::table(comparison));
        }
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

fn targets(text: &mut String, results: &Results) {
    let all: Vec<(&Kept, &crate::kept::KeptTarget)> = results
        .sets
        .iter()
        .flat_map(|set| &set.comparisons)
        .flat_map(|kept| kept.targets.iter().map(move |target| (kept, target)))
        .filter(|(_, target)| target.reached.is_some())
        .collect();
    let missed: Vec<_> = all
        .iter()
        .filter(|(_, target)| target.reached == Some(false))
        .collect();
    let _ = write!(
        text,
        "\n## What was to be reached\n\nThe project set itself {} targets; {} are reached. Those that are not:\n\n",
        all.len(),
        all.len() - missed.len()
    );
    for (kept, target) in missed {
        let _ = writeln!(
            text,
            "* {}, {}: {}",
            kept.environment, kept.title, target.words
        );
    }
}

/// Returns the environments, each once, in their order.
fn environments(comparisons: &[Kept]) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for comparison in comparisons {
        if !found.contains(&comparison.environment.as_str()) {
            found.push(&comparison.environment);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_results_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let path = root.join(RESULTS);
        let results = Results::read(&path).expect("the results can be read");
        let page = fs::read_to_string(path.with_extension("md")).expect("the page is there");
        assert!(
            page == markdown(&results),
            "docs/performance.md is not what docs/performance.json says; write it with\n  \
             cargo run -p bench -- page"
        );
        // What is written is what is read: no number is lost on the way.
        let text = serde_json::to_string(&results).expect("results are a document");
        let again: Results = serde_json::from_str(&text).expect("it is read again");
        assert_eq!(markdown(&again), page);
    }
}
