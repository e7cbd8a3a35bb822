//! From an assignment to what iperf3's server is told.

use linerate_compat::iperf3::{Direction, Gso, Parameters, Protocol, auth};
use linerate_model::experiment::Timing;
use linerate_model::manner::{DATAGRAM_BYTES_MAX, Manner, ReceiveBy, SendBy, Transport};
use linerate_model::workload::{self as model, Part, Workload};
use linerate_model::{Bytes, Nanos};

use super::Credentials;
use crate::access::now_s;
use crate::api::{Assignment, FlowAssignment};
use crate::foreign::peer::{check_manner, workload_of};

/// Streams each way that iperf3's server takes.
const STREAMS_MAX: u32 = 128;
/// Longest write over TCP that it takes.
const TCP_BLOCK_BYTES_MAX: u64 = 1 << 20;

/// Returns what the server is told of an assignment, and what to know about it; or why that cannot
/// be asked of an iperf3 server.
pub(super) fn parameters(
    assignment: &Assignment,
    timing: &Timing,
    server_output: bool,
) -> Result<(Parameters, Vec<String>), String> {
    let workload = workload_of(assignment)?;
    let parameters = Parameters {
        server_output,
        ..parameters_of(&workload, timing)?
    };
    check(&workload, timing, &parameters)?;
    let notes = notes(&workload, timing, &parameters);
    Ok((parameters, notes))
}

/// Returns a workload in iperf3's words; or why it has none, as the rest of a sentence about iperf3.
pub fn parameters_of(workload: &Workload, timing: &Timing) -> Result<Parameters, String> {
    let Some((direction, message_bytes)) = workload.traffic.stream() else {
        return Err(
            "knows only streams; measure request/response with `linerate serve` there".into(),
        );
    };
    let manner = &workload.manner;
    check_manner(manner)?;
    let protocol = match manner.transport {
        Transport::Udp => Protocol::Udp,
        _ => Protocol::Tcp,
    };
    let direction = match direction {
        model::Direction::ToServer => Direction::ToServer,
        model::Direction::FromServer => Direction::ToClient,
        model::Direction::Both => Direction::Both,
    };
    let each_way = match direction {
        Direction::Both => workload.connections / 2,
        _ => workload.connections,
    };
    let options = &workload.options;
    let small = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    Ok(Parameters {
        direction,
        // A part of a second has no number: intervals tell it.
        omit_s: small(timing.warm_up.0 / Nanos::from_s(1).0),
        time_s: match manner.bytes_max {
            // One limit only: the server reckons with the first that it finds.
            Some(_) => 0,
            None => seconds_up(timing.measure).max(1),
        },
        bytes: manner.bytes_max.map(|bytes| bytes.0 * u64::from(each_way)),
        parallel: each_way,
        block_bytes: small(message_bytes.0),
        mss_bytes: options.mss_bytes,
        nodelay: options.nagle == Some(false),
        mptcp: manner.transport == Transport::Mptcp,
        window_bytes: options.socket_buffer.map(|bytes| small(bytes.0)),
        bits_per_second: manner.rate_bps,
        burst_blocks: (manner.burst > 1).then_some(manner.burst),
        fq_bits_per_second: options.pacing_bps,
        tos: options.tos,
        congestion: options.congestion.clone(),
        counters_64bit: protocol == Protocol::Udp && !manner.short_numbers,
        zerocopy: (manner.send != SendBy::Copy).then_some(1),
        skip_rx_copy: manner.receive == ReceiveBy::Discard,
        gso: gso(manner, small(message_bytes.0)),
        client_version: Some(concat!("linerate ", env!("CARGO_PKG_VERSION")).to_owned()),
        ..Parameters::of(protocol)
    })
}

/// Refuses what has words, but is more than an iperf3 server does.
fn check(workload: &Workload, timing: &Timing, parameters: &Parameters) -> Result<(), String> {
    let (protocol, each_way) = (parameters.protocol, parameters.parallel);
    check_phases(timing, workload.manner.transport)?;
    let block = Bytes(parameters.block_bytes.into());
    if protocol == Protocol::Tcp && block.0 > TCP_BLOCK_BYTES_MAX {
        return Err(format!("takes writes of at most 1 MiB, not {block}"));
    }
    let comes_back = parameters.direction != Direction::ToServer;
    if parameters.bytes.is_some() && protocol == Protocol::Udp && comes_back {
        return Err("sends datagrams until it is stopped; measure them by time".into());
    }
    if each_way > STREAMS_MAX {
        return Err(format!(
            "takes at most {STREAMS_MAX} streams each way, not {each_way}"
        ));
    }
    Ok(())
}

