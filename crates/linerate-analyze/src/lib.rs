//! Turns a recording into an analysis: outcomes, comparisons, findings, recommendations, chapters.
//!
//! This room computes and nothing else. It opens no file, reads no clock, draws no random number
//! and prints nothing: the same recording gives the same analysis, live and in a replay years
//! later. What a person sees of it is the report room's work.
//!
//! ```
//! use linerate_analyze::reduce::{self, name};
//! use linerate_model::run::Recording;
//!
//! fn best_bps(recording: &Recording) -> Option<f64> {
//!     reduce::outcomes(recording)
//!         .iter()
//!         .filter_map(|outcome| outcome.responses.get(name::THROUGHPUT))
//!         .map(|response| response.value)
//!         .max_by(f64::total_cmp)
//! }
//! ```
//!
//! The way through the code follows the way of a number: [`reduce`] makes outcomes of raw samples,
//! `compare` puts outcomes of one cell together and cells side by side, `diagnose` names limiters
//! and other findings, `recommend` says what to do, `chapters` arranges figures and tables.

/// Raw samples of a trial → its responses.
pub mod reduce;

/// Means, intervals, the noise floor, plateaus.
mod compare;

/// What the links between the hosts can carry.
mod wire_use;

/// Outcomes with their levels, as every later step reads them.
mod dataset;

/// Numbers of the study that several findings share.
mod study;

/// What traffic costs, and what a target asks for.
pub mod capacity;
/// What the comparisons of a report decide, all together.
mod verdicts;

/// How far the numbers of a report may be relied on.
mod trust;

/// The answer of a run: verdict, headline numbers, what limits each workload.
mod answer;

/// What to do about the limiter of one measurement.
mod next;

/// The summary table: one line a headline number.
mod summary;

/// Cells and numbers in words.
mod words;

/// What recordings say of hosts, paths and programs, in one vocabulary.
pub mod evidence;

/// What may hold a number: a catalogue.
pub mod causes;

/// What a sender's time went to.
pub mod clocks;

/// From facts to causes.
pub mod infer;

/// One file per limiter or other finding.
mod diagnose;

/// Findings → what to do.
mod recommend;

/// One file per chapter, and a general one for any other experiment.
mod chapters;

/// A recording whose trials have several groups, seen as one of each group.
pub mod groups;

/// Stacks of profiles, put together.
mod flame;

/// What moved on each host, summed over trials.
mod moved;

/// Protocol counters that moved, by name.
mod counters;

/// Interrupts of network devices by CPU.
mod interrupts;

/// Flow → receive queue → interrupt → CPUs → NUMA node.
mod queue_map;

/// Published figures to draw beside ours.
mod published;

/// What is told of a distribution of latencies.
mod latency;

/// Latency alone and beside bulk.
pub mod loaded;

/// Interval lines of a running trial.
pub mod live;

/// The same measurement as iperf3 counts it.
pub mod iperf3;

/// The result document of one measurement.
pub mod single;

/// Hosts that measure with each other.
mod pairs;

/// Trials that should be done once more.
mod spoilt;

/// The same study several times.
mod agreement;

/// Runs side by side, and the levels of one run.
pub mod compared;

/// What a result must not be: `throughput < 900M`.
pub mod condition;

/// Whether repeated measurements determine a result.
pub mod precision;

/// What one change after another says of what limits a measurement.
pub mod proof;

/// What a run changes to prove what limits it.
pub mod prove;

/// Experiments whose levels follow from what was measured of others.
pub mod adaptive;

/// What a watcher of a host sees.
pub mod watch;

/// The first page: heading, what was asked, the hosts, what is missing.
mod front;

use linerate_model::analysis::{ANALYSIS_FORMAT, Analysis};
use linerate_model::finding::Finding;
use linerate_model::run::Recording;

pub use agreement::agreement;
pub use compare::draw::Draw;
pub use compare::interval::{deviation, student_t_interval};
pub use counters::{KnownCounter, known_counters};
pub use diagnose::known::{Known, known_cautions, known_findings, known_limiters};
pub use diagnose::{FINDINGS_MAX, evidence_of, limiter_of_outcomes, limiters};
pub use flame::collapsed;
pub use latency::Latency;
pub use spoilt::spoilt;
pub use verdicts::power::power;
pub use words::level as level_in_words;

