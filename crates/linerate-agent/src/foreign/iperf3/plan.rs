//! What is asked for as flows of the engine, and what is refused.
//!
//! What has no meaning here is ignored, as iperf3's own servers ignore it: the flow label, the
//! pacing timer (the engine paces by deadlines), repeating payload (ours always repeats), and the
//! ways of sending that a receiver is told of. Multipath TCP needs nothing: the listener takes it.
//! What goes on in fragments may do so, whatever `dont_fragment` says: of datagrams that fit the path
//! the kernel forbids it anyway.

use linerate_compat::iperf3::{Code, Parameters, Protocol};
use linerate_engine::FlowConfig;
use linerate_model::manner::{
    DATAGRAM_BYTES_MAX, Manner, ReceiveBy, SEGMENTS_MAX, SendBy, Transport, WaitBy,
};
use linerate_model::sample::End;
use linerate_model::unit::Bytes;
use linerate_model::workload::{
    Direction, FLOW_RATE_BPS, FlowOptions, Part, SOCKET_BUFFER_BYTES_MAX, Traffic,
};
use linerate_model::{BitsPerSec, FlowId};

use crate::api::LimitsInfo;

/// A refusal, as the client is told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) code: Code,
    pub(super) reason: String,
}

/// Refuses what cannot be done here and what the agent's limits forbid.
///
/// A test that says neither time nor rate is taken, and ended when it has passed a limit.
pub(super) fn check(parameters: &Parameters, limits: &LimitsInfo) -> Result<(), Refused> {
    let refuse = |code, reason: String| Err(Refused { code, reason });
    if parameters.protocol == Protocol::Sctp {
        return refuse(Code::NO_SCTP, "SCTP is not supported".to_owned());
    }
    let streams = parameters.streams();
    if let Some(most) = limits.flows.filter(|most| streams > *most as usize) {
        let reason = format!("{streams} streams, but this agent allows {most}");
        return refuse(Code::STREAMS, reason);
    }
    let asked_s = u64::from(parameters.omit_s) + u64::from(parameters.time_s);
    if let Some(most) = limits.trial.filter(|most| asked_s > most.0 / 1_000_000_000) {
        let reason = format!("a test of {asked_s} s, but this agent allows {most}");
        return refuse(Code::DURATION_ABOVE_MAXIMUM, reason);
    }
    let asked_bps = parameters.bits_per_second.map(|rate| rate * streams as u64);
    match (asked_bps, limits.rate) {
        (Some(asked), Some(most)) if asked as f64 > most.0 => {
            let asked = BitsPerSec(asked as f64);
            let reason = format!("{asked} in all, but this agent allows {most} (--limit-rate)");
            refuse(Code::TOTAL_RATE, reason)
        }
        _ => Ok(()),
    }
}

/// Returns the flow of the stream at place `index`; `rate` is the agent's limit for all of them.
pub(super) fn flow(parameters: &Parameters, index: usize, rate: Option<BitsPerSec>) -> FlowConfig {
    let sends = parameters.server_sends(index);
    let udp = parameters.protocol == Protocol::Udp;
    let rate = if sends {
        rate_bps(parameters, rate)
    } else {
        None
    };
    FlowConfig {
        flow: FlowId(index as u32),
        end: End::Server,
        part: if sends { Part::Sender } else { Part::Receiver },
        traffic: Traffic::Stream {
            direction: if sends {
                Direction::FromServer
            } else {
                Direction::ToServer
            },
            message_bytes: Bytes(parameters.block_bytes.into()),
        },
        options: options(parameters),
        manner: Manner {
            transport: if udp { Transport::Udp } else { Transport::Tcp },
            send: match parameters.zerocopy {
                Some(_) if sends && !udp => SendBy::Sendfile,
                _ => SendBy::Copy,
            },
            receive: if parameters.skip_rx_copy && !sends && !udp {
                ReceiveBy::Discard
            } else {
                ReceiveBy::Copy
            },
            rate_bps: rate,
            burst: rate.and(parameters.burst_blocks).unwrap_or(1).max(1),
            bytes_max: sends.then(|| bytes_max(parameters)).flatten(),
            segments: if udp && sends {
                segments(parameters)
            } else {
                1
            },
            gro: udp && !sends && parameters.gso.is_some_and(|gso| gso.gro > 0),
            short_numbers: udp && !parameters.counters_64bit,
            // The client's rate is not this end's, but whoever asks for one asks when single datagrams come.
            wait: if udp && !sends && parameters.bits_per_second.is_some() {
                WaitBy::Epoll
            } else {
                WaitBy::Auto
            },
            ..Manner::default()
        },
    }
}

