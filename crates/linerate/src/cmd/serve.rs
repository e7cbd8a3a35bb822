//! `linerate serve`: take part in measurements of other hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use linerate_agent::serve::{Iperf3Auth, ServeError, Server};
use linerate_agent::{AgentConfig, Core, Limits};

use crate::args::{Iperf3AuthArgs, ServeArgs};
use crate::exit::{CmdResult, Failure, Outcome};
use crate::{files, hosts, term};

/// Runs the command; ends on SIGINT or SIGTERM.
pub fn serve(args: &ServeArgs) -> CmdResult {
    files::raise_limit();
    let token = hosts::token(args.token_file.as_deref())?;
    if args.limit_flows == 0 || args.limit_time.0 == 0 {
        return Err(Failure::usage(anyhow!(
            "a limit of zero would refuse every measurement"
        )));
    }
    let with_token = token.is_some();
    let core = Arc::new(Core::new(AgentConfig {
        host_name: hosts::host_name(),
        token,
        limits: Limits {
            flows: Some(args.limit_flows),
            trial: Some(args.limit_time),
            rate: args.limit_rate,
        },
        lab: args.lab_host,
    }));
    let server = with_iperf3_auth(bind(args, &core)?, &args.iperf3)?;
    if !args.lab_host {
        term::note(&format!("serving on {}", server.address()?));
        if !with_token {
            term::note(
                "no token: other hosts may measure but not observe this one (see --token-file)",
            );
        }
    }
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
    ])?;
    let (stop, stopped) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        signals.forever().next();
        drop(stop);
    });
    server.run(stopped)?;
    Ok(Outcome::Ok)
}

/// Lets only known users come with iperf3, if that was asked for.
fn with_iperf3_auth(server: Server, args: &Iperf3AuthArgs) -> CmdResult<Server> {
    let (Some(key), Some(users)) = (&args.rsa_private_key_path, &args.authorized_users_path) else {
        return Ok(server);
    };
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path);
        text.with_context(|| format!("cannot read {}", path.display()))
    };
    let (private_key, users_text) = (read(key)?, read(users)?);
    let auth = Iperf3Auth {
        private_key: &private_key,
        users: &users_text,
        pkcs1_padding: args.use_pkcs1_padding,
        skew_s: args.time_skew_threshold,
    };
    let server = server.with_iperf3_auth(&auth);
    Ok(server.with_context(|| format!("{} and {}", key.display(), users.display()))?)
}

/// Binds the address; where the kernel has no IPv6, the default falls back to IPv4.
fn bind(args: &ServeArgs, core: &Arc<Core>) -> CmdResult<Server> {
    let address = SocketAddr::new(args.bind, args.port);
    let result = match Server::bind(address, Arc::clone(core)) {
        Err(ServeError::Bind { source, .. })
            if args.bind.is_unspecified()
                && args.bind.is_ipv6()
                && source.kind() != std::io::ErrorKind::AddrInUse =>
        {
            let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), args.port);
            Server::bind(any, Arc::clone(core))
        }
        result => result,
    };
    result.map_err(|error| {
        let in_use = matches!(&error, ServeError::Bind { source, .. }
            if source.kind() == std::io::ErrorKind::AddrInUse);
        let failure = Failure::failed(error);
        if in_use {
            return failure.next("another program has the port: end it, or choose one with --port");
        }
        failure
    })
}
