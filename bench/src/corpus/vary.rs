//! What is told of a recording of which less was read, or where each number is a little larger or smaller.

use std::collections::BTreeSet;

use linerate_analyze::limiter_of_outcomes;
use linerate_analyze::reduce::outcomes;
use linerate_model::metric::Metric;
use linerate_model::run::Recording;
use linerate_truth::corpus::Recorded;

/// A tenth more, and as much less: that every bound of a number is as much lower, or higher.
const TENTHS: [f64; 2] = [1.1, 1.0 / 1.1];

/// What is told where something of a recording is another.
pub struct Varied {
    /// What was tried.
    pub tries: usize,
    /// What is told as another limiter, or as none.
    pub others: Vec<String>,
}

/// Takes each metric away from a recording: what is then told as another limiter.
pub fn lessened(recorded: &Recorded) -> Varied {
    let recording = &recorded.recording;
    let whole = recorded.named();
    let metrics: BTreeSet<Metric> = recording.samples.iter().map(|one| one.metric).collect();
    let others = metrics.iter().filter_map(|metric| {
        let rest = recording.samples.iter().filter(|one| one.metric != *metric);
        let less = Recorded {
            recording: Recording {
                samples: rest.collect(),
                ..recording.clone()
            },
            ..recorded.clone()
        };
        let less = less.named();
        (less.is_some() && less != whole).then(|| {
            format!(
                "{} without {}: {less:?}, not {whole:?}",
                recorded.setup,
                metric.name()
            )
        })
    });
    Varied {
        tries: metrics.len(),
        others: others.collect(),
    }
}

/// Makes each number of a recording that conclusions may ask for a tenth larger and smaller: what is then told otherwise.
pub fn moved(recorded: &Recorded) -> Varied {
    let recording = &recorded.recording;
    let reduced = outcomes(recording);
    let named = |outcomes| limiter_of_outcomes(recording, outcomes);
    let whole = named(reduced.clone());
    let responses: BTreeSet<&String> = reduced
        .iter()
        .flat_map(|one| one.responses.keys())
        .collect();
    let tries = responses
        .iter()
        .flat_map(|name| TENTHS.map(|times| (*name, times)));
    let others = tries.clone().filter_map(|(name, times)| {
        let mut moved = reduced.clone();
        let values = moved
            .iter_mut()
            .filter_map(|one| one.responses.get_mut(name));
        values.for_each(|response| response.value *= times);
        let moved = named(moved);
        (moved != whole).then(|| {
            format!(
                "{}: {name} × {times:.2}: {moved:?}, not {whole:?}",
                recorded.setup
            )
        })
    });
    let others = others.collect();
    Varied {
        tries: tries.count(),
        others,
    }
}