/// Returns what to know about a test.
fn notes(workload: &Workload, timing: &Timing, parameters: &Parameters) -> Vec<String> {
    let (manner, options) = (&workload.manner, &workload.options);
    let mut notes = Vec::new();
    if parameters.omit_s > 0 {
        notes.push(format!("its counts leave out the first {}", timing.warm_up));
    }
    if options.delayed_ack.is_some() || options.cork.is_some() || options.busy_poll_us.is_some() {
        notes.push("TCP_QUICKACK, TCP_CORK and SO_BUSY_POLL were set at this end only".to_owned());
    }
    let server_cuts = manner.segments > 1 && parameters.direction != Direction::ToServer;
    let server_joins = manner.gro && parameters.direction != Direction::ToClient;
    if server_cuts || server_joins {
        notes.push(
            "GSO and GRO were asked of its server, which knows them from iperf3 3.21 on".to_owned(),
        );
    }
    notes
}

/// Returns how the server is asked to send and receive datagrams; nothing for calls of one each.
fn gso(manner: &Manner, datagram_bytes: u32) -> Option<Gso> {
    let cuts = manner.segments > 1;
    (cuts || manner.gro).then(|| Gso {
        gso: cuts.into(),
        gso_dg_size: datagram_bytes.into(),
        gso_bf_size: u64::from(datagram_bytes) * u64::from(manner.segments),
        gro: manner.gro.into(),
        gro_bf_size: DATAGRAM_BYTES_MAX,
    })
}

/// Returns the phases as a test of an iperf3 server has them: whole seconds are left out at the start, and
/// all that comes after counts. Over UDP its clock begins with the greetings, so that traffic follows at once.
pub fn fitting(timing: &Timing, transport: Transport) -> Timing {
    Timing {
        settle: match transport {
            Transport::Udp => Nanos(0),
            _ => timing.settle,
        },
        warm_up: Nanos::from_s(u64::from(seconds_up(timing.warm_up))),
        drain: Nanos(0),
        ..*timing
    }
}

/// Refuses phases that an iperf3 server does not have: its count would be of another time than ours.
fn check_phases(timing: &Timing, transport: Transport) -> Result<(), String> {
    let fitting = fitting(timing, transport);
    if timing.warm_up != fitting.warm_up {
        let (asked, next) = (timing.warm_up, fitting.warm_up);
        return Err(format!(
            "omits whole seconds only: {next} or nothing, not {asked}"
        ));
    }
    if timing.drain != fitting.drain {
        return Err(format!(
            "counts until the traffic ends, so that no drain of {} is possible",
            timing.drain
        ));
    }
    Ok(())
}

fn seconds_up(time: Nanos) -> u32 {
    u32::try_from(time.0.div_ceil(Nanos::from_s(1).0)).unwrap_or(u32::MAX)
}

/// Returns the flows in the order in which iperf3 opens them: those on which the client sends, then
/// the others.
pub(super) fn in_order(flows: &[FlowAssignment]) -> Vec<FlowAssignment> {
    let (sending, receiving): (Vec<FlowAssignment>, Vec<FlowAssignment>) =
        flows.iter().partition(|flow| flow.part == Part::Sender);
    [sending, receiving].concat()
}

