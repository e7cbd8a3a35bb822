//! `linerate watch` as typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use linerate_agent::api::PORT_DEFAULT;
use linerate_model::Nanos;

use super::TlsArgs;

/// `linerate watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The host, which runs `linerate serve` [default: this one, without an agent]
    #[arg(value_name = "HOST[:PORT]")]
    pub host: Option<String>,
    /// Time between two readings, 20ms to 1h
    #[arg(short, long, default_value = "1s", value_name = "TIME")]
    pub interval: Nanos,
    /// Start with this page [default: overview]; with --once, print only this page
    #[arg(long, value_enum, conflicts_with_all = ["json_stream", "prometheus"])]
    pub page: Option<PageChoice>,
    /// Which TCP sockets to show, as in: state connected and dport 5201 and dst 10.0.0.0/8
    #[arg(long, value_name = "FILTER", default_value = "state connected")]
    pub filter: String,
    /// Take two readings, print every page or that of --page, and exit
    #[arg(long, conflicts_with_all = ["json_stream", "prometheus", "count"])]
    pub once: bool,
    /// Print one line of JSON per interval
    #[arg(long, conflicts_with = "prometheus")]
    pub json_stream: bool,
    /// Exit after this many intervals
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Serve the counters to Prometheus at this address, under /metrics
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["count", "interval", "filter"])]
    pub prometheus: Option<SocketAddr>,
    /// With --prometheus: another name by which it may be addressed, besides this host's own, its
    /// addresses and localhost (repeatable)
    #[arg(long = "name", value_name = "NAME", requires = "prometheus")]
    pub names: Vec<String>,
    /// Port of the agent
    #[arg(short, long, default_value_t = PORT_DEFAULT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// File with the agent's token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// How the agent is known.
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// A page of `linerate watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PageChoice {
    /// One line per page, problems first
    Overview,
    /// CPU time by mode
    Cpus,
    /// Packets by queue, and where each queue is served
    Queues,
    /// Interrupts of network devices, with queue, device and CPU
    Interrupts,
    /// Packets that each CPU processed and dropped, and NAPI's budget (time_squeeze)
    Softnet,
    /// TCP connections
    Tcp,
    /// Links
    Links,
    /// What is dropped, refused or throttled
    Trouble,
}

impl PageChoice {
    /// Returns the page's own name, in small letters.
    pub fn name(self) -> String {
        let typed = self.to_possible_value();
        typed.map_or(String::new(), |typed| typed.get_name().to_owned())
    }
}
