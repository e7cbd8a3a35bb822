//! Which flags go together.
//!
//! A flag that would do nothing is refused rather than passed over: who types it believes that it
//! does something. Each refusal names the flag, what it is for, and what to do instead.

use anyhow::anyhow;
use linerate_model::manner::Transport;

use super::Kind;
use super::Kind::{Crr, Idle, Rr, Stream};
use crate::args::{IoChoice, RunArgs};
use crate::exit::{CmdResult, Failure};

const TCP: &[Transport] = &[Transport::Tcp, Transport::Mptcp];
const UDP: &[Transport] = &[Transport::Udp];
const STREAMS: &[Transport] = &[Transport::Tcp, Transport::Mptcp, Transport::Unix];
const NETWORK: &[Transport] = &[Transport::Tcp, Transport::Mptcp, Transport::Udp];
const ANY: &[Transport] = &[
    Transport::Tcp,
    Transport::Mptcp,
    Transport::Unix,
    Transport::Udp,
];
const ALL: &[Kind] = &[Stream, Rr, Crr, Idle];

/// A flag and what it is for.
struct Rule {
    given: bool,
    flag: &'static str,
    kinds: &'static [Kind],
    transports: &'static [Transport],
    /// What to do instead, where there is something.
    instead: Option<&'static str>,
}

fn rule(
    given: bool,
    flag: &'static str,
    kinds: &'static [Kind],
    transports: &'static [Transport],
    instead: Option<&'static str>,
) -> Rule {
    Rule {
        given,
        flag,
        kinds,
        transports,
        instead,
    }
}

fn rules(args: &RunArgs) -> Vec<Rule> {
    let (traffic, rate, calls, socket) = (&args.traffic, &args.rate, &args.calls, &args.socket);
    let requests = Some("give requests a second with --rate");
    let places = Some("make more connections at the same time with -P");
    let exchange = Some("ask for an exchange with --rr or --crr");
    let datagrams = Some("ask for datagrams with --udp (-u)");
    let length = Some("give sizes of request and response with -r 64,1K");
    vec![
        rule(
            traffic.udp,
            "--udp (-u)",
            &[Stream, Rr],
            ANY,
            Some("measure connections over TCP"),
        ),
        rule(traffic.reverse, "--reverse (-R)", &[Stream], ANY, None),
        rule(traffic.bidir, "--bidir", &[Stream], ANY, None),
        rule(
            traffic.length.is_some(),
            "--length (-l)",
            &[Stream],
            ANY,
            length,
        ),
        rule(
            traffic.sizes.is_some(),
            "--sizes (-r)",
            &[Rr, Crr],
            ANY,
            exchange,
        ),
        rule(
            traffic.size_mix.is_some(),
            "--size-mix",
            &[Stream, Rr],
            ANY,
            None,
        ),
        rule(
            traffic.request_writes != 1,
            "--request-writes",
            &[Rr],
            STREAMS,
            Some("ask for an exchange over TCP with --rr"),
        ),
        rule(
            rate.bitrate.is_some(),
            "--bitrate (-b)",
            &[Stream],
            ANY,
            requests,
        ),
        rule(
            rate.fq_rate.is_some(),
            "--fq-rate",
            ALL,
            TCP,
            Some("give a rate with -b"),
        ),
        rule(rate.bytes.is_some(), "--bytes (-n)", &[Stream], ANY, None),
        rule(
            rate.blockcount.is_some(),
            "--blockcount (-k)",
            &[Stream],
            ANY,
            None,
        ),
        rule(rate.in_flight.is_some(), "--in-flight", &[Rr], ANY, places),
        rule(
            rate.rate.is_some(),
            "--rate",
            &[Rr, Crr],
            ANY,
            Some("give bits a second with -b"),
        ),
        rule(rate.think.is_some(), "--think", &[Rr, Crr], ANY, None),
        rule(
            calls.zerocopy.is_some(),
            "--zerocopy (-Z)",
            &[Stream],
            STREAMS,
            None,
        ),
        rule(calls.rx.is_some(), "--rx", &[Stream], ANY, None),
        rule(calls.skip_rx_copy, "--skip-rx-copy", &[Stream], ANY, None),
        rule(
            calls.batch.is_some_and(|batch| batch != 1),
            "--batch",
            &[Stream],
            ANY,
            Some("have several requests under way with --in-flight"),
        ),
        rule(calls.gso != 1, "--gso", &[Stream], UDP, datagrams),
        rule(calls.gro, "--gro", &[Stream], UDP, datagrams),
        rule(
            calls.io == Some(IoChoice::Uring),
            "--io uring",
            &[Rr, Crr],
            STREAMS,
            Some("let linerate choose with --io auto"),
        ),
        rule(
            calls.busy_poll,
            "--busy-poll",
            &[Stream, Rr, Crr],
            ANY,
            None,
        ),
        rule(
            socket.congestion.is_some(),
            "--congestion (-C)",
            ALL,
            TCP,
            None,
        ),
        rule(socket.set_mss.is_some(), "--set-mss (-M)", ALL, TCP, None),
        rule(socket.no_delay, "--no-delay (-N)", ALL, TCP, None),
        rule(socket.cork, "--cork", ALL, TCP, None),
        rule(socket.quick_ack, "--quick-ack", ALL, TCP, None),
        rule(
            socket.rcvlowat.is_some(),
            "--rcvlowat",
            &[Stream],
            TCP,
            None,
        ),
        rule(socket.tos.is_some(), "--tos (-S)", ALL, NETWORK, None),
        rule(socket.dscp.is_some(), "--dscp", ALL, NETWORK, None),
    ]
}

