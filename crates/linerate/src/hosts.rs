//! From names on the command line to hosts of a run.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::anyhow;
use linerate_agent::api::client::HttpAgent;
use linerate_agent::api::{
    AdmitRequest, Agent, AgentError, LABEL_CHARS_MAX, LimitsInfo, NoAnswer, RefusalCode,
};
use linerate_agent::foreign::iperf3_peer;
use linerate_agent::tls::client::HandshakeError;
use linerate_agent::tls::known::KnownError;
use linerate_agent::tls::{Fingerprint, TlsFileError};
use linerate_agent::{AgentConfig, Core, Lacking, LocalAgent};
use linerate_controller::{Fleet, FleetError, HostSpec, Inventories, Placing};
use linerate_model::host::Snapshot;
use linerate_model::run::{Admission, HostPart};
use linerate_model::wire::Wire;
use linerate_model::workload::Workload;
use linerate_model::{BitsPerSec, Bytes, Nanos, RunId};
use linerate_plan::Hosts;

use crate::exit::{CmdResult, Exit, Failure};

/// From names to the addresses that answer.
mod address;
/// What serves where no agent does.
mod elsewhere;
/// Servers of other programs.
mod foreign;

/// The token that agents are called with.
mod token;
/// Which agents are trusted.
mod trust;

pub use address::Place;
use elsewhere::Elsewhere;
pub use foreign::{ForeignServer, Login};
pub use token::{TOKEN_VARIABLE, token, token_line};
pub use trust::Callers;

/// Longest wait for a connection that tells what packets may hold: the server has answered before.
const MTU_WITHIN: Duration = Duration::from_secs(2);

/// The hosts that a run is to have, by name, and how it reaches and shares them.
#[derive(Clone)]
pub struct HostsAsked {
    /// The server: HOST or HOST:PORT; empty in a lab.
    pub server: String,
    /// Who drives it; this host where none is named.
    pub clients: Vec<String>,
    /// Port of those that are named without one.
    pub port: u16,
    /// File with the agents' token.
    pub token_file: Option<PathBuf>,
    /// How agents elsewhere are known.
    pub trust: TrustAsked,
    /// How the run wants to share them.
    pub admission: Admission,
    /// Whether runs without a token are ended for it.
    pub evict: bool,
    /// Address to connect from.
    pub bind: Option<SocketAddr>,
    /// The only family of addresses to use.
    pub family: Option<Family>,
    /// What serves there, if it is not an agent.
    pub foreign: Option<ForeignServer>,
}