use dataset::Dataset;
use diagnose::Found;
use groups::Reduced;
use reduce::Outcome;

/// Returns the names of the experiments that more replicates may still decide.
///
/// An experiment without comparisons is open only while a cell has too few trials for an interval, which any
/// further replicate narrows. A look before the end asks for less error than the last.
pub fn open_experiments(reduced: &Reduced<'_>) -> Vec<String> {
    verdicts::open(&Dataset::of(
        reduced.recording(),
        reduced.spread_outcomes().to_vec(),
    ))
}

/// Returns what to do next after one measurement, as the terminal says it.
fn next_of(recording: &Recording, dataset: &Dataset<'_>) -> Option<String> {
    let single = || single::single(recording, single::Shown::RESULT_ALONE);
    dataset.is_one_measurement().then(single)?.next
}

/// Returns everything that a report shows of `recording`.
///
/// A partial or damaged recording gives a partial analysis that says so; there is no recording for
/// which this fails.
pub fn analyze(recording: &Recording) -> Analysis {
    analyze_reduced(&Reduced::of(recording), false)
}

/// Returns the same of what was reduced before, with figures beside it that were `published` for other systems if that is
/// wanted.
pub fn analyze_reduced(reduced: &Reduced<'_>, published: bool) -> Analysis {
    let recording = reduced.recording();
    let mut dataset = Dataset::of(recording, reduced.spread_outcomes().to_vec());
    dataset.published = published;
    // Of several cells changes are of one, and say nothing of the others.
    if dataset.is_one_measurement() {
        dataset.proofs = reduced.proofs();
    }
    if let Some(step) = reduced.step() {
        dataset.step = Some(step);
        dataset.together = reduce::together(reduced.recorded(), |id| {
            let groups = dataset.outcomes.iter();
            let mut groups = groups.filter(|it| it.trial.0 % step == id.0);
            groups.all(Outcome::is_valid)
        });
    }
    let proofs = reduced.proving();
    let mut analysis = analysis(recording, dataset);
    analysis.chapters.extend(proofs.iter().flat_map(|proving| {
        let dataset = Dataset::of(proving, reduced.proving_outcomes().to_vec());
        chapters::proofs(&dataset, &reduced.proofs())
    }));
    analysis
}

/// Returns a finding with the experiment that it is from, where there are several.
fn placed(finding: Finding, dataset: &Dataset<'_>) -> Finding {
    let experiments = dataset.experiments();
    let mut own = experiments.iter().filter(|_| experiments.len() > 1);
    let own = own.find(|one| finding.experiment.as_ref() == Some(&one.name));
    let from = own.map(|one| one.title.clone());
    Finding { from, ..finding }
}

fn analysis(recording: &Recording, dataset: Dataset<'_>) -> Analysis {
    let mut told = diagnose::told(&dataset);
    answer::headline_first(&dataset, &mut told.findings);
    let valid = recording.trials.iter().filter(|trial| trial.is_valid());
    let trust = trust::trust(&dataset, &told);
    Analysis {
        format: ANALYSIS_FORMAT,
        title: front::title(&recording.document),
        about: front::about(&dataset),
        partial: front::partial(&dataset),
        summary: summary::summary(&dataset),
        answer: answer::answer(&dataset, &told.findings, &trust),
        trust: Some(trust),
        verdicts: verdicts::comparisons(&dataset),
        is_one_measurement: dataset.is_one_measurement(),
        next: next_of(recording, &dataset),
        recommendations: recommend::recommendations(&dataset, &told.findings),
        chapters: chapters::chapters(&dataset, &told),
        findings: told
            .findings
            .into_iter()
            .map(|found| diagnose::advised(found.finding(), &dataset))
            .map(|finding| placed(finding, &dataset))
            .collect(),
        cautions: told.cautions.into_iter().map(Found::finding).collect(),
        flames: flame::flames(&dataset),
        hosts: front::hosts(&recording.document),
        counters: counters::counters(recording, valid.clone()),
        interrupts: interrupts::interrupts(recording, valid),
        left_out: front::left_out(&recording.document),
        damage: recording.damage.clone(),
    }
}