/// Refuses a flag that does nothing for the traffic or the transport, and two that contradict.
pub(super) fn check(args: &RunArgs, kind: Kind, transport: Transport) -> CmdResult<()> {
    for rule in rules(args).into_iter().filter(|rule| rule.given) {
        let wrong = if !rule.kinds.contains(&kind) {
            let kinds: Vec<&str> = rule.kinds.iter().map(|kind| kind_words(*kind)).collect();
            Some((kinds.join(" and "), asked_words(args, kind)))
        } else if !rule.transports.contains(&transport) {
            let names: Vec<&str> = rule
                .transports
                .iter()
                .map(|one| transport_words(*one))
                .collect();
            Some((names.join(" and "), transport_flag(transport)))
        } else {
            None
        };
        if let Some((for_what, with)) = wrong {
            let flag = rule.flag;
            let error = anyhow!("{flag} is for {for_what}, and does nothing with {with}");
            let instead = rule
                .instead
                .map_or(String::new(), |instead| format!(", or {instead}"));
            return Err(Failure::usage(error).next(format!("leave out {flag}{instead}")));
        }
    }
    contradictions(args)
}

fn contradictions(args: &RunArgs) -> CmdResult<()> {
    let (traffic, rate) = (&args.traffic, &args.rate);
    let pairs = [
        (
            traffic.reverse && traffic.bidir,
            "--reverse (-R) is one way and --bidir both",
            "leave out one of them",
        ),
        (
            traffic.connect && traffic.sizes.is_some(),
            "--connect sends nothing, so that --sizes (-r) has no meaning",
            "leave out --sizes, or ask for an exchange with --crr",
        ),
        (
            rate.rate.is_some() && rate.think.is_some(),
            "--rate begins requests by the clock and --think after responses",
            "leave out one of them",
        ),
        (
            traffic.size_mix.is_some() && (traffic.length.is_some() || traffic.sizes.is_some()),
            "--size-mix says the sizes that --length (-l) and --sizes (-r) would",
            "leave out one of them",
        ),
        (
            traffic.size_mix.is_some() && traffic.request_writes != 1,
            "--size-mix may make requests shorter than --request-writes can split",
            "leave out one of them",
        ),
        (
            args.calls.gso != 1 && traffic.size_mix.is_some(),
            "--gso cuts a buffer into datagrams of one size, and --size-mix makes many",
            "leave out one of them, or send several a call with --batch",
        ),
        (
            rate.blockcount.is_some() && traffic.size_mix.is_some(),
            "--blockcount (-k) counts messages of one size, and --size-mix makes many",
            "give a volume with --bytes (-n)",
        ),
    ];
    for (holds, error, next) in pairs {
        if holds {
            return Err(Failure::usage(anyhow!(error)).next(next));
        }
    }
    Ok(())
}

fn kind_words(kind: Kind) -> &'static str {
    match kind {
        Stream => "streams",
        Rr => "--rr",
        Crr => "--crr",
        Idle => "--idle",
    }
}

fn asked_words(args: &RunArgs, kind: Kind) -> &'static str {
    match kind {
        Stream => "a stream",
        Crr if args.traffic.connect => "--connect",
        other => kind_words(other),
    }
}

fn transport_words(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Mptcp => "MPTCP",
        Transport::Unix => "--unix",
        Transport::Udp => "--udp (-u)",
    }
}

fn transport_flag(transport: Transport) -> &'static str {
    transport_words(transport)
}
