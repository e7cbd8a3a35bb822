//! Whether a trial may be averaged.

use linerate_model::flag::TrialFlag;
use linerate_model::reason::{Edge, Reason};
use linerate_model::run::{Admission, FlowOutcome, FlowRecord};
use linerate_model::samples::Samples;
use linerate_model::setting::Settings;
use linerate_model::shortfall::Shortfall;
use linerate_model::{HostName, Nanos};

/// Part of the window by which a host's readings may lie beside its edges.
const EDGE_SHARE_MAX: f64 = 0.1;

/// Returns why the settings that a host granted spoil the trial, if they do.
///
/// A buffer that the kernel capped is not the level that the cell stands for.
pub(super) fn capped(host: &HostName, settings: &Settings) -> Option<Reason> {
    let mut all = settings.into_iter();
    let setting = all.find(|setting| setting.capped_by.is_some())?;
    Some(Reason::Capped {
        host: host.clone(),
        setting: Box::new(setting.clone()),
    })
}

/// Returns what to say of flows that did less than was due.
pub(super) fn fell_short(host: &HostName, flows: &[FlowOutcome]) -> Vec<TrialFlag> {
    let flag = |mut missing: Vec<Shortfall>| {
        let others = missing.len().saturating_sub(1);
        missing.truncate(1);
        Some(TrialFlag::FellShort {
            host: host.clone(),
            first: missing.pop()?,
            others,
        })
    };
    let requests = flows.iter().filter_map(|flow| flow.requests?.shortfall());
    let connections = flows
        .iter()
        .filter_map(|flow| flow.connections.as_ref()?.shortfall());
    let kinds = [requests.collect(), connections.collect()];
    kinds.into_iter().filter_map(flag).collect()
}

/// Returns why the flows spoil the trial, if they do.
pub(super) fn ended_early(flows: &[FlowRecord]) -> Option<Reason> {
    let told = |flow: &FlowRecord| flow.ended_early.clone();
    let (first, words) = flows.iter().find_map(|flow| Some((flow, told(flow)?)))?;
    Some(Reason::EndedEarly {
        ends: flows.iter().filter_map(told).count(),
        of: flows.len(),
        flow: first.flow,
        host: first.host.clone(),
        words,
    })
}

/// Returns why a host's readings do not cover the window, if they do not.
///
/// Rates use the true instants of the readings, so a late one is no error by itself; but then the
/// host's window is not the one that the others measured.
pub(super) fn uncovered(host: &HostName, window: Nanos, samples: &Samples) -> Option<Reason> {
    let late_ns = (window.0 as f64 * EDGE_SHARE_MAX) as i64;
    let edges = [(0, Edge::Begin), (window.0 as i64, Edge::End)];
    edges.into_iter().find_map(|(edge_ns, edge)| {
        let host = host.clone();
        let instants = samples.instants(&host);
        match instants.filter(|at| *at >= edge_ns).min() {
            None => Some(Reason::Unread { host, edge }),
            Some(at) if at - edge_ns > late_ns => Some(Reason::ReadLate {
                host,
                edge,
                late: Nanos((at - edge_ns) as u64),
            }),
            Some(_) => None,
        }
    })
}

/// Returns what to know about a trial in which a host was shared.
pub(super) fn shared(host: &HostName, admission: Admission, runs: u32) -> Option<TrialFlag> {
    (admission == Admission::Shared && runs > 0).then(|| TrialFlag::Shared {
        host: host.clone(),
        runs,
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::metric::Metric;
    use linerate_model::run::Incoming;
    use linerate_model::sample::{End, Subject, TrialSample};
    use linerate_model::setting::name;
    use linerate_model::shortfall::RequestCount;
    use linerate_model::workload::{Part, Setting};
    use linerate_model::{FlowId, TrialId};

    use super::*;

    fn readings(at_ms: &[i64]) -> Samples {
        at_ms
            .iter()
            .map(|at| TrialSample {
                trial: TrialId(1),
                host: "a".into(),
                subject: Subject::Host,
                metric: Metric::SnmpTcpInSegs,
                at_ns: at * 1_000_000,
                value: 1,
            })
            .collect()
    }

    #[test]
    fn windows_must_be_read_at_both_edges() {
        let check = |at_ms: &[i64], words: Option<&str>| {
            let got = uncovered(&"a".into(), Nanos::from_ms(1000), &readings(at_ms));
            match words {
                None => assert_eq!(got, None, "{at_ms:?}"),
                Some(words) => {
                    let got = got.map(|got| got.to_string()).unwrap_or_default();
                    assert!(got.contains(words), "{got}");
                }
            }
        };
        check(&[-100, 1, 500, 1003], None);
        check(&[-100, 150, 1003], Some("start of the window 150 ms late"));
        check(&[0, 999], Some("no reading at the end"));
        check(&[0, 1101], Some("end of the window 101 ms late"));
        check(&[], Some("no reading at the start"));
    }

    #[test]
    fn caps_are_named() {
        let setting = Setting {
            capped_by: Some("net.core.rmem_max = 212992".into()),
            ..Setting::granted(
                name::SO_RCVBUF,
                Some("1048576".into()),
                Some("212992".into()),
            )
        };
        let why = capped(&"server".into(), &vec![setting].into()).unwrap();
        assert!(why.is_lasting());
        let why = why.to_string();
        assert!(
            why.contains("SO_RCVBUF") && why.contains("net.core.rmem_max = 212992"),
            "{why}"
        );
    }

    #[test]
    fn a_loop_that_falls_behind_is_a_result_and_said() {
        let flow = |sent: u64| FlowOutcome {
            flow: FlowId(0),
            end: End::Client,
            part: Part::Requester,
            local: String::new(),
            remote: String::new(),
            cpu: None,
            incoming: Incoming::default(),
            first_payload_ns: None,
            bytes_sent: 0,
            bytes_received: 0,
            counted_ns: None,
            stall_max_ns: None,
            settings: Settings::default(),
            latency: None,
            lateness: None,
            datagrams: None,
            requests: Some(RequestCount { due: 100, sent }),
            connections: None,
            zero_copy: None,
            ended_early: None,
        };
        let told = fell_short(&"client".into(), &[flow(100), flow(90), flow(80)]);
        let expected = TrialFlag::FellShort {
            host: "client".into(),
            first: Shortfall::Requests(RequestCount { due: 100, sent: 90 }),
            others: 1,
        };
        assert_eq!(told, [expected]);
        assert!(fell_short(&"client".into(), &[flow(100)]).is_empty());
    }
}
