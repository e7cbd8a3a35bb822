//! A parameter has one verdict, whichever door it comes in by.

use clap::Parser;
use linerate_model::experiment::Level;
use linerate_model::manner::{Named, Sizes, Transport};
use linerate_model::parameter::{PARAMETERS, parameter_of};
use linerate_model::workload::check_flow;
use linerate_plan::read_experiment;

use super::*;
use crate::args::{Cli, Command};

/// Parameters as files and flags write them, the values in range and beyond it; the last is what
/// there has to be beside one.
const GIVEN: &[(&str, &str, &str, &str)] = &[
    ("connections", "4", "-P 4", ""),
    ("connections", "30000", "-P 30000", ""),
    ("direction", "\"from-server\"", "-R", ""),
    ("socket_buffer", "\"64K\"", "-w 64K", ""),
    ("socket_buffer", "3", "-w 3", ""),
    ("message_bytes", "1000", "-l 1000", ""),
    ("message_bytes", "0", "-l 0", ""),
    ("payload_bytes", "64", "-r 64", ""),
    ("request_bytes", "64", "-r 64,1", ""),
    ("response_bytes", "64", "-r 1,64", ""),
    ("request_writes", "2", "--request-writes 2", ""),
    ("request_writes", "17", "--request-writes 17", ""),
    ("nagle", "false", "-N", ""),
    ("nagle", "true", "--nagle", ""),
    ("delayed_ack", "false", "--quick-ack", ""),
    ("congestion", "\"reno\"", "-C reno", ""),
    ("mss_bytes", "1000", "-M 1000", ""),
    ("mss_bytes", "1", "-M 1", ""),
    ("send", "\"vmsplice\"", "-Z=vmsplice", ""),
    ("send", "\"msg_zerocopy\"", "-Z=msg", ""),
    ("receive", "\"discard\"", "--rx discard", ""),
    ("receive", "\"discard\"", "--skip-rx-copy", ""),
    ("wait", "\"epoll\"", "--io epoll", ""),
    ("wait", "\"uring\"", "--io uring", ""),
    ("wait", "\"spin\"", "--busy-poll", ""),
    ("wait", "\"xdp\"", "--io xdp", ""),
    ("batch", "2", "--batch 2", ""),
    ("batch", "2000", "--batch 2000", ""),
    ("segments", "4", "--gso 4", ""),
    ("segments", "200", "--gso 200", ""),
    ("in_flight", "4", "--in-flight 4", ""),
    ("in_flight", "0", "--in-flight 0", ""),
    ("in_flight", "1", "--in-flight 1", ""),
    ("requests_per_s", "100", "--rate 100", ""),
    ("rate", "\"1M\"", "-b 1M", ""),
    ("rate", "3", "-b 3", ""),
    ("cpus", "1", "--cpus 1", ""),
    ("cpus", "2000", "--cpus 2000", ""),
    ("burst", "4", "-b 1M/4", "rate"),
    ("burst", "2000", "-b 1M/2000", "rate"),
    ("think", "\"5ms\"", "--think 5ms", ""),
    (
        "sizes",
        "{ kind = \"uniform\", low = 16, high = 64 }",
        "--size-mix uniform:16-64",
        "",
    ),
    ("bytes_max", "\"1M\"", "-n 1M", ""),
    ("receive_low_water", "\"4K\"", "--rcvlowat 4K", ""),
    ("gro", "true", "--gro", ""),
    ("cork", "true", "--cork", ""),
    ("pacing", "\"1M\"", "--fq-rate 1M", ""),
    ("pacing", "1", "--fq-rate 1", ""),
    ("busy_poll_us", "50", "--busy-poll-us 50", ""),
    ("busy_poll_us", "5000", "--busy-poll-us 5000", ""),
    ("tos", "16", "-S 16", ""),
    ("tos", "256", "-S 256", ""),
];

/// Sizes that fit a datagram and can be split, unless the case says them.
fn sizes_beside(kind: Kind, key: &str) -> Option<(&'static str, &'static str)> {
    let is_size = key == "sizes" || key.ends_with("_bytes") && key != "mss_bytes";
    match kind {
        _ if is_size => None,
        Kind::Stream => Some(("message_bytes", "-l 1000")),
        Kind::Rr | Kind::Crr => Some(("payload_bytes", "-r 1000")),
        Kind::Idle => None,
    }
}

