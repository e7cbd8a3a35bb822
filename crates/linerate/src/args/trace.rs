//! `linerate trace` as typed.

use std::path::PathBuf;

use clap::Args;
use linerate_trace::Filter;

/// `linerate trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Captures: pcap or pcapng, in gzip or not; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these connections: ADDRESS, NETWORK/BITS, :PORT, ADDRESS:PORT; joined by `,` all must
    /// hold (repeatable: any)
    #[arg(long, value_name = "FILTER")]
    pub flow: Vec<Filter>,
    /// Connections to show, most payload first
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Print JSON
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Write a report with pictures: one page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write one row for each packet, as text
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write one row for each packet, as a Parquet file
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
}
