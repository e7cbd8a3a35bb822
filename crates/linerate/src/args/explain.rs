//! `linerate explain`.

use std::path::{Path, PathBuf};

use clap::Args;
use linerate_model::Nanos;

use super::quantity::seconds;
use super::{PORT_DEFAULT, TlsArgs};

/// `linerate explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        linerate explain db1\n  \
                        linerate explain run.bundle\n  \
                        linerate explain --port 443 --for 30s\n  \
                        linerate explain --pid 812 db1 --with web1\n\n\
                        docs/guide/explain.md says what is seen of a service that is not ours, and what is not.")]
pub struct ExplainArgs {
    /// A bundle; captures (pcap, pcapng); a host, which runs `linerate serve`: a stream to it is measured, or with --port or
    /// --pid a service is watched there [default: here, without an agent]
    #[arg(value_name = "BUNDLE|CAPTURE|HOST[:PORT]")]
    pub subject: Option<String>,
    /// The TCP port of a service: its connections are watched, at either end
    #[arg(long, value_name = "N", conflicts_with = "pid", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// The process whose TCP connections are watched
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// For how long, 1s to 1h [default: 10s of a stream, 30s of a service]
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Nanos>,
    /// After a stream change one thing after another for so many seconds at the most, and say what that proves of what limits
    /// it [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub prove: Option<f64>,
    /// The host at the other end, which runs `linerate serve`, too: what its kernel counts says the rest
    #[arg(long = "with", value_name = "HOST[:PORT]")]
    pub other: Option<String>,
    /// Write an evidence bundle of the stream with its report to this directory
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print a JSON document: of a stream that of `linerate run`
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

/// How a bundle and captures are usually called.
const ENDS_OF_FILES: [&str; 5] = [".bundle", ".pcap", ".pcapng", ".cap", ".gz"];

impl ExplainArgs {
    /// Returns the host to which a stream is to be measured: the subject, where that is no host of a service, no path that is
    /// there, and does not look like one that is not.
    pub fn host(&self) -> Option<&str> {
        let subject = self.subject.as_deref()?;
        let is_service = self.port.is_some() || self.pid.is_some();
        let is_path = subject.contains('/')
            || ENDS_OF_FILES.iter().any(|end| subject.ends_with(end))
            || Path::new(subject).exists();
        (!is_service && !is_path).then_some(subject)
    }
}
