//! Flags that several commands share.

use std::path::PathBuf;

use clap::Args;
use linerate_model::margin::Margins;

use super::quantity::{bind_address, half_share};
use super::tls::TlsArgs;

/// What a result is held against, for scripts.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Gates (exit code 4)")]
pub struct GateArgs {
    /// Compare the result with this bundle, or document of -J; a regression ends with exit code 4
    #[arg(long, value_name = "BUNDLE")]
    pub baseline: Option<PathBuf>,
    /// What is worse than the baseline by more than this is a regression [default: what --same-… say]
    #[arg(long, value_name = "PERCENT", value_parser = half_share, requires = "baseline")]
    pub threshold: Option<f64>,
    /// End with exit code 4 if this is so: 'throughput < 900M', 'p99 > 200us' (repeatable)
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<String>,
}

/// How agents are found and shared.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hosts")]
pub struct FleetArgs {
    /// Port of the agents [default: 5201]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Client host that drives the server, in place of this one (repeatable; it runs `linerate serve`)
    #[arg(long = "client", value_name = "HOST[:PORT]")]
    pub clients: Vec<String>,
    /// File with the agents' token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Wait for a busy host instead of giving up
    #[arg(long, conflicts_with = "shared")]
    pub queue: bool,
    /// Run at the same time as others; results are marked
    #[arg(long)]
    pub shared: bool,
    /// End all runs that occupy a host (needs a token with scope admin)
    #[arg(long, conflicts_with = "shared")]
    pub evict: bool,
    /// Connect from this address, and by this device
    #[arg(short = 'B', long, value_name = "ADDR[%DEV]", value_parser = bind_address)]
    pub bind: Option<std::net::SocketAddr>,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long)]
    pub ipv6: bool,
    /// How agents are known.
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// What has to differ by how much to matter.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Verdicts")]
pub struct MarginArgs {
    /// Rates that differ by less are the same [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = half_share)]
    pub same_rate: Option<f64>,
    /// CPU times that differ by less are the same [default: 10%]
    #[arg(long, value_name = "PERCENT", value_parser = half_share)]
    pub same_cpu: Option<f64>,
    /// Latencies that differ by less, or by less than 5 µs, are the same [default: 10%]
    #[arg(long, value_name = "PERCENT", value_parser = half_share)]
    pub same_latency: Option<f64>,
}

impl MarginArgs {
    /// Returns what was asked for, and the defaults of the rest.
    pub fn margins(&self) -> Margins {
        let default = Margins::default();
        Margins {
            rate: self.same_rate.unwrap_or(default.rate),
            cpu: self.same_cpu.unwrap_or(default.cpu),
            latency: self.same_latency.unwrap_or(default.latency),
        }
    }

    /// Says what was asked for, as it would be typed.
    pub fn words(&self) -> String {
        let word = |flag: &str, share: Option<f64>| {
            share.map_or(String::new(), |share| {
                format!(" --same-{flag} {}%", (1e10 * share).round() / 1e8)
            })
        };
        word("rate", self.same_rate)
            + &word("cpu", self.same_cpu)
            + &word("latency", self.same_latency)
    }
}
