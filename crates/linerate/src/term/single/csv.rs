//! Rows of values, for spreadsheets and data frames: a row for each interval of each flow and of their sum, then
//! one for the result of each run. What was not read is empty.

use linerate_analyze::live::Interval;
use linerate_analyze::single::SingleTrial;
use linerate_controller::RunEvent;
use linerate_model::manner::Named;
use linerate_model::response::name;
use linerate_model::workload::{Direction, Workload};

use super::{Conclusion, Intervals, Reader};
use crate::term::line;

/// The columns; those of intervals are the keys of `intervals[][]` in JSON.
const CSV_COLUMNS: [&str; 22] = [
    "row",
    "run",
    "valid",
    "flow",
    "direction",
    "begin_s",
    "end_s",
    "bytes",
    "bits_per_second",
    "transactions",
    "transactions_per_second",
    "p50_us",
    "p99_us",
    "max_us",
    "retransmits",
    "retransmits_both",
    "snd_cwnd_bytes",
    "rtt_us",
    "datagrams",
    "lost",
    "jitter_us",
    "limiter",
];

/// Prints the rows.
pub(super) struct Rows {
    intervals: Intervals,
    /// Runs that have begun.
    run: usize,
}

impl Rows {
    pub(super) fn new(intervals: Intervals) -> Self {
        Self { intervals, run: 0 }
    }
}

impl Reader for Rows {
    fn take(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::RunBegan(_) => line(&CSV_COLUMNS.join(",")),
            RunEvent::TrialBegan { .. } => self.run += 1,
            _ => {}
        }
        let run = self.run;
        self.intervals.take(event, |intervals| {
            for interval in intervals.lines {
                line(&of_interval(interval, run).join(","));
            }
        });
    }

    fn conclude(&mut self, conclusion: &Conclusion<'_>) {
        let single = conclusion.single;
        // What limits several runs is found in all of them together.
        let limiter = single.limiter().filter(|_| single.trials.len() == 1);
        let limiter = limiter.map_or(String::new(), |(limiter, _)| limiter.id().replace('-', "_"));
        for (at, trial) in single.trials.iter().enumerate() {
            line(&of_result(trial, &single.workload, at + 1, &limiter).join(","));
        }
    }
}

/// Writes a value; one that was not read is empty.
fn value(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn of_interval(interval: &Interval, run: usize) -> [String; CSV_COLUMNS.len()] {
    let latency = interval.latency.as_ref();
    let direction = interval.direction.map(Named::word);
    [
        "interval".to_owned(),
        run.to_string(),
        String::new(),
        value(interval.flow),
        value(direction),
        interval.begin_s.to_string(),
        interval.end_s.to_string(),
        interval.bytes.to_string(),
        interval.bits_per_second.to_string(),
        value(interval.transactions),
        value(interval.transactions_per_second),
        value(latency.and_then(|latency| latency.p50_us)),
        value(latency.and_then(|latency| latency.p99_us)),
        value(latency.and_then(|latency| latency.max_us)),
        value(interval.retransmits),
        value(interval.retransmits_both),
        value(interval.snd_cwnd_bytes),
        value(interval.rtt_us),
        value(interval.datagrams),
        value(interval.lost),
        value(interval.jitter_us),
        String::new(),
    ]
}

fn of_result(
    trial: &SingleTrial<'_>,
    workload: &Workload,
    run: usize,
    limiter: &str,
) -> [String; CSV_COLUMNS.len()] {
    let response = |response: &str| value(trial.responses.get(response));
    let micros = |response: &str| value(trial.responses.get(response).map(|ns| ns / 1e3));
    let [sent, received] = [name::DATAGRAMS_SENT, name::DATAGRAMS_RECEIVED]
        .map(|response| trial.responses.get(response));
    let direction = match workload.traffic.direction() {
        Some(Direction::Both) | None => None,
        Some(direction) => Some(direction.word()),
    };
    [
        "result".to_owned(),
        run.to_string(),
        trial.valid.to_string(),
        String::new(),
        value(direction),
        "0".to_owned(),
        trial.window_s.to_string(),
        String::new(),
        response(name::THROUGHPUT),
        String::new(),
        value(
            [name::TRANSACTIONS, name::CONNECTIONS]
                .iter()
                .find_map(|rate| trial.responses.get(*rate)),
        ),
        micros(name::RTT_P50),
        micros(name::RTT_P99),
        micros(name::RTT_MAX),
        response(name::RETRANSMITTED),
        response(name::RETRANSMITTED_BOTH),
        String::new(),
        micros(name::TCP_RTT),
        response(name::DATAGRAMS_SENT),
        value(sent.zip(received).map(|(sent, received)| sent - received)),
        micros(name::JITTER),
        limiter.to_owned(),
    ]
}
