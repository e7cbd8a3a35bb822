//! The flags of TLS, for callers of agents and for agents.

use std::path::PathBuf;

use clap::Args;
use linerate_agent::tls::Fingerprint;

/// How agents elsewhere are known.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "TLS of control connections (payload is measured in the clear)")]
pub struct TlsArgs {
    /// File with the certificates of known agents [default: ~/.config/linerate/known_agents]
    #[arg(long, value_name = "FILE")]
    pub known_agents: Option<PathBuf>,
    /// The agent's certificate, SHA256:…, as `linerate serve` prints it: no other is trusted; again for more agents
    #[arg(
        long = "fingerprint",
        value_name = "SHA256:…",
        value_parser = fingerprint,
        conflicts_with_all = ["tls_ca", "accept_new"]
    )]
    pub fingerprints: Vec<Fingerprint>,
    /// Show the token to an agent that was never met before without a proof, and note its certificate
    #[arg(long, conflicts_with = "tls_ca")]
    pub accept_new: bool,
    /// CA certificates (PEM): trust agents whose certificate they signed, instead of known agents
    #[arg(long, value_name = "FILE", conflicts_with = "known_agents")]
    pub tls_ca: Option<PathBuf>,
    /// Client certificate (PEM) for agents with `serve --client-ca`, instead of a token
    #[arg(long, value_name = "FILE", requires = "tls_client_key")]
    pub tls_client_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_client_cert")]
    pub tls_client_key: Option<PathBuf>,
    /// No TLS, for agents with `serve --plain`: anyone on the path can read the token
    #[arg(long, conflicts_with_all = ["known_agents", "tls_ca", "tls_client_cert", "fingerprints", "accept_new"])]
    pub plain: bool,
}

fn fingerprint(text: &str) -> Result<Fingerprint, &'static str> {
    let bad = "a fingerprint is SHA256: and 64 hexadecimal digits, as `linerate serve` prints it";
    text.parse().map_err(|()| bad)
}

/// How an agent shows who it is.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS of control connections")]
pub struct ServeTlsArgs {
    /// Directory of the key and certificate, which are created at the first start [default:
    /// /var/lib/linerate for root, else ~/.local/state/linerate]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Present this certificate instead, with its chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// CA certificates (PEM): a caller whose certificate they signed is treated like one with a token
    #[arg(long, value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// Also accept control connections from other hosts without TLS: only for networks that are yours
    /// alone
    #[arg(long)]
    pub plain: bool,
}
