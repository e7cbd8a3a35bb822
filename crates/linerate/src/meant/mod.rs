//! From what was typed to what is meant: plain values, checked.
//!
//! Whatever contradicts itself, or names what cannot be, is refused here, before any other host is
//! asked. What comes after knows no flags.

use anyhow::anyhow;
use linerate_agent::api::PORT_DEFAULT;
use linerate_agent::foreign::iperf3_peer::Padding;
use linerate_model::fleet::{FleetFile, Launch};
use linerate_model::run::Admission;

use crate::args::{FleetArgs, FleetFileArgs, PeerArgs, PeerChoice, TlsArgs};
use crate::exit::{CmdResult, Failure};
use crate::hosts::{Family, ForeignServer, HostsAsked, Judge, Login, TrustAsked};
use crate::shell::quoted;

/// Whether what is printed is for programs.
mod documents;
/// The study, or the experiments of a file.
mod experiments;
/// `linerate explain` of a host.
mod explained;
/// What a result is held against.
mod gate;
/// Groups beside what the flags ask for.
mod groups;
/// The built-in lab.
mod lab;
/// One measurement.
mod measurement;
/// `--prove`.
mod prove;

pub use documents::{asked, printed, replayed};
pub use experiments::{Experiments, experiment, of_fleet, searched, study};
pub use explained::explained;
pub use lab::{LAB_CLIENTS, LabAsked, Links};
pub use measurement::{
    Measurement, check_iperf3_document, check_iperf3_server, form, interval, measurement,
};
pub use prove::PROVE;

/// Returns the hosts that `server` and the flags name.
pub fn hosts(server: Option<&str>, fleet: &FleetArgs, peer: Option<&PeerArgs>) -> HostsAsked {
    let foreign = peer.and_then(foreign);
    let usual = foreign.as_ref().map_or(PORT_DEFAULT, ForeignServer::port);
    HostsAsked {
        server: server.unwrap_or_default().to_owned(),
        clients: fleet.clients.clone(),
        port: fleet.port.unwrap_or(usual),
        token_file: fleet.token_file.clone(),
        trust: trust(&fleet.tls),
        admission: match (fleet.queue, fleet.shared) {
            (true, _) => Admission::Queued,
            (_, true) => Admission::Shared,
            _ => Admission::Exclusive,
        },
        evict: fleet.evict,
        bind: fleet.bind,
        family: match (fleet.ipv4, fleet.ipv6) {
            (true, _) => Some(Family::V4),
            (_, true) => Some(Family::V6),
            _ => None,
        },
        foreign,
    }
}

/// Returns how the hosts of `fleet` are reached: flags say more than its file.
pub fn fleet_hosts(args: &FleetFileArgs, fleet: &FleetFile) -> CmdResult<HostsAsked> {
    let flags = [
        ("--client", !args.hosts.clients.is_empty()),
        ("--bind (-B)", args.hosts.bind.is_some()),
    ];
    check_idle(
        &flags,
        "runs with one server",
        "name hosts and addresses in the fleet file",
    )?;
    let is_launched = fleet.launch != Launch::Agent;
    if is_launched {
        check_of_running(&args.hosts)?;
    }
    let mut asked = hosts(None, &args.hosts, None);
    // Those that are launched take a free one.
    let usual = if is_launched { 0 } else { PORT_DEFAULT };
    asked.port = args.hosts.port.or(fleet.port).unwrap_or(usual);
    asked.token_file = asked.token_file.or_else(|| {
        // It is named from where the fleet file is.
        let beside = args
            .file
            .parent()
            .map(|folder| folder.to_owned())
            .unwrap_or_default();
        fleet.token_file.as_ref().map(|file| beside.join(file))
    });
    Ok(asked)
}

/// Refuses what says how agents are known that are launched, which have a token and a certificate for this time.
fn check_of_running(args: &FleetArgs) -> CmdResult<()> {
    let tls = &args.tls;
    let flags = [
        ("--token-file", args.token_file.is_some()),
        ("--known-agents", tls.known_agents.is_some()),
        ("--fingerprint", !tls.fingerprints.is_empty()),
        ("--accept-new", tls.accept_new),
        ("--tls-ca", tls.tls_ca.is_some()),
        ("--tls-client-cert", tls.tls_client_cert.is_some()),
        ("--plain", tls.plain),
    ];
    check_idle(
        &flags,
        "agents that run already",
        "set `launch = \"agent\"` in the fleet file",
    )
}

