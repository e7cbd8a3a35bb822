//! The progress of a plan: chapter, trial, what it measures now, an honest time left.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use linerate_analyze::live::{Interval, Live};
use linerate_controller::RunEvent;
use linerate_model::Nanos;
use linerate_model::experiment::{Factor, Level};
use linerate_model::plan::{Plan, Trial};
use linerate_model::run::Progress;
use linerate_model::samples::Samples;
use linerate_model::text::cut;
use linerate_model::unit::Unit;

use super::note;

/// Without a terminal, one line at least after so many trials.
const LINE_EVERY_TRIALS: usize = 25;
/// Columns of the bar with its percentage.
const BAR_COLUMNS: usize = 30;
/// The window of the rate that is shown live.
const LIVE_INTERVAL: Nanos = Nanos::from_ms(200);

/// Shows how far a plan has come, on standard error.
pub struct PlanProgress<'a> {
    plan: &'a Plan,
    bar: Option<ProgressBar>,
    live: Option<Live>,
    chapter: String,
    reading: String,
    /// What the bar says behind the reading.
    behind: String,
    /// Trials that may not be averaged.
    invalid: usize,
    lines: usize,
}

impl<'a> PlanProgress<'a> {
    /// Returns a bar on a terminal, plain lines elsewhere.
    pub fn new(plan: &'a Plan) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let template = "{prefix:.bold}\n{bar:20.cyan/dim} {percent:>3} %  {msg}";
            let style = ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("━╸─");
            let bar = ProgressBar::new(plan.trials.len() as u64).with_style(style);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            plan,
            bar,
            live: None,
            chapter: String::new(),
            reading: String::new(),
            behind: String::new(),
            invalid: 0,
            lines: 0,
        }
    }

    /// Takes up one event of the run.
    pub fn take(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::TrialBegan { trial, progress } => self.begins(trial, progress),
            RunEvent::Samples { hosts, .. } => self.look(hosts),
            RunEvent::TrialEnded { trial, evidence } => {
                let invalid = evidence.record.validity.reason();
                self.invalid += usize::from(invalid.is_some());
                match (&self.bar, invalid) {
                    // The report says why; a busy machine would fill the screen with it.
                    (Some(bar), _) => bar.inc(1),
                    (None, Some(why)) => {
                        self.print(&format!("trial {} is invalid: {why}", trial.id.0));
                    }
                    (None, None) => {}
                }
            }
            RunEvent::HostLost { host, wait } => self.print(&super::lost(host, *wait)),
            RunEvent::HostQueued { host, place } => self.print(&super::queued(host, *place)),
            RunEvent::RunBegan(_) | RunEvent::PlanChanged(_) | RunEvent::RunEnded(_) => {}
        }
    }

    fn look(&mut self, hosts: &[Samples]) {
        let Some(live) = &mut self.live else { return };
        live.add(hosts.iter().flat_map(Samples::of_traffic));
        if let Some(lines) = live.poll().pop() {
            let of_way = |line: &Interval| match line.transactions_per_second {
                Some(rate) => Unit::PerSecond
                    .display(rate)
                    .replace("/s", " transactions/s"),
                None => Unit::BitsPerSecond.display(line.bits_per_second),
            };
            let ways: Vec<String> = lines.iter().map(of_way).collect();
            self.reading = ways.join(" and ");
            self.show_reading();
        }
    }

    /// Shows on the bar what the trial measures now.
    fn show_reading(&self) {
        let Some(bar) = &self.bar else { return };
        let reading = match self.reading.as_str() {
            "" => "…",
            reading => reading,
        };
        let message = format!("{reading}{}", self.behind);
        bar.set_message(fitting(&message, BAR_COLUMNS));
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn print(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(text)),
            None => note(text),
        }
    }

    fn begins(&mut self, trial: &Trial, progress: &Progress) {
        let Progress { over, of, left } = *progress;
        self.live = Some(Live::new(trial, LIVE_INTERVAL).summed());
        // By name: the report numbers what was measured, without gaps.
        let known = self.plan.experiment(&trial.experiment);
        let chapter = known.map_or(&trial.experiment, |experiment| &experiment.title);
        if self.bar.is_some() || *chapter != self.chapter {
            // A number of another cell or workload would be read as one of this.
            self.reading.clear();
        }
        let left = left.map_or(String::new(), |left| {
            let whole = Nanos(left.0.div_ceil(1_000_000_000) * 1_000_000_000);
            format!("{whole} left")
        });
        let number = format!("trial {} of {of}", over + 1);
        let behind = |lead: &str, words: &str| match words {
            "" => String::new(),
            words => format!("{lead}{words}"),
        };
        if let Some(bar) = &self.bar {
            let cell = cell_words(self.plan, trial);
            bar.set_length(of as u64);
            bar.set_prefix(fitting(&format!("{chapter}   {number}   {cell}"), 1));
            let invalid = match self.invalid {
                0 => String::new(),
                count => format!("   {count} invalid"),
            };
            self.behind = format!("{}{invalid}", behind("   ", &left));
            self.show_reading();
        } else if *chapter != self.chapter || over >= self.lines + LINE_EVERY_TRIALS {
            let cell = behind("; ", &cell_words(self.plan, trial));
            let reading = behind("; last ", &self.reading);
            let left = behind("; ", &left);
            note(&format!("{chapter}: {number}{cell}{reading}{left}"));
            self.lines = over;
        }
        self.chapter.clone_from(chapter);
    }
}

/// Returns as much of `text` as a line has room for beside the columns that are taken.
fn fitting(text: &str, taken: usize) -> String {
    cut(text, super::width() - taken)
}

/// Returns the levels of `trial` that vary in its experiment. Clients that follow from the
/// connections are left out.
fn cell_words(plan: &Plan, trial: &Trial) -> String {
    let siblings = plan
        .trials
        .iter()
        .filter(|other| other.experiment == trial.experiment);
    let varies = |factor: &Factor, level: &Level| {
        siblings
            .clone()
            .any(|other| other.cell.get(factor) != Some(level))
    };
    let levels: Vec<String> = trial
        .cell
        .iter()
        .filter(|(factor, _)| **factor != Factor::Clients)
        .filter(|(factor, level)| varies(factor, level))
        .map(|(factor, level)| format!("{} {level}", factor.title()))
        .collect();
    levels.join(", ")
}
