//! `linerate trace` as typed.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use linerate_model::{Bytes, Nanos};
use linerate_trace::Filter;

/// `linerate trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Captures: pcap or pcapng, also gzipped; `-` for standard input; or a bundle with captures. Two
    /// captures of the same packets, one from each end, are joined
    #[arg(required_unless_present = "interface", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these connections: ADDRESS, NETWORK/BITS, :PORT, ADDRESS:PORT; terms joined by `,` must all
    /// match (repeatable: any)
    #[arg(long, value_name = "FILTER")]
    pub flow: Vec<Filter>,
    /// Number of connections to show, most payload first [default: 10, 1000 with --json or --html]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// What to write
    #[arg(long, value_enum, default_value_t = TraceFormat::Text, conflicts_with = "json")]
    pub format: TraceFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print JSON, as --format json
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Say what changed from the first file to the second
    #[arg(long, conflicts_with_all = ["html", "csv", "parquet", "interface"])]
    pub compare: bool,
    /// Also write a page with pictures: one file that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write one row for each packet, as text
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write one row for each packet, as a Parquet file
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// A capture of this host, in place of files.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// How what was found is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// Lines for people
    Text,
    /// One document
    Json,
    /// One page with pictures that opens without a network
    Html,
}

impl TraceArgs {
    /// Returns what asks to explain one file, or a bundle's captures, as text.
    pub fn of(path: &Path) -> Self {
        Self {
            files: vec![path.to_owned()],
            flow: Vec::new(),
            top: None,
            format: TraceFormat::Text,
            out: None,
            json: false,
            compare: false,
            html: None,
            csv: None,
            parquet: None,
            live: LiveArgs {
                interface: None,
                time: None,
                snap: None,
                ring: None,
                write: None,
                anonymous: false,
            },
        }
    }

    /// Returns the format that was asked for.
    pub fn wanted(&self) -> TraceFormat {
        if self.json {
            TraceFormat::Json
        } else {
            self.format
        }
    }
}

/// A capture of this host as it happens.
#[derive(Debug, Args)]
#[command(next_help_heading = "Capturing on this host")]
pub struct LiveArgs {
    /// Capture on this device until Ctrl-C, then explain it; needs root or CAP_NET_RAW
    #[arg(short, long, value_name = "DEVICE", conflicts_with = "files")]
    pub interface: Option<String>,
    /// Stop after this time
    #[arg(short, long, value_name = "TIME", requires = "interface")]
    pub time: Option<Nanos>,
    /// Bytes of each frame that are kept: headers and options [default: 128]
    #[arg(long, value_name = "BYTES", requires = "interface")]
    pub snap: Option<Bytes>,
    /// Memory of the ring between kernel and program [default: 8M]
    #[arg(long, value_name = "BYTES", requires = "interface")]
    pub ring: Option<Bytes>,
    /// Also write the frames as pcapng
    #[arg(short, long, value_name = "FILE", requires = "interface")]
    pub write: Option<PathBuf>,
    /// Write anonymised addresses and no payload, and TCP and UDP only
    #[arg(long, requires = "write")]
    pub anonymous: bool,
}