fn by_file(kind: Kind, transport: Transport, keys: &[(&str, &str)]) -> Result<(), String> {
    let keys: String = keys
        .iter()
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    let text = format!(
        "format = 1\nname = \"x\"\ntitle = \"X\"\nquestion = \"What?\"\n\
         design = {{ kind = \"full\", replicates = 1 }}\n\
         timing = {{ settle = \"0s\", warm_up = \"0s\", measure = \"1s\", drain = \"0s\" }}\n\
         [workload]\nkind = \"{}\"\ntransport = \"{}\"\n{keys}",
        kind.word(),
        transport.word()
    );
    let told = |error| format!("{:#}", anyhow::Error::new(error));
    read_experiment(&text, "x.toml").map(|_| ()).map_err(told)
}

fn by_flag(kind: Kind, transport: Transport, flags: &str) -> Result<(), String> {
    let kind = match kind {
        Kind::Stream => String::new(),
        other => format!("--{}", other.word()),
    };
    let transport = match transport {
        Transport::Tcp => String::new(),
        other => format!("--{}", other.word()),
    };
    let line = format!("linerate run host {kind} {transport} {flags}");
    let cli = Cli::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())?;
    let Command::Run(args) = cli.command else {
        return Err("it is no run".to_owned());
    };
    workload(&args)
        .map(|_| ())
        .map_err(|failure| failure.to_string())
}

fn by_engine(kind: Kind, transport: Transport, keys: &[(&str, &str)]) -> Result<(), String> {
    let mut workload = Workload::of(kind);
    workload.manner.transport = transport;
    for (key, value) in keys {
        let parameter = parameter_of(key).expect("a parameter");
        if !parameter.kinds.contains(&kind) {
            return Err(format!("{key} has no place in it"));
        }
        if *key == "sizes" {
            workload.manner.sizes = Some(Sizes::Uniform {
                low: Bytes(16),
                high: Bytes(64),
            });
            if let Some((_, message_bytes)) = workload.traffic.stream_mut() {
                *message_bytes = DATAGRAM_BYTES_DEFAULT;
            }
            continue;
        }
        let level: Level = parameter.parse(value.trim_matches('"'))?;
        let bad = || format!("{key} cannot be {value}");
        parameter.write(&level, &mut workload).ok_or_else(bad)?;
    }
    let told = |error: WorkloadError| error.to_string();
    check_flow(&workload.traffic, &workload.options, &workload.manner).map_err(told)?;
    workload.check().map_err(told)
}

#[test]
fn files_flags_and_hosts_have_one_verdict() {
    let (mut taken, mut refused) = (0, 0);
    for &(key, value, flags, beside) in GIVEN {
        for &(_, kind) in Kind::NAMES {
            for &transport in Transport::ALL {
                let sizes = sizes_beside(kind, key);
                let mut keys: Vec<_> = sizes.iter().map(|(key, _)| (*key, "1000")).collect();
                keys.extend((!beside.is_empty()).then_some((beside, "\"1M\"")));
                keys.push((key, value));
                let flags = format!("{} {flags}", sizes.map_or("", |(_, flag)| flag));
                let verdicts = [
                    by_file(kind, transport, &keys),
                    by_flag(kind, transport, &flags),
                    by_engine(kind, transport, &keys),
                ];
                let count = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
                assert!(
                    count == 0 || count == verdicts.len(),
                    "{key} = {value}, {kind:?} over {transport:?}: {verdicts:#?}"
                );
                taken += usize::from(count > 0);
                refused += usize::from(count == 0);
            }
        }
    }
    assert!(taken > 150 && refused > 500, "{taken} {refused}");
}

