//! Recordings with a known truth: does the analysis find it, and only it?

/// Recordings with a known truth.
mod builder {
    pub use linerate_truth::recording::*;

    pub use crate::whole_study::study;
}

#[macro_use]
mod worlds;

/// What most tests speak of.
mod prelude {
    pub(crate) use crate::builder::{
        MSS, MadeRun, Truth, WINDOW_NS, rr, size, stream, study, switches,
    };
    pub(crate) use crate::told;
    pub(crate) use crate::worlds::{
        Change, GIGABIT, MS, answer_of, begun, chapter, datagrams, found, limiter_of, limiters,
        named, next_of, once, read, received, run, sized, studied, text, thrice, trials, worker,
        written_in,
    };
    pub(crate) use linerate_analyze::analyze;
    pub(crate) use linerate_analyze::groups::Reduced;
    pub(crate) use linerate_analyze::reduce::{name, outcomes};
    pub(crate) use linerate_model::analysis::{Analysis, Chapter, TableCell};
    pub(crate) use linerate_model::datagram::Datagrams;
    pub(crate) use linerate_model::experiment::{Factor, Level};
    pub(crate) use linerate_model::finding::{Finding, FindingKind, TrustLevel};
    pub(crate) use linerate_model::flag::TrialFlag;
    pub(crate) use linerate_model::host::FactValue;
    pub(crate) use linerate_model::limiter::Limiter;
    pub(crate) use linerate_model::manner::Transport;
    pub(crate) use linerate_model::metric::Metric;
    pub(crate) use linerate_model::reason::{Disturbance, Reason, RepeatReason};
    pub(crate) use linerate_model::run::{Control, HostPart, Recording, Validity};
    pub(crate) use linerate_model::sample::{End, QueueKind, Subject, TrialSample};
    pub(crate) use linerate_model::unit::Unit;
    pub(crate) use linerate_model::workload::{Direction, Part, Traffic, Workload};
    pub(crate) use linerate_model::{BitsPerSec, Bytes, FlowId, HostName, Nanos, TrialId};
}

mod answer;
mod both_ways;
mod capacity;
mod datagram_paths;
mod exchange;
mod findings;
mod full_exchanges;
mod full_paths;
mod host_counters;
mod liars;
mod new_chapters;
mod numbers;
mod page;
mod power;
mod proofs;
mod queues;
mod receive_path;
mod reduction;
mod robustness;
mod shared_paths;
mod silence;
mod streams;
mod studies;
mod together;
mod verdicts;
mod whole;
mod whole_study;

use linerate_analyze::single::{Shown, Single, single};

use prelude::*;

/// What a counter of the server grows by in the window.
type Growth = (Subject, Metric, i64);

/// Lets counters of the server grow in the window of `trial`.
fn grow(recording: &mut Recording, trial: TrialId, growth: &[Growth]) {
    for (subject, metric, amount) in growth {
        let readings = [(0, 1000), (WINDOW_NS as i64, 1000 + amount)];
        read(recording, trial, "server", subject, *metric, &readings);
    }
}

/// Returns the document of `recording` as one measurement.
fn as_single(recording: &Recording) -> Single<'_> {
    let shown = Shown {
        interval: Nanos(0),
        all_flows: false,
        sum_only: false,
    };
    single(recording, shown)
}

/// Returns the findings and the cautions of `recording`.
fn told(recording: &Recording) -> Vec<Finding> {
    let analysis = analyze(recording);
    let findings = analysis.findings.into_iter();
    findings.chain(analysis.cautions).collect()
}
