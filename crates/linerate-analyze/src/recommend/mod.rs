//! Findings → what to do. One file per family of findings; a finding that asks for nothing has no
//! recommendation.

/// From plateaus and windows: socket buffers.
mod buffers;
/// From the link, loss, our own workers.
mod path;
/// From Nagle and delayed ACK.
mod small_writes;

use linerate_model::finding::{Finding, Recommendation};
use linerate_model::manner::Transport;
use linerate_model::unit::Bytes;
use linerate_model::workload::{Direction, Traffic, Workload};

use crate::dataset::Dataset;

/// Returns what to do about `findings`, in their order.
pub(crate) fn recommendations(dataset: &Dataset<'_>, findings: &[Finding]) -> Vec<Recommendation> {
    type Rule = fn(&Dataset<'_>, &Finding) -> Option<Recommendation>;
    const RULES: &[Rule] = &[small_writes::recommend, buffers::recommend, path::recommend];
    let mut made: Vec<Recommendation> = Vec::new();
    for finding in findings {
        let recommendation = RULES.iter().find_map(|rule| rule(dataset, finding));
        // The same advice for several experiments is given once, for the first.
        let is_new = |new: &Recommendation| made.iter().all(|known| known.action != new.action);
        made.extend(recommendation.filter(is_new));
    }
    made
}

/// Returns the command that measures `workload` once more, with `options` added.
fn command(workload: &Workload, options: &str) -> String {
    let mut words = vec!["linerate run HOST".to_owned()];
    match &workload.traffic {
        Traffic::Stream { direction, .. } => match direction {
            Direction::ToServer => {}
            Direction::FromServer => words.push("-R".to_owned()),
            Direction::Both => words.push("--bidir".to_owned()),
        },
        Traffic::Rr {
            request_bytes,
            response_bytes,
            request_writes,
        } => {
            words.push(format!("--rr -r {},{}", request_bytes.0, response_bytes.0));
            if *request_writes > 1 {
                words.push(format!("--request-writes {request_writes}"));
            }
        }
        Traffic::Crr {
            request_bytes,
            response_bytes,
        } => words.push(format!("--crr -r {},{}", request_bytes.0, response_bytes.0)),
        Traffic::Idle => words.push("--idle".to_owned()),
    }
    match workload.manner.transport {
        Transport::Tcp => {}
        Transport::Mptcp => words.push("-m".to_owned()),
        Transport::Unix => words.push("--unix".to_owned()),
        Transport::Udp => words.push("-u".to_owned()),
    }
    if let Some(rate) = workload.manner.rate_bps {
        words.push(match workload.manner.burst {
            0 | 1 => format!("-b {rate}"),
            burst => format!("-b {rate}/{burst}"),
        });
    }
    if let Some(rate) = workload.manner.requests_per_s {
        words.push(format!("--rate {rate}"));
    }
    if workload.connections > 1 {
        words.push(format!("-P {}", workload.connections));
    }
    if !options.is_empty() {
        words.push(options.to_owned());
    }
    words.join(" ")
}

/// Returns a size as the `-w` flag takes it: whole KiB as `64K`.
fn size_flag(bytes: Bytes) -> String {
    match bytes.0 {
        bytes if bytes > 0 && bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        bytes if bytes > 0 && bytes % 1024 == 0 => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    }
}
