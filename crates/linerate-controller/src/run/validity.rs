//! Whether a trial may be averaged.

use std::collections::BTreeMap;

use linerate_model::flag::TrialFlag;
use linerate_model::manner::Transport;
use linerate_model::reason::{Edge, Reason};
use linerate_model::run::{Admission, FlowOutcome, FlowRecord};
use linerate_model::samples::Samples;
use linerate_model::setting::{Settings, name};
use linerate_model::shortfall::{Shortfall, Unread};
use linerate_model::workload::{Part, Workload};
use linerate_model::{Bytes, FlowId, HostName, Nanos};

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

/// Returns what to say of flows that did less than was due, of the `volume` of each among it.
pub(super) fn fell_short(
    host: &HostName,
    flows: &[FlowOutcome],
    volume: Option<Bytes>,
) -> Vec<TrialFlag> {
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
    let volumes = flows.iter().filter_map(|flow| {
        let (due, sent) = (volume?, Bytes(flow.bytes_sent));
        let is_short = flow.part == Part::Sender && sent.0 < due.0;
        is_short.then_some(Shortfall::Volume { due, sent })
    });
    let kinds = [requests.collect(), connections.collect(), volumes.collect()];
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

/// What senders sent and receivers did not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nothing.
    Nothing,
    /// What may still be on its way: sockets hold as much.
    Underway(Unread),
    /// More than that, or of a volume, whose end was waited for.
    Lost(Unread),
}

/// Times its usable size that a socket buffer may hold: the kernel's own value is twice that, and a host that is short of
/// memory halves a send buffer below what lies in it (sk_stream_moderate_sndbuf in include/net/sock.h).
const BUFFER_HOLDS: u64 = 4;

/// Compares what both ends of each stream of a transport that keeps order counted in all phases.
///
/// 1. A receiver that read the end of its stream has read all of it.
/// 2. One that waited for it in vain lacks what the buffers of both ends hold at the most. Where nobody says how
///    much that is, it may be on its way.
/// 3. Nothing is on its way of a volume: its receiver waits for the whole.
/// 4. Ends that ended early say why themselves.
pub(super) fn missing<'f>(
    workload: &Workload,
    flows: impl Iterator<Item = &'f FlowRecord> + Clone,
) -> Missing {
    if !workload.traffic.is_stream() || workload.manner.transport == Transport::Udp {
        return Missing::Nothing;
    }
    let receivers: BTreeMap<FlowId, &FlowRecord> = flows
        .clone()
        .filter(|flow| flow.part == Part::Receiver)
        .map(|flow| (flow.flow, flow))
        .collect();
    let (mut streams, mut bytes, mut is_lost) = (0, 0, false);
    let senders = flows.filter(|flow| flow.part == Part::Sender);
    let of = senders.clone().count();
    for sender in senders {
        let Some(receiver) = receivers.get(&sender.flow) else {
            continue;
        };
        let lacks = sender.bytes_sent.saturating_sub(receiver.bytes_received);
        if lacks == 0 || sender.ended_early.is_some() || receiver.ended_early.is_some() {
            continue;
        }
        streams += 1;
        bytes += lacks;
        let held = buffers_bytes(sender, receiver);
        is_lost |= workload.manner.bytes_max.is_some() || held.is_some_and(|held| lacks > held);
    }
    let unread = Unread {
        streams,
        of,
        bytes: Bytes(bytes),
    };
    match (streams, is_lost) {
        (0, _) => Missing::Nothing,
        (_, false) => Missing::Underway(unread),
        (_, true) => Missing::Lost(unread),
    }
}