#[test]
fn what_the_catalogue_refuses_is_told_in_words_of_flags() {
    let check = |flags: &str, expected: &str| {
        let told = by_flag(Kind::Stream, Transport::Tcp, flags).expect_err("refused");
        assert!(told.starts_with(expected), "{flags}: {told}");
    };
    check(
        "--rr --rate 10 --think 1ms",
        "--rate sends requests at scheduled times and --think after responses",
    );
    check(
        "--rr --size-mix uniform:64-1K --request-writes 2",
        "--size-mix may make requests shorter than --request-writes can split",
    );
    check(
        "-u --size-mix uniform:64-1K --gso 64",
        "--gso cuts a buffer into datagrams of one size, and --size-mix makes many",
    );
    check("-u --gso 64", "--gso 64 of 1448 B is 92672 B");
    check(
        "--rr --batch 4",
        "--batch 4 sends requests that are in flight",
    );
    check("-u --io xdp -P 2", "--io xdp uses one queue of the device");
    check(
        "-u --io xdp --gso 4 -l 100",
        "--io xdp makes each frame a datagram",
    );
    check("-u --io xdp --fq-rate 1M", "--fq-rate paces sockets");
    check(
        "--rr -u --batch 4 --in-flight 4",
        "each request over --udp (-u)",
    );
    check("-m -Z=msg", "--zerocopy=msg (-Z)");
    check(
        "-u --rx discard --gro",
        "--rx discard takes the first bytes",
    );
    check("-l 64M --batch 2", "the messages of one send call");
    check(
        "--rr -r 4 --request-writes 2 --batch 2 --in-flight 2",
        "--batch joins requests",
    );
}

#[test]
fn requests_at_a_rate_have_nagle_off_unless_it_is_asked_for() {
    let nagle = |flags: &str| {
        let line = format!("linerate run host {flags}");
        let cli = Cli::try_parse_from(line.split_whitespace()).expect("it is a command line");
        let Command::Run(args) = cli.command else {
            panic!("{line} is no run");
        };
        workload(&args).expect("a workload").options.nagle
    };
    for (flags, expected) in [
        ("--rr --rate 100", Some(false)),
        ("--rr --rate 100 -m", Some(false)),
        ("--rr --rate 100,1000", Some(false)),
        ("--rr --rate 100 --nagle", Some(true)),
        ("--rr --rate 100 -u", None),
        ("--rr --in-flight 64", None),
        ("--crr --rate 100", None),
        ("--rr --nagle", Some(true)),
    ] {
        assert_eq!(nagle(flags), expected, "{flags}");
    }
}

/// What is proposed instead of a flag must not be refused for the same traffic.
#[test]
fn what_is_proposed_instead_is_possible() {
    let next = |flags: &str| {
        let line = format!("linerate run h {flags}");
        let cli = Cli::try_parse_from(line.split_whitespace()).expect("it is a command line");
        let Command::Run(args) = cli.command else {
            panic!("{line} is no run");
        };
        let failure = workload(&args).expect_err("it is refused");
        failure.next.unwrap_or_default()
    };
    for (flags, expected) in [
        ("--idle --rate 4", "leave out --rate"),
        ("--idle -b 4M", "leave out --bitrate (-b)"),
        ("--idle -l 1K", "leave out --length (-l)"),
        ("--rr -u --gso 4", "leave out --gso"),
        ("--idle --batch 4", "leave out --batch"),
    ] {
        assert_eq!(next(flags), expected, "{flags}");
    }
    for (flags, word) in [
        ("--crr --batch 4", "with -P"),
        ("--rr -b 4M", "with --rate"),
        ("--rate 4", "with -b"),
        ("--gso 4", "--udp (-u)"),
        ("--rr --batch 4", "add --in-flight 4"),
        ("--rr --request-writes 2", "-r 2"),
    ] {
        let said = next(flags);
        assert!(said.contains(word), "{flags}: {said}");
    }
}

#[test]
fn every_parameter_is_walked() {
    // Those of a run are its own, of the links a lab's, and the transport is walked itself; steps are for files.
    let others = ["clients", "link_loss", "steps", "transport"];
    for parameter in PARAMETERS.iter().filter(|parameter| parameter.is_key()) {
        let key = parameter.key;
        let is_walked = GIVEN.iter().any(|given| given.0 == key);
        assert!(is_walked || others.contains(&key), "{key}");
        let is_typed = !parameter.flags.is_empty();
        assert!(
            is_typed || [&others[..], &["payload_bytes"]].concat().contains(&key),
            "{key}"
        );
    }
}
