//! The flags of TLS, for callers of agents and for agents.

use std::path::PathBuf;

use clap::Args;

/// How agents elsewhere are known.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "TLS of control connections (payload is measured in the clear)")]
pub struct TlsArgs {
    /// File of the certificates that agents showed before [default: ~/.config/linerate/known_agents]
    #[arg(long, value_name = "FILE")]
    pub known_agents: Option<PathBuf>,
    /// Trust agents whose certificate these authorities vouch for instead, PEM
    #[arg(long, value_name = "FILE", conflicts_with = "known_agents")]
    pub tls_ca: Option<PathBuf>,
    /// Show agents this certificate, PEM: for those with `serve --client-ca`, instead of a token
    #[arg(long, value_name = "FILE", requires = "tls_client_key")]
    pub tls_client_cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_client_cert")]
    pub tls_client_key: Option<PathBuf>,
    /// No TLS: for agents with `serve --plain`; whoever is on the way can read the token
    #[arg(long, conflicts_with_all = ["known_agents", "tls_ca", "tls_client_cert"])]
    pub plain: bool,
}

/// How an agent shows who it is.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS of control connections")]
pub struct ServeTlsArgs {
    /// Directory of the key and certificate that are made at the first start
    /// [default: /var/lib/linerate of root, ~/.local/state/linerate]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Show this certificate instead, with those that vouch for it, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Trust callers whose certificate these authorities vouch for as if they showed a token, PEM
    #[arg(long, value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// Take control connections from other hosts without TLS too: for networks that are yours alone
    #[arg(long)]
    pub plain: bool,
}