/// Returns how much the buffers between both ends hold at the most, if both say it.
fn buffers_bytes(sender: &FlowRecord, receiver: &FlowRecord) -> Option<u64> {
    let usable = |flow: &FlowRecord, name| {
        let setting = flow.settings.named(name)?;
        setting.effective.as_ref()?.parse::<u64>().ok()
    };
    let both = usable(sender, name::SO_SNDBUF)?.checked_add(usable(receiver, name::SO_RCVBUF)?)?;
    both.checked_mul(BUFFER_HOLDS)
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
            None => Some(Reason::NoReading { host, edge }),
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
    use linerate_model::TrialId;
    use linerate_model::metric::Metric;
    use linerate_model::run::Incoming;
    use linerate_model::sample::{End, Subject, TrialSample};
    use linerate_model::shortfall::RequestCount;
    use linerate_model::workload::{Direction, Setting};

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
            requests: Some(RequestCount { due: 100, sent }),
            ..outcome(0, Part::Requester)
        };
        let told = fell_short(&"client".into(), &[flow(100), flow(90), flow(80)], None);
        let expected = TrialFlag::FellShort {
            host: "client".into(),
            first: Shortfall::Requests(RequestCount { due: 100, sent: 90 }),
            others: 1,
        };
        assert_eq!(told, [expected]);
        assert!(fell_short(&"client".into(), &[flow(100)], None).is_empty());
    }

    #[test]
    fn a_volume_that_was_not_sent_whole_is_said_of_its_sender() {
        let flow = |part, bytes_sent| FlowOutcome {
            bytes_sent,
            ..outcome(0, part)
        };
        let short = |flow: FlowOutcome| fell_short(&"a".into(), &[flow], Some(Bytes(1000)));
        assert!(short(flow(Part::Sender, 1000)).is_empty());
        assert!(short(flow(Part::Receiver, 0)).is_empty());
        let told = short(flow(Part::Sender, 999));
        let expected = TrialFlag::FellShort {
            host: "a".into(),
            first: Shortfall::Volume {
                due: Bytes(1000),
                sent: Bytes(999),
            },
            others: 0,
        };
        assert_eq!(told, [expected]);
    }

    /// Both ends of a stream, by what they counted and how much their buffers hold.
    fn stream(flow: u32, sent: u64, received: u64, buffer: Option<u64>) -> [FlowRecord; 2] {
        let record = |host: &str, outcome: FlowOutcome| FlowRecord {
            trial: TrialId(1),
            host: host.into(),
            outcome,
        };
        let setting = |name: &str| Setting {
            effective: buffer.map(|bytes| bytes.to_string()),
            ..Setting::granted(name, None, None)
        };
        let settings: Settings = vec![setting(name::SO_SNDBUF), setting(name::SO_RCVBUF)].into();
        let sender = FlowOutcome {
            bytes_sent: sent,
            settings: settings.clone(),
            ..outcome(flow, Part::Sender)
        };
        let receiver = FlowOutcome {
            bytes_received: received,
            settings,
            end: End::Server,
            ..outcome(flow, Part::Receiver)
        };
        [record("client", sender), record("server", receiver)]
    }

    #[test]
    fn what_was_sent_was_read_or_is_on_its_way() {
        let timed = Workload::stream(Direction::ToServer);
        let mut by_volume = timed.clone();
        by_volume.manner.bytes_max = Some(Bytes(2_295_870));
        let unread = |bytes| Unread {
            streams: 1,
            of: 2,
            bytes: Bytes(bytes),
        };
        let with = |workload: &Workload, one: [FlowRecord; 2]| {
            missing(workload, [one, stream(7, 500, 500, None)].concat().iter())
        };
        let whole = stream(0, 1000, 1000, Some(1000));
        assert_eq!(with(&timed, whole.clone()), Missing::Nothing);
        assert_eq!(with(&by_volume, whole), Missing::Nothing);
        // Eight times what each of both buffers is told to hold, and a byte more.
        let held = stream(0, 9000, 1000, Some(1000));
        assert_eq!(with(&timed, held.clone()), Missing::Underway(unread(8000)));
        assert_eq!(with(&by_volume, held), Missing::Lost(unread(8000)));
        let more = stream(0, 9001, 1000, Some(1000));
        assert_eq!(with(&timed, more), Missing::Lost(unread(8001)));
        let unknown = stream(0, 2_295_870, 38_874, None);
        let lacks = unread(2_256_996);
        assert_eq!(with(&timed, unknown.clone()), Missing::Underway(lacks));
        assert_eq!(with(&by_volume, unknown), Missing::Lost(lacks));
        let mut told = stream(0, 9001, 1000, Some(1000));
        told[1].outcome.ended_early = Some("the path has gone".to_owned());
        assert_eq!(with(&timed, told), Missing::Nothing);
        let mut datagrams = timed.clone();
        datagrams.manner.transport = Transport::Udp;
        assert_eq!(
            with(&datagrams, stream(0, 9001, 1000, Some(1000))),
            Missing::Nothing
        );
    }

    fn outcome(flow: u32, part: Part) -> FlowOutcome {
        FlowOutcome {
            flow: FlowId(flow),
            end: End::Client,
            part,
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
            requests: None,
            connections: None,
            zero_copy: None,
            ended_early: None,
        }
    }
}