/// Returns the token by which the server lets the user in, made now.
pub(super) fn token(credentials: &Credentials) -> Result<String, String> {
    let mut failed = None;
    let mut random = |room: &mut [u8]| failed = getrandom::fill(room).err();
    let token = auth::make_token(
        &credentials.user,
        &credentials.password,
        now_s(),
        &credentials.key,
        credentials.padding,
        &mut random,
    );
    match failed {
        Some(error) => Err(format!("gets no token: no random numbers: {error}")),
        None => token.map_err(|error| format!("gets no token: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::manner::Manner;
    use linerate_model::sample::End;
    use linerate_model::workload::FlowOptions;
    use linerate_model::{FlowId, TrialId};

    use super::*;

    const TIMING: Timing = Timing {
        settle: Nanos::from_ms(20),
        warm_up: Nanos(0),
        measure: Nanos::from_ms(1500),
        drain: Nanos(0),
    };

    fn assignment(direction: model::Direction, parts: &[Part]) -> Assignment {
        let flow = |(at, part): (usize, &Part)| FlowAssignment {
            flow: FlowId(at as u32),
            part: *part,
        };
        Assignment {
            trial: TrialId(1),
            end: End::Server,
            peer: None,
            bind: None,
            server: None,
            cookie: "00112233445566778899aabbccddeeff".into(),
            traffic: model::Traffic::Stream {
                direction,
                message_bytes: Bytes(131_072),
            },
            options: FlowOptions::default(),
            manner: Manner::default(),
            flows: parts.iter().enumerate().map(flow).collect(),
            beside: Vec::new(),
            workers_max: None,
            placement: Default::default(),
            cpus: Vec::new(),
            probes: Default::default(),
            capture_at: None,
            changes: None,
            sample_interval: Nanos::from_ms(100),
            length: Nanos::from_s(10),
            warm_up_more: Nanos(0),
            flow_rate_max: None,
        }
    }

    #[test]
    fn a_server_hears_how_datagrams_are_cut_and_joined() {
        let check = |segments: u32, joins: bool, expected: Option<[u64; 3]>| {
            let manner = Manner {
                segments,
                gro: joins,
                ..Manner::default()
            };
            let asked = gso(&manner, 1000);
            let numbers = asked.map(|asked| [asked.gso, asked.gso_bf_size, asked.gro]);
            assert_eq!(numbers, expected, "{segments} {joins}");
        };
        check(1, false, None);
        check(44, false, Some([1, 44_000, 0]));
        check(1, true, Some([0, 1000, 1]));
        check(44, true, Some([1, 44_000, 1]));
    }

    #[test]
    fn flows_are_opened_in_the_order_of_iperf3() {
        use Part::{Receiver, Sender};
        let both = assignment(
            model::Direction::Both,
            &[Sender, Receiver, Sender, Receiver],
        );
        let order: Vec<u32> = in_order(&both.flows)
            .iter()
            .map(|flow| flow.flow.0)
            .collect();
        assert_eq!(order, [0, 2, 1, 3]);
        let (parameters, _) = parameters(&both, &TIMING, false).unwrap();
        assert_eq!((parameters.parallel, parameters.streams()), (2, 4));
        assert_eq!((parameters.omit_s, parameters.time_s), (0, 2));
    }

    #[test]
    fn whole_seconds_are_omitted_there_too_and_no_others() {
        let one = assignment(model::Direction::ToServer, &[Part::Receiver]);
        let check = |warm_up: Nanos, drain: Nanos, seconds: u32, refusal: Option<&str>| {
            let timing = Timing {
                warm_up,
                drain,
                ..TIMING
            };
            match (parameters(&one, &timing, false), refusal) {
                (Err(why), Some(words)) => assert!(why.contains(words), "{why}"),
                (Ok(_), None) => {}
                (other, _) => panic!("{warm_up} {drain}: {other:?}"),
            }
            let timing = fitting(&timing, Transport::Tcp);
            let (parameters, notes) = parameters(&one, &timing, false).unwrap();
            assert_eq!((parameters.omit_s, parameters.time_s), (seconds, 2));
            assert_eq!(notes.len(), usize::from(seconds > 0), "{notes:?}");
        };
        check(Nanos(0), Nanos(0), 0, None);
        check(Nanos::from_s(2), Nanos(0), 2, None);
        check(
            Nanos::from_ms(600),
            Nanos(0),
            1,
            Some("1 s or nothing, not 600 ms"),
        );
        check(
            Nanos::from_s(1),
            Nanos::from_ms(50),
            1,
            Some("no drain of 50 ms"),
        );
    }

    #[test]
    fn what_iperf3_does_not_know_is_refused() {
        let one = || assignment(model::Direction::ToServer, &[Part::Receiver]);
        let mut large = one();
        large.traffic = model::Traffic::Stream {
            direction: model::Direction::ToServer,
            message_bytes: Bytes(2 << 20),
        };
        let mut unix = one();
        unix.manner.transport = Transport::Unix;
        let mut rr = one();
        rr.traffic = model::Traffic::Rr {
            request_bytes: Bytes(1),
            response_bytes: Bytes(1),
            request_writes: 1,
        };
        let many = assignment(model::Direction::ToServer, &[Part::Receiver; 129]);
        for (asked, words) in [
            (large, "at most 1 MiB"),
            (unix, "no Unix"),
            (rr, "only streams"),
            (many, "at most 128"),
        ] {
            let why = parameters(&asked, &TIMING, false).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn what_is_too_much_for_a_server_has_words_all_the_same() {
        let mut workload = Workload::stream(model::Direction::FromServer);
        workload.connections = 200;
        workload.traffic = model::Traffic::Stream {
            direction: model::Direction::FromServer,
            message_bytes: Bytes(2 << 20),
        };
        let timing = Timing {
            warm_up: Nanos::from_ms(200),
            measure: Nanos::from_s(1),
            drain: Nanos::from_ms(50),
            ..TIMING
        };
        let asked = parameters_of(&workload, &timing).unwrap();
        assert_eq!((asked.parallel, asked.block_bytes), (200, 2 << 20));
        assert_eq!((asked.omit_s, asked.time_s), (0, 1));
        assert!(check(&workload, &fitting(&timing, Transport::Tcp), &asked).is_err());
    }
}
