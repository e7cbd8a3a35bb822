//! Which flags go together.
//!
//! A flag that would do nothing is refused rather than passed over: who types it believes that it
//! does something. Each refusal names the flag, what it is for, and what to do instead. What a parameter
//! goes with is said by the catalogue ([`linerate_model::parameter`]), here only by which flag it is given.

use anyhow::anyhow;
use linerate_model::manner::Transport;
use linerate_model::parameter::parameter_of;
use linerate_model::workload::Kind::{self, Crr, Idle, Rr, Stream};

use crate::args::{IoChoice, RunArgs};
use crate::exit::{CmdResult, Failure};

/// What datagrams carry: they have no connections to make or keep.
const UDP_KINDS: &[Kind] = &[Stream, Rr];

/// A flag and the parameter that it gives.
struct Rule {
    given: bool,
    flag: &'static str,
    /// The parameter's name in files; the catalogue knows what it goes with.
    key: &'static str,
    /// What to do instead, where there is something.
    instead: Option<&'static str>,
}

fn rule(given: bool, flag: &'static str, key: &'static str, instead: Option<&'static str>) -> Rule {
    Rule {
        given,
        flag,
        key,
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
        rule(traffic.reverse, "--reverse (-R)", "direction", None),
        rule(traffic.bidir, "--bidir", "direction", None),
        rule(
            traffic.length.is_some(),
            "--length (-l)",
            "message_bytes",
            length,
        ),
        rule(
            traffic.sizes.is_some(),
            "--sizes (-r)",
            "request_bytes",
            exchange,
        ),
        rule(traffic.size_mix.is_some(), "--size-mix", "sizes", None),
        rule(
            traffic.request_writes != 1,
            "--request-writes",
            "request_writes",
            Some("ask for an exchange over TCP with --rr"),
        ),
        rule(rate.bitrate.is_some(), "--bitrate (-b)", "rate", requests),
        rule(
            rate.fq_rate.is_some(),
            "--fq-rate",
            "pacing",
            Some("give a rate with -b"),
        ),
        rule(rate.bytes.is_some(), "--bytes (-n)", "bytes_max", None),
        rule(
            rate.blockcount.is_some(),
            "--blockcount (-k)",
            "bytes_max",
            None,
        ),
        rule(rate.in_flight.is_some(), "--in-flight", "in_flight", places),
        rule(
            rate.rate.is_some(),
            "--rate",
            "requests_per_s",
            Some("give bits a second with -b"),
        ),
        rule(rate.think.is_some(), "--think", "think", None),
        rule(calls.zerocopy.is_some(), "--zerocopy (-Z)", "send", None),
        rule(calls.rx.is_some(), "--rx", "receive", None),
        rule(calls.skip_rx_copy, "--skip-rx-copy", "receive", None),
        rule(
            calls.batch.is_some_and(|batch| batch != 1),
            "--batch",
            "batch",
            Some("have several requests under way with --in-flight"),
        ),
        rule(calls.gso != 1, "--gso", "segments", datagrams),
        rule(calls.gro, "--gro", "gro", datagrams),
        rule(
            calls.io == Some(IoChoice::Uring),
            "--io uring",
            "wait = uring",
            Some("let linerate choose with --io auto"),
        ),
        rule(calls.busy_poll, "--busy-poll", "wait = spin", None),
        rule(
            socket.congestion.is_some(),
            "--congestion (-C)",
            "congestion",
            None,
        ),
        rule(
            socket.set_mss.is_some(),
            "--set-mss (-M)",
            "mss_bytes",
            None,
        ),
        rule(socket.no_delay, "--no-delay (-N)", "nagle", None),
        rule(socket.cork, "--cork", "cork", None),
        rule(socket.quick_ack, "--quick-ack", "delayed_ack", None),
        rule(
            socket.rcvlowat.is_some(),
            "--rcvlowat",
            "receive_low_water",
            None,
        ),
        rule(
            socket.busy_poll_us.is_some(),
            "--busy-poll-us",
            "busy_poll_us",
            None,
        ),
        rule(socket.tos.is_some(), "--tos (-S)", "tos", None),
        rule(socket.dscp.is_some(), "--dscp", "tos", None),
    ]
}

/// Refuses a flag that does nothing for the traffic or the transport, and two that contradict.
pub(super) fn check(args: &RunArgs, kind: Kind, transport: Transport) -> CmdResult<()> {
    let words = |kinds: &[Kind]| {
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind_words(*kind)).collect();
        kinds.join(" and ")
    };
    if transport == Transport::Udp && !UDP_KINDS.contains(&kind) {
        let (kinds, with) = (words(UDP_KINDS), asked_words(args, kind));
        let error = anyhow!("--udp (-u) is for {kinds}, and does nothing with {with}");
        let next = "leave out --udp (-u), or measure connections over TCP";
        return Err(Failure::usage(error).next(next));
    }
    for rule in rules(args).into_iter().filter(|rule| rule.given) {
        let parameter = parameter_of(rule.key)
            .ok_or_else(|| anyhow!("the catalogue has no parameter {}", rule.key))?;
        let wrong = if !parameter.kinds.contains(&kind) {
            Some((words(parameter.kinds), asked_words(args, kind)))
        } else if !parameter.transports.contains(&transport) {
            let names = parameter.transports.iter().map(|one| transport_words(*one));
            let names: Vec<&str> = names.collect();
            Some((names.join(" and "), transport_words(transport)))
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
