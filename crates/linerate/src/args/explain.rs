//! `linerate explain`.

use std::path::PathBuf;

use clap::Args;
use linerate_model::Nanos;

use super::{PORT_DEFAULT, TlsArgs};

/// `linerate explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        linerate explain run.bundle\n  \
                        linerate explain --port 443 --for 30s\n  \
                        linerate explain --pid 812 db1 --with web1\n\n\
                        docs/guide/explain.md says what is seen of a service that is not ours, and what is not.")]
pub struct ExplainArgs {
    /// A bundle; captures (pcap, pcapng); with --port or --pid the host, which runs `linerate serve` [default: this one,
    /// without an agent]
    #[arg(value_name = "BUNDLE|CAPTURE|HOST[:PORT]")]
    pub subject: Option<String>,
    /// The TCP port of a service: its connections are watched, at either end
    #[arg(long, value_name = "N", conflicts_with = "pid", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// The process whose TCP connections are watched
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// For how long, 1s to 1h
    #[arg(long = "for", default_value = "30s", value_name = "TIME")]
    pub time: Nanos,
    /// The host at the other end, which runs `linerate serve`, too: what its kernel counts says the rest
    #[arg(long = "with", value_name = "HOST[:PORT]")]
    pub other: Option<String>,
    /// Print a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Port of the agents
    #[arg(long, default_value_t = PORT_DEFAULT, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub agent_port: u16,
    /// File with the agents' token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// How the agents are known.
    #[command(flatten)]
    pub tls: TlsArgs,
}
