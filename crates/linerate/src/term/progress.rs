//! The progress of a plan: chapter, trial, what it measures now, an honest time left.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use linerate_analyze::live::Live;
use linerate_controller::RunEvent;
use linerate_model::Nanos;
use linerate_model::experiment::{Factor, Level};
use linerate_model::plan::{Plan, Trial};
use linerate_model::run::Progress;
use linerate_model::samples::Samples;
use linerate_model::unit::Unit;

use super::note;

/// Without a terminal, one line at least after so many trials.
const LINE_EVERY_TRIALS: usize = 25;
/// Most characters of a trial's levels, beside chapter and number on a line of 100.
const CELL_CHARS_MAX: usize = 60;
/// The window of the rate that is shown live.
const LIVE_INTERVAL: Nanos = Nanos::from_ms(200);

/// Shows how far a plan has come, on standard error.
pub struct PlanProgress<'a> {
    plan: &'a Plan,
    bar: Option<ProgressBar>,
    live: Option<Live>,
    chapter: String,
    reading: String,
    lines: usize,
}

impl<'a> PlanProgress<'a> {
    /// Returns a bar on a terminal, plain lines elsewhere.
    pub fn new(plan: &'a Plan) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let template = "{prefix:.bold}\n{bar:40.cyan/dim} {percent:>3} %  {msg}";
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
            lines: 0,
        }
    }

    /// Takes up one event of the run.
    pub fn take(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::TrialBegan { trial, progress } => self.begins(trial, progress),
            RunEvent::Samples { hosts, .. } => self.look(hosts),
            RunEvent::TrialEnded { trial, evidence } => {
                if let Some(why) = evidence.record.validity.reason() {
                    self.print(&format!("trial {} is invalid: {why}", trial.id.0));
                }
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                }
            }
            RunEvent::HostLost { host, wait } => self.print(&super::lost(host, *wait)),
            RunEvent::RunBegan(_) | RunEvent::PlanChanged(_) | RunEvent::RunEnded(_) => {}
        }
    }

    fn look(&mut self, hosts: &[Samples]) {
        let Some(live) = &mut self.live else { return };
        live.add(hosts.iter().flat_map(Samples::of_flows));
        if let Some(last) = live.poll().pop().and_then(|mut lines| lines.pop()) {
            self.reading = match last.transactions_per_second {
                Some(rate) => Unit::PerSecond
                    .display(rate)
                    .replace("/s", " transactions/s"),
                None => Unit::BitsPerSecond.display(last.bits_per_second),
            };
        }
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
        let chapter = self.chapter_of(trial);
        let left = left.map(|left| Nanos(left.0.div_ceil(1_000_000_000) * 1_000_000_000));
        let left = |before: &str| left.map_or(String::new(), |left| format!("{before}{left} left"));
        if let Some(bar) = &self.bar {
            let cell = cell_words(self.plan, trial);
            bar.set_length(of as u64);
            bar.set_prefix(format!("{chapter}   trial {} of {of}   {cell}", over + 1));
            let reading = if self.reading.is_empty() {
                "…"
            } else {
                &self.reading
            };
            bar.set_message(format!("{reading}{}", left("   ")));
        } else if chapter != self.chapter || over >= self.lines + LINE_EVERY_TRIALS {
            let left = left(", ");
            note(&format!("{chapter}: trial {} of {of}{left}", over + 1));
            self.lines = over;
        }
        self.chapter = chapter;
    }

    fn chapter_of(&self, trial: &Trial) -> String {
        match self.plan.experiment(&trial.experiment) {
            Some(experiment) => match experiment.chapter {
                Some(number) => format!("{number} {}", experiment.title),
                None => experiment.title.clone(),
            },
            None => trial.experiment.clone(),
        }
    }
}

/// Returns the levels of `trial` that vary in its experiment. Clients that follow from the
/// connections are left out, and so is what does not fit on a line.
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
    levels.join(", ").chars().take(CELL_CHARS_MAX).collect()
}
