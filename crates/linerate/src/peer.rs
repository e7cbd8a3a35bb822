//! Servers of other programs: from the flags to hosts of a run.

use std::path::Path;

use anyhow::{Context, anyhow};
use linerate_agent::foreign::iperf3_peer::{
    Credentials, Iperf3Options, Iperf3Peer, Padding, PublicKey,
};
use linerate_controller::HostSpec;
use linerate_model::Nanos;
use linerate_model::experiment::Timing;
use linerate_model::manner::Transport;
use linerate_model::run::HostPart;
use linerate_model::workload::{Traffic, Workload};

use crate::args::RunArgs;
use crate::exit::{CmdResult, Failure};
use crate::hosts;

/// The variable that carries the password, as for iperf3 itself.
const PASSWORD_VARIABLE: &str = "IPERF3_PASSWORD";
/// Longest time between looks: a server that gives up is heard of by then, and what this host
/// measures after it is no measurement.
pub const LOOK_MAX: Nanos = Nanos::from_ms(100);

/// Quiet time before the traffic.
const SETTLE: Nanos = Nanos::from_ms(100);

/// Returns the hosts of a run with its server, of whatever program; and the handle on a foreign one.
pub fn specs(args: &RunArgs) -> CmdResult<(Vec<HostSpec>, Option<Iperf3Peer>)> {
    let host = args.host.as_deref().unwrap_or_default();
    if args.peer.peer.is_none() {
        return Ok((hosts::specs(host, &args.fleet)?, None));
    }
    let address = hosts::resolve(host, &args.fleet)?;
    let peer = Iperf3Peer::new(Iperf3Options {
        address,
        bind: args.fleet.bind,
        credentials: credentials(args)?,
        server_output: args.peer.get_server_output,
    });
    let client = hosts::this_host(address, args.fleet.bind, |agent| peer.client(agent));
    let server = HostSpec::new("server", HostPart::Server, peer.server(), address);
    Ok((vec![server, client], Some(peer)))
}

fn credentials(args: &RunArgs) -> CmdResult<Option<Credentials>> {
    let (Some(user), Some(file)) = (&args.peer.username, &args.peer.rsa_public_key_path) else {
        return Ok(None);
    };
    let password = match std::env::var(PASSWORD_VARIABLE) {
        Ok(password) => password,
        Err(_) => ask_password(user)?,
    };
    Ok(Some(Credentials {
        user: user.clone(),
        password,
        key: public_key(file)?,
        padding: match args.peer.use_pkcs1_padding {
            true => Padding::Pkcs1,
            false => Padding::Oaep,
        },
    }))
}

fn public_key(file: &Path) -> CmdResult<PublicKey> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the public key {}", file.display()))
        .map_err(Failure::usage)?;
    PublicKey::from_pem(&text)
        .with_context(|| format!("{} is no public key", file.display()))
        .map_err(|error| {
            Failure::usage(error)
                .next("make one with `openssl rsa -in private.pem -pubout -out public.pem`")
        })
}

fn ask_password(user: &str) -> CmdResult<String> {
    let terminal = console::Term::stderr();
    let none = || {
        let error = anyhow!("no password for {user}");
        Failure::usage(error).next(format!("set {PASSWORD_VARIABLE}, or run it in a terminal"))
    };
    if !terminal.is_term() {
        return Err(none());
    }
    let asked = terminal.write_str(&format!("Password of {user}: "));
    asked
        .and_then(|()| terminal.read_secure_line())
        .map_err(|_| none())
}

/// Returns the phases as iperf3 has them: what is counted ends with the sending, and nothing is
/// left out at the start unless that is asked for.
pub fn timing(args: &RunArgs, timing: Timing) -> Timing {
    if args.peer.peer.is_none() {
        return timing;
    }
    Timing {
        warm_up: match args.time.omit {
            Some(_) => timing.warm_up,
            None => Nanos(0),
        },
        drain: Nanos(0),
        // Over TCP the server begins with the traffic; over UDP it waits for it.
        settle: match args.traffic.udp {
            true => timing.settle,
            false => SETTLE,
        },
        ..timing
    }
}

/// Refuses what can be asked of agents only, before anyone is asked.
pub fn check(args: &RunArgs, workload: &Workload) -> CmdResult<()> {
    if args.peer.peer.is_none() {
        return Ok(());
    }
    let unknown = match (&workload.traffic, workload.manner.transport) {
        (_, Transport::Unix) => Some("no Unix-domain sockets"),
        (Traffic::Stream { .. }, _) => None,
        _ => Some("only streams, no request/response"),
    };
    if let Some(unknown) = unknown {
        let error = anyhow!("iperf3 knows {unknown}");
        return Err(Failure::usage(error).next("run `linerate serve` there, or leave --peer away"));
    }
    Ok(())
}