fn foreign(peer: &PeerArgs) -> Option<ForeignServer> {
    Some(match peer.peer? {
        PeerChoice::Iperf3 => ForeignServer::Iperf3 {
            login: login(peer),
            server_output: peer.get_server_output,
        },
        PeerChoice::Netperf => ForeignServer::Netperf,
    })
}

/// Returns the command line as it was typed, by which what was measured can be asked for again: in quotes is
/// what a shell needs so.
pub fn typed() -> String {
    let words = std::env::args_os().skip(1);
    words.fold("linerate".to_owned(), |all, word| {
        all + " " + &quoted(&word.to_string_lossy())
    })
}

/// Refuses the first of `flags`, by name and whether it was given, since nothing that was given makes use of
/// it; `rather` is what else to do than to leave it out. Where that conflicts with something else that was
/// given, clap waives what a flag `requires`.
pub fn check_idle(flags: &[(&str, bool)], of: &str, rather: &str) -> CmdResult<()> {
    match flags.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            let error = anyhow!("{flag} is for {of}, and does nothing here");
            Err(Failure::usage(error).next(format!("leave out {flag}, or {rather}")))
        }
    }
}

/// Refuses to take a host back from guests of a program that knows none.
pub fn check_evict(fleet: &FleetArgs, peer: &PeerArgs) -> CmdResult<()> {
    let Some(foreign) = foreign(peer).filter(|_| fleet.evict) else {
        return Ok(());
    };
    let program = foreign.program();
    let error = anyhow!(
        "--evict ends runs at `linerate serve`, and {program}'s servers know nothing of it"
    );
    Err(Failure::usage(error)
        .next("leave --evict away, or leave --peer away where `linerate serve` runs"))
}

/// Refuses flags of servers of other programs where none is meant.
fn check_peer(args: &PeerArgs) -> CmdResult<()> {
    let flags = [
        ("--username", args.username.is_some()),
        ("--rsa-public-key-path", args.rsa_public_key_path.is_some()),
        ("--use-pkcs1-padding", args.use_pkcs1_padding),
        ("--get-server-output", args.get_server_output),
    ];
    match args.peer {
        Some(PeerChoice::Iperf3) => Ok(()),
        Some(PeerChoice::Netperf) | None => check_idle(
            &flags,
            "servers of iperf3",
            "add `--peer iperf3` and leave out what is for agents",
        ),
    }
}

/// Refuses a key whose certificate is not shown.
fn check_tls(args: &TlsArgs) -> CmdResult<()> {
    let is_alone = args.tls_client_key.is_some() && args.tls_client_cert.is_none();
    check_idle(
        &[("--tls-client-key", is_alone)],
        "a certificate (--tls-client-cert)",
        "add --tls-client-cert, without --plain",
    )
}

/// Returns how agents are known.
pub fn trust(tls: &TlsArgs) -> TrustAsked {
    TrustAsked {
        judge: match (&tls.tls_ca, tls.plain) {
            (_, true) => Judge::Nobody,
            (Some(authorities), false) => Judge::Authorities(authorities.clone()),
            (None, false) if !tls.fingerprints.is_empty() => {
                Judge::Fingerprints(tls.fingerprints.clone(), tls.known_agents.clone())
            }
            (None, false) if tls.accept_new => Judge::AcceptNew(tls.known_agents.clone()),
            (None, false) => Judge::Known(tls.known_agents.clone()),
        },
        own: tls.tls_client_cert.clone().zip(tls.tls_client_key.clone()),
    }
}

fn login(peer: &PeerArgs) -> Option<Login> {
    let user = peer.username.clone();
    let (user, key_file) = user.zip(peer.rsa_public_key_path.clone())?;
    Some(Login {
        user,
        key_file,
        padding: if peer.use_pkcs1_padding {
            Padding::Pkcs1
        } else {
            Padding::Oaep
        },
    })
}