/// How agents elsewhere are known, and what they are shown.
#[derive(Clone)]
pub struct TrustAsked {
    /// How they are known.
    pub judge: Judge,
    /// Files with a certificate of ours and its key.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// How agents elsewhere are known.
#[derive(Clone)]
pub enum Judge {
    /// By the certificates that they showed before, in this file or the usual one. One that is met for the first time
    /// proves that it knows the token.
    Known(Option<PathBuf>),
    /// By the same, and whoever answers first.
    AcceptNew(Option<PathBuf>),
    /// By these certificates; the same file has what they are noted in.
    Fingerprints(Vec<Fingerprint>, Option<PathBuf>),
    /// By the authorities of this file.
    Authorities(PathBuf),
    /// Not at all: without TLS.
    Nobody,
}

/// A family of addresses.
#[derive(Clone, Copy)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Returns the agent of a host that is only looked at: `HOST[:PORT]`, or this one.
pub fn observed(
    host: Option<&str>,
    port: u16,
    token_file: Option<&Path>,
    trust: &TrustAsked,
) -> CmdResult<Arc<dyn Agent>> {
    let Some(host) = host else {
        return Ok(Arc::new(this_agent()));
    };
    let callers = Callers::new(token(token_file)?, trust)?;
    let (agent, _) = callers.reached(&Place::of(host, port, None)?)?;
    agent.info().map_err(agent_failure)?;
    Ok(Arc::new(agent))
}

/// Returns the failure that a certificate or its key is of no use.
pub fn unusable_identity(error: TlsFileError) -> Failure {
    let next = match &error {
        TlsFileError::Readable { path, .. } => Some(format!("chmod 600 {}", path.display())),
        _ => None,
    };
    Failure::usage(error).maybe(next)
}

/// Returns the failure that an agent's error is, with what the user can do.
pub fn agent_failure(error: AgentError) -> Failure {
    let next = next_step(&error);
    Failure::failed(error).maybe(next)
}

/// Returns the hosts of a run: the server, and the clients or this host in their place.
pub fn specs(asked: &HostsAsked) -> CmdResult<Vec<HostSpec>> {
    check_bind(asked)?;
    let callers = callers(asked)?;
    let spec = |name: String, part, host: &str| {
        let (agent, address) = reached(&callers, host, asked)?;
        CmdResult::Ok(HostSpec::new(name, part, Arc::new(agent), address))
    };
    let server = spec("server".to_owned(), HostPart::Server, &asked.server)?;
    let address = (server.data_address).unwrap_or(SocketAddr::from(([0; 4], 0)));
    if let (SocketAddr::V6(v6), Some(client)) = (address, asked.clients.first()) {
        // The number of a device is this host's own.
        if v6.scope_id() != 0 {
            let error = anyhow!(
                "{}: an address of a link of this host, which --client {client} may not have",
                asked.server
            );
            return Err(Failure::usage(error).next("name an address that all clients reach"));
        }
    }
    let mut specs = vec![server];
    for (at, client) in asked.clients.iter().enumerate() {
        let name = format!("client{}", at + 1);
        specs.push(spec(name, HostPart::Client, client)?);
    }
    if asked.clients.is_empty() {
        specs.push(this_host(address, asked.bind, |agent| Arc::new(agent)));
    }
    Ok(specs)
}

/// Returns what calls the agents of the hosts that were asked for.
pub fn callers(asked: &HostsAsked) -> CmdResult<Callers> {
    Callers::new(token(asked.token_file.as_deref())?, &asked.trust)
}

/// Returns the agent at `control`, `HOST[:PORT]`, and the address at which it is called.
pub fn reached(
    callers: &Callers,
    control: &str,
    asked: &HostsAsked,
) -> CmdResult<(HttpAgent, SocketAddr)> {
    callers.reached(&Place::find(control, asked)?)
}

/// Refuses to connect from an address that this host does not have, or where other hosts are the clients.
pub fn check_bind(asked: &HostsAsked) -> CmdResult<()> {
    let Some(address) = asked.bind else {
        return Ok(());
    };
    if !asked.clients.is_empty() {
        let error =
            anyhow!("--bind (-B) is of this host, but with --client others are the clients");
        return Err(Failure::usage(error).next("leave one of them out"));
    }
    match UdpSocket::bind(plain(address)) {
        Ok(_) => Ok(()),
        Err(error) => {
            let error = anyhow!(
                "--bind (-B): cannot connect from {}: {error}",
                address.ip().to_canonical()
            );
            Err(Failure::usage(error).next("name an address of this host: `ip address` lists them"))
        }
    }
}

/// Returns the payload of the largest datagram that passes between the hosts in one packet, where that is known: to an agent
/// what both kernels say of it, to a server of another program only within this host, and between other hosts the
/// MTUs of their devices.
pub fn datagram_bytes_max(asked: &HostsAsked, server: SocketAddr, fleet: &Fleet) -> Option<Bytes> {
    let mtu_bytes = if asked.clients.is_empty() {
        let (route, is_own) = linerate_agent::route_mtu_bytes(server).ok()?;
        if is_own {
            route
        } else {
            // A server that serves one at a time would take it for its client.
            let is_agent = asked.foreign.is_none();
            let packet = || linerate_agent::connection_mtu_bytes(server, MTU_WITHIN).ok();
            route.min(is_agent.then(packet)??)
        }
    } else {
        let members = fleet.members().iter();
        let all: Option<Vec<u64>> = members.map(|member| member.record.mtu_bytes()).collect();
        all?.into_iter().min()?
    };
    let wire = Wire {
        rate: BitsPerSec(f64::INFINITY),
        mtu_bytes,
        tcp_option_bytes: 0,
        ipv6: server.ip().to_canonical().is_ipv6(),
        udp: true,
    };
    Some(Bytes(wire.payload_bytes_max()))
}

/// Returns an address as it is bound to; one of IPv4 with a device is written as one of IPv6.
fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => (ip, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// Returns this host as the client, its agent behind what `agent` makes of it.
pub fn this_host(
    server: SocketAddr,
    bind: Option<SocketAddr>,
    agent: impl FnOnce(LocalAgent) -> Arc<dyn Agent>,
) -> HostSpec {
    crate::files::raise_limit();
    HostSpec {
        data_address: bind
            .map(plain)
            .or_else(|| Some((address::source_address(server)?, 0).into())),
        bind,
        ..HostSpec::new("client1", HostPart::Client, agent(this_agent()), server)
    }
}

/// Refuses what this host cannot do as the client: CPUs that are not there, more flows than it may
/// have files, options that its kernel does not take.
pub fn check_this_host(workload: &Workload, cpus: &[u32]) -> CmdResult<()> {
    crate::files::raise_limit();
    linerate_agent::check_here(workload, cpus).map_err(|lacking| {
        let failure = Failure::usage(anyhow!("this host: {lacking}"));
        match lacking {
            Lacking::Cpu(_) => failure.next("name CPUs of these with -A, or none"),
            Lacking::Cpus(_) => failure.next("confine workers to fewer CPUs with --cpus"),
            Lacking::Congestion(_) => failure.next(format!(
                "choose one of those with -C: {}",
                setting_of_kernel("net/ipv4/tcp_available_congestion_control")
            )),
            // It says itself what to do.
            Lacking::Files(_) | Lacking::Option(_) => failure,
        }
    })
}

/// Returns an agent of this host, in this process.
fn this_agent() -> LocalAgent {
    LocalAgent::new(Arc::new(Core::new(AgentConfig {
        host_name: host_name(),
        limits: LimitsInfo::default(),
        lab: false,
    })))
}

/// Returns the kernel's name of this host.
pub fn host_name() -> String {
    setting_of_kernel("kernel/hostname")
}

fn setting_of_kernel(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/{name}"))
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Gathers the hosts, telling the user when one of them is busy.
pub fn gather(
    specs: Vec<HostSpec>,
    request: &AdmitRequest,
    inventories: Inventories,
    stop: &AtomicBool,
) -> CmdResult<Fleet> {
    let mut told = None;
    let mut waiting = |host: &linerate_model::HostName, place: u32| {
        if told != Some(place) {
            crate::term::note(&crate::term::queued(host, place));
            told = Some(place);
        }
    };
    Fleet::gather(specs, request, inventories, stop, &mut waiting).map_err(|error| {
        let (exit, next) = match &error {
            FleetError::Interrupted(_) => (Exit::Interrupted, None),
            FleetError::Agent { source, .. } => (Exit::Failed, next_step(source)),
        };
        Failure {
            exit,
            ..Failure::failed(error).maybe(next)
        }
    })
}

/// Returns what to do about another program at an address, if it can be told which.
fn found_elsewhere(address: &str) -> Option<&'static str> {
    let found = Elsewhere::find(address.parse().ok()?)?;
    Some(found.next_step())
}

fn next_step(error: &AgentError) -> Option<String> {
    let text = match error {
        AgentError::Unreachable { why, address, .. } => match why {
            NoAnswer::Refused => "start `linerate serve` there, or name its port with -p",
            NoAnswer::TimedOut => {
                "check the address, that the host is up, and that firewalls on the way let the port through; or name \
                 another port with -p"
            }
            NoAnswer::NoHost => "check the address, and whether the host is up: `ip neigh` shows who answered",
            NoAnswer::Prohibited => {
                "check the routes and the firewall of this host: `ip route get ADDRESS`, `nft list ruleset`"
            }
            NoAnswer::NoRoute => {
                "check the address and the routes of this host: `ip route get ADDRESS` names the one that is used"
            }
            NoAnswer::NoDevice => {
                return Some(format!(
                    "add %DEVICE to the address; the devices of this host are {}",
                    address::devices()
                ));
            }
            NoAnswer::Quiet => found_elsewhere(address)
                .unwrap_or("try again, or name the port of `linerate serve` with -p"),
            NoAnswer::Other => return None,
        },
        AgentError::NotAnAgent { address, .. } => {
            found_elsewhere(address).unwrap_or("name another port with -p, on both hosts")
        }
        AgentError::NoTls { address, .. } => found_elsewhere(address).unwrap_or(
            "use the same version on both hosts; name another port with -p; or, where the network is \
             yours alone, --plain on both",
        ),
        AgentError::Untrusted { source, .. } => match &**source {
            HandshakeError::Known(KnownError::Changed { line, path, .. }) => {
                return Some(format!(
                    "compare with what `linerate serve` prints there: if its key was replaced, remove line \
                     {line} of {}; if not, another host may be in between",
                    path.display()
                ));
            }
            HandshakeError::Known(KnownError::Line { .. }) => "correct or remove that line",
            HandshakeError::Known(KnownError::Io { .. }) => "name another file with --known-agents",
            HandshakeError::Certificate(_) => {
                "give the CA of its certificate with --tls-ca, and address the agent by a name in that \
                 certificate; or pin its certificate, without --tls-ca"
            }
            HandshakeError::Unproved { shown, .. } => {
                return Some(format!(
                    "check that the token (--token-file) is that agent's; compare the certificate with the one that `linerate serve` \
                     prints there: if it is the same, add --fingerprint {shown}; if not, another host may be in \
                     between (--accept-new shows the token to any host that answers)"
                ));
            }
            HandshakeError::Fingerprint(_) => {
                "compare with what `linerate serve` prints there: if it is another, another host may be in between"
            }
            HandshakeError::NoTls(_) | HandshakeError::Other(_) => return None,
        },
        AgentError::Version { .. } => "install the same version on both hosts",
        AgentError::Lost { .. } => "check whether `linerate serve` is still running there",
        AgentError::Foreign {
            code,
            program,
            gone,
            ..
        } => match code {
            _ if *gone => {
                let command = foreign::command_of(program);
                return Some(format!("start `{command}` there, or name its port with -p"));
            }
            Some(RefusalCode::Busy) => "try again later, or wait for it with --queue",
            Some(RefusalCode::Unauthorized) if *program == iperf3_peer::PROGRAM => {
                "check --username, the password and --rsa-public-key-path; servers up to 3.16 need \
                 --use-pkcs1-padding"
            }
            _ => return Some(format!("check what {program} reports there")),
        },
        AgentError::Refused { refusal, .. } => match refusal.code {
            // The agent knows best what it would not refuse in turn.
            _ if refusal.next.is_some() => return refusal.next.clone(),
            RefusalCode::Unauthorized => {
                "give the agent's token with --token-file; `linerate token add NAME` there makes one (with \
                 the `--state` of that agent, if it has one)"
            }
            // Where a flag helps, an agent from before it had a `next` names it in its error.
            RefusalCode::Busy => "try again later",
            _ => return None,
        },
    };
    Some(text.to_owned())
}

/// Returns the request by which a run asks every host for admission.
pub fn admit_request(
    run: &RunId,
    label: &str,
    hosts: &HostsAsked,
    expected: Nanos,
) -> AdmitRequest {
    AdmitRequest {
        run: run.clone(),
        label: label.chars().take(LABEL_CHARS_MAX).collect(),
        admission: hosts.admission,
        expected: Some(expected),
        evict: hosts.evict,
    }
}

/// Returns the placement that nobody asked for: ours.
pub fn placing() -> Placing {
    Placing::Auto {
        cpus: linerate_observe::cpus_allowed(Path::new("/proc")),
    }
}

/// Returns what a plan needs to know of the hosts.
pub fn plan_hosts(fleet: &Fleet) -> Hosts {
    let records = fleet.members().iter().map(|member| &member.record);
    let snapshots: Vec<&Snapshot> = records.clone().map(|record| &record.snapshot).collect();
    let losses = records.clone().filter_map(|record| record.link_loss_ppm);
    // An exchange leaves open where within its round trip the host's clock was read.
    let round_trips = records.map(|record| Nanos(2 * record.clock.uncertainty_ns));
    // Those that are there for a loss are slow ones.
    let plain = fleet.members().iter().map(|member| &member.record);
    let plain = plain.filter(|record| record.link_loss_ppm.is_none());
    let links: Option<Vec<u64>> = plain
        .map(|record| Some(record.link_rate?.0 as u64))
        .collect();
    Hosts {
        round_trip: round_trips.max().unwrap_or_default(),
        link_bps: links.and_then(|links| links.into_iter().min()),
        ..plan_hosts_of(&snapshots, fleet.clients(), losses.collect())
    }
}

/// Returns the same of hosts that are like `snapshots`: what all of them can.
pub fn plan_hosts_of(snapshots: &[&Snapshot], clients: u32, losses_ppm: Vec<u32>) -> Hosts {
    let least = |name: &str| {
        let numbers = snapshots.iter().filter_map(|one| one.number(name));
        numbers.reduce(f64::min).map(|number| number as u64)
    };
    let names = "sysctl.net.ipv4.tcp_available_congestion_control";
    let known = snapshots
        .iter()
        .filter_map(|one| one.text(names))
        .map(|names| names.split_whitespace().map(str::to_owned).collect());
    let congestion = known.reduce(|mut all: Vec<String>, one| {
        all.retain(|name| one.contains(name));
        all
    });
    Hosts {
        clients,
        link_losses_ppm: losses_ppm,
        rmem_max: least("sysctl.net.core.rmem_max"),
        wmem_max: least("sysctl.net.core.wmem_max"),
        congestion: congestion.unwrap_or_default(),
        congestion_unless_asked: None,
        cpus_max: least("cpu.online"),
        knobs: None,
        link_bps: None,
        round_trip: Nanos(0),
    }
}
