//! Which flags go together.
//!
//! A flag that would do nothing is refused rather than passed over: who types it believes that it
//! does something. Each refusal names the flag, what it is for, and what to do instead, all of which the
//! catalogue says ([`linerate_model::parameter`]). The catalogue also judges what excludes each
//! other, for which the words of flags are here; only what no workload shows, as `--reverse` with `--bidir`, is
//! judged here.

use anyhow::anyhow;
use linerate_model::Bytes;
use linerate_model::manner::{DATAGRAM_BYTES_MAX, Named, Transport};
use linerate_model::workload::{Kind, Workload, WorkloadError};

use crate::args::{RunArgs, Typed};
use crate::exit::{CmdResult, Failure};

/// Refuses a flag that does nothing for the traffic or the transport, and two that contradict.
pub(super) fn check(args: &RunArgs, kind: Kind, transport: Transport) -> CmdResult<()> {
    let words = |kinds: &[Kind]| {
        let kinds: Vec<String> = kinds.iter().map(|kind| kind_words(*kind)).collect();
        kinds.join(" and ")
    };
    let asked = asked_words(args, kind);
    let carries = |kind: &Kind| kind.about().transports.contains(&transport);
    if !carries(&kind) {
        let kinds = words(
            &Kind::ALL
                .iter()
                .copied()
                .filter(carries)
                .collect::<Vec<_>>(),
        );
        let name = match transport {
            Transport::Mptcp => "--mptcp (-m)",
            other => transport_words(other),
        };
        let error = anyhow!("{name} is for {kinds}, and does nothing with {asked}");
        let next = format!("leave out {name}, or measure connections over TCP");
        return Err(Failure::usage(error).next(next));
    }
    let plain = Workload::of(kind);
    let is_more = |typed: &Typed| {
        let level = typed.levels.first();
        level.is_none() || level != typed.parameter.read(&plain).as_ref()
    };
    for typed in &args.given.0 {
        let (parameter, name) = (typed.parameter, typed.flag.name);
        let (belongs, with) = if !parameter.kinds.contains(&kind) {
            (words(parameter.kinds), asked.as_str())
        } else if !parameter.transports.contains(&transport) && is_more(typed) {
            let names = parameter.transports.iter().map(|one| transport_words(*one));
            let names: Vec<&str> = names.collect();
            (names.join(" and "), transport_words(transport))
        } else {
            continue;
        };
        let error = anyhow!("{name} is for {belongs}, and does nothing with {with}");
        let instead = typed.flag.instead;
        let instead = instead.filter(|(kinds, _)| kinds.contains(&kind));
        let instead = instead.map(|(_, instead)| format!(", or {instead}"));
        let next = format!("leave out {name}{}", instead.unwrap_or_default());
        return Err(Failure::usage(error).next(next));
    }
    contradictions(args)
}

fn contradictions(args: &RunArgs) -> CmdResult<()> {
    let traffic = &args.traffic;
    let pairs = [
        (
            traffic.reverse && traffic.bidir,
            "--reverse (-R) is one way and --bidir both",
            "leave out one of them",
        ),
        (
            traffic.connect && traffic.sizes.is_some(),
            "--connect sends nothing, so --sizes (-r) has no meaning",
            "leave out --sizes, or ask for an exchange with --crr",
        ),
        (
            traffic.size_mix.is_some() && (traffic.length.is_some() || traffic.sizes.is_some()),
            "--size-mix says the sizes that --length (-l) and --sizes (-r) would",
            "leave out one of them",
        ),
        (
            args.rate.blockcount.is_some() && traffic.size_mix.is_some(),
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

/// Returns what the catalogue says of parameters that exclude each other in words of flags, where its own
/// are those of files.
pub(super) fn in_flags(error: &WorkloadError, workload: &Workload) -> Option<Failure> {
    let WorkloadError::Contradiction { keys, .. } = error else {
        return None;
    };
    let manner = &workload.manner;
    let (error, next) = match keys {
        ["requests_per_s", "think"] => (
            "--rate sends requests at scheduled times and --think after responses",
            "leave out one of them",
        ),
        ["sizes", "request_writes"] => (
            "--size-mix may make requests shorter than --request-writes can split",
            "leave out one of them",
        ),
        ["sizes", "segments"] => (
            "--gso cuts a buffer into datagrams of one size, and --size-mix makes many",
            "leave out one of them, or send several per call with --batch",
        ),
        ["segments", "message_bytes"] => return too_long(workload),
        ["batch", "in_flight"] => {
            let (batch, in_flight) = (manner.batch, manner.in_flight);
            let error = anyhow!(
                "--batch {batch} sends requests that are in flight, and --in-flight is {in_flight}"
            );
            let next = format!("add --in-flight {batch} or more, or leave out --batch");
            return Some(Failure::usage(error).next(next));
        }
        ["batch", "request_writes"] => (
            "--batch joins requests in one send call and --request-writes splits one over several",
            "leave out one of them",
        ),
        ["batch", "transport"] => (
            "each request over --udp (-u) takes one send call, so --batch joins none",
            "leave out --batch",
        ),
        ["batch", "message_bytes", "sizes"] => (
            "the messages of one send call, --batch times the largest, are more than 64 MiB",
            "lower --batch, or send shorter messages",
        ),
        ["send", "transport"] => (
            "--zerocopy=msg (-Z) is MSG_ZEROCOPY, which works with TCP only",
            "use -Z=vmsplice, or leave out -Z",
        ),
        ["receive", "gro"] => (
            "--rx discard takes the first bytes of each datagram only, and --gro needs them all",
            "leave out one of them",
        ),
        ["wait", "connections"] => (
            "--io xdp uses one queue of the device, which serves one flow",
            "leave out --parallel (-P) and --bidir, or --io xdp",
        ),
        ["wait", "segments", "sizes"] => (
            "--io xdp makes each frame a datagram, all of one size",
            "leave out --gso and --size-mix, or --io xdp",
        ),
        ["wait", "pacing"] => (
            "--fq-rate paces sockets, which --io xdp bypasses",
            "give a rate with -b instead of --fq-rate",
        ),
        _ => return None,
    };
    Some(Failure::usage(anyhow!(error)).next(next))
}

/// Returns what is wrong with more payload in one send than a datagram's length can say.
fn too_long(workload: &Workload) -> Option<Failure> {
    let (_, Bytes(size)) = workload.traffic.stream()?;
    let segments = u64::from(workload.manner.segments);
    let error = anyhow!(
        "--gso {segments} of {size} B is {} B, but one send carries at most {DATAGRAM_BYTES_MAX} B",
        segments * size
    );
    Some(Failure::usage(error).next(format!(
        "ask for --gso {}, or shorter datagrams with -l",
        DATAGRAM_BYTES_MAX / size
    )))
}

fn kind_words(kind: Kind) -> String {
    match kind {
        Kind::Stream => "streams".to_owned(),
        other => format!("--{}", other.word()),
    }
}

fn asked_words(args: &RunArgs, kind: Kind) -> String {
    match kind {
        Kind::Stream => "a stream".to_owned(),
        Kind::Crr if args.traffic.connect => "--connect".to_owned(),
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