/// Returns the payload after which a stream on which the server sends ends: its share of the bytes or
/// blocks of its direction, in whole blocks, since a client waits for the rest of one.
///
/// 1. A client ends the test when it has them. Since 3.16 it looks for that only once an interval,
///    and counts on the server to stop by itself; older ones look all the time.
/// 2. Of datagrams some may be lost, which a client would wait for.
/// 3. What is omitted is not part of them, and the client alone knows when it has omitted enough.
fn bytes_max(parameters: &Parameters) -> Option<Bytes> {
    let looks_seldom = minor_version(parameters).is_some_and(|minor| minor >= 16);
    if !looks_seldom || parameters.protocol == Protocol::Udp || parameters.omit_s > 0 {
        return None;
    }
    let block_bytes = u64::from(parameters.block_bytes).max(1);
    let in_blocks = |bytes: u64| bytes.div_ceil(block_bytes);
    let blocks = parameters.bytes.map(in_blocks).or(parameters.blocks)?;
    let share = blocks.div_ceil(parameters.parallel.max(1).into());
    Some(Bytes(share.saturating_mul(block_bytes)))
}

/// Returns the 22 of a client of iperf3 3.22.
fn minor_version(parameters: &Parameters) -> Option<u32> {
    let rest = parameters.client_version.as_deref()?.strip_prefix("3.")?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// Returns the datagrams that the kernel cuts one buffer into (`--gsro`), as many as the client's own
/// buffer has.
fn segments(parameters: &Parameters) -> u32 {
    let asked = parameters.gso.filter(|gso| gso.gso > 0);
    let buffer_bytes = asked.map_or(0, |gso| gso.gso_bf_size.min(DATAGRAM_BYTES_MAX));
    let segments = buffer_bytes / u64::from(parameters.block_bytes.max(1));
    segments.clamp(1, SEGMENTS_MAX.into()) as u32
}

/// Returns the rate of one stream: what is asked for, or its share of the limit if that is less.
///
/// That of `--fq-rate` is the kernel's to keep, but for MPTCP, where it refuses (`mptcp_setsockopt` of
/// net/mptcp/sockopt.c): there it is the sender's.
fn rate_bps(parameters: &Parameters, limit: Option<BitsPerSec>) -> Option<u64> {
    let share = limit.map(|limit| (limit.0 / parameters.streams() as f64) as u64);
    let of_sender = parameters.fq_bits_per_second.filter(|_| parameters.mptcp);
    let asked = parameters.bits_per_second.into_iter().chain(of_sender);
    let rate = asked.chain(share).min();
    rate.map(possible)
}

/// The rates that a flow of ours can be asked for; nothing is slower or faster than these in fact.
fn possible(bits_per_s: u64) -> u64 {
    bits_per_s.clamp(*FLOW_RATE_BPS.start(), *FLOW_RATE_BPS.end())
}

fn options(parameters: &Parameters) -> FlowOptions {
    // The kernel gives more than the least that ours can ask for anyway.
    let window = |bytes: u32| Bytes(u64::from(bytes).clamp(1024, SOCKET_BUFFER_BYTES_MAX.0));
    let common = FlowOptions {
        socket_buffer: parameters.window_bytes.map(window),
        pacing_bps: parameters
            .fq_bits_per_second
            .filter(|_| !parameters.mptcp)
            .map(possible),
        tos: parameters.tos,
        ..FlowOptions::default()
    };
    if parameters.protocol == Protocol::Udp {
        return common;
    }
    FlowOptions {
        nagle: parameters.nodelay.then_some(false),
        congestion: parameters.congestion.clone(),
        mss_bytes: parameters.mss_bytes,
        ..common
    }
}

#[cfg(test)]
mod tests {
    use linerate_compat::iperf3::{self, Gso};
    use linerate_model::Nanos;
    use linerate_model::manner::{Manner, datagrams_gather};
    use linerate_model::workload::check_flow;

    use super::*;

    fn parameters(change: impl FnOnce(&mut Parameters)) -> Parameters {
        let mut parameters = Parameters::of(Protocol::Tcp);
        change(&mut parameters);
        parameters
    }

    #[test]
    fn what_the_limits_forbid() {
        let limits = LimitsInfo {
            flows: Some(4),
            trial: Some(Nanos::from_s(20)),
            rate: Some(BitsPerSec(1e9)),
            ..LimitsInfo::default()
        };
        let check = |change: fn(&mut Parameters), expected: Option<i32>| {
            let refused = check(&parameters(change), &limits).err();
            assert_eq!(refused.map(|refused| refused.code.0), expected);
        };
        check(|_| (), None);
        check(|own| own.parallel = 5, Some(6));
        check(|own| own.parallel = 4, None);
        check(
            |own| {
                own.parallel = 3;
                own.direction = iperf3::Direction::Both;
            },
            Some(6),
        );
        check(|own| own.time_s = 21, Some(37));
        check(
            |own| {
                own.time_s = 20;
                own.omit_s = 1;
            },
            Some(37),
        );
        check(|own| own.bits_per_second = Some(1_000_000_001), Some(27));
        check(
            |own| {
                own.bits_per_second = Some(500_000_000);
                own.parallel = 2;
            },
            None,
        );
        check(|own| own.protocol = Protocol::Sctp, Some(18));
    }

    /// What iperf3 takes is within what a flow of ours can be asked for.
    #[test]
    fn extremes_of_iperf3_make_flows() {
        let check = |change: fn(&mut Parameters)| {
            let options = options(&parameters(change));
            let traffic = Traffic::Idle;
            let told = check_flow(&traffic, &options, &Manner::default());
            assert_eq!(told, Ok(()), "{options:?}");
        };
        check(|own| own.window_bytes = Some(1));
        check(|own| own.window_bytes = Some(u32::MAX));
        check(|own| own.fq_bits_per_second = Some(1));
        check(|own| own.fq_bits_per_second = Some(u64::MAX));
        let fastest = parameters(|own| own.bits_per_second = Some(u64::MAX));
        assert_eq!(rate_bps(&fastest, None), Some(1 << 50));
    }

    #[test]
    fn a_rate_that_the_kernel_does_not_keep_is_the_senders() {
        let check = |mptcp, of_sender, of_kernel| {
            let asked = parameters(|own| {
                own.direction = iperf3::Direction::ToClient;
                own.fq_bits_per_second = Some(1000);
                own.mptcp = mptcp;
            });
            let flow = flow(&asked, 0, None);
            let rates = (flow.manner.rate_bps, flow.options.pacing_bps);
            assert_eq!(rates, (of_sender, of_kernel));
        };
        check(false, None, Some(1000));
        check(true, Some(1000), None);
    }

    #[test]
    fn both_directions_have_flows_of_their_own() {
        let both = parameters(|own| {
            own.direction = iperf3::Direction::Both;
            own.bits_per_second = Some(1000);
            own.burst_blocks = Some(7);
            own.zerocopy = Some(1);
            own.nodelay = true;
        });
        let (first, second) = (flow(&both, 0, None), flow(&both, 1, None));
        assert_eq!((first.part, second.part), (Part::Receiver, Part::Sender));
        assert_eq!(first.manner.rate_bps, None, "the client paces itself");
        assert_eq!(second.manner.rate_bps, Some(1000));
        assert_eq!((first.manner.burst, second.manner.burst), (1, 7));
        assert_eq!(second.manner.send, SendBy::Sendfile);
        assert_eq!(second.options.nagle, Some(false));
    }

    #[test]
    fn small_datagrams_gather_only_where_the_client_asks_for_no_rate() {
        let check = |bits_per_second: Option<u64>, expected: bool| {
            let asked = parameters(|own| {
                own.protocol = Protocol::Udp;
                own.direction = iperf3::Direction::ToServer;
                own.block_bytes = 160;
                own.bits_per_second = bits_per_second;
            });
            let flow = flow(&asked, 0, None);
            assert_eq!(flow.part, Part::Receiver);
            let gather = datagrams_gather(&flow.traffic, &flow.options, &flow.manner);
            assert_eq!(gather, expected, "{bits_per_second:?}");
        };
        check(Some(1_000_000), false);
        check(None, true);
    }

    #[test]
    fn senders_stop_after_their_share() {
        let check = |expected: Option<u64>, change: fn(&mut Parameters)| {
            let asked = parameters(|own| {
                own.direction = iperf3::Direction::Both;
                own.parallel = 3;
                own.block_bytes = 100;
                own.client_version = Some("3.22+".to_owned());
                change(own);
            });
            let of = |index| flow(&asked, index, None).manner.bytes_max;
            assert_eq!(of(2), None, "the client stops by itself");
            assert_eq!(of(3), expected.map(Bytes));
        };
        check(None, |_| ());
        check(Some(400), |own| own.bytes = Some(1000));
        check(Some(500), |own| own.bytes = Some(1201));
        check(Some(400), |own| own.blocks = Some(10));
        check(Some(u64::MAX), |own| own.blocks = Some(u64::MAX));
        check(None, |own| {
            own.bytes = Some(1000);
            own.omit_s = 1;
        });
        check(None, |own| {
            own.bytes = Some(1000);
            own.protocol = Protocol::Udp;
        });
        check(None, |own| {
            own.bytes = Some(1000);
            own.client_version = Some("3.12".to_owned());
        });
    }

    #[test]
    fn datagrams_are_cut_and_put_together_as_asked() {
        let check = |block_bytes: u32, buffer_bytes: u64, expected: u32| {
            let asked = parameters(|own| {
                own.protocol = Protocol::Udp;
                own.direction = iperf3::Direction::Both;
                own.block_bytes = block_bytes;
                own.gso = Some(Gso {
                    gso: 1,
                    gso_dg_size: block_bytes.into(),
                    gso_bf_size: buffer_bytes,
                    gro: 1,
                    gro_bf_size: 65_507,
                });
            });
            let (receiver, sender) = (flow(&asked, 0, None), flow(&asked, 1, None));
            assert_eq!((receiver.manner.segments, receiver.manner.gro), (1, true));
            assert_eq!(
                (sender.manner.segments, sender.manner.gro),
                (expected, false)
            );
        };
        // As 3.22 asks.
        check(64, 8192, 128);
        check(1460, 64_240, 44);
        check(32_768, 32_768, 1);
        // As nobody should.
        check(16, u64::MAX, 128);
        check(65_507, u64::MAX, 1);
        check(1460, 0, 1);
    }

    #[test]
    fn senders_share_the_limit() {
        let two = parameters(|own| {
            own.parallel = 2;
            own.direction = iperf3::Direction::ToClient;
        });
        let limit = Some(BitsPerSec(1e6));
        assert_eq!(flow(&two, 1, limit).manner.rate_bps, Some(500_000));
    }
}
