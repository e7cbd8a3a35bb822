//! Latency alone and under load, for people.

use linerate_analyze::loaded::{Beside, FullQueue, Latencies, Loaded};
use linerate_model::finding::TrustLevel;
use linerate_model::run::RunDocument;
use linerate_model::unit::Unit;
use linerate_model::workload::Direction;

use super::single::together;
use super::{Look, labelled, labelled_as, line, listed, paragraph, styled};

/// Prints what is going to be measured.
pub fn heading(document: &RunDocument) {
    let Some(trial) = document.plan.trials.first() else {
        return;
    };
    let server = document.server().map_or("?", |host| host.agent.as_str());
    line(&format!(
        "linerate {} → {server}",
        env!("CARGO_PKG_VERSION")
    ));
    paragraph(&format!(
        "latency under load: {} alone, then during bulk to the server, then during bulk from it, {} each",
        trial.workload.traffic.in_words(),
        trial.timing.measure,
    ));
}

/// Prints the result.
pub fn print(loaded: &Loaded) {
    line("");
    let head = format!(
        "{:<14}  {:>9}  {:>9}  {:>9}  {:>11}  {:>13}",
        "", "mean", "p50", "p99", "rate", "bulk"
    );
    line(&styled(&head, Look::Quiet));
    line(&row("idle", &loaded.idle, "–"));
    for beside in &loaded.loaded {
        let bulk = beside.throughput_bps;
        let bulk = bulk.map_or("–".to_owned(), |bps| Unit::BitsPerSecond.display(bps));
        line(&row(way(beside), &beside.latency, &bulk));
    }
    line("");
    let all = std::iter::once(("idle", &loaded.idle));
    let all = all.chain(loaded.loaded.iter().map(|one| (way(one), &one.latency)));
    for (name, latencies) in all {
        if let Some(why) = &latencies.invalid {
            labelled_as("INVALID", &format!("{name}: {why}"), Look::Bad);
        }
    }
    for beside in &loaded.loaded {
        labelled(way(beside), &words(beside));
        for (what, words) in together::lines(&beside.together, None) {
            labelled("", &format!("both together: {what} {words}"));
        }
    }
    let look = match loaded.trust {
        TrustLevel::Good => Look::Good,
        TrustLevel::Limited => Look::Warning,
        TrustLevel::DoNotUse => Look::Bad,
    };
    labelled_as("trust", loaded.trust.title(), look);
    loaded.reasons.iter().for_each(|reason| listed(reason));
    loaded
        .conditions
        .iter()
        .for_each(|one| paragraph(&one.line()));
}

fn way(beside: &Beside) -> &'static str {
    match beside.bulk.traffic.direction() {
        Some(Direction::FromServer) => "bulk from it",
        _ => "bulk to server",
    }
}

fn row(name: &str, latencies: &Latencies, bulk: &str) -> String {
    let ns = |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| Unit::Nanoseconds.display(ns));
    let rate = latencies.transactions_per_s;
    let rate = rate.map_or("–".to_owned(), |rate| Unit::PerSecond.display(rate));
    let (p50, p99) = (ns(latencies.p50_ns), ns(latencies.p99_ns));
    let mean = ns(latencies.mean_ns);
    format!("{name:<14}  {mean:>9}  {p50:>9}  {p99:>9}  {rate:>11}  {bulk:>13}")
}

/// Says how much longer the probe takes, and whose queue it waits in.
fn words(beside: &Beside) -> String {
    if beside.latency.p50_ns.is_none() {
        return "not measured".to_owned();
    }
    let times = |ratio: Option<f64>| {
        ratio.map_or("–".to_owned(), |ratio| {
            format!("×{}", Unit::Ratio.display(ratio))
        })
    };
    let ratios = format!(
        "{} of the idle mean, {} of the median, {} of p99",
        times(beside.ratio_mean),
        times(beside.ratio_p50),
        times(beside.ratio_p99)
    );
    let ns = |ns: f64| Unit::Nanoseconds.display(ns);
    let why = match (beside.fills_queue, beside.waited_ns, beside.bulk_waited_ns) {
        (Some(true), Some(waited), Some(bulk)) => format!(
            "the probe waits {} longer in the median, in the queue that bulk fills: bulk's own TCP sees {} of queue",
            ns(waited),
            ns(bulk)
        ),
        (Some(false), Some(waited), Some(bulk)) => format!(
            "the probe waits {} longer in the median, and bulk's own TCP sees only {} of a queue: where the probe waits is not known",
            ns(waited),
            ns(bulk)
        ),
        (None, Some(waited), Some(_)) if waited > 0.0 => format!(
            "it waits {} longer in the median, which a queue or a busy CPU may take: not decided",
            ns(waited)
        ),
        (_, Some(waited), _) if waited <= 0.0 => "in the median it waits no longer".to_owned(),
        _ => "what it waits for is not known".to_owned(),
    };
    let queue = beside.queue.as_ref().map(FullQueue::words);
    let queue = queue.map_or(String::new(), |words| format!("; {words}"));
    let per_minute = beside.latency.round_trips_per_minute;
    let per_minute = per_minute.map_or(String::new(), |count| {
        format!("; {} round trips per minute", Unit::Count.display(count))
    });
    format!("{ratios}; {why}{queue}{per_minute}")
}
