//! Servers of other programs: from their names to hosts of a run.

use std::path::Path;

use anyhow::{Context, anyhow};
use linerate_agent::foreign::iperf3_peer::{Credentials, Iperf3Options, Iperf3Peer, PublicKey};
use linerate_agent::foreign::netperf_peer::NetperfPeer;
use linerate_controller::HostSpec;
use linerate_model::run::HostPart;

use crate::exit::{CmdResult, Failure};
use crate::hosts::{self, ForeignServer, HostsAsked, Login, Place};

/// The variable that carries the password, as for iperf3 itself.
const PASSWORD_VARIABLE: &str = "IPERF3_PASSWORD";

/// Returns the hosts of a run with its server, of whatever program; and the handle on one of iperf3, which has more to
/// say than what is recorded.
pub fn specs(asked: &HostsAsked) -> CmdResult<(Vec<HostSpec>, Option<Iperf3Peer>)> {
    let Some(foreign) = &asked.foreign else {
        return Ok((hosts::specs(asked)?, None));
    };
    hosts::check_bind(asked)?;
    let credentials = match foreign {
        ForeignServer::Iperf3 { login, .. } => login.as_ref().map(credentials).transpose()?,
        ForeignServer::Netperf => None,
    };
    let place = Place::find(&asked.server, asked)?;
    // Where none answers, the peer says what there is to say of a server of its kind.
    let reached = place.reached(asked.bind);
    let (address, opened) = reached.unwrap_or_else(|_| (place.first(), None));
    let (server, client, iperf3) = match foreign {
        ForeignServer::Iperf3 { server_output, .. } => {
            let options = Iperf3Options {
                address,
                bind: asked.bind,
                credentials,
                server_output: *server_output,
            };
            let peer = Iperf3Peer::new(options, opened);
            let client = hosts::this_host(address, asked.bind, |agent| peer.client(agent));
            (peer.server(), client, Some(peer))
        }
        ForeignServer::Netperf => {
            let peer = NetperfPeer::new(address, asked.bind, opened);
            let client = hosts::this_host(address, asked.bind, |agent| peer.client(agent));
            (peer.server(), client, None)
        }
    };
    let server = HostSpec::new("server", HostPart::Server, server, address);
    Ok((vec![server, client], iperf3))
}

fn credentials(login: &Login) -> CmdResult<Credentials> {
    let password = match std::env::var(PASSWORD_VARIABLE) {
        Ok(password) => password,
        Err(_) => ask_password(&login.user)?,
    };
    Ok(Credentials {
        user: login.user.clone(),
        password,
        key: public_key(&login.key_file)?,
        padding: login.padding,
    })
}

fn public_key(file: &Path) -> CmdResult<PublicKey> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the public key {}", file.display()))
        .map_err(Failure::usage)?;
    PublicKey::from_pem(&text)
        .with_context(|| format!("{} is not a public key", file.display()))
        .map_err(|error| {
            Failure::usage(error)
                .next("make one with `openssl rsa -in private.pem -pubout -out public.pem`")
        })
}

fn ask_password(user: &str) -> CmdResult<String> {
    let terminal = console::Term::stderr();
    let none = || {
        let error = anyhow!("no password for {user}");
        Failure::usage(error).next(format!("set {PASSWORD_VARIABLE}, or run it in a terminal"))
    };
    if !terminal.is_term() {
        return Err(none());
    }
    let asked = terminal.write_str(&format!("Password of {user}: "));
    asked
        .and_then(|()| terminal.read_secure_line())
        .map_err(|_| none())
}
