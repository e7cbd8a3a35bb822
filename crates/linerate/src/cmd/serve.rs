//! `linerate serve`: take part in measurements of other hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use linerate_agent::serve::{Iperf3Auth, ServeError, Server};
use linerate_agent::{AgentConfig, Core, Limits};

use crate::args::{Iperf3AuthArgs, ServeArgs};
use crate::exit::{CmdResult, Exit, Failure};
use crate::{files, hosts, term};

/// How often a server that ends after one run looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the command; ends on SIGINT or SIGTERM, or after one run if that was asked for.
pub fn serve(args: &ServeArgs) -> CmdResult {
    if args.daemon {
        // What detaches itself loses its exit code, its log and its limits; a supervisor keeps them.
        let error = anyhow!("--daemon (-D): linerate does not put itself into the background");
        return Err(Failure::usage(error).next(
            "let `systemd-run --unit linerate linerate serve` keep it, or `nohup linerate serve &`",
        ));
    }
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
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
    ])?;
    let (stop, stopped) = std::sync::mpsc::channel();
    if args.one_off {
        let (stop, core) = (stop.clone(), Arc::clone(&core));
        let idle = args.idle_timeout.map(Duration::from_secs);
        std::thread::spawn(move || {
            wait_for_one(&core, idle);
            let _ = stop.send(());
        });
    }
    std::thread::spawn(move || {
        signals.forever().next();
        let _ = stop.send(());
    });
    let _pid = args.pidfile.as_deref().map(PidFile::write).transpose()?;
    // Said last: who waits for it may read the file, send a signal and come with a run at once.
    if !args.lab_host {
        term::note(&format!("serving on {}", server.address()?));
        if !with_token {
            term::note(
                "no token: other hosts may measure but not observe this one (see --token-file)",
            );
        }
    }
    // What it took to get here is not needed to serve.
    linerate_agent::give_back_text();
    linerate_agent::read_text_ahead();
    server.run(stopped)?;
    Ok(Exit::Ok)
}

/// Waits until a run has had this host and nobody has it any more, or until nobody has come for
/// `idle`.
fn wait_for_one(core: &Core, idle: Option<Duration>) {
    let began = Instant::now();
    loop {
        match core.runs() {
            (0, 0) if idle.is_some_and(|idle| began.elapsed() >= idle) => return,
            (1.., 0) => return,
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// The file that says which process this is; it goes with the server.
struct PidFile<'a>(&'a Path);

impl<'a> PidFile<'a> {
    fn write(path: &'a Path) -> anyhow::Result<Self> {
        std::fs::write(path, format!("{}\n", std::process::id()))
            .with_context(|| format!("cannot write the process id to {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        // Whoever removed it before wanted the same.
        let _ = std::fs::remove_file(self.0);
    }
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
