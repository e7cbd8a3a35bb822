//! The flags of `linerate run` for servers of other programs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The programs whose servers can be driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PeerChoice {
    /// `iperf3 -s`, or `linerate serve` as if it were one
    Iperf3,
    /// `netserver`, or `linerate serve` as if it were one
    Netperf,
}

/// A server that is not `linerate serve`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Servers of other programs")]
pub struct PeerArgs {
    /// Program that serves at HOST instead of `linerate serve`: iperf3, or netperf, whose port is 12865 unless -p
    /// names another; that host is not observed
    #[arg(
        long,
        value_enum,
        value_name = "PROGRAM",
        hide_possible_values = true,
        conflicts_with_all = ["clients", "lab", "token_file", "shared", "known_agents", "fingerprints", "accept_new", "tls_ca", "tls_client_cert", "plain"]
    )]
    pub peer: Option<PeerChoice>,
    /// User name, if the server wants one; the password comes from IPERF3_PASSWORD or a prompt
    #[arg(long, value_name = "USER", requires_all = ["peer", "rsa_public_key_path"])]
    pub username: Option<String>,
    /// The server's public key, PEM
    #[arg(long, value_name = "FILE", requires = "username")]
    pub rsa_public_key_path: Option<PathBuf>,
    /// PKCS#1 padding instead of OAEP, for servers up to 3.16
    #[arg(long, requires = "username")]
    pub use_pkcs1_padding: bool,
    /// Print the server's own output too
    #[arg(long, requires = "peer")]
    pub get_server_output: bool,
}
