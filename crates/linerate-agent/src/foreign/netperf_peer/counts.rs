//! What the server counted, in netperf's words and in ours.

use linerate_compat::netperf::{CpuMethod, OmniResults};
use linerate_model::datagram::Datagrams;
use linerate_model::metric::Metric;
use linerate_model::number::counted;
use linerate_model::run::FlowOutcome;
use linerate_model::sample::{End, Sample, Subject};
use linerate_model::workload::Part;

use crate::foreign::peer::{congestion_in_force, server_end};

/// Returns the server's end of a flow, from what it says and from what the client's end knows of their addresses.
pub(super) fn end_of(client: &FlowOutcome, results: Option<&OmniResults>) -> FlowOutcome {
    let end = server_end(client);
    let Some(results) = results else {
        return FlowOutcome {
            ended_early: Some("the server has no result of it".to_owned()),
            ..end
        };
    };
    let congestion = results.congestion.as_deref().map(congestion_in_force);
    let datagrams = client.datagrams.as_ref().map(|_| {
        Box::new(Datagrams {
            sent: results.send_calls.into(),
            received: results.receive_calls.into(),
            ..Datagrams::default()
        })
    });
    FlowOutcome {
        bytes_sent: results.bytes_sent,
        bytes_received: results.bytes_received,
        settings: congestion.into_iter().collect(),
        datagrams,
        ..end
    }
}

/// Returns the server's counts of datagrams that it received as readings at the edges of what it counted, in a test
/// of which all phases are measured.
pub(super) fn samples(
    client: &FlowOutcome,
    results: &OmniResults,
    (begin_ns, end_ns): (u64, u64),
) -> Vec<Sample> {
    let Some(sent) = client
        .datagrams
        .as_ref()
        .filter(|_| client.part == Part::Sender)
        .map(|datagrams| datagrams.sent)
    else {
        return Vec::new();
    };
    let received = u64::from(results.receive_calls);
    let counts = [
        (Metric::AppBytesReceived, results.bytes_received),
        (Metric::AppDatagramsReceived, received),
        (Metric::AppDatagramsMissing, sent.saturating_sub(received)),
    ];
    let readings = counts.into_iter().flat_map(|(metric, count)| {
        [(begin_ns, 0), (end_ns, count)].map(|(at_ns, count)| Sample {
            metric,
            subject: Subject::Flow(client.flow, End::Server),
            at_ns,
            value: i64::try_from(count).unwrap_or(i64::MAX),
        })
    });
    readings.collect()
}

/// Returns how busy the server says that its host was, in words; absent where it does not say, or no number that can
/// be.
pub(super) fn cpu_note(results: &OmniResults) -> Option<String> {
    let cpu = results.cpu?;
    let method = match cpu.method {
        CpuMethod::ProcStat => "from /proc/stat (method S)".to_owned(),
        CpuMethod::Rusage => "by getrusage of its own process (method R)".to_owned(),
        CpuMethod::Other(number) => format!("by netperf's method number {number}"),
    };
    let is_possible = (0.0..=100.0).contains(&cpu.busy) && results.cpus > 0;
    is_possible.then(|| {
        format!(
            "netperf reports {:.1} % of {} in use on its host during the test, {method}",
            cpu.busy,
            counted(results.cpus, "CPU")
        )
    })
}

#[cfg(test)]
mod tests {
    use linerate_compat::netperf::CpuShares;

    use super::*;

    #[test]
    fn how_busy_the_host_was_is_said_where_that_can_be() {
        let check = |method, busy, cpus, expected: Option<&str>| {
            let results = OmniResults {
                cpus,
                cpu: Some(CpuShares {
                    method,
                    busy,
                    user: 0.0,
                    system: 0.0,
                    io_wait: 0.0,
                    irq: 0.0,
                    soft_irq: 0.0,
                    peak_cpu: 0,
                    peak: 0.0,
                }),
                ..OmniResults::default()
            };
            let note = cpu_note(&results);
            assert_eq!(note.is_some(), expected.is_some(), "{note:?}");
            let words = note.unwrap_or_default();
            assert!(words.contains(expected.unwrap_or("")), "{words}");
        };
        check(
            CpuMethod::ProcStat,
            43.25,
            8,
            Some("43.2 % of 8 CPUs in use"),
        );
        check(CpuMethod::ProcStat, 1.0, 8, Some("method S"));
        check(CpuMethod::Rusage, 100.0, 1, Some("method R"));
        check(CpuMethod::Other(9), 0.0, 1, Some("method number 9"));
        for impossible in [f32::NAN, f32::INFINITY, -1.0, 300.0] {
            check(CpuMethod::ProcStat, impossible, 8, None);
        }
        check(CpuMethod::ProcStat, 1.0, 0, None);
        assert_eq!(cpu_note(&OmniResults::default()), None);
    }
}
